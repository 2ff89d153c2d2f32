"""Seed 003, Fig. 10 redrawn: one sparse solve of the Stanford arm's tableau at 96 ... 738 equations; large systems.

Every method gets the entries of the Jacobian and a right side, and returns the solution: factorization and solve.

    dense       LAPACK's dgesv
    superlu     SciPy's splu with its own column ordering, each time
    reused      the same with the ordering of the first time (permc_spec="NATURAL")
    inner       inner-product sparse elimination over a static pattern, compiled: the seed's second method
    qdldl       LDL^T of the symmetric quasi-definite embedding [d J; J^T -d] of twice the size (J is not symmetric),
                refactored with a fixed ordering; of the large systems, which are symmetric, the matrix itself
    loop        the elimination plan in a compiled loop, checks included
    generated   the plan as straight-line code; "checked" with backward error, pivot quality and growth
    step        one Newton step: residual, Jacobian, factors, solve and checks

Goals at 738: generated >= 500 times dense, >= 50 times superlu, >= 5 times qdldl.

    python benchmarks/tableau.py [--large] [--json FILE] [--plot FILE.svg]
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import qdldl
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from scipy.linalg import lapack

from dalembert.tableau import GRANULARITIES, Tableau, make_plan, newton_euler, stanford_arm
from dalembert.tableau.engines import bare_kernel, loop_engine, StraightEngine
from dalembert.tableau.inner_product import InnerProduct
from dalembert.tableau.sample import sample_jacobian, sample_points

REPEATS = 7
BATCH = 1024
REGULARISATION = 1e-8
KINDS = {"inverse": ("q", "qd", "qdd"), "forward": ("q", "qd", "tau")}


def best(call: Callable[[], object], seconds: float = 0.02) -> float:
    """Return the least time of one call in microseconds, over REPEATS rounds of about `seconds`."""
    call()
    start = perf_counter()
    call()
    number = max(1, int(seconds / (perf_counter() - start)))
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        for _ in range(number):
            call()
        times.append((perf_counter() - start) / number)
    return 1e6 * min(times)


def embedding(A: sp.csr_array) -> sp.csc_matrix:
    """Return the upper triangle of the symmetric quasi-definite embedding."""
    n = A.shape[0]
    block = sp.block_array([[REGULARISATION * sp.eye_array(n), A], [None, -REGULARISATION * sp.eye_array(n)]])
    return sp.csc_matrix(block)


def refactored(upper: sp.csc_matrix, right: np.ndarray) -> Callable[[], np.ndarray]:
    """Return a call that refactors with a fixed ordering and solves."""
    solver = qdldl.Solver(sp.csc_matrix(upper + sp.triu(upper, 1).T))

    def run() -> np.ndarray:
        solver.update(upper, upper=True)
        return solver.solve(right)

    return run


def rivals(A: sp.csr_array, b: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Return the methods that others wrote."""
    D, C = np.asfortranarray(A.toarray()), sp.csc_array(A)
    order = np.argsort(sla.splu(C).perm_c)
    ordered = sp.csc_array(C[:, order])
    return {
        "dense": lambda: lapack.dgesv(D, b),
        "superlu": lambda: sla.splu(C).solve(b),
        "reused": lambda: sla.splu(ordered, permc_spec="NATURAL").solve(b),
        "qdldl": refactored(embedding(A), np.concatenate([b, np.zeros_like(b)])),
    }


def one_size(tableau: Tableau) -> dict[str, float]:
    """Time all methods on one tableau."""
    values = sample_jacobian(tableau, 4)
    plan = make_plan(tableau.pattern, values=values, preferred=tableau.preferred)
    b = np.random.default_rng(0).standard_normal(plan.n)
    A = tableau.pattern.matrix(values[0])
    calls = rivals(A, b)
    inner, loop = InnerProduct(plan), loop_engine(plan)
    bare, checked, newton = bare_kernel(plan), StraightEngine(plan), tableau.newton()
    data, right = np.tile(values[0], (BATCH, 1)), np.tile(b, (BATCH, 1))
    x, _, u, _, _ = (np.tile(p[0], (BATCH, 1)) for p in sample_points(tableau, 1, None))
    calls |= {
        "inner": lambda: inner.solve(values[0], b),
        "loop": lambda: loop(values[:1], b[None]),
        "generated": lambda: bare(values[0], b),
        "checked": lambda: checked(values[0], b),
        "step": lambda: newton.step(x[0], u[0]),
    }
    error = np.abs(bare(values[0], b) - np.linalg.solve(A.toarray(), b)).max()
    times = {name: best(call) for name, call in calls.items()}
    times["generated, batch"] = best(lambda: bare(data, right)) / BATCH
    times["checked, batch"] = best(lambda: checked(data, right)) / BATCH
    times["step, batch"] = best(lambda: newton.step(x, u)) / BATCH
    facts = {"equations": plan.n, "entries": plan.pattern.entries, "operations": plan.operations, "fill": plan.fill}
    return {**facts, "error": float(error), **times}


def stanford() -> dict[str, list[dict[str, float]]]:
    """Time the arm at its five granularities, inverse and forward, and print the table."""
    found: dict[str, list[dict[str, float]]] = {}
    for kind, known in KINDS.items():
        rows = [one_size(newton_euler(stanford_arm(), g, known)) for g in GRANULARITIES]
        found[kind] = rows
        facts = ("equations", "entries", "operations", "fill", "error")
        print(f"\n{kind} dynamics, microseconds per solve")
        print(f"{'':18}" + "".join(f"{int(row['equations']):>10}" for row in rows) + f"{'exponent':>10}")
        for name in rows[0]:
            line = "".join(f"{row[name]:10.3g}" if name not in facts[:4] else f"{int(row[name]):10d}" for row in rows)
            growth = "" if name in facts else f"{exponent(rows, name):10.2f}"
            print(f"{name:18}{line}{growth}")
        last = rows[-1]
        for mine in ("generated", "checked", "generated, batch", "checked, batch"):
            ratios = ", ".join(
                f"{other} {last[other] / last[mine]:.0f}" for other in ("dense", "superlu", "reused", "qdldl")
            )
            print(f"  at {int(last['equations'])}, {mine}: times faster than {ratios}")
    return found


def exponent(rows: list[dict[str, float]], name: str) -> float:
    """Return the growth of a time with the number of equations, the slope of a least-squares line of logarithms."""
    n, t = (np.log([row[key] for row in rows]) for key in ("equations", name))
    return float(np.polyfit(n, t, 1)[0])


def chain(bodies: int, rng: np.random.Generator) -> sp.csr_array:
    """Return the block matrix of a spatial chain in maximal coordinates: 6 velocities a body, 5 rows a joint."""
    n, i = 6 * bodies, np.arange(bodies)
    rows, cols, values = [], [], []

    def put(row: np.ndarray, col: np.ndarray, value: np.ndarray) -> None:
        rows.append(row.ravel()), cols.append(col.ravel()), values.append(np.broadcast_to(value, row.shape).ravel())

    for sign, body in ((1.0, i), (-1.0, i[1:] - 1)):
        joint = i if sign > 0 else i[1:]
        for k in range(3):  # origins coincide: v + w x c
            put(n + 5 * joint + k, 6 * body + k, np.full(len(body), sign))
            for j in (j for j in range(3) if j != k):
                put(n + 5 * joint + k, 6 * body + 3 + j, sign * rng.standard_normal(len(body)))
        for k in range(2):  # the axis stays
            for j in range(3):
                put(n + 5 * joint + 3 + k, 6 * body + 3 + j, sign * rng.standard_normal(len(body)))
    A = sp.coo_array((np.concatenate(values), (np.concatenate(rows) - n, np.concatenate(cols))), shape=(5 * bodies, n))
    M = sp.diags_array(np.tile([2.0, 2.0, 2.0, 0.3, 0.4, 0.5], bodies))
    return sp.csr_array(sp.block_array([[M, A.T], [A, None]]))


def net(width: int, length: int, rng: np.random.Generator) -> sp.csr_array:
    """Return the block matrix of a net of point masses with rods along both directions: closed loops everywhere."""
    grid = np.stack([*np.meshgrid(np.arange(width), np.arange(length), indexing="ij"), np.zeros((width, length))], -1)
    points = (grid + 0.1 * rng.standard_normal(grid.shape)).reshape(-1, 3)
    index = np.arange(width * length).reshape(width, length)
    ends = np.concatenate(
        [np.column_stack([a.ravel(), b.ravel()]) for a, b in ((index[:-1], index[1:]), (index[:, :-1], index[:, 1:]))]
    )
    along = points[ends[:, 0]] - points[ends[:, 1]]
    row = np.repeat(np.arange(len(ends)), 6)
    col = np.concatenate([3 * ends[:, :1] + np.arange(3), 3 * ends[:, 1:] + np.arange(3)], axis=1).ravel()
    A = sp.coo_array((np.concatenate([along, -along], axis=1).ravel(), (row, col)), shape=(len(ends), points.size))
    return sp.csr_array(sp.block_array([[sp.eye_array(points.size), A.T], [A, None]]))


def large() -> list[dict[str, Any]]:
    """Time chains, long nets and square nets up to 10^5 unknowns."""
    rng = np.random.default_rng(0)
    systems = [("chain", chain(n, rng)) for n in (100, 1000, 9091)]
    systems += [("net, 4 wide", net(4, n, rng)) for n in (50, 500, 5000)]
    systems += [("net, square", net(n, n, rng)) for n in (10, 30, 60)]
    heads = ("unknowns", "plan ms", "fill", "operations", "loop ms", "superlu", "qdldl", "error")
    print(f"\n{'system':14}" + "".join(f"{head:>11}" for head in heads))
    make_plan(systems[0][1], values=systems[0][1].data)
    found = []
    for name, A in systems:
        A.sort_indices()
        start = perf_counter()
        plan = make_plan(A, values=A.data)
        planning = 1e3 * (perf_counter() - start)
        b = rng.standard_normal(plan.n)
        loop, data, C = loop_engine(plan), A.data[None].copy(), sp.csc_array(A)
        regular = sp.csc_matrix(sp.triu(A - sp.diags_array(np.where(A.diagonal() == 0.0, REGULARISATION, 0.0))))
        times = {
            "loop": best(lambda: loop(data, b[None])) / 1e3,  # noqa: B023
            "superlu": best(lambda: sla.splu(C).solve(b)) / 1e3,  # noqa: B023
            "qdldl": best(refactored(regular, b)) / 1e3,
        }
        error = float(loop(data, b[None])[1][0, 0])
        facts = f"{plan.n:11d}{planning:11.1f}{plan.fill:11d}{plan.operations:11d}"
        print(f"{name:14}{facts}" + "".join(f"{t:11.2f}" for t in times.values()) + f"{error:11.1e}")
        found.append({"system": name, "unknowns": plan.n, "plan": planning, "operations": plan.operations, **times})
    return found


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw Fig. 10: time of one solve over the number of equations."""
    from dalembert.view.figure import ACCENT, INK, QUIET, SECOND, as_svg, new_figure

    figure = new_figure(6.4, 4.2)
    axes = figure.add_subplot()
    n = [row["equations"] for row in rows]
    styles = {
        "dense": (INK, "o-"),
        "superlu": (SECOND, "s-"),
        "reused": (SECOND, "s--"),
        "qdldl": (QUIET, "d-"),
        "inner": (QUIET, "v-"),
        "checked": (ACCENT, "^--"),
        "generated": (ACCENT, "^-"),
        "generated, batch": (ACCENT, "^:"),
    }
    for name, (colour, style) in styles.items():
        axes.loglog(n, [row[name] for row in rows], style, color=colour, label=name, markersize=5)
    axes.set_xticks(n, [f"{int(k)}" for k in n])
    axes.minorticks_off()
    axes.set_xlabel("equations")
    axes.set_ylabel("one factorization and solve, microseconds")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    path.write_text(as_svg(figure), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="chains and nets up to 10^5 unknowns, too")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--plot", type=Path, help="draw Fig. 10 to this SVG file")
    options = parser.parse_args()
    figures: dict[str, Any] = {"machine": platform.machine(), "numpy": np.__version__, "scipy": scipy.__version__}
    figures |= stanford()
    if options.large:
        figures["large"] = large()
    if options.plot:
        draw(figures["inverse"], options.plot)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

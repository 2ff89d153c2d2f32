"""Seed 003, Fig. 10 redrawn: one sparse solve of the Stanford arm's tableau at 96 ... 738 equations; large systems.

Every method gets the entries of the Jacobian and a right side, and returns the solution: factorization and solve.
Times are those of one processor: run it with OMP_NUM_THREADS=1.

    dense       LAPACK's dgesv
    superlu     SciPy's splu with its own column ordering, each time
    reused      the same with the ordering of the first time (permc_spec="NATURAL")
    inner       inner-product sparse elimination over a static pattern, compiled: the seed's second method
    qdldl       LDL^T of the symmetric quasi-definite embedding [d J; J^T -d] of twice the size (J is not symmetric),
                refactored with a fixed ordering
    loop        the elimination plan in a compiled loop, checks included
    generated   the plan as straight-line code
    checked     `Elimination.solve`, what a user calls: with backward error, pivot quality, growth, and counts
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
from time import process_time
from typing import Any

import numpy as np
import qdldl
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from scipy.linalg import lapack

import dalembert as da
from dalembert.examples import stanford_arm
from dalembert.tableau import (
    GRANULARITIES,
    ElementAssembly,
    Elimination,
    Tableau,
    body_positions,
    make_plan,
    newton_euler,
)
from dalembert.tableau.elimination.engines import LoopEngine, bare_kernel
from dalembert.tableau.structure.sample_points import sample_jacobian, sample_points
from inner_product import InnerProduct

REPEATS = 7
BATCH = 1024
REGULARISATION = 1e-8
KINDS = {"inverse": ("q", "qd", "qdd"), "forward": ("q", "qd", "tau")}


def best(call: Callable[[], object], seconds: float = 0.02) -> float:
    """Return the least processor time of one call in microseconds, over REPEATS rounds of about `seconds`.

    Time of the process, not of the wall: a call that is longer than a slice of a busy machine must not look slower.
    """
    call()
    start = process_time()
    call()
    number = max(1, int(seconds / max(process_time() - start, 1e-7)))
    times = []
    for _ in range(REPEATS if number > 1 else 2):
        start = process_time()
        for _ in range(number):
            call()
        times.append((process_time() - start) / number)
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
    inner, loop = InnerProduct(plan), LoopEngine(plan)
    bare, checked, newton = bare_kernel(plan), Elimination(plan, "straight"), tableau.newton()
    data, right = np.tile(values[0], (BATCH, 1)), np.tile(b, (BATCH, 1))
    x, _, u, _, _ = (np.tile(p[0], (BATCH, 1)) for p in sample_points(tableau, 1, None))
    calls |= {
        "inner": lambda: inner.solve(values[0], b),
        "loop": lambda: loop(values[:1], b[None]),
        "generated": lambda: bare(values[0], b),
        "checked": lambda: checked.solve(values[0], b),
        "step": lambda: newton.step(x[0], u[0]),
    }
    error = np.abs(bare(values[0], b) - np.linalg.solve(A.toarray(), b)).max()
    times = {name: best(call) for name, call in calls.items()}
    times["generated, batch"] = best(lambda: bare(data, right)) / BATCH
    times["checked, batch"] = best(lambda: checked.solve(data, right)) / BATCH
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


def chain(bodies: int) -> tuple[da.Mechanism, np.ndarray]:
    """Return a chain of hinges with alternating axes, and a configuration of it."""
    b = da.Builder("chain")
    for i in range(bodies):
        b.body(f"b{i}", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        parent, at = (f"b{i - 1}", -1.0) if i else ("world", 0.0)
        axis = (0, 1, 0) if i % 2 else (1, 0, 0)
        b.joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=axis, position=(0, 0, at))
    return b.build(), np.random.default_rng(0).uniform(-0.3, 0.3, bodies)


def net(width: int, length: int) -> tuple[da.Mechanism, np.ndarray]:
    """Return a net of free balls with rods of one metre along both directions, and a configuration.

    Closed loops everywhere; balls stand at a_i + b_j with steps of length one, hence all rods fit.
    """
    b, name, rng = da.Builder("net"), "b{}_{}".format, np.random.default_rng(0)
    steps = [along + 0.3 * rng.standard_normal((n, 3)) for n, along in zip((width, length), np.eye(3), strict=False)]
    one, two = (np.cumsum(each / np.linalg.norm(each, axis=1)[:, None], axis=0) for each in steps)
    grid = [(i, j) for i in range(width) for j in range(length)]
    for ij in grid:
        b.body(name(*ij), mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"free {name(*ij)}", "free", parent="world", child=name(*ij))
    rods = [((i, j), (i + 1, j)) for i, j in grid if i + 1 < width]
    rods += [((i, j), (i, j + 1)) for i, j in grid if j + 1 < length]
    distances = [da.Distance(name(*first), name(*second), length=1.0) for first, second in rods]
    q = np.concatenate([[*(one[i] + two[j]), 0.0, 0.0, 0.0, 1.0] for i, j in grid])
    return b.build().constrain(*distances), q


def state(assembly: ElementAssembly, mechanism: da.Mechanism, q: np.ndarray) -> np.ndarray:
    """Return unknowns: bodies where the mechanism has them, velocities and multipliers at random."""
    x = np.random.default_rng(1).standard_normal(assembly.n)
    place = {name: k for k, name in enumerate(assembly.pattern.unknowns)}
    for name, column in body_positions(mechanism, q).items():
        for k, number in enumerate(column):
            if f"{name}[{k}]" in place:
                x[place[f"{name}[{k}]"]] = number
    return x


def saddle(assembly: ElementAssembly, x: np.ndarray) -> sp.csr_array:
    """Return [M B; B^T 0], symmetric: forward dynamics in maximal coordinates, 6 unknowns a body and one a row."""
    rest = np.zeros(assembly.n)
    still, moved = (assembly.pattern.matrix(assembly.jacobian(x, rest, shift=s)) for s in (0.0, 1.0))
    names = np.array([name.split(" ")[0] for name in assembly.pattern.unknowns])
    motion, rows = np.flatnonzero(np.isin(names, ("v", "w"))), np.flatnonzero(names == "lam")
    M, B = (moved - still)[motion][:, motion], still[motion][:, rows]
    M.eliminate_zeros()
    K = sp.csr_array(sp.block_array([[M, B], [B.T, None]]))
    K.sort_indices()
    return K


def solvers(A: sp.csr_array, plan: Any, upper: sp.csc_matrix, size: int) -> dict[str, float]:
    """Time the plan's loop with its checks, SuperLU and qdldl, in ms; qdldl is NaN where its answer is wrong.

    `sparse` is the loop with a right side that is zero but for one entry in a hundred: many unknowns are zero.
    """
    rng = np.random.default_rng(2)
    b, few = rng.standard_normal(plan.n), rng.standard_normal(plan.n) * (rng.random(plan.n) < 0.01)
    solver, C = Elimination(plan, "loop"), sp.csc_array(A)
    solution, other = solver.solve(A.data, b), solver.solve(A.data, few)
    found = {"loop": best(lambda: solver.solve(A.data, b)), "sparse": best(lambda: solver.solve(A.data, few))}
    found["superlu"] = best(lambda: sla.splu(C).solve(b))
    try:
        call = refactored(upper, np.concatenate([b, np.zeros(size - plan.n)]))
        part = call()[-plan.n :] if size > plan.n else call()
        found["qdldl"] = best(call) if np.abs(A @ part - b).max() < 1e-3 * np.abs(b).max() else float("nan")
    except RuntimeError:
        found["qdldl"] = float("nan")
    times = {name: time / 1e3 for name, time in found.items()}
    return {
        **times,
        "error": float(solution.backward_error[0]),
        "outcome": int(max(solution.status[0], other.status[0])),
    }


def one_mechanism(mechanism: da.Mechanism, q: np.ndarray) -> tuple[dict[str, float], dict[str, float]]:
    """Time writing, evaluation, analysis and solves: of Newton's matrix, and of the symmetric saddle point matrix."""
    start = process_time()
    assembly = ElementAssembly(mechanism)
    written = process_time() - start
    x, rest = state(assembly, mechanism, q), np.zeros(assembly.n)
    A = assembly.pattern.matrix(assembly.jacobian(x, rest, shift=100.0))
    evaluated = best(lambda: assembly.jacobian(x, rest, shift=100.0)) / 1e3
    found = []
    for matrix, paired in ((A, True), (saddle(assembly, x), False)):
        start = process_time()
        plan = make_plan(assembly.pattern if paired else matrix, values=matrix.data, paired=paired)
        facts = {"unknowns": plan.n, "plan": 1e3 * (process_time() - start), "operations": plan.operations}
        regular = matrix - sp.diags_array(np.where(matrix.diagonal() == 0.0, REGULARISATION, 0.0))
        upper = embedding(matrix) if paired else sp.csc_matrix(sp.triu(regular))
        found.append({**facts, "fill": plan.fill, **solvers(matrix, plan, upper, upper.shape[0])})
    return {"written": 1e3 * written, "evaluated": evaluated, **found[0]}, found[1]


def large() -> list[dict[str, Any]]:
    """Time chains, long and square nets up to 10^5 unknowns: mechanisms in maximal coordinates, by elements."""
    systems = [("chain", chain, (n,)) for n in (50, 500, 5263)]
    systems += [("net, 4 wide", net, (4, n)) for n in (16, 160, 1600)]
    systems += [("net, square", net, (n, n)) for n in (10, 20, 40, 80)]
    one_mechanism(*chain(40))  # what is compiled once
    heads = ("written", "evaluated", "unknowns", "plan", "operations", "fill", "loop", "sparse", "superlu", "qdldl")
    heads += ("error", "outcome")
    found: list[dict[str, Any]] = []
    print("\nmilliseconds; first line Newton's matrix, second line the symmetric saddle point matrix")
    print(f"{'system':12}" + "".join(f"{head:>11}" for head in heads), flush=True)
    for name, make, size in systems:
        for matrix, row in zip(("newton", "saddle"), one_mechanism(*make(*size)), strict=True):
            print(f"{name if matrix == 'newton' else '':12}" + "".join(f"{row.get(head, 0):11.4g}" for head in heads))
            found.append({"system": name, "matrix": matrix, **row})
    return found


def draw(rows: list[dict[str, float]], path: Path) -> None:
    """Draw Fig. 10: time of one solve over the number of equations."""
    from dalembert.view.report_page import ACCENT, INK, QUIET, SECOND, as_svg, new_figure

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

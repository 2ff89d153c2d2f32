"""Differential-algebraic equations: accuracy on published problems, speed beside IDA, order, long runs, ensembles.

    python benchmarks/dae.py [--json FILE] [--plots FOLDER] [--only accuracy ida order long ensemble]

How IDA is called: scikit-sundae's `IDA.solve`, which takes all steps in C (`method="ida"` takes them one by one from
Python, for events and partial results, four times slower); dense linear solver, order at most 5, multipliers out of the
error test.

- `kernels`: residual and Jacobian are the same compiled kernels that the own steppers use, about 1 us a call from
  Python;
- `casadi`: residual and Jacobian are casadi.Function calls, as a user of CasADi would write;
- `differences`: residual by casadi.Function, Jacobian by IDA's own difference quotients.

Times include everything from consistent start to result; the least of REPEATS runs, compiled code at hand on either
side (IDA's solver is made once, before the clock starts).
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import casadi as ca
import numpy as np

from dae_problems import PROBLEMS, Published
from dalembert.errors import DalembertError
from dalembert.simulate import Problem, Settings
from dalembert.simulate.steppers.ida import ida_solver
from dalembert.tableau import Tableau, sparse_tableau_method
from dalembert.tableau.fixed_order import stability_boundary, stability_sector

TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
REPEATS = 7
SLOW = {"fekete"}


def best(call: Any, repeats: int = REPEATS, clock: Any = process_time) -> tuple[float, Any]:
    """Return the least time in ms, and the last result."""
    result, times = call(), []
    for _ in range(repeats):
        start = clock()
        result = call()
        times.append(clock() - start)
    return 1e3 * min(times), result


def run(problem: Problem, p: Published, rtol: float, method: str, repeats: int = REPEATS) -> dict[str, Any]:
    """Time one integration and compare with the reference."""
    row = {"problem": p.name, "formulation": problem.formulation if p.mechanical else "as given", "method": method}
    row |= {"rtol": rtol, "ms": float("nan"), "steps": 0, "errors": {}}
    if method == "ida":
        ms, found = best(kernel_ida(problem, p, rtol), repeats)
        ok = bool(found.success) and abs(found.t[-1] - p.t_end) < 1e-9 * p.t_end
        row |= {"status": 0 if ok else -1, "steps": len(found.t) - 1, "message": str(found.message)}
        end = {name: [x] for name, x in zip(problem.unknowns, np.asarray(found.y)[-1], strict=True)}
        return row | ({"ms": ms, "errors": p.errors(end)} if ok else {})
    ms, r = best(lambda: problem.integrate((0, p.t_end), p.q, p.v, rtol=rtol, atol=rtol, method=method), repeats)
    row |= {"status": r.status, "steps": r.statistics.steps, "message": r.message}
    row |= {"evaluations": r.nfev, "factorizations": r.nlu}
    return row | ({"ms": ms, "errors": p.errors(r)} if r.success else {})


def accuracy() -> list[dict[str, Any]]:
    """Return errors at all tolerances: stabilised by BDF, Radau, IDA on the same kernels; index 3 by BDF, Radau."""
    rows = []
    for p in PROBLEMS.values():
        for form in ("stabilised", "index3") if p.mechanical else ("stabilised",):
            problem = Problem(p.build(), formulation=form)
            for method in ("bdf", "radau", "ida"):
                if (p.name in SLOW and method == "radau") or (form == "index3" and method == "ida"):
                    continue  # too many operations for the one; IDA is not made for index 3
                for rtol in TOLERANCES:
                    try:
                        row = run(problem, p, rtol, method, 1 if p.name in SLOW or method == "ida" else 3)
                    except DalembertError as error:
                        row = {"problem": p.name, "formulation": form, "method": method, "rtol": rtol, "status": -1}
                        row |= {"message": str(error)[:80], "errors": {}, "ms": float("nan"), "steps": 0}
                    rows.append(row)
                    shown = "  ".join(f"{k} {e:.1e}" for k, e in row["errors"].items())
                    note = "" if row["status"] == 0 else "  FAILED: " + row["message"][:60]
                    head = f"{p.name:22s} {form:11s} {method:6s} {rtol:.0e} {row['steps']:6d} {row['ms']:8.2f} ms"
                    print(f"{head}  {shown}{note}", flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return the errors of the first group of each problem as a table in Markdown."""
    head = "| problem (group) | form | stepper | " + " | ".join(f"{rtol:.0e}" for rtol in TOLERANCES) + " |"
    lines = [head, "|---" * (3 + len(TOLERANCES)) + "|"]
    kinds = dict.fromkeys((r["problem"], r["formulation"], r["method"]) for r in rows)
    for kind in kinds:
        own = {r["rtol"]: r for r in rows if (r["problem"], r["formulation"], r["method"]) == kind}
        if not any(r["errors"] for r in own.values()):
            cells = ["stops"] * len(TOLERANCES)
        else:
            cells = [
                f"{next(iter(own[x]['errors'].values())):.0e}" if own[x]["errors"] else "stops" for x in TOLERANCES
            ]
        group = next(iter(PROBLEMS[kind[0]].groups))
        name = kind[0].replace("_", " ")
        lines.append(f"| {name} ({group}) | {kind[1]} | {kind[2]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def kernel_ida(problem: Problem, p: Published, rtol: float) -> Callable[[], Any]:
    """Return a call of IDA on the compiled kernels, from consistent start to end, all steps in one call of C."""
    settings = Settings.of((0.0, p.t_end), problem.dae, {"rtol": rtol, "atol": rtol})
    chosen, _, _, _, relax = problem.begin(0.0, p.q, p.v)
    environment = chosen.environment(0.0, 1.0, relax[0])

    def set_time(t: float) -> None:
        environment[0] = t

    solver = ida_solver(chosen, settings, environment, set_time)

    def call() -> Any:
        _, x, rates, _, _ = problem.begin(0.0, p.q, p.v)
        return solver.solve([0.0, p.t_end], x, rates)

    return call


def casadi_ida(problem: Problem, p: Published, rtol: float, differences: bool) -> Any:
    """Return IDA on casadi.Function calls."""
    from sksundae.ida import IDA

    dae = problem.dae
    problem, x, rates, _, relax = problem.begin(0.0, p.q, p.v)
    environment = problem.environment(0.0, 1.0, relax[0])
    inputs = [dae.x, dae.rates, dae.environment]
    f = ca.Function("f", inputs, [dae.residual])
    J = ca.Function("J", inputs, [ca.densify(dae.jacobian)])

    def resfn(t: float, y: np.ndarray, yp: np.ndarray, res: np.ndarray) -> None:
        environment[0] = t
        res[:] = np.asarray(f(y, yp, environment)).ravel()

    def jacfn(t: float, y: np.ndarray, yp: np.ndarray, res: np.ndarray, cj: float, JJ: np.ndarray) -> None:
        environment[:2] = t, cj
        JJ[:, :] = np.asarray(J(y, yp, environment))

    solver = IDA(
        resfn,
        jacfn=None if differences else jacfn,
        rtol=rtol,
        atol=np.where(dae.tested, rtol, 1e10),
        algebraic_idx=np.flatnonzero(~dae.differential).tolist(),
        max_num_steps=1_000_000,
    )
    return solver.solve(np.array([0.0, p.t_end]), x, rates)


def ida() -> list[dict[str, Any]]:
    """Return Andrews' mechanism at 1e-7 by every stepper and every way of calling IDA."""
    p = PROBLEMS["andrews"]
    rows = []
    for form in ("stabilised", "index2", "index1"):
        problem = Problem(p.build(), formulation=form)
        own = run(problem, p, 1e-7, "bdf", 25)
        timings = {"bdf": own["ms"], "radau": run(problem, p, 1e-7, "radau", 9)["ms"]}
        timings["ida, kernels"] = run(problem, p, 1e-7, "ida", 9)["ms"]
        for name, differences in (("ida, casadi", False), ("ida, differences", True)):
            timings[name] = best(lambda d=differences, b=problem: casadi_ida(b, p, 1e-7, d), 3)[0]
        for name, ms in timings.items():
            rows.append(
                {"formulation": form, "stepper": name, "ms": ms, "ratio": ms / own["ms"], "errors": own["errors"]}
            )
            print(f"andrews 1e-7 {form:11s} {name:18s} {ms:8.2f} ms  {ms / own['ms']:6.1f} x the time of bdf")
    return rows


def oscillator() -> tuple[Any, Any]:
    """Return an index-1 DAE with a known solution, and the solution."""
    x, y, z, x_rate, y_rate, t = (ca.SX.sym(name) for name in ("x", "y", "z", "x'", "y'", "t"))
    equations = {"x": x_rate - y, "y": y_rate + x - (z - ca.sin(t) ** 2), "z": z - x**2}
    tableau = Tableau(equations, {"x": x, "y": y, "z": z}, {"x": x_rate, "y": y_rate}, time=t)
    return tableau, lambda s: np.stack([np.sin(s), np.cos(s), np.sin(s) ** 2], axis=-1)


def order() -> list[dict[str, Any]]:
    """Return the order of convergence of the fixed-step formulas k = 1 ... 6, as printed (11)-(14)."""
    tableau, exact = oscillator()
    found = []
    for k in range(1, 7):
        steps, errors = (20, 30, 45, 70, 105), []
        for n in steps:
            h = 2.0 / n
            r = sparse_tableau_method(tableau, exact(h * np.arange(k)), h, n - k + 1, k)
            errors.append(float(np.abs(r.x[-1] - exact(r.t[-1])).max()))
        slopes = np.diff(np.log(errors)) / -np.diff(np.log(steps))
        sizes, measured, sector = [2.0 / n for n in steps], float(slopes[-1]), stability_sector(k)
        found.append({"k": k, "h": sizes, "errors": errors, "order": measured, "sector": sector})
        print(f"k = {k}: order {measured:.2f} at h = 2/105, error {errors[-1]:.1e}; sector {sector:.1f} degrees")
    return found


def long() -> list[dict[str, Any]]:
    """Return residuals and energy drift of 10^5 steps of closed loops."""
    rows = []
    for name, span, step in (("sundials_slider_crank", 100.0, 1e-3), ("pendulum", 100.0, 1e-3)):
        p = PROBLEMS[name]
        system = p.build()
        if name == "sundials_slider_crank":
            system = frictionless()
        problem, n = Problem(system), len(p.q)
        ms, r = best(
            lambda b=problem, q=p.q, e=span, s=step: b.integrate((0, e), q, rtol=1e-10, atol=1e-10, max_step=s), 1
        )
        q, v = r.y[:n].T, r.y[n : 2 * n].T
        energy = system.energy(q, v).total
        drift = energy - energy[0]
        halves = [float(np.abs(part).max()) for part in np.array_split(np.abs(system.constraint(q)).max(axis=-1), 2)]
        rows.append(
            {
                "problem": name,
                "steps": r.statistics.steps,
                "ms": ms,
                "position residual, first and second half": halves,
                "velocity residual": float(np.abs(system.constraint_velocity(q, v)).max()),
                "energy drift": float(np.abs(drift).max()),
                "energy drift per step": float(np.polyfit(np.arange(len(drift)), drift, 1)[0]),
                "energy scale": float(np.ptp(system.energy(q, 0 * v).total)),
            }
        )
        print(json.dumps(rows[-1]))
    return rows


def frictionless() -> Any:
    """Return SUNDIALS' slider-crank without damper and force: a conservative closed loop."""
    import dalembert as da

    c, v = ca.SX.sym("c", 3), ca.SX.sym("v", 3)
    q, x, p = ca.vertsplit(c)
    length = ca.sqrt(x**2 - x * (ca.cos(p) + 0.5 * ca.cos(q)) + 1.25 / 4 + 0.5 * ca.cos(p - q) / 2)
    rows = {"x": x - ca.cos(p) - 0.5 * ca.cos(q), "y": -ca.sin(p) - 0.5 * ca.sin(q)}
    kinetic = (v[0] ** 2 + v[1] ** 2 + 2 * v[2] ** 2) / 2
    names = ["q", "x", "p"]
    return da.Lagrangian(
        c, v, kinetic=kinetic, potential=(length - 1) ** 2 / 2 + x, constraints=rows, coordinates=names
    )


def ensemble() -> list[dict[str, Any]]:
    """Return runs a second of a batch of starts, one and two threads."""
    p = PROBLEMS["andrews"]
    problem = Problem(p.build())
    starts = np.tile(p.q, (200, 1))
    speeds = np.zeros((200, 7))
    speeds[:, 0] = np.linspace(0, 50, 200)
    rows = []
    for threads in (1, 2):
        ms, found = best(
            lambda t=threads: problem.integrate_many((0, 0.03), starts, speeds, threads=t, rtol=1e-9, atol=1e-9),
            3,
            perf_counter,
        )
        rows.append(
            {
                "threads": threads,
                "runs": 200,
                "ms": ms,
                "runs_per_second": 2e5 / ms,
                "ok": sum(r.success for r in found),
            }
        )
        print(f"{threads} thread(s): {2e5 / ms:.0f} runs of Andrews' mechanism a second, {rows[-1]['ok']} of 200 done")
    return rows


PARTS = {"accuracy": accuracy, "ida": ida, "order": order, "long": long, "ensemble": ensemble}


def plots(results: dict[str, Any], folder: Path) -> None:
    """Draw work-precision, order and stability pictures."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    folder.mkdir(parents=True, exist_ok=True)
    if "accuracy" in results:
        names = list(PROBLEMS)
        figure, axes = plt.subplots(3, 3, figsize=(13, 11), constrained_layout=True)
        styles = {
            ("bdf", 0): ("C0", "o-", "BDF"),
            ("radau", 0): ("C2", "s-", "Radau"),
            ("ida", 0): ("C3", "^-", "IDA, same kernels"),
        }
        styles[("bdf", 1)] = ("C0", "o:", "BDF, index 3")
        styles[("radau", 1)] = ("C2", "s:", "Radau, index 3")
        for axis, name in zip(axes.flat, names, strict=True):
            for (method, index3), (colour, line, label) in styles.items():
                rows = [
                    r
                    for r in results["accuracy"]
                    if r["problem"] == name and r["method"] == method and r["status"] == 0
                ]
                rows = [r for r in rows if (r["formulation"] == "index3") == bool(index3)]
                points = [(max(next(iter(r["errors"].values())), 1e-16), r["ms"]) for r in rows]
                if points:
                    axis.loglog(*zip(*points, strict=True), line, color=colour, label=label, markersize=4)
            axis.set_title(name.replace("_", " "), fontsize=10)
            axis.invert_xaxis()
            axis.grid(True, which="major", alpha=0.3)
            axis.yaxis.set_minor_formatter(NullFormatter())
        axes[0, 0].legend(fontsize=8)
        figure.supxlabel("error at the end (first group of each problem)")
        figure.supylabel("time, ms")
        figure.savefig(folder / "dae_work_precision.png", dpi=110)
    if "order" in results:
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
        for row in results["order"]:
            left.loglog(row["h"], row["errors"], "o-", markersize=4, label=f"k = {row['k']}: {row['order']:.2f}")
            z = stability_boundary(row["k"])
            right.plot(z.real, z.imag, label=f"k = {row['k']}: {row['sector']:.1f}°")
        left.set(xlabel="step h", ylabel="error at t = 2", title="order measured")
        right.set(
            xlabel="Re h λ",
            ylabel="Im h λ",
            title="stable outside the curves; sector of stability",
            xlim=(-8, 24),
            ylim=(-16, 16),
        )
        right.axvline(0, color="k", linewidth=0.6)
        for axis in (left, right):
            axis.legend(fontsize=8)
            axis.grid(True, alpha=0.3)
        figure.savefig(folder / "bdf_order_and_stability.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plots", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    arguments = parser.parse_args()
    results: dict[str, Any] = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
    }
    for name in arguments.only:
        print(f"== {name}")
        results[name] = PARTS[name]()
    if "accuracy" in results:
        print(table(results["accuracy"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    if arguments.plots:
        plots(results, arguments.plots)


if __name__ == "__main__":
    main()

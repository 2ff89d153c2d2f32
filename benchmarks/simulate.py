"""Mechanisms in time beside Exudyn, at equal accuracy: the cheapest run of each that reaches a given error.

    python benchmarks/simulate.py [--only NAME] [--json FILE]
    python benchmarks/simulate.py --long
    python benchmarks/simulate.py --lagrangians

Published problems with converged references: IFToMM's A01 pendulum, A02 double four-bar through its singular
configurations, A04 Bricard's overconstrained mechanism, A05 stiff flyball governor; Andrews' squeezer; SUNDIALS'
slider-crank with hinges in space, whose rows are redundant. Exudyn (pip install exudyn) runs its implicit solver with
every setting of `exudyn_models.WAYS` and every number of steps; the cheapest that reaches the error counts. Times are
the processor's, of its solver and of a whole call of `da.simulate`, models being assembled and compiled before. With
--long: 10^6 steps of a crank-rocker. With --lagrangians: the same systems as mechanisms and as Lagrangians.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dalembert as da
import exudyn_models as other

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.simulate import linkages

TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
STEPS = (100, 400, 1000, 4000, 10_000)
TARGETS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
REPEATS = 3


@dataclass
class Problem:
    """One problem: our mechanism and start, what is compared, its reference, and Exudyn's model."""

    name: str
    mechanism: Any
    q: Any
    v: Any
    duration: float
    compared: Callable[[Any], Any]
    reference: Any
    exudyn: Callable[..., Any]
    options: dict[str, Any] = field(default_factory=dict)


def problems():
    """Return all problems."""
    found = []
    m = linkages.pendulum()
    found.append(
        Problem("A01 pendulum", m, [np.pi], [0.0], 10.0, lambda run: [np.cos(run.q[-1, 0]), np.sin(run.q[-1, 0])],
                [-0.27508746257611686005, -0.96141920509912506427], other.pendulum)
    )  # fmt: skip
    m2, q, v = linkages.n_four_bar(2)
    found.append(
        Problem("A02 double four-bar", m2, q, v, 10.0, lambda run: m2.kinematics(run.q[-1], "tip 0")[1][:2],
                [0.32845811154081537865, 0.94451853817860096216], other.four_bar)
    )  # fmt: skip
    m4 = linkages.bricard()
    found.append(
        Problem("A04 Bricard", m4, m4.neutral(), None, 2.0, lambda run: m4.kinematics(run.q[-1], "P3")[1],
                [-0.9693403447776, -1.2212468949563, 0.7542780107798], other.bricard)
    )  # fmt: skip
    m5, q, v = linkages.governor()
    found.append(
        Problem("A05 flyball governor", m5, q, v, 10.0, lambda run: [run["hinge 0"][-1], run["s"][-1]],
                [linkages.GOVERNOR["angle"], linkages.GOVERNOR["s"]], other.governor)
    )  # fmt: skip
    squeezer, start, torque = linkages.andrews()
    names = [f"K{k}" for k in range(1, 8)]
    found.append(
        Problem("Andrews' squeezer", squeezer, start, None, 0.03, lambda run: [run[f"to {k}"][-1] for k in names],
                [linkages.ANDREWS[k] for k in names],
                lambda steps, way: other.andrews(steps, way, squeezer, start), {"force": torque})
    )  # fmt: skip
    m6, q, torque = linkages.redundant_slider_crank()
    reference = linkages.SLIDER_CRANK
    found.append(
        Problem("redundant slider-crank", m6, q, None, 10.0, lambda run: [run[k][-1] for k in reference],
                list(reference.values()), other.slider_crank, {"force": torque})
    )  # fmt: skip
    return found


def best_time(function):
    """Return the least time of several calls, and the last result."""
    times, result = [], None
    for _ in range(REPEATS):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return min(times), result


def ours(problem):
    """Return (time, error, how) per tolerance."""
    p, found = problem, []
    da.simulate(p.mechanism, p.duration, p.q, p.v, **p.options)
    for tolerance in TOLERANCES:
        seconds, run = best_time(
            lambda rtol=tolerance: da.simulate(p.mechanism, p.duration, p.q, p.v, rtol=rtol, atol=rtol, **p.options)
        )
        if run.ok:
            error = float(np.abs(np.asarray(p.compared(run)) - p.reference).max())
            found.append((seconds, error, f"{run.method}, {run.steps} steps"))
    return found


def theirs(problem):
    """Return (time, error, how) per setting and number of steps."""
    found = []
    for way in other.WAYS:
        for steps in STEPS:
            try:
                times = [problem.exudyn(steps, way) for _ in range(1 if steps > 2000 else REPEATS)]
            except ImportError:
                return []
            except Exception as error:  # Exudyn's own, of several kinds
                print(f"  exudyn, {way.name}, {steps} steps: {type(error).__name__}")
                continue
            error = float(np.abs(np.asarray(times[-1][1]) - problem.reference).max())
            found.append((min(seconds for seconds, _ in times), error, f"{way.name}, {steps} steps"))
    return found


def cheapest(runs, target):
    """Return the cheapest run that reaches an error, or None."""
    good = [run for run in runs if run[1] <= target]
    return min(good) if good else None


def compare(only):
    """Print the table; return it as data."""
    rows = []
    for problem in [each for each in problems() if only in each.name]:
        own, others = ours(problem), theirs(problem)
        for kind, runs in (("dalembert", own), ("exudyn", others)):
            print(f"  {kind}: " + "; ".join(f"{x[1]:.1e} in {x[0] * 1e3:.2f} ms" for x in runs), flush=True)
        for target in TARGETS:
            a, b = cheapest(own, target), cheapest(others, target)
            ratio = b[0] / a[0] if a and b else None
            rows.append({"problem": problem.name, "error": target, "dalembert": a, "exudyn": b, "ratio": ratio})
            said = [f"{x[0] * 1e3:9.2f} ms ({x[2]})" if x else "      -" for x in (a, b)]
            factor = "" if ratio is None else f"{ratio:7.1f} x"
            print(f"{problem.name:24} {target:7.0e}  {said[0]:34} {said[1]:50} {factor}", flush=True)
    return rows


def long_run(steps=1_000_000):
    """Take 10^6 steps of a crank-rocker; print residuals and drift."""
    m, q, v = linkages.crank_rocker()
    rows = []
    for method, h in (("dop853", 1e-3), ("variational", 1e-3)):
        start = time.process_time()
        run = da.simulate(m, steps * h, q, v, method=method, step=h, every=100 * h)
        seconds = time.process_time() - start
        half = run.t.size // 2
        drift = float(run.energy.total[half:].mean() - run.energy.total[:half].mean())
        rows.append(
            {"method": method, "steps": run.steps, "seconds": seconds, "position": float(run.position_residual.max()),
             "velocity": float(run.velocity_residual.max()), "swing": float(np.ptp(run.energy.total)), "drift": drift,
             "kinetic": float(run.kinetic.max())}
        )  # fmt: skip
        print({key: value if isinstance(value, str) else f"{value:.3g}" for key, value in rows[-1].items()}, flush=True)
    return rows


def lagrangians():
    """Print processor times of systems as Lagrangians, beside the same as mechanisms where there is one."""
    from tests.simulate import test_lagrangians as forms

    from dae_problems import andrews

    squeezer, start, torque = linkages.andrews()
    pendulum, rods, _, mechanism = forms.starts().values()
    cases = {
        "Andrews' squeezer": ((andrews.system(), andrews.Q0, np.zeros(7)), (squeezer, start, None), 0.03, torque),
        "double pendulum, angles": (pendulum, mechanism, 20.0, None),
        "double pendulum, rods": (rods, mechanism, 20.0, None),
        "Chaplygin sleigh": (forms.sleigh(), None, 20.0, None),
    }
    rows = []
    for name, (own, same, duration, force) in cases.items():
        seconds, run = _warm(own, duration, None)
        beside = None if same is None else _warm(same, duration, force)[0]
        ratio = None if beside is None else seconds / beside
        rows.append({"problem": name, "steps": run.steps, "lagrangian": seconds, "mechanism": beside, "ratio": ratio})
        said = "" if beside is None else f"mechanism {beside * 1e3:8.2f} ms, ratio {ratio:5.2f}"
        print(f"{name:26} {run.status:10} {run.steps:6} steps  Lagrangian {seconds * 1e3:8.2f} ms  {said}", flush=True)
    return rows


def _warm(case, duration, force):
    """Return the least time of several runs after one that compiles, and the last result."""
    system, q, v = case

    def run():
        return da.simulate(system, duration, q, v, force=force, rtol=1e-8, atol=1e-10)

    run()
    return best_time(run)


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="problems whose name holds this")
    parser.add_argument("--long", action="store_true", help="10^6 steps of a crank-rocker instead")
    parser.add_argument("--lagrangians", action="store_true", help="the same systems as Lagrangians instead")
    options = parser.parse_args()
    if options.lagrangians:
        table = {"lagrangians": lagrangians()}
    else:
        table = {"long": long_run()} if options.long else {"equal accuracy": compare(options.only)}
    if options.json:
        options.json.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()

"""Over-constrained linkages in time: every stepper at every tolerance, against plain integration and energy.

    python benchmarks/linkages.py                              # all: minutes, most of them of compiling
    python benchmarks/linkages.py bricard goldberg --methods dop853 dopri5
    python benchmarks/linkages.py sarrus --seconds 1

A line says: linkage, method, tolerance (or step), duration, wall time of the run once compiled, steps, error against
the oracle (radians; of the door: radians per second), energy residual over the largest kinetic energy, verdict, and
the words of the run. Verdicts: "right"; "said" (it stopped, or calls itself inaccurate, or names the times and the
factor of a wider tolerance); "refused" (the method does not take it, in the library's words); and faults: "LOOSE"
(completed, error above `AMPLIFIED` tolerances a step), "FOREIGN" (an exception of another library), "SLOW" (stopped
after `PATIENCE` seconds).

Oracles: each loop has one motion, along the vector p(q) with A p = 0, p^T M p = 1, so q' = w p and w' = -p^T g, g the
forces of gravity: SciPy's DOP853 in plain NumPy, without multipliers, drift or Coriolis' forces. Sarrus' linkage, which
passes a singular configuration, moves along q = d (-1, 2, -1, -1, 2); pendulums for the parallelogram and the door.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.simulate import overconstrained as given

import dalembert as da

Array = np.ndarray

TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-13)
STEPS = (4e-3, 1e-3)
"""Of the variational stepper, which has no tolerance."""

DURATIONS = {"dop853": 10.0, "dopri5": 10.0, "bdf": 2.0, "radau": 2.0, "variational": 2.0, "ida": 0.3, "moreau": 0.3}
"""Seconds; methods of low order or with Python in their steps take minutes for ten."""

AMPLIFIED, ROUNDING = 10.0, 1e-9
"""Errors over the sum of the tolerances of all steps that a motion of ten seconds makes of them, and what is left at
the tightest. The equation of one coordinate, by SciPy's methods of the same order and tolerance, ends as far off."""

STEP_ERROR = 1e3
"""Error of variational steps over the square of the step, radians per square second: of order 2."""

PATIENCE = 120
"""Seconds after which a run is stopped."""


@dataclass(frozen=True)
class Case:
    """A linkage, its start, and what is compared with an oracle at the end of a run."""

    mechanism: Any
    q: Array
    v: Array
    measured: Callable[[Any], Array]
    oracle: Callable[[float], Array]


def loop(mechanism: Any, rank: int) -> Case:
    """Return a loop of hinges, from rest, under its known rank."""
    q, v = mechanism.neutral(), np.zeros(mechanism.nv)
    return Case(mechanism, q, v, _angles, cache(lambda end: along_one_motion(mechanism, q, end, rank)))


def along_one_motion(m: Any, q: Array, end: float, rank: int) -> Array:
    """Return the configuration of a mechanism with one motion, from rest; joints of angles and lengths."""
    assert m.nv - rank == 1
    last, rest = np.zeros(m.nv), np.zeros(m.nv)

    def rate(_: float, y: Array) -> Array:
        nonlocal last
        q, w = y[:-1], y[-1]
        L = np.linalg.cholesky(np.atleast_2d(m.mass_matrix(q)))
        unit = np.linalg.svd(np.linalg.solve(L, np.asarray(m.jacobian(q)).T).T)[2][rank]
        p = np.linalg.solve(L.T, unit if unit @ last >= 0.0 else -unit)
        last = L.T @ p
        return np.append(w * p, -p @ np.asarray(m.bias(q, rest)))

    found = solve_ivp(rate, (0.0, end), np.append(q, 0.0), rtol=1e-13, atol=1e-13, method="DOP853")
    return found.y[:-1, -1]


def sarrus() -> Case:
    """Return Sarrus' linkage, from rest; its platform falls through the plane in which all hinges lie."""
    m = given.sarrus()
    way = np.array([-1.0, 2.0, -1.0, -1.0, 2.0])

    def rate(_: float, y: Array) -> list[float]:
        q = way * y[0]
        inertia = way @ np.atleast_2d(m.mass_matrix(q)) @ way
        return [y[1], -float(way @ np.asarray(m.bias(q, way * y[1]))) / inertia]

    def oracle(end: float) -> Array:
        found = solve_ivp(rate, (0.0, end), [0.0, 0.0], rtol=1e-13, atol=1e-13, method="DOP853")
        return way * found.y[0, -1]

    return Case(m, m.neutral(), np.zeros(m.nv), _angles, cache(oracle))


def parallelogram(kind: str) -> Case:
    """Return a parallelogram whose cranks turn round and round, twice a turn through a singular configuration."""
    m, q = given.parallelogram(kind)
    v = np.zeros(m.nv)
    for name, sign in (("foot 0", 1.0), ("foot 1", 1.0), ("head", -1.0)):
        v[m.index_v(name)] = 6.0 * sign

    def oracle(end: float) -> Array:
        angle = given.crank_reference(0.7, 6.0, end)[0]
        return np.array([angle, angle, -angle])

    def measured(run: Any) -> Array:
        return np.array([run[name][-1] for name in ("foot 0", "foot 1", "head")])

    return Case(m, q, v, measured, cache(oracle))


def double_door() -> Case:
    """Return a free leaf on two hinges."""
    m, q, axis = given.double_door()
    v = np.r_[0.0, 0.0, 0.0, 2.0 * axis]
    oracle = cache(lambda end: np.array([given.door_reference(axis, 2.0, end)]))
    return Case(m, q, v, lambda run: np.array([run.v[-1, 3:] @ axis]), oracle)


def _angles(run: Any) -> Array:
    return run.q[-1]


CASES: dict[str, Callable[[], Case]] = {
    "bricard": lambda: loop(given.bricard(), 4),
    "bennett": lambda: loop(given.bennett(), 2),
    "goldberg": lambda: loop(given.goldberg(), 3),
    "sarrus": sarrus,
    "parallelogram": lambda: parallelogram("revolute"),
    "points": lambda: parallelogram("point"),
    "door": double_door,
}
"""Linkages by name; `points` is the parallelogram closed by a Point."""


def grid(method: str) -> list[dict[str, Any]]:
    """Return the settings that a method is run with."""
    if method == "variational":
        return [{"step": h} for h in STEPS]
    if method in ("moreau", "ida"):
        return [{}]
    return [{"rtol": tol, "atol": tol} for tol in TOLERANCES]


def limit(settings: dict[str, Any], steps: int) -> float:
    """Return the error up to which a completed run is right."""
    if "step" in settings:
        return STEP_ERROR * settings["step"] ** 2
    return AMPLIFIED * steps * settings.get("rtol", np.inf) + ROUNDING


def attempt(case: Case, method: str, duration: float, settings: dict[str, Any]) -> tuple[str, ...]:
    """Return one line of the table, behind the name."""
    accuracy = f"{next(iter(settings.values()), np.nan):.0e}"
    head = (method, f"h={accuracy}" if "step" in settings else accuracy, f"{duration:g}")
    start = time.perf_counter()
    signal.alarm(PATIENCE)
    try:
        run = da.simulate(case.mechanism, duration, case.q, case.v, method=method, **settings)
    except da.DalembertError as error:
        return (*head, "", "", "", "", "refused", f"{type(error).__name__}: {error}")
    except Exception as error:
        return (*head, "", "", "", "", "FOREIGN", f"{type(error).__name__}: {error}")
    finally:
        signal.alarm(0)
    wall, kinetic = time.perf_counter() - start, float(run.kinetic.max()) or 1.0
    energy = float(np.abs(run.energy_residual).max()) / kinetic
    figures = (f"{wall:.3f}", str(run.steps))
    if run.status == "interrupted":
        return (*head, *figures, "", f"{energy:.0e}", "SLOW", f"reached t = {run.t[-1]:.6g} s")
    if run.status not in ("completed", "inaccurate"):
        return (*head, *figures, "", f"{energy:.0e}", "said", f"{run.status}: {run.message}".strip())
    error = float(np.abs(case.measured(run) - case.oracle(duration)).max())
    wider = re.search("wider tolerance, up to ([0-9.e+]+) times", run.message)
    factor = float(wider[1]) if wider else 1.0
    right, within = error <= limit(settings, run.steps), error <= factor * limit(settings, run.steps)
    verdict = "right" if right else "said" if within or run.status == "inaccurate" else "LOOSE"
    return (*head, *figures, f"{error:.0e}", f"{energy:.0e}", verdict, f"{run.status} {run.message}".strip())


def interrupt(*_: Any) -> None:
    """End a run as the keyboard does."""
    raise KeyboardInterrupt


def main() -> int:
    """Print the table; return how many lines are faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("linkages", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}")
    parser.add_argument("--methods", nargs="*", default=list(DURATIONS), help=f"of {', '.join(DURATIONS)}")
    parser.add_argument("--seconds", type=float, help="duration, in place of the methods' own")
    asked = parser.parse_args()
    signal.signal(signal.SIGALRM, interrupt)
    faults = 0
    print("| linkage | method | tolerance | duration | seconds | steps | error | energy | verdict | words |")
    print("|" + "---|" * 10)
    for name in asked.linkages:
        case = CASES[name]()
        for method in asked.methods:
            duration = asked.seconds or DURATIONS[method]
            for k, settings in enumerate(grid(method)):
                if k == 0:  # compiled before the clock starts
                    with suppress(da.DalembertError):
                        da.simulate(case.mechanism, 1e-3, case.q, case.v, method=method, **settings)
                line = attempt(case, method, duration, settings)
                faults += line[-2] in ("LOOSE", "FOREIGN", "SLOW")
                print(f"| {name} | {' | '.join(line)} |", flush=True)
    print(f"{faults} faults")
    return min(faults, 100)


if __name__ == "__main__":
    raise SystemExit(main())

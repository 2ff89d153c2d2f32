"""Over-constrained linkages in time: random starts, speeds, units, steppers and tolerances, against plain integration.

Families: Bennett's, Goldberg's, Bricard's, Sarrus' linkages (hinges alone), parallelograms that pass their singular
configurations, a free leaf on two hinges; in millimetres, metres and kilometres. Oracle: SciPy's DOP853 in plain NumPy
with the known rank, a projection after every step; for parallelogram and leaf a pendulum in one angle.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

import dalembert as da

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.simulate import overconstrained as given

TITLE: str = "over-constrained linkages in time, against plain integration with the known rank"

DURATION = 0.2
"""Seconds; gravity grows with the unit of length, so that all sizes fall alike."""

AMPLIFIED, ROUNDING = 1e3, 1e-9
"""Error over tolerance, and error at the tightest: some tens of steps, and what a motion makes of their errors."""

SINGULAR = 1e-6
"""Error next to singular configurations, where rounding is seen 1 / distance^2 times."""

STEP, STEP_ERROR = 1e-3, 1e-3
"""Variational steps, and the error that they may make."""

UNITS = (1e-3, 1.0, 1e3)
RANKS = {"bennett": 2, "goldberg": 3, "bricard": 4, "sarrus": 4}
SHAPES = 3
"""Geometries per family: each is compiled once."""


@cache
def linkage(family: str, shape: int, unit: float):
    """Return one of a few linkages of a family."""
    rng = np.random.default_rng(shape)
    if family == "bennett":
        return given.bennett(rng.uniform(0.4, 0.8), rng.uniform(1.1, 1.5), 1.0, rng.uniform(0.8, 1.4), unit)
    if family == "goldberg":
        angles = rng.uniform(0.4, 0.7), rng.uniform(1.2, 1.5), rng.uniform(0.8, 1.1)
        return given.goldberg(*angles, 1.0, rng.uniform(0.8, 1.3), unit)
    if family == "sarrus":
        return given.sarrus(rng.uniform(0.7, 1.1), unit)
    return given.bricard(unit)


@cache
def parallelogram(kind: str, unit: float):
    """Return a parallelogram; its start is given by the trial."""
    return given.parallelogram(kind, unit)[0]


def judged(run, error: float, limit: float) -> tuple[str, str]:
    """Return the verdict on a run with an error in radians."""
    if run.status != "completed":
        return "refused", f"{run.status}: {run.message.split(':')[0][:60]}"
    if not error <= limit:
        return "wrong", f"{run.mechanism.name} {run.method} rtol={run.session.settings.rtol:g}: error {error:.1e}"
    return "right", run.method


def options(rng: np.random.Generator, stiff: bool) -> dict:
    """Return a stepper with its tolerance or step."""
    methods = ["dop853", "dop853", "dopri5", "variational", *(["bdf", "radau"] if stiff else [])]
    method = str(rng.choice(methods))
    if method == "variational":
        return {"method": method, "step": STEP}
    tolerance = 10.0 ** rng.uniform(-13, -4)
    return {"method": method, "rtol": tolerance, "atol": tolerance}


def limit_of(chosen: dict, rounding: float) -> float:
    """Return the error that a run may have."""
    return STEP_ERROR if chosen["method"] == "variational" else AMPLIFIED * chosen["rtol"] + rounding


def hinges(rng: np.random.Generator) -> tuple[str, str]:
    """Run a loop of hinges from a random velocity."""
    family, unit = str(rng.choice(list(RANKS))), float(rng.choice(UNITS))
    shape = int(rng.integers(SHAPES))
    m, rank = linkage(family, shape, unit), RANKS[family]
    chosen = options(rng, stiff=unit == 1.0 and shape == 0)
    q, v = given.admissible(m, m.neutral(), rng.normal(size=m.nv), rank)
    run = da.simulate(m, DURATION, q, v, **chosen)
    expected = given.reference(m, q, v, DURATION, rank, 1e-12)[0]
    return judged(run, float(np.abs(run.q[-1] - expected).max()), limit_of(chosen, ROUNDING))


def cranks(rng: np.random.Generator) -> tuple[str, str]:
    """Run a parallelogram from near a singular configuration, through it or away from it."""
    kind, unit = str(rng.choice(["revolute", "point"])), float(rng.choice(UNITS))
    m = parallelogram(kind, unit)
    angle = float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-4, 0))
    speed = float(rng.choice([-1.0, 1.0]) * rng.uniform(1.0, 6.0))
    q, v = np.zeros(m.nq), np.zeros(m.nv)
    for name, sign in (("foot 0", 1.0), ("foot 1", 1.0), ("head", -1.0)):
        q[m.index_q(name)], v[m.index_v(name)] = sign * angle, sign * speed
    chosen = options(rng, stiff=False)
    run = da.simulate(m, DURATION, q, v, **chosen)
    expected = given.crank_reference(angle, speed, float(run.t[-1]))[0]
    return judged(run, abs(float(run["foot 0"][-1]) - expected), limit_of(chosen, SINGULAR))


def door(rng: np.random.Generator) -> tuple[str, str]:
    """Run a free leaf on two hinges."""
    unit = float(rng.choice(UNITS))
    m, q, axis = leaf(unit)
    speed, chosen = float(rng.uniform(-5.0, 5.0)), options(rng, stiff=False)
    run = da.simulate(m, DURATION, q, np.r_[0, 0, 0, speed * axis], **chosen)
    expected = given.door_reference(axis, speed, float(run.t[-1]))
    return judged(run, abs(float(run.v[-1, 3:] @ axis) - expected), limit_of(chosen, ROUNDING))


@cache
def leaf(unit: float):
    """Return the leaf."""
    return given.double_door(unit)


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Run one random linkage."""
    kind = rng.choice(3, p=[0.6, 0.3, 0.1])
    try:
        return (hinges, cranks, door)[kind](rng)
    except da.DalembertError as error:
        return "refused", f"{type(error).__name__}: {str(error)[:80]}"
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {str(error)[:120]}"

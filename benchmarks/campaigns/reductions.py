"""Numbers of runs and studies (extrema, means, root mean squares), against quadrature of dense samples.

Random oscillators, chains of hinges and slides, balls that bounce, masses that stick and slip, forces that jump, by
every method, with and without `every=`; kept are coordinates, velocities, accelerations, energies, reactions. Oracle: a
run with a tighter tolerance and thousands of equal samples, SciPy's cubic spline through each piece between its events,
the spline's integral and the zeros of its derivative. Studies must have the numbers of `run.maximum`, to the bit.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert.friction import Bounded, StaticKinetic

TITLE: str = "extrema and means of runs and studies, against quadrature of dense samples"

SAMPLES = 4000
"""Of the oracle; its splines leave 1e-10 of a quantity that turns a few times."""

AMPLIFIED = 3e3
"""Error over tolerance: some tens of steps, and what accelerations and impacts make of their errors."""

SPLINE = 1e-6
"""Part of a quantity's size that the oracle may be off by: kinks of dry friction at events are its ends of pieces."""

FIXED = {"rk4": 1e-4, "variational": 5e-3, "moreau": 5e-2}
"""Part of a quantity's size that steps of one size may be off by."""

TAKES = {"max": "maximum", "min": "minimum", "range": "range", "mean": "mean", "rms": "rms"}


@cache
def oscillator() -> Any:
    """Return x'' + c x' + k x = 0."""
    x, v, k, c = (ca.SX.sym(name) for name in "xvkc")
    parameters = {"k": (k, 4.0), "c": (c, 0.1)}
    return da.Lagrangian(x, v, v**2 / 2, k * x**2 / 2, dissipation=c * v**2 / 2, parameters=parameters,
                         coordinates=["x"])  # fmt: skip


@cache
def belt() -> Any:
    """Return a mass on a spring and a belt."""
    x, v, k = (ca.SX.sym(name) for name in "xvk")
    law = [Bounded("belt", v - 0.3, StaticKinetic(1.0, 0.5))]
    return da.Lagrangian(x, v, v**2 / 2, k * x**2 / 2, parameters={"k": (k, 1.0)}, friction=law, coordinates=["x"])


@cache
def chain(shape: int) -> Any:
    """Return a chain of two or three joints."""
    rng = np.random.default_rng(shape)
    b, parent = da.Builder("chain"), "world"
    for i in range(2 + shape % 2):
        name = f"b{i}"
        b.body(name, mass=rng.uniform(0.5, 2), center=(0.3, 0, 0), inertia=rng.uniform(0.05, 0.1, 3))
        kind = "prismatic" if rng.random() < 0.3 else "revolute"
        b.joint(f"j{i}", kind, parent, name, axis=rng.normal(size=3), position=(0.4 * bool(i), 0, 0),
                stiffness=2.0 if kind == "revolute" else 60.0)  # fmt: skip
        parent = name
    return b.build()


@cache
def ball() -> Any:
    """Return a ball that falls."""
    b = da.Builder("ball")
    b.body("ball", mass=1.5)
    b.joint("z", "prismatic", "world", "ball", axis=(0, 0, 1))
    return b.build()


def problem(rng: np.random.Generator) -> tuple[Any, float, Any, Any, dict[str, Any], list[str], list[str]]:
    """Return system, duration, start, options, methods that take it, quantities."""
    kind = int(rng.integers(5))
    smooth = ["dop853", "dop853", "dopri5", "rk4", "bdf", "radau", "variational"]
    states = ["q", "v", "acceleration", "energy", "kinetic"]
    if kind == 0:
        system = oscillator().with_parameters(k=rng.uniform(1, 30), c=rng.uniform(0, 1))
        return system, rng.uniform(0.5, 6), rng.normal(size=1), rng.normal(size=1), {}, smooth, [*states, "x", "x.v"]
    if kind == 1:
        m = chain(int(rng.integers(4)))
        q, v = 0.5 * rng.normal(size=m.nq), rng.normal(size=m.nv)
        return m, rng.uniform(0.3, 2), q, v, {}, smooth, [*states, "potential", "j1", "j0.a"]
    if kind == 2:
        floor = [da.Contact(da.Sphere("ball", radius=0.1), da.Plane(), restitution=rng.uniform(0.2, 0.9), name="floor")]
        start = [rng.uniform(0.3, 2)], [rng.normal() * 2]
        names = [*states, "z", "heat", "floor"]
        return (
            ball(),
            rng.uniform(0.2, 1.2),
            *start,
            {"contacts": floor},
            ["hybrid", "dopri5", "radau", "moreau"],
            names,
        )
    if kind == 3:
        system = belt().with_parameters(k=rng.uniform(0.5, 2))
        return (
            system,
            rng.uniform(1, 8),
            [rng.normal() * 0.5],
            [0.3],
            {},
            ["hybrid", "dopri5"],
            [*states, "belt", "heat"],
        )
    at, jump = rng.uniform(0.1, 0.9), rng.normal() * 20
    force = {"force": lambda t, q, v: np.array([jump * (t > at)]), "breaks": [at]}
    return ball(), 1.0, [1.0], [rng.normal()], force, ["dop853", "dopri5", "bdf", "radau"], [*states, "z.a", "work"]


def oracle(run: Any, rows: np.ndarray, breaks: list[float]) -> dict[str, np.ndarray]:
    """Return numbers of columns by splines through the pieces of a run: between its events, and between breaks.

    A sample at a break belongs to one side of it: splines of both sides are continued to there.
    """
    kept = np.all([np.abs(run.t - at) > 1e-9 for at in breaks], axis=0) if breaks else np.ones(run.t.size, bool)
    t, rows = run.t[kept], rows.reshape(run.t.size, -1)[kept]
    behind = np.searchsorted(t, breaks)
    cuts = np.unique([0, *(np.flatnonzero(np.diff(t) <= 0.0) + 1), *behind, t.size])
    most, least = rows.max(axis=0), rows.min(axis=0)
    total, square = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for a, b in pairwise(cuts):
        low, high = (breaks[0] if a in behind else t[a]), (breaks[0] if b in behind else t[b - 1])
        for j in range(rows.shape[1]) if b - a > 1 else ():
            spline = CubicSpline(t[a:b], rows[a:b, j])
            roots = spline.derivative().roots(extrapolate=False)
            values = spline([low, high, *roots[np.isfinite(roots)]])
            most[j], least[j] = max(most[j], values.max()), min(least[j], values.min())
            total[j] += spline.integrate(low, high)
            square[j] += CubicSpline(t[a:b], rows[a:b, j] ** 2).integrate(low, high)
    length = t[-1] - t[0]
    return {"max": most, "min": least, "range": most - least, "mean": total / length, "rms": np.sqrt(square / length)}


def trial(rng: np.random.Generator) -> tuple[str, str]:
    """Reduce a random run, alone and in a study."""
    from dalembert.simulate.reductions import column

    system, duration, q, v, options, methods, names = problem(rng)
    method, name, take = str(rng.choice(methods)), str(rng.choice(names)), str(rng.choice([*TAKES]))
    given = dict(options, method=method)
    tolerance = 10.0 ** rng.uniform(-11, -5)
    if method in FIXED:
        given["step"] = duration / 2000
    else:
        given |= {"rtol": tolerance, "atol": tolerance}
    if rng.random() < 0.3:
        given["every"] = duration / float(rng.choice([4, 10]))
    what = f"{take} of {name}, {getattr(system, 'name', 'Lagrangian')} by {method}, {duration:.3g} s"
    try:
        run = da.simulate(system, duration, q, v, **given)
        if method == "moreau" and name in ("acceleration", "floor", "kinetic", "heat", "v"):
            return "right", "moreau: a force of impacts is one of a step"
        if run.status != "completed":
            return "refused", f"{run.method}: {run.status}"
        found = np.atleast_1d(getattr(run, TAKES[take])(name))
        tight = {} if method not in ("moreau",) else {"method": "hybrid"}
        fine = da.simulate(
            system, duration, q, v, **{**options, **tight, "rtol": 1e-12, "atol": 1e-12, "every": duration / SAMPLES}
        )
        rows = column(fine, name)
        exact = oracle(fine, rows, options.get("breaks", []))[take]
        size = np.abs(rows).max(axis=0, initial=1e-3)
        share = FIXED.get(method, AMPLIFIED * tolerance) + SPLINE
        if not (np.abs(found - exact) <= share * np.maximum(size, 0.1 * np.max(size))).all():
            return "wrong", f"{what}, rtol {tolerance:.1e}: {found} against {exact}"
        if rng.random() < 0.5:
            study = da.ensemble(
                system, duration, da.values([q, q]), v, runs=2, progress=False, keep={"x": (name, take)},
                batches=bool(rng.random() < 0.7), **given,
            )  # fmt: skip
            if study.ok and not np.array_equal(np.atleast_1d(study["x"][1]), found):
                return "wrong", f"{what}: a study ({study.route[:30]}) has {study['x'][1]}, the run {found}"
    except da.DalembertError as error:
        return "refused", f"{method}: {type(error).__name__}: {str(error)[:80]}"
    except Exception as error:
        return "foreign", f"{what}: {type(error).__name__}: {str(error)[:200]}"
    return "right", what

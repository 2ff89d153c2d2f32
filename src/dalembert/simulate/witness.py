"""Energy as an independent witness: what a run's tolerance lets it gain or lose, and whether it kept to that.

Symbols: E kinetic and potential energy, W work of joint forces, drives and surfaces, p = M v momenta, g = bias(q, 0)
forces of the potential; one step may be wrong by d_v = atol + rtol |v|, d_q = atol + rtol max(1, |q|), which is worth
|p| d_v + |g| d_q.

    in one step   |change of E - W|  <=  ONE_STEP (|p| d_v + |g| d_q)  +  rounding
    in the run    |E - E_0 - W|      <=  SAFE (steps) max (|p| d_v + |g| d_q)  +  rounding

The first is asked where every step is a sample: a step across a singular configuration that goes wrong is lost in the
sum over thousands that do not. The second is that of errors that all push the same way; runs stay far below. A run that
breaks one has been wrong somewhere, whatever its steps said of themselves: rows taken for others, forces that are not
those of the motion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.simulate.equations.drives import worth_of_errors
from dalembert.simulate.limits import ENERGY_ROUNDING
from dalembert.simulate.trajectory import Trajectory
from dalembert.types import Array

SAFE = 5.0
"""Times the sum of tolerances: an error estimate is no bound, and multistep methods stay above theirs."""

ONE_STEP = 30.0
"""Times the tolerance of a step, in one step: usual ones change the energy by less than a tenth of it."""

MOST_SAMPLES = 256
"""Samples at which the sizes of momenta and forces, and rows that move by themselves, are looked at."""

JUMP, UNUSUAL = 0.01, 100.0
"""Of runs without a tolerance: change of energy in one step, as a part of the kinetic one and of the usual changes."""

BALANCED = ("dop853", "dopri5", "rk4", "bdf", "radau", "ida", "variational", "hybrid")
"""Steppers that keep the balance to their tolerance; that of time stepping is of first order."""


def broken_balance(run: Trajectory) -> str:
    """Return a sentence where the energy balance of a run is off by more than its tolerance allows, else nothing."""
    m, s = run.moving, run.session.settings
    if s.method not in BALANCED or run.t.size < 2 or not _has_balance(m) or pushing_rows(m):
        return ""
    with np.errstate(all="ignore"):
        residual = run.energy_residual
        if not np.isfinite(residual).all():
            return ""
        residual = np.maximum(residual, 0.0) if _damped(m) else np.abs(residual)
        level = float(np.abs(run.kinetic).max() + np.abs(run.potential).max())
        rounding = ENERGY_ROUNDING * (run.steps + 10) * level
        if s.step is not None:
            return _jump(run, rounding)
        some = slice(None, None, max(1, run.t.size // MOST_SAMPLES))
        worth = step_tolerance(m, run.q[some], run.v[some], s.rtol, s.atol)
        allowed = SAFE * run.steps * float(worth.max(initial=0.0)) + rounding
    worst = int(np.argmax(residual))
    if residual[worst] <= allowed:
        return _one_step(run, 10.0 * ENERGY_ROUNDING * level) if s.every is None else ""
    first = int(np.argmax(residual > allowed))
    return (
        f"the energy balance is off by {residual[worst]:.3g} J, where {run.steps} steps at rtol={s.rtol:g}, "
        f"atol={s.atol:g} allow {allowed:.2g} J; first seen at t = {run.t[first]:.9g} s"
    )


def step_tolerance(m: Any, q: Array, v: Array, rtol: float, atol: float) -> Array:
    """Return the energy that the tolerance of one step is worth at states (N, nq), (N, nv): joules, (N,)."""
    p = np.einsum("kij,kj->ki", np.asarray(m.mass_matrix(q)).reshape(len(q), m.nv, m.nv), v)
    g = np.asarray(m.bias(q, np.zeros_like(v))).reshape(len(q), m.nv)
    return worth_of_errors(p, g, q, v) @ np.array([atol, rtol])


def balanced(m: Any, q: Array, t: Array) -> bool:
    """Return whether kinetic and potential energy less the work of joint forces alone stay constant: (N, nq)."""
    return _has_balance(m) and not (_damped(m) or moving_rows(m, q, t))


def conserves(m: Any, q: Array, t: float) -> bool:
    """Return whether nothing takes energy out of a system, or puts it in, around a configuration."""
    applied = not m.is_conservative if hasattr(m, "is_conservative") else False
    return not applied and balanced(m, q[None], np.array([t]))


def _has_balance(m: Any) -> bool:
    """Return whether energy less work stays constant: not where T or V depend on time, and not of plain matrices."""
    return bool(getattr(m, "autonomous", True))


def _one_step(run: Trajectory, rounding: float) -> str:
    """Return a sentence where one step changes the balance by more than its tolerance is worth."""
    m, s = run.moving, run.session.settings
    changes = np.diff(run.energy_residual)
    changes = np.maximum(changes, 0.0) if _damped(m) else np.abs(changes)
    # |p| |v| is at least twice the kinetic energy: few steps need a closer look
    least = ONE_STEP * s.rtol * 2.0 * np.maximum(run.kinetic[1:], run.kinetic[:-1]) + rounding
    suspects = np.flatnonzero(changes > least)
    suspects = suspects[np.argsort(-changes[suspects] / least[suspects])][:MOST_SAMPLES]
    if not suspects.size:
        return ""
    ends = [step_tolerance(m, run.q[k], run.v[k], s.rtol, s.atol) for k in (suspects, suspects + 1)]
    allowed = ONE_STEP * np.maximum(*ends) + rounding
    worst = int(np.argmax(changes[suspects] / allowed))
    k = int(suspects[worst])
    if not changes[k] > allowed[worst]:
        return ""
    return (
        f"the energy balance changes by {changes[k]:.3g} J in the step to t = {run.t[k + 1]:.9g} s, where "
        f"rtol={s.rtol:g}, atol={s.atol:g} allow {allowed[worst]:.2g} J"
    )


def _jump(run: Trajectory, rounding: float) -> str:
    """Return a sentence where the energy of a run with fixed steps jumps."""
    changes = np.abs(np.diff(run.energy_residual))
    usual = float(np.median(changes))
    k = int(np.argmax(changes))
    limit = max(JUMP * float(run.kinetic.max()), UNUSUAL * usual, rounding)
    if _damped(run.moving) or not changes[k] > limit:
        return ""
    return (
        f"the energy balance jumps by {changes[k]:.3g} J at t = {run.t[k + 1]:.9g} s, where steps usually change it by "
        f"{usual:.2g} J: the step is too long there, or rows became dependent"
    )


def _damped(m: Any) -> bool:
    """Return whether something takes energy out that the balance does not know; work of a Lagrangian knows all."""
    if not hasattr(m, "joints"):
        return False
    parts = [*m.springs, *getattr(m, "tendons", ())]
    return m.passive and (any(any(j.damping) for j in m.joints) or any(np.any(part.damping) for part in parts))


def pushing_rows(m: Any) -> bool:
    """Return whether rows push by themselves, back to where they hold: that work is not in the balance.

    Nor is that of rows nonlinear in velocities: their force works along what they hold.
    """
    if getattr(m, "of_accelerations", ()):
        return True
    return any(constraint.stabilize is not None for constraint in getattr(m, "all_constraints", ()))


def moving_rows(m: Any, q: Array, t: Array) -> bool:
    """Return whether rows move by themselves, or push by themselves: they exchange energy with the system."""
    if not m.names:
        return False
    if pushing_rows(m):
        return True
    every = slice(None, None, max(1, len(t) // MOST_SAMPLES))
    return bool(np.any(m.constraint_velocity(q[every], np.zeros((len(q[every]), m.nv)), t[every])))

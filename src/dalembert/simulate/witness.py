"""Energy as an independent witness: what a run's tolerance lets it gain or lose, and whether it kept to that.

Symbols: E kinetic and potential energy, W work of joint forces, p = M v momenta, g = bias(q, 0) forces of the
potential; one step may be wrong by d_v = atol + rtol |v|, d_q = atol + rtol max(1, |q|).

    |E - E_0 - W|  <=  SAFE (steps) max (|p| d_v + |g| d_q)  +  rounding

The bound is that of errors that all push the same way; runs stay far below. A run that breaks it has been wrong
somewhere, whatever its steps said of themselves: rows taken for others, forces that are not those of the motion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.simulate.mechanism_trajectory import MechanismTrajectory

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

Array = np.ndarray

SAFE = 30.0
"""Times the sum of tolerances: an error estimate is no bound, and multistep methods stay a few times above theirs."""

ROUNDING = 1e-14
"""Part of the energies that a step may round."""

MOST_SAMPLES = 256
"""Samples at which the sizes of momenta and forces are looked at."""

JUMP, UNUSUAL = 0.01, 100.0
"""Of runs without a tolerance: change of energy in one step, as a part of the kinetic one and of the usual changes."""

BALANCED = ("dop853", "dopri5", "bdf", "radau", "variational", "hybrid")
"""Steppers that keep the balance to their tolerance; that of time stepping is of first order."""


def broken_balance(run: MechanismTrajectory) -> str:
    """Return a sentence where the energy balance of a run is off by more than its tolerance allows, else nothing."""
    m, s = run.mechanism, run.session.settings
    if s.method not in BALANCED or run.t.size < 2 or _moving(m, run):
        return ""
    with np.errstate(all="ignore"):
        residual = run.energy_residual
        if not np.isfinite(residual).all():
            return ""
        residual = np.maximum(residual, 0.0) if _damped(m) else np.abs(residual)
        level = float(np.abs(run.kinetic).max() + np.abs(run.potential).max())
        rounding = ROUNDING * (run.steps + 10) * level
        if s.step is not None or s.method == "variational":
            return _jump(run, rounding)
        allowed = SAFE * run.steps * _tolerated(run) + rounding
    worst = int(np.argmax(residual))
    if residual[worst] <= allowed:
        return ""
    first = int(np.argmax(residual > allowed))
    return (
        f"the energy balance is off by {residual[worst]:.3g} J, where {run.steps} steps at rtol={s.rtol:g}, "
        f"atol={s.atol:g} allow {allowed:.2g} J; first seen at t = {run.t[first]:.9g} s"
    )


def _tolerated(run: MechanismTrajectory) -> float:
    """Return the largest energy that one step's tolerance is worth, joules."""
    m, s = run.mechanism, run.session.settings
    every = slice(None, None, max(1, run.t.size // MOST_SAMPLES))
    q, v = run.q[every], run.v[every]
    p = np.einsum("kij,kj->ki", np.asarray(m.mass_matrix(q)).reshape(len(q), m.nv, m.nv), v)
    g = np.asarray(m.bias(q, np.zeros_like(v)))
    largest = np.maximum(1.0, np.abs(q).max(axis=1, initial=0.0))[:, None]
    change = np.abs(p) * (s.atol + s.rtol * np.abs(v)) + np.abs(g) * (s.atol + s.rtol * largest)
    return float(change.sum(axis=1).max(initial=0.0))


def _jump(run: MechanismTrajectory, rounding: float) -> str:
    """Return a sentence where the energy of a run with fixed steps jumps."""
    changes = np.abs(np.diff(run.energy_residual))
    usual = float(np.median(changes))
    k = int(np.argmax(changes))
    limit = max(JUMP * float(run.kinetic.max()), UNUSUAL * usual, rounding)
    if _damped(run.mechanism) or not changes[k] > limit:
        return ""
    return (
        f"the energy balance jumps by {changes[k]:.3g} J at t = {run.t[k + 1]:.9g} s, where steps usually change it by "
        f"{usual:.2g} J: the step is too long there, or rows became dependent"
    )


def _damped(m: Mechanism) -> bool:
    """Return whether something takes energy out that the balance does not know."""
    parts = [*m.springs, *getattr(m, "tendons", ())]
    return m.passive and (any(any(j.damping) for j in m.joints) or any(np.any(each.damping) for each in parts))


def _moving(m: Mechanism, run: MechanismTrajectory) -> bool:
    """Return whether rows move by themselves, or push by themselves: their work is not in the balance."""
    if not m.names:
        return False
    if any(each.stabilize is not None for each in m.all_constraints):
        return True
    every = slice(None, None, max(1, run.t.size // MOST_SAMPLES))
    q = run.q[every]
    rate = np.asarray(m.constraint_velocity(q, np.zeros((len(q), m.nv)), run.t[every]))
    return bool(np.any(rate != 0.0))

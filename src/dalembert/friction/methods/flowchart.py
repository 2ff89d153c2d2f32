"""Method `flowchart`: the seed's scheme as printed (seed 001, Fig. 2).

    repeat: T = static forces that hold all contacts of the set
            those above their limit: clamp them at it, add them to the applied forces, take them out of the set
    until no force is above its limit

Forces are clamped one way only: a contact once taken out stays out, although the clamped force may turn out to push it
along its motion. The set shrinks every round, so the chart ends after at most m + 1 rounds. With `release` a contact
that is pushed along goes back to the set and the chart runs again; a set met before is a cycle, which is reported.

The static forces are the mass-weighted ones (eqs. 13, 14), or with form="short" those of eq. (17), T = -W^+ h, where
its condition W^T M^-1 (I - W W^+) h = 0 holds; where it does not, the method declines with the residual.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from dalembert.errors import ModelError, SolvabilityError
from dalembert.friction.index_sets import AT_LIMIT, STILL
from dalembert.friction.methods.contract import Found
from dalembert.friction.problem import Problem
from dalembert.friction.status import FrictionStatus
from dalembert.kkt import KKT

Array = np.ndarray

FORMS = {"mass-weighted": "auto", "short": "short_form"}
"""Form of the static forces -> route of the block solver."""


def flowchart(
    problem: Problem,
    warm: Float[Array, " m"] | None = None,
    form: str = "mass-weighted",
    release: bool = False,
) -> Found:
    """Follow Fig. 2; `warm` is not used, the chart has no first guess."""
    if form not in FORMS:
        raise ModelError(f"form={form!r} is not one of {', '.join(map(repr, FORMS))}")
    stick, clamped = problem.rest.copy(), problem.forces_in_motion.copy()
    visited: set[bytes] = set()
    rounds = 0
    while True:
        try:
            T, stick, used = _chart(problem, stick, clamped, FORMS[form])
        except SolvabilityError as refused:
            reason = str(refused).splitlines()[0]
            return Found(np.full(problem.names.__len__(), np.nan), rounds, FrictionStatus.DECLINED, reason)
        rounds += used
        pushed = _pushed(problem, T, stick)
        if not release or not pushed.any():
            return Found(T, rounds)
        key = stick.tobytes()
        if key in visited:
            who = ", ".join(problem.names[i] for i in np.flatnonzero(pushed))
            return Found(T, rounds, FrictionStatus.CYCLE, f"released and clamped again: {who}")
        visited.add(key)
        stick = stick | pushed
        clamped = np.where(stick, 0.0, T)


def _chart(
    problem: Problem, stick: Bool[Array, " m"], clamped: Float[Array, " m"], route: str
) -> tuple[Array, Array, int]:
    """Run the chart once from a set; return forces, the set that is left, and the rounds."""
    stick, T = stick.copy(), clamped.copy()
    for turn in range(problem.rest.size + 1):
        T[stick] = _static_forces(problem, T, stick, route)
        above = stick & (np.abs(T) > problem.limits * (1.0 + AT_LIMIT))
        if not above.any():
            return T, stick, turn + 1
        T[above] = np.sign(T[above]) * problem.limits[above]
        stick &= ~above
    raise AssertionError("the set shrinks every round")


def _static_forces(problem: Problem, T: Array, stick: Array, route: str) -> Float[Array, " s"]:
    """Return the forces that keep the contacts of the set at rest, the others given."""
    if route == "auto":
        quick = problem.holding_forces(T, stick)
        if np.isfinite(quick).all():
            return quick
    S = np.flatnonzero(stick)
    known = np.where(stick, 0.0, T)
    rows = np.vstack([problem.system.A, problem.W[:, S].T])
    held = KKT(problem.system.M, rows, route=route)
    drift = np.concatenate([problem.drift, problem.contact_drift[S]])
    return held.solve(problem.f + problem.W @ known, drift).reactions[problem.system.m :]


def _pushed(problem: Problem, T: Array, stick: Array) -> Bool[Array, " m"]:
    """Return which clamped contacts are accelerated along their own friction force."""
    a, _ = problem.acceleration(T)
    xi = problem.W.T @ a + problem.contact_drift
    size = np.abs(problem.W.T) @ np.abs(a) + np.abs(problem.contact_drift)
    return problem.rest & ~stick & (xi * T > STILL * 1e2 * size * np.abs(T))

"""Methods for bounded friction: exact, the seed's flowchart, and four for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dalembert.checks import is_number
from dalembert.errors import ModelError, SolvabilityError, UnsupportedError
from dalembert.friction.cones.faceted import FACETS, solve_faceted
from dalembert.friction.contact_problem import FIXED, ContactProblem
from dalembert.friction.delassus import Delassus
from dalembert.friction.limits import AIM, AT_LIMIT, DEPENDENT_COLUMN, STILL, SWEEPS, SWITCHED
from dalembert.kkt import KKT
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

# ----------------------------------------------------------------------------------------------------------------------
# Intervals: one state whose contacts have given limits and one direction each, a box-constrained problem.


@dataclass(frozen=True, eq=False)
class IntervalProblem(Delassus):
    """A contact per column of W; `limits` (m,) hold for those at `rest` (m,)."""

    names: tuple[str, ...]
    velocity: Float[Array, " m"]
    limits: Float[Array, " m"]
    rest: Bool[Array, " m"]

    @classmethod
    def of(cls, problem: ContactProblem, s: int = 0) -> IntervalProblem:
        """Return state s of a problem."""
        sets = problem.contacts
        return cls(
            problem.block(s), problem.f[s], problem.drift[s], problem.matrices(s)[1], problem.contact_drift[s],
            sets.known[s], sets.names, problem.velocity[s], sets.mu[s], ~sets.sliding[s],
        )  # fmt: skip

    def balanced(self, a: Float[Array, " n"], T: Float[Array, " m"], loose: Bool[Array, " m"]) -> Float[Array, " m"]:
        """Return forces corrected so that Z^T (M a - f - W T) = 0 to rounding, the correction on loose contacts alone.

        G weighs forces by inverse masses, so the balance of a coordinate a million times heavier loses six digits.
        """
        L = np.flatnonzero(loose)
        corrected = T.copy()
        corrected[L] += np.linalg.lstsq(self.reduced[0][:, L], self.imbalance(a, T), rcond=DEPENDENT_COLUMN)[0]
        return np.where(loose, np.clip(corrected, -self.limits, self.limits), T)


# ----------------------------------------------------------------------------------------------------------------------
# The contract of a method: an `IntervalProblem` in, forces at all contacts out, with what happened on the way.


@dataclass(frozen=True, eq=False)
class MethodForces:
    """Forces (m,), those of sliding contacts included; rounds; a verdict where the method has one; a remark."""

    forces: Float[Array, " m"]
    iterations: int
    status: Status | None = None
    note: str = ""


class Method(Protocol):
    """A way to find the friction forces of one state."""

    def __call__(
        self, problem: IntervalProblem, warm: Float[Array, " m"] | None = None, **options: Any
    ) -> MethodForces:
        """Return the forces; `warm` is a first guess."""
        ...


# ----------------------------------------------------------------------------------------------------------------------
# Method `exact`: bounded contacts at rest by the box-constrained problem, to optimality, least-norm forces.
#
# With fixed limits the acceleration always exists and is unique (a strictly convex problem in a), also where the
# flowchart of the seed clamps a force the wrong way. Source: J. J. Moreau, "Quadratic programming in mechanics:
# dynamics of one-sided constraints", SIAM J. Control 4 (1966) 153-158.


def exact(problem: IntervalProblem, warm: Float[Array, " m"] | None = None) -> MethodForces:
    """Solve for the contacts at rest; O(k^3) a round, two to six rounds."""
    from dalembert.friction.bounded.box import SOLVED, least_norm, solve_box

    T = problem.forces_in_motion.copy()
    R = np.flatnonzero(problem.rest)
    if not R.size:
        return MethodForces(T, 0)
    G, g = problem.delassus
    G, g, limit = np.ascontiguousarray(G[np.ix_(R, R)]), g[R], problem.limits[R]
    x = np.zeros(R.size) if warm is None else np.asarray(warm, dtype=float)[R].copy()
    code, rounds, _ = solve_box(G, g, -limit, limit, x)
    family = least_norm(np.ascontiguousarray(problem.reduced[0][:, R]), G, g, -limit, limit, x)
    T[R] = x + 0.0
    note = f"least-norm member of a family of dimension {family}" if family else ""
    return MethodForces(T, int(rounds), None if code == SOLVED else Status.NOT_CONVERGED, note)


# ----------------------------------------------------------------------------------------------------------------------
# Method `flowchart`: the seed's scheme as printed (seed 001, Fig. 2).
#
#     repeat: T = static forces that hold all contacts of the set
#             those above their limit: clamp them at it, add them to the applied forces, take them out of the set
#     until no force is above its limit
#
# Forces are clamped one way only: a contact once taken out stays out, although the clamped force may turn out to push
# it along its motion. The set shrinks every round, so the chart ends after at most m + 1 rounds. With `release` a
# contact that is pushed along goes back to the set and the chart runs again; a set met before is a cycle, which is
# reported.
#
# The static forces are the mass-weighted ones (eqs. 13, 14), or with form="short" those of eq. (17), T = -W^+ h, and
# with form="gram" T = -(W^T W)^+ W^T h, rows and columns of sliding contacts removed from W^T W, where
# its condition W^T M^-1 (I - W W^+) h = 0 holds; where it does not, the method declines with the residual.


FORMS = {"mass-weighted": "auto", "short": "short_form", "gram": "gram_form"}
"""Form of the static forces -> route of the block solver."""


def flowchart(
    problem: IntervalProblem,
    warm: Float[Array, " m"] | None = None,
    form: str = "mass-weighted",
    release: bool = False,
) -> MethodForces:
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
            return MethodForces(np.full(problem.names.__len__(), np.nan), rounds, Status.DECLINED, reason)
        rounds += used
        pushed = _pushed(problem, T, stick)
        if not release or not pushed.any():
            return MethodForces(T, rounds)
        key = stick.tobytes()
        if key in visited:
            who = ", ".join(problem.names[i] for i in np.flatnonzero(pushed))
            return MethodForces(T, rounds, Status.CYCLE, f"released and clamped again: {who}")
        visited.add(key)
        stick = stick | pushed
        clamped = np.where(stick, 0.0, T)


def _chart(
    problem: IntervalProblem, stick: Bool[Array, " m"], clamped: Float[Array, " m"], route: str
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


def _static_forces(problem: IntervalProblem, T: Array, stick: Array, route: str) -> Float[Array, " s"]:
    """Return the forces that keep the contacts of the set at rest, the others given."""
    if route == "auto":
        quick = problem.holding_forces(T, stick)
        if np.isfinite(quick).all():
            return quick
    S = np.flatnonzero(stick)
    kinetic = np.where(stick, 0.0, T)
    rows = np.vstack([problem.system.A, problem.W[:, S].T])
    held = KKT(problem.system.M, rows, route=route)
    drift = np.concatenate([problem.drift, problem.contact_drift[S]])
    solution = held.solve(problem.f + problem.W @ kinetic, drift)
    if not solution.ok:
        raise SolvabilityError(f"forces that hold the contacts are in doubt: {Status(int(solution.status)).message}")
    return solution.reactions[problem.system.m :]


def _pushed(problem: IntervalProblem, T: Array, stick: Array) -> Bool[Array, " m"]:
    """Return which clamped contacts are accelerated along their own friction force."""
    a, _ = problem.acceleration(T)
    xi = problem.W.T @ a + problem.contact_drift
    size = np.abs(problem.W.T) @ np.abs(a) + np.abs(problem.contact_drift)
    return problem.rest & ~stick & (xi * T > STILL * 1e2 * size * np.abs(T))


# ----------------------------------------------------------------------------------------------------------------------
# Method `switch`: try every combination of stick and slip (seed 001, sec. 1, its reference [2]), for comparison only.
#
# In a band around zero velocity a contact may stick or slip either way; the first combination that contradicts no law
# is taken. k contacts in the band have 3^k combinations, and sticking contacts that are redundant are judged by one
# member of the family of their forces, so a combination that is possible may be passed over.
#
# Source: R. I. Leine, D. H. van Campen, A. de Kraker, L. van den Steen, "Stick-slip vibrations induced by alternate
# friction models", Nonlinear Dynamics 16 (1998) 41-54.


MOST = 9
"""Contacts in the band: 3^9 = 19,683 combinations take about a second."""


def switch(problem: IntervalProblem, warm: Float[Array, " m"] | None = None, slack: float = SWITCHED) -> MethodForces:
    """Return the forces of the first combination without contradiction; `warm` is not used."""
    if not is_number(slack) or not 0.0 <= slack < np.inf:
        raise ModelError(f"slack={slack!r} must be a finite part >= 0")
    R = np.flatnonzero(problem.rest)
    if R.size > MOST:
        raise UnsupportedError(f"{R.size} contacts at rest have 3^{R.size} combinations; use method='exact'")
    passed = 0
    for count, modes in enumerate(product((0, 1, -1), repeat=R.size)):
        T, doubtful = _forces(problem, R, np.array(modes, dtype=int))
        passed += doubtful
        if T is not None and _consistent(problem, R, np.array(modes, dtype=int), T, slack):
            return MethodForces(T, count + 1)
    nothing = np.full(problem.rest.size, np.nan)
    if passed:
        note = f"no combination fits, but {passed} could not be decided: nearly dependent rows"
        return MethodForces(nothing, 3**R.size, Status.NOT_CONVERGED, note)
    return MethodForces(nothing, 3**R.size, Status.NO_SOLUTION, "no combination fits")


def _forces(problem: IntervalProblem, R: Array, modes: Array) -> tuple[Float[Array, " m"] | None, bool]:
    """Return the forces of one combination, slipping contacts at their limit against the direction, and any doubt."""
    T = problem.forces_in_motion.copy()
    T[R] = -modes * problem.limits[R]
    S = R[modes == 0]
    stick = np.isin(np.arange(T.size), S)
    quick = problem.holding_forces(T, stick)
    if np.isfinite(quick).all():
        T[stick] = quick
        return T, False
    rows = np.vstack([problem.system.A, problem.W[:, S].T])
    load, drift = problem.f + problem.W @ T, np.concatenate([problem.drift, problem.contact_drift[S]])
    solved = KKT(problem.system.M, rows).solve(load[None], drift[None])
    if not np.all(solved.ok):
        return None, int(np.ravel(solved.status)[0]) == Status.ILL_CONDITIONED
    T[S] = solved.reactions[0, problem.system.m :]
    return T, False


def _consistent(problem: IntervalProblem, R: Array, modes: Array, T: Array, slack: float) -> bool:
    """Say whether sticking forces are within their limits and slipping contacts accelerate in their direction."""
    if np.any(np.abs(T[R][modes == 0]) > problem.limits[R][modes == 0] * (1.0 + AT_LIMIT)):
        return False
    a, _ = problem.acceleration(T)
    xi = problem.W.T @ a + problem.contact_drift
    G, g = problem.delassus
    size = np.abs(G) @ np.abs(np.where(problem.rest, T, 0.0)) + np.abs(g)
    return bool(np.all((modes * xi[R] >= -slack * size[R])[modes != 0]))


# ----------------------------------------------------------------------------------------------------------------------
# Method `regularised`: the step of the law replaced by a steep slope (seed 001, sec. 1), for comparison only.
#
# T = -limit(velocity) tanh(velocity / width). No contact ever sticks: it creeps at about width x atanh(force / limit),
# and a smaller width buys less creep with a stiffer equation (the rate limit / (width mass) bounds the step).


def regularised(problem: IntervalProblem, warm: Float[Array, " m"] | None = None, width: float = 1e-3) -> MethodForces:
    """Return the forces of the steep slope; they depend on the velocity alone, so `warm` is not used."""
    if not is_number(width) or not 0.0 < width < np.inf:
        raise ModelError(f"width={width!r} must be a velocity > 0")
    slope = np.tanh(np.abs(problem.velocity) / width)
    moving = np.abs(problem.forces_in_motion)
    size = np.where(problem.rest, problem.limits, moving)
    return MethodForces(-np.sign(problem.velocity) * slope * size, 1)


# ----------------------------------------------------------------------------------------------------------------------
# Methods `lcp` and `sweeps`: the same problem as a linear complementarity problem, and by projected sweeps, for
# comparison only. With one direction a contact has two facets and nothing is approximated.


def lcp(problem: IntervalProblem, warm: Float[Array, " m"] | None = None, facets: int = FACETS) -> MethodForces:
    """Pivot by Lemke's method; `warm` is not used. Facets are those of planes: an interval has two."""
    R = np.flatnonzero(problem.rest)
    x, _, pivots = solve_faceted(*_contacts_at_rest(problem, R), facets=facets)
    T = problem.forces_in_motion.copy()
    T[R] = x
    return MethodForces(T, pivots, None if np.isfinite(x).all() else Status.NOT_CONVERGED)


def sweeps(
    problem: IntervalProblem,
    warm: Float[Array, " m"] | None = None,
    scheme: str = "gauss-seidel",
    sweeps: int = SWEEPS,
    relaxation: float | None = None,
) -> MethodForces:
    """Sweep over the contacts at rest, by Gauss-Seidel or Jacobi, and nothing else."""
    from dalembert.friction.cones.plain_sweeps import solve_by_sweeps

    R = np.flatnonzero(problem.rest)
    x = np.zeros(R.size) if warm is None else np.asarray(warm, dtype=float)[R].copy()
    contacts = _contacts_at_rest(problem, R)
    _, done = solve_by_sweeps(*contacts, r=x, scheme=scheme, sweeps=sweeps, relaxation=relaxation, aim=AIM)
    T = problem.forces_in_motion.copy()
    T[R] = x
    return MethodForces(T, done)


def _contacts_at_rest(problem: IntervalProblem, R: Array) -> tuple[Array, ...]:
    """Return G, g, offsets, limits, kinds, who slides and directions of the contacts at rest, as in `sweeps.py`."""
    G, g = problem.delassus
    k = R.size
    kinds, still = np.full(k, FIXED, np.int64), np.zeros(k, dtype=bool)
    return G[np.ix_(R, R)], g[R], np.arange(k + 1), problem.limits[R], kinds, still, np.zeros(k)


# ----------------------------------------------------------------------------------------------------------------------
# Every method behind one contract; being in the list is being tested.


METHODS = {
    "exact": exact,
    "flowchart": flowchart,
    "lcp": lcp,
    "sweeps": sweeps,
    "switch": switch,
    "regularised": regularised,
}

__all__ = ["METHODS", "Method", "MethodForces", "exact", "flowchart", "lcp", "regularised", "sweeps", "switch"]

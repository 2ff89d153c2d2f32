"""Implicit steps and the constraint manifold: projection, lasting errors, singular configurations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.loops import compiled, inlined, invoke
from dalembert.simulate.limits import POOR_PIVOT
from dalembert.simulate.steppers.newton_loops import (
    PROJECTION,
    dense_factor,
    dense_solve,
    fill_dense,
    place,
    solve_step,
)
from dalembert.tableau.elimination.looped import INDICES, INDPTR, LoopedFactors, factor, part, substitute

# ----------------------------------------------------------------------------------------------------------------------
# A point put back on its constraints after a step, in the mass metric: one Newton step for q, then v.
#
#     [M  A^T] [dq]   [  0 ]                 [M  A^T] [dv]   [  0 ]
#     [A   0 ] [ .] = [-phi]  at (q, v)      [A   0 ] [ .] = [-psi]  at (q + dq, v)
#
# E. Eich, SIAM J. Numer. Anal. 30 (1993) 1467-1482. The matrix is eliminated by a plan of its own, in loops, so its
# size has no limit; where pivots fail, by dense elimination with exchanges.


class ProjectionWork(NamedTuple):
    """Memory of the projection; everything is empty where there is none."""

    plan: LoopedFactors
    entries: np.ndarray
    right: np.ndarray  # (0, -phi)
    rate_right: np.ndarray  # (0, -psi)
    step: np.ndarray
    dense: np.ndarray
    exchanges: np.ndarray
    free: np.ndarray  # (1,): how many coordinates move


@compiled
def project(work, state):
    """Move the point in `work` onto the constraints; where they are singular it stays."""
    p = work.projection
    free = p.free[0]
    for level in range(2):
        invoke(work.calls[PROJECTION, 0], work.calls[PROJECTION, 1], work.calls[PROJECTION, 2])
        right = p.right if level == 0 else p.rate_right
        if factor(p.plan.program, p.plan.work, p.entries)[0] >= POOR_PIVOT:
            substitute(p.plan.program, p.plan.work, p.entries, right, p.step)
        elif not _dense(p, right, state):
            return
        for i in range(free):
            work.x[level * free + i] += p.step[i]


@compiled
def _dense(p, right, state):
    """Solve by dense elimination; return success."""
    state[0].repairs += 1
    if p.dense.shape[0] == 0:
        return False
    indptr, indices = part(p.plan.program, INDPTR), part(p.plan.program, INDICES)
    for i in range(right.size):
        p.dense[i] = 0.0
        p.step[i] = right[i]
        for e in range(indptr[i], indptr[i + 1]):
            p.dense[i, indices[e]] = p.entries[e]
    if not dense_factor(p.dense, p.exchanges):
        return False
    dense_solve(p.dense, p.exchanges, p.step)
    return True


# ----------------------------------------------------------------------------------------------------------------------
# Lasting errors: velocities of the index-3 form, weighed in full along the constraints.
#
# Symbols: e = x - x_predicted; c leading coefficient; E = dF/dx'; J = c E + dF/dx; z the part of e that stays.
#
# Normal to the constraints velocities are differentiated positions: their errors are of one order less and do not last,
# and h e is tested. Along the constraints an error lasts, and the test of h e alone lets one of (tolerance / h) pass at
# every step. There e is tested in full:
#
#     J z = c E e,  of velocities alone:  c z_q = z_v,  A z_q = 0,  M z_v + A^T z_lam / c = M e_v + O(h),
#
# so z_v is e_v without its normal part, in the mass metric, by the factors at hand: the Newton steps from rates x' and
# x' + c e differ by z. L. Petzold, "Differential/algebraic equations are not ODE's", SIAM J. Sci. Stat. Comput. 3
# (1982) 367, filters e by J^-1 c E, too. Other orders' estimates are enlarged as that of the order in use.


@inlined
def propagated(work, state, option, x, correction, trial, floor, size, errors):
    """Return by how much errors are larger when what stays is weighed in full; enlarge `errors` by it.

    The step from x' alone, which takes its rounding with it, is a Newton step gained.
    """
    s = state[0]
    s.gain = 1.0
    if option.lasting.size == 0:
        return 1.0
    s.iterations += 1
    solve_step(work, state)
    for i in range(trial.size):
        trial[i] = work.step[i]
    for i in option.lasting:
        work.rates[i] += s.shift_factored * correction[i]
    solve_step(work, state)
    total = 0.0
    for i in option.lasting:
        work.rates[i] -= s.shift_factored * correction[i]
        stays = work.step[i] - trial[i]
        total += (stays / (option.rtol * abs(x[i]) + option.atol[i] + floor[i] / DECAY)) ** 2
    if size > 0.0 and np.isfinite(total):
        s.gain = np.sqrt(1.0 + total / option.tested_count / size**2)
    for k in range(errors.size):
        errors[k] *= s.gain
    _apply(work, state, trial, correction)
    return s.gain


@compiled
def _apply(work, state, step, correction):
    """Take a Newton step."""
    s = state[0]
    damping = 2.0 / (1.0 + s.shift / s.shift_factored)
    for i in range(step.size):
        correction[i] += damping * step[i]
        work.x[i] += damping * step[i]
        work.rates[i] += s.shift * damping * step[i]


# ----------------------------------------------------------------------------------------------------------------------
# Rounding near a singular configuration, and the way of a stepper past one.
#
# At a distance d from a configuration where A loses rank, rounding is seen d^-1 times in positions and d^-2 times in
# velocities: J^-1 e with |e| <= eps |J| |x|. An error test that asks for more never ends, and smaller steps only end
# nearer. So tolerances are widened there to what arithmetic gives; what is undetermined there is determined again
# behind it, by the same constraints. A point where almost nothing is determined is turned away once, and stepped
# across.


EPS = np.finfo(np.float64).eps
SAMPLES = 4
SUSPECT = 0.01
"""Rounding is estimated where eps / quality^2 exceeds this part of rtol: two pivots may lose as much as each."""

NEGLIGIBLE, TRUSTED = 1e-3, 0.3
"""Where rounding is below so many tolerances, it is estimated again when pivots are worse by this factor only."""

DROWNED = 100.0
"""Rounding, in tolerances, above which a point is turned away."""

DECAY = 0.5
"""The history remembers what was undetermined for some steps; tolerances narrow again by this factor a step."""


@inlined
def widen(work, state, option, predicted, predicted_rates, floor, scale):
    """Widen the weights at the point predicted; return what rounding does to tested unknowns, in tolerances."""
    s = state[0]
    size = 0.0
    suspect = s.quality < s.trusted and s.quality * s.quality * SUSPECT * option.rtol < EPS
    if suspect and s.steps > 0 and work.dense.shape[0] > 0:
        place((work.x, work.rates), predicted, predicted_rates)
        size = _undetermined(work, option, floor, scale)
        s.trusted = TRUSTED * s.quality if size < NEGLIGIBLE else np.inf
        s.widened += 1 if size > 1.0 else 0
    _raise_floor(floor, scale)
    return size


@compiled
def _raise_floor(floor, scale):
    """Put what is undetermined into the weights, and let it decay."""
    for i in range(floor.size):
        if floor[i] > 0.0:
            scale[i] = 1.0 / (1.0 / scale[i] + floor[i])
            floor[i] *= DECAY


@compiled
def _undetermined(work, option, floor, scale):
    """Raise `floor` to |J^-1 e|, e_i = +-eps (|J| |x|)_i for some signs; return its norm in tolerances."""
    n = work.x.size
    fill_dense(work)
    sizes = work.residual
    for i in range(n):
        sizes[i] = 0.0
        for j in range(n):
            sizes[i] += EPS * abs(work.dense[i, j] * work.x[j])
    if not dense_factor(work.dense, work.exchanges):
        return np.inf
    worst = 0.0
    for sample in range(SAMPLES):
        for i in range(n):
            work.step[i] = sizes[i] if (i >> sample) % 2 == 0 else -sizes[i]
        dense_solve(work.dense, work.exchanges, work.step)
        total = 0.0
        for i in range(n):
            size = abs(work.step[i])
            if option.tested[i]:
                total += (size * scale[i]) ** 2
            floor[i] = max(floor[i], size)
        worst = max(worst, np.sqrt(total / option.tested_count))
    return worst


@compiled
def turned_away(state, size):
    """Halve a step that would end where almost nothing is determined; only once near a time. Return whether it was."""
    s = state[0]
    if size < DROWNED or abs(s.t - s.t_avoided) <= 2.0 * abs(s.h):
        return False
    s.t_avoided = s.t
    return True


@compiled
def cross(state):
    """Lengthen a step that would end where one was turned away: it ends as far behind as it begins before.

    It is no longer than the one turned away, which the error test had allowed.
    """
    s = state[0]
    distance = s.t_avoided - s.t
    if distance * s.h > 0.0 and abs(s.h - distance) < 0.5 * abs(distance) <= 0.55 * abs(s.h_used):
        s.h = 2.0 * distance

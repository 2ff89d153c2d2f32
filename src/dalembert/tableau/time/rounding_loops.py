"""What rounding leaves undetermined near a singular configuration, and how a stepper gets past one.

At a distance d from a configuration where A loses rank, rounding is seen d^-1 times in positions and d^-2 times in
velocities: J^-1 e with |e| <= eps |J| |x|. An error test that asks for more never ends, and smaller steps only end
nearer. So tolerances are widened there to what arithmetic gives; what is undetermined there is determined again behind
it, by the same constraints. A point where almost nothing is determined is turned away once, and stepped across.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.dense_loops import dense_factor, dense_solve
from dalembert.tableau.time.newton_loops import fill_dense, inlined, place

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

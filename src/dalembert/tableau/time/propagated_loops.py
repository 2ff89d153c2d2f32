"""What stays of an error: velocities of the index-3 form, weighed in full along the constraints.

Symbols: e = x - x_predicted; c leading coefficient; E = dF/dx'; J = c E + dF/dx; z the part of e that stays.

Normal to the constraints velocities are differentiated positions: their errors are of one order less and do not last,
and h e is tested. Along the constraints an error lasts, and the test of h e alone lets one of (tolerance / h) pass at
every step. There e is tested in full:

    J z = c E e,  of velocities alone:  c z_q = z_v,  A z_q = 0,  M z_v + A^T z_lam / c = M e_v + O(h),

so z_v is e_v without its normal part, in the mass metric, by the factors at hand: the Newton steps from rates x' and
x' + c e differ by z. L. Petzold, "Differential/algebraic equations are not ODE's", SIAM J. Sci. Stat. Comput. 3 (1982)
367, filters e by J^-1 c E, too. Other orders' estimates are enlarged as that of the order in use.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.newton_loops import inlined, solve_step
from dalembert.tableau.time.rounding_loops import DECAY


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

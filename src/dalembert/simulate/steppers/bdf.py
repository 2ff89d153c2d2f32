"""Backward differentiation formulas of variable order and step, in one compiled loop."""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import compiled, inlined, steady
from dalembert.simulate.equations.signals import set_signals
from dalembert.simulate.events.event_loops import begin_events, of_differences, pass_events
from dalembert.simulate.interruptible import interrupted
from dalembert.simulate.limits import FIRST_STEP, LEAST_ERROR
from dalembert.simulate.steppers.manifold_loops import cross, project, propagated, turned_away, widen
from dalembert.simulate.steppers.newton_loops import (
    CONVERGED,
    DIVERGED,
    DONE,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    INTERRUPTED,
    NON_FINITE,
    PROJECTION,
    RUNNING,
    TOO_MANY_STEPS,
    UNKNOWN_RATE,
    correct,
    make_factors,
    place,
)

# ----------------------------------------------------------------------------------------------------------------------
# Parts of a step: coefficients and differences, prediction, norms, error estimates, choice of order and step size.
#
# Symbols stand above the loop below. Source: K. E. Brenan, S. L. Campbell, L. R. Petzold, "Numerical Solution of
# Initial-Value Problems in Differential-Algebraic Equations" (SIAM 1996), sec. 5.2.


EPS = np.finfo(np.float64).eps


@compiled
def coefficients(state, psi, alpha, beta, sigma, gamma, phi):
    """Prepare a step of size h and order k from the last point; return the constant of the error test."""
    s = state[0]
    k, h = s.order, s.h
    if h != s.h_used or k != s.order_used:
        s.same = 0
    s.same = min(s.same + 1, s.order_used + 2)
    if k + 1 >= s.same:
        beta[0] = alpha[0] = sigma[0] = 1.0
        gamma[0] = 0.0
        sum_ = h
        for i in range(1, k + 1):
            before = psi[i - 1]
            psi[i - 1] = sum_
            beta[i] = beta[i - 1] * psi[i - 1] / before
            sum_ = before + h
            alpha[i] = h / sum_
            sigma[i] = i * sigma[i - 1] * alpha[i]
            gamma[i] = gamma[i - 1] + alpha[i - 1] / h
        psi[k] = sum_
    leading, actual = 0.0, 0.0
    for i in range(k):
        leading -= 1.0 / (i + 1.0)
        actual -= alpha[i]
    if s.shift != -leading / h:
        s.shift, s.rate = -leading / h, UNKNOWN_RATE
    for j in range(s.same, k + 1):
        for i in range(phi.shape[1]):
            phi[j, i] *= beta[j]
    return max(abs(alpha[k] + leading - actual), alpha[k])


@compiled
def step_back(state, psi, beta, phi):
    """Undo what `coefficients` did to psi and phi."""
    s = state[0]
    for j in range(1, s.order + 1):
        psi[j - 1] = psi[j] - s.h
    for j in range(s.same, s.order + 1):
        for i in range(phi.shape[1]):
            phi[j, i] /= beta[j]


@compiled
def predict(k, gamma, phi, predicted, predicted_rates):
    """Extrapolate the polynomial through the last points."""
    n = phi.shape[1]
    for i in range(n):
        predicted[i], predicted_rates[i] = phi[0, i], 0.0
    for j in range(1, k + 1):
        for i in range(n):
            predicted[i] += phi[j, i]
            predicted_rates[i] += gamma[j] * phi[j, i]


@compiled
def weigh(x, option, h, T, scale):
    """Write min(1, h / T)^power / (rtol |x| + atol).

    Where weighed unknowns are tested, BDF takes T of the size of the horizon, so that results do not depend on the unit
    of time. Elsewhere these weights only end Newton's method, and T is one.
    """
    for i in range(x.size):
        scale[i] = 1.0 / (option.rtol * abs(x[i]) + option.atol[i])
    factor = min(1.0, abs(h) / (T if option.lasting.size else 1.0))
    for i in range(x.size):
        for _ in range(option.power[i]):
            scale[i] *= factor


@compiled
def norm(v, scale, tested, count):
    """Return the root mean square of tested unknowns, weighed."""
    total = 0.0
    for i in range(v.size):
        if tested[i]:
            total += (v[i] * scale[i]) ** 2
    return np.sqrt(total / count)


@compiled
def estimate(state, sigma, phi, correction, trial, scale, tested, count, errors):
    """Estimate errors of order k, k - 1, k - 2, and choose the order to be used next, k or k - 1."""
    s = state[0]
    k = s.order
    size = norm(correction, scale, tested, count)
    errors[0] = sigma[k] * size
    s.order_new = k
    if k > 1:
        for i in range(trial.size):
            trial[i] = phi[k, i] + correction[i]
        errors[1] = sigma[k - 1] * norm(trial, scale, tested, count)
        if k > 2:
            for i in range(trial.size):
                trial[i] += phi[k - 1, i]
            errors[2] = sigma[k - 2] * norm(trial, scale, tested, count)
            if max(k * errors[1], (k - 1) * errors[2]) <= (k + 1) * errors[0]:
                s.order_new = k - 1
        elif k * errors[1] <= 0.5 * (k + 1) * errors[0]:
            s.order_new = k - 1
    return size


@compiled
def advance_differences(state, phi, correction, most):
    """Make the point just found the newest of the history."""
    k = state[0].order_used
    n = correction.size
    for i in range(n):
        if k < most:
            phi[k + 1, i] = correction[i]
        phi[k, i] += correction[i]
    for j in range(k - 1, -1, -1):
        for i in range(n):
            phi[j, i] += phi[j + 1, i]


@compiled
def choose(state, phi, correction, trial, scale, tested, count, errors, most):
    """Choose order and step size after a step that was accepted."""
    s = state[0]
    k = s.order
    raised = k - s.order_used
    s.order_used, s.h_used = k, s.h
    # the first steps: order and step size grow until the order would fall
    if s.order_new == k - 1 or k == most:
        s.phase = 1
    if s.phase == 0:
        if s.steps > 1:
            s.order = k + 1
            s.h *= 2.0
        return
    # the order whose error is least: k - 1, k, or k + 1 from the next difference
    best = errors[0]
    if s.order_new == k - 1:
        s.order, best = k - 1, errors[1]
    elif k < most and k + 1 < s.same and raised != 1:
        for i in range(trial.size):
            trial[i] = correction[i] - phi[k + 1, i]
        above = s.gain * norm(trial, scale, tested, count)
        here, below = (k + 1) * errors[0], k * errors[1]
        if k == 1:
            if above < 0.5 * here:
                s.order, best = 2, above / (k + 2)
        elif below <= min(here, above):
            s.order, best = k - 1, errors[1]
        elif above < here:
            s.order, best = k + 1, above / (k + 2)
    # the step is doubled, kept, or reduced by at most one half
    ratio = (2.0 * best + LEAST_ERROR) ** (-1.0 / (s.order + 1))
    if ratio >= 2.0:
        s.h *= 2.0
    elif ratio <= 1.0:
        s.h *= max(0.5, min(0.9, ratio))


@compiled
def after_error(state, errors, failures):
    """Choose order and step size after a failed error test."""
    s = state[0]
    if failures == 1:
        error = errors[0] if s.order_new == s.order else errors[1]
        s.order = s.order_new
        factor = 0.9 * (2.0 * error + LEAST_ERROR) ** (-1.0 / (s.order + 1))
        s.h *= max(0.25, min(0.9, factor))
    else:
        s.order = s.order_new if failures == 2 else 1
        s.h *= 0.25


@compiled
def worst_unknown(correction, scale, tested):
    """Return the place of the largest weighed correction, or of the first that is not finite."""
    worst, place = -1.0, 0
    for i in range(correction.size):
        if not np.isfinite(correction[i]):
            return i
        size = abs(correction[i] * scale[i])
        if tested[i] and size > worst:
            worst, place = size, i
    return place


@compiled
def first_size(x, rates, state, option, T, scale):
    """Choose the first step size: a thousandth of the horizon, less where the solution moves quickly.

    With a time scale |x| / |x'|, an error h^2 |x| / (time scale)^2 of tolerance's size means h = sqrt(|x|) / |x'|.
    """
    s = state[0]
    span = abs(s.t_stop - s.t)
    h = min(FIRST_STEP * span, option.most_step)
    weigh(x, option, h, T, scale)
    speed = norm(rates, scale, option.tested, option.tested_count)
    size = norm(x, scale, option.tested, option.tested_count)
    if speed > 0.0:
        h = min(h, max(0.5, 0.1 * np.sqrt(size)) / speed)
    if option.first_step > 0.0:
        h = min(option.first_step, span)
    return h if s.t_stop > s.t else -h


@compiled
def limit(state, most):
    """Keep h below its largest, and from passing the stop."""
    s = state[0]
    if abs(s.h) > most:
        s.h = most if s.h > 0.0 else -most
    if (s.t + 1.0001 * s.h - s.t_stop) * s.h > 0.0:
        s.h = s.t_stop - s.t
    elif (s.t + 2.0 * s.h - s.t_stop) * s.h > 0.0:
        s.h = 0.5 * (s.t_stop - s.t)


@compiled
def keep(mesh, row, t, order, x, rates):
    """Write a row of the mesh: t, order, x, x'."""
    n = x.size
    mesh[row, 0], mesh[row, 1] = t, order
    for i in range(n):
        mesh[row, 2 + i] = x[i]
        mesh[row, 2 + n + i] = rates[i]


@compiled
def grown(array, length):
    """Return an array with room for `length` rows, old rows copied."""
    new = np.empty((length, array.shape[1]))
    new[: array.shape[0]] = array
    return new


# ----------------------------------------------------------------------------------------------------------------------
# Backward differentiation formulas of variable order and step, fixed leading coefficient, in one compiled loop.
#
# Symbols (Brenan, Campbell & Petzold 1996, sec. 5.2; Jackson & Sacks-Davis 1980): phi_j modified divided differences of
# the last points; psi_j = t_n+1 - t_n+1-j; alpha, beta, gamma, sigma coefficients of the formulas; k order; c leading
# coefficient alpha_s / h; e = x - x_predicted. Orders 1 to 6 (default at most 5). The error test sees `tested` unknowns
# only. Constants of step and order control are those published for DASSL.
#
# After a step of order k the differences describe the polynomial through the last k + 1 points of the mesh, so mesh,
# values and orders are all that dense output needs.


FIRST_RATE = 20.0
"""rho / (1 - rho) assumed for new factors: at least two iterations unless the first step is tiny."""

LONG = 10.0
"""T of the weights (h / T)^power, in horizons. It hardly matters: errors that last are tested without a weight."""

KEPT_PIVOT = 1e-2
"""Factors whose worst pivot lost more than this are not kept: near a singular configuration A turns within a step, and
what kept factors leave in its lost directions is more than the tolerance.
"""


@inlined
def attempt(work, state, option, tables, phi, psi, co, vectors, errors):
    """Try one step until it is accepted; return DONE or why the step size collapsed."""
    s = state[0]
    alpha, beta, sigma, gamma = co
    predicted, predicted_rates, correction, scale, trial, floor = vectors
    failures, divergences = 0, 0
    t_old = s.t
    if t_old + s.h == t_old:
        s.h_collapsed = s.h
        return FAILED_ERROR_TEST
    while True:
        # prediction by the polynomial through past points, and the weights of errors
        constant = coefficients(state, psi, alpha, beta, sigma, gamma, phi)
        s.t = t_old + s.h
        if abs(s.t - s.t_stop) <= 4.0 * EPS * (abs(s.t) + abs(s.h)):
            s.t = s.t_stop
        predict(s.order, gamma, phi, predicted, predicted_rates)
        weigh(phi[0], option, s.h, LONG * s.span, scale)
        work.environment[1] = s.shift
        place((work.x, work.rates), predicted, predicted_rates)  # where inputs that depend on the state are asked for
        set_signals(work.calls, work.environment, tables, s.t, s.t_low, s.t_high)
        # near a singular configuration tolerances widen; a step that would end where nothing is determined is halved
        if turned_away(state, widen(work, state, option, predicted, predicted_rates, floor, scale)):
            step_back(state, psi, beta, phi)
            s.t, s.h = t_old, 0.5 * s.h
            continue
        # correction by Newton's method; the error by its distance from the prediction
        outcome = _solve_stage(work, state, option, scale, correction, predicted, predicted_rates)
        if outcome == CONVERGED:
            size = estimate(state, sigma, phi, correction, trial, scale, option.tested, option.tested_count, errors)
            size *= propagated(work, state, option, phi[0], correction, trial, floor, size, errors)
            if constant * size <= 1.0:
                return DONE
            failures += 1
            s.error_failures += 1
            cause = FAILED_ERROR_TEST
        else:
            divergences += 1
            s.newton_failures += 1
            cause = FAILED_NON_FINITE if outcome == NON_FINITE else FAILED_CONVERGENCE
        # rejected: back to the last point, with a lower order or a shorter step
        s.worst = worst_unknown(correction, scale, option.tested)
        step_back(state, psi, beta, phi)
        s.t = t_old
        if outcome == CONVERGED:
            after_error(state, errors, failures)
        else:
            s.h *= 0.25
            s.fresh = 0
        if abs(s.h) <= option.least * abs(s.t) or failures + divergences > 60:
            s.h_collapsed = s.h
            return cause
        # the first step scales its only difference
        if s.steps == 0:
            psi[0] = s.h
            for i in range(phi.shape[1]):
                phi[1, i] *= s.h / s.h_first
            s.h_first = s.h


@inlined
def _solve_stage(work, state, option, scale, correction, predicted, predicted_rates):
    """Solve for the new point: with kept factors, new ones, relaxed ones, at last relaxed and dense ones."""
    s = state[0]
    ratio = s.shift / s.shift_factored if s.shift_factored != 0.0 else 0.0
    keep = s.fresh == 1 and s.quality >= KEPT_PIVOT and option.shift_range <= ratio <= 1.0 / option.shift_range
    outcome = DIVERGED
    for level in range(0 if keep else 1, 4):
        if level == 3 and work.dense.shape[0] == 0:
            break
        if level > 0:
            place((work.x, work.rates), predicted, predicted_rates)
            _relax(work.environment, option.relax[1 if level > 1 else 0])
            s.force_dense = 1 if level == 3 else 0
            s.relaxations += 1 if level == 2 else 0
            s.shift_factored, s.rate, s.fresh = s.shift, FIRST_RATE, 1 if level == 1 else 0
            if not make_factors(work, state):
                outcome = NON_FINITE
                continue
        outcome = correct(work, state, scale, correction, predicted, predicted_rates, option.share)
        if outcome == CONVERGED:
            break
    _relax(work.environment, option.relax[0])
    return outcome


@compiled
def _relax(environment, values):
    """Set the relaxation of constraints in J."""
    first = environment.size - values.size
    for k in range(values.size):
        environment[first + k] = values[k]


@steady
def march(work, state, option, tables, past, mesh, rows):
    """Step to the end or to trouble, until the mesh is full, or one step where events are wanted; return its rows."""
    s = state[0]
    phi, psi, co, vectors, errors = past
    n, top = work.x.size, option.most_order
    correction, scale, trial = vectors[2], vectors[3], vectors[4]
    while rows < mesh.shape[0]:
        if s.steps >= option.most_steps:
            s.status = TOO_MANY_STEPS
            break
        if interrupted(option.keyboard):
            s.status = INTERRUPTED
            break
        cross(state)
        outcome = attempt(work, state, option, tables, phi, psi, co, vectors, errors)
        if outcome != DONE:
            s.status = outcome
            break
        # onto the constraints; the correction keeps up with x
        if work.calls[PROJECTION, 0] != 0:
            for i in range(n):
                correction[i] -= work.x[i]
            project(work, state)
            for i in range(n):
                correction[i] += work.x[i]
        s.steps += 1
        s.order_counts[s.order] += 1
        # order and step of the next point, history and mesh
        choose(state, phi, correction, trial, scale, option.tested, option.tested_count, errors, top)
        advance_differences(state, phi, correction, top)
        keep(mesh, rows, s.t, s.order_used, work.x, work.rates)
        rows += 1
        if s.t == s.t_stop:
            s.status = DONE
            break
        limit(state, option.most_step)
        if work.event_values.size:
            break
    return rows


@compiled
def run(work, state, option, tables, mesh):
    """Integrate from (x, x') in `work` at s.t to s.t_stop; return the mesh: rows t, order, x, x'."""
    # memory: differences phi, step sums psi, coefficients, vectors
    s = state[0]
    n, top = work.x.size, option.most_order
    phi, psi = np.zeros((top + 2, n)), np.zeros(top + 2)
    co = (np.zeros(top + 2), np.zeros(top + 2), np.zeros(top + 2), np.zeros(top + 2))
    vectors = (np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.zeros(n))
    signs = work.event_signs
    point = (work.calls, work.x, work.rates, work.environment, work.event_values)
    # the first point, step and order
    keep(mesh, 0, s.t, 0, work.x, work.rates)
    rows = 1
    set_signals(work.calls, work.environment, tables, s.t, s.t_low, s.t_high)
    s.h = first_size(work.x, work.rates, state, option, LONG * s.span, vectors[3])
    limit(state, option.most_step)
    s.h_first, s.order, s.order_used, s.same, s.phase, s.h_used = s.h, 1, 0, 0, 0, 0.0
    s.fresh, s.steps, s.shift_factored, s.t_avoided, s.trusted = 0, 0, 0.0, np.nan, np.inf
    phi[0], phi[1], psi[0] = work.x, work.rates * s.h, s.h
    past = (phi, psi, co, vectors, np.zeros(3))
    s.status = RUNNING
    events, _ = begin_events(point, tables, state, signs, option)
    while s.status == RUNNING:
        # march until the mesh is full, or one step where events are watched
        if rows == mesh.shape[0]:
            mesh = grown(mesh, 2 * rows)
        before = rows
        rows = march(work, state, option, tables, past, mesh, rows)
        # zeros of event functions inside the last step; a terminal one ends the mesh there
        if signs.size and rows > before:
            step = mesh[rows - 1, 0] - mesh[rows - 2, 0]
            history = of_differences(phi, psi, s.order_used)
            events, ended = pass_events(point, tables, history, state, step, signs, option, events)
            if ended and s.t == mesh[rows - 2, 0]:
                rows -= 1  # at the start
            elif ended:
                keep(mesh, rows - 1, s.t, s.order_used, work.x, work.rates)
    return mesh[:rows], events

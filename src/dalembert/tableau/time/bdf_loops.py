"""Backward differentiation formulas of variable order and step, fixed leading coefficient, in one compiled loop.

Symbols (Brenan, Campbell & Petzold 1996, sec. 5.2; Jackson & Sacks-Davis 1980): phi_j modified divided differences of
the last points; psi_j = t_n+1 - t_n+1-j; alpha, beta, gamma, sigma coefficients of the formulas; k order; c leading
coefficient alpha_s / h; e = x - x_predicted. Orders 1 to 6 (default at most 5). The error test sees `tested` unknowns
only. Constants of step and order control are those published for DASSL.

After a step of order k the differences describe the polynomial through the last k + 1 points of the mesh, so mesh,
values and orders are all that dense output needs.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.event_loops import evaluate, interpolate, roots
from dalembert.tableau.time.invoke_loops import invoke
from dalembert.tableau.time.newton_loops import (
    CONVERGED,
    DIVERGED,
    NON_FINITE,
    PROJECTION,
    UNKNOWN_RATE,
    correct,
    make_factors,
)
from dalembert.tableau.time.signal_loops import set_signals
from dalembert.tableau.time.state import (
    DONE,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    STOPPED,
    TOO_MANY_STEPS,
)

EPS = np.finfo(np.float64).eps
FIRST_RATE = 20.0
"""rho / (1 - rho) assumed for new factors: at least two iterations unless the first step is tiny."""


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
def weigh(x, rtol, atol, power, h, scale):
    """Write h^power / (rtol |x| + atol)."""
    for i in range(x.size):
        value = 1.0 / (rtol * abs(x[i]) + atol[i])
        for _ in range(power[i]):
            value *= abs(h)
        scale[i] = value


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
    if s.order_new == k - 1 or k == most:
        s.phase = 1
    if s.phase == 0:
        if s.steps > 1:
            s.order = k + 1
            s.h *= 2.0
        return
    best = errors[0]
    if s.order_new == k - 1:
        s.order, best = k - 1, errors[1]
    elif k < most and k + 1 < s.same and raised != 1:
        for i in range(trial.size):
            trial[i] = correction[i] - phi[k + 1, i]
        above = norm(trial, scale, tested, count)
        here, below = (k + 1) * errors[0], k * errors[1]
        if k == 1:
            if above < 0.5 * here:
                s.order, best = 2, above / (k + 2)
        elif below <= min(here, above):
            s.order, best = k - 1, errors[1]
        elif above < here:
            s.order, best = k + 1, above / (k + 2)
    ratio = (2.0 * best + 1e-4) ** (-1.0 / (s.order + 1))
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
        factor = 0.9 * (2.0 * error + 1e-4) ** (-1.0 / (s.order + 1))
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
def attempt(work, state, option, tables, phi, psi, co, vectors, errors):
    """Try one step until it is accepted; return DONE or why the step size collapsed."""
    s = state[0]
    alpha, beta, sigma, gamma = co
    predicted, predicted_rates, correction, scale, trial = vectors
    failures, divergences = 0, 0
    t_old = s.t
    while True:
        constant = coefficients(state, psi, alpha, beta, sigma, gamma, phi)
        s.t = t_old + s.h
        if abs(s.t - s.t_stop) <= 4.0 * EPS * (abs(s.t) + abs(s.h)):
            s.t = s.t_stop
        predict(s.order, gamma, phi, predicted, predicted_rates)
        weigh(phi[0], option.rtol, option.atol, option.power, s.h, scale)
        work.environment[1] = s.shift
        set_signals(work.calls, work.environment, tables, s.t, s.t_begin, s.t_stop)
        outcome = _solve_stage(work, state, option, scale, correction, predicted, predicted_rates)
        if outcome == CONVERGED:
            size = estimate(state, sigma, phi, correction, trial, scale, option.tested, option.tested_count, errors)
            if constant * size <= 1.0:
                return DONE
            failures += 1
            s.error_failures += 1
            cause = FAILED_ERROR_TEST
        else:
            divergences += 1
            s.newton_failures += 1
            cause = FAILED_NON_FINITE if outcome == NON_FINITE else FAILED_CONVERGENCE
        s.worst = worst_unknown(correction, scale, option.tested)
        step_back(state, psi, beta, phi)
        s.t = t_old
        if outcome == CONVERGED:
            after_error(state, errors, failures)
        else:
            s.h *= 0.25
            s.fresh = 0
        if abs(s.h) <= option.least or failures + divergences > 60:
            s.h_collapsed = s.h
            return cause
        if s.steps == 0:
            psi[0] = s.h
            phi[1] *= s.h / s.h_first
            s.h_first = s.h


@compiled
def _solve_stage(work, state, option, scale, correction, predicted, predicted_rates):
    """Solve for the new point: with kept factors, new ones, relaxed ones, at last relaxed and dense ones."""
    s = state[0]
    ratio = s.shift / s.shift_factored if s.shift_factored != 0.0 else 0.0
    keep = s.fresh == 1 and option.shift_range <= ratio <= 1.0 / option.shift_range
    outcome = DIVERGED
    for level in range(0 if keep else 1, 4):
        if level == 3 and work.dense.shape[0] == 0:
            break
        if level > 0:
            work.x[:], work.rates[:] = predicted, predicted_rates
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


@compiled
def first_size(x, rates, state, option, scale):
    """Choose the first step size: a thousandth of the horizon, less where the solution moves quickly.

    With a time scale |x| / |x'|, an error h^2 |x| / (time scale)^2 of tolerance's size means h = sqrt(|x|) / |x'|.
    """
    s = state[0]
    span = abs(s.t_stop - s.t)
    h = min(1e-3 * span, option.most_step)
    weigh(x, option.rtol, option.atol, option.power, h, scale)
    speed = norm(rates, scale, option.tested, option.tested_count)
    size = norm(x, scale, option.tested, option.tested_count)
    if speed > 0.0:
        h = min(h, max(0.5, 0.1 * np.sqrt(size)) / speed)
    if option.first_step > 0.0:
        h = min(option.first_step, span)
    return h if s.t_stop > s.t else -h


@compiled
def limit(state, option):
    """Keep h below its largest, and from passing the stop."""
    s = state[0]
    if abs(s.h) > option.most_step:
        s.h = option.most_step if s.h > 0.0 else -option.most_step
    if (s.t + 1.0001 * s.h - s.t_stop) * s.h > 0.0:
        s.h = s.t_stop - s.t
    elif (s.t + 2.0 * s.h - s.t_stop) * s.h > 0.0:
        s.h = 0.5 * (s.t_stop - s.t)


@compiled
def grown(array, length):
    """Return an array with room for `length` rows, old rows copied."""
    new = np.empty((length, array.shape[1]))
    new[: array.shape[0]] = array
    return new


@compiled
def until_terminal(found, terminal):
    """Count down the terminal events; return how many events count, negative where one ends the integration.

    Events at the same time as the one that ends it count as well.
    """
    ended = False
    for k in range(found.shape[0]):
        if ended and abs(found[k, 1] - found[k - 1, 1]) > 8.0 * EPS * abs(found[k, 1]):
            return -k
        e = int(found[k, 0])
        terminal[e] -= 1
        ended = ended or terminal[e] == 0
    return -found.shape[0] if ended else found.shape[0]


@compiled
def run(work, state, option, tables, mesh):
    """Integrate from (x, x') in `work` at s.t to s.t_stop; return the mesh: rows t, order, x, x'."""
    s = state[0]
    n, top = work.x.size, option.most_order
    phi, psi = np.zeros((top + 2, n)), np.zeros(top + 2)
    co = (np.zeros(top + 2), np.zeros(top + 2), np.zeros(top + 2), np.zeros(top + 2))
    vectors = (np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n))
    errors = np.zeros(3)
    signs = np.zeros(work.event_values.size)
    events = np.empty((0, n + 2))
    point = (work.calls, work.x, work.rates, work.environment, work.event_values)
    rows = 1
    mesh[0, 0], mesh[0, 1], mesh[0, 2 : n + 2], mesh[0, n + 2 :] = s.t, 0.0, work.x, work.rates
    s.t_begin = s.t
    set_signals(work.calls, work.environment, tables, s.t, s.t, s.t_stop)
    s.h = first_size(work.x, work.rates, state, option, vectors[3])
    limit(state, option)
    s.h_first, s.order, s.order_used, s.same, s.phase, s.h_used = s.h, 1, 0, 0, 0, 0.0
    s.fresh, s.steps, s.shift_factored = 0, 0, 0.0
    phi[0], phi[1], psi[0] = work.x, work.rates * s.h, s.h
    if signs.size:
        evaluate(work.calls, work.environment, tables, s.t, s.t, s.t_stop)
        signs[:] = work.event_values
    while True:
        if s.steps >= option.most_steps:
            s.status = TOO_MANY_STEPS
            break
        outcome = attempt(work, state, option, tables, phi, psi, co, vectors, errors)
        if outcome != DONE:
            s.status = outcome
            break
        if work.calls[PROJECTION, 0] != 0:
            invoke(work.calls[PROJECTION, 0], work.calls[PROJECTION, 1], work.calls[PROJECTION, 2])
            for i in range(n):
                vectors[2][i] += work.projected[i] - work.x[i]
                work.x[i] = work.projected[i]
        s.steps += 1
        s.order_counts[s.order] += 1
        choose(state, phi, vectors[2], vectors[4], vectors[3], option.tested, option.tested_count, errors, top)
        advance_differences(state, phi, vectors[2], top)
        if rows == mesh.shape[0]:
            mesh = grown(mesh, 2 * rows)
        mesh[rows, 0], mesh[rows, 1], mesh[rows, 2 : n + 2], mesh[rows, n + 2 :] = s.t, s.order_used, work.x, work.rates
        rows += 1
        if signs.size:
            step = mesh[rows - 1, 0] - mesh[rows - 2, 0]
            found = roots(
                point, tables, phi, psi, s.order_used, s.t, step, (s.t_begin, s.t_stop), signs, option.directions
            )
            used = until_terminal(found, option.terminal)
            events = np.concatenate((events, found[: abs(used)]))
            if used < 0:
                s.status = STOPPED
                interpolate(phi, psi, s.order_used, found[-used - 1, 1] - s.t, work.x, work.rates)
                s.t = found[-used - 1, 1]
                mesh[rows - 1, 0], mesh[rows - 1, 2 : n + 2], mesh[rows - 1, n + 2 :] = s.t, work.x, work.rates
                break
        if s.t == s.t_stop:
            s.status = DONE
            break
        limit(state, option)
    return mesh[:rows], events

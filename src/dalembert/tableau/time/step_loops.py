"""Parts of a step: coefficients and differences, prediction, norms, error estimates, choice of order and step size.

Symbols as in `bdf_loops.py`. Source: K. E. Brenan, S. L. Campbell, L. R. Petzold, "Numerical Solution of Initial-Value
Problems in Differential-Algebraic Equations" (SIAM 1996), sec. 5.2.
"""

from __future__ import annotations

import numpy as np

from dalembert.tableau.graph_loops import compiled
from dalembert.tableau.time.newton_loops import UNKNOWN_RATE

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
        above = s.gain * norm(trial, scale, tested, count)
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
def first_size(x, rates, state, option, T, scale):
    """Choose the first step size: a thousandth of the horizon, less where the solution moves quickly.

    With a time scale |x| / |x'|, an error h^2 |x| / (time scale)^2 of tolerance's size means h = sqrt(|x|) / |x'|.
    """
    s = state[0]
    span = abs(s.t_stop - s.t)
    h = min(1e-3 * span, option.most_step)
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

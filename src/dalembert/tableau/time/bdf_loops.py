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
from dalembert.tableau.time.event_loops import begin_events, of_differences, pass_events
from dalembert.tableau.time.interruptible import interrupted
from dalembert.tableau.time.newton_loops import (
    CONVERGED,
    DIVERGED,
    NON_FINITE,
    PROJECTION,
    correct,
    inlined,
    make_factors,
    place,
    steady,
)
from dalembert.tableau.time.projection_loops import project
from dalembert.tableau.time.propagated_loops import propagated
from dalembert.tableau.time.rounding_loops import cross, turned_away, widen
from dalembert.tableau.time.signal_loops import set_signals
from dalembert.tableau.time.state import (
    DONE,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    INTERRUPTED,
    RUNNING,
    TOO_MANY_STEPS,
)
from dalembert.tableau.time.step_loops import (
    EPS,
    advance_differences,
    after_error,
    choose,
    coefficients,
    estimate,
    first_size,
    grown,
    keep,
    limit,
    predict,
    step_back,
    weigh,
    worst_unknown,
)

FIRST_RATE = 20.0
"""rho / (1 - rho) assumed for new factors: at least two iterations unless the first step is tiny."""

LONG = 10.0
"""T of the weights (h / T)^power, in horizons. It hardly matters: what lasts is tested in full."""

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
        constant = coefficients(state, psi, alpha, beta, sigma, gamma, phi)
        s.t = t_old + s.h
        if abs(s.t - s.t_stop) <= 4.0 * EPS * (abs(s.t) + abs(s.h)):
            s.t = s.t_stop
        predict(s.order, gamma, phi, predicted, predicted_rates)
        weigh(phi[0], option, s.h, LONG * s.span, scale)
        work.environment[1] = s.shift
        place((work.x, work.rates), predicted, predicted_rates)  # where inputs that depend on the state are asked for
        set_signals(work.calls, work.environment, tables, s.t, s.t_low, s.t_high)
        if turned_away(state, widen(work, state, option, predicted, predicted_rates, floor, scale)):
            step_back(state, psi, beta, phi)
            s.t, s.h = t_old, 0.5 * s.h
            continue
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
        if work.calls[PROJECTION, 0] != 0:
            for i in range(n):
                correction[i] -= work.x[i]
            project(work, state)
            for i in range(n):
                correction[i] += work.x[i]
        s.steps += 1
        s.order_counts[s.order] += 1
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
    s = state[0]
    n, top = work.x.size, option.most_order
    phi, psi = np.zeros((top + 2, n)), np.zeros(top + 2)
    co = (np.zeros(top + 2), np.zeros(top + 2), np.zeros(top + 2), np.zeros(top + 2))
    vectors = (np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.zeros(n))
    signs = work.event_signs
    point = (work.calls, work.x, work.rates, work.environment, work.event_values)
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
        if rows == mesh.shape[0]:
            mesh = grown(mesh, 2 * rows)
        before = rows
        rows = march(work, state, option, tables, past, mesh, rows)
        if signs.size and rows > before:
            step = mesh[rows - 1, 0] - mesh[rows - 2, 0]
            history = of_differences(phi, psi, s.order_used)
            events, ended = pass_events(point, tables, history, state, step, signs, option, events)
            if ended and s.t == mesh[rows - 2, 0]:
                rows -= 1  # at the start
            elif ended:
                keep(mesh, rows - 1, s.t, s.order_used, work.x, work.rates)
    return mesh[:rows], events

"""Radau IIA of order 5 with variable step, in one compiled loop."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.kernel.loops import compiled, invoke
from dalembert.simulate.equations.compiled import (
    Compiled,
    ImplicitWork,
    bind,
    by_rows,
    kernel_of,
)
from dalembert.simulate.equations.signals import set_signals
from dalembert.simulate.events.event_loops import begin_events, interpolate, pass_events
from dalembert.simulate.interruptible import interrupted
from dalembert.simulate.limits import FIRST_CORRECTION, LEAST_RADAU_ERROR, POOR_PIVOT
from dalembert.simulate.steppers.bdf import first_size, grown, limit, norm, weigh, worst_unknown
from dalembert.simulate.steppers.interpolation import hermite
from dalembert.simulate.steppers.manifold_loops import project
from dalembert.simulate.steppers.newton_loops import (
    DONE,
    FACTOR,
    FAILED_CONVERGENCE,
    FAILED_ERROR_TEST,
    FAILED_NON_FINITE,
    INTERRUPTED,
    PROJECTION,
    RESIDUAL,
    TOO_MANY_STEPS,
)
from dalembert.tableau.elimination.straight import Complex, factor, solve
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# Radau IIA of order 5: nodes, inverse of the Runge-Kutta matrix, and its real form.
#
# A^-1 = T diag(gamma, [[a, -b], [b, a]]) T^-1 splits the stage equations into one real system with the leading
# coefficient gamma / h and one complex with (a + i b) / h. Found from the nodes here, not typed. Source: E. Hairer, G.
# Wanner, "Solving Ordinary Differential Equations II", secs. IV.5 and IV.8.


class Radau(NamedTuple):
    """Coefficients; E weighs the stages in the error estimate."""

    c: Array
    W: Array
    T: Array
    T_inverse: Array
    gamma: float
    a: float
    b: float
    E: Array


@cache
def radau() -> Radau:
    """Return the coefficients."""
    root = np.sqrt(6.0)
    c = np.array([(4 - root) / 10, (4 + root) / 10, 1.0])
    powers = c[:, None] ** np.arange(3)
    A = (powers * c[:, None] / np.arange(1, 4)) @ np.linalg.inv(powers)
    W = np.linalg.inv(A)
    eigen: Any = np.linalg.eig(W)
    values, vectors = eigen
    real, upper = int(np.argmin(np.abs(values.imag))), int(np.argmax(values.imag))
    gamma, a, b = values[real].real, values[upper].real, values[upper].imag
    v = vectors[:, upper]
    # W (Re v) = a Re v - b Im v, W (Im v) = b Re v + a Im v
    T = np.stack([vectors[:, real].real, v.real, -v.imag], axis=1)
    E = np.array([-13 - 7 * root, -13 + 7 * root, -1.0]) / 3
    return Radau(c, W, T, np.linalg.inv(T), float(gamma), float(a), float(b), E)


# ----------------------------------------------------------------------------------------------------------------------
# Radau IIA of order 5 with variable step on F(t, x, x') = 0, in one compiled loop: the second production stepper.
#
# Symbols: z_i = X_i - x_n stages; X'_i = (1/h) sum_j W_ij z_j; w = T^-1 z; gamma, a + i b eigenvalues of W = A^-1.
# Newton's method solves one real system with c = gamma / h and one complex with (a + i b) / h, factors kept while the
# step stays. Error: -J^-1 F(t_n, x_n, -E z / h), of order 3 (F linear in x'), tested unknowns only, an unknown of index
# 2 weighed by h, of index 3 by h^2. E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", sec. IV.8; step
# size by K. Gustafsson's predictive control.
#
# Where algebraic equations g depend on time, as rows of drives do, they fix the stages whatever the step is, and the
# estimate above sees nothing. The polynomial between the ends of steps then is tested against these equations alone:
# -J^-1 g(t, x(t)) at two times inside the step. Without drives the free motion bounds steps, whose error is estimated
# above.


EPS = np.finfo(np.float64).eps
SOLVE, COMPLEX_FACTOR, COMPLEX_SOLVE = range(3)
MOST_ITERATIONS = 7
FIRST_LIMIT, LAST_LIMIT = 2.0, 0.9
"""Rates that end an iteration. The second step may be as large as the first: forces follow motions one step later."""

STAGE_SHARE = 0.03
"""Stages are solved more exactly than a multistep corrector: what they leave stands in the next error estimate."""

SAFETY = 0.9
SMALLEST, LARGEST = 0.2, 8.0
KEEP_RATE, KEEP_RATIO = 1e-2, 1.2
"""Step and factors are kept where Newton's method converged this fast and the step would grow by no more than this."""

INSIDE = (0.4, 0.87)
"""Parts of a step where driven rows are tested: in the middle between nodes, where collocation leaves most."""

SHARE_OF_ORDER = 2.0 / 3.0
"""Power that makes an error of order 6, as Hermite's polynomial through three points has, one of order 4."""


@compiled
def _factor(work, extra, radau, h):
    """Factor the real and the complex system at the point in `work`; return success."""
    work.environment[1] = radau.gamma / h
    invoke(work.calls[FACTOR, 0], work.calls[FACTOR, 1], work.calls[FACTOR, 2])
    extra.shift[0], extra.shift[1] = radau.a / h, radau.b / h
    calls = extra.calls
    invoke(calls[COMPLEX_FACTOR, 0], calls[COMPLEX_FACTOR, 1], calls[COMPLEX_FACTOR, 2])
    return work.quality[0] >= POOR_PIVOT and extra.complex_quality[0] >= POOR_PIVOT


@compiled
def _stages(work, extra, state, radau, option, tables, x, z, scale, share):
    """Newton's method on the stages; return 0 converged, 1 not, 2 not finite."""
    s = state[0]
    n, h, t = x.size, s.h, s.t
    calls = extra.calls
    F, last, rate = np.empty((3, n)), 0.0, 0.0
    for iteration in range(MOST_ITERATIONS):
        # residuals of the three stages, x' = W z / h
        for i in range(3):
            at = t + radau.c[i] * h
            for k in range(n):
                work.x[k] = x[k] + z[i, k]
                work.rates[k] = (radau.W[i, 0] * z[0, k] + radau.W[i, 1] * z[1, k] + radau.W[i, 2] * z[2, k]) / h
            set_signals(work.calls, work.environment, tables, at, s.t_low, s.t_high)
            invoke(work.calls[RESIDUAL, 0], work.calls[RESIDUAL, 1], work.calls[RESIDUAL, 2])
            F[i] = work.residual
        s.evaluations += 3
        s.iterations += 1
        # in the basis where the Runge-Kutta matrix is a real number and a complex one: two systems of size n
        V = radau.T_inverse
        for k in range(n):
            extra.right[k] = -(V[0, 0] * F[0, k] + V[0, 1] * F[1, k] + V[0, 2] * F[2, k])
            extra.complex_right[k] = -(V[1, 0] * F[0, k] + V[1, 1] * F[1, k] + V[1, 2] * F[2, k])
            extra.complex_right[n + k] = -(V[2, 0] * F[0, k] + V[2, 1] * F[1, k] + V[2, 2] * F[2, k])
        invoke(calls[SOLVE, 0], calls[SOLVE, 1], calls[SOLVE, 2])
        invoke(calls[COMPLEX_SOLVE, 0], calls[COMPLEX_SOLVE, 1], calls[COMPLEX_SOLVE, 2])
        # back to the stages, and the norm of their change
        total = 0.0
        for k in range(n):
            a, b, c = extra.solution[k], extra.complex_solution[k], extra.complex_solution[n + k]
            for i in range(3):
                change = radau.T[i, 0] * a + radau.T[i, 1] * b + radau.T[i, 2] * c
                z[i, k] += change
                total += (change * scale[k]) ** 2
        size = np.sqrt(total / (3 * n))
        if not np.isfinite(size):
            return 2
        # rate of convergence; the error left is rate / (1 - rate) times the change
        if iteration > 0:
            s.rate = rate = size / last
            if size <= 0.01 * share:
                return 0
            if rate > FIRST_LIMIT or (iteration > 1 and rate > LAST_LIMIT):
                return 1
            if rate < 1.0 and rate / (1.0 - rate) * size <= share:
                return 0
        elif size <= FIRST_CORRECTION * share:
            return 0
        last = size
    return 1


@compiled
def _error(work, extra, state, radau, x, z, error):
    """Replace e by -J^-1 F(t_n, x_n + e, -E z / h): from e = 0, and once more where that is too large."""
    h = state[0].h
    for k in range(x.size):
        work.x[k] = x[k] + error[k]
        work.rates[k] = -(radau.E[0] * z[0, k] + radau.E[1] * z[1, k] + radau.E[2] * z[2, k]) / h
    invoke(work.calls[RESIDUAL, 0], work.calls[RESIDUAL, 1], work.calls[RESIDUAL, 2])
    for k in range(x.size):
        extra.right[k] = -work.residual[k]
    calls = extra.calls
    invoke(calls[SOLVE, 0], calls[SOLVE, 1], calls[SOLVE, 2])
    error[:] = extra.solution


@compiled
def _write_end(radau, x, z, t, h, row):
    """Write the end of a step to a row of the mesh: the last stage, its rate that of the collocation polynomial."""
    n, W = x.size, radau.W
    row[0], row[1] = t, 5.0
    for k in range(n):
        row[2 + k] = x[k] + z[2, k]
        row[2 + n + k] = (W[2, 0] * z[0, k] + W[2, 1] * z[1, k] + W[2, 2] * z[2, k]) / h


@compiled
def _error_inside(work, extra, state, option, tables, mesh, rows, scale):
    """Return by how much driven rows are missed between the ends of the step to mesh[rows], over the tolerance."""
    s = state[0]
    n, worst, calls = work.x.size, 0.0, extra.calls
    past = hermite(mesh[:, 0], mesh[:, 2 : n + 2], mesh[:, n + 2 :], 0, rows)
    for part in INSIDE:
        set_signals(work.calls, work.environment, tables, s.t + part * s.h, s.t_low, s.t_high)
        interpolate(past, (part - 1.0) * s.h, work.x, work.rates)
        invoke(work.calls[RESIDUAL, 0], work.calls[RESIDUAL, 1], work.calls[RESIDUAL, 2])
        s.evaluations += 1
        for k in range(n):
            extra.right[k] = -work.residual[k] if extra.driven[k] else 0.0
        invoke(calls[SOLVE, 0], calls[SOLVE, 1], calls[SOLVE, 2])
        size = norm(extra.solution, scale, option.tested, option.tested_count)
        if not np.isfinite(size):
            return np.inf
        worst = max(worst, size)
    return worst**SHARE_OF_ORDER


@compiled
def _attempt(work, extra, state, radau, option, tables, x, rates, z, scale, error, history, mesh, rows):
    """Try one step until it is accepted; return DONE or why the step size collapsed."""
    s = state[0]
    if s.t + s.h == s.t:
        s.h_collapsed = s.h
        return FAILED_ERROR_TEST
    while True:
        # factors of the real and the complex system, for this step size
        weigh(x, option, s.h, 1.0, scale)
        if s.fresh == 0 or s.h != s.h_factored:
            work.x[:], work.rates[:] = x, rates
            set_signals(work.calls, work.environment, tables, s.t, s.t_low, s.t_high)
            s.factorizations += 1
            s.fresh, s.h_factored = 1, s.h
            sound = _factor(work, extra, radau, s.h)
        else:
            sound = True
        # the three stages by Newton's method
        before = s.iterations
        outcome = (
            _stages(work, extra, state, radau, option, tables, x, z, scale, STAGE_SHARE * option.share) if sound else 2
        )
        if outcome == 0:
            work.x[:] = x
            set_signals(work.calls, work.environment, tables, s.t, s.t_low, s.t_high)
            # the embedded error, filtered once more where it is too large (Hairer & Wanner, IV.8)
            error[:] = 0.0
            size = 1.0
            for _ in range(2):
                if size >= 1.0:
                    _error(work, extra, state, radau, x, z, error)
                    size = max(norm(error, scale, option.tested, option.tested_count), LEAST_RADAU_ERROR)
            # what the ends of steps do not show
            if extra.is_driven and size < 1.0:
                _write_end(radau, x, z, s.t + s.h, s.h, mesh[rows])
                size = max(size, _error_inside(work, extra, state, option, tables, mesh, rows, scale))
            # the next step by the error, and by how it has changed
            safety = SAFETY * (2 * MOST_ITERATIONS + 1) / (2 * MOST_ITERATIONS + s.iterations - before)
            factor = safety * size**-0.25
            if size < 1.0:
                if history[0] > 0.0:  # Gustafsson
                    factor = min(factor, safety * s.h / history[0] * (history[1] / size) ** 0.25 * size**-0.25)
                history[0], history[1] = s.h, max(size, 1e-2)
                history[2] = min(LARGEST, max(SMALLEST, factor))
                return DONE
            s.error_failures += 1
            cause = FAILED_ERROR_TEST
            factor = max(SMALLEST, min(0.9, factor))
        else:
            s.newton_failures += 1
            cause = FAILED_NON_FINITE if outcome == 2 else FAILED_CONVERGENCE
            factor = 0.25
        # rejected: a shorter step, stages from zero
        s.worst = worst_unknown(error, scale, option.tested)
        s.h *= factor
        z[:] = 0.0
        if abs(s.h) <= option.least * abs(s.t):
            s.h_collapsed = s.h
            return cause


@compiled
def _extrapolate(radau, x, z, ratio, start):
    """Start the next stages from the collocation polynomial of this step, continued by `ratio` of its size."""
    c = radau.c
    for i in range(3):
        u = 1.0 + radau.c[i] * ratio
        l1 = u * (u - c[1]) * (u - c[2]) / (c[0] * (c[0] - c[1]) * (c[0] - c[2]))
        l2 = u * (u - c[0]) * (u - c[2]) / (c[1] * (c[1] - c[0]) * (c[1] - c[2]))
        l3 = u * (u - c[0]) * (u - c[1]) / (c[2] * (c[2] - c[0]) * (c[2] - c[1]))
        for k in range(x.size):  # values relative to x_n; the next step counts from x_n + z_3
            start[i, k] = l1 * z[0, k] + l2 * z[1, k] + l3 * z[2, k] - z[2, k]


@compiled
def run_radau(work, extra, state, option, tables, mesh, radau):
    """Integrate from (x, x') in `work` at s.t to s.t_stop; return the mesh (rows t, order, x, x') and events."""
    # memory: stages z, their extrapolation, weights, error; the first point and its events
    s = state[0]
    n = work.x.size
    x, rates = work.x.copy(), work.rates.copy()
    z, start, scale, error, history = np.zeros((3, n)), np.zeros((3, n)), np.empty(n), np.zeros(n), np.zeros(3)
    mesh[0, 0], mesh[0, 1], mesh[0, 2 : n + 2], mesh[0, n + 2 :] = s.t, 0.0, x, rates
    rows = 1
    signs = work.event_signs
    point = (work.calls, work.x, work.rates, work.environment, work.event_values)
    events, ended = begin_events(point, tables, state, signs, option)
    if ended:
        return mesh[:rows], events
    # the first step
    s.h = first_size(x, rates, state, option, 1.0, scale)
    s.fresh = 0
    limit(state, option.most_step)
    while True:
        if s.steps >= option.most_steps:
            s.status = TOO_MANY_STEPS
            break
        if interrupted(option.keyboard):
            s.status = INTERRUPTED
            break
        # one step, accepted or given up
        if rows == mesh.shape[0]:
            mesh = grown(mesh, 2 * rows)
        outcome = _attempt(work, extra, state, radau, option, tables, x, rates, z, scale, error, history, mesh, rows)
        if outcome != DONE:
            s.status = outcome
            break
        s.steps += 1
        s.order_counts[5] += 1
        h = s.h_used = s.h
        s.t = s.t_stop if abs(s.t + h - s.t_stop) <= 4.0 * EPS * (abs(s.t) + abs(h)) else s.t + h
        _write_end(radau, x, z, s.t, h, mesh[rows])
        x[:], rates[:] = mesh[rows, 2 : n + 2], mesh[rows, n + 2 :]
        work.x[:], work.rates[:] = x, rates
        if work.calls[PROJECTION, 0] != 0:
            set_signals(work.calls, work.environment, tables, s.t, s.t_low, s.t_high)
            project(work, state)
            x[:] = work.x
            mesh[rows, 2 : n + 2] = x
        rows += 1
        # events on the polynomial through the last points
        if signs.size:
            past = hermite(mesh[:, 0], mesh[:, 2 : n + 2], mesh[:, n + 2 :], 0, rows - 1)
            events, ended = pass_events(point, tables, past, state, h, signs, option, events)
            if ended and s.t == mesh[rows - 2, 0]:
                rows -= 1  # at the start
                break
            if ended:
                mesh[rows - 1, 0], mesh[rows - 1, 2 : n + 2], mesh[rows - 1, n + 2 :] = s.t, work.x, work.rates
                break
        if s.t == s.t_stop:
            s.status = DONE
            break
        # factors are kept where the step would change little; stages extrapolated
        if s.rate > KEEP_RATE or not 1.0 <= history[2] <= KEEP_RATIO:
            s.h = h * history[2]
            s.fresh = 0
        limit(state, option.most_step)
        _extrapolate(radau, x, z, s.h / h, start)
        z[:] = start
    return mesh[:rows], events


# ----------------------------------------------------------------------------------------------------------------------
# Codes and memory of the Radau stepper: the plan's factors for a real and a complex leading coefficient.


CODES = ("solve", "complex_factor", "complex_solve")


class RadauWork(NamedTuple):
    """What the stepper reads and writes beside `Work`."""

    calls: Array
    driven: Array  # which equations fix the state whatever the step is, see `DAE.driven`
    is_driven: bool
    shift: Array  # real and imaginary part of the complex leading coefficient
    complex_factors: Array
    complex_quality: Array
    right: Array
    solution: Array
    complex_right: Array
    complex_solution: Array


class RadauCodes:
    """Compiled once per problem."""

    def __init__(self, compiled: Compiled) -> None:
        if not compiled.straight:
            raise UnsupportedError(
                f'method="radau" runs on straight-line code only, and {compiled.plan.operations} operations are too '
                'many for it; use method="bdf"'
            )
        dae, plan = compiled.dae, compiled.plan
        inputs = {"x": dae.x, "rates": dae.rates, "environment": dae.environment}
        entries = by_rows(dae.jacobian)
        _, factors = factor(plan, entries).stored()
        right = ca.SX.sym("right", dae.n)
        step = ca.vertcat(*solve(plan, factors, ca.vertsplit(right)))
        shift = ca.SX.sym("shift", 2)
        column = ca.vertcat(*entries)
        slope = ca.densify(ca.jacobian(column, dae.shift))
        real = ca.substitute(column, dae.shift, shift[0])
        pairs = [Complex(real[e], slope[e] * shift[1]) for e in range(len(entries))]
        complex_factors = factor(plan, pairs)
        values, complex_kept = complex_factors.stored()
        both = ca.SX.sym("complex_right", 2 * dae.n)
        solution = solve(plan, complex_kept, [Complex(both[i], both[dae.n + i]) for i in range(dae.n)])
        self.stored = values.numel()
        self.driven = dae.driven
        self.kernels = {
            "solve": kernel_of("solve", {"factors": factors.symbols(), "right": right}, {"solution": step}),
            "complex_factor": kernel_of(
                "complex_factor",
                {**inputs, "shift": shift},
                {"complex_factors": values, "complex_quality": complex_factors.quality},
            ),
            "complex_solve": kernel_of(
                "complex_solve",
                {"complex_factors": complex_kept.symbols(), "complex_right": both},
                {"complex_solution": ca.vertcat(*[x.re for x in solution], *[x.im for x in solution])},
            ),
        }

    def work(self, work: ImplicitWork) -> tuple[RadauWork, list[Any]]:
        """Return memory for one integration."""
        n = work.x.size
        sizes = [2, self.stored, 1, n, n, 2 * n, 2 * n]
        arrays = dict(zip(RadauWork._fields[3:], (np.zeros(size) for size in sizes), strict=True))
        shared = {"x": work.x, "rates": work.rates, "environment": work.environment, "factors": work.factors}
        calls = np.zeros((len(CODES), 3), np.int64)
        alive = []
        for row, code in enumerate(CODES):
            calls[row], memory_of_call = bind(self.kernels[code], shared | arrays)
            alive.append(memory_of_call)
        return RadauWork(calls, self.driven, bool(self.driven.any()), **arrays), alive

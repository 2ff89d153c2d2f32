# pyright: reportCallIssue=false, reportArgumentType=false
"""Friction limited by the contact's own reaction, in compiled code: Gauss-Seidel sweeps, then Newton's method.

Symbols, per contact with rows first .. last: r = (r_N, r_T) reaction, u = G r + g contact acceleration (or velocity),
mu coefficient, rho = 1 / trace(G_ii) step, y = r - rho u, K = {|r_T| <= mu r_N} the cone, s direction of sliding.

    at rest, unilateral    r_N = max(0, y_N),  r_T = projection of y_T onto the disk of radius mu r_N      (Coulomb)
    at rest, associated    r = P_K(y)                                                       (convex problem)
    bilateral row          r_N = y_N, that is u_N = 0, and radius mu |r_N|
    given limit            r = projection of y onto the disk (one direction: the interval) of radius limit
    sliding along s        r_T = -mu |r_N| s

The Coulomb lines are equivalent to r = P_K(r - rho (u + mu |u_T| e_N)), De Saxce's form, by which answers are judged.
Each is a semismooth equation F(r) = 0; sweeps of nonlinear Gauss-Seidel find the modes, Newton's method the digits.

Sources: P. Alart, A. Curnier, Comput. Methods Appl. Mech. Eng. 92 (1991) 353-375; G. De Saxce, Z.-Q. Feng, Math.
Comput. Modelling 28 (1998) 225-245; V. Acary, M. Bremond, O. Huber, in "Advanced Topics in Nonsmooth Dynamics"
(2018). Cost: p^2 a sweep, 2 p^3 / 3 a Newton step, p rows of contacts that are closed.
"""

from __future__ import annotations

import numpy as np

from dalembert.friction.contact_problem import BILATERAL, FIXED, UNILATERAL
from dalembert.friction.limits import EXPLAINED
from dalembert.kernel.array_loops import add_multiple, copy_to, factor, fill, substitute
from dalembert.kernel.loops import reordered, reordered_inner

COULOMB, ASSOCIATED = 0, 1
"""Which problem: the true law, or the convex one that lets a sliding contact lift off."""

TINY = 1e-300
"""Stands for the size of a problem whose data are zero."""

INNER, LOCAL = 30, 1e-3
"""Rounds of a sweep on one contact, and the part of its reaction to which they go: more does not help the others."""

ROUND, CLOSE = 25, 0.1
"""Sweeps between looks at the residual, and the part by which it falls before Newton's method is tried again."""

SMALL = 24
"""Unknowns up to which a step is eliminated in place; a call of LAPACK takes longer than that."""

SHIFT = 1e-11
"""Redundant reactions make Newton's matrix singular; this part of its diagonal is added to G there (not to F)."""


@reordered
def steps_of(G, first):
    """Return rho per contact, 1 / trace of its block; 1 where the contact moves nothing."""
    k = first.size - 1
    rho = np.ones(k)
    for i in range(k):
        trace = 0.0
        for a in range(first[i], first[i + 1]):
            trace += G[a, a]
        if trace > 0.0:
            rho[i] = 1.0 / trace
    return rho


@reordered_inner
def row_times(G, a, r, g):
    """Return entry a of G r + g."""
    total = g[a]
    for j in range(r.size):
        total += G[a, j] * r[j]
    return total


@reordered_inner
def local_map(y, a, b, mu, law, kind, sliding, s, out):
    """Write what r must be, given y, for the contact of rows a .. b - 1."""
    n, reach = y[a], 0.0
    for j in range(a if kind == FIXED else a + 1, b):
        reach += y[j] * y[j]
    reach = np.sqrt(reach)
    # a disk of given radius
    if kind == FIXED:
        scale = 1.0 if reach <= mu else mu / reach
        for j in range(a, b):
            out[j] = scale * y[j]
        return
    # the convex problem: inside the cone, in its polar cone, or onto its surface
    if law == ASSOCIATED and not sliding and kind == UNILATERAL:
        if n >= 0.0 and reach <= mu * n:
            scale, normal = 1.0, n
        elif mu * reach <= -n:
            scale, normal = 0.0, 0.0
        else:
            normal = (n + mu * reach) / (1.0 + mu * mu)
            scale = mu * normal / reach
    else:
        # Coulomb's law: the normal, then the disk of its radius
        normal = n if kind == BILATERAL else max(n, 0.0)
        radius = mu * abs(normal)
        if sliding:
            for j in range(a + 1, b):
                out[j] = -radius * s[j]
            out[a] = normal
            return
        scale = 1.0 if reach <= radius else radius / reach
    out[a] = normal
    for j in range(a + 1, b):
        out[j] = scale * y[j]


@reordered_inner
def sweep(G, g, first, mu, law, kind, sliding, s, rho, r, y, out):
    """Run one sweep of nonlinear Gauss-Seidel; return the largest change."""
    change = 0.0
    for i in range(first.size - 1):
        a, b = first[i], first[i + 1]
        for j in range(a, b):
            y[j] = r[j] - rho[i] * row_times(G, j, r, g)
        local_map(y, a, b, mu[i], law, kind[i], sliding[i], s, out)
        for j in range(a, b):
            change = max(change, abs(out[j] - r[j]))
            r[j] = out[j]
    return change


@reordered
def local_sweep(G, g, first, mu, law, kind, sliding, s, rho, r, y, out):
    """Run one sweep that solves each contact, the others as they are, to `LOCAL` of its change or in `INNER` rounds."""
    v = np.empty(3)
    for i in range(first.size - 1):
        a, b = first[i], first[i + 1]
        for j in range(a, b):
            v[j - a] = row_times(G, j, r, g)
        for _ in range(INNER):
            change, size = 0.0, 0.0
            for j in range(a, b):
                y[j] = r[j] - rho[i] * v[j - a]
            local_map(y, a, b, mu[i], law, kind[i], sliding[i], s, out)
            for j in range(a, b):
                out[j] -= r[j]
                change, size = max(change, abs(out[j])), max(size, abs(r[j]))
            for j in range(a, b):
                r[j] += out[j]
                for p in range(a, b):
                    v[p - a] += G[p, j] * out[j]
            if change <= LOCAL * size:
                break


@reordered
def patient(G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps):
    """Run many sweeps from r, Newton's method from time to time; r is the best met; return its residual and steps.

    The one method that creeps on where contacts are many and coupled all through, and Newton's method wanders between
    their modes.
    """
    size, rho = g.size, steps_of(G, first)
    u, y, out, F = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    best, kept, used, mark, tried = np.inf, r.copy(), 0, np.inf, 1.0
    for turn in range(1, sweeps + 1):
        local_sweep(G, g, first, mu, law, kind, sliding, s, rho, r, y, out)
        if turn % ROUND:
            continue
        # a look at the residual after every round of sweeps
        worst, scale = evaluate(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F)
        found = worst / max(scale, TINY)
        if found < best:
            best, kept[:] = found, r
        if best <= tolerance or not found < np.inf:
            break
        # Newton's method from a point that is clearly nearer than the one it began at last
        if found <= CLOSE * tried:
            tried, trial = found, r.copy()
            after, more = attempt(G, g, first, mu, law, kind, sliding, s, trial, tolerance, 0, 6)
            used += more
            if after < best:
                best, kept[:] = after, trial
            if best <= tolerance:
                break
        # eight looks that gained little are the end
        if turn % (8 * ROUND) == 0:
            if found > 0.7 * mark:
                break
            mark = found
    r[:] = kept
    return best, used


@reordered_inner
def part_explained(g, r, first, mu, kind, rho):
    """Return the part of the reactions that g and given limits explain, times `EXPLAINED`; 1 at most."""
    data, answer = 0.0, 0.0
    for i in range(first.size - 1):
        if kind[i] == FIXED:
            data += mu[i] * mu[i] / rho[i]
        for j in range(first[i], first[i + 1]):
            data += rho[i] * g[j] * g[j]
            answer += r[j] * r[j] / rho[i]
    if data == 0.0 or not answer > EXPLAINED * EXPLAINED * data:
        return 1.0
    return EXPLAINED * np.sqrt(data / answer)


@reordered_inner
def evaluate(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F):
    """Write u, y and F = r - map(y); return the largest |F| (NaN counts as infinite) and the size of the terms of y.

    The size is that of the data where the reactions have outgrown them.
    """
    worst, size = 0.0, 0.0
    for i in range(first.size - 1):
        a, b = first[i], first[i + 1]
        for j in range(a, b):
            total, terms = g[j], abs(g[j])
            for p in range(r.size):
                term = G[j, p] * r[p]
                total += term
                terms += abs(term)
            u[j] = total
            y[j] = r[j] - rho[i] * total
            size = max(size, rho[i] * terms, abs(r[j]))
        local_map(y, a, b, mu[i], law, kind[i], sliding[i], s, out)
        for j in range(a, b):
            F[j] = r[j] - out[j]
            if not abs(F[j]) < np.inf:  # max() would pass over NaN
                return np.inf, 1.0
            worst = max(worst, abs(F[j]))
    return worst, size * part_explained(g, r, first, mu, kind, rho)


@reordered_inner
def derivative(y, a, b, mu, law, kind, sliding, s, P):
    """Write P = d map / d y, a (b - a, b - a) block, at y."""
    d = b - a
    P[:d, :d] = 0.0
    n, reach = y[a], 0.0
    for j in range(a if kind == FIXED else a + 1, b):
        reach += y[j] * y[j]
    reach = np.sqrt(reach)
    # a disk of given radius: the projection onto it
    if kind == FIXED:
        for j in range(d):
            for p in range(d):
                same = 1.0 if j == p else 0.0
                P[j, p] = same if reach < mu else mu / reach * (same - y[a + j] * y[a + p] / (reach * reach))
        return
    # the convex problem: the projection onto the cone
    if law == ASSOCIATED and not sliding and kind == UNILATERAL:
        if n >= 0.0 and reach <= mu * n:
            for j in range(d):
                P[j, j] = 1.0
        elif mu * reach > -n:
            scale = 1.0 / (1.0 + mu * mu)
            normal = (n + mu * reach) * scale
            P[0, 0] = scale
            for j in range(1, d):
                e = y[a + j] / reach
                P[0, j] = P[j, 0] = mu * scale * e
                for p in range(1, d):
                    f = y[a + p] / reach
                    P[j, p] = mu * mu * scale * e * f + mu * normal / reach * ((1.0 if j == p else 0.0) - e * f)
        return
    # Coulomb's law: the normal by itself, the tangents on the disk of radius mu |n|
    if kind == UNILATERAL and n <= 0.0:
        return
    P[0, 0] = 1.0
    sign, radius = (1.0 if n >= 0.0 else -1.0), mu * abs(n)
    for j in range(1, d):
        if sliding:
            P[j, 0] = -mu * sign * s[a + j]
        elif reach <= radius:
            P[j, j] = 1.0
        else:
            e = y[a + j] / reach
            P[j, 0] = mu * sign * e
            for p in range(1, d):
                P[j, p] = radius / reach * ((1.0 if j == p else 0.0) - e * y[a + p] / reach)


@reordered
def solved_or_nan(J, b):
    """Return the solution of J x = b, NaN where J is singular to the last digit: no step, and no exception."""
    try:
        x = np.linalg.solve(J, b)
    except Exception:  # compiled code tells no kinds of exceptions apart
        x = np.full(b.size, np.nan)
    return x


@reordered_inner
def newton_system(G, first, mu, law, kind, sliding, s, rho, y, F, P, row, index, J, rhs, step):
    """Write J, rhs of Newton's step, (I - P (I - rho G)) step = -F; return the number of unknowns, -1 without a step.

    Open contacts are left out: there the step is -F. `row` (p,) and `index` (p,) lead from rows to unknowns and back.
    """
    k, size = first.size - 1, F.size
    count = 0
    # contacts whose P is not zero are unknowns; for the open ones the step is -F
    for i in range(k):
        a, b = first[i], first[i + 1]
        derivative(y, a, b, mu[i], law, kind[i], sliding[i], s, P)
        empty = True
        for j in range(b - a):
            for p in range(b - a):
                empty = empty and P[j, p] == 0.0
        for j in range(a, b):
            step[j], row[j] = -F[j], -1
            if not empty:
                row[j], index[count] = count, j
                count += 1
    # J = I - P (I - rho G), shifted a little; what is known of the step goes to the right side
    for i in range(k):
        a, b = first[i], first[i + 1]
        if row[a] < 0:
            continue
        derivative(y, a, b, mu[i], law, kind[i], sliding[i], s, P)
        for j in range(a, b):
            own, right = row[j], -F[j]
            for q in range(count):
                J[own, q] = 0.0
            for p in range(a, b):
                weight = P[j - a, p - a]
                if weight == 0.0:
                    continue
                scaled = weight * rho[i]
                for q in range(count):
                    J[own, q] += scaled * G[p, index[q]]
                for q in range(size):
                    if row[q] < 0:
                        right -= scaled * G[p, q] * step[q]
                J[own, row[p]] -= weight * (1.0 - SHIFT)
            J[own, own] += 1.0
            rhs[own] = right
    for q in range(count):
        if not abs(rhs[q]) < np.inf:
            return -1
        for j in range(count):
            if not abs(J[q, j]) < np.inf:
                return -1
    return count


@reordered
def solve_small_or_large(J, rhs, count, pivot):
    """Overwrite the first entries of rhs by the solution of J x = rhs; NaN where J is singular to the last digit."""
    if count > SMALL:
        rhs[:count] = solved_or_nan(J[:count, :count].copy(), rhs[:count])
    elif factor(J, count, pivot):
        substitute(J, count, pivot, rhs)
    else:
        fill(rhs, np.nan)


@reordered
def attempt(G, g, first, mu, law, kind, sliding, s, r, tolerance, sweeps, steps):
    """Run sweeps, then damped Newton steps while they help; r is the best met; return its residual and the steps."""
    size, rho = g.size, steps_of(G, first)
    u, y, out, F = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for _ in range(sweeps):
        if sweep(G, g, first, mu, law, kind, sliding, s, rho, r, y, out) == 0.0:
            break
    worst, scale = evaluate(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F)
    best = worst / max(scale, TINY)
    if not (steps > 0 and best > tolerance):
        return best, 0
    return newton(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F, tolerance, steps, worst, best)


@reordered
def newton(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F, tolerance, steps, worst, best):
    """Take damped Newton steps while they help; r is the best met; return its residual and the steps."""
    size, used = g.size, 0
    kept, start, step, rhs = r.copy(), np.empty(size), np.empty(size), np.empty(size)
    P, J = np.zeros((3, 3)), np.empty((size, size))
    row, index, pivot = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    while used < steps and best > tolerance:
        count = newton_system(G, first, mu, law, kind, sliding, s, rho, y, F, P, row, index, J, rhs, step)
        if count > 0:
            solve_small_or_large(J, rhs, count, pivot)
            for q in range(count):
                step[index[q]] = rhs[q]
        used += 1
        copy_to(start, r)
        damping, before, scale = 1.0, worst, 0.0
        for _ in range(6):
            copy_to(r, start)
            add_multiple(r, damping, step)
            worst, scale = evaluate(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F)
            if worst <= 2.0 * before:
                break
            damping *= 0.4
        if not worst <= 1e3 * before:
            break
        if worst / max(scale, TINY) < best:
            best = worst / max(scale, TINY)
            copy_to(kept, r)
        elif used > 4 and worst > 0.9 * before:
            sweep(G, g, first, mu, law, kind, sliding, s, rho, r, y, out)
            worst, scale = evaluate(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F)
    copy_to(r, kept)
    return best, used

r"""Contact laws by Newton's method and ADMM in turns, in loops that make no arrays: warm starts of time steps.

Symbols: r impulses, u = G r + g velocities after them, G the Delassus matrix; mu coefficient, b bound of friction
without a normal, c least normal impulse; P projection, p_N, p_T > 0 scales; rows of contact i begin at first[i]:

    F_N = r_N - max(r_N - p_N u_N, c)          F_T = r_T - P_disk(mu F_N's second term, or b)(r_T - p_T u_T)

| kind | rows | law |
|---|---|---|
| CONE | normal, two tangents | 0 <= u_N _|_ r_N >= c, Coulomb's law in the plane |
| NORMAL | normal | the first half of it |
| DISK | two tangents | \|r_T\| <= b, opposite to u_T where it slides |
| LINE | one tangent | the same on a line |

F = 0 is the exact law (Alart and Curnier 1991). Newton's method takes a few steps from the impulses of the step before
and none at rest; from far away it cycles. ADMM with De Saxce's shift comes near to an answer from everywhere, slowly
(Acary, Brogliato, Huber 2018; Carpentier, Le Lidec, Montaut 2024). In turns they are sure and fast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.kernel.array_loops import factor, factor_symmetric, substitute, substitute_lower, substitute_upper
from dalembert.kernel.loops import reordered_inner

CONE, NORMAL, DISK, LINE = range(4)
"""Kinds of contacts."""

TURNS = 8
"""Turns of Newton's method and ADMM at most."""

NEWTON_STEPS, NEWTON_AGAIN = 10, 20
"""Steps of Newton's method in the first turn, and in the others."""

SHORTER, LONGEST_TRIES = 0.4, 5
"""Steps of Newton's method that make the residual worse are shortened by this factor, so many times at most."""

BEYOND = 1e-3
"""Newton's method aims at this part of the tolerance: it is reached in one step more, or rounding forbids it."""

WORSE, LOST = 2.0, 10.0
"""How much worse a step may make the residual, and from where on it is taken back."""

SWEEPS, OWN_STEPS = 10, 8
"""Sweeps over the contacts where Newton's method stalls, and projected steps of each contact in a sweep."""

REGULAR = 1e-11
"""What is added to the diagonal of Newton's matrix, beside one: redundant contacts that stick leave it singular."""

ADMM_STEPS, ADMM_LOOK, ADMM_AGAIN = 1500, 5, 20
"""Steps of ADMM in a turn; how often its residual is looked at, and its penalty."""

ADMM_AIM, ADMM_NARROWS = 1e-3, 0.03
"""ADMM aims at the first part in its first turn, and by the second factor nearer in every other."""

CONDITION = 1e-4
"""The first penalty is the root of the largest times the least eigenvalue of G; the least is this part of it."""

PROXIMAL = 1e-6
"""Weight of ADMM's proximal term, beside the penalty: G is singular where contacts are redundant."""

TOO_FAR, PENALTY_STEP = 10.0, 3.0
"""The penalty changes by the second factor where one residual of ADMM is the first factor above the other."""

POINTS = 60
"""Proximal points at most."""

FIRST_SHIFT, SHIFT_FALLS, LEAST_SHIFT = 1e-2, 0.2, 1e-9
"""Parts of the mean diagonal that proximal points add to G: the first, by which factor it falls, and the least."""

POWER_STEPS = 20
"""Steps of the power method for the largest eigenvalue of G."""

HELD_STILL = 1e-12
"""Contacts that impulses cannot move rest below this part of the largest |g|."""

NO_MOTION = 1e-14
"""Contacts whose part of G is below this part of the largest cannot be moved by impulses."""

LEAST_SCALE = 1e-12
"""Velocities below this, m/s, are no data that a residual is measured against."""


class ConeWork(NamedTuple):
    """Memory of the solver, for `rows` rows and as many contacts."""

    p: np.ndarray  # (contacts, 2) scales of normal and tangents
    sizes: np.ndarray  # (2,) scale of impulses where nothing moves, and velocity that is rest there
    u: np.ndarray  # (rows,)
    F: np.ndarray
    step: np.ndarray
    kept: np.ndarray
    start: np.ndarray
    best: np.ndarray
    diagonal: np.ndarray
    moved: np.ndarray
    y: np.ndarray
    z: np.ndarray
    x: np.ndarray
    J: np.ndarray  # (rows, rows)
    L: np.ndarray  # (rows, rows)
    place: np.ndarray  # (rows,) of rows in Newton's matrix
    pivot: np.ndarray
    counts: np.ndarray  # (4,) Newton's steps, sweeps, steps of ADMM, problems that needed it

    @classmethod
    def of(cls, contacts: int, rows: int) -> ConeWork:
        """Return memory for so many contacts and rows."""
        shapes = {"p": (contacts, 2), "sizes": (2,), "J": (rows, rows), "L": (rows, rows)}
        arrays = {name: np.zeros(shapes.get(name, (rows,))) for name in cls._fields}
        arrays |= {name: np.zeros(rows, np.int64) for name in ("place", "pivot")}
        return cls(**arrays | {"counts": np.zeros(4, np.int64)})


@reordered_inner
def rows_of_kind(kind):
    """Return how many rows a contact has."""
    return 3 if kind == CONE else 2 if kind == DISK else 1


@reordered_inner
def set_scales(G, g, kind, first, count, w):
    """Write p_N and p_T of all contacts, zero where nothing moves; return the size of the data, the largest |g|."""
    scale, largest, p = LEAST_SCALE, 0.0, w.p
    for i in range(count):
        for a in range(first[i], first[i] + rows_of_kind(kind[i])):
            scale = max(scale, abs(g[a]))
            largest = max(largest, G[a, a])
    for i in range(count):
        a = first[i]
        p[i, 0] = p[i, 1] = 0.0
        if kind[i] == CONE or kind[i] == NORMAL:
            p[i, 0] = 1.0 / G[a, a] if G[a, a] > NO_MOTION * largest else 0.0
        if kind[i] == LINE:
            p[i, 1] = 1.0 / G[a, a] if G[a, a] > NO_MOTION * largest else 0.0
        if kind[i] == CONE or kind[i] == DISK:
            b = a + 1 if kind[i] == CONE else a
            most = max(G[b, b], G[b + 1, b + 1]) + abs(G[b, b + 1])
            p[i, 1] = 1.0 / most if most > NO_MOTION * largest else 0.0
    w.sizes[0], w.sizes[1] = 1.0 / largest if largest > 0.0 else 1.0, HELD_STILL * scale
    return scale


@reordered_inner
def miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w):
    """Write u = G r + g and F; return the largest |F_N| / p_N, |F_T| / p_T, velocities."""
    worst = 0.0
    for a in range(size):
        total = g[a]
        for j in range(size):
            total += G[a, j] * r[j]
        w.u[a] = total
    for i in range(count):
        a, disk = first[i], bound[i]
        if kind[i] == CONE or kind[i] == NORMAL:
            if w.p[i, 0] > 0.0:
                n = max(r[a] - w.p[i, 0] * w.u[a], floor[i])
                w.F[a] = r[a] - n
                worst = max(worst, abs(w.F[a]) / w.p[i, 0])
            else:  # nothing moves it: it must not approach, and does not push where it separates
                n = max(r[a], floor[i]) if w.u[a] <= w.sizes[1] else floor[i]
                w.F[a] = r[a] - n
                worst = max(worst, -w.u[a], abs(w.F[a]) / w.sizes[0])
            disk = mu[i] * n
            if kind[i] == NORMAL:
                continue
            a += 1
        pt, one = w.p[i, 1], kind[i] == LINE
        size = pt if pt > 0.0 else w.sizes[0]
        if pt > 0.0:
            x, y = r[a] - pt * w.u[a], 0.0 if one else r[a + 1] - pt * w.u[a + 1]
        else:
            x, y = prescribed(r, a, one, disk, w)
        reach = np.sqrt(x * x + y * y)
        if reach > disk:
            x, y = x * disk / reach, y * disk / reach
        w.F[a] = r[a] - x
        worst = max(worst, abs(w.F[a]) / size)
        if not one:
            w.F[a + 1] = r[a + 1] - y
            worst = max(worst, abs(w.F[a + 1]) / size)
    return worst


@reordered_inner
def prescribed(r, a, one, disk, w):
    """Return the friction of tangents that impulses do not move: against their velocity; as it is where they rest."""
    x, y = w.u[a], 0.0 if one else w.u[a + 1]
    speed = np.sqrt(x * x + y * y)
    if speed > w.sizes[1]:
        return -disk * x / speed, -disk * y / speed
    return r[a], 0.0 if one else r[a + 1]


@reordered_inner
def set_tangent_rows(G, r, size, a, one, mu_n, disk, pt, normal, pn, w):
    """Write Newton's rows of the tangents that begin at a; `normal` is the row of their normal, or -1."""
    if pt == 0.0:
        set_prescribed_rows(G, size, a, one, mu_n, normal, pn, w)
        return
    x = r[a] - pt * w.u[a]
    y = 0.0 if one else r[a + 1] - pt * w.u[a + 1]
    reach = np.sqrt(x * x + y * y)
    last = a if one else a + 1
    if reach <= disk:
        for b in range(a, last + 1):
            k = w.place[b]
            for j in range(size):
                if w.place[j] >= 0:
                    w.J[k, w.place[j]] = pt * G[b, j]
            w.J[k, k] += REGULAR
        return
    ex, ey, f = x / reach, y / reach, disk / reach
    pxx, pxy, pyy = f * (1.0 - ex * ex), -f * ex * ey, f * (1.0 - ey * ey)
    for b in range(a, last + 1):
        k, e = w.place[b], ex if b == a else ey
        px, py = (pxx, pxy) if b == a else (pxy, pyy)
        for j in range(size):
            if w.place[j] < 0:
                continue
            total = px * G[a, j] if one else px * G[a, j] + py * G[a + 1, j]
            total *= pt
            if normal >= 0:
                total += mu_n * e * pn * G[normal, j]
            w.J[k, w.place[j]] = total
        w.J[k, w.place[a]] += (1.0 if b == a else 0.0) - px
        if not one:
            w.J[k, w.place[a + 1]] += (0.0 if b == a else 1.0) - py
        if normal >= 0:
            w.J[k, w.place[normal]] -= mu_n * e


@reordered_inner
def set_prescribed_rows(G, size, a, one, mu_n, normal, pn, w):
    """Write Newton's rows of tangents that impulses do not move: F_T = r_T + mu (r_N - p_N u_N) u_T / |u_T|."""
    x, y = w.u[a], 0.0 if one else w.u[a + 1]
    speed = np.sqrt(x * x + y * y)
    slides = speed > w.sizes[1]
    last = a if one else a + 1
    for b in range(a, last + 1):
        k = w.place[b]
        e = (x if b == a else y) / speed if slides and normal >= 0 else 0.0
        for j in range(size):
            if w.place[j] >= 0:
                w.J[k, w.place[j]] = -mu_n * e * pn * G[normal, j] if e != 0.0 else 0.0
        w.J[k, k] += 1.0
        if e != 0.0:
            w.J[k, w.place[normal]] += mu_n * e


@reordered_inner
def set_newton(G, r, kind, first, mu, bound, floor, count, size, w):
    """Write Newton's matrix of the rows that push, and the right side; return how many."""
    m = 0
    for i in range(count):
        a = first[i]
        gone = False
        if kind[i] == CONE or kind[i] == NORMAL:
            gone = w.p[i, 0] == 0.0 or r[a] - w.p[i, 0] * w.u[a] <= floor[i]
        for b in range(a, a + rows_of_kind(kind[i])):
            held = gone and (b == a or (floor[i] == 0.0 and w.p[i, 0] > 0.0))
            w.place[b] = -1 if held else m
            m += 0 if held else 1
    for b in range(size):
        if w.place[b] >= 0:
            total = -w.F[b]
            w.step[w.place[b]] = total
    for i in range(count):
        a, disk, normal = first[i], bound[i], -1
        if kind[i] == CONE or kind[i] == NORMAL:
            normal = a if w.place[a] >= 0 else -1
            if normal >= 0:
                k = w.place[a]
                for j in range(size):
                    if w.place[j] >= 0:
                        w.J[k, w.place[j]] = w.p[i, 0] * G[a, j]
                w.J[k, k] += REGULAR
            disk = mu[i] * max(r[a] - w.p[i, 0] * w.u[a], floor[i])
            if kind[i] == NORMAL:
                continue
            a += 1
        if w.place[a] >= 0:
            set_tangent_rows(G, r, size, a, kind[i] == LINE, mu[i], disk, w.p[i, 1], normal, w.p[i, 0], w)
    return m


@reordered_inner
def take_held_rows(G, kind, first, mu, count, size, r, w):
    """Move impulses of rows that are held (places below zero) by -F, and their velocities with them."""
    for b in range(size):
        if w.place[b] < 0 and w.F[b] != 0.0:
            change = -w.F[b]
            r[b] += change
            for a in range(size):
                w.u[a] += G[a, b] * change


@reordered_inner
def newton(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, most, scale, w):
    """Improve r by Newton's method; return the residual over `scale`.

    It aims beyond the tolerance, and ends where rounding lets no step get nearer.
    """
    best = miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w) / scale
    for turn in range(most):
        if best <= BEYOND * tolerance:
            return best
        for a in range(size):
            w.kept[a] = r[a]
        m = set_newton(G, r, kind, first, mu, bound, floor, count, size, w)
        # rows that let go first: the others' equations are written for impulses without theirs
        moved = False
        for b in range(size):
            moved = moved or (w.place[b] < 0 and w.F[b] != 0.0)
        if moved:
            take_held_rows(G, kind, first, mu, count, size, r, w)
            miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w)
            m = set_newton(G, r, kind, first, mu, bound, floor, count, size, w)
        for a in range(size):
            w.x[a] = r[a]
        w.counts[0] += 1
        good, found = factor(w.J, m, w.pivot), np.inf
        if good:
            substitute(w.J, m, w.pivot, w.step)
            damping = 1.0
            for _ in range(LONGEST_TRIES):
                for a in range(size):
                    r[a] = w.x[a] + (damping * w.step[w.place[a]] if w.place[a] >= 0 else 0.0)
                found = miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w) / scale
                if found <= WORSE * best or found <= tolerance:
                    break
                damping *= SHORTER
            good = found < LOST * best
        if not good or ((turn > 2 or best <= tolerance) and found > 0.5 * best):
            if not good or (best <= tolerance and found > best):
                for a in range(size):
                    r[a] = w.kept[a]
            if best <= tolerance:
                return miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w) / scale
            for _ in range(SWEEPS):
                sweep(G, g, kind, first, mu, bound, floor, count, size, r, w)
            w.counts[1] += SWEEPS
            found = miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w) / scale
        best = found
    return best


@reordered_inner
def sweep(G, g, kind, first, mu, bound, floor, count, size, r, w):
    """Go once over the contacts; each takes projected steps of its own."""
    for i in range(count):
        a, rows = first[i], rows_of_kind(kind[i])
        for b in range(a, a + rows):
            total = g[b]
            for j in range(size):
                total += G[b, j] * r[j]
            w.u[b] = total
        for _ in range(OWN_STEPS):
            disk, change, t = bound[i], 0.0, a
            if kind[i] == CONE or kind[i] == NORMAL:
                n = max(r[a] - w.p[i, 0] * w.u[a], floor[i]) if w.p[i, 0] > 0.0 else r[a] - w.F[a]
                change = move_row(G, a, rows, a, n - r[a], w.u)
                r[a] = n
                disk, t = mu[i] * n, a + 1
            if kind[i] != NORMAL:
                pt, one = w.p[i, 1], kind[i] == LINE
                if pt > 0.0:
                    x, y = r[t] - pt * w.u[t], 0.0 if one else r[t + 1] - pt * w.u[t + 1]
                else:
                    x, y = prescribed(r, t, one, disk, w)
                reach = np.sqrt(x * x + y * y)
                if reach > disk:
                    x, y = x * disk / reach, y * disk / reach
                change += move_row(G, a, rows, t, x - r[t], w.u)
                r[t] = x
                if not one:
                    change += move_row(G, a, rows, t + 1, y - r[t + 1], w.u)
                    r[t + 1] = y
            if change == 0.0:
                break


@reordered_inner
def move_row(G, a, rows, b, change, u):
    """Add what a change of impulse b does to the velocities of the rows from a on; return its size."""
    if change != 0.0:
        for c in range(a, a + rows):
            u[c] += G[c, b] * change
    return abs(change)


@reordered_inner
def project_dual(kind, first, mu, bound, count, p, w):
    """Write y, the projection of x - z / p onto cones, half lines, disks and intervals."""
    for i in range(count):
        a = first[i]
        if kind[i] == NORMAL:
            w.y[a] = max(w.x[a] - w.z[a] / p, 0.0)
            continue
        t = a + 1 if kind[i] == CONE else a
        x = w.x[t] - w.z[t] / p
        y = 0.0 if kind[i] == LINE else w.x[t + 1] - w.z[t + 1] / p
        reach, f = np.sqrt(x * x + y * y), 1.0
        if kind[i] == CONE:
            n = w.x[a] - w.z[a] / p
            if mu[i] * reach <= -n:
                n, f = 0.0, 0.0
            elif reach > mu[i] * n:
                n = (n + mu[i] * reach) / (1.0 + mu[i] * mu[i])
                f = mu[i] * n / reach
            w.y[a] = n
        elif reach > bound[i]:
            f = bound[i] / reach
        w.y[t] = f * x
        if kind[i] != LINE:
            w.y[t + 1] = f * y


@reordered_inner
def largest_eigenvalue(G, size, w):
    """Return the largest eigenvalue of G by the power method."""
    for a in range(size):
        w.y[a] = 1.0 / np.sqrt(size)
    big = 0.0
    for _ in range(POWER_STEPS):
        total = 0.0
        for a in range(size):
            s = 0.0
            for j in range(size):
                s += G[a, j] * w.y[j]
            w.z[a] = s
            total += s * s
        big = np.sqrt(total)
        if not big > 0.0:
            return 0.0
        for a in range(size):
            w.y[a] = w.z[a] / big
    return big


@reordered_inner
def admm(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, scale, w):
    """Improve r by ADMM over the cones; return the residual of the law over `scale`."""
    big = largest_eigenvalue(G, size, w)
    if not big > 0.0:
        return np.inf
    p, eta = np.sqrt(CONDITION) * big, PROXIMAL * big
    for a in range(size):
        w.x[a] = w.y[a] = r[a]
        total = g[a]
        for j in range(size):
            total += G[a, j] * r[j]
        w.z[a] = total
    if not factor_symmetric(G, w.L, size, p + eta):
        return np.inf
    found = np.inf
    for k in range(ADMM_STEPS):
        for i in range(count):
            a = first[i]
            shift = mu[i] * np.sqrt(w.z[a + 1] ** 2 + w.z[a + 2] ** 2) if kind[i] == CONE else 0.0
            for b in range(a, a + rows_of_kind(kind[i])):
                w.kept[b] = w.y[b]
                w.x[b] = eta * w.x[b] + p * w.y[b] + w.z[b] - g[b] - (shift if b == a else 0.0)
        substitute_lower(w.L, size, w.x)
        substitute_upper(w.L, size, w.x)
        project_dual(kind, first, mu, bound, count, p, w)
        prim, dual = 0.0, 0.0
        for a in range(size):
            gap = w.x[a] - w.y[a]
            w.z[a] -= p * gap
            prim, dual = max(prim, abs(gap)), max(dual, abs(w.y[a] - w.kept[a]))
        w.counts[2] += 1
        if k % ADMM_LOOK == ADMM_LOOK - 1:
            found = miss_law(G, g, kind, first, mu, bound, floor, count, size, w.y, w) / scale
            if found <= tolerance:
                break
        if k % ADMM_AGAIN == ADMM_AGAIN - 1:
            dual *= p / big
            if prim > TOO_FAR * dual or dual > TOO_FAR * prim:
                p = p * PENALTY_STEP if prim > dual else p / PENALTY_STEP
                if not factor_symmetric(G, w.L, size, p + eta):
                    break
    for a in range(size):
        r[a] = w.y[a]
    return found


@reordered_inner
def keep_better(found, best, size, r, w):
    """Keep r where its residual is the smallest so far; return the smallest."""
    if not found < best:
        return best
    for a in range(size):
        w.best[a] = r[a]
    return found


@reordered_inner
def proximal(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, best, scale, w):
    """Improve r by proximal points, G + delta I and g - delta r in place of G and g; return the residual.

    Each step is a well-conditioned problem, and the steps end at an answer of the first; delta falls while that helps.
    """
    trace = 0.0
    for a in range(size):
        w.diagonal[a] = G[a, a]
        trace += G[a, a] / size
    delta = FIRST_SHIFT * trace
    for _ in range(POINTS):
        for a in range(size):
            G[a, a] = w.diagonal[a] + delta
            w.moved[a] = g[a] - delta * r[a]
        inner = newton(
            G, w.moved, kind, first, mu, bound, floor, count, size, r, 0.1 * tolerance, NEWTON_STEPS, scale, w
        )  # fmt: skip
        for a in range(size):
            G[a, a] = w.diagonal[a]
        found = miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w) / scale
        best = keep_better(found, best, size, r, w)
        if best <= tolerance:
            break
        delta = max(SHIFT_FALLS * delta, LEAST_SHIFT * trace) if inner <= tolerance else min(4.0 * delta, trace)
    return best


@reordered_inner
def solve_laws(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, w):
    """Solve the laws of `count` contacts from the guess r; return the residual, a velocity over the largest |g|.

    `floor` is a least normal impulse (Poisson's expansion); ADMM takes part where it is zero everywhere.
    """
    scale = set_scales(G, g, kind, first, count, w)
    plain = True
    for i in range(count):
        plain = plain and floor[i] == 0.0
    for a in range(size):
        w.start[a] = r[a]
    found = newton(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, NEWTON_STEPS, scale, w)
    if found <= tolerance:
        return found
    w.counts[3] += 1
    best, aim = keep_better(found, np.inf, size, r, w), ADMM_AIM
    for _ in range(TURNS):
        for a in range(size):
            r[a] = w.start[a]
        if plain:
            found = admm(G, g, kind, first, mu, bound, floor, count, size, r, max(aim, tolerance), scale, w)
            aim *= ADMM_NARROWS
        else:
            for _ in range(SWEEPS * SWEEPS):
                sweep(G, g, kind, first, mu, bound, floor, count, size, r, w)
            found = miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w) / scale
        for a in range(size):
            w.start[a] = r[a]
        best = keep_better(found, best, size, r, w)
        if best > tolerance:
            found = newton(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, NEWTON_AGAIN, scale, w)
            best = keep_better(found, best, size, r, w)
        if best > tolerance:
            for a in range(size):
                r[a] = w.best[a]
            best = proximal(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, best, scale, w)
        if best <= tolerance:
            break
    for a in range(size):
        r[a] = w.best[a]
    return miss_law(G, g, kind, first, mu, bound, floor, count, size, r, w) / scale

"""Every mode of contacts with one tangent, tried: which answers exist, and whether redundancy leaves some open.

A mode says of each contact: open, sticking, slipping either way. Within a mode the laws are linear equations and
inequalities in the reactions r: a polytope, empty or not (a linear programme where the equations are redundant).

| contact | modes: equations; inequalities |
|---|---|
| unilateral, at rest | open: r = 0; u_N >= 0 · stick: u = 0; mu r_N >= |r_T| |
| | slip s: u_N = 0, r_T = -s mu r_N; r_N >= 0, s u_T >= 0 |
| unilateral, sliding along s | open · slide: u_N = 0, r_T = -s mu r_N; r_N >= 0 |
| bilateral | as above without open, for either sign of r_N |
| given limit | stick: u = 0; |r| <= limit · slip s: r = -s limit; s u >= 0 |
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from scipy.optimize import linprog

from dalembert.friction.reaction_problem import BILATERAL, FIXED, UNILATERAL, ReactionProblem

Array = np.ndarray

MOST = 4096
"""Modes that are tried; each takes about 0.1 ms, or a millisecond where it is redundant."""

SLACK = 1e-9
"""Inequalities may fail by this part of the data."""

CORNERS = 12
"""Corners of the polygon that stands for a disk where a family of answers is looked for."""


class _Mode:
    """Equations E r = e and inequalities F r <= f of one contact in one mode."""

    def __init__(self) -> None:
        self.equations: list[tuple[Array, float]] = []
        self.inequalities: list[tuple[Array, float]] = []


def all_solutions(problem: ReactionProblem) -> list[Array] | None:
    """Return reactions r of every mode that obeys the laws; None where there are too many modes, or planes."""
    if np.any(np.diff(problem.first) + (problem.kind == FIXED) > 2):
        return None
    G, g = problem.delassus
    choices = [_modes(problem, i, G, g) for i in range(len(problem.names))]
    if prod(map(len, choices)) > MOST:
        return None
    found: list[Array] = []
    for combination in product(*choices):
        r = _feasible(combination, g.size, _scale(problem))
        if r is not None and not any(np.allclose(r, x, rtol=1e-8, atol=1e-10 * _scale(problem)) for x in found):
            found.append(r)
    return found


def _scale(problem: ReactionProblem) -> float:
    """Return a typical reaction."""
    G, g = problem.delassus
    diagonal = np.diag(G)
    limits = problem.mu[problem.kind == FIXED]
    typical = np.abs(g[diagonal > 0.0] / diagonal[diagonal > 0.0]).max(initial=0.0)
    return float(max(typical, limits.max(initial=0.0), np.finfo(float).tiny))


def _modes(problem: ReactionProblem, i: int, G: Array, g: Array) -> list[_Mode]:
    """Return the modes of contact i."""
    a, p, mu = int(problem.first[i]), g.size, float(problem.mu[i])
    e = np.eye(p)
    if problem.kind[i] == FIXED:
        stick = _Mode()
        stick.equations = [(G[a], -g[a])]
        stick.inequalities = [(e[a], mu), (-e[a], mu)]
        slips = []
        for s in (1.0, -1.0):
            one = _Mode()
            one.equations, one.inequalities = [(e[a], -s * mu)], [(-s * G[a], s * g[a])]
            slips.append(one)
        return [stick, *slips]
    signs = (1.0, -1.0) if problem.kind[i] == BILATERAL else (1.0,)
    tangent = problem.first[i + 1] - a == 2
    modes = []
    for sign in signs:
        closed = (G[a], -g[a])
        pushing = (-sign * e[a], 0.0)
        if not tangent:
            modes.append(_mode([closed], [pushing]))
        elif problem.sliding[i]:
            s = problem.direction[a + 1]
            modes.append(_mode([closed, (e[a + 1] + s * mu * sign * e[a], 0.0)], [pushing]))
        else:
            cone = [(t * e[a + 1] - mu * sign * e[a], 0.0) for t in (1.0, -1.0)]
            modes.append(_mode([closed, (G[a + 1], -g[a + 1])], [pushing, *cone]))
            for s in (1.0, -1.0):
                slip = (e[a + 1] + s * mu * sign * e[a], 0.0)
                modes.append(_mode([closed, slip], [pushing, (-s * G[a + 1], s * g[a + 1])]))
    if problem.kind[i] == UNILATERAL:
        rows = range(a, problem.first[i + 1])
        modes.append(_mode([(e[j], 0.0) for j in rows], [(-G[a], g[a])]))
    return modes


def _mode(equations: list, inequalities: list) -> _Mode:
    one = _Mode()
    one.equations, one.inequalities = equations, inequalities
    return one


def _stacked(rows: list[tuple[Array, float]], p: int) -> tuple[Array, Array]:
    """Return rows and right sides, each row of unit size."""
    if not rows:
        return np.zeros((0, p)), np.zeros(0)
    E, e = np.array([row for row, _ in rows]), np.array([value for _, value in rows])
    size = np.abs(E).max(axis=1)
    size = np.where(size > 0.0, size, 1.0)
    return E / size[:, None], e / size


def _feasible(modes: tuple[_Mode, ...], p: int, scale: float) -> Array | None:
    """Return reactions that satisfy a mode, or None."""
    E, e = _stacked([row for mode in modes for row in mode.equations], p)
    F, f = _stacked([row for mode in modes for row in mode.inequalities], p)
    r, _, rank, _ = np.linalg.lstsq(E, e, rcond=1e-12)
    if np.abs(E @ r - e).max(initial=0.0) > SLACK * (scale + np.abs(r).max(initial=0.0)):
        return None
    slack = SLACK * (scale + np.abs(r).max(initial=0.0))
    if np.all(F @ r <= f + slack):
        return r
    if rank == p:
        return None
    best = linprog(np.zeros(p), A_ub=F, b_ub=f / scale, A_eq=E, b_eq=e / scale, bounds=(None, None), method="highs")
    return best.x * scale if best.status == 0 else None


def family_of(problem: ReactionProblem, r: Array) -> tuple[Array, tuple[str, ...]]:
    """Return other accelerations of the same mode (two extremes, or none), and contacts whose reactions are open.

    The mode is held fixed: contacts at rest that stick keep u = 0 with reactions in the cone (a plane: in a polygon
    inside it), slipping ones keep their direction. If the reactions can move within it, the answer is a family.
    """
    G, g = problem.delassus
    p = g.size
    modes = [_present_mode(problem, i, r, G, g) for i in range(len(problem.names))]
    E, _ = _stacked([row for mode in modes for row in mode.equations], p)
    F, f = _stacked([row for mode in modes for row in mode.inequalities], p)
    if p == 0 or np.linalg.matrix_rank(E, tol=1e-10) == p:
        return np.zeros((0, problem.system.n)), ()
    J = problem.reduced.reduced[1]
    scale, spread, open_names = _scale(problem), [], []
    here = f / scale - F @ r / scale
    for i, name in enumerate(problem.names):
        for j in range(problem.first[i], problem.first[i + 1]):
            reach = _reach(np.eye(p)[j], E, F, np.maximum(here, 0.0))
            if reach is not None and abs(reach[j]) > 1e-7:
                open_names.append(name)
                break
    for row in J / max(np.abs(J).max(), np.finfo(float).tiny):
        for sign in (1.0, -1.0):
            d = _reach(sign * row, E, F, np.maximum(here, 0.0))
            if d is not None and abs(row @ d) > 1e-7:
                spread.append(problem.reduced.acceleration(r + scale * d)[0])
    return np.array(spread).reshape(len(spread), problem.system.n), tuple(open_names)


def _reach(goal: Array, E: Array, F: Array, room: Array) -> Array | None:
    """Return the direction of unit size that goes farthest along a goal within the mode."""
    best = linprog(-goal, A_ub=F, b_ub=room, A_eq=E, b_eq=np.zeros(len(E)), bounds=(-1.0, 1.0), method="highs")
    return best.x if best.status == 0 else None


def sides(force: Array) -> list[tuple[Array, float]]:
    """Return outward normals n and distances of the sides of a polygon inside the unit disk, n . T <= distance.

    One of its corners lies in the direction of the force, so that a force on the rim is inside as well. In one
    direction the disk is an interval. No sides where there is no tangent.
    """
    if force.size < 2:
        return [(np.array([t]), 1.0) for t in (1.0, -1.0)] if force.size else []
    turn = np.arctan2(force[1], force[0])
    angles = turn + (2.0 * np.arange(CORNERS) + 1.0) * np.pi / CORNERS
    return [(np.array([np.cos(x), np.sin(x)]), float(np.cos(np.pi / CORNERS))) for x in angles]


def _present_given(a: int, b: int, limit: float, r: Array, G: Array, g: Array) -> _Mode:
    """Return the mode of a contact with a given limit, one direction or a plane (a polygon inside its disk)."""
    e, rows = np.eye(g.size), range(a, b)
    u = G[a:b] @ r + g[a:b]
    still = np.linalg.norm(u) <= 1e-9 * (np.abs(G[a:b]) @ np.abs(r) + np.abs(g[a:b])).max(initial=1e-300)
    if np.linalg.norm(r[a:b]) >= limit * (1.0 - 1e-9) and not still:
        return _mode([(e[j], r[j]) for j in rows], [])
    return _mode([(G[j], -g[j]) for j in rows], [(n @ e[a:b], part * limit) for n, part in sides(r[a:b])])


def _present_mode(problem: ReactionProblem, i: int, r: Array, G: Array, g: Array) -> _Mode:
    """Return the mode that contact i is in at r."""
    a, b, mu = int(problem.first[i]), int(problem.first[i + 1]), float(problem.mu[i])
    p = g.size
    e, scale = np.eye(p), _scale(problem)
    if problem.kind[i] == FIXED:
        return _present_given(a, b, mu, r, G, g)
    if problem.kind[i] == UNILATERAL and r[a] <= 1e-9 * scale:
        return _mode([(e[j], 0.0) for j in range(a, b)], [])
    sign = 1.0 if r[a] >= 0.0 else -1.0
    closed, pushing = (G[a], -g[a]), (-sign * e[a], 0.0)
    tangents = range(a + 1, b)
    force = np.linalg.norm(r[a + 1 : b])
    u = G[a + 1 : b] @ r + g[a + 1 : b]
    still = np.linalg.norm(u) <= 1e-9 * (np.abs(G[a + 1 : b]) @ np.abs(r) + np.abs(g[a + 1 : b])).max(initial=1e-300)
    if problem.sliding[i] or (force >= mu * abs(r[a]) * (1.0 - 1e-9) and not still):
        return _mode([closed, *[(e[j] - r[j] / r[a] * e[a], 0.0) for j in tangents]], [pushing])
    cone = [(n @ e[a + 1 : b] - part * mu * sign * e[a], 0.0) for n, part in sides(r[a + 1 : b])]
    return _mode([closed, *[(G[j], -g[j]) for j in tangents]], [pushing, *cone])

"""Enumeration of contact modes, one tangent each: which answers exist, and whether redundancy leaves some open.

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

from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from dalembert.first_use import OPTIMIZE
from dalembert.friction.cones.contact_rows import ConeProblem
from dalembert.friction.contact_problem import BILATERAL, FIXED, UNILATERAL
from dalembert.friction.limits import (
    ACTIVE,
    DISTINCT,
    PRESENT,
    REDUNDANT_EQUATIONS,
    SAME_MODE,
    SLACK,
    SLACK_OF_ROUNDING,
)
from dalembert.friction.uniqueness import null_space, open_directions
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

MOST = 4096
"""Modes that are tried; each takes about 0.1 ms, or a millisecond where it is redundant."""

ALTERNATIVES = 8
"""Directions in which other accelerations of a family are shown, each both ways."""

CORNERS = 12
"""Corners of the polygon that stands for a disk where a family of answers is looked for."""


class _Mode:
    """Equations E r = e and inequalities F r <= f of one contact in one mode."""

    def __init__(self) -> None:
        self.equations: list[tuple[Array, float]] = []
        self.inequalities: list[tuple[Array, float]] = []


@dataclass(frozen=True, eq=False)
class ModeAnswer:
    """Reactions r (p,) that obey the laws, and whose reactions some mode leaves open there, (k,) per contact."""

    r: Float[Array, " p"]
    loose: Bool[Array, " k"]


def all_solutions(problem: ConeProblem) -> list[ModeAnswer] | None:
    """Return the answers of every mode, one for each acceleration at least; None where there are too many modes.

    So are there of a plane at rest with friction: its contact slips in any direction. In motion the direction is given.
    """
    planes = np.diff(problem.first) + (problem.kind == FIXED) > 2
    if np.any(planes & ~problem.sliding & (problem.mu > 0.0)) or 2.0 ** len(problem.names) > MOST:
        return None
    G, g = problem.delassus
    choices = [_modes(problem, i, G, g) for i in range(len(problem.names))]
    if prod(map(len, choices)) > MOST:
        return None
    answers: list[ModeAnswer] = []
    scale, J = typical_reaction(problem), problem.reduced.reduced[1]
    for combination in product(*choices):
        E, e = _stacked([row for mode in combination for row in mode.equations], g.size)
        F, f = _stacked([row for mode in combination for row in mode.inequalities], g.size)
        r = _feasible(E, e, F, f, scale)
        if r is None:
            continue
        basis, members = _family(E, F, f, r, J, scale)
        loose = _contacts_of(problem, basis)
        for x in (r, *members):
            same = next((y for y in answers if np.allclose(x, y.r, rtol=DISTINCT, atol=SAME_MODE * scale)), None)
            if same is None:
                answers.append(ModeAnswer(x, loose.copy()))
            else:
                same.loose[:] |= loose
    return answers


def _contacts_of(problem: ConeProblem, basis: Array) -> Bool[Array, " k"]:
    """Say which contacts have a part in directions (p, j) of reactions."""
    moved = np.abs(basis).max(axis=1, initial=0.0) > ACTIVE
    return np.array([moved[a:b].any() for a, b in pairwise(problem.first)], dtype=bool)


def typical_reaction(problem: ConeProblem) -> float:
    """Return a typical reaction."""
    G, g = problem.delassus
    diagonal = np.diag(G)
    limits = problem.mu[problem.kind == FIXED]
    typical = np.abs(g[diagonal > 0.0] / diagonal[diagonal > 0.0]).max(initial=0.0)
    return float(max(typical, limits.max(initial=0.0))) or 1.0  # any unit, where nothing loads a contact


def _modes(problem: ConeProblem, i: int, G: Array, g: Array) -> list[_Mode]:
    """Return the modes of contact i."""
    a, b, p, mu = int(problem.first[i]), int(problem.first[i + 1]), g.size, float(problem.mu[i])
    e = np.eye(p)
    if problem.kind[i] == FIXED:
        if mu == 0.0:
            return [_mode([(e[j], 0.0) for j in range(a, b)], [])]
        modes = [_mode([(G[a], -g[a])], [(e[a], mu), (-e[a], mu)])]
        return modes + [_mode([(e[a], -s * mu)], [(-s * G[a], s * g[a])]) for s in (1.0, -1.0)]
    tangents, closed = range(a + 1, b), (G[a], -g[a])
    modes = []
    for sign in (1.0, -1.0) if problem.kind[i] == BILATERAL else (1.0,):
        pushing = (-sign * e[a], 0.0)
        if problem.sliding[i] or mu == 0.0 or not len(tangents):
            along = [(e[j] + problem.direction[j] * mu * sign * e[a], 0.0) for j in tangents]
            modes.append(_mode([closed, *along], [pushing]))
            continue
        cone = [(t * e[a + 1] - mu * sign * e[a], 0.0) for t in (1.0, -1.0)]
        modes.append(_mode([closed, (G[a + 1], -g[a + 1])], [pushing, *cone]))
        for s in (1.0, -1.0):
            slip = (e[a + 1] + s * mu * sign * e[a], 0.0)
            modes.append(_mode([closed, slip], [pushing, (-s * G[a + 1], s * g[a + 1])]))
    if problem.kind[i] == UNILATERAL:
        modes.append(_mode([(e[j], 0.0) for j in range(a, b)], [(-G[a], g[a])]))
    return modes


def _mode(equations: list, inequalities: list) -> _Mode:
    mode = _Mode()
    mode.equations, mode.inequalities = equations, inequalities
    return mode


def _stacked(rows: list[tuple[Array, float]], p: int) -> tuple[Array, Array]:
    """Return rows and right sides, each row of unit size."""
    if not rows:
        return np.zeros((0, p)), np.zeros(0)
    E, e = np.array([row for row, _ in rows]), np.array([value for _, value in rows])
    size = np.abs(E).max(axis=1)
    size = np.where(size > 0.0, size, 1.0)
    return E / size[:, None], e / size


def _feasible(E: Array, e: Array, F: Array, f: Array, scale: float) -> Array | None:
    """Return reactions that satisfy a mode, or None."""
    p = E.shape[1]
    r, _, rank, _ = np.linalg.lstsq(E, e, rcond=REDUNDANT_EQUATIONS)
    slack = SLACK * scale + SLACK_OF_ROUNDING * np.abs(r).max(initial=0.0)
    if np.abs(E @ r - e).max(initial=0.0) > slack:
        return None
    if np.all(F @ r <= f + slack):
        return r
    if rank == p:
        return None
    best = OPTIMIZE.linprog(
        np.zeros(p), A_ub=F, b_ub=f / scale, A_eq=E, b_eq=e / scale, bounds=(None, None), method="highs"
    )
    return best.x * scale if best.status == 0 else None


def family_of(problem: ConeProblem, r: Array) -> tuple[Array, tuple[str, ...]]:
    """Return other accelerations of the same mode (extremes, or none), and contacts whose reactions are open.

    The mode is held fixed: contacts at rest that stick keep u = 0 with reactions in the cone (a plane: in a polygon
    inside it), slipping ones keep their direction, open ones stay apart. If the reactions can move within it, the
    answer is a family: all directions that it has are found at once, from one of its inner points.
    """
    G, g = problem.delassus
    p, nothing = g.size, np.zeros((0, problem.system.n))
    if p == 0:
        return nothing, ()
    scale = typical_reaction(problem)
    modes = [_present_mode(problem, i, r, G, g, scale) for i in range(len(problem.names))]
    E, _ = _stacked([row for mode in modes for row in mode.equations], p)
    F, f = _stacked([row for mode in modes for row in mode.inequalities], p)
    basis, members = _family(E, F, f, r, problem.reduced.reduced[1], scale)
    names = tuple(problem.names[i] for i in np.flatnonzero(_contacts_of(problem, basis)))
    others = [problem.reduced.acceleration(x)[0] for x in members]
    return np.array(others).reshape(len(others), problem.system.n), names


def _family(E: Array, F: Array, f: Array, r: Array, J: Array, scale: float) -> tuple[Array, list[Array]]:
    """Return the directions in which reactions r may change within a mode, and members with other accelerations.

    The latter are extremes along the directions that move most, from an inner point of the family.
    """
    null = null_space(E)
    if not null.shape[1]:
        return null, []
    room = np.maximum((f - F @ r) / scale, 0.0)
    basis, inward = open_directions(null, (F @ null)[room <= ACTIVE])
    if not basis.shape[1]:
        return basis, []
    middle = r / scale + 0.5 * _reach(inward, F, room) * inward
    room = np.maximum(f / scale - F @ middle, 0.0)
    _, values, turns = np.linalg.svd(J @ basis, full_matrices=False)
    moving = turns[values > ACTIVE * np.abs(J).max(initial=np.finfo(float).tiny)][:ALTERNATIVES]
    ways = [sign * (basis @ turn) for turn in moving for sign in (1.0, -1.0)]
    return basis, [scale * (middle + _reach(way, F, room) * way) for way in ways]


def _reach(way: Array, F: Array, room: Array) -> float:
    """Return how far a direction may be followed: to the first inequality, or one typical reaction."""
    against = F @ way
    blocked = against > ACTIVE * np.abs(way).max(initial=0.0)
    longest = 1.0 / max(np.abs(way).max(initial=0.0), np.finfo(float).tiny) if way.any() else 0.0
    return float(min(longest, np.min(room[blocked] / against[blocked], initial=np.inf)))


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
    if np.linalg.norm(r[a:b]) >= limit * (1.0 - PRESENT) and not _still(a, b, r, G, g):
        return _mode([(_unit(j, g.size), r[j]) for j in range(a, b)], _slips(a, b, r, G, g)[1])
    inside = [(_spread(n, a, g.size), part * limit) for n, part in sides(r[a:b])]
    return _mode([(G[j], -g[j]) for j in range(a, b)], inside)


def _unit(j: int, p: int) -> Array:
    return _spread(np.ones(1), j, p)


def _spread(values: Array, a: int, p: int) -> Array:
    """Return a row (p,) with values from place a on."""
    row = np.zeros(p)
    row[a : a + values.size] = values
    return row


def _still(a: int, b: int, r: Array, G: Array, g: Array) -> bool:
    u, terms = G[a:b] @ r + g[a:b], np.abs(G[a:b]) @ np.abs(r) + np.abs(g[a:b])
    return bool(np.linalg.norm(u) <= PRESENT * terms.max(initial=1e-300))


def _slips(a: int, b: int, r: Array, G: Array, g: Array) -> tuple[list, list]:
    """Return what keeps the tangents a .. b - 1 slipping the way they do: nothing across it, and not backwards."""
    u = G[a:b] @ r + g[a:b]
    e = u / np.linalg.norm(u)
    across = [] if b - a < 2 else [(np.array([-e[1], e[0]]) @ G[a:b], -float(-e[1] * g[a] + e[0] * g[a + 1]))]
    return across, [(-e @ G[a:b], float(e @ g[a:b]))]


def _present_mode(problem: ConeProblem, i: int, r: Array, G: Array, g: Array, scale: float) -> _Mode:
    """Return the equations and inequalities of the mode that contact i is in at r."""
    a, b, mu, p = int(problem.first[i]), int(problem.first[i + 1]), float(problem.mu[i]), g.size
    if problem.kind[i] == FIXED:
        return _present_given(a, b, mu, r, G, g)
    if problem.kind[i] == UNILATERAL and r[a] <= PRESENT * scale:
        return _mode([(_unit(j, p), 0.0) for j in range(a, b)], [(-G[a], g[a])])
    sign = 1.0 if r[a] >= 0.0 else -1.0
    closed, pushing = (G[a], -g[a]), (-sign * _unit(a, p), 0.0)
    t, tangents = slice(a + 1, b), range(a + 1, b)
    if problem.sliding[i]:
        along = -mu * sign * problem.direction[t]
        slip = [(_unit(j, p) - x * _unit(a, p), 0.0) for j, x in zip(tangents, along, strict=True)]
        return _mode([closed, *slip], [pushing])
    if np.linalg.norm(r[t]) >= mu * abs(r[a]) * (1.0 - PRESENT) and not _still(a + 1, b, r, G, g):
        along = r[t] / r[a] if r[a] != 0.0 else np.zeros(b - a - 1)
        across, forwards = _slips(a + 1, b, r, G, g)
        slip = [(_unit(j, p) - x * _unit(a, p), 0.0) for j, x in zip(tangents, along, strict=True)]
        return _mode([closed, *slip, *across], [pushing, *forwards])
    cone = [(_spread(n, a + 1, p) - part * mu * sign * _unit(a, p), 0.0) for n, part in sides(r[t])]
    return _mode([closed, *[(G[j], -g[j]) for j in tangents]], [pushing, *cone])

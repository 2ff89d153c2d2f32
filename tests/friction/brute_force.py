"""Coulomb's law for a few contacts by brute force: every mode, and every direction of slip, tried.

Symbols, per contact: r = (N, r_T) reaction, u = G r + g acceleration, s direction of slip, unit.

    open   r = 0, u_N >= 0
    stick  u = 0, |r_T| <= mu N
    slip   u_N = 0, r_T = -mu N s, N >= 0, u_T = |u_T| s

With one tangent s is a sign. In a plane s is an angle: the angles of all slipping contacts are scanned on a grid, the
best points polished, and those kept at which u_T is along s. Nothing here is shared with the library.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import root

OPEN, STICK, SLIP = "open", "stick", "slip"
SLACK = 1e-9
GRID = {1: 360, 2: 60, 3: 24}
POLISHED = 24


def reactions(G, g, mu, modes, s):
    """Return r (..., p) of a mode with these directions of slip (..., k, d - 1): linear equations."""
    k = len(modes)
    d = len(g) // k
    p = k * d
    batch = s.shape[:-2]
    E, e = np.zeros((*batch, p, p)), np.zeros((*batch, p, 1))
    for i, mode in enumerate(modes):
        rows = slice(i * d, (i + 1) * d)
        if mode == OPEN:
            E[..., rows, rows] = np.eye(d)
            continue
        E[..., rows, :], e[..., rows, 0] = G[rows], -g[rows]
        if mode == SLIP:
            tangents = slice(i * d + 1, (i + 1) * d)
            E[..., tangents, :], e[..., tangents, :] = 0.0, 0.0
            E[..., tangents, tangents] = np.eye(d - 1)
            E[..., tangents, i * d] = mu[i] * s[..., i, :]
    return np.linalg.solve(E, e)[..., 0]


def obeys(G, g, mu, modes, s, r):
    """Say whether r has no contradiction to its mode."""
    k = len(modes)
    u, r = (G @ r + g).reshape(k, -1), r.reshape(k, -1)
    force, size = SLACK * np.abs(r).max(), SLACK * np.abs(g).max()
    for i, mode in enumerate(modes):
        if mode == OPEN and u[i, 0] < -size:
            return False
        if mode == STICK and np.linalg.norm(r[i, 1:]) > mu[i] * r[i, 0] + force:
            return False
        if mode == SLIP and (r[i, 0] < -force or np.linalg.norm(u[i, 1:] - np.linalg.norm(u[i, 1:]) * s[i]) > size):
            return False
    return True


def directions(angles, modes):
    """Return unit vectors (..., k, 2) of the slipping contacts; zero for the others."""
    s = np.zeros((*angles.shape[:-1], len(modes), 2))
    slipping = [i for i, mode in enumerate(modes) if mode == SLIP]
    s[..., slipping, 0], s[..., slipping, 1] = np.cos(angles), np.sin(angles)
    return s


def off(G, g, mu, modes, angles):
    """Return by which angles (..., j) the slipping contacts accelerate off their assumed directions."""
    slipping = [i for i, mode in enumerate(modes) if mode == SLIP]
    s = directions(angles, modes)
    u = (reactions(G, g, mu, modes, s) @ G.T + g).reshape(*angles.shape[:-1], len(modes), -1)
    u, s = u[..., slipping, 1:], s[..., slipping, :]
    return np.arctan2(s[..., 0] * u[..., 1] - s[..., 1] * u[..., 0], np.sum(s * u, axis=-1))


def slips(G, g, mu, modes):
    """Return candidates for the directions of slip in a plane, polished."""
    j = modes.count(SLIP)
    if j == 0:
        return [np.zeros((len(modes), 2))]
    axis = np.linspace(0.0, 2.0 * np.pi, GRID[j], endpoint=False)
    grid = np.stack(np.meshgrid(*[axis] * j, indexing="ij"), axis=-1).reshape(-1, j)
    best = grid[np.argsort(np.abs(off(G, g, mu, modes, grid)).max(axis=-1))[:POLISHED]]
    polished = [root(lambda x: off(G, g, mu, modes, x), start, options={"xtol": 1e-14}).x for start in best]
    return [directions(x, modes) for x in polished]


def every_answer(G, g, mu, planes):
    """Return all reactions (a, p) that obey the laws."""
    k, found = len(mu), []
    for modes in product((OPEN, STICK, SLIP), repeat=k):
        if planes:
            trials = slips(G, g, mu, modes)
        else:
            signs = product(*[(1.0, -1.0) if mode == SLIP else (0.0,) for mode in modes])
            trials = [np.array(sign)[:, None] for sign in signs]
        for s in trials:
            r = reactions(G, g, mu, modes, s)
            same = any(np.abs(r - x).max() <= 1e-7 * np.abs(r).max() for x in found)
            if not same and obeys(G, g, mu, modes, s, r):
                found.append(r)
    return np.array(found).reshape(len(found), len(g))

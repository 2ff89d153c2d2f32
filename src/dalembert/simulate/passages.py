"""Singular configurations on the way of a run: where constraint rows lose their rank, and other motions branch off.

Symbols: s_r / s_1 the least of the singular values that count over the largest, rows in the metric of the mass: the
distance from a singular configuration (`model/mechanism/ranks.py`).

A flat parallelogram may go on as one or as an antiparallelogram; steps go straight on, which is the smooth motion. That
is a decision, and a run says where it was taken. Between samples the distance is followed on the cubic through them,
whose own error it cannot fall below: so a passage is a distance that falls out of line, not one that vanishes.
"""

from __future__ import annotations

import numpy as np

from dalembert.model.mechanism.constraint_rows import generic_jacobian
from dalembert.model.mechanism.ranks import GenericRank, distances
from dalembert.simulate.limits import PASSED
from dalembert.simulate.trajectory import Trajectory, interpolated
from dalembert.types import Array

FALLS = 0.5
"""Part of the usual distance below which a place may lie next to a passage. A distance grows like |sin x| from it: of
places a radian apart the nearest sees sin(1/2) = 0.48 at most."""

MOST_PLACES = 20_000
"""Places of a run that are looked at, ten microseconds each; a run of more samples is not."""

PARTS = 8
"""Most places between two samples: an explicit step may pass two singular configurations."""

MOST_PASSAGES = 50
"""Passages of a run that are looked for."""

BLOCK = 2_000
"""Places whose matrices are kept at once; in runs of more samples these lie close enough."""

POINTS, ROUNDS = 9, 8
"""Places around a least distance, and how often they are drawn together, four times each."""

LEVEL = 0.25
"""Part of the largest distance among `POINTS` above which the least belongs to no passage: next to one the distance is
|x|, whose least is an eighth of the largest at most; |sin x| over two radians has 0.15."""


def singular_passages(run: Trajectory, rank: GenericRank) -> str:
    """Return a sentence where a run passes singular configurations, else nothing."""
    if not rank.rank or not 1 < run.t.size <= MOST_PLACES:
        return ""
    parts = max(1, min(PARTS, BLOCK // run.t.size))
    t = np.unique(np.concatenate([run.t[:-1] + u * np.diff(run.t) for u in np.arange(parts) / parts] + [run.t[-1:]]))
    far = np.concatenate([_distances(run, rank, t[k : k + BLOCK]) for k in range(0, t.size, BLOCK)])
    padded = np.r_[np.inf, far, np.inf]
    low = np.flatnonzero((far <= padded[:-2]) & (far < padded[2:]) & (far < FALLS * rank.kept))
    low = low[:MOST_PASSAGES]
    times, least = _nearest(run, rank, t[np.maximum(low - 1, 0)], t[np.minimum(low + 1, t.size - 1)])
    passed = np.flatnonzero(least < PASSED * rank.kept)
    if not passed.size:
        return ""
    listed = ", ".join(f"{time:.6g} s" for time in times[passed[:3]])
    more = f" and {passed.size - 3} more" if passed.size > 3 else ""
    return (
        f"passes singular configurations at t = {listed}{more}: rows become dependent there (s_r / s_1 = "
        f"{least.min():.1e} where {rank.kept:.1e} is usual) and other motions may branch off; the run goes straight on"
    )


def _distances(run: Trajectory, rank: GenericRank, t: Array) -> Array:
    """Return s_r / s_1 at times of a run."""
    m = run.moving
    q = interpolated(run, np.searchsorted(run.t, t, side="right") - 1, t)[0]
    M, A = np.asarray(m.mass_matrix(q, t)), np.asarray(generic_jacobian(m, q, t))
    return distances(rank, M.reshape(len(q), m.nv, m.nv), A.reshape(len(q), len(m.names), m.nv))


def _nearest(run: Trajectory, rank: GenericRank, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the times (n,) between others, `low` and `high`, at which distances are least, and these distances.

    Places that turn out to lie next to no passage are left where they are.
    """
    low, high = low.copy(), high.copy()
    times, least, drawn = low.copy(), np.full(low.size, np.inf), np.arange(low.size)
    for _ in range(ROUNDS):
        if not drawn.size:
            break
        t = np.linspace(low[drawn], high[drawn], POINTS)
        far = _distances(run, rank, t.ravel()).reshape(t.shape)
        k, column = far.argmin(axis=0), np.arange(drawn.size)
        times[drawn], least[drawn] = t[k, column], far[k, column]
        low[drawn], high[drawn] = t[np.maximum(k - 1, 0), column], t[np.minimum(k + 1, POINTS - 1), column]
        drawn = drawn[least[drawn] <= LEVEL * far.max(axis=0)]
    return times, least

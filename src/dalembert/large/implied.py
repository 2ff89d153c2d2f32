"""Implied rows of a large mechanism: a property of the mechanism, looked for around one configuration.

At one configuration a pivot that vanishes may be a row that others imply everywhere, or a rank that is lost there. So
pivots are looked at in other configurations as well, reached along motions that the rows allow and closed by Newton's
method: the fewest rows without a pivot are the implied ones. Fronts have pivots; a sparse LU has none that say this,
and there the Delassus matrix is formed and eliminated with pivots, as long as it fits. Where it does not, no rank is
known, and redundant rows must agree to rounding: a direction that was left out without being dependent leaves more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpstrf  # pyright: ignore[reportAttributeAccessIssue]

from dalembert.kkt.limits import IMPLIED_PIVOT, SLACK
from dalembert.kkt.newton import onto_manifold
from dalembert.large.row_kernels import RowValues
from dalembert.large.sparse import SparseBlock
from dalembert.tree.block.conditioning import residual_sizes
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.large.block_system import LargeSystem

FAR = (0.05, 0.3, 0.6)
"""How far away configurations beside the first are: radians, or parts of the mechanism's size."""

CLOSING_STEPS = 20
"""Newton steps back to the constraints: next to a singular configuration they are slow, elsewhere five will do."""

PASSES = 8
"""Factors until no further row is found without a pivot: a row that rounding kept spoils the pivots after it."""

LARGEST_DENSE = 500
"""Rows up to which this is done for a sparse LU, once for a mechanism: some seconds. Of more rows, dozens of factors at
other configurations would take minutes."""

LEFT_OUT = 1e20
"""Shift of a row, as part of its diagonal, that leaves it out: it bears nothing."""


def implied_rows(system: LargeSystem, present: Array) -> Array | None:
    """Return which of the rows that are `present` others imply, (m,); None where no way leads to it."""
    sparse = isinstance(system.block, SparseBlock)
    if sparse and (system.massless is not None or system.rows.m > LARGEST_DENSE):
        return None
    q, _, t, _ = system.room.at
    candidates, fewest = _without_pivot(system, q, t, present, sparse), None
    if candidates is None:
        return None
    if not candidates.any():
        return candidates
    for near in _around(system, q, t):
        implied = _without_pivot(system, near, t, present, sparse)
        if implied is not None and (fewest is None or implied.sum() < fewest.sum()):
            fewest = implied
    return candidates if fewest is None or candidates.sum() <= fewest.sum() else fewest


def _without_pivot(system: LargeSystem, q: Array, t: float, present: Array, sparse: bool) -> Array | None:
    """Return the rows without a pivot at one configuration; None where a joint has none."""
    values = _masked(system.still(q, t), present)
    implied = np.zeros(len(present), dtype=bool)
    if sparse:
        return _by_elimination(system, values, present)
    for _ in range(PASSES):
        factors = system.block.factor(values, np.zeros(len(present)))
        scale = system.scales(factors.g)
        if implied.any() or not present.all():
            factors = system.block.factor(values, np.where(implied | ~present, LEFT_OUT * scale, 0.0))
        if not factors.worst > 0.0:
            return None
        more = present & ~implied & (np.abs(factors.pivots) <= IMPLIED_PIVOT * scale)
        if not more.any():
            break
        implied |= more
    return implied


def _by_elimination(system: LargeSystem, values: RowValues, present: Array) -> Array:
    """Return the rows that are left when the Delassus matrix is eliminated, largest pivot first."""
    m = system.rows.m
    G = np.zeros((m, m))
    for k in np.flatnonzero(present):
        G[:, k] = system.move_rows(values, system.tree.yielding(system.pull(values, np.eye(1, m, int(k))[0])))
    G = np.where(np.outer(present, present), (G + G.T) / 2, 0.0)
    d = system.scales(np.diagonal(G).copy()) ** -0.5
    _, order, rank, _ = dpstrf(d[:, None] * G * d, tol=IMPLIED_PIVOT, lower=1)
    independent = present.copy()
    independent[order[:rank] - 1] = False
    return independent


def _around(system: LargeSystem, q: Array, t: float) -> list[Array]:
    """Return closed configurations around q."""
    rng, configurations = np.random.default_rng(0), list[Array]()
    mechanism, reach = system.layout.mechanism, system.layout.mechanism.reach
    held = system.rows.residual_place
    sizes = residual_sizes(mechanism)[held >= 0]
    still = np.zeros(mechanism.nv)

    def linearised(place: Array) -> tuple[float, Callable[[], Array]]:
        values = system.moved(place, still, t)
        c = np.zeros(system.rows.m)
        c[held >= 0] = -values.residual[held[held >= 0]]
        size = float(np.abs(values.residual / sizes).max(initial=0.0))
        return size, lambda: _nearest(system, values, c, held >= 0)

    for length in FAR:
        values = system.moved(q, still, t)
        away = rng.standard_normal(mechanism.nv)
        away += _nearest(system, values, -system.move_rows(values, away))
        place = mechanism.integrate(q, length * min(reach, 1.0) / (np.abs(away).max() or 1.0) * away)
        place, open_by = onto_manifold(place, linearised, mechanism.integrate, CLOSING_STEPS + 1)
        if np.isfinite(place).all() and open_by <= SLACK:
            configurations.append(place)
    return configurations


def _nearest(system: LargeSystem, values: RowValues, c: Array, present: Array | None = None) -> Array:
    """Return the least motion with A a = c, of rows of any rank."""
    values = values if present is None else _masked(values, present)
    block, still = system.block, np.zeros(system.layout.mechanism.nv)
    measured = block.first(values)[0] if isinstance(block, SparseBlock) else block.factor(values, np.zeros(len(c)))
    factors = block.factor(values, system.shift(measured.g, system.scales(measured.g)))
    return system.proximal(factors, np.zeros((0, 6)), still, c)[0]


def _masked(values: RowValues, present: Array) -> RowValues:
    """Return the rows with zeros for those that are not present."""
    if present.all():
        return values
    wrenches = np.where(present[:, None, None], values.wrenches, 0.0)
    return RowValues(wrenches, values.rate, values.drift, values.residual)

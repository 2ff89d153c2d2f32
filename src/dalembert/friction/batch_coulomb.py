"""Many states with reactions as limits: the contacts of all samples as arrays, then the compiled loop.

All samples share their contacts and rows; who slides, and with which coefficient, is per sample. A bounded contact in
motion keeps its row with the limit zero, and its force goes to the load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.friction.index_sets import STILL
from dalembert.friction.law import Law
from dalembert.friction.laws import as_law
from dalembert.friction.reaction_problem import (
    BILATERAL,
    FIXED,
    UNILATERAL,
    Limited,
    Reacting,
    directions_of,
    row_number,
)
from dalembert.friction.resolution import OPTIMAL
from dalembert.friction.resolve_coulomb import TOLERANCE
from dalembert.friction.samples import BatchResolution, Samples, least_multipliers
from dalembert.friction.status import FrictionStatus

Array = np.ndarray

NEWTON = 10
"""Steps of Newton's method in the compiled loop; what is left unsolved then is resolved by itself."""

REDUNDANT = 16
"""With so many rows, more than there are coordinates, each sample is resolved by itself: Newton's method would fail."""


@dataclass(frozen=True, eq=False)
class ReactingBatch:
    """Contacts (c) with rows (p) of N samples.

    `source` (p,) says where a row comes from: a column of W, or -1 - i for row i of A. `first`, `kind` as in
    `reaction_problem`; `mu`, `sliding` (N, c), `direction` (N, p), `known` (N, m) forces of bounded contacts in motion;
    `others` are the rows of A that load no contact.
    """

    source: Array
    first: Array
    kind: Array
    others: Array
    mu: Array
    sliding: Array
    direction: Array
    known: Array


def reacting_batch(data: Samples, laws: Any, names: Any, rows: Any, at_rest: float) -> ReactingBatch:
    """Check the laws and evaluate them at all velocities; a bad sample has NaN for a coefficient."""
    (N, m), c = data.velocity.shape, len(laws)
    widths = directions_of(laws, names)
    if sum(widths) != m:
        raise ShapeError(f"the {c} laws take {sum(widths)} columns of W (two for a plane); W has {m}")
    source, first, kind = [], [0], []
    mu, sliding, known = np.empty((N, c)), np.empty((N, c), dtype=np.bool_), np.zeros((N, m))
    column = 0
    for i, law in enumerate(laws):
        columns = list(range(column, column + widths[i]))
        velocity = data.velocity[:, columns]
        speed = np.linalg.norm(velocity, axis=1)
        sliding[:, i] = ~(speed <= at_rest)
        given = _law(law.law if isinstance(law, Reacting | Limited) else law, names[i])
        moving = np.asarray(given.kinetic(np.nan_to_num(speed))) * np.ones(N)
        mu[:, i] = np.where(sliding[:, i], moving, float(given.static()))
        if isinstance(law, Reacting):
            row = _normal(law, names[i], rows, source)
            source.append(-1 - row)
            kind.append(UNILATERAL if law.unilateral else BILATERAL)
        else:
            load = np.where(data.loads[:, i] >= 0.0, data.loads[:, i], np.nan)
            unit = np.where(np.isfinite(velocity), velocity, 0.0) / np.where(speed > 0.0, speed, 1.0)[:, None]
            known[:, columns] = np.where(sliding[:, [i]], -(load * moving)[:, None] * unit, 0.0)
            mu[:, i] = np.where(sliding[:, i] & np.isfinite(load), 0.0, load * mu[:, i])
            kind.append(FIXED)
        mu[~np.isfinite(speed), i] = np.nan
        source += columns
        first.append(len(source))
        column += widths[i]
    source = np.array(source, dtype=np.int64)
    others = np.setdiff1d(np.arange(data.A.shape[1]), -1 - source[source < 0])
    direction = _directions(data.velocity, source, np.array(first), np.array(kind), sliding)
    return ReactingBatch(source, np.array(first), np.array(kind, dtype=np.int64), others, mu, sliding, direction, known)


def _law(given: Any, name: str) -> Law:
    law = as_law(given, f"contact {name!r}")
    if law.needs_state:
        raise ModelError(f"contact {name!r}: a law that depends on the state is resolved one by one: use resolve")
    return law


def _normal(law: Reacting, name: str, rows: Any, source: list[int]) -> int:
    """Return the row of A that loads a contact; each row loads one."""
    row = row_number(rows, law.row, name)
    if -1 - row in source:
        raise ModelError(f"contact {name!r}: the row {rows[row]!r} is the normal of another contact already")
    return row


def _directions(velocity: Array, source: Array, first: Array, kind: Array, sliding: Array) -> Array:
    """Return unit vectors of sliding on the tangential rows, zero elsewhere."""
    out = np.zeros((len(velocity), source.size))
    for i in range(first.size - 1):
        if kind[i] != FIXED:
            tangent = np.arange(first[i] + 1, first[i + 1])
            v = velocity[:, source[tangent]]
            speed = np.linalg.norm(v, axis=1)[:, None]
            moving = sliding[:, [i]] & (speed > 0.0)
            out[:, tangent] = np.where(moving, v / np.where(speed > 0.0, speed, 1.0), 0.0)
    return out


def solved_reacting(data: Samples, c: ReactingBatch, T: Array, associated: bool) -> BatchResolution:
    """Run the kernel; T comes in as the first guess."""
    from dalembert.friction.batch_coulomb_kernel import reacting_samples
    from dalembert.friction.cone_kernel import ASSOCIATED, COULOMB

    (N, n), (m, p) = data.f.shape, (T.shape[1], c.source.size)
    tangent = c.source >= 0
    r, a, u = np.zeros((N, p)), np.full((N, n), np.nan), np.full((N, p), np.nan)
    r[:, tangent] = np.nan_to_num(T[:, c.source[tangent]])
    normals = -1 - c.source[~tangent]
    drift = np.empty((N, p))
    drift[:, tangent], drift[:, ~tangent] = data.contact_drift[:, c.source[tangent]], data.drift[:, normals]
    load = data.f + np.einsum("sij,sj->si", np.broadcast_to(data.W, (N, n, m)), c.known)
    residual, steps = np.full(N, np.nan), np.zeros(N, dtype=np.int64)
    code, status = np.zeros((N, c.kind.size), dtype=np.int64), np.zeros(N, dtype=np.int64)
    given = (data.M, load, data.W, data.A, c.source, c.others, drift, data.drift[:, c.others], c.mu, c.direction)
    compiled: Any = reacting_samples
    stack = p >= REDUNDANT and p > n - c.others.size
    compiled(
        *(np.ascontiguousarray(x) for x in given), c.first, c.kind, c.sliding, ASSOCIATED if associated else COULOMB,
        (TOLERANCE, OPTIMAL, STILL, 0 if stack else NEWTON), a, r, u, code, status, residual, steps,
    )  # fmt: skip
    forces, xi = c.known.copy(), np.full((N, m), np.nan)
    forces[:, c.source[tangent]] += r[:, tangent]
    xi[:, c.source[tangent]] = u[:, tangent]
    bad = status != FrictionStatus.SOLVED
    forces[bad], a[bad], xi[bad] = np.nan, np.nan, np.nan
    lam = np.zeros((N, data.A.shape[1]))
    lam[:, normals] = -r[:, ~tangent]
    pushed = load + np.einsum(
        "sij,sj->si", np.broadcast_to(data.A, (N, *data.A.shape[1:]))[:, normals].transpose(0, 2, 1), r[:, ~tangent]
    )
    left = Samples(
        data.M, pushed, data.W, data.velocity, data.A[:, c.others], data.drift, data.contact_drift, data.loads
    )
    lam[:, c.others] = least_multipliers(left, a, forces - c.known)
    lam[bad] = np.nan
    return BatchResolution(a, forces, xi, lam, code, status, residual, steps)

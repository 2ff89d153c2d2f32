"""Farkas certificate of a contradiction: weights under which contact rows sum to zero and their drifts do not.

A contact asks for n_j a + drift_j >= 0 (an equation where it pulls as well, or is a constraint row). With weights w,
w_j >= 0 at those that only push,

    sum w_j n_j = 0   and   sum w_j drift_j < 0      =>      no acceleration obeys them all      (Farkas' lemma)

Two jaws that close on a part, a wedge. Masses, loads and friction have no part in it: d = w is a direction of recession
of the reactions, G d = 0 with d . g < 0, along which iterations diverge. Coulomb's law keeps n a + drift >= 0, so the
proof holds for it. The associated problem asks for more, u in the dual of the friction cone: there the rows of the
cone's edges, n + mu e, count as well, and weights on them prove nothing about Coulomb's law.

Source: R. T. Rockafellar, "Convex Analysis" (1970), sec. 22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.first_use import OPTIMIZE
from dalembert.friction.cones.contact_rows import ConeProblem
from dalembert.friction.contact_problem import BILATERAL, FIXED, UNILATERAL
from dalembert.friction.limits import CANCELS, CONTRADICTS, USED, USED_RANK
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

EDGES = 24
"""Edges that stand for the cone of a contact in a plane: a pyramid inside it, so that a proof remains a proof."""


def farkas_weights(
    rows: Float[Array, "m n"], drift: Float[Array, " m"], equation: Bool[Array, " m"]
) -> Float[Array, " m"] | None:
    """Return weights that prove rows a + drift >= 0 (= 0 at equations) to have no answer, the largest 1; else None."""
    size = np.abs(rows).max(axis=1, initial=0.0)
    size = np.where(size > 0.0, size, 1.0)
    R, b = rows / size[:, None], drift / size
    high = np.abs(b).max(initial=0.0)
    if high == 0.0:
        return None
    columns = np.abs(R).max(axis=0, initial=0.0)
    C = (R / np.where(columns > 0.0, columns, 1.0)).T
    bounds = [(-1.0, 1.0) if both else (0.0, 1.0) for both in equation]
    best = OPTIMIZE.linprog(b / high, A_eq=C, b_eq=np.zeros(len(C)), bounds=bounds, method="highs")
    if best.status != 0 or best.fun > -CONTRADICTS:
        return None
    w = _exact(C, np.asarray(best.x))
    proved = (
        (equation | (w >= 0.0)).all()
        and (np.abs(C @ w) <= CANCELS * (np.abs(C) @ np.abs(w))).all()
        and b @ w < -CONTRADICTS * (np.abs(b) @ np.abs(w))
    )
    return w / size / np.abs(w / size).max() if proved else None


def _exact(C: Array, w: Array) -> Array:
    """Return weights of a linear programme with C w = 0 to rounding: within the null space of the columns they use."""
    used = np.flatnonzero(np.abs(w) > USED * np.abs(w).max())
    _, values, Vt = np.linalg.svd(C[:, used])
    rank = int(np.count_nonzero(values > USED_RANK * max(values.max(initial=0.0), np.finfo(float).tiny)))
    null = Vt[rank:]
    out = np.zeros(w.size)
    out[used] = null.T @ (null @ w[used])
    return out


def contradiction(problem: ConeProblem, associated: bool = False) -> dict[str, float]:
    """Return the weights of contacts and constraint rows that contradict each other by name; empty where none is found.

    With `associated` the weight of a contact is its part of the direction of recession along the normal.
    """
    system, H = problem.system, problem.reduced.W.T
    rows, drift, owner, equation = [], [], [], []
    for i, name in enumerate(problem.names):
        a, b = int(problem.first[i]), int(problem.first[i + 1])
        if problem.kind[i] == FIXED:
            continue
        cone = associated and problem.kind[i] == UNILATERAL and not problem.sliding[i]
        for edge in _edges(problem.mu[i] if cone else 0.0, b - a - 1):
            rows.append(edge @ H[a:b])
            drift.append(float(edge @ problem.reduced.contact_drift[a:b]))
            owner.append(name)
            equation.append(bool(problem.kind[i] == BILATERAL))
    for i, row in enumerate(problem.others):
        rows.append(system.A[row])
        drift.append(float(problem.reduced.drift[i]))
        owner.append(system.names[row])
        equation.append(True)
    if not rows:
        return {}
    w = farkas_weights(np.array(rows), np.array(drift), np.array(equation))
    if w is None:
        return {}
    sums: dict[str, float] = {}
    for name, weight in zip(owner, w.tolist(), strict=True):
        if abs(weight) > CONTRADICTS:
            sums[name] = sums.get(name, 0.0) + weight
    return sums


def _edges(mu: float, tangents: int) -> Array:
    """Return edges (1, mu e) of a contact's cone, (j, 1 + tangents); the normal alone without friction."""
    if mu == 0.0 or tangents == 0:
        return np.eye(1, 1 + tangents)
    if tangents == 1:
        return np.array([[1.0, mu], [1.0, -mu]])
    angles = 2.0 * np.pi * np.arange(EDGES) / EDGES
    return np.column_stack([np.ones(EDGES), mu * np.cos(angles), mu * np.sin(angles)])

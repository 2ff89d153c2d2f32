"""A loop inside a tree, dealt with in two ways: eliminated where it meets, or embedded in its joint's motion.

Symbols: a flying body b carries two limbs of k hinges that meet in a point: velocities v = (v_b, v_c), rows A = (0,
A_c). Constraint embedding (Jain 2012; Chignoli, Adrian, Kim & Wensing, arXiv 2311.13732) chooses independent
velocities y of the loop's cluster of joints, v_c = G y + g, and treats the cluster as one joint:

    [A_d A_i] (v_d, v_i) = c   =>   G = (-A_d^-1 A_i; 1),  g = (A_d^-1 c; 0)
    [ M_bb          M_bc G     ] (a_b, y') = right sides less M g,     A_d^T lam = what is left of the rows d
    [ G^T M_cb      G^T M_cc G ]

M by composite bodies, its zeros used; elimination is route "caba" (`tree/routes/caba.py`). Both give a and lam
for arbitrary right sides; neither count has a verdict. Dependent velocities are chosen before, by a rank-revealing
factorization at one configuration: embedding needs that choice to hold at all others.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg

import dalembert as da
from dalembert.kkt.expressions.scalars import Scalar, add, mul, neg, sub, total
from dalembert.kkt.expressions.sparse_factor import dense, sparse, sparse_factor
from dalembert.tree.algorithms.dynamics import REST
from dalembert.tree.block import constrained
from dalembert.tree.block.articulated_system import Load
from dalembert.tree.routes.caba import InsideTheTree, inward, outward
from dalembert.tree.routes.route_report import cost_of
from dalembert.tree.routes.tree_rows import TreeRows

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests import reference as plain

Matrix = list[list[Scalar]]


def cluster(k: int) -> da.Mechanism:
    """Return a flying body with two limbs of k hinges that meet in a point."""
    rng, b = np.random.default_rng(3), da.Builder("cluster")
    b.body("base", mass=5.0, center=(0.1, 0, 0.2), inertia=(1, 1.2, 0.8))
    b.joint("base", "free", parent="world", child="base")
    for side in "lr":
        for i in range(k):
            b.body(f"{side}{i}", mass=1.0, center=rng.uniform(-0.3, 0.3, 3), inertia=rng.uniform(0.5, 1, 3))
            place = {"position": rng.uniform(-0.5, 0.5, 3), "rotation": rng.standard_normal(4)}
            parent = f"{side}{i - 1}" if i else "base"
            b.joint(f"{side}{i}", "revolute", parent=parent, child=f"{side}{i}", axis=(0, 0, 1), **place)
    return b.build().constrain(da.Point(f"l{k - 1}", f"r{k - 1}", placement=(0.3, 0.1, 0.2)))


def embedding_operations(k: int) -> tuple[int, int]:
    """Return the operations of elimination and of embedding, after comparing their answers with the dense ones."""
    mechanism = cluster(k)
    setting = constrained.Tracing.of(mechanism)
    y1, y2 = setting.symbol("y1"), setting.symbol("y2", len(mechanism.names))
    rows = TreeRows.of(setting)
    inputs = ("q", "y1", "y2")
    q, f, c = mechanism.random(4), np.ones(mechanism.nv), np.array([1.0, 2.0, 3.0])
    state, forces = plain.State.at(mechanism, q), plain.RowForces.at(mechanism, q)
    M, A = plain.crba(state), forces.matrix(state)
    size = len(c)
    x = np.linalg.solve(np.block([[M, A.T], [A, np.zeros((size, size))]]), np.concatenate([f, c]))
    operations = []
    for name, answer in (
        ("elimination", by_elimination(setting, rows, y1, rows.from_world(y2))),
        ("embedding", by_embedding(setting, A, y1, y2)),
    ):
        a, lam = answer
        lam = rows.to_world(lam) if name == "elimination" else lam
        function = setting.function(name, (*inputs, "t"), {"a": a, "lam": lam})
        found = np.concatenate([np.array(each).ravel() for each in function(q, f, c, 0)])
        np.testing.assert_allclose(found, x, atol=1e-9 * np.abs(x).max())
        operations.append(cost_of(function).operations)
    return operations[0], operations[1]


def by_elimination(setting: constrained.Tracing, rows: TreeRows, y1: Any, y2: Any) -> tuple[list[Scalar], list[Scalar]]:
    """Return a and lam by route "caba"."""
    inside = InsideTheTree.of(setting, rows.forces)
    right = inward(inside.made, Load([REST] * len(setting.tree.links), y1), y2)
    at_ground = dense(inside.schur.solve(sparse([right.b[r] for r in inside.left])), len(inside.left))
    known = dict(zip(inside.left, at_ground, strict=True))
    motion = outward(inside.made, right, known)
    return motion.joints, [known[r] for r in range(len(y2))]


def by_embedding(setting: constrained.Tracing, A: Any, f: Any, c: Any) -> tuple[list[Scalar], list[Scalar]]:
    """Return a and lam by embedding; A (numbers) chooses the dependent velocities."""
    n, m = setting.mechanism.nv, len(c)
    dependent = sorted(scipy.linalg.qr(A, pivoting=True)[2][:m].tolist())
    free = [k for k in range(n) if k not in dependent]
    rows = [[setting.A[i][k] for k in (*dependent, *free)] + [c[i]] for i in range(m)]
    inverse = _gauss([row[:m] for row in rows])
    solved = [[total(*(mul(inverse[i][j], rows[j][k]) for j in range(m))) for k in range(m, n + 1)] for i in range(m)]
    G = {free[j]: {free[j]: 1.0, **{dependent[i]: neg(solved[i][j]) for i in range(m)}} for j in range(len(free))}
    g = {dependent[i]: solved[i][-1] for i in range(m)}
    M = setting.M
    MG = {j: _times(M, sparse(dense(column, n))) for j, column in G.items()}
    left = [sub(x, y) for x, y in zip(f, _times(M, g), strict=True)]
    H: Matrix = [[total(*(mul(G[i][k], MG[j][k]) for k in G[i])) for j in free] for i in free]
    right = [total(*(mul(G[i][k], left[k]) for k in G[i])) for i in free]
    y = dense(sparse_factor(H, reversed(range(len(free)))).solve(sparse(right)), len(free))
    a: list[Scalar] = [g.get(k, 0.0) for k in range(n)]
    for j, value in zip(free, y, strict=True):
        for k, entry in G[j].items():
            a[k] = add(a[k], mul(entry, value))
    rest = [sub(f[k], total(*(mul(M[k][j], a[j]) for j in range(n)))) for k in dependent]
    return a, [total(*(mul(inverse[j][i], rest[j]) for j in range(m))) for i in range(m)]


def _gauss(A: Matrix) -> Matrix:
    """Return the inverse of a small matrix by Gauss-Jordan elimination without pivots."""
    m = len(A)
    work = [[*row, *(1.0 if i == j else 0.0 for j in range(m))] for i, row in enumerate(A)]
    for k in range(m):
        r = 1 / work[k][k]
        work[k] = [mul(r, x) for x in work[k]]
        for i in range(m):
            if i != k:
                factor = work[i][k]
                work[i] = [sub(x, mul(factor, y)) for x, y in zip(work[i], work[k], strict=True)]
    return [row[m:] for row in work]


def _times(M: Any, x: dict[int, Scalar]) -> list[Scalar]:
    """Return M x with the zeros of both."""
    return [total(*(mul(row[k], value) for k, value in x.items())) for row in M]


if __name__ == "__main__":
    for k in (2, 3, 4, 6):
        print(k, *embedding_operations(k))

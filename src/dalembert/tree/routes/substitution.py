"""Right sides through a tree whose joints and rows have been eliminated: inward with forces, outward with motions.

Symbols: as in `elimination.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dalembert.tree import vectors
from dalembert.tree.articulated_factor import REST, accelerated, along_column, yielded
from dalembert.tree.articulated_system import Load, TreeAcceleration, scaled
from dalembert.tree.routes.elimination import Elimination, JointStep, RowStep
from dalembert.tree.scalars import Scalar, add, mul, neg, sub, total
from dalembert.tree.screws import Pair
from dalembert.tree.sparse_factor import Vector, dense
from dalembert.tree.sweep import pair_add


@dataclass(eq=False)
class Right:
    """u by velocity, b by row."""

    u: Vector
    b: Vector

    def joint(self, pA: Pair, step: JointStep, load: Load) -> Pair:
        """Pass a joint."""
        k, pivot = step.velocity, step.pivot
        tau = load.joints[k]
        self.u[k] = sub(tau, along_column(pivot.column, pA))
        height = mul(self.u[k], pivot.r)
        for s, kappa in step.kappa.items():
            self.b[s] = sub(self.b[s], mul(kappa, height))
        return yielded(pA, pivot, height, tau)

    def row(self, pA: Pair, step: RowStep) -> Pair:
        """Pass a row."""
        height = mul(self.b[step.row], step.r)
        for s, entry in step.L.items():
            self.b[s] = add(self.b[s], mul(entry, height))
        return pair_add(pA, scaled(neg(height), step.F))


def inward(made: Elimination, load: Load, c: Sequence[Scalar]) -> Right:
    """Return what a right side leaves at joints, at rows and at the ground."""
    right = Right({}, {r: neg(value) for r, value in enumerate(c)})
    arriving = list(load.links)
    for i in made.order:
        pA = arriving[i]
        for step in made.steps[i]:
            pA = right.joint(pA, step, load) if isinstance(step, JointStep) else right.row(pA, step)
        parent = made.posed[i].link.parent
        if parent >= 0:
            arriving[parent] = pair_add(arriving[parent], made.posed[i].force_out(pA))
    return right


def outward(made: Elimination, right: Right, lam: dict[int, Scalar]) -> TreeAcceleration:
    """Return accelerations, with lam of the rows left at the ground given; fill in lam of all others."""
    qdd: Vector = {}
    links: list[Pair] = [REST] * len(made.posed)
    for i in reversed(made.order):
        link, parent = made.posed[i], made.posed[i].link.parent
        a = REST if parent < 0 else link.motion_into(links[parent])
        for step in reversed(made.steps[i]):
            if isinstance(step, RowStep):
                others = total(*(mul(entry, lam[s]) for s, entry in step.L.items()))
                reach = total(*map(vectors.dot, step.F, a), sub(right.b[step.row], others))
                lam[step.row] = neg(mul(reach, step.r))
            else:
                k = step.velocity
                height = sub(right.u[k], total(*(mul(x, lam[s]) for s, x in step.kappa.items())))
                qdd[k], a = accelerated(a, step.pivot, mul(height, step.pivot.r))
        links[i] = a
    return TreeAcceleration(dense(qdd, made.tree.nv), links)

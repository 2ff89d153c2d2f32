"""Route "aba": the block matrix by the four steps of seed 002."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalembert.kkt.expressions.block_solver import RedundantRows, dot, factored, multipliers, row_pivots
from dalembert.kkt.expressions.scalars import neg, sub
from dalembert.kkt.expressions.sparse_factor import SparseFactor, dense, sparse
from dalembert.kkt.expressions.verdict import Asked, BlockAnswer, Conditioning, Solved, judged
from dalembert.kkt.limits import Thresholds
from dalembert.tree.algebra.count import inputs
from dalembert.tree.algorithms.dynamics import REST, UnresistedError, articulated_factor
from dalembert.tree.block.articulated_system import Load, TreeAcceleration, TreeSystem
from dalembert.tree.prepared.configuration import pose_tree
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.tree.block.constrained import Tracing

# ----------------------------------------------------------------------------------------------------------------------
# Why a tree cannot be taken by the articulated-body algorithm: a motion that nothing resists.
#
# Seen in the structure where it can be: the algorithm is run on symbols that are only counted, and a joint whose pivot
# is a known zero is named. A link may also be massless by cancellation, or lighter than rounding; that shows in numbers
# only (`conditioning.py`).


def massless_motion(setting: Tracing) -> str:
    """Return why the tree has a motion without mass; empty where it has none."""
    if not setting.needs.massless:
        return ""
    divided = "and its pivot is divided by" if massless_leaf(setting.tree) else "which tree routes divide by"
    return f"{massless_reason(setting)}, {divided}"


def massless_reason(setting: Tracing) -> str:
    """Return what nothing resists, in a mechanism that needs the block form."""
    leaf = massless_leaf(setting.tree)
    if leaf:
        return f"nothing resists the coordinate {leaf!r} of the open tree (a massless leaf)"
    return "it may hold massless motion (its mass matrix is singular at some configurations)"


def massless_leaf(tree: Tree) -> str:
    """Return the coordinate whose pivot is zero by structure; empty where there is none."""
    try:
        articulated_factor(tree, pose_tree(tree, list(inputs(tree.nq))))
    except UnresistedError as error:
        return error.coordinate
    return ""


# ----------------------------------------------------------------------------------------------------------------------
# Route "aba": the block matrix through calls of the articulated-body algorithm, in the four steps of seed 002.
#
# Symbols (P. Wensing's note): x = (x1, x2) solves  [M J^T; J 0] x = (y1, y2);  ABA(tau, f) gives the joint
# accelerations of the tree at rest, without gravity, under joint forces tau and forces -f at the contacts, and how the
# contacts accelerate: M theta'' = tau - J^T f, a_c = J theta''.  A^-1 = J M^-1 J^T, the Delassus matrix.
#
#     1  [*, a1]      = ABA(y1, 0)                O(n)
#     2  (A^-1)_j     = ABA(0, -e_j), j = 1..m    O(n m)
#     3  x2           = (A^-1)^-1 (a1 - y2)       O(m^3)
#     4  [x1, *]      = ABA(y1, x2)               O(n)
#
# y1 and y2 are arbitrary; where a mechanism moves, y1 holds velocity and gravity terms, as forces on links. Step 2 is a
# function that is handed over: another Delassus matrix, the same other steps (`pv.py`).


Delassus = Callable[[TreeSystem], list[list[Scalar]]]


@dataclass(frozen=True, eq=False)
class FourSteps:
    """A tree with rows, and how its Delassus matrix is made."""

    system: TreeSystem
    needs: Conditioning
    metric: Any
    limits: Thresholds
    delassus: Delassus

    def solve(self, y1: Load, y2: Sequence[Scalar], inputs: Sequence[Scalar]) -> BlockAnswer:
        """Return x1, x2 with the verdict."""
        free = ABA(self.system, y1, [0.0] * len(y2))  # step 1
        inverse = self.delassus(self.system)  # step 2
        beyond = [sub(a1, y) for a1, y in zip(free.contacts, y2, strict=True)]
        schur = factored(inverse, self.needs, self.metric)
        x2, effort = _solved(schur, beyond)  # step 3
        held = ABA(self.system, y1, x2)  # step 4
        x1 = held.motion.joints
        solved = Solved(x1, held.motion, x2, free.effort, effort, row_pivots(schur, self.needs))
        return judged(self.system, self.needs, self.limits, Asked(y1, y2, inputs), solved)


def _solved(schur: SparseFactor | RedundantRows, right: list[Scalar]) -> tuple[list[Scalar], Scalar]:
    """Return x2 of the dense system, and T_l^2."""
    forces, effort = multipliers(schur, sparse(right))
    return dense(forces, len(right)), effort


@dataclass(frozen=True, eq=False)
class Called:
    """What a call of ABA gives: accelerations of joints and links, those of the contacts (m,), tau^T M^-1 tau."""

    motion: TreeAcceleration
    contacts: list[Scalar]
    effort: Scalar


def ABA(system: TreeSystem, tau: Load, f: Sequence[Scalar]) -> Called:
    """Return how the tree moves under tau and contact forces -f; the inward pass over inertias is made once."""
    u = system.start(system.loaded(tau, f), ())
    _, motion = system.finish(u)
    return Called(motion, system.reached(motion), neg(dot(u, system.mass.scaled(u))))


def delassus_by_columns(system: TreeSystem) -> list[list[Scalar]]:
    """Return step 2: column j is how the contacts accelerate under a unit force at the j-th."""
    m = len(system.forces)
    nothing = Load([REST] * len(system.tree.links), [0.0] * system.tree.nv)
    columns = [ABA(system, nothing, [-1.0 if i == j else 0.0 for i in range(m)]).contacts for j in range(m)]
    return [[columns[j][i] if j <= i else columns[i][j] for j in range(m)] for i in range(m)]

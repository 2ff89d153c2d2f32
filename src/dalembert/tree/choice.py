"""Which preparation of a mechanism, and which algorithm, needs the fewest operations: decided by counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dalembert.tree.count import count, inputs, work
from dalembert.tree.link import Tree
from dalembert.tree.posed import Posed, pose_tree
from dalembert.tree.prepare import FRAMES, prepare

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Algorithm = Callable[[Tree, list[Posed], list[Any], list[Any], list[Any]], Any]
"""algorithm(tree, posed, q, v, a) -> nested lists of scalars."""


@lru_cache(maxsize=4)
def candidates(mechanism: Mechanism) -> tuple[Tree, ...]:
    """Return the mechanism prepared in every way that wins somewhere; small trees like the file's frames and masses."""
    return (*(prepare(mechanism, frames=each) for each in FRAMES), prepare(mechanism, frames="file", regrouped=False))


def operations(tree: Tree, algorithm: Algorithm) -> int:
    """Return the number of products, sums and quotients of an algorithm on a tree."""
    return work(_counted(tree, algorithm))


def kinds(tree: Tree, algorithm: Algorithm) -> Counter[str]:
    """Return how many operations of each kind an algorithm takes on a tree: "mul", "add", "sub", "div", "sin", ..."""
    return count(_counted(tree, algorithm))


def _counted(tree: Tree, algorithm: Algorithm) -> Any:
    table: dict[Any, Any] = {}
    q, v, a = inputs(tree.nq, table), inputs(tree.nv, table), inputs(tree.nv, table)
    return algorithm(tree, pose_tree(tree, q), q, v, a)


def cheapest(mechanism: Mechanism, *algorithms: Algorithm) -> tuple[Tree, Algorithm]:
    """Return the tree and the algorithm with the fewest operations; the first of equals."""
    pairs = [(tree, algorithm) for algorithm in algorithms for tree in candidates(mechanism)]
    return min(pairs, key=lambda pair: operations(*pair))

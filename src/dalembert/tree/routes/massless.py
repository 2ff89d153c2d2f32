"""Why a tree cannot be taken by the articulated-body algorithm: a motion that nothing resists.

Seen in the structure where it can be: the algorithm is run on symbols that are only counted, and a joint whose pivot is
a known zero is named. A link may also be massless by cancellation, or lighter than rounding; that shows in numbers only
(`probe.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert.tree.articulated_factor import UnresistedError, articulated_factor
from dalembert.tree.count import inputs
from dalembert.tree.link import Tree
from dalembert.tree.posed import pose_tree

if TYPE_CHECKING:
    from dalembert.tree.constrained import Setting


def massless_motion(setting: Setting) -> str:
    """Return why the tree has a motion without mass; empty where it has none."""
    if not setting.needs.massless:
        return ""
    divided = "and its pivot is divided by" if massless_leaf(setting.tree) else "which tree routes divide by"
    return f"{massless_reason(setting)}, {divided}"


def massless_reason(setting: Setting) -> str:
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

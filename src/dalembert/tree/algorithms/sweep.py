"""The two passes over a tree, written once: outward from the ground, inward to it.

An algorithm hands over a short step; it never loops over links itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.prepared.configuration import Posed

State = TypeVar("State")


def outward(
    posed: Sequence[Posed],
    ground: State,
    step: Callable[[int, Posed, State], State],
    only: Collection[int] | None = None,
) -> list[State]:
    """Return the state of every link: step(i, link, state of its parent), parents first.

    Links that are not in `only`, where it is given, are left as the ground is.
    """
    states: list[State] = []
    for i, link in enumerate(posed):
        parent = link.link.parent
        before = ground if parent < 0 else states[parent]
        states.append(step(i, link, before) if only is None or i in only else ground)
    return states


def inward(
    posed: Sequence[Posed],
    own: Sequence[State],
    ground: State,
    step: Callable[[int, Posed, State], State],
    add: Callable[[State, State], State],
) -> tuple[list[State], State]:
    """Return what every link and the ground have when all that hangs on them is counted.

    A link starts with `own[i]`; when all of its children have handed down their share, step(i, link, total) is its own
    share, in the parent's frame, and `add` joins it to what the parent has.
    """
    totals = list(own)
    for i in reversed(range(len(posed))):
        share = step(i, posed[i], totals[i])
        parent = posed[i].link.parent
        if parent < 0:
            ground = add(ground, share)
        else:
            totals[parent] = add(totals[parent], share)
    return totals, ground


def pair_add(x: Pair, y: Pair) -> Pair:
    """Return the sum of two motions or two forces."""
    return vectors.add(x[0], y[0]), vectors.add(x[1], y[1])

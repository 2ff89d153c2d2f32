"""The elimination plan: which rows each body carries, and where each is eliminated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalembert.kernel.loops import once
from dalembert.large.layout import CIRCLE, HINGE, VELOCITIES, Layout
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# The common ancestor, where the two ways of a row to the ground meet.


@dataclass(frozen=True, eq=False)
class Touches:
    """Where rows touch the tree: (row, body, end 0 or 1) of forces; (row, body, velocity, factor) of couplings."""

    rows: int
    ends: Array
    joints: Array
    factors: Array


def closing_bodies(parent: Array, touches: Touches) -> Array:
    """Return for each row the body that carries everything it touches; n for the ground."""
    n = len(parent)
    meeting = np.full(touches.rows, -2, dtype=np.int64)
    bodies = [touches.ends[:, :2]]
    if len(touches.joints):
        carriers = touches.joints[:, :2].copy()
        carriers[:, 1] = parent[carriers[:, 1]]  # a coupling is felt by the joints themselves: it closes above them
        bodies.append(carriers)
    meet(parent, np.concatenate(bodies), meeting)
    return np.where(meeting < 0, n, meeting)


@once
def meet(parent, touches, found):
    """Fill found (m,) with the nearest common carrier of all bodies that a row touches; -1 is the ground."""
    for k in range(len(touches)):
        row, a = touches[k]
        b = found[row]
        if b == -2:
            b = a
        while a != b:
            if a > b:
                a = parent[a]
            else:
                b = parent[b]
        found[row] = a


# ----------------------------------------------------------------------------------------------------------------------
# The elimination plan of a mechanism with constraint rows: which rows each body carries, and where each is eliminated.
#
# A row pulls at two bodies. From each of them up to the body that carries both (the ground, in the end) its force is
# felt by every joint on the way: there the row is *open*. Where the two ways meet, all joints that the row can move
# relative to each other have been eliminated: the row is *closed*, eliminated itself, and what remains is an
# articulated body that is stiffer by it. So the block matrix is factored in an order in which joints of a tree go
# leaves first and every row goes as early as it can: the fill is rows that are open together, and nothing else.
#
# A *front* is the dense triangle L (w, w) over the rows open at a body, with their forces F (w, 6). Where a body's rows
# are those of its only child, and maybe more behind them, the front is worked on in place. Fronts of children lie on a
# stack, as in a multifrontal method (Duff & Reid 1983); the mechanism's tree is the assembly tree.
#
# Everything here is integers, found once: numbers come in `factor.py`.


NONE, IN_PLACE, MERGED = range(3)

FEW = 8
"""Where no front has more open rows than this, all are *narrow*: room for so many, worked on in registers."""

NARROW_L, NARROW_F = FEW * FEW, 7 * FEW
"""Reals of a narrow front: L in full; the forces of all rows, entry by entry, then the rows' diagonal so far."""


@dataclass(frozen=True, eq=False)
class Fronts:
    """Integers per body, and one more for the ground at the end.

    Attributes
    ----------
    kind, closed, open : (n + 1,)
        How the front comes about; how many of its rows are eliminated here, how many stay open.
    start : (n + 1,)
        Where its rows' numbers begin in `ids`: those that close first.
    child : (n + 1,)
        Of a front in place, how many rows it takes over.
    at_L, at_F, at_phi, at_factor : (n + 1,)
        Places: of the open front on the two stacks, of the joint's rows, of what closing rows leave.
    touch_start, touch_row, touch_place, touch_end
        Forces that begin at a body: row, its place in the front, which end.
    joint_start, joint_place, joint_column, joint_factor
        Couplings of a body's joint: place in the front, which of its velocities, factor.
    merge_start, merge_from, map_start, maps
        Children of a merged front, and where their rows go.
    sizes
        Reals of the stacks, of Phi, of factors; the widest front.
    narrow
        Whether all fronts are narrow.
    run : (n,)
        A body is *calm* where it is on a hinge, no row begins or ends at it, and its front is narrow. Calm bodies that
        follow each other inward with the same open rows are a run: the innermost of them; i + 1 where i is not calm.
    """

    kind: Array
    closed: Array
    open: Array
    start: Array
    child: Array
    ids: Array
    at: Array
    touches: tuple[Array, ...]
    couplings: tuple[Array, ...]
    merges: tuple[Array, ...]
    sizes: dict[str, int]
    narrow: bool
    run: Array

    @property
    def counts(self) -> tuple[Array, ...]:
        """What the loops take first."""
        return self.kind, self.closed, self.open, self.start, self.child


def plan(layout: Layout, touches: Touches, most: float = np.inf) -> Fronts | None:
    """Return the plan; None where it would take more than `most` operations."""
    return _Planner(layout, touches, most).run()


class _Planner:
    """Goes from the leaves to the ground once."""

    def __init__(self, layout: Layout, touches: Touches, most: float) -> None:
        self.layout, self.touches, n = layout, touches, layout.n
        self.left = most
        self.closing: list[list[int]] = [[] for _ in range(n + 1)]
        for row, body in enumerate(closing_bodies(layout.parent, touches)):
            self.closing[body].append(row)
        self.begins: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
        for row, body, end in touches.ends.tolist():
            if body >= 0:
                self.begins[body].append((row, end))
        self.coupled: list[list[tuple[int, int, float]]] = [[] for _ in range(n + 1)]
        for (row, body, column), factor in zip(touches.joints.tolist(), touches.factors.tolist(), strict=True):
            self.coupled[body].append((row, column, factor))
        self.kind, self.closed, self.open, self.start, self.child = (np.zeros(n + 1, dtype=np.int64) for _ in range(5))
        self.at = np.zeros((4, n + 1), dtype=np.int64)
        self.ids: list[int] = []
        self.waiting: dict[int, list[int]] = {}
        self.top_L = self.top_F = self.top = 0
        self.level = np.zeros(n + 1, dtype=np.int64)
        self.sizes = {"L": 0, "F": 0, "phi": 0, "factor": 0, "width": 0}
        self.entries: tuple[list[int], ...] = tuple([0] if i in (0, 4, 8, 10) else [] for i in range(12))
        self.place: dict[int, int] = {}

    def run(self) -> Fronts | None:
        """Plan all bodies, then the ground; give up where that takes too many operations."""
        parent = self.layout.parent
        velocities = VELOCITIES[self.layout.code]
        for i in range(self.layout.n, -1, -1):
            body = i - 1 if i else self.layout.n  # the ground comes last
            self._front(body)
            width = float(self.open[body] + self.closed[body])
            self.left -= width * width * (0.5 + float(self.closed[body]))
            if self.left < 0:
                return None
            self._joint(body, int(velocities[body]) if i else 0)
            if i and self.open[body]:
                up = int(parent[body])
                self.waiting.setdefault(up if up >= 0 else self.layout.n, []).append(body)
        return self._finished()

    def _front(self, i: int) -> None:
        """Choose how a front comes about, and name its rows."""
        children, closing = self.waiting.pop(i, []), self.closing[i]
        own = list(dict.fromkeys(row for row, *_ in (*self.begins[i], *self.coupled[i])))
        base_L, base_F, base = (
            min((int(places[c]) for c in children), default=top)
            for places, top in ((self.at[0], self.top_L), (self.at[1], self.top_F), (self.level, self.top))
        )
        if not children and not own and not closing:
            return
        if len(children) < 2 and not closing:
            self._in_place(i, children, own)
        else:
            self._merged(i, children, own, closing)
        w = int(self.open[i])
        self.at[0, i], self.at[1, i], self.level[i], self.top = base_L, base_F, base, base + (w > 0)
        self.top_L, self.top_F = base_L + w * (w + 1) // 2, base_F + 6 * w
        self.sizes["L"], self.sizes["F"] = max(self.sizes["L"], self.top_L), max(self.sizes["F"], self.top_F)
        self.sizes["width"] = max(self.sizes["width"], w + int(self.closed[i]))

    def _in_place(self, i: int, children: list[int], own: list[int]) -> None:
        """Go on with a child's rows, new ones behind them."""
        old, begin = 0, len(self.ids)
        if children:
            child = children[0]
            old, begin = int(self.open[child]), int(self.start[child] + self.closed[child])
        places = {row: k for k, row in enumerate(self.ids[begin : begin + old])} if own else {}
        fresh = [row for row in own if row not in places]
        if fresh and begin + old != len(self.ids):
            self.ids += self.ids[begin : begin + old]
            begin = len(self.ids) - old
        self.ids += fresh
        self.kind[i], self.child[i], self.start[i], self.open[i] = IN_PLACE, old, begin, old + len(fresh)
        if own:
            self.place = places | {row: old + k for k, row in enumerate(fresh)}

    def _merged(self, i: int, children: list[int], own: list[int], closing: list[int]) -> None:
        """Gather the rows of several children, those that close here first."""
        rows = dict.fromkeys(closing)
        lists = []
        for child in children:
            begin = int(self.start[child] + self.closed[child])
            lists.append(self.ids[begin : begin + int(self.open[child])])
            rows |= dict.fromkeys(lists[-1])
        rows |= dict.fromkeys(own)
        self.place = {row: k for k, row in enumerate(rows)}
        self.kind[i], self.start[i] = MERGED, len(self.ids)
        self.closed[i], self.open[i] = len(closing), len(rows) - len(closing)
        self.ids += rows
        *_, sources, map_starts, maps = self.entries
        for child, entry in zip(children, lists, strict=True):
            sources.append(child)
            maps += [self.place[row] for row in entry]
            map_starts.append(len(maps))
        e, w = int(self.closed[i]), len(rows)
        self.at[3, i] = self.sizes["factor"]
        self.sizes["factor"] += e * (w + 6)

    def _joint(self, i: int, velocities: int) -> None:
        """Note what begins here, and where the joint's rows are kept."""
        t_start, t_row, t_place, t_end, j_start, j_place, j_column, j_factor, m_start, m_from, *_ = self.entries
        for row, end in self.begins[i]:
            t_row.append(row)
            t_place.append(self.place[row])
            t_end.append(end)
        for row, column, factor in self.coupled[i]:
            j_place.append(self.place[row] - int(self.closed[i]))
            j_column.append(column)
            j_factor.append(factor)  # type: ignore[arg-type]
        t_start.append(len(t_row))
        j_start.append(len(j_place))
        m_start.append(len(m_from))
        self.at[2, i] = self.sizes["phi"]
        self.sizes["phi"] += velocities * int(self.open[i])

    def _run(self, narrow: bool) -> Array:
        """Return where the run of each body ends that is on a hinge without rows of its own."""
        code, n = self.layout.code, self.layout.n
        calm = ((code == HINGE) | (code == CIRCLE)) & (self.kind[:n] != MERGED)
        begun = [i for i in range(n) if self.begins[i] or self.coupled[i]]
        calm[begun] = False
        calm &= narrow | (self.open[:n] == 0)
        run = np.arange(1, n + 1)
        ends_of_runs(calm, self.layout.parent, self.open, run)
        return run

    def _finished(self) -> Fronts:
        """Turn the lists, which were filled from the last body to the first, into arrays."""
        arrays = [np.array(entry, dtype=float if k == 7 else np.int64) for k, entry in enumerate(self.entries)]
        # entry number n - 1 - i belongs to body i; the ground's is the last
        narrow = int(self.open.max()) <= FEW
        if narrow:
            levels = int(self.level.max()) + 1
            self.at[0], self.at[1] = NARROW_L * self.level, NARROW_F * self.level
            self.sizes |= {"L": NARROW_L * levels, "F": NARROW_F * levels}
        return Fronts(
            self.kind,
            self.closed,
            self.open,
            self.start,
            self.child,
            np.array(self.ids, dtype=np.int64),
            self.at,
            tuple(arrays[:4]),
            tuple(arrays[4:8]),
            tuple(arrays[8:]),
            self.sizes,
            narrow,
            self._run(narrow),
        )


@once
def ends_of_runs(calm, parent, opened, run):
    """Set run (n,) of calm bodies to the innermost one that follows: of a chain, or of any bodies without open rows."""
    for i in range(len(calm)):
        if calm[i]:
            follows = i > 0 and calm[i - 1] and opened[i] == opened[i - 1] and (parent[i] == i - 1 or opened[i] == 0)
            run[i] = run[i - 1] if follows else i

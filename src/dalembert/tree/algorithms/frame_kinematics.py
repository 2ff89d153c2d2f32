"""Frames in motion as constraints ask for them: expressions of q, v and t in world axes.

Symbols: R, p pose of a frame in the world; J rows [linear; angular] in world axes at its origin; V = J qd velocity;
J_dot qd drift.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from dalembert.model.constraints.primitives import FrameKinematics, Kinematics
from dalembert.model.joints import KINDS, as_expression
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.screws import Pair, Pose
from dalembert.tree.algebra.vectors import ZERO, Vector, cross
from dalembert.tree.algorithms.inverse import LinkMotion, accelerations
from dalembert.tree.algorithms.kinematics import columns, vector, velocities
from dalembert.tree.prepared.configuration import Posed, outward, pose_tree
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


class TreeKinematics(Kinematics):
    """A mechanism in motion over CasADi symbols; what all frames share is computed once.

    Parameters
    ----------
    mechanism, tree
        What moves, and its prepared links.
    q, v, t
        SX columns (nq, 1), (nv, 1), (1, 1).
    base
        The link from which everything is seen; -1 is the ground.
    posed
        The links in the configuration q, where they are known.
    """

    def __init__(
        self, mechanism: Mechanism, tree: Tree, q: Any, v: Any, t: Any, base: int = -1, posed: list[Posed] | None = None
    ) -> None:
        self.mechanism, self.tree = mechanism, tree
        self.q, self.v, self.t = q, v, t
        self._q = [q[i] for i in range(tree.nq)]
        self._v: list[Scalar] = [v[i] for i in range(tree.nv)]
        self._base = base
        self._posed = pose_tree(tree, self._q) if posed is None else posed
        self._views: dict[int, TreeKinematics] = {base: self}
        self._known: dict[tuple[int, Placement], FrameKinematics] = {}

    @cached_property
    def rate(self) -> Any:  # type: ignore[override]
        """dq/dt = N(q) v, (nq, 1)."""
        rates: list[Scalar] = []
        for joint in self.mechanism.joints:
            iq, iv = self.mechanism.index_q(joint.name), self.mechanism.index_v(joint.name)
            rates += KINDS[joint.kind].rate(self._q[iq], self._v[iv])
        return as_expression(rates)

    def seen_from(self, body: str) -> TreeKinematics:
        """Return the same motion as seen from a body: the link it is on stands still at the origin."""
        link = self.tree.places[body][0]
        if link not in self._views:
            self._views[link] = TreeKinematics(self.mechanism, self.tree, self.q, self.v, self.t, link, self._posed)
        return self._views[link]

    @cached_property
    def _moved(self) -> set[int]:
        """Links that the base carries; all others would move what is asked for alike."""
        return self.tree.carried_by(self._base)

    @cached_property
    def _poses(self) -> list[Pose]:
        return outward(self._posed, Pose(), lambda i, link, parent: link.pose(parent), self._moved)

    @cached_property
    def _velocities(self) -> list[Pair]:
        return velocities(self._posed, self._v, self._moved)

    @cached_property
    def _motions(self) -> list[LinkMotion]:
        return accelerations(ZERO, self._posed, self._v, [0.0] * self.tree.nv, self._moved)

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame by name, or a place on it."""
        self.mechanism.frame(name)
        link, place = self.tree.places[name]
        key = (link, place @ placement)
        if key not in self._known:
            self._known[key] = self._moving(*key)
        return self._known[key]

    def _moving(self, i: int, place: Placement) -> FrameKinematics:
        """Return a place of link i in motion; -1 is the ground."""
        link = Pose() if i < 0 else self._poses[i]
        R = [vectors.columns_times(link.R, column) for column in columns(place.rotation)]
        arm = vector(place.position)
        p = vectors.add(link.p, vectors.columns_times(link.R, arm))
        velocity, drift = (ZERO, ZERO), (ZERO, ZERO)
        if i >= 0:
            v, w = self._velocities[i]
            motion = self._motions[i]
            velocity = (vectors.add(v, cross(w, arm)), w)
            drift = (vectors.add(motion.a, vectors.columns_times(motion.U, arm)), motion.wd)
        return FrameKinematics(
            as_expression([[column[row] for column in R] for row in range(3)]),
            as_expression(list(p)),
            as_expression(self._jacobian(i, p)),
            as_expression(_turned(link, velocity)),
            as_expression(_turned(link, drift)),
        )

    def _jacobian(self, i: int, origin: Vector) -> list[list[Scalar]]:
        """Return J of a point on link i: the column of S = (s, z) is [R s + (p_link - origin) x R z; R z]."""
        J: list[list[Scalar]] = [[0.0] * self.tree.nv for _ in range(6)]
        for number in self.tree.ancestors(i):
            if number == self._base:
                break
            link, pose = self.tree.links[number], self._poses[number]
            reach = vectors.difference(pose.p, origin)
            for place in range(len(link.axes)):
                unit: list[Scalar] = [0.0] * self.tree.nv
                unit[link.v + place] = 1.0
                s, z = (vectors.columns_times(pose.R, part) for part in link.relative(unit))
                for row, value in enumerate([*vectors.add(s, cross(reach, z)), *z]):
                    J[row][link.v + place] = value
        return J


def _turned(link: Pose, pair: Pair) -> list[Scalar]:
    """Return two vectors of a link's axes in world axes, one below the other."""
    return [*vectors.columns_times(link.R, pair[0]), *vectors.columns_times(link.R, pair[1])]

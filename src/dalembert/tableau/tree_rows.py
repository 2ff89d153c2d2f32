"""Constraints and springs of a mechanism in joint coordinates: what they add to the equations of its tree.

Symbols: q, qd, qdd as in `newton_euler`; R, p pose of a frame in the world, V = [v; w] its velocity; phi residual of a
row, A its Jacobian, lam its multiplier; l length of a spring.

    tau = (what bodies and joints need) + A^T lam + (dl/dqd)^T (k (l - rest) + d l') + compensation m Jc^T g

    level "acceleration"   A qdd + drift = 0
    level "velocity"       A qd + offset = 0
    level "position"       phi(q, t) = 0; rows on velocities only as on the level of velocity

Rows, their names and signs are those of `Mechanism.names`, and so are the multipliers. A row that says 0 = 0 for every
configuration (the third direction of a planar loop) is left out with its multiplier, which would act on nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.model.constraints.assemble import assemble
from dalembert.model.constraints.kinematics import FrameKinematics, Kinematics
from dalembert.model.joints import as_expression
from dalembert.model.mechanism import Mechanism
from dalembert.model.placement import IDENTITY, Placement
from dalembert.tableau.bodies import BASE, Multibody, Source

LEVELS = ("acceleration", "velocity", "position")
"""At which a constraint is written down."""

TINY = 1e-30
"""Added to squared lengths before a root, as in the mechanism's own springs."""


IMPOSSIBLE = 1e-9
"""A constant row from here on is no rounding of zero."""


@dataclass(frozen=True, eq=False)
class TreeRows:
    """What constraints and springs add: forces along all velocities, equations, multipliers, the symbol of time."""

    forces: ca.SX
    equations: dict[str, ca.SX]
    multipliers: dict[str, ca.SX]
    time: ca.SX | None


def tree_rows(tree: Multibody, q: ca.SX, qd: ca.SX, qdd: ca.SX, level: str) -> TreeRows:
    """Return what the mechanism's constraints and springs add to the equations of its tree."""
    if not isinstance(level, str) or level not in LEVELS:
        raise ModelError(f"level {level!r} is not one of {', '.join(map(repr, LEVELS))}")
    if tree.source is None:
        return TreeRows(ca.SX(qd.numel(), 1), {}, {}, None)
    mechanism, seen = tree.source.mechanism, JointKinematics(tree, tree.source, q, qd)
    forces = passive_forces(mechanism, seen)
    if not mechanism.names:
        return TreeRows(forces, {}, {}, None)
    rows = assemble(seen)
    lam = [ca.SX.sym(f"lam {name}") for name in mechanism.names]
    forces += ca.mtimes(ca.SX(rows.jacobian).T, ca.vertcat(*lam))
    positions = iter(ca.vertsplit(ca.SX(rows.residual)) if rows.residual.shape[0] else [])
    rates = ca.vertsplit(ca.SX(rows.rate))
    accelerations = ca.vertsplit(ca.mtimes(ca.SX(rows.jacobian), qdd) + ca.SX(rows.drift))
    equations, multipliers = {}, {}
    for name, holonomic, rate, acceleration, symbol in zip(
        mechanism.names, mechanism.holonomic, rates, accelerations, lam, strict=True
    ):
        position = next(positions) if holonomic else rate
        if _says_nothing(name, position, rate, acceleration):
            continue
        equations[f"row {name}"] = dict(zip(LEVELS, (acceleration, rate, position), strict=True))[level]
        multipliers[f"lam {name}"] = symbol
    moving = ca.depends_on(ca.vertcat(*equations.values(), forces), seen.t)
    return TreeRows(forces, equations, multipliers, seen.t if moving else None)


def passive_forces(mechanism: Mechanism, seen: JointKinematics) -> ca.SX:
    """Return what springs between frames and compensated weights take of tau."""
    taken = _compensation(mechanism, seen)
    return taken + _springs(mechanism, seen) if mechanism.passive else taken


def _says_nothing(name: str, *levels: ca.SX) -> bool:
    """Whether a row is 0 = 0 on all levels; one that is another constant can never be fulfilled and is refused."""
    if not all(each.is_constant() for each in levels):
        return False
    gap = max(abs(float(each)) for each in levels)
    if gap > IMPOSSIBLE:
        raise ModelError(f"constraint row {name!r} is {gap:.3g} = 0 in every configuration: the parts cannot meet")
    return True


def _springs(mechanism: Mechanism, seen: JointKinematics) -> ca.SX:
    """Return what springs between frames take of tau."""
    taken = ca.SX(seen.v.numel(), 1)
    for spring in mechanism.springs:
        one, two = seen.frame(spring.frame), seen.frame(spring.other)
        length = ca.sqrt(ca.sumsqr(one.position - two.position) + TINY)
        rate = ca.jtimes(length, seen.own, seen.own_rate)
        pull = spring.stiffness * (length - spring.rest) + spring.damping * rate
        taken += ca.jacobian(rate, seen.v).T * pull
    return taken


def _compensation(mechanism: Mechanism, seen: JointKinematics) -> ca.SX:
    """Return what compensated weights take of tau."""
    taken = ca.SX(seen.v.numel(), 1)
    for body in mechanism.bodies:
        if body.compensation:
            centre = seen.frame(body.name, Placement(np.eye(3), body.inertia.center))
            weight = body.compensation * body.inertia.mass * np.asarray(mechanism.gravity)
            taken += ca.mtimes(centre.Jv.T, ca.SX(weight))
    return taken


class JointKinematics(Kinematics):
    """The mechanism in motion as its constraints ask for it, over the tableau's q and qd."""

    def __init__(self, tree: Multibody, source: Source, q: ca.SX, qd: ca.SX) -> None:
        self.mechanism, self.places = source.mechanism, source.places
        self.own, self.own_rate = q, rate_of_q(tree, q, qd)
        self.v, self.t = qd, ca.SX.sym("t")
        self.q = self._configuration()
        self.rate = ca.jtimes(self.q, self.own, self.own_rate)
        self.poses = tree_poses(tree, q)

    def _configuration(self) -> ca.SX:
        """Return the mechanism's q: (cos, sin) of the angle of continuous joints."""
        parts, at = [], 0
        for joint in self.mechanism.joints:
            place = self.mechanism.index_q(joint.name)
            size = 1 if joint.kind == "continuous" else place.stop - place.start
            own = self.own[at : at + size]
            parts.append(ca.vertcat(ca.cos(own), ca.sin(own)) if joint.kind == "continuous" else own)
            at += size
        return ca.vertcat(*parts)

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame by name, or a place on it."""
        found = self.mechanism.frame(name)
        body, own = self.places[found.body]
        place = own @ found.placement @ placement
        R, p = ca.SX(place.rotation), ca.SX(place.position)
        if body != BASE:
            R, p = ca.mtimes(self.poses[body][0], R), self.poses[body][1] + ca.mtimes(self.poses[body][0], p)
        along = lambda x: ca.jtimes(x, self.own, self.own_rate)  # noqa: E731
        W = ca.mtimes(along(R), R.T)
        V = ca.vertcat(along(p), W[2, 1], W[0, 2], W[1, 0])
        return FrameKinematics(R, p, ca.jacobian(V, self.v), V, along(V))

    def coordinate(self, name: str) -> ca.SX:
        """Return a length or angle of a joint; that of a continuous joint counts turns."""
        at = self.mechanism.index_q(name)
        start = at.start - sum(
            1
            for joint in self.mechanism.joints
            if joint.kind == "continuous" and self.mechanism.index_q(joint.name).stop <= at.start
        )
        return self.own[start]


def parts_of(tree: Multibody, column: ca.SX, word: str) -> list[ca.SX]:
    """Return the elements of each joint; `word` is "nq" or "nv"."""
    ends = np.cumsum([0, *(getattr(joint.motion, word) for joint in tree.joints)])
    return [column[int(a) : int(b)] for a, b in pairwise(ends)]


def rate_of_q(tree: Multibody, q: ca.SX, qd: ca.SX) -> ca.SX:
    """Return dq/dt = N(q) qd."""
    pairs = zip(tree.joints, parts_of(tree, q, "nq"), parts_of(tree, qd, "nv"), strict=True)
    return ca.vertcat(*[as_expression(j.motion.rate(ca.vertsplit(a), ca.vertsplit(b))) for j, a, b in pairs])


def tree_poses(tree: Multibody, q: ca.SX) -> list[tuple[Any, Any]]:
    """Return rotation and origin of every body's frame in the world."""
    found: list[tuple[Any, Any]] = []
    for joint, own in zip(tree.joints, parts_of(tree, q, "nq"), strict=True):
        R, p = (as_expression(x) for x in joint.motion.motion(joint, ca.vertsplit(own)))  # type: ignore[arg-type]
        fixed = ca.sparsify(ca.SX(joint.rotation))
        R, p = ca.mtimes(fixed, R), ca.SX(joint.origin) + ca.mtimes(fixed, p)
        if joint.parent != BASE:
            carrier, at = found[joint.parent]
            R, p = ca.mtimes(carrier, R), at + ca.mtimes(carrier, p)
        found.append((R, p))
    return found

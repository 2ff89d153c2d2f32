"""Constraints and springs of a mechanism in maximal coordinates: rows between frames of bodies, forces on the bodies.

Symbols, per body: p, e, v, w as in `maximal`; per frame: d from the centre of mass to it, in the ground's axes.

    velocity of a frame   v + R w x d,  R w        force on body  -(dphi_dot/dv)^T lam,  moment  -(dphi_dot/dw)^T lam

Every constraint between two frames is written by the model itself (`dalembert.model.constraints`): the same rows, names
and multipliers. A coupling adds its multiplier to the torques of its joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.model.constraints.constraint import Pair
from dalembert.model.constraints.kinematics import FrameKinematics, Kinematics
from dalembert.model.placement import IDENTITY, Placement
from dalembert.tableau.bodies import BASE, Multibody, Source, skew
from dalembert.tableau.from_mechanism import closes
from dalembert.tableau.tree_rows import TINY


@dataclass(frozen=True, eq=False)
class Pose:
    """A body's symbols, its rotation matrix, and the rates of v and w."""

    p: ca.SX
    e: ca.SX
    v: ca.SX
    w: ca.SX
    R: ca.SX
    dv: ca.SX
    dw: ca.SX


@dataclass(frozen=True, eq=False)
class BodyRows:
    """What constraints and springs add: wrenches on the bodies, equations, multipliers."""

    wrenches: list[tuple[ca.SX, ca.SX]]
    equations: dict[str, ca.SX]
    multipliers: dict[str, ca.SX]


class BodyFrame(FrameKinematics):
    """A frame whose velocity is that of one body."""

    def unmoved_by(self, velocities: list[int]) -> FrameKinematics:
        """Return the frame itself: no joint moves two bodies here."""
        return self


class BodyKinematics(Kinematics):
    """The mechanism in motion as its constraints ask for it; v is v and w of all bodies, one after the other."""

    def __init__(self, model: Multibody, source: Source, poses: list[Pose]) -> None:
        self.mechanism, self.places = source.mechanism, source.places
        self.centres, self.poses = [body.centre for body in model.bodies], poses
        self.v = ca.vertcat(*[x for pose in poses for x in (pose.v, pose.w)])

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame by name, or a place on it."""
        found = self.mechanism.frame(name)
        body, own = self.places[found.body]
        place = own @ found.placement @ placement
        J, R, p = ca.SX(6, self.v.numel()), ca.SX(place.rotation), ca.SX(place.position)
        if body == BASE:
            return BodyFrame(R, p, J, ca.SX(6, 1), ca.SX(6, 1))
        pose, at = self.poses[body], slice(6 * body, 6 * body + 6)
        d = ca.mtimes(pose.R, ca.SX(place.position - self.centres[body]))
        w = ca.mtimes(pose.R, pose.w)
        J[:, at] = ca.sparsify(ca.blockcat([[ca.SX.eye(3), -ca.mtimes(skew(d), pose.R)], [ca.SX(3, 3), pose.R]]))
        V = ca.vertcat(pose.v + ca.cross(w, d), w)
        drift = ca.vertcat(ca.cross(w, ca.cross(w, d)), ca.SX(3, 1))
        return BodyFrame(ca.mtimes(pose.R, R), pose.p + d, J, V, drift)


def body_rows(model: Multibody, poses: list[Pose]) -> BodyRows:
    """Return what constraints between frames, springs and compensated weights add."""
    wrenches = [ca.SX(6, 1) for _ in poses]
    equations: dict[str, ca.SX] = {}
    multipliers: dict[str, ca.SX] = {}
    if model.source is not None:
        seen = BodyKinematics(model, model.source, poses)
        for constraint in seen.mechanism.all_constraints:
            if constraint.kind != "coupler" and not closes(constraint):
                _constrain(constraint, seen, wrenches, equations, multipliers)
        if seen.mechanism.passive:
            _springs(seen, wrenches)
        _compensate(seen, wrenches)
    return BodyRows([(w[:3], w[3:]) for w in wrenches], equations, multipliers)


def _constrain(
    constraint: Any, seen: BodyKinematics, wrenches: list[ca.SX], equations: dict, multipliers: dict
) -> None:
    """Enter the rows of one constraint and the wrenches of its multipliers."""
    if not isinstance(constraint, Pair):
        raise UnsupportedError(
            f"{constraint.label!r} ({constraint.kind}) is about coordinates that maximal coordinates do not have: use "
            "`newton_euler`, or leave all constraints out with `mechanism.open_tree()`"
        )
    rows: Any = constraint.rows(seen)
    names = iter(constraint.row_names())
    for part in rows if isinstance(rows, list) else [rows]:
        written = ca.SX(part.rate if part.residual is None else part.residual)
        own = [next(names) for _ in range(written.numel())]
        lam = ca.vertcat(*[ca.SX.sym(f"lam {name}") for name in own])
        _act(ca.SX(part.jacobian), -lam, wrenches)
        equations |= {f"row {name}": row for name, row in zip(own, ca.vertsplit(written), strict=True)}
        multipliers |= {f"lam {name}": x for name, x in zip(own, ca.vertsplit(lam), strict=True)}


def _act(J: ca.SX, force: ca.SX, wrenches: list[ca.SX]) -> None:
    """Add J^T force to the wrenches of the bodies that J moves."""
    _, columns = J.sparsity().get_triplet()
    for body in sorted({column // 6 for column in columns}):
        wrenches[body] += ca.mtimes(J[:, 6 * body : 6 * body + 6].T, force)


def _springs(seen: BodyKinematics, wrenches: list[ca.SX]) -> None:
    """Add the forces of springs between frames."""
    for spring in seen.mechanism.springs:
        one, two = seen.frame(spring.frame), seen.frame(spring.other)
        line = one.position - two.position
        length = ca.sqrt(ca.sumsqr(line) + TINY)
        along = line / length
        pull = spring.stiffness * (length - spring.rest) + spring.damping * ca.dot(along, one.v - two.v)
        _act(one.Jv - two.Jv, -along * pull, wrenches)


def _compensate(seen: BodyKinematics, wrenches: list[ca.SX]) -> None:
    """Add what holds compensated weights."""
    for body in seen.mechanism.bodies:
        if body.compensation:
            centre = seen.frame(body.name, Placement(np.eye(3), body.inertia.center))
            weight = body.compensation * body.inertia.mass * np.asarray(seen.mechanism.gravity)
            _act(centre.Jv, ca.SX(-weight), wrenches)

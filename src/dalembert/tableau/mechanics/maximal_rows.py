"""Rows of joints, constraints and springs between bodies in maximal coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.model.constraints.constraint import Pair
from dalembert.model.constraints.primitives import FrameKinematics, Kinematics
from dalembert.model.joints.rotations import plane
from dalembert.model.limits import TINY_SQUARE
from dalembert.model.mechanism.parts import Joint
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.tableau.mechanics.welded import BASE, WeldedTree, closes, motion, skew

# ----------------------------------------------------------------------------------------------------------------------
# Joints between two bodies in maximal coordinates: their rows, their speeds, and how their torques act.
#
# Symbols: a, b the joint's frames on parent and child; Ra, Rb rotation and ra, rb origin in the ground's axes; d = Ra^T
# (rb - ra) offset; n axis, t1, t2 directions across it (right handed); q angle about the axis.
#
#     revolute    rb = ra (3);  Ra t1 . Rb n = Ra t2 . Rb n = 0           speed  n . w
#     prismatic   no relative turn (3);  t1 . d = t2 . d = 0              speed  d(n . d)/dt
#     helical     the two turns of a revolute joint, t1 . d = t2 . d = 0,  n . d = pitch q
#     universal   rb = ra (3);  Ra n . Rb n2 = n . n2                     speeds  w along Ra n and Rb n2
#     spherical   rb = ra (3)                                             speeds  w
#     planar      n . d = 0, the two turns of a revolute joint            speeds  t1 . d', t2 . d', n . w
#
# The angle q is an unknown of its own where it is needed (screws, springs, couplings): with c = Ra t1 . Rb t1 and s =
# Ra t2 . Rb t1 it fulfils s cos q - c sin q = 0, and counts turns because it follows its own past. E. J. Haug,
# "Computer Aided Kinematics and Dynamics of Mechanical Systems", Allyn and Bacon 1989, section 9.4.


@dataclass(frozen=True, eq=False)
class Ends:
    """A joint's frames on parent and child, and their relative motion in the ground's axes.

    `w` is the angular velocity, `v` the velocity of the child's origin seen by the parent's frame.
    """

    Ra: ca.SX
    ra: ca.SX
    Rb: ca.SX
    rb: ca.SX
    w: ca.SX
    v: ca.SX


def row_count(joint: Joint) -> int:
    """Return the number of rows of a joint."""
    return 6 - motion(joint).nv


def joint_rows(joint: Joint, ends: Ends, angle: Any) -> ca.SX:
    """Return the rows of a joint; `angle` is that of a helical one."""
    axis, (first, second) = ca.SX(joint.axis), _across(joint)
    offset, together = ca.mtimes(ends.Ra.T, ends.rb - ends.ra), ends.rb - ends.ra
    turned = ca.mtimes(ends.Ra.T, ends.Rb)
    tilt = [ca.dot(t, ca.mtimes(turned, axis)) for t in (first, second)]
    sideways = [ca.dot(first, offset), ca.dot(second, offset)]
    if joint.kind == "revolute":
        return ca.vertcat(together, *tilt)
    if joint.kind == "prismatic":
        pairs = ((first, second), (second, axis), (axis, first))
        return ca.vertcat(*[ca.dot(a, ca.mtimes(turned, b)) for a, b in pairs], *sideways)
    if joint.kind == "helical":
        return ca.vertcat(*tilt, *sideways, ca.dot(axis, offset) - joint.pitch * angle)
    if joint.kind == "universal":
        between = ca.dot(axis, ca.mtimes(turned, ca.SX(joint.axis2))) - float(np.dot(joint.axis, joint.axis2))
        return ca.vertcat(together, between)
    if joint.kind == "spherical":
        return together
    if joint.kind != "planar":
        raise UnsupportedError(f"maximal coordinates have no rows of a {joint.kind} joint ({joint.name!r})")
    return ca.vertcat(ca.dot(axis, offset), *tilt)


def angle_row(joint: Joint, ends: Ends, angle: ca.SX) -> ca.SX:
    """Return s cos q - c sin q, zero at the angle of a joint that turns about one axis."""
    first, second = _across(joint)
    moved = ca.mtimes(ends.Rb, first)
    c, s = (ca.dot(ca.mtimes(ends.Ra, t), moved) for t in (first, second))
    return s * ca.cos(angle) - c * ca.sin(angle)


def joint_speeds(joint: Joint, ends: Ends) -> ca.SX:
    """Return the velocities of a joint, (nv,), on its motion."""
    axis = ca.mtimes(ends.Ra, ca.SX(joint.axis))
    if joint.kind in ("revolute", "helical"):
        return ca.dot(ca.mtimes(ends.Rb, ca.SX(joint.axis)), ends.w)
    if joint.kind == "prismatic":
        return ca.dot(axis, ends.v)
    if joint.kind == "universal":
        return ca.mtimes(_universal(joint), ca.vertcat(*[ca.dot(x, ends.w) for x in _cross_axes(joint, ends)]))
    if joint.kind == "spherical":
        return ca.mtimes(ends.Rb.T, ends.w)
    e1, e2 = (ca.mtimes(ends.Rb, ca.SX(e)) for e in plane(joint.axis))
    return ca.vertcat(ca.dot(e1, ends.v), ca.dot(e2, ends.v), ca.dot(axis, ends.w))


def joint_wrench(joint: Joint, ends: Ends, tau: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return force at the child's origin and moment on the child, in the ground's axes, with power tau . qd."""
    axis, none = ca.mtimes(ends.Rb, ca.SX(joint.axis)), ca.SX(3, 1)
    if joint.kind in ("revolute", "helical"):
        return none, axis * tau
    if joint.kind == "prismatic":
        return ca.mtimes(ends.Ra, ca.SX(joint.axis)) * tau, none
    if joint.kind == "universal":
        return none, ca.mtimes(ca.horzcat(*_cross_axes(joint, ends)), ca.mtimes(_universal(joint), tau))
    if joint.kind == "spherical":
        return none, ca.mtimes(ends.Rb, tau)
    e1, e2 = (ca.mtimes(ends.Rb, ca.SX(e)) for e in plane(joint.axis))
    return e1 * tau[0] + e2 * tau[1], axis * tau[2]


def _cross_axes(joint: Joint, ends: Ends) -> tuple[ca.SX, ca.SX]:
    """Return both axes of a universal joint."""
    return ca.mtimes(ends.Ra, ca.SX(joint.axis)), ca.mtimes(ends.Rb, ca.SX(joint.axis2))


def _universal(joint: Joint) -> ca.DM:
    """Return the inverse of the Gram matrix of both axes, which keep their angle."""
    c = float(np.dot(joint.axis, joint.axis2))
    return ca.DM(np.linalg.inv(np.array([[1.0, c], [c, 1.0]])))


def _across(joint: Joint) -> tuple[Any, Any]:
    """Return two unit vectors that complete the axis to a right-handed frame."""
    helper = np.eye(3)[int(np.argmin(np.abs(joint.axis)))]
    first = np.cross(joint.axis, helper)
    first = first / np.linalg.norm(first)
    return ca.SX(first), ca.SX(np.cross(joint.axis, first))


# ----------------------------------------------------------------------------------------------------------------------
# Constraints and springs of a mechanism in maximal coordinates: rows between frames of bodies, forces on the bodies.
#
# Symbols, per body: p, e, v, w as in `maximal`; per frame: d from the centre of mass to it, in the ground's axes.
#
#     velocity of a frame   v + R w x d,  R w        force on body  -(dphi_dot/dv)^T lam,  moment  -(dphi_dot/dw)^T lam
#
# Every constraint between two frames is written by the model itself (`dalembert.model.constraints`): the same rows,
# names and multipliers. A coupling adds its multiplier to the torques of its joints.


@dataclass(frozen=True, eq=False)
class BodyPose:
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

    def __init__(self, tree: WeldedTree, poses: list[BodyPose]) -> None:
        self.tree, self.mechanism, self.poses = tree, tree.mechanism, poses
        self.v = ca.vertcat(*[x for pose in poses for x in (pose.v, pose.w)])

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame by name, or a place on it."""
        body, place = self.tree.frame(name, placement)
        J, R, p = ca.SX(6, self.v.numel()), ca.SX(place.rotation), ca.SX(place.position)
        if body == BASE:
            return BodyFrame(R, p, J, ca.SX(6, 1), ca.SX(6, 1))
        pose, at = self.poses[body], slice(6 * body, 6 * body + 6)
        d = ca.mtimes(pose.R, ca.SX(place.position - self.tree.bodies[body].inertia.center))
        w = ca.mtimes(pose.R, pose.w)
        J[:, at] = ca.sparsify(ca.blockcat([[ca.SX.eye(3), -ca.mtimes(skew(d), pose.R)], [ca.SX(3, 3), pose.R]]))
        V = ca.vertcat(pose.v + ca.cross(w, d), w)
        drift = ca.vertcat(ca.cross(w, ca.cross(w, d)), ca.SX(3, 1))
        return BodyFrame(ca.mtimes(pose.R, R), pose.p + d, J, V, drift)


def body_rows(tree: WeldedTree, poses: list[BodyPose]) -> BodyRows:
    """Return what constraints between frames, springs and compensated weights add."""
    wrenches = [ca.SX(6, 1) for _ in poses]
    equations: dict[str, ca.SX] = {}
    multipliers: dict[str, ca.SX] = {}
    seen = BodyKinematics(tree, poses)
    for constraint in seen.mechanism.all_constraints:
        if constraint.kind != "coupler" and not closes(constraint):
            add_constraint(constraint, seen, wrenches, equations, multipliers)
    if seen.mechanism.passive:
        _springs(seen, wrenches)
    _compensate(seen, wrenches)
    return BodyRows([(w[:3], w[3:]) for w in wrenches], equations, multipliers)


def require_pair(constraint: Any) -> None:
    """Refuse a constraint that is not between two frames."""
    if not isinstance(constraint, Pair):
        raise UnsupportedError(
            f"{constraint.label!r} ({constraint.kind}) is about coordinates that maximal coordinates do not have: use "
            "`newton_euler`, or leave all constraints out with `mechanism.open_tree()`"
        )


def add_constraint(
    constraint: Any, seen: BodyKinematics, wrenches: list[ca.SX], equations: dict, multipliers: dict
) -> None:
    """Enter the rows of one constraint and the wrenches of its multipliers."""
    require_pair(constraint)
    rows: Any = constraint.rows(seen)
    names = iter(constraint.row_names())
    for part in rows if isinstance(rows, list) else [rows]:
        written = ca.SX(part.rate if part.residual is None else part.residual)
        labels = [next(names) for _ in range(written.numel())]
        lam = ca.vertcat(*[ca.SX.sym(f"lam {name}") for name in labels])
        _act(ca.SX(part.jacobian), -lam, wrenches)
        equations |= {f"row {name}": row for name, row in zip(labels, ca.vertsplit(written), strict=True)}
        multipliers |= {f"lam {name}": x for name, x in zip(labels, ca.vertsplit(lam), strict=True)}


def _act(J: ca.SX, force: ca.SX, wrenches: list[ca.SX]) -> None:
    """Add J^T force to the wrenches of the bodies that J moves."""
    _, columns = J.sparsity().get_triplet()
    for body in sorted({column // 6 for column in columns}):
        wrenches[body] += ca.mtimes(J[:, 6 * body : 6 * body + 6].T, force)


def _springs(seen: BodyKinematics, wrenches: list[ca.SX]) -> None:
    """Add the forces of springs between frames."""
    for spring in seen.mechanism.springs:
        first, second = seen.frame(spring.frame), seen.frame(spring.other)
        line = first.position - second.position
        length = ca.sqrt(ca.sumsqr(line) + TINY_SQUARE)
        along = line / length
        pull = spring.stiffness * (length - spring.rest) + spring.damping * ca.dot(along, first.v - second.v)
        _act(first.Jv - second.Jv, -along * pull, wrenches)


def _compensate(seen: BodyKinematics, wrenches: list[ca.SX]) -> None:
    """Add what holds compensated weights."""
    for body in seen.mechanism.bodies:
        if body.compensation:
            centre = seen.frame(body.name, Placement(np.eye(3), body.inertia.center))
            weight = body.compensation * body.inertia.mass * np.asarray(seen.mechanism.gravity)
            _act(centre.Jv, ca.SX(-weight), wrenches)

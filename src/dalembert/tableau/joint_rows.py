"""Joints between two bodies in maximal coordinates: their rows, their speeds, and how their torques act.

Symbols: a, b the joint's frames on parent and child; Ra, Rb rotation and ra, rb origin in the ground's axes; d = Ra^T
(rb - ra) offset; n axis, t1, t2 directions across it (right handed); q angle about the axis.

    revolute    rb = ra (3);  Ra t1 . Rb n = Ra t2 . Rb n = 0           speed  n . w
    prismatic   no relative turn (3);  t1 . d = t2 . d = 0              speed  d(n . d)/dt
    helical     the two turns of a revolute joint, t1 . d = t2 . d = 0,  n . d = pitch q
    universal   rb = ra (3);  Ra n . Rb n2 = n . n2                     speeds  w along Ra n and Rb n2
    spherical   rb = ra (3)                                             speeds  w
    planar      n . d = 0, the two turns of a revolute joint            speeds  t1 . d', t2 . d', n . w

The angle q is an unknown of its own where it is needed (screws, springs, couplings): with c = Ra t1 . Rb t1 and s = Ra
t2 . Rb t1 it fulfils s cos q - c sin q = 0, and counts turns because it follows its own past.
E. J. Haug, "Computer Aided Kinematics and Dynamics of Mechanical Systems", Allyn and Bacon 1989, section 9.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from dalembert.model.joints.axes import plane
from dalembert.tableau.bodies import Joint


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
    return 6 - joint.motion.nv


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
        between = ca.dot(axis, ca.mtimes(turned, ca.SX(joint.axis2))) - float(joint.axis @ joint.axis2)
        return ca.vertcat(together, between)
    if joint.kind == "spherical":
        return together
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
    c = float(joint.axis @ joint.axis2)
    return ca.DM(np.linalg.inv(np.array([[1.0, c], [c, 1.0]])))


def _across(joint: Joint) -> tuple[Any, Any]:
    """Return two unit vectors that complete the axis to a right-handed frame."""
    helper = np.eye(3)[int(np.argmin(np.abs(joint.axis)))]
    first = np.cross(joint.axis, helper)
    first = first / np.linalg.norm(first)
    return ca.SX(first), ca.SX(np.cross(joint.axis, first))

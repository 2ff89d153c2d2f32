"""Equations of bodies in maximal coordinates: every body free, every joint a set of constraint rows; loops welcome.

Symbols, per body: p position of the centre of mass, e unit quaternion (x, y, z, w) body to ground, v velocity, w
angular velocity in the body frame, mu keeps |e| = 1; per joint: lam multipliers of its five rows phi, tau force
along its axis.

    p' = v                    m v' = m g - (dphi/dp)^T lam + ...
    e' = E(e) w / 2 - mu e    I w' + w x I w = -(dphi/de E / 2)^T lam + ...
    e.e = 1                   phi(p, e) = 0

E(e) w is the quaternion product e (w, 0). Rows of a revolute joint: its two origins coincide (3), two directions across
the parent's axis stay across the child's (2). Prismatic: no relative turn (3), no offset across the axis (2).
E. J. Haug, "Computer Aided Kinematics and Dynamics of Mechanical Systems", Allyn and Bacon 1989, sections 9.4, 11.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.model.mechanism import Mechanism
from dalembert.tableau.bodies import BASE, Joint, Multibody, skew
from dalembert.tableau.from_mechanism import as_multibody
from dalembert.tableau.tableau import Tableau


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


def maximal(model: Multibody | Mechanism, known: Iterable[str] | None = None) -> Tableau:
    """Return the tableau in maximal coordinates; default known: tau of every joint, forward dynamics.

    Variables: "p link1" (3), "e link1" (4), "v link1", "w link1" (3), "mu link1" per body; "lam joint1" (5) and
    "tau joint1" per joint. 14 unknowns a body and 5 a joint; structural index 3.
    `from_mechanism` says what of a mechanism is taken: a body on a free joint has no joint and no tau, a loop has both.
    """
    model = as_multibody(model)
    variables: dict[str, ca.SX] = {}
    rates: dict[str, ca.SX] = {}
    poses = [_pose(body.name, variables, rates) for body in model.bodies]
    wrenches = [[body.mass * ca.SX(np.asarray(model.gravity)), ca.SX(3, 1)] for body in model.bodies]
    equations: dict[str, ca.SX] = {}
    rows: dict[str, ca.SX] = {}
    for joint in model.joints:
        phi, coordinate = joint_rows(joint, model, poses)
        lam, tau = ca.SX.sym(f"lam {joint.name}", 5), ca.SX.sym(f"tau {joint.name}")
        variables |= {f"lam {joint.name}": lam, f"tau {joint.name}": tau}
        rows[f"joint {joint.name}"] = phi
        _apply(joint, poses, wrenches, phi, lam, coordinate, tau)
    for body, pose, (force, moment) in zip(model.bodies, poses, wrenches, strict=True):
        name, mu = body.name, ca.SX.sym(f"mu {body.name}")
        variables[f"mu {name}"] = mu
        inertia = ca.sparsify(ca.SX(body.inertia))
        gyro = ca.mtimes(skew(pose.w), ca.mtimes(inertia, pose.w))
        equations[f"rate of p {name}"] = rates[f"p {name}"] - pose.v
        equations[f"rate of e {name}"] = rates[f"e {name}"] - spin(pose.e, pose.w) / 2 + mu * pose.e
        equations[f"unit e {name}"] = ca.sumsqr(pose.e) - 1
        equations[f"force {name}"] = body.mass * rates[f"v {name}"] - force
        equations[f"moment {name}"] = ca.mtimes(inertia, rates[f"w {name}"]) + gyro - moment
    if known is None:
        known = [f"tau {joint.name}" for joint in model.joints]
    return Tableau({**equations, **rows}, variables, rates, known)


def rotation(e: ca.SX) -> ca.SX:
    """Return the rotation matrix of a unit quaternion (x, y, z, w)."""
    u, s = e[:3], e[3]
    return (s * s - ca.dot(u, u)) * ca.SX.eye(3) + 2 * ca.mtimes(u, u.T) + 2 * s * skew(u)


def spin(e: ca.SX, w: ca.SX) -> ca.SX:
    """Return the quaternion product e (w, 0): twice the rate of e."""
    return ca.vertcat(e[3] * w + ca.mtimes(skew(e[:3]), w), -ca.dot(e[:3], w))


def _pose(name: str, variables: dict[str, ca.SX], rates: dict[str, ca.SX]) -> Pose:
    """Enter a body's variables and rates."""
    symbols = {letter: ca.SX.sym(f"{letter} {name}", size) for letter, size in zip("pevw", (3, 4, 3, 3), strict=True)}
    for letter, symbol in symbols.items():
        variables[f"{letter} {name}"] = symbol
        rates[f"{letter} {name}"] = ca.SX.sym(f"{letter}' {name}", symbol.numel())
    p, e, v, w = symbols.values()
    return Pose(p, e, v, w, rotation(e), rates[f"v {name}"], rates[f"w {name}"])


def joint_rows(joint: Joint, model: Multibody, poses: list[Pose]) -> tuple[ca.SX, ca.SX]:
    """Return the five rows of a joint, and the displacement along its axis (of a prismatic one)."""
    Ra, ra = _frame(joint.parent, joint.rotation, joint.origin, model, poses)
    Rb, rb = _frame(joint.child, joint.child_rotation, joint.child_origin, model, poses)
    across, axis = _across(joint.axis), ca.SX(joint.axis)
    offset = ca.mtimes(Ra.T, rb - ra)
    if joint.kind == "revolute":
        tilt = [ca.dot(ca.mtimes(Ra, ca.SX(t)), ca.mtimes(Rb, axis)) for t in across]
        return ca.vertcat(rb - ra, *tilt), ca.SX(0)
    first, second = (ca.SX(t) for t in across)
    turned = ca.mtimes(Ra.T, Rb)
    pairs = ((first, second), (second, axis), (axis, first))
    turn = [ca.dot(a, ca.mtimes(turned, b)) for a, b in pairs]
    return ca.vertcat(*turn, ca.dot(first, offset), ca.dot(second, offset)), ca.dot(axis, offset)


def _frame(
    body: int, rotation: np.ndarray, origin: np.ndarray, model: Multibody, poses: list[Pose]
) -> tuple[ca.SX, ca.SX]:
    """Return rotation and origin of a joint frame in ground coordinates."""
    fixed, at = ca.sparsify(ca.SX(rotation)), np.asarray(origin, dtype=float)
    if body == BASE:
        return fixed, ca.SX(at)
    pose = poses[body]
    return ca.mtimes(pose.R, fixed), pose.p + ca.mtimes(pose.R, ca.SX(at - model.bodies[body].centre))


def _across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors that complete an axis to a right-handed frame."""
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(axis, helper)
    first = first / np.linalg.norm(first)
    return first, np.cross(axis, first)


def _apply(
    joint: Joint, poses: list[Pose], wrenches: list[list[ca.SX]], phi: ca.SX, lam: ca.SX, coordinate: ca.SX, tau: ca.SX
) -> None:
    """Add constraint and joint forces to the wrenches of parent and child, by virtual work."""
    net = tau - _resistance(joint, poses, coordinate)
    for body in (joint.parent, joint.child):
        if body == BASE:
            continue
        pose = poses[body]
        along_p, along_e = (net * ca.gradient(coordinate, x) - ca.jtimes(phi, x, lam, True) for x in (pose.p, pose.e))
        wrenches[body][0] += along_p
        wrenches[body][1] += ca.jtimes(spin(pose.e, pose.w), pose.w, along_e, True) / 2
    if joint.kind == "revolute":
        axis = ca.SX(joint.child_rotation @ joint.axis)
        wrenches[joint.child][1] += axis * net
        if joint.parent != BASE:
            wrenches[joint.parent][1] -= ca.mtimes(poses[joint.parent].R.T, ca.mtimes(poses[joint.child].R, axis)) * net


def _resistance(joint: Joint, poses: list[Pose], coordinate: ca.SX) -> ca.SX:
    """Return what rotor, damper and spring of a joint take of tau; speeds are rates of the coordinate on the motion."""
    revolute, child = joint.kind == "revolute", poses[joint.child]
    if not (joint.armature or joint.damping or joint.stiffness):
        return ca.SX(0)
    if revolute and joint.stiffness:
        raise UnsupportedError(
            f"joint {joint.name!r} is revolute with a spring: maximal coordinates have no angle that counts turns. "
            "Use `newton_euler`, or take the spring out"
        )
    ends = [child] if joint.parent == BASE else [child, poses[joint.parent]]
    state = ca.vertcat(*[x for end in ends for x in (end.p, end.e, end.v, end.w)])
    rate = ca.vertcat(*[x for end in ends for x in (end.v, spin(end.e, end.w) / 2, end.dv, end.dw)])
    if revolute:
        axis = ca.SX(joint.child_rotation @ joint.axis)
        speed = ca.dot(axis, child.w)
        if joint.parent != BASE:
            parent = poses[joint.parent]
            speed -= ca.dot(ca.mtimes(child.R, axis), ca.mtimes(parent.R, parent.w))
    else:
        speed = ca.jtimes(coordinate, state, rate)
    return joint.resistance(coordinate, speed, ca.jtimes(speed, state, rate))

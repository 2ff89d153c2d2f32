"""Equations of bodies in maximal coordinates: every body free, every joint a set of constraint rows; loops welcome.

Symbols, per body: p position of the centre of mass, e unit quaternion (x, y, z, w) body to ground, v velocity, w
angular velocity in the body frame, mu keeps |e| = 1; per joint: lam multipliers of its rows phi, tau forces along its
velocities.

    p' = v                    m v' = m g - (dphi/dp)^T lam + ...
    e' = E(e) w / 2 - mu e    I w' + w x I w = -(dphi/de E / 2)^T lam + ...
    e.e = 1                   phi(p, e) = 0

E(e) w is the quaternion product e (w, 0). The rows of joints, those of other constraints and the forces of springs
are in `maximal_rows.py`.

Source: E. J. Haug, "Computer Aided Kinematics and Dynamics of Mechanical Systems", Allyn and Bacon 1989,
sections 9.4, 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import Body, Joint
from dalembert.model.mechanism.placement import Placement
from dalembert.tableau.mechanics.maximal_rows import (
    BodyPose,
    Ends,
    angle_row,
    body_rows,
    joint_rows,
    joint_speeds,
    joint_wrench,
    row_count,
)
from dalembert.tableau.mechanics.welded import (
    BASE,
    closing_joints,
    motion,
    resistance,
    skew,
    welded,
)
from dalembert.tableau.tableau import Tableau

Wrenches = list[list[ca.SX]]


def maximal(mechanism: Mechanism, known: Iterable[str] | None = None) -> Tableau:
    """Return the tableau in maximal coordinates; default known: tau of every joint, forward dynamics.

    Variables: "p link1" (3), "e link1" (4), "v link1", "w link1" (3), "mu link1" per body; "lam joint1" (6 - nv) and
    "tau joint1" (nv) per joint with nv velocities; "q joint1", its angle, where a screw, a spring or a coupling needs
    it; "lam r" per row r of other constraints. 14 unknowns a body and 5 a hinge; structural index 3.
    `welded` says what of a mechanism is taken: a body on a free joint has no joint and no tau, a revolute or
    prismatic loop has both. Redundant rows (a planar loop of hinges in space) make the matrix singular:
    `redundant_rows` finds them, `without_rows` leaves them out.
    """
    tree = welded(mechanism)
    couplers = [c for c in mechanism.all_constraints if c.kind == "coupler"]
    sheet = MaximalSheet(tree.bodies, tree.gravity, couplers)
    for joint in (*tree.joints, *closing_joints(tree)):
        if joint.kind == "free":
            refuse_resistance(joint)
        else:
            sheet.add(joint)
    sheet.couple()
    added = body_rows(tree, sheet.poses)
    for wrench, more in zip(sheet.wrenches, added.wrenches, strict=True):
        wrench[0], wrench[1] = wrench[0] + more[0], wrench[1] + more[1]
    sheet.move()
    if known is None:
        known = [name for name in sheet.variables if name.startswith("tau ")]
    equations = {**sheet.equations, **sheet.rows, **added.equations}
    return Tableau(equations, {**sheet.variables, **added.multipliers}, sheet.rates, known)


class MaximalSheet:
    """Variables, rates, equations and the wrenches on all bodies."""

    def __init__(self, bodies: Sequence[Body], gravity: np.ndarray, couplers: Sequence[Any] = ()) -> None:
        self.bodies, self.couplers = bodies, couplers
        self.numbers = {body.name: k for k, body in enumerate(bodies)}
        self.variables: dict[str, ca.SX] = {}
        self.rates: dict[str, ca.SX] = {}
        self.equations: dict[str, ca.SX] = {}
        self.rows: dict[str, ca.SX] = {}
        self.poses = [_pose(body.name, self.variables, self.rates) for body in bodies]
        self.wrenches: Wrenches = [[body.inertia.mass * ca.SX(gravity), ca.SX(3, 1)] for body in bodies]
        self.joints: dict[str, tuple[Joint, Ends]] = {}
        self.coupled = {name for coupler in couplers for name, _ in coupler.terms}

    def add(self, joint: Joint) -> None:
        """Enter a joint: its rows, multipliers and torques."""
        name, ends = joint.name, self._ends(joint)
        lam, tau = ca.SX.sym(f"lam {name}", row_count(joint)), ca.SX.sym(f"tau {name}", motion(joint).nv)
        self.variables |= {f"lam {name}": lam, f"tau {name}": tau}
        self.joints[name] = (joint, ends)
        angle = self._angle(joint, ends)
        phi = joint_rows(joint, ends, angle)
        self.rows[f"joint {name}"] = phi
        net = tau - self._resistance(joint, ends)
        if joint.kind == "helical":
            net = net - ca.jtimes(phi, angle, lam, True)
        for body in self._bodies(joint):
            if body != BASE:
                pose = self.poses[body]
                self.wrenches[body][0] -= ca.jtimes(phi, pose.p, lam, True)
                self.wrenches[body][1] -= _turning(pose, ca.jtimes(phi, pose.e, lam, True))
        self._push(joint, ends, net)

    def couple(self) -> None:
        """Enter the couplings: sum of factor * coordinate = offset."""
        for coupler in self.couplers:
            name, phi = coupler.label, -coupler.offset
            lam = ca.SX.sym(f"lam {name}")
            for coordinate, factor in coupler.terms:
                if coordinate not in self.joints or self.joints[coordinate][0].kind == "universal":
                    raise UnsupportedError(
                        f"coupling {name!r} of {coordinate!r}: maximal coordinates couple revolute, prismatic and "
                        "helical joints; use `newton_euler`"
                    )
                joint, ends = self.joints[coordinate]
                phi = phi + factor * self._coordinate(joint, ends)
                self._push(joint, ends, -factor * lam)
            self.variables[f"lam {name}"] = lam
            self.rows[f"coupling {name}"] = phi

    def move(self) -> None:
        """Write the equations of motion of all bodies."""
        for body, pose, (force, moment) in zip(self.bodies, self.poses, self.wrenches, strict=True):
            name, mu = body.name, ca.SX.sym(f"mu {body.name}")
            self.variables[f"mu {name}"] = mu
            inertia = ca.sparsify(ca.SX(body.inertia.rotational))
            gyro = ca.mtimes(skew(pose.w), ca.mtimes(inertia, pose.w))
            self.equations[f"rate of p {name}"] = self.rates[f"p {name}"] - pose.v
            self.equations[f"rate of e {name}"] = self.rates[f"e {name}"] - spin(pose.e, pose.w) / 2 + mu * pose.e
            self.equations[f"unit e {name}"] = ca.sumsqr(pose.e) - 1
            self.equations[f"force {name}"] = body.inertia.mass * pose.dv - force
            self.equations[f"moment {name}"] = ca.mtimes(inertia, pose.dw) + gyro - moment

    def _angle(self, joint: Joint, ends: Ends) -> Any:
        """Enter the angle of a joint where something needs it."""
        turns = joint.kind in ("revolute", "helical")
        if not turns or not (joint.kind == "helical" or joint.stiffness or joint.name in self.coupled):
            return None
        angle = ca.SX.sym(f"q {joint.name}")
        self.variables[f"q {joint.name}"] = angle
        self.rows[f"angle {joint.name}"] = angle_row(joint, ends, angle)
        return angle

    def _coordinate(self, joint: Joint, ends: Ends) -> ca.SX:
        """Return the length or angle of a joint with one velocity."""
        if joint.kind == "prismatic":
            return ca.dot(ca.mtimes(ends.Ra, ca.SX(joint.axis)), ends.rb - ends.ra)
        return self.variables[f"q {joint.name}"]

    def _push(self, joint: Joint, ends: Ends, tau: ca.SX) -> None:
        """Add torques of a joint to the wrenches of child and parent."""
        force, moment = joint_wrench(joint, ends, tau)
        for body, sign in zip(self._bodies(joint), (-1, 1), strict=True):
            if body != BASE:
                pose = self.poses[body]
                whole = moment + ca.mtimes(skew(ends.rb - pose.p), force)
                self.wrenches[body][0] += sign * force
                self.wrenches[body][1] += sign * ca.mtimes(pose.R.T, whole)

    def _resistance(self, joint: Joint, ends: Ends) -> ca.SX:
        """Return what rotor, damper and spring of a joint take of tau."""
        if not (joint.armature or joint.damping or joint.stiffness):
            return ca.SX(0)
        if joint.stiffness and joint.kind == "universal":
            raise UnsupportedError(
                f"joint {joint.name!r} is universal with a spring: maximal coordinates have no angles of it. "
                "Use `newton_euler`, or take the spring out"
            )
        moving = [self.poses[body] for body in self._bodies(joint) if body != BASE]
        state = ca.vertcat(*[x for pose in moving for x in (pose.p, pose.e, pose.v, pose.w)])
        rate = ca.vertcat(*[x for pose in moving for x in (pose.v, spin(pose.e, pose.w) / 2, pose.dv, pose.dw)])
        speeds = joint_speeds(joint, ends)
        coordinate = self._coordinate(joint, ends) if joint.stiffness else ca.SX(0)
        return resistance(joint, coordinate, speeds, ca.jtimes(speeds, state, rate))

    def _ends(self, joint: Joint) -> Ends:
        """Return the joint's frames on both bodies."""
        parent, child = self._bodies(joint)
        Ra, ra, va, wa = self._frame(parent, joint.placement)
        Rb, rb, vb, wb = self._frame(child, joint.child_placement)
        seen = vb - va - ca.mtimes(skew(wa), rb - ra)
        return Ends(Ra, ra, Rb, rb, wb - wa, seen)

    def _bodies(self, joint: Joint) -> tuple[int, int]:
        """Return the numbers of a joint's parent and child; what is no body is the ground."""
        return self.numbers.get(joint.parent, BASE), self.numbers[joint.child]

    def _frame(self, body: int, place: Placement) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        """Return rotation, origin, velocity of the origin and angular velocity of a frame, in ground coordinates."""
        fixed, at = ca.sparsify(ca.SX(place.rotation)), place.position
        if body == BASE:
            return fixed, ca.SX(at), ca.SX(3, 1), ca.SX(3, 1)
        pose = self.poses[body]
        arm, w = ca.mtimes(pose.R, ca.SX(at - self.bodies[body].inertia.center)), ca.mtimes(pose.R, pose.w)
        return ca.mtimes(pose.R, fixed), pose.p + arm, pose.v + ca.mtimes(skew(w), arm), w


def rotation(e: ca.SX) -> ca.SX:
    """Return the rotation matrix of a unit quaternion (x, y, z, w)."""
    u, s = e[:3], e[3]
    return (s * s - ca.dot(u, u)) * ca.SX.eye(3) + 2 * ca.mtimes(u, u.T) + 2 * s * skew(u)


def spin(e: ca.SX, w: ca.SX) -> ca.SX:
    """Return the quaternion product e (w, 0): twice the rate of e."""
    return ca.vertcat(e[3] * w + ca.mtimes(skew(e[:3]), w), -ca.dot(e[:3], w))


def _pose(name: str, variables: dict[str, ca.SX], rates: dict[str, ca.SX]) -> BodyPose:
    """Enter a body's variables and rates."""
    symbols = {letter: ca.SX.sym(f"{letter} {name}", size) for letter, size in zip("pevw", (3, 4, 3, 3), strict=True)}
    for letter, symbol in symbols.items():
        variables[f"{letter} {name}"] = symbol
        rates[f"{letter} {name}"] = ca.SX.sym(f"{letter}' {name}", symbol.numel())
    p, e, v, w = symbols.values()
    return BodyPose(p, e, v, w, rotation(e), rates[f"v {name}"], rates[f"w {name}"])


def _turning(pose: BodyPose, along_e: ca.SX) -> ca.SX:
    """Return the moment in the body frame that does the work of a force along e."""
    return ca.jtimes(spin(pose.e, pose.w), pose.w, along_e, True) / 2


def refuse_resistance(joint: Joint) -> None:
    """Refuse rotors and dampers of a free joint."""
    words = [name for name in ("armature", "damping", "stiffness") if getattr(joint, name)]
    if words:
        raise UnsupportedError(
            f"joint {joint.name!r} is free and has {' and '.join(words)}: maximal coordinates know no free joints. "
            "Build it without, or use `newton_euler`"
        )

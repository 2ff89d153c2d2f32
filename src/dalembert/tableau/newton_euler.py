"""The equations of a tree of bodies in joint coordinates, at five granularities (seed 003, sec. 5.2).

Symbols, per body i with parent p, in the frame of body i unless said otherwise: R child to parent rotation, r joint
origin in the parent's frame, s axis; w angular velocity, dw angular acceleration, a acceleration of the origin (minus
gravity), ac of the centre of mass, F and N resultant force and moment about the centre, f and n force and moment that
the parent exerts, tau joint force.

    w = R^T w_p + s qd                     a = R^T (a_p + dw_p x r + w_p x (w_p x r))  [+ s qdd + 2 w x s qd]
    dw = R^T dw_p + s qdd + w x s qd       ac = a + dw x c + w x (w x c)
    F = m ac,  N = I dw + w x I w          f = F + sum R_j f_j,  n = N + c x F + sum (R_j n_j + r_j x R_j f_j)
    tau = s.n  or  s.f, and armature qdd + damping qd + stiffness (q - rest) of the joint itself

J. Y. S. Luh, M. W. Walker, R. P. C. Paul, ASME J. Dyn. Syst. Meas. Control 102 (1980) 69-76. One text writes all
granularities: an intermediate quantity is a variable with its own equation from its level on, and an expression below.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.model.mechanism import Mechanism
from dalembert.tableau.bodies import BASE, Joint, Multibody, skew, turn
from dalembert.tableau.from_mechanism import as_multibody
from dalembert.tableau.tableau import Tableau

GRANULARITIES = {
    "essential": 16,
    "newton-euler": 25,
    "rotations": 35,
    "motions": 65,
    "products": 123,
}
"""Equations per body; six bodies have 96, 150, 210, 390 and 738.

- essential, 16: w, dw, a, f, n (3 each) and tau
- newton-euler, 25: and ac, F, N
- rotations, 35: and the nine entries of R and the joint velocity
- motions, 65: and r, the body's rotation to the ground (9), position of origin and centre, their velocities, linear and
  angular momentum (3 each)
- products, 123: and every product: four parent quantities turned into the child's frame, six cross products with r and
  c, the joint's own three motions, I dw, w x h, c x F, the three transmitted to the parent (3 each), and the power
"""


class Sheet:
    """Collects variables and equations; below its level a quantity stays an expression."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.variables: dict[str, ca.SX] = {}
        self.equations: dict[str, ca.SX] = {}
        self.outputs: dict[str, str] = {}

    def let(self, name: str, value: ca.SX, level: int) -> ca.SX:
        """Return the quantity: a new variable with its equation, or the expression itself."""
        if level > self.level:
            return value
        symbol = ca.SX.sym(name, value.numel())
        self.variables[name] = symbol
        self.equations[f"def {name}"] = symbol - ca.vec(ca.densify(value))
        self.outputs[f"def {name}"] = name
        return symbol if value.is_column() else ca.reshape(symbol, *value.shape)


def newton_euler(
    model: Multibody | Mechanism,
    granularity: str = "newton-euler",
    known: Iterable[str] = ("q", "qd", "qdd"),
    instant: bool = True,
) -> Tableau:
    """Return the tableau of a tree in joint coordinates; `from_mechanism` says what of a mechanism is taken.

    Variables q, qd, qdd and tau have one element per joint; "w link1", "f link1" ... per body. Inverse dynamics:
    known q, qd, qdd; forward: known q, qd, tau at an instant;
    as a differential equation: known tau.
    """
    tree = as_multibody(model)
    tree.require_tree()
    if granularity not in GRANULARITIES:
        raise ModelError(f"granularity {granularity!r} is not one of {', '.join(map(repr, GRANULARITIES))}")
    sheet = Sheet(1 + list(GRANULARITIES).index(granularity))
    n = len(tree.joints)
    q, qd, qdd, tau = (ca.SX.sym(name, n) for name in ("q", "qd", "qdd", "tau"))
    q_rate, qd_rate = ca.SX.sym("q'", n), ca.SX.sym("qd'", n)
    moved = _outward(sheet, tree, q, qd, qdd)
    torque = _inward(sheet, tree, moved)
    for i, joint in enumerate(tree.joints):
        sheet.equations[f"tau {joint.name}"] = tau[i] - torque[i] - joint.resistance(q[i], qd[i], qdd[i])
        sheet.outputs[f"tau {joint.name}"] = f"tau[{i}]" if n > 1 else "tau"
        sheet.let(f"power {joint.name}", tau[i] * moved[i]["rate"], 5)
    sheet.equations |= {"rate of q": q_rate - qd, "rate of qd": qd_rate - qdd}
    variables = {"q": q, "qd": qd, "qdd": qdd, "tau": tau, **sheet.variables}
    return Tableau(sheet.equations, variables, {"q": q_rate, "qd": qd_rate}, known, sheet.outputs, instant=instant)


def _outward(sheet: Sheet, tree: Multibody, q: ca.SX, qd: ca.SX, qdd: ca.SX) -> list[dict[str, Any]]:
    """Write rotations, velocities and accelerations from the base outwards."""
    none = ca.SX(3, 1)
    base = {"w": none, "dw": none, "a": ca.SX(-np.asarray(tree.gravity)), "v": none, "Rw": ca.SX.eye(3), "p": none}
    moved: list[dict[str, Any]] = []
    for i, joint in enumerate(tree.joints):
        parent = base if joint.parent == BASE else moved[joint.parent]
        frame = _joint_frame(sheet, joint, q[i], qd[i], qdd[i])
        moved.append(_body_motion(sheet, tree, joint, parent, frame))
    return moved


def _joint_frame(sheet: Sheet, joint: Joint, q: ca.SX, qd: ca.SX, qdd: ca.SX) -> dict[str, Any]:
    """Write the joint's rotation, origin and own motion."""
    revolute = joint.kind == "revolute"
    fixed, axis = ca.sparsify(ca.SX(joint.rotation)), ca.sparsify(ca.SX(joint.axis))
    rate = sheet.let(f"v {joint.name}", qd, 3)
    R = sheet.let(f"R {joint.name}", ca.mtimes(fixed, turn(joint.axis, q)) if revolute else fixed, 3)
    origin = ca.SX(joint.origin) if revolute else ca.SX(joint.origin) + ca.mtimes(fixed, axis) * q
    return {
        "R": R,
        "r": sheet.let(f"r {joint.name}", origin, 4),
        "rate": rate,
        "speed": sheet.let(f"s qd {joint.name}", axis * rate, 5),
        "push": sheet.let(f"s qdd {joint.name}", axis * qdd, 5),
    }


def _body_motion(sheet: Sheet, tree: Multibody, joint: Joint, parent: dict, frame: dict[str, Any]) -> dict[str, Any]:
    """Write velocities and accelerations of one body."""
    body, revolute = tree.bodies[joint.child], joint.kind == "revolute"
    name, R, r = body.name, frame["R"], frame["r"]
    cross = lambda a, b: ca.mtimes(skew(a), b)  # noqa: E731
    turned = lambda what, x: sheet.let(f"{what} {name}", ca.mtimes(R.T, x), 5)  # noqa: E731
    speed, push = frame["speed"], frame["push"]
    w = sheet.let(f"w {name}", turned("R^T w", parent["w"]) + (speed if revolute else 0), 1)
    coriolis = sheet.let(f"w x s qd {name}", cross(w, speed), 5)
    dw = sheet.let(f"dw {name}", turned("R^T dw", parent["dw"]) + (push + coriolis if revolute else 0), 1)
    w_r = sheet.let(f"w x r {name}", cross(parent["w"], r), 5)
    dw_r = sheet.let(f"dw x r {name}", cross(parent["dw"], r), 5)
    w_w_r = sheet.let(f"w x w x r {name}", cross(parent["w"], w_r), 5)
    carried = turned("R^T a", parent["a"] + dw_r + w_w_r)
    a = sheet.let(f"a {name}", carried + (0 if revolute else push + 2 * coriolis), 1)
    c = ca.SX(body.centre)
    w_c = sheet.let(f"w x c {name}", cross(w, c), 5)
    dw_c = sheet.let(f"dw x c {name}", cross(dw, c), 5)
    w_w_c = sheet.let(f"w x w x c {name}", cross(w, w_c), 5)
    ac = sheet.let(f"ac {name}", a + dw_c + w_w_c, 2)
    momentum = _placed(sheet, tree, joint, parent, frame, w, w_r, w_c, turned)
    return {"w": w, "dw": dw, "a": a, "ac": ac, **frame, **momentum}


def _placed(
    sheet: Sheet, tree: Multibody, joint: Joint, parent: dict, frame: dict, w: Any, w_r: Any, w_c: Any, turned: Any
) -> dict[str, Any]:
    """Write positions, velocities and momenta of one body."""
    body = tree.bodies[joint.child]
    name, c = body.name, ca.SX(body.centre)
    Rw = sheet.let(f"Rw {name}", ca.mtimes(parent["Rw"], frame["R"]), 4)
    p = sheet.let(f"p {name}", parent["p"] + ca.mtimes(parent["Rw"], frame["r"]), 4)
    sheet.let(f"pc {name}", p + ca.mtimes(Rw, c), 4)
    v = turned("R^T v", parent["v"] + w_r)
    v = sheet.let(f"v {name}", v if joint.kind == "revolute" else v + frame["speed"], 4)
    vc = sheet.let(f"vc {name}", v + w_c, 4)
    sheet.let(f"l {name}", body.mass * vc, 4)
    h = sheet.let(f"h {name}", ca.mtimes(ca.sparsify(ca.SX(body.inertia)), w), 4)
    return {"Rw": Rw, "p": p, "v": v, "h": h}


def _inward(sheet: Sheet, tree: Multibody, moved: list[dict[str, Any]]) -> list[ca.SX]:
    """Write resultants and joint forces from the leaves inwards; return the expressions of tau."""
    n = len(tree.joints)
    forces, moments = [ca.SX(3, 1) for _ in range(n)], [ca.SX(3, 1) for _ in range(n)]
    torque: list[ca.SX] = [ca.SX(0)] * n
    for i in range(n - 1, -1, -1):
        body, joint, m = tree.bodies[i], tree.joints[i], moved[i]
        name = body.name
        c, inertia = ca.SX(body.centre), ca.sparsify(ca.SX(body.inertia))
        F = sheet.let(f"F {name}", body.mass * m["ac"], 2)
        spin = sheet.let(f"I dw {name}", ca.mtimes(inertia, m["dw"]), 5)
        gyro = sheet.let(f"w x h {name}", ca.mtimes(skew(m["w"]), m["h"]), 5)
        N = sheet.let(f"N {name}", spin + gyro, 2)
        lever = sheet.let(f"c x F {name}", ca.mtimes(skew(c), F), 5)
        f = sheet.let(f"f {name}", F + forces[i], 1)
        moment = sheet.let(f"n {name}", N + lever + moments[i], 1)
        passed = sheet.let(f"R f {name}", ca.mtimes(m["R"], f), 5)
        passed_n = sheet.let(f"R n {name}", ca.mtimes(m["R"], moment), 5)
        arm = sheet.let(f"r x R f {name}", ca.mtimes(skew(m["r"]), passed), 5)
        if joint.parent != BASE:
            forces[joint.parent] += passed
            moments[joint.parent] += passed_n + arm
        torque[i] = ca.dot(ca.SX(joint.axis), moment if joint.kind == "revolute" else f)
    return torque

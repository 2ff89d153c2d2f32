"""The equations of a tree of bodies in joint coordinates (seed 003, sec. 5.2), constraints included."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt.limits import BUILT
from dalembert.model.constraints.all_rows import assemble
from dalembert.model.constraints.primitives import FrameKinematics, Kinematics
from dalembert.model.joints import as_expression
from dalembert.model.limits import TINY_SQUARE
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import Body, Joint
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.tableau.mechanics.welded import BASE, WeldedTree, motion, resistance, skew, welded
from dalembert.tableau.tableau import Tableau

# ----------------------------------------------------------------------------------------------------------------------
# Constraints and springs of a mechanism in joint coordinates: what they add to the equations of its tree.
#
# Symbols: q, qd, qdd as in `newton_euler`; R, p pose of a frame in the world, V = [v; w] its velocity; phi residual of
# a row, A its Jacobian, lam its multiplier; l length of a spring.
#
#     tau = (what bodies and joints need) + A^T lam + (dl/dqd)^T (k (l - rest) + d l') + compensation m Jc^T g
#
#     level "acceleration"   A qdd + drift = 0
#     level "velocity"       A qd + offset = 0
#     level "position"       phi(q, t) = 0; rows on velocities only as on the level of velocity
#
# Rows, their names and signs are those of `Mechanism.names`, and so are the multipliers. A row that says 0 = 0 for
# every configuration (the third direction of a planar loop) is left out with its multiplier, which would act on
# nothing.


LEVELS = ("acceleration", "velocity", "position")
"""At which a constraint is written down."""


@dataclass(frozen=True, eq=False)
class JointRows:
    """What constraints and springs add: forces along all velocities, equations, multipliers, the symbol of time."""

    forces: ca.SX
    equations: dict[str, ca.SX]
    multipliers: dict[str, ca.SX]
    time: ca.SX | None


def tree_rows(tree: WeldedTree, q: ca.SX, qd: ca.SX, qdd: ca.SX, level: str) -> JointRows:
    """Return what the mechanism's constraints and springs add to the equations of its tree."""
    if not isinstance(level, str) or level not in LEVELS:
        raise ModelError(f"level {level!r} is not one of {', '.join(map(repr, LEVELS))}")
    mechanism, seen = tree.mechanism, JointKinematics(tree, q, qd)
    forces = passive_forces(mechanism, seen)
    if not mechanism.names:
        return JointRows(forces, {}, {}, None)
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
    return JointRows(forces, equations, multipliers, seen.t if moving else None)


def passive_forces(mechanism: Mechanism, seen: JointKinematics) -> ca.SX:
    """Return what springs between frames and compensated weights take of tau."""
    taken = _compensation(mechanism, seen)
    return taken + _springs(mechanism, seen) if mechanism.passive else taken


def _says_nothing(name: str, *levels: ca.SX) -> bool:
    """Whether a row is 0 = 0 on all levels; one that is another constant can never be fulfilled and is refused."""
    if not all(level.is_constant() for level in levels):
        return False
    gap = max(abs(float(level)) for level in levels)
    if gap > BUILT:
        raise ModelError(f"constraint row {name!r} is {gap:.3g} = 0 in every configuration: the parts cannot meet")
    return True


def _springs(mechanism: Mechanism, seen: JointKinematics) -> ca.SX:
    """Return what springs between frames take of tau."""
    taken = ca.SX(seen.v.numel(), 1)
    for spring in mechanism.springs:
        first, second = seen.frame(spring.frame), seen.frame(spring.other)
        length = ca.sqrt(ca.sumsqr(first.position - second.position) + TINY_SQUARE)
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

    def __init__(self, tree: WeldedTree, q: ca.SX, qd: ca.SX) -> None:
        self.tree, self.mechanism = tree, tree.mechanism
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
            part = self.own[at : at + size]
            parts.append(ca.vertcat(ca.cos(part), ca.sin(part)) if joint.kind == "continuous" else part)
            at += size
        return ca.vertcat(*parts)

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame by name, or a place on it."""
        body, place = self.tree.frame(name, placement)
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


def parts_of(tree: WeldedTree, column: ca.SX, word: str) -> list[ca.SX]:
    """Return the elements of each joint; `word` is "nq" or "nv"."""
    ends = np.cumsum([0, *(getattr(motion(joint), word) for joint in tree.joints)])
    return [column[int(a) : int(b)] for a, b in pairwise(ends)]


def rate_of_q(tree: WeldedTree, q: ca.SX, qd: ca.SX) -> ca.SX:
    """Return dq/dt = N(q) qd."""
    pairs = zip(tree.joints, parts_of(tree, q, "nq"), parts_of(tree, qd, "nv"), strict=True)
    return ca.vertcat(*[as_expression(motion(j).rate(ca.vertsplit(a), ca.vertsplit(b))) for j, a, b in pairs])


def tree_poses(tree: WeldedTree, q: ca.SX) -> list[tuple[Any, Any]]:
    """Return rotation and origin of every body's frame in the world."""
    poses: list[tuple[Any, Any]] = []
    for joint, part in zip(tree.joints, parts_of(tree, q, "nq"), strict=True):
        scalars: Any = ca.vertsplit(part)
        R, p = (as_expression(x) for x in motion(joint).motion(joint, scalars))
        fixed, parent = ca.sparsify(ca.SX(joint.placement.rotation)), tree.number(joint.parent)
        R, p = ca.mtimes(fixed, R), ca.SX(joint.placement.position) + ca.mtimes(fixed, p)
        if parent != BASE:
            carrier, at = poses[parent]
            R, p = ca.mtimes(carrier, R), at + ca.mtimes(carrier, p)
        poses.append((R, p))
    return poses


# ----------------------------------------------------------------------------------------------------------------------
# The equations of a tree of bodies in joint coordinates, at five granularities (seed 003, sec. 5.2).
#
# Symbols, per body i with parent p, in the frame of body i unless said otherwise: R child to parent rotation, r joint
# origin in the parent's frame, s and t angular and linear velocity of the joint per velocity qd (its motion subspace);
# w angular velocity, dw angular acceleration, a acceleration of the origin (minus gravity), ac of the centre of mass, F
# and N resultant force and moment about the centre, f and n force and moment that the parent exerts, tau joint force.
#
#     w = R^T w_p + s qd                     a = R^T (a_p + dw_p x r + w_p x (w_p x r)) + (t qd)' + (2 w - s qd) x t qd
#     dw = R^T dw_p + (s qd)' + w x s qd     ac = a + dw x c + w x (w x c)
#     F = m ac,  N = I dw + w x I w          f = F + sum R_j f_j,  n = N + c x F + sum (R_j n_j + r_j x R_j f_j)
#     tau = s^T n + t^T f, armature qdd + damping qd + stiffness (q - rest) of the joint itself, and what constraints
#     and
#     springs between frames add (`tree_rows`); (s qd)' = s qdd + s' qd in the axes of body i
#
# J. Y. S. Luh, M. W. Walker, R. P. C. Paul, ASME J. Dyn. Syst. Meas. Control 102 (1980) 69-76. One text writes all
# granularities: an intermediate quantity is a variable with its own equation from its level on, and an expression
# below.


GRANULARITIES = {
    "essential": 16,
    "newton-euler": 25,
    "rotations": 35,
    "motions": 65,
    "products": 123,
}
"""Equations per body on a joint with one velocity; six such bodies have 96, 150, 210, 390 and 738.

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
    mechanism: Mechanism,
    granularity: str = "newton-euler",
    known: Iterable[str] | None = None,
    instant: bool = True,
    level: str = "acceleration",
) -> Tableau:
    """Return the tableau of a mechanism in joint coordinates; `welded` says what of it is taken.

    Variables q, qd, qdd and tau, one element per coordinate and velocity of every joint; "w link1", "f link1" ... per
    body; "lam r" per row r of the mechanism's constraints. Inverse dynamics, the default: known q, qd, qdd and, where
    there are constraints, every lam (zero: the torques of `mechanism.inverse`), or make these unknown and the torques
    of as many joints known. Forward: known q, qd, tau at an instant; as a differential equation: known tau.

    `level` is that of the constraints, one of `tree_rows.LEVELS`; at an instant only accelerations are unknown.
    """
    tree = welded(mechanism)
    if not isinstance(granularity, str) or granularity not in GRANULARITIES:
        raise ModelError(f"granularity {granularity!r} is not one of {', '.join(map(repr, GRANULARITIES))}")
    sheet = Sheet(1 + list(GRANULARITIES).index(granularity))
    nq, nv = tree.size
    q, qd, qdd, tau = (ca.SX.sym(name, n) for name, n in zip(("q", "qd", "qdd", "tau"), (nq, nv, nv, nv), strict=True))
    q_rate, qd_rate = ca.SX.sym("q'", nq), ca.SX.sym("qd'", nv)
    moved = _outward(sheet, tree, q, qd, qdd)
    torque = _inward(sheet, tree, moved)
    added = tree_rows(tree, q, qd, qdd, level)
    _torques(sheet, tree, moved, torque, (q, qd, qdd, tau, added.forces))
    sheet.equations |= {"rate of q": q_rate - rate_of_q(tree, q, qd), "rate of qd": qd_rate - qdd, **added.equations}
    variables = {"q": q, "qd": qd, "qdd": qdd, "tau": tau, **sheet.variables, **added.multipliers}
    known = ("q", "qd", "qdd", *added.multipliers) if known is None else known
    rates = {"q": q_rate, "qd": qd_rate}
    return Tableau(sheet.equations, variables, rates, known, sheet.outputs, added.time, instant=instant)


def _torques(
    sheet: Sheet, tree: WeldedTree, moved: list[dict[str, Any]], torque: list[ca.SX], columns: tuple[ca.SX, ...]
) -> None:
    """Write tau of every joint, and its power."""
    q, *others = columns
    parts = [parts_of(tree, q, "nq"), *(parts_of(tree, column, "nv") for column in others)]
    at, single = 0, others[0].numel() == 1
    for joint, m, need, (position, rate, push, tau, added) in zip(
        tree.joints, moved, torque, zip(*parts, strict=True), strict=True
    ):
        name, size = f"tau {joint.name}", tau.numel()
        sheet.equations[name] = tau - need - resistance(joint, position, rate, push) - added
        rows = [name] if size == 1 else [f"{name}[{k}]" for k in range(size)]
        sheet.outputs |= {row: "tau" if single else f"tau[{at + k}]" for k, row in enumerate(rows)}
        sheet.let(f"power {joint.name}", ca.dot(tau, m["rate"]), 5)
        at += size


def _outward(sheet: Sheet, tree: WeldedTree, q: ca.SX, qd: ca.SX, qdd: ca.SX) -> list[dict[str, Any]]:
    """Write rotations, velocities and accelerations from the base outwards."""
    none = ca.SX(3, 1)
    base = {"w": none, "dw": none, "a": ca.SX(-tree.gravity), "v": none, "Rw": ca.SX.eye(3), "p": none}
    moved: list[dict[str, Any]] = []
    parts = zip(parts_of(tree, q, "nq"), parts_of(tree, qd, "nv"), parts_of(tree, qdd, "nv"), strict=True)
    for joint, part in zip(tree.joints, parts, strict=True):
        carrier = tree.number(joint.parent)
        frame = _joint_frame(sheet, joint, *part)
        moved.append(_body_motion(sheet, tree.bodies[len(moved)], base if carrier == BASE else moved[carrier], frame))
    return moved


def _joint_frame(sheet: Sheet, joint: Joint, q: ca.SX, qd: ca.SX, qdd: ca.SX) -> dict[str, Any]:
    """Write the joint's rotation, origin and own motion; None stands for a motion that it does not have."""
    kind, fixed = motion(joint), ca.sparsify(ca.SX(joint.placement.rotation))
    scalars: Any = ca.vertsplit(q)
    turned, shift = (as_expression(x) for x in kind.motion(joint, scalars))
    S = as_expression(kind.subspace(joint, scalars))
    rate = sheet.let(f"v {joint.name}", qd, 3)
    speeds: Any = ca.vertsplit(rate)
    bias = as_expression(kind.bias(joint, scalars, speeds))
    R = sheet.let(f"R {joint.name}", ca.mtimes(fixed, turned), 3)
    r = sheet.let(f"r {joint.name}", ca.SX(joint.placement.position) + ca.mtimes(fixed, shift), 4)
    frame: dict[str, Any] = {"R": R, "r": r, "rate": rate, "S": S}
    for letter, rows in (("s", slice(3, 6)), ("t", slice(0, 3))):
        block = S[rows, :]
        moves = block.nnz() > 0
        frame[f"{letter} qd"] = sheet.let(f"{letter} qd {joint.name}", ca.mtimes(block, rate), 5) if moves else None
        push = ca.mtimes(block, qdd) + bias[rows]
        frame[f"{letter} qdd"] = sheet.let(f"{letter} qdd {joint.name}", push, 5) if moves else None
    return frame


def _body_motion(sheet: Sheet, body: Body, parent: dict, frame: dict[str, Any]) -> dict[str, Any]:
    """Write velocities and accelerations of one body."""
    name, R, r = body.name, frame["R"], frame["r"]
    cross = lambda a, b: ca.mtimes(skew(a), b)  # noqa: E731
    turned = lambda what, x: sheet.let(f"{what} {name}", ca.mtimes(R.T, x), 5)  # noqa: E731
    turn, slide = frame["s qd"], frame["t qd"]
    w = sheet.let(f"w {name}", turned("R^T w", parent["w"]) + (0 if turn is None else turn), 1)
    turning = 0 if turn is None else frame["s qdd"] + sheet.let(f"w x s qd {name}", cross(w, turn), 5)
    dw = sheet.let(f"dw {name}", turned("R^T dw", parent["dw"]) + turning, 1)
    w_r = sheet.let(f"w x r {name}", cross(parent["w"], r), 5)
    dw_r = sheet.let(f"dw x r {name}", cross(parent["dw"], r), 5)
    w_w_r = sheet.let(f"w x w x r {name}", cross(parent["w"], w_r), 5)
    carried = turned("R^T a", parent["a"] + dw_r + w_w_r)
    sliding = 0 if slide is None else frame["t qdd"] + 2 * sheet.let(f"w x t qd {name}", cross(w, slide), 5)
    if turn is not None and slide is not None:
        sliding -= cross(turn, slide)
    a = sheet.let(f"a {name}", carried + sliding, 1)
    c = ca.SX(body.inertia.center)
    w_c = sheet.let(f"w x c {name}", cross(w, c), 5)
    dw_c = sheet.let(f"dw x c {name}", cross(dw, c), 5)
    w_w_c = sheet.let(f"w x w x c {name}", cross(w, w_c), 5)
    ac = sheet.let(f"ac {name}", a + dw_c + w_w_c, 2)
    momentum = _placed(sheet, body, parent, frame, w, w_r, w_c, turned)
    return {"w": w, "dw": dw, "a": a, "ac": ac, **frame, **momentum}


def _placed(
    sheet: Sheet, body: Body, parent: dict, frame: dict, w: Any, w_r: Any, w_c: Any, turned: Any
) -> dict[str, Any]:
    """Write positions, velocities and momenta of one body."""
    name, c = body.name, ca.SX(body.inertia.center)
    Rw = sheet.let(f"Rw {name}", ca.mtimes(parent["Rw"], frame["R"]), 4)
    p = sheet.let(f"p {name}", parent["p"] + ca.mtimes(parent["Rw"], frame["r"]), 4)
    sheet.let(f"pc {name}", p + ca.mtimes(Rw, c), 4)
    v = turned("R^T v", parent["v"] + w_r)
    v = sheet.let(f"v {name}", v if frame["t qd"] is None else v + frame["t qd"], 4)
    vc = sheet.let(f"vc {name}", v + w_c, 4)
    sheet.let(f"l {name}", body.inertia.mass * vc, 4)
    h = sheet.let(f"h {name}", ca.mtimes(ca.sparsify(ca.SX(body.inertia.rotational)), w), 4)
    return {"Rw": Rw, "p": p, "v": v, "h": h}


def _inward(sheet: Sheet, tree: WeldedTree, moved: list[dict[str, Any]]) -> list[ca.SX]:
    """Write resultants and joint forces from the leaves inwards; return the expressions of tau."""
    n = len(tree.joints)
    forces, moments = [ca.SX(3, 1) for _ in range(n)], [ca.SX(3, 1) for _ in range(n)]
    torque: list[ca.SX] = [ca.SX(0)] * n
    for i in range(n - 1, -1, -1):
        body, parent, m = tree.bodies[i], tree.number(tree.joints[i].parent), moved[i]
        name = body.name
        c, inertia = ca.SX(body.inertia.center), ca.sparsify(ca.SX(body.inertia.rotational))
        F = sheet.let(f"F {name}", body.inertia.mass * m["ac"], 2)
        spin = sheet.let(f"I dw {name}", ca.mtimes(inertia, m["dw"]), 5)
        gyro = sheet.let(f"w x h {name}", ca.mtimes(skew(m["w"]), m["h"]), 5)
        N = sheet.let(f"N {name}", spin + gyro, 2)
        lever = sheet.let(f"c x F {name}", ca.mtimes(skew(c), F), 5)
        f = sheet.let(f"f {name}", F + forces[i], 1)
        moment = sheet.let(f"n {name}", N + lever + moments[i], 1)
        passed = sheet.let(f"R f {name}", ca.mtimes(m["R"], f), 5)
        passed_n = sheet.let(f"R n {name}", ca.mtimes(m["R"], moment), 5)
        arm = sheet.let(f"r x R f {name}", ca.mtimes(skew(m["r"]), passed), 5)
        if parent != BASE:
            forces[parent] += passed
            moments[parent] += passed_n + arm
        torque[i] = ca.mtimes(m["S"][3:, :].T, moment) + ca.mtimes(m["S"][:3, :].T, f)
    return torque

"""Newton's and Euler's equations of every body cut free: maximal coordinates, unknown wrenches in all joints.

Symbols: a_c acceleration of a centre of mass, w, wd angular velocity and acceleration, I inertia about the centre, all
in world axes; W_j wrench of joint j on its child, W_j = B_j x_j + G tau_j with B_j a basis of the wrenches that do no
work on the joint's motions.

    m (a_c - g) = sum of forces        I wd + w x I w = sum of moments        E x = b

Nothing of the tree's recursion and of the constraint rows is used: null(E) is the family of reactions (Wojtyra 2005).
"""

from __future__ import annotations

import numpy as np

from dalembert.model.joints import KINDS, as_array
from dalembert.model.joints.rotations import plane
from dalembert.model.mechanism.transmissions import transmissions


def motions(mechanism, q, v, a):
    """Return R, p, w, wd and the acceleration of the origin of every body, in world axes, joint by joint."""
    ground = (np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))
    bodies = {mechanism.ground: ground}
    for joint in mechanism.joints:
        kind = KINDS[joint.kind]
        qj, vj, aj = (
            q[mechanism.index_q(joint.name)],
            v[mechanism.index_v(joint.name)],
            a[mechanism.index_v(joint.name)],
        )
        Rp, pp, wp, wdp, sp, ap = bodies[joint.parent]
        R, p = (as_array(x) for x in kind.motion(joint, list(qj)))
        S = as_array(kind.subspace(joint, list(qj))).reshape(6, kind.nv)
        rate = S @ vj
        change = S @ aj + as_array(kind.bias(joint, list(qj), list(vj)))
        RF = Rp @ joint.placement.rotation
        RG, r = RF @ R, Rp @ joint.placement.position + RF @ p
        dv, dw = RG @ rate[:3], RG @ rate[3:]
        w, s = wp + dw, sp + np.cross(wp, r) + dv
        wd = wdp + RG @ change[3:] + np.cross(wp, dw)
        acc = ap + np.cross(wdp, r) + np.cross(wp, s - sp) + RG @ change[:3] + np.cross(w, dv)
        Rb = RG @ joint.child_placement.rotation.T
        back = -Rb @ joint.child_placement.position  # from the joint to the body's origin
        speed = s + np.cross(w, back)
        acc = acc + np.cross(wd, back) + np.cross(w, np.cross(w, back))
        bodies[joint.child] = (Rb, pp + r + back, w, wd, speed, acc)
    return [bodies[body.name] for body in mechanism.bodies]


def skew(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def free_wrenches(kind, axis):
    """Return the wrenches (6, k) that a loop of this kind can exert on its frame, in the frame's axes."""
    unit = np.eye(6)
    if kind == "point":
        return unit[:, :3]
    if kind == "weld":
        return unit
    e1, e2 = (np.asarray(e, dtype=float) for e in plane(axis))
    zero = np.zeros(3)
    across = np.array([[*e1, *zero], [*e2, *zero]]).T
    turns = np.array([[*zero, *e1], [*zero, *e2]]).T
    if kind == "revolute":
        return np.column_stack([unit[:, :3], turns])
    if kind == "prismatic":
        return np.column_stack([across, unit[:, 3:]])
    if kind == "cylindrical":
        return np.column_stack([across, turns])
    if kind == "point on line":
        return across
    raise NotImplementedError(kind)


class FreeBodies:
    """All bodies of a mechanism at a state of known acceleration, under joint forces tau."""

    def __init__(self, mechanism, q, v, a, tau=None):
        self.m, self.q = mechanism, q
        tau = np.zeros(mechanism.nv) if tau is None else tau
        moving = motions(mechanism, q, v, a)
        n = len(mechanism.bodies)
        self.R, self.p = [each[0] for each in moving], [each[1] for each in moving]
        self.b = np.concatenate([self._momentum_rate(i, *moving[i]) for i in range(n)])
        self.table = transmissions(mechanism)
        self.parts = [self._joint(at, tau) for at in self.table]
        self.E = np.zeros((6 * n, sum(B.shape[1] for B, _, _ in self.parts)))
        first = 0
        for at, (B, known, turn) in zip(self.table, self.parts, strict=True):
            self._enter(at, turn, B, known, slice(first, first + B.shape[1]))
            first += B.shape[1]
        self.x = np.linalg.lstsq(self.E, self.b, rcond=1e-10)[0]
        _U, s, Vt = np.linalg.svd(self.E)
        self.null = Vt[np.count_nonzero(s > 1e-9 * s[0]) :].T

    def _momentum_rate(self, i, R, p, w, wd, speed, acceleration):
        body = self.m.bodies[i]
        c = R @ body.inertia.center
        a_c = acceleration + np.cross(wd, c) + np.cross(w, np.cross(w, c))
        inertia = R @ body.inertia.rotational @ R.T
        turning = inertia @ wd + np.cross(w, inertia @ w)
        return np.concatenate([body.inertia.mass * (a_c - self.m.gravity), turning])

    def _joint(self, at, tau):
        """Return B and the known part, in the child's axes, and the rotation of these to the world."""
        k = self.m.body_index(at.child)
        turn = (np.eye(3) if k < 0 else self.R[k]) @ at.place.rotation
        if at.group == "spring":  # no unknown: whoever asks adds its force to `b`
            return np.zeros((6, 0)), np.zeros(6), turn
        if at.group != "joint":
            return free_wrenches(at.kind, getattr(self.m.all_constraints[at.number], "axis", None)), np.zeros(6), turn
        joint, kind = self.m.joints[at.number], KINDS[at.kind]
        if kind.nv == 0:
            return np.eye(6), np.zeros(6), turn
        S = as_array(kind.subspace(joint, list(self.q[self.m.index_q(joint.name)]))).reshape(6, kind.nv)
        turns = np.array(kind.angular)
        G = np.zeros_like(S)
        G[3:, turns], G[:3, ~turns] = S[3:, turns], S[:3, ~turns]
        known = G @ np.linalg.solve(S.T @ G, tau[self.m.index_v(joint.name)])
        return np.linalg.svd(S.T)[2][kind.nv :].T, known, turn

    def _enter(self, at, turn, B, known, columns):
        """Add a joint's wrench to the balance of its child, and take it from that of its parent."""
        to_world = np.kron(np.eye(2), turn)
        k = self.m.body_index(at.child)
        point = at.place.position if k < 0 else self.p[k] + self.R[k] @ at.place.position
        for name, sign in ((at.child, 1.0), (at.parent, -1.0)):
            i = self.m.body_index(name)
            if i >= 0:
                lever = skew(point - self.p[i] - self.R[i] @ self.m.bodies[i].inertia.center)
                move = sign * np.block([[np.eye(3), np.zeros((3, 3))], [lever, np.eye(3)]]) @ to_world
                self.E[6 * i : 6 * i + 6, columns] += move @ B
                self.b[6 * i : 6 * i + 6] -= move @ known

    @property
    def imbalance(self):
        """Largest part of the equations that no reactions meet."""
        return np.abs(self.E @ self.x - self.b).max()

    def wrenches(self, x=None):
        """Return all wrenches in the child's axes, (k, 6)."""
        x, first, rows = self.x if x is None else x, 0, []
        for B, known, _ in self.parts:
            rows.append(B @ x[first : first + B.shape[1]] + known)
            first += B.shape[1]
        return np.array(rows)

    def family(self):
        """Return a basis of what may be added, (r, k, 6)."""
        zero = self.wrenches(np.zeros(self.E.shape[1]))
        return np.array([self.wrenches(column) - zero for column in self.null.T]).reshape(-1, len(self.table), 6)

    def unique(self):
        """Return per component whether no member of the family has a part in it, (k, 6)."""
        return np.abs(self.family()).max(axis=0, initial=0.0) < 1e-8

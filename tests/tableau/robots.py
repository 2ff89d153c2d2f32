"""Oracles for trees of bodies: a Pinocchio model, and inverse dynamics written down in plain NumPy."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from dalembert.tableau import Body, Joint, Multibody


def pinocchio_model(tree: Multibody) -> pin.Model:
    model = pin.Model()
    model.gravity.linear[:] = tree.gravity
    for body, joint in zip(tree.bodies, tree.joints, strict=True):
        kinds = {"revolute": pin.JointModelRevoluteUnaligned, "prismatic": pin.JointModelPrismaticUnaligned}
        added = model.addJoint(
            joint.parent + 1, kinds[joint.kind](joint.axis), pin.SE3(joint.rotation, joint.origin), joint.name
        )
        model.appendBodyToJoint(added, pin.Inertia(body.mass, body.centre, body.inertia), pin.SE3.Identity())
    return model


def rnea(tree: Multibody, q, v, a) -> np.ndarray:
    """Inverse dynamics in ground coordinates: forces from accelerations of points, moments about joint origins."""
    n = len(tree.joints)
    R, p, w, dw, origin_a, axis = [], [], [], [], [], []
    for i, joint in enumerate(tree.joints):
        k = joint.parent
        zero = np.zeros(3)
        Rp, pp, wp, dwp, ap = (
            (np.eye(3), zero, zero, zero, -tree.gravity) if k < 0 else (R[k], p[k], w[k], dw[k], origin_a[k])
        )
        s = Rp @ joint.rotation @ joint.axis
        arm = Rp @ joint.origin
        if joint.kind == "revolute":
            R.append(Rp @ joint.rotation @ rodrigues(joint.axis, q[i]))
            w.append(wp + s * v[i])
            dw.append(dwp + s * a[i] + np.cross(wp, s * v[i]))
            own = zero
        else:
            R.append(Rp @ joint.rotation)
            arm = arm + s * q[i]
            w.append(wp)
            dw.append(dwp)
            own = s * a[i] + 2 * np.cross(wp, s * v[i])
        p.append(pp + arm)
        origin_a.append(ap + np.cross(dwp, arm) + np.cross(wp, np.cross(wp, arm)) + own)
        axis.append(s)
    tau = np.zeros(n)
    for i in range(n):
        outer = [j for j in range(n) if i in ancestors(tree, j)]
        force, moment = np.zeros(3), np.zeros(3)
        for j in outer:
            body = tree.bodies[j]
            c = R[j] @ body.centre
            acceleration = origin_a[j] + np.cross(dw[j], c) + np.cross(w[j], np.cross(w[j], c))
            inertia = R[j] @ body.inertia @ R[j].T
            F = body.mass * acceleration
            force += F
            moment += inertia @ dw[j] + np.cross(w[j], inertia @ w[j]) + np.cross(p[j] + c - p[i], F)
        tau[i] = axis[i] @ (moment if tree.joints[i].kind == "revolute" else force)
    return tau


def ancestors(tree: Multibody, j: int) -> list[int]:
    found = []
    while j >= 0:
        found.append(j)
        j = tree.joints[j].parent
    return found


def rodrigues(axis: np.ndarray, angle: float) -> np.ndarray:
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def random_tree(n: int, seed: int) -> Multibody:
    """A tree with random shape, axes, frames and masses."""
    rng = np.random.default_rng(seed)
    bodies, joints = [], []
    for i in range(n):
        B = rng.standard_normal((3, 3))
        bodies.append(
            Body(f"body{i}", rng.uniform(0.5, 2), rng.standard_normal(3) * 0.2, B @ B.T * 0.05 + 0.1 * np.eye(3))
        )
        axis = rng.standard_normal(3)
        rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        rotation *= np.sign(np.linalg.det(rotation))
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        parent = int(rng.integers(-1, i)) if i else -1
        joints.append(
            Joint(f"joint{i}", kind, parent, i, axis / np.linalg.norm(axis), rotation, rng.standard_normal(3))
        )
    return Multibody(bodies, joints)

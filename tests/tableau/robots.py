"""Oracles for trees of bodies: a Pinocchio model, and inverse dynamics written down in plain NumPy."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

import dalembert as da
from dalembert.model import Placement


def link_inertias(tree: da.Mechanism) -> list:
    """Inertia of every body in the frame of its joint after the motion, for a tree without fixed joints."""
    return [
        body.inertia.moved(joint.child_placement.inverse())
        for body, joint in zip(tree.bodies, tree.joints, strict=True)
    ]


def joint_frames(tree: da.Mechanism) -> list[Placement]:
    """Frame of every joint in the frame of the joint before it, after its motion; of the first ones on the ground."""
    frames = []
    for joint, parent in zip(tree.joints, tree.parents, strict=True):
        carrier = Placement() if parent < 0 else tree.joints[parent].child_placement.inverse()
        frames.append(carrier @ joint.placement)
    return frames


def pinocchio_model(tree: da.Mechanism) -> pin.Model:
    model = pin.Model()
    model.gravity.linear[:] = tree.gravity
    parts = zip(tree.joints, tree.parents, joint_frames(tree), link_inertias(tree), strict=True)
    for joint, parent, frame, inertia in parts:
        kinds = {"revolute": pin.JointModelRevoluteUnaligned, "prismatic": pin.JointModelPrismaticUnaligned}
        moved = kinds[joint.kind](np.array(joint.axis))
        added = model.addJoint(parent + 1, moved, pin.SE3(frame.rotation, frame.position), joint.name)
        own = pin.Inertia(inertia.mass, inertia.center, inertia.rotational)
        model.appendBodyToJoint(added, own, pin.SE3.Identity())
    return model


def rnea(tree: da.Mechanism, q, v, a) -> np.ndarray:
    """Inverse dynamics in ground coordinates: forces from accelerations of points, moments about joint origins."""
    n, inertias, gravity = len(tree.joints), link_inertias(tree), np.array(tree.gravity)
    R, p, w, dw, origin_a, axis = [], [], [], [], [], []
    for i, (joint, k, frame) in enumerate(zip(tree.joints, tree.parents, joint_frames(tree), strict=True)):
        zero, own_axis = np.zeros(3), np.array(joint.axis)
        Rp, pp, wp, dwp, ap = (
            (np.eye(3), zero, zero, zero, -gravity) if k < 0 else (R[k], p[k], w[k], dw[k], origin_a[k])
        )
        s = Rp @ frame.rotation @ own_axis
        arm = Rp @ frame.position
        if joint.kind == "revolute":
            R.append(Rp @ frame.rotation @ rodrigues(own_axis, q[i]))
            w.append(wp + s * v[i])
            dw.append(dwp + s * a[i] + np.cross(wp, s * v[i]))
            own = zero
        else:
            R.append(Rp @ frame.rotation)
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
            c = R[j] @ inertias[j].center
            acceleration = origin_a[j] + np.cross(dw[j], c) + np.cross(w[j], np.cross(w[j], c))
            inertia = R[j] @ inertias[j].rotational @ R[j].T
            F = inertias[j].mass * acceleration
            force += F
            moment += inertia @ dw[j] + np.cross(w[j], inertia @ w[j]) + np.cross(p[j] + c - p[i], F)
        tau[i] = axis[i] @ (moment if tree.joints[i].kind == "revolute" else force)
    return tau


def ancestors(tree: da.Mechanism, j: int) -> list[int]:
    chain = []
    while j >= 0:
        chain.append(j)
        j = tree.parents[j]
    return chain


def rodrigues(axis: np.ndarray, angle: float) -> np.ndarray:
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def random_tree(n: int, seed: int) -> da.Mechanism:
    """A tree of hinges and sliders with random shape, axes, frames and masses."""
    rng = np.random.default_rng(seed)
    b = da.Builder("tree")
    for i in range(n):
        B = rng.standard_normal((3, 3))
        mass, center = rng.uniform(0.5, 2), rng.standard_normal(3) * 0.2
        b.body(f"body{i}", mass=mass, center=center, inertia=B @ B.T * 0.05 + 0.1 * np.eye(3))
        axis = rng.standard_normal(3)
        rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        rotation *= np.sign(np.linalg.det(rotation))
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        parent = int(rng.integers(-1, i)) if i else -1
        carrier = "world" if parent < 0 else f"body{parent}"
        b.joint(f"joint{i}", kind, parent=carrier, child=f"body{i}", axis=axis,
                placement=Placement(rotation, rng.standard_normal(3)))  # fmt: skip
    return b.build(allow_unphysical=True)

"""Constrained forward dynamics against Pinocchio's `constraintDynamics`: contacts and loops on robots from files.

Pinocchio's contact forces are reactions, the negative of multipliers. Its 6-D contacts hold the spatial acceleration
still, which is that of the frame where the velocity is admissible; 3-D contacts agree at any velocity.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.model import Placement
from dalembert.tree.block import constrained
from dalembert.tree.block.conditioning import needs_of
from dalembert.tree.routes.route_table import ROUTES
from tests.tree.contacts import G1, GO2, ICUB, OTHERS, PANDA, TALOS, Robot

CLOSE = 1e-9
STATES = 3
KIND = {3: pin.ContactType.CONTACT_3D, 6: pin.ContactType.CONTACT_6D}


class Oracle:
    """Pinocchio's model with rigid constraints."""

    def __init__(self, model, rows, ends):
        """Take frames as pairs (joint, placement), one or two for each constraint."""
        self.model, self.data, self.rows = model, model.createData(), rows
        self.contacts = [
            pin.RigidConstraintModel(KIND[rows], model, *[x for end in each for x in end], pin.LOCAL_WORLD_ALIGNED)
            for each in ends
        ]
        self.found = [contact.createData() for contact in self.contacts]
        pin.initConstraintDynamics(model, self.data, self.contacts, self.found)

    def __call__(self, q, v, tau):
        """Return accelerations and the forces on the first frame of each constraint."""
        settings = pin.ProximalSettings(1e-14, 1e-12, 20)
        a = pin.constraintDynamics(self.model, self.data, q, v, tau, self.contacts, self.found, settings)
        return a.copy(), np.concatenate([each.contact_force.vector[: self.rows] for each in self.found])


def end(model, frame):
    """Return the joint that a frame is on, and where."""
    found = model.frames[model.getFrameId(frame)]
    return found.parentJoint, found.placement


def admissible(A, v):
    """Return v without what moves the rows."""
    return v - np.linalg.pinv(A) @ (A @ v)


def assert_same(solve, oracle, q, v, tau, axes=None):
    """Compare; `axes` are those of the first constraint's moments, the world's by default."""
    a, lam, status = (np.array(x).ravel() for x in solve(q, v, tau, 0.0))
    a_pin, forces = oracle(q, v, tau)
    if axes is not None:
        lam[3:6] = axes @ lam[3:6]
    np.testing.assert_allclose(a, a_pin, rtol=0, atol=CLOSE * np.abs(a_pin).max())
    np.testing.assert_allclose(-lam, forces, rtol=0, atol=CLOSE * np.abs(forces).max())
    assert status == da.Status.UNIQUE


def states(robot: Robot, mechanism, model, count=STATES):
    """Return random states; admissible ones where contacts have six rows."""
    rng, data = np.random.default_rng(5), model.createData()
    for q in mechanism.random(rng, count):
        v, tau = rng.standard_normal(mechanism.nv), 10 * rng.standard_normal(mechanism.nv)
        if robot.rows == 6:
            frames = [model.getFrameId(frame) for frame in robot.frames]
            v = admissible(np.vstack([pin.computeFrameJacobian(model, data, q, frame) for frame in frames]), v)
        yield q, v, tau


PRESENT = [robot for robot in (GO2, TALOS, G1, PANDA, ICUB, *OTHERS) if Path(robot.path).exists()]
ROUTED = [(robot, list(ROUTES)[i % len(ROUTES)]) for i, robot in enumerate(PRESENT)]


@pytest.mark.parametrize(("robot", "route"), ROUTED, ids=[f"{x.file.split('/')[-1]}-{y}" for x, y in ROUTED])
def test_contacts(robot, route):
    mechanism, model = robot.in_contact(), robot.pinocchio()
    assert mechanism.nq == model.nq
    oracle = Oracle(model, robot.rows, [[end(model, frame)] for frame in robot.frames])
    light = needs_of(mechanism).massless  # links so light that the articulated-body algorithm would lose digits
    solve = constrained.forward(mechanism, "matrix" if light else route)
    for state in states(robot, mechanism, model):
        assert_same(solve, oracle, *state)


LOOPS = [
    (replace(GO2, frames=("FL_foot", "RR_foot"), rows=3), "efpa"),
    (replace(TALOS, frames=("gripper_left_base_link", "gripper_right_base_link")), "efpa"),
    (replace(ICUB, frames=("l_gripper", "r_gripper")), "matrix"),
    (replace(PANDA, frames=("panda_hand_tcp", "panda_link2"), rows=3), "matrix"),
]
"""Two frames each, joined where they are at a random configuration: by a ball (3 rows) or a weld (6)."""


@pytest.mark.parametrize(("robot", "route"), LOOPS, ids=[x.file.split("/")[-1] for x, _ in LOOPS])
def test_loops(robot, route):
    model, tree = robot.pinocchio(), robot.tree()
    rng, data = np.random.default_rng(1), model.createData()
    q = tree.random(rng)
    ids = [model.getFrameId(frame) for frame in robot.frames]
    pin.framesForwardKinematics(model, data, q)
    between = data.oMf[ids[1]].actInv(data.oMf[ids[0]])
    kind = da.Point if robot.rows == 3 else da.Weld
    mechanism = tree.constrain(kind(*robot.frames, at=Placement(between.rotation, between.translation)))
    joint, place = end(model, robot.frames[1])
    oracle = Oracle(model, robot.rows, [[end(model, robot.frames[0]), (joint, place * between)]])
    A = mechanism.jacobian(q)
    solve = constrained.forward(mechanism, route)
    R = data.oMf[ids[0]].rotation  # rows are in the axes of the second frame, which stands where the first is
    axes = R if robot.rows == 6 else None

    def in_world(*state):
        a, lam, status = (np.array(x).ravel() for x in solve(*state))
        return a, np.concatenate([R @ lam[:3], lam[3:]]), status

    for _ in range(STATES):
        v, tau = admissible(A, rng.standard_normal(tree.nv)), 10 * rng.standard_normal(tree.nv)
        assert_same(in_world, oracle, q, v, tau, axes)


def test_compiled_batch():
    """What runs in practice: one call for all samples, in machine code."""
    mechanism, model = GO2.in_contact(), GO2.pinocchio()
    oracle = Oracle(model, 3, [[end(model, frame)] for frame in GO2.frames])
    q, v, tau = (np.array(x) for x in zip(*states(GO2, mechanism, model, 21), strict=True))
    a, lam, status = mechanism.forward(q, v, tau)
    assert (status == da.Status.UNIQUE).all()
    for i in range(21):
        a_pin, forces = oracle(q[i], v[i], tau[i])
        np.testing.assert_allclose(a[i], a_pin, rtol=0, atol=CLOSE * np.abs(a_pin).max())
        np.testing.assert_allclose(-lam[i], forces, rtol=0, atol=CLOSE * np.abs(forces).max())

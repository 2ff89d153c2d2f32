"""Every URDF of example-robot-data against Pinocchio, fixed and floating: the algorithms that are compiled, on arrays.

Kernels of a selection of robots are compared in `test_requests.py`.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dalembert.errors import ModelError
from dalembert.tree.algorithms import momentum
from dalembert.tree.algorithms.dynamics import aba
from dalembert.tree.algorithms.inverse import crba, rnea
from dalembert.tree.algorithms.kinematics import drift, frame_motion, frame_pose, jacobian, poses, velocity
from dalembert.tree.prepared.prepare import prepare
from tests.tree.robots import REFERENCES, UNREADABLE, URDFS, error, on_arrays, robot, states

TOLERANCE = 1e-10
"""Relative; what the comparison promises. Most errors are below 1e-14."""

MASSLESS = 1e-13
"""Pivots of M below this fraction of its diagonal: a link that weighs nothing has no acceleration of its own."""

CASES = [(file, base) for file in URDFS if file not in UNREADABLE for base in ("fixed", "floating")]


@pytest.fixture(params=CASES, ids=[f"{file.rsplit('/', 1)[-1]}-{base}" for file, base in CASES], scope="module")
def case(request):
    mechanism, model, data = robot(*request.param)
    return mechanism, prepare(mechanism), model, data, states(model)


def test_inverse_dynamics_and_mass_matrix(case):
    _, tree, model, data, (q, v, a) = case
    tau = np.array([pin.rnea(model, data, *each).copy() for each in zip(q, v, a, strict=True)])
    M = np.array([pin.crba(model, data, each).copy() for each in q])
    assert error(on_arrays(tree, rnea, q, v, a), tau) < TOLERANCE
    assert error(on_arrays(tree, crba, q).reshape(M.shape), M) < TOLERANCE


def test_forward_dynamics(case):
    """M a + bias = tau to 1e-10, and Pinocchio's own a as far as the condition of M lets two codes agree."""
    _, tree, model, data, (q, v, tau) = case
    M = np.array([pin.crba(model, data, each).copy() for each in q])
    bias = np.array([pin.nonLinearEffects(model, data, *each).copy() for each in zip(q, v, strict=True)])
    if model.nv == 0:
        return
    condition = max(np.linalg.cond(each) for each in M)
    if condition > 1 / MASSLESS:
        with pytest.raises(ModelError, match="nothing resists"):
            on_arrays(tree, aba, q, v, tau)
        return
    a = on_arrays(tree, aba, q, v, tau)
    expected = np.array([pin.aba(model, data, *each).copy() for each in zip(q, v, tau, strict=True)])
    assert error(a, expected) < max(TOLERANCE, 10 * np.finfo(float).eps * condition)
    residual = np.einsum("nij,nj->ni", M, a) + bias - tau
    size = np.abs(M).max(axis=(1, 2)) * np.abs(a).max(axis=1) + np.abs(tau).max(axis=1)
    assert (np.abs(residual).max(axis=1) / size).max() < TOLERANCE


def test_poses_jacobians_and_drift(case):
    mechanism, tree, model, data, (q, v, _) = case
    if model.nv == 0:
        return
    names = [body.name for body in mechanism.bodies]
    ids = {name: model.getFrameId(name, pin.BODY) for name in names}
    some = list(dict.fromkeys((names[0], names[len(names) // 2], names[-1])))
    expected: dict = {"pose": []}
    for each in zip(q, v, strict=True):
        pin.computeJointJacobiansTimeVariation(model, data, *each)
        pin.forwardKinematics(model, data, *each)
        pin.updateFramePlacements(model, data)
        expected["pose"].append([data.oMf[ids[name]].homogeneous[:3] for name in names])
        for reference, axes in REFERENCES.items():
            for name in some:
                J = pin.getFrameJacobian(model, data, ids[name], axes)
                rate = pin.getFrameJacobianTimeVariation(model, data, ids[name], axes) @ each[1]
                expected.setdefault((name, reference), []).append((J, J @ each[1], rate))

    def all_poses(tree, posed):
        links = poses(posed)
        found = [frame_pose(tree, links, name) for name in names]
        return [[[*row, p] for row, p in zip(zip(*pose.R, strict=True), pose.p, strict=True)] for pose in found]

    def both(motion, reference):
        return [velocity(motion, reference), drift(motion, reference)]

    assert error(on_arrays(tree, all_poses, q), np.array(expected["pose"])) < TOLERANCE
    for name in some:
        for reference in REFERENCES:
            J, V, rate = (np.array(part) for part in zip(*expected[name, reference], strict=True))
            assert error(on_arrays(tree, lambda *x, at=(name, reference): jacobian(*x, *at), q), J) < TOLERANCE
            found = on_arrays(tree, lambda *x, at=(name, reference): both(frame_motion(*x, at[0]), at[1]), q, v)
            for k, value in enumerate((V, rate)):
                assert np.abs(found[:, k] - value).max() < TOLERANCE * max(1.0, np.abs(value).max())


def test_energy_momentum_and_center_of_mass(case):
    _, tree, model, data, (q, v, a) = case
    if model.nv == 0:
        return
    center, h, rate, energies, gravity, speed = [], [], [], [], [], []
    for each in zip(q, v, a, strict=True):
        center.append(pin.centerOfMass(model, data, each[0]).copy())
        pin.centerOfMass(model, data, each[0], each[1])
        speed.append(data.vcom[0].copy())
        h.append(pin.computeCentroidalMomentum(model, data, each[0], each[1]).vector)
        rate.append(pin.computeCentroidalMomentumTimeVariation(model, data, *each).vector)
        energies.append(
            [pin.computeKineticEnergy(model, data, each[0], each[1]), pin.computePotentialEnergy(model, data, each[0])]
        )
        gravity.append(pin.computeGeneralizedGravity(model, data, each[0]).copy())
    still = [0.0] * tree.nv
    assert error(on_arrays(tree, lambda *x: list(momentum.center_of_mass(*x)), q), np.array(center)) < TOLERANCE
    assert error(on_arrays(tree, lambda *x: list(momentum.center_velocity(*x)), q, v), np.array(speed)) < TOLERANCE
    assert error(on_arrays(tree, momentum.centroidal_momentum, q, v), np.array(h)) < TOLERANCE
    assert error(on_arrays(tree, momentum.centroidal_rate, q, v, a), np.array(rate)) < TOLERANCE
    assert error(on_arrays(tree, rnea, q, still, still), np.array(gravity)) < TOLERANCE
    found = on_arrays(tree, lambda *x: list(momentum.energy(*x)), q, v)
    for k in range(2):
        assert error(found[:, k : k + 1], np.array(energies)[:, k : k + 1]) < TOLERANCE

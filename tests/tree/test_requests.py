"""Compiled kernels of real robots against Pinocchio; options, backends, batches, and what is refused."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import dalembert as da
from dalembert.errors import ModelError, UnsupportedError
from dalembert.tree.requests import REQUESTS
from tests.tree.mechanisms import MOVING, random_state, random_tree
from tests.tree.robots import REFERENCES, URDFS, error, robot, states

SELECTED = [
    (name, base)
    for name, base in (
        ("panda.urdf", "fixed"),
        ("go2.urdf", "floating"),
        ("talos_reduced.urdf", "floating"),
        ("kinova.urdf", "fixed"),
        ("ur5_robot.urdf", "fixed"),
        ("solo12.urdf", "floating"),
        ("double_pendulum_continuous.urdf", "fixed"),
        ("z1.urdf", "fixed"),
        ("xarm7.urdf", "fixed"),
        ("cassie_v2.urdf", "floating"),
    )
    if any(file.endswith("/" + name) for file in URDFS)
]
TOLERANCE = 1e-10


def chosen(name: str, base: str):
    return robot(next(file for file in URDFS if file.endswith("/" + name)), base)


def pinocchio_says(what: str, model, data, q, v, a, frame: int, reference) -> np.ndarray | tuple:
    """Return what Pinocchio computes for a request, one sample."""
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    pin.updateFramePlacements(model, data)
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    answers = {
        "forward": lambda: pin.aba(model, data, q, v, a).copy(),
        "aba": lambda: pin.aba(model, data, q, v, a).copy(),
        "inverse": lambda: pin.rnea(model, data, q, v, a).copy(),
        "mass_matrix": lambda: pin.crba(model, data, q).copy(),
        "coriolis_matrix": lambda: pin.computeCoriolisMatrix(model, data, q, v).copy(),
        "bias": lambda: pin.nonLinearEffects(model, data, q, v).copy(),
        "gravity": lambda: pin.computeGeneralizedGravity(model, data, q).copy(),
        "kinematics": lambda: (data.oMf[frame].rotation.copy(), data.oMf[frame].translation.copy()),
        "velocity": lambda: pin.getFrameVelocity(model, data, frame, reference).vector,
        "jacobian": lambda: pin.getFrameJacobian(model, data, frame, reference),
        "jacobian_drift": lambda: pin.getFrameJacobianTimeVariation(model, data, frame, reference) @ v,
        "energy": lambda: (
            np.array([pin.computeKineticEnergy(model, data, q, v)]),
            np.array([pin.computePotentialEnergy(model, data, q)]),
        ),
        "center_of_mass": lambda: pin.centerOfMass(model, data, q).copy(),
        "center_of_mass_velocity": lambda: pin.centerOfMass(model, data, q, v) * 0 + data.vcom[0],
        "momentum": lambda: pin.computeCentroidalMomentum(model, data, q, v).vector,
        "momentum_rate": lambda: pin.computeCentroidalMomentumTimeVariation(model, data, q, v, a).vector,
    }
    return answers[what]()


@pytest.mark.parametrize("name", [request.name for request in REQUESTS])
@pytest.mark.parametrize(("file", "base"), SELECTED[:3])
def test_kernels_against_pinocchio(file, base, name):
    mechanism, model, data = chosen(file, base)
    mechanism = mechanism.open_tree()
    request = next(request for request in REQUESTS if request.name == name)
    q, v, a = states(model, 5)
    body = mechanism.bodies[-1].name
    frame = model.getFrameId(body, pin.BODY)
    references = REFERENCES if "reference" in request.options else {None: pin.LOCAL}
    for reference, axes in references.items():
        options = {"reference": reference} if reference else {}
        options |= {"frame": body} if "frame" in request.options else {}
        kernel = mechanism.compile(name, **options)
        given = {"q": q, "v": v, "a": a, "tau": a}
        found = kernel(*(given[port.name] for port in kernel.inputs if port.name != "t"))
        if name == "forward":
            found, lam, status = found
            assert lam.shape == (5, 0)
            assert (status == da.Status.UNIQUE).all()
        expected = [pinocchio_says(name, model, data, *each, frame, axes) for each in zip(q, v, a, strict=True)]
        if not isinstance(found, tuple):
            found, expected = (found,), [(each,) for each in expected]
        for one, two in zip(found, zip(*expected, strict=True), strict=True):
            assert error(one, np.array(two)) < TOLERANCE or np.abs(one - np.array(two)).max() < 1e-12


@pytest.mark.parametrize(("file", "base"), SELECTED[3:])
def test_dynamics_kernels_against_pinocchio(file, base):
    mechanism, model, data = chosen(file, base)
    q, v, a = states(model, 5)
    for name, given in (("inverse", (q, v, a)), ("mass_matrix", (q,)), ("aba", (q, v, a))):
        expected = [pinocchio_says(name, model, data, *each, 0, pin.LOCAL) for each in zip(q, v, a, strict=True)]
        assert error(mechanism.compile(name)(*given), np.array(expected)) < TOLERANCE


@pytest.mark.parametrize("kind", MOVING)
def test_forward_undoes_inverse(kind):
    """Every kind of joint through CasADi and machine code: M a + bias = tau three ways."""
    mechanism = random_tree(
        ["free", "revolute"] if kind == "free" else ["revolute", kind], seed=3, armature=True, chain=True
    )
    q, v, a = random_state(mechanism, 0, 4)
    tau = mechanism.inverse(q, v, a).tau
    assert error(mechanism.forward(q, v, tau).acceleration, a) < 1e-11
    M, bias = mechanism.mass_matrix(q), mechanism.bias(q, v)
    assert error(np.einsum("nij,nj->ni", M, a) + bias, tau) < 1e-12
    kinetic, _ = mechanism.energy(q, v)
    assert error(0.5 * np.einsum("ni,nij,nj->n", v, M, v)[:, None], kinetic[:, None]) < 1e-12


def test_all_bodies_at_once():
    mechanism, model, _ = chosen("panda.urdf", "fixed")
    q, _, _ = states(model, 3)
    rotation, position = mechanism.kinematics(q)
    for k, body in enumerate(mechanism.bodies):
        one = mechanism.kinematics(q, body.name)
        np.testing.assert_allclose(rotation[:, k], one[0], atol=1e-14)
        np.testing.assert_allclose(position[:, k], one[1], atol=1e-14)


@pytest.mark.parametrize(("backend", "dtype", "tolerance"), [("numpy", "float64", 1e-12), ("cpu", "float32", 1e-3)])
def test_backends_and_types(backend, dtype, tolerance):
    mechanism, model, _ = chosen("panda.urdf", "fixed")
    q, v, a = states(model, 4)
    reference = mechanism.inverse(q, v, a).tau
    found = mechanism.compile("inverse", backend=backend, dtype=dtype)(*(x.astype(dtype) for x in (q, v, a)))
    assert error(found, reference) < tolerance


def test_samples_that_are_not_finite_are_flagged():
    mechanism, model, _ = chosen("panda.urdf", "fixed")
    q, v, a = states(model, 4)
    v[2, 1] = np.nan
    result = mechanism.compile("aba").call(q, v, a)
    good, bad = da.Status.FINITE, da.Status.NONFINITE
    assert result.status.tolist() == [good, good, bad, good]


def test_a_frame_must_be_named():
    mechanism = random_tree(["revolute"], seed=0)
    for name in ("jacobian", "velocity", "jacobian_drift"):
        with pytest.raises(UnsupportedError, match="is of one frame"):
            mechanism.compile(name)
    with pytest.raises(ModelError, match="f0"):
        mechanism.compile("jacobian", frame="f00")
    with pytest.raises(ModelError, match="local"):
        mechanism.compile("jacobian", frame="f0", reference="body")


def test_couplings_are_not_left_out_silently():
    builder = da.Builder("gear")
    for i in range(2):
        builder.body(f"b{i}", mass=1.0, center=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
        builder.joint(f"j{i}", "revolute", parent="world" if i == 0 else "b0", child=f"b{i}", axis=(0, 0, 1))
    builder.couple("gear", {"j0": 1, "j1": -2})
    mechanism = builder.build()
    a, lam, status = mechanism.forward(np.zeros(2), np.zeros(2), np.ones(2))
    assert a[0] == pytest.approx(2 * a[1])
    assert lam.shape == (1,)
    assert status == da.Status.UNIQUE
    assert mechanism.compile("aba")(np.zeros(2), np.zeros(2), np.ones(2)).shape == (2,)


def test_a_mechanism_that_cannot_move():
    mechanism = random_tree(["fixed", "fixed"], seed=0)
    q = np.zeros(0)
    assert mechanism.inverse(q, q, q).tau.shape == (0,)
    assert mechanism.kinematics(q, "f1")[1].shape == (3,)


def test_second_start_neither_traces_nor_compiles(monkeypatch, tmp_path):
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path))
    first = random_tree(["revolute", "prismatic"], seed=1)
    q, v, a = random_state(first, 0, 2)
    expected = first.compile("inverse")(q, v, a)
    monkeypatch.setattr("dalembert.tree.traces.traced", None)
    again = random_tree(["revolute", "prismatic"], seed=1)
    kernel = again.compile("inverse")
    assert kernel.report().from_cache
    np.testing.assert_array_equal(kernel(q, v, a), expected)


@pytest.mark.parametrize("far", [1e6, 1e12])
def test_hinges_that_have_turned_far(far):
    """Unlimited hinges in any position: constant angles of the chosen frames cost no digits of large coordinates."""
    rng = np.random.default_rng(0)
    builder = da.Builder("chain")
    model = pin.Model()
    for i in range(4):
        turn, place = pin.SE3.Random(), rng.standard_normal(3)
        turn.translation[:] = place
        inertia = pin.Inertia(1.0, rng.standard_normal(3), np.diag([1.0, 1.2, 0.7]))
        model.appendBodyToJoint(model.addJoint(i, pin.JointModelRZ(), turn, f"j{i}"), inertia, pin.SE3.Identity())
        parent = f"b{i - 1}" if i else "world"
        builder.body(f"b{i}", mass=1.0, center=inertia.lever, inertia=inertia.inertia)
        builder.joint(f"j{i}", "revolute", parent, f"b{i}", (0, 0, 1), position=place, rotation=turn.rotation)
    q, v, a = far * rng.standard_normal(4), rng.standard_normal(4), rng.standard_normal(4)
    expected = pin.rnea(model, model.createData(), q, v, a)
    np.testing.assert_allclose(builder.build().inverse(q, v, a).tau, expected, rtol=1e-11)

"""The Coriolis matrix (Johnson, eq. 19): M' - 2 C skew-symmetric, bias = C v + N, Christoffel's symbols."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from tests.model.lagrangians import double_pendulum
from tests.tree.mechanisms import MOVING, random_state, random_tree


def quadratic_part(mechanism, q, v):
    """Return what of the bias is quadratic in v, from three of its values: gravity and dampers drop out."""
    return (mechanism.bias(q, v) + mechanism.bias(q, -v)) / 2 - mechanism.bias(q, 0 * v)


def mass_rate(mechanism, q, v, step=1e-3):
    """Return M' along the motion by a central difference of sixth order."""
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    moved = {k: mechanism.mass_matrix(mechanism.integrate(q, k * step * v)) for k in range(-3, 4)}
    return sum(w * (moved[k] - moved[-k]) for k, w in weights.items()) / step


@pytest.mark.parametrize("kind", MOVING)
def test_J17_coriolis_matrix_of_every_joint(kind):
    """M' - 2 C is skew-symmetric and C v all of the bias that is quadratic in v, springs and dampers beside it."""
    kinds = ["free", "revolute"] if kind == "free" else ["revolute", kind, "helical"]
    mechanism = random_tree(kinds, seed=5, armature=True, passive=True, chain=True)
    q, v, _ = random_state(mechanism, 1, 4)
    C = mechanism.coriolis_matrix(q, v)
    assert C.shape == (4, mechanism.nv, mechanism.nv)
    skew = mass_rate(mechanism, q, v) - 2 * C
    size = np.abs(C).max()
    assert np.abs(skew + np.swapaxes(skew, 1, 2)).max() < 1e-9 * size
    assert np.abs(skew).max() > 1e-2 * size  # it is no matter of zeros
    Cv = np.einsum("nij,nj->ni", C, v)
    assert np.abs(Cv - quadratic_part(mechanism, q, v)).max() < 1e-12 * np.abs(Cv).max()
    np.testing.assert_array_equal(C[2], mechanism.coriolis_matrix(q[2], v[2]))


def test_J17_christoffel_symbols():
    """Where velocities are rates of coordinates C_ij = 1/2 (M_ij,k + M_ik,j - M_jk,i) v_k; each derivative, too."""
    mechanism = random_tree(["revolute", "helical", "universal", "prismatic", "revolute"], seed=2, armature=True)
    (q,), (v,), _ = random_state(mechanism, 3, 1)
    n = mechanism.nv
    slopes = mechanism.compile("mass_matrix").jacobian()(q).reshape(n, n, n)
    symbols = (slopes + np.swapaxes(slopes, 1, 2) - np.moveaxis(slopes, 2, 0)) / 2
    C = mechanism.coriolis_matrix(q, v)
    np.testing.assert_allclose(C, symbols @ v, atol=1e-13)
    by_v = mechanism.compile("coriolis_matrix").jacobian(["v"])(q, v).reshape(n, n, n)
    np.testing.assert_allclose(by_v, symbols, atol=1e-13)
    by_q = mechanism.compile("coriolis_matrix").jacobian(["q"])(q, v).reshape(n, n, n)
    step = 1e-5 * np.eye(n)
    differences = [mechanism.coriolis_matrix(q + d, v) - mechanism.coriolis_matrix(q - d, v) for d in step]
    np.testing.assert_allclose(by_q, np.moveaxis(differences, 0, 2) / 2e-5, atol=1e-8)


def test_J17_equation_19_of_a_loop_with_a_massless_link():
    """M a + C v + N + A^T lam = tau with redundant rows and a rod that weighs nothing."""
    b = da.Builder("four bar")
    for name, length, mass in (("crank", 0.4, 1.0), ("rod", 1.0, 0.0), ("rocker", 0.8, 2.0)):
        b.body(name, mass=mass, center=(length / 2, 0, 0), inertia=(0.0, 0.1 * mass, 0.1 * mass))
    axis = (0, 1, 0)
    b.joint("A", "revolute", parent="world", child="crank", axis=axis, damping=0.3)
    b.joint("B", "revolute", parent="crank", child="rod", axis=axis, position=(0.4, 0, 0))
    b.joint("D", "revolute", parent="world", child="rocker", axis=axis, position=(1.0, 0, 0))
    b.frame("end", "rod", position=(1.0, 0, 0))
    b.frame("top", "rocker", position=(0.8, 0, 0))
    m = b.build().constrain(da.Revolute("end", "top", axis=axis))
    q, v = m.project(m.neutral() + np.array([-1.2, 0.7, -1.6]), [1.0, 0.5, 0.2])
    answer = m.forward(q, v, force=[0.3, 0.0, -0.2])
    N = m.bias(q, 0 * v) + np.array([0.3 * v[0], 0.0, 0.0])
    left = m.mass_matrix(q) @ answer.acceleration + m.coriolis_matrix(q, v) @ v + N
    assert answer.status == da.Status.REDUNDANT
    np.testing.assert_allclose(left + m.jacobian(q).T @ answer.multipliers, [0.3, 0.0, -0.2], atol=1e-12)


def test_J17_lagrangian_systems():
    """The double pendulum's textbook matrix in absolute angles, single and in batches; what is linear in v is in N."""
    system = double_pendulum()
    numbers = {"m1": 1.0, "m2": 2.0, "l1": 0.5, "l2": 0.7}
    q, v = np.random.default_rng(0).standard_normal((2, 6, 2))
    found = system.coriolis_matrix(q, v, parameters=numbers)
    expected = np.zeros((6, 2, 2))
    expected[:, 0, 1] = 2.0 * 0.5 * 0.7 * np.sin(q[:, 0] - q[:, 1]) * v[:, 1]
    expected[:, 1, 0] = -2.0 * 0.5 * 0.7 * np.sin(q[:, 0] - q[:, 1]) * v[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_array_equal(system.coriolis_matrix(q[0], v[0], parameters=numbers), found[0])
    r, speed, t = ca.SX.sym("r"), ca.SX.sym("w"), ca.SX.sym("t")
    grows = da.Lagrangian(r, speed, kinetic=(1 + t) * (1 + r**2) * speed**2 / 2 + r * speed, time=t)
    C, bias = grows.coriolis_matrix([0.5], [2.0], t=1.0), grows.bias([0.5], [2.0], t=1.0)
    np.testing.assert_allclose(C, [[2 * 0.5 * 2.0]], atol=1e-15)  # (1 + t) r v; M' at t held is twice that
    np.testing.assert_allclose(bias, C @ [2.0] + 1.25 * 2.0, atol=1e-14)  # N = dM/dt v

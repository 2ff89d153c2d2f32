"""Springs and dampers: forces are gradients of the energy, dampers take power, and both act only where asked to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalembert as da
from dalembert.errors import UnsupportedError
from dalembert.tree.algorithms import dynamics, momentum
from dalembert.tree.algorithms.passive import elastic_energy
from dalembert.tree.prepared.prepare import prepare
from tests import reference as plain
from tests.tree.mechanisms import MOVING, random_state, random_tree
from tests.tree.robots import error, on_arrays

trees = st.builds(
    random_tree, st.lists(st.sampled_from(MOVING), min_size=1, max_size=3), st.integers(0, 10**6), passive=st.just(True)
)


def potential(mechanism, tree, q):
    def value(tree, posed, q):
        return [momentum.energy(tree, posed, [0.0] * tree.nv)[1] + elastic_energy(tree, posed, q)]

    return on_arrays(tree, value, q, q)[:, 0]


@given(mechanism=trees, seed=st.integers(0, 10**6))
def test_forces_at_rest_are_the_gradient_of_the_energy(mechanism, seed):
    """bias(q, 0) = dV/dq along every velocity, by central differences on the manifold."""
    q, v, _ = random_state(mechanism, seed, 1)
    q = mechanism.integrate(mechanism.neutral(), 0.3 * v)  # a rotation by pi has two logarithms
    tree = prepare(mechanism)
    step = 1e-5
    bias = on_arrays(tree, lambda t, p, q, v: dynamics.bias(t, p, q, v), q, q, 0 * v)[0]
    shifts = step * np.vstack([np.eye(mechanism.nv), -np.eye(mechanism.nv)])
    energies = potential(mechanism, tree, mechanism.integrate(np.repeat(q, len(shifts), axis=0), shifts))
    gradient = (energies[: mechanism.nv] - energies[mechanism.nv :]) / (2 * step)
    assert np.abs(bias - gradient).max() < 1e-6 * max(1.0, np.abs(gradient).max())


@given(mechanism=trees, seed=st.integers(0, 10**6))
def test_dampers_take_power(mechanism, seed):
    """v . (bias(q, v) - bias without dampers) >= 0, and the tree's own Coriolis forces are left as they were."""
    q, v, _ = random_state(mechanism, seed, 3)
    without = mechanism.with_passive(False)
    loss = on_arrays(prepare(mechanism), dynamics.bias, q, q, v) - on_arrays(prepare(without), dynamics.bias, q, q, v)
    still = on_arrays(prepare(mechanism), dynamics.bias, q, q, 0 * v) - on_arrays(
        prepare(without), dynamics.bias, q, q, 0 * v
    )
    assert (((loss - still) * v).sum(axis=1) > 0).all()


@pytest.mark.parametrize("passive", [True, False])
def test_forward_and_inverse_agree(passive):
    mechanism = random_tree(["free", "revolute", "spherical", "prismatic"], seed=2, passive=True).with_passive(passive)
    q, v, a = random_state(mechanism, 1, 3)
    tau = mechanism.inverse(q, v, a).tau
    assert error(mechanism.forward(q, v, tau).acceleration, a) < 1e-10
    plain_tau = np.array(
        [plain.rnea(plain.State.at(mechanism, *each[:2]), *each[1:]) for each in zip(q, v, a, strict=True)]
    )
    assert (error(tau, plain_tau) < 1e-12) is not passive


def test_springs_that_are_relaxed_pull_nowhere():
    """No NaN where a spring has no length or a rotation no angle."""
    builder = da.Builder("rest", gravity=(0, 0, 0))
    builder.body("ball", mass=1.0, inertia=(1, 1, 1))
    builder.joint("ball", "spherical", parent="world", child="ball", stiffness=(2.0,) * 3)
    builder.frame("here", "world")
    builder.frame("there", "ball")
    builder.spring("none", "here", "there", stiffness=5.0)
    mechanism = builder.build()
    result = mechanism.compile("bias").call(mechanism.neutral(), np.zeros(3))
    assert result.status.tolist() == da.Status.FINITE
    np.testing.assert_array_equal(result.outputs[0], 0.0)


def test_a_ball_with_three_springs_is_refused():
    builder = da.Builder("odd")
    builder.body("ball", mass=1.0, inertia=(1, 1, 1))
    builder.joint("ball", "spherical", parent="world", child="ball", stiffness=(1.0, 2.0, 3.0))
    with pytest.raises(UnsupportedError, match="same"):
        builder.build().compile("bias")

"""The algorithms that are compiled against their plain NumPy twins, for every kind of joint and every preparation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalembert.tree.algorithms import dynamics, momentum
from dalembert.tree.algorithms.dynamics import aba
from dalembert.tree.algorithms.inverse import crba, rnea
from dalembert.tree.algorithms.kinematics import drift, frame_motion, frame_pose, jacobian, poses
from dalembert.tree.prepared.prepare import FRAMES, prepare
from tests import reference as plain
from tests.reference.momentum import center_of_mass
from tests.tree.mechanisms import KINDS, MOVING, random_state, random_tree
from tests.tree.robots import REFERENCES, error, on_arrays

SAMPLES = 3
TOLERANCE = 1e-12
PREPARATIONS = [(frames, regrouped) for frames in FRAMES for regrouped in (True, False)]

trees = st.builds(
    random_tree,
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=6),
    st.integers(0, 10**6),
    armature=st.booleans(),
)


def per_sample(mechanism, q, v, function):
    return np.array([function(plain.State.at(mechanism, *each), i) for i, each in enumerate(zip(q, v, strict=True))])


def compare(mechanism, tree, seed=0):
    """Compare all that both can say."""
    q, v, a = random_state(mechanism, seed, SAMPLES)
    n = mechanism.nv
    if n == 0:
        return
    tau = per_sample(mechanism, q, v, lambda s, i: plain.rnea(s, v[i], a[i]))
    M = per_sample(mechanism, q, v, lambda s, i: plain.crba(s))
    assert error(on_arrays(tree, rnea, q, v, a), tau) < TOLERANCE
    assert error(on_arrays(tree, crba, q), M) < TOLERANCE
    qdd = per_sample(mechanism, q, v, lambda s, i: plain.aba(s, v[i], a[i]))
    condition = max(np.linalg.cond(each) for each in M)
    assert error(on_arrays(tree, aba, q, v, a), qdd) < max(TOLERANCE, 1e-14 * condition)
    by_factor = on_arrays(tree, dynamics.forward_by_factor, q, q, v, a) if not mechanism.passive else qdd
    assert error(by_factor, qdd) < max(TOLERANCE, 1e-14 * condition)
    h = per_sample(mechanism, q, v, lambda s, i: plain.centroidal_momentum(s, v[i]))
    assert error(on_arrays(tree, momentum.centroidal_momentum, q, v), h) < TOLERANCE
    center = per_sample(mechanism, q, v, lambda s, i: center_of_mass(s))
    assert error(on_arrays(tree, lambda *x: list(momentum.center_of_mass(*x)), q), center) < TOLERANCE
    energy = per_sample(mechanism, q, v, lambda s, i: plain.energy(s, v[i]))
    found = on_arrays(tree, lambda *x: list(momentum.energy(*x)), q, v)
    assert np.abs(found - energy).max() < TOLERANCE * max(1.0, np.abs(energy).max())


@given(tree=trees, seed=st.integers(0, 10**6))
def test_dynamics_of_random_trees(tree, seed):
    compare(tree, prepare(tree), seed)


@pytest.mark.parametrize(("frames", "regrouped"), PREPARATIONS)
@pytest.mark.parametrize("kind", MOVING)
def test_dynamics_of_every_kind_behind_a_hinge(kind, frames, regrouped):
    """A joint that is not at the root meets every term of the recursions."""
    kinds = [kind, "revolute"] if kind == "free" else ["revolute", kind, "prismatic", kind, "spherical"]
    mechanism = random_tree(kinds, seed=7, chain=True)
    compare(mechanism, prepare(mechanism, frames=frames, regrouped=regrouped))


@given(tree=trees, seed=st.integers(0, 10**6), reference=st.sampled_from(sorted(REFERENCES)))
def test_frames_of_random_trees(tree, seed, reference):
    q, v, _ = random_state(tree, seed, SAMPLES)
    prepared = prepare(tree)
    name = f"f{len(tree.bodies) - 1}"

    def pose(tree, posed):
        found = frame_pose(tree, poses(posed), name)
        return [*found.R, found.p]

    expected = per_sample(
        tree, q, v, lambda s, i: np.vstack([plain.frame_pose(s, name)[0].T, plain.frame_pose(s, name)[1]])
    )
    assert error(on_arrays(prepared, pose, q), expected) < TOLERANCE
    if tree.nv == 0:
        return
    J = per_sample(tree, q, v, lambda s, i: plain.frame_jacobian(s, name, reference))
    assert error(on_arrays(prepared, lambda *x: jacobian(*x, name, reference), q), J) < TOLERANCE
    rate = per_sample(tree, q, v, lambda s, i: plain.frame_drift(s, v[i], name, reference))
    found = on_arrays(prepared, lambda *x: drift(frame_motion(*x, name), reference), q, v)
    assert np.abs(found - rate).max() < TOLERANCE * max(1.0, np.abs(rate).max())


@given(tree=trees, seed=st.integers(0, 10**6))
def test_drift_is_the_rate_of_the_velocity(tree, seed):
    """J_dot v by central differences along the motion, which no line of either twin knows of."""
    if tree.nv == 0:
        return
    q, v, _ = random_state(tree, seed, 1)
    name, step = f"f{len(tree.bodies) - 1}", 1e-5
    for reference in REFERENCES:

        def velocity(sign, reference=reference):
            moved = tree.integrate(q[0], sign * step * v[0])
            return plain.frame_jacobian(plain.State.at(tree, moved), name, reference) @ v[0]

        rate = plain.frame_drift(plain.State.at(tree, q[0], v[0]), v[0], name, reference)
        assert np.abs((velocity(1) - velocity(-1)) / (2 * step) - rate).max() < 1e-7 * max(1.0, np.abs(rate).max())

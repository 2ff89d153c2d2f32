"""Screws, moments, regrouping, counting: the parts on their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalembert.model import Placement
from dalembert.tree.algebra.articulated import articulated, times
from dalembert.tree.algebra.count import count, inputs, work
from dalembert.tree.algebra.rigid import Rigid
from dalembert.tree.algebra.screws import Rotation, Screw
from dalembert.tree.algorithms.inverse import rnea
from dalembert.tree.prepared.frames import decompose, turn
from dalembert.tree.prepared.link import matrix, moments, moved, screw_placement
from dalembert.tree.prepared.prepare import candidates, cheapest, operations, prepare
from tests.tree.mechanisms import random_inertia, random_placement, random_tree

seeds = st.integers(0, 10**6)
NEARLY = [0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-5, 1e-3, 0.5, np.pi / 2, np.pi - 1e-9, np.pi]


@given(seed=seeds, alpha=st.sampled_from(NEARLY), quarter=st.booleans())
def test_a_placement_is_its_screws(seed, alpha, quarter):
    """Z(t, d) X(alpha, a) Z(t', d') gives K back to rounding, however parallel the axes are."""
    rng = np.random.default_rng(seed)
    angles = rng.integers(-2, 3, 2) * np.pi / 2 if quarter else rng.uniform(-3, 3, 2)
    R = np.eye(3)
    for axis, angle in (("z", angles[0]), ("x", alpha), ("z", angles[1])):
        R = R @ screw_placement(turn(axis, angle)).rotation
    p = rng.choice([0.0, 1.0, -0.3], 3)
    split = decompose(R, p)
    place = Placement()
    for screw in (*split.steps(), turn("z", *split.last)):
        place = place @ screw_placement(screw)
    np.testing.assert_allclose(place.rotation, R, atol=4e-15)
    np.testing.assert_allclose(place.position, p, atol=1e-13)


@given(
    seed=seeds,
    k=st.integers(0, 2),
    angle=st.sampled_from([0.0, np.pi / 2, np.pi, 0.7]),
    slide=st.sampled_from([0.0, 0.4]),
)
def test_inertias_through_a_screw(seed, k, angle, slide):
    """Moments and articulated inertias carried by a screw equal those carried by 6 x 6 matrices."""
    rng = np.random.default_rng(seed)
    inertia = random_inertia(rng)
    screw = turn("xyz"[k], angle, slide)
    place = screw_placement(screw)
    expected = inertia.moved(place)
    m, h, E = matrix(screw.rigid_out(moments(inertia)))
    np.testing.assert_allclose(m, expected.mass)
    np.testing.assert_allclose(h, expected.mass * expected.center, atol=1e-14)
    np.testing.assert_allclose(np.trace(E) * np.eye(3) - E, expected.about_origin(), atol=1e-14)
    full = _matrix(articulated(moments(inertia)).out(screw))
    np.testing.assert_allclose(full, expected.matrix(), atol=1e-14)
    rotation = Rotation(tuple(tuple(float(x) for x in column) for column in place.rotation.T))
    turned = _matrix(articulated(moments(inertia)).out(rotation))
    np.testing.assert_allclose(turned, inertia.moved(Placement(place.rotation)).matrix(), atol=1e-14)


def _matrix(inertia) -> np.ndarray:
    columns = [times(inertia, (tuple(e[:3]), tuple(e[3:]))) for e in np.eye(6).tolist()]
    return np.array([[*f, *n] for f, n in columns]).T


@given(seed=seeds)
def test_moments_of_a_moved_body(seed):
    rng = np.random.default_rng(seed)
    inertia, place = random_inertia(rng), random_placement(rng)
    for one, two in zip(matrix(moved(moments(inertia), place)), matrix(moments(inertia.moved(place))), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-14)


def test_regrouping_leaves_seven_numbers_per_hinge():
    tree = prepare(random_tree(["revolute"] * 3, seed=1, chain=True))
    for link in tree.links:
        assert link.inertia.m == 0.0
        assert link.inertia.h[2] == 0.0
        assert link.inertia.E[5] == 0.0
    assert tree.still.m > 0


def test_counting_knows_what_compiled_code_knows():
    x, y = inputs(2)
    assert work([x * y + x * y]) == 2  # one product, one sum
    assert work([x - y, -(y - x)]) == 2
    assert count([x + (-y)])["neg"] == 0
    assert work([0.5]) == 0
    assert count([x.sin(), x.sin()])["sin"] == 1


def test_the_cheapest_preparation_is_chosen():
    mechanism = random_tree(["revolute"] * 4, seed=3, chain=True)
    tree, algorithm = cheapest(mechanism, lambda tree, posed, q, v, a: rnea(tree, posed, v, a))
    every = [operations(each, algorithm) for each in candidates(mechanism)]
    assert operations(tree, algorithm) == min(every)
    assert min(every) < max(every)


@pytest.mark.parametrize("d", [0.0, 0.3])
def test_zero_stays_zero(d):
    """A massless body has exactly no inertia in any frame."""
    assert Screw(2, 0.6, 0.8, d).rigid_out(Rigid()) == Rigid()
    assert moved(Rigid(), random_placement(np.random.default_rng(0))) == Rigid()

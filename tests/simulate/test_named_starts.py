"""Starts by name: the state that numbers in order give, for every kind of system; names that are not there."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError, ShapeError
from dalembert.examples import two_blocks


def shaft_with_ball(pose=False):
    """Return a continuous joint that carries a ball joint: (cos, sin) and a quaternion."""
    b = da.Builder("shaft")
    for name in ("shaft", "bob"):
        b.body(name, mass=1.0, center=(0, 0, -0.3), inertia=(0.01, 0.01, 0.01))
    b.joint("spin", "continuous", "world", "shaft", axis=(0, 1, 0))
    b.joint("ball", "spherical", "shaft", "bob")
    if pose:
        b.pose("file", {"spin": [0.2]})
    return b.build()


@pytest.fixture(scope="module")
def shaft():
    return shaft_with_ball()


def test_values_by_joint_are_those_in_order(shaft):
    """An angle stands for cosine and sine, four numbers for a quaternion, one for a coordinate of a joint."""
    named = da.simulate(shaft, 0.01, {"spin": 0.5, "ball": [0, 0, 0.6, 0.8]}, {"ball.wz": 2.0})
    plain = da.simulate(shaft, 0.01, [np.cos(0.5), np.sin(0.5), 0, 0, 0.6, 0.8], [0, 0, 0, 2.0])
    np.testing.assert_array_equal(named.q, plain.q)
    np.testing.assert_array_equal(named.v, plain.v)


def test_what_is_not_named_is_where_the_model_is_drawn():
    """`pose()`, not zero."""
    drawn = shaft_with_ball(pose=True)
    start = da.simulate(drawn, 0.001, {"ball": [0, 0, 0.6, 0.8]}).q[0]
    np.testing.assert_array_equal(start[:2], drawn.pose()[:2])
    assert start[1] == np.sin(0.2)


def test_matrices_know_their_coordinates():
    """Systems without joints take coordinates by name."""
    blocks = two_blocks()
    run = da.simulate(blocks, 0.1, {"q2": 0.1}, {"q1": 0.3, "q2": 0.3})
    np.testing.assert_array_equal([run.q[0], run.v[0]], [[0.0, 0.1], [0.3, 0.3]])


def test_loops_close_from_a_guess_by_name():
    """`assemble` as with numbers in order."""
    b = da.Builder("four-bar", gravity=(0, -9.81, 0))
    for name, parent, x in (("crank", "world", 0.0), ("coupler", "crank", 0.5), ("rocker", "world", 1.1)):
        b.body(name, mass=1.0, center=(0.3, 0, 0), inertia=(0.01, 0.1, 0.1))
        b.joint(name, "revolute", parent, name, axis=(0, 0, 1), position=(x, 0, 0))
    b.loop("pin", "revolute", "coupler", "rocker", placement=(1.0, 0, 0), other_placement=(0.8, 0, 0), axis=(0, 0, 1))
    linkage = b.build()
    named = linkage.assemble({"crank": 0.3, "coupler": 1.0, "rocker": 2.0}, {"crank": 4.0}, hold=["crank"])
    plain = linkage.assemble([0.3, 1.0, 2.0], [4.0, 0, 0], hold=["crank"])
    assert named.ok
    np.testing.assert_array_equal(named.q, plain.q)
    np.testing.assert_array_equal(named.v, plain.v)


@pytest.mark.parametrize(
    ("q", "error", "words"),
    [
        ({"spinn": 0.5}, ModelError, "did you mean 'spin'"),
        ({"ball": [1.0, 0.0]}, ModelError, "'ball' has 4 coordinates, not 2"),
        ({"spin": "fast"}, ShapeError, "q of 'spin' must be real numbers"),
        ({"ball": [0, 0, 0.5, 0.5]}, ModelError, "should have length one"),
    ],
)
def test_names_and_values_that_do_not_fit_are_refused(shaft, q, error, words):
    """The sentence names the joint."""
    with pytest.raises(error, match=words):
        da.simulate(shaft, 0.01, q)

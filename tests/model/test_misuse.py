"""Misuse of builders and mechanisms: errors of dalembert that say what, never those of Python or NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


def pendulum(kind: str = "revolute") -> da.Mechanism:
    b = da.Builder("pendulum")
    b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.joint("hinge", kind, "world", "rod", axis=(0, 1, 0))
    return b.build()


BUILDING = {
    "effort": lambda b: b.actuator("m", "hinge", effort="many"),
    "negative effort": lambda b: b.actuator("m", "hinge", effort=-1.0),
    "list of terms": lambda b: b.couple("c", ["hinge"]),
    "no terms": lambda b: b.couple("c", 3),
    "gravity": lambda b: da.Builder(gravity="down"),
    "limits": lambda b: b.joint("j", "revolute", "world", "a", limits=3),
    "limits as text": lambda b: b.joint("j", "revolute", "world", "a", limits="ab"),
    "ball": lambda b: b.loop("l", "ball", "a", "world"),
    "options": lambda b: b.loop("l", "point", "a", "world", options=[1]),
    "mass": lambda b: b.body("x", mass="heavy"),
    "center": lambda b: b.body("x", mass=1.0, center=(1, 2)),
    "inertia": lambda b: b.body("x", mass=1.0, inertia="round"),
    "axis": lambda b: b.joint("j", "revolute", "world", "a", axis=([], 1, 2)),
    "pitch": lambda b: b.joint("j", "helical", "world", "a", pitch=None),
    "kind": lambda b: b.joint("j", ["revolute"], "world", "a"),
    "damping": lambda b: b.joint("j", "revolute", "world", "a", damping={}),
    "rpy": lambda b: b.frame("f", "a", rpy="up"),
    "position": lambda b: b.frame("f", "a", position=(1, 2)),
    "rotation": lambda b: b.frame("f", "a", rotation=np.ones((2, 2))),
    "stiffness": lambda b: b.spring("s", "a", "world", stiffness="soft"),
    "line break": lambda b: b.body("a\nb"),
    "base": lambda b: b.build(base=3),
    "order": lambda b: b.build(order=None),
}

CALLING = {
    "list of requests": lambda m: m.compile(["forward"]),
    "unhashable frame": lambda m: m.compile("jacobian", frame={}),
    "unknown request": lambda m: m.compile("banana"),
    "backend": lambda m: m.compile("forward", backend=3),
    "threads": lambda m: m.compile("forward", threads="two"),
    "width": lambda m: m.compile("forward", width=3),
    "size": lambda m: m.random(0, size=-1),
    "size as text": lambda m: m.random(0, size="a"),
    "size of halves": lambda m: m.random(0, size=1.5),
    "seed": lambda m: m.random("a"),
    "negative seed": lambda m: m.random(-1),
    "index": lambda m: m.index_q([]),
    "body": lambda m: m.body_index([]),
    "frame": lambda m: m.frame({}),
    "interpolate": lambda m: m.interpolate([0.0], [1.0], "half"),
    "torque": lambda m: m.torque("full"),
    "gravity": lambda m: m.with_gravity("up"),
    "text": lambda m: m.forward("q", [0.0], [0.0]),
    "ragged": lambda m: m.forward([0.0], [[0.0], [0.0, 1.0]], [0.0]),
    "complex": lambda m: m.forward([0.0], [1j], [0.0]),
    "reference": lambda m: m.frame_jacobian([0.0], "rod", reference=[]),
    "time": lambda m: m.inverse([0.0], [0.0], [0.0], t="now", actuated=["hinge"]),
    "actuated": lambda m: m.inverse([0.0], [0.0], [0.0], actuated=["nothing"]),
    "constrain": lambda m: m.constrain("foot"),
}


@pytest.mark.parametrize("what", list(BUILDING))
def test_building(what):
    builder = da.Builder()
    builder.body("a", mass=1.0)
    with pytest.raises(da.DalembertError):
        BUILDING[what](builder)


@pytest.mark.parametrize("what", list(CALLING))
def test_calling(what):
    with pytest.raises(da.DalembertError):
        CALLING[what](pendulum())


def test_near_words_of_other_tools():
    with pytest.raises(da.ModelError, match="did you mean 'point'"):
        da.Builder().loop("l", "ball", "a", "b")


def test_a_configuration_that_is_none():
    ball = pendulum("spherical")
    with pytest.raises(da.ModelError, match="length one"):
        ball.forward(np.full(4, np.nan), np.zeros(3), np.zeros(3))
    with pytest.raises(da.ModelError, match="zero throughout"):
        ball.normalize(np.zeros((3, 4)))


def test_shapes_without_and_with_one_coordinate():
    still = pendulum("fixed")
    assert still.mass_matrix(np.zeros(0)).shape == (0, 0)
    assert still.mass_matrix(np.zeros((4, 0))).shape == (4, 0, 0)
    assert still.frame_jacobian(np.zeros((4, 0)), "rod").shape == (4, 6, 0)
    assert pendulum().mass_matrix(np.zeros((1, 1))).shape == (1, 1, 1)
    assert pendulum().frame_jacobian(np.zeros((2, 3, 1)), "rod").shape == (2, 3, 6, 1)


def test_batches_of_several_axes():
    """A batch of any leading axes is the same samples in a row."""
    for mechanism in (pendulum("free"), coupled()):
        q = mechanism.random(0, size=(2, 3))
        v, tau = np.random.default_rng(1).standard_normal((2, 2, 3, mechanism.nv))
        found = mechanism.forward(q, v, tau)
        flat = mechanism.forward(*(x.reshape(6, -1) for x in (q, v, tau)))
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, flat)), strict=True):
            assert one.shape == (2, 3, *other.shape[1:])
            np.testing.assert_array_equal(one.reshape(other.shape), other)
        assert mechanism.kinematics(q)[0].shape == (2, 3, len(mechanism.bodies), 3, 3)
        assert mechanism.energy(q, v)[0].shape == (2, 3)


def coupled() -> da.Mechanism:
    """Return two hinges, one of which follows the other."""
    b = da.Builder()
    for name, parent in (("a", "world"), ("b", "a")):
        b.body(name, mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        b.joint(f"{name}_hinge", "revolute", parent, name, axis=(0, 1, 0))
    b.couple("gear", {"a_hinge": 2.0, "b_hinge": -1.0})
    return b.build()

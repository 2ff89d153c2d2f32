"""Misuse of builders and mechanisms: errors of dalembert that say what, never those of Python or NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.model import Placement


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
    "weld to itself": lambda b: (b.loop("l", "weld", "a", "a"), b.build()),
    "misspelt option": lambda b: (b.loop("l", "distance", "a", "world", options={"lenght": 3}), b.build()),
    "missing option": lambda b: (b.loop("l", "distance", "a", "world"), b.build()),
    "placement": lambda b: b.loop("l", "weld", "a", "world", placement=np.eye(3)),
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
    "frame as time": lambda m: m.jacobian([0.0], "rod"),
    "time of rows": lambda m: m.constraint([0.0], "now"),
    "time of drift": lambda m: m.drift([0.0], [0.0], "now"),
    "time of projection": lambda m: m.project([0.0], t="now"),
    "times of projection": lambda m: m.project([0.0], t=[1.0, 2.0]),
    "forces": lambda m: m.solve([0.0], [0.0], "much"),
    "batches": lambda m: m.drift(np.zeros((3, 1)), np.zeros((2, 1))),
    "masked": lambda m: m.forward(np.ma.masked_invalid([np.nan]), [0.0], [0.0]),
    "masked in a kernel": lambda m: m.forward([0.0], np.ma.masked_invalid([np.nan]), [0.0]),
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
    with pytest.raises(da.ModelError, match="did you mean 'revolute'"):
        da.Builder().joint("l", "hinge", "a", "b")
    with pytest.raises(da.ModelError, match="did you mean 'energy'"):
        pendulum().compile("potential_energy")
    with pytest.raises(da.ModelError, match=r"frame_jacobian\(q, 'rod'\)"):
        pendulum().jacobian([0.0], "rod")


@pytest.mark.parametrize("kind", ["spherical", "planar", "free"])
def test_couplings_are_between_lengths_and_angles(kind):
    b = da.Builder()
    b.body("a", mass=1.0, inertia=(1, 1, 1))
    b.joint("j", kind, "world", "a")
    b.couple("c", {"j.wz": 1.0})
    with pytest.raises(da.ModelError, match=f"belongs to a {kind} joint"):
        b.build()


def test_options_of_loops_are_named():
    for options, words in (({"lenght": 3}, "did you mean 'length'"), ({}, r"needs options=\{'length': ...\}")):
        b = da.Builder()
        b.body("a", mass=1.0)
        b.loop("l", "distance", "a", "world", options=options)
        with pytest.raises(da.ModelError, match=words):
            b.build()


def test_odd_numbers_are_noted():
    """Negative springs, and springs where an angle jumps; limits beyond any machine are none."""
    b = da.Builder()
    b.body("a", mass=1.0)
    b.body("b", mass=1.0, inertia=(1, 1, 1))
    b.joint("wheel", "continuous", "world", "a", stiffness=5.0, rest=0.5)
    b.joint("hinge", "revolute", "a", "b", limits=(-1e308, 1e308))
    b.spring("s", "a", "world", stiffness=-1.0)
    b.tendon("t", {"hinge": 1.0}, damping=-1.0)
    robot = b.build()
    for words in ("jumps half a turn", "spring 's': its stiffness is negative", "tendon 't': its damping is negative"):
        assert any(words in note for note in robot.notes)
    assert robot.joint("hinge").limits.upper == (np.inf,)
    assert np.isfinite(robot.random(0, 9)).all()


PLACES = {
    "position": (0.1, 0.2, 0.3),
    "pair": (np.diag([1.0, -1.0, -1.0]), (0.1, 0.2, 0.3)),
    "quaternion": ((1.0, 0.0, 0.0, 0.0), (0.1, 0.2, 0.3)),
    "matrix": np.array([[1, 0, 0, 0.1], [0, -1, 0, 0.2], [0, 0, -1, 0.3], [0, 0, 0, 1]]),
    "placement": Placement(position=np.array([0.1, 0.2, 0.3])),
}


@pytest.mark.parametrize("how", list(PLACES))
def test_places_of_loops_frames_and_joints(how):
    b = da.Builder()
    b.body("a", mass=1.0)
    b.joint("j", "revolute", "world", "a", placement=PLACES[how], child_placement=PLACES[how])
    b.frame("f", "a", placement=PLACES[how])
    b.loop("l", "point", "a", "world", placement=PLACES[how], other_placement=PLACES[how])
    robot = b.build()
    turned = np.eye(3) if how in ("position", "placement") else np.diag([1.0, -1.0, -1.0])
    loop, joint = robot.loops[0], robot.joints[0]
    for place in (
        loop.placement,
        loop.other_placement,
        joint.placement,
        joint.child_placement,
        robot.frames[0].placement,
    ):
        np.testing.assert_allclose(place.position, [0.1, 0.2, 0.3])
        np.testing.assert_array_equal(place.rotation, turned)


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
        for one, other in zip(found, flat, strict=True):
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


def test_a_state_without_an_answer_is_never_silent():
    """A stretched arm whose first link has no mass: M is singular at q2 = 0, as its status says."""
    b = da.Builder()
    b.body("a")
    b.body("b", mass=1.0, center=(1, 0, 0))
    b.joint("one", "revolute", "world", "a", axis=(0, 0, 1))
    b.joint("two", "revolute", "a", "b", axis=(0, 0, 1), position=(1, 0, 0))
    arm = b.build()
    v = np.zeros(2)
    for bent in (0.0, 1e-9):
        alone = arm.forward([0.3, bent], v, [1.0, 2.0])
        assert alone.status == da.Status.MASSLESS
        assert not alone.ok
        assert np.isnan(alone.acceleration).all()
        with pytest.raises(da.SolvabilityError, match="moves no mass"):
            arm.solve([0.3, bent], v, [1.0, 2.0])
    a, lam, status = arm.forward([[0.3, 0.0], [0.3, 1.0], [0.3, np.nan]], v, [1.0, 2.0])
    assert np.isnan(a).all(axis=-1).tolist() == [True, False, True]
    assert status.tolist() == [da.Status.MASSLESS, da.Status.UNIQUE, da.Status.NONFINITE]
    assert lam.shape == (3, 0)
    assert arm.forward([0.3, np.nan], v, v).status == da.Status.NONFINITE


@pytest.mark.filterwarnings("error")
def test_numbers_out_of_range_are_a_status():
    """One state is answered as it is in a batch, without a warning."""
    robot, zero = coupled(), np.zeros(2)
    for q, v in ((zero, np.full(2, 1e200)), (np.full(2, 1e200), zero), (np.array([np.nan, 0]), zero)):
        a, lam, status = robot.forward(q, v, zero)
        _, _, batch = robot.forward(q[None], v, zero)
        assert status.shape == ()
        assert (a.shape, lam.shape) == ((2,), (1,))
        assert status == batch[0]
        assert np.isfinite(a).all() or status not in (da.Status.UNIQUE, da.Status.REDUNDANT)
    assert np.isnan(pendulum("spherical").integrate([0, 0, 0, 1.0], [np.inf] * 3)).any()


def test_a_gear_beyond_the_range_of_numbers_is_refused_by_name():
    """gear^2 rotor_inertia raised Python's OverflowError, found by mutated robot files."""
    b = da.Builder("geared")
    b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    b.actuator("motor", "hinge", gear=1e200, rotor_inertia=1.0)
    with pytest.raises(da.ModelError, match="actuator 'motor': gear 1e\\+200"):
        _ = b.build().armature

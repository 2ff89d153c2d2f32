"""Limbs without mass that nothing holds have dynamics of their own (Johnson, after eq. 35): one state and batches."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest

import dalembert as da


@cache
def monopod(leg=True):
    """Return a heavy body in the plane with a massless leg (hip and length); without it, the reduced system."""
    b = da.Builder("monopod")
    b.body("body", mass=80.0, center=(0.1, 0, 0.2), inertia=(1.0, 2.0, 1.5))
    b.joint("base", "planar", parent="world", child="body", axis=(0, 1, 0))
    if leg:
        b.body("thigh")
        b.body("shank")
        b.joint("hip", "revolute", parent="body", child="thigh", axis=(0, 1, 0))
        b.joint("length", "prismatic", parent="thigh", child="shank", axis=(0, 0, -1))
    return b.build()


@cache
def pantograph():
    """Return a heavy slider with a massless leg of five bars, whose loop leaves two motions free."""
    b = da.Builder("pantograph")
    b.body("body", mass=5.0, inertia=(1.0, 1.0, 1.0))
    b.joint("up", "prismatic", parent="world", child="body", axis=(0, 0, 1))
    for side, x in (("left", -0.1), ("right", 0.1)):
        b.body(f"{side} thigh")
        b.body(f"{side} shank")
        b.joint(f"{side} hip", "revolute", parent="body", child=f"{side} thigh", axis=(0, 1, 0), position=(x, 0, 0))
        b.joint(
            f"{side} knee", "revolute", parent=f"{side} thigh", child=f"{side} shank", axis=(0, 1, 0),
            position=(0, 0, -0.3),
        )  # fmt: skip
        b.frame(f"{side} end", f"{side} shank", position=(0, 0, -0.3))
    closed = da.Revolute("left end", "right end", axis=(0, 1, 0))
    return b.build().constrain(closed)


STATE = np.array([0.1, 0.9, np.cos(0.4), np.sin(0.4), 0.3, 0.8])


def test_J16_the_rest_moves_as_the_reduced_system():
    """Held or led, single or in a batch, whatever pulls on the limb: the body does what it does without it."""
    m, reduced = monopod(), monopod(leg=False)
    rng = np.random.default_rng(0)
    q, v, force = np.tile(STATE, (5, 1)), rng.standard_normal((5, 5)), rng.standard_normal((5, 5))
    expected = reduced.forward(q[:, :4], v[:, :3], force[:, :3]).acceleration
    for law in ("hold", {"length": lambda k: -20.0 * (k.coordinate("length") - 0.5) + ca.cos(k.t)}):
        answer = m.forward(q, v, force, t=0.3, massless=law)
        assert (answer.status == da.Status.HELD).all()
        np.testing.assert_allclose(answer.acceleration[:, :3], expected, rtol=1e-13)
        np.testing.assert_array_equal(answer["massless hip"], -force[:, 3])  # the holder bears what pulls on the limb
        leads = 0.0 if law == "hold" else -20.0 * v[:, 4] - np.sin(0.3)
        np.testing.assert_allclose(answer.acceleration[:, 4], leads, atol=1e-13)
        np.testing.assert_array_equal(answer.acceleration[:, 3], 0.0)
        single = m.forward(q[1], v[1], force[1], t=0.3, massless=law)
        np.testing.assert_array_equal(single.acceleration, answer.acceleration[1])
    alone = m.solve(q[1], v[1], force[1], massless="hold")
    np.testing.assert_allclose(alone.acceleration, m.forward(q[1], v[1], force[1], massless="hold").acceleration)
    with pytest.raises(da.DalembertError, match="length"):
        m.forward(q[1], v[1])


def test_J16_energy_and_momentum_are_those_of_the_rest():
    m, reduced = monopod(), monopod(leg=False)
    v = np.array([0.3, -0.2, 1.1, 4.0, -3.0])
    np.testing.assert_allclose(m.energy(STATE, v), reduced.energy(STATE[:4], v[:3]), rtol=1e-14)
    np.testing.assert_allclose(m.momentum(STATE, v), reduced.momentum(STATE[:4], v[:3]), atol=1e-12)
    force = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    answer = m.forward(STATE, v, force, massless={"length": -3.0, "hip": 4.0})
    power = force @ v + answer.reactions @ v[[4, 3]]  # of all forces; the rows are in the order of the laws
    M, a, bias = m.mass_matrix(STATE), answer.acceleration, m.bias(STATE, v)
    assert power == pytest.approx(force[:3] @ v[:3], rel=1e-13)
    assert v @ (M @ a + bias) == pytest.approx(power, rel=1e-13)


def test_J16_kernels_say_which_part_is_held():
    m = monopod()
    kernel = m.compile("forward", massless="hold")
    assert kernel is m.compile("forward", massless="hold")
    a, forces, status = kernel(STATE, np.ones(5), np.arange(5.0))
    assert int(status[0]) == da.Status.HELD
    assert m.with_massless().massless_rows == m.with_massless().names == ("massless hip", "massless length")
    np.testing.assert_array_equal(forces, [3.0, 4.0])
    np.testing.assert_array_equal(a[3:], 0.0)
    assert monopod(leg=False).with_massless().names == ()


def test_J16_a_loop_without_mass_is_held_by_as_many_coordinates_as_it_leaves_free():
    m = pantograph()
    held = m.with_massless()
    assert len(held.massless_rows) == 2
    q = m.project(np.array([1.0, 0.5, -1.1, -0.5, 1.1]))
    v = np.array([0.7, 0.0, 0.0, 0.0, 0.0])
    answer = held.forward(q, v)
    assert answer.status == da.Status.HELD
    np.testing.assert_allclose(answer.acceleration, [-9.81, 0, 0, 0, 0], atol=1e-11)
    np.testing.assert_allclose(answer.acceleration, m.solve(q, v, massless="hold").acceleration, atol=1e-11)
    led = m.forward(q, v, massless={"left knee": lambda k: ca.sin(k.t)}, t=0.0)
    assert led.acceleration[m.index_v("left knee")] == pytest.approx(1.0)
    assert led.acceleration[0] == pytest.approx(-9.81)


def test_J16_laws_that_make_no_sense_are_refused_by_name():
    m = monopod()
    for law, words in (
        ({"base.x": 0.0}, "no motion"), ({"knee": 0.0}, "knee"), ("hodl", "'hold'"), ({"hip": "fast"}, "fast"),
        ({"hip": lambda k: k.v[3]}, "k.q and k.t"), ({"hip": lambda k: k.q}, "one velocity"),
        ({"hip": np.inf}, "finite"),
    ):  # fmt: skip
        with pytest.raises(da.ModelError, match=words):
            m.forward(STATE, np.zeros(5), massless=law)


def test_J16_lagrangian_systems():
    """A cart with a massless arm beside it: held or led as an expression, in batches, by `KKT` and by rows."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    cart = da.Lagrangian(q, v, kinetic=v[0] ** 2, potential=3.0 * q[0], coordinates=("cart", "arm"))
    states, speeds = np.random.default_rng(0).standard_normal((2, 4, 2))
    held = cart.forward(states, speeds, massless="hold")
    assert (held.status == da.Status.HELD).all()
    np.testing.assert_allclose(held.acceleration, np.tile([-1.5, 0.0], (4, 1)), atol=1e-14)
    led = cart.with_massless({"arm": -2.0 * q[1]})
    assert led.names == ("massless arm",)
    answer = led.forward(states, speeds)
    np.testing.assert_allclose(answer.acceleration, np.stack([np.full(4, -1.5), -2.0 * speeds[:, 1]], axis=1))
    run = da.simulate(cart, 1.0, [0.0, 1.0], [0.5, -2.0], massless={"arm": -2.0 * q[1]}, rtol=1e-10, atol=1e-12)
    assert run.status == "completed"
    np.testing.assert_allclose(run.q[-1], [0.5 - 0.75, np.exp(-2.0)], atol=1e-9)
    with pytest.raises(da.ModelError, match="cart"):
        cart.with_massless({"cart": 0.0})
    with pytest.raises(da.UnsupportedError, match="Matrices"):
        da.simulate(da.Matrices({"x": 1.0, "y": 0.0}), 0.1, massless="hold")


def test_J16_forward_of_a_lagrangian_takes_a_law():
    """A mass that falls, and a coordinate without mass beside it: led, or held."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = da.Lagrangian(q, v, kinetic=v[0] ** 2 / 2, potential=9.81 * q[0], coordinates=["a", "b"])
    for law, acceleration in (({"b": -3.0 * q[1]}, -3.0 * -6.0), ({"b": 0.0}, 0.0)):
        answer = system.forward([0.0, 2.0], [0.0, -6.0], massless=law)
        np.testing.assert_allclose(answer.acceleration, [-9.81, acceleration], atol=1e-12)
        assert answer.status == da.Status.HELD
    several = system.forward(np.zeros((3, 2)), np.zeros((3, 2)), massless={"b": 1.0})
    assert (several.status == da.Status.HELD).all()
    with pytest.raises(da.ModelError, match="'c'"):
        system.forward([0.0, 0.0], [0.0, 0.0], massless={"c": 1.0})

"""Compiled forward dynamics: batches, parameters, and samples that need more care."""

from __future__ import annotations

import pickle
from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.model import QUANTITIES
from tests.model.lagrangians import SYSTEMS, bead, double_pendulum, pendulum, sleigh

VALUES = {"m1": 1.0, "m2": 0.7, "l1": 0.9, "l2": 1.3}


def states(system, count: int, seed: int = 0):
    return np.random.default_rng(seed).normal(size=(2, count, len(system.coordinates)))


def made(make) -> da.Lagrangian:
    system = make()
    return system.with_parameters(**{k: VALUES[k] for k in system.parameters.names if k in VALUES})


def two_rails() -> da.Lagrangian:
    """A bead between two rails; `gap` lets the second rail run away from the first."""
    q, v, t, gap = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t"), ca.SX.sym("gap")
    return da.Lagrangian(
        q,
        v,
        kinetic=ca.sumsqr(v) / 2,
        potential=9.81 * q[1] + q[0],
        constraints={"upper": q[1] - q[0] ** 2, "lower": q[1] - q[0] ** 2 - gap * t**2 / 2},
        parameters={"gap": (gap, 0.0)},
        time=t,
        coordinates=("x", "y"),
    )


@pytest.mark.parametrize("make", SYSTEMS)
def test_batch_is_loop(make):
    system = made(make)
    q, v = states(system, 30)
    batch = system.forward(q, v)
    singles = [system.solve(*state) for state in zip(q, v, strict=True)]
    np.testing.assert_array_equal(batch.status, [s.status for s in singles])
    for name in ("acceleration", "multipliers"):
        expected = np.array([getattr(s, name) for s in singles])
        np.testing.assert_allclose(getattr(batch, name), expected, rtol=1e-10, atol=1e-11)
    one = system.forward(q[4], v[4])
    np.testing.assert_array_equal(one.acceleration, batch.acceleration[4])
    assert one.status.shape == ()
    assert (batch.certificate.residual_motion < 1e-14).all()
    assert batch.certificate[3].ok


@pytest.mark.parametrize("make", SYSTEMS)
def test_straight_line_certifies_ordinary_states(make):
    """The detour through `KKT` is the exception."""
    system = made(make)
    q, v = states(system, 200, 5)
    if make is sleigh:
        v = da.KKT(system.mass_matrix(q), system.jacobian(q)).project_velocity(v)
    inputs = {
        "q": q,
        "v": v,
        "force": np.sin(q),
        "u": np.zeros(1),
        "t": np.zeros(1),
        "parameters": system.parameters.pack(),
    }
    kernel = system.compile()
    *_, status = kernel(*[inputs[port.name] for port in kernel.inputs])
    assert np.mean(status == da.Status.UNIQUE) > 0.98


@pytest.mark.parametrize("make", SYSTEMS)
def test_numpy_backend_is_the_twin(make):
    system = made(make)
    q, v = states(system, 8, 6)
    inputs = {
        "q": q,
        "v": v,
        "force": np.sin(q),
        "u": np.ones(1),
        "t": np.ones(1),
        "parameters": system.parameters.pack(),
    }
    for what in QUANTITIES:
        fast, plain = system.compile(what), system.compile(what, backend="numpy")
        given = [inputs[port.name] for port in fast.inputs]
        for x, y in zip(fast.call(*given).outputs, plain.call(*given).outputs, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12, err_msg=what)


def test_sweep_over_parameters_needs_no_compilation():
    """Lengths and masses are inputs: one kernel object serves all, also through other defaults."""
    system = pendulum()
    kernel = system.compile()
    length = np.linspace(0.5, 2.0, 10)
    q = np.column_stack((length, np.zeros(10)))
    s = system.forward(q, np.tile([0.0, 1.0], (10, 1)), parameters={"length": length, "mass": 3.0})
    np.testing.assert_allclose(s.acceleration[:, 0], -1 / length, rtol=1e-13)
    np.testing.assert_allclose(s["rod"], -3.0 / length**2, rtol=1e-12)
    assert system.with_parameters(length=2.0).compile() is kernel is system.compile()
    longer = system.with_parameters(length=2.0)
    assert longer.constraint([2.0, 0.0])[0] == 0.0 != system.constraint([2.0, 0.0])[0]


def test_redundant_rows_are_flagged_and_solved():
    system = two_rails()
    q, v = np.array([[0.5, 0.25], [0.1, 0.01]]), np.array([[1.0, 1.0], [2.0, 0.4]])
    kernel = system.compile()
    *_, status = kernel(q, v, np.zeros(2), np.zeros(1), np.zeros(1))
    np.testing.assert_array_equal(status, da.Status.REDUNDANT)
    s = system.forward(q, v)
    np.testing.assert_array_equal(s.status, da.Status.REDUNDANT)
    np.testing.assert_allclose(s.multipliers[:, 0], s.multipliers[:, 1], rtol=1e-12)
    np.testing.assert_allclose(s.acceleration[:, 1], 2 * q[:, 0] * s.acceleration[:, 0] + 2 * v[:, 0] ** 2, rtol=1e-12)
    assert s.certificate[0].rank == 1


def test_contradicting_rows_are_flagged_and_named():
    system = two_rails()
    gap = np.array([0.0, 1.0, 0.0])
    q, v = np.tile([0.5, 0.25], (3, 1)), np.tile([1.0, 1.0], (3, 1))
    s = system.forward(q, v, parameters={"gap": gap})
    np.testing.assert_array_equal(s.status, [da.Status.REDUNDANT, da.Status.INCONSISTENT, da.Status.REDUNDANT])
    assert np.isnan(s.acceleration[1]).all()
    assert np.isfinite(s.acceleration[[0, 2]]).all()
    with pytest.raises(da.SolvabilityError, match="lower"):
        system.solve(q[1], v[1], parameters={"gap": 1.0})
    nearest = system.forward(q, v, parameters={"gap": gap}, inconsistent="least_squares")
    assert nearest.status[1] == da.Status.LEAST_SQUARES


def test_free_massless_motion_is_flagged_and_named():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = da.Lagrangian(q, v, kinetic=v[0] ** 2 / 2, forces=[1.0, 0.0], coordinates=("cart", "feather"))
    s = system.forward(np.zeros((2, 2)), np.zeros((2, 2)))
    np.testing.assert_array_equal(s.status, da.Status.MASSLESS)
    with pytest.raises(da.SolvabilityError, match="feather"):
        system.solve([0.0, 0.0], [0.0, 0.0])
    assert system.solve([0.0, 0.0], [0.0, 0.0], massless="hold")["cart"] == 1.0


def test_negative_mass_is_flagged():
    q, v, mass = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("mass")
    system = da.Lagrangian(q, v, kinetic=mass * v**2 / 2, forces=[1.0], parameters=mass)
    s = system.forward([[0.0]] * 3, [0.0], parameters={"mass": [1.0, -1.0, 0.0]})
    np.testing.assert_array_equal(s.status, [da.Status.UNIQUE, da.Status.INDEFINITE, da.Status.MASSLESS])


def test_nan_and_infinity_stay_in_their_samples():
    system = bead()
    q, v = states(system, 5)
    q[1, 0], v[3, 1] = np.nan, np.inf
    s = system.forward(q, v)
    np.testing.assert_array_equal(s.status == da.Status.NONFINITE, [False, True, False, True, False])
    np.testing.assert_array_equal(np.isnan(s.acceleration).any(axis=1), [False, True, False, True, False])


def test_nan_that_reaches_no_equation_is_a_status_too():
    """A free particle does not feel its position; a NaN there is an error of the caller all the same."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    s = da.Lagrangian(q, v, ca.sumsqr(v) / 2).forward([[np.nan, 0.0], [0.0, 0.0]], [0.0, 0.0])
    np.testing.assert_array_equal(s.status, [da.Status.NONFINITE, da.Status.UNIQUE])


@pytest.mark.parametrize("make", SYSTEMS)
def test_empty_batch(make):
    system = made(make)
    s = system.forward(*np.zeros((2, 0, len(system.coordinates))))
    assert s.acceleration.shape == (0, len(system.coordinates))
    assert s.multipliers.shape == (0, len(system.names))
    assert s.status.shape == (0,)


def test_equilibrium_is_exact():
    """A pendulum that hangs at rest: zero acceleration, certified by the straight line itself."""
    system = pendulum()
    q = [[0.0, -1.0], [0.6, -0.8], [0.0, 1.0]]
    *_, status = system.compile()(q, np.zeros((3, 2)), np.zeros(2), np.ones(2))
    np.testing.assert_array_equal(status, da.Status.UNIQUE)
    s = system.forward([[0.0, -1.0]], [[0.0, 0.0]])
    np.testing.assert_allclose(s.acceleration, 0.0, atol=1e-15)


def chain(links: int) -> da.Lagrangian:
    """A chain of point masses on rods in the plane, n = 2 links, m = links."""
    q, v = ca.SX.sym("q", 2 * links), ca.SX.sym("v", 2 * links)
    points = [ca.SX([0, 0]), *ca.vertsplit(q, 2)]
    rods = [ca.sumsqr(b - a) / 2 - 0.5 for a, b in pairwise(points)]
    return da.Lagrangian(q, v, ca.sumsqr(v) / 2, 9.81 * ca.sum1(q[1::2]), constraints=("rods", ca.vertcat(*rods)))


@pytest.mark.parametrize("links", [5, 8, 9])
def test_chain_on_both_sides_of_the_straight_line_limit(links):
    """n + m = 15, 24 go through straight-line code, 27 through `KKT`; both agree with `solve`."""
    system = chain(links)
    assert system.names[:2] == ("rods[0]", "rods[1]")
    rng = np.random.default_rng(links)
    angles = rng.uniform(-1, 1, (4, links))
    q = np.cumsum(np.stack((np.sin(angles), -np.cos(angles)), axis=-1), axis=1).reshape(4, -1)
    v = rng.normal(size=q.shape)
    s = system.forward(q, v)
    assert (s.status == da.Status.UNIQUE).all()
    expected = [system.solve(*state).acceleration for state in zip(q, v, strict=True)]
    np.testing.assert_allclose(s.acceleration, expected, rtol=1e-9, atol=1e-9)
    if 3 * links > 25:
        with pytest.raises(da.UnsupportedError, match="27"):
            system.compile()
    else:
        assert (system.compile()(q, v, 0 * v)[2] == da.Status.UNIQUE).all()


def test_batches_of_several_axes():
    """The same samples, in a row or on two axes: terms, forward dynamics, parameters; a bad one among them."""
    system = double_pendulum()
    rng = np.random.default_rng(5)
    q, v = rng.standard_normal((2, 2, 3, len(system.coordinates)))
    q[1, 2, 0] = np.nan
    values = {name: rng.uniform(1, 2, (2, 3)) for name in system.parameters.names}
    flat = {name: value.reshape(6) for name, value in values.items()}
    rows = [x.reshape(6, -1) for x in (q, v)]
    M = system.mass_matrix(q, parameters=values)
    np.testing.assert_array_equal(M.reshape(6, *M.shape[2:]), system.mass_matrix(rows[0], parameters=flat))
    found, plain = system.forward(q, v, parameters=values), system.forward(*rows, parameters=flat)
    assert found.status.shape == (2, 3)
    np.testing.assert_array_equal(found.status.reshape(6), plain.status)
    np.testing.assert_array_equal(found.acceleration.reshape(6, -1), plain.acceleration)


def test_one_bad_state_is_a_status():
    system = pendulum()
    for bad in (np.nan, np.inf):
        single, batch = system.forward([bad, 0.0], [0.0, 0.0]), system.forward([[bad, 0.0]], [0.0, 0.0])
        assert single.status == batch.status[0] != da.Status.UNIQUE


def test_a_system_can_be_pickled():
    system = pendulum().with_parameters(length=2.0)
    copy = pickle.loads(pickle.dumps(system))
    assert (copy.names, copy.coordinates, repr(copy)) == (system.names, system.coordinates, repr(system))
    state = [1.2, 1.6], [0.8, -0.6]
    np.testing.assert_array_equal(copy.solve(*state).acceleration, system.solve(*state).acceleration)
    np.testing.assert_array_equal(copy.energy(*state), system.energy(*state))
    assert copy.holonomic == system.holonomic

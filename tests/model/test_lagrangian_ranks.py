"""Redundant, contradicting and massless Lagrangians in compiled code: the statuses and numbers of `KKT`."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from tests.model.lagrangians import GRAVITY

SIDES = 0.7, 1.1, 0.8
"""Crank, coupler and rocker of the four-bar linkage, m; its ground is `GROUND`."""

GROUND = 1.2


def pendulum_on_two_rods(rate: bool = False) -> da.Lagrangian:
    """A point on a rod that is given twice, the second time in another unit; `rate` lets the second one grow."""
    q, v, t, growth = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t"), ca.SX.sym("growth")
    length = 1 + growth * t**2 if rate else 1
    return da.Lagrangian(
        q,
        v,
        kinetic=1.3 * ca.sumsqr(v) / 2,
        potential=1.3 * GRAVITY * q[1],
        constraints={"rod": (ca.sumsqr(q) - 1) / 2, "again": 500 * (ca.sumsqr(q) - length**2)},
        time=t if rate else None,
        parameters={"growth": (growth, 0.0)} if rate else None,
        coordinates=("x", "y"),
    )


def four_bar(twice: bool = True) -> da.Lagrangian:
    """Three links in absolute coordinates (x, y, angle); the pin to the ground at the rocker holds `twice`.

    Its rows are two equations of closure, and again along the diagonal: three rows of which two are independent.
    """
    q, v = ca.SX.sym("q", 9), ca.SX.sym("v", 9)
    ends = []
    for k, side in enumerate(SIDES):
        centre, along = q[3 * k : 3 * k + 2], ca.vertcat(ca.cos(q[3 * k + 2]), ca.sin(q[3 * k + 2]))
        ends.append((centre - side / 2 * along, centre + side / 2 * along))
    pins = [ends[0][0], ends[1][0] - ends[0][1], ends[2][0] - ends[1][1], ends[2][1] - ca.vertcat(GROUND, 0)]
    rows = {f"pin {k}": pin for k, pin in enumerate(pins)}
    constraints = [(f"{name} {axis}", row[i]) for name, row in rows.items() for i, axis in enumerate("xy")]
    if twice:
        constraints.append(("diagonal", pins[3][0] + 2 * pins[3][1]))
    masses = ca.vertcat(*(x for m, side in zip((1.0, 2.0, 1.5), SIDES, strict=True) for x in (m, m, m * side**2 / 12)))
    return da.Lagrangian(
        q, v, ca.dot(masses, v**2) / 2, GRAVITY * ca.dot(masses[1::3], q[1::3]), constraints=constraints
    )


def four_bar_states(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return closed positions of the linkage and velocities that its pins allow."""
    rng = np.random.default_rng(seed)
    crank = rng.uniform(0.5, 2.5, count)
    tip = SIDES[0] * np.stack((np.cos(crank), np.sin(crank)))
    across = np.array([[GROUND], [0.0]]) - tip
    reach = np.linalg.norm(across, axis=0)
    cosine = (SIDES[1] ** 2 + reach**2 - SIDES[2] ** 2) / (2 * SIDES[1] * reach)
    coupler = np.arctan2(across[1], across[0]) + np.arccos(cosine)
    knee = tip + SIDES[1] * np.stack((np.cos(coupler), np.sin(coupler)))
    rocker = np.arctan2(-knee[1], GROUND - knee[0])
    starts = np.zeros_like(tip), tip, knee
    q = np.empty((count, 9))
    for k, (side, angle, start) in enumerate(zip(SIDES, (crank, coupler, rocker), starts, strict=True)):
        q[:, 3 * k] = start[0] + side / 2 * np.cos(angle)
        q[:, 3 * k + 1] = start[1] + side / 2 * np.sin(angle)
        q[:, 3 * k + 2] = angle
    system = four_bar(twice=False)
    v = da.KKT(system.mass_matrix(q), system.jacobian(q)).project_velocity(rng.normal(size=q.shape))
    return q, v


def on_circle(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a pendulum's positions and velocities."""
    rng = np.random.default_rng(seed)
    angle, speed = rng.uniform(-3, 3, count), rng.normal(size=count)
    q = np.stack((np.sin(angle), -np.cos(angle)), axis=1)
    return q, speed[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1)


def by_kkt(system: da.Lagrangian, q: np.ndarray, v: np.ndarray, **rest) -> da.Solution:
    """Return the answers of `KKT` to the system's own matrices."""
    parameters = {"parameters": rest["parameters"]} if "parameters" in rest else {}
    M, A = (x(q, **rest) for x in (system.mass_matrix, system.jacobian))
    M, A = (np.broadcast_to(x, (len(q), *x.shape[-2:])) for x in (M, A))
    t = rest.get("t", 0.0)
    return da.KKT(M, A).solve(-system.bias(q, v, t, **parameters), system.drift(q, v, t, **parameters))


def inputs(system: da.Lagrangian, q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    values = {"q": q, "v": v, "force": np.zeros(q.shape[-1]), "t": np.zeros(1), "parameters": system.parameters.pack()}
    return [values[port.name] for port in system.compile().inputs]


CASES = {"two rods": (pendulum_on_two_rods, on_circle), "four-bar": (four_bar, four_bar_states)}


@pytest.mark.parametrize("case", CASES)
def test_redundant_rows_are_solved_as_by_kkt(case):
    """Kernel and method: status, accelerations and the least multipliers at many random states."""
    make, states = CASES[case]
    system, (q, v) = make(), states(60)
    expected = by_kkt(system, q, v)
    a, lam, status = system.compile()(*inputs(system, q, v))
    np.testing.assert_array_equal(expected.status, da.Status.REDUNDANT)
    assert np.mean(status == da.Status.REDUNDANT) > 0.98
    decided = status[:, 0] != da.Status.DECLINED
    np.testing.assert_array_equal(status[decided, 0], expected.status[decided])
    np.testing.assert_allclose(a[decided], expected.acceleration[decided], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(lam[decided], expected.multipliers[decided], rtol=1e-9, atol=1e-9)
    s = system.forward(q, v)
    np.testing.assert_array_equal(s.status, expected.status)
    np.testing.assert_allclose(s.acceleration, expected.acceleration, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(s.multipliers, expected.multipliers, rtol=1e-9, atol=1e-9)
    assert s.certificate.residual_motion.max() < 1e-13
    assert s.certificate.residual_constraint.max() < 1e-13
    assert s.certificate[0].rank == len(system.names) - 1


def test_the_redundant_row_does_not_change_the_motion():
    """Its multiplier takes a share of the others'; accelerations are those of the linkage without it."""
    q, v = four_bar_states(20, 3)
    with_row, without = four_bar().forward(q, v), four_bar(twice=False).forward(q, v)
    np.testing.assert_array_equal(without.status, da.Status.UNIQUE)
    np.testing.assert_allclose(with_row.acceleration, without.acceleration, rtol=1e-10, atol=1e-10)
    share = with_row["diagonal"]
    np.testing.assert_allclose(with_row["pin 3 x"] + share, without["pin 3 x"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(with_row["pin 3 y"] + 2 * share, without["pin 3 y"], rtol=1e-9, atol=1e-9)
    assert np.abs(share).max() > 0.1


@pytest.mark.parametrize("growth", [0.5, 1e-9, 1e-13])
def test_rods_that_grow_apart_contradict_each_other(growth):
    """d2/dt2 of the second rod differs at t = 0: inconsistent as long as that is more than rounding."""
    system, (q, v) = pendulum_on_two_rods(rate=True), on_circle(50, 1)
    parameters = {"growth": growth}
    expected = by_kkt(system, q, v, t=0.0, parameters=parameters)
    *_, status = system.compile()(q, v, np.zeros(2), np.zeros(1), np.array([growth]))
    decided = status[:, 0] != da.Status.DECLINED
    np.testing.assert_array_equal(status[decided, 0], expected.status[decided])
    s = system.forward(q, v, parameters=parameters)
    np.testing.assert_array_equal(s.status, expected.status)
    if growth == 0.5:
        assert (status == da.Status.INCONSISTENT).all()
        assert np.isnan(s.acceleration).all()
        assert np.isnan(s.multipliers).all()
        nearest = system.forward(q, v, parameters=parameters, inconsistent="least_squares")
        np.testing.assert_array_equal(nearest.status, da.Status.LEAST_SQUARES)
        with pytest.raises(da.SolvabilityError, match="again"):
            system.solve(q[0], v[0], parameters=parameters)


def test_off_the_constraints_rows_are_independent_and_left_to_kkt():
    """Three rows of the pin depend on each other anywhere; at a position that is open a loop's rows need not."""
    q, v, turn = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("turn")
    rows = {"x": q[0] - ca.cos(q[2]), "y": q[1] - ca.sin(q[2]), "radius": (q[0] ** 2 + q[1] ** 2 - 1) / 2}
    system = da.Lagrangian(q, v, ca.sumsqr(v) / 2, GRAVITY * q[1] + turn * q[2], constraints=rows, parameters=turn)
    angle = np.linspace(-3, 3, 20)
    closed = np.stack((np.cos(angle), np.sin(angle), angle), axis=1)
    rate = np.stack((-np.sin(angle), np.cos(angle), np.ones(20)), axis=1)
    *_, status = system.compile()(closed, rate, 0 * rate, np.ones(1))
    np.testing.assert_array_equal(status, da.Status.REDUNDANT)
    apart = closed + np.array([0.1, -0.2, 0.0])
    *_, status = system.compile()(apart, rate, 0 * rate, np.ones(1))
    np.testing.assert_array_equal(status, da.Status.DECLINED)
    s = system.forward(apart, rate, parameters={"turn": 1.0})
    expected = by_kkt(system, apart, rate, parameters={"turn": 1.0})
    np.testing.assert_array_equal(s.status, expected.status)
    assert (s.status == da.Status.UNIQUE).all()
    np.testing.assert_allclose(s.acceleration, expected.acceleration, rtol=1e-10, atol=1e-10)


def test_a_singular_configuration_is_declined_and_solved_by_kkt():
    """Two rods in line hold a point along one direction only, at that position: one rank less than elsewhere."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    rods = {"left": (ca.sumsqr(q) - 1) / 2, "right": (ca.sumsqr(q - ca.vertcat(2.0, 0, 0)) - 1) / 2}
    system = da.Lagrangian(q, v, ca.sumsqr(v) / 2, GRAVITY * q[2], constraints=rods)
    rng = np.random.default_rng(2)
    ordinary = np.array([1.0, 0.0, 0.0]) + 0.3 * rng.normal(size=(30, 3))
    line = np.array([[1.0, 0.0, 0.0]])
    q, v = np.vstack([ordinary, line]), np.zeros((31, 3))
    *_, status = system.compile()(q, v, 0 * v)
    assert (status[:30] == da.Status.UNIQUE).all()
    assert status[30] == da.Status.DECLINED
    s, expected = system.forward(q, v), by_kkt(system, q, v)
    np.testing.assert_array_equal(s.status, expected.status)
    assert s.status[30] == da.Status.REDUNDANT
    np.testing.assert_allclose(s.acceleration, expected.acceleration, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(s.multipliers, expected.multipliers, rtol=1e-9, atol=1e-9)


def feather(held: bool) -> da.Lagrangian:
    """A cart, and a coordinate without mass, which a spring and, where `held`, a row tie to it; twice."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    row = q[1] - 2 * q[0] ** 2
    return da.Lagrangian(
        q,
        v,
        kinetic=3 * v[0] ** 2 / 2,
        potential=5 * (q[1] - q[0]) ** 2,
        constraints={"tie": row, "again": -7 * row} if held else (),
        coordinates=("cart", "feather"),
    )


def test_massless_coordinates_are_solved_where_rows_hold_them_and_flagged_where_not():
    q, v = np.random.default_rng(4).normal(size=(2, 60, 2))
    for held, verdict in ((True, da.Status.REDUNDANT), (False, da.Status.MASSLESS)):
        system = feather(held)
        *_, status = system.compile()(q, v, 0 * v)
        np.testing.assert_array_equal(status, verdict)
        s, expected = system.forward(q, v), by_kkt(system, q, v)
        np.testing.assert_array_equal(s.status, expected.status)
        np.testing.assert_allclose(s.acceleration, expected.acceleration, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(s.multipliers, expected.multipliers, rtol=1e-9, atol=1e-9)


def test_a_mass_that_a_parameter_takes_away_is_no_massless_motion_where_rows_hold_it():
    """Code traced for a mass of one meets a mass of zero: it must not say that nothing holds the coordinate."""
    q, v, mass = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("mass")
    system = da.Lagrangian(
        q,
        v,
        kinetic=v[0] ** 2 / 2 + mass * v[1] ** 2 / 2,
        potential=GRAVITY * q[1],
        constraints={"tie": q[1] - ca.sin(q[0])},
        parameters={"mass": (mass, 1.0)},
    )
    q, v, masses = *np.random.default_rng(5).normal(size=(2, 4, 2)), np.array([1.0, 0.0, 1e-12, -1.0])
    *_, status = system.compile()(q, v, 0 * v, masses[:, None])
    np.testing.assert_array_equal(status[:, 0] == da.Status.MASSLESS, False)
    s = system.forward(q, v, parameters={"mass": masses})
    for k, value in enumerate(masses[:3]):
        one = system.solve(q[k], v[k], parameters={"mass": value})
        assert s.status[k] == one.status == da.Status.UNIQUE
        np.testing.assert_allclose(s.acceleration[k], one.acceleration, rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_single_precision_has_its_own_limits(case):
    """Statuses are those of double precision or declined, numbers agree to the digits of single precision."""
    make, states = CASES[case]
    system, (q, v) = make(), states(50, 6)
    expected = by_kkt(system, q, v)
    a, lam, status = system.compile(dtype="float32")(*(x.astype(np.float32) for x in inputs(system, q, v)))
    assert a.dtype == np.float32
    solved = status[:, 0] == da.Status.REDUNDANT
    assert np.isin(status, [da.Status.REDUNDANT, da.Status.DECLINED]).all()
    assert solved.mean() > 0.8
    for found, exact in ((a, expected.acceleration), (lam, expected.multipliers)):
        size = np.abs(exact[solved]).max(axis=1, keepdims=True)
        assert (np.abs(found[solved] - exact[solved]) <= 1e-3 * size).all()


@pytest.mark.parametrize("case", CASES)
def test_derivatives_of_the_kernel_are_those_of_the_answer(case):
    """`jacobian` and `jvp` of accelerations and least multipliers, against central differences of `KKT`."""
    make, states = CASES[case]
    system, (q, v) = make(), states(3, 8)
    kernel, step = system.compile(), 1e-6
    J = kernel.jacobian(outputs=["acceleration", "multipliers"])
    blocks = dict(zip((port.name for port in J.outputs), J(q, v, 0 * v), strict=True))
    along = np.random.default_rng(0).normal(size=(2, *q.shape))
    ahead, behind = (by_kkt(system, q + e * along[0], v + e * along[1]) for e in (step, -step))
    total = kernel.jvp(outputs=["acceleration", "multipliers"])(q, v, 0 * v, *along, 0 * v)
    for name, directional in zip(("acceleration", "multipliers"), total, strict=True):
        slope = (getattr(ahead, name) - getattr(behind, name)) / (2 * step)
        by_blocks = sum(
            np.einsum("kij,kj->ki", blocks[f"d{name}_d{x}"], way) for x, way in zip("qv", along, strict=True)
        )
        np.testing.assert_allclose(by_blocks, slope, rtol=1e-5, atol=1e-6 * np.abs(slope).max())
        np.testing.assert_allclose(directional, by_blocks, rtol=1e-9, atol=1e-9 * np.abs(slope).max())

"""Lagrangians in time: the same compiled loops as mechanisms, the same motions, whatever the stepper."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from benchmarks.dae_problems import andrews
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.model import Matrices
from dalembert.simulate.equations.lagrangian_system import LagrangianSystem
from dalembert.simulate.steppers import stiff
from tests.simulate import linkages

METHODS = {
    "dop853": ({"rtol": 1e-10, "atol": 1e-12}, 1e-8),
    "dopri5": ({"rtol": 1e-10, "atol": 1e-12}, 1e-8),
    "rk4": ({"step": 2e-3}, 1e-8),
    "bdf": ({"rtol": 1e-9, "atol": 1e-10}, 1e-5),
    "radau": ({"rtol": 1e-9, "atol": 1e-10}, 1e-6),
    "variational": ({"step": 5e-4}, 2e-4),
}
"""Smooth steppers with options, and how far they may be from a fine run after two seconds."""


@cache
def double_pendulum(length=0.8):
    """Two point masses on rods, by angles."""
    q, v, l2 = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("l2")
    x1, x2 = ca.sin(q[0]), ca.sin(q[0]) + l2 * ca.sin(q[1])
    y1, y2 = -ca.cos(q[0]), -ca.cos(q[0]) - l2 * ca.cos(q[1])
    rates = [ca.jtimes(each, q, v) for each in (x1, y1, x2, y2)]
    kinetic = (rates[0] ** 2 + rates[1] ** 2 + rates[2] ** 2 + rates[3] ** 2) / 2
    return da.Lagrangian(
        q, v, kinetic=kinetic, potential=9.81 * (y1 + y2), parameters={"l2": (l2, length)},
        coordinates=("upper", "lower"),
    )  # fmt: skip


@cache
def rods(redundant=False):
    """The same pendulum by Cartesian coordinates and two rods; `redundant`: one rod written twice, in other units."""
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    rows = {"upper rod": (ca.sumsqr(q[:2]) - 1) / 2, "lower rod": (ca.sumsqr(q[2:] - q[:2]) - 0.64) / 2}
    if redundant:
        rows["upper rod again"] = 25.0 * (ca.sumsqr(q[:2]) - 1)
    return da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * (q[1] + q[3]), constraints=rows)


@cache
def mechanism():
    """The same pendulum as a mechanism of revolute joints."""
    b = da.Builder("double pendulum", gravity=(0.0, -9.81, 0.0))
    for name, length in (("upper", 1.0), ("lower", 0.8)):
        b.body(f"{name} mass", mass=1.0, inertia=(0.0, 0.0, 0.0), center=(0.0, -length, 0.0))
    b.joint("upper", "revolute", parent="world", child="upper mass", axis=(0, 0, 1))
    b.joint("lower", "revolute", parent="upper mass", child="lower mass", axis=(0, 0, 1), position=(0, -1, 0))
    return b.build()


def places(run):
    """Cartesian coordinates of the two masses at the samples, whatever the form."""
    if run.q.shape[1] == 4:
        return run.q
    first = run["upper"]
    second = run["lower"] if isinstance(run.system, da.Lagrangian) else run["upper"] + run["lower"]
    x1, y1 = np.sin(first), -np.cos(first)
    return np.array([x1, y1, x1 + 0.8 * np.sin(second), y1 - 0.8 * np.cos(second)]).T


ANGLES = np.array([1.2, 0.4])


def starts():
    """(system, q, v) of the same pendulum in four forms."""
    q = np.array([np.sin(1.2), -np.cos(1.2), np.sin(1.2) + 0.8 * np.sin(0.4), -np.cos(1.2) - 0.8 * np.cos(0.4)])
    return {
        "angles": (double_pendulum(), ANGLES, np.zeros(2)),
        "rods": (rods(), q, np.zeros(4)),
        "redundant rods": (rods(True), q, np.zeros(4)),
        "mechanism": (mechanism(), [1.2, 0.4 - 1.2], np.zeros(2)),
    }


@cache
def reference():
    """Places at 0, 0.25, ..., 2 s by SciPy, from the accelerations that `KKT` gives."""
    system = double_pendulum()

    def rate(t, y):
        return np.concatenate([y[2:], system.solve(y[:2], y[2:]).acceleration])

    found = solve_ivp(rate, (0, 2), np.concatenate([ANGLES, np.zeros(2)]), "DOP853", np.arange(9) * 0.25,
                      rtol=1e-11, atol=1e-12).y.T  # fmt: skip
    x1, y1 = np.sin(found[:, 0]), -np.cos(found[:, 0])
    return np.array([x1, y1, x1 + 0.8 * np.sin(found[:, 1]), y1 - 0.8 * np.cos(found[:, 1])]).T


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["angles", "rods", "redundant rods", "mechanism"])
def test_every_form_of_a_double_pendulum_moves_alike(form, method):
    system, q, v = starts()[form]
    options, far = METHODS[method]
    run = da.simulate(system, 2.0, q, v, method=method, every=0.25, **options)
    assert run.ok, str(run)
    np.testing.assert_allclose(places(run), reference(), atol=far)
    scale = float(np.ptp(run.potential))
    assert np.abs(run.energy_residual).max() < far * scale * 10


def test_redundant_rows_have_least_norm_reactions_with_the_same_force():
    """The two copies of a rod pull together as the one does: 1 and 50 are their scales."""
    (single, q, v), (double, *_) = starts()["rods"], starts()["redundant rods"]
    one, two = (da.simulate(s, 1.0, q, v, every=0.5, rtol=1e-10, atol=1e-12) for s in (single, double))
    together = two["upper rod"] + 50.0 * two["upper rod again"]
    np.testing.assert_allclose(together, one["upper rod"], rtol=1e-6)
    np.testing.assert_allclose(two["upper rod again"], 50.0 * two["upper rod"], rtol=1e-6)


def test_andrews_squeezer_as_a_lagrangian_has_the_published_end():
    run = da.simulate(andrews.system(), 0.03, andrews.Q0, np.zeros(7), rtol=1e-10, atol=1e-12)
    assert run.ok, str(run)
    found = [linkages.ANDREWS[f"K{k}"] for k in range(1, 8)]
    np.testing.assert_allclose(run.q[-1], found, rtol=1e-7)
    assert "by_kkt" not in run.session.extra  # no state went through KKT: all in compiled code


@cache
def sleigh():
    """Chaplygin's sleigh and its start: its blade does not slip sideways, a row at velocity level."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    offset = 0.3
    center = [v[0] - offset * ca.sin(q[2]) * v[2], v[1] + offset * ca.cos(q[2]) * v[2]]
    system = da.Lagrangian(
        q, v, kinetic=(center[0] ** 2 + center[1] ** 2) / 2 + 0.1 * v[2] ** 2,
        constraints={"blade": -ca.sin(q[2]) * v[0] + ca.cos(q[2]) * v[1]},
    )  # fmt: skip
    return system, np.zeros(3), np.array([0.0, 0.0, 2.0])


def test_chaplygin_sleigh_keeps_energy_and_its_row():
    system, q, v = sleigh()
    run = da.simulate(system, 10.0, q, v, rtol=1e-10, atol=1e-12)
    assert run.ok, str(run)
    assert np.ptp(run.energy.total) < 1e-8
    assert run.velocity_residual.max() < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_events_as_expressions_and_as_functions_have_the_same_zeros(method):
    system = double_pendulum()
    angle = system.symbols.q[0]
    options, far = METHODS[method]

    def falls(t, q, v):
        return q[0]

    runs = [
        da.simulate(system, 2.0, ANGLES, np.zeros(2), method=method, events={"down": each}, **options)
        for each in (angle, falls)
    ]
    times = [[e.time for e in run.events] for run in runs]
    assert len(times[0]) == len(times[1]) > 0
    np.testing.assert_allclose(times[0], times[1], atol=far)
    assert {e.contact for e in runs[0].events} == {"down"}
    assert all(e.new in ("rising", "falling") for e in runs[0].events)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["angles", "redundant rods"])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(form, method, tmp_path, monkeypatch):
    monkeypatch.setattr(stiff, "BLOCK", 40)
    system, q, v = starts()[form]
    options = METHODS[method][0]
    whole = da.simulate(system, 0.4, q, v, method=method, file=tmp_path / "whole.h5", **options)
    seen = []

    def stop(t, q, v):
        seen.append(t)
        if len(seen) == (60 if method in ("bdf", "radau") else 7):
            raise KeyboardInterrupt

    part = da.simulate(system, 0.4, q, v, method=method, file=tmp_path / "part.h5", on_step=stop, **options)
    assert part.status == "interrupted"
    again = da.resume(tmp_path / "part.h5")
    assert again.ok, str(again)
    for name in ("t", "q", "v", "multipliers", "work"):
        np.testing.assert_array_equal(again.samples[name], whole.samples[name])
    read = da.Trajectory.load(tmp_path / "whole.h5")
    np.testing.assert_array_equal(read.q, whole.q)
    np.testing.assert_array_equal(read.repeat().q, whole.q)


def test_parameters_are_inputs_of_one_code():
    """Another length needs no other kernel, and a file holds the values."""
    system = double_pendulum()
    other = system.with_parameters(l2=1.3)
    runs = [da.simulate(s, 1.0, ANGLES, np.zeros(2)) for s in (system, other)]
    assert np.abs(runs[0].q[-1] - runs[1].q[-1]).max() > 1e-2
    codes = [LagrangianSystem(s).content() for s in (system, other)]
    assert codes[0] == codes[1]


@pytest.mark.parametrize("kind", ["numbers", "by name", "table", "expression", "function"])
def test_every_form_of_force_gives_the_same_motion(kind):
    x, v = ca.SX.sym("x", 2), ca.SX.sym("v", 2)
    system = da.Lagrangian(x, v, kinetic=ca.sumsqr(v), coordinates=("a", "b"))
    t = ca.SX.sym("t")
    forms = {
        "numbers": [1.0, -2.0],
        "by name": {"a": 1.0, "b": -2.0},
        "table": ([0.0, 1.0], [[1.0, -2.0], [1.0, -2.0]]),
        "expression": ca.Function("f", [t, x, v], [ca.vertcat(1.0, -2.0)]),
        "function": lambda t, q, v: np.array([1.0, -2.0]),
    }
    for given in (system, Matrices({"a": 2.0, "b": 2.0})):
        run = da.simulate(given, 1.0, [0.0, 0.0], [0.0, 0.0], force=forms[kind])
        np.testing.assert_allclose(run.q[-1], [0.25, -0.5], rtol=1e-9)
        np.testing.assert_allclose(run.work[-1], 0.25 + 1.0, rtol=1e-8)


def test_damping_is_in_the_balance_and_a_potential_in_time_is_not_judged():
    x, v, t = ca.SX.sym("x"), ca.SX.sym("v"), ca.SX.sym("t")
    damped = da.Lagrangian(x, v, kinetic=v**2 / 2, potential=x**2 / 2, dissipation=0.1 * v**2)
    run = da.simulate(damped, 10.0, [1.0], [0.0])
    assert run.ok, str(run)
    assert run.energy.total[-1] < 0.2
    assert np.abs(run.energy_residual).max() < 1e-7
    driven = da.Lagrangian(x, v, kinetic=v**2 / 2, potential=x**2 / 2 - x * ca.sin(t), time=t)
    assert da.simulate(driven, 10.0, [1.0], [0.0]).ok


def test_auto_says_why_and_names_no_method_that_it_would_not_take():
    system = double_pendulum()
    smooth = da.simulate(system, 1.0, ANGLES, np.zeros(2))
    assert smooth.method == "dop853"
    assert "variational" not in smooth.reason
    long = da.simulate(system, 20.0, ANGLES, np.zeros(2), rtol=1e-4, atol=1e-6, step=1e-3, every=1.0)
    assert long.method == "variational"
    assert "nothing takes energy out" in long.reason
    x, v = ca.SX.sym("x"), ca.SX.sym("v")
    stiff = da.Lagrangian(x, v, kinetic=v**2 / 2, dissipation=1e5 * v**2 / 2, potential=x**2 / 2)
    run = da.simulate(stiff, 1.0, [1.0], [0.0])
    assert run.method == "bdf"
    assert run.ok, str(run)


def test_what_a_stepper_cannot_take_is_said_with_the_reason():
    x, v, t = ca.SX.sym("x"), ca.SX.sym("v"), ca.SX.sym("t")
    turning = da.Lagrangian(x, v, kinetic=(1 + t) * v**2 / 2, time=t)
    with pytest.raises(da.UnsupportedError, match="kinetic energy depends on time"):
        da.simulate(turning, 1.0, [0.0], [1.0], method="variational", step=0.1)
    with pytest.raises(da.UnsupportedError, match="Matrices are Python functions"):
        da.simulate(Matrices({"x": 1.0}), 1.0, [0.0], [1.0], method="bdf")
    with pytest.raises(da.ModelError, match="did you mean 'force'"):
        da.simulate(turning, 1.0, [0.0], [1.0], torque=[1.0])


def test_a_large_lagrangian_is_solved_in_loops():
    """A hanging chain of 14 rods, n + m = 42: no straight-line code, and no state goes through `KKT`."""
    count = 14
    q, v = ca.SX.sym("q", 2 * count), ca.SX.sym("v", 2 * count)
    ends = [ca.SX.zeros(2), *(q[2 * k : 2 * k + 2] for k in range(count))]
    rows = {f"rod {k}": (ca.sumsqr(ends[k + 1] - ends[k]) - 0.01) / 2 for k in range(count)}
    chain = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * ca.sum1(q[1::2]), constraints=rows)
    start = np.array([[0.1 * (k + 1), 0.0] for k in range(count)]).ravel()
    run = da.simulate(chain, 0.5, start, np.zeros(2 * count))
    assert run.ok, str(run)
    assert run.position_residual.max() < 1e-12
    assert np.abs(run.energy_residual).max() < 1e-5
    assert "by_kkt" not in run.session.extra


def test_known_motion_goes_the_implicit_way():
    """A crank turned at a given rate: its torque is found, the trajectory has every coordinate."""
    q, v, u, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("u"), ca.SX.sym("t")
    system = da.Lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=ca.sumsqr(q[0] - q[1]) * 2.0, controls=u, time=t,
        forces=ca.vertcat(u, 0), coordinates=("crank", "load"),
    )  # fmt: skip
    run = da.simulate(system, 2.0, [0.0, 0.0], [1.0, 0.0], known={"crank": t}, every=0.5)
    assert run.ok, str(run)
    assert run.method == "bdf"
    np.testing.assert_allclose(run["crank"], run.t, atol=1e-14)
    np.testing.assert_allclose(run["load"], run.t - np.sin(2 * run.t) / 2, atol=1e-6)
    np.testing.assert_allclose(run["u"], 4 * (run["crank"] - run["load"]), atol=1e-5)
    q1, v1 = run.at(1.3)
    np.testing.assert_allclose([q1[0], v1[0]], [1.3, 1.0], atol=1e-12)

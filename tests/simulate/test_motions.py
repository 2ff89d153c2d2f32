"""Motions with known answers: closed forms, published limit cycles, orders of convergence, slopes, Coulomb normals."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.friction import Bounded, Coulomb, Dry, Hyperbolic, JointFriction, StaticKinetic
from dalembert.model import Matrices
from dalembert.simulate.runge_kutta import METHODS as STEPPERS


def oscillator(law, stiffness=1.0, surface=0.0):
    return Matrices(
        {"x": 1.0}, force=lambda q, v, t: -stiffness * q, friction=[Bounded("pad", [1.0], law, surface=surface)],
        energy=lambda q, v, t: 0.5 * float(v @ v) + 0.5 * stiffness * float(q @ q),
    )  # fmt: skip


@pytest.mark.parametrize("stepper", [name for name in STEPPERS if name != "rk4"])
def test_friction_oscillator_closed_form(stepper):
    """x'' + x = -Sgn(x'), x = 12, v = 6 (Siconos' FrictionOscillator): t_n = atan2(6, 13) + n pi, sticks at 14 - A."""
    tight = {"rtol": 1e-11, "atol": 1e-12} if stepper != "radau" else {"rtol": 1e-9, "atol": 1e-10}
    run = da.simulate(oscillator(Dry(1.0)), 30.0, [12.0], [6.0], stepper=stepper, **tight)
    A = np.sqrt(205.0) - 1.0
    times = np.arctan2(6.0, 13.0) + np.arange(8) * np.pi
    np.testing.assert_allclose([e.time for e in run.events], times, atol=2e-9 if stepper != "radau" else 1e-6)
    assert [e.new for e in run.events] == ["slip-", "slip+"] * 3 + ["slip-", "stick"]
    assert run.q[-1, 0] == pytest.approx(14.0 - A, abs=1e-8 if stepper != "radau" else 1e-6)
    assert run.v[-1, 0] == 0.0


def test_leine_block_on_belt_limit_cycle():
    """Leine et al. 1998: m = k = Fs = 1, belt 0.2 m/s, delta = 3; period 12.00103 (recomputed in 130 bits)."""
    run = da.simulate(oscillator(Hyperbolic(1.0), surface=0.2), 45.0, [1.0], [0.2], rtol=1e-12, atol=1e-14)
    starts = [e.time for e in run.events if e.old == "stick"]
    np.testing.assert_allclose(np.diff(starts), 12.00103, atol=5e-6)
    assert np.abs(run.energy_residual).max() <= 1e-11


@pytest.mark.parametrize(
    ("stepper", "order", "step"), [("rk4", 4, 0.2), ("dopri5", 5, 0.2), ("radau", 5, 0.2), ("dop853", 8, 0.8)]
)
def test_event_times_converge_at_the_order_of_the_stepper(stepper, order, step):
    """x'' + x = -Sgn(x') turns at atan2(6, 13) + n pi: the third turn, from steps h and h / 2."""
    exact = np.arctan2(6.0, 13.0) + 2.0 * np.pi

    def error(h):
        run = da.simulate(oscillator(Dry(1.0)), 7.0, [12.0], [6.0], stepper=stepper, step=h, rtol=1e-12, atol=1e-14)
        return abs(run.events[2].time - exact)

    errors = error(step), error(step / 2)
    assert errors[0] < 1e-3
    assert np.log2(errors[0] / errors[1]) > order - 0.6


def slope(angle, mu, unilateral=True):
    """A brick in Cartesian coordinates on a plane at an angle; its normal is a constraint row."""
    n, s = np.array([-np.sin(angle), np.cos(angle)]), np.array([np.cos(angle), np.sin(angle)])
    return Matrices(
        {"x": 2.0, "y": 2.0}, {"plane": n}, force=[0.0, -2.0 * 9.81],
        friction=[Coulomb("brick", s, mu, normal="plane", unilateral=unilateral)],
        energy=lambda q, v, t: float(v @ v) + 2.0 * 9.81 * q[1],
    )  # fmt: skip


@pytest.mark.parametrize(("off", "sticks"), [(-1e-9, True), (1e-9, False)])
def test_brick_at_the_friction_angle(off, sticks):
    run = da.simulate(slope(np.arctan(0.4) + off, 0.4), 2.0, [0.0, 0.0], [0.0, 0.0])
    if sticks:
        np.testing.assert_allclose(run.v, 0.0, atol=1e-14)
        assert run.events == ()
        np.testing.assert_array_equal(run.relative_velocity, 0.0)
    else:
        speed = np.linalg.norm(run.v[-1])
        assert speed == pytest.approx(2.0 * 9.81 * 1e-9 / np.cos(np.arctan(0.4)), rel=1e-5)
        assert run.modes[-1, 0] == -1


def test_brick_thrown_up_a_slope_stops_and_stays():
    angle, mu, speed = 0.3, 0.5, 3.0
    start = speed * np.array([np.cos(angle), np.sin(angle)])
    run = da.simulate(slope(angle, mu), 3.0, [0.0, 0.0], start, rtol=1e-12)
    braking = 9.81 * (np.sin(angle) + mu * np.cos(angle))
    assert [(e.old, e.new) for e in run.events] == [("slip+", "stick")]
    assert run.events[0].time == pytest.approx(speed / braking, rel=1e-12)
    assert np.linalg.norm(run.q[-1]) == pytest.approx(speed**2 / 2 / braking, rel=1e-11)
    assert np.abs(run.energy_residual).max() <= 1e-10
    np.testing.assert_allclose(np.asarray(run.reactions)[:, 0], 2.0 * 9.81 * np.cos(angle), rtol=1e-12)


def test_a_unilateral_contact_that_would_pull_ends_the_run():
    table = Matrices(
        {"x": 1.0, "y": 1.0}, {"table": [0.0, 1.0]}, force=lambda q, v, t: np.array([0.0, -10.0 + 8.0 * t]),
        friction=[Coulomb("block", [1.0, 0.0], 0.3, normal="table", unilateral=True)],
    )  # fmt: skip
    run = da.simulate(table, 3.0, [0.0, 0.0], [5.0, 0.0])
    assert run.status == "detached"
    assert "block" in run.message
    assert run.t[-1] == pytest.approx(1.25, abs=1e-9)


def test_static_limit_above_kinetic_force_jumps():
    """A pulled block: sticks to 5 N, then slides under 3 N; x'' = (t - 3) with F = t after t = 5."""
    system = Matrices(
        {"x": 1.0}, force=lambda q, v, t: np.array([t]), friction=[Bounded("pad", [1.0], StaticKinetic(5.0, 3.0))]
    )
    run = da.simulate(system, 7.0, [0.0], [0.0], rtol=1e-12)
    assert [(e.old, e.new) for e in run.events] == [("stick", "slip+")]
    assert run.events[0].time == pytest.approx(5.0, abs=1e-11)
    assert run.v[-1, 0] == pytest.approx((7 - 3) ** 2 / 2 - (5 - 3) ** 2 / 2, rel=1e-11)


def test_a_drop_of_one_contact_tears_the_other_loose():
    """Two blocks in a row on pads; the first drops from 5 N to 1 N and the second, of limit 6 N, cannot hold both."""
    pull = Matrices(
        {"x": 1.0, "y": 1.0}, {"rod": [1.0, -1.0]}, force=lambda q, v, t: np.array([t, 0.0]),
        friction=[Bounded("a", [1.0, 0.0], StaticKinetic(5.0, 1.0)), Bounded("b", [0.0, 1.0], StaticKinetic(6.0, 2.0))],
    )  # fmt: skip
    run = da.simulate(pull, 12.0, [0.0, 0.0], [0.0, 0.0])
    assert {(e.contact, e.new) for e in run.events} == {("a", "slip+"), ("b", "slip+")}
    assert run.events[0].time == run.events[1].time == pytest.approx(11.0, abs=1e-10)


def test_joint_friction_in_a_pendulum_stops_it():
    q, v = ca.SX.sym("phi"), ca.SX.sym("rate")
    pendulum = da.Lagrangian(
        q,
        v,
        kinetic=v**2 / 2,
        potential=-9.81 * ca.cos(q),
        friction=[JointFriction("hinge", "phi", Dry(0.8))],
        coordinates=["phi"],
    )
    run = da.simulate(pendulum, 20.0, [1.0], [0.0], rtol=1e-11)
    assert run.events[-1].new == "stick"
    assert abs(9.81 * np.sin(run.q[-1, 0])) <= 0.8
    assert np.abs(run.energy_residual).max() <= 1e-9
    assert run.v[-1, 0] == 0.0


def test_constrained_lagrangian_with_a_reaction_as_load():
    """A bead on a circular wire with friction mu |N|: mg cos(phi) + m v^2 carries it (both signs of N)."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    bead = da.Lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * q[1], constraints={"wire": (ca.sumsqr(q) - 1.0) / 2.0},
        friction=[Coulomb("bead", q[0] * v[1] - q[1] * v[0], 0.2, normal="wire")],
    )  # fmt: skip
    run = da.simulate(bead, 6.0, [1.0, 0.0], [0.0, 0.0], rtol=1e-11)
    assert run.ok
    assert np.abs(np.sum(run.q**2, axis=1) - 1.0).max() <= 1e-12
    assert np.abs(run.energy_residual).max() <= 1e-9
    phi = np.arctan2(run.q[-1, 1], run.q[-1, 0])
    assert run.modes[-1, 0] == 0
    assert abs(np.tan(phi + np.pi / 2)) <= 0.2 + 1e-9


@pytest.mark.parametrize("method", ["hybrid", "fixed"])
def test_every_method_runs_the_oscillator(method):
    extra = {"step": 0.1, "stepper": "rk4"} if method == "fixed" else {}
    run = da.simulate(oscillator(Dry(1.0)), 7.0, [3.2], [0.0], method=method, **extra)
    assert run.ok
    assert [e.new for e in run.events if e.new != "stick"] == ["slip+"] or method == "fixed"
    assert run.events[-1].new == "stick"
    assert run.q[-1, 0] == pytest.approx(-0.8, abs=1e-8 if method == "hybrid" else 0.1)


def test_light_and_massless_blocks_pull_through_a_spring():
    """A massless hook that sticks is legal: it holds while its contact does."""
    hook = Matrices(
        np.diag([1.0, 0.0]), force=lambda q, v, t: np.array([-(q[0] - q[1]), q[0] - q[1]]),
        friction=[Bounded("hook", [0.0, 1.0], Dry(5.0))], coordinates=("mass", "hook"),
    )  # fmt: skip
    run = da.simulate(hook, 3.0, [2.0, 0.0], [0.0, 0.0], rtol=1e-11)
    assert run.ok
    np.testing.assert_allclose(run.q[-1], [2.0 * np.cos(3.0), 0.0], atol=1e-9)


def test_time_dependent_surface():
    """A block on a shaking table: sticks while the table's acceleration is below mu g."""
    table = Matrices(
        {"x": 1.0},
        friction=[Bounded("table", [1.0], Dry(2.0), surface=lambda t: (0.5 * t**2, t))],
    )
    run = da.simulate(table, 3.0, [0.0], [0.0], rtol=1e-12)
    assert run.events[0].time == pytest.approx(2.0, abs=1e-10)
    assert run.v[-1, 0] == pytest.approx(2.0 + 2.0 * 1.0, rel=1e-10)  # 0.5 * 2^2, then 2 m/s^2 for 1 s


def test_no_contacts_and_every():
    free = Matrices({"x": 1.0}, force=lambda q, v, t: -q)
    run = da.simulate(free, 2.0, [1.0], [0.0], every=0.1, rtol=1e-12)
    assert run.events == ()
    assert np.count_nonzero(np.isin(np.round(run.t, 12), np.round(np.arange(21) * 0.1, 12))) >= 20
    np.testing.assert_allclose(run.q[:, 0], np.cos(run.t), atol=1e-10)
    assert run.forces.shape == (run.t.size, 0)
    with pytest.raises(da.ModelError, match="no energy"):
        _ = run.energy.total


def test_applied_force():
    run = da.simulate(Matrices({"x": 2.0}), 2.0, [0.0], [0.0], force=lambda t, q, v: [6.0])
    assert run.v[-1, 0] == pytest.approx(6.0)


def test_chattering_is_reported():
    """A load that turns its sign ever faster towards t = 1, and the block with it: infinitely many events before."""
    wild = Matrices(
        {"x": 1.0}, force=lambda q, v, t: np.array([3.0 * np.sin(6.15 * np.log(abs(1.0 - t) + 1e-17))]),
        friction=[Bounded("pad", [1.0], Dry(0.5))],
    )  # fmt: skip
    run = da.simulate(wild, 1.5, [0.0], [0.0], rtol=1e-6, atol=1e-17)
    assert run.status == "chattering"
    assert "pad" in run.message
    assert "Zeno" in run.message
    assert run.t[-1] == pytest.approx(1.0, abs=1e-2)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"q": [0.0, 1.0]}, da.ShapeError, "q must have shape"),
        ({"v": [np.nan]}, da.ModelError, "finite"),
        ({"duration": -1.0}, da.ModelError, "duration"),
        ({"duration": np.nan}, da.ModelError, "duration"),
        ({"stepper": "dop835"}, da.ModelError, "did you mean 'dop853'"),
        ({"stepper": "rk4"}, da.ModelError, "give step="),
        ({"method": "hybird"}, da.ModelError, "did you mean 'hybrid'"),
        ({"method": "fixed"}, da.ModelError, "needs step="),
        ({"sticking": ["pad"], "v": [1.0]}, da.ModelError, "'pad' cannot stick.*1 m/s"),
        ({"sticking": ["pat"]}, da.ModelError, "no contact is called 'pat'"),
        ({"resolver": "exact"}, da.ModelError, "no option 'resolver'"),
        ({"method": "fixed", "step": 0.1, "resolver": "exakt"}, da.ModelError, "resolver"),
        ({"rtol": 0.0}, da.ModelError, "rtol"),
        ({"step": -1.0}, da.ModelError, "step"),
        ({"step": "a"}, da.ModelError, "step='a'"),
        ({"every": "a"}, da.ModelError, "every='a'"),
        ({"t": np.nan}, da.ModelError, "t=nan"),
        ({"t": None}, da.ModelError, "t=None"),
        ({"method": ["events"]}, da.ModelError, "not one of"),
        ({"stepper": ["dop853"]}, da.ModelError, "not one of"),
        ({"method": "fixed", "step": 0.1, "resolver": ["exact"]}, da.ModelError, "resolver"),
        ({"force": [1.0, 2.0]}, da.ShapeError, r"shape \(1,\)"),
        ({"force": lambda t, q, v: [1.0, 2.0]}, da.ShapeError, r"\(1,\)"),
        ({"force": lambda t, q, v: "a"}, da.ShapeError, "no numbers"),
        ({"force": lambda t, q, v: [np.inf if t > 0.5 else 0.0]}, da.ModelError, r"force\[0\] is inf at t = 0.5"),
    ],
)
def test_bad_input_is_named(change, error, words):
    data = {"duration": 1.0, "q": [1.0], "v": [0.0]} | change
    with pytest.raises(error, match=words):
        da.simulate(oscillator(Dry(1.0)), **data)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"load": "a"}, "'pad': load="),
        ({"load": np.nan}, "'pad': its load is nan"),
        ({"surface": np.nan}, "'pad': its relative velocity is nan"),
        ({"surface": lambda t: 1.0}, "'pad': surface="),
        ({"surface": "a"}, "'pad': surface="),
    ],
)
def test_loads_and_surfaces_that_are_none_are_named(change, words):
    with pytest.raises(da.ModelError, match=words):
        da.simulate(Matrices({"x": 1.0}, friction=[Bounded("pad", [1.0], 1.0, **change)]), 1.0, [0.0], [0.0])


def test_what_is_no_system_and_what_a_trajectory_does_not_have():
    with pytest.raises(da.ModelError, match="not int"):
        da.simulate(42, 1.0, [0.0], [0.0])
    run = da.simulate(oscillator(Dry(1.0)), 0.1, [1.0], [0.0], sticking="pad", every=0.05)
    for wrong in (lambda: run[0], lambda: run.plot([])):
        with pytest.raises(da.ModelError):
            wrong()


def test_contradictory_initial_values_are_refused():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    wire = da.Lagrangian(q, v, kinetic=ca.sumsqr(v) / 2, constraints={"wire": (ca.sumsqr(q) - 1.0) / 2.0})
    with pytest.raises(da.ModelError, match="the initial v misses 'wire'"):
        da.simulate(wire, 1.0, [1.0, 0.0], [1.0, 0.0])
    with pytest.raises(da.ModelError, match="the initial q misses 'wire'"):
        da.simulate(wire, 1.0, [1.1, 0.0], [0.0, 1.0])
    sled = Matrices({"x": 1.0, "y": 1.0}, {"floor": [0, 1]}, friction=[Coulomb("foot", [1, 0], 0.3, normal="floor")])
    with pytest.raises(da.ModelError, match="the initial v misses 'floor'"):
        da.simulate(sled, 1.0, [0.0, 0.0], [0.0, 1.0])


def test_fixed_steps_take_reactions_as_limits_without_being_told():
    def push(q, v, t):
        return np.array([t, -9.81])

    foot = Coulomb("foot", [1, 0], 0.3, normal="floor")
    sled = Matrices({"x": 1.0, "y": 1.0}, {"floor": [0, 1]}, force=push, friction=[foot])
    run = da.simulate(sled, 4.0, [0.0, 0.0], [0.0, 0.0], method="fixed", step=0.05)
    assert run.events[0].time == pytest.approx(0.3 * 9.81, abs=0.051)


@pytest.mark.parametrize(
    ("friction", "error", "words"),
    [
        ([Bounded("a", [1.0], 1.0), Bounded("a", [1.0], 1.0)], da.ModelError, "two contacts are called 'a'"),
        ([Bounded("a", [1.0, 2.0], 1.0)], da.ShapeError, "'a'"),
        ([Bounded("a", [0.0], 1.0)], da.ModelError, "not zero"),
        ([Bounded("a", ["x"], 1.0)], da.ModelError, "'a'"),
        ([Coulomb("a", [1.0], 0.3, normal="floor")], da.ModelError, "'floor'"),
        ([JointFriction("a", "y", 0.3)], da.ModelError, "'y'"),
        ([JointFriction("a", 3, 0.3)], da.ModelError, "coordinate 3"),
        ([Bounded("a", lambda q, t: [1.0], 0.3)], da.ModelError, "drift="),
        (Bounded("a", [1.0], 1.0), da.ModelError, "list of contacts"),
        ([1.0], da.ModelError, "not a contact"),
    ],
)
def test_bad_contacts_are_named(friction, error, words):
    with pytest.raises(error, match=words):
        Matrices({"x": 1.0}, friction=friction)


@pytest.mark.parametrize(
    ("contact", "words"),
    [
        (lambda q, v: Bounded("a", v**2, 1.0), "not linear"),
        (lambda q, v: Bounded("a", 1.0, 1.0), "depends on no velocity"),
        (lambda q, v: Coulomb("a", v, 0.3, normal="floor"), "'floor'"),
        (lambda q, v: JointFriction("a", "y", 0.3), "'y'"),
        (lambda q, v: Bounded("a", v, 1.0, surface=lambda t: (0.0, 0.0)), "expressions"),
        (lambda q, v: Bounded("a", v + ca.SX.sym("w"), 1.0), "'w'"),
    ],
)
def test_bad_contacts_of_a_lagrangian_are_named(contact, words):
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    with pytest.raises(da.ModelError, match=words):
        da.Lagrangian(q, v, kinetic=v**2 / 2, friction=[contact(q, v)])

"""Friction in a plane, in time: sliding follows the velocity, stick is exact, slip ends where it should."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.friction import Bounded, Coulomb, StaticKinetic, Stribeck
from dalembert.model import Matrices
from dalembert.simulate.runge_kutta import METHODS as STEPPERS

G = 9.81
MASS = 2.0

TIGHT = {"rtol": 1e-10, "atol": 1e-12}


def puck(load: str, law, force=lambda t: np.zeros(2), surface=0.0, down=G):
    """A puck on a table, its friction limited by a number or by the reaction of the table."""
    if load == "given":
        law = law * MASS * down if isinstance(law, float) else law
        contact = Bounded("puck", [[1, 0], [0, 1]], law, surface=surface)
        return Matrices({"x": MASS, "y": MASS}, force=lambda q, v, t: force(t), friction=[contact])
    contact = Coulomb("puck", [[1, 0, 0], [0, 1, 0]], law, normal="table", unilateral=True, surface=surface)
    return Matrices(
        {"x": MASS, "y": MASS, "z": MASS}, {"table": [0.0, 0.0, 1.0]},
        force=lambda q, v, t: np.array([*force(t), -MASS * down]), friction=[contact],
    )  # fmt: skip


def state(load: str, x: float, y: float) -> list[float]:
    return [x, y] if load == "given" else [x, y, 0.0]


LOADS = ("given", "reaction")


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("surface", [0.0, (0.5, -0.25)])
def test_a_puck_brakes_on_a_straight_line_and_stays(load, surface):
    """Seen from the table (or a conveyor): a constant deceleration mu g against the relative velocity."""
    belt = np.array(surface) * np.ones(2)
    u = np.array([3.0, 4.0])
    system = puck(load, 0.3, surface=list(surface) if surface else 0.0)
    run = da.simulate(system, 3.0, state(load, 0, 0), state(load, *(u + belt)), **TIGHT)
    stop = 5.0 / (0.3 * G)
    assert [(e.contact, e.old, e.new) for e in run.events] == [("puck", "slip", "stick")]
    assert run.events[0].time == pytest.approx(stop, abs=2e-13)
    assert np.all(run.relative_velocity[run.t > stop + 1e-9] == 0.0)
    assert np.allclose(run.q[-1, :2], u * stop / 2 + 3.0 * belt, atol=1e-12)
    assert np.allclose(run.forces[0], -0.3 * MASS * G * u / 5.0, rtol=1e-14)
    assert run.heat[-1] == pytest.approx(MASS / 2 * 25.0, rel=1e-12)
    assert run["puck"].shape == (run.t.size, 2)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("ratio", [1.2, 2.0, 5.0])
def test_a_puck_thrown_sideways_on_a_slope_stops_in_time(load, ratio):
    """With mu = ratio tan(slope) and w the speed downhill, ratio v + w falls at the rate g sin(slope) (ratio^2 - 1)."""
    slope, v0 = 0.3, 1.5
    pull = G * np.sin(slope)
    system = puck(load, ratio * np.tan(slope), lambda t: np.array([0.0, -MASS * pull]), down=G * np.cos(slope))
    run = da.simulate(system, 8.0, state(load, 0, 0), state(load, v0, 0), **TIGHT)
    stop = ratio * v0 / (pull * (ratio**2 - 1.0))
    assert [(e.old, e.new) for e in run.events] == [("slip", "stick")]
    assert run.events[0].time == pytest.approx(stop, abs=1e-10)
    assert np.all(run.v[-1] == 0.0)
    sliding = run.t < stop
    speed = np.hypot(run.v[:, 0], run.v[:, 1])
    kept = ratio * (speed - v0) - run.v[:, 1] - pull * (1.0 - ratio**2) * run.t
    assert np.abs(kept[sliding]).max() < 1e-9
    energy = MASS / 2 * speed**2 + MASS * pull * run.q[:, 1]
    assert np.abs(energy - energy[0] - run.friction_work).max() < 1e-9
    assert np.abs(run.heat + run.friction_work).max() < 1e-9


def test_at_the_friction_angle_half_of_the_speed_is_left():
    """Mu = tan(slope): v + w = v0 for ever, so a puck thrown sideways ends downhill with v0 / 2."""
    slope = 0.4
    pull = np.array([0.0, -MASS * G * np.sin(slope)])
    run = da.simulate(puck("given", np.tan(slope), lambda t: pull, down=G * np.cos(slope)), 8.0, [0, 0], [1.0, 0.0])
    speed = np.hypot(*run.v.T)
    assert run.ok
    assert not run.events
    assert np.abs(speed - run.v[:, 1] - 1.0).max() < 1e-9
    assert run.v[-1, 1] == pytest.approx(-0.5, abs=1e-6)


@pytest.mark.parametrize(("off", "slips"), [(1e-9, True), (-1e-9, False)])
@pytest.mark.parametrize("load", LOADS)
def test_a_puck_at_the_friction_angle(load, off, slips):
    """One part in 10^9 above the limit it slips, straight and slowly; below it sticks, in any direction."""
    way = np.array([np.cos(1.1), np.sin(1.1)])
    run = da.simulate(puck(load, 0.3, lambda t: 0.3 * MASS * G * (1.0 + off) * way), 5.0, state(load, 0, 0),
                      state(load, 0, 0))  # fmt: skip
    assert run.modes[-1, 0] == (2 if slips else 0)
    expected = 0.5 * 0.3 * G * off * 25.0 if slips else 0.0
    assert np.allclose(run.q[-1, :2], expected * way, rtol=1e-5, atol=1e-14)


def turning(t):
    return np.array([4.0 * t, 1.5 * t * t])


@pytest.mark.parametrize("load", LOADS)
def test_stick_is_lost_under_a_force_that_turns(load):
    """Onset where |F| = limit; then against Radau IIA of SciPy, started where the direction has settled."""
    limit = 0.3 * MASS * G
    run = da.simulate(puck(load, 0.3, turning), 3.0, state(load, 0, 0), state(load, 0, 0), **TIGHT)
    onset = np.sqrt((-16.0 + np.sqrt(256.0 + 9.0 * limit**2)) / 4.5)
    assert [(e.old, e.new) for e in run.events] == [("stick", "slip")]
    assert run.events[0].time == pytest.approx(onset, abs=1e-10)
    assert np.all(run.q[run.t <= onset - 1e-9] == 0.0)

    def rate(t, y):
        F, u = turning(t), y[2:]
        return [*u, *((F - limit * u / np.hypot(*u)) / MASS)]

    s = 1e-4
    way = turning(onset) / limit
    grows = way @ np.array([4.0, 3.0 * onset]) / MASS
    begin = [*(way * grows * s**3 / 6.0), *(way * grows * s**2 / 2.0)]
    reference = solve_ivp(rate, (onset + s, 3.0), begin, "Radau", rtol=1e-10, atol=1e-13)
    assert np.allclose(run.q[-1, :2], reference.y[:2, -1], atol=2e-8)


@pytest.mark.parametrize("law", [StaticKinetic(6.0, 4.0), Stribeck(6.0, 4.0, 0.05, viscous=0.1)])
def test_a_static_limit_above_the_kinetic_force_in_a_plane(law):
    """A puck on a spring that is pulled round a circle: it sticks and slips; laws and energy hold in every sample."""
    pull = Matrices(
        {"x": 1.0, "y": 1.0},
        force=lambda q, v, t: 20.0 * (np.array([0.5 * t, 0.2 * np.sin(t)]) - q),
        friction=[Bounded("puck", [[1, 0], [0, 1]], law)],
    )
    run = da.simulate(pull, 6.0, [0, 0], [0, 0], rtol=1e-8, atol=1e-10)
    assert run.ok
    assert run.events[0].new == "slip"
    assert {e.new for e in run.events} == {"slip", "stick"}
    size, sliding = np.hypot(*run.forces.T), run.modes[:, 0] == 2
    assert np.all(size[~sliding] <= 6.0 * (1 + 1e-9))
    speed = np.hypot(*run.relative_velocity.T)
    moving = sliding & (speed > 0.0)
    assert np.allclose(size[moving], law.kinetic(speed[moving]), rtol=1e-9)
    along = np.einsum("ij,ij->i", run.forces, run.relative_velocity)[moving] / (size * speed)[moving]
    assert np.allclose(along, -1.0, atol=1e-6)
    assert np.all(np.diff(run.heat) >= -1e-12)


def sledge():
    """A rod on three feet, each with its own limit: 6 directions hold 3 coordinates; it slides and spins."""
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    feet = {"left": (-0.5, 0.1, 1.0), "right": (0.4, 0.2, 2.0), "back": (0.0, -0.6, 1.5)}
    friction = [
        Bounded(name, [q[0] + ca.cos(q[2]) * a - ca.sin(q[2]) * b, q[1] + ca.sin(q[2]) * a + ca.cos(q[2]) * b], limit)
        for name, (a, b, limit) in feet.items()
    ]
    kinetic = 0.5 * (v[0] ** 2 + v[1] ** 2) + 0.05 * v[2] ** 2
    return da.Lagrangian(q, v, kinetic=kinetic, coordinates=("x", "y", "turn"), friction=friction)


@pytest.mark.parametrize("stepper", [name for name in STEPPERS if name != "rk4"])
def test_a_sledge_slides_and_spins_until_a_foot_stops_and_then_the_others(stepper):
    loose = {"rtol": 1e-7, "atol": 1e-9} if stepper == "radau" else {}
    run = da.simulate(sledge(), 2.0, [0, 0, 0], [1.0, 0.5, 3.0], stepper=stepper, **TIGHT | loose)
    assert run.ok, str(run)
    assert {e.contact for e in run.events if e.new == "stick"} == {"left", "right", "back"}
    assert [e.contact for e in run.events] == ["back", "left", "right"]
    assert np.allclose([e.time for e in run.events], [0.280662816005, 0.288519075452, 0.288519075452], atol=1e-8)
    assert np.all(run.v[-1] == 0.0)
    assert np.abs(run.energy_residual).max() < (1e-5 if loose else 1e-9)
    assert run.heat[-1] == pytest.approx(run.energy.total[0], rel=1e-5 if loose else 1e-9)


def test_a_plane_with_a_fixed_step():
    """The seed's way with exact resolution: off by steps, at rest in the end."""
    run = da.simulate(puck("reaction", 0.3), 0.3, [0, 0, 0], [0.3, 0.4, 0.0], method="fixed", step=1e-3, stepper="rk4",
                      resolver="exact")  # fmt: skip
    assert run.events[-1].time == pytest.approx(0.5 / (0.3 * G), abs=2e-3)
    assert np.all(run.v[-1, :2] == 0.0)


def test_a_plane_beside_a_line_with_a_moving_surface():
    """A surface may have two entries; misfits and wrong counts are named."""
    with pytest.raises(da.ModelError, match="'puck': surface has 3 entries for 2"):
        puck("given", 0.3, surface=[1, 2, 3]).contact_terms(np.zeros(2), np.zeros(2), 0.0)
    with pytest.raises(da.ModelError, match="one direction or two for a plane, not 3"):
        Bounded("puck", [[1, 0], [0, 1], [1, 1]], 1.0)
    run = da.simulate(puck("given", 0.3), 1.0, [0, 0], [0, 0], sticking=["puck"])
    assert run.ok
    assert not run.events
    with pytest.raises(da.ModelError, match=r"'puck' cannot stick at the start: its relative velocity is 3, 4 m/s"):
        da.simulate(puck("given", 0.3), 1.0, [0, 0], [3, 4], sticking=["puck"])

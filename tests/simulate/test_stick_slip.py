"""Stick-slip, alone and with impacts: one engine for mechanisms and Lagrangians, event by event."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import dalembert as da
from dalembert.examples import two_blocks
from dalembert.friction import (
    Bounded,
    Coulomb,
    ExpressionLaw,
    Hyperbolic,
    JointFriction,
    StaticKinetic,
    Stribeck,
    Unilateral,
)
from dalembert.model import Matrices
from tests.reference.dry.simulate import simulate as simulate_dry
from tests.simulate.belt_events import EVENTS

G = 9.81

TIGHT = {"rtol": 1e-11, "atol": 1e-13}


def moved(run):
    """Return the events of a run as (contact, before, after), and their times."""
    return [(e.contact, e.old, e.new) for e in run.events], np.array([e.time for e in run.events])


def sliders(*parts):
    """Return bodies on parallel rails, each (mass, stiffness, damping) of its joint."""
    b = da.Builder("rails")
    for k, (mass, stiffness, damping) in enumerate(parts):
        b.body(f"body {k}", mass=mass, inertia=(1.0, 1.0, 1.0))
        b.joint(
            f"x{k}", "prismatic", parent="world", child=f"body {k}", axis=(1, 0, 0), stiffness=stiffness,
            damping=damping,
        )  # fmt: skip
    return b.build()


# ----------------------------------------------------------------------------------------------------------------------
# A violin string under a bow: two modes of the string, which the bow excites by the falling branch of friction.


BOW = (Stribeck(1.0, 0.3, 0.1), StaticKinetic(1.0, 0.4), Hyperbolic(1.0, 5.0))

STRING = ((0.02, 80.0, 0.02), (0.015, 220.0, 0.03))
"""Mass, stiffness and damping of two modes; the bow sees their sum."""


def bowed_mechanism(law):
    """Return the string as a mechanism and the bow as a contact of it."""
    return sliders(*STRING), [Bounded("bow", [1.0, 1.0], law, surface=0.2)]


def bowed_lagrangian(law):
    """Return the string as a Lagrangian."""
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    m, k, c = (np.array(x) for x in zip(*STRING, strict=True))
    return da.Lagrangian(
        q, v, kinetic=ca.dot(m, v**2) / 2, potential=ca.dot(k, q**2) / 2, dissipation=ca.dot(c, v**2) / 2,
        friction=[Bounded("bow", v[0] + v[1], law, surface=0.2)],
    )  # fmt: skip


@pytest.mark.parametrize("law", BOW, ids=lambda law: type(law).__name__)
def test_a_violin_bow_as_a_mechanism_and_as_a_lagrangian(law):
    """Event by event, and beside the plain engine."""
    m, bow = bowed_mechanism(law)
    start = [0.0, 0.0], [0.1, 0.1]
    run = da.simulate(m, 1.0, *start, contacts=bow, **TIGHT)
    other = da.simulate(bowed_lagrangian(law), 1.0, *start, **TIGHT)
    plain = simulate_dry(bowed_lagrangian(law), 1.0, *start, **TIGHT)
    assert run.ok, run
    assert other.ok, other
    (words, times), (words2, times2), (words3, times3) = moved(run), moved(other), moved(plain)
    assert words == words2 == words3
    assert len(words) >= 10
    np.testing.assert_allclose(times, times2, rtol=0, atol=1e-9)
    np.testing.assert_allclose(times, times3, rtol=0, atol=1e-8)
    np.testing.assert_allclose(run.q[-1], other.q[-1], rtol=0, atol=1e-9)
    assert np.abs(other.energy_residual).max() <= 1e-9
    stuck = run.modes[:, 0] == 0
    assert stuck.any()
    np.testing.assert_allclose(run.v[stuck].sum(axis=1), 0.2, rtol=0, atol=1e-15)
    assert np.all(np.abs(run["bow"][stuck]) <= law.static())
    assert np.all(run.relative_velocity[stuck] == 0.0)


# ----------------------------------------------------------------------------------------------------------------------
# The two blocks on a belt of seed 001 as a mechanism: redundant contacts.


def test_two_blocks_on_a_belt_as_a_mechanism_have_all_events_to_30_seconds():
    """29 instants, 38 changes of mode, against forty digits."""
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    pull = -ca.vertcat(28.0 * q[0] - 14.0 * q[1], 14.0 * q[1] - 14.0 * q[0])
    contacts = [
        Bounded("belt 1", [1.0, 0.0], Hyperbolic(4.0), surface=0.3),
        JointFriction("belt 2", "x1", Hyperbolic(7.0), surface=0.3),
        Bounded("between", [1.0, -1.0], Hyperbolic(5.0)),
    ]
    run = da.simulate(
        sliders((4.0, 0.0, 0.0), (7.0, 0.0, 0.0)), 30.0, [0.0, 0.0], [0.3, 0.3], contacts=contacts,
        force=ca.Function("elastic", [t, q, v], [pull]), rtol=1e-13, atol=1e-15,
    )  # fmt: skip
    assert run.ok, run
    words, times = moved(run)
    assert words == [row[1:] for row in EVENTS]
    assert np.unique(times).size == 29
    np.testing.assert_allclose(times, [float(row[0]) for row in EVENTS], rtol=0, atol=2e-9)
    assert np.all(run.v[run.modes[:, 0] == 0, 0] == 0.3)
    for s in np.flatnonzero((run.modes == 0).all(axis=1)):
        needed = two_blocks().bias(run.q[s], run.v[s], 0.0)
        np.testing.assert_allclose(np.array([[1, 0, 1], [0, 1, -1]]) @ run.forces[s], needed, atol=1e-12)


# ----------------------------------------------------------------------------------------------------------------------
# A block on a belt that runs over a pulley: it sticks, slides, flies off the edge, and lands.


def test_a_block_on_a_belt_falls_off_its_edge():
    """Belt at y = 0 up to x = 0, then round a pulley of radius r; the floor is at y = -0.5."""
    r, mu, u, floor = 0.05, 0.5, 0.3, 0.5
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    x, y = q[0], q[1]
    reach = ca.sqrt(ca.fmax(x, 0.0) ** 2 + (y + r) ** 2)
    outward = ca.vertcat(ca.fmax(x, 0.0), y + r) / reach
    block = da.Lagrangian(
        q, v, kinetic=ca.sumsqr(v) / 2, potential=G * y,
        unilateral=[
            Unilateral("belt", outward[1] * v[0] - outward[0] * v[1], mu, gap=reach - r, surface=u),
            Unilateral("floor", v[0], 0.1, gap=y + floor, restitution=0.3),
        ],
    )  # fmt: skip
    run = da.simulate(block, 2.0, [-0.15, 0.0], [u, 0.0], **TIGHT)
    slip = brentq(lambda a: np.sin(a) - mu * (np.cos(a) - u * u / r / G), 0.0, 1.0)
    first = 0.15 / u + slip * r / u
    sliding = next(e for e in run.events if (e.contact, e.new) == ("belt", "slip"))
    assert sliding.time == pytest.approx(first, abs=1e-9)

    def rate(t, z):
        return [z[1], (G * np.sin(z[0]) - mu * (G * np.cos(z[0]) - r * z[1] ** 2)) / r]

    def leaves(t, z):
        return G * np.cos(z[0]) - r * z[1] ** 2

    leaves.terminal = True
    way = solve_ivp(rate, (first, first + 1.0), [slip, u / r], "DOP853", events=leaves, rtol=1e-12, atol=1e-13)
    a, w = way.y[:, -1]
    opened = next(e for e in run.events if (e.contact, e.new) == ("belt", "open"))
    assert opened.time == pytest.approx(way.t[-1], abs=1e-7)
    place, speed = r * np.array([np.sin(a), np.cos(a) - 1.0]), r * w * np.array([np.cos(a), -np.sin(a)])
    fall = (speed[1] + np.sqrt(speed[1] ** 2 + 2 * G * (place[1] + floor))) / G
    struck = next(e for e in run.events if (e.contact, e.new) == ("floor", "impact"))
    assert struck.time == pytest.approx(way.t[-1] + fall, abs=1e-7)
    assert run.q[-1, 1] == pytest.approx(-floor, abs=1e-10)
    assert run.v[-1, 0] == 0.0
    assert np.abs(run.energy_residual).max() < 1e-9


# ----------------------------------------------------------------------------------------------------------------------
# A drill string: torsion and weight on bit, friction by the reaction of a wavy rock, bit bounce.


MASS, INERTIA, AXIAL, TORSION, DAMPING, DRIVE, LEVER = 2.0, 0.05, 800.0, 2.0, 0.02, 5.0, 0.08
WAVES, HEIGHT, DEPTH, RESTITUTION = 3, 0.02, 0.02, 0.2
ROCK = Stribeck(0.8, 0.35, 0.05)
START = [-DEPTH, 0.0], [0.0, 0.0]


def drill():
    """Return a bit (height z, angle phi) on springs under a drive that turns at constant speed."""
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    z, phi = q[0], q[1]
    potential = MASS * G * z + AXIAL * z**2 / 2 + TORSION * (phi - DRIVE * t) ** 2 / 2
    gap = z - HEIGHT * ca.sin(WAVES * phi) + DEPTH
    return da.Lagrangian(
        q, v, kinetic=MASS * v[0] ** 2 / 2 + INERTIA * v[1] ** 2 / 2, potential=potential,
        dissipation=DAMPING * v[1] ** 2 / 2, time=t,
        unilateral=[Unilateral("rock", LEVER * v[1], ROCK, gap=gap, restitution=RESTITUTION)],
    )  # fmt: skip


def surface(y):
    """Return gap, its row (2,) and the part of its second rate that accelerations do not make."""
    slope = -HEIGHT * WAVES * np.cos(WAVES * y[1])
    return (
        y[0] - HEIGHT * np.sin(WAVES * y[1]) + DEPTH,
        np.array([1.0, slope]),
        HEIGHT * WAVES**2 * np.sin(WAVES * y[1]) * y[3] ** 2,
    )


def pulls(t, y):
    """Return accelerations without the rock."""
    return np.array([-G - AXIAL * y[0] / MASS, (TORSION * (DRIVE * t - y[1]) - DAMPING * y[3]) / INERTIA])


def reactions(t, y, mode):
    """Return normal and tangential force in a mode: one, two or no equations, written out."""
    _, n, drift = surface(y)
    inverse, along = np.diag([1 / MASS, 1 / INERTIA]), np.array([0.0, LEVER])
    if mode == "open":
        return 0.0, 0.0
    if mode == "stick":
        rows = np.array([n, along])
        return tuple(np.linalg.solve(rows @ inverse @ rows.T, -rows @ pulls(t, y) - [drift, 0.0]))
    mu = ROCK.kinetic(abs(LEVER * y[3])) * (1.0 if mode == "forward" else -1.0)
    N = -(n @ pulls(t, y) + drift) / (n @ inverse @ (n - mu * along))
    return N, -mu * N


SHORT = 5e-4
"""A step of SciPy's, shorter than any flight: a longer one takes the zero from which a flight starts for its end."""


def by_scipy(count):
    """Return the first events of the drill, by a loop over SciPy's integrator: (word, time)."""
    t, y, mode, found = 0.0, np.array([*START[0], *START[1]]), "stick", []

    def rate(t, y):
        N, T = reactions(t, y, mode)
        force = N * surface(y)[1] + T * np.array([0.0, LEVER])
        return np.concatenate([y[2:], pulls(t, y) + force / [MASS, INERTIA]])

    def guards():
        if mode == "open":
            return {"strike": lambda t, y: surface(y)[0]}
        found = {"lift": lambda t, y: reactions(t, y, mode)[0]}
        if mode == "stick":
            return found | {
                "slip": lambda t, y: ROCK.static() * reactions(t, y, mode)[0] - abs(reactions(t, y, mode)[1])
            }
        return found | {"stop": lambda t, y: y[3] if mode == "forward" else -y[3]}

    while len(found) < count:
        several = guards()
        for each in several.values():
            each.terminal, each.direction = True, -1
        way = solve_ivp(
            rate, (t, 5.0), y, "DOP853", events=list(several.values()), rtol=1e-12, atol=1e-13, max_step=SHORT
        )
        word = next(w for w, times in zip(several, way.t_events, strict=True) if times.size)
        t, y = float(way.t[-1]), way.y[:, -1]
        found.append((word, t))
        if word == "strike":
            _, n, _ = surface(y)
            inverse, along = np.diag([1 / MASS, 1 / INERTIA]), np.array([0.0, LEVER]) * np.sign(y[3])
            pull = n - ROCK.static() * along
            impulse = -(1.0 + RESTITUTION) * (n @ y[2:]) / (n @ inverse @ pull)
            after = y[2:] + impulse * inverse @ pull
            assert np.sign(after[1]) == np.sign(y[3])  # friction does not stop the bit in the impact
            y = np.concatenate([y[:2], after])
        mode = {"lift": "open", "strike": "open", "slip": "forward", "stop": "stick"}[word]
    return found


def test_a_drill_string_sticks_slips_and_bounces():
    run = da.simulate(drill(), 4.0, *START, **TIGHT)
    assert run.ok, run
    words = {
        ("stick", "slip"): "slip",
        ("slip", "stick"): "stop",
        ("open", "impact"): "strike",
        ("closed", "open"): "lift",
    }
    found = [(words[e.old, e.new], e.time) for e in run.events if (e.old, e.new) in words][:5]
    expected = by_scipy(5)
    assert [word for word, _ in found] == [word for word, _ in expected]
    assert {"slip", "lift", "strike"} <= {word for word, _ in found}
    np.testing.assert_allclose([t for _, t in found], [t for _, t in expected], rtol=0, atol=1e-7)


def test_the_rock_pushes_and_rubs_by_its_law_in_every_sample():
    run = da.simulate(drill(), 4.0, *START, **TIGHT)
    N, T = run.forces[:, 0], run.forces[:, 1]
    gap = np.array([surface(np.concatenate(state))[0] for state in zip(run.q, run.v, strict=True)])
    assert gap.min() > -1e-10
    assert N.min() >= -1e-9
    assert np.all(N[gap > 1e-9] == 0.0)
    u = run.relative_velocity[:, 1]
    sliding, sticking = (run.modes[:, 0] == 2) & (np.abs(u) > 1e-9), run.modes[:, 0] == 0
    assert sliding.any()
    assert sticking.any()
    force = -np.sign(u) * ROCK.kinetic(np.abs(u)) * N
    np.testing.assert_allclose(T[sliding], force[sliding], atol=1e-7)
    assert np.all(np.abs(T[sticking]) <= ROCK.static() * N[sticking] * (1 + 1e-9) + 1e-9)


# ----------------------------------------------------------------------------------------------------------------------
# What comes with runs of other systems: files, events of the user, refusals.


def test_a_run_with_friction_is_stored_and_continued(tmp_path):
    law, start = BOW[0], ([0.0, 0.0], [0.1, 0.1])
    whole = da.simulate(bowed_lagrangian(law), 0.4, *start, **TIGHT)
    da.simulate(bowed_lagrangian(law), 0.2, *start, file=tmp_path / "bow.h5", **TIGHT)
    run = da.resume(tmp_path / "bow.h5", duration=0.4)
    assert moved(run)[0] == moved(whole)[0]
    np.testing.assert_allclose(moved(run)[1], moved(whole)[1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(run.q[-1], whole.q[-1], rtol=0, atol=1e-10)
    assert run["bow"].shape == run.t.shape
    m, bow = bowed_mechanism(law)
    da.simulate(m, 0.2, *start, contacts=bow, file=tmp_path / "m.h5", **TIGHT)
    again = da.resume(tmp_path / "m.h5", duration=0.4)
    assert moved(again)[0] == moved(whole)[0]
    assert again["bow"].shape == again.t.shape


def test_events_of_the_user_in_a_run_with_friction():
    def turn(t, q, v):
        return v[0]

    run = da.simulate(bowed_lagrangian(BOW[1]), 0.4, [0.0, 0.0], [0.1, 0.1], events={"turn": turn}, **TIGHT)
    zeros = [e.time for e in run.events if e.contact == "turn"]
    assert len(zeros) >= 2
    for t in zeros:
        np.testing.assert_allclose(run.v[run.t == t, 0], 0.0, atol=1e-10)


@pytest.mark.parametrize(
    ("contact", "words"),
    [
        (JointFriction("bow", "y", 1.0), "one of its velocities"),
        (Bounded("bow", [1.0, 0.0, 0.0], 1.0), "row of 2 finite numbers"),
        (Bounded("bow", [0.0, 0.0], 1.0), "not all zero"),
        (Bounded("bow", [1.0, 1.0], 1.0, surface=lambda t: (t, 1.0)), "surface= and load= are finite numbers"),
        (Bounded("bow", [1.0, 1.0], 1.0, load=-1.0), "not negative"),
        (Coulomb("bow", [1.0, 1.0], 0.3, normal="floor"), "one of its constraint rows"),
        (Unilateral("bow", [1.0, 1.0], 0.3, gap=0.0), "may touch, not Unilateral"),
    ],
)
def test_contacts_of_a_mechanism_that_cannot_be_meant_are_named(contact, words):
    with pytest.raises(da.ModelError, match=words):
        da.simulate(sliders(*STRING), 0.1, [0.0, 0.0], [0.1, 0.1], contacts=[contact])


def test_one_row_is_the_normal_of_one_contact():
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    feet = [Coulomb(name, v[0], 0.3, normal="floor") for name in ("left", "right")]
    sled = da.Lagrangian(q, v, ca.sumsqr(v) / 2, G * q[1], constraints={"floor": q[1]}, friction=feet)
    with pytest.raises(da.ModelError, match="'right': the row 'floor' is the normal of another contact already"):
        da.simulate(sled, 1.0, [0.0, 0.0], [1.0, 0.0])
    with pytest.raises(da.ModelError, match="contacts= are those of a Mechanism"):
        da.simulate(sled, 1.0, [0.0, 0.0], [1.0, 0.0], contacts=feet)


def test_a_law_that_pushes_is_named_where_it_does():
    s, t = ca.SX.sym("s"), ca.SX.sym("t")
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    law = ExpressionLaw(s, 1.0 - t, state=(q, v, t), static_limit=1.0)
    block = da.Lagrangian(q, v, v**2 / 2, friction=[JointFriction("pad", 0, law)], time=t)
    with pytest.raises(da.ModelError, match=r"'pad': the friction law is not dissipative.*t = 1 s"):
        da.simulate(block, 2.0, [0.0], [5.0])
    fading = da.Lagrangian(q, v, v**2 / 2, friction=[Bounded("pad", v, 1.0, load=1.0 - t)], time=t)
    with pytest.raises(da.ModelError, match=r"'pad': its load is -.*not negative"):
        da.simulate(fading, 2.0, [0.0], [5.0])


def test_an_error_in_a_function_of_the_system_is_named_with_its_time():
    def force(q, v, t):
        if t > 0.5:
            raise ZeroDivisionError("no oil")
        return np.array([1.0])

    dry = Matrices({"x": 1.0}, force=force, friction=[Bounded("pad", [1.0], 0.2)])
    with pytest.raises(
        da.ModelError, match=r"a function of the system failed at t = 0\.5.*ZeroDivisionError: no oil"
    ) as caught:
        da.simulate(dry, 1.0, [0.0], [0.0])
    assert caught.value.trajectory.t[-1] == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(da.ModelError, match="'bdf' does not take the contacts of 'pad': backward differentiation"):
        da.simulate(dry, 1.0, [0.0], [0.0], method="bdf")
    assert da.simulate(dry, 0.4, [0.0], [0.0], method="radau").method == "hybrid"

"""Drives from rest and moving, pressed, rubbing and on belts, in every method and written in three ways: closed forms.

The energy of a driven run is a witness only if the work of its drives and of its moving surfaces is counted.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.friction import Bounded, Unilateral
from dalembert.model import Matrices
from tests.simulate.contact_cases import sliding_rod

# ----------------------------------------------------------------------------------------------------------------------
# A cart on which a pendulum hangs, the cart driven along x(t). Symbols: M, m masses, l length, J inertia of the bob
# about its centre; angle th about y.
#
#     (J + m l^2) th'' = m l (x'' cos th - g sin th),    F = (M + m) x'' - m l (th'' cos th - th'^2 sin th)

CART, BOB, LENGTH, INERTIA, G = 1.0, 0.5, 0.4, 0.01, 9.81
MOTIONS = {"from rest": lambda t: 0.3 * (1 - ca.cos(4 * t)), "moving": lambda t: 0.3 * ca.sin(4 * t)}
TIGHT = {"rtol": 1e-9, "atol": 1e-11}
STEPPERS = {
    "dop853": (TIGHT, 1e-8), "dopri5": (TIGHT, 1e-7), "rk4": ({"step": 5e-3}, 1e-5), "bdf": (TIGHT, 1e-5),
    "radau": (TIGHT, 1e-7), "ida": (TIGHT, 1e-5), "variational": ({"step": 1e-3}, 1e-4),
    "moreau": ({"step": 1e-3}, 2e-2),
}  # fmt: skip
END = 1.0


def derivatives(motion):
    """Return x, x', x'' as a function of time."""
    t = ca.SX.sym("t")
    x = MOTIONS[motion](t)
    rate = ca.jacobian(x, t)
    return ca.Function("motion", [t], [x, rate, ca.jacobian(rate, t)])


def swinging(th, w, a):
    """Return th'' and the force of the drive."""
    back = BOB * LENGTH * (a * np.cos(th) - G * np.sin(th)) / (INERTIA + BOB * LENGTH**2)
    return back, (CART + BOB) * a - BOB * LENGTH * (back * np.cos(th) - w**2 * np.sin(th))


@cache
def reference(motion):
    """Return th, th', the work of the drive, its force and the speed of the cart at the end, by SciPy."""
    at = derivatives(motion)

    def rate(t, y):
        _, v, a = (float(x) for x in at(t))
        back, force = swinging(y[0], y[1], a)
        return [y[1], back, force * v]

    y = solve_ivp(rate, (0, END), [0.5, 0.0, 0.0], rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
    return y[0], y[1], y[2], swinging(y[0], y[1], float(at(END)[2]))[1], float(at(END)[1])


@cache
def driven(written, motion):
    """Return the cart with its pendulum."""
    x = MOTIONS[motion]
    if written == "Mechanism":
        b = da.Builder("crane")
        b.body("cart", mass=CART, inertia=(0.1, 0.1, 0.1))
        b.body("bob", mass=BOB, center=(0, 0, -LENGTH), inertia=(INERTIA,) * 3)
        b.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        b.joint("th", "revolute", "cart", "bob", axis=(0, 1, 0))
        return b.build().constrain(da.Servo("x", x))
    if written == "Lagrangian":
        q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
        across, up = v[0] - LENGTH * ca.cos(q[1]) * v[1], LENGTH * ca.sin(q[1]) * v[1]
        T = (CART * v[0] ** 2 + BOB * (across**2 + up**2) + INERTIA * v[1] ** 2) / 2
        V = -BOB * G * LENGTH * ca.cos(q[1])
        return da.Lagrangian(q, v, kinetic=T, potential=V, constraints={"drive": q[0] - x(t)}, time=t)
    at, ml, J = derivatives(motion), BOB * LENGTH, INERTIA + BOB * LENGTH**2

    def mass(q, t=0.0):
        return np.array([[CART + BOB, -ml * np.cos(q[1])], [-ml * np.cos(q[1]), J]])

    return Matrices(
        mass, {"drive": [1.0, 0.0]}, coordinates=["x", "th"], drift=lambda q, v, t: np.array([-float(at(t)[2])]),
        force=lambda q, v, t: np.array([-ml * np.sin(q[1]) * v[1] ** 2, -ml * G * np.sin(q[1])]),
        energy=lambda q, v, t: float(v @ mass(q) @ v / 2 - ml * G * np.cos(q[1])),
    )  # fmt: skip


PYTHON_ONLY = ("bdf", "ida", "variational")
"""Methods that differentiate expressions, and do not take `Matrices`."""


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("written", ["Mechanism", "Lagrangian", "Matrices"])
@pytest.mark.parametrize("motion", MOTIONS)
def test_what_a_drive_does_is_the_work_of_its_force(motion, written, stepper):
    if written == "Matrices" and stepper in PYTHON_ONLY:
        pytest.skip("it differentiates expressions")
    th, w, work, force, speed = reference(motion)
    start = float(derivatives(motion)(0.0)[1])
    options, near = STEPPERS[stepper]
    run = da.simulate(driven(written, motion), END, [0.0, 0.5], [start, 0.0], method=stepper, **options)
    assert run.ok, run
    np.testing.assert_allclose([run.q[-1, 1], run.v[-1, 1], run.v[-1, 0]], [th, w, speed], atol=near)
    assert run.work[-1] == pytest.approx(work, abs=near)
    assert -run.multipliers[-1, 0] == pytest.approx(force, abs=30 * near)
    assert np.abs(run.energy_residual).max() <= near
    assert np.ptp(run.work) > 0.5


@pytest.mark.parametrize(
    ("stepper", "rtol", "near"), [("dop853", 1e-6, 1e-4), ("dop853", 1e-8, 1e-6), ("dopri5", 1e-6, 1e-3)]
)
def test_work_of_a_drive_is_as_right_as_the_energy_of_its_motion(stepper, rtol, near):
    """x = 0.3 (1 - cos 40 t), 1 kg: the rows alone give the state in steps of any length, and W = v^2 / 2 is 72 J."""
    b = da.Builder("slide", gravity=(0, 0, 0))
    b.body("slide", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "world", "slide", axis=(1, 0, 0))
    m = b.build().constrain(da.Servo("x", lambda t: 0.3 * (1 - ca.cos(40 * t))))
    run = da.simulate(m, 0.5, method=stepper, rtol=rtol)
    assert run.ok, run
    np.testing.assert_allclose(run.work, (12.0 * np.sin(40 * run.t)) ** 2 / 2, atol=near, rtol=0)


@pytest.mark.parametrize("stepper", ["dop853", "dopri5", "rk4"])
def test_work_of_a_drive_beside_dependent_rows(stepper):
    """A crank with a spare hinge on its axis, driven along 0.7 sin 2 t: J = 2/3, W = J w^2 / 2."""
    b = da.Builder("crank", gravity=(0, 0, 0))
    b.body("crank", mass=1.0, center=(0.5, 0, 0), inertia=(5 / 12,) * 3)
    b.joint("turn", "revolute", "world", "crank", axis=(0, 1, 0))
    servo = da.Servo("turn", lambda t: 0.7 * ca.sin(2 * t))
    m = b.build().constrain(da.Revolute("world", "crank", axis=(0, 1, 0)), servo)
    options = {"step": 1e-2} if stepper == "rk4" else {"rtol": 1e-9}
    run = da.simulate(m, 1.0, None, [1.4], method=stepper, **options)
    assert run.ok, run
    np.testing.assert_allclose(run.work, ((1.4 * np.cos(2 * run.t)) ** 2 - 1.96) / 3, atol=1e-7, rtol=0)


# ----------------------------------------------------------------------------------------------------------------------
# A block that a drive drags over a floor: F = m x'' + mu m g sign(x').

RUB = 0.2 * 9.81
PATHS = {"from rest": (lambda t: t**2, 0.0, 1.0, 2.0), "moving": (lambda t: 2 * t, 2.0, 2.0, 0.0)}
"""Motion, speed at the start, way in a second, acceleration."""
TAKEN = {
    "hybrid": ({}, 1e-9), "dopri5": ({}, 1e-8), "radau": ({}, 1e-8), "rk4": ({"step": 0.01}, 1e-8),
    "moreau": ({"step": 1e-3}, 5e-3),
}  # fmt: skip


@cache
def dragged(written, path):
    """Return the block and its contacts."""
    x = PATHS[path][0]
    if written == "Mechanism":
        b = da.Builder("block")
        b.body("cart", mass=0.0)
        b.body("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
        b.joint("z", "prismatic", "cart", "block", axis=(0, 0, 1))
        return b.build().constrain(da.Servo("x", x)), 2, {"contacts": [da.Contact(da.Sphere("block"), friction=0.2)]}
    if written == "Lagrangian":
        q, v, t = ca.SX.sym("q", 1), ca.SX.sym("v", 1), ca.SX.sym("t")
        floor = Bounded("floor", v[0], RUB)
        system = da.Lagrangian(
            q, v, kinetic=v[0] ** 2 / 2, constraints={"drive": q[0] - x(t)}, time=t, friction=[floor]
        )
        return system, 1, {}
    system = Matrices(
        {"x": 1.0}, {"drive": [1.0]}, drift=lambda q, v, t: np.array([-PATHS[path][3]]),
        friction=[Bounded("floor", [1.0], RUB)], energy=lambda q, v, t: float(v @ v / 2),
    )  # fmt: skip
    return system, 1, {}


@pytest.mark.parametrize("method", TAKEN)
@pytest.mark.parametrize("written", ["Mechanism", "Lagrangian", "Matrices"])
@pytest.mark.parametrize("path", PATHS)
def test_a_dragged_block_rubs_and_its_drive_pays(path, written, method):
    system, n, given = dragged(written, path)
    _, speed, way, acceleration = PATHS[path]
    options, near = TAKEN[method]
    start = [speed] + [0.0] * (n - 1)
    run = da.simulate(system, 1.0, [0.0] * n, start, method=method, rtol=1e-9, **given, **options)
    assert run.ok, run
    assert -run.multipliers[-1, 0] == pytest.approx(acceleration + RUB, abs=near)
    assert run.heat[-1] == pytest.approx(RUB * way, abs=near)
    assert run.work[-1] == pytest.approx((RUB + acceleration) * way, abs=near)
    assert np.abs(run.energy_residual).max() <= near


@pytest.mark.parametrize("stepper", ["dop853", "dopri5", "radau"])
def test_heat_of_a_block_that_is_pressed_is_as_right_as_its_motion(stepper):
    """v = 2, N = m g + 30 sin^2(3 t): the motion is exact in any step, its heat is not."""
    block, _, given = dragged("Mechanism", "moving")
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    press = ca.Function("press", [t, q, v], [ca.vertcat(0, -30 * ca.sin(3 * t) ** 2)])
    errors = []
    for rtol in (1e-6, 1e-9):
        run = da.simulate(
            block, 3.0, [0.0, 0.0], [2.0, 0.0], force=press, stepper=stepper, rtol=rtol, method="hybrid", **given
        )
        heat = 0.4 * (9.81 * 3 + 15 * (3 - np.sin(18.0) / 6))
        errors.append(abs(run.heat[-1] - heat))
        assert run.ok
        assert run.work[-1] == pytest.approx(heat, rel=10 * rtol)
    assert errors[0] < 3e-5
    assert errors[1] < 3e-8


@pytest.mark.parametrize(("method", "near"), [("hybrid", 1e-9), ("radau", 1e-9), ("moreau", 5e-3)])
@pytest.mark.parametrize("written", ["Lagrangian", "Matrices"])
def test_a_belt_pays_for_the_block_that_it_takes_along(written, method, near):
    """2 N of friction along 0.5 m of belt, then none: half of it heats, half is motion."""
    if written == "Lagrangian":
        q, v = ca.SX.sym("q", 1), ca.SX.sym("v", 1)
        system = da.Lagrangian(q, v, kinetic=v[0] ** 2 / 2, friction=[Bounded("belt", v[0], 2.0, surface=1.0)])
    else:
        energy = {"energy": lambda q, v, t: float(v @ v / 2)}
        system = Matrices({"x": 1.0}, friction=[Bounded("belt", [1.0], 2.0, surface=1.0)], **energy)
    run = da.simulate(system, 1.0, [0.0], [0.0], method=method, **({"step": 1e-3} if method == "moreau" else {}))
    assert run.heat[-1] == pytest.approx(0.5, abs=near)
    assert run.kinetic[-1] == pytest.approx(0.5, abs=near)
    assert np.abs(run.energy_residual).max() <= near


@pytest.mark.parametrize("method", ["dop853", "radau"])
def test_a_floor_that_rises_pays_for_what_it_lifts_and_strikes(method):
    """The floor z = t^2 / 2 lifts a point of 1 kg: N = m (g + 1), work N z; struck at rest by z = t it has 2 J."""
    q, v, t = ca.SX.sym("q", 1), ca.SX.sym("v", 1), ca.SX.sym("t")
    floor = Unilateral("floor", gap=q[0] - t**2 / 2)
    point = da.Lagrangian(q, v, kinetic=v[0] ** 2 / 2, potential=9.81 * q[0], time=t, unilateral=[floor])
    run = da.simulate(point, 1.0, [0.0], [0.0], method=method, rtol=1e-9)
    assert run.q[-1, 0] == pytest.approx(0.5, abs=1e-9)
    assert run.friction_work[-1] == pytest.approx(10.81 / 2, abs=1e-8)
    assert np.abs(run.energy_residual).max() <= 1e-8
    floor = Unilateral("floor", gap=q[0] - t, restitution=1.0)
    point = da.Lagrangian(q, v, kinetic=v[0] ** 2 / 2, time=t, unilateral=[floor])
    run = da.simulate(point, 1.0, [0.5], [0.0], method=method, rtol=1e-9)
    assert run.kinetic[-1] == pytest.approx(2.0, abs=1e-9)
    assert np.abs(run.energy_residual).max() <= 1e-9


def test_an_impact_on_a_driven_body_is_paid_by_its_drive():
    """A table that rises at 1 m/s strikes a ball at rest, elastically: it leaves at 2 m/s, with 2 J from the drive."""
    b = da.Builder("bat", gravity=(0, 0, 0))
    for name in ("table", "ball"):
        b.body(name, mass=1.0, inertia=(0.01, 0.01, 0.01))
        b.joint(name, "prismatic", "world", name, axis=(0, 0, 1))
    m = b.build().constrain(da.Servo("table", lambda t: t))
    bat = da.Contact(da.Sphere("ball", 0.1), da.Sphere("table", 0.1), restitution=1.0)
    run = da.simulate(m, 1.0, [0.0, 0.7], [1.0, 0.0], contacts=[bat], method="hybrid")
    assert run.v[-1, 1] == pytest.approx(2.0, abs=1e-9)
    assert run.work[-1] == pytest.approx(2.0, abs=1e-9)
    assert np.abs(run.energy_residual).max() <= 1e-9


# ----------------------------------------------------------------------------------------------------------------------
# Time steps: drives that start from rest, sliding that a drive prescribes.


def test_time_steps_follow_a_drive_that_starts_from_rest():
    """z = 1 - cos 3 t: v = 3 sin 3 t, and the drive carries m (g + z'')."""
    b = da.Builder("lift")
    for name, place in (("table", 0.0), ("far", 100.0)):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", "world", name, axis=(0, 0, 1), position=(place, 0, place))
    m = b.build().constrain(da.Servo("table", lambda t: 1 - ca.cos(3 * t)))
    run = da.simulate(m, 1.0, contacts=[da.Contact(da.Sphere("far", 0.1))], method="moreau")
    assert run.ok
    np.testing.assert_allclose(run.q[:, 0], 1 - np.cos(3 * run.t), atol=1e-9, rtol=0)
    np.testing.assert_allclose(run.v[:, 0], 3 * np.sin(3 * run.t), atol=1e-12)
    np.testing.assert_allclose(-run.multipliers[1:, 0], 9.81 + 9 * np.cos(3 * run.t[1:]), atol=2e-2)
    assert run.velocity_residual.max() < 1e-12
    assert np.abs(run.energy_residual).max() < 1e-3


@pytest.mark.parametrize("method", ["moreau", "hybrid"])
def test_a_gripper_takes_its_ball_along(method):
    """Two jaws press a ball with 10 N each, mu = 0.8, and lift it along 1 - cos 2 t: it needs at most 13.81 N of 16."""
    b = da.Builder("gripper")
    b.body("hand", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("lift", "prismatic", "world", "hand", axis=(0, 0, 1))
    for side, x in (("left", -1.0), ("right", 1.0)):
        b.body(side, mass=0.2, inertia=(0.01, 0.01, 0.01))
        b.joint(side, "prismatic", "hand", side, axis=(-x, 0, 0), position=(0.2 * x, 0, 0))
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    b.joint("bx", "prismatic", "world", "bridge", axis=(1, 0, 0))
    b.body("bridge", mass=0.01, inertia=(0.001, 0.001, 0.001))
    b.joint("bz", "prismatic", "bridge", "ball", axis=(0, 0, 1))
    m = b.build().constrain(da.Servo("lift", lambda t: 1 - ca.cos(2 * t)))
    jaws = [da.Contact(da.Sphere("ball", 0.1), da.Sphere(side, 0.1), friction=0.8) for side in ("left", "right")]
    force = {"left": 10.0, "right": 10.0}
    run = da.simulate(m, 1.0, contacts=jaws, force=force, method=method)
    assert run.ok, run
    np.testing.assert_allclose(run["bz"], 1 - np.cos(2 * run.t), atol=1e-3)


@pytest.mark.parametrize("method", ["moreau", "auto", "hybrid"])
@pytest.mark.parametrize(("turning", "speed", "way", "acceleration"), [(2.0, 2.0, 2.0, 0.0), (0.0, 0.0, 1.0, 2.0)])
def test_a_rotor_under_four_sprung_brushes_takes_its_torque(turning, speed, way, acceleration, method):
    """Brushes of 10 N at 0.3 m with mu = 0.2: 2.4 N m, and J x'' where the drive starts from rest."""
    b = da.Builder("rotor", gravity=(0, 0, 0))
    b.body("rotor", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("turn", "revolute", "world", "rotor", axis=(0, 0, 1))
    brushes = []
    for k in range(4):
        n = np.array([np.cos(k * np.pi / 2), np.sin(k * np.pi / 2), 0.0])
        b.body(f"brush {k}", mass=0.1, inertia=(0.01, 0.01, 0.01))
        b.joint(
            f"brush {k}", "prismatic", "world", f"brush {k}", axis=-n, position=0.35 * n, stiffness=200.0, rest=0.05
        )
        brushes.append(da.Contact(da.Sphere(f"brush {k}", 0.05), da.Sphere("rotor", 0.3), friction=0.2))
    m = b.build().constrain(da.Servo("turn", (lambda t: 2 * t) if turning else (lambda t: t * t)))
    run = da.simulate(m, 1.0, [0.0] * 5, [speed, 0.0, 0.0, 0.0, 0.0], contacts=brushes, method=method)
    assert run.ok, run
    torque = 2.4 + 0.1 * acceleration
    assert -run.multipliers[-1, 0] == pytest.approx(torque, abs=1e-6)
    assert run.heat[-1] == pytest.approx(2.4 * way, abs=1e-3)
    assert run.work[-1] == pytest.approx(torque * way, abs=1e-3)


def height_of_ball(z, e, t):
    """Return the height of a ball that falls from z onto z = 0, by its impacts."""
    v = np.sqrt(2 * G * z)
    begin = v / G
    if t < begin:
        return z - G * t**2 / 2
    v *= e
    while t > begin + 2 * v / G:
        begin, v = begin + 2 * v / G, e * v
    return v * (t - begin) - G * (t - begin) ** 2 / 2


def test_balls_of_any_number_are_as_right_as_their_tolerance():
    """Four balls, each by closed form, and what "auto" says where it takes steps."""
    b = da.Builder("balls")
    for k in range(4):
        b.body(f"ball {k}", mass=1.0, inertia=(0.004, 0.004, 0.004))
        b.joint(f"z {k}", "prismatic", "world", f"ball {k}", axis=(0, 0, 1), position=(k, 0.0, 0.1))
    m, balls = b.build(), [da.Contact(da.Sphere(f"ball {k}", 0.1), restitution=0.8) for k in range(4)]
    heights = 0.9 + 0.1 * np.arange(4)
    run = da.simulate(m, 1.3, heights, contacts=balls, rtol=1e-10, atol=1e-12)
    assert run.ok, run
    np.testing.assert_allclose(run.q[-1], [height_of_ball(z, 0.8, 1.3) for z in heights], atol=1e-9)
    stepped = da.simulate(m, 0.2, heights, contacts=balls, step=1e-3)
    assert stepped.method == "moreau"
    for words in (stepped.reason, stepped.message):
        assert "rtol and atol are not used" in words


def test_time_steps_take_over_where_a_located_run_of_many_contacts_has_no_answer(tmp_path):
    """Painleve's rod, which has five points: located it ends at once, time steps go on and say so, in files as well."""
    m, q, contacts = sliding_rod(2.0)
    v = [3.0, 0.0, 0.0]
    contacts += [da.Contact(da.Sphere("rod", 0.0, (0, 0, 0.1 * k)), name=f"point {k}") for k in range(4)]
    located = da.simulate(m, 0.02, q, v, contacts=contacts, method="hybrid")
    assert located.status == "no solution"
    path = tmp_path / "run.nc"
    run = da.simulate(m, 0.02, q, v, contacts=contacts, file=path)
    assert run.method == "moreau"
    assert "Painleve" in run.reason
    assert "rtol and atol are not used" in run.message
    assert run.t[-1] == 0.02
    np.testing.assert_array_equal(da.Trajectory.load(path).q, run.q)
    few = da.simulate(m, 0.02, q, v, contacts=contacts[:1])
    assert few.status == "no solution"


@pytest.mark.parametrize("method", ["moreau", "auto"])
def test_dry_friction_of_a_driven_joint_acts_beside_four_contacts(method):
    """A slide of 3 N dry friction that a servo moves at 2 m/s, far from four balls on the ground."""
    b = da.Builder("slide", gravity=(0, 0, -9.81))
    b.body("slide", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "world", "slide", axis=(1, 0, 0), friction=3.0)
    for k in range(4):
        b.body(f"ball {k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"ball {k}", "prismatic", "world", f"ball {k}", axis=(0, 0, 1), position=(k, 5.0, 0.1))
    m = b.build().constrain(da.Servo("x", lambda t: 2 * t))
    balls = [da.Contact(da.Sphere(f"ball {k}", 0.1)) for k in range(4)]
    run = da.simulate(m, 0.5, None, {"x": 2.0}, contacts=balls, method=method)
    assert run.ok, run
    assert -run.multipliers[-1, 0] == pytest.approx(3.0, abs=1e-9)
    assert run.heat[-1] == pytest.approx(3.0, abs=1e-2)
    assert run.work[-1] == pytest.approx(3.0, abs=1e-2)


def test_a_car_on_four_driven_wheels_drives():
    """Wheels that turn by 10 t^2 on a floor of mu = 1: the car rolls along 0.1 * 10 t^2, and no wheel slips."""
    b = da.Builder("car")
    b.body("car", mass=4.0, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", "world", "bridge", axis=(1, 0, 0))
    b.body("bridge", mass=0.01, inertia=(0.001, 0.001, 0.001))
    b.joint("z", "prismatic", "bridge", "car", axis=(0, 0, 1), position=(0, 0, 0.1))
    places = [(x, y, 0.0) for x in (-0.3, 0.3) for y in (-0.2, 0.2)]
    for k, place in enumerate(places):
        b.body(f"wheel {k}", mass=0.5, inertia=(0.0025, 0.0025, 0.0025))
        b.joint(f"wheel {k}", "continuous", "car", f"wheel {k}", axis=(0, 1, 0), position=place)
    m = b.build().constrain(*[da.Servo(f"wheel {k}", lambda t: t * t) for k in range(4)])
    tyres = [da.Contact(da.Sphere(f"wheel {k}", 0.1), friction=1.0) for k in range(4)]
    for method in ("moreau", "auto"):
        run = da.simulate(m, 1.0, contacts=tyres, method=method)
        assert run.ok, (method, run)
        np.testing.assert_allclose(run["x"][-1], 0.1, atol=1e-3)

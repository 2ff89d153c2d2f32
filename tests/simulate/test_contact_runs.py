"""Runs with contacts: compiled steps against plain ones, events, equal times, errors, kills, the laws of impact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.simulate.contact import Box, Contact, Heightfield, JointLimits, Plane, Sphere
from dalembert.simulate.contact.complementarity import impact_impulses
from dalembert.simulate.contact.impulse_loops import expansion
from tests.simulate.contact_cases import brick, vertical_ball

FINE = {"method": "hybrid", "rtol": 1e-11, "atol": 1e-12}
G = 9.81


def scene():
    """Return balls and a brick over a plane and hills, a hinge at its limit, a closed chain on the ground."""
    b = da.Builder("scene")
    for name, mass in (("one", 1.0), ("two", 0.5), ("brick", 2.0)):
        b.body(name, mass=mass, inertia=(0.01, 0.012, 0.014))
        b.joint(f"free {name}", "free", parent="world", child=name)
    b.body("arm", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    b.joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0), position=(0, 5, 3), limits=(-1.0, 0.3))
    m = b.build().constrain(da.Distance("two", "one", length=0.5, name="rod"))
    x = np.linspace(-3, 3, 13)
    hills = Heightfield(x, x, 0.1 * np.sin(2 * x)[:, None] * np.cos(x)[None, :] - 0.1)
    contacts = [
        Contact(Sphere("one", 0.1), hills, friction=0.5, restitution=0.3, name="hill"),
        Contact(Sphere("two", 0.1, (0.01, 0, 0)), Plane((0.1, 0, 1), -0.2), friction=0.3, restitution=0.4,
                impact="poisson", name="slope"),
        Contact(Sphere("one", 0.1), Sphere("brick", 0.15), friction=0.2, name="ball on brick"),
        Contact(Box("brick", (0.3, 0.2, 0.1)), Plane(), friction=0.6, name="brick"),
        JointLimits(restitution=0.2),
    ]  # fmt: skip
    q = m.neutral()
    q[:3], q[7:10], q[14:17] = [0, 0, 0.5], [0.5, 0, 0.5], [0.05, 0.0, 0.1]
    return m, m.integrate(q, np.concatenate([np.zeros(15), [0.05, 0.1, 0.02], [0.0]])), contacts


@pytest.mark.parametrize("kind", ["none", "table", "python"])
def test_steps_of_a_scene_with_everything_meet_the_laws(kind):
    m, q, contacts = scene()
    push = np.zeros(m.nv)
    push[0] = 1.0
    torque = {"none": None, "table": ([0.0, 0.1, 0.3], np.outer([0, 2, -1], push)), "python": lambda t, q, v: t * push}
    run = da.simulate(m, 0.3, q, contacts=contacts, method="moreau", step=2e-3, force=torque[kind])
    assert run.ok
    assert len({tuple(row) for row in run.modes}) > 4
    assert run.position_residual.max() < 1e-10
    assert run.samples["contact_residual"].max() < 1e-8


def test_redundant_rows_have_a_verdict_and_the_same_motion():
    b = da.Builder("pair")
    for name in ("a", "b"):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(f"z {name}", "prismatic", parent="world", child=name, axis=(0, 0, 1))
    m = b.build()
    rods = [da.Coupler({"z a": 1.0, "z b": -1.0}, name=f"rod {k}") for k in range(2)]
    contacts = [Contact(Sphere("a", 0.1), name="a")]
    once, twice = (m.constrain(*rods[:k]) for k in (1, 2))
    for method in ("hybrid", "moreau"):
        runs = [
            da.simulate(each, 0.5, [0.2, 0.2], contacts=contacts, method=method, rtol=1e-9) for each in (once, twice)
        ]
        np.testing.assert_allclose(runs[1].q[-1], runs[0].q[-1], atol=1e-9)
        assert (runs[1].samples["contact_status"][1:] == da.Status.REDUNDANT).all()
        assert runs[1].samples["contact_residual"].max() < 1e-8


def test_events_and_equal_times_of_event_driven_runs():
    e, first = 0.5, np.sqrt(2 / G)
    contacts = [Contact(Sphere("ball"), restitution=e)]

    def apex(t, q, v):
        return v[0]

    apex.direction = -1
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 1), ca.SX.sym("v", 1)
    low = ca.Function("low", [t, q, v], [q - 0.1])
    run = da.simulate(vertical_ball(), 1.2, [1.0], contacts=contacts, every=0.05, events=[apex, low], **FINE)
    tops = [each.time for each in run.events if each.contact == "apex"]
    assert tops[0] == 0.0  # from rest: a zero at the start counts, as in SciPy
    assert tops[1] == pytest.approx(first * (1 + e), abs=1e-12)
    assert [each.new for each in run.events if each.contact == "low"][:3] == ["falling", "rising", "falling"]
    assert run.events[1].time == pytest.approx(np.sqrt(2 * 0.9 / G), abs=1e-12)
    grid = 0.05 * np.arange(25)
    assert np.isin(np.round(grid, 12), np.round(run.t, 12)).all()
    fall = run.t < first
    np.testing.assert_allclose(run.q[fall, 0], 1 - G * run.t[fall] ** 2 / 2, atol=1e-11)
    assert set(np.round(run.t, 9)) <= set(np.round([*grid, *(each.time for each in run.events)], 9))
    apex.terminal = 2
    ended = da.simulate(vertical_ball(), 5.0, [1.0], contacts=contacts, events=apex, **FINE)
    assert ended.status == "event"
    assert ended.t[-1] == pytest.approx(first * (1 + e), abs=1e-12)


def failing(what):
    """Return a controller that fails at 0.32 s."""

    def pilot(t, q, v):
        if t < 0.32:
            return np.zeros(1)
        return {"raises": lambda: 1 / 0, "shape": lambda: np.zeros(2), "nan": lambda: np.array([np.nan])}[what]()

    return pilot


@pytest.mark.parametrize("method", ["hybrid", "moreau"])
@pytest.mark.parametrize(
    ("what", "words"),
    [("raises", r"force \(pilot\) failed at t = 0\.3[0-9]* s: ZeroDivisionError"),
     ("shape", r"shape \(2,\) at t = 0\.3"), ("nan", r"nan at t = 0\.3")],
)  # fmt: skip
def test_errors_in_controllers_keep_the_trajectory_so_far(method, what, words):
    with pytest.raises((da.ModelError, da.ShapeError), match=words) as caught:
        da.simulate(
            vertical_ball(),
            1.0,
            [1.0],
            contacts=[Contact(Sphere("ball"))],
            method=method,
            force=failing(what),
            rtol=1e-9,
        )
    run = caught.value.trajectory
    assert " t = 0.32" in str(caught.value)  # not where a trial step met it first
    assert run.t[-1] == pytest.approx(0.32, abs=1e-8)  # trial steps beyond do not count
    np.testing.assert_allclose(run.q[:, 0], 1 - G * run.t**2 / 2, atol=1e-9)


@pytest.mark.parametrize("method", ["hybrid", "moreau"])
def test_errors_of_other_functions_and_the_keyboard(method):
    given = {"contacts": [Contact(Sphere("ball"))], "method": method}

    def quiet(t, q, v):
        if t > 0.1:
            raise KeyError("lost") if broken else KeyboardInterrupt

    broken = True
    with pytest.raises(da.ModelError, match=r"on_step failed at t = .*KeyError") as caught:
        da.simulate(vertical_ball(), 1.0, [1.0], on_step=quiet, **given)
    assert caught.value.trajectory.t[-1] > 0.1
    broken = False
    run = da.simulate(vertical_ball(), 1.0, [1.0], on_step=quiet, **given)
    assert run.status == "interrupted"
    assert 0.1 < run.t[-1] < 1.0

    def always(t, q, v):
        raise RuntimeError("no")

    with pytest.raises(da.ModelError, match="force") as caught:
        da.simulate(vertical_ball(), 1.0, [1.0], force=always, **given)
    assert caught.value.trajectory.t.size == 1
    if method == "hybrid":
        with pytest.raises(da.ModelError, match=r"event 'always' failed at t = .*RuntimeError"):
            da.simulate(vertical_ball(), 1.0, [1.0], events=always, **given)
    else:
        with pytest.raises(da.UnsupportedError, match="hybrid"):
            da.simulate(vertical_ball(), 1.0, [1.0], events=always, **given)


def test_poisson_expands_with_friction_and_newton_does_not():
    """One contact, compression sticks: P_c = G^-1 u, then e P_c in the normal, friction within the cone of that."""
    M = np.array([[2.0, 0.5, 0], [0.5, 1.0, 0], [0, 0, 1.0]])
    u = np.array([-1.0, 0.1, 0])
    found = impact_impulses(M, u, np.array([0.9]), np.array([0.5]), ["poisson"])
    compression = -np.linalg.solve(M, u)
    assert found.r[0] == pytest.approx(1.5 * compression[0])
    after = M @ found.r + u
    assert after[1] == pytest.approx(0.0, abs=1e-14)  # friction of the expansion goes on holding
    assert after[0] > 0.0
    for function in (expansion, expansion.py_func):
        r = np.zeros(3)
        function(M, M @ np.array([*compression[:2], 0.0]) + u, np.array([0.9]), np.array([0.5 * compression[0]]), r)
        np.testing.assert_allclose(compression + r, found.r, atol=1e-14)


@pytest.mark.parametrize("law", ["newton", "poisson"])
def test_both_laws_bounce_alike_in_both_methods(law):
    contacts = [Contact(Sphere("ball"), restitution=0.6, impact=law)]
    exact = da.simulate(vertical_ball(), 2.0, [1.0], contacts=contacts, **FINE)
    run = da.simulate(vertical_ball(), 2.0, [1.0], contacts=contacts, method="moreau", step=1e-4)
    second = np.searchsorted(run.t, 0.6)
    assert run.q[second:, 0].max() == pytest.approx(0.36, abs=2e-3)
    at = np.searchsorted(exact.t, 1.0)
    assert abs(run.q[np.searchsorted(run.t, exact.t[at])] - exact.q[at])[0] < 3e-3
    assert abs(run.q[-1, 0]) < 1e-3


def test_sliding_begins_where_the_force_leaves_the_cone():
    b = da.Builder("sled")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("shoe", mass=2.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="shoe", axis=(0, 0, 1))
    m = b.build()
    ramp = ([0.0, 1.0], np.array([[0.0, 0.0], [8.0, 0.0]]))
    contacts = [Contact(Sphere("shoe"), friction=0.2, name="shoe")]
    run = da.simulate(m, 1.0, [0, 0], contacts=contacts, force=ramp, **FINE)
    start = 0.2 * 2 * G / 8
    slip = [each.time for each in run.events if each.new == "slip"]
    np.testing.assert_allclose(slip, [start], atol=1e-11)
    np.testing.assert_allclose(run.q[-1, 0], 8 * (1 - start) ** 3 / 6 / 2, atol=1e-10)
    assert np.abs(run.energy_residual).max() < 1e-9


@pytest.mark.parametrize(("method", "step", "atol"), [("hybrid", None, 1e-10), ("moreau", 1e-4, 2e-3)])
def test_a_bowling_ball_slides_then_rolls_at_five_sevenths(method, step, atol):
    b = da.Builder("alley")
    b.body("ball", mass=5.0, inertia=(0.02, 0.02, 0.02))
    m = b.build(base="floating")
    q, v = m.neutral(), np.zeros(6)
    q[2], v[0] = 0.1, 7.0
    shoe = Contact(Sphere("ball", 0.1), friction=0.2, restitution=0.5 if step else 0.0, name="ball")
    given = {"contacts": [shoe], "method": method, "step": step}
    run = da.simulate(m, 1.5, q, v, rtol=1e-11, atol=1e-12, **given)
    roll = 2 * 7.0 / (7 * 0.2 * G)
    np.testing.assert_allclose(
        m.kinematics(run.q[-1], "ball")[1][0], 7 * roll - 0.1 * G * roll**2 + 5 * (1.5 - roll), atol=atol
    )
    np.testing.assert_allclose(run.energy.total[0] - run.energy.total[-1], 0.5 * 5 * 49 * 2 / 7, atol=10 * atol)
    np.testing.assert_allclose(run.heat[-1], 0.5 * 5 * 49 * 2 / 7, atol=1e-3 if step else 1e-9)
    assert run.heat[np.searchsorted(run.t, 1.1)] == pytest.approx(run.heat[-1], abs=1e-9)  # rolling makes none
    assert np.abs(run.energy_residual).max() < (2e-3 if step else 1e-8)


def point_over(heights, motion, v, duration):
    """Return the run of a point of 1 kg without friction over the heights at x = -2, 0, 2, from x = motion[0]."""
    b = da.Builder("point")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("point", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="point", axis=(0, 0, 1))
    ground = Heightfield([-2.0, 0.0, 2.0], [-1.0, 1.0], np.tile(np.array(heights)[:, None], (1, 2)))
    return da.simulate(b.build(), duration, motion, v, contacts=[Contact(Sphere("point"), ground)], **FINE)


def test_points_strike_and_leave_the_edges_of_a_heightfield():
    """Down a slope of 1:2 onto a level: the normal velocity is lost there; over a ledge: a free flight."""
    run = point_over((1.0, 0.0, 0.0), [-1.0, 0.5], [0, 0], 1.5)
    length, speed = np.hypot(1, 0.5), np.sqrt(G)
    edge, left = 2 * length / speed, speed / length
    struck = [each.time for each in run.events if each.new == "impact"]
    np.testing.assert_allclose(struck, [edge], atol=1e-11)
    np.testing.assert_allclose(run.q[-1], [left * (1.5 - edge), 0.0], atol=1e-10)
    assert run.heat[-1] == pytest.approx((speed**2 - left**2) / 2, abs=1e-10)
    assert np.abs(run.energy_residual).max() < 1e-9
    run = point_over((0.0, 0.0, -2.0), [-0.5, 0.0], [3.0, 0.0], 0.5)
    assert [each.new for each in run.events] == ["closed", "open"]
    np.testing.assert_allclose(run.q[-1], [1.0, -0.5 * G * (0.5 - 0.5 / 3) ** 2], atol=1e-10)


def test_twisted_cells_and_spheres_at_edges():
    """A point on z = x y / 2 against Lagrange's equations in x, y; what a sphere at an edge is told."""
    b = da.Builder("point")
    for name, parent, axis in (("a", "world", (1, 0, 0)), ("b", "a", (0, 1, 0))):
        b.body(name)
        b.joint(f"to {name}", "prismatic", parent=parent, child=name, axis=axis)
    b.body("point", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="b", child="point", axis=(0, 0, 1))
    x = np.array([-3.0, 3.0])
    contact = Contact(Sphere("point"), Heightfield(x, x, np.outer(x, x) / 2))
    run = da.simulate(b.build(), 1.0, [0.5, -0.8, -0.2], [0.3, 0.5, 0.005], contacts=[contact], **FINE)

    def rate(t, y):
        push = (G + y[2] * y[3]) / (1 + (y[0] ** 2 + y[1] ** 2) / 4)
        return [y[2], y[3], -y[1] / 2 * push, -y[0] / 2 * push]

    exact = solve_ivp(rate, (0, 1), [0.5, -0.8, 0.3, 0.5], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose([*run.q[-1, :2], *run.v[-1, :2]], exact, atol=1e-10)
    b = da.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    m = b.build(base="floating")
    x = np.linspace(-1, 1, 5)
    valley = Contact(Sphere("ball", 0.1), Heightfield(x, x, np.tile(0.25 * x[:, None] ** 2, (1, 5))), name="ball")
    q = m.neutral()
    q[0], q[2] = -0.3, 0.2
    run = da.simulate(m, 1.0, q, contacts=[valley], method="hybrid", rtol=1e-9)
    assert run.status == "no solution"
    assert "'ball' comes to an edge" in run.message
    chosen = da.simulate(m, 0.05, q, contacts=[valley], rtol=1e-9)
    assert chosen.method == "moreau"
    assert "heightfield" in chosen.reason


def test_heat_of_time_steps_is_what_edges_take():
    """A point slides through a valley of 20 cells: what it loses there is heat, whatever the step."""
    b = da.Builder("point")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("point", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="point", axis=(0, 0, 1))
    x = np.linspace(-1, 1, 21)
    valley = Heightfield(x, [-1.0, 1.0], np.tile(0.5 * x[:, None] ** 2, (1, 2)))
    start = [-0.55, 0.25 * (0.5**2 + 0.6**2)]
    run = da.simulate(b.build(), 1.0, start, contacts=[Contact(Sphere("point"), valley)], method="moreau", step=2e-4)
    lost = run.energy.total[0] - run.energy.total[-1]
    assert lost > 0.05
    assert run.heat[-1] == pytest.approx(lost, rel=0.05)


def test_a_ball_in_a_valley_keeps_its_energy():
    """Rolling on z = x^2 / 4 with 200 cells: the normal is that of the touching point, not that below the centre."""
    b = da.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    m, x, r = b.build(base="floating"), np.linspace(-1, 1, 201), 0.1
    valley = Heightfield(x, [-1.0, 1.0], np.tile(0.25 * x[:, None] ** 2, (1, 2)))
    n = np.array([0.25, 0, 1]) / np.hypot(0.25, 1)
    q, touch = m.neutral(), np.array([-0.5, 0.0, 0.0625])
    q[:3] = touch + (r + 1e-4) * n
    gap, normal, foot = valley.below(q[:3], r)
    np.testing.assert_allclose([gap, *normal, *foot[:2]], [1e-4, *n, -0.5, 0.0], atol=3e-3)
    run = da.simulate(m, 1.9, q, contacts=[Contact(Sphere("ball", r), valley, friction=1.0)], step=5e-4)
    assert np.abs(run.energy_residual).max() < 5e-3
    assert run.energy.total[0] - run.energy.total[-1] < 5e-3
    assert run.q[:, 0].max() == pytest.approx(-q[0], abs=5e-3)


def test_a_brick_rests_on_redundant_corners_from_event_to_event():
    m, contact = brick()
    q = m.neutral()
    q[2] = 0.05
    run = da.simulate(m, 0.3, q, contacts=[contact], method="hybrid", rtol=1e-9)
    assert run.ok
    assert run.q[-1, 2] == pytest.approx(0.03, abs=1e-12)
    assert (run.modes[-1] == 0).sum() == 4
    assert run.heat[-1] == pytest.approx(2 * G * 0.02, abs=1e-9)


CASES = {
    "moreau": (lambda: (brick()[0], 20.0, [0, 0, 0.2, 0, 0, 0, 1]), {"contacts": [brick()[1]], "step": 1e-3}),
    "hybrid": (
        lambda: (vertical_ball(), 8.0, [1.0]),
        {"contacts": [Contact(Sphere("ball"), restitution=0.9)], "every": 0.01},
    ),
}


def slow_run(method, path):
    """Run a case slowly, in a process that is going to be killed."""
    start, options = CASES[method]
    da.simulate(*start(), method=method, file=path, on_step=lambda t, q, v: time.sleep(2e-4), **options)


def slow_resume(method, path):
    """Go on with a case, in a process that is going to be killed."""
    da.resume(path, on_step=lambda t, q, v: time.sleep(2e-4))


def complete_blocks(path):
    """Return whether a file has something to go on from."""
    try:
        return path.exists() and da.Trajectory.load(path).t.size > 0
    except da.ModelError:
        return False


@pytest.mark.parametrize("method", CASES)
def test_killed_runs_with_contacts_go_on_bit_for_bit(tmp_path, method):
    """SIGKILL at random times; what goes on is killed again, until it gets through; the motion is that of one run."""
    path, start, options = tmp_path / "run.h5", *CASES[method]
    whole = da.simulate(*start(), method=method, **options)
    code = f"from tests.simulate.test_contact_runs import {{0}}; {{0}}({method!r}, {str(path)!r})"
    random = np.random.default_rng()
    for what in ("slow_run", "slow_resume", "slow_resume"):
        environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
        child = subprocess.Popen([sys.executable, "-c", code.format(what)], env=environment)
        while child.poll() is None and not complete_blocks(path):
            time.sleep(0.1)
        time.sleep(random.uniform(0.0, 2.0))
        child.send_signal(signal.SIGKILL)
        child.wait()
        part = da.Trajectory.load(path)
        np.testing.assert_array_equal(part.q, whole.q[: part.t.size])
        if part.status == "completed":
            break
    run = da.resume(path)
    assert run.ok
    assert run.events == whole.events
    for name in whole.samples:
        np.testing.assert_array_equal(run.samples[name], whole.samples[name], err_msg=name)

"""Time steps over contacts: drives, friction where a drive prescribes the sliding, contacts that others close, laws."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.friction.cones import turns
from dalembert.kernel.loops import steady

G = 9.81
STEPS = {"method": "moreau", "step": 1e-3}
FAR = da.Contact(da.Sphere("body", 0.1, at=(0, 0, 50.0)), name="far")


def slider(axis=(0, 0, 1), friction=0.0):
    b = da.Builder("slider")
    b.body("body", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("up", "prismatic", parent="world", child="body", axis=axis, friction=friction)
    return b.build()


def sled(mass=1.0):
    """Return a block that moves along x and z."""
    b = da.Builder("sled")
    b.body("cart")
    b.joint("x", "prismatic", parent="world", child="cart", axis=(1, 0, 0))
    b.body("body", mass=mass, inertia=(0.1, 0.1, 0.1))
    b.joint("z", "prismatic", parent="cart", child="body", axis=(0, 0, 1))
    return b.build()


# ----------------------------------------------------------------------------------------------------------------------
# Drives.


def test_a_drive_that_starts_from_rest_moves():
    """Its offsets were asked for at the start only, where they are zero."""
    m = slider().constrain(da.Servo("up", lambda t: 1 - ca.cos(3 * t)))
    run = da.simulate(m, 1.0, contacts=[FAR], **STEPS)
    assert run.ok
    assert run.v[-1, 0] == pytest.approx(3 * np.sin(3.0), abs=1e-12)
    assert run.q[-1, 0] == pytest.approx(1 - np.cos(3.0), abs=1e-12)
    force = -run.multipliers[1:, 0]
    middle = run.t[1:] - 0.5e-3
    np.testing.assert_allclose(force, G + 9 * np.cos(3 * middle), atol=1e-5)
    assert run.velocity_residual.max() < 1e-12
    # kinetic and potential energy come from the drive alone
    assert run.work[-1] == pytest.approx(0.5 * run.v[-1, 0] ** 2 + G * run.q[-1, 0], rel=1e-5)


@pytest.mark.parametrize("start", [0.0, 2.0])
def test_friction_acts_where_a_drive_prescribes_the_sliding(start):
    """A block dragged at 2 m/s, or from rest, over a floor with mu = 0.2: 1.962 N, mu m g times the way as heat."""
    place = (lambda t: 2 * t) if start else (lambda t: t * t)
    m = sled().constrain(da.Servo("x", place))
    floor = da.Contact(da.Sphere("body", 0.1), friction=0.2, name="floor")
    run = da.simulate(m, 1.0, [0.0, 0.1], [start, 0.0], contacts=[floor], **STEPS)
    assert run.ok, run.message
    drive = -run.multipliers[-1, 0]
    assert drive == pytest.approx(0.2 * G + (0.0 if start else 2.0), abs=1e-6)
    way = 2.0 if start else 1.0
    assert run.heat[-1] == pytest.approx(0.2 * G * way, rel=2e-3)
    assert run.work[-1] == pytest.approx(0.2 * G * way + (0.0 if start else 2.0), rel=2e-3)


def test_a_driven_joint_with_dry_friction_pays_for_it_beside_many_contacts():
    m = slider(friction=3.0).constrain(da.Servo("up", lambda t: 0.5 * t * t))
    far = [da.Contact(da.Sphere("body", 0.1, at=(0, 0, 50.0 + i)), name=f"far {i}") for i in range(5)]
    run = da.simulate(m, 1.0, contacts=far, **STEPS)
    assert run.ok, run.message
    assert -run.multipliers[-1, 0] == pytest.approx(G + 1.0 + 3.0, abs=1e-6)
    assert run.heat[-1] == pytest.approx(3.0 * 0.5, rel=2e-3)


@pytest.mark.parametrize("redundant", [False, True])
def test_reactions_of_rows_that_hold_a_massless_rod_are_along_it_and_drive_the_slider(redundant):
    """A crank, a rod that weighs nothing, a slider of 2 kg: F_x = 2 a, F_z / F_x = slope of the rod."""
    b = da.Builder("crank and slider")
    b.body("crank", mass=1.0, center=(0.2, 0, 0), inertia=(0, 0.05, 0.05))
    b.body("rod")
    b.body("slider", mass=2.0)
    axis = (0, 1, 0)
    b.joint("A", "revolute", parent="world", child="crank", axis=axis)
    b.joint("B", "revolute", parent="crank", child="rod", axis=axis, position=(0.4, 0, 0))
    b.joint("S", "prismatic", parent="world", child="slider", axis=(1, 0, 0))
    b.frame("end", "rod", position=(1.0, 0, 0))
    b.frame("pin", "slider")
    m = b.build().constrain(da.Revolute("end", "pin", axis=axis) if redundant else da.Point("end", "pin"))
    q, v = m.project(np.array([0.7, -1.0, 1.2]), [6.0, 0.0, 0.0])
    run = da.simulate(m, 0.02, q, v, method="moreau", step=1e-4)
    assert run.ok, run.message
    x, z = (run.reactions[f"end-pin {k}"][1:] for k in "xz")
    rod = (run.q[1:, :2].sum(axis=1) + run.q[:-1, :2].sum(axis=1)) / 2  # its angle in the middle of a step
    np.testing.assert_allclose(np.abs(x), np.abs(2.0 * np.diff(run.v[:, 2]) / 1e-4), rtol=1e-6)
    np.testing.assert_allclose(z / x, -np.tan(rod), rtol=1e-5)


def test_two_drives_against_each_other_are_told():
    m = slider().constrain(da.Servo("up", lambda t: t), da.Servo("up", lambda t: 1.5 * t, name="other"))
    with pytest.raises(da.ModelError, match="misses 'other'"):
        da.simulate(m, 0.1, [0.0], [1.0], contacts=[FAR], **STEPS)
    later = slider().constrain(da.Servo("up", lambda t: t * t), da.Servo("up", lambda t: 1.5 * t * t, name="other"))
    run = da.simulate(later, 0.1, contacts=[FAR], **STEPS)
    assert run.status == "no solution"
    assert "contradict each other" in run.message


def test_a_table_that_is_driven_down_faster_than_gravity_leaves_its_load():
    """The table falls with 20 m/s^2: the load falls freely, and the contact opens."""
    b = da.Builder("table")
    b.body("table", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("table", "prismatic", parent="world", child="table", axis=(0, 0, 1))
    b.body("load", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("load", "prismatic", parent="world", child="load", axis=(0, 0, 1))
    touch = da.Contact(da.Sphere("load", 0.1), da.Sphere("table", 0.1), name="touch")
    m = b.build().constrain(da.Servo("table", lambda t: -10 * t * t))
    run = da.simulate(m, 0.2, [0.0, 0.2], contacts=[touch], **STEPS)
    assert run.q[-1, 1] == pytest.approx(0.2 - 0.5 * G * 0.04, abs=2e-3)
    lifted = b.build().constrain(da.Servo("table", lambda t: 2 * t * t))
    run = da.simulate(lifted, 0.2, [0.0, 0.2], contacts=[touch], **STEPS)
    assert run.reactions["touch"][-1, 2] == pytest.approx(G + 4.0, abs=1e-6)
    assert run.v[-1, 1] == pytest.approx(0.8, abs=1e-9)


def test_a_driven_row_of_a_lagrangian_moves_it_beside_contacts():
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    drive = [("drive", q[0] - (1 - ca.cos(2 * t)))]
    floor = [da.Unilateral("floor", gap=q[1])]
    energies = {"kinetic": 0.5 * (v[0] ** 2 + v[1] ** 2), "potential": G * q[1]}
    system = da.Lagrangian(q, v, **energies, time=t, constraints=dict(drive), unilateral=floor)
    run = da.simulate(system, 0.5, [0.0, 0.5], [0.0, 0.0], **STEPS)
    assert run.ok, run.message
    assert run.v[-1, 0] == pytest.approx(2 * np.sin(1.0), abs=1e-9)
    assert run.q[-1, 1] == pytest.approx(0.0, abs=1e-9)


def test_a_drive_whose_rate_is_zero_where_the_run_starts_is_paid_for():
    """x = y t with y = 0 at the start, y pushed: the rate -y was looked at there alone, and the drive did no work."""
    q, v, t = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("t")
    system = da.Lagrangian(
        q, v, 0.5 * ca.sumsqr(v), time=t, constraints={"lead": q[0] - q[1] * t}, forces=ca.vertcat(0, 1),
        unilateral=[da.Unilateral("far", gap=q[1] + 100)],
    )  # fmt: skip
    run = da.simulate(system, 1.0, [0.0, 0.0], [0.0, 0.0], **STEPS)
    assert run.ok, run.message
    assert run.work[-1] == pytest.approx(0.5 * np.sum(run.v[-1] ** 2), abs=1e-3)


def test_forces_of_a_lagrangian_do_work_and_are_those_in_the_middle_of_a_step():
    """They push with 10 cos 20 t against D = v^2 / 4: their work was 0, their time half a step behind."""
    q, v, t = ca.SX.sym("q", 1), ca.SX.sym("v", 1), ca.SX.sym("t")
    far = [da.Unilateral("far", gap=q[0] + 100)]
    push = 10 * ca.cos(20 * t)
    pushed = da.Lagrangian(q, v, 0.5 * v[0] ** 2, forces=push, time=t, unilateral=far)
    run = da.simulate(pushed, 1.0, [0.0], [0.0], **STEPS)
    np.testing.assert_allclose(run.v[:, 0], 0.5 * np.sin(20 * run.t), atol=2e-5)
    np.testing.assert_allclose(run.work, 0.5 * run.v[:, 0] ** 2, atol=2e-5)
    damped = da.Lagrangian(
        q, v, 0.5 * v[0] ** 2, forces=push, dissipation=v[0] ** 2 / 4, time=t, unilateral=far
    )  # fmt: skip
    run = da.simulate(damped, 1.0, [0.0], [1.0], **STEPS)
    np.testing.assert_allclose(run.work, 0.5 * run.v[:, 0] ** 2 - 0.5, atol=1e-3)


# ----------------------------------------------------------------------------------------------------------------------
# The set of contacts.


def stack(gap):
    """Return three spheres above each other, each on a slider of its own, and their contacts."""
    b = da.Builder("spheres")
    names = ("one", "two", "three")
    for name in names:
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        b.joint(name, "prismatic", parent="world", child=name, axis=(0, 0, 1))
    contacts = [da.Contact(da.Sphere("one", 0.1), name="floor")]
    for low, high in (("one", "two"), ("two", "three")):
        contacts.append(da.Contact(da.Sphere(high, 0.1), da.Sphere(low, 0.1), name=f"{high} on {low}"))
    return b.build(), [0.1, 0.3 + gap, 0.5 + 2 * gap], contacts


def test_spheres_at_rest_on_each_other_stay_so():
    """Half of their steps began with a penetration: the set was that of free motion, which opens nothing."""
    m, q, contacts = stack(0.0)
    run = da.simulate(m, 1.0, q, contacts=contacts, **STEPS)
    assert run.ok, run.message
    np.testing.assert_allclose(run.q, np.tile(q, (run.t.size, 1)), atol=1e-13)
    np.testing.assert_allclose([run.reactions[c.name][-1, 2] for c in contacts], [3 * G, 2 * G, G], rtol=1e-11)


def test_impulses_close_contacts_of_others():
    """The uppermost of three strikes the middle one, which is a hair above the lowest: no sphere enters another."""
    m, q, contacts = stack(1e-9)
    run = da.simulate(m, 0.1, q, [0.0, 0.0, -3.0], contacts=contacts, **STEPS)
    assert run.ok, run.message
    gaps = np.column_stack([run.q[:, 0] - 0.1, np.diff(run.q, axis=1) - 0.2])
    assert gaps.min() > -1e-12


# ----------------------------------------------------------------------------------------------------------------------
# The laws: Newton's method and ADMM in turns.


@steady
def _solve(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, w):
    return turns.solve_laws(G, g, kind, first, mu, bound, floor, count, size, r, tolerance, w)


def solve(G, g, kind, mu, bound, tolerance=1e-11):
    rows = np.array([3, 1, 2, 1])[kind]
    first, k, n = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64), len(kind), int(rows.sum())
    r = np.zeros(n)
    residual = _solve(
        G, g, np.asarray(kind), first, mu, bound, np.zeros(k), k, n, r, tolerance, turns.ConeWork.of(k, n)
    )
    return r, residual, first


def misses(G, g, kind, mu, bound, r, first):
    """Return by how much the laws are missed, written down once more: complementarity, cones, directions."""
    u, worst = G @ r + g, 0.0
    for i, a in enumerate(first[:-1]):
        limit = bound[i]
        if kind[i] in (turns.CONE, turns.NORMAL):
            worst = max(worst, -u[a], -r[a], abs(min(u[a], r[a])))
            limit = mu[i] * r[a]
        if kind[i] != turns.NORMAL:
            tangents = slice(a + (kind[i] == turns.CONE), first[i + 1])
            slip, force = u[tangents], r[tangents]
            worst = max(worst, np.linalg.norm(force) - limit)
            worst = max(
                worst, abs(force @ slip + limit * np.linalg.norm(slip))
            )  # friction is opposite to slip, and largest
    return worst


@pytest.mark.parametrize("seed", range(60))
def test_laws_are_met_by_redundant_problems_from_nothing(seed):
    rng = np.random.default_rng(seed)
    k, n = int(rng.integers(1, 12)), int(rng.integers(3, 20))
    kind = rng.choice([turns.CONE, turns.CONE, turns.CONE, turns.NORMAL, turns.DISK, turns.LINE], k)
    W = rng.standard_normal((int(np.array([3, 1, 2, 1])[kind].sum()), n))
    G, g = W @ W.T, W @ rng.standard_normal(n)
    mu, bound = rng.uniform(0.05, 1.2, k), rng.uniform(0.0, 2.0, k)
    r, residual, first = solve(G, g, kind, mu, bound)
    assert residual < 1e-11
    assert misses(G, g, kind, mu, bound, r, first) < 1e-9 * max(1.0, np.abs(r).max()) * np.abs(g).max()


# ----------------------------------------------------------------------------------------------------------------------
# Stiff forces.


def spring(k, d, expression):
    """Return the force of a spring and a damper on a slider, as an expression or a function of Python."""
    if not expression:
        return lambda t, q, v: -k * q - d * v
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 1), ca.SX.sym("v", 1)
    return ca.Function("spring", [t, q, v], [-k * q - d * v])


def test_a_stiff_spring_of_python_is_unstable_and_says_so():
    """It ended at 2e193 m, completed."""
    run = da.simulate(slider((1, 0, 0)), 1.0, [0.01], contacts=[FAR], force=spring(1e7, 0.0, expression=False), **STEPS)
    assert run.status == "no solution"
    assert "unstable" in run.message
    assert "smaller step=" in run.message
    assert np.abs(run.q).max() < 1e6


@pytest.mark.parametrize(("k", "d"), [(1e7, 0.0), (1e6, 1e4), (0.0, 1e5)])
def test_stiff_springs_and_dampers_that_are_expressions_are_implicit(k, d):
    run = da.simulate(
        slider((1, 0, 0)), 1.0, [0.01], [1.0], contacts=[FAR], force=spring(k, d, expression=True), **STEPS
    )
    assert run.ok, run.message
    assert np.abs(run.q).max() < 0.02
    assert np.abs(run.v[-1]).max() < 1.0


def test_implicit_springs_are_of_first_order():
    """m x'' = -k x - d x' against its closed form: the error falls with the step."""
    k, d, errors = 100.0, 2.0, []
    w = np.sqrt(k - d * d / 4)
    exact = np.exp(-0.5 * d) * (0.1 * np.cos(w) + 0.1 * d / 2 / w * np.sin(w))
    for h in (2e-3, 1e-3, 5e-4):
        law = spring(k, d, expression=True)
        run = da.simulate(slider((1, 0, 0)), 1.0, [0.1], contacts=[FAR], force=law, method="moreau", step=h)
        errors.append(abs(run.q[-1, 0] - exact))
    assert errors[2] < 0.55 * errors[1] < 0.31 * errors[0]
    assert errors[2] < 2e-3


def test_dampers_of_a_model_are_implicit():
    b = da.Builder("damped", gravity=(0, 0, 0))
    b.body("body", mass=1e-3, inertia=(0.1, 0.1, 0.1))
    b.joint("x", "prismatic", parent="world", child="body", axis=(1, 0, 0), damping=100.0, stiffness=1e4)
    run = da.simulate(b.build().with_passive(True), 0.2, [0.01], [1.0], contacts=[FAR], **STEPS)
    assert run.ok, run.message
    assert np.abs(run.q[-1]).max() < 1e-6


def test_noise_in_the_forces_is_no_instability():
    rng = np.random.default_rng(0)
    run = da.simulate(
        slider((1, 0, 0)), 1.0, contacts=[FAR], force=lambda t, q, v: rng.standard_normal(1) * 100, **STEPS
    )
    assert run.ok, run.message

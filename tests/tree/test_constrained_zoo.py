"""Closed mechanisms with known answers: minimal coordinates, statics, virtual work, limits of small mass."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.tree.block import constrained
from tests.tree import closed
from tests.tree.closed import CORNERS, least_norm, reduced, routes

REDUNDANT, UNIQUE = da.Status.REDUNDANT, da.Status.UNIQUE


def bars(angles, starts, lengths):
    """Return centres and angles of slender bars."""
    centres = [
        (start[0] + length / 2 * ca.cos(angle), start[1] + length / 2 * ca.sin(angle))
        for angle, start, length in zip(angles, starts, lengths, strict=True)
    ]
    return [(*centre, angle) for centre, angle in zip(centres, angles, strict=True)]


def open_force(mechanism, q, v, a):
    """Return M a + bias: what the open tree would need for this motion."""
    return mechanism.mass_matrix(q) @ a + mechanism.bias(q, v)


@pytest.mark.parametrize(("loop", "options"), [(da.Point, {}), (da.Revolute, {"axis": closed.Z}), (da.Planar, None)])
def test_four_bar(loop, options):
    """The crank moves as in its minimal coordinate; rows across the plane are redundant, those in it unique."""

    def positions(theta):
        corner = 0.5 * ca.cos(theta), 0.5 * ca.sin(theta)
        return bars(closed.four_bar_angles(theta), [(0, 0), corner, (1.1, 0)], [0.5, 1.0, 0.8])

    def coordinates(theta):
        crank, coupler, rocker = closed.four_bar_angles(theta)
        return [crank, coupler - crank, rocker]

    masses = [(m, m * length**2 / 12) for m, length in ((1.0, 0.5), (2.0, 1.0), (1.5, 0.8))]
    q, v, a = closed.minimal_acceleration(coordinates, positions, masses, 1.1, -2.0)
    if options is None:  # the same pin as the point of a bar on a plane and a line, each with redundant rows
        mechanism = closed.four_bar(da.Planar, axis=closed.Z).constrain(
            da.PointOnLine("coupler end", "rocker end", axis=closed.Z, name="hole")
        )
        unique = {"hole: displacement along x", "hole: displacement along y"}
    else:
        mechanism, unique = closed.four_bar(loop, **options), {"pin x", "pin y"}
    np.testing.assert_allclose(mechanism.constraint(q), 0, atol=1e-14)
    np.testing.assert_allclose(mechanism.constraint_velocity(q, v), 0, atol=1e-14)
    for solve in routes(mechanism).values():
        found, lam, status = solve(q, v, np.zeros(3), 0)
        np.testing.assert_allclose(found, a, rtol=1e-11)
        np.testing.assert_allclose(lam, least_norm(mechanism.jacobian(q), -open_force(mechanism, q, v, a)), atol=1e-10)
        assert status == REDUNDANT
    diagnosis = mechanism.diagnose(q, v)
    assert {name for name, is_unique in zip(mechanism.names, diagnosis.unique, strict=True) if is_unique} == unique
    assert set(diagnosis.redundant_names) == set(mechanism.names) - unique


def test_slider_crank():
    def angles(theta):
        return theta, -ca.asin(0.3 / 0.9 * ca.sin(theta))

    def positions(theta):
        crank, rod = angles(theta)
        corner = 0.3 * ca.cos(theta), 0.3 * ca.sin(theta)
        end = corner[0] + 0.9 * ca.cos(rod), 0 * theta
        return [*bars([crank, rod], [(0, 0), corner], [0.3, 0.9]), (*end, 0 * theta)]

    def coordinates(theta):
        crank, rod = angles(theta)
        return [crank, rod - crank, 0.3 * ca.cos(theta) + 0.9 * ca.cos(rod)]

    masses = [(1.0, 0.3**2 / 12), (1.2, 1.2 * 0.9**2 / 12), (2.0, 0.1)]
    mechanism = closed.slider_crank()
    for theta, omega in ((0.4, 3.0), (2.5, -1.0)):
        q, v, a = closed.minimal_acceleration(coordinates, positions, masses, theta, omega)
        for solve in routes(mechanism).values():
            found, _, status = solve(q, v, np.zeros(3), 0)
            np.testing.assert_allclose(found, a, rtol=1e-11, atol=1e-11)
            assert status == REDUNDANT
    assert mechanism.diagnose(q).redundant_names == (
        "wrist pin z", "wrist pin: rotation about x", "wrist pin: rotation about y",
    )  # fmt: skip


def test_parallelogram_with_one_bar_too_many():
    """I theta'' + V'(theta) = 0 in closed form; the extra crank makes two rows redundant in the plane, by name."""
    mechanism = closed.parallelogram()
    theta, omega = 1.2, 1.5
    q, v = np.array([theta, -theta, theta, theta]), omega * np.array([1, -1, 1, 1])
    np.testing.assert_allclose(mechanism.constraint(q), 0, atol=1e-15)
    inertia = (1.0 + 1.5 + 2.0) / 3 + 3.0
    alpha = -9.81 * ((1.0 + 1.5 + 2.0) / 2 + 3.0) * np.cos(theta) / inertia
    needed = -open_force(mechanism, q, v, alpha * v / omega)
    A = mechanism.jacobian(q)
    for metric in (None, (1.0, 1.0, 1.0, 100.0, 10.0, 1.0)):
        for solve in routes(mechanism, metric=metric).values():
            a, lam, status = solve(q, v, np.zeros(4), 0)
            np.testing.assert_allclose(a, alpha * v / omega, rtol=1e-11)
            np.testing.assert_allclose(lam, least_norm(A, needed, metric), atol=1e-9)
            assert status == REDUNDANT
        exact = mechanism.solve(q, v, metric=metric)
        np.testing.assert_allclose(exact.multipliers, least_norm(A, needed, metric), atol=1e-9)
    diagnosis = mechanism.diagnose(q, v)
    assert diagnosis.rank == 3
    assert diagnosis.redundant_names[0] == "second z"
    assert diagnosis.redundant_names[-1] == "third z"
    assert len(diagnosis.redundant_names) == 3
    assert set(diagnosis.redundant_names[1:-1]) <= {"third x", "third y"}
    assert "redundant: second z = 0" in str(diagnosis)


def test_door_on_three_hinges():
    """It swings about the line; what the lowest hinge carries is unique, the pulls of three on a line are not."""
    mechanism = closed.door()
    q, v = mechanism.neutral(), np.array([0, 0, 0, 0, 0, 1.5])
    moment = 1.7 + 20 * 0.5**2
    A = mechanism.jacobian(q)
    for metric in (None, (1.0, 1.0, 1.0, 4.0, 4.0, 9.0, 9.0)):
        for solve in routes(mechanism, metric=metric).values():
            a, lam, status = solve(q, v, np.zeros(6), 0)
            np.testing.assert_allclose(a, [0, 0, 0, 0, 0, 20 * 2.0 * 0.5 / moment], atol=1e-12)
            np.testing.assert_allclose(lam, least_norm(A, -open_force(mechanism, q, v, a), metric), atol=1e-9)
            np.testing.assert_allclose(-lam[2], 20 * 9.81, rtol=1e-12)
            assert status == REDUNDANT
    diagnosis = mechanism.diagnose(q, v)
    assert [name for name, unique in zip(mechanism.names, diagnosis.unique, strict=True) if unique] == ["low z"]
    assert "reactions unique: low z" in str(diagnosis)
    assert diagnosis.redundant_names == ("high: displacement along x", "high: displacement along y")
    assert "redundant: high: displacement along x = -low x + 2 middle: displacement along x" in str(diagnosis)


def test_hinges_close_together_are_still_redundant():
    """The third hinge is implied by -19 times the first and 20 times the second: large factors hide it from no one."""
    mechanism = closed.door((0.0, 0.1, 2.0))
    q, v = mechanism.neutral(), np.array([0, 0, 0, 0, 0, 1.5])
    exact = closed.Traced(mechanism).solve(q, v, np.zeros(6))
    assert exact.status == REDUNDANT
    for solve in routes(mechanism).values():
        a, lam, status = solve(q, v, np.zeros(6), 0)
        assert status == REDUNDANT
        np.testing.assert_allclose(a, exact.acceleration, atol=1e-11)
        np.testing.assert_allclose(lam, exact.multipliers, atol=1e-8 * np.abs(lam).max())


def test_a_door_whose_hinges_all_carry_has_no_unique_reaction():
    b = da.Builder("door")
    b.body("leaf", mass=20.0, center=(0.5, 0, 1), inertia=(7, 8.5, 1.7))
    hinges = [
        da.Revolute("leaf", at=(0, 0, z), placement=(0, 0, z), axis=closed.Z, name=f"hinge {z}") for z in (0, 1, 2)
    ]
    mechanism = b.build(base="floating").constrain(*hinges)
    q, v = mechanism.neutral(), np.array([0, 0, 0, 0, 0, 1.0])
    diagnosis = mechanism.diagnose(q)
    assert (diagnosis.rank, len(mechanism.names)) == (5, 15)
    assert not diagnosis.unique.any()
    assert "reactions unique: none" in str(diagnosis)
    for solve in routes(mechanism).values():
        a, lam, status = solve(q, v, np.zeros(6), 0)
        np.testing.assert_allclose(a, 0, atol=1e-11)
        np.testing.assert_allclose(-lam[2::5], 20 * 9.81 / 3, rtol=1e-9)  # the weight is shared alike
        assert status == REDUNDANT


def test_four_points_on_one_foot():
    """Accelerations are those of a welded foot; the four forces are the least that add up to its wrench."""
    walker = closed.walker()
    points = walker.constrain(*[da.Point(f"corner {i}") for i in range(4)])
    weld = walker.constrain(da.Weld("foot"))
    rng = np.random.default_rng(3)
    q, tau = walker.random(rng), 5 * rng.standard_normal(walker.nv)
    v = reduced_velocity(weld, q, rng.standard_normal(walker.nv))
    A = points.jacobian(q)
    a, wrench, status = routes(weld)["efpa"](q, v, tau, 0)
    assert status == UNIQUE
    R = walker.kinematics(q, "foot")[0]
    arms = [R @ corner for corner in CORNERS]
    grasp = np.hstack([np.vstack([np.eye(3), np.cross(np.eye(3), r).T @ -np.eye(3)]) for r in arms])
    metrics = (None, np.repeat([1.0, 2.0, 5.0, 10.0], 3))
    for metric in metrics:
        for solve in routes(points, metric=metric).values():
            found, lam, status = solve(q, v, tau, 0)
            assert status == REDUNDANT
            np.testing.assert_allclose(found, a, atol=1e-10 * np.abs(a).max())
            np.testing.assert_allclose(grasp @ lam, wrench, atol=1e-9 * np.abs(wrench).max())
            np.testing.assert_allclose(lam, least_norm(A, A.T @ lam, metric), atol=1e-8 * np.abs(lam).max())
    diagnosis = points.diagnose(q, v)
    assert diagnosis.rank == 6
    assert not diagnosis.unique.any()
    assert all(name.startswith(("corner 1", "corner 2", "corner 3")) for name in diagnosis.redundant_names)


def reduced_velocity(mechanism, q, v):
    A = mechanism.jacobian(q)
    return v - np.linalg.pinv(A, rcond=1e-10) @ (A @ v)


def test_a_massless_leg_is_the_limit_of_small_mass():
    pinned = {
        mass: closed.hopper(mass).constrain(da.Point("foot")) for mass in (0.0, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12, 1e-14)
    }
    rng = np.random.default_rng(0)
    q = pinned[0.0].random(rng)
    v, tau = reduced_velocity(pinned[0.0], q, rng.standard_normal(8)), 3 * rng.standard_normal(8)
    with pytest.raises(da.ModelError, match="massless"):
        constrained.forward(pinned[0.0], "efpa")
    a, lam, status = closed.numeric(constrained.forward(pinned[0.0]))(q, v, tau, 0)
    assert status == UNIQUE
    np.testing.assert_allclose(a, reduced(pinned[0.0], q, v, tau), rtol=1e-9, atol=1e-9)
    errors = []
    for mass in (1e-3, 1e-5, 1e-7):
        near, force, _ = closed.numeric(constrained.forward(pinned[mass]))(q, v, tau, 0)
        errors.append(max(np.abs(near - a).max() / np.abs(a).max(), np.abs(force - lam).max() / np.abs(lam).max()))
    first, second, third = errors
    assert first < 0.01
    assert second < 2e-2 * first
    assert third < 2e-2 * second
    for mass in (1e-9, 1e-12, 1e-14):
        near, force, status = closed.numeric(constrained.forward(pinned[mass]))(q, v, tau, 0)
        assert status == UNIQUE
        np.testing.assert_allclose(near, a, atol=(10 * mass + 1e-12) * np.abs(a).max())
        np.testing.assert_allclose(force, lam, atol=(10 * mass + 1e-12) * np.abs(lam).max())
    exact = closed.Traced(pinned[1e-9]).solve(q, v, tau)
    np.testing.assert_allclose(exact.acceleration, a, atol=1e-8 * np.abs(a).max())
    np.testing.assert_allclose(exact.multipliers, lam, atol=1e-8 * np.abs(lam).max())


def test_stewart_platform_by_virtual_work():
    """Held by its drives, their forces are the slopes of the potential energy over the lengths of the legs."""
    free, driven = closed.stewart()
    start = free.neutral()
    start[2] = 0.95
    for i in range(6):
        start[free.index_q(f"slider {i}")] = 0.2
    q = driven.project(start)
    np.testing.assert_allclose(driven.constraint(q), 0, atol=1e-12)
    rest = np.zeros(free.nv)
    found, lam, status = closed.numeric(constrained.forward(driven))(q, rest, rest, 0)
    assert status == UNIQUE
    np.testing.assert_allclose(found, 0, atol=1e-10)
    sliders = [free.index_v(f"slider {i}").start for i in range(6)]
    A = free.jacobian(q)
    for i, slider in enumerate(sliders):
        move = np.linalg.lstsq(np.vstack([A, np.eye(free.nv)[sliders]]), np.r_[np.zeros(18), np.eye(6)[i]], rcond=None)[
            0
        ]
        assert abs(move[slider] - 1) < 1e-12
        h = 1e-6
        up, down = (free.energy(free.integrate(q, sign * h * move), rest)[1] for sign in (1, -1))
        np.testing.assert_allclose(-lam[18 + i], (up - down) / (2 * h), rtol=1e-7, atol=1e-6)
    rng = np.random.default_rng(1)
    v, tau = reduced_velocity(free, q, rng.standard_normal(free.nv)), rng.standard_normal(free.nv)
    for solve in routes(free).values():
        a, _, status = solve(q, v, tau, 0)
        assert status == UNIQUE
        np.testing.assert_allclose(a, reduced(free, q, v, tau), rtol=1e-9, atol=1e-9)

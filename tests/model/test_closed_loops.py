"""Well-known mechanisms with loops and contacts: motion of the reduced system, reactions, and the right words."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.kkt import Status
from dalembert.model.mechanism.ranks import admissible_velocity, distance, distances
from tests.model.closed_loops import (
    block_on_corners,
    door,
    massless_leg,
    parallelogram,
    pinned_twice,
    slider_crank,
    stewart,
)


def test_slider_crank_moves_as_the_reduced_system():
    """One angle: T = I(x) w^2 / 2 and V(x) by closed-form kinematics, differentiated by CasADi."""
    r, rod, w = 0.5, 1.5, 2.0
    x = ca.SX.sym("x")
    y = ca.asin(r * ca.sin(x) / rod)  # the rod leans down by this
    middle = ca.vertcat(r * ca.cos(x) + rod / 2 * ca.cos(y), r * ca.sin(x) - rod / 2 * ca.sin(y))
    slide = r * ca.cos(x) + rod * ca.cos(y)
    speed = ca.jacobian(middle, x)
    inertia = (
        0.02 + r**2 / 4 + 0.7 * ca.sumsqr(speed) + 0.13 * ca.jacobian(y, x) ** 2 + 0.4 * ca.jacobian(slide, x) ** 2
    )
    height = r / 2 * ca.sin(x) + 0.7 * middle[1]
    a = -(ca.jacobian(inertia, x) / 2 * w**2 + 9.81 * ca.jacobian(height, x)) / inertia
    closed_form = ca.Function("f", [x], [a, y, ca.jacobian(y, x), slide, ca.jacobian(slide, x)])
    mechanism = slider_crank(r, rod)
    for angle in (0.3, 1.2, 2.5, 4.0):
        expected, lean, turn, place, glide = (float(each) for each in closed_form(angle))
        q, v = np.array([angle, -angle - lean, place]), np.array([w, -w - turn * w, glide * w])
        np.testing.assert_allclose(mechanism.constraint(q), 0, atol=1e-14)
        np.testing.assert_allclose(mechanism.constraint_velocity(q, v), 0, atol=1e-13)
        found = mechanism.solve(q, v)
        assert found.acceleration[0] == pytest.approx(expected, rel=1e-11)
    assert mechanism.diagnose(q, v).rank == 2  # of five rows: the plane is kept by the tree


def test_door_on_two_and_on_three_hinges():
    """Two points: only the weight is shared in an unknown way. Three: the middle one makes all of them unknown."""
    q, v = np.array([0, 0, 0, 0, 0, 0, 1.0]), np.zeros(6)
    two, three = door((0.2, 1.8)), door((0.2, 1.0, 1.8))
    assert two.diagnose(q, v).rank == three.diagnose(q, v).rank == 5
    both, all_three = two.solve(q, v), three.solve(q, v)
    np.testing.assert_allclose(both.acceleration, all_three.acceleration, atol=1e-12)
    np.testing.assert_allclose(both.acceleration, 0, atol=1e-12)
    unique = dict(zip(two.names, both.certificate.unique, strict=True))
    assert [name for name, only in unique.items() if not only] == ["hinge at 0.2 m z", "hinge at 1.8 m z"]
    assert not any(all_three.certificate.unique)
    forces = dict(zip(two.names, both.reactions, strict=True))
    weight = 20 * 9.81
    for hinge, sign in ((0.2, 1), (1.8, -1)):
        assert forces[f"hinge at {hinge} m z"] == pytest.approx(weight / 2)  # the least norm shares evenly
        assert forces[f"hinge at {hinge} m x"] == pytest.approx(sign * weight * 0.4 / 1.6)


def test_stewart_platform_carries_its_weight():
    """Six rods hold six freedoms; their forces balance weight and moment (equilibrium by a 6 x 6 system)."""
    mechanism, q = stewart()
    np.testing.assert_allclose(mechanism.constraint(q), 0, atol=1e-15)
    found = mechanism.solve(q, np.zeros(6))
    np.testing.assert_allclose(found.acceleration, 0, atol=1e-11)
    rods = mechanism.constraints
    tops = np.array([rod.placement.position for rod in rods])
    units = np.array([top + q[:3] - rod.at.position for top, rod in zip(tops, rods, strict=True)])
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    wrenches = np.hstack([units, np.cross(tops, units)]).T
    weight = 10 * np.array([0, 0, -9.81])
    expected = np.linalg.solve(wrenches, -np.concatenate([weight, np.cross([0.05, -0.02, 0.01], weight)]))
    np.testing.assert_allclose(found.reactions, expected, rtol=1e-10)
    assert "redundant" not in str(mechanism.diagnose(q))


def test_parallelogram_with_one_bar_too_many():
    """The third bar changes neither the freedom nor, without mass of its own, the motion's closure; two rows repeat."""
    for bars, rank, rows in ((2, 2, 2), (3, 3, 4)):
        mechanism = parallelogram(bars)
        lean, w = 0.4, 1.3
        q = np.array([lean, -lean, *[lean] * (bars - 1)])
        v = np.array([w, -w, *[w] * (bars - 1)])
        np.testing.assert_allclose(mechanism.constraint(q), 0, atol=1e-15)
        diagnosis = mechanism.diagnose(q, v)
        assert (diagnosis.rank, len(mechanism.names)) == (rank, rows)
        found = mechanism.solve(q, v)
        # reduced: the plank stays level, each bar turns; I a = m g (1/2 bars + plank) sin(lean)
        inertia = bars * (0.1 + 0.25) + 3.0
        expected = 9.81 * (bars * 0.5 + 3.0) * np.sin(lean) / inertia
        signs = np.array([1, -1, *[1] * (bars - 1)])
        np.testing.assert_allclose(found.acceleration, expected * signs, rtol=1e-11)
    assert len(diagnosis.redundant_names) == 1


def test_massless_leg_is_the_limit_of_light_ones():
    """M is singular, the foot's contact makes the motion unique; light legs tend to it as their mass does."""
    tau = np.array([0, 0, 0, 3.0, 2.0])

    def accelerate(mass):
        mechanism = massless_leg(mass)
        q = mechanism.integrate(mechanism.neutral(), [0.1, 0.2, 0.3, 0.4, 0.8])
        A = mechanism.jacobian(q)
        v = (np.eye(5) - np.linalg.pinv(A) @ A) @ [0.3, -0.2, 0.5, 0.1, 0.7]
        return mechanism.solve(q, v, tau).acceleration

    limit = accelerate(0.0)
    errors = np.array([np.abs(accelerate(mass) - limit).max() for mass in (1e-3, 1e-5, 1e-7)])
    assert np.isfinite(limit).all()
    np.testing.assert_allclose(errors[1:], errors[:-1] * 1e-2, rtol=0.1)


def test_free_massless_leg_is_named():
    """Without contact nothing determines how the massless links move."""
    free = massless_leg().open_tree()
    with pytest.raises(da.SolvabilityError, match="thigh_hinge"):
        free.solve(free.neutral(), np.zeros(free.nv))


@pytest.mark.parametrize("tau", [np.zeros(5), np.array([1.0, -2.0, 0.5, 3.0, 2.0])])
def test_J11_a_free_massless_leg_is_held_on_request(tau):
    """After eq. (35): with `massless="hold"` the massless hinges do not accelerate and the trunk moves as if they were
    locked; forces on them have no mass to move and go into what holds them."""
    free = massless_leg().open_tree()
    hinges = [free.index_v(name).start for name in ("thigh_hinge", "shank_hinge")]
    q = free.integrate(free.neutral(), [0.1, 0.2, 0.3, 0.4, 0.8])
    v = np.array([0.3, -0.2, 0.5, 0.0, 0.0])
    with pytest.raises(da.SolvabilityError, match="hold"):
        free.solve(q, v, tau)
    found = free.solve(q, v, tau, massless="hold")
    names = ("thigh_hinge", "shank_hinge")
    locked = free.constrain(*(da.Servo(name, float(q[free.index_q(name)][0])) for name in names)).solve(q, v, tau)
    np.testing.assert_allclose(found.acceleration, locked.acceleration, atol=1e-12)
    np.testing.assert_allclose(found.acceleration[hinges], 0, atol=1e-12)
    assert found.held is not None
    moving = np.abs(found.held.motions).max(axis=1) > 1e-9
    assert set(np.flatnonzero(moving)) == set(hinges)
    along = found.held.motions.T @ tau
    np.testing.assert_allclose(np.abs(found.held.forces), np.abs(along), atol=1e-12)


def test_four_points_on_one_foot():
    """Twelve rows of rank six: the block rests as if welded, and the least-norm forces share its weight."""
    mechanism = block_on_corners()
    q, v = mechanism.neutral(), np.zeros(6)
    found, welded = mechanism.solve(q, v), mechanism.open_tree().constrain(da.Weld("block")).solve(q, v)
    np.testing.assert_allclose(found.acceleration, welded.acceleration, atol=1e-12)
    diagnosis = mechanism.diagnose(q, v)
    assert diagnosis.rank == 6
    assert len(diagnosis.redundant_names) == 6
    up = [force for name, force in zip(mechanism.names, found.reactions, strict=True) if name.endswith("z")]
    np.testing.assert_allclose(up, 2 * 9.81 / 4)
    assert not any(found.certificate.unique)


def test_contradicting_servos_are_named():
    b = da.Builder("wheel")
    b.body("rim", mass=1.0, inertia=(1, 1, 1))
    b.joint("axle", "revolute", parent="world", child="rim")
    mechanism = b.build().constrain(
        da.Servo("axle", lambda t: t**2, name="slow"), da.Servo("axle", lambda t: 2 * t**2, name="fast")
    )
    with pytest.raises(da.SolvabilityError, match=r"(?s)slow.*fast|fast.*slow"):
        mechanism.solve([0.0], [0.0])
    assert "slow" in str(mechanism.diagnose([0.0], [0.0]))


def test_rows_that_contradict_each_other_are_named_where_they_are_open_the_least():
    """A pin in two holes a millimetre apart: half a millimetre stays at each, wherever the projection began."""
    b = da.Builder("bar")
    b.body("bar", mass=1.0, inertia=[0.1] * 3, center=(0.5, 0, 0))
    b.joint("x", "prismatic", parent="world", child="bar", axis=(1, 0, 0))
    b.frame("left", "bar", position=(-5e-4, 0, 0))
    b.frame("right", "bar", position=(5e-4, 0, 0))
    bar = b.build().constrain(da.Point("left", at=(0, 0, 0)), da.Point("right", at=(0, 0, 0)))
    with pytest.raises(da.SolvabilityError, match=r"open the least .*'(left|right) x' \(0\.0005\).*contradict"):
        bar.project([0.3])


def test_loops_that_contradict_each_other_within_the_digits_share_what_stays_open():
    """The same loop pinned twice, 1e-8 m apart: Newton's steps closed one and left all of it to the other."""
    twice = pinned_twice(1e-8)
    left = np.asarray(twice.constraint(twice.project([0.9, -0.6, 1.3])))
    np.testing.assert_allclose(left[:3], -left[3:], atol=1e-12)
    assert np.linalg.norm(left) == pytest.approx(1e-8 / np.sqrt(2), rel=1e-3)


def test_J7_a_direction_that_is_lost_has_a_status():
    """Flat, the rows of a parallelogram allow more velocities than it has motions; elsewhere they do not."""
    m = parallelogram()
    for angle, status in ((1.0, Status.UNIQUE), (np.pi / 2, Status.ILL_CONDITIONED)):
        found = admissible_velocity(m, angle * np.array([1.0, -1.0, 1.0]), np.array([1.0, 0.3, -0.2]))
        assert found.status is status
        assert not found.open


def test_J7_rates_that_no_velocity_has_are_refused_with_their_rows():
    """A drive pushes the slider through a dead centre: the wrist was left open by 0.2 m/s, without a word."""
    m = slider_crank().constrain(da.Servo("rail", lambda t: 2.0 + 0.3 * t))
    dead = np.array([0.0, 0.0, 2.0])
    np.testing.assert_allclose(m.constraint(dead, 0.0), 0.0)
    found = admissible_velocity(m, dead, np.zeros(3))
    assert found.status > Status.LEAST_SQUARES
    assert set(found.open) == {"wrist x", "servo rail"}
    with pytest.raises(da.SolvabilityError, match=r"no admissible velocity .*'wrist x' \(0\.\d+\), 'servo rail'"):
        m.project(dead, np.zeros(3))
    lean = -0.3 - np.arcsin(np.sin(0.3) / 3.0)
    moves = np.array([0.3, lean, 0.5 * np.cos(0.3) + 1.5 * np.cos(lean + 0.3)])
    later = slider_crank().constrain(da.Servo("rail", lambda t: moves[2] + 0.3 * t))
    _, v = later.project(moves, np.zeros(3))
    assert v[2] == pytest.approx(0.3)
    _, batch = m.project(np.stack([dead, dead]), np.zeros((2, 3)))
    assert np.isnan(batch).all()


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e4])
def test_gaps_of_an_assembly_are_parts_of_the_mechanism(size):
    """Loops that contradict each other by 1e-8 of their links say so at any size; rounding never does."""
    guess = [0.9, -0.6, 1.3]
    assert "contradict each other" in str(pinned_twice(1e-8 * size, size).assemble(guess))
    assert "contradict" not in str(pinned_twice(0.0, size).assemble(guess))


@pytest.mark.parametrize(
    "make", [slider_crank, parallelogram, massless_leg, lambda: door((0.2, 1.8)), block_on_corners]
)
def test_distances_of_a_batch_are_those_of_its_samples(make):
    """s_r / s_1 of many configurations at once, light and massless links and near dead centres among them."""
    mechanism = make()
    rng = np.random.default_rng(3)
    tangents = rng.standard_normal((40, mechanism.nv)) * np.logspace(0, -12, 40)[:, None]
    q = mechanism.integrate(np.broadcast_to(mechanism.neutral(), (40, mechanism.nq)), tangents)
    rank = mechanism.generic_rank()
    together = distances(rank, mechanism.mass_matrix(q), mechanism.jacobian(q))
    apart = [distance(mechanism, rank, each) for each in q]
    assert min(apart) < max(apart)
    np.testing.assert_allclose(together, apart, rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(distances(replace(rank, rank=0), np.zeros((2, 1, 1)), np.zeros((2, 1, 1))), 1.0)


def test_a_batch_is_solved_under_the_rank_of_its_mechanism():
    """Samples next to a dead centre keep their rows, and one that is not finite has its status."""
    mechanism = parallelogram()
    angles = np.array([0.4, 1e-9, 1.1, np.nan])
    q = np.stack([angles, -angles, angles], axis=-1)
    still = np.zeros(3)
    together = mechanism.solve(q, still)
    for k in (0, 1, 2):
        single = mechanism.solve(q[k : k + 1], still)
        np.testing.assert_allclose(together.acceleration[k], single.acceleration[0], rtol=1e-9)
    assert together.status[3] == da.Status.NONFINITE


def test_equilibrium_of_a_file_s_redundant_loops():
    """Numbers of a file have six digits: loops that contradict each other in the seventh do not hold the mechanism."""
    exact = parallelogram(3)
    *others, last = exact.constraints
    rounded = replace(exact, constraints=(*others, replace(last, at=(2.0 + 2e-7, 0, 0))), source="plank.urdf")
    assert rounded.generic_rank().rank == 3
    q = np.array([2.0, -2.0, 2.0, 2.0])
    rest, expected = rounded.equilibrium(q), exact.equilibrium(q)
    np.testing.assert_allclose(np.abs(rest.q[0]), np.pi, atol=1e-5)
    np.testing.assert_allclose(rest.stiffness, expected.stiffness, rtol=1e-4)

"""Loops in a plane whose axes are tilted by less than the model's digits: what that leaves of rows locks nothing.

The angular rows of the loop, and the one across the plane, are then as small as the tilt. Scaled up for themselves they
passed for rows: the four-bar below stood still under 5e10 N, with a good status.
"""

import numpy as np
import pytest

import dalembert as da
from tests.large.answers import looped_forward
from tests.simulate.overconstrained import hinge_loop

ALIKE = 1e-12
TILTS = (1e-13, 1e-11, 1e-10, 1e-9)


def four_bar(hinge: int = 0, tilt: float = 0.0, friction: float = 0.0) -> da.Mechanism:
    """Return three links in a row, held at the end by a fourth hinge; one of the hinges is tilted."""
    axes = [(tilt if hinge == k else 0.0, 0.0, 1.0) for k in range(4)]
    builder, last = da.Builder("four-bar", gravity=(0, -9.81, 0)), "world"
    for name, x, axis in zip(("crank", "coupler", "rocker"), (0.0, 0.4, 0.6), axes[:3], strict=True):
        builder.body(name, mass=1.0, center=(0.3, 0, 0), inertia=(0.01, 0.1, 0.1))
        builder.joint(name, "revolute", parent=last, child=name, axis=axis, position=(x, 0, 0), friction=friction)
        last, friction = name, 0.0
    builder.frame("end", "rocker", position=(0.8, 0, 0))
    return builder.build().constrain(da.Revolute("end", at=(1.1, 0, 0), axis=axes[3]))


def closed() -> np.ndarray:
    """Return the configuration of the plane four-bar by the cosine rule: crank at 1.2 rad, elbow up."""
    crank, coupler, rocker, ground, angle = 0.4, 0.6, 0.8, 1.1, 1.2
    x, y = crank * np.cos(angle) - ground, crank * np.sin(angle)
    distance = np.hypot(x, y)
    towards = np.arctan2(-y, -x)
    elbow = np.arccos((distance**2 + coupler**2 - rocker**2) / (2 * distance * coupler))
    second = towards + elbow
    end = np.array([crank * np.cos(angle) + coupler * np.cos(second), y + coupler * np.sin(second)])
    third = np.arctan2(-end[1], ground - end[0])
    return np.array([angle, second - angle, third - second])


Q = closed()
STILL = np.zeros(3)


@pytest.fixture(scope="module")
def plane():
    """Return what the four-bar does whose axes are parallel, and check it by its energy alone."""
    mechanism = four_bar()
    h, directions = 1e-6, mechanism.impact(Q, np.array([1.0, 0.0, 0.0])).velocity
    way = directions / directions[0]

    def potential(x):
        return mechanism.energy(mechanism.project(Q + x * way), STILL)[1]

    slope = (potential(h) - potential(-h)) / (2 * h)
    mass = way @ mechanism.mass_matrix(Q) @ way
    a = mechanism.forward(Q, STILL).acceleration
    assert a == pytest.approx(-slope / mass * way, rel=1e-6)
    return a


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("hinge", range(4))
def test_a_tilt_below_the_digits_locks_no_loop(hinge, tilt, plane):
    mechanism = four_bar(hinge, tilt)
    batch = np.stack([Q, Q])
    answers = [mechanism.forward(Q, STILL), mechanism.solve(Q, STILL)]
    for answer in answers:
        assert answer.status == da.Status.REDUNDANT
        assert answer.acceleration == pytest.approx(plane, rel=ALIKE)
        assert np.abs(answer.multipliers).max() < 15.0
    both = mechanism.solve(batch, np.zeros((2, 3)))
    assert (both.status == da.Status.REDUNDANT).all()
    assert both.acceleration == pytest.approx(np.stack([plane, plane]), rel=ALIKE)


@pytest.mark.parametrize("hinge", range(4))
def test_impacts_rest_and_inverse_dynamics_see_a_plane_loop(hinge, plane):
    mechanism, flat = four_bar(hinge, 1e-9), four_bar()
    strike = np.array([1.0, 0.0, 0.0])
    assert mechanism.impact(Q, strike).velocity == pytest.approx(flat.impact(Q, strike).velocity, rel=1e-9)
    rest = mechanism.equilibrium(Q)
    assert rest.q == pytest.approx(flat.equilibrium(Q).q, abs=1e-7)
    assert rest.stable
    found, known = mechanism.inverse(Q, STILL, plane), flat.inverse(Q, STILL, plane)
    assert found.multipliers == pytest.approx(known.multipliers, abs=1e-7)
    bearing = mechanism.joint_forces(Q, STILL)["rocker"].force
    assert bearing == pytest.approx(flat.joint_forces(Q, STILL)["rocker"].force, abs=1e-7)


@pytest.mark.parametrize("route", ["auto", "sparse"])
def test_loops_of_large_mechanisms_do(route, plane):
    for hinge in range(4):
        answer = looped_forward(four_bar(hinge, 1e-9), Q, STILL, STILL, route=route)
        assert answer.status == da.Status.REDUNDANT
        assert answer.acceleration == pytest.approx(plane, rel=1e-9)


def test_loops_of_large_mechanisms_take_small_rows_for_what_the_mechanism_does():
    """Random velocities summed tilts of 4.5e-8 to above the limit of 1e-7, and angular rows locked the loop."""
    for hinge, tilt in ((1, 4.5e-8), (2, 3e-8)):
        mechanism = four_bar(hinge, tilt)
        answer = looped_forward(mechanism, Q, STILL, STILL)
        assert answer.status == da.Status.ILL_CONDITIONED
        assert answer.acceleration == pytest.approx(mechanism.solve(Q, STILL).acceleration, rel=1e-6)


def test_a_tilt_of_its_own_is_no_rounding():
    """Tilted by 1e-5 the hinges cannot be closed: that is said, and no motion is made up."""
    mechanism = four_bar(3, 1e-5)
    assert not mechanism.assemble(Q).ok
    with pytest.raises((da.ModelError, da.SolvabilityError), match="rotation about"):
        da.simulate(mechanism, 0.1, q=Q)


@pytest.mark.parametrize(("hinge", "tilt"), [(3, 1e-5), (3, 0.1), (0, 1e-6)])
def test_a_loop_that_cannot_be_closed_is_held_by_all_its_rows(hinge, tilt):
    """Rows were taken for idle by a gap that no configuration closes: a hinge tilted by 0.1 rad let the loop move."""
    mechanism = four_bar(hinge, tilt)
    A, force = mechanism.jacobian(Q), -mechanism.bias(Q, STILL)
    assert np.linalg.svd(A, compute_uv=False)[2] > 1e-8
    held = np.linalg.lstsq(A.T, force, rcond=1e-12)[0]  # A has no motion left: its rows carry all of the weight
    answer = mechanism.solve(Q, STILL)
    assert answer.status == da.Status.REDUNDANT
    assert np.abs(answer.acceleration).max() < 1e-6
    assert answer.multipliers == pytest.approx(held, rel=1e-6)


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-10, 1e-9])
@pytest.mark.parametrize("hinge", [0, 5])
def test_motors_in_all_joints_hold_a_linkage_with_least_forces(hinge, tilt):
    """Sarrus's linkage moves along (1, -2, 1, 1, -2): the least forces of motors point there, and have the power of
    gravity. With a tilt of 1e-14 the sample was declined. Multipliers of 10 N lie on rows that the tilt changes."""
    c, s = np.cos(0.9), np.sin(0.9)
    points = [[0, 0, 0], [c, 0, s], [0, 0, 2 * s], [-0.5, 0.5, 2 * s], [-0.5, 0.5 + c, s], [-0.5, 0.5, 0]]
    axes = np.array([[0, 1, 0]] * 3 + [[1, 0, 0]] * 3, float)
    side = np.cross(axes[hinge], [0.36, 0.48, 0.8])
    axes[hinge] += tilt * side / np.linalg.norm(side)
    m = hinge_loop(points, axes, "sarrus", 1.0, (1.3, -2.1, -9.0))
    still, way = np.zeros(5), np.array([1.0, -2.0, 1.0, 1.0, -2.0])
    found = m.inverse(m.neutral(), still, still)
    load = np.asarray(m.bias(m.neutral(), still))
    assert found.status == da.Status.REDUNDANT
    np.testing.assert_allclose(found.tau, way * (way @ load) / (way @ way), rtol=0, atol=1e-11 + 10 * tilt)

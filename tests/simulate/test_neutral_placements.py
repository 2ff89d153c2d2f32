"""What is called neutral decides nothing: ranks belong to where the motion is.

A row of parallelogram windows lies flat where q = 0, with as many lost rows as windows, and runs upright. References:
the same row whose frames make the upright place neutral, plain NumPy with the rank given, a leaf on one hinge.
"""

from functools import cache

import numpy as np
import pytest

import dalembert as da

from . import overconstrained as given

ROWS = {"line": da.Status.UNIQUE, "revolute": da.Status.REDUNDANT}
"""Loops that the plane leaves independent, and of five rows that depend on each other."""

TOLERANCE = 1e-9


@cache
def windows(count, kind):
    return given.windows(count, kind)


@cache
def upright(count):
    """Return the angle of the first bar from upright after 0.2 s, of the row that is built upright."""
    m, q, v = given.windows(count, "line", upright=True)
    assert not q.any()
    return da.simulate(m, 0.2, q, v, rtol=TOLERANCE, atol=TOLERANCE)["foot 0"][-1]


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("count", [4, 10])
def test_a_row_of_windows_that_is_flat_where_q_is_zero_runs_upright(count, kind):
    """Four to ten windows did not end, or ended inaccurate: 806 rejected steps for 2 ms."""
    m, q, v = windows(count, kind)
    run = da.simulate(m, 0.2, q, v, rtol=TOLERANCE, atol=TOLERANCE)
    assert run.ok, run.message
    assert run.session.rejected < 5
    assert run["foot 0"][-1] - np.pi / 2 == pytest.approx(upright(count), abs=1e-8)


@pytest.mark.parametrize(
    ("method", "options"), [("dopri5", {}), ("bdf", {}), ("radau", {}), ("moreau", {"step": 1e-3})]
)
def test_every_stepper_runs_upright(method, options):
    m, q, v = windows(4, "line")
    run = da.simulate(m, 0.2, q, v, method=method, **options)
    assert run.ok, run.message
    assert run["foot 0"][-1] - np.pi / 2 == pytest.approx(upright(4), abs=1e-5)


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("count", [4, 6, 20])
def test_accelerations_upright_are_certified(count, kind):
    """They were right to 5e-15 and called ILL_CONDITIONED; under a rank of the flat row they would be 16 times off."""
    m, q, v = windows(count, kind)
    force = np.random.default_rng(count).normal(size=(3, m.nv))
    lean = np.array([-0.6, 0.0, 0.9])[:, None] * np.sign(q)
    batch = m.forward(q + lean, v, force)
    alone = m.solve(q, v, force[1])
    assert (batch.status == ROWS[kind]).all()
    assert alone.status == ROWS[kind]
    for k in range(3):
        place = q + lean[k]
        exact = given.acceleration(m, place, v, 2 * count) + _free(m, place, force[k], 2 * count)
        np.testing.assert_allclose(batch.acceleration[k], exact, atol=1e-10 * np.abs(exact).max())
    np.testing.assert_allclose(alone.acceleration, batch.acceleration[1], atol=1e-10 * np.abs(exact).max())


def _free(m, q, force, rank):
    """Return what a force adds to the accelerations under the rank."""
    _, L, A, U, s, Vt = given.rows_in_mass_metric(m, q, rank)
    free = np.linalg.solve(L.T, np.linalg.solve(L, force))
    return free - given.correction(L, U, s, Vt, A @ free)


@pytest.mark.parametrize("count", [4, 10])
def test_a_flat_row_puts_no_rank_in_doubt(count):
    """Newton's steps end 1e-8 from it: singular values as small as those of tilted axes are of rows that fade."""
    m, q, _ = windows(count, "revolute")
    assert m.rank_doubt == ""
    there = m.generic_rank(q)
    assert (there.rank, there.doubt, there.singular) == (2 * count, "", False)


def test_a_tilt_beside_a_singular_configuration_is_still_in_doubt():
    """The flat parallelogram with one axis tilted by 1e-7 rad: its windows fade, its tilt does not."""
    points, axes = [[0, 0, 0], [1, 0, 0], [2, 0, 0], [1, 0, 0]], np.array([[0.0, 0.0, 1.0]] * 4)
    assert given.hinge_loop(points, axes, "flat").rank_doubt == ""
    axes[3] += [1e-7, 0.0, 0.0]
    assert "rank is in doubt" in given.hinge_loop(points, axes, "flat").rank_doubt


@pytest.mark.parametrize("method", ["dop853", "bdf", "variational"])
@pytest.mark.parametrize("axis", [(0, 0, 1), (0.1, 0.25, 1), (0.6, -0.3, 0.2)])
@pytest.mark.parametrize("hinges", [1, 3])
def test_a_door_on_a_leaning_axis_swings(hinges, axis, method):
    """Rows that move nothing were measured against their own rounding: no solution at t = 0, 27 of 27."""
    tree, door = given.hinged_door(hinges, axis)
    options = {"step": 1e-3} if method == "variational" else {"rtol": 1e-9, "atol": 1e-9}
    run, alone = (da.simulate(m, 0.3, None, [1.0], method=method, **options) for m in (door, tree))
    assert run.ok, run.message
    assert run["hinge"][-1] == pytest.approx(alone["hinge"][-1], abs=1e-7)
    assert not run.multipliers.any()


def test_hinges_that_part_are_no_idle_rows():
    """A hinge of the same line 0.1 mm beside its place cannot be closed: the door says so."""
    tree, _ = given.hinged_door(1, (0.1, 0.25, 1))
    apart = da.Revolute("leaf", "world", axis=(0.1, 0.25, 1), at=(1e-4, 0, 0), name="apart")
    with pytest.raises(da.DalembertError, match="apart"):
        da.simulate(tree.constrain(apart), 0.1, None, [1.0])

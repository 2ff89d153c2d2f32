"""Hinges that are tilted by more than a model's digits and less than is clear: one verdict, which all answers share.

Loops of hinges that close exactly for any tilt. Accelerations at rest are compared with those of the same bodies in 50
digits, under the rank of the loop without tilt, and under that of its tilted axes, which lock it.
"""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da
from tests.large.answers import looped_forward
from tests.simulate.overconstrained import GRAVITY, bennett_frames, hinge_loop, parallelogram

BENNETT = bennett_frames(1.0, 0.6, np.sin(1.3) / np.sin(0.6), 1.3, 1.1)
UP, DOWN = np.cos(0.9), np.sin(0.9)
LOOPS = {
    "four-bar": ([[0, 0, 0], [0.15, 0.4, 0], [0.75, 0.55, 0], [1.1, 0, 0]], [[0, 0, 1]] * 4, 2),
    "parallelogram": ([[0, 0, 0], [0.3, 0.7, 0], [1.3, 0.7, 0], [1.0, 0, 0]], [[0, 0, 1]] * 4, 2),
    "Bennett": ([T[:3, 3] for T in BENNETT], [T[:3, 2] for T in BENNETT], 2),
    "Sarrus": (
        [[0, 0, 0], [UP, 0, DOWN], [0, 0, 2 * DOWN], [-0.5, 0.5, 2 * DOWN], [-0.5, 0.5 + UP, DOWN], [-0.5, 0.5, 0]],
        [[0, 1, 0]] * 3 + [[1, 0, 0]] * 3,
        4,
    ),
}
"""Places and axes of hinges, and the rank of the five rows of the last one."""

ROUNDING, CLEAR = 3e-9, 3e-7
"""Singular values of rows: up to the first they are the model's digits, from the second on they are rows."""

ANSWERS = ("forward", "solve", "impact", "large", "sparse")


def tilted(name, hinge, tilt):
    """Return places and axes, one of which is tilted."""
    points, axes, _ = LOOPS[name]
    axes = np.array(axes, dtype=float)
    side = np.cross(axes[hinge], [0.36, 0.48, 0.8])
    axes[hinge] += tilt * side / np.linalg.norm(side)
    return points, axes


def in_many_digits(points, axes):
    """Return accelerations at rest by rank, and the singular values s_i / s_1, of links as `hinge_loop` has them."""
    with mp.workdps(50):
        points = [mp.matrix([mp.mpf(float(x)) for x in p]) for p in points]
        axes = [mp.matrix([mp.mpf(float(x)) for x in z]) for z in axes]
        axes = [z / mp.norm(z) for z in axes]
        n, g = len(points) - 1, mp.matrix([mp.mpf(x) for x in GRAVITY])
        M, f, A = mp.zeros(n), mp.zeros(n, 1), mp.zeros(6, n)
        for i in range(n):
            along = points[i + 1] - points[i]
            square = max(mp.norm(along), mp.mpf(0.2)) ** 2 / 12
            moments = [square * mp.mpf(k) for k in (1.0, 1.1, 0.9)]
            center = points[i] + along / 2
            J = [_cross(axes[k], center - points[k]) for k in range(i + 1)]
            for r in range(i + 1):
                f[r] += (J[r].T * g)[0]
                for c in range(i + 1):
                    M[r, c] += (J[r].T * J[c])[0] + sum(moments[x] * axes[r][x] * axes[c][x] for x in range(3))
        for k in range(n):
            A[:3, k], A[3:, k] = _cross(axes[k], points[n] - points[k]), _cross(axes[k], axes[n])
        Li = mp.inverse(mp.cholesky(M))
        w = Li * f
        _, s, V = mp.svd_r(A * Li.T, full_matrices=False)
        found = {}
        for rank in range(n + 1):
            found[rank] = np.array([float(x) for x in Li.T * (w - V[:rank, :].T * (V[:rank, :] * w))]) if rank else 0.0
        return found, [float(x / s[0]) for x in s]


def _cross(a, b):
    return mp.matrix([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def answer(what, m):
    """Return accelerations at rest and their status; those of an impact are what the rows leave of a free fall."""
    q, still = m.neutral(), np.zeros(m.nv)
    if what == "forward":
        found = m.forward(q, still)
    elif what == "solve":
        found = m.solve(q, still)
    elif what == "impact":
        jump = m.impact(q, np.linalg.solve(m.mass_matrix(q), -m.bias(q, still)))
        return jump.velocity, jump.status
    else:
        found = looped_forward(m, q, still, still, route={"large": "auto"}.get(what, what))
    return found.acceleration, da.Status(int(found.status))


def judged(name, hinge, tilt, answers):
    """Compare answers with the oracle: of a rank that is clear all are right, or not called ok; in doubt none is ok."""
    points, axes = tilted(name, hinge, tilt)
    m, rank = hinge_loop(points, axes, name), LOOPS[name][2]
    flat, _ = in_many_digits(*tilted(name, hinge, 0.0))
    exact, s = in_many_digits(points, axes)
    moves, tilts = flat[rank], exact[rank + 1]
    certain = s[rank] <= ROUNDING or s[rank] > CLEAR
    expected = moves if s[rank] <= ROUNDING else tilts
    found = {what: answer(what, m) for what in answers}
    good = {what for what, (_, status) in found.items() if status in (da.Status.UNIQUE, da.Status.REDUNDANT)}
    for what in good:
        np.testing.assert_allclose(found[what][0], expected, atol=1e-6 * np.abs(moves).max(), err_msg=what)
    assert bool(good) == certain
    assert bool(m.rank_doubt) != certain
    return m, good


@pytest.mark.parametrize("tilt", [1e-14, 1e-12, 1e-10, 1e-9, 3e-8, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize(("name", "hinge"), [("four-bar", 0), ("parallelogram", 3), ("Bennett", 2), ("Sarrus", 5)])
def test_a_tilt_is_rounding_or_a_row_or_in_doubt(name, hinge, tilt):
    _, good = judged(name, hinge, tilt, ("solve", "impact"))
    assert len(good) in (0, 2)


@pytest.mark.parametrize(("tilt", "good"), [(1e-9, True), (1e-7, False), (1e-3, True)])
@pytest.mark.parametrize("hinge", [0, 3])
def test_every_room_has_the_same_verdict(hinge, tilt, good):
    """Rows were taken for idle at configurations of each room's own: at 1e-7 rad the large one contradicted `solve`."""
    m, right = judged("four-bar", hinge, tilt, ANSWERS)
    assert right == (set(ANSWERS) if good else set())
    still, q = np.zeros(3), m.neutral()
    planned = m.inverse(q, still, m.solve(q, still).acceleration)
    assert (planned.status == da.Status.REDUNDANT) == good
    run = da.simulate(m, 1e-3)
    assert run.ok == good
    assert ("rank is in doubt" in run.message) != good
    assert ("rank is in doubt" in str(m.solve(q, still).certificate)) != good
    assert ("rank is in doubt" in str(m.diagnose(q))) != good


def test_files_give_right_angles_in_five_digits():
    """An axis of 1.5708 radians is parallel; of one that is off by 2e-4 that is not known."""
    for off, doubt in ((3.7e-6, False), (2e-4, True), (0.01, False)):
        loop = replace(hinge_loop(*tilted("four-bar", 3, off), "loop"), source="loop.urdf")
        assert bool(loop.rank_doubt) == doubt


@pytest.mark.parametrize("tilt", [3e-8, 1e-7])
def test_large_mechanisms_call_doubtful_rows_no_contradiction(tilt):
    """Sarrus's linkage was INCONSISTENT there, of rows that are dependent but for the tilt, and 1e-5 off."""
    m = hinge_loop(*tilted("Sarrus", 5, tilt), "Sarrus")
    for route in ("large", "sparse"):
        acceleration, status = answer(route, m)
        assert status == da.Status.ILL_CONDITIONED
        np.testing.assert_allclose(acceleration, answer("forward", m)[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["point", "revolute", "line"])
def test_beside_a_flat_parallelogram_no_row_loses_a_part_of_itself(kind):
    """A row that fades there is as small as rounding of other entries: all of it counts, or none, to the last digit.

    One degree of freedom in closed form: a motion of all cranks alike, the coupler does not turn.
    """
    m = parallelogram("point" if kind == "line" else kind)[0]
    if kind == "line":
        loop = da.PointOnLine("coupler", "crank 1", placement=(2, 0, 0), at=(1, 0, 0), axis=(0, 0, 1))
        m = replace(m, constraints=()).constrain(loop)
    way = np.zeros(m.nv)
    for name, sign in (("foot 0", 1.0), ("foot 1", 1.0), ("head", -1.0)):
        way[m.index_v(name)] = sign
    angles = np.concatenate([np.linspace(1.0, 3.0, 41) * 1e-14, 10.0 ** np.linspace(-13.4, -2, 20)])
    tau = np.array([1.0, -2.0, 3.0])
    inertia, weight = 2 * (1 / 12 + 1 / 4) + 2.0, 9.81 * 3.0
    expected = (way @ tau - weight * np.cos(angles)) / inertia
    states = angles[:, None] * way, 0.8 * np.tile(way, (len(angles), 1)), np.tile(tau, (len(angles), 1))
    answer = m.forward(*states)
    size = np.linalg.norm(m.jacobian(states[0]), axis=2)
    faded = np.sort(size, axis=1)[:, -2] == 0.0
    assert not faded[angles > 1.5e-14].any()
    alone = [m.solve(*(x[k] for x in states)) for k in range(0, len(angles), 3)]
    assert all(one.ok for one in alone)
    for found, where in (
        (answer.acceleration, np.arange(len(angles))),
        (np.array([one.acceleration for one in alone]), np.arange(0, len(angles), 3)),
    ):
        moving = ~faded[where]
        np.testing.assert_allclose(found[moving], expected[where][moving, None] * way, rtol=1e-5)


@pytest.mark.parametrize("kind", ["point", "revolute"])
def test_coupled_cranks_that_lie_flat_at_zero_have_the_rank_of_their_motion(kind):
    """Newton's steps halve the distance from flat, as rows fade in proportion to it: every way led back there.

    What is left was 3e-8, which put the rank in doubt: `solve` was ILL_CONDITIONED everywhere, kernels INCONSISTENT.
    """
    turned = Rotation.from_rotvec([0.4, -1.1, 0.7]).as_matrix()
    axis = (turned[0, 2], turned[1, 2], turned[2, 2])
    b = da.Builder("coupled cranks", gravity=tuple(-9.81 * turned[:, 1]))
    moments = turned @ np.diag([1e-3, 1 / 12, 1 / 12]) @ turned.T
    for i in range(3):
        b.body(f"crank {i}", mass=1.0, center=tuple(turned @ [0.5, 0, 0]), inertia=moments)
        place = tuple(turned @ [2.0 * i, 0, 0])
        b.joint(f"foot {i}", "revolute", parent="world", child=f"crank {i}", axis=axis, position=place)
    b.body("rod", mass=2.0, center=tuple(turned @ [1.0, 0, 0]), inertia=moments)
    b.joint("head", "revolute", parent="crank 0", child="rod", axis=axis, position=tuple(turned @ [1.0, 0, 0]))
    loops = []
    for i in (1, 2):
        place, at = tuple(turned @ [2.0 * i, 0, 0]), tuple(turned @ [1.0, 0, 0])
        point = da.Point("rod", f"crank {i}", placement=place, at=at)
        hinge = da.Revolute("rod", f"crank {i}", placement=place, at=at, axis=axis)
        loops.append(point if kind == "point" else hinge)
    m = b.build().constrain(*loops)
    assert (m.generic_rank().rank, m.rank_doubt) == (3, "")
    way = np.zeros(m.nv)
    for name, sign in (("foot 0", 1.0), ("foot 1", 1.0), ("foot 2", 1.0), ("head", -1.0)):
        way[m.index_v(name)] = sign
    expected = -9.81 * (3 * 0.5 + 2.0) * np.cos(0.7) / (3 * (1 / 12 + 1 / 4) + 2.0) * way
    found = m.solve(0.7 * way, 0.3 * way)
    assert found.status == da.Status.REDUNDANT
    np.testing.assert_allclose(found.acceleration, expected, atol=1e-12)
    acceleration, _, status = m.compile("forward")(0.7 * way, 0.3 * way, np.zeros(m.nv))
    assert status[0] == da.Status.REDUNDANT
    np.testing.assert_allclose(acceleration, expected, atol=1e-12)

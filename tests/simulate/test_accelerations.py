"""Constraints of accelerations J(q, v, t) a = b(q, v, t), nonlinear in velocities (Oprea, eq. 5)."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest

import dalembert as da

G, FINE = 9.81, {"rtol": 1e-10, "atol": 1e-12}
MASS = np.array([2.0, 3.0, 5.0])
"""Of the three coordinates: Gauss' principle weighs by them."""


def particle(rows, masses=(2.0, 2.0, 2.0), **options):
    """Return a point in space under gravity with rows of accelerations, and its symbols."""
    q, v, t = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("t")
    kinetic = ca.dot(ca.DM(masses) * v, v) / 2
    return da.Lagrangian(q, v, kinetic, masses[2] * G * q[2], accelerations=rows(q, v, t), time=t, **options)


@cache
def appell():
    """Return Appell's machine, x'^2 + y'^2 = k^2 z'^2 with k = 3/4, and the row again, scaled: redundant."""

    def machine(q, v, t):
        row = v[0] ** 2 + v[1] ** 2 - 0.75**2 * v[2] ** 2
        return {"machine": row, "again": 3.0 * row}

    return particle(machine)


@cache
def cruise():
    """Return a point that keeps its speed of 2 m/s."""
    return particle(lambda q, v, t: {"speed": ca.sumsqr(v) - 4.0})


def test_O12_appells_machine_falls_as_in_closed_form():
    """u = k z' along a straight path: z'' = -g / (1 + k^2), u' = k z''; redundant rows share their force."""
    start = np.array([0.6, 0.45, 1.0])
    run = da.simulate(appell(), 0.5, [0, 0, 0], start, **FINE)
    assert run.status == "completed"
    fall = -G / (1 + 0.75**2)
    z = start[2] * run.t + fall * run.t**2 / 2
    np.testing.assert_allclose(run.q, np.outer(z, [0.6, 0.45, 1.0]), atol=1e-11)
    np.testing.assert_allclose(run.reactions["again"], 3.0 * run.reactions["machine"], atol=1e-10)
    answer = appell().solve([0, 0, 0], start)
    assert answer.status == da.Status.REDUNDANT
    np.testing.assert_allclose(answer.acceleration, fall * start, rtol=1e-13)
    np.testing.assert_allclose(run.energy.total, run.energy.total[0], atol=1e-9)  # rows of one degree in v do no work


def test_O12_a_speed_that_is_kept():
    """v_z = -c tanh(g t / c - artanh(v_z0 / c)); the row is kept at velocity level, though its force works."""
    run = da.simulate(cruise(), 1.0, [0, 0, 0], [1.2, 0.0, 1.6], **FINE)
    assert run.status == "completed"
    np.testing.assert_allclose(run.v[:, 2], -2.0 * np.tanh(G * run.t / 2 - np.arctanh(0.8)), atol=1e-9)
    assert np.abs((run.v**2).sum(axis=1) - 4.0).max() < 1e-14
    for method, options in (("dopri5", FINE), ("rk4", {"step": 1e-3})):
        other = da.simulate(cruise(), 1.0, [0, 0, 0], [1.2, 0.0, 1.6], method=method, **options)
        np.testing.assert_allclose(other.v[-1], run.v[-1], atol=1e-8)
    near = da.simulate(cruise(), 0.1, [0, 0, 0], [1.2 + 1e-7, 0.0, 1.6], **FINE)
    assert abs((near.v[0] ** 2).sum() - 4.0) < 1e-14  # a start that misses it by little is put onto it


def test_O12_gauss_principle():
    """Of all accelerations that the rows allow the answer is the nearest to the free one, in the metric of the mass."""

    def rows(q, v, t):
        def own(a):
            return v[0] * a[1] - q[1] * ca.sin(v[2]) * a[2] + v[1] ** 2

        return {"speed": ca.sumsqr(v), "own": own}

    system, rng = particle(rows, tuple(MASS)), np.random.default_rng(0)
    q, v = rng.standard_normal((2, 8, 3))
    answer = system.forward(q, v)
    assert (answer.status == da.Status.UNIQUE).all()
    free = np.array([0.0, 0.0, -G])
    for place, speed, a in zip(q, v, answer.acceleration, strict=True):
        J = np.array([2 * speed, [0.0, speed[0], -place[1] * np.sin(speed[2])]])
        np.testing.assert_allclose(J @ a, [0.0, -(speed[1] ** 2)], atol=1e-12)
        _, _, null = np.linalg.svd(J)
        assert abs(null[2] @ (MASS * (a - free))) < 1e-12  # stationary along what is allowed, and M is definite
        np.testing.assert_allclose(system.solve(place, speed).acceleration, a, rtol=1e-12, atol=1e-12)


def test_O12_pursuit():
    """A chaser of constant speed c that heads for its prey: c r + w s falls at the rate c^2 - w^2 (Bouguer 1732)."""

    def hunt(q, v, t):
        x, y = 1.0 - q[0], 0.5 * t - q[1]
        return {"aim": v[0] * y - v[1] * x, "speed": v[0] ** 2 + v[1] ** 2 - 1.0, "level": lambda a: a[2]}

    run = da.simulate(particle(hunt), 1.2, [0, 0, 0], [1.0, 0, 0], **FINE)
    assert run.status == "completed"
    x, y = 1.0 - run.q[:, 0], 0.5 * run.t - run.q[:, 1]
    np.testing.assert_allclose(np.hypot(x, y) + 0.5 * y, 1.0 - 0.75 * run.t, atol=1e-9)
    np.testing.assert_allclose(run.q[:, 2], 0.0, atol=1e-12)


def test_O12_matrices():
    """The same point as matrices and functions: J, b and what is kept, called back."""
    rows = {"speed": (lambda q, v, t: 2 * v, 0.0, lambda q, v, t: v @ v - 4.0)}
    plain = da.Matrices({"x": 2.0, "y": 2.0, "z": 2.0}, force=[0, 0, -2.0 * G], accelerations=rows)
    v = np.array([1.2, 0.0, 1.6])
    from dalembert.model.system import solve

    np.testing.assert_allclose(solve(plain, np.zeros(3), v).acceleration, cruise().solve([0, 0, 0], v).acceleration)
    run = da.simulate(plain, 0.3, [0, 0, 0], v, **FINE)
    assert run.status == "completed"
    np.testing.assert_allclose(run.v[:, 2], -2.0 * np.tanh(G * run.t / 2 - np.arctanh(0.8)), atol=1e-9)
    assert np.abs((run.v**2).sum(axis=1) - 4.0).max() < 1e-13
    unknown = {"speed": (lambda q, v, t: 2 * v, 0.0)}  # nothing to keep: rows hold to the tolerance of the steps
    run = da.simulate(da.Matrices({"x": 2.0, "y": 2.0, "z": 2.0}, accelerations=unknown), 0.3, [0, 0, 0], v, **FINE)
    np.testing.assert_allclose(run.v, np.tile(v, (run.t.size, 1)), atol=1e-12)


@cache
def bead(*rows):
    """Return a body on three slides, with rows of accelerations."""
    b = da.Builder("bead")
    for name, parent, axis in (("x", "world", (1, 0, 0)), ("y", "along x", (0, 1, 0)), ("z", "along y", (0, 0, 1))):
        b.body(f"along {name}", mass=2.0 * (name == "z"), inertia=(1e-3,) * 3 if name == "z" else None)
        b.joint(name, "prismatic", parent=parent, child=f"along {name}", axis=axis)
    return b.build().constrain(*rows)


SPEED = da.Expression(lambda k, a: ca.sumsqr(k.v) - 4.0, name="speed", acceleration=True)
TWICE = da.Expression(lambda k, a: 2.0 * ca.dot(k.v, a), name="known by accelerations alone", acceleration=True)


def test_O12_mechanisms():
    """The same point as a mechanism, with a redundant row that nothing is known of but its accelerations."""
    v = np.array([1.2, 0.0, 1.6])
    expected = cruise().solve([0, 0, 0], v).acceleration
    for rows, status, kept in (((SPEED,), da.Status.UNIQUE, 1e-13), ((SPEED, TWICE), da.Status.REDUNDANT, 1e-10)):
        m = bead(*rows)
        for answer in (m.forward(np.zeros(3), v), m.solve(np.zeros(3), v)):
            assert answer.status == status
            np.testing.assert_allclose(answer.acceleration, expected, rtol=1e-12)
        batch = m.forward(np.zeros((3, 3)), np.tile(v, (3, 1)))
        np.testing.assert_allclose(batch.acceleration, np.tile(expected, (3, 1)), rtol=1e-12)
        run = da.simulate(m, 0.4, np.zeros(3), v, **FINE)
        assert run.status == "completed"
        np.testing.assert_allclose(run.v[:, 2], -2.0 * np.tanh(G * run.t / 2 - np.arctanh(0.8)), atol=1e-9)
        assert np.abs((run.v**2).sum(axis=1) - 4.0).max() < kept  # the second row keeps what it has
    np.testing.assert_allclose(bead(SPEED).jacobian(np.zeros(3), v=v), [2 * v])
    tau = bead(SPEED).inverse(np.zeros(3), v, expected).tau
    np.testing.assert_allclose(bead(SPEED).forward(np.zeros(3), v, tau).acceleration, expected, atol=1e-12)
    with pytest.raises(da.ModelError, match=r"'speed'.*give v="):
        bead(SPEED).jacobian(np.zeros(3))
    with pytest.raises(da.UnsupportedError, match="'speed'"):
        bead(SPEED).compile("delassus")
    for method in ("bdf", "radau", "variational"):
        with pytest.raises(da.DalembertError, match="'speed'"):
            da.simulate(bead(SPEED), 0.1, np.zeros(3), v, method=method, step=1e-3 if method == "variational" else None)
    with pytest.raises(da.ModelError, match="acceleration=True takes others"):
        bead(da.Expression(lambda k: ca.sumsqr(k.v) - 4.0, name="speed", velocity=True)).forward(np.zeros(3), v)


def test_O12_files_and_what_is_refused(tmp_path):
    run = da.simulate(cruise(), 0.1, [0, 0, 0], [1.2, 0.0, 1.6])
    run.save(tmp_path / "run.nc")
    back = da.Trajectory.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(back.repeat().q, run.q)
    for method in ("radau", "bdf", "variational", "moreau"):
        with pytest.raises(da.DalembertError, match=r"'speed'|contacts"):
            da.simulate(cruise(), 0.1, [0, 0, 0], [1.2, 0.0, 1.6], method=method)
    with pytest.raises(da.ModelError, match="give v="):
        cruise().jacobian([0, 0, 0])
    np.testing.assert_allclose(cruise().jacobian([0, 0, 0], v=[1, 2, 3]), [[2, 4, 6]])
    with pytest.raises(da.ModelError, match="the initial v misses 'speed'"):
        da.simulate(cruise(), 0.1, [0, 0, 0], [1.0, 0.0, 1.6])
    with pytest.raises(da.ModelError, match="not linear in the accelerations"):
        particle(lambda q, v, t: {"bad": lambda a: ca.sumsqr(a) - 1.0})
    with pytest.raises(da.ModelError, match="neither on v nor on a"):
        particle(lambda q, v, t: {"bad": q[0]})
    with pytest.raises(da.UnsupportedError, match="'speed'"):
        da.Problem(cruise(), known={"q_0": 0.0}).integrate((0.0, 0.1))


def test_a_start_of_matrices_that_misses_rows_at_rest_by_rounding_is_put_onto_them():
    run = da.simulate(da.Matrices({"x": 1.0, "y": 2.0}, {"together": [1, -1]}), 0.1, [0, 0], [1.0, 1.0 + 1e-8])
    assert run.status == "completed"
    np.testing.assert_allclose(run.v[-1], 1.0 + 2e-8 / 3, atol=1e-14)

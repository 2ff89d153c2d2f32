"""Y14: the Ehresmann connection of constraint rows, its projectors and its curvature (seed 003, sec. 2.3)."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError
from dalembert.model import Lagrangian
from dalembert.tableau import DiracStructure
from tests.model.lagrangians import bead, pendulum, sleigh, slider_crank


def with_rows(n: int, rows) -> Lagrangian:
    """A system whose rows are written by `rows(q, v)`."""
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    return Lagrangian(q, v, ca.sumsqr(v) / 2, constraints=rows(q, v))


def disc(q, v):
    """A vertical disc that rolls: x, y, heading, turn; radius 1."""
    return [v[0] - ca.cos(q[2]) * v[3], v[1] - ca.sin(q[2]) * v[3]]


def test_Y14_projectors_split_every_velocity():
    """Horizontal where admissible, vertical along the dependent coordinates; A A = A; dual to B."""
    D = DiracStructure.of(np.random.default_rng(0).standard_normal((3, 7)))
    A, H = D.vertical, D.horizontal
    np.testing.assert_allclose(A @ A, A, atol=1e-14)
    np.testing.assert_allclose(H @ H, H, atol=1e-13)
    np.testing.assert_allclose(A + H, np.eye(7), atol=0)
    np.testing.assert_allclose(D.N @ H, 0, atol=1e-13)
    np.testing.assert_allclose(A @ D.B, 0, atol=1e-14)
    fibre = np.zeros((7, 3))
    fibre[D.split.dependent] = np.eye(3)
    np.testing.assert_array_equal(A @ fibre, fibre)
    assert np.linalg.matrix_rank(A) == 3
    v = np.random.default_rng(1).standard_normal(7)
    np.testing.assert_array_equal((H @ v)[D.split.independent], v[D.split.independent])


def test_Y14_projectors_of_redundant_rows_are_those_of_independent_ones():
    N = np.random.default_rng(2).standard_normal((2, 5))
    one, two = DiracStructure.of(N, [2, 3, 4]), DiracStructure.of(np.vstack([N, N[0] - 3 * N[1]]), [2, 3, 4])
    np.testing.assert_allclose(two.vertical, one.vertical, atol=1e-13)


def test_Y14_curvature_of_the_rolling_disc_in_closed_form():
    """omega = ds - J dr with s = (x, y), r = (heading, turn): R_12 = (sin, -cos) of the heading."""
    for heading in (0.0, 0.7, -2.1):
        D = DiracStructure.at(with_rows(4, disc), [0.3, -0.2, heading, 1.1], independent=[2, 3])
        expected = np.array([np.sin(heading), -np.cos(heading)])
        np.testing.assert_allclose(D.curvature[:, 0, 1], expected, atol=1e-14)
        np.testing.assert_array_equal(D.curvature, -D.curvature.transpose(0, 2, 1))
        assert not D.is_flat
        np.testing.assert_allclose(D.flat_rows() @ D.B, 0, atol=1e-14)
        assert len(D.flat_rows()) == 1  # cos dx + sin dy = d turn: a combination of rows


def test_Y14_curvature_is_minus_the_vertical_part_of_the_bracket():
    """Against the commutator of the flows of horizontal fields, second order in the step."""
    system, start = with_rows(4, disc), np.array([0.3, -0.2, 0.7, 1.1])
    D = DiracStructure.at(system, start, independent=[2, 3])

    def flow(q, direction, h, steps=40):
        for _ in range(steps):
            middle = q + h / steps / 2 * DiracStructure.of(system.jacobian(q), [2, 3]).B @ direction
            q = q + h / steps * DiracStructure.of(system.jacobian(middle), [2, 3]).B @ direction
        return q

    h, e = 1e-3, np.eye(2)
    q = start
    for direction, sign in ((e[0], 1), (e[1], 1), (e[0], -1), (e[1], -1)):
        q = flow(q, direction, sign * h)
    bracket = (q - start) / h**2  # [X, Y] of X first, then Y
    np.testing.assert_allclose(-(D.vertical @ bracket)[:2], D.curvature[:, 0, 1], atol=2e-3)


@pytest.mark.parametrize("make", [pendulum, slider_crank, bead])
def test_Y14_curvature_is_zero_where_rows_are_holonomic(make):
    system = make()
    rng = np.random.default_rng(3)
    for _ in range(3):
        D = DiracStructure.at(system, rng.standard_normal(2), 0.4)
        assert D.is_flat
        assert len(D.flat_rows()) == len(D.split.dependent)


def test_Y14_the_sleigh_is_curved():
    D = DiracStructure.at(sleigh(), [0.1, 0.2, 0.5])
    assert not D.is_flat
    assert D.flat_rows().shape == (0, 3)


def test_Y14_holonomy_is_found_by_structure_not_by_how_rows_are_written():
    """A sphere as a row on velocities, multiplied by a function, with a redundant one; beside it a curved row."""

    def sphere(q, v):
        return [(2 + ca.sin(q[3])) * ca.dot(q[:3], v[:3]), ca.exp(q[0]) * ca.dot(q[:3], v[:3])]

    system = with_rows(5, sphere)
    assert not any(system.expressions.holonomic)
    q = np.array([0.6, -0.3, 0.9, 0.2, 0.4])
    assert DiracStructure.at(system, q).is_flat
    mixed = with_rows(5, lambda q, v: [*sphere(q, v), v[4] - q[0] * v[3]])
    D = DiracStructure.at(mixed, q)
    assert not D.is_flat
    rows = D.flat_rows()
    assert rows.shape == (1, 5)
    np.testing.assert_allclose(rows[0] / rows[0, 0], [1, q[1] / q[0], q[2] / q[0], 0, 0], atol=1e-12)


def pair(*constraints) -> da.Mechanism:
    """A free body that carries another on a ball joint: velocities that are no rates of coordinates."""
    b = da.Builder("pair")
    for name, parent, kind in (("one", "world", "free"), ("two", "one", "spherical")):
        b.body(name, mass=1.0, inertia=(0.1, 0.2, 0.3))
        b.joint(f"joint {name}", kind, parent=parent, child=name, position=(0.1, 0.2, 0.3))
    b.frame("tip", "two", position=(0.4, -0.3, 0.5))
    return b.build().constrain(*constraints)


def test_Y14_loops_of_free_and_ball_joints_are_flat():
    """Without the brackets of their velocities a rod and a weld would be curved."""
    for rows in (
        [da.Distance("tip", at=[0.2, 0.1, -0.4], length=1.3)],
        [da.Point("tip"), da.Distance("one", length=2)],
    ):
        mechanism = pair(*rows)
        D = DiracStructure.at(mechanism, mechanism.random(np.random.default_rng(0)))
        assert D.is_flat
        still = replace(D.derivatives, brackets=0 * D.derivatives.brackets)
        assert not replace(D, derivatives=still).is_flat


def test_Y14_a_ball_that_rolls_is_curved():
    """Of three rows only the height is holonomic."""
    b = da.Builder("ball")
    b.body("ball", mass=1.0, inertia=(0.4, 0.4, 0.4))
    b.joint("free", "free", parent="world", child="ball")
    rolls = b.build().constrain(da.Rolling("ball", radius=1.0))
    D = DiracStructure.at(rolls, rolls.random(np.random.default_rng(1)))
    assert not D.is_flat
    assert D.split.J.shape == (3, 3)
    rows = D.flat_rows()
    assert len(rows) == 1


def test_Y14_systems_of_numbers_are_differentiated():
    class Numbers:
        def jacobian(self, q, t=0.0):
            return np.array([[-np.sin(q[2]), np.cos(q[2]), 0.0]])

    class Sphere:
        def jacobian(self, q, t=0.0):
            return np.array([np.exp(q[1]) * q])

    exact = DiracStructure.at(sleigh(), [0.1, 0.2, 0.5])
    D = DiracStructure.at(Numbers(), [0.1, 0.2, 0.5])
    np.testing.assert_allclose(D.curvature, exact.curvature, atol=1e-8)
    assert not D.is_flat
    assert DiracStructure.at(Sphere(), [0.4, 0.2, 0.5]).is_flat
    with pytest.raises(ModelError, match=r"DiracStructure\.at"):
        _ = DiracStructure.of(np.ones((1, 3))).curvature

"""Pendulum, double pendulum and heavy top against Lagrange's equations, derived here by SymPy from energies alone."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import dalembert as da

G = 9.81


def lagrange(T, V, q, v):
    """Return M and bias of T(q, v) - V(q) as functions of numbers."""
    M = sp.hessian(T, v)
    momentum = sp.Matrix([T]).jacobian(v).T
    bias = momentum.jacobian(q) * sp.Matrix(v) - sp.Matrix([T - V]).jacobian(q).T
    return sp.lambdify([q, v], M), sp.lambdify([q, v], bias)


def check(mechanism, T, V, q, v, samples=20):
    M, bias = lagrange(T, V, q, v)
    rng = np.random.default_rng(0)
    for _ in range(samples):
        x, y = rng.uniform(0.3, 1.2, len(q)), rng.standard_normal(len(q))
        np.testing.assert_allclose(mechanism.mass_matrix(x), M(x, y), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(mechanism.bias(x, y), np.ravel(bias(x, y)), rtol=1e-11, atol=1e-11)
        force = rng.standard_normal(len(q))
        expected = np.linalg.solve(np.array(M(x, y), dtype=float), force - np.ravel(bias(x, y)))
        np.testing.assert_allclose(mechanism.forward(x, y, force).acceleration, expected, rtol=1e-10, atol=1e-10)


def test_pendulum():
    """(J + m l^2) q'' + m g l sin q = tau."""
    m, length, J = 1.3, 0.7, 0.05
    builder = da.Builder("pendulum", gravity=(0, 0, -G))
    builder.body("rod", mass=m, center=(0, 0, -length), inertia=(J, J, J))
    builder.joint("pin", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    mechanism = builder.build()
    for q in np.linspace(-3, 3, 13):
        found = mechanism.forward(np.array([q]), np.array([0.4]), np.array([0.2])).acceleration
        np.testing.assert_allclose(found, (0.2 - m * G * length * np.sin(q)) / (J + m * length**2), rtol=1e-13)


def test_double_pendulum():
    m1, m2, l1, c1, c2, J1, J2 = 1.0, 0.8, 1.0, 0.45, 0.6, 0.1, 0.07
    builder = da.Builder("double pendulum", gravity=(0, 0, -G))
    builder.body("upper", mass=m1, center=(0, 0, -c1), inertia=(J1, J1, 0.0))
    builder.body("lower", mass=m2, center=(0, 0, -c2), inertia=(J2, J2, 0.0))
    builder.joint("shoulder", "revolute", parent="world", child="upper", axis=(0, 1, 0))
    builder.joint("elbow", "revolute", parent="upper", child="lower", axis=(0, 1, 0), position=(0, 0, -l1))
    q, v = sp.symbols("q:2"), sp.symbols("v:2")
    place1 = sp.Matrix([-c1 * sp.sin(q[0]), -c1 * sp.cos(q[0])])
    elbow = sp.Matrix([-l1 * sp.sin(q[0]), -l1 * sp.cos(q[0])])
    place2 = elbow + sp.Matrix([-c2 * sp.sin(q[0] + q[1]), -c2 * sp.cos(q[0] + q[1])])
    speeds = [place.jacobian(q) * sp.Matrix(v) for place in (place1, place2)]
    T = (m1 * speeds[0].dot(speeds[0]) + m2 * speeds[1].dot(speeds[1]) + J1 * v[0] ** 2 + J2 * (v[0] + v[1]) ** 2) / 2
    check(builder.build(), T, G * (m1 * place1[1] + m2 * place2[1]), q, v)


def test_gyroscope_in_gimbals():
    """Heavy top, Euler angles z, x, z as hinges: T = A/2 (th'^2 + ph'^2 sin^2 th) + C/2 (ps' + ph' cos th)^2."""
    m, length, A, C = 0.5, 0.3, 0.04, 0.01
    builder = da.Builder("top", gravity=(0, 0, -G))
    builder.body("outer")
    builder.body("inner")
    builder.body("rotor", mass=m, center=(0, 0, length), inertia=(A, A, C))
    builder.joint("precession", "revolute", parent="world", child="outer", axis=(0, 0, 1))
    builder.joint("nutation", "revolute", parent="outer", child="inner", axis=(1, 0, 0))
    builder.joint("spin", "revolute", parent="inner", child="rotor", axis=(0, 0, 1))
    q, v = sp.symbols("q:3"), sp.symbols("v:3")
    B = A + m * length**2
    T = B * (v[1] ** 2 + v[0] ** 2 * sp.sin(q[1]) ** 2) / 2 + C * (v[2] + v[0] * sp.cos(q[1])) ** 2 / 2
    check(builder.build(), T, m * G * length * sp.cos(q[1]), q, v)


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_a_body_in_free_rotation(kind):
    """Euler's equations I w' = -w x I w."""
    J = np.array([0.3, 0.2, 0.4])
    builder = da.Builder("body", gravity=(0, 0, 0))
    builder.body("body", mass=1.0, inertia=tuple(J))
    builder.joint("joint", kind, parent="world", child="body")
    mechanism = builder.build()
    q, w = mechanism.random(1), np.array([0.7, -0.4, 1.1])
    v = w if kind == "spherical" else np.concatenate([np.zeros(3), w])
    found = mechanism.forward(q, v, np.zeros(mechanism.nv)).acceleration[-3:]
    np.testing.assert_allclose(found, -np.cross(w, J * w) / J, rtol=1e-13)


def test_steady_precession_of_the_top():
    """With (C - B) W^2 cos th + C s W - m g l = 0 the angular velocity only turns, with -s about the top's axis."""
    m, length, A, C, spin, tilt = 0.5, 0.3, 0.04, 0.01, 300.0, 0.6
    B = A + m * length**2
    builder = da.Builder("top", gravity=(0, 0, -G))
    builder.body("top", mass=m, center=(0, 0, length), inertia=(A, A, C))
    builder.joint("tip", "spherical", parent="world", child="top")
    mechanism = builder.build()
    W = min(np.roots([(C - B) * np.cos(tilt), C * spin, -m * G * length]).real, key=abs)
    q0 = np.array([np.sin(tilt / 2), 0, 0, np.cos(tilt / 2)])
    v0 = np.array([0.0, W * np.sin(tilt), spin + W * np.cos(tilt)])  # precession about the vertical, in the body's axes
    found = mechanism.forward(q0, v0, np.zeros(3)).acceleration
    np.testing.assert_allclose(found, [W * np.sin(tilt) * spin, 0.0, 0.0], rtol=1e-10, atol=1e-10)

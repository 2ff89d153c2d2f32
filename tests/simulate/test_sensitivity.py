"""Derivatives of runs against closed forms, CasADi's cvodes sensitivities and differences of runs."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

import dalembert as da
from dalembert.errors import ModelError, UnsupportedError
from tests.model.test_identification import four_bar

TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def disc(damping=0.3, friction=0.0):
    builder = da.Builder("disc", gravity=(0.0, 0.0, 0.0))
    builder.body("disc", mass=1.0, inertia=(0.2, 0.2, 0.3))
    builder.joint(
        "hinge",
        "revolute",
        parent="world",
        child="disc",
        axis=(0, 0, 1),
        damping=damping,
        stiffness=3.0,
        friction=friction,
    )
    return builder.build()


def test_a_linear_oscillator_in_closed_form():
    """x' = F x + B u: transitions are exponentials, and so are the derivatives by a constant torque and by I."""
    run = da.simulate(disc(), 4.0, [0.5], [0.2], force=[0.1], **TIGHT)
    s = run.sensitivity(["q0", "v0", "force", "inertia:disc", "stiffness:hinge"])
    F = np.array([[0.0, 1.0], [-10.0, -1.0]])
    for k in (1, len(run.t) // 2, -1):
        Phi = expm(F * run.t[k])
        found = np.array([[s[x, y][k, 0, 0] for y in ("q0", "v0")] for x in ("q", "v")])
        np.testing.assert_allclose(found, Phi, atol=1e-9)
        force = np.linalg.solve(F, (Phi - np.eye(2)) @ [0.0, 1 / 0.3])
        np.testing.assert_allclose([s["q", "force"][k, 0, 0], s["v", "force"][k, 0, 0]], force, atol=1e-9)

    def end(inertia, stiffness=3.0):
        F = np.array([[0.0, 1.0], [-stiffness / inertia, -0.3 / inertia]])
        Phi = expm(F * run.t[-1])
        return Phi @ [0.5, 0.2] + np.linalg.solve(F, (Phi - np.eye(2)) @ [0.0, 0.1 / inertia])

    h = 1e-4
    slope = (8 * (end(0.3 + h) - end(0.3 - h)) - (end(0.3 + 2 * h) - end(0.3 - 2 * h))) / (12 * h)
    np.testing.assert_allclose([s[x, "inertia:disc"][-1, 0, 9] for x in ("q", "v")], slope, atol=1e-8)
    slope = (8 * (end(0.3, 3 + h) - end(0.3, 3 - h)) - (end(0.3, 3 + 2 * h) - end(0.3, 3 - 2 * h))) / (12 * h)
    np.testing.assert_allclose([s[x, "stiffness:hinge"][-1, 0, 0] for x in ("q", "v")], slope, atol=1e-8)


def test_feedback_and_the_adjoint():
    """A force u = -2 q - 0.5 v of the state, as an expression, takes part in the derivative; both ways agree."""
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v")
    law = ca.Function("force", [t, q, v], [-2 * q - 0.5 * v])
    run = da.simulate(disc(), 3.0, [0.5], [0.2], force=law, **TIGHT)
    s = run.sensitivity(["q0", "v0"])
    Phi = expm(np.array([[0.0, 1.0], [-5.0 / 0.3, -0.8 / 0.3]]) * 3.0)
    np.testing.assert_allclose([[s[x, y][-1, 0, 0] for y in ("q0", "v0")] for x in "qv"], Phi, atol=1e-9)
    loss = ca.Function("loss", [q, v], [q**2 + 3 * v])
    g = run.gradient(loss, ["q0", "v0"])
    expected = np.array([2 * run.q[-1, 0], 3.0]) @ Phi
    np.testing.assert_allclose([g["q0"][0], g["v0"][0]], expected, atol=1e-9)
    assert g.value == pytest.approx(run.q[-1, 0] ** 2 + 3 * run.v[-1, 0])


def test_double_pendulum_as_cvodes():
    """Two point masses on rods: CasADi differentiates SUNDIALS' cvodes over equations written by hand."""
    builder = da.Builder("double")
    for k in range(2):
        builder.body(f"b{k}", mass=1.0, center=(0, 0, -1.0), inertia=(0, 0, 0))
        at = {"position": (0, 0, -1.0)} if k else {}
        builder.joint(f"j{k}", "revolute", parent=f"b{k - 1}" if k else "world", child=f"b{k}", axis=(0, 1, 0), **at)
    pendulum = builder.build()
    q, v = [0.7, 0.4], [0.1, -0.3]
    run = da.simulate(pendulum, 1.5, q, v, **TIGHT)
    s = run.sensitivity(["q0", "v0"])
    x = ca.MX.sym("x", 4)
    p, w = x[:2], x[2:]
    y = [p[0], p[0] + p[1]]  # absolute angles
    r = [w[0], w[0] + w[1]]
    c, z = ca.cos(y[0] - y[1]), ca.sin(y[0] - y[1])
    f1 = -z * r[1] ** 2 - 2 * 9.81 * ca.sin(y[0])
    f2 = z * r[0] ** 2 - 9.81 * ca.sin(y[1])
    a1 = (f1 - c * f2) / (2 - c**2)
    a2 = (2 * f2 - c * f1) / (2 - c**2)
    ode = ca.vertcat(w, a1, a2 - a1)
    tight = {"abstol": 1e-14, "reltol": 1e-14, "max_num_steps": 100_000}
    flow = ca.integrator("flow", "cvodes", {"x": x, "ode": ode}, 0.0, 1.5, tight)
    x0 = ca.MX.sym("x0", 4)
    end = flow(x0=x0)["xf"]
    expected = np.array(ca.Function("d", [x0], [ca.jacobian(end, x0)])([*q, *v]))
    found = np.block([[s[a, b][-1] for b in ("q0", "v0")] for a in "qv"])
    np.testing.assert_allclose(found, expected, atol=1e-10)


def differences(system, q, v, directions, duration):
    """Return d(q, v) at the end along directions of the start (tangent q, v), by runs on either side."""
    h = 1e-5
    columns = []
    for dq, dv in directions:
        ends = []
        for sign in (1, -1):
            start = system.integrate(q, sign * h * dq), v + sign * h * dv
            start = system.project(*start) if system.names else start
            run = da.simulate(system, duration, *start, **TIGHT)
            ends.append((run.q[-1], run.v[-1]))
        columns.append(np.concatenate([system.difference(ends[1][0], ends[0][0]), ends[0][1] - ends[1][1]]) / (2 * h))
    return np.array(columns).T


def test_a_tumbling_body_on_its_manifold():
    """A free body in tangent coordinates: brackets of its velocity take part; differences of runs."""
    builder = da.Builder("body")
    builder.body("body", mass=1.2, center=(0.1, 0.0, 0.05), inertia=(0.2, 0.3, 0.4))
    builder.joint("free", "free", parent="world", child="body")
    body = builder.build()
    rng = np.random.default_rng(2)
    q, v = body.random(rng), rng.standard_normal(6)
    s = da.simulate(body, 0.8, q, v, **TIGHT).sensitivity(["q0", "v0"])
    found = np.block([[s[a, b][-1] for b in ("q0", "v0")] for a in "qv"])
    none = np.zeros(6)
    directions = [(x, none) for x in np.eye(6)] + [(none, x) for x in np.eye(6)]
    np.testing.assert_allclose(found, differences(body, q, v, directions, 0.8), atol=1e-7)


def test_a_loop_with_redundant_rows():
    """A four-bar linkage: starts are varied along the constraints, and stay there."""
    linkage = four_bar()
    q = linkage.assemble([0.6, 0.3, 1.2]).q
    v = linkage.project(q, [1.0, 0.0, 0.0])[1]
    run = da.simulate(linkage, 0.5, q, v, **TIGHT)
    s = run.sensitivity(["q0", "v0"])
    A = linkage.jacobian(run.q[-1])
    assert np.abs(A @ s["q", "q0"][-1]).max() < 1e-8
    along = s["q", "q0"][0][:, 0]
    expected = differences(linkage, q, v, [(along, s["v", "q0"][0][:, 0]), (np.zeros(3), np.eye(3)[0])], 0.5)
    found = np.array([np.concatenate([s[x, y][-1][:, 0] for x in "qv"]) for y in ("q0", "v0")]).T
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_has_no_derivatives_is_refused():
    run = da.simulate(disc(), 0.1, [0.5], [0.2], force=lambda t, q, v: [0.0])
    with pytest.raises(UnsupportedError, match="callable"):
        run.sensitivity("q0")
    run = da.simulate(disc(), 0.1, [0.5], [0.2])
    with pytest.raises(ModelError, match="nothing to differentiate"):
        run.sensitivity("mass")
    coarse = da.simulate(disc(0.0), 2.0, [0.5], [0.2], method="variational", step=0.05)
    with pytest.raises(UnsupportedError, match="misses the next one"):
        coarse.sensitivity("q0")


def test_a_loss_without_a_slope_is_refused():
    """A number without slopes, slopes of other sizes, NaN, a function of other things, no names: a sentence each."""
    run: Any = da.simulate(disc(), 0.1, [0.5], [0.2])
    q, v, pair = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("pair", 2)
    for loss, words in (
        (lambda q, v: 5.0, "returns"),
        (lambda q, v: (5.0, [1.0], [1.0, 2.0]), "with 1 numbers"),
        (lambda q, v: (np.nan, [1.0], [1.0]), "finite"),
        (ca.Function("loss", [q], [q]), r"of q \(1\) and v \(1\)"),
        (ca.Function("loss", [pair, v], [v]), r"of q \(1\) and v \(1\)"),
        (ca.Function("loss", [q, v], [ca.vertcat(q, v)]), "one number"),
        (ca.Function("loss", [q, v], [ca.log(-ca.fabs(q))]), "finite"),
    ):
        with pytest.raises(ModelError, match=words):
            run.gradient(loss, "v0")
    for names in (None, ()):
        with pytest.raises(ModelError, match="wrt names what"):
            run.sensitivity(names)

"""Motions that rows prescribe in time, whole or in part: every method against closed forms, also between its steps."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.simulate.equations.dae import from_expressions
from dalembert.simulate.equations.signals import Table
from dalembert.simulate.problem import Problem

METHODS = {"dop853": 1.0, "bdf": 1.0, "radau": 1.0, "ida": 2.0}
"""Methods with step control, and the error between steps over rtol where the motion is of size one."""


@cache
def arm(driven=True):
    b = da.Builder("arm", gravity=(0, 0, -9.81))
    b.body("arm", mass=2.0, center=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0))
    free = b.build()
    return free.constrain(da.Servo("hinge", lambda t: ca.sin(10 * t))) if driven else free


@cache
def slider_crank(driven=True):
    """A crank of 1 and a massless rod of 2, which holds the slider at cos(c) + sqrt(4 - sin(c)^2)."""
    b = da.Builder("slider crank", gravity=(0, -9.81, 0))
    b.body("crank", mass=1.0, center=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.joint("crank", "revolute", parent="world", child="crank", axis=(0, 0, 1))
    b.body("slider", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.joint("slider", "prismatic", parent="world", child="slider", axis=(1, 0, 0))
    b.frame("tip", "crank", position=(1, 0, 0))
    drive = [da.Servo("crank", lambda t: 8.0 * t)] if driven else []
    return b.build().constrain(da.Distance("tip", "slider", length=2.0), *drive)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
def test_a_joint_on_a_servo_is_right_between_steps(method, rtol):
    run = da.simulate(arm(), 1.5, [0.0], [10.0], method=method, rtol=rtol, atol=rtol, every=0.01)
    assert run.ok
    np.testing.assert_allclose(run.q[:, 0], np.sin(10 * run.t), rtol=0, atol=METHODS[method] * rtol)
    np.testing.assert_allclose(run.v[:, 0], 10 * np.cos(10 * run.t), rtol=0, atol=10 * METHODS[method] * rtol)


@pytest.mark.parametrize("method", METHODS)
def test_joints_that_follow_a_driven_one_are_right_between_steps(method):
    """The servo's own row is linear in time, and misses nothing; the slider turns back and forth."""
    run = da.simulate(slider_crank(), 1.5, [0.0, 3.0], [8.0, 0.0], method=method, rtol=1e-7, atol=1e-7, every=0.01)
    assert run.ok
    crank = 8.0 * run.t
    slider = np.cos(crank) + np.sqrt(4 - np.sin(crank) ** 2)
    np.testing.assert_allclose(run.q, np.array([crank, slider]).T, rtol=0, atol=2e-6)


@pytest.mark.parametrize("formulation", ["stabilised", "index3", "index2", "index1", "projection"])
def test_radau_sees_a_drive_in_every_formulation(formulation):
    result = Problem(arm(), formulation=formulation).integrate(
        (0.0, 1.5), [0.0], [10.0], method="radau", rtol=1e-6, atol=1e-6, t_eval=np.linspace(0, 1.5, 200)
    )
    assert result.success
    np.testing.assert_allclose(result.y[0], np.sin(10 * result.t), rtol=0, atol=2e-5)


def test_radau_sees_a_table_that_is_known():
    """Inverse dynamics of a known coordinate: no unknown has a rate, its torque is all there is."""
    times = np.linspace(0.0, 1.5, 400)
    table = Table(times, np.sin(10 * times))
    result = Problem(arm(False), known={"hinge": table}).integrate(
        (0.0, 1.5), method="radau", rtol=1e-6, atol=1e-6, t_eval=np.linspace(0.1, 1.4, 100)
    )
    assert result.success
    value, a = np.sin(10 * result.t), -100 * np.sin(10 * result.t)
    expected = (0.1 + 2.0 * 0.3**2) * a - 2.0 * 9.81 * 0.3 * np.cos(value)
    np.testing.assert_allclose(result["tau hinge"], expected, rtol=0, atol=0.05)


def test_radau_sees_what_an_algebraic_equation_follows():
    """x = sin(10 t) and x' = y, of index 2: nothing is integrated."""
    t, x, y, dx, dy = (ca.SX.sym(name) for name in ("t", "x", "y", "dx", "dy"))
    dae = from_expressions([x, y], [dx, dy], [dx - y, x - ca.sin(10 * t)], time=t)
    result = Problem(dae).integrate(
        (0.0, 1.5), [0.0, 10.0], [10.0, 0.0], method="radau", rtol=1e-6, atol=1e-6, t_eval=np.linspace(0, 1.5, 200)
    )
    assert result.success
    np.testing.assert_allclose(result["x"], np.sin(10 * result.t), rtol=0, atol=1e-5)


def test_runs_without_drives_are_not_tested_inside_of_steps():
    """Their free motion bounds steps: a driven row costs two evaluations a step, and no other run pays for it."""
    assert not Problem(arm(False)).dae.driven.any()
    assert not Problem(slider_crank(driven=False)).dae.driven.any()
    assert Problem(slider_crank()).dae.driven.sum() == 4  # the rod's row and the servo's, positions and velocities


def test_the_contact_engine_with_radau_sees_a_drive():
    from dalembert.simulate.contact import Contact, Plane, Sphere

    far = Contact(Sphere("arm", 0.1), Plane(offset=-5.0))
    run = da.simulate(arm(), 1.5, [0.0], [10.0], contacts=[far], stepper="radau", rtol=1e-6, atol=1e-6, every=0.01)
    assert run.ok
    np.testing.assert_allclose(run.q[:, 0], np.sin(10 * run.t), rtol=0, atol=2e-5)

"""Derivatives of inverse dynamics by recursion against CasADi's of the Newton-Euler pass, and against differences."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algorithms.inverse import accelerations, body_forces, joint_forces
from dalembert.tree.block.constrained import Tracing
from dalembert.tree.derivatives.directions import tangent
from dalembert.tree.derivatives.newton_euler_derivatives import newton_euler_derivatives
from dalembert.tree.prepared.configuration import pair_add
from tests.tree.contacts import GO2, PANDA

KINDS = ("revolute", "continuous", "prismatic", "helical", "spherical", "planar", "universal", "free")


def body(b, name, rng):
    spread = rng.uniform(0.1, 0.4, 3)
    inertia = (spread[1] + spread[2], spread[0] + spread[2], spread[0] + spread[1])
    b.body(name, mass=rng.uniform(0.5, 2.0), center=tuple(rng.standard_normal(3) * 0.2), inertia=inertia)


def joint(b, kind, parent, child, rng):
    options = {"axis": (0.6, 0.0, 0.8), "pitch": 0.3 if kind == "helical" else 0.0}
    place = {"position": tuple(rng.standard_normal(3) * 0.3), "rpy": tuple(rng.standard_normal(3))}
    b.joint(f"{parent} to {child}", kind, parent, child, **options, **place)


def chain(kinds, seed=0):
    """Return bodies behind joints of these kinds, with a branch of two hinges on each."""
    rng, b, parent = np.random.default_rng(seed), da.Builder("chain"), "world"
    for k, kind in enumerate(kinds):
        body(b, f"body{k}", rng)
        joint(b, kind, parent, f"body{k}", rng)
        for side, on in (("twig", f"body{k}"), ("leaf", f"twig{k}")):
            body(b, f"{side}{k}", rng)
            joint(b, "revolute", on, f"{side}{k}", rng)
        parent = f"body{k}"
    return b.build()


def compared(m, gravity, rng, loads=()):
    """Return found and expected derivatives at a state, along q, v and a."""
    setting = Tracing.of(m)
    tree, posed = setting.tree, setting.posed
    q, v, a = (setting.symbol(name) for name in ("q", "v", "a"))
    forces: dict[int, Pair] = {i: (tuple(rng.standard_normal(3)), tuple(rng.standard_normal(3))) for i in loads}
    slopes = newton_euler_derivatives(tree, posed, gravity, v, a, forces)
    own = body_forces(tree, accelerations(gravity, posed, v, a))
    for i, force in forces.items():
        own[i] = pair_add(own[i], force)
    tau = ca.vertcat(*map(ca.SX, joint_forces(tree, posed, own)[0]))
    seeds = {"q": tangent(m, q), "v": ca.SX.eye(m.nv), "a": ca.SX.eye(m.nv)}
    expected = [ca.jtimes(tau, setting.column(name), seed) for name, seed in seeds.items()]
    found = [ca.horzcat(*(ca.vertcat(*map(ca.SX, column)) for column in part)) for part in slopes]
    function = ca.Function("f", [setting.column(name) for name in seeds], [*found, *expected])
    values = [np.array(x) for x in function(m.random(rng), *rng.standard_normal((2, m.nv)))]
    return values[:3], values[3:]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_joint(kind):
    """As the first joint, behind another one of its kind, and behind a hinge."""
    rng = np.random.default_rng(KINDS.index(kind))
    for kinds in ((kind, kind), ("revolute", kind)):
        found, expected = compared(chain(kinds), (0.3, -1.0, -9.0), rng, loads=(0, 2))
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11 * np.abs(y).max())


@pytest.mark.parametrize("robot", [GO2, PANDA])
def test_robots(robot):
    """With prepared trees, whose masses are regrouped."""
    found, expected = compared(robot.tree(), (0.0, 0.0, -9.81), np.random.default_rng(0), loads=(1,))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11 * np.abs(y).max())


def test_several_trees():
    """Two that stand on the ground and one that floats: each has its own frame, and nothing passes over."""
    rng, b = np.random.default_rng(5), da.Builder("three")
    for k, kind in enumerate(("revolute", "prismatic", "free")):
        body(b, f"a{k}", rng)
        body(b, f"b{k}", rng)
        joint(b, kind, "world", f"a{k}", rng)
        joint(b, "spherical", f"a{k}", f"b{k}", rng)
    found, expected = compared(b.build(), (1.0, 2.0, 3.0), rng, loads=(0, 3, 5))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11 * np.abs(y).max())
    place = [range(0, 4), range(4, 8), range(8, 17)]
    for x in found:
        for k, rows in enumerate(place):
            others = [i for j, part in enumerate(place) if j != k for i in part]
            assert not x[np.ix_(list(rows), others)].any()


def test_a_pendulum_in_closed_form():
    """tau = m l^2 a + m g l sin q of a point mass: its derivatives are m g l cos q, 0, m l^2."""
    b = da.Builder("pendulum")
    b.body("bob", mass=2.0, center=(0.0, 0.0, -0.5), inertia=(0.0, 0.0, 0.0))
    b.joint("hinge", "revolute", "world", "bob", axis=(0.0, 1.0, 0.0))
    m = b.build()
    setting = Tracing.of(m)
    slopes = newton_euler_derivatives(
        setting.tree, setting.posed, (0.0, 0.0, -9.81), setting.symbol("v"), setting.symbol("a"), {}
    )
    columns = [ca.SX(part[0][0]) for part in slopes]
    values = ca.Function("f", [setting.column(x) for x in ("q", "v", "a")], columns)(0.7, 1.3, -0.4)
    expected = [2.0 * 9.81 * 0.5 * np.cos(0.7), 0.0, 2.0 * 0.25]
    np.testing.assert_allclose([float(x) for x in values], expected, atol=1e-14)

"""Limbs that weigh next to nothing: rows across a light leg are long in the metric of mass, and no less independent.

Garcia's simplest walker (M. Garcia et al., J. Biomech. Eng. 120 (1998) 281-288): a hip of 1 kg on two legs of 1 m with
feet of beta kg. Its motion has a limit as beta vanishes, from which it is off by the order of beta.
"""

from functools import cache

import casadi as ca
import numpy as np
import pytest

import dalembert as da

SLOPE = (0.009, 0.0, -1.0)
START = {"x": np.sin(0.2), "z": np.cos(0.2), "stance": 0.2, "swing": -0.2}
SPEED = {"x": -0.2 * np.cos(0.2), "z": 0.2 * np.sin(0.2), "stance": -0.2, "swing": -0.28}


def walker(foot, pin):
    """Return the walker with its stance foot on the ground."""
    b = da.Builder("walker", gravity=SLOPE)
    b.body("cart")
    b.body("hip", mass=1.0)
    b.joint("x", "prismatic", "world", "cart", axis=(1, 0, 0))
    b.joint("z", "prismatic", "cart", "hip", axis=(0, 0, 1))
    for leg in ("stance", "swing"):
        b.body(f"{leg} leg", mass=foot, center=(0, 0, -1))
        b.joint(leg, "revolute", "hip", f"{leg} leg", axis=(0, 1, 0))
        b.frame(f"{leg} foot", f"{leg} leg", position=(0, 0, -1))
    return b.build().constrain(*pin())


def lagrangian(foot):
    """Return the same in expressions."""
    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    feet = [ca.vertcat(q[0] - ca.sin(q[k]), q[1] - ca.cos(q[k])) for k in (2, 3)]
    masses = [(1.0, q[:2]), (foot, feet[0]), (foot, feet[1])]
    kinetic = sum(m * ca.sumsqr(ca.jtimes(place, q, v)) / 2 for m, place in masses)
    potential = -sum(m * (SLOPE[0] * place[0] + SLOPE[2] * place[1]) for m, place in masses)
    constraints = {"foot x": feet[0][0], "foot z": feet[0][1]}
    return da.Lagrangian(q, v, kinetic=kinetic, potential=potential, constraints=constraints, coordinates=list(START))


def line():
    return [da.PointOnLine("stance foot", "world", axis=(0, 1, 0), name="pin")]


def point():
    return [da.Point("stance foot", name="pin")]


def twice():
    return [*point(), da.Revolute("stance foot", "world", axis=(0, 1, 0), name="hinge")]


@cache
def heavier(pin):
    return end_of(walker(1e-9, pin))


def end_of(m):
    run = da.simulate(m, 1.0, START, SPEED, rtol=1e-10, atol=1e-10)
    assert run.ok, run.message
    return np.array([run[name][-1] for name in START])


@pytest.mark.parametrize("pin", [line, point, twice])
@pytest.mark.parametrize("foot", [1e-12, 1e-15])
def test_a_walker_with_light_feet_walks(foot, pin):
    """From 4e-13 kg on its constraints contradicted each other."""
    m = walker(foot, pin)
    assert (m.generic_rank().rank, m.rank_doubt) == (2, "")
    np.testing.assert_allclose(end_of(m), heavier(line), atol=1e-7)


def test_a_lagrangian_with_light_feet_walks():
    np.testing.assert_allclose(end_of(lagrangian(1e-12)), heavier(line), atol=1e-7)

"""`da.hold`: proportional-derivative control of joints as a compiled force."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import dalembert as da

KINDS = ("revolute", "prismatic", "continuous", "planar", "spherical")


@cache
def _robot():
    b = da.Builder("robot")
    b.body("base", mass=5.0, inertia=(0.1, 0.1, 0.1))
    parent = "base"
    for kind in KINDS:
        b.body(f"link {kind}", mass=1.0, inertia=(0.02, 0.03, 0.04), center=(0, 0, 0.1))
        b.joint(kind, kind, parent, f"link {kind}", position=(0, 0, 0.2))
        parent = f"link {kind}"
    return b.build(base="floating")


def test_force_is_that_of_springs_and_dampers():
    m = _robot()
    rng = np.random.default_rng(0)
    target, q, v = m.random(rng), m.random(rng), rng.standard_normal(m.nv)
    force = np.array(da.hold(m, 20.0, 3.0, target)(0.0, q, v)).ravel()
    assert not force[:6].any(), "nothing holds the base"
    for name in ("revolute", "prismatic", "continuous", "spherical"):
        away = m.difference(target, q)[m.index_v(name)]
        if name == "spherical":  # the rotation vector from the place held, in the child's axes
            away = m.difference(q, target)[m.index_v(name)] * -1.0
        np.testing.assert_allclose(force[m.index_v(name)], -20.0 * away - 3.0 * v[m.index_v(name)], atol=1e-12)


def test_gains_by_joint_and_bad_ones():
    m = _robot()
    q = m.neutral()
    q[m.index_q("revolute")] = 0.3
    force = np.array(da.hold(m, {"revolute": 10.0}, q=m.neutral())(0.0, q, np.zeros(m.nv))).ravel()
    np.testing.assert_allclose(force[m.index_v("revolute")], [-3.0])
    assert np.count_nonzero(force) == 1
    with pytest.raises(da.ModelError, match="revolute"):
        da.hold(m, {"revolut": 1.0})
    with pytest.raises(da.ModelError, match="kd=-1"):
        da.hold(m, 1.0, -1.0)


def test_a_pendulum_is_held():
    b = da.Builder("pendulum")
    b.body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1), center=(0, 0, -0.5))
    b.joint("hinge", "revolute", "world", "rod", axis=(0, 1, 0))
    m = b.build()
    run = da.simulate(m, 10.0, q=[0.0], force=da.hold(m, 200.0, 40.0, [0.5]))
    angle = run.q[-1, 0]
    assert abs(200.0 * (0.5 - angle) - 9.81 * 0.5 * np.sin(angle)) < 1e-6, "the spring bears the weight"

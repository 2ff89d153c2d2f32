"""Where nothing depends on time, t may be left off a call; where something may, it may not."""

from __future__ import annotations

import pickle

import casadi as ca
import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ShapeError


def arm() -> da.Mechanism:
    """Return a double pendulum."""
    build = da.Builder("arm")
    for name in ("upper", "fore"):
        build.body(name, mass=1.0, center=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    build.joint("shoulder", "revolute", "world", "upper", axis=[0, 1, 0])
    build.joint("elbow", "revolute", "upper", "fore", axis=[0, 1, 0], position=[1.0, 0, 0])
    return build.build()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_time_may_be_left_off(batch, dtype):
    held = arm().constrain(da.PointInPlane("fore"))
    kernel = held.compile(dtype=dtype)
    q = np.broadcast_to(np.array([0.3, -0.8], dtype), (*batch, 2)).copy()
    expected = kernel(q, q, q, np.zeros(1, dtype))
    for each in (kernel, pickle.loads(pickle.dumps(kernel))):
        for found in (each(q, q, q), each.call(q, q, q).outputs, each(q, q, q, out=each(q, q, q))):
            for one, two in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, two)
    with pytest.raises(ShapeError, match="2 were given"):
        kernel(q, q)


def test_a_prescribed_motion_needs_the_time():
    kernel = arm().constrain(da.Servo("elbow", lambda t: ca.sin(t))).compile()
    with pytest.raises(ShapeError, match="3 were given"):
        kernel(*np.zeros((3, 2)))

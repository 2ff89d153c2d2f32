"""Batches of several leading axes: the same samples as in a row, in the shape that was given."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from dalembert.errors import ShapeError
from dalembert.kernel import Kernel
from dalembert.status import Status

BACKENDS = ("cpu", "numpy")


def kernel(backend: str = "cpu") -> Kernel:
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 2, 2)
    return Kernel(ca.Function("f", [x, y], [ca.sin(x), y @ y + x[0]], ["x", "y"], ["s", "z"]), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_several_axes(backend):
    f, rng = kernel(backend), np.random.default_rng(0)
    x, y = rng.standard_normal((4, 1, 5, 3)), rng.standard_normal((4, 1, 5, 2, 2))
    s, z = f(x, y)
    rows = f(x.reshape(20, 3), y.reshape(20, 2, 2))
    assert (s.shape, z.shape) == ((4, 1, 5, 3), (4, 1, 5, 2, 2))
    np.testing.assert_array_equal(s.reshape(20, 3), rows[0])
    np.testing.assert_array_equal(z.reshape(20, 2, 2), rows[1])
    one = f(x, y[0, 0, 0])[1]
    np.testing.assert_array_equal(one[2, 0, 3], f(x[2, 0, 3], y[0, 0, 0])[1])


def test_status_and_samples():
    f = kernel()
    x, y = np.zeros((2, 3, 3)), np.zeros((2, 2))
    x[1, 2, 0] = np.nan
    evaluation = f.call(x, y)
    np.testing.assert_array_equal(evaluation.status != Status.FINITE, [[False, False, False], [False, False, True]])
    assert f.report().samples == 6


def test_lists_and_empty_batches():
    f = kernel()
    assert f([[[0.0, 0.0, 0.0]]], np.zeros((2, 2)))[0].shape == (1, 1, 3)
    assert f(np.zeros((0, 4, 3)), np.zeros((2, 2)))[1].shape == (0, 4, 2, 2)


@pytest.mark.parametrize("order", ["C", "F"])
def test_given_outputs_are_written(order):
    f, rng = kernel(), np.random.default_rng(0)
    x, y = rng.standard_normal((4, 5, 3)), rng.standard_normal((4, 5, 2, 2))
    out = tuple(np.zeros(shape, order=order) for shape in ((4, 5, 3), (4, 5, 2, 2)))
    found = f(x, y, out=out)
    assert all(one is other for one, other in zip(found, out, strict=True))
    np.testing.assert_array_equal(out[1], f(x, y)[1])


@pytest.mark.parametrize("shapes", [((2, 3, 3), (3, 2, 2, 2)), ((2, 3, 3), (6, 2, 2)), ((2, 3, 4), (2, 2))])
def test_axes_that_do_not_agree(shapes):
    with pytest.raises(ShapeError):
        kernel()(*(np.zeros(shape) for shape in shapes))


def test_outputs_of_another_shape():
    with pytest.raises(ShapeError, match="out="):
        kernel()(np.zeros((2, 3, 3)), np.zeros((2, 2)), out=[np.zeros((6, 3)), np.zeros((2, 3, 3, 3))])

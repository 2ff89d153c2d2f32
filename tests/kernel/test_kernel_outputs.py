"""Outputs that repeat a value or have structural zeros: written from one vector per value, whatever the strides."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from dalembert.errors import ShapeError
from dalembert.kernel import Kernel
from dalembert.kernel.llvm.body import output_layout
from dalembert.kernel.program.lower import lower
from dalembert.status import Status


def symmetric(n: int) -> ca.Function:
    """Return x -> a symmetric band matrix with constants and inputs on it, a dense vector, a scalar that repeats."""
    x = ca.SX.sym("x", n)
    M = ca.SX(n, n)
    for i in range(n):
        M[i, i] = x[i] if i % 3 else 2.0
        if i + 2 < n:
            M[i, i + 2] = M[i + 2, i] = x[i] * x[i + 2]
    value = ca.sin(x[0])
    return ca.Function("symmetric", [x], [M, ca.sin(x), ca.vertcat(value, value)], ["x"], ["M", "s", "twice"])


def test_one_vector_per_value():
    outputs = output_layout(lower(symmetric(9)).program)
    assert outputs.tables[1] is None  # nine distinct sines
    assert len(outputs.zeros) == 1
    assert outputs.tables[0] is not None
    assert len(set(outputs.tables[0])) < 81 / 2
    assert outputs.tables[2] == (0, 0)
    assert outputs.size == sum(len(values) for values in outputs.stores.values()) + 1


@pytest.mark.parametrize("samples", [1, 2, 7, 8, 9, 40])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 4, 9])
def test_written_alike_in_any_order(n, order, samples):
    function = symmetric(n)
    kernel, twin = Kernel(function), Kernel(function, backend="numpy")
    x = np.random.default_rng(0).standard_normal((samples, n))
    shapes = [(samples, *port.shape) for port in kernel.outputs]
    out = tuple(np.full(shape, np.nan, order=order) for shape in shapes)
    kernel(x, out=out)
    for one, two in zip(out, twin(x), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-14)


def test_a_zero_that_is_computed_is_no_structural_zero():
    x = ca.SX.sym("x", 1)
    kernel = Kernel(ca.Function("f", [x], [ca.vertcat(x - x, 0, x)]))
    result = kernel.call(np.array([[1.0], [np.nan]]))
    np.testing.assert_array_equal(result.outputs[0][0], [0.0, 0.0, 1.0])
    assert result.status.tolist() == [Status.FINITE, Status.NONFINITE]


def test_an_out_that_has_no_truth_value_is_asked_for_none():
    """Arrays of other libraries raise where their truth is asked for: only the engine may judge them."""

    class Tensor:
        def __bool__(self) -> bool:
            raise RuntimeError("the truth of an array is ambiguous")

    x = ca.SX.sym("x", 3)
    with pytest.raises(ShapeError, match="not Tensor"):
        Kernel(ca.Function("f", [x], [2 * x]))(np.zeros(3), out=Tensor())

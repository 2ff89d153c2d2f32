"""Elementary functions: error bounds against mpmath, special values against the C standard, one result everywhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from elementary import arguments, function, ulp_errors

from dalembert.kernel import Kernel
from dalembert.kernel.llvm.functions import BOUNDS
from dalembert.kernel.numpy_twin import LINES
from dalembert.kernel.program.program import ARITY, Op

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, math.inf, -math.inf, math.nan, 5e-324, -1e-310, 1e-300, 1e308, -1e308)
SAMPLES = {Op.ERFINV: 200}
HARD = [6381956970095103.0 * 2.0**797, 2.0**1023, 1.7976931348623157e308]  # the first: nearest to a multiple of pi/2


def columns(x: np.ndarray) -> list[np.ndarray]:
    """Return one (N, 1) array per argument."""
    return [np.ascontiguousarray(column)[:, None] for column in x.T]


@pytest.mark.parametrize("op", BOUNDS, ids=lambda op: op.name.lower())
def test_error_is_within_the_stated_bound(op):
    x = arguments(op, SAMPLES.get(op, 2000))
    y = Kernel(function(op))(*columns(x))[:, 0]
    errors = ulp_errors(op, x, y)
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[op], (x[worst], y[worst])


@pytest.mark.parametrize("op", [Op.SIN, Op.COS, Op.TAN], ids=lambda op: op.name.lower())
def test_arguments_near_multiples_of_a_quarter_turn(op):
    near = np.concatenate([np.arange(1, 400) * (np.pi / 2), 2.0 ** np.arange(20, 60) * np.pi, HARD])
    x = np.concatenate([near, np.nextafter(near, 0), -near])[:, None]
    y = Kernel(function(op))(*columns(x))[:, 0]
    assert np.max(ulp_errors(op, x, y)) <= BOUNDS[op]


@pytest.mark.parametrize("op", BOUNDS, ids=lambda op: op.name.lower())
def test_special_values(op):
    grids = np.meshgrid(*[SPECIAL] * ARITY[op])
    x = np.stack([g.ravel() for g in grids], axis=1)
    found = Kernel(function(op))(*columns(x))[:, 0]
    with np.errstate(all="ignore"):
        expected = np.asarray(LINES[op](*x.T), float)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite & ~np.isnan(expected)], expected[~finite & ~np.isnan(expected)])
    np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-15, atol=5e-324)
    if op == Op.ERFINV:  # odd; SciPy loses the sign of a zero
        expected = np.copysign(expected, x[:, 0])
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("op", BOUNDS, ids=lambda op: op.name.lower())
def test_every_width_gives_the_same_bits(op):
    x = np.concatenate([arguments(op, 100, seed=2), np.array([SPECIAL[:9]] * ARITY[op]).T])
    reference = Kernel(function(op), width=1)(*columns(x))
    for width in (2, 4, 8):
        np.testing.assert_array_equal(Kernel(function(op), width=width)(*columns(x)), reference)


@pytest.mark.parametrize("op", BOUNDS, ids=lambda op: op.name.lower())
def test_single_precision_is_double_rounded(op):
    low = -0.95 if op in (Op.ASIN, Op.ACOS, Op.ATANH, Op.ERFINV) else -4.0
    x = np.random.default_rng(4).uniform(low, -low, (300, ARITY[op])).astype(np.float32)
    if op in (Op.LOG, Op.LOG1P, Op.POW, Op.ACOSH):
        x = np.abs(x) + np.float32(op == Op.ACOSH)
    single = Kernel(function(op), dtype="float32")(*columns(x))
    double = Kernel(function(op))(*columns(x.astype(np.float64)))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, double.astype(np.float32))

"""Single calls have code of their own, one sample wide, with sines packed into vectors: the same bits as in a batch."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from dalembert.kernel import Kernel
from dalembert.kernel.llvm import engine as cpu_engine
from dalembert.kernel.llvm.compile import build
from dalembert.kernel.program.lower import lower
from dalembert.kernel.program.trace import scalar_function
from dalembert.status import Status


def arm(joints: int = 25) -> ca.Function:
    """Return a program of some hundred operations: sines of inputs, of sums, and of other sines; a symmetric output."""
    q = ca.SX.sym("q", joints)
    v = ca.SX.sym("v", joints)
    lengths = ca.sin(q) * v + ca.cos(q + 0.3)
    inner = ca.sin(lengths) + ca.cos(lengths) * ca.sqrt(1 + v**2)
    matrix = ca.mtimes(inner, inner.T)
    for i in range(3, joints):
        matrix[0, i] = matrix[i, 0] = 0
    return ca.Function("arm", [q, v], [matrix, ca.cumsum(inner)], ["q", "v"], ["M", "s"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("far", [1.0, 1e3, 1e12])
def test_bits_of_single_calls(dtype, far):
    kernel = Kernel(arm(), dtype=dtype)
    assert len(cpu_engine._compile(arm(), kernel.options)[0]) == 2
    q, v = (x.astype(dtype) for x in np.random.default_rng(0).standard_normal((2, 40, 25)))
    q *= far
    q[7, 3] = np.nan
    q[8, 2] = np.inf
    for whole, k in zip((kernel(q, v),) * 40, range(40), strict=True):
        for expected, found in zip(whole, kernel(q[k].copy(), v[k].copy()), strict=True):
            np.testing.assert_array_equal(found, expected[k])
        evaluation = kernel.call(q[k].copy(), v[k].copy())
        assert evaluation.status == (Status.NONFINITE if k in (7, 8) else Status.FINITE)


def test_scratch_memory_serves_both_codes(monkeypatch):
    """One sample wide, more blocks pass through a chunk together: the narrow code may need the larger memory."""
    monkeypatch.setattr(cpu_engine, "SINGLE_LEAST", 0)
    larger = 0
    for joints in (14, 25):
        program = lower(scalar_function(arm(joints))).program
        wide, narrow = (build(program, "float64", width)[1].scratch_bytes for width in (None, 1))
        _, header = cpu_engine._compile(arm(joints), Kernel(arm(joints)).options)
        assert header["layout"]["scratch_bytes"] == max(wide, narrow)
        larger += narrow > wide
    assert larger


@pytest.mark.parametrize("least", [0, 10**9])
def test_both_codes_come_from_the_cache(monkeypatch, tmp_path, least):
    monkeypatch.setenv("DALEMBERT_CACHE", str(tmp_path))
    monkeypatch.setattr(cpu_engine, "SINGLE_LEAST", least)
    first, second = Kernel(arm()), Kernel(arm())
    assert not first.report().from_cache
    assert second.report().from_cache
    q, v = np.random.default_rng(0).standard_normal((2, 25))
    for one, other in zip(first(q, v), second(q, v), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_report_is_that_of_the_last_call():
    """Not every single call is timed, but a change of size is seen at once, whichever way a call went."""
    kernel = Kernel(arm())
    q, v = np.random.default_rng(0).standard_normal((2, 30, 25))
    assert kernel.report().samples is None
    for _ in range(100):
        kernel(q[0].copy(), v[0].copy())
    assert kernel.report().samples == 1
    kernel(q, v)
    assert kernel.report().samples == 30
    kernel(q[:20].tolist(), v[:20])
    assert kernel.report().samples == 20
    kernel(q[0].copy(), v[0].copy())
    report = kernel.report()
    assert report.samples == 1
    assert 0 < report.seconds < 1

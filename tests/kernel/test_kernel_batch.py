"""Batches: backends agree, and a sample's result is the same wherever it stands."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import casadi as ca
import numpy as np
import pytest
from every_operation import arguments, every_operation
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import casadi_values, random_function, random_inputs

from dalembert.errors import ModelError
from dalembert.kernel import Kernel
from dalembert.kernel.llvm import compile as llvm_backend
from dalembert.kernel.program import chunks as chunk
from dalembert.status import Status

BACKENDS = ("numpy", "cpu", "c")


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), samples=st.integers(1, 40))
def test_backends_agree_with_casadi(seed, samples):
    function = random_function(seed)
    inputs = random_inputs(function, samples, seed)
    expected = casadi_values(function, inputs)
    for backend in BACKENDS:
        for close in zip(Kernel(function, backend=backend)(*inputs), expected, strict=True):
            np.testing.assert_allclose(*close, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def case():
    function = random_function(11, 200)
    inputs = random_inputs(function, 300)
    return function, inputs, Kernel(function, width=1)(*inputs)


@pytest.mark.parametrize("width", [None, 1, 2, 4, 8, 16])
@pytest.mark.parametrize("samples", [1, 2, 7, 8, 9, 127, 128, 129, 300])
def test_results_do_not_depend_on_batch_size_or_width(case, width, samples):
    function, inputs, reference = case
    results = Kernel(function, width=width)(*[x[:samples] for x in inputs])
    for result, expected in zip(results, reference, strict=True):
        np.testing.assert_array_equal(result, expected[:samples])


def test_results_do_not_depend_on_position_or_on_single_calls(case):
    function, inputs, reference = case
    kernel = Kernel(function)
    order = np.random.default_rng(0).permutation(300)
    for result, expected in zip(kernel(*[x[order] for x in inputs]), reference, strict=True):
        np.testing.assert_array_equal(result, expected[order])
    for k in range(20):
        for result, expected in zip(kernel(*[x[k] for x in inputs]), reference, strict=True):
            np.testing.assert_array_equal(result, expected[k])


@pytest.mark.parametrize("size", [5, 40, 170])
def test_results_do_not_depend_on_chunks(case, size, monkeypatch):
    function, inputs, reference = case
    monkeypatch.setenv("DALEMBERT_CACHE", "off")
    monkeypatch.setattr(llvm_backend, "split", lambda program: chunk.split(program, size))
    kernel = Kernel(function)
    assert kernel.report().chunks > 1
    for result, expected in zip(kernel(*inputs), reference, strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("level", ["0", "1", "3"])
def test_results_do_not_depend_on_the_level_of_optimization(case, level, monkeypatch):
    """Which lets all other rooms compile at level 0."""
    for function, inputs in (case[:2], (every_operation(), arguments())):
        expected = Kernel(function)(*inputs)
        with monkeypatch.context() as patch:
            patch.setenv("DALEMBERT_OPTIMIZE", level)
            kernel = Kernel(function)
            assert not kernel.report().from_cache
        for result, other in zip(kernel(*inputs), expected, strict=True):
            np.testing.assert_array_equal(result, other)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_special_values_do_not_depend_on_width(width, dtype):
    """Infinite angles beside finite ones: registers that a function promises to keep are kept, all of their halves."""
    x = ca.SX.sym("x")
    function = ca.Function("circular", [x], [ca.sin(x), ca.cos(x), ca.tan(x), ca.sin(2 * x) + ca.cos(2 * x)])
    angles = [1.0, 1e30, np.inf, 0.5, -np.inf, np.nan, -1e12, 3.0]
    values = np.random.default_rng(0).choice(angles, (200, 1)).astype(dtype)
    expected = Kernel(function, width=1, dtype=dtype)(values)
    for result, other in zip(Kernel(function, width=width, dtype=dtype)(values), expected, strict=True):
        np.testing.assert_array_equal(result, other)
        assert np.isnan(result[~np.isfinite(values)]).all()


def test_a_level_that_does_not_exist_is_refused(case, monkeypatch):
    monkeypatch.setenv("DALEMBERT_OPTIMIZE", "fast")
    with pytest.raises(ModelError, match="DALEMBERT_OPTIMIZE='fast'"):
        Kernel(case[0])


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("samples", [1, 129, 4000])
def test_results_do_not_depend_on_threads(case, threads, samples):
    function, _, _ = case
    inputs = random_inputs(function, samples, 5)
    one = Kernel(function).call(*inputs)
    many = Kernel(function, threads=threads).call(*inputs)
    for result, expected in zip((*many.outputs, many.status), (*one.outputs, one.status), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_one_kernel_in_many_python_threads(case):
    function, inputs, reference = case
    kernel = Kernel(function)
    failures = []

    def work(first):
        for _ in range(30):
            batch = kernel(*[x[first : first + 100] for x in inputs])
            single = kernel(*[x[first] for x in inputs])
            for b, s, expected in zip(batch, single, reference, strict=True):
                if not (np.array_equal(b, expected[first : first + 100]) and np.array_equal(s, expected[first])):
                    failures.append(first)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 50, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_any_strides(backend, dtype):
    x, A = ca.SX.sym("x", 3), ca.SX.sym("A", 3, 2)
    function = ca.Function("f", [x, A], [ca.mtimes(A.T, x), A * x[0]])
    kernel = Kernel(function, backend=backend, dtype=dtype)
    rng = np.random.default_rng(0)
    for n in (1, 5, 21):
        wide = rng.normal(size=(2 * n, 9)).astype(dtype)
        matrices = rng.normal(size=(2, 3, n)).astype(dtype)
        xs, As = wide[::-2, 1::3], matrices.transpose(2, 1, 0)
        plain = kernel(xs.copy(), As.copy())
        for result, expected in zip(kernel(xs, As), plain, strict=True):
            np.testing.assert_array_equal(result, expected)
        np.testing.assert_allclose(plain[0], np.einsum("nij,ni->nj", As, xs), rtol=1e-5, atol=1e-5)
        out = (np.zeros((2, n), dtype).T, np.zeros((n, 2, 3), dtype).transpose(0, 2, 1))
        assert kernel(xs, As, out=out)[0] is out[0]
        for result, expected in zip(out, plain, strict=True):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_single_inputs_serve_the_whole_batch(backend):
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 3)
    kernel = Kernel(ca.Function("f", [x, p], [x * p[0] + p[1], ca.sin(p)]), backend=backend)
    xs, ps = np.arange(22.0).reshape(11, 2), np.array([2.0, 1.0, 0.5])
    first, second = kernel(xs, ps)
    np.testing.assert_array_equal(first, xs * 2.0 + 1.0)
    assert second.shape == (11, 3)
    np.testing.assert_array_equal(second, np.broadcast_to(kernel(xs[0], ps)[1], (11, 3)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_output_memory_may_be_that_of_an_input(backend):
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    kernel = Kernel(ca.Function("f", [x, p], [ca.vertcat(x[1], x[0]) + p]), backend=backend)
    data = np.arange(44.0).reshape(22, 2)
    expected = data[:, ::-1] + data[0]
    kernel(data, data[0], out=data)
    np.testing.assert_array_equal(data, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_status_marks_samples_that_are_not_finite(backend):
    x = ca.SX.sym("x")
    kernel = Kernel(ca.Function("f", [x], [ca.log(x), 1 / (x - 2)]), backend=backend)
    xs = np.ones((21, 1))
    xs[[3, 8, 20]] = [[-1.0], [2.0], [0.0]]
    result = kernel.call(xs)
    assert np.flatnonzero(result.status == Status.NONFINITE).tolist() == [3, 8, 20]
    assert kernel.call(xs[0]).status == Status.FINITE
    assert kernel.call(xs[3]).status == Status.NONFINITE


@pytest.mark.parametrize("backend", BACKENDS)
def test_structural_zeros_are_zeros(backend):
    x = ca.SX.sym("x", 3)
    kernel = Kernel(ca.Function("f", [x], [ca.diag(x), ca.SX(2, 2), x]), backend=backend)
    out = (np.full((9, 3, 3), 7.0), np.full((9, 2, 2), 7.0), np.full((9, 3), 7.0))
    xs = np.arange(27.0).reshape(9, 3) + 1
    diagonal, zero, same = kernel(xs, out=out)
    np.testing.assert_array_equal(diagonal, xs[:, :, None] * np.eye(3))
    np.testing.assert_array_equal(zero, np.zeros((9, 2, 2)))
    np.testing.assert_array_equal(same, xs)
    np.testing.assert_array_equal(kernel(xs[0])[0], np.diag(xs[0]))


def test_sparse_inputs_read_their_pattern_only():
    pattern = ca.Sparsity.lower(3)
    A = ca.SX.sym("A", pattern)
    kernel = Kernel(ca.Function("f", [A], [ca.sum1(ca.sum2(A))]))
    value = np.arange(9.0).reshape(3, 3)
    assert kernel(value)[0] == np.tril(value).sum()


def test_single_precision_agrees_with_double(case):
    function, inputs, reference = case
    for result, expected in zip(Kernel(function, dtype="float32")(*inputs), reference, strict=True):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-5)


FORK = """
import os, sys
import casadi as ca, numpy as np
from dalembert.kernel import Kernel
x = ca.SX.sym("x", 3)
kernel = Kernel(ca.Function("f", [x], [ca.sin(x)]), threads=2)
batch = np.ones((300_000, 3))
expected = kernel(batch)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(kernel(batch), expected) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_threads_work_in_a_forked_process():
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def test_kernels_come_and_go():
    x = ca.SX.sym("x", 2)
    function = ca.Function("f", [x], [ca.sin(x) * 2])
    batch = np.ones((20, 2))
    expected = Kernel(function)(batch)
    for _ in range(30):
        np.testing.assert_array_equal(Kernel(function)(batch), expected)

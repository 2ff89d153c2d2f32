"""The CUDA backend: its text compiled for the host and run by the same engine; nvcc and a GPU where they exist."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import casadi as ca
import host_cuda
import numpy as np
import pytest
from elementary import ulp_errors
from every_operation import arguments, every_operation
from programs import random_function, random_inputs

from dalembert.errors import MissingExtraError, ShapeError
from dalembert.kernel import Kernel
from dalembert.kernel.cuda import printer as cuda_part
from dalembert.kernel.cuda.printer import REGISTERS, print_cuda
from dalembert.kernel.program.lower import lower
from dalembert.kernel.program.program import Op
from dalembert.status import Status

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import sample_programs as robots

DTYPES = ("float64", "float32")
RTOL = {"float64": 1e-14, "float32": 4e-6}

host = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


device = pytest.mark.skipif(not host_cuda.has_device(), reason="needs CuPy and a GPU")


@pytest.fixture
def on_host(monkeypatch):
    """Put the host in place of the device; return a function that sets how programs are printed."""

    def choose(**tuning):
        host_cuda.in_place_of_a_device(monkeypatch, **tuning)

    choose(threads=8)
    return choose


def compare(function, inputs, dtype="float64", rtol=1e-11):
    """Compare the outputs and the status with those of the NumPy twin."""
    kernel = Kernel(function, backend="cuda", dtype=dtype)
    found, expected = kernel.call(*inputs), Kernel(function, backend="numpy", dtype=dtype).call(*inputs)
    for a, b in zip(found.outputs, expected.outputs, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(found.status, expected.status)
    return kernel


@host
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_agrees_with_the_twin(on_host, dtype):
    compare(every_operation(), [x.astype(dtype) for x in arguments()], dtype, RTOL[dtype])


VARIANTS = {
    "plain": {"threads": 8},
    "parts": {"threads": 8, "part": 40},
    "parts, little again": {"threads": 8, "part": 40, "recompute": 1},
    "parts, much again": {"threads": 8, "part": 25, "recompute": 50},
    "parts, again, no fetch": {"threads": 8, "part": 40, "recompute": 3, "fetch": False},
    "no stage": {"threads": 8, "stage": False},
    "meeting": {"threads": 16, "meet": 25, "part": 70},
}


@host
@pytest.mark.parametrize("variant", VARIANTS)
def test_ways_to_print_agree_with_the_twin(on_host, variant):
    on_host(**VARIANTS[variant])
    function = random_function(7, 150)
    kernel = compare(function, random_inputs(function, 29))
    assert (kernel.report().chunks > 1) == ("part" in VARIANTS[variant])
    for samples in (1, 8, 16):
        compare(function, random_inputs(function, samples, samples))


@host
def test_arm_in_single_precision(on_host):
    on_host()
    function = robots.arm()
    inputs = [x.astype(np.float32) for x in random_inputs(function, 70)]
    expected = Kernel(function, backend="numpy")(*inputs)
    found = Kernel(function, backend="cuda", dtype="float32")(*inputs)
    assert found.dtype == np.float32
    assert (np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)).max() < 1e-4


@host
def test_long_batches_run_in_pieces(on_host):
    on_host(threads=8, part=40, scratch=1)
    function = random_function(7, 150)
    inputs = random_inputs(function, 21)
    kernel = compare(function, inputs)
    launches = kernel.engine.functions[0].launches
    assert [blocks for blocks, _, _ in launches] == [1, 1, 1]


@host
@pytest.mark.parametrize("room", [0, 200, 900])
def test_ports_that_do_not_fit_shared_memory(on_host, monkeypatch, room):
    monkeypatch.setattr(cuda_part, "SHARED_BYTES", room)
    for part in (30, 4000):
        on_host(threads=8, part=part)
        function = random_function(9, 80)
        kernel = compare(function, random_inputs(function, 13))
        assert kernel.report().shared_bytes <= room


@host
def test_single_inputs_structural_zeros_and_status(on_host):
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 3)
    outputs = [ca.log(x) * p[0], ca.diag(p) / x[0], ca.SX(2, 2), p, ca.SX(5)]
    function = ca.Function("f", [x, p], outputs)
    xs = np.linspace(0.5, 2, 38).reshape(19, 2)
    xs[[4, 11]] = [[-1.0, 1.0], [0.0, 1.0]]
    kernel = compare(function, [xs, np.array([1.0, 2.0, 3.0])])
    status = kernel.call(xs, np.ones(3)).status
    assert np.flatnonzero(status == Status.NONFINITE).tolist() == [4, 11]
    single = kernel(xs[0], np.ones(3))
    assert [y.shape for y in single] == [(2,), (3, 3), (2, 2), (3,), (1,)]
    assert kernel(xs[:0], np.ones(3))[1].shape == (0, 3, 3)


@host
def test_strides_out_and_shared_memory(on_host):
    x = ca.SX.sym("x", 2)
    kernel = Kernel(ca.Function("f", [x], [ca.vertcat(x[1], x[0]) + 1]), backend="cuda")
    data = np.arange(40.0).reshape(20, 2).view(host_cuda.Array)
    expected = np.asarray(data)[:, ::-1] + 1
    np.testing.assert_array_equal(kernel(np.asfortranarray(data)), expected)
    wide = np.zeros((20, 4)).view(host_cuda.Array)
    assert kernel(data, out=wide[:, ::2]).base is not None
    np.testing.assert_array_equal(wide[:, ::2], expected)
    kernel(data, out=data)
    np.testing.assert_array_equal(data, expected)
    with pytest.raises(ShapeError, match="must be float64"):
        kernel(data, out=wide)


@host
@pytest.mark.parametrize("dtype", DTYPES)
def test_sine_and_cosine_of_any_angle(on_host, dtype):
    x = ca.SX.sym("x")
    kernel = Kernel(ca.Function("f", [x], [ca.sin(x), ca.cos(x), ca.tan(x)]), backend="cuda", dtype=dtype)
    rng = np.random.default_rng(0)
    size = np.exp(rng.uniform(-20, 60, 500)) * rng.choice([-1, 1], 500)
    xs = np.concatenate([size, np.arange(1, 300) * np.pi / 2]).astype(dtype)[:, None]
    for op, y, bound in zip((Op.SIN, Op.COS, Op.TAN), kernel(xs), (1, 1, 2.5), strict=True):
        errors = ulp_errors(op, xs, y[:, 0])
        if dtype == "float32":  # from units of double to units of single
            exact = getattr(np, op.name.lower())(xs[:, 0].astype(np.float64))
            errors *= np.spacing(np.abs(exact)) / np.spacing(np.abs(exact).astype(np.float32))
        assert errors.max() <= bound
    outside = kernel.call(np.array([[np.inf], [-np.inf], [np.nan]], dtype))
    assert all(np.isnan(y).all() for y in outside.outputs)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("dtype", DTYPES)
def test_nvcc_accepts_the_text(dtype, tmp_path):
    for name, function in {"every": every_operation(), "arm": robots.arm()}.items():
        source = tmp_path / f"{name}.cu"
        source.write_text(print_cuda(lower(function, REGISTERS[dtype]).program, dtype).text)
        flags = ["-std=c++17", "--fmad=false", "-arch=sm_80", "-diag-suppress", "177", "-Werror", "all-warnings"]
        subprocess.run(["nvcc", *flags, "-c", str(source), "-o", str(tmp_path / "module.o")], check=True)


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match=r"pip install \"dalembert\[gpu\]\""):
        Kernel(random_function(1), backend="cuda")
    with pytest.raises(MissingExtraError):  # before anything is built
        Kernel.cached(["never built"], lambda: pytest.fail("traced"), backend="cuda")


@device
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_a_device(dtype):
    cupy = pytest.importorskip("cupy")
    function = random_function(7, 150)
    inputs = [x.astype(dtype) for x in random_inputs(function, 1000)]
    expected = Kernel(function, backend="numpy", dtype=dtype)(*inputs)
    kernel = Kernel(function, backend="cuda", dtype=dtype)
    for given in (inputs, [cupy.asarray(x) for x in inputs]):
        for found, wanted in zip(kernel(*given), expected, strict=True):
            np.testing.assert_allclose(found.get(), wanted, rtol=1e3 * RTOL[dtype], atol=1e2 * RTOL[dtype])


@device
@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_arrays_of_other_libraries(library):
    module = pytest.importorskip(library)
    x = ca.SX.sym("x", 3)
    kernel = Kernel(ca.Function("f", [x], [2 * x]), backend="cuda", dtype="float32")
    data = np.arange(12, dtype=np.float32).reshape(4, 3)
    given = module.asarray(data, device="cuda") if library == "torch" else module.asarray(data)
    np.testing.assert_array_equal(kernel(given).get(), 2 * data)
    if library == "torch":
        out = module.empty_like(given)
        kernel(given, out=out)
        np.testing.assert_array_equal(out.cpu().numpy(), 2 * data)

"""What a call accepts, what it refuses, and in which words."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest

from dalembert.errors import DalembertError, ShapeError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.status import Status

BACKENDS = ("numpy", "cpu", "c")


@pytest.fixture(params=BACKENDS)
def kernel(request):
    q, A = ca.SX.sym("q", 3), ca.SX.sym("A", 2, 3)
    function = ca.Function("f", [q, A], [ca.mtimes(A, q), ca.mtimes(A.T, A)], ["q", "A"], ["y", "S"])
    return Kernel(function, backend=request.param)


def test_shapes_in_and_out(kernel):
    q, A = np.ones(3), np.arange(6.0).reshape(2, 3)
    y, S = kernel(q, A)
    assert (y.shape, S.shape) == ((2,), (3, 3))
    np.testing.assert_array_equal(S, A.T @ A)
    y, S = kernel(np.ones((5, 3)), A)
    assert (y.shape, S.shape) == ((5, 2), (5, 3, 3))
    y, S = kernel([1, 2, 3], A.astype(np.int16))  # lists and whole numbers are converted
    np.testing.assert_array_equal(y, A @ [1, 2, 3])


def test_a_single_output_comes_bare_and_numbers_are_vectors_of_one():
    x = ca.SX.sym("x")
    double = Kernel(ca.Function("f", [x], [2 * x]))
    assert double(3.0).shape == (1,)
    assert double(np.array([[1.0], [2.0]])).tolist() == [[2.0], [4.0]]


def test_empty_batch_gives_empty(kernel):
    y, S = kernel(np.ones((0, 3)), np.ones((2, 3)))
    assert (y.shape, S.shape) == ((0, 2), (0, 3, 3))
    assert kernel.call(np.ones((0, 3)), np.ones((2, 3))).status.shape == (0,)


@pytest.mark.parametrize("backend", BACKENDS)
def test_zero_size_ports(backend):
    x, nothing = ca.SX.sym("x", 2), ca.SX.sym("nothing", 0)
    kernel = Kernel(ca.Function("f", [x, nothing], [x + 1, ca.SX(0, 1), ca.SX(0, 3)]), backend=backend)
    y, none, rows = kernel(np.ones((9, 2)), np.ones((9, 0)))
    assert (y.shape, none.shape, rows.shape) == ((9, 2), (9, 0), (9, 0, 3))
    assert kernel(np.ones(2), np.ones(0))[0].tolist() == [2.0, 2.0]
    assert Kernel(ca.Function("g", [], [ca.SX(3)]), backend=backend)().tolist() == [3.0]
    empty = Kernel(ca.Function("h", [x], []), backend=backend)
    assert empty(np.ones((3, 2))) == ()


@pytest.mark.parametrize(
    ("q", "A", "words"),
    [
        (np.ones(4), np.ones((2, 3)), r"'q'.*\(4,\); expected \(3,\) for one sample or \(\.\.\., 3\)"),
        (np.ones(3), np.ones((3, 2)), r"'A'.*\(3, 2\)"),
        (np.ones((2, 2, 4)), np.ones((2, 3)), r"'q'"),
        (np.ones((4, 3)), np.ones((5, 2, 3)), r"'A' of kernel 'f' has 5 samples, but 'q' has 4"),
        ([[1, 2], [3]], np.ones((2, 3)), r"'q' is not an array"),
    ],
)
def test_wrong_shapes_say_which(kernel, q, A, words):
    with pytest.raises(ShapeError, match=words):
        kernel(q, A)


def test_wrong_number_of_inputs(kernel):
    with pytest.raises(ShapeError, match=r"takes 2 inputs \(q \(3,\), A \(2, 3\)\); 1 were given"):
        kernel(np.ones(3))


@pytest.mark.parametrize("q", [np.ones(3, complex), np.array(["a", "b", "c"]), np.array([1, None, 2]), None])
def test_wrong_types(kernel, q):
    with pytest.raises(UnsupportedError, match=r"'q' has dtype .*real numbers"):
        kernel(q, np.ones((2, 3)))


def test_out_must_fit(kernel):
    q, A = np.ones(3), np.ones((2, 3))
    good = (np.empty(2), np.empty((3, 3)))
    assert kernel(q, A, out=good)[1] is good[1]
    locked = np.empty(2)
    locked.flags.writeable = False
    shared = np.empty(11)
    for bad, words in [
        ((np.empty(2),), "has 2 outputs; out= holds 1"),
        ((np.empty(3), good[1]), r"'y' .* must be float64 \(2,\), not float64 \(3,\)"),
        ((np.empty(2, np.float32), good[1]), "not float32"),
        (([0, 0], good[1]), "not list"),
        ((locked, good[1]), "read-only"),
        ((shared[:2], shared[1:10].reshape(3, 3)), "'S' overlaps"),
    ]:
        with pytest.raises(ShapeError, match=words):
            kernel(q, A, out=bad)


def test_wrong_options():
    x = ca.SX.sym("x")
    function = ca.Function("f", [x], [x])
    for options, words in [
        ({"backend": "fpga"}, "backend 'fpga' does not exist; there are 'cpu'"),
        ({"dtype": "float16"}, "dtype 'float16'"),
        ({"dtype": "real"}, "dtype 'real'"),
        ({"dtype": 3}, "dtype 3"),
        ({"threads": 0}, "threads=0"),
        ({"width": 3}, "width=3"),
    ]:
        with pytest.raises(UnsupportedError, match=words):
            Kernel(function, **options)
    with pytest.raises(UnsupportedError, match=r"casadi\.Function, not from str"):
        Kernel("x + 1")


def test_every_error_is_ours():
    assert issubclass(ShapeError, DalembertError)
    assert issubclass(UnsupportedError, DalembertError)


def test_short_way_and_long_way_agree():
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2, 2)
    kernel = Kernel(ca.Function("f", [x, y], [ca.mtimes(y, x), y + 1]))
    a, b = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    short = kernel.engine.short
    assert short is not None
    rng = np.random.default_rng(0)
    many = rng.normal(size=(9, 2)), rng.normal(size=(18, 2, 2))
    batches = [(many[0], many[1][::2]), (a, many[1].transpose(0, 2, 1)), (many[0][::-1], b), (many[0][:1], b)]
    for values in ((a, b), (a[::-1], b.T), (np.ones(4)[::2], b[::-1, ::-1]), *batches):
        quick, (slow, marks) = short(*values), kernel.engine.call(values, None, True)
        given, again = [np.full(x.shape, 7.0) for x in slow], [np.full(x.shape, 7.0) for x in slow]
        assert short(*values, *given) is None
        *third, status = short(*values, None)
        np.testing.assert_array_equal(status, marks)
        np.testing.assert_array_equal(short(*values, *again, None), marks)
        for one, two, three, four, other in zip(quick, given, third, again, slow, strict=True):
            for found in (one, two, three, four):
                np.testing.assert_array_equal(found, other)
    locked = np.ones(2)
    locked.flags.writeable = False
    for outputs in ((np.ones((1, 2)), b.copy()), (np.ones(2), np.ones((3, 2))), (locked, b.copy())):
        assert short(a, b, *outputs) is NotImplemented
    unaligned = np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(np.float64)
    for other in (
        (a,),
        (a, a),
        (a.tolist(), b),
        (a.astype(np.float32), b),
        (a.astype(">f8"), b),
        (unaligned, b),
        (many[0], many[1]),
        (many[0][:0], b),
        (np.ones((2, 1, 2)), b),
        (a, b, None, None),
        (None, None),
        (),
    ):
        assert short(*other) is NotImplemented


def test_definitions_of_short_calls_outlive_all_of_them():
    """CPython reads a built-in function's definition when it frees the function, which may be the last of a kernel."""
    x = ca.SX.sym("x")
    first, second = (Kernel(ca.Function("f", [x], [k * x])) for k in (2.0, 3.0))
    functions = [kernel.engine.short for kernel in (first, second)]
    places = [ctypes.c_void_p.from_address(id(function) + object.__basicsize__).value for function in functions]
    assert places[0] == places[1]
    before = ctypes.string_at(places[0], 32)
    del first, second, functions
    gc.collect()
    assert ctypes.string_at(places[0], 32) == before
    name = ctypes.c_char_p.from_address(places[0]).value
    assert name == b"short_call"


def test_the_short_way_leaves_shared_memory_to_the_long_way():
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2)
    kernel = Kernel(ca.Function("f", [x, y], [x + y, x - y]))
    memory = np.arange(40.0)
    rows = memory.reshape(20, 2)
    u, v, free = rows[0:4], rows[4:8], (rows[8:12], rows[12:16])
    short = kernel.engine.short
    assert short(u, v, *free) is None
    for outputs in (
        (rows[3:7], free[0]),  # the end of one input, the start of the other
        (free[0], rows[7:11]),
        (rows[8:12], rows[11:15]),  # each other
        (free[0], free[0]),
        (rows[8:16:2], free[1]),  # not contiguous
        (np.asfortranarray(free[0]), free[1]),
        (np.broadcast_to(rows[8], (4, 2)), free[1]),
    ):
        assert short(u, v, *outputs) is NotImplemented
    assert short(u[::-1], v, *free) is None
    assert short(rows[6:2:-1], v, rows[2:6], free[0]) is NotImplemented
    assert short(rows[6:2:-1], u, rows[7:11], free[1]) is None


def test_memory_that_is_used_twice_is_refused():
    x = ca.SX.sym("x", 2)
    kernel = Kernel(ca.Function("f", [x], [2 * x]))
    data = np.arange(6.0).reshape(3, 2)
    memory = np.zeros(8)
    strided = np.lib.stride_tricks.as_strided
    for out in (strided(memory, (3, 2), (0, 8)), strided(memory, (3, 2), (8, 8)), strided(memory, (3, 2), (16, 0))):
        with pytest.raises(ShapeError, match="memory twice"):
            kernel(data, out=out)
    for out in (strided(memory, (3, 2), (8, 32)), strided(memory[7:], (3, 2), (-16, -8)), np.zeros((3, 4))[:, ::2]):
        np.testing.assert_array_equal(kernel(data, out=out), 2 * data)


def test_what_is_no_array_is_refused_as_out(kernel):
    q, A = np.ones(3), np.ones((2, 3))
    for bad, words in ((5, "not int"), ("xy", "not str"), ([], "holds 0"), ([None, None], "not NoneType")):
        with pytest.raises(ShapeError, match=words):
            kernel(q, A, out=bad)
        with pytest.raises(ShapeError, match=words):
            kernel.call(q, A, out=bad)


def test_calls_with_a_status_fill_given_arrays(kernel):
    q, A = np.array([1.0, np.inf, 2.0]), np.ones((2, 3))
    fresh = kernel.call(q, A)
    given = tuple(np.empty_like(x) for x in fresh.outputs)
    again = kernel.call(q, A, out=list(given))
    assert all(a is b for a, b in zip(again.outputs, given, strict=True))
    for a, b in zip(fresh.outputs, again.outputs, strict=True):
        np.testing.assert_array_equal(a, b)
    assert fresh.status == again.status == Status.NONFINITE
    assert fresh.status.shape == ()
    outputs, status = fresh
    assert outputs is fresh.outputs
    assert status is fresh.status


def test_threads_share_a_kernel_whose_calls_release_the_lock():
    x = ca.SX.sym("x", 3)
    y = x
    for _ in range(30):
        y = ca.sin(y) + x * y
    kernel = Kernel(ca.Function("f", [x], [y]))
    rng = np.random.default_rng(3)
    data = [rng.normal(size=(60_000, 3)) for _ in range(6)]
    expected = [kernel(x) for x in data]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(3):
            for found, wanted in zip(pool.map(kernel, data), expected, strict=True):
                np.testing.assert_array_equal(found, wanted)
            for found, wanted in zip(pool.map(kernel.call, data), expected, strict=True):
                np.testing.assert_array_equal(found.outputs[0], wanted)
                assert (found.status == Status.FINITE).all()


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), "float32", "f4"])
def test_types_may_be_spelled_as_in_numpy(dtype):
    x = ca.SX.sym("x")
    kernel = Kernel(ca.Function("f", [x], [2 * x]), dtype=dtype)
    assert kernel.options.dtype == "float32"
    assert kernel(np.float32(2)).dtype == np.float32


def test_single_calls_leak_nothing():
    x = ca.SX.sym("x", 2)
    kernel = Kernel(ca.Function("f", [x], [x, 2 * x]))
    value, dtype = np.ones(2), np.dtype("float64")
    kernel(value)
    before = sys.getrefcount(value), sys.getrefcount(dtype)
    results = [kernel(value) for _ in range(50)]
    alive = [weakref.ref(array) for result in results for array in result]
    del results
    assert not any(reference() is not None for reference in alive)
    after = sys.getrefcount(value), sys.getrefcount(dtype)
    assert after == before


def test_report(kernel):
    kernel(np.ones((40, 3)), np.ones((2, 3)))
    report = kernel.report()
    assert report.samples == 40
    assert report.samples_per_second > 0
    assert sum(report.operations.values()) <= report.traced_operations
    assert "kernel 'f'" in str(report)
    assert repr(kernel) == f"Kernel(f: q[3], A[2, 3] -> y[2], S[3, 3], {kernel.backend})"
    if kernel.backend == "cpu":
        assert 0 < report.share_of_peak < 1
        assert report.code_bytes > 0


def test_importing_the_room_is_light():
    code = "import sys, dalembert.kernel; print([m for m in ('casadi', 'llvmlite', 'numba') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_too_many_inputs_are_refused_and_nothing_is_written():
    """An extra array must not be taken for an output."""
    x = ca.SX.sym("x", 2)
    kernel = Kernel(ca.Function("f", [x], [2 * x]))
    extra = np.zeros(2)
    with pytest.raises(ShapeError):
        kernel(np.ones(2), extra)
    assert not extra.any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_every_width_runs_on_odd_sizes(width, dtype):
    """Blocks of inputs, outputs and scratch follow each other, vectors narrower than a cache line among them."""
    x = ca.SX.sym("x", 1)
    f = ca.Function("f", [x], [ca.vertcat(ca.sin(x), ca.cos(x), x)])
    angles = np.linspace(-3, 3, 101).astype(dtype)[:, None]
    expected = np.concatenate([np.sin(angles), np.cos(angles), angles], axis=1)
    tolerance = 1e-6 if dtype == "float32" else 1e-15
    np.testing.assert_allclose(Kernel(f, dtype=dtype, width=width)(angles), expected, atol=tolerance)


def test_erfinv_near_one():
    """Against mpmath where the inverse error function is steep, both signs, in machine code and in C."""
    import mpmath

    x = ca.SX.sym("x")
    f = ca.Function("f", [x], [ca.erfinv(x)])
    near = 1.0 - np.array([2.0**-53, 1e-15, 1e-14, 1e-12, 1e-10, 1e-6, 1e-3, 0.1])
    values = np.concatenate([near, -near])[:, None]
    with mpmath.workdps(40):
        exact = np.array([[float(mpmath.erfinv(mpmath.mpf(float(value))))] for (value,) in values])
    for backend in ("cpu", "c"):
        np.testing.assert_allclose(Kernel(f, backend=backend)(values), exact, rtol=4 * np.finfo(float).eps)


def square() -> ca.Function:
    x = ca.SX.sym("x")
    return ca.Function("square", [x], [x**2], ["x"], ["y"])


MISUSE = {
    "key": lambda folder: Kernel.cached(3, square),
    "build": lambda folder: Kernel.cached(["square"], 3),
    "backend": lambda folder: Kernel(square(), backend=["cpu"]),
    "threads": lambda folder: Kernel(square(), threads=True),
    "input": lambda folder: Kernel(square()).jacobian(inputs=0),
    "masked": lambda folder: Kernel(square())(np.ma.masked_invalid([np.nan])),
    "a file": lambda folder: Kernel(square()).export_c(folder / "file"),
    "no folder": lambda folder: Kernel(square()).export_c(None),
    "not writable": lambda folder: Kernel(square()).export_c(folder / "file" / "below"),
}


@pytest.mark.parametrize("what", list(MISUSE))
def test_misuse_is_ours_to_name(tmp_path, what):
    (tmp_path / "file").write_text("")
    with pytest.raises(DalembertError):
        MISUSE[what](tmp_path)


def test_whole_numbers_of_numpy():
    kernel = Kernel(square(), threads=np.int64(2), width=np.int32(4))
    np.testing.assert_array_equal(kernel(np.arange(3.0)[:, None])[:, 0], [0, 1, 4])

"""Columns computed alike: the loop gives the bits of the straight line, at every width and on all backends."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace

import casadi as ca
import host_cuda
import numpy as np
import pytest
from programs import random_function, random_inputs

from dalembert.errors import ModelError
from dalembert.kernel import Kernel
from dalembert.kernel.llvm import compile as llvm_backend
from dalembert.kernel.llvm import engine as cpu_engine
from dalembert.kernel.program import chunks as chunk
from dalembert.kernel.program import lower as lowering
from dalembert.kernel.program.columns import NOWHERE, Alike, ColumnFunction, divide, from_text
from dalembert.kernel.program.program import Op, Port
from dalembert.kernel.program.trace import trace
from dalembert.status import Status

SIZE = 6


def solved(counts=(11,), size=SIZE, body=None, seed=0):
    """Return X = (L D L^T)^-1 B for one group of columns for each count, and the trace of L.

    Each group has right sides that end after its own number of entries, with zeros and ones among them; one result is
    an entry of the right side as it is, one a shared value, one a constant, and one goes nowhere.
    """
    rng = np.random.default_rng(seed)
    x, y = ca.SX.sym("x", size), ca.SX.sym("y", size)
    L = [[1.0 if i == j else ca.sin(x[i]) * 0.3 + 0.1 * y[j] for j in range(i + 1)] for i in range(size)]
    r = [1 / (1.5 + y[i] ** 2) for i in range(size)]
    inputs, names = [x, y], ["x", "y"]
    outputs = {"trace": ca.sum1(x) * ca.sum1(y), "loads": ca.vertcat(*r)}
    ports, groups = [Port("trace", 1, 1), Port("loads", size, 1)], []
    for g, count in enumerate(counts):
        entries = size - g
        b = ca.SX.sym("b", entries)
        value = [b[i] if i < entries else ca.SX(0.0) for i in range(size)]
        for i in range(size):
            value[i] = value[i] - sum((L[i][j] * value[j] for j in range(i)), ca.SX(0.0))
        value = [value[i] * r[i] for i in range(size)]
        for i in reversed(range(size)):
            value[i] = value[i] - sum((L[k][i] * value[k] for k in range(i + 1, size)), ca.SX(0.0))
        value = [*map(body or (lambda z: z), value), b[0], r[0], ca.SX(2.5), b[0] * 3]
        rights = rng.standard_normal((entries, count))
        rights[:, 0] = 0.0
        rights[-1, -1] = 1.0
        sides = ca.SX(rights) * (x[0] + y[1]) if count > 1 else ca.SX(rights) + y[2]
        inputs.append(b)
        names.append(f"right_{g}")
        outputs[f"rights_{g}"] = ca.densify(sides)
        outputs[f"results_{g}"] = ca.vertcat(*value)
        port, element = np.full((2, len(value), count), NOWHERE, np.int32)
        port[:-1] = len(ports)
        element[:-1] = np.arange(len(value) - 1)[:, None] * count + np.arange(count)
        ports.append(Port(f"X_{g}", len(value), count))
        groups.append(Alike(port, np.maximum(element, 0)))
    function = ca.Function("solved", inputs, list(outputs.values()), names, list(outputs))
    order = [*ports[:1], *ports[2:], ports[1]]  # columns between what is none
    place = {ports.index(port): k for k, port in enumerate(order)} | {NOWHERE: NOWHERE}
    groups = [replace(each, port=np.vectorize(place.get)(each.port).astype(np.int32)) for each in groups]
    return ColumnFunction(function, order, groups)


def numbers(samples, size=SIZE, dtype="float64", seed=1):
    return [x.astype(dtype) for x in np.random.default_rng(seed).standard_normal((2, samples, size))]


def straight(function, **options):
    """Return the kernel of the same operations with all columns written out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowering, "lower_columns", lowering.lower)
        patch.setenv("DALEMBERT_CACHE", "off")
        return Kernel(function, **options)


@pytest.fixture(autouse=True)
def looped(monkeypatch):
    """Loop over the columns of programs that are as short as these, too."""
    monkeypatch.setattr(cpu_engine, "WRITTEN_OUT_MOST", 0)


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_straight_line_is_the_solution():
    """The twin itself, against NumPy."""
    function = solved((11, 3))
    names = ("trace", "X_0", "X_1", "loads")
    assert tuple(function.unrolled.name_out()) == names
    (x,), (y,) = numbers(1)
    first = dict(zip(names, map(np.array, function.unrolled.call([x, y])), strict=True))
    L = np.eye(SIZE) + np.tril(0.3 * np.sin(x)[:, None] + 0.1 * y, -1)
    K = L @ np.diag(1.5 + y**2) @ L.T
    rng = np.random.default_rng(0)
    for g, count in enumerate((11, 3)):
        B = rng.standard_normal((SIZE - g, count))
        B[:, 0], B[-1, -1] = 0.0, 1.0
        B = np.vstack([B * (x[0] + y[1]), np.zeros((g, count))])
        X = first[f"X_{g}"]
        np.testing.assert_allclose(X[:SIZE], np.linalg.solve(K, B), rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(X[SIZE], B[0])
        np.testing.assert_allclose(X[SIZE + 1], np.full(count, 1 / (1.5 + y[0] ** 2)), rtol=1e-15)
        np.testing.assert_array_equal(X[SIZE + 2], np.full(count, 2.5))
        np.testing.assert_array_equal(X[SIZE + 3], np.zeros(count))  # what goes nowhere leaves zeros


COUNTS = [(1,), (2,), (3,), (7,), (8,), (9,), (16,), (17,), (11, 3), (8, 1, 5)]


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_give_the_bits_of_the_straight_line(counts, dtype):
    function = solved(counts)
    inputs = numbers(37, dtype=dtype)
    looped, whole = Kernel(function, dtype=dtype), straight(function, dtype=dtype)
    expected = whole(*inputs)
    assert_same(looped(*inputs), expected)
    for k in (0, 5, 36):  # code of its own, whose lanes are columns
        assert_same(looped(*[x[k] for x in inputs]), [y[k] for y in expected])
    more = Counter(looped.report().operations)
    more.subtract(whole.report().operations)
    assert +more == {"mul": sum(counts)}, "what goes nowhere, in every column"


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_widths(width):
    function, inputs = solved((11, 3)), numbers(35)
    assert_same(Kernel(function, width=width)(*inputs), straight(function)(*inputs))


@pytest.mark.parametrize("register", [16, 32, 64])
def test_registers_of_other_machines(register, monkeypatch):
    """SSE2 and AVX2: two and four lanes."""
    function, inputs = solved((11, 3)), numbers(35)
    expected = straight(function)(*inputs)
    machine = llvm_backend.host()
    if register > machine.register_bytes:
        pytest.skip("this machine's registers are smaller")
    monkeypatch.setattr(llvm_backend, "host", lambda: replace(machine, register_bytes=register))
    monkeypatch.setenv("DALEMBERT_CACHE", "off")
    kernel = Kernel(function)
    assert_same(kernel(*inputs), expected)
    assert_same(kernel(*[x[4] for x in inputs]), [y[4] for y in expected])


@pytest.mark.parametrize("size", [1, 5, 40])
def test_chunks(size, monkeypatch):
    function, inputs = solved((11, 3)), numbers(35)
    expected = straight(function)(*inputs)
    monkeypatch.setattr(chunk, "CHUNK_SIZE", size)
    monkeypatch.setenv("DALEMBERT_CACHE", "off")
    kernel = Kernel(function)
    assert_same(kernel(*inputs), expected)
    assert_same(kernel(*[x[4] for x in inputs]), [y[4] for y in expected])


@pytest.mark.parametrize("f", [ca.sin, ca.exp, lambda z: ca.atan2(z, 2.0)])
def test_elementary_functions_in_columns(f):
    """They are for vectors of one width, so columns are not put beside each other."""
    function, inputs = solved((11,), body=f), numbers(35)
    looped, expected = Kernel(function), straight(function)(*inputs)
    assert_same(looped(*inputs), expected)
    assert_same(looped(*[x[4] for x in inputs]), [y[4] for y in expected])


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tuning", [{}, {"part": 40}, {"part": 40, "recompute": 3}, {"scratch": 9000}])
def test_a_gpu_has_a_thread_for_each_column_of_a_sample(monkeypatch, dtype, tuning):
    """Its text, compiled for the host: outputs that columns do not fill are zero, a status is that of all columns."""
    host_cuda.in_place_of_a_device(monkeypatch, threads=8, **tuning)
    function, inputs = solved((11, 3)), numbers(29, dtype=dtype)
    inputs[0][5, 2] = np.nan
    kernel, twin = Kernel(function, backend="cuda", dtype=dtype), Kernel(function, backend="numpy", dtype=dtype)
    given = [np.full((29, *port.shape), 7, dtype).view(host_cuda.Array) for port in function.outputs]
    found, expected = kernel.call(*inputs, out=given), twin.call(*inputs)
    close = 1e-12 if dtype == "float64" else 1e-4
    for a, b in zip(found.outputs, expected.outputs, strict=True):
        np.testing.assert_allclose(a, b, rtol=close, atol=close)
    np.testing.assert_array_equal(found.status, expected.status)
    single = kernel.call(*[x[3] for x in inputs])
    assert_same(single.outputs, [x[3] for x in found.outputs])
    assert kernel.engine.source.columns[-2:] == (11, 3)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_backends_without_loops_write_columns_out(backend):
    function, inputs = solved((11, 3)), numbers(9)
    found = Kernel(function, backend=backend)(*inputs)
    for a, b in zip(found, Kernel(function)(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_short_programs_are_written_out_for_batches(monkeypatch):
    """Their single calls are not; both give the same bits."""
    monkeypatch.setenv("DALEMBERT_CACHE", "off")
    function, inputs = solved((11, 3)), numbers(35)
    looped = Kernel(function)
    monkeypatch.undo()
    monkeypatch.setenv("DALEMBERT_CACHE", "off")
    short = Kernel(function)
    assert short.engine.layout != looped.engine.layout
    assert_same(short(*inputs), looped(*inputs))
    assert_same(short(*[x[4] for x in inputs]), looped(*[x[4] for x in inputs]))


def test_many_threads_strided_inputs_and_given_outputs():
    function = solved((11, 3))
    x, y = numbers(700)
    expected = straight(function, threads=1)(x, y)
    assert_same(Kernel(function, threads=2)(x, y), expected)
    wide = np.zeros((700, 2 * SIZE))
    wide[:, ::2] = x
    out = [np.full_like(a, np.nan) for a in expected]
    Kernel(function)(wide[:, ::2], y, out=out)
    assert_same(out, expected)


def test_a_sample_that_is_not_finite_says_so_and_leaves_its_neighbours():
    function, (x, y) = solved((11, 3)), numbers(20)
    x[3, 2], y[11, 0] = np.nan, np.inf
    kernel = Kernel(function)
    whole, good = kernel.call(x, y), np.delete(np.arange(20), [3, 11])
    assert whole.status[3] == Status.NONFINITE
    assert (whole.status[good] == Status.FINITE).all()
    assert kernel.call(x[3], y[3]).status == Status.NONFINITE
    assert_same([a[good] for a in whole.outputs], straight(function)(x[good], y[good]))


def test_a_column_whose_right_side_is_not_finite_is_a_status():
    """The status is made from what the head computes: a division by zero in one column's right side is among it."""
    x, b = ca.SX.sym("x", 3), ca.SX.sym("b")
    rights = ca.horzcat(1.0, 1 / x[1], 2.0)
    port, element = np.zeros((1, 3), np.int32), np.arange(3, dtype=np.int32)[None]
    made = ca.Function("f", [x, b], [rights, b * x[0]], ["x", "right_0"], ["rights_0", "results_0"])
    kernel = Kernel(ColumnFunction(made, [Port("X", 1, 3)], [Alike(port, element)]))
    good, bad = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 3.0])
    assert kernel.call(np.array([good, bad])).status.tolist() == [Status.FINITE, Status.NONFINITE]
    assert kernel.call(bad).status == Status.NONFINITE


def test_text_and_cache(monkeypatch, private_folder):
    function, inputs = solved((11, 3)), numbers(5)
    again = from_text(function.serialize())
    assert again.serialize() == function.serialize()
    expected = Kernel(function)(*inputs)
    kernel = Kernel(again)
    assert kernel.report().from_cache
    assert_same(kernel(*inputs), expected)
    other = replace(function.groups[0], element=function.groups[0].element[:, ::-1].copy())
    moved = Kernel(ColumnFunction(function.function, function.outputs, [other, function.groups[1]]))
    assert not moved.report().from_cache, "where results go is part of the content"
    np.testing.assert_array_equal(moved(*inputs)[1][:, :-1], expected[1][:, :-1, ::-1])


def test_numbers_in_the_place_of_an_input():
    function, (x, y) = solved((11, 3)), numbers(5)
    fixed = function.at("y", y[2])
    assert [port.name for port in fixed.inputs] == ["x"]
    found, expected = Kernel(fixed)(x), Kernel(function)(x, np.tile(y[2], (5, 1)))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.broadcast_to(a, b.shape), b, rtol=1e-13, atol=1e-14)


def test_what_columns_share_is_computed_once():
    function = solved((50,))
    divided = divide(function, trace(function.function))
    (body,) = divided.bodies
    assert Op.SIN not in body.program.op
    assert divided.operations == divided.head.operations + 50 * body.program.operations


def test_operations_on_two_groups_are_refused():
    x, b, c = ca.SX.sym("x", 2), ca.SX.sym("b"), ca.SX.sym("c")
    made = ca.Function("f", [x, b, c], [x, b * c, x, c], ["x", "b", "c"], ["r0", "x0", "r1", "x1"])
    alike = Alike(np.zeros((1, 2), np.int32), np.arange(2, dtype=np.int32)[None])
    with pytest.raises(ModelError, match="two groups of columns"):
        Kernel(ColumnFunction(made, [Port("X", 1, 2)], [alike, alike]))


@pytest.mark.parametrize("seed", range(6))
def test_random_bodies(seed):
    """Any operations in head and body; the right side is the second input of a random program."""
    program = random_function(seed, 120)
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", program.size1_in(0))
    b = ca.SX.sym("b", program.size1_in(1))
    count = int(rng.integers(2, 12))
    results = ca.vertcat(*(ca.vec(ca.densify(y)) for y in program.call([x, b])))
    rights = ca.SX(rng.standard_normal((b.numel(), count))) * ca.cos(x[0])
    port = np.zeros((results.numel(), count), np.int32)
    element = np.arange(results.numel(), dtype=np.int32)[:, None] * count + np.arange(count, dtype=np.int32)
    made = ca.Function("f", [x, b], [ca.densify(rights), results], ["x", "right_0"], ["rights_0", "results_0"])
    function = ColumnFunction(made, [Port("X", results.numel(), count)], [Alike(port, element)])
    (inputs,) = random_inputs(ca.Function("g", [x], [x]), 21, seed)
    looped, expected = Kernel(function), straight(function)(inputs)
    np.testing.assert_array_equal(looped(inputs), expected)
    np.testing.assert_array_equal(looped(inputs[7]), expected[7])
    np.testing.assert_allclose(Kernel(function, backend="numpy")(inputs), expected, rtol=1e-9, atol=1e-11)

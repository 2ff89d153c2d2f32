"""The C backend: clean C99, the numbers of the NumPy twin, names from the model, an example that runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from every_operation import arguments, every_operation
from programs import random_function, random_inputs

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.kernel.c import engine as c_engine
from dalembert.kernel.c.printer import identifier, identifiers, print_c
from dalembert.kernel.numpy_twin import evaluate
from dalembert.kernel.program.lower import lower
from dalembert.status import Status

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import sample_programs as robots

STRICT = ["-Wall", "-Wextra", "-Werror", "-std=c99", "-pedantic"]
# Elementary functions of two libraries: each within some units in the last place.
RTOL = {"float64": 4e-15, "float32": 2e-6}
DTYPES = ("float64", "float32")

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def strict(*paths: Path, flags: tuple[str, ...] = ("-O1", "-c")) -> None:
    """Compile with every warning an error."""
    output = paths[0].with_suffix(".o")
    subprocess.run(["gcc", *STRICT, *flags, *map(str, paths), "-o", str(output), "-lm"], check=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_agrees_with_the_twin(dtype, tmp_path):
    function, inputs = every_operation(), [x.astype(dtype) for x in arguments()]
    kernel = Kernel(function, backend="c", dtype=dtype)
    found, expected = kernel(*inputs), Kernel(function, backend="numpy", dtype=dtype)(*inputs)
    np.testing.assert_allclose(found, expected, rtol=RTOL[dtype], atol=RTOL[dtype])
    strict(kernel.export_c(tmp_path).source)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("robot", robots.FUNCTIONS)
def test_robots_agree_with_the_twin(robot, dtype):
    function = robots.FUNCTIONS[robot]()
    kernel = Kernel(function, backend="c", dtype=dtype)
    inputs = [x.astype(dtype) for x in random_inputs(function, 50)]
    expected = evaluate(lower(function).program, inputs)[0]
    error = np.linalg.norm(kernel(*inputs) - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert error.max() < {"float64": 1e-13, "float32": 1e-4}[dtype]


@pytest.mark.parametrize("size", [10, 60])
def test_results_do_not_depend_on_chunks(size, monkeypatch, tmp_path):
    function = random_function(5, 150)
    inputs = random_inputs(function, 20)
    expected = Kernel(function, backend="c")(*inputs)
    monkeypatch.setenv("DALEMBERT_CACHE", "off")
    monkeypatch.setattr(c_engine, "print_c", lambda *arguments: print_c(*arguments, size))
    kernel = Kernel(function, backend="c")
    assert kernel.report().chunks > 1
    for found, wanted in zip(kernel(*inputs), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    text = print_c(lower(function), "float64", "f", size)
    (tmp_path / "f.c").write_text(text.source)
    (tmp_path / "f.h").write_text(text.header)
    strict(tmp_path / "f.c")


def test_long_programs_compile_clean(tmp_path):
    export = Kernel(robots.synthetic(100_000), backend="numpy").export_c(tmp_path)
    strict(export.source, flags=("-O0", "-c"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_example_prints_the_right_numbers(dtype, tmp_path):
    x, A = ca.SX.sym("x", 3), ca.SX.sym("A", 3, 2)
    function = ca.Function("model", [x, A], [ca.mtimes(A.T, ca.sin(x)), ca.diag(x)], ["x", "A"], ["y", "D"])
    kernel = Kernel(function, backend="numpy", dtype=dtype)
    export = kernel.export_c(tmp_path / "new", name="my_model")
    strict(export.source, export.example, flags=("-O2",))
    lines = subprocess.check_output([export.source.with_suffix(".o")], text=True).splitlines()
    y, D = kernel(np.arange(1, 4) / 8, np.arange(1, 7).reshape(3, 2) / 8)
    assert [line.split(" = ")[0] for line in lines] == [f"y[{k}]" for k in range(2)] + [f"D[{k}]" for k in range(9)]
    printed = np.array([float(line.split(" = ")[1]) for line in lines])
    np.testing.assert_allclose(printed, np.concatenate([y, D.ravel()]), rtol=RTOL[dtype])
    header = export.header.read_text()
    assert "A  3 x 2" in header
    assert "Cost: " in header
    assert f"int my_model(const {'double' if dtype == 'float64' else 'float'} *x" in header


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_builds_the_example(tmp_path):
    x = ca.SX.sym("x", 2)
    export = Kernel(ca.Function("f", [x], [ca.exp(x)], ["x"], ["y"]), backend="numpy").export_c(tmp_path)
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", tmp_path, "-B", build], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    lines = subprocess.check_output([build / f"{export.name}_example"], text=True).splitlines()
    assert [float(line.split(" = ")[1]) for line in lines] == pytest.approx([np.exp(1 / 8), np.exp(2 / 8)], rel=1e-15)


@pytest.mark.parametrize(
    "compiler", [["gcc", *STRICT], ["g++", "-Wall", "-Wextra", "-Werror", "-pedantic", "-x", "c++"]]
)
def test_header_stands_alone_in_c_and_cplusplus(compiler, tmp_path):
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"needs {compiler[0]}")
    header = Kernel(random_function(2), backend="numpy").export_c(tmp_path).header
    user = tmp_path / "user.c"
    user.write_text(f'#include "{header.name}"\n#include "{header.name}"\n')
    subprocess.run([*compiler, "-c", str(user), "-o", str(tmp_path / "user.o")], check=True)


AWKWARD = ["sin", "double", "t3", "scratch", "q_step", "q", "samples", "new", "k", "i", "y0f"]


def test_awkward_names_compile_and_stay_recognisable(tmp_path):
    symbols = [ca.SX.sym(name) for name in AWKWARD]
    results = [ca.sin(symbols[0]) + ca.fmod(symbols[1], symbols[2]), *symbols[3:]]
    outputs = ["status", "element", "bad", "state", "pow", "sample", "r7", "exp", "y"]
    function = ca.Function("main", symbols, results, AWKWARD, outputs)
    export = Kernel(function, backend="numpy").export_c(tmp_path)
    assert export.name == "main_"
    strict(export.source)
    strict(export.source, export.example, flags=("-O0",))
    header = export.header.read_text()
    assert "const double *sin_," in header
    assert "const double *k," in header
    assert "'sin' in the model" in header


def test_identifiers():
    assert [identifier(x) for x in ("q", "left foot", "2x", "", "_a", "für")] == [
        "q",
        "left_foot",
        "x2x",
        "value",
        "a",
        "f_r",
    ]
    assert identifiers(["a b", "a_b", "a.b", "a_b_2"]) == ["a_b", "a_b_2", "a_b_3", "a_b_2_2"]


def test_a_bad_name_is_refused(tmp_path):
    kernel = Kernel(random_function(2), backend="numpy")
    for name in ("two words", "int", "3d"):
        with pytest.raises(ModelError, match="cannot name a C function"):
            kernel.export_c(tmp_path, name=name)


def test_empty_ports_compile_clean(tmp_path):
    x, nothing = ca.SX.sym("x", 2), ca.SX.sym("nothing", 0)
    cases = {
        "ports": ca.Function("ports", [x, nothing], [x + 1, ca.SX(0, 1), ca.SX(2, 2), ca.SX(7)]),
        "source": ca.Function("source", [], [ca.SX(3)]),
        "sink": ca.Function("sink", [x], []),
        "limits": ca.Function("limits", [x], [ca.fmin(x, np.inf), ca.fmax(x, -np.inf), ca.SX(np.nan), ca.SX(1e300)]),
    }
    for dtype in DTYPES:
        for name, function in cases.items():
            export = Kernel(function, backend="numpy", dtype=dtype).export_c(tmp_path / dtype / name)
            strict(export.source, export.example, flags=("-O0",))


@pytest.mark.parametrize("threads", [1, 3])
def test_batches(threads):
    function = random_function(11, 100)
    inputs = random_inputs(function, 333)
    kernel = Kernel(function, backend="c", threads=threads)
    expected = Kernel(function, backend="numpy")(*inputs)
    for found, wanted in zip(kernel(*inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
    for found, wanted in zip(kernel(inputs[0], inputs[1][0]), kernel(inputs[0], inputs[1][[0] * 333]), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_second_kernel_comes_from_the_cache():
    function = random_function(21, 30)
    inputs = random_inputs(function, 3)
    first, second = Kernel(function, backend="c"), Kernel(function, backend="c")
    assert not first.report().from_cache
    assert second.report().from_cache
    for found, wanted in zip(second(*inputs), first(*inputs), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_status():
    x = ca.SX.sym("x")
    kernel = Kernel(ca.Function("f", [x], [ca.log(x), 1 / (x - 2)]), backend="c")
    status = kernel.call(np.array([[1.0], [-1.0], [2.0], [3.0]])).status
    assert np.flatnonzero(status == Status.NONFINITE).tolist() == [1, 2]


def test_no_compiler_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(UnsupportedError, match=r"needs a C compiler.*install gcc or clang"):
        Kernel(random_function(1), backend="c")


def test_a_compiler_that_does_not_exist_is_named(monkeypatch):
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with pytest.raises(UnsupportedError, match="CC names the C compiler '/nonexistent/cc'"):
        c_engine.find_compiler()

"""The second start: images that run anywhere, kernels by name, kernels that travel to other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest
from every_operation import arguments, every_operation

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel import Kernel, cache
from dalembert.kernel import cache as processor
from dalembert.kernel.llvm import code_in_memory as image
from dalembert.kernel.llvm import code_in_memory as machine
from dalembert.kernel.llvm.compile import binding, compile_text, host

ON_LINUX = sys.platform == "linux" and host().triple.startswith("x86_64")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("DALEMBERT_CACHE", str(path))
    return path


def build(factor=3.0):
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 3, 2)
    return ca.Function("f", [x, y], [ca.sin(x) * factor, ca.mtimes(y, x)], ["x", "y"], ["s", "yx"])


def data(n=9):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 2)), rng.normal(size=(n, 3, 2))


BY_NAME = """
import sys, numpy as np
from dalembert import Kernel
def build():
    raise AssertionError("built although cached")
kernel = Kernel.cached(["a test", "f"], build)
x = np.linspace(-1, 1, 18).reshape(9, 2)
s, yx = kernel(x, np.linspace(0, 2, 54).reshape(9, 3, 2))
print(s.sum().hex(), yx.sum().hex(), [m for m in ("casadi", "llvmlite", "numba", "scipy") if m in sys.modules])
"""


@pytest.mark.skipif(not ON_LINUX, reason="images are made on Linux, x86-64")
def test_a_kernel_by_name_starts_without_casadi_and_llvm(folder):
    kernel = Kernel.cached(["a test", "f"], build)
    x = np.linspace(-1, 1, 18).reshape(9, 2)
    s, yx = kernel(x, np.linspace(0, 2, 54).reshape(9, 3, 2))
    for _ in range(2):  # the first may have to compile the code of short calls
        answer = subprocess.check_output([sys.executable, "-c", BY_NAME], text=True)
    assert answer.split(maxsplit=2) == [s.sum().hex(), yx.sum().hex(), "[]\n"]


def test_a_kernel_by_name_is_the_kernel_of_its_function(folder):
    calls = []

    def count():
        calls.append(1)
        return build()

    first = Kernel.cached(["g"], count)
    assert calls == [1]
    second = Kernel.cached(["g"], count)
    assert calls == [1]
    assert second.report().from_cache
    assert (second.name, second.inputs, second.outputs) == (first.name, first.inputs, first.outputs)
    whole = Kernel(build())
    for a, b, c in zip(first(*data()), second(*data()), whole(*data()), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(second.jacobian(["x"], ["yx"])(*data()), data()[1])
    assert calls == [1, 1]  # the function was needed, and built once


def test_what_names_a_kernel_changes_its_entry(folder, monkeypatch):
    Kernel.cached(["g", "h"], build)
    assert Kernel.cached(["g", "h"], build).report().from_cache
    assert not Kernel.cached(["gh"], build).report().from_cache
    assert not Kernel.cached(["h", "g"], build).report().from_cache
    assert not Kernel.cached(["g", "h"], build, dtype="float32").report().from_cache
    assert not Kernel.cached(["g", "h"], build, width=1).report().from_cache
    assert not Kernel(build()).report().from_cache
    monkeypatch.setattr(cache, "package_stamp", lambda: "another state of the package")
    assert not Kernel.cached(["g", "h"], build).report().from_cache


def test_a_kernel_by_name_on_every_backend_that_is_here(folder):
    expected = Kernel(build())(*data())
    for backend in ("numpy", "cpu"):
        for a, b in zip(Kernel.cached(["g"], build, backend=backend)(*data()), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("key", ["text", [], [1, 2], ("a", None)])
def test_a_key_that_is_no_list_of_strings_is_refused(key):
    with pytest.raises(ModelError, match="list of strings"):
        Kernel.cached(key, build)


def test_a_build_that_returns_no_function_is_refused(folder):
    with pytest.raises(UnsupportedError, match="from a casadi"):
        Kernel.cached(["g"], lambda: 3)


def test_a_function_that_does_not_fit_its_entry_is_refused(folder):
    Kernel.cached(["g"], build)
    x = ca.SX.sym("x", 5)
    stale = Kernel.cached(["g"], lambda: ca.Function("f", [x], [x]))
    with pytest.raises(ModelError, match="key must change"):
        stale.jacobian()


def test_without_a_cache_a_kernel_by_name_is_built(monkeypatch):
    monkeypatch.setenv("DALEMBERT_CACHE", "off")
    kernel = Kernel.cached(["g"], build)
    assert not kernel.report().from_cache
    assert not Kernel.cached(["g"], build).report().from_cache
    np.testing.assert_array_equal(kernel(*data())[0], Kernel(build())(*data())[0])


@pytest.mark.parametrize("make", [lambda: Kernel(build(), threads=2), lambda: Kernel.cached(["g"], build, width=2)])
@pytest.mark.parametrize("off", [False, True])
def test_kernels_can_be_pickled(folder, make, off, monkeypatch):
    if off:
        monkeypatch.setenv("DALEMBERT_CACHE", "off")
    kernel = make()
    twin = pickle.loads(pickle.dumps(kernel))
    assert twin.options == kernel.options
    assert twin.report().from_cache is not off
    for a, b in zip(kernel(*data()), twin(*data()), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(twin.jacobian(["x"], ["yx"])(*data()), data()[1])


# --- images ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not ON_LINUX, reason="images are made on Linux, x86-64")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_operation_runs_the_same_from_an_image_and_by_llvms_linker(folder, monkeypatch, dtype):
    function = every_operation()
    inputs = [x.astype(dtype) for x in arguments()]
    by_image = Kernel(function, dtype=dtype)
    assert by_image.engine.machine._memory.__class__.__name__ == "mmap"
    monkeypatch.setattr(machine, "link", lambda code: None)
    cache.clear_cache()
    by_llvm = Kernel(function, dtype=dtype)
    assert by_llvm.engine.machine._memory.__class__.__name__ == "tuple"
    again = Kernel(function, dtype=dtype)
    assert again.report().from_cache
    for a, b, c in zip(*(_all(k(*inputs)) for k in (by_image, by_llvm, again)), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def _all(result):
    return result if isinstance(result, tuple) else (result,)


def _object(text):
    module = binding().parse_assembly(text)
    module.triple = host().triple
    return host().machine().emit_object(module)


NOTHING = "define void @run(ptr %a, i64 %b, i64 %c, ptr %d) {\n  ret void\n}\n"


@pytest.mark.skipif(not ON_LINUX, reason="images are made on Linux, x86-64")
@pytest.mark.parametrize(
    "text",
    [
        "@x = global i64 3\n" + NOTHING,
        "@x = thread_local global i64 3\n" + NOTHING,
        "define void @other() {\n  ret void\n}\n",
    ],
)
def test_what_an_image_cannot_hold_is_left_to_llvm(text):
    assert image.link(_object(text)) is None


@pytest.mark.parametrize("code", [b"", b"MZ no object", b"\x7fELF\x02\x01" + bytes(58)])
def test_what_is_no_object_gives_no_image(code):
    assert image.link(code) is None


@pytest.mark.skipif(not ON_LINUX, reason="images are made on Linux, x86-64")
def test_a_truncated_object_gives_no_image():
    code = _object(NOTHING)
    assert image.link(code) is not None
    assert all(image.link(code[:n]) is None for n in (64, len(code) // 2, len(code) - 200))


def test_an_unknown_c_function_is_named():
    with pytest.raises(UnsupportedError, match="no_such_function"):
        machine.c_function("no_such_function")


@pytest.mark.skipif(not ON_LINUX, reason="reads Linux's description of the processor")
def test_the_processor_is_told_without_llvm(tmp_path, monkeypatch):
    assert any(line.startswith("flags") for line in processor.fingerprint())
    monkeypatch.setattr(processor, "CPUINFO", str(tmp_path / "missing"))
    assert processor.fingerprint.__wrapped__() == (host().triple, host().cpu, host().features)
    (tmp_path / "missing").write_text("processor : 0\nbogomips : 3\n\n")
    assert processor.fingerprint.__wrapped__() == (host().triple, host().cpu, host().features)


def test_the_version_of_a_package_is_found_without_importing_it():
    from importlib.metadata import version

    for package in ("casadi", "llvmlite", "numpy"):
        assert cache.installed_version(package) == version(package)


@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs is asked elsewhere")
@pytest.mark.parametrize("setting", [None, "", "/some/where"])
def test_the_users_folder_is_what_platformdirs_says(monkeypatch, setting):
    import platformdirs

    monkeypatch.delenv("DALEMBERT_CACHE")
    if setting is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", setting)
    assert str(cache.cache_folder()) == platformdirs.user_cache_dir("dalembert", appauthor=False) + "/kernels"


def test_compile_text_is_what_machines_take():
    code = compile_text(NOTHING)
    assert machine.Code.stored(code.header(), code.data) == code
    held = machine.Machine(code)
    held.run(0, 0, 0, 0)

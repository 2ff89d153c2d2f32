"""Compiled loops: their decorators, their cache on disk, and kernels called by address."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.caching import FunctionCache, NullCache
from numba.core.serialize import dumps
from numba.extending import intrinsic, overload

from dalembert.kernel.cache import ALIGNMENT, warn_once
from dalembert.kernel.private_files import read_private, write_private

if TYPE_CHECKING:
    from dalembert.kernel.kernel import Kernel

# ----------------------------------------------------------------------------------------------------------------------
# The decorator of all compiled loops: Numba, with a cache on disk that never stands in the way.
#
# Numba keeps machine code beside the source (`__pycache__`), in `NUMBA_CACHE_DIR` or in the user's cache folder. By
# itself it raises at every start what a damaged file, a full disk or a folder without rights brings up, unpickles what
# anybody has put there, and takes code for fresh though another file changed that the function is made of. Here
#
# - a file that is damaged, a link, or of another user (`private_files.py`) counts as none: the loop is compiled again;
# - a cache that cannot be written is warned of once, and the loops run without it;
# - code is fresh if nothing changed of which it is made: the loops it calls, the constants it uses, and their files.
#
# The machine code is that of `numba.njit` with the same options.


PACKAGE = "dalembert"
INDEX, CODE = b"dalembert loops 1, index\n", b"dalembert loops 1, code\n"
"""How the files of the cache begin."""

CONSTANTS = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None))
"""Types of globals whose values become part of the code."""


def loop(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function when it is first called, by `numba.njit(cache=True, **options)`."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**options)(function)
        if hasattr(dispatcher, "_cache"):  # with NUMBA_DISABLE_JIT it is the function itself
            dispatcher._cache = _cache_of(function)
        return dispatcher

    return decorate


def _cache_of(function: Callable[..., Any]) -> Any:
    """Return the cache of a function; one that keeps nothing where no folder can be written."""
    try:
        return LoopCache(function)
    except (OSError, RuntimeError) as error:
        warn_once(f"cache of compiled loops: {error}; they are compiled at every start")
        return NullCache()


class LoopCache(FunctionCache):
    """The cache of one function: one index, and one file for each list of types that it was called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._function: Any = function
        self._file_of_index: str = self._cache_file._index_path
        self._owners = _owners(function)
        self._made: bytes | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for some types, or None where the cache has none that may be run."""
        target_context.refresh()
        if not self._enabled:
            return None
        try:
            key = self._index_key(sig, target_context.codegen())
            name = self._index().get(key)
            body = None if name is None else read_private(os.path.join(self.cache_path, name), CODE, self._owners)
            if body is None:
                return None
            stored, data = pickle.loads(body)
            return self._impl.rebuild(target_context, data) if stored == key else None
        except Exception:  # whatever an old or foreign file leads to: the loop is compiled again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store code; a cache that cannot be written is not tried again."""
        if not self._enabled:
            return
        try:
            if self._impl.check_cachable(data):
                self._save(self._index_key(sig, data.codegen), self._impl.reduce(data))
        except (OSError, pickle.PicklingError, TypeError) as error:
            self.disable()
            warn_once(f"cache of compiled loops {self.cache_path} cannot be written: {error}")

    def flush(self) -> None:
        """Forget all code."""
        self._write_index({})

    def _save(self, key: Any, data: Any) -> None:
        self._impl.locator.ensure_cache_path()
        index = self._index()
        names = set(index.values())
        numbers = (self._cache_file._data_name(k) for k in range(1, len(names) + 2))
        name = index.get(key) or next(each for each in numbers if each not in names)
        write_private(os.path.join(self.cache_path, name), CODE, dumps((key, data)))
        if key not in index:
            self._write_index(index | {key: name})

    def _index(self) -> dict[Any, str]:
        """Return the files by what they hold; none where the code is made of something that has changed."""
        body = read_private(self._file_of_index, INDEX, self._owners)
        if body is None:
            return {}
        stamp, rest = body[:32], body[32:]
        return pickle.loads(rest) if stamp == self._stamp() else {}

    def _write_index(self, index: dict[Any, str]) -> None:
        write_private(self._file_of_index, INDEX, self._stamp() + dumps(index))

    def _stamp(self) -> bytes:
        """Return a hash of Numba's version and of everything that the code is made of."""
        if self._made is None:  # not before the first call: what a loop calls may be written below it
            self._made = hashlib.sha256(f"numba {numba.__version__}\n".encode() + made_of(self._function)).digest()
        return self._made


def _owners(function: Any) -> frozenset[int]:
    """Return whose files are trusted besides one's own: who owns the source can change what is run anyway."""
    try:
        return frozenset({os.stat(function.__code__.co_filename).st_uid})
    except OSError:
        return frozenset()


def made_of(function: Any) -> bytes:
    """Return a hash of a function's file, of those of all that it calls in this package, and of its constants."""
    files: set[str] = set()
    constants: set[str] = set()
    seen: set[int] = set()
    pending = [function]
    while pending:
        here = pending.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        files.add(here.__code__.co_filename)
        for name, value in _globals_of(here):
            plain = getattr(value, "py_func", value)
            if isinstance(plain, FunctionType) and str(plain.__module__).startswith(PACKAGE):
                pending.append(plain)
            elif isinstance(value, CONSTANTS):
                constants.add(f"{here.__module__}.{name} = {value!r}")
            elif isinstance(value, np.ndarray):
                constants.add(f"{here.__module__}.{name} = {value.dtype} {value.shape} {value.tobytes().hex()}")
            elif str(getattr(value, "__module__", "")).startswith(PACKAGE):  # an intrinsic, a class
                files.add(_file_of(value.__module__))
    digest = hashlib.sha256("\n".join(sorted(constants)).encode())
    for path in sorted(files):
        digest.update(_content(path))
    return digest.digest()


def _globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function's code names, and what it names in modules of this package."""
    names = set(_names(function.__code__))
    for name in sorted(names):
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType) and value.__name__.startswith(PACKAGE):
            yield from ((f"{name}.{each}", vars(value)[each]) for each in sorted(names & vars(value).keys()))
        elif value is not None:
            yield name, value
    for cell in function.__closure__ or ():
        yield "closure", cell.cell_contents


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _file_of(module: str) -> str:
    import sys

    return getattr(sys.modules.get(module), "__file__", None) or ""


@cache
def _content(path: str) -> bytes:
    """Return a hash of a file's content; of nothing where there is none."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).digest()
    except OSError:
        return b""


# ----------------------------------------------------------------------------------------------------------------------
# The policies: every compiled loop of the library has one of these decorators.


compiled = loop(nogil=True, error_model="numpy")
"""The usual way: without the interpreter lock, divisions as in NumPy."""

steady = loop(nogil=True, error_model="numpy", _nrt=False)
"""For loops that allocate nothing: references to arrays are not counted, which took as long as all kernels."""

inner = loop(nogil=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""As `steady`, for loops that only other loops call: no code is made by which Python could call them."""

inlined = loop(nogil=True, error_model="numpy", inline="always")
"""For functions with one call site: passing dozens of arrays costs as much as a Newton step."""

fused = loop(nogil=True, error_model="numpy", fastmath={"contract"})
"""As `compiled`; a product and a sum may be rounded once (fma), and nothing else is changed."""

fused_allocating = loop(nogil=True, error_model="numpy", fastmath={"contract"}, _nrt=True)
"""As `fused`, for loops that make arrays, also where one that makes none (`fused_steady`) calls them."""

fused_steady = loop(nogil=True, error_model="numpy", fastmath={"contract"}, _nrt=False)
"""As `fused`, for loops that make no arrays: Numba then counts no references to those it is given. Where helpers with
branches are inlined, or rows of arrays are named, it would do so at every body, by calls that no register survives.
What such a loop calls inherits this unless it says otherwise, as `fused_allocating` does."""

reordered = loop(nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
"""As `fused`, and sums are added in any order, so that they fill vector registers. The last digits depend on it: for
iterations whose answer is measured elsewhere."""

reordered_steady = loop(nogil=True, error_model="numpy", fastmath={"reassoc"}, _nrt=False)
"""Sums in any order, without fma, in loops that make no arrays."""

once = loop()
"""For loops that run while a system is prepared: Numba's own options."""

pasted = numba.njit(inline="always")
"""For helpers of a few lines: Numba writes them into the loops that call them, whose options they get. They are never
compiled for themselves, so nothing of theirs is kept on disk."""


# ----------------------------------------------------------------------------------------------------------------------
# A compiled kernel called from a compiled loop, by its address.
#
# A `Kernel`'s code is `run(table, first, stop, scratch)` (see `kernel/llvm/driver.py`): the table holds addresses and
# strides of the arrays it reads and writes. A Python function behind a ctypes callback of the same signature can stand
# in its place (inputs and events given as callables): it takes the interpreter lock by itself, so the loop may run
# without.


SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
"""C signature of a kernel's `run`."""


def bind(kernel: Kernel, arrays: Mapping[str, np.ndarray]) -> tuple[list[int], Any]:
    """Return address, table and scratch of a kernel that reads and writes the arrays of its ports' names."""
    engine = kernel.engine
    words: list[int] = []
    for port in (*kernel.inputs, *kernel.outputs):
        words += [_address(arrays[port.name]), 0, 0, arrays[port.name].itemsize]
    table = np.array([*words, 0], np.int64)
    scratch = np.zeros(engine.layout.scratch_bytes + ALIGNMENT, np.uint8)  # type: ignore[attr-defined]
    start = _address(scratch) + -_address(scratch) % ALIGNMENT
    return [engine.machine.address, _address(table), start], (table, scratch)  # type: ignore[attr-defined]


def _address(array: np.ndarray) -> int:
    """Return where an array lies; several times faster than `array.ctypes.data`."""
    return array.__array_interface__["data"][0]


def invoke(address, table, scratch):
    """Run one sample of the code at `address`; plain twin of the compiled call."""
    SIGNATURE(int(address))(int(table), 0, 1, int(scratch))


@intrinsic
def _jump(typing_context, address, table, scratch):
    signature = types.void(types.int64, types.int64, types.int64)

    def generate(context, builder, signature, arguments):
        word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        code = ir.FunctionType(ir.VoidType(), [pointer, word, word, pointer]).as_pointer()
        address, table, scratch = arguments
        function = builder.inttoptr(address, code)
        where = [builder.inttoptr(x, pointer) for x in (table, scratch)]
        builder.call(function, [where[0], word(0), word(1), where[1]])
        return context.get_dummy_value()

    return signature, generate


@overload(invoke)
def _invoke_compiled(address, table, scratch):
    def run(address, table, scratch):
        _jump(address, table, scratch)  # type: ignore[call-arg]

    return run

"""The cache of compiled loops: code that came with the library, and code compiled on this machine.

A loop's code is looked for in two folders before it is compiled:

1. **shipped**: `_loops/` in the package, only read. A wheel for one platform carries it, compiled for a level of
   processors (`LEVELS`), not for one. The level is compared with the processor before any code is loaded.
2. **stored**: what this machine has compiled, for its own processor: beside the source (`__pycache__`), in
   `NUMBA_CACHE_DIR`, or in the user's cache folder. `DALEMBERT_LOOPS` names another folder; "native" leaves the shipped
   code out, "off" both.

By itself Numba raises at every start what a damaged file, a full disk or a folder without rights brings up, unpickles
what anybody has put there, and takes code for fresh though another file changed that the function is made of. Here

- a stored file that is damaged, a link, or of another user (`cache.read_private`) counts as none: the loop is compiled
  again; shipped files are trusted as the sources beside them are, and checked for damage;
- a cache that cannot be written is warned of once, and the loops run without it;
- processes that need the same loop at the same time compile it once: the others wait for it;
- code is fresh if nothing changed of which it is made: the code of the loops it calls, and the constants they use.

What is kept is the code of *entries*, the loops that Python calls, with all that they call in it (`loop_linking.py`).
Stored and shipped code may differ in the last bits: the vectors of this processor may be longer than those of the
level.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps

try:
    import fcntl
except ImportError:  # Windows: two processes may compile the same loop
    fcntl = None

from dalembert.kernel.cache import OFF, read_checked, read_private, warn_once, write_private
from dalembert.kernel.loop_linking import Compiling

PACKAGE = "dalembert"
INDEX, CODE = b"dalembert loops 1, index\n", b"dalembert loops 1, code\n"
"""How the files of the cache begin."""

CONSTANTS = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None))
"""Types of globals whose values become part of the code."""

FOREIGN = (ModuleType, type, FunctionType, BuiltinFunctionType, np.ufunc)
"""Types of globals of other packages, which do not change with this one: modules, classes, functions."""

PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}"
"""Code is pickled, and differs from one version of Python to the next."""

TURNS = "loops.lock"
"""File of a folder of stored code whose bytes are locked by the processes that compile."""

VARIABLE, NATIVE = "DALEMBERT_LOOPS", "native"

V3 = "x86-64-v3", ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")

LEVELS = {
    "x86_64": V3,
    "amd64": V3,
    "aarch64": ("generic", ()),
    "arm64": ("apple-m1" if sys.platform == "darwin" else "generic", ()),
}
"""Machine -> the processor that shipped code is compiled for, and features that a processor must have to run it."""

counts: Counter[str] = Counter()
"""How often code was `shipped`, `stored` or `compiled` in this process, functions that others call included."""

loaded: set[str] = set()
"""Shipped indices that were used, relative to their folder."""

building: list[str] = []
"""The folder that shipped code is written to while a wheel is built (`dalembert warm --shipped`)."""


class LoopCache(FunctionCache):
    """The cache of one function: one index, and one file for each list of types that it was called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function: Any = function
        self._py_func, self._name = function, repr(function)
        self._enabled = True
        self._made: bytes | None = None
        self._turn: int | None = None

    @cached_property
    def _folder(self) -> str | None:
        """Where code is stored; None where no folder can be written. Not asked before the first call: it takes time."""
        setting = os.environ.get(VARIABLE, "").strip()
        if setting and setting.lower() not in (NATIVE, *OFF):
            return os.path.join(os.path.expanduser(setting), *_module_parts(self._function)[:-1])
        try:
            return FunctionCache(self._function).cache_path
        except (OSError, RuntimeError) as error:
            self._refused = str(error)
            return None

    @cached_property
    def _impl(self) -> Any:  # type: ignore[override]
        """Numba's way from code to bytes and back, which needs no folder."""
        return CompileResultCacheImpl.__new__(CompileResultCacheImpl)

    @cached_property
    def _names(self) -> tuple[str, str]:
        return _file_names(self._function)

    @cached_property
    def _owners(self) -> frozenset[int]:
        return _owners(self._function)

    @property
    def cache_path(self) -> str | None:
        """The folder of stored code."""
        return self._folder

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for some types, or None where no cache has any that may be run.

        Numba's tables of what it can compile are not loaded for that, which takes as long as its import.
        """
        if not self._enabled or self._is_part():
            counts["compiled"] += 1
            return None
        key = self._index_key(sig, target_context.codegen())
        code = self._load_code(key, target_context)
        if code is None and self._wait_for_turn(key):  # another process may have compiled it meanwhile
            code = self._load_code(key, target_context)
        if code is None:
            counts["compiled"] += 1
        return code

    def _load_code(self, key: Any, target_context: Any) -> Any:
        """Return code from the first folder that has some, or None."""
        for tier, load in (("shipped", self._load_shipped), ("stored", self._load_stored)):
            try:
                data = load(key)
                code = None if data is None else self._impl.rebuild(target_context, data)
            except Exception:  # whatever an old or foreign file leads to: the loop is compiled again
                code = None
            if code is not None:
                counts[tier] += 1
                return code
        return None

    def _wait_for_turn(self, key: Any) -> bool:
        """Take the right to compile this code, which one process has at a time; say whether that was possible.

        What others compile meanwhile is waited for. The right ends with the process, or with `end_turn`.
        """
        folder = self._folder_of_new_code()
        if fcntl is None or folder is None:
            return False
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            handle = os.open(os.path.join(folder, TURNS), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX, 1, _place(self._names, str(key)))
        except OSError:  # a file system without locks: two processes may compile the same
            os.close(handle)
            return False
        self._turn = handle
        return True

    def end_turn(self) -> None:
        """Let others compile this code, or load it."""
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store code; a cache that cannot be written is not tried again."""
        if not self._enabled or self._is_part():
            return
        try:
            if not data.library.has_dynamic_globals:  # addresses, which hold in this process alone
                self._save(self._index_key(sig, data.codegen), self._impl.reduce(data))
        except (OSError, pickle.PicklingError, TypeError) as error:
            self.disable()
            warn_once(f"cache of compiled loops {self._folder} cannot be written: {error}")

    def _is_part(self) -> bool:
        """Say whether the function is compiled as a part of another, which is what is kept."""
        return Compiling.entry is not None and Compiling.entry.py_func is not self._function

    def disable(self) -> None:
        """Neither load nor store from here on."""
        self._enabled = False

    def flush(self) -> None:
        """Forget all stored code."""
        if self._folder is not None:
            self._write_index(self._folder, {})

    def _load_shipped(self, key: Any) -> Any:
        folder = shipped_folder()
        if folder is None:
            return None
        folder = os.path.join(folder, *_module_parts(self._function))
        data = self._load(folder, at_level(key), lambda path, magic: read_checked(path, magic))
        if data is not None:
            loaded.add(os.path.join(*_module_parts(self._function), self._names[0]))
        return data

    def _load_stored(self, key: Any) -> Any:
        if self._folder is None or building or _is_off():
            return None
        return self._load(self._folder, key, lambda path, magic: read_private(path, magic, self._owners))

    def _load(self, folder: str, key: Any, read: Callable[[str, bytes], bytes | None]) -> Any:
        name = self._index(folder, read).get(key)
        body = None if name is None else read(os.path.join(folder, name), CODE)
        if body is None:
            return None
        stored, data = pickle.loads(body)
        return data if stored == key else None

    def _folder_of_new_code(self) -> str | None:
        """Return where code is stored that is compiled now; None where it is not stored."""
        if building:
            return os.path.join(building[0], *_module_parts(self._function))
        return None if _is_off() else self._folder

    def _save(self, key: Any, data: Any) -> None:
        folder = self._folder_of_new_code()
        if folder is None:
            if not _is_off():
                warn_once(f"cache of compiled loops: {self._refused}; they are compiled at every start")
            return
        if building:
            key = at_level(key)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if fcntl is not None and self._turn is not None:  # until `end_turn`: nobody else writes the index meanwhile
            fcntl.lockf(self._turn, fcntl.LOCK_EX, 1, _place(self._names))
        index = self._index(folder, lambda path, magic: read_private(path, magic, self._owners))
        names = set(index.values())
        numbers = (f"{self._names[1]}.{k}.nbc" for k in range(1, len(names) + 2))
        name = index.get(key) or next(number for number in numbers if number not in names)
        write_private(os.path.join(folder, name), CODE, dumps((key, data)))
        if key not in index:
            self._write_index(folder, index | {key: name})

    def _index(self, folder: str, read: Callable[[str, bytes], bytes | None]) -> dict[Any, str]:
        """Return the files by what they hold; none where the code is made of something that has changed."""
        body = read(os.path.join(folder, self._names[0]), INDEX)
        if body is None:
            return {}
        stamp, rest = body[:32], body[32:]
        if stamp != self._stamp():
            return {}
        try:
            return pickle.loads(rest)
        except (AttributeError, ImportError):  # types of arguments have another name now: nothing is known of such code
            return {}

    def _write_index(self, folder: str, index: dict[Any, str]) -> None:
        write_private(os.path.join(folder, self._names[0]), INDEX, self._stamp() + dumps(index))

    def _stamp(self) -> bytes:
        """Return a hash of Numba's version and of everything that the code is made of."""
        if self._made is None:  # not before the first call: what a loop calls may be written below it
            self._made = hashlib.sha256(f"numba {numba.__version__}\n".encode() + made_of(self._function)).digest()
        return self._made


# ----------------------------------------------------------------------------------------------------------------------
# Folders, file names and processors.


def _place(*words: Any) -> int:
    """Return the byte of the file of locks that stands for something."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:4], "little") >> 1


def _is_off() -> bool:
    return os.environ.get(VARIABLE, "").strip().lower() in OFF


def _module_parts(function: Any) -> tuple[str, ...]:
    return tuple(str(function.__module__).split("."))


def _file_names(function: Any) -> tuple[str, str]:
    """Return the name of a function's index, and how those of its codes begin."""
    code, name = function.__code__, function.__qualname__
    if "<" in name:  # functions made inside others may share a name
        name = f"{name}-{code.co_firstlineno}".replace("<", "").replace(">", "")
    name = f"{Path(code.co_filename).stem}.{name}.{PYTHON}"
    return f"{name}.nbi", name


def at_level(key: Any) -> Any:
    """Return the key of shipped code: the level of processors in place of this processor."""
    sig, (triple, *_), hashes = key
    return sig, (triple, LEVELS[platform.machine().lower()][0]), hashes


def folder_below(root: Path) -> Path:
    """Return where shipped code for this Python and this kind of machine lies below a folder."""
    return root / f"{PYTHON}-{platform.machine().lower()}"


@cache
def _shipped() -> str | None:
    """Return the folder of code for this Python and this kind of machine; None where this processor cannot run it."""
    machine = platform.machine().lower()
    folder = folder_below(Path(__file__).parent.parent / "_loops")
    if machine not in LEVELS or not folder.is_dir():
        return None
    from llvmlite import binding

    features = binding.get_host_cpu_features() if LEVELS[machine][1] else {}
    return str(folder) if all(features.get(name, False) for name in LEVELS[machine][1]) else None


def shipped_folder() -> str | None:
    """Return where code is that came with the library; None where there is none that may be run here."""
    if building:
        return building[0]
    if os.environ.get(VARIABLE, "").strip().lower() in (NATIVE, *OFF):
        return None
    return _shipped()


# ----------------------------------------------------------------------------------------------------------------------
# What a function's code is made of.


def _owners(function: Any) -> frozenset[int]:
    """Return whose files are trusted besides one's own: who owns the source can change what is run anyway."""
    try:
        return frozenset({os.stat(function.__code__.co_filename).st_uid})
    except OSError:
        return frozenset()


def functions_of(function: Any) -> int:
    """Return how many functions of this package a loop calls, itself and those that they call included."""
    return sum(1 for _ in _reached(function, lambda value: getattr(value, "py_func", None)))


def _reached(function: Any, function_of: Callable[[Any], Any]) -> Iterator[FunctionType]:
    """Yield a function and, once each, those of this package that it reaches; `function_of` a global that it names."""
    seen: set[int] = set()
    pending = [function]
    while pending:
        here = pending.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        yield here
        pending += [plain for _, value in _globals_of(here) if _is_ours(plain := function_of(value))]


def _is_ours(value: Any) -> bool:
    return isinstance(value, FunctionType) and str(value.__module__).startswith(PACKAGE)


def made_of(function: Any) -> bytes:
    """Return a hash of the code of a function and of all that it calls in this package, of constants and of options.

    Comments and blank lines are not part of it. Where a function names something that is neither a function nor a
    constant (an intrinsic, a class of this package, a foreign object), the whole file of that thing or of the function
    counts.
    """
    files: set[str] = set()
    parts: set[bytes] = set()
    for here in _reached(function, lambda value: getattr(value, "py_func", value)):
        parts.add(_code_of(here))
        for name, value in _globals_of(here):
            if _is_ours(value):  # a plain function: its compiled form (`numba.extending.overload`) is in its file
                files.add(value.__code__.co_filename)
            elif _is_ours(getattr(value, "py_func", None)):
                continue
            elif isinstance(value, CONSTANTS):
                parts.add(f"{here.__module__}.{name} = {value!r}".encode())
            elif isinstance(value, np.ndarray):
                head = f"{here.__module__}.{name} = {value.dtype} {value.shape} "
                parts.add(head.encode() + value.tobytes())
            elif str(getattr(value, "__module__", "")).startswith(PACKAGE):  # an intrinsic, a class
                files.add(_file_of(value.__module__))
            elif not isinstance(value, FOREIGN):
                files.add(here.__code__.co_filename)
    digest = hashlib.sha256()
    for part in sorted(parts):
        digest.update(hashlib.sha256(part).digest())
    for path in sorted(files):
        digest.update(_content(path))
    return digest.digest()


def _code_of(function: FunctionType) -> bytes:
    """Return a function's byte code with its constants and names, its defaults, and the options of its decorator."""
    dispatcher = function.__globals__.get(function.__name__)
    options = getattr(dispatcher, "targetoptions", {}) if getattr(dispatcher, "py_func", None) is function else {}
    settings = sorted((name, _settled(value)) for name, value in options.items())
    head = (function.__module__, function.__qualname__, function.__defaults__, function.__kwdefaults__, settings)
    return repr(head).encode() + _words_of(function.__code__)


def _words_of(code: CodeType) -> bytes:
    """Return what a code object does, without its place in a file."""
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags)
    words = [repr(names).encode(), code.co_code, getattr(code, "co_exceptiontable", b"")]
    words += [
        _words_of(constant) if isinstance(constant, CodeType) else _settled(constant).encode()
        for constant in code.co_consts
    ]
    return b"\0".join(words)


def _settled(value: Any) -> str:
    """Return a value as text that does not depend on the order of a set's members, which differs between processes."""
    return repr(sorted(map(repr, value))) if isinstance(value, (set, frozenset)) else repr(value)


def _globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function's code names, and what it names in modules of this package."""
    names = set(_names(function.__code__))
    for name in sorted(names):
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType) and value.__name__.startswith(PACKAGE):
            yield from (
                (f"{name}.{attribute}", vars(value)[attribute]) for attribute in sorted(names & vars(value).keys())
            )
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

"""Loops are optimised once: where Python calls them, and not again in every loop on the way.

Numba gives each compiled function a library of its own. It takes in the code of everything that the function calls,
runs all of LLVM's passes over it and makes machine code of it, though most functions are only called by other loops,
whose libraries take the code in and do the same again. In a time stepper of a hundred functions that is two thirds of
the time to compile.

Here the function that Python calls, the *entry*, is compiled as Numba does it. What it calls becomes a *part*: typed,
lowered to LLVM's language, and left so until the entry takes in all parts, each once, and optimises them together. The
same function can be both: one that Python calls and other loops too is compiled for either, so that the code of an
entry does not depend on what was called before it.

Numba's names used here are not public: a release may change them, and `tests/kernel/test_loop_linking.py` says so.
"""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.targetconfig import ConfigStack
from numba.extending import overload
from numba.np import arrayobj

ENVIRONMENT = "_ZN08NumbaEnv"
"""How the names begin of variables that hold the address of a function's constants."""


class Compiling:
    """The entry that is being compiled, if any. It is changed and read under Numba's compiler lock."""

    entry: Any = None


class PartCodegen:
    """The code generator of a part: there is no variable yet that an environment could be written to."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the entry's library does it for all of its parts."""


class PartLibrary(JITCodeLibrary):
    """Code of a function that an entry calls, in LLVM's language alone."""

    _own: Any = None

    @property
    def codegen(self) -> Any:
        """The code generator, which sets no environment."""
        return PartCodegen(self._codegen)

    def finalize(self) -> None:
        """Note that nothing is added from here on."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address: there is no machine code."""
        return 0

    def own_module(self) -> Any:
        """Return the code of this function alone, so that many libraries can take it in."""
        if self._own is None:
            self._own = linkable(self._final_module)
        return self._own

    def _get_module_for_linking(self) -> Any:
        """Return the code of this function and of all that it calls: for libraries that are not of this file."""
        if self._shared_module is None:
            self._shared_module = self.own_module().clone()
            for module in modules_of(self):
                self._shared_module.link_in(module, preserve=True)
        return self._shared_module

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        """Return a stored library as Numba does: it has machine code."""
        with usual_libraries(codegen):
            return JITCodeLibrary._unserialize(codegen, state)


class EntryLibrary(JITCodeLibrary):
    """Code of a function that Python calls, with all of its parts."""

    def finalize(self) -> None:
        """Take in all parts, optimise, make machine code and tell it where the functions' constants are."""
        for library in parts_of(self):
            self._reload_init.update(library._reload_init)
        for module in modules_of(self):
            self._final_module.link_in(module, preserve=True)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "weak_odr":
                function.linkage = "linkonce_odr"  # left out where all calls of it are inlined
        self._linking_libraries = []
        super().finalize()
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name) if variable.name.startswith(ENVIRONMENT) else None
            if environment is not None:
                codegen: Any = self._codegen
                codegen.set_env(variable.name, environment)


def linkable(module: Any) -> Any:
    """Return a module whose functions may be defined by many libraries, and are left out by those that inline them."""
    module = module.clone()
    for function in module.functions:
        if not function.is_declaration and function.linkage.name == "external":
            function.linkage = "weak_odr"  # taken in even where nothing taken in so far calls it
    return module


def parts_of(library: Any) -> Iterator[Any]:
    """Yield all libraries that one needs, each once, callers before what they call."""
    seen: set[Any] = set()
    pending = list(reversed(library._linking_libraries))
    while pending:
        here = pending.pop()
        if here not in seen:
            seen.add(here)
            yield here
            if isinstance(here, PartLibrary):
                pending += reversed(here._linking_libraries)


def modules_of(library: Any) -> Iterator[Any]:
    """Yield the code of all libraries that one needs."""
    for part in parts_of(library):
        yield part.own_module() if isinstance(part, PartLibrary) else part._get_module_for_linking()


class usual_libraries:  # noqa: N801 - used like a function
    """A context in which Numba makes its own libraries."""

    def __init__(self, codegen: Any) -> None:
        self.codegen = codegen

    def __enter__(self) -> None:
        self.before = vars(self.codegen).pop("_library_class", None)

    def __exit__(self, *_: Any) -> None:
        if self.before is not None:
            self.codegen._library_class = self.before


class LoopCompiler(compiler.Compiler):
    """Numba's passes, with the library of an entry or of a part."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function; a part gets no code by which Python could call it."""
        if self.state.library is None and Compiling.entry is not None:
            is_entry = func is Compiling.entry.py_func
            kind = EntryLibrary if is_entry else PartLibrary
            self.state.library = kind(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
            self.state.flags.no_cfunc_wrapper = not (is_entry and Compiling.entry.by_address)
            if not is_entry:
                self.state.flags.no_cpython_wrapper = True
        return super().compile_extra(func)


# ----------------------------------------------------------------------------------------------------------------------
# What a third of the time went to, and nobody needs.


@contextmanager
def without_collecting() -> Iterator[None]:
    """Collect no garbage: what is made while a loop is compiled is needed until the end."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def refuse_shapes(source: Any, target: Any) -> None:
    """Say that arrays of these shapes cannot be assigned, in a loop; see `brief_messages`."""
    raise NotImplementedError


@overload(refuse_shapes)
def _refuse_shapes(source: Any, target: Any) -> Any:
    def refuse(source: Any, target: Any) -> None:
        raise ValueError("a part of an array is assigned from an array of another shape")

    return refuse


@contextmanager
def brief_messages() -> Iterator[None]:
    """Let `a[:] = b` between shapes that differ raise a plain sentence.

    Numba's own has both shapes in it: numbers as text, joined lists of text, all compiled into every loop with such a
    line, in four seconds.
    """
    usual = getattr(arrayobj, MISMATCH, None)
    if usual is None:  # another release of Numba
        yield
        return
    setattr(arrayobj, MISMATCH, refuse_shapes)
    try:
        yield
    finally:
        setattr(arrayobj, MISMATCH, usual)


MISMATCH = "raise_with_shape_context"
"""Numba's function that raises it."""

INHERITED = {"_nrt": "nrt", "fastmath": "fastmath", "error_model": "error_model", "forceinline": "forceinline"}
"""Options that a function has from its caller where it has none of its own, and their names among Numba's flags."""


class LoopDispatcher(CPUDispatcher):
    """A compiled function as Numba has it, with a second set of codes: those that entries take in.

    `by_address` says that other loops call it by its address (`views.Unit`).
    """

    by_address = False

    _cache: Any
    targetctx: Any

    @property
    def overloads(self) -> Any:
        """Codes by types: as an entry, or as a part of the entry that is being compiled."""
        if Compiling.entry is None or Compiling.entry is self:
            return vars(self)["overloads"]
        caller = ConfigStack.top_or_none()
        options = self.targetoptions
        key = tuple(str(options.get(name, getattr(caller, flag, None))) for name, flag in INHERITED.items())
        return vars(self).setdefault("parts", {}).setdefault(key, OrderedDict())

    @overloads.setter
    def overloads(self, codes: Any) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        vars(self)["overloads"] = codes

    @property
    def is_part(self) -> bool:
        """Whether this function is compiled for an entry that calls it."""
        return Compiling.entry is not None and Compiling.entry is not self

    def add_overload(self, cres: Any) -> None:
        """Note new code; Python is told of that of an entry."""
        if self.is_part:
            self.overloads[tuple(cres.signature.args)] = cres
        else:
            super().add_overload(cres)

    def compile(self, sig: Any) -> Any:
        """Return the code for some types."""
        with global_compiler_lock:
            if Compiling.entry is not None:
                return super().compile(sig)
            codegen = self.targetctx.codegen()
            rtsys.initialize(self.targetctx)  # Numba's memory management, which all libraries share: no part of one
            Compiling.entry, codegen._library_class = self, PartLibrary
            try:
                with without_collecting(), brief_messages():
                    return super().compile(sig)
            finally:
                Compiling.entry = None
                del codegen._library_class
                self._cache.end_turn()

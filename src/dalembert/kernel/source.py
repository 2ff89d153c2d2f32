"""The function of a kernel, given or built on demand.

A kernel that is in the cache needs no expressions to run, only to be differentiated or exported. So its function may be
named by its content (`parts`) and built on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dalembert.errors import ModelError, UnsupportedError
from dalembert.kernel import cache


class FunctionSource:
    """A CasADi function, or how to get it.

    Parameters
    ----------
    function
        The function, where it is there.
    build
        Else, what returns it.
    parts
        Text that determines what `build` returns, as far as this package's code does not.
    """

    def __init__(
        self, function: Any = None, build: Callable[[], Any] | None = None, parts: Sequence[str] | None = None
    ) -> None:
        if function is not None:
            check_function(function)
        if parts is not None:
            _check_parts(parts)
        self._function = function
        self._build = build
        self.parts = None if parts is None else tuple(parts)
        self._text: str | None = None

    @property
    def function(self) -> Any:
        """The function; built now where it was not yet."""
        if self._function is None:
            made = self._build() if self._build is not None else _from_text(self._text)
            check_function(made)
            self._function = made
        return self._function

    def key(self, parts: Sequence[str]) -> str | None:
        """Return the name of an entry of the cache; None where the cache is off or the function is no text."""
        if cache.cache_folder() is None:
            return None
        if self.parts is not None:
            return cache.key(["by name", cache.package_stamp(), *self.parts, "compiled", *parts])
        text = self.text()
        return None if text is None else cache.key(["by content", text, *parts])

    def text(self) -> str | None:
        """Return the function as text; None where CasADi cannot write it."""
        if self._text is not None:
            return self._text
        try:
            return self.function.serialize()
        except RuntimeError:
            return None

    def __getstate__(self) -> dict[str, Any]:
        text = self.text()
        if text is None:
            raise UnsupportedError(
                f"the function {self.function.name()!r} cannot be written as text, so its kernel cannot be pickled; "
                "make the kernel anew in the other process"
            )
        return {"_function": None, "_build": None, "parts": self.parts, "_text": text}


def check_function(function: Any) -> None:
    """Refuse what is no CasADi function."""
    if not all(hasattr(function, name) for name in ("n_in", "n_out", "sparsity_in", "name")):
        raise UnsupportedError(
            f"a kernel is made from a casadi.Function, not from {type(function).__name__}; "
            "wrap expressions as casadi.Function(name, [inputs], [outputs])"
        )


def _check_parts(parts: Sequence[str]) -> None:
    if (
        isinstance(parts, str)
        or not isinstance(parts, Sequence)
        or not parts
        or not all(isinstance(part, str) for part in parts)
    ):
        raise ModelError(f"the key of a kernel is a list of strings that determine its content, not {parts!r:.80}")


def _from_text(text: str | None) -> Any:
    import casadi

    return casadi.Function.deserialize(text)

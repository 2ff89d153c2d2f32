"""The checker of the import hook: beartype on shape annotations alone.

Words, options and objects are the library's own to check, with its own messages; beartype would answer first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beartype import beartype

SHAPED = ("Float[", "Int[", "Bool[", "jaxtyping")
"""How an annotation that carries a shape is recognised, written or evaluated."""


def checked(function: Callable) -> Callable:
    """Return the function with its shape annotations checked at every call, and all others left alone."""
    hints = getattr(function, "__annotations__", {})
    shaped = {name: hint for name, hint in hints.items() if any(word in str(hint) for word in SHAPED)}
    if not shaped:
        return function
    function.__annotations__ = {name: shaped.get(name, Any) for name in hints}
    return beartype(function)

"""What all bridges ask of a kernel: its smooth outputs, a name of its content; and how a guest is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dalembert.errors import MissingExtraError, UnsupportedError
from dalembert.kernel import cache
from dalembert.kernel.derivatives import chosen_ports

if TYPE_CHECKING:
    from dalembert.kernel import Kernel

VERDICT = "status"
"""Name of the output that is a code, not a quantity: it has no derivative."""


def smooth_outputs(kernel: Kernel, outputs: Sequence[str] | str | None) -> list[int]:
    """Return the places of the named outputs; without names, all but the verdict."""
    if outputs is None:
        return [k for k, port in enumerate(kernel.outputs) if port.name != VERDICT]
    return chosen_ports(kernel.outputs, outputs, "output")


def guest(module: str, package: str, extra: str, purpose: str) -> Any:
    """Return an optional library, or say which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error


def content_name(kernel: Kernel, *more: str) -> str:
    """Return a name of what a kernel computes: the same in every process, another for another function or type.

    Guests that keep compiled programs (JAX on disk, PyTorch in a file) call kernels by name: were the name a mere
    number, such a program would call whatever has that number in its next process.
    """
    source = getattr(kernel, "_source", None)
    if source is None:
        raise UnsupportedError(
            f"{kernel!r} runs compiled loops, which have no expressions to differentiate or to name; other libraries "
            "take kernels of mechanisms that are small enough to unroll (backend='cpu')"
        )
    if source.parts is not None:
        parts = ["by name", cache.package_stamp(), *source.parts]
    else:
        parts = ["by content", source.text() or f"at {id(source)}"]
    return f"dalembert_{cache.key([*parts, kernel.backend, kernel.options.dtype, *more])[:32]}"

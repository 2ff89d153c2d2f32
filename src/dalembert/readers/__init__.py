"""From files to systems, and between the state vectors of tools."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dalembert.readers.load import load

if TYPE_CHECKING:
    from dalembert.readers.matrix_file import MatrixProblem, read_matrices
    from dalembert.readers.state_map import CONVENTIONS, Convention, StateMap, state_map

_ON_FIRST_USE = {
    **dict.fromkeys(("CONVENTIONS", "Convention"), "states.conventions"),
    **dict.fromkeys(("MatrixProblem", "read_matrices"), "matrix_file"),
    **dict.fromkeys(("StateMap", "state_map"), "states.state_map"),
}
"""Names by file: a robot file is read without SciPy."""

__all__ = ["CONVENTIONS", "Convention", "MatrixProblem", "StateMap", "load", "read_matrices", "state_map"]


def __getattr__(name: str) -> Any:
    """Import a file of the room when a name of it is first used (PEP 562)."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'dalembert.readers' has no attribute {name!r}")
    value = getattr(import_module(f"dalembert.readers.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = value
    return value

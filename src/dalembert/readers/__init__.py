"""From files to systems, and between the state vectors of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert.first_use import on_first_use
from dalembert.readers.load import load

if TYPE_CHECKING:
    from dalembert.readers.matrix_file import MatrixProblem, read_matrices
    from dalembert.readers.state_vectors import CONVENTIONS, Convention, StateMap, state_map

_ON_FIRST_USE = {
    **dict.fromkeys(("CONVENTIONS", "Convention", "StateMap", "state_map"), "state_vectors"),
    **dict.fromkeys(("MatrixProblem", "read_matrices"), "matrix_file"),
}
"""Names by file: a robot file is read without SciPy."""

__all__ = ["CONVENTIONS", "Convention", "MatrixProblem", "StateMap", "load", "read_matrices", "state_map"]

__getattr__ = on_first_use(__name__, _ON_FIRST_USE)

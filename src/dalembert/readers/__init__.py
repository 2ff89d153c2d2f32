"""From files to systems, and between the state vectors of tools."""

from dalembert.readers.conventions import CONVENTIONS, Convention
from dalembert.readers.load import load
from dalembert.readers.matrix_file import MatrixProblem, read_matrices
from dalembert.readers.state_map import StateMap, state_map

__all__ = ["CONVENTIONS", "Convention", "MatrixProblem", "StateMap", "load", "read_matrices", "state_map"]

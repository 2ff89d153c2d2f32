"""From files to systems."""

from dalembert.readers.load import load
from dalembert.readers.matrix_file import MatrixProblem, read_matrices

__all__ = ["MatrixProblem", "load", "read_matrices"]

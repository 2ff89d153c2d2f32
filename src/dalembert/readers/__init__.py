"""From files to systems."""

from dalembert.readers.matrix_file import MatrixProblem, read_matrices

__all__ = ["MatrixProblem", "read_matrices"]

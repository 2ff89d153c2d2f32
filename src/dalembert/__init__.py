"""dalembert: constrained mechanics for Python.

Describe a mechanism, or hand over its matrices; get accelerations, constraint forces and impacts, each with a
certificate, and the reason in plain words where there is no answer.  `import dalembert as da`.
"""

from dalembert._version import __version__
from dalembert.errors import (
    DalembertError,
    MissingExtraError,
    ModelError,
    ShapeError,
    SolvabilityError,
    UnsupportedError,
)
from dalembert.kkt import KKT, Certificate, Diagnosis, Solution, Status

__all__ = [
    "KKT",
    "Certificate",
    "DalembertError",
    "Diagnosis",
    "MissingExtraError",
    "ModelError",
    "ShapeError",
    "Solution",
    "SolvabilityError",
    "Status",
    "UnsupportedError",
    "__version__",
]

"""The block matrix [M A^T; A 0]: dagger terms, certified solves, diagnosis, impacts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert.first_use import on_first_use
from dalembert.status import Status

if TYPE_CHECKING:
    from dalembert.kkt.analysis import block_inverse, block_matrix
    from dalembert.kkt.certificate import BatchCertificate, Certificate
    from dalembert.kkt.dagger import Dagger
    from dalembert.kkt.diagnosis import Diagnosis
    from dalembert.kkt.kkt import KKT
    from dalembert.kkt.routes import FACTORISATIONS
    from dalembert.kkt.routes.mass_weighted import gauss_function
    from dalembert.kkt.solution import Impact, Solution

__all__ = [
    "FACTORISATIONS",
    "KKT",
    "BatchCertificate",
    "Certificate",
    "Dagger",
    "Diagnosis",
    "Impact",
    "Solution",
    "Status",
    "block_inverse",
    "block_matrix",
    "gauss_function",
]

__getattr__ = on_first_use(
    __name__,
    {
        **dict.fromkeys(("block_inverse", "block_matrix"), "analysis"),
        **dict.fromkeys(("BatchCertificate", "Certificate"), "certificate"),
        "Dagger": "dagger",
        "Diagnosis": "diagnosis",
        "Impact": "solution",
        "KKT": "kkt",
        "FACTORISATIONS": "routes",
        "gauss_function": "routes.mass_weighted",
        "Solution": "solution",
    },
)

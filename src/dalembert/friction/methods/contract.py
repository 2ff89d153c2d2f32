"""The contract of a method: a `Problem` in, forces at all contacts out, with what happened on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float

from dalembert.friction.problem import Problem
from dalembert.friction.status import FrictionStatus

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Found:
    """Forces (m,), those of sliding contacts included; rounds; a verdict where the method has one; a remark."""

    forces: Float[Array, " m"]
    iterations: int
    status: FrictionStatus | None = None
    note: str = ""


class Method(Protocol):
    """A way to find the friction forces of one state."""

    def __call__(self, problem: Problem, warm: Float[Array, " m"] | None = None, **options: Any) -> Found:
        """Return the forces; `warm` is a first guess."""
        ...

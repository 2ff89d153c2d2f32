"""Method `regularised`: the step of the law replaced by a steep slope (seed 001, sec. 1), for comparison only.

T = -limit(velocity) tanh(velocity / width). No contact ever sticks: it creeps at about width x atanh(force / limit),
and a smaller width buys less creep with a stiffer equation (the rate limit / (width mass) bounds the step).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dalembert.errors import ModelError
from dalembert.friction.law import is_number
from dalembert.friction.methods.contract import Found
from dalembert.friction.problem import Problem

Array = np.ndarray


def regularised(problem: Problem, warm: Float[Array, " m"] | None = None, width: float = 1e-3) -> Found:
    """Return the forces of the steep slope; they depend on the velocity alone, so `warm` is not used."""
    if not is_number(width) or not 0.0 < width < np.inf:
        raise ModelError(f"width={width!r} must be a velocity > 0")
    slope = np.tanh(np.abs(problem.velocity) / width)
    moving = np.abs(problem.forces_in_motion)
    size = np.where(problem.rest, problem.limits, moving)
    return Found(-np.sign(problem.velocity) * slope * size, 1)

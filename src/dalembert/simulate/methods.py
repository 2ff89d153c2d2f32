"""Ways of a mechanism through time, and how one of them is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.simulate.contact.hybrid import run_hybrid
from dalembert.simulate.contact.moreau import run_moreau
from dalembert.simulate.smooth.explicit import run_explicit
from dalembert.simulate.smooth.variational import run_variational

if TYPE_CHECKING:
    from dalembert.model.mechanism import Mechanism

Array = np.ndarray

METHODS: dict[str, Callable[..., None]] = {
    "dop853": run_explicit,
    "dopri5": run_explicit,
    "variational": run_variational,
    "moreau": run_moreau,
    "hybrid": run_hybrid,
}
"""Steppers behind one contract, (session, **options) -> None; being in the list is being tested."""


def choose(
    mechanism: Mechanism, method: str, law: Any, contacts: Any, q: Array, v: Array, numbers: dict[str, Any]
) -> tuple[str, str]:
    """Return a method and the reason for it, in words."""
    if contacts is not None:
        return "moreau", "contacts: time stepping, with impacts and forces as impulses of a step"
    return "dop853", "a smooth motion: explicit steps of order 8 on the constraint manifold"

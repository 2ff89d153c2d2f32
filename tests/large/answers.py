"""Accelerations of a mechanism by the compiled loops, by either elimination, whatever the size of the mechanism."""

from __future__ import annotations

from typing import Any

import dalembert as da
from dalembert.large.block_system import LargeSystem
from dalembert.large.motion_functions import large_system


def looped_forward(mechanism: da.Mechanism, q: Any, v: Any, force: Any, *, route: str = "auto") -> Any:
    """Return accelerations, multipliers and status at t = 0; `route` is "auto" (along the tree) or "sparse"."""
    return LargeSystem(large_system(mechanism).tree, None, route).forward(q, v, force, 0.0)

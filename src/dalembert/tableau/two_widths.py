"""A function compiled twice: wide for batches, one sample wide for single calls; each when first needed.

A wide kernel spends a whole vector on one sample; on a tableau of 738 equations a single call takes 8.6 us with eight
lanes and 5.1 us with one. The results are the same, bit for bit.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from dalembert.kernel import Kernel


class TwoWidths:
    """Calls the kernel that fits: `f(*arrays)`, all of one sample (size,) or at least one batch (N, size)."""

    def __init__(self, function: Any) -> None:
        self.function = function

    @cached_property
    def wide(self) -> Kernel:
        """The kernel for batches."""
        return Kernel(self.function)

    @cached_property
    def narrow(self) -> Kernel:
        """The kernel for one sample."""
        return Kernel(self.function, width=1)

    def __call__(self, *arrays: Any) -> Any:
        """Return what the kernel returns."""
        single = all(np.ndim(array) == 1 for array in arrays)
        return (self.narrow if single else self.wide)(*arrays)

"""What a call gives beside its outputs: a status per sample."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class SampleStatus(IntEnum):
    """Outcome of one sample."""

    FINITE = 0
    NON_FINITE = 1


class Evaluation(NamedTuple):
    """Result of `Kernel.call`.

    Attributes
    ----------
    outputs
        One array per output, `shape` or `(N, *shape)`.
    status : uint8
        `SampleStatus` of each sample, in the shape of the batch; () for a single call. It looks at the outputs: a value
        that is not finite on the way to outputs that are (1/inf, atan of a pole, the branch that was not taken) is no
        failure.
    """

    outputs: tuple[Any, ...]
    status: NDArray[np.uint8]

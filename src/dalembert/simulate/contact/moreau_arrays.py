"""Memory of time stepping: what compiled steps read and write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Work(NamedTuple):
    """Memory of one run: what the codes read and write, and where they are."""

    calls: np.ndarray
    q: np.ndarray
    v: np.ndarray
    environment: np.ndarray  # t, failure, signals
    tau: np.ndarray
    base: np.ndarray
    way: np.ndarray
    moved: np.ndarray
    middle: np.ndarray
    time: np.ndarray  # (1,)
    speed: np.ndarray  # at which bias is taken
    M: np.ndarray
    bias: np.ndarray
    A: np.ndarray
    frames: np.ndarray
    correction: np.ndarray
    residual: np.ndarray
    gaps: np.ndarray
    W: np.ndarray
    axes: np.ndarray
    warm: np.ndarray  # impulses of the last step
    left: np.ndarray  # (k, 9) contact velocity after it in world axes, r omega, normal
    missed: np.ndarray  # (k,) by how much the laws of contacts were missed in the last step, relative to the data


class Samples(NamedTuple):
    """Rows of a block; the last ones as `record.CONTACT_FIELDS`."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    acceleration: np.ndarray
    multipliers: np.ndarray
    work: np.ndarray
    step: np.ndarray
    heat: np.ndarray
    contact_forces: np.ndarray
    modes: np.ndarray
    contact_status: np.ndarray
    contact_residual: np.ndarray

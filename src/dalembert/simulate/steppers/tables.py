"""The explicit tables: the classical method of order 4, Dormand and Prince 5(4), and 8(5,3)."""

from __future__ import annotations

import numpy as np
from scipy.integrate import DOP853, RK45

from dalembert.simulate.steppers.explicit import ExplicitRungeKutta

RK4 = ExplicitRungeKutta(
    "rk4",
    4,
    np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]),
    np.array([1.0, 2.0, 2.0, 1.0]) / 6.0,
    np.array([0.0, 0.5, 0.5, 1.0]),
)

DOPRI5 = ExplicitRungeKutta("dopri5", 5, np.asarray(RK45.A), np.asarray(RK45.B), np.asarray(RK45.C), np.asarray(RK45.E))

DOP853_TABLE = ExplicitRungeKutta(
    "dop853",
    8,
    np.asarray(DOP853.A),
    np.asarray(DOP853.B),
    np.asarray(DOP853.C),
    np.asarray(DOP853.E5),  # pyright: ignore[reportAttributeAccessIssue]
    np.asarray(DOP853.E3),  # pyright: ignore[reportAttributeAccessIssue]
)
"""Coefficients as SciPy carries them (Hairer's dop853)."""

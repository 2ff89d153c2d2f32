"""Runge-Kutta methods as the contact engine's loops read them: stages, error, continuous extension.

| method | order | steps |
|---|---|---|
| `dop853`, `dopri5` | 8, 5 | explicit, adaptive (Hairer, Norsett, Wanner 1993, II.5, II.6) |
| `rk4` | 4 | explicit, of one size; its polynomial is Hermite's cubic |
| `radau` | 5 | Radau IIA, implicit, for stiff modes (Hairer, Wanner 1996, IV.8) |

Symbols: a, b, c stages, weights, times; the rate at the end is one more stage. The polynomial of a step is

    y(s) = y0 + s (F0 + (1 - s) (F1 + s (F2 + (1 - s) (F3 + ...))))

with F0, F1, F2 of Hermite's cubic, and h D k for the others.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dalembert.simulate.dormand_prince import CLASSICAL, DOP853, RK45
from dalembert.types import Array


class RungeKutta(NamedTuple):
    """A method: arrays of the loops by name, and numbers of its step control and of its bounds.

    Attributes
    ----------
    order
        The error of a step is of this order in its length.
    apart
        Half of the largest distance of two stages, as part of a step.
    between
        Accelerations between stages are at most so many times those at them.
    implicit
        Whether the stages are those of an implicit method.
    """

    arrays: dict[str, Array]
    order: int
    apart: float
    between: float
    implicit: bool = False


MORE_BETWEEN = 2.0
"""`between` of methods with few stages."""

ROOT6 = 6.0**0.5
RADAU_A = np.array(
    [
        [(88 - 7 * ROOT6) / 360, (296 - 169 * ROOT6) / 1800, (-2 + 3 * ROOT6) / 225],
        [(296 + 169 * ROOT6) / 1800, (88 + 7 * ROOT6) / 360, (-2 - 3 * ROOT6) / 225],
        [(16 - ROOT6) / 36, (16 + ROOT6) / 36, 1.0 / 9.0],
    ]
)
RADAU_C = np.array([(4 - ROOT6) / 10, (4 + ROOT6) / 10, 1.0])


@cache
def method_of(name: str) -> RungeKutta:
    """Return a method; loops do not write its arrays."""
    return METHODS[name]()


def _arrays(
    a: Any, b: Any, c: Any, error: Any, third: Any = None, more: Any = None, dense: Any = None
) -> dict[str, Array]:
    """Return the arrays of a method; `more` are further stages of its polynomial, (a, c)."""
    b, c = np.array(b, float), np.array(c, float)[: len(b)].copy()
    s = b.size
    wide = np.zeros((s, s))
    wide[:, : np.shape(a)[1]] = np.asarray(a)[:s, :s]
    more_a, more_c = (np.zeros((0, s + 1)), np.zeros(0)) if more is None else more
    times = np.append(c, 1.0)
    arrays = {
        "rk_a": wide, "rk_b": b, "rk_c": c, "rk_fifth": error,
        "rk_third": np.zeros(s + 1) if third is None else third, "rk_more_a": more_a, "rk_more_c": more_c,
        "rk_dense": np.zeros((0, s + 1)) if dense is None else dense, "rk_times": times,
    }  # fmt: skip
    order = np.argsort(times, kind="stable").astype(np.int64)
    return {name: np.array(x, float) for name, x in arrays.items()} | {"rk_order": order}


def _dop853() -> RungeKutta:
    m: Any = DOP853
    return RungeKutta(_arrays(m.A, m.B, m.C, m.E5, m.E3, (m.A_EXTRA, m.C_EXTRA), m.D), 8, 0.14, 1.5)


def _dopri5() -> RungeKutta:
    # the polynomial of order 4 in powers of s: its highest one is that of F3
    m: Any = RK45
    return RungeKutta(_arrays(m.A, m.B, m.C, m.E, dense=np.asarray(m.P)[:, 3][None]), 5, 0.25, MORE_BETWEEN)


def _rk4() -> RungeKutta:
    b, c = np.array([1.0, 2.0, 2.0, 1.0]) / 6.0, np.array([0.0, 0.5, 0.5, 1.0])
    return RungeKutta(_arrays(CLASSICAL, b, c, np.zeros(5)), 4, 0.25, MORE_BETWEEN)


def _radau() -> RungeKutta:
    """Radau IIA behind a first stage at the start; the polynomial has the rate of the second stage, too."""
    a, b, c = np.zeros((4, 4)), np.append(0.0, RADAU_A[2]), np.append(0.0, RADAU_C)
    a[1:, 1:] = RADAU_A
    s = RADAU_C[1]
    start, end, second = np.eye(5)[0], np.eye(5)[4], np.eye(5)[2]
    way = np.append(b, 0.0)
    F1, F2 = start - way, 2.0 * way - start - end
    slope = way + (1 - 2 * s) * F1 + (2 * s - 3 * s * s) * F2
    dense = (second - slope) / (2 * s * (1 - s) * (1 - 2 * s))
    return RungeKutta(_arrays(a, b, c, np.zeros(5), dense=dense[None]), 4, 0.25, MORE_BETWEEN, implicit=True)


METHODS = {"dop853": _dop853, "dopri5": _dopri5, "rk4": _rk4, "radau": _radau}
"""Methods of the contact engine; being in the list is being tested."""

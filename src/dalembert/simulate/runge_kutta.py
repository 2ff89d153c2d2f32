"""Runge-Kutta methods: their tables, and the methods between events as the contact engine's loops read them.

Symbols (Hairer, Norsett, Wanner 1993, II.4, II.5, II.6): A, B, C stages, weights, times; E the difference to the lower
order; P, D the continuous extension; `A_EXTRA`, `C_EXTRA` its further stages. The numbers are those of Hairer's
`dopri5` and `dop853`, which SciPy carries too: a test compares them. SciPy's integrators take as long to import as
NumPy, and nothing but the numbers is used.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dalembert.types import Array

CLASSICAL = np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
"""Stages of Runge's and Kutta's method of order 4."""


def matrix(shape: tuple[int, ...], entries: dict[tuple[int, ...], float]) -> np.ndarray:
    """Return an array from its entries that are not zero."""
    values = np.zeros(shape)
    for place, value in entries.items():
        values[place] = value
    return values


class RK45:
    """Dormand and Prince 5(4)."""

    A = matrix(
        (6, 5),
        {
            (1, 0): 0.2,
            (2, 0): 0.075,
            (2, 1): 0.225,
            (3, 0): 0.9777777777777777,
            (3, 1): -3.7333333333333334,
            (3, 2): 3.5555555555555554,
            (4, 0): 2.9525986892242035,
            (4, 1): -11.595793324188385,
            (4, 2): 9.822892851699436,
            (4, 3): -0.2908093278463649,
            (5, 0): 2.8462752525252526,
            (5, 1): -10.757575757575758,
            (5, 2): 8.906422717743473,
            (5, 3): 0.2784090909090909,
            (5, 4): -0.2735313036020583,
        },
    )
    B = matrix(
        (6,),
        {
            (0,): 0.09114583333333333,
            (2,): 0.44923629829290207,
            (3,): 0.6510416666666666,
            (4,): -0.322376179245283,
            (5,): 0.13095238095238096,
        },
    )
    C = matrix(
        (6,),
        {
            (1,): 0.2,
            (2,): 0.3,
            (3,): 0.8,
            (4,): 0.8888888888888888,
            (5,): 1.0,
        },
    )
    E = matrix(
        (7,),
        {
            (0,): -0.0012326388888888888,
            (2,): 0.0042527702905061394,
            (3,): -0.03697916666666667,
            (4,): 0.05086379716981132,
            (5,): -0.0419047619047619,
            (6,): 0.025,
        },
    )
    P = matrix(
        (7, 4),
        {
            (0, 0): 1.0,
            (0, 1): -2.8535800653862835,
            (0, 2): 3.0717434641059005,
            (0, 3): -1.1270175653862835,
            (2, 1): 4.023133379230305,
            (2, 2): -6.249321565289,
            (2, 3): 2.675424484351598,
            (3, 1): -3.7324019615885042,
            (3, 2): 10.068970589843675,
            (3, 3): -5.685526961588504,
            (4, 1): 2.5548038301849423,
            (4, 2): -6.399112377351017,
            (4, 3): 3.5219323679207912,
            (5, 1): -1.3744241142186024,
            (5, 2): 3.272657752246729,
            (5, 3): -1.7672812570757455,
            (6, 1): 1.3824689317781436,
            (6, 2): -3.764937863556287,
            (6, 3): 2.382468931778144,
        },
    )


class DOP853:
    """Dormand and Prince 8(5,3)."""

    A = matrix(
        (12, 12),
        {
            (1, 0): 0.05260015195876773,
            (2, 0): 0.0197250569845379,
            (2, 1): 0.0591751709536137,
            (3, 0): 0.02958758547680685,
            (3, 2): 0.08876275643042054,
            (4, 0): 0.2413651341592667,
            (4, 2): -0.8845494793282861,
            (4, 3): 0.924834003261792,
            (5, 0): 0.037037037037037035,
            (5, 3): 0.17082860872947386,
            (5, 4): 0.12546768756682242,
            (6, 0): 0.037109375,
            (6, 3): 0.17025221101954405,
            (6, 4): 0.06021653898045596,
            (6, 5): -0.017578125,
            (7, 0): 0.03709200011850479,
            (7, 3): 0.17038392571223998,
            (7, 4): 0.10726203044637328,
            (7, 5): -0.015319437748624402,
            (7, 6): 0.008273789163814023,
            (8, 0): 0.6241109587160757,
            (8, 3): -3.3608926294469414,
            (8, 4): -0.868219346841726,
            (8, 5): 27.59209969944671,
            (8, 6): 20.154067550477894,
            (8, 7): -43.48988418106996,
            (9, 0): 0.47766253643826434,
            (9, 3): -2.4881146199716677,
            (9, 4): -0.590290826836843,
            (9, 5): 21.230051448181193,
            (9, 6): 15.279233632882423,
            (9, 7): -33.28821096898486,
            (9, 8): -0.020331201708508627,
            (10, 0): -0.9371424300859873,
            (10, 3): 5.186372428844064,
            (10, 4): 1.0914373489967295,
            (10, 5): -8.149787010746927,
            (10, 6): -18.52006565999696,
            (10, 7): 22.739487099350505,
            (10, 8): 2.4936055526796523,
            (10, 9): -3.0467644718982196,
            (11, 0): 2.273310147516538,
            (11, 3): -10.53449546673725,
            (11, 4): -2.0008720582248625,
            (11, 5): -17.9589318631188,
            (11, 6): 27.94888452941996,
            (11, 7): -2.8589982771350235,
            (11, 8): -8.87285693353063,
            (11, 9): 12.360567175794303,
            (11, 10): 0.6433927460157636,
        },
    )
    B = matrix(
        (12,),
        {
            (0,): 0.054293734116568765,
            (5,): 4.450312892752409,
            (6,): 1.8915178993145003,
            (7,): -5.801203960010585,
            (8,): 0.3111643669578199,
            (9,): -0.1521609496625161,
            (10,): 0.20136540080403034,
            (11,): 0.04471061572777259,
        },
    )
    C = matrix(
        (12,),
        {
            (1,): 0.05260015195876773,
            (2,): 0.0789002279381516,
            (3,): 0.1183503419072274,
            (4,): 0.2816496580927726,
            (5,): 0.3333333333333333,
            (6,): 0.25,
            (7,): 0.3076923076923077,
            (8,): 0.6512820512820513,
            (9,): 0.6,
            (10,): 0.8571428571428571,
            (11,): 1.0,
        },
    )
    E3 = matrix(
        (13,),
        {
            (0,): -0.18980075407240762,
            (5,): 4.450312892752409,
            (6,): 1.8915178993145003,
            (7,): -5.801203960010585,
            (8,): -0.4226823213237919,
            (9,): -0.1521609496625161,
            (10,): 0.20136540080403034,
            (11,): 0.02265179219836082,
        },
    )
    E5 = matrix(
        (13,),
        {
            (0,): 0.01312004499419488,
            (5,): -1.2251564463762044,
            (6,): -0.4957589496572502,
            (7,): 1.6643771824549864,
            (8,): -0.35032884874997366,
            (9,): 0.3341791187130175,
            (10,): 0.08192320648511571,
            (11,): -0.022355307863886294,
        },
    )
    D = matrix(
        (4, 16),
        {
            (0, 0): -8.428938276109013,
            (0, 5): 0.5667149535193777,
            (0, 6): -3.0689499459498917,
            (0, 7): 2.38466765651207,
            (0, 8): 2.117034582445028,
            (0, 9): -0.871391583777973,
            (0, 10): 2.2404374302607883,
            (0, 11): 0.6315787787694688,
            (0, 12): -0.08899033645133331,
            (0, 13): 18.148505520854727,
            (0, 14): -9.194632392478356,
            (0, 15): -4.436036387594894,
            (1, 0): 10.427508642579134,
            (1, 5): 242.28349177525817,
            (1, 6): 165.20045171727028,
            (1, 7): -374.5467547226902,
            (1, 8): -22.113666853125306,
            (1, 9): 7.733432668472264,
            (1, 10): -30.674084731089398,
            (1, 11): -9.332130526430229,
            (1, 12): 15.697238121770845,
            (1, 13): -31.139403219565178,
            (1, 14): -9.35292435884448,
            (1, 15): 35.81684148639408,
            (2, 0): 19.985053242002433,
            (2, 5): -387.0373087493518,
            (2, 6): -189.17813819516758,
            (2, 7): 527.8081592054236,
            (2, 8): -11.57390253995963,
            (2, 9): 6.8812326946963,
            (2, 10): -1.0006050966910838,
            (2, 11): 0.7777137798053443,
            (2, 12): -2.778205752353508,
            (2, 13): -60.19669523126412,
            (2, 14): 84.32040550667716,
            (2, 15): 11.99229113618279,
            (3, 0): -25.69393346270375,
            (3, 5): -154.18974869023643,
            (3, 6): -231.5293791760455,
            (3, 7): 357.6391179106141,
            (3, 8): 93.40532418362432,
            (3, 9): -37.45832313645163,
            (3, 10): 104.0996495089623,
            (3, 11): 29.8402934266605,
            (3, 12): -43.53345659001114,
            (3, 13): 96.32455395918828,
            (3, 14): -39.17726167561544,
            (3, 15): -149.72683625798564,
        },
    )
    A_EXTRA = matrix(
        (3, 16),
        {
            (0, 0): 0.056167502283047954,
            (0, 6): 0.25350021021662483,
            (0, 7): -0.2462390374708025,
            (0, 8): -0.12419142326381637,
            (0, 9): 0.15329179827876568,
            (0, 10): 0.00820105229563469,
            (0, 11): 0.007567897660545699,
            (0, 12): -0.008298,
            (1, 0): 0.03183464816350214,
            (1, 5): 0.028300909672366776,
            (1, 6): 0.053541988307438566,
            (1, 7): -0.05492374857139099,
            (1, 10): -0.00010834732869724932,
            (1, 11): 0.0003825710908356584,
            (1, 12): -0.00034046500868740456,
            (1, 13): 0.1413124436746325,
            (2, 0): -0.42889630158379194,
            (2, 5): -4.697621415361164,
            (2, 6): 7.683421196062599,
            (2, 7): 4.06898981839711,
            (2, 8): 0.3567271874552811,
            (2, 12): -0.0013990241651590145,
            (2, 13): 2.9475147891527724,
            (2, 14): -9.15095847217987,
        },
    )
    C_EXTRA = matrix(
        (3,),
        {
            (0,): 0.1,
            (1,): 0.2,
            (2,): 0.7777777777777778,
        },
    )


# ----------------------------------------------------------------------------------------------------------------------
# Methods as the contact engine's loops read them: stages, error, continuous extension.
#
# | method | order | steps |
# |---|---|---|
# | `dop853`, `dopri5` | 8, 5 | explicit, adaptive (Hairer, Norsett, Wanner 1993, II.5, II.6) |
# | `rk4` | 4 | explicit, of one size; its polynomial is Hermite's cubic |
# | `radau` | 5 | Radau IIA, implicit, for stiff modes (Hairer, Wanner 1996, IV.8) |
#
# Symbols: a, b, c stages, weights, times; the rate at the end is one more stage. The polynomial of a step is
#
#     y(s) = y0 + s (F0 + (1 - s) (F1 + s (F2 + (1 - s) (F3 + ...))))
#
# with F0, F1, F2 of Hermite's cubic, and h D k for the others.


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

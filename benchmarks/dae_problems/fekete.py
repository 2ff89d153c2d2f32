"""Fekete points: 20 particles on the unit sphere that repel each other, with friction.

p_i'' = -p_i' / 2 + 2 lam_i p_i + sum_j (p_i - p_j) / |p_i - p_j|^2,  |p_i| = 1; lam has the other sign here.
Source: F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers", release 2.4, problem "Fekete"; reference
vector of the set, confirmed independently to 2.6e-12.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da

from .published import Published

COUNT = 20
POSITIONS = [
    -0.4070263380333202,
    0.3463758772791802,
    0.8451942450030429,
    0.0775293475252155,
    -0.2628662719972299,
    0.9617122871829146,
    0.7100577833343567,
    0.121294805558612,
    0.6936177005172217,
    0.2348267744557627,
    0.7449277976923311,
    0.6244509285956391,
    -0.4341114738782885,
    0.8785430442262876,
    0.199272044423766,
    -0.9515059600312596,
    0.2203508762787005,
    0.2146669498274008,
    -0.6385191643609878,
    -0.4310833259390688,
    0.6375425027722121,
    -0.1464175087914336,
    -0.9380871635228862,
    0.313933729874469,
    0.5666974065069942,
    -0.6739221885076542,
    0.4740073135462156,
    0.9843259538440293,
    -0.1696995357819996,
    -0.0480050429060909,
    0.1464175087914331,
    0.9380871635228875,
    -0.3139337298744656,
    -0.7092757549979014,
    0.5264062637139616,
    -0.4688542938854929,
    -0.8665731819284478,
    -0.4813878059756024,
    -0.1315929352982178,
    -0.2347897778700538,
    -0.859434040801313,
    -0.4541441287957579,
    0.5530976940074118,
    -0.7674370265615124,
    -0.3242273140037833,
    0.7711050969896927,
    0.6357041816577034,
    0.03573685519777001,
    0.7103951209379591,
    0.2403570431280519,
    -0.6614886725910596,
    -0.0303820873873566,
    0.4501923293640461,
    -0.8924145871442046,
    -0.5772996158107093,
    -0.1766763414971813,
    -0.7971892020969544,
    0.2414481766969039,
    -0.3416456818373135,
    -0.908284650344625,
]


def starts() -> np.ndarray:
    """Return the 20 starting points, (20, 3)."""
    rings = [(3, 0, 2 / 3, 1 / 13, 3 / 8), (7, 3, 2 / 7, 1 / 29, 1 / 8), (6, 10, 2 / 6, 1 / 7, -2 / 15)]
    angles = [
        (step * (i - first) + phase, tilt)
        for n, first, step, phase, tilt in rings
        for i in range(first + 1, first + n + 1)
    ]
    angles += [(2 / 4 * (i - 17) + 1 / 17, -3 / 10) for i in range(17, 21)]
    a, b = np.pi * np.array(angles).T
    return np.stack([np.cos(a) * np.cos(b), np.sin(a) * np.cos(b), np.sin(b)], axis=1)


def system() -> da.Lagrangian:
    """Return the 60 coordinates with 20 constraints."""
    p, v = ca.SX.sym("p", 3 * COUNT), ca.SX.sym("v", 3 * COUNT)
    points = [p[3 * i : 3 * i + 3] for i in range(COUNT)]
    pairs = [(i, j) for i in range(COUNT) for j in range(i)]
    potential = -sum(ca.log(ca.sumsqr(points[i] - points[j])) / 2 for i, j in pairs)
    return da.Lagrangian(
        p,
        v,
        kinetic=ca.sumsqr(v) / 2,
        potential=potential,
        dissipation=ca.sumsqr(v) / 4,
        constraints={f"sphere {i}": ca.sumsqr(x) - 1 for i, x in enumerate(points)},
    )


PROBLEM = Published(
    name="fekete",
    build=system,
    q=starts().ravel(),
    v=np.zeros(3 * COUNT),
    t_end=1000.0,
    groups={
        "positions": {f"p_{i}": x for i, x in enumerate(POSITIONS)},
        "multipliers": {f"lam[sphere {i}]": 4.75 for i in range(COUNT)},
    },
)

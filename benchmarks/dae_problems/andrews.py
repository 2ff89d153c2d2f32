"""Andrews' squeezing mechanism: seven bodies, three loops, one degree of freedom, driven by a constant moment.

Source: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", sec. VII.7; F. Mazzia, C. Magherini, "Test
Set for Initial Value Problem Solvers", release 2.4, problem "Andrews' squeezing mechanism". The set's reference vector
has 10 correct digits in positions and 6 in multipliers; here it is recomputed in 130-bit arithmetic (extrapolation on
the index-1 form with projection).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da

from .published import Published

m1, m2, m3, m4, m5, m6, m7 = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
i1, i2, i3, i4, i5, i6, i7 = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5
xa, ya, xb, yb, xc, yc = -0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072
c0, l0, mom = 4530.0, 0.07785, 0.033
d, a1, e, ea, rr, ra = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
ss, sa, sb, sc, sd = 0.035, 0.01874, 0.01043, 0.018, 0.02
ta, tb, u, ua, ub, zf, zt, fa = 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421

NAMES = ["beta", "theta", "gamma", "phi", "delta", "omega", "epsilon"]
ROWS = ["x1", "y1", "x2", "y2", "x3", "y3"]
Q0 = [
    -0.0617138900142764496358948458001, 0.0, 0.455279819163070380255912382449, 0.222668390165885884674473185609,
    0.487364979543842550225598953530, -0.222668390165885884674473185609, 1.23054744454982119249735015568,
]  # fmt: skip
POSITIONS = [
    1.5810771195153707097119387e01, -1.5756371058411839469727753e01, 4.0822240119645804858282320e-02,
    -5.3473011634207959377018503e-01, 5.2440996587995406937165580e-01, 5.3473011634207959377018503e-01,
    1.0480807410419378730685155e00,
]  # fmt: skip
VELOCITIES = [
    1.1399203022591060641980968e03, -1.4243792951775400731960264e03, 1.1032911910618593745327311e01,
    1.9293374105032040831627557e01, 5.7356991482950245381768786e-01, -1.9293374105032040831627557e01,
    3.2317914924913087499074839e-01,
]  # fmt: skip
MULTIPLIERS = [
    1.9917534810453862818623955e02, -2.9755309974971763324415728e01, 2.3066543611622151128617365e01,
    3.1452725275771137075384536e01, 2.2642494786394378577712918e01, 1.1617392352611255906801477e01,
]  # fmt: skip


def mass_matrix(q: ca.SX) -> ca.SX:
    """Return M(q), (7, 7)."""
    _, theta, _, phi, _, omega, _ = ca.vertsplit(q)
    M = ca.SX(7, 7)
    M[0, 0] = m1 * ra**2 + m2 * (rr**2 - 2 * a1 * rr * ca.cos(theta) + a1**2) + i1 + i2
    M[0, 1] = M[1, 0] = m2 * (a1**2 - a1 * rr * ca.cos(theta)) + i2
    M[1, 1] = m2 * a1**2 + i2
    M[2, 2] = m3 * (sa**2 + sb**2) + i3
    M[3, 3] = m4 * (e - ea) ** 2 + i4
    M[3, 4] = M[4, 3] = m4 * ((e - ea) ** 2 + zt * (e - ea) * ca.sin(phi)) + i4
    M[4, 4] = m4 * (zt**2 + 2 * zt * (e - ea) * ca.sin(phi) + (e - ea) ** 2) + m5 * (ta**2 + tb**2) + i4 + i5
    M[5, 5] = m6 * (zf - fa) ** 2 + i6
    M[5, 6] = M[6, 5] = m6 * ((zf - fa) ** 2 - u * (zf - fa) * ca.sin(omega)) + i6
    M[6, 6] = m6 * ((zf - fa) ** 2 - 2 * u * (zf - fa) * ca.sin(omega) + u**2) + m7 * (ua**2 + ub**2) + i6 + i7
    return M


def loops(q: ca.SX) -> dict[str, ca.SX]:
    """Return the closure of the three loops."""
    beta, theta, gamma, phi, delta, omega, epsilon = ca.vertsplit(q)
    x, y = rr * ca.cos(beta) - d * ca.cos(beta + theta), rr * ca.sin(beta) - d * ca.sin(beta + theta)
    closed = [
        x - ss * ca.sin(gamma) - xb,
        y + ss * ca.cos(gamma) - yb,
        x - e * ca.sin(phi + delta) - zt * ca.cos(delta) - xa,
        y + e * ca.cos(phi + delta) - zt * ca.sin(delta) - ya,
        x - zf * ca.cos(omega + epsilon) - u * ca.sin(epsilon) - xa,
        y - zf * ca.sin(omega + epsilon) + u * ca.cos(epsilon) - ya,
    ]
    return dict(zip(ROWS, closed, strict=True))


def spring(q: ca.SX) -> ca.SX:
    """Return the energy of the spring."""
    gamma = q[2]
    xd, yd = sd * ca.cos(gamma) + sc * ca.sin(gamma) + xb, sd * ca.sin(gamma) - sc * ca.cos(gamma) + yb
    return c0 * (ca.sqrt((xd - xc) ** 2 + (yd - yc) ** 2) - l0) ** 2 / 2


def system(driven: bool = False) -> da.Lagrangian:
    """Return the mechanism; `driven` makes the moment a control, for inverse dynamics."""
    q, v, moment = ca.SX.sym("q", 7), ca.SX.sym("v", 7), ca.SX.sym("moment")
    return da.Lagrangian(
        q,
        v,
        kinetic=v.T @ mass_matrix(q) @ v / 2,
        potential=spring(q),
        forces=ca.vertcat(moment if driven else mom, ca.SX.zeros(6)),
        constraints=loops(q),
        controls=moment if driven else None,
        coordinates=NAMES,
    )


PROBLEM = Published(
    name="andrews",
    build=system,
    q=np.array(Q0),
    v=np.zeros(7),
    t_end=0.03,
    groups={
        "positions": dict(zip(NAMES, POSITIONS, strict=True)),
        "velocities": dict(zip([f"{x}'" for x in NAMES], VELOCITIES, strict=True)),
        "multipliers": dict(zip([f"lam[{x}]" for x in ROWS], MULTIPLIERS, strict=True)),
    },
)

"""Slider-crank with a flexible rod (four elastic modes), the crank turning at constant speed.

Source: B. Simeon, "Modelling a flexible slider crank mechanism by a mixed system of DAEs and PDEs", Math. Comput.
Modelling of Dyn. Syst. 2 (1996) 1-18; F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers", release
2.4, problem "Slider crank" (linear stiffness, no damping; pi truncated to 3.1415927 is part of the problem). Reference
recomputed in 130-bit arithmetic with velocities projected at the start.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da

from .published import Published

M1, M2, M3, L1, L2, J1, J2 = 0.36, 0.151104, 0.075552, 0.15, 0.30, 0.002727, 0.0045339259
YOUNG, WIDTH, HEIGHT, RHO, OMEGA, PI = 0.2e12, 0.008, 0.008, 7870.0, 150.0, 3.1415927
NAMES = ["crank", "rod", "slider", "q1", "q2", "q3", "q4"]
Q0 = [0.0, 0.0, 0.450016933, 0.0, 0.0, 0.103339863e-4, 0.169327969e-4]
V0 = [150.0, -74.9957670, -0.268938672e-5, 0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5]


def constants() -> dict[str, np.ndarray]:
    """Return the matrices of the elastic modes."""
    m, k, b = RHO * WIDTH * HEIGHT * L2, YOUNG * WIDTH * HEIGHT / L2, WIDTH * HEIGHT * L2
    bend = k * PI**4 / 24 * (HEIGHT / L2) ** 2
    mass = m * np.array([[0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 8, 1], [0, 0, 1, 2]])
    stiffness = np.zeros((4, 4))
    stiffness[:2, :2] = np.diag([bend, 16 * bend])
    stiffness[2:, 2:] = k * np.array([[16 / 3, -8 / 3], [-8 / 3, 7 / 3]])
    B = np.zeros((4, 4))
    B[0, 2], B[0, 3], B[1, 3] = -16 / PI**3, 8 / PI**3 - 1 / PI, 0.5 / PI
    B = b * (B - B.T)
    return {
        "M": mass,
        "K": stiffness,
        "B": B,
        "c1": b * np.array([0, 0, 2 / 3, 1 / 6]),
        "c2": b * np.array([2 / PI, 0, 0, 0]),
        "c12": L2 * b * np.array([0, 0, 1 / 3, 1 / 6]),
        "c21": L2 * b * np.array([1 / PI, -0.5 / PI, 0, 0]),
    }


def mass_matrix(x: ca.SX) -> ca.SX:
    """Return M, (7, 7)."""
    k, q = constants(), x[3:]
    angle = x[0] - x[1]
    M = ca.SX(7, 7)
    M[0, 0] = J1 + M2 * L1**2
    M[0, 1] = L1 * L2 * M2 * ca.cos(angle) / 2 + RHO * L1 * (
        ca.sin(angle) * ca.dot(k["c2"], q) + ca.cos(angle) * ca.dot(k["c1"], q)
    )
    M[1, 0] = M[0, 1]
    M[1, 1] = J2 + q.T @ ca.DM(k["M"]) @ q + 2 * RHO * ca.dot(k["c12"], q)
    M[2, 2] = M3
    M[0, 3:] = RHO * L1 * (-ca.sin(angle) * k["c1"] + ca.cos(angle) * k["c2"]).T
    M[1, 3:] = (RHO * k["c21"] + RHO * (ca.DM(k["B"]).T @ q)).T
    M[3:, :2] = M[:2, 3:].T
    M[3:, 3:] = k["M"]
    return M


def system() -> da.Lagrangian:
    """Return seven coordinates with three constraints, the third driving the crank."""
    x, v, t = ca.SX.sym("x", 7), ca.SX.sym("v", 7), ca.SX.sym("t")
    length, q = L2 + x[6], x[3:]
    rows = {
        "pin y": L1 * ca.sin(x[0]) + length * ca.sin(x[1]),
        "pin x": x[2] - L1 * ca.cos(x[0]) - length * ca.cos(x[1]),
        "drive": x[0] - OMEGA * t,
    }
    return da.Lagrangian(
        x,
        v,
        kinetic=v.T @ mass_matrix(x) @ v / 2,
        potential=q.T @ ca.DM(constants()["K"]) @ q / 2,
        constraints=rows,
        time=t,
        coordinates=NAMES,
    )


PROBLEM = Published(
    name="flexible_slider_crank",
    build=system,
    q=np.array(Q0),
    v=np.array(V0),
    t_end=0.1,
    groups={
        "elastic": {
            "q1": 1.89319289970093791326e-04,
            "q2": 2.37575124998665282850e-05,
            "q3": -5.32389677074919975321e-06,
            "q4": -8.36331327880659105232e-06,
        },
        "positions": {"crank": 15.0, "rod": -3.31173498825629927343e-01, "slider": 1.69737332843072138124e-01},
        "multipliers": {
            "lam[pin y]": -6.23293583277180013298e01,
            "lam[pin x]": -1.63792099323677414235e02,
            "lam[drive]": 2.52985794700010181316e01,
        },
    },
)

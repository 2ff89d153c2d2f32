"""Planar slider-crank with spring, damper and a constant force: SUNDIALS' example idaSlCrank_dns.

Source: SUNDIALS, examples/ida/serial/idaSlCrank_dns.c (five printed digits); recomputed to 20 digits.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

import dalembert as da

from .published import Published

A, J1, M2, J2, STIFFNESS, DAMPING, REST, FORCE = 0.5, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0
NAMES = ["q", "x", "p"]


def system() -> da.Lagrangian:
    """Return crank angle q, slider x, rod angle p with two constraints."""
    c, v = ca.SX.sym("c", 3), ca.SX.sym("v", 3)
    q, x, p = ca.vertsplit(c)
    length = ca.sqrt(x**2 - x * (ca.cos(p) + A * ca.cos(q)) + (1 + A**2) / 4 + A * ca.cos(p - q) / 2)
    rate = ca.jtimes(length, c, v)
    return da.Lagrangian(
        c,
        v,
        kinetic=(J1 * v[0] ** 2 + M2 * v[1] ** 2 + J2 * v[2] ** 2) / 2,
        potential=STIFFNESS * (length - REST) ** 2 / 2,
        dissipation=DAMPING * rate**2 / 2,
        forces=ca.vertcat(0, FORCE, -FORCE * ca.sin(p)),
        constraints={"x": x - ca.cos(p) - A * ca.cos(q), "y": -ca.sin(p) - A * ca.sin(q)},
        coordinates=NAMES,
    )


ROD = float(np.arcsin(-A))
PROBLEM = Published(
    name="sundials_slider_crank",
    build=system,
    q=np.array([np.pi / 2, np.cos(ROD), ROD]),
    v=np.zeros(3),
    t_end=10.0,
    groups={
        "positions": dict(
            zip(NAMES, [1.27567584865023941071, 1.02357855897983950360, -0.49881304918249874929], strict=True)
        )
    },
)

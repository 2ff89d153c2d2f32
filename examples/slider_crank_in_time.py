"""A slider-crank in time: let it run, then ask which torque turns it at constant speed."""

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.simulate import integrate

q, v, tau, t = ca.SX.sym("q", 3), ca.SX.sym("v", 3), ca.SX.sym("tau"), ca.SX.sym("t")
crank, rod, slider = ca.vertsplit(q)
mechanism = da.Lagrangian(
    q,
    v,
    kinetic=(0.02 * v[0] ** 2 + 0.01 * v[1] ** 2 + 0.5 * v[2] ** 2) / 2,
    forces=ca.vertcat(tau, 0, 0),
    controls=tau,
    constraints={"x": slider - 0.1 * ca.cos(crank) - 0.3 * ca.cos(rod), "y": 0.1 * ca.sin(crank) + 0.3 * ca.sin(rod)},
    coordinates=["crank", "rod", "slider"],
)

free = integrate(mechanism, (0, 1), [0.0, 0.0, 0.4], [10.0, 0.0, 0.0], rtol=1e-8, atol=1e-8)
print(free)
print(f"loop open by {np.abs(mechanism.constraint(free.y[:3].T)).max():.1e} m at most")

turning = integrate(
    mechanism, (0, 0.2), known={"crank": 10 * np.pi * t}, time=t, q=[0.0, 0.0, 0.4], rtol=1e-8, atol=1e-8
)
print(f"torque for 300 turns a minute: between {turning['tau'].min():.2f} and {turning['tau'].max():.2f} Nm")

"""A slider-crank whose rod has no mass: M is singular, the motion is not.

python examples/massless_rod.py
"""

import casadi as ca
import numpy as np

import dalembert as da

q, v, rod, torque = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("rod"), ca.SX.sym("torque")
turn = q[0] - q[1]  # the rod's angle; crank and rod are 1 m long, the crank has inertia 1 kg m^2
centre = ca.vertcat(ca.cos(q[0]) + ca.cos(turn) / 2, ca.sin(q[0]) + ca.sin(turn) / 2)
system = da.Lagrangian(
    q,
    v,
    kinetic=v[0] ** 2 / 2 + rod / 2 * (ca.sumsqr(ca.jtimes(centre, q, v)) + (v[0] - v[1]) ** 2 / 12),
    forces=ca.vertcat(torque, 0),
    constraints={"slider": ca.sin(q[0]) + ca.sin(turn)},
    parameters={"rod": (rod, 0.0)},
    controls=torque,
    coordinates=("crank", "rod"),
)

angle = 0.6
state = [angle, 2 * angle], [1.0, 2.0]  # equal lengths: the rod's angle is twice the crank's
print("M =", system.mass_matrix(state[0]).tolist())
print(system.solve(*state, u=[1.0]))
print("\nclosed form: crank 1, rod 2 (seed 000, eq. 35)\n")

masses = np.array([0.0, 1e-12, 1e-6, 1e-3, 1.0])
sweep = system.forward(*state, u=[1.0], parameters={"rod": masses})  # one kernel for all masses
for mass, crank, status in zip(masses, sweep["crank"], sweep.status, strict=True):
    print(f"rod {mass:7.0e} kg: crank accelerates by {crank:.12f} rad/s^2, {da.Status(status).message}")

"""The woodpecker toy: it slides down its pole in jerks, held by friction, released by its own swing.

A sleeve with too wide a hole carries a bird on a spring. Tilted, the sleeve sticks; the bird swings back, the sleeve
comes loose and falls, the beak strikes the pole. Every stick, slip and impact is located.
Parameters: Leine, van Campen, Glocker, J. Vibration and Control 9 (2003) 25-78.

python examples/woodpecker.py
"""

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.simulate.contact import Contact, Plane, Sphere

pole_radius, hole, half_height = 0.0025, 0.0031, 0.0058
hinge, centre, beak_x, beak_z = 0.010, 0.015, 0.0201, 0.02

b = da.Builder("woodpecker")
b.body("ring")
b.joint("height", "prismatic", parent="world", child="ring", axis=(0, 0, 1))
b.body("sleeve", mass=0.0003, inertia=(5e-9,) * 3)
b.joint("tilt", "revolute", parent="ring", child="sleeve", axis=(0, -1, 0))
b.body("bird", mass=0.0045, center=(centre, 0, 0), inertia=(7e-7,) * 3)
b.joint("spring", "revolute", parent="sleeve", child="bird", axis=(0, -1, 0), position=(hinge, 0, 0))
toy = b.build()

pole = Plane((1, 0, 0), pole_radius)
contacts = [
    Contact(Sphere("bird", 0.0, (centre - beak_x, 0, beak_z)), pole, friction=0.3, restitution=0.5, name="beak"),
    Contact(Sphere("sleeve", 0.0, (hole, 0, -half_height)), pole, friction=0.3, name="lower edge"),
    Contact(Sphere("sleeve", 0.0, (hole, 0, half_height)), pole, friction=0.3, name="upper edge"),
]
t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
spring = ca.Function("spring", [t, q, v], [ca.vertcat(0, 0, -0.0056 * q[2])])
touching = np.arcsin(pole_radius / np.hypot(hole, half_height)) - np.arctan2(hole, half_height)

run = da.simulate(toy, 0.5, [0.0, touching, -0.25], contacts=contacts, force=spring, method="hybrid")
print(run)
pecks = [event.time for event in run.events if event.contact == "beak" and event.new == "impact"]
print(f"{len(pecks)} pecks; it came down by {-1e3 * run['height'][-1]:.2f} mm")
print(f"energy less work, plus heat: {np.abs(run.energy_residual).max():.1e} J; heat {1e3 * run.heat[-1]:.3f} mJ")

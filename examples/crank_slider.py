"""A crank-slider whose rod has no mass: M cannot be inverted, the motion is unique all the same.

python examples/crank_slider.py
"""

import numpy as np

import dalembert as da

M = np.array([[1.0, 0.0], [0.0, 0.0]])  # the crank has inertia 1, the rod none
A = np.array([[2.0, -1.0]])  # the slider: 2 theta1' - theta2' = 0
K = da.KKT(M, A, names=["slider"], coordinates=["theta1", "theta2"])

print(K.dagger)  # the blocks of the inverse: M+, A+, Lambda+
print()
print(K.solve(force=[1.0, 0.0]))  # a unit torque on the crank
print()
print(K.impact(velocity=[1.0, 0.0]).velocity, "after a plastic impact of the slider")

try:
    da.KKT(M, coordinates=["theta1", "theta2"]).solve([1.0, 0.0])  # without the slider
except da.SolvabilityError as reason:
    print(f"\nwithout the slider: {reason}")

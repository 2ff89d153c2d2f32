"""A rigid table on four legs: unique motion, non-unique leg forces, and three ways to choose them.

python examples/table_on_four_legs.py
"""

import numpy as np

import dalembert as da

legs = {"front left": (-1, 1), "front right": (1, 1), "rear left": (-1, -1), "rear right": (1, -1)}
A = np.array([[1.0, y, -x] for x, y in legs.values()])  # height of each foot over height, roll, pitch
M = np.diag([20.0, 5.0, 5.0])
load = [-196.2, 30.0, 0.0]  # weight, and something heavy at the front

K = da.KKT(M, A, names=list(legs), coordinates=["height", "roll", "pitch"])
print(K.diagnose())

for what, stiffness in {"equal legs": [1, 1, 1, 1], "a soft rear right leg": [1, 1, 1, 0.1]}.items():
    # elastic legs share a load so that the elastic energy is least: weights are compliances
    s = da.KKT(M, A, list(legs), metric=1.0 / np.array(stiffness)).solve(load)
    print(f"\n{what}:", {name: round(float(force), 3) for name, force in zip(legs, s.reactions, strict=True)})

s = K.solve(load)
print("\nevery other answer differs by a multiple of", np.round(s.multiplier_basis[:, 0], 3))

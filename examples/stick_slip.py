"""A block on a belt (Leine et al. 1998): its stick-slip limit cycle, every event located.

python examples/stick_slip.py
"""

import numpy as np

import dalembert as da
from dalembert.friction import Bounded, Hyperbolic
from dalembert.model import Matrices

block = Matrices(
    {"x": 1.0},
    force=lambda q, v, t: -q,
    friction=[Bounded("belt", [1.0], Hyperbolic(1.0), surface=0.2)],
    energy=lambda q, v, t: 0.5 * float(v @ v) + 0.5 * float(q @ q),
)
run = da.simulate(block, duration=40.0, q=[1.0], v=[0.2])
print(run)
starts = [event.time for event in run.events if event.old == "stick"]
print(f"period {np.diff(starts).mean():.5f} s (published 12.00103 s)")
print(f"energy less work of friction: {np.abs(run.energy_residual).max():.1e} J; heat {run.heat[-1]:.3f} J")

"""Draw the moving picture of the landing page: crank-sliders whose rods get lighter and lighter."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dalembert as da

HERE = Path(__file__).parent
MASSES = (4.0, 2.0, 1.0, 0.3)
"""Of the rods behind, kg; the one in front has none."""


def crank_slider(rod: float) -> da.Mechanism:
    """Return a crank of 3 kg, a rod and a slider of 1 kg."""
    b = da.Builder("crank-slider whose rod loses its mass")
    for name, parent, length, mass, at in (("crank", "world", 0.4, 3.0, 0.0), ("rod", "crank", 1.0, rod, 0.4)):
        moment = mass * length**2 / 12
        b.body(name, mass=mass, center=(length / 2 if mass else 0, 0, 0), inertia=(moment / 100, moment, moment))
        b.joint(f"{name} hinge", "revolute", parent, name, axis=(0, -1, 0), position=(at, 0, 0))
    b.body("slider", mass=1.0, inertia=(0.01, 0.01, 0.01))
    b.joint("rail", "prismatic", "world", "slider", axis=(1, 0, 0))
    wrist = da.PointOnLine("rod", "slider", placement=(1.0, 0, 0), axis=(0, 1, 0), name="wrist pin")
    return b.build().constrain(wrist)


def run(rod: float) -> da.Trajectory:
    """Return the motion from one start, three turns of the crank or so."""
    m = crank_slider(rod)
    q = m.assemble([1.2, -1.6, 1.0], hold=["crank hinge"]).q
    return da.simulate(m, 3.0, q, m.project(q, np.array([7.0, 0.0, 0.0]))[1])


if __name__ == "__main__":
    path = run(0.0).animate(HERE / "losing_mass.svg", overlay=[run(mass) for mass in MASSES], rate=20.0, forces=False)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")

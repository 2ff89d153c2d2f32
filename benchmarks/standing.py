"""Go2 dropped on four spherical feet with joint controllers, standing for 10 s: real-time factor, drift, sinking.

    python benchmarks/standing.py [--json FILE]

Steps of 1 and 2 ms by time stepping, compiled; the plain step on a tenth of the run for the ratio. Processor time, one
thread; compilation is not counted (the first run of an installation compiles for about a minute, later ones load it).
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import files
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import dalembert as da
from dalembert.simulate.contact import Contact, Sphere
from dalembert.simulate.contact.geometry import Geometry
from dalembert.simulate.contact.shapes import pairs_of

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")


def robot() -> tuple[Any, Any, Any, Any]:
    """Return Go2, its start, its contacts and its controllers (100 N m / rad, 4 N m s / rad)."""
    path = next(p for p in files("example-robot-data") or () if p.name == "go2.urdf")
    m = da.load(Path(str(path.locate())), base="floating")
    q = m.neutral()
    q[7:], q[2] = np.tile([0.0, 0.8, -1.6], 4), 0.45
    t, x, y = ca.SX.sym("t"), ca.SX.sym("q", m.nq), ca.SX.sym("v", m.nv)
    law = ca.Function("pd", [t, x, y], [ca.vertcat(ca.SX.zeros(6), 100 * (q[7:] - x[7:]) - 4 * y[6:])])
    return m, q, [Contact(Sphere(foot, 0.022), friction=0.8, name=foot) for foot in FEET], law


def measure(duration: float, step: float, compiled: bool) -> dict[str, Any]:
    """Return one row of the table."""
    m, q, contacts, law = robot()
    given = {"contacts": contacts, "torque": law, "step": step, "method": "moreau", "compiled": compiled}
    da.simulate(m, 5 * step, q, **given)
    start = time.process_time()
    run = da.simulate(m, duration, q, **given)
    spent = time.process_time() - start
    g, late = Geometry(m, pairs_of(m, contacts)), np.searchsorted(run.t, 0.8 * duration)
    states = [g.state(run.q[i], run.v[i]) for i in range(late, run.t.size, 50)]
    return {
        "steps": "compiled" if compiled else "plain", "step_ms": 1e3 * step, "duration": duration,
        "real_time_factor": duration / spent, "microseconds_a_step": 1e6 * spent / run.steps,
        "drift": float(np.abs(run.q[late:, :3] - run.q[-1, :3]).max()),
        "sinking": float(max(np.abs(x.gaps).max() for x in states)),
    }  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = [measure(10.0, 1e-3, True), measure(10.0, 2e-3, True), measure(1.0, 1e-3, False)]
    print(
        f"{'steps':9} {'h (ms)':>7} {'run (s)':>8} {'x real time':>12} {'us/step':>9} {'drift (m)':>10} {'gaps (m)':>9}"
    )
    for r in rows:
        print(
            f"{r['steps']:9} {r['step_ms']:7.1f} {r['duration']:8.1f} {r['real_time_factor']:12.1f} "
            f"{r['microseconds_a_step']:9.1f} {r['drift']:10.1e} {r['sinking']:9.1e}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

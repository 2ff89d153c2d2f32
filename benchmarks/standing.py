"""Go2 dropped on four spherical feet with joint controllers, standing for 10 s: real-time factor, drift, sinking.

    python benchmarks/standing.py [--json FILE]

Steps of 1 and 2 ms by time stepping. Processor time, one thread, of a run that is twice as long less that of one: what
a run costs before its first step is left out, and told beside. Compilation is not counted.
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

REPEATS = 3
"""Runs of each length; the quickest counts."""

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


def measure(duration: float, step: float) -> dict[str, Any]:
    """Return one row of the table."""
    m, q, contacts, law = robot()
    given = {"contacts": contacts, "force": law, "step": step, "every": 0.1, "method": "moreau"}
    da.simulate(m, 0.5, q, **given)
    spent, runs = [], []
    for length in (duration, 2 * duration):
        times = []
        for _ in range(REPEATS):
            start = time.process_time()
            runs.append(da.simulate(m, length, q, **given))
            times.append(time.process_time() - start)
        spent.append(min(times))
    run, each = runs[0], (spent[1] - spent[0]) / runs[0].steps
    late = np.searchsorted(run.t, 0.8 * duration)
    return {
        "step_ms": 1e3 * step, "duration": duration, "real_time_factor": step / each, "microseconds_a_step": 1e6 * each,
        "milliseconds_before": 1e3 * (2 * spent[0] - spent[1]),
        "drift": float(np.abs(run.q[late:, :3] - run.q[-1, :3]).max()),
        "law": float(run.samples["contact_residual"].max()),
    }  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = [measure(10.0, 1e-3), measure(10.0, 2e-3)]
    print(f"{'h (ms)':>7} {'x real time':>12} {'us/step':>9} {'before (ms)':>12} {'drift (m)':>10} {'law':>9}")
    for r in rows:
        print(
            f"{r['step_ms']:7.1f} {r['real_time_factor']:12.1f} {r['microseconds_a_step']:9.1f} "
            f"{r['milliseconds_before']:12.1f} {r['drift']:10.1e} {r['law']:9.1e}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

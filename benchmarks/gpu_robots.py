"""Constrained dynamics of robot files on a GPU: samples per second, errors, verdicts.

    python benchmarks/gpu_robots.py FOLDER [--json FILE] [--quick]

FOLDER holds the robot files (those of example-robot-data, by name). The kernels are `compile("forward")` as on a CPU:
accelerations, multipliers and a verdict for each sample. Arrays lie on the device; times are the median of repeated
calls between events. Errors are those of the accelerations against the NumPy twin in double precision on the same
states: |a - a'| / |a'|, median and worst of CHECKED samples.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import dalembert as da

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 22)
CHECKED = 256
REPEATS = 9
ROBOTS: dict[str, tuple[str, type[Any], tuple[str, ...]]] = {
    "Go2": ("go2.urdf", da.Point, FEET),
    "Talos": ("talos_reduced.urdf", da.Weld, ("left_sole_link", "right_sole_link")),
    "G1": ("g1_29dof_rev_1_0.urdf", da.Weld, ("left_ankle_roll_link", "right_ankle_roll_link")),
}
"""Name -> file, constraint, frames that are held; bases float."""
GOALS = {("Go2", "float32"): 3e9, ("Go2", "float64"): 5e8, ("Talos", "float32"): 5e8, ("Talos", "float64"): 1.5e8}


def mechanism_of(folder: Path, name: str) -> da.Mechanism:
    """Return a robot with its feet held, without mimic joints, springs and dampers."""
    file, kind, frames = ROBOTS[name]
    robot = da.load(folder / file, base="floating", allow_unphysical=True).with_passive(False)
    return robot.open_tree().constrain(*[kind(frame) for frame in frames])


def states(mechanism: da.Mechanism, dtype: str) -> list[Any]:
    """Return q, v, tau of as many samples as the largest batch, and t, on the device."""
    rng = np.random.default_rng(0)
    q = mechanism.random(rng, CHECKED)
    v, tau = rng.standard_normal((2, CHECKED, mechanism.nv))
    repeats = SIZES[-1] // CHECKED
    return [cupy.tile(cupy.asarray(x, dtype), (repeats, 1)) for x in (q, v, tau)] + [cupy.zeros(1, dtype)]


def seconds(kernel: Any, inputs: list[Any]) -> float:
    """Return the median time of a call, after a warm-up."""
    out = kernel(*inputs)
    times = []
    for _ in range(REPEATS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        kernel(*inputs, out=out)
        end.record()
        end.synchronize()
        times.append(1e-3 * cupy.cuda.get_elapsed_time(begin, end))
    return statistics.median(times)


def measure(mechanism: da.Mechanism, name: str, dtype: str, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Return all figures of one robot in one precision."""
    kernel, twin = mechanism.compile(backend="cuda", dtype=dtype), mechanism.compile(backend="numpy")
    inputs = states(mechanism, dtype)
    few = [x[:CHECKED] for x in inputs[:3]] + inputs[3:]
    found, _, status = (x.get().astype(float) for x in kernel(*few))
    expected, _, verdict = twin(*[x.get().astype(float) for x in few])
    error = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
    rates = {n: n / seconds(kernel, [x[:n] for x in inputs[:3]] + inputs[3:]) for n in sizes}
    figures = kernel.report()
    rate, goal = max(rates.values()), GOALS.get((name, dtype))
    row = {"robot": name, "dtype": dtype, "operations": figures.traced_operations, "rate": rate, "goal": goal}
    row |= {"median": float(np.median(error)), "worst": float(error.max()), "rates": rates}
    row |= {
        "solved": float(np.mean(status <= da.Status.ILL_CONDITIONED)),
        "verdicts differ": int((status != verdict).sum()),
    }
    return row | {"compile s": figures.compile_seconds, "parts": figures.chunks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder with the robot files")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures here")
    parser.add_argument("--quick", action="store_true", help="the first robot only")
    arguments = parser.parse_args()
    rows = []
    for name in list(ROBOTS)[: 1 if arguments.quick else None]:
        mechanism = mechanism_of(arguments.folder, name)
        for dtype in ("float32", "float64"):
            rows.append(measure(mechanism, name, dtype, SIZES))
            print({key: f"{x:.3g}" if isinstance(x, float) else x for key, x in rows[-1].items()}, flush=True)
    machine = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{machine}, CuPy {cupy.__version__}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()

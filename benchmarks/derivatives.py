"""Forward dynamics with its derivatives beside Pinocchio: agreement on many robots, operations and time on four.

    python benchmarks/derivatives.py [--all] [--json FILE]

Derivatives are d(a, lam)/d(q, v, force) in tangent coordinates. Pinocchio's time is that of `constraintDynamics` and
`computeConstraintDynamicsDerivatives` (of a tree: `computeABADerivatives`), called from Python; ratios are medians of
rounds in which both take turns, on one thread. With `--all` the derivatives of every robot with contacts in
`tests/tree/contacts.py` are compared with Pinocchio's: the largest difference, relative to the largest entry.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from tests.tree.contacts import G1, GO2, ICUB, OTHERS, PANDA, TALOS, Robot
from tests.tree.test_constrained_pinocchio import Oracle, end, states

from dalembert.model.requests import requests
from dalembert.tree.routes.route_report import cost_of

BATCH, SINGLE, ROUNDS = 512, 200, 9

SMALLEST = 1e-6
"""Derivatives below this are compared as they are."""


def peer(robot: Robot, model: pin.Model) -> Callable[..., Any]:
    """Return Pinocchio's forward dynamics with derivatives as a function of q, v, tau."""
    if not robot.frames:
        data = model.createData()
        return lambda q, v, tau: pin.computeABADerivatives(model, data, q, v, tau)
    oracle = Oracle(model, robot.rows, [[end(model, frame)] for frame in robot.frames])
    settings = pin.ProximalSettings(1e-12, 0.0, 1)

    def call(q: Any, v: Any, tau: Any) -> Any:
        pin.constraintDynamics(model, oracle.data, q, v, tau, oracle.contacts, oracle.found, settings)
        return pin.computeConstraintDynamicsDerivatives(model, oracle.data, oracle.contacts, oracle.found, settings)

    return call


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def measure(name: str, robot: Robot) -> dict[str, Any]:
    """Return operations, compile time and the times of one robot."""
    mechanism, model = robot.in_contact(), robot.pinocchio()
    request = requests()["forward_derivatives"]
    operations = cost_of(request.trace(mechanism, **request.options)).operations
    start = time.perf_counter()
    kernel = mechanism.compile("forward_derivatives", threads=1)
    compiling = time.perf_counter() - start
    other, rng = peer(robot, model), np.random.default_rng(0)
    q = mechanism.random(rng, BATCH)
    v, tau = rng.standard_normal((2, BATCH, mechanism.nv))
    spent: list[tuple[float, float, float]] = []
    for _ in range(ROUNDS):
        theirs = seconds(lambda: other(q[0], v[0], tau[0]), SINGLE)
        single = seconds(lambda: kernel(q[0], v[0], tau[0]), SINGLE)
        spent.append((theirs, single, seconds(lambda: kernel(q, v, tau), 2) / BATCH))
    theirs, single, batch = np.median(spent, axis=0)
    ratios = np.median([(a / b, a / c) for a, b, c in spent], axis=0)
    return {
        "robot": name, "operations": operations, "compile_s": compiling, "pinocchio_us": 1e6 * theirs,
        "single_us": 1e6 * single, "batch_us": 1e6 * batch, "single_ratio": ratios[0], "batch_ratio": ratios[1],
    }  # fmt: skip


def agreement(robot: Robot) -> float:
    """Return the largest difference of d a/d(q, v, force) from Pinocchio's at two states, relative to the largest."""
    mechanism, model = robot.in_contact(), robot.pinocchio()
    request = requests()["forward_derivatives"]
    function = request.trace(mechanism, **request.options)
    worst = 0.0
    for q, v, tau in states(robot, mechanism, model, 2):
        found = dict(zip(function.name_out(), function(q, v, tau, 0.0), strict=True))
        other = peer(robot, model)  # its arrays live as long as it does
        blocks = other(q, v, tau)
        for word, block in zip(("q", "v", "force"), blocks[:3], strict=True):
            expected = np.array(block)
            size = max(np.abs(expected).max(), SMALLEST)  # rows that take all freedom leave zeros of rounding
            off = np.abs(np.array(found[f"dacceleration_d{word}"]) - expected).max() / size
            worst = max(worst, float(off)) if np.isfinite(off) else float("nan")
    return worst


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    free = Robot(GO2.file, GO2.base, (), 3)
    table = (("Go2, flying", free), ("Go2, four feet", GO2), ("Panda, welded hand", PANDA), ("Talos, two soles", TALOS))
    rows = []
    words = ("operations", "compile s", "pin us", "single", "batch", "x single", "x batch")
    print(" " * 20, *(f"{word:>{width}}" for word, width in zip(words, (10, 9, 8, 8, 8, 9, 8), strict=True)))
    for name, robot in table:
        row = measure(name, robot)
        rows.append(row)
        print(
            f"{name:20} {row['operations']:10} {row['compile_s']:9.1f} {row['pinocchio_us']:8.1f} "
            f"{row['single_us']:8.1f} {row['batch_us']:8.2f} {row['single_ratio']:9.2f} {row['batch_ratio']:8.1f}"
        )
    if options.all:
        for robot in (GO2, TALOS, G1, PANDA, ICUB, *OTHERS):
            if Path(robot.path).exists():
                off = agreement(robot)
                rows.append({"robot": robot.file, "difference": off})
                print(f"{robot.file:70} {off:.1e}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

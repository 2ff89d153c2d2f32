"""Joint forces beside forward dynamics alone: operations and time of the kernels, flying and standing robots.

    python benchmarks/joint_forces.py [--json FILE]

Operations are those of the straight-line code. Times are medians of batches of 1024 states on one thread, as ratios of
kernels measured in turn. "moving" leaves out the welds (rotors, sensors and covers that a file bolts to a link); "all"
has every joint.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.model.requests import requests
from dalembert.tree.routes.route_report import cost_of

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.tree.contacts import GO2, TALOS

STATES, ROUNDS = 1024, 15


def measure(name: str, mechanism: Any) -> list[dict[str, Any]]:
    """Return a row per choice of joints."""
    rng = np.random.default_rng(0)
    q = mechanism.random(rng, STATES)
    v, tau = rng.standard_normal((2, STATES, mechanism.nv))
    t = np.zeros((STATES, 1))
    kernels = {"forward": mechanism.compile("forward", threads=1)}
    kernels |= {word: mechanism.compile("joint_forces", threads=1, joints=joints) for word, joints in CHOICES.items()}
    spent: dict[str, list[float]] = {word: [] for word in kernels}
    for _ in range(ROUNDS):
        for word, kernel in kernels.items():
            start = time.perf_counter()
            kernel(q, v, tau, t)
            spent[word].append(time.perf_counter() - start)
    times = {word: float(np.median(values)) for word, values in spent.items()}
    counts = {word: operations(mechanism, word) for word in kernels}
    return [
        {
            "robot": name, "joints": word, "operations": counts[word], "forward": counts["forward"],
            "operations_ratio": counts[word] / counts["forward"], "time_ratio": times[word] / times["forward"],
            "microseconds_a_state": 1e6 * times[word] / STATES,
        }
        for word in CHOICES
    ]  # fmt: skip


CHOICES = {"moving": "moving", "all": None}


def operations(mechanism: Any, word: str) -> int:
    """Return the operations of a kernel's straight-line code."""
    request = requests()["forward" if word == "forward" else "joint_forces"]
    options = {} if word == "forward" else {"joints": CHOICES[word]}
    return cost_of(request.trace(mechanism, **{**request.options, **options})).operations


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    for name, robot in (("Go2", GO2), ("Talos", TALOS)):
        rows += measure(f"{name}, flying", robot.tree()) + measure(f"{name}, standing", robot.in_contact())
    print(f"{'':16} {'joints':8} {'operations':>10} {'forward':>8} {'ratio':>6} {'time':>6} {'us a state':>10}")
    for row in rows:
        print(
            f"{row['robot']:16} {row['joints']:8} {row['operations']:10} {row['forward']:8} "
            f"{row['operations_ratio']:6.2f} {row['time_ratio']:6.2f} {row['microseconds_a_state']:10.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

"""Large mechanisms: time per body from ten to a hundred thousand, side by side with Pinocchio.

    python benchmarks/large.py [--json FILE] [--plot FILE] [--largest N]
    python benchmarks/large.py --parallel [--json FILE]        (`large_parallel.py`; under a minute)

Chains of hinges, open and with the last link welded to where it is (m = 6), through `mechanism.compile("forward")`: up
to a few hundred bodies that is straight-line code, beyond it loops. Pinocchio: `aba`, and `constraintDynamics` on one
6-D contact. Its data hold several tensors of nv^3 reals, so it is asked for as many bodies as fit half of the memory
that `--pinocchio-gib` allows. Trees, ladders and nets show that it is not the chain: a ladder whose loops close near
by, the same with all loops closing at the ground (`rails`), a net of ropes. Times are of the processor (`thread_time`),
best of several runs: other users of the machine do not count.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import large_models as models
import large_parallel

CHAINS = (10, 30, 100, 300, 1000, 10_000, 100_000)
OTHERS = {
    "tree": (1000, 100_000),
    "ladder": (300, 3000, 99_999),
    "rails": (300, 3000, 30_000),
    "net": (5, 10, 20, 40),
}
TENSORS = 4
"""Arrays of nv^3 reals in Pinocchio's data, about."""


def best(action: Callable[[], Any], seconds: float = 0.4) -> float:
    """Return the least processor time of a call; the clock is read once in two milliseconds of calls."""
    action()
    begin, count = time.thread_time(), 0
    while time.thread_time() - begin < 2e-3:
        action()
        count += 1
    found, spent = np.inf, 0.0
    while spent < seconds:
        begin = time.thread_time()
        for _ in range(count):
            action()
        took = time.thread_time() - begin
        found, spent = min(found, took / count), spent + took
    return float(found)


def in_pinocchio(n: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the chain of `large_models` in Pinocchio: open and held."""
    model, last = pin.Model(), 0
    kinds = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
    inertia = pin.Inertia(1.0, np.array([0.0, 0.0, -0.5]), np.diag([0.1, 0.12, 0.05]))
    for i in range(n):
        place = pin.SE3(np.eye(3), np.array([0.0, 0.0, -1.0 if i else 0.0]))
        last = model.addJoint(last, kinds[i % 3](), place, f"j{i}")
        model.appendBodyToJoint(last, inertia, pin.SE3.Identity())
    data = model.createData()
    contacts = pin.StdVec_RigidConstraintModel()
    contacts.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, model, last, pin.LOCAL_WORLD_ALIGNED))
    found = pin.StdVec_RigidConstraintData()
    found.append(contacts[0].createData())
    pin.initConstraintDynamics(model, data, contacts, found)
    settings = pin.ProximalSettings(1e-12, 0.0, 1)

    def held(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return pin.constraintDynamics(model, data, q, v, tau, contacts, found, settings)

    return lambda q, v, tau: pin.aba(model, data, q, v, tau), held


def chain_row(n: int, gib: float) -> dict[str, Any]:
    """Return the figures of chains of n bodies."""
    row: dict[str, Any] = {"bodies": n}
    held = models.chain(n)
    free = held.open_tree()
    q, v, tau = models.state(free)
    for word, mechanism in (("open", free), ("held", held)):
        begin = time.perf_counter()
        kernel = mechanism.compile("forward")
        row[f"{word}_ready"], row[f"{word}_by"] = time.perf_counter() - begin, kernel.backend
        row[word] = best(lambda kernel=kernel: kernel(q, v, tau, np.zeros(1))) / n
    needed = 8 * TENSORS * n**3 / 2**30
    if needed <= gib / 2:
        aba, constrained = in_pinocchio(n)
        # at rest: where the held link moves, its rows and Pinocchio's contact differ by w x v, one being of a point
        a = constrained(q, 0 * v, tau)
        mine = held.compile("forward")(q, 0 * v, tau, np.zeros(1))[0]
        row["difference"] = float(np.abs(a - mine).max() / np.abs(a).max())
        row["pinocchio_open"], row["pinocchio_held"] = (best(lambda f=f: f(q, v, tau)) / n for f in (aba, constrained))
    else:
        row["pinocchio_needs_gib"] = needed
    return row


def other_row(shape: str, n: int) -> dict[str, Any]:
    """Return the figures of one mechanism of another shape."""
    begin = time.thread_time()
    mechanism = getattr(models, shape)(n)
    built = time.thread_time() - begin
    q, v, tau = models.state(mechanism, 0.0 if mechanism.names else 1.0)
    kernel = mechanism.compile("forward", backend="looped")
    arguments = (q, 0 * v if mechanism.names else v, tau, np.zeros(1))
    bodies = len(mechanism.bodies)
    report = kernel.report()
    status = int(kernel(*arguments)[2][0])
    return {
        "shape": shape, "bodies": bodies, "rows": len(mechanism.names), "front": report.widest_front, "status": status,
        "per_body": best(lambda: kernel(*arguments)) / bodies, "memory": report.memory_bytes, "build": built / bodies,
    }  # fmt: skip


CHAIN_HEAD = "chain, ns a body      open  by      Pinocchio  ratio |   m = 6  by       Pinocchio  ratio  difference"
OTHER_HEAD = "\nshape      bodies    rows  front  status  ns a body  bytes a body  build, us a body"


def chain_line(row: dict[str, Any]) -> str:
    """Return a line of the first table."""
    line = f"{row['bodies']:>12}"
    for word in ("open", "held"):
        line += f"{1e9 * row[word]:14.0f}  {row[word + '_by']:7}"
        peer = row.get(f"pinocchio_{word}")
        line += f"{1e9 * peer:9.0f} {peer / row[word]:6.1f}  " if peer else f"{'-':>9} {'-':>6}  "
    needs = row.get("pinocchio_needs_gib")
    return line + (f"needs {needs:.3g} GiB" if needs else f"{row['difference']:.1e}")


def other_line(row: dict[str, Any]) -> str:
    """Return a line of the second table."""
    return (
        f"{row['shape']:8}{row['bodies']:>9}{row['rows']:>8}{row['front']:>7}{row['status']:>8}"
        f"{1e9 * row['per_body']:>11.0f}{row['memory'] / row['bodies']:>14.0f}{1e6 * row['build']:>18.0f}"
    )


def exponent(rows: list[dict[str, Any]], word: str, largest: int = 10_000) -> float:
    """Return the exponent in N of the time of a call, fitted to chains of up to `largest` bodies."""
    points = [(np.log(row["bodies"]), np.log(row["bodies"] * row[word])) for row in rows if row["bodies"] <= largest]
    return float(np.polyfit(*np.transpose(points), 1)[0])


def flatness(rows: list[dict[str, Any]], word: str) -> float:
    """Return the longest over the shortest time per body of chains of 100, 1,000, ... bodies."""
    times = [row[word] for row in rows if row["bodies"] >= 100 and np.log10(row["bodies"]) % 1 == 0]
    return max(times) / min(times)


def plot(chains: list[dict[str, Any]], others: list[dict[str, Any]], file: Path) -> None:
    """Draw time per body over the number of bodies."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9.0, 4.6), layout="constrained")
    lines = {
        "held": ("chain, m = 6", "C0", "o-"),
        "pinocchio_held": ("Pinocchio, chain, m = 6", "C0", "o:"),
        "open": ("open chain", "C1", "s-"),
        "pinocchio_open": ("Pinocchio, open chain", "C1", "s:"),
    }
    for word, (label, color, style) in lines.items():
        points = [(row["bodies"], 1e9 * row[word]) for row in chains if word in row]
        axes.loglog(*zip(*points, strict=True), style, color=color, label=label, markersize=4)
    for k, shape in enumerate(OTHERS):
        points = [(row["bodies"], 1e9 * row["per_body"]) for row in others if row["shape"] == shape]
        if points:
            axes.loglog(*zip(*points, strict=True), "^-", color=f"C{2 + k}", label=shape, markersize=4, linewidth=1)
    axes.set(xlabel="bodies", ylabel="processor time per body, ns", title="Forward dynamics of large mechanisms")
    axes.grid(True, which="major", alpha=0.3)
    figure.legend(fontsize=8, loc="outside right upper")
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--plot", type=Path, help="draw them to this file")
    parser.add_argument("--largest", type=int, default=100_000, help="no mechanism with more bodies")
    parser.add_argument("--pinocchio-gib", type=float, default=8.0, help="memory that Pinocchio may need twice of")
    parser.add_argument("--parallel", action="store_true", help="only: one state on two threads, against one")
    arguments = parser.parse_args()
    if arguments.parallel:
        found = large_parallel.measured()
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1))
        return
    chains: list[dict[str, Any]] = []
    print(CHAIN_HEAD)
    for n in (n for n in CHAINS if n <= arguments.largest):
        chains.append(chain_row(n, arguments.pinocchio_gib))
        print(chain_line(chains[-1]), flush=True)
    for word in ("open", "held"):
        fit, ratio = exponent(chains, word), flatness(chains, word)
        print(f"{word}: exponent in N up to 10^4 {fit:.3f}; per body from 100 on, decade to decade, within {ratio:.2f}")
    others: list[dict[str, Any]] = []
    print(OTHER_HEAD)
    for shape, n in ((shape, n) for shape, sizes in OTHERS.items() for n in sizes if n <= arguments.largest):
        others.append(other_row(shape, n))
        print(other_line(others[-1]), flush=True)
    versions = {"pinocchio": pin.__version__, "python": sys.version.split()[0]}
    if arguments.json:
        arguments.json.write_text(json.dumps({"versions": versions, "chains": chains, "others": others}, indent=1))
    if arguments.plot:
        plot(chains, others, arguments.plot)


if __name__ == "__main__":
    main()

"""Forward dynamics with its derivatives beside Pinocchio: agreement on many robots, operations and time on four.

    python benchmarks/derivatives.py [--json FILE]      time on one thread, beside Pinocchio
    python benchmarks/derivatives.py --agree [NAME]     agreement with Pinocchio on all robots, or on those of a name
    python benchmarks/derivatives.py --gpu              samples per second on a GPU (extra `gpu` or `gpu13`)

Derivatives are d(a, lam)/d(q, v, force) in tangent coordinates. Pinocchio's time is that of `constraintDynamics` and
`computeConstraintDynamicsDerivatives` (of a tree: `computeABADerivatives`), called from Python; ratios are medians of
rounds in which both take turns, on one thread. A batch has 256 samples and arrays for its outputs, as Pinocchio has its
`Data`: with new arrays at every call the system clears a humanoid's 12 MB each time, which takes as long as half of the
computation. Compile time is processor time, with nothing in the cache.

Agreement is with `computeConstraintDynamicsDerivatives`, `computeImpulseDynamicsDerivatives`, `computeABADerivatives`,
`computeRNEADerivatives` and `computeJointTorqueRegressor` of every robot with contacts in `tests/tree/contacts.py`, and
of Cassie's tree: the largest difference, relative to the largest entry of a matrix.

iCub's mass matrix has a condition number of 1e9: there `computeABADerivatives` is off by 1.4e-8 from differences of 50
digits, this one by 3e-12, so that 1e-8 is no measure of agreement for it.

On the GPU inputs are there already; times are the median of repeated launches, errors those of the first samples
against the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import dalembert as da
from dalembert.kernel import Kernel
from dalembert.kernel.program.columns import written_out
from dalembert.model.requests import requests

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.tree.contacts import G1, GO2, ICUB, OTHERS, PANDA, TALOS, Robot
from tests.tree.robots import ROBOTS
from tests.tree.test_constrained_pinocchio import Oracle, end, states

BATCH, SINGLE, ROUNDS = 256, 200, 15

CASSIE = Robot("cassie_description/robots/cassie_v2.sdf", "floating", (), 3)

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
    """Return the time of one call, after one that brings code and data back into the caches."""
    call()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def measure(name: str, robot: Robot) -> dict[str, Any]:
    """Return operations, compile time and the times of one robot."""
    mechanism, model = robot.in_contact(), robot.pinocchio()
    request = requests()["forward_derivatives"]
    before, os.environ["DALEMBERT_CACHE"] = os.environ.get("DALEMBERT_CACHE", ""), "off"
    start = time.process_time()
    kernel = Kernel(request.trace(mechanism, **request.options), threads=1)
    kernel.spare = (np.zeros(1),)
    compiling = time.process_time() - start
    os.environ["DALEMBERT_CACHE"] = before
    other, rng = peer(robot, model), np.random.default_rng(0)
    q = mechanism.random(rng, BATCH)
    v, tau = rng.standard_normal((2, BATCH, mechanism.nv))
    out = kernel(q, v, tau)
    spent: list[tuple[float, float, float]] = []
    for _ in range(ROUNDS):
        theirs = seconds(lambda: other(q[0], v[0], tau[0]), SINGLE)
        single = seconds(lambda: kernel(q[0], v[0], tau[0]), SINGLE)
        spent.append((theirs, single, seconds(lambda: kernel(q, v, tau, out=out), 8) / BATCH))
    theirs, single, batch = np.median(spent, axis=0)
    ratios = np.median([(a / b, a / c) for a, b, c in spent], axis=0)
    return {
        "robot": name, "operations": kernel.report().traced_operations, "compile_s": compiling,
        "pinocchio_us": 1e6 * theirs, "single_us": 1e6 * single, "batch_us": 1e6 * batch,
        "single_ratio": ratios[0], "batch_ratio": ratios[1],
    }  # fmt: skip


def called(mechanism: Any, what: str) -> Callable[..., dict[str, Any]]:
    """Return a request as a function of numbers that gives its outputs by name; nothing is compiled."""
    request = requests()[what]
    function = written_out(request.trace(mechanism, **request.options))

    def call(*inputs: Any) -> dict[str, Any]:
        return {name: np.array(x) for name, x in zip(function.name_out(), function.call(list(inputs)), strict=True)}

    return call


def off(pairs: list[tuple[Any, Any]]) -> float:
    """Return the largest difference of matrices from expected ones, relative to the largest entry of each."""
    sizes = [np.abs(b).max() for _, b in pairs]
    sizes = [size if size > SMALLEST else 1.0 for size in sizes]  # rows that take all freedom leave zeros of rounding
    return max(float(np.abs(a - b).max() / size) for (a, b), size in zip(pairs, sizes, strict=True))


def agreement(robot: Robot) -> dict[str, float]:
    """Return the differences from Pinocchio's derivatives, by algorithm, at two states."""
    mechanism, model, tree = robot.in_contact(), robot.pinocchio(), robot.tree()
    forward, inverse = called(tree, "forward_derivatives"), called(tree, "inverse_derivatives")
    held, struck = (called(mechanism, f"{word}_derivatives") for word in ("forward", "impact"))
    result: dict[str, list[float]] = {"constraint": [], "impulse": [], "ABA": [], "RNEA": []}
    for q, v, tau in states(robot, mechanism, model, 2):
        found, other = held(q, v, tau, 0.0), peer(robot, model)  # its arrays live as long as it does
        blocks = other(q, v, tau)
        result["constraint"].append(
            off([(found[f"dacceleration_d{w}"], np.array(x)) for w, x in zip(WORDS, blocks[:3], strict=True)])
        )
        oracle = Oracle(model, robot.rows, [[end(model, frame)] for frame in robot.frames])
        settings, found = pin.ProximalSettings(1e-14, 0.0, 1), struck(q, v, np.zeros(len(mechanism.names)), 0.0)
        pin.impulseDynamics(model, oracle.data, q, v, oracle.contacts, oracle.found, 0.0, settings)
        pin.computeImpulseDynamicsDerivatives(model, oracle.data, oracle.contacts, oracle.found, 0.0, settings)
        after = np.eye(tree.nv) + oracle.data.ddq_dv
        result["impulse"].append(off([(found["dvelocity_dq"], oracle.data.ddq_dq), (found["dvelocity_dv"], after)]))
        result |= {k: [*result[k], x] for k, x in _of_tree(model, forward, inverse, q, v, tau).items()}
    return {name: max(values) for name, values in result.items()}


WORDS = ("q", "v", "force")


def _of_tree(
    model: pin.Model, forward: Any, inverse: Any, q: Any, v: Any, tau: Any, order: Any = slice(None)
) -> dict[str, float]:
    """Return the differences of open trees; `order` are Pinocchio's velocities in that of the tree."""
    data, found, needed = model.createData(), forward(q, v, tau, 0.0), inverse(q, v, tau, 0.0)
    there = np.argsort(np.arange(len(v))[order])
    shift = len(q) - len(v)
    q = np.concatenate([q[:shift], q[shift:][there]])
    v, tau = v[there], tau[there]
    blocks = [np.array(x)[order][:, order] for x in pin.computeABADerivatives(model, data, q, v, tau)]
    aba = off([(found[f"dacceleration_d{w}"], x) for w, x in zip(WORDS, blocks, strict=True)])
    blocks = [np.array(x)[order][:, order] for x in pin.computeRNEADerivatives(model, data, q, v, tau)]
    return {"ABA": aba, "RNEA": off([(needed[f"dtau_d{w}"], x) for w, x in zip("qva", blocks, strict=True)])}


def regressor_off(tree: Any, model: pin.Model, q: Any, v: Any, a: Any) -> float:
    """Return the difference from `computeJointTorqueRegressor`: columns of the first body behind every joint."""
    found = called(tree, "regressor")(q, v, a)["regressor"]
    expected = pin.computeJointTorqueRegressor(model, model.createData(), q, v, a)
    joints = [i for i, joint in enumerate(tree.joints) if joint.kind != "fixed"]
    pairs = [found[:, 10 * i : 10 * i + 10] for i in joints]
    return float(np.abs(np.hstack(pairs) - expected).max() / np.abs(expected).max())


def cassie() -> tuple[Any, pin.Model, Any]:
    """Return Cassie's open tree, the same for Pinocchio, which reads no loops, through its URDF, and the velocities."""
    tree = da.load(str(ROBOTS / "cassie_description/robots/cassie_v2.sdf"), base="floating").open_tree()
    tree = tree.with_passive(False)
    model = pin.buildModelFromXML(tree.to_urdf(), pin.JointModelFreeFlyer())
    model.gravity.linear = np.array(tree.gravity)
    places = {name: model.idx_vs[i] for i, name in enumerate(model.names) if i > 1}  # branches in alphabetic order
    hinges = [joint.name for joint in tree.joints if joint.kind == "revolute"]
    return tree, model, np.array([*range(6), *(places[name] for name in hinges)])


def agree(part: str) -> list[dict[str, Any]]:
    """Print and return the agreement of all robots whose file has `part` in its name."""
    rows = []
    print(f"{'':58}", *(f"{word:>10}" for word in ("constraint", "impulse", "ABA", "RNEA", "regressor")))
    words = ("constraint", "impulse", "ABA", "RNEA", "regressor")
    for robot in (GO2, TALOS, G1, PANDA, CASSIE, ICUB, *OTHERS):
        if part not in robot.file:
            continue
        if not Path(robot.path).exists():
            print(f"{robot.file:58}", "not among the installed robots", flush=True)
            continue
        tree, model, order = cassie() if robot is CASSIE else (robot.tree(), robot.pinocchio(), slice(None))
        rng = np.random.default_rng(0)
        state = tree.random(rng), *rng.standard_normal((2, tree.nv))
        if robot.frames:
            found = agreement(robot)
        else:
            found = _of_tree(
                model, called(tree, "forward_derivatives"), called(tree, "inverse_derivatives"), *state, order
            )
        if robot.frames:
            found["regressor"] = regressor_off(tree, model, *state)
        rows.append({"robot": robot.file, **found})
        shown = (f"{found[w]:10.1e}" if w in found else f"{'-':>10}" for w in words)
        print(f"{robot.file:58}", *shown, flush=True)
    return rows


def on_gpu() -> list[dict[str, Any]]:
    """Print and return samples per second of the derivatives on a GPU."""
    import cupy

    rows = []
    for name, robot in (("Go2, four feet", GO2), ("Talos, two soles", TALOS)):
        mechanism = robot.in_contact()
        rng = np.random.default_rng(0)
        q = mechanism.random(rng, GPU_SIZES[-1])
        v, tau = rng.standard_normal((2, GPU_SIZES[-1], mechanism.nv))
        expected = mechanism.compile("forward_derivatives", threads=8)(
            q[:GPU_CHECKED], v[:GPU_CHECKED], tau[:GPU_CHECKED]
        )
        for dtype in ("float32", "float64"):
            start = time.perf_counter()
            kernel = mechanism.compile("forward_derivatives", backend="cuda", dtype=dtype)
            made = time.perf_counter() - start
            for size in GPU_SIZES:
                given = [cupy.asarray(x[:size], dtype=dtype) for x in (q, v, tau)] + [cupy.zeros((size, 1), dtype)]
                answer = kernel.call(*given).outputs
                times = []
                for _ in range(ROUNDS):
                    kernel.call(*given)
                    times.append(kernel.engine.elapsed() or 0.0)
                found = [cupy.asnumpy(x[:GPU_CHECKED]) for x in answer]
                error = max(
                    float(np.median(np.abs(a - b).max(axis=tuple(range(1, b.ndim))) / max(np.abs(b).max(), SMALLEST)))
                    for a, b in zip(found[3:], expected[3:], strict=True)
                )
                rate = size / float(np.median(times))
                row = {"robot": name, "dtype": dtype, "samples": size, "samples_per_second": rate, "error": error}
                rows.append({**row, "compile_s": made})
                print(f"{name:20} {dtype} {size:9} samples   {rate:.3g} a second   error {error:.1e}   ({made:.0f} s)")
    return rows


GPU_SIZES, GPU_CHECKED = (1 << 12, 1 << 15, 1 << 18), 200


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agree", nargs="?", const="", metavar="NAME")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.gpu:
        rows = on_gpu()
    elif options.agree is not None:
        rows = agree(options.agree)
    else:
        rows = timed()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def timed() -> list[dict[str, Any]]:
    """Print and return times of four robots beside Pinocchio's."""
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
            f"{row['single_us']:8.1f} {row['batch_us']:8.2f} {row['single_ratio']:9.2f} {row['batch_ratio']:8.1f}",
            flush=True,
        )
    return rows


if __name__ == "__main__":
    main()

"""Overhead of the bridges: a quadruped on four feet, one evaluation and a batch, beside the NumPy call.

    python benchmarks/bridges.py [--robot go2] [--batch 1024]

Guests that are not installed are left out. Times are the best of several, in microseconds, all from one run: compare
them with each other, not with another machine's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.metadata import files
from importlib.util import find_spec
from time import perf_counter

import numpy as np

import dalembert as da

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
ROUNDS = 5


def best(call: Callable[[], object], number: int) -> float:
    """Return the least time of a call in microseconds."""
    call()
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(number):
            call()
        times.append((perf_counter() - start) / number)
    return 1e6 * min(times)


def quadruped() -> da.Mechanism:
    path = next(path for path in files("example-robot-data") or () if path.name == "go2.urdf")
    robot = da.load(str(path.locate()), base="floating")
    return robot.constrain(*(da.Point(foot) for foot in FEET))


def pendulum() -> da.Mechanism:
    b = da.Builder("pendulum")
    b.body("bob", mass=1.0, center=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.joint("hinge", "revolute", "world", "bob", axis=(0, 1, 0))
    return b.build()


def casadi_lines(kernel: da.Kernel, x: list[np.ndarray]) -> dict[str, tuple[float | None, float | None]]:
    lines: dict[str, tuple[float | None, float | None]] = {}
    for label, compiled in (("CasADi, interpreter", False), ("CasADi, machine code", True)):
        function = kernel.to_casadi(compiled=compiled)
        buffer, evaluate = function.buffer()
        arrays = [np.ascontiguousarray(each) for each in x]
        results = [np.zeros(function.numel_out(k)) for k in range(function.n_out())]
        for k, array in enumerate(arrays):
            buffer.set_arg(k, memoryview(array))
        for k, array in enumerate(results):
            buffer.set_res(k, memoryview(array))
        lines[label] = best(evaluate, 500), None
    return lines


def jax_lines(kernel: da.Kernel, x: list[np.ndarray], many: list[np.ndarray]) -> dict[str, tuple[float, float]]:
    import jax

    jax.config.update("jax_enable_x64", True)
    one, all_of = ([jax.numpy.asarray(each) for each in side] for side in (x, many))
    empty = jax.jit(lambda *arrays: [array + 1.0 for array in arrays])
    lines = {}
    calls = {"JAX, an empty jit": empty, "JAX": jax.jit(kernel.to_jax())}
    calls["JAX, pure_callback"] = jax.jit(kernel.to_jax(route="callback"))
    for label, f in calls.items():
        lines[label] = tuple(
            best(lambda f=f, side=side: jax.block_until_ready(f(*side)), number)
            for side, number in ((one, 200), (all_of, 10))
        )
    return lines


def torch_lines(kernel: da.Kernel, x: list[np.ndarray], many: list[np.ndarray]) -> dict[str, tuple[float, float]]:
    import torch

    torch.set_num_threads(1)
    f = kernel.to_torch()
    sides = [[torch.from_numpy(np.ascontiguousarray(each)) for each in side] for side in (x, many)]
    return {"PyTorch": tuple(best(lambda s=s: f(*s), n) for s, n in zip(sides, (500, 10), strict=True))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", choices=("go2", "pendulum"), default="go2")
    parser.add_argument("--batch", type=int, default=1024)
    options = parser.parse_args()
    robot = quadruped() if options.robot == "go2" else pendulum()
    kernel = robot.compile()
    rng = np.random.default_rng(0)
    n = options.batch
    many = [robot.random(rng, n), rng.normal(size=(n, robot.nv)), rng.normal(size=(n, robot.nv)), np.zeros((n, 1))]
    one = [np.ascontiguousarray(each[0]) for each in many]
    lines: dict[str, tuple[float | None, float | None]] = {
        "NumPy": (best(lambda: kernel(*one), 2000), best(lambda: kernel(*many), 10))
    }
    lines |= casadi_lines(kernel, one)
    if find_spec("jax"):
        lines |= jax_lines(kernel, one, many)
    if find_spec("torch"):
        lines |= torch_lines(kernel, one, many)
    print(f"forward dynamics of {robot.name!r}, {len(robot.names)} constraint rows; microseconds\n")
    print(f"{'':<24}{'one':>10}{f'batch of {n}':>16}")
    for label, times in lines.items():
        print(
            f"{label:<24}"
            + "".join(f"{'-' if t is None else f'{t:.1f}':>{w}}" for t, w in zip(times, (10, 16), strict=True))
        )


if __name__ == "__main__":
    main()

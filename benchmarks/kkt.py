"""Speed of `KKT.solve`, certificate included, beside numpy.linalg.solve on the assembled matrix, in one run.

Goals: one solve with n = 18, m = 12 within twice numpy.linalg.solve plus 30 us; a batch of 10^4 at least 20 times
faster per sample than a Python loop of single solves.

Operations of one regular solve (route schur), multiplications and additions:
n^3/3 + n^2 m + n m^2 + m^3/3 (factors) + n^3/3 + m^3/3 (inverse factors) + 5 (n + m)^2 (solve, residual).

    python benchmarks/kkt.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

import dalembert as da
from dalembert.kkt import FACTORISATIONS, block_matrix

REPEATS = 15


def systems(n: int, m: int, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return `count` random well-conditioned systems M, A, force, drift."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((count, n, n))
    M = B @ B.swapaxes(-1, -2) + np.eye(n)
    return M, rng.standard_normal((count, m, n)), rng.standard_normal((count, n)), rng.standard_normal((count, m))


def best(call: Callable[[], object], number: int) -> float:
    """Return the least time of one call, microseconds, over REPEATS rounds of `number` calls."""
    call()
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        for _ in range(number):
            call()
        times.append((perf_counter() - start) / number)
    return 1e6 * min(times)


def operations(n: int, m: int) -> float:
    """Return multiply-adds of one regular solve."""
    return 2 * n**3 / 3 + n**2 * m + n * m**2 + 2 * m**3 / 3 + 5 * (n + m) ** 2


def single(n: int, m: int) -> dict[str, float]:
    """Time one system: with construction, with the factors at hand, and NumPy's plain solve."""
    M, A, f, d = (x[0] for x in systems(n, m, 1))
    K, b = block_matrix(M, A), np.concatenate([f, -d])
    ready = da.KKT(M, A)
    return {
        "numpy": best(lambda: np.linalg.solve(K, b), 500),
        "whole": best(lambda: da.KKT(M, A).solve(f, d), 300),
        "again": best(lambda: ready.solve(f, d), 300),
    }


def batch(n: int, m: int, count: int) -> dict[str, float]:
    """Time a batch against a loop of single solves, microseconds per sample."""
    data = systems(n, m, count)
    some = min(count, 200)
    loop = (
        best(lambda: [da.KKT(M, A).solve(f, d) for M, A, f, d in zip(*(x[:some] for x in data), strict=True)], 1) / some
    )
    whole = best(lambda: da.KKT(data[0], data[1]).solve(data[2], data[3]), 1) / count
    K, b = block_matrix(data[0], data[1]), np.concatenate([data[2], -data[3]], axis=1)[..., None]
    return {"loop": loop, "batch": whole, "numpy": best(lambda: np.linalg.solve(K, b), 1) / count}


def routes(n: int, m: int) -> dict[str, float]:
    """Time every route on a regular system (drift zero, equal masses, so that all apply)."""
    rng = np.random.default_rng(1)
    A, f = rng.standard_normal((m, n)), rng.standard_normal(n)
    return {route: best(lambda r=route: da.KKT(np.eye(n), A).solve(f, route=r), 50) for route in FACTORISATIONS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    figures: dict[str, object] = {"machine": platform.machine(), "numpy": np.__version__}
    print(f"{'n':>4} {'m':>4} {'numpy':>8} {'whole':>8} {'again':>8}   whole / (2 numpy + 30 us)")
    for n, m in ((2, 1), (6, 3), (18, 12), (36, 12), (60, 30)):
        t = single(n, m)
        figures[f"single {n} {m}"] = t
        ratio = t["whole"] / (2 * t["numpy"] + 30)
        print(f"{n:4d} {m:4d} {t['numpy']:8.1f} {t['whole']:8.1f} {t['again']:8.1f}   {ratio:.2f}")
    heading = f"{'n':>4} {'m':>4} {'N':>6} {'loop':>8} {'batch':>8} {'numpy':>8}"
    print(f"\n{heading}   loop/batch  numpy/batch  multiply-adds/ns")
    for n, m, count in ((6, 3, 10_000), (18, 12, 10_000), (36, 12, 4_000)):
        t = batch(n, m, count)
        figures[f"batch {n} {m} {count}"] = t
        rate = operations(n, m) / t["batch"] / 1000
        print(
            f"{n:4d} {m:4d} {count:6d} {t['loop']:8.2f} {t['batch']:8.2f} {t['numpy']:8.2f}   "
            f"{t['loop'] / t['batch']:10.1f}  {t['numpy'] / t['batch']:11.1f}  {rate:16.1f}"
        )
    t = routes(18, 12)
    figures["routes 18 12"] = t
    print("\nroutes, n = 18, m = 12 (us):  " + "  ".join(f"{name} {time:.0f}" for name, time in t.items()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

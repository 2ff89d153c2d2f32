"""Accuracy of `KKT.solve` on systems made to be hard, against 50-digit arithmetic.

The family: mass ratios to 1e16, nearly parallel rows (angles to 1e-12), units of rows and coordinates from 1e-8 to
1e8, massless coordinates, and all of these together; n up to 60. The floating-point data are taken as exact and solved
with mpmath. A *silent failure* is an answer whose certificate says ok while its forward error exceeds
100 * 1e-15 * condition. There must be none, for any route.

    python benchmarks/accuracy.py [--systems 60] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import mpmath
import numpy as np

import dalembert as da
from dalembert.kkt import FACTORISATIONS, block_matrix

ALLOWED = 100 * 1e-15
"""Forward error allowed per unit of condition where the certificate says ok."""

SIZES = (2, 3, 4, 6, 9, 12, 18, 30, 60)


@dataclass
class System:
    """One member of the family, with its right sides."""

    kind: str
    M: np.ndarray
    A: np.ndarray
    f: np.ndarray
    c: np.ndarray


def chain(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a matrix that sums relative coordinates along random branches of a tree, as joints do."""
    T = np.eye(n)
    for i in range(1, n):
        T[i] += T[rng.integers(0, i)] * rng.uniform(0.5, 1.5)
    return T


def masses(rng: np.random.Generator, n: int, decades: float) -> np.ndarray:
    """Return masses spread over `decades` powers of ten."""
    return 10.0 ** -rng.uniform(0.0, decades, n)


def mass_ratio(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    return np.diag(masses(rng, n, 16)), rng.standard_normal((m, n))


def coupled_masses(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    T = chain(rng, n)
    return T.T @ np.diag(masses(rng, n, rng.uniform(0, 16))) @ T, rng.standard_normal((m, n))


def parallel_rows(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    T = chain(rng, n)
    A = rng.standard_normal((m, n))
    angle = 10.0 ** -rng.uniform(0.0, 12.0)
    for i in range(1, m, 2):
        A[i] = A[i - 1] * rng.uniform(0.5, 2.0) + angle * A[i]
    return T.T @ np.diag(masses(rng, n, 2)) @ T, A


def units(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    T = chain(rng, n)
    d, e = 10.0 ** rng.uniform(-8, 8, n), 10.0 ** rng.uniform(-8, 8, m)
    M = T.T @ np.diag(masses(rng, n, 2)) @ T
    M = d[:, None] * M * d
    return 0.5 * (M + M.T), e[:, None] * rng.standard_normal((m, n)) * d


def massless(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    mass = masses(rng, n, 3)
    mass[rng.permutation(n)[: rng.integers(0, m + 1)]] = 0.0
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.6)
    return np.diag(mass), A + np.eye(m, n, k=int(rng.integers(0, n - m + 1)))


def everything(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    M, A = massless(rng, n, m) if rng.random() < 0.5 else coupled_masses(rng, n, m)
    if m > 1 and rng.random() < 0.5:
        A[-1] = A[0] + 10.0 ** -rng.uniform(0, 12) * A[-1]
    d, e = 10.0 ** rng.uniform(-4, 4, n), 10.0 ** rng.uniform(-8, 8, m)
    M = d[:, None] * M * d
    return 0.5 * (M + M.T), e[:, None] * A * d


KINDS = {f.__name__: f for f in (mass_ratio, coupled_masses, parallel_rows, units, massless, everything)}


def family(count: int, seed: int = 2) -> list[System]:
    """Return `count` systems of each kind."""
    systems = []
    for number, (kind, make) in enumerate(KINDS.items()):
        rng = np.random.default_rng([seed, number])
        for k in range(count):
            n = SIZES[k % len(SIZES)] if k % 5 else int(rng.integers(2, 20))
            m = int(rng.integers(1, n + 1))
            M, A = make(rng, n, m)
            size = np.sqrt(np.maximum(np.diag(M), np.abs(A).max(axis=0) ** 2))
            f, c = rng.standard_normal(n) * size, rng.standard_normal(m) * np.abs(A).max(axis=1)
            systems.append(System(kind, M, A, f, c))
    return systems


def truth(system: System, digits: int = 50) -> np.ndarray | None:
    """Solve the system as given in `digits` decimal digits (Gauss with partial pivoting); None where it is singular.

    Working precision is raised by the spread of scales, so that the digits asked for are right.
    """
    with mpmath.workdps(digits + 50):
        K = block_matrix(system.M, system.A)
        to = np.frompyfunc(mpmath.mpf, 1, 1)
        B = np.concatenate([to(K), to(np.concatenate([system.f, system.c]))[:, None]], axis=1)
        size = K.shape[0]
        for k in range(size):
            scale = [max(abs(x) for x in row[:size]) or mpmath.mpf(1) for row in B[k:]]
            p = k + max(range(size - k), key=lambda i: abs(B[k + i, k]) / scale[i])
            if B[p, k] == 0:
                return None
            B[[k, p]] = B[[p, k]]
            for i in range(k + 1, size):
                if B[i, k] != 0:
                    B[i, k:] -= (B[i, k] / B[k, k]) * B[k, k:]
        x = np.empty(size, dtype=object)
        for k in range(size - 1, -1, -1):
            x[k] = (B[k, size] - (B[k, k + 1 : size] @ x[k + 1 :] if k + 1 < size else 0)) / B[k, k]
        return x


def forward_error(found: da.Solution, exact: np.ndarray) -> float:
    """Return the larger relative error of the two blocks, in the maximum norm."""
    n = found.acceleration.size
    errors = []
    for computed, true in ((found.acceleration, exact[:n]), (found.multipliers, exact[n:])):
        size = max((abs(x) for x in true), default=0)
        errors.append(
            float(max(abs(mpmath.mpf(a) - b) for a, b in zip(computed, true, strict=True)) / size) if size else 0.0
        )
    return max(errors)


def judge(system: System, exact: np.ndarray | None, route: str) -> tuple[str, float]:
    """Return the verdict's name and the error over what is allowed (above one: a silent failure if certified)."""
    try:
        found = da.KKT(system.M, system.A).solve(system.f, -system.c, route=route)
    except da.SolvabilityError as refused:
        return refused.diagnosis.verdict.name if route == "auto" else "REFUSED", 0.0
    if not found.certificate.ok:
        return "FLAGGED", 0.0
    if exact is None:
        return "WRONG", np.inf
    return "ok", forward_error(found, exact) / (ALLOWED * found.certificate.condition)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", type=int, default=36, help="systems of each kind")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    systems = family(options.systems)
    exact = [truth(system) for system in systems]
    table, silent = [], 0
    print(f"{'route':11} {'kind':15} {'ok':>4} {'flagged':>8} {'refused':>8} {'worst':>9} {'silent':>7}")
    for route in ("auto", *FACTORISATIONS):
        for kind in KINDS:
            judged = [judge(s, x, route) for s, x in zip(systems, exact, strict=True) if s.kind == kind]
            count = Counter(verdict for verdict, _ in judged)
            failures = sum(error > 1.0 for _, error in judged)
            silent += failures
            worst = max(error for _, error in judged)
            refused = len(judged) - count["ok"] - count["FLAGGED"] - count["WRONG"]
            print(
                f"{route:11} {kind:15} {count['ok']:4d} {count['FLAGGED']:8d} {refused:8d} {worst:9.1e} {failures:7d}"
            )
            table.append({"route": route, "kind": kind, "verdicts": count, "worst": worst, "silent": failures})
    print(f"\n{len(systems)} systems, {len(FACTORISATIONS) + 1} routes: {silent} silent failures")
    print("worst: largest forward error, as a part of 100 * 1e-15 * condition, where the certificate says ok")
    if options.json:
        options.json.write_text(json.dumps({"systems": len(systems), "silent": silent, "table": table}, indent=1))
    if silent:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

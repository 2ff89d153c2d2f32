"""Dry friction: optimality on random bounded problems, how often the flowchart differs, cones against Clarabel.

OPENBLAS_NUM_THREADS=1 python benchmarks/friction.py [--samples 100000] [--flowchart 2000] [--repeats 5] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time

import clarabel
import numpy as np
import scipy.sparse as sps

from dalembert.friction import resolve
from dalembert.friction.box_kernel import solve_box
from dalembert.friction.cone_kernel import ASSOCIATED, COULOMB
from dalembert.friction.contact_kernel import solve_contacts
from dalembert.friction.least_kernel import least_norm


def bounded(rng):
    """Return M (diagonal), f, W, limits: redundant contacts, mass ratios to 1e8, zero limits, equal limits."""
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 11))
    W = rng.integers(-2, 3, (n, m)).astype(float)
    if rng.random() < 0.5:
        W = W @ (rng.random((m, m)) < 0.4)
    mass = 10.0 ** rng.uniform(-4.0, 4.0, n)
    f = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
    return mass, f, W, rng.choice([0.0, 1.0, 1.0, 5.0 * rng.random()], m)


def campaign(samples):
    """Return statistics of the optimality conditions of the exact method."""
    rng = np.random.default_rng(2026)
    worst, rounds, redundant, failed, clarabel_apart = 0.0, [], 0, 0, 0.0
    for k in range(samples):
        mass, f, W, limit = bounded(rng)
        G, g = W.T @ (W / mass[:, None]), W.T @ (f / mass)
        x = np.zeros(limit.size)
        _, used, _ = solve_box(G, g, -limit, limit, x)
        redundant += least_norm(W, G, g, -limit, limit, x) > 0
        c, size = G @ x + g, np.abs(G) @ np.abs(x) + np.abs(g) + 1e-300
        d = np.where(np.diag(G) > 0.0, np.diag(G), 1.0)
        missed = d * np.abs(x - np.clip(x - c / d, -limit, limit)) / size
        worst, failed = max(worst, missed.max()), failed + int(missed.max() > 1e-10)
        rounds.append(used)
        if k % max(1, samples // 1000) == 0:
            best = box_by_clarabel(G, g, limit)
            cost = [0.5 * y @ G @ y + g @ y for y in (x, best)]
            clarabel_apart = max(clarabel_apart, (cost[0] - cost[1]) / (np.abs(g) @ limit + np.abs(g).max() + 1e-300))
    return {
        "samples": samples,
        "worst optimality": float(worst),
        "above 1e-10": failed,
        "redundant": int(redundant),
        "rounds, mean": float(np.mean(rounds)),
        "rounds, most": int(max(rounds)),
        "cost above Clarabel's, relative": float(clarabel_apart),
    }


def box_by_clarabel(G, g, limit):
    m = g.size
    A = sps.csc_matrix(np.vstack([np.eye(m), -np.eye(m)]))
    cones = [clarabel.NonnegativeConeT(2 * m)]
    return np.array(solver(G, g, A, np.concatenate([limit, limit]), cones).solve().x)


def solver(G, g, A, b, cones):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    return clarabel.DefaultSolver(G if sps.issparse(G) else sps.csc_matrix(np.triu(G)), g, A, b, cones, settings)


def flowchart_differs(samples):
    """Return how often, and by how much, the flowchart's forces on the system differ from the exact ones."""
    rng = np.random.default_rng(7)
    apart = []
    for _ in range(samples):
        mass, f, W, limit = bounded(rng)
        M, rest, laws = np.diag(mass), np.zeros(limit.size), list(limit)
        exact, chart = (resolve(M, f, W, rest, laws, method).acceleration * mass for method in ("exact", "flowchart"))
        apart.append(np.abs(exact - chart).max() / (np.abs(f).max() + np.abs(W @ limit).max() + 1e-300))
    apart = np.array(apart)
    wrong = apart > 1e-9
    return {
        "samples": samples,
        "differ, percent": float(100.0 * wrong.mean()),
        "difference, median": float(np.median(apart[wrong])) if wrong.any() else 0.0,
        "difference, largest": float(apart.max()),
    }


def coupled(k, rng):
    """Return a fully coupled problem: random rows."""
    n = 3 * k + 2
    H, mass = rng.normal(size=(3 * k, n)), rng.uniform(0.5, 2.0, n)
    return (H / mass) @ H.T, H @ rng.normal(size=n), np.full(k, 0.5)


def stack(k, rng):
    """Return boxes on each other, four points of contact each: sparse and redundant."""
    bodies = max(1, k // 4)
    H = np.zeros((3 * k, 6 * bodies))
    turn = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])
    for c in range(k):
        b, p = c // 4 % bodies, 0.5 * rng.normal(size=3)
        S = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
        block = turn @ np.hstack([np.eye(3), -S])
        H[3 * c : 3 * c + 3, 6 * b : 6 * b + 6] = block
        if b:
            H[3 * c : 3 * c + 3, 6 * b - 6 : 6 * b] = -block
    mass = np.tile([1, 1, 1, 0.1, 0.1, 0.1], bodies)
    v = np.tile([0, 0, -0.1, 0, 0, 0], bodies) + 0.05 * rng.normal(size=6 * bodies)
    return (H / mass) @ H.T, H @ v, np.full(k, 0.5)


def cones(make, k, repeats):
    """Return seconds per solve of both laws and of Clarabel on the associated problem, and residuals."""
    G, g, mu = make(k, np.random.default_rng(k))
    G, g = np.ascontiguousarray(G), np.ascontiguousarray(g)
    first, kind, sliding, s = np.arange(0, 3 * k + 1, 3), np.zeros(k, np.int64), np.zeros(k, np.bool_), np.zeros(3 * k)
    row = {"contacts": k}
    for law, name in ((ASSOCIATED, "associated"), (COULOMB, "Coulomb")):
        best = np.inf
        for _ in range(repeats + 1):
            r = np.zeros(3 * k)
            begin = time.perf_counter()
            residual, _, _ = solve_contacts(G, g, first, mu, law, kind, sliding, s, r, 1e-12, 12, 400)
            best = min(best, time.perf_counter() - begin)
        row[name], row[f"{name} residual"] = best, float(residual)
    A = sps.csc_matrix(-np.diag(np.tile([mu[0], 1.0, 1.0], k)))
    peer, upper = np.inf, sps.csc_matrix(np.triu(G))  # Clarabel is handed its own format
    for _ in range(repeats):
        begin = time.perf_counter()
        solver(upper, g, A, np.zeros(3 * k), [clarabel.SecondOrderConeT(3)] * k).solve()
        peer = min(peer, time.perf_counter() - begin)
    row["Clarabel"] = peer
    row["ratio, associated"], row["ratio, Coulomb"] = peer / row["associated"], peer / row["Coulomb"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--flowchart", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--contacts", type=int, nargs="*", default=[1, 4, 10, 30, 100, 200])
    parser.add_argument("--json")
    options = parser.parse_args()
    found = {"exact": campaign(options.samples), "flowchart": flowchart_differs(options.flowchart)}
    for name in ("exact", "flowchart"):
        print(f"\n{name}")
        for key, value in found[name].items():
            print(f"  {key:34s}{value:12.3g}")
    for make in (coupled, stack):
        rows = [cones(make, k, options.repeats) for k in options.contacts]
        found[make.__name__] = rows
        print(f"\n{make.__name__}: microseconds a solve, best of {options.repeats}")
        print("  contacts  associated     Coulomb    Clarabel  ratio assoc.  ratio Coulomb  residuals")
        for row in rows:
            times = "".join(f"{1e6 * row[key]:12.1f}" for key in ("associated", "Coulomb", "Clarabel"))
            ratios = f"{row['ratio, associated']:14.1f}{row['ratio, Coulomb']:15.1f}"
            print(
                f"  {row['contacts']:8d}{times}{ratios}  {row['associated residual']:.0e} {row['Coulomb residual']:.0e}"
            )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump(found, stream, indent=1)


if __name__ == "__main__":
    main()

"""Dry friction: optimality on random bounded problems, how often the flowchart differs, cones against Clarabel.

OPENBLAS_NUM_THREADS=1 python benchmarks/friction.py [--samples 100000] [--repeats 5] [--contacts 10 100] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time

import clarabel
import numpy as np
import scipy.sparse as sps

from dalembert.friction import resolve
from dalembert.friction.cones.solver import solve_with_rows
from dalembert.friction.cones.sweeps import ASSOCIATED, COULOMB


def bounded(rng):
    """Return M (diagonal), f, W, limits: redundant contacts, mass ratios to 1e8, zero limits, equal limits."""
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 11))
    W = rng.integers(-2, 3, (n, m)).astype(float)
    if rng.random() < 0.5:
        W = W @ (rng.random((m, m)) < 0.4)
    mass = 10.0 ** rng.uniform(-4.0, 4.0, n)
    f = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
    return mass, f, W, rng.choice([0.0, 1.0, 1.0, 5.0 * rng.random()], m)


def conditions(mass, f, W, limit, a, T):
    """Return how far an answer is from motion and laws, relative to the terms, in extended precision."""
    mass, f, W, limit, a, T = (np.asarray(x, np.longdouble) for x in (mass, f, W, limit, a, T))
    load = f + W @ T
    terms = np.abs(f) + np.abs(W) @ np.abs(T)
    motion = np.abs(mass * a - load).max() / (terms.max() + 1e-300)
    xi, size = W.T @ (load / mass), np.abs(W).T @ (terms / mass) + 1e-300
    over = np.max((np.abs(T) - limit) / np.where(limit > 0, limit, 1), initial=0.0)
    inside = np.abs(T) < limit * (1 - 1e-9)
    stick = np.max((np.abs(xi) / size)[inside], initial=0.0)
    against = np.max((xi * np.sign(T) / size)[~inside], initial=0.0)
    return float(max(motion, over, stick, against))


def campaign(samples, every=20):
    """Return statistics of `resolve` on random problems: optimality, the flowchart beside it, Clarabel on some."""
    rng = np.random.default_rng(2026)
    worst, rounds, failed, family = np.zeros(samples), np.zeros(samples), 0, np.zeros(samples, bool)
    apart, ratio, peer, peer_cost, unsolved = np.zeros(samples), np.zeros(samples), [], [], 0
    for k in range(samples):
        mass, f, W, limit = bounded(rng)
        M, rest, laws = np.diag(mass), np.zeros(limit.size), list(limit)
        r = resolve(M, f, W, rest, laws)
        failed += not r.ok
        worst[k], rounds[k] = conditions(mass, f, W, limit, r.acceleration, r.forces), r.certificate.iterations
        family[k], ratio[k] = np.linalg.matrix_rank(W) < limit.size, mass.max() / mass.min()
        chart = resolve(M, f, W, rest, laws, "flowchart")
        size = np.abs(f).max() + np.abs(W @ limit).max() + 1e-300
        apart[k] = np.abs(mass * (r.acceleration - chart.acceleration)).max() / size
        if k % every == 0:
            G, g = W.T @ (W / mass[:, None]), W.T @ (f / mass)
            best, agrees = box_by_clarabel(G, g, limit)
            unsolved += not agrees
            if not agrees:
                continue
            best = np.clip(best, -limit, limit)
            cost = [0.5 * y @ G @ y + g @ y for y in (r.forces, best)]
            peer_cost.append((cost[0] - cost[1]) / (np.abs(g) @ limit + np.abs(g).max() + 1e-300))
            if ratio[k] <= 1e4:  # beyond, Clarabel's own forces have few digits
                peer.append(np.abs(W @ (r.forces - best)).max() / size)
    kinds = {
        "independent directions, masses to 1e2": ~family & (ratio <= 1e2),
        "independent directions, masses to 1e8": ~family & (ratio > 1e2),
        "redundant directions, masses to 1e2": family & (ratio <= 1e2),
        "redundant directions, masses to 1e8": family & (ratio > 1e2),
        "all": np.ones(samples, bool),
    }
    return {
        "exact": {
            "samples": samples,
            "worst of all conditions": float(worst.max()),
            "above 1e-10": int(np.count_nonzero(worst > 1e-10)),
            "not solved": int(failed),
            "redundant directions": int(family.sum()),
            "rounds, mean": float(rounds.mean()),
            "rounds, most": int(rounds.max()),
            "compared with Clarabel": len(peer_cost),
            "given up by Clarabel": unsolved,
            "cost above Clarabel's, relative": float(max(peer_cost)),
            "cost below Clarabel's, relative": float(-min(peer_cost)),
            "forces off Clarabel's, masses to 1e4": float(max(peer)),
        },
        "flowchart": {name: differences(apart[who]) for name, who in kinds.items()},
    }


def differences(apart):
    """Return how often two methods differ, and by how much where they do."""
    wrong = apart > 1e-9
    some = apart[wrong] if wrong.any() else np.zeros(1)
    found = {"samples": apart.size, "differ, percent": 100.0 * float(wrong.mean()) if apart.size else 0.0}
    return found | {
        "median": float(np.median(some)), "90 percent": float(np.quantile(some, 0.9)), "largest": float(some.max())
    }  # fmt: skip


def box_by_clarabel(G, g, limit):
    m = g.size
    A = sps.csc_matrix(np.vstack([np.eye(m), -np.eye(m)]))
    cones = [clarabel.NonnegativeConeT(2 * m)]
    found = solver(G, g, A, np.concatenate([limit, limit]), cones).solve()
    return np.array(found.x), found.status == clarabel.SolverStatus.Solved


def solver(G, g, A, b, cones):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    return clarabel.DefaultSolver(G if sps.issparse(G) else sps.csc_matrix(np.triu(G)), g, A, b, cones, settings)


def coupled(k, rng):
    """Return a fully coupled problem, random rows: rows over the root of M, g, coefficients."""
    n = 3 * k + 2
    H, mass = rng.normal(size=(3 * k, n)), rng.uniform(0.5, 2.0, n)
    return H / np.sqrt(mass), H @ rng.normal(size=n), np.full(k, 0.5)


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
    return H / np.sqrt(mass), H @ v, np.full(k, 0.5)


def cones(make, k, repeats, draws=5):
    """Return medians over some draws of the seconds per solve, best of `repeats` each, and the worst residual."""
    rows = [cones_once(make, k, repeats, seed) for seed in range(draws)]
    found = {"contacts": k, "draws": draws}
    found |= {key: float(np.median([row[key] for row in rows])) for key in ("associated", "Coulomb", *PEERS)}
    found["residual"] = max(row["residual"] for row in rows)
    for law in ("associated", "Coulomb"):
        found |= {f"{law}, {peer}": found[peer] / found[law] for peer in PEERS}
    return found


PEERS = ("Clarabel, reactions", "Clarabel, accelerations")
"""The associated problem in Clarabel: over reactions with the Delassus matrix, or over accelerations with the rows."""


def cones_once(make, k, repeats, seed):
    J, g, mu = make(k, np.random.default_rng((k, seed)))
    J, g = np.ascontiguousarray(J), np.ascontiguousarray(g)
    G, n = J @ J.T, J.shape[1]
    first, kind, sliding, s = np.arange(0, 3 * k + 1, 3), np.zeros(k, np.int64), np.zeros(k, np.bool_), np.zeros(3 * k)
    row = {"residual": 0.0}
    for law, name in ((ASSOCIATED, "associated"), (COULOMB, "Coulomb")):

        def ours(law=law):
            return solve_with_rows(J, G, g, first, mu, law, kind, sliding, s, np.zeros(3 * k), 1e-10, 12, 400)[0]

        row["residual"] = max(row["residual"], float(ours()))
        row[name] = fastest(ours, repeats)
    in_cones, unit = [clarabel.SecondOrderConeT(3)] * k, np.tile([1.0 / mu[0], 1.0, 1.0], k)
    upper, scale = sps.csc_matrix(np.triu(G)), sps.csc_matrix(-np.diag(1.0 / unit))  # Clarabel is handed its own format
    rows, eye = sps.csc_matrix(-unit[:, None] * J), sps.identity(n, format="csc")
    row[PEERS[0]] = fastest(lambda: solver(upper, g, scale, np.zeros(3 * k), in_cones).solve(), repeats)
    row[PEERS[1]] = fastest(lambda: solver(eye, np.zeros(n), rows, unit * g, in_cones).solve(), repeats)
    return row


def fastest(function, repeats):
    """Return the shortest of some run times, seconds."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--contacts", type=int, nargs="*", default=[1, 4, 10, 30, 100, 200])
    parser.add_argument("--json")
    options = parser.parse_args()
    found = campaign(options.samples) if options.samples else {}
    for key, value in found.get("exact", {}).items():
        print(f"  {key:40s}{value:12.3g}")
    for key, row in found.get("flowchart", {}).items():
        print(f"  {key:40s}" + "".join(f"{what} {value:.3g}  " for what, value in row.items()))
    for make in (coupled, stack):
        rows = [cones(make, k, options.repeats) for k in options.contacts]
        found[make.__name__] = rows
        print(
            f"\n{make.__name__}: microseconds a solve, median of draws, best of {options.repeats} each; times as fast"
        )
        print(
            "  contacts  associated     Coulomb Clarabel r. Clarabel a. assoc./r. assoc./a. Coul./r. Coul./a. residual"
        )
        for row in rows:
            times = "".join(f"{1e6 * row[key]:12.1f}" for key in ("associated", "Coulomb", *PEERS))
            ratios = "".join(f"{row[f'{law}, {peer}']:10.1f}" for law in ("associated", "Coulomb") for peer in PEERS)
            print(f"  {row['contacts']:8d}{times}{ratios}  {row['residual']:.0e}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump(found, stream, indent=1)


if __name__ == "__main__":
    main()

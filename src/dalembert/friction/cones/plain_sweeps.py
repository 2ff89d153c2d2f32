# pyright: reportCallIssue=false, reportArgumentType=false
"""Projected sweeps over contacts, and nothing else: Jacobi or Gauss-Seidel, in compiled code.

Symbols and the map of one contact as in `sweeps.py`. Gauss-Seidel takes contacts in turn, each with the reactions of
those before it; Jacobi takes all with those of the last sweep, and needs the steps shortened:

    r_i <- map_i(r_i - omega rho_i (G r + g)_i),     omega <= 1 / (largest eigenvalue of rho^(1/2) G rho^(1/2))

Both converge linearly, slowly where contacts are coupled or redundant. Sources as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.checks import is_number, whole_number
from dalembert.errors import ModelError
from dalembert.friction.cones.sweeps import COULOMB, TINY, evaluate, local_map, row_times, steps_of, sweep
from dalembert.kernel.loops import compiled
from dalembert.types import Array

SCHEMES = ("gauss-seidel", "jacobi")
"""The order in which sweeps use what they find."""

LOOK = 10
"""Sweeps between looks at the residual."""


@compiled
def jacobi_sweep(G, g, first, mu, law, kind, sliding, s, rho, r, y, out):
    """Run one sweep over all contacts with the reactions of the last one."""
    for i in range(first.size - 1):
        for j in range(first[i], first[i + 1]):
            y[j] = r[j] - rho[i] * row_times(G, j, r, g)
    for i in range(first.size - 1):
        local_map(y, first[i], first[i + 1], mu[i], law, kind[i], sliding[i], s, out)
    r[:] = out


@compiled
def repeated(G, g, first, mu, law, kind, sliding, s, rho, step, jacobi, r, u, y, out, F, aim, most):
    """Sweep until the residual is at `aim`; return the residual and the sweeps. u, y, out, F (p,) are memory."""
    found, done = np.inf, 0
    while done < most:
        for _ in range(min(LOOK, most - done)):
            if jacobi:
                jacobi_sweep(G, g, first, mu, law, kind, sliding, s, step, r, y, out)
            else:
                sweep(G, g, first, mu, law, kind, sliding, s, step, r, y, out)
            done += 1
        worst, scale = evaluate(G, g, first, mu, law, kind, sliding, s, rho, r, u, y, out, F)
        found = worst / max(scale, TINY)
        if found <= aim or not found < np.inf:
            break
    return found, done


def solve_by_sweeps(
    G: Array, g: Array, first: Array, mu: Array, kind: Array, sliding: Array, s: Array, r: Array,
    scheme: Any, sweeps: Any, relaxation: Any, aim: float,
) -> tuple[float, int]:  # fmt: skip
    """Sweep from r, overwritten; return the residual and the sweeps."""
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise ModelError(f"scheme={scheme!r} is not one of {', '.join(map(repr, SCHEMES))}")
    if whole_number(sweeps, "sweeps") < 1:
        raise ModelError(f"sweeps={sweeps!r} must be at least 1")
    if relaxation is not None and not (is_number(relaxation) and 0.0 < relaxation < 2.0):
        raise ModelError(f"relaxation={relaxation!r} must be a number between 0 and 2")
    if g.size == 0:
        return 0.0, 0
    G, g = np.ascontiguousarray(G), np.ascontiguousarray(g)
    rho = np.asarray(steps_of(G, first))
    omega = 1.0 if relaxation is None else float(relaxation)
    if relaxation is None and scheme == "jacobi":
        root = np.sqrt(np.repeat(rho, np.diff(first)))
        omega = 1.0 / max(1.0, float(np.linalg.eigvalsh(root[:, None] * G * root)[-1]))
    memory = np.empty((4, g.size))
    found, done = repeated(
        G, g, first, mu, COULOMB, kind, sliding, s, rho, omega * rho, scheme == "jacobi", r, *memory, aim, int(sweeps)
    )
    return float(found), int(done)

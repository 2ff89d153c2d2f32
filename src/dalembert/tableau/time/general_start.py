"""Consistent values of a general DAE: differential unknowns are kept, algebraic ones and rates are found.

F(t, x, x') = 0 is solved by Gauss-Newton steps of least weighed change, for x of algebraic unknowns and x' of
differential ones (K. E. Brenan, S. L. Campbell, L. R. Petzold 1996, sec. 5.3.4; P. N. Brown, A. C. Hindmarsh, L. R.
Petzold, SIAM J. Sci. Comput. 19 (1998) 1495). With a higher index F alone does not determine them all: what it leaves
open stays as given, and hidden constraints are the user's to satisfy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.tableau.time.numbers import real, reals

if TYPE_CHECKING:
    from dalembert.tableau.time.problem import Problem

Array = np.ndarray
MOST_ITERATIONS = 30
TOLERANCE = 1e-10
RANK = 1e-12


@dataclass(frozen=True)
class GeneralStart:
    """What moved: name (with a prime: rate) -> change."""

    t: float
    moved: dict[str, float]

    def __str__(self) -> str:
        return "\n".join([f"consistent at t = {self.t:g}", *(f"  {k} moved by {x:.3g}" for k, x in self.moved.items())])


def general_start(
    problem: Problem, t: float, x: Any, rates: Any, side: str = "right"
) -> tuple[Array, Array, GeneralStart]:
    """Return x and x' with F = 0, and what moved."""
    dae = problem.dae
    x0, r0 = _vector(x, dae.unknowns, "x"), _vector(rates, dae.unknowns, "rates")
    environment = problem.environment(t, 1.0, np.zeros(len(dae.relaxed)), side)
    change_x = np.flatnonzero(~dae.differential)
    change_r = np.flatnonzero(dae.differential)
    J = ca.horzcat(ca.jacobian(dae.residual, dae.x), ca.jacobian(dae.residual, dae.rates))
    changing = np.concatenate([change_x, dae.n + change_r])
    f = ca.Function("start", [dae.x, dae.rates, dae.environment], [dae.residual, ca.densify(J)])
    x1, r1 = x0.copy(), r0.copy()
    all_sizes = np.maximum(np.abs(np.concatenate([x0, r0])), 1.0)
    size = all_sizes[changing]
    F, rows = np.zeros(dae.n), np.ones(dae.n)
    for _ in range(MOST_ITERATIONS):
        F, K = (np.asarray(z, dtype=float) for z in f(x1, r1, environment))
        F = F.ravel()
        if not (np.isfinite(F).all() and np.isfinite(K).all()):
            bad = [dae.equations[i] for i in np.flatnonzero(~np.isfinite(F) | ~np.isfinite(K).all(axis=1))]
            raise ModelError(f"the equations {', '.join(bad[:8])} are not finite at the start, t = {t:g}")
        # a constraint among given unknowns has no entry that may change: it is weighed by those that it has
        rows = 1.0 / np.maximum(np.abs(K * all_sizes).max(axis=1), np.finfo(float).tiny)
        K = K[:, changing]
        if (np.abs(F) * rows <= TOLERANCE).all():
            break
        z = size * np.linalg.lstsq(rows[:, None] * K * size, -rows * F, rcond=RANK)[0]
        x1[change_x] += z[: len(change_x)]
        r1[change_r] += z[len(change_x) :]
    else:
        left = [f"{dae.equations[i]}: {F[i]:.3g}" for i in np.argsort(-np.abs(F) * rows)[:6]]
        raise SolvabilityError(
            f"no consistent start at t = {t:g} with the given differential unknowns; left are {', '.join(left)}. "
            "They may violate a constraint among themselves: give values that satisfy it"
        )
    moved = {
        dae.unknowns[i]: float(x1[i] - x0[i]) for i in change_x if abs(x1[i] - x0[i]) > TOLERANCE * max(1, abs(x0[i]))
    }
    moved |= {
        f"{dae.unknowns[i]}'": float(r1[i] - r0[i])
        for i in change_r
        if abs(r1[i] - r0[i]) > TOLERANCE * max(1, abs(r0[i]))
    }
    return x1, r1, GeneralStart(t, moved)


def _vector(given: Any, names: tuple[str, ...], what: str) -> Array:
    """Return all values: from an array, or from a mapping over zeros."""
    n = len(names)
    if isinstance(given, Mapping):
        found = np.zeros(n)
        for name, value in given.items():
            if name not in names:
                raise ModelError(f"{what}: no unknown is called {name!r}; there are {', '.join(names)}")
            found[names.index(name)] = real(f"{what} of {name}", value)
    else:
        found = np.zeros(n) if given is None else reals(what, given)
    if found.shape != (n,):
        raise ShapeError(f"{what} has shape {found.shape}; expected ({n},)")
    if not np.isfinite(found).all():
        raise ModelError(f"{what} is not finite for {', '.join(names[i] for i in np.flatnonzero(~np.isfinite(found)))}")
    return found

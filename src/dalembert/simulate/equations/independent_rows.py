"""Independent rows of redundant constraints, and dropped rows watched along the motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.kkt.rows import pivoted_rows
from dalembert.simulate.equations.consistent import SLACK_OF_RANK
from dalembert.simulate.limits import JUMP_SEEN, LEAST_SQUARES, LIGHTEST, RELAXED_SHARE
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.equations.formulation import KnownMotion
    from dalembert.simulate.problem import Problem
    from dalembert.simulate.settings import Settings

# ----------------------------------------------------------------------------------------------------------------------
# Redundant constraints: rank and independent rows decided on the manifold, least-norm multipliers.
#
# Off the manifold, redundant rows are independent and contradict each other: the last singular value of A is as large
# as the constraint violation, and a rank chosen by tolerance there makes the motion blow up (seen with Bricard's
# mechanism). So the rows are chosen at consistent points, where the rank is clear; the others then hold along the
# motion by themselves, for as long as the chosen rows stay independent. `DroppedRows` looks after that, and rows
# are chosen anew where it ends. Forces are unique as a whole, A^T lam = A_c^T lam_c; of the multipliers that give them,
# those of least norm are reported.


def chosen_rows(A: Array, M: Array, rank: int, sizes: Array | None = None) -> list[int]:
    """Return `rank` well-conditioned rows of A, by pivots of the rows in the mass metric."""
    return [int(i) for i in pivoted_rows(_scaled(A, M, sizes), rank)]


def conditioning(A: Array, M: Array, rows: list[int], sizes: Array | None = None) -> float:
    """Return the least singular value of some rows of A, scaled to one in the mass metric."""
    return float(np.linalg.svd(_scaled(A, M, sizes)[rows], compute_uv=False)[-1]) if rows else 1.0


def chosen_multipliers(A: Array, rows: list[int], full: Array) -> Array:
    """Return multipliers that exert the same forces as all by the chosen rows alone; the others are zero."""
    weights = np.zeros(len(full))
    weights[rows] = np.linalg.lstsq(A[rows].T, A.T @ full, rcond=LEAST_SQUARES)[0]
    return weights


def relaxation(m: KnownMotion, M: Array, A: Array, rows: list[int], stabilised: bool) -> Array:
    """Return what relaxes the chosen rows A of J: a part of the diagonal of A M^-1 A^T, and of A A^T for positions."""
    masses = np.diag(M[list(m.free), :])
    masses = np.where(masses > 0, masses, masses.max(initial=1.0))
    places = [k for k, i in enumerate(rows) if m.holonomic[i]] if stabilised else []
    return RELAXED_SHARE * np.concatenate([(A**2 / masses).sum(axis=1), (A[places] ** 2).sum(axis=1)])


def _scaled(A: Array, M: Array, sizes: Array | None) -> Array:
    """Return A in the mass metric, rows scaled by `sizes`, or to length one: rounding must not pass for a row."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    floor = LIGHTEST * values.max(initial=0.0)
    scaled = A @ vectors / np.sqrt(np.maximum(values, floor or 1.0))
    if sizes is not None:
        return sizes[:, None] * scaled
    size = np.linalg.norm(scaled, axis=1)
    return scaled / np.where(size > 0, size, 1.0)[:, None]


# ----------------------------------------------------------------------------------------------------------------------
# Rows that were left out as dependent, watched along the motion.
#
# They hold by themselves for as long as the chosen rows stay independent. Where one of them opens by more than the
# tolerance explains, the rank was not what it seemed (a start in a singular configuration), or the motion has left on
# another branch: what follows is wrong, and is thrown away. Then rows are chosen anew at the last point that fits.


OPEN = 10.0
"""Tolerances by which a row that was left out may be open."""


class Opened(NamedTuple):
    """The first row of a mesh at which a constraint is open; its name and residual."""

    row: int
    name: str
    size: float


class DroppedRows:
    """The rows of a problem that were left out: residuals of positions, or of rates where they constrain those only."""

    def __init__(self, problem: Problem) -> None:
        m = problem.motion
        assert m is not None
        self.problem, self.count = problem, len(m.free)
        dropped = [i for i in range(len(m.names)) if i not in set(problem.rows)]
        place = {row: k for k, row in enumerate(m.holonomic_rows)}
        self.names = [m.names[i] for i in dropped]
        self.speeds = np.array([i not in place for i in dropped])
        residual = ca.vertcat(*[m.phi[place[i]] if i in place else m.psi[i] for i in dropped])
        columns = (m.q, m.v, m.time, m.signals.column, m.system.symbols.parameters.column)
        names = ("q", "v", "t", "signals", "parameters")
        inputs = {name: column for name, column in zip(names, columns, strict=True) if column.numel()}
        function = ca.Function("left", list(inputs.values()), [ca.densify(residual)], list(inputs), ["residual"])
        self.kernel = Kernel(function)
        generic = problem.finder.rank(np.zeros(0), 0.0)  # decided at the start
        self.apart = np.zeros(len(dropped)) if generic is None else SLACK_OF_RANK * generic.gap * generic.sizes[dropped]

    def opened(self, mesh: Array, settings: Settings, low: float, high: float) -> Opened | None:
        """Return where along a mesh (rows t, order, x, x') a row opens first; inputs between `low` and `high`."""
        n, t = self.count, np.clip(mesh[:, 0], low, high)
        signals = self.problem.signals
        values = np.array([signals.values(x) for x in t]) if signals.symbols else np.zeros((len(t), 0))
        arguments = {"q": mesh[:, 2 : n + 2], "v": mesh[:, n + 2 : 2 * n + 2], "t": t[:, None], "signals": values}
        arguments["parameters"] = np.tile(self.problem.parameters, (len(t), 1))
        residuals = np.abs(self.kernel(*[np.ascontiguousarray(arguments[port.name]) for port in self.kernel.inputs]))
        residuals = np.reshape(residuals, (len(t), len(self.names)))
        atol = settings.atol_all[: 2 * n]
        limits = [
            OPEN * (settings.rtol * np.abs(arguments[what]).max(axis=1) + atol[part].max())
            for what, part in (("q", slice(0, n)), ("v", slice(n, 2 * n)))
        ]
        over = residuals > np.where(self.speeds, limits[1][:, None], limits[0][:, None]) + self.apart
        rows = np.flatnonzero(over.any(axis=1))
        if not len(rows):
            return None
        worst = int(np.argmax(residuals[rows[0]] * over[rows[0]]))
        return Opened(int(rows[0]), self.names[worst], float(residuals[rows[0], worst]))

    def contradicting(self, row: Array, settings: Settings) -> dict[str, float]:
        """Return by how much holonomic rows contradict each other at a point of a mesh, worst first; {} where little.

        Residuals outside the range of the rows' Jacobian are closed by no motion. Much is what the error test sees.
        """
        problem, n = self.problem, self.count
        m = problem.motion
        assert m is not None
        q, v = row[2 : n + 2], row[n + 2 : 2 * n + 2]
        terms = problem.finder.terms(q, v, row[0], problem.signals.values(row[0]), problem.parameters)
        rows, phi = m.holonomic_rows, terms[5]
        generic = problem.finder.rank(np.zeros(0), 0.0)
        if generic is None or not rows or not np.isfinite(phi).all():
            return {}
        U = np.linalg.svd(generic.scales[rows, None] * terms[2][rows])[0][:, generic.positions :]
        apart = (U @ (U.T @ (generic.scales[rows] * phi))) / generic.scales[rows]
        seen = JUMP_SEEN * (settings.rtol * np.abs(q).max(initial=0.0) + settings.atol_all[:n].max(initial=0.0))
        worst = np.argsort(-np.abs(apart))
        return {m.names[rows[i]]: float(abs(apart[i])) for i in worst if abs(apart[i]) > seen}

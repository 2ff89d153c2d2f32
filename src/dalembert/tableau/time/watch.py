"""Rows that were left out as dependent, watched along the motion.

They hold by themselves for as long as the chosen rows stay independent. Where one of them opens by more than the
tolerance explains, the rank was not what it seemed (a start in a singular configuration), or the motion has left on
another branch: what follows is wrong, and is thrown away. Then rows are chosen anew at the last point that fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.tableau.time.consistent import SLACK_OF_RANK

if TYPE_CHECKING:
    from dalembert.tableau.time.options import Settings
    from dalembert.tableau.time.problem import Problem

Array = np.ndarray

OPEN = 10.0
"""Tolerances by which a row that was left out may be open."""


class Opened(NamedTuple):
    """The first row of a mesh at which a constraint is open; its name and residual."""

    row: int
    name: str
    size: float


class Watch:
    """The rows of a problem that were left out: residuals of positions, or of rates where they constrain those only."""

    def __init__(self, problem: Problem) -> None:
        m = problem.motion
        assert m is not None
        self.problem, self.count = problem, len(m.free)
        left = [i for i in range(len(m.names)) if i not in set(problem.rows)]
        place = {row: k for k, row in enumerate(m.holonomic_rows)}
        self.names = [m.names[i] for i in left]
        self.speeds = np.array([i not in place for i in left])
        residual = ca.vertcat(*[m.phi[place[i]] if i in place else m.psi[i] for i in left])
        columns = (m.q, m.v, m.time, m.signals.column, m.system.symbols.parameters.column)
        names = ("q", "v", "t", "signals", "parameters")
        inputs = {name: column for name, column in zip(names, columns, strict=True) if column.numel()}
        function = ca.Function("left", list(inputs.values()), [ca.densify(residual)], list(inputs), ["residual"])
        self.kernel = Kernel(function)
        known = problem.finder.rank(np.zeros(0), 0.0)  # decided at the start
        self.apart = np.zeros(len(left)) if known is None else SLACK_OF_RANK * known.gap * known.sizes[left]

    def opened(self, mesh: Array, settings: Settings, low: float, high: float) -> Opened | None:
        """Return where along a mesh (rows t, order, x, x') a row opens first; inputs between `low` and `high`."""
        n, t = self.count, np.clip(mesh[:, 0], low, high)
        signals = self.problem.signals
        values = np.array([signals.values(x) for x in t]) if signals.symbols else np.zeros((len(t), 0))
        given = {"q": mesh[:, 2 : n + 2], "v": mesh[:, n + 2 : 2 * n + 2], "t": t[:, None], "signals": values}
        given["parameters"] = np.tile(self.problem.parameters, (len(t), 1))
        found = np.abs(self.kernel(*[np.ascontiguousarray(given[port.name]) for port in self.kernel.inputs]))
        found = np.reshape(found, (len(t), len(self.names)))
        atol = settings.atol_all[: 2 * n]
        limits = [
            OPEN * (settings.rtol * np.abs(given[what]).max(axis=1) + atol[part].max())
            for what, part in (("q", slice(0, n)), ("v", slice(n, 2 * n)))
        ]
        over = found > np.where(self.speeds, limits[1][:, None], limits[0][:, None]) + self.apart
        rows = np.flatnonzero(over.any(axis=1))
        if not len(rows):
            return None
        worst = int(np.argmax(found[rows[0]] * over[rows[0]]))
        return Opened(int(rows[0]), self.names[worst], float(found[rows[0], worst]))

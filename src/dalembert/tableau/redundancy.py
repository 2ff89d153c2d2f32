"""Redundant constraints of a tableau in maximal coordinates: which rows follow from the others, and life without them.

Symbols: phi rows of joints and constraints in positions x = (p, e, q), lam their multipliers. At a configuration that
fulfils them, rows that follow from others make dphi/dx lose rank, and the multipliers are not unique. QR with exchanges
of the rows (scaled to length one) keeps as many as the rank; what is left over holds by itself for as long as those
that are kept stay independent. Forces on the bodies are the same whichever rows are kept; reactions of single joints
are not (M. Wojtyra, "Joint reactions in rigid body mechanisms with dependent constraints", Mech. Mach. Theory 44
(2009) 2265-2278).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import qr

from dalembert.errors import ModelError
from dalembert.tableau.inputs import as_mapping, as_names, as_scalar
from dalembert.tableau.sample import sample_points
from dalembert.tableau.tableau import Tableau, require_tableau
from dalembert.tableau.variables import element_names

ROWS = ("joint ", "row ", "coupling ")
"""How the names of rows with a multiplier begin."""

TOLERANCE = 1e-9
"""Part of the largest pivot below which a row counts as redundant: poses are given to ten digits or more."""


def redundant_rows(tableau: Tableau, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return names of rows that follow from the others at one configuration.

    Parameters
    ----------
    tableau
        From `maximal`.
    values
        Positions of all bodies by name, "p link1" (3) and "e link1" (4), that fulfil the constraints; "q joint1" where
        the tableau has angles. `body_positions` has them for a mechanism.
    """
    require_tableau(tableau)
    _require_positions(tableau, values)
    places = [k for k, name in enumerate(tableau.unknowns) if name[:2] in ("p ", "e ", "q ")]
    chosen = [i for i, name in enumerate(tableau.equations) if name.startswith((*ROWS, "unit ", "angle "))]
    J = ca.jacobian(tableau.residual[chosen], tableau.x)[:, places]
    A = _evaluated(tableau, J, values)
    names = [tableau.equations[i] for i in chosen]
    must = [k for k, name in enumerate(names) if not name.startswith(ROWS)]
    may = [k for k, name in enumerate(names) if name.startswith(ROWS) and A[k].any()]
    basis: Any = qr(A[must].T, mode="economic")[0] if must else np.zeros((A.shape[1], 0))
    rest = A[may] / np.linalg.norm(A[may], axis=1)[:, None]
    rest = rest - (rest @ basis) @ basis.T
    triangle, order = qr(rest.T, mode="r", pivoting=True)  # type: ignore[misc]
    size = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(size > TOLERANCE * size.max(initial=1.0)))
    return tuple(names[may[k]] for k in sorted(order[rank:]))


def least_norm(tableau: Tableau, values: Mapping[str, Any], multipliers: Mapping[str, float]) -> dict[str, float]:
    """Return the multipliers of least length that put the same forces and moments on all bodies.

    Parameters
    ----------
    tableau
        From `maximal`, with all rows.
    values
        Positions of all bodies, as for `redundant_rows`.
    multipliers
        Found without the redundant rows, by element, "lam joint1[0]"; those that are not given are zero.

    Notes
    -----
    Least length shares a reaction between the rows that could bear it; forces in N and moments in N m count alike,
    hence another choice of units shares differently. Bodies that give way a little, not rigid ones, decide it in truth.
    """
    require_tableau(tableau)
    at = {name: k for k, name in enumerate(tableau.unknowns) if name.startswith("lam ")}
    multipliers = as_mapping(multipliers, "multipliers")
    strangers = sorted(str(name) for name in set(multipliers) - set(at))
    if strangers:
        raise ModelError(f"{', '.join(map(repr, strangers[:4]))}: no multiplier of this tableau")
    _require_positions(tableau, values)
    chosen = [i for i, name in enumerate(tableau.equations) if name.startswith(("force ", "moment "))]
    J = ca.jacobian(tableau.residual[chosen], tableau.x)[:, list(at.values())]
    B = _evaluated(tableau, J, values)
    given = np.array([as_scalar(multipliers.get(name, 0.0), name) for name in at])
    found = np.linalg.lstsq(B, B @ given, rcond=TOLERANCE)[0]
    return {name: float(x) for name, x in zip(at, found, strict=True)}


def without_rows(tableau: Tableau, rows: Iterable[str]) -> Tableau:
    """Return the tableau without these rows and their multipliers, which are zero: the forces of the others suffice."""
    require_tableau(tableau)
    dropped = set(as_names(rows, "rows"))
    unknown = sorted(dropped - set(tableau.equations))
    if unknown or not all(name.startswith(ROWS) for name in dropped):
        wrong = unknown or sorted(name for name in dropped if not name.startswith(ROWS))
        raise ModelError(f"{', '.join(map(repr, wrong))}: no row of a joint or constraint that could be left out")
    multipliers = {f"lam {name.split(' ', 1)[1]}" for name in dropped}
    equations, variables, rates, time, parameters = tableau.given
    scalars = {
        element: symbol
        for name, column in variables.items()
        for element, symbol in zip(element_names(name, column.numel()), ca.vertsplit(column), strict=True)
    }
    gone = ca.vertcat(*[scalars[name] for name in sorted(multipliers)])
    kept = {}
    for name, column in equations.items():
        left = ca.substitute(column, gone, ca.SX.zeros(gone.numel()))
        elements = zip(element_names(name, left.numel()), ca.vertsplit(left), strict=True)
        kept |= {element: row for element, row in elements if element not in dropped}
    columns: dict[str, ca.SX] = {}
    for name, column in variables.items():
        own = element_names(name, column.numel())
        touched = not multipliers.isdisjoint(own)
        columns |= {e: scalars[e] for e in own if e not in multipliers} if touched else {name: column}
    return Tableau(kept, columns, rates, tableau.known, None, time, parameters, tableau.instant)


def _require_positions(tableau: Tableau, values: Mapping[str, Any]) -> None:
    """Refuse a configuration that leaves positions open."""
    if not isinstance(values, Mapping):
        raise ModelError(f"positions are values by name, {{'p link1': ...}}, not {type(values).__name__}")
    missing = [name for name in tableau.variables.groups if name[:2] in ("p ", "e ", "q ") and not _given(name, values)]
    if missing:
        raise ModelError(
            f"redundancy is decided at one configuration; no value for {', '.join(map(repr, missing[:4]))}"
        )


def _evaluated(tableau: Tableau, J: ca.SX, values: Mapping[str, Any]) -> np.ndarray:
    """Return a matrix of expressions at a configuration; angles that the tableau does not have are left out."""
    inputs = [tableau.x, tableau.x_dot, tableau.u, tableau.time, tableau.parameters.column]
    kept = {name: x for name, x in values.items() if name in tableau.variables.groups or not name.startswith("q ")}
    point = [each[0] for each in sample_points(tableau, 1, kept)]
    return np.array(ca.Function("rows", inputs, [J])(*point), dtype=float)


def _given(name: str, values: Mapping[str, Any]) -> bool:
    return name in values or f"{name}[0]" in values

"""Redundant constraints of a tableau of bodies: which rows follow from the others, and life without them.

Symbols: phi rows of joints and constraints in positions x = (p, e, q), lam their multipliers; in joint coordinates
x = q, or qd, qdd for rows on those levels. At a configuration that fulfils them, rows that follow from others make
dphi/dx lose rank, and the multipliers are not unique. QR with exchanges of the rows (scaled to length one) keeps as
many as the rank, at the nine digits of a built model (`kkt.limits`); what is left over holds by itself for as long as
those that are kept stay independent. Forces on the bodies are the same whichever rows are kept; reactions of single
joints are not (M. Wojtyra, "Joint reactions in rigid body mechanisms with dependent constraints", Mech. Mach. Theory 44
(2009) 2265-2278).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import qr

from dalembert.errors import ModelError
from dalembert.kkt.limits import BUILT, ZERO_ROW
from dalembert.tableau.inputs import as_mapping, as_names, as_numbers, as_scalar
from dalembert.tableau.structure.sample_points import sample_points
from dalembert.tableau.tableau import Tableau, require_tableau

ROWS = ("joint ", "row ", "coupling ")
"""How the names of rows with a multiplier begin."""


def redundant_rows(tableau: Tableau, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return names of rows that follow from the others at one configuration.

    Parameters
    ----------
    tableau
        From `maximal` or `newton_euler`.
    values
        A configuration that fulfils the constraints. In maximal coordinates positions of all bodies by name, "p link1"
        (3) and "e link1" (4), as `body_positions` has them for a mechanism ("q joint1" counts where the tableau has
        angles). In joint coordinates "q", as `coordinates` has it.
    """
    require_tableau(tableau)
    values = as_mapping(values, "values")
    names, A = (_rows_in_joints if "q" in tableau.variables.groups else _rows_in_bodies)(tableau, values)
    must = [k for k, name in enumerate(names) if not name.startswith(ROWS)]
    may = [k for k, name in enumerate(names) if name.startswith(ROWS)]
    basis: Any = qr(A[must].T, mode="economic")[0] if must else np.zeros((A.shape[1], 0))
    size = np.linalg.norm(A[may], axis=1)
    rest = A[may] / np.where(size > ZERO_ROW * size.max(initial=0.0), size, np.inf)[:, None]
    rest = rest - (rest @ basis) @ basis.T
    triangle, order = qr(rest.T, mode="r", pivoting=True)  # type: ignore[misc]
    pivots = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(pivots > BUILT * pivots.max(initial=1.0)))
    return tuple(names[may[k]] for k in sorted(order[rank:]))


def _rows_in_bodies(tableau: Tableau, values: Mapping[str, Any]) -> tuple[list[str], np.ndarray]:
    """Return the rows of joints, constraints and unit quaternions, and their derivatives along positions."""
    values = _positions(tableau, values)
    places = [k for k, name in enumerate(tableau.unknowns) if name[:2] in ("p ", "e ", "q ")]
    chosen = [i for i, name in enumerate(tableau.equations) if name.startswith((*ROWS, "unit ", "angle "))]
    J = ca.jacobian(tableau.residual[chosen], tableau.x)[:, places]
    names = [tableau.equations[i] for i in chosen]
    A = _evaluated(tableau, J, values)
    silent = {k for k, name in enumerate(names) if name.startswith(ROWS) and not A[k].any()}
    rows = [k for k in range(len(names)) if k not in silent]
    return [names[k] for k in rows], A[rows]


def _rows_in_joints(tableau: Tableau, values: Mapping[str, Any]) -> tuple[list[str], np.ndarray]:
    """Return the rows of constraints and their derivatives along the highest of qdd, qd, q that they contain."""
    if "q" not in values:
        raise ModelError("redundancy is decided at one configuration; no value for 'q'")
    named = {name: symbol for name, symbol in tableau.rows.items() if name.startswith(ROWS)}
    rows = ca.vertcat(*named.values(), ca.SX(0, 1))
    columns = tableau.variables.columns
    J = next((J for J in (ca.jacobian(rows, columns[x]) for x in ("qdd", "qd", "q")) if J.nnz()), ca.SX(len(named), 1))
    place = as_numbers(values["q"], "values: 'q'", finite=True).ravel()
    if place.size != columns["q"].numel():
        raise ModelError(f"values: 'q' has {columns['q'].numel()} elements; got {place.size}")
    inputs = [columns["q"], *(s for s in ca.symvar(J) if not ca.depends_on(columns["q"], s))]
    rng = np.random.default_rng(7)
    others = [
        as_scalar(values["t"], "values: 't'") if "t" in values and s.name() == "t" else rng.standard_normal()
        for s in inputs[1:]
    ]
    return list(named), np.array(ca.Function("rows", inputs, [J])(place, *others), dtype=float)


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
    values = _positions(tableau, as_mapping(values, "values"))
    chosen = [i for i, name in enumerate(tableau.equations) if name.startswith(("force ", "moment "))]
    J = ca.jacobian(tableau.residual[chosen], tableau.x)[:, list(at.values())]
    B = _evaluated(tableau, J, values)
    forces = np.array([as_scalar(multipliers.get(name, 0.0), name) for name in at])
    least = np.linalg.lstsq(B, B @ forces, rcond=BUILT)[0]
    return {name: float(x) for name, x in zip(at, least, strict=True)}


def without_rows(tableau: Tableau, rows: Iterable[str]) -> Tableau:
    """Return the tableau without these rows and their multipliers, which are zero: the forces of the others suffice."""
    require_tableau(tableau)
    dropped = set(as_names(rows, "rows"))
    unknown = sorted(dropped - set(tableau.rows))
    if unknown or not all(name.startswith(ROWS) for name in dropped):
        wrong = unknown or sorted(name for name in dropped if not name.startswith(ROWS))
        raise ModelError(f"{', '.join(map(repr, wrong))}: no row of a joint or constraint that could be left out")
    multipliers = {f"lam {name.split(' ', 1)[1]}" for name in dropped}
    _, _, rates, time, parameters = tableau.given
    names, symbols = tableau.variables.names, tableau.variables.symbols
    gone = ca.vertcat(*[symbols[names.index(name)] for name in sorted(multipliers)], ca.SX(0, 1))
    equations = {
        name: ca.substitute(row, gone, ca.SX.zeros(gone.numel())) if gone.numel() else row
        for name, row in tableau.rows.items()
        if name not in dropped
    }
    columns: dict[str, ca.SX] = {}
    for name, column in tableau.variables.columns.items():
        elements = [names[k] for k in tableau.variables.groups[name]]
        if multipliers & set(elements):
            columns |= {element: symbols[names.index(element)] for element in elements if element not in multipliers}
        else:
            columns[name] = column
    known_names = [name for name in tableau.known if name not in multipliers]
    outputs = {e: x for e, x in tableau.scalar_outputs.items() if e in equations and x not in multipliers}
    return Tableau(equations, columns, rates, known_names, outputs, time, parameters, tableau.instant)


def _positions(tableau: Tableau, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration, angles of joints that the tableau has no angles of left out; refuse an open one."""
    groups = tableau.variables.groups
    missing = [name for name in groups if name[:2] in ("p ", "e ", "q ") and not _given(name, values)]
    if missing:
        raise ModelError(
            f"redundancy is decided at one configuration; no value for {', '.join(map(repr, missing[:4]))}"
        )
    joints = {name.split(" ", 1)[1] for name in groups if name.startswith(("lam ", "tau "))}
    return {
        name: value
        for name, value in values.items()
        if name in groups or not (name.startswith("q ") and name.split(" ", 1)[1] in joints)
    }


def _evaluated(tableau: Tableau, J: ca.SX, values: Mapping[str, Any]) -> np.ndarray:
    """Return a matrix of expressions at a configuration."""
    inputs = [tableau.x, tableau.x_dot, tableau.u, tableau.time, tableau.parameters.column]
    point = [column[0] for column in sample_points(tableau, 1, values)]
    return np.array(ca.Function("rows", inputs, [J])(*point), dtype=float)


def _given(name: str, values: Mapping[str, Any]) -> bool:
    return name in values or f"{name}[0]" in values

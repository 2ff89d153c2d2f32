"""Numbers for the structural questions: sample points of a tableau, its Jacobian there, its compiled Newton step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from jaxtyping import Bool, Float

from dalembert.errors import ModelError, ShapeError
from dalembert.tableau.causal_start import causal_start
from dalembert.tableau.newton_step import NewtonStep, order_by_rows
from dalembert.tableau.plan import make_plan

if TYPE_CHECKING:
    from dalembert.tableau.tableau import Tableau

Array = np.ndarray


def sample_points(tableau: Tableau, count: int, values: Mapping[str, Any] | None) -> list[Float[Array, "K size"]]:
    """Return x, x_dot, u, t, parameters at sample points: given values by name ("t": time), random ones else."""
    rng = np.random.default_rng(7)
    given = dict(values or {})
    sizes = {np.shape(v)[0] for v in given.values() if np.ndim(v) == 2}
    if len(sizes) > 1:
        raise ShapeError(f"sample values have different numbers of points: {sorted(sizes)}")
    count = sizes.pop() if sizes else count
    numbers: dict[str, Array] = {}
    if tableau.time.numel() and "t" in given:
        numbers["t"] = np.broadcast_to(np.asarray(given.pop("t"), dtype=float), (count,))
    for name, value in given.items():
        base = name.removesuffix("'")
        scalars = tableau.variables.find([base], "values")
        array = np.asarray(value, dtype=float)
        column = np.broadcast_to(array[..., None] if array.ndim == 0 else array, (count, len(scalars)))
        suffix = name[len(base) :]
        numbers |= {tableau.variables.names[s] + suffix: column[:, k] for k, s in enumerate(scalars)}
    names = [
        list(tableau.unknowns),
        [f"{tableau.unknowns[k]}'" for k in tableau.differential],
        list(tableau.inputs),
        ["t"] * tableau.time.numel(),
    ]
    columns = [[numbers.get(n, rng.standard_normal(count)) for n in group] for group in names]
    points = [np.stack(c, axis=1) if c else np.empty((count, 0)) for c in columns]
    points.append(np.broadcast_to(_parameters(tableau, rng), (count, tableau.parameters.column.numel())))
    free = np.array([name not in numbers for name in tableau.unknowns])
    return [_consistent(tableau, points, free), *points[1:]]


def _consistent(tableau: Tableau, points: list[Array], free: Bool[Array, " n"]) -> Float[Array, "K n"]:
    """Return x, free unknowns as causality gives them: a rotation matrix is one, not nine random numbers."""
    if not tableau.matching.perfect:
        return points[0]
    start = causal_start(tableau, make_plan(tableau.pattern, preferred=tableau.preferred))
    kept = [p for p in points if p.shape[1]]
    found = np.stack([np.array(start(*[p[k] for p in kept]), dtype=float).ravel() for k in range(len(points[0]))])
    return np.where(free & np.isfinite(found), found, points[0])


def _parameters(tableau: Tableau, rng: np.random.Generator) -> Array:
    """Return default values of parameters, or random ones where some have none."""
    try:
        return tableau.parameters.pack()
    except ModelError:
        return rng.uniform(0.5, 1.5, tableau.parameters.column.numel())


def sample_jacobian(
    tableau: Tableau, count: int = 3, shift: float = 1.0, values: Mapping[str, Any] | None = None
) -> Float[Array, "K entries"]:
    """Return the entries of dG/dx + shift dG/dx' (CSR order of `tableau.pattern`) at sample points."""
    s = ca.SX.sym("shift")
    J = tableau.jacobian(s)
    inputs = [tableau.x, tableau.x_dot, tableau.u, tableau.time, tableau.parameters.column]
    f = ca.Function("J", [*inputs, s], [J.nz[:]])
    order = order_by_rows(J.sparsity())
    points = sample_points(tableau, count, values)
    found = [np.array(f(*[p[k] for p in points], shift), dtype=float).ravel()[order] for k in range(len(points[0]))]
    return np.stack(found) if found else np.empty((0, len(order)))


def newton_of(tableau: Tableau, values: Mapping[str, Any] | None, options: dict[str, Any]) -> NewtonStep:
    """Return the compiled Newton step of a tableau; empty inputs are left out."""
    tableau.structure().require()
    s = ca.SX.sym("shift", 1 if tableau.differential else 0)
    names = ("x", "x_dot", "shift", "u", "t", "parameters")
    symbols = (tableau.x, tableau.x_dot, s, tableau.u, tableau.time, tableau.parameters.column)
    x, x_dot, u, t, p = sample_points(tableau, 3, values)
    points = (x, x_dot, np.full((len(x), s.numel()), 10.0), u, t, p)
    kept = [k for k, symbol in enumerate(symbols) if symbol.numel()]
    inputs, labels = [symbols[k] for k in kept], [names[k] for k in kept]
    f = ca.Function("residual", inputs, [tableau.residual], labels, ["G"])
    J = ca.Function("jacobian", inputs, [tableau.jacobian(s if tableau.differential else 0)], labels, ["J"])
    return NewtonStep(
        f,
        points=[points[k] for k in kept],
        preferred=tableau.preferred,
        equations=tableau.equations,
        unknowns=tableau.unknowns,
        jacobian=J,
        **options,
    )

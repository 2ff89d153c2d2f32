"""Numbers for the structural questions: sample points of a tableau, its Jacobian there, its compiled Newton step."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.tableau.elimination.plan import make_plan
from dalembert.tableau.inputs import as_count, as_mapping, as_numbers, as_scalar, named_values
from dalembert.tableau.newton_batch import PROBES, NewtonStep, causal_start, order_by_rows
from dalembert.tableau.structure.rank import RankReport, rank_report
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from dalembert.tableau.tableau import Tableau

REFERENCES = 3
"""Random points at which coefficients have their usual size."""

DRAWS = 30
"""Random points drawn where the first few are not all sound."""

TIME = "t'"
"""Where the values of time stand among those of variables: time has no rate."""


def sample_points(tableau: Tableau, count: int, values: Any) -> list[Float[Array, "K size"]]:
    """Return x, x_dot, u, t, parameters at sample points: given values by name ("t": time), random ones else."""
    rng = np.random.default_rng(7)
    mapping = as_mapping(values, "values")
    owners = tableau.variables.groups
    time = mapping.pop("t") if tableau.time.numel() and "t" in mapping and "t" not in owners else None
    chosen = {name: mapping.pop(name) for name in tableau.parameters.names if name in mapping and name not in owners}
    names = [list(tableau.unknowns), [f"{tableau.unknowns[k]}'" for k in tableau.differential], list(tableau.inputs)]
    numbers = named_values(tableau.variables, mapping, "values", itertools.chain(*names), finite=True)
    if time is not None:
        numbers[TIME] = as_numbers(time, "values: the value of 't'", finite=True)
    names.append([TIME] * tableau.time.numel())
    lengths = {v.shape for v in numbers.values() if v.ndim}
    if len(lengths) > 1 or any(len(shape) > 1 for shape in lengths):
        raise ShapeError(f"values: one number or one per point, equally many; shapes {sorted(lengths)}")
    count = as_count(lengths.pop()[0] if lengths else count, "points")
    draws = [[numbers.get(n, rng.standard_normal(count)) for n in group] for group in names]
    columns = [[np.broadcast_to(value, (count,)) for value in group] for group in draws]
    points = [np.stack(c, axis=1) if c else np.empty((count, 0)) for c in columns]
    points.append(np.broadcast_to(_parameters(tableau, chosen, rng), (count, tableau.parameters.column.numel())))
    free = np.array([name not in numbers for name in tableau.unknowns], dtype=bool)
    return [_consistent(tableau, points, free), *points[1:]]


def _consistent(tableau: Tableau, points: list[Array], free: Bool[Array, " n"]) -> Float[Array, "K n"]:
    """Return x, free unknowns as causality gives them: a rotation matrix is one, not nine random numbers."""
    if not tableau.matching.perfect:
        return points[0]
    start = causal_start(tableau, make_plan(tableau.pattern, preferred=tableau.preferred))
    present = [p for p in points if p.shape[1]]
    starts = np.stack([np.array(start(*[p[k] for p in present]), dtype=float).ravel() for k in range(len(points[0]))])
    return np.where(free & np.isfinite(starts), starts, points[0])


def _parameters(tableau: Tableau, chosen: Mapping[str, Any], rng: np.random.Generator) -> Array:
    """Return given or default values of parameters, random ones where there is neither."""
    parameters = tableau.parameters
    sizes = {name: symbol.numel() for name, symbol in zip(parameters.names, parameters.symbols, strict=True)}
    drawn = {n: rng.uniform(0.5, 1.5, k) for n, k in sizes.items() if n not in chosen and n not in parameters.defaults}
    for name, value in chosen.items():
        as_numbers(value, f"values: the value of {name!r}", finite=True)
    packed = parameters.pack({**drawn, **chosen})
    if packed.ndim > 1:
        raise ShapeError(f"values: one value for each parameter; got shape {packed.shape[:-1]} of them")
    return packed


def sample_jacobian(
    tableau: Tableau, count: int = 3, shift: float = 1.0, values: Mapping[str, Any] | None = None
) -> Float[Array, "K entries"]:
    """Return the entries of dG/dx + shift dG/dx' (CSR order of `tableau.pattern`) at sample points."""
    s, shift = ca.SX.sym("shift"), as_scalar(shift, "shift")
    J = tableau.jacobian(s)
    inputs = [tableau.x, tableau.x_dot, tableau.u, tableau.time, tableau.parameters.column]
    f = ca.Function("J", [*inputs, s], [J.nz[:]])
    order = order_by_rows(J.sparsity())
    points = sample_points(tableau, count, values)
    entries = [np.array(f(*[p[k] for p in points], shift), dtype=float).ravel()[order] for k in range(len(points[0]))]
    return np.stack(entries) if entries else np.empty((0, len(order)))


def rank_of(tableau: Tableau, count: int, shift: float, values: Any) -> RankReport:
    """Return the rank of the Jacobian at sample points; at given ones, beside the usual size of its entries."""
    entries = sample_jacobian(tableau, count, shift, values)
    usual = np.abs(sample_jacobian(tableau, REFERENCES, shift)).max(axis=0) if values else None
    return rank_report(tableau.pattern, entries, reference=usual)


def _finite_points(tableau: Tableau, values: Any, J: ca.Function, kept: list[int]) -> list[Float[Array, "K size"]]:
    """Return points for the inputs of J: PROBES of them, drawn again where J is not finite at one."""
    points: list[Array] = []
    for count in (PROBES, DRAWS):
        x, x_dot, u, t, p = sample_points(tableau, count, values)
        points = [(x, x_dot, np.full((len(x), 1), 10.0), u, t, p)[k] for k in kept]
        entries = [np.array(J(*[array[k] for array in points]).nonzeros()) for k in range(len(x))]
        finite = np.flatnonzero([np.isfinite(array).all() for array in entries])
        if len(x) != count or finite.size == count:
            return points
    return [array[finite[:PROBES]] for array in points] if finite.size else [array[:PROBES] for array in points]


def newton_of(tableau: Tableau, values: Mapping[str, Any] | None, options: dict[str, Any]) -> NewtonStep:
    """Return the compiled Newton step of a tableau; empty inputs are left out."""
    tableau.structure().require()
    for option in options:
        if option not in ("engine", "checks"):
            raise ModelError(f"{option!r} is no option of a tableau's Newton step; there are engine and checks")
    s = ca.SX.sym("shift", 1 if tableau.differential else 0)
    names = ("x", "x_dot", "shift", "u", "t", "parameters")
    symbols = (tableau.x, tableau.x_dot, s, tableau.u, tableau.time, tableau.parameters.column)
    present = [k for k, symbol in enumerate(symbols) if symbol.numel()]
    inputs, labels = [symbols[k] for k in present], [names[k] for k in present]
    f = ca.Function("residual", inputs, [tableau.residual], labels, ["G"])
    J = ca.Function("jacobian", inputs, [tableau.jacobian(s if tableau.differential else 0)], labels, ["J"])
    points = _finite_points(tableau, values, J, present)
    return NewtonStep(
        f,
        points=points,
        preferred=tableau.preferred,
        equations=tableau.equations,
        unknowns=tableau.unknowns,
        jacobian=J,
        **options,
    )

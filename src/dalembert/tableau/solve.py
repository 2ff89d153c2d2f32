"""Newton's method on a tableau without rates of unknowns: all samples of a batch at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from dalembert.errors import ModelError, ShapeError, SolvabilityError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.tableau.causal_start import causal_start
from dalembert.tableau.newton_step import NewtonStep

if TYPE_CHECKING:
    from dalembert.tableau.tableau import Tableau

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class TableauSolution:
    """Values of all unknowns, by name: `solution["tau"]` is a column, `solution["tau[2]"]` one number per sample.

    Attributes
    ----------
    x : (n,) or (N, n)
    converged : (N,)
    residual : (N,)
        Largest |G| of each sample.
    iterations
        Newton iterations of the slowest sample.
    """

    tableau: Tableau
    x: Float[Array, "*batch n"]
    converged: Bool[Array, " N"]
    residual: Float[Array, " N"]
    iterations: int

    def __getitem__(self, name: str) -> Float[Array, "..."]:
        """Return a variable, or one element of it."""
        place = {unknown: k for k, unknown in enumerate(self.tableau.unknowns)}
        scalars = [self.tableau.variables.names[s] for s in self.tableau.variables.find([name], "solution")]
        missing = [s for s in scalars if s not in place]
        if missing:
            raise ModelError(f"{missing[0]!r} is known, not a result")
        columns = self.x[..., [place[s] for s in scalars]]
        return columns[..., 0] if len(scalars) == 1 else columns


def solve_tableau(
    tableau: Tableau,
    known: Mapping[str, Any],
    guess: Any = None,
    t: Any = 0.0,
    parameters: Any = None,
    newton: NewtonStep | None = None,
    tolerance: float = 1e-12,
    limit: int = 50,
) -> TableauSolution:
    """Solve G(x, u, t) = 0 for given known variables.

    Parameters
    ----------
    known
        Name -> value, one state or a batch (N, size); "q'" gives a rate.
    guess
        Start of Newton's method, (n,) or (N, n); zero if none is given. What causality gives explicitly replaces it.
    newton
        Compiled steps from `tableau.newton()`, to be used again.
    tolerance
        Stop where the step is below tolerance (1 + |x|), element by element.
    """
    if tableau.differential:
        names = ", ".join(repr(tableau.unknowns[k]) for k in tableau.differential[:4])
        raise UnsupportedError(
            f"the equations contain rates of unknowns ({names} ...): this is a differential equation"
        )
    newton = newton or tableau.newton()
    u, single = pack_inputs(tableau, known)
    others = _other_inputs(tableau, u, t, parameters)
    x = np.zeros((len(u), len(tableau.unknowns))) + (0.0 if guess is None else np.asarray(guess, dtype=float))
    start = np.asarray(Kernel(causal_start(tableau, newton.plan))(x, *others))
    x = np.where(np.isfinite(start), start, x)
    x, done, iterations = _iterate(newton, x, others, tolerance, limit)
    residual = np.abs(np.atleast_2d(newton.step(x, *others).residual)).max(axis=1, initial=0.0)
    if single and not done[0]:
        raise SolvabilityError(
            f"Newton's method did not converge in {iterations} iterations: largest residual {residual[0]:.2e}. "
            "Start nearer (guess=), or look at `tableau.rank()` for a singular Jacobian"
        )
    return TableauSolution(tableau, x[0] if single else x, done, residual, iterations)


def _other_inputs(tableau: Tableau, u: Float[Array, "N k"], t: Any, parameters: Any) -> list[Array]:
    """Return u, t and parameters as batches, empty ones left out."""
    others: list[Array] = [u] if u.shape[1] else []
    if tableau.time.numel():
        others.append(np.broadcast_to(np.atleast_1d(np.asarray(t, dtype=float)), (len(u),))[:, None])
    if tableau.parameters.names:
        others.append(np.broadcast_to(tableau.parameters.pack(parameters), (len(u), tableau.parameters.column.numel())))
    return others


def _iterate(
    newton: NewtonStep, x: Float[Array, "N n"], others: list[Array], tolerance: float, limit: int
) -> tuple[Float[Array, "N n"], Bool[Array, " N"], int]:
    """Take steps until all samples are done, all are singular, or the limit is reached."""
    iterations, done = 0, np.zeros(len(x), bool)
    while iterations < limit and not done.all():
        found = newton.step(x, *others)
        small = np.all(np.abs(found.step) <= tolerance * (1.0 + np.abs(x)), axis=1)
        x = x + np.where(np.isnan(found.step), 0.0, found.step)
        done = small & found.linear.ok
        iterations += 1
        if not found.linear.ok.any():
            break
    return x, done, iterations


def pack_inputs(tableau: Tableau, known: Mapping[str, Any]) -> tuple[Float[Array, "N k"], bool]:
    """Return the inputs of a tableau from values by name, and whether it is one state."""
    values: dict[str, Array] = {}
    for name, value in known.items():
        base = name.rstrip("'")
        scalars = tableau.variables.find([base], "known")
        array = np.asarray(value, dtype=float)
        if len(scalars) == 1 and (array.ndim == 0 or array.shape[-1] != 1):
            array = array[..., None]
        if array.ndim > 2 or array.shape[-1] != len(scalars):
            raise ShapeError(f"{name!r} has {len(scalars)} elements; the value has shape {np.shape(value)}")
        suffix = name[len(base) :]
        values |= {tableau.variables.names[s] + suffix: array[..., k] for k, s in enumerate(scalars)}
    missing = [name for name in tableau.inputs if name not in values]
    if missing:
        raise ModelError(f"no value for the known {', '.join(map(repr, missing[:6]))}")
    extra = [name for name in values if name not in tableau.inputs]
    if extra:
        raise ModelError(f"{', '.join(map(repr, extra[:6]))} is not known in this tableau; with_known() chooses")
    lengths = {len(v) for v in values.values() if v.ndim}
    if len(lengths) > 1:
        raise ShapeError(f"known values are batches of different lengths: {sorted(lengths)}")
    count = next(iter(lengths), 1)
    columns = [np.broadcast_to(values[name], (count,)) for name in tableau.inputs]
    return np.stack(columns, axis=1) if columns else np.empty((count, 0)), not lengths

"""Newton's method on a tableau without rates of unknowns: all samples of a batch at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from dalembert.errors import ModelError, SolvabilityError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.tableau.causal_start import causal_start
from dalembert.tableau.inputs import as_count, as_scalar
from dalembert.tableau.newton_step import NewtonStep
from dalembert.tableau.packing import pack

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
        Start of Newton's method: (n,) or (N, n), or values by name of some unknowns; zero where none is given. What
        causality gives explicitly replaces it.
    t
        Time, one number or (N,), where the equations contain it.
    parameters
        Values by name, or (k,) or (N, k); defaults where none are given.
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
    tolerance, limit = as_scalar(tolerance, "tolerance", 0.0, 1.0), as_count(limit, "limit")
    given = pack(tableau, known, guess, t, parameters)
    x, others, single = given.guess, given.others, given.single
    newton = _newton_of(tableau, newton)
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


def _newton_of(tableau: Tableau, newton: Any) -> NewtonStep:
    """Return the compiled steps, made here or given; those of other equations are refused."""
    if newton is None:
        return tableau.newton()
    if not isinstance(newton, NewtonStep):
        raise ModelError(f"newton must come from `tableau.newton()`; it is {type(newton).__name__}")
    own = newton.plan.pattern
    if (own.equations, own.unknowns) != (tableau.equations, tableau.unknowns):
        raise ModelError("newton was made for other equations or unknowns; make it by this tableau's `newton()`")
    return newton


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

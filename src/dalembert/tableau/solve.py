"""The solve of a tableau without rates of unknowns: Newton's method on a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError, UnsupportedError
from dalembert.kernel import Kernel
from dalembert.kkt.limits import FULFILLED
from dalembert.status import Status
from dalembert.tableau.inputs import as_count, as_flag, as_numbers, as_scalar, named_values
from dalembert.tableau.newton_batch import NEWTON_ENDS, Iterated, NewtonStep, causal_start, iterate, violations
from dalembert.tableau.structure.rank import loose_rank_report, rank_report, vanished
from dalembert.tableau.structure.solvability import listed
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from dalembert.tableau.tableau import Tableau

# ----------------------------------------------------------------------------------------------------------------------
# Known values, guess, time and parameters of a solve, packed as batches of equal length.


@dataclass(frozen=True, eq=False)
class Packed:
    """Guess (N, n), the other inputs of Newton's step (N, size), empty ones left out, and whether it is one state."""

    guess: Float[Array, "N n"]
    others: list[Array]
    single: bool


def pack(tableau: Tableau, known: Any, guess: Any, t: Any, parameters: Any) -> Packed:
    """Read what a user gives; each part is one state, or a batch of the common length N."""
    parts = {
        "known": _inputs(tableau, known),
        "guess": _guess(tableau, guess),
        "t": _time(t),
        "parameters": tableau.parameters.pack(parameters),
    }
    lengths = {what: len(part) for what, part in parts.items() if part.ndim == 2}
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"batches of different lengths: {', '.join(f'{k} {n}' for k, n in lengths.items())}")
    for what, part in parts.items():
        if part.ndim > 2:
            raise ShapeError(f"{what} has more than one axis of samples: shape {part.shape}")
    count = next(iter(lengths.values()), 1)
    batches = {what: np.broadcast_to(part, (count, part.shape[-1])) for what, part in parts.items()}
    if not tableau.time.numel():
        del batches["t"]
    x = batches.pop("guess")
    return Packed(x, [part for part in batches.values() if part.shape[1]], not lengths)


def _inputs(tableau: Tableau, known: Any) -> Float[Array, "*N k"]:
    """Return the inputs of a tableau from values by name."""
    values = named_values(tableau.variables, known, "known", tableau.inputs)
    missing = [name for name in tableau.inputs if name not in values]
    if missing:
        raise ModelError(f"no value for the known {listed(missing)}")
    return _stacked([values[name] for name in tableau.inputs])


def _guess(tableau: Tableau, guess: Any) -> Float[Array, "*N n"]:
    """Return a start by place or by name; zero where nothing is given."""
    n = len(tableau.unknowns)
    if guess is None:
        return np.zeros(n)
    if isinstance(guess, Mapping):
        values = named_values(tableau.variables, guess, "guess", tableau.unknowns, finite=True)
        return _stacked([values.get(name, np.zeros(())) for name in tableau.unknowns])
    array = as_numbers(guess, "guess", finite=True)
    if array.ndim == 0:
        return np.full(n, float(array))
    if array.shape[-1] != n:
        raise ShapeError(
            f"guess must be one number, ({n},), (N, {n}), or a mapping from names of unknowns; it has {array.shape}"
        )
    return array


def _time(t: Any) -> Float[Array, "*N one"]:
    """Return one time, or one per sample."""
    array = as_numbers(t, "t", finite=True)
    if array.ndim > 1:
        raise ShapeError(f"t must be one number or (N,); it has shape {array.shape}")
    return array[..., None]


def _stacked(columns: list[Array]) -> Float[Array, "*N k"]:
    """Put numbers () and batches (N,) side by side."""
    if not columns:
        return np.empty(0)
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


# ----------------------------------------------------------------------------------------------------------------------
# Newton's method on a tableau without rates of unknowns: all samples of a batch at once.


@dataclass(frozen=True, eq=False)
class TableauSolution:
    """Values of all unknowns, by name: `solution["tau"]` is a column, `solution["tau[2]"]` one number per sample.

    Attributes
    ----------
    x : (n,) or (N, n)
        NaN where a sample has no answer.
    status : (N,)
        `Status` of each sample.
    residual : (N,)
        Largest |G| of each sample, where it ended.
    iterations
        Newton iterations of the slowest sample.
    conditions
        Per equation without unknowns, how far each sample violates it, as a part of its terms (N,).
    vanishing
        Equations and unknowns all of whose coefficients are, at an answer, below 1e-13 of their sizes at the probed
        points: a singular configuration but for rounding, unless they are meant to be so small.
    origin
        What `error` is found with.
    """

    tableau: Tableau
    x: Float[Array, "*batch n"]
    status: Int[Array, " N"]
    residual: Float[Array, " N"]
    iterations: int
    conditions: dict[str, Float[Array, " N"]]
    vanishing: tuple[str, ...] = ()
    origin: tuple[Any, ...] | None = field(default=None, repr=False)

    @property
    def error(self) -> Float[Array, "*batch n"]:
        """Estimated |x - exact x| of every unknown, known values taken as exact; found when asked for.

        Of the equations as they are linear at x: where the Jacobian is badly conditioned, rounding in the residuals
        leaves few digits, and this says how few. NaN where there is no answer.
        """
        if self.origin is None:
            raise ModelError("nothing is known of the error of this solution: its Jacobian was not kept")
        estimate, values, right = self.origin
        return estimate(values, right, self.x)

    @property
    def converged(self) -> Bool[Array, " N"]:
        """Where there is an answer."""
        return self.status == Status.CONVERGED

    def __getitem__(self, name: str) -> Float[Array, "..."]:
        """Return a variable, or one element of it."""
        place = {unknown: k for k, unknown in enumerate(self.tableau.unknowns)}
        scalars = [self.tableau.variables.names[s] for s in self.tableau.variables.find([name], "solution")]
        missing = [s for s in scalars if s not in place]
        if missing:
            raise ModelError(f"{missing[0]!r} is known, not a result")
        columns = self.x[..., [place[s] for s in scalars]]
        return columns[..., 0] if len(scalars) == 1 else columns

    def __str__(self) -> str:
        counts = {outcome.name: int(np.count_nonzero(self.status == outcome)) for outcome in NEWTON_ENDS}
        ends = ", ".join(f"{n} {name}" for name, n in counts.items() if n)
        met = [name for name, sizes in self.conditions.items() if (sizes <= FULFILLED).all()]
        text = f"{len(self.tableau.unknowns)} unknowns: {ends or 'no sample'}; {self.iterations} iteration(s)"
        text += f"; without unknowns and fulfilled: {listed(met)}" if met else ""
        return text + (f"; coefficients of {listed(list(self.vanishing))} all but vanish" if self.vanishing else "")


def solve_tableau(
    tableau: Tableau,
    known: Mapping[str, Any],
    guess: Any = None,
    t: Any = 0.0,
    parameters: Any = None,
    newton: NewtonStep | None = None,
    tolerance: float = 1e-12,
    limit: int = 50,
    values: Mapping[str, Any] | None = None,
    conditions: bool = True,
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
    values
        Sample values by name at which pivots are probed, as for `tableau.newton`; random numbers else.
    conditions
        Whether known data that contradict an equation without unknowns are refused (CONTRADICTED in a batch).
    """
    if tableau.differential:
        names = ", ".join(repr(tableau.unknowns[k]) for k in tableau.differential[:4])
        raise UnsupportedError(
            f"the equations contain rates of unknowns ({names} ...): this is a differential equation"
        )
    tolerance, limit = as_scalar(tolerance, "tolerance", 0.0, 1.0), as_count(limit, "limit")
    packed = pack(tableau, known, guess, t, parameters)
    x, others, single = packed.guess, packed.others, packed.single
    newton = _newton_of(tableau, newton, values)
    met = violations(tableau, others)
    start = np.asarray(Kernel(causal_start(tableau, newton.plan))(x, *others))
    iterated = iterate(newton, np.where(np.isfinite(start), start, x), others, tolerance, limit)
    status = np.array(iterated.status)
    if as_flag(conditions, "conditions"):
        broken = np.array([~(sizes <= FULFILLED) for sizes in met.values()]).reshape(len(met), len(x)).any(axis=0)
        status[broken & (status != Status.NONFINITE)] = Status.INCONSISTENT
    entries, rows = (np.atleast_2d(output) for output in newton.entries(iterated.x, *others))
    entries = np.broadcast_to(entries, (len(x), entries.shape[1]))
    residual = np.abs(rows).max(axis=1, initial=0.0)
    if single and status[0] != Status.CONVERGED:
        raise _refusal(tableau, newton, iterated, others, status[0], {k: float(v[0]) for k, v in met.items()})
    x = np.where((status == Status.CONVERGED)[:, None], iterated.x, np.nan)
    answers = entries[status == Status.CONVERGED]
    pattern, (lost, loose) = newton.plan.pattern, vanished(newton.plan.pattern, answers, newton.usual)
    small = [pattern.equations[i] for i in np.flatnonzero(lost.any(axis=0))]
    small += [pattern.unknowns[j] for j in np.flatnonzero(loose.any(axis=0))]
    right = np.array([pattern.matrix(a) @ y - g for a, y, g in zip(entries, iterated.x, rows, strict=True)])
    origin = (newton.error, entries, right.reshape(x.shape))
    x = x[0] if single else x
    return TableauSolution(tableau, x, status, residual, iterated.iterations, met, tuple(small), origin)


def _refusal(
    tableau: Tableau, newton: NewtonStep, last: Iterated, others: list[Array], status: int, met: dict[str, float]
) -> SolvabilityError:
    """Return what went wrong for a single state, by name."""
    data, rows = (np.atleast_2d(output)[0] for output in newton.entries(last.x, *others))
    pattern = newton.plan.pattern
    if status == Status.INCONSISTENT:
        worst = {name: size for name, size in met.items() if not size <= FULFILLED}
        text = ", ".join(f"{name!r} by {size:.1e} of its terms" for name, size in list(worst.items())[:6])
        return SolvabilityError(
            f"known values contradict equations that contain no unknown: {text}. Correct them (known accelerations "
            "must keep loops closed), make a variable of these equations unknown, or leave such equations out with "
            "conditions=False"
        )
    if status == Status.NONFINITE:
        unknown = np.flatnonzero(~np.isfinite(others[0][0])) if tableau.inputs else ()
        if len(unknown):
            names = list(tableau.inputs)
            return SolvabilityError(f"NaN or infinity is given for known {listed([names[k] for k in unknown])}")
        bad = [*pattern.rows[~np.isfinite(data)], *np.flatnonzero(~np.isfinite(rows))]
        names = listed(list(dict.fromkeys(pattern.equations[i] for i in sorted(bad))))
        return SolvabilityError(
            f"NaN or infinity in equation(s) {names} after {last.iterations} iteration(s) of Newton's method: look at "
            "the known values, or start elsewhere (guess=)"
        )
    if status == Status.SINGULAR:
        report = loose_rank_report(pattern, data)
        return SolvabilityError(
            f"Newton's method met a singular matrix at iteration {last.iterations}: {report}. Start elsewhere "
            "(guess=), or see `tableau.rank()` whether it is singular everywhere",
            report,
        )
    report = rank_report(pattern, data, reference=newton.usual)
    if not report.full:
        return SolvabilityError(
            f"Newton's method did not converge in {last.iterations} iterations: where it ended the matrix is singular "
            f"but for rounding. {report}",
            report,
        )
    order = np.argsort(-np.abs(rows))[:3]
    unmet = ", ".join(f"{tableau.equations[i]!r} {rows[i]:.1e}" for i in order)
    moving = listed([tableau.unknowns[j] for j in np.argsort(-np.abs(last.step[0]))[:3]])
    return SolvabilityError(
        f"Newton's method did not converge in {last.iterations} iterations. Largest residuals: {unmet}; largest "
        f"steps: {moving}. Start nearer (guess=), or look at `tableau.rank()` for a singular Jacobian"
    )


def _newton_of(tableau: Tableau, newton: Any, values: Any) -> NewtonStep:
    """Return the compiled steps, made here or given; those of other equations are refused."""
    if newton is None:
        return tableau.newton(values)
    if values is not None:
        raise ModelError("give values= or newton=, not both: newton has been probed already")
    if not isinstance(newton, NewtonStep):
        raise ModelError(f"newton must come from `tableau.newton()`; it is {type(newton).__name__}")
    pattern = newton.plan.pattern
    if (pattern.equations, pattern.unknowns) != (tableau.equations, tableau.unknowns):
        raise ModelError("newton was made for other equations or unknowns; make it by this tableau's `newton()`")
    return newton

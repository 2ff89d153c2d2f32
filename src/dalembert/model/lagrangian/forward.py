"""Forward dynamics of a Lagrangian: states checked, ranks probed before code is chosen, batches with a status each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.checks import floats, vectors
from dalembert.errors import ModelError, ShapeError
from dalembert.kkt import KKT, Solution, Status
from dalembert.kkt.expressions.probing import closest_closed, coordinate_sizes, probe
from dalembert.kkt.expressions.verdict import Conditioning
from dalembert.kkt.solution import compiled_solution
from dalembert.model.lagrangian.quantities import LARGEST, input_names
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.lagrangian.derivation import Expressions
    from dalembert.model.lagrangian.lagrangian import Lagrangian
    from dalembert.model.lagrangian.symbols import Symbols
    from dalembert.model.parameters import Parameters

# ----------------------------------------------------------------------------------------------------------------------
# States handed to a Lagrangian system, checked: q, v, force, t, u and parameters, each single or a batch.


@dataclass(frozen=True, eq=False)
class States:
    """One array per input by name, (size,) or (..., size); only inputs that the system has, and the force on it."""

    system: Lagrangian
    arrays: dict[str, Array]

    @classmethod
    def of(cls, system: Lagrangian, parameters: Any = None, **given: Any) -> States:
        """Check shapes; force, u and t count as zero where they are None."""
        sizes = {**system.symbols.sizes, "force": len(system.coordinates)}
        if given.get("u") is not None and "u" not in sizes:
            raise ModelError("this system has no controls: give their symbols as controls= where it is made")
        arrays = {name: _column(name, given[name], sizes[name]) for name in given if name in sizes}
        packed = system.parameters.pack(parameters)
        if "parameters" in sizes:
            arrays["parameters"] = packed
        return cls(system, arrays)

    def evaluate(self, what: str) -> Any:
        """Return the outputs of a quantity's kernel for these states."""
        return self.system.compile(what)(*[self.arrays[name] for name in input_names(self.system.symbols, what)])

    def matrix(self, what: str) -> Array:
        """Return the output of a kernel as a matrix (..., rows, n)."""
        return self._as_matrix(self.evaluate(what))

    def terms(self) -> tuple[Array, Array, Array, Array]:
        """Return M, bias, A and drift."""
        M, bias, A, drift = self.evaluate("terms")
        return self._as_matrix(M), bias, self._as_matrix(A), drift

    def balance(self) -> tuple[Array, Array, Array, Array]:
        """Return M, the applied force minus bias, A and drift."""
        M, bias, A, drift = self.terms()
        return M, self.arrays["force"] - bias, A, drift

    def _as_matrix(self, x: Array) -> Array:
        """Return a matrix of n columns; kernels give one with a single column as a vector."""
        return x[..., None] if len(self.system.coordinates) == 1 else x

    @property
    def batch(self) -> tuple[int, ...]:
        """() for one state; the leading axes of a batch."""
        batches = {array.shape[:-1] for array in self.arrays.values() if array.ndim > 1}
        if len(batches) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in self.arrays.items())
            raise ShapeError(f"batches must have the same leading axes; the inputs are {shapes}")
        return next(iter(batches), ())

    def taken(self, index: Array) -> States:
        """Return the samples of a batch with these numbers, counted in C order."""
        flat = {name: array.reshape(-1, array.shape[-1]) for name, array in self.arrays.items() if array.ndim > 1}
        taken = self.arrays | {name: rows[index] for name, rows in flat.items()}
        return States(self.system, taken)

    def finite(self) -> Array:
        """Per sample, whether all inputs are finite; the shape of the batch."""
        flags = [np.isfinite(array).all(axis=-1) for array in self.arrays.values()]
        return np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*flags)), self.batch)

    def refuse_batch_and_nonfinite(self) -> None:
        """Refuse what a single solve cannot take, by the name of the coordinate."""
        if self.batch:
            raise ShapeError(f"solve takes one state; this is a batch of shape {self.batch}: use forward")
        for name, array in self.arrays.items():
            bad = np.flatnonzero(~np.isfinite(array))
            if bad.size:
                of = f" (coordinate {self.system.coordinates[bad[0]]!r})" if name in ("q", "v") else ""
                raise ModelError(f"{name}[{bad[0]}]{of} is {array[bad[0]]}; a state must be finite")


def _column(name: str, value: Any, size: int) -> Array:
    """Return an input as floats, (size,) or (..., size)."""
    if value is None:
        return np.zeros(size)
    if name == "t":  # a time may be given without the axis of its one entry
        times = floats(value, name)
        return times if times.shape[-1:] == (1,) else times[..., None]
    return vectors(value, size, name)


# ----------------------------------------------------------------------------------------------------------------------
# Probing of a Lagrangian's matrices at states that meet its constraints: implied rows, singular masses.
#
# What is found decides which code is traced, never what a sample is told: each proves for itself that the code suits it
# (`kkt/expressions/sample_verdict.py`). Parameters have their default values here, those without one a number near one.


PROBES = 5
"""States at which ranks are looked at before code is chosen."""

TRIALS = 12
"""Random states from which the constraints are looked for; most systems need as many as there are probes."""

SIZES = (1.0, 0.3, 3.0, 0.03, 30.0)
"""Standard deviations of random coordinates, in turn: nobody says in which units they are."""


class _Place(NamedTuple):
    """A configuration with its time, and M (n, n), A (m, n), phi (h,) there."""

    q: Array
    t: float
    M: Array
    A: Array
    phi: Array

    @property
    def finite(self) -> bool:
        return all(np.isfinite(x).all() for x in (self.M, self.A, self.phi))


def conditioning_of(e: Expressions, symbols: Symbols, parameters: Parameters) -> Conditioning:
    """Return what M and A ask for at `PROBES` random states, which meet the constraints where that can be."""
    n, m = e.mass.shape[0], e.jacobian.shape[0]
    places = list(islice(probed_places(e, symbols, parameters), PROBES))
    if not places:  # no numbers anywhere: every sample will have to prove itself
        return Conditioning(True, (1.0,) * n, (1.0,) * m, (0.0,) * m, (False,) * m, ((),) * m)
    return probe(np.array([place.M for place in places]), np.array([place.A for place in places]))


def probed_places(e: Expressions, symbols: Symbols, parameters: Parameters) -> Iterator[_Place]:
    """Yield states that meet the constraints; where none is found, states as they come."""
    rng = np.random.default_rng(0)
    values = _values(parameters, rng)
    inputs = [symbols.q, symbols.t, symbols.parameters.column, symbols.v]
    function = ca.Function("probe", inputs, [e.mass, e.jacobian, e.constraint])
    speeds = np.random.default_rng(1).normal(size=symbols.v.numel())  # of rows that depend on velocities
    n, holonomic = symbols.q.numel(), np.array(e.holonomic, dtype=bool)

    def at(q: Array, t: float) -> _Place:
        M, A, phi = (np.array(ca.densify(x)) for x in function(q, np.full(symbols.t.numel(), t), values, speeds))
        return _Place(q, t, M.reshape(n, n), A.reshape(-1, n), phi.ravel())

    def linearised(q: Array, t: float) -> tuple[Array, Array, Array]:
        place = at(q, t)
        if not place.finite:
            return np.ones(n), np.zeros((len(place.phi), n)), np.full(len(place.phi), np.inf)
        J = place.A[holonomic]
        sizes = np.abs(J) @ (np.abs(q) + 1.0)
        sizes[sizes == 0.0] = 1.0
        return coordinate_sizes(place.M), J / sizes[:, None], place.phi / sizes

    open_places, closed = [], False
    for trial in range(TRIALS):
        q = SIZES[trial % len(SIZES)] * rng.normal(size=n)
        t = float(rng.uniform()) * (trial % 2)  # rows may be special at time zero, or agree there only
        if holonomic.any():
            open_places.append(at(q, t))
            q = closest_closed(lambda q, t=t: linearised(q, t), np.add, q)
        if q is not None and (place := at(q, t)).finite:
            closed = True
            yield place
    if not closed:
        yield from (place for place in open_places if place.finite)


def _values(parameters: Parameters, rng: np.random.Generator) -> Array:
    """Return the column of parameters: defaults, and numbers near one where there are none."""
    sizes = {name: symbol.numel() for name, symbol in zip(parameters.names, parameters.symbols, strict=True)}
    missing = {name: rng.uniform(0.5, 1.5, size) for name, size in sizes.items() if name not in parameters.defaults}
    return parameters.pack(missing)


# ----------------------------------------------------------------------------------------------------------------------
# Forward dynamics of a batch: straight-line code first, `KKT` for every sample that it leaves open.


SOLVED = (Status.UNIQUE, Status.REDUNDANT)
"""Verdicts of the kernel whose numbers are the answer."""

NOWHERE = (Status.INCONSISTENT, Status.NONFINITE)
"""Verdicts that `KKT` would repeat, unless it is asked for a least-squares answer: there are no numbers."""


def forward(system: Lagrangian, states: States, options: dict[str, Any]) -> Solution:
    """Return accelerations (..., n), multipliers (..., m) and one status per sample, shape of the batch."""
    if options:
        KKT(np.eye(1)).solve(np.zeros((1, 1)), **options)  # a wrong word is refused although no sample may need it
    batch, n, m = states.batch, len(system.coordinates), len(system.names)
    samples = math.prod(batch)
    answers = _Answers.unknown(samples, n, m)
    if n + m <= LARGEST and options.get("route") in (None, "auto"):
        a, lam, status = states.evaluate("forward")
        answers = _Answers(*(x.reshape(samples, x.shape[-1]) for x in (a, lam, status)))
        answers.status[answers.status == Status.NONFINITE] = Status.DECLINED  # inputs that are finite, but overflow
        answers.status[~states.finite().reshape(-1)] = Status.NONFINITE
        answers.clear(NOWHERE)
    decided = SOLVED if options else (*SOLVED, *NOWHERE)
    rest = np.flatnonzero(~np.isin(answers.status[:, 0], decided))
    if rest.size:
        solved = by_kkt(states.taken(rest), rest.size, options)
        answers.acceleration[rest], answers.multipliers[rest] = solved.acceleration, solved.multipliers
        answers.status[rest, 0] = solved.certificate.status
    if system.massless_rows:
        answers.status[(answers.status == Status.UNIQUE) | (answers.status == Status.REDUNDANT)] = Status.HELD
    return answers.solution(system, states, options)


def by_kkt(states: States, samples: int, options: dict[str, Any]) -> Solution:
    """Solve samples through `KKT`, as a batch; those with inputs that are not finite get a force that is NaN."""
    system = states.system
    M, force, A, drift = states.balance()
    force = np.where(states.finite()[..., None], force, np.nan)
    force = np.broadcast_to(force, (samples, force.shape[-1]))
    if not (np.isfinite(M).all() and np.isfinite(A).all()):  # as a batch these are a status, alone they are refused
        M, A = (np.broadcast_to(x, (samples, *x.shape[-2:])) for x in (M, A))
    return KKT(M, A, system.names, system.coordinates).solve(force, drift, **options)


@dataclass(frozen=True, eq=False)
class _Answers:
    """Outputs of the kernel "forward", flat: (N, n), (N, m), (N, 1)."""

    acceleration: Array
    multipliers: Array
    status: Array

    @classmethod
    def unknown(cls, samples: int, n: int, m: int) -> _Answers:
        """Return a batch of which nothing is known yet."""
        a, lam = (np.full((samples, size), np.nan) for size in (n, m))
        return cls(a, lam, np.full((samples, 1), float(Status.DECLINED)))

    def clear(self, verdicts: tuple[Status, ...]) -> None:
        """Leave no numbers where there is no answer."""
        nowhere = np.isin(self.status[:, 0], verdicts)
        self.acceleration[nowhere], self.multipliers[nowhere] = np.nan, np.nan

    def solution(self, system: Lagrangian, states: States, options: dict[str, Any]) -> Solution:
        """Return the batch as a `Solution`; residuals and the certificate of a sample are made when asked for."""
        shape = states.batch

        def terms(index: Array) -> tuple[Array, Array, Array, Array]:
            M, force, A, drift = states.taken(index).balance()
            M, A = (np.broadcast_to(x, (index.size, *x.shape[-2:])) for x in (M, A))
            force, drift = (np.broadcast_to(x, (index.size, x.shape[-1])) for x in (force, drift))
            return M, A, force, -drift

        a, lam = (x.reshape(*shape, x.shape[-1]) for x in (self.acceleration, self.multipliers))
        return compiled_solution(
            system, a, lam, self.status.reshape(shape), terms,
            lambda index: by_kkt(states.taken(index), index.size, options),
        )  # fmt: skip

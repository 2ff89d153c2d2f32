"""The block matrix as an object: what a user makes from M and A, and asks.

[ M  A^T ] [ a   ]   [ force  ]
[ A   0  ] [ lam ] = [ -drift ]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.kkt.analysis import Analysis
from dalembert.kkt.batch import solve_batch
from dalembert.kkt.certificate import Certificate
from dalembert.kkt.dagger import Dagger, dagger_of
from dalembert.kkt.diagnosis import Diagnosis, diagnose
from dalembert.kkt.inputs import (
    batch_shape,
    checked_groups,
    checked_matrices,
    checked_metric,
    checked_names,
    checked_rank,
    checked_vector,
    precision_of,
    refuse_asymmetric,
    refuse_nonfinite,
    refuse_restitution,
    symmetric_part,
)
from dalembert.kkt.limits import EPS, NOTHING_PROVED, SYMMETRY_FACTOR, fast_proof
from dalembert.kkt.routes import FACTORISATIONS
from dalembert.kkt.solution import Held, Impact, Solution, kinetic_energy
from dalembert.kkt.solve import Answer, SolveOptions, answer
from dalembert.names import near_matches
from dalembert.status import Status
from dalembert.types import Array

Massless = Literal["refuse", "hold"]
Inconsistent = Literal["refuse", "least_squares"]


ROUTE_NAMES = ("auto", *FACTORISATIONS)
DEFAULTS = SolveOptions()


class KKT:
    """A mass matrix with constraint rows.

    Parameters
    ----------
    M
        Mass matrix, (..., n, n), symmetric, semidefinite; it may be singular. Leading axes are batches.
    A
        Constraint rows, (..., m, n), possibly redundant; None or (0, n) for an unconstrained system.
    names, coordinates
        Names of the m rows and the n coordinates, used in every message.
    metric
        Which multipliers to prefer where they are not unique: m weights or an (m, m) definite matrix W; the answer
        minimises lam^T W lam. The default, the identity, depends on the units of the rows.
    route
        How to solve: "auto" or one of `dalembert.kkt.FACTORISATIONS`.
    rank_tolerance
        Relative singular value of the rows, in the metric of the mass, up to which they count as dependent. By default
        10 sqrt(max(m, n)) eps, eps of A's own precision; from there to 1e-10 (in single precision: 1e-4) the rank is
        in doubt and the answer is not called ok.
    rank
        The rank of A, where it is known (the same all over a mechanism, say): what does not fit it is projected away,
        and contradictions beyond what that explains are refused.
    groups
        One number per row: rows with equal numbers share their unit (the rows of one constraint; `[0] * m` for all).
        They are measured together, so that a row that is rounding beside the others is none. By default every row may
        have a unit of its own, and where one is as small as rounding beside another the answer is not called ok.
    doubt
        Why the rank is in doubt, in words, where the caller knows: no answer is called ok, and the diagnosis says it.

    Examples
    --------
    A crank-slider with a massless rod (seed 000, eq. 34):

    >>> K = KKT([[1, 0], [0, 0]], [[2, -1]])
    >>> K.solve(force=[1, 0]).acceleration
    array([1., 2.])
    """

    def __init__(
        self,
        M: Any,
        A: Any = None,
        names: Sequence[str] | None = None,
        coordinates: Sequence[str] | None = None,
        metric: Any = None,
        *,
        route: str = "auto",
        rank_tolerance: float | None = None,
        rank: int | None = None,
        groups: Sequence[int] | None = None,
        doubt: str = "",
    ) -> None:
        M, A, self._precision = checked_matrices(M, A)
        self.n, self.m = M.shape[-1], A.shape[-2]
        self._names = None if names is None else checked_names(names, self.m, "names", "constraint rows")
        self._coordinates = (
            None if coordinates is None else checked_names(coordinates, self.n, "coordinates", "coordinates")
        )
        self.metric = None if metric is None else checked_metric(metric, self.m, self.names)
        self.route = _checked(route, ROUTE_NAMES, "route")
        self.rank_tolerance = rank_tolerance
        if rank_tolerance is not None and not (isinstance(rank_tolerance, float) and 0.0 <= rank_tolerance < 1.0):
            raise ModelError(f"rank_tolerance={rank_tolerance!r} must be a fraction, 0 <= rank_tolerance < 1")
        self.rank, self.groups = checked_rank(rank, self.m, self.n), checked_groups(groups, self.m)
        self.doubt = doubt
        self.skewness = SYMMETRY_FACTOR * self.n * self._precision[0]
        self.batch_shape = batch_shape(M, A)
        self.M, self.A, self._analysis = M, A, None
        plain = route == "auto" and metric is None
        self._defaults = DEFAULTS if plain else SolveOptions(route=self.route, metric=self.metric)
        if not self.batch_shape:
            self._analysis = self._analysed(M, A)
            self.M, self.A = self._analysis.M, self._analysis.A

    def _analysed(self, M: Array, A: Array) -> Analysis:
        """Return the analysis of a single system, after the checks that a batch makes per sample."""
        symmetric = symmetric_part(M, self.skewness)
        if symmetric is not None:
            analysis = self.analysed(symmetric, A)
            if math.isfinite(np.maximum.reduce(analysis.absK, axis=None)):
                return analysis
        refuse_nonfinite(M, "M", self.coordinates, self.coordinates)
        refuse_nonfinite(A, "A", self.names, self.coordinates)
        refuse_asymmetric(M, self.coordinates)

    def analysed(self, M: Array, A: Array) -> Analysis:
        """Return the analysis of one sample, M symmetric, under this system's policy of rank."""
        return Analysis(M, A, self.rank_tolerance, self._precision, self.rank, self.groups, doubt=self.doubt)

    @property
    def proof(self) -> tuple[float, float]:
        """Limits for the factors of a fast route: largest trace, least ratio of row lengths; see `limits.py`."""
        if self.doubt:
            return NOTHING_PROVED
        grouped = self.groups is not None
        return fast_proof(self.n, self.m, self._precision, self.rank_tolerance, self.rank, grouped=grouped)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraint rows; "row 0", "row 1", ... unless given."""
        return self._names or tuple(f"row {i}" for i in range(self.m))

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates; "q0", "q1", ... unless given."""
        return self._coordinates or tuple(f"q{i}" for i in range(self.n))

    @property
    def analysis(self) -> Analysis:
        """What is known of a single system before any right side; shared by all its solves."""
        if self._analysis is None:
            raise ShapeError(f"this is a batch of shape {self.batch_shape}; take one sample, K[0], to analyse it")
        return self._analysis

    @cached_property
    def dagger(self) -> Dagger:
        """The dagger terms (seed 000, eq. 5): blocks of the inverse; NaN for samples of a batch that have none.

        A single system without an inverse raises `SolvabilityError`: `solve` still handles redundant rows.
        """
        return dagger_of(self)

    def __getitem__(self, index: int | tuple[int, ...]) -> KKT:
        """Return one sample of a batch as a system of its own."""
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.batch_shape):
            raise ShapeError(f"a sample of a batch of shape {self.batch_shape} takes {len(self.batch_shape)} indices")
        M = np.broadcast_to(self.M, (*self.batch_shape, self.n, self.n))[index]
        A = np.broadcast_to(self.A, (*self.batch_shape, self.m, self.n))[index]
        M, A = _in_precision(M, self._precision[0]), _in_precision(A, self._precision[1])
        options = {"route": self.route, "rank_tolerance": self.rank_tolerance, "rank": self.rank, "groups": self.groups}
        options["doubt"] = self.doubt
        return KKT(M, A, self._names, self._coordinates, self.metric, **options)

    def solve(
        self,
        force: Any,
        drift: Any = None,
        massless: Massless | str = "refuse",
        inconsistent: Inconsistent | str = "refuse",
        route: str | None = None,
    ) -> Solution:
        """Solve M a + A^T lam = force, A a = -drift.

        Parameters
        ----------
        force
            Applied minus velocity-dependent forces, tau - C v - N, (..., n).
        drift
            A_dot v, (..., m); None for zero.
        massless
            What to do with an admissible motion that moves no mass: "refuse", or "hold" it still and solve the rest.
        inconsistent
            What to do with contradictory rows: "refuse", or "least_squares" (nearest in the dual of `metric`).
        route
            Overrides the route of this system.

        Returns
        -------
        Solution
            With a certificate. A batch has one status per sample and never raises for a bad sample.

        Raises
        ------
        SolvabilityError
            If a single system has no answer; the error carries the diagnosis.
        """
        options = self._options(route, massless, inconsistent)
        if (precision := precision_of(drift)) > EPS:
            options = replace(options, precision=precision)
        f = checked_vector(force, self.n, "force")
        drift = checked_vector(drift, self.m, "drift")
        if self.batch_shape or f.ndim > 1 or drift.ndim > 1:
            return solve_batch(self, f, -drift, options)
        solved = answer(self.analysis, np.concatenate((f, -drift)), options)
        if not solved.status.answered:
            refuse_nonfinite(f, "force", self.coordinates)
            refuse_nonfinite(drift, "drift", self.names)
            self._refuse(solved, -drift)
        return self._solution(solved)

    def impact(self, velocity: Any, restitution: Any = 0.0) -> Impact:
        """Return the velocities after the rows close on `velocity`, with restitution e in [0, 1], common or per row.

        v+ = M+ M v- - e A+^T A v-, impulse p = -(1 + e) Lambda+ A v- (seed 000, section 3); solved through the block
        matrix, so massless limbs and redundant contacts are welcome. M v+ + A^T p = M v- in sign.
        """
        v = self._velocity(velocity)
        e = checked_vector(restitution, self.m, "restitution", scalar=True)
        refuse_restitution(e, self.names)
        approach = np.einsum("...ij,...j->...i", self.A, v)
        solved = self.solve(np.einsum("...ij,...j->...i", self.M, v), e * approach)
        before, after = kinetic_energy(self.M, v), kinetic_energy(self.M, solved.acceleration)
        return Impact(solved.acceleration, solved.multipliers, before, after, solved.certificate, self)

    def project_velocity(self, velocity: Any) -> Array:
        """Return the admissible velocity nearest in the kinetic-energy norm, M+ M v (seed 000, sec. 3).

        Bare numbers carry no status: one that is not certified raises `SolvabilityError`, in a batch it is NaN.
        """
        v = self._velocity(velocity)
        return self._certified(self.solve(np.einsum("...ij,...j->...i", self.M, v)))

    def least_energy_velocity(self, constraint_velocity: Any) -> Array:
        """Return the velocity of least kinetic energy with A v = constraint_velocity, A+^T c (seed 000, sec. 3).

        Bare numbers carry no status: one that is not certified raises `SolvabilityError`, in a batch it is NaN.
        """
        c = checked_vector(constraint_velocity, self.m, "constraint_velocity")
        if c.ndim == 1:
            refuse_nonfinite(c, "constraint_velocity", self.names)
        return self._certified(self.solve(np.zeros(self.n), -c))

    def diagnose(self, drift: Any = None) -> Diagnosis:
        """Say what is redundant, conflicting (given a drift), massless, or not unique, by name.  Single systems."""
        rhs = None if drift is None else -checked_vector(drift, self.m, "drift")
        if rhs is not None:
            if rhs.ndim > 1:
                raise ShapeError(f"diagnose takes the drift of one system, ({self.m},); it has shape {rhs.shape}")
            refuse_nonfinite(rhs, "drift", self.names)
        return self._report(rhs)

    def _report(self, rhs: Array | None) -> Diagnosis:
        """Return the diagnosis; numbers beyond its reach are named."""
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                return diagnose(self.analysis, self.names, self.coordinates, rhs)
        except (np.linalg.LinAlgError, ValueError) as error:
            if not self.analysis.extreme:
                raise
            raise SolvabilityError(f"{self.analysis.extreme}\n{_ADVICE[Status.NONFINITE]}") from error

    def _certified(self, solution: Solution) -> Array:
        """Return the numbers of an answer that is ok; raise for a single one that is not, NaN in a batch."""
        if not isinstance(solution.certificate, Certificate):
            return np.where(np.asarray(solution.ok)[..., None], solution.acceleration, np.nan)
        if not solution.ok:
            raise SolvabilityError(f"the velocity is not certified\n{solution.certificate}", self.diagnose())
        return solution.acceleration

    def _velocity(self, velocity: Any) -> Array:
        v = checked_vector(velocity, self.n, "velocity")
        if v.ndim == 1:
            refuse_nonfinite(v, "velocity", self.coordinates)
        return v

    def _options(self, route: str | None, massless: str, inconsistent: str) -> SolveOptions:
        if route is None and massless == inconsistent == "refuse":
            return self._defaults
        return SolveOptions(
            self.route if route is None else _checked(route, ROUTE_NAMES, "route"),
            _checked(massless, ("refuse", "hold"), "massless"),
            _checked(inconsistent, ("refuse", "least_squares"), "inconsistent"),
            self.metric,
        )

    def _solution(self, answer: Answer) -> Solution:
        held, lam = None, answer.multipliers
        if answer.held is not None:
            held, lam = Held(answer.held, 0.0 - lam[self.m :]), lam[: self.m]
        return Solution(answer.acceleration, lam, Certificate(answer), self, held)

    def _refuse(self, answer: Answer, rhs: Array) -> None:
        """Raise for a single system without an answer, with its diagnosis and what to try."""
        report = self._report(rhs)
        message = f"{answer.status.message}\n{report}"
        if answer.status is Status.DECLINED:
            message = f"the requested route declined: {answer.reason}\n{report}"
        raise SolvabilityError(f"{message}\n{_ADVICE[answer.status]}", report)

    def __repr__(self) -> str:
        batch = f", batch {self.batch_shape}" if self.batch_shape else ""
        return f"KKT({self.n} coordinates, {self.m} constraint rows{batch})"


_ADVICE = {
    Status.INCONSISTENT: 'To try: correct the drift of one of these rows, or solve(..., inconsistent="least_squares").',
    Status.MASSLESS: 'To try: constrain this motion, give it mass, or solve(..., massless="hold") to hold it still.',
    Status.INDEFINITE: "To try: check the signs of masses and inertias that move along this motion.",
    Status.DECLINED: "To try: another route, or route='auto'.",
    Status.NONFINITE: "To try: rescale the units; numbers near 1e308 overflow.",
}


def _in_precision(array: Array, precision: float) -> Array:
    """Return double-precision numbers in the precision they came in."""
    kinds = (np.float64, np.float32, np.float16)
    return array.astype(next(kind for kind in kinds if float(np.finfo(kind).eps) >= precision))


def _checked(value: str, allowed: tuple[str, ...], what: str) -> Any:
    """Return the value if it is among the allowed words."""
    if value not in allowed:
        near = near_matches(value, allowed)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ModelError(f"{what}={value!r} is not one of {', '.join(map(repr, allowed))}{hint}")
    return value

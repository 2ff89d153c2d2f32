"""A Lagrangian, or matrices by hand, as everything that goes through time reads systems.

Symbols: q, v coordinates and their rates, tau applied forces, t time, p parameters; M, bias, A, drift, phi, psi as in
`model/lagrangian/derivation.py`; h = v dT/dv - T + V, which is constant where nothing does work.

Steppers, starts, events and files speak of a `Mechanism`: its names, its rank, its projections, its functions in
expressions. The classes below have the same members for systems whose configurations are vectors: the chart of a step
is q = base + x with x' = v.

    forward            M a + bias + A^T lam = tau             A a = -drift
    project_velocity   M (v' - v) + A^T mu = 0                psi(v') = 0
    project_step       M dq + A_h^T mu = 0                    A_h dq = -phi
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, SolvabilityError
from dalembert.kernel import Kernel
from dalembert.kernel.program.trace import trace, untrace
from dalembert.kkt import KKT, Diagnosis, Solution, Status
from dalembert.kkt.expressions.verdict import Conditioning
from dalembert.kkt.limits import BUILT, DOUBLE, SLACK
from dalembert.memory import memory_of
from dalembert.model.lagrangian.contact_data import contacts_as_data, contacts_from_data
from dalembert.model.lagrangian.derivation import Expressions, of_accelerations
from dalembert.model.lagrangian.forward import conditioning_of
from dalembert.model.lagrangian.lagrangian import MATRICES
from dalembert.model.lagrangian.quantities import LARGEST, block_answer
from dalembert.model.lagrangian.symbols import Symbols
from dalembert.model.mechanism.constraint_rows import Idle
from dalembert.model.mechanism.project import admissible_velocities, closed
from dalembert.model.parameters import Parameters
from dalembert.names import lookup
from dalembert.types import Array, Energy

if TYPE_CHECKING:
    from dalembert.model.lagrangian.lagrangian import Lagrangian
    from dalembert.model.mechanism.ranks import GenericRank

SOLVED = (Status.UNIQUE, Status.REDUNDANT)
"""Verdicts of compiled code whose numbers are the answer."""


class VectorSystem:
    """What systems share whose configurations are vectors, q' = v.

    Attributes
    ----------
    given
        The `Lagrangian` or `Matrices` of the user.
    coordinates, configuration_names, names, holonomic, nq, nv
        As of a `Mechanism`.
    parameters, values
        Symbols (k,) that stay inputs of every code, and their numbers.
    compiled
        Whether the equations are expressions; otherwise Python functions are called.
    """

    source = None
    """No file: numbers have all their digits."""

    compiled = True

    def __init__(self, given: Any, holonomic: tuple[bool, ...]) -> None:
        self.given = given
        self.coordinates: tuple[str, ...] = tuple(given.coordinates)
        self.configuration_names = self.coordinates
        self.names: tuple[str, ...] = tuple(given.names)
        self.holonomic = holonomic
        self.nq = self.nv = len(self.coordinates)
        self.name = type(given).__name__
        self.parameters, self.values = ca.SX(0, 1), np.zeros(0)
        self.row_groups = tuple(range(len(self.names)))
        self.angular_rows = (False,) * len(self.names)
        self.slack = max(SLACK, BUILT)
        self._size = 1.0
        self._start: tuple[Array, float] = np.zeros(self.nv), 0.0
        self._speed = np.zeros(self.nv)

    @property
    def cacheable(self) -> bool:
        """Whether `content` says it all."""
        return self.compiled

    def begin_at(self, q: Array, t: float, v: Array | None = None) -> None:
        """Measure residuals and ways by the sizes that coordinates and rows have at a start."""
        self._start = np.array(q, dtype=float), float(t)
        self._speed = np.zeros(self.nv) if v is None else np.array(v, dtype=float)
        self._size = float(np.abs(q).max(initial=0.0)) or 1.0
        self.__dict__.pop("row_sizes", None)

    @property
    def velocity_sizes(self) -> Array:
        """Per velocity the size of the coordinates at the start, (nv,)."""
        return np.full(self.nv, self._size)

    @cached_property
    def row_sizes(self) -> Array:
        """Per row what its residual is measured against, (m,): what coordinates as large as at the start make of it."""
        q, t = self._start
        if not self.names:
            return np.zeros(0)
        sizes = np.abs(np.asarray(self.jacobian(q, t))) @ (np.abs(q) + self._size)
        return np.where(np.isfinite(sizes) & (sizes > 0.0), sizes, 1.0)

    @property
    def row_units(self) -> Array:
        """Ones, (m,): rows of formulas are what the user takes them for."""
        return np.ones(len(self.names))

    def idle_rows(self, A: Array, gap: float = 0.0) -> Idle:
        """Return that no row is known to move nothing."""
        return Idle.none(len(self.names))

    # --- configurations -----------------------------------------------------------------------------------------

    def neutral(self) -> Array:
        """Return the origin."""
        return np.zeros(self.nq)

    def integrate(self, q: Any, x: Any) -> Array:
        """Return q + x."""
        return np.asarray(q) + np.asarray(x)

    def difference(self, q: Any, other: Any) -> Array:
        """Return other - q."""
        return np.asarray(other) - np.asarray(q)

    def normalize(self, q: Array) -> Array:
        """Return q: every vector is a configuration."""
        return q

    def refuse_off_manifold(self, q: Array) -> None:
        """Refuse nothing: every vector is a configuration."""

    def index_q(self, name: str) -> slice:
        """Return the place of a coordinate."""
        i = lookup(name, {coordinate: k for k, coordinate in enumerate(self.coordinates)}, "coordinate")
        return slice(i, i + 1)

    index_v = index_q

    def power_of(self, q: Array, v: Array, tau: Array, t: float) -> float:
        """Return the power of the applied forces at one state."""
        return float(tau @ v)

    # --- rows ---------------------------------------------------------------------------------------------------

    def jacobian(self, q: Any, t: Any = 0.0, v: Any = None) -> Array:
        """Return A; of rows that depend on velocities at v, or at those of the start."""
        raise NotImplementedError

    @property
    def of_accelerations(self) -> tuple[str, ...]:
        """Names of rows that constrain accelerations: nonlinear in velocities, or known at no other level."""
        return ()

    def mass_matrix(self, q: Any, t: Any = 0.0) -> Array:
        """Return M."""
        raise NotImplementedError

    def bias(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return bias."""
        raise NotImplementedError

    def drift(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return drift."""
        raise NotImplementedError

    def generic_rank(self, q: Any = None, t: float = 0.0) -> GenericRank:
        """Return the rank of the rows around a configuration."""
        from dalembert.model.mechanism.ranks import MOST_RANKS, RankSurvey

        first = np.array(self._start[0] if q is None else q, dtype=float)
        key = (first.tobytes(), float(t), self._start[0].tobytes(), self._speed.tobytes(), self.values.tobytes())
        system: Any = self
        return memory_of(self.given, "ranks", MOST_RANKS).get(key, lambda: RankSurvey(system, float(t)).decide(first))

    def block_system(self, q: Any, t: float = 0.0, v: Any = None) -> KKT:
        """Return the block matrix at one configuration; `v` where rows depend on it."""
        return KKT(self.mass_matrix(q, t), self.jacobian(q, t, v), self.names, self.coordinates)

    def solve(self, q: Any, v: Any, tau: Any = None, t: float = 0.0, **options: Any) -> Solution:
        """Solve one state through `KKT`."""
        force = (0.0 if tau is None else floats(tau, "force")) - self.bias(q, v, t)
        return self.block_system(q, t, v).solve(force, self.drift(q, v, t), **options)

    def diagnose(self, q: Any, v: Any = None, t: float = 0.0) -> Diagnosis:
        """Say in words what is redundant, conflicting, massless or not unique at one state."""
        return self.block_system(q, t, v).diagnose(self.drift(q, np.zeros(self.nv) if v is None else v, t))

    def forward(self, q: Any, v: Any, tau: Any, t: Any = 0.0) -> tuple[Array, Array, Array]:
        """Return accelerations, multipliers and statuses of one state or a batch; NaN where there are none."""
        q, v, tau = (np.asarray(x, dtype=float) for x in (q, v, tau))
        single = q.ndim == 1
        q, v, tau = (np.atleast_2d(x) for x in (q, v, tau))
        times = np.broadcast_to(np.asarray(t, dtype=float).ravel(), (len(q),))
        answers = [self._forward_one(*state) for state in zip(q, v, tau, times, strict=True)]
        a, lam = (np.array([answer[k] for answer in answers]).reshape(len(q), -1) for k in (0, 1))
        status = np.array([answer[2] for answer in answers])
        return (a[0], lam[0], status[0]) if single else (a, lam, status)

    def _forward_one(self, q: Array, v: Array, tau: Array, t: float) -> tuple[Array, Array, int]:
        try:
            solution = self.solve(q, v, tau, float(t))
        except (SolvabilityError, ModelError):
            return np.full(self.nv, np.nan), np.full(len(self.names), np.nan), int(Status.DECLINED)
        return solution.acceleration, solution.multipliers, int(np.asarray(solution.status))


class LagrangianSystem(VectorSystem):
    """A `Lagrangian` with the values that its parameters have, and its controls at zero.

    Expressions are written down as a list of operations and read back: a run from a file has the very same ones.
    """

    def __init__(self, lagrangian: Lagrangian) -> None:
        super().__init__(lagrangian, lagrangian.holonomic)
        self.lagrangian = lagrangian
        self.values = np.array(lagrangian.parameters.pack(), dtype=float)
        if self.values.ndim != 1:
            raise ModelError(
                "parameters of a run are single numbers, and these are a batch: simulate one after the other"
            )
        memory = memory_of(lagrangian, "time")
        self.function: ca.Function = memory.get("function", lambda: _written(lagrangian))
        self._content: str = memory.get("content", lambda: _content_of(self.function, lagrangian))
        q, v, t, p = self.function.sx_in()
        self.q, self.v, self.t, self.parameters = q, v, t, p
        matrices = dict(zip(MATRICES, self.function.call([q, v, t, p]), strict=True))
        self.expressions = Expressions(**matrices, names=self.names, holonomic=self.holonomic)
        self.tau = ca.SX.sym("tau", self.nv)
        self.straight = self.nv + len(self.names) <= LARGEST

    def content(self) -> str:
        """Return a key of the expressions; values of parameters are inputs."""
        return self._content

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols of the expressions; there are no controls."""
        p = self.lagrangian.parameters
        ends = np.cumsum([0, *(symbol.numel() for symbol in p.symbols)])
        parts = tuple(self.parameters[int(a) : int(b)] for a, b in pairwise(ends))
        return Symbols(self.q, self.v, ca.SX(0, 1), self.t, replace(p, symbols=parts))

    @cached_property
    def held(self) -> Expressions:
        """The expressions with holonomic rows alone."""
        e, rows = self.expressions, [i for i, kind in enumerate(self.holonomic) if kind]
        names = tuple(self.names[i] for i in rows)
        return replace(e, jacobian=e.jacobian[rows, :], rate=e.rate[rows], drift=e.drift[rows], names=names,
                       holonomic=(True,) * len(rows))  # fmt: skip

    @property
    def conditioning(self) -> Conditioning:
        """What M and A ask for at probed states."""
        make: Callable[[], Conditioning] = lambda: conditioning_of(  # noqa: E731
            self.expressions, self.symbols, self.lagrangian.parameters
        )
        return memory_of(self.lagrangian, "time").get("conditioning", make)

    # --- expressions: what codes are traced from ----------------------------------------------------------------

    def chart(self, base: ca.SX, x: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return q and x' at the coordinates x around `base`."""
        return base + x, v

    def at(self, what: str, q: ca.SX, v: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
        """Return one of `MATRICES` at expressions."""
        return self.function(q, v, t, p)[MATRICES.index(what)]

    def accelerations(self, q: ca.SX, v: ca.SX, tau: ca.SX, t: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return acceleration, multipliers and status as expressions."""
        a, lam, status = self.traced("forward")(q, v, tau, t, p)
        return a, lam, status

    def power(self, q: ca.SX, v: ca.SX, tau: ca.SX, t: ca.SX, p: ca.SX) -> ca.SX:
        """Return the power of all forces without a potential."""
        return ca.dot(tau + self.at("applied", q, v, t, p), v)

    def energies(self, q: ca.SX, v: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return T, V and v dT/dv - T + V, where neither depends on time."""
        s, e = self, self.expressions
        h = ca.dot(s.v, ca.gradient(e.kinetic, s.v)) - e.kinetic + e.potential
        kinetic, potential, h = _function(
            "energies", (s.q, s.v, s.parameters), {"kinetic": e.kinetic, "potential": e.potential, "h": h},
            ("q", "v", "parameters"),
        )(q, v, *((p,) if s.parameters.numel() else ()))  # fmt: skip
        return kinetic, potential, h

    def traced(self, what: str) -> ca.Function:
        """Return forward dynamics or a projection as a function of q, (v, tau,) t, parameters."""
        return memory_of(self.lagrangian, "time").get(what, lambda: _TRACES[what](self))

    # --- numbers ------------------------------------------------------------------------------------------------

    def compile(self, what: str) -> Callable[..., Any]:
        """Return a projection as a function of numbers, parameters put in."""
        kernel = memory_of(self.lagrangian, "kernels").get(("time", what), lambda: Kernel(self.traced(what)))
        more = [self.values] if any(port.name == "parameters" for port in kernel.inputs) else []
        return lambda *inputs: kernel(*inputs, *more)

    def mass_matrix(self, q: Any, t: Any = 0.0) -> Array:
        """Return M."""
        return self.lagrangian.mass_matrix(q, t)

    def bias(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return bias."""
        return self.lagrangian.bias(q, v, t)

    def jacobian(self, q: Any, t: Any = 0.0, v: Any = None) -> Array:
        """Return A."""
        if not self.lagrangian.symbols.turning:
            return self.lagrangian.jacobian(q, t)
        return self.lagrangian.jacobian(q, t, v=self._speed if v is None else v)

    @property
    def of_accelerations(self) -> tuple[str, ...]:
        """Names of rows that constrain accelerations."""
        return self._rows_of_accelerations

    @cached_property
    def _rows_of_accelerations(self) -> tuple[str, ...]:
        flags = of_accelerations(self.expressions, self.v)
        return tuple(name for name, flag in zip(self.names, flags, strict=True) if flag)

    def drift(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return drift."""
        return self.lagrangian.drift(q, v, t)

    def constraint(self, q: Any, t: Any = 0.0) -> Array:
        """Return phi of the holonomic rows."""
        if not any(self.holonomic):
            return np.zeros((*np.shape(q)[:-1], 0))
        return self.lagrangian.constraint(q, t)

    def constraint_velocity(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return psi."""
        return self.lagrangian.constraint_velocity(q, v, t) if self.names else np.zeros((*np.shape(q)[:-1], 0))

    def energy(self, q: Any, v: Any, t: Any = 0.0) -> Energy:
        """Return T and V."""
        return self.lagrangian.energy(q, v, t)

    def balance(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return h = v dT/dv - T + V, which changes by the work of forces without a potential."""
        s, e = self, self.expressions

        def make() -> Kernel:
            h = ca.dot(s.v, ca.gradient(e.kinetic, s.v)) - e.kinetic + e.potential
            return Kernel(_function("balance", (s.q, s.v, s.parameters), {"balance": h}, ("q", "v", "parameters")))

        kernel = memory_of(self.lagrangian, "kernels").get(("time", "balance"), make)
        return kernel(q, v, *([self.values] if self.values.size else []))[..., 0]

    @cached_property
    def autonomous(self) -> bool:
        """Whether neither T nor V depends on time: then h is balanced by the work of forces."""
        return not ca.depends_on(self.expressions.kinetic + self.expressions.potential, self.t)

    @property
    def is_conservative(self) -> bool:
        """Whether there are no forces without a potential."""
        return bool(self.expressions.applied.is_zero())

    def applied(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return the forces without a potential at one state, (n,)."""

        def make() -> Kernel:
            inputs = (self.q, self.v, self.t, self.parameters)
            return Kernel(_function("applied", inputs, {"applied": self.expressions.applied}, _NAMES))

        kernel = memory_of(self.lagrangian, "kernels").get(("time", "applied"), make)
        return kernel(q, v, np.array([float(t)]), *([self.values] if self.values.size else []))

    def power_of(self, q: Array, v: Array, tau: Array, t: float) -> float:
        """Return the power of all forces without a potential at one state."""
        return float((tau + self.applied(q, v, t)) @ v)

    def _forward_one(self, q: Array, v: Array, tau: Array, t: float) -> tuple[Array, Array, int]:
        if self.straight:
            outputs = self.compile("forward")(q, v, tau, np.array([float(t)]))
            a, status = outputs[0], int(outputs[-1][0])
            if status in SOLVED:
                return a, outputs[1] if self.names else np.zeros(0), status
        return super()._forward_one(q, v, tau, t)

    def project(self, q: Any, v: Any = None, t: float = 0.0, tolerance: float = 1e-12) -> Any:
        """Return the nearest admissible configuration and velocity, (q, v), or q alone without v.

        One state or a batch; samples of a batch that have none become NaN, a single one is refused.
        """
        start = np.asarray(q, dtype=float)
        system: Any = self
        rows = start.reshape(-1, self.nq)
        if self.straight:
            place = closed(system, rows.copy(), t, tolerance)
        else:
            place = np.array([self._closed(row, t) for row in rows])
        place = place.reshape(start.shape)
        if start.ndim == 1 and not np.isfinite(place).all():
            raise ModelError(f"no admissible q was found near {start}: rows contradict each other or are out of reach")
        if v is None:
            return place
        v = np.asarray(v, dtype=float)
        velocity = admissible_velocities(system, place, v, t) if self.straight else self._admissible(place, v, t)
        return place, velocity

    def _admissible(self, q: Array, v: Array, t: float) -> Array:
        """Return the velocities nearest to v that the rows allow; NaN in a batch where there is none."""
        from dalembert.model.mechanism.ranks import admissible_velocity

        found = np.full((*q.shape[:-1], self.nv), np.nan)
        several = np.broadcast_to(v, found.shape)
        for k in np.ndindex(found.shape[:-1]):
            if np.isfinite(q[k]).all() and np.isfinite(several[k]).all():
                nearest = admissible_velocity(self, q[k], several[k], t)  # pyright: ignore[reportArgumentType]
                if not nearest.open:
                    found[k] = nearest.velocity
        if q.ndim == 1 and not np.isfinite(found).all():
            raise ModelError(f"no admissible velocity was found near {v}: rows contradict each other")
        return found

    def _closed(self, q: Array, t: float) -> Array:
        """Return the configuration near q where rows are open the least."""
        from dalembert.model.mechanism.project import least_open
        from dalembert.model.mechanism.ranks import RankSurvey

        survey = RankSurvey(self, t)  # pyright: ignore[reportArgumentType]
        survey.measure(q)
        place, remaining = least_open(survey, q)
        return place if remaining <= self.slack else np.full(self.nq, np.nan)


class MatricesSystem(VectorSystem):
    """`Matrices`, or any other `System` whose parts are Python functions of the state: steppers call them back."""

    compiled = False

    def __init__(self, matrices: Any) -> None:
        super().__init__(matrices, (False,) * len(matrices.names))
        self.matrices = matrices
        self.autonomous = False

    def content(self) -> str:
        """Return a key of the names: no code depends on more."""
        return hashlib.sha256(repr(("matrices", self.coordinates, self.names)).encode()).hexdigest()

    def chart(self, base: ca.SX, x: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Return q and x' at the coordinates x around `base`."""
        return base + x, v

    def mass_matrix(self, q: Any, t: Any = 0.0) -> Array:
        """Return M of one state or a batch."""
        return self._each(self.matrices.mass_matrix, q, t)

    def bias(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return bias of one state or a batch."""
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if q.ndim == 1:
            return np.asarray(self.matrices.bias(q, v, float(t)))
        return np.array([self.matrices.bias(*state, float(t)) for state in zip(q, v, strict=True)])

    @property
    def of_accelerations(self) -> tuple[str, ...]:
        """Names of rows that constrain accelerations."""
        return getattr(self.matrices, "of_accelerations", ())

    def jacobian(self, q: Any, t: Any = 0.0, v: Any = None) -> Array:
        """Return A of one state or a batch; of rows that depend on velocities at v (nv,), or at those of the start."""
        if not self.of_accelerations:
            return self._each(self.matrices.jacobian, q, t)
        q, speed = np.asarray(q, dtype=float), np.asarray(self._speed if v is None else v, dtype=float)
        if q.ndim == 1:
            return np.asarray(self.matrices.jacobian(q, float(t), speed))
        times = np.broadcast_to(np.asarray(t, dtype=float).ravel(), (len(q),))
        states = zip(q, map(float, times), np.broadcast_to(speed, q.shape), strict=True)
        return np.array([self.matrices.jacobian(*state) for state in states])

    def _each(self, function: Callable[[Array, float], Array], q: Any, t: Any) -> Array:
        q = np.asarray(q, dtype=float)
        if q.ndim == 1:
            return np.asarray(function(q, float(t)))
        times = np.broadcast_to(np.asarray(t, dtype=float).ravel(), (len(q),))
        return np.array([function(*state) for state in zip(q, map(float, times), strict=True)])

    def drift(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return drift."""
        return np.asarray(self.matrices.drift(q, v, t))

    def constraint(self, q: Any, t: Any = 0.0) -> Array:
        """Return no residuals: rows are known at velocity level."""
        return np.zeros((*np.shape(q)[:-1], 0))

    def constraint_velocity(self, q: Any, v: Any, t: Any = 0.0) -> Array:
        """Return A v of rows at rest; rows with a drift of their own are known by their accelerations alone: zero."""
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        if self.of_accelerations:
            return self._rates_of_accelerations(q, v, t)
        if not getattr(self.matrices, "rows_rest", False):
            return np.zeros((*np.shape(q)[:-1], len(self.names)))
        return np.einsum("...ij,...j->...i", self.jacobian(q, t), v)

    def _rates_of_accelerations(self, q: Array, v: Array, t: Any) -> Array:
        """Return A v of rows at rest, and psi of those that constrain accelerations."""
        if q.ndim > 1:
            times = np.broadcast_to(np.asarray(t, dtype=float).ravel(), (len(q),))
            return np.array([self._rates_of_accelerations(*state) for state in zip(q, v, times, strict=True)])
        k, rates = len(self.of_accelerations), np.zeros(len(self.names))
        if self.matrices.rows_rest:
            rates[:-k] = self.jacobian(q, t, v)[:-k] @ v
        rates[-k:] = self.matrices.acceleration_rates(q, v, float(t))
        return rates

    @property
    def has_energy(self) -> bool:
        """Whether the user gave an energy."""
        return hasattr(self.matrices, "energy")

    def energy(self, q: Any, v: Any, t: Any = 0.0) -> Energy:
        """Return v^T M v / 2 and what the energy has beyond it."""
        if not self.has_energy:
            raise ModelError("this system has no energy: give Matrices(energy=...), or use a Lagrangian")
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        kinetic = 0.5 * np.einsum("...i,...ij,...j->...", v, self.mass_matrix(q, t), v)
        function: Any = self.matrices.energy  # type: ignore[attr-defined]
        if q.ndim == 1:
            return Energy(kinetic, float(function(q, v, t)) - kinetic)
        times = np.broadcast_to(np.asarray(t, dtype=float).ravel(), (len(q),))
        total = np.array([float(function(*state)) for state in zip(q, v, map(float, times), strict=True)])
        return Energy(kinetic, total - kinetic)

    def project(self, q: Any, v: Any = None, t: float = 0.0, tolerance: float = 1e-12) -> Any:
        """Return q, and the admissible velocity of least kinetic energy from v."""
        from dalembert.model.mechanism.ranks import admissible_velocity

        system: Any = self
        return q if v is None else (q, admissible_velocity(system, np.asarray(q), np.asarray(v), t).velocity)


def in_time(system: Any) -> Any:
    """Return a system as steppers read it: a `Mechanism` as it is, any other `System` in this form."""
    from dalembert.model.lagrangian.lagrangian import Lagrangian
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.model.system import System

    if isinstance(system, Lagrangian):
        return LagrangianSystem(system)
    wrapped = isinstance(system, Mechanism | VectorSystem) or not isinstance(system, System)
    return system if wrapped else MatricesSystem(system)


_NAMES = ("q", "v", "t", "parameters")


def _written(lagrangian: Lagrangian) -> ca.Function:
    """Return q, v, t, parameters -> `MATRICES` as its list of operations reads; controls are zero."""
    s, e = lagrangian.symbols, lagrangian.expressions
    t = s.t if s.t.numel() else ca.SX.sym("t")
    column = s.parameters.column
    outputs = [ca.densify(getattr(e, name)) for name in MATRICES]
    if s.u.numel():
        outputs = [ca.substitute(output, s.u, ca.SX.zeros(s.u.numel())) for output in outputs]
    function = ca.Function("lagrangian", [s.q, s.v, t, column], outputs, list(_NAMES), list(MATRICES))
    return untrace(trace(function))


def _content_of(function: ca.Function, lagrangian: Lagrangian) -> str:
    """Return a key of the operations and the names."""
    program = trace(function)
    digest = hashlib.sha256()
    for part in (program.op, program.a, program.b, program.value, program.result_port, program.result_element,
                 program.result_value):  # fmt: skip
        digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(repr((lagrangian.coordinates, lagrangian.names, lagrangian.holonomic)).encode())
    contacts = [(type(contact).__name__, contact.name) for contact in (*lagrangian.contacts, *lagrangian.unilateral)]
    digest.update(repr(contacts).encode() if contacts else b"")
    return digest.hexdigest()


def as_data(system: LagrangianSystem) -> dict[str, Any]:
    """Return what a file holds of a Lagrangian: its operations, names and values of parameters."""
    p = system.lagrangian.parameters
    return {
        "function": system.function, "coordinates": system.coordinates, "names": system.names,
        "holonomic": tuple(bool(flag) for flag in system.holonomic), "parameters": tuple(p.names),
        "sizes": tuple(symbol.numel() for symbol in p.symbols), "values": system.values,
    } | _contacts_as_data(system.lagrangian)  # fmt: skip


def _contacts_as_data(lagrangian: Lagrangian) -> dict[str, Any]:
    """Return the contacts of a Lagrangian, expressions as functions of `_NAMES`; nothing where there are none."""
    s = lagrangian.symbols
    inputs = [s.q, s.v, s.t if s.t.numel() else ca.SX.sym("t"), s.parameters.column]

    def written(value: ca.SX) -> ca.Function:
        value = ca.substitute(value, s.u, ca.SX.zeros(s.u.numel())) if s.u.numel() else value
        return ca.Function("part", inputs, [ca.densify(value)], list(_NAMES), ["value"])

    kinds = {"contacts": lagrangian.contacts, "unilateral": lagrangian.unilateral}
    return {kind: contacts_as_data(several, written) for kind, several in kinds.items() if several}


def from_data(data: dict[str, Any]) -> Lagrangian:
    """Return the Lagrangian that a file holds; symbols are new ones."""
    from dalembert.model.lagrangian.lagrangian import Lagrangian

    function: ca.Function = data["function"]
    q, v, t, column = function.sx_in()
    ends = np.cumsum([0, *data["sizes"]])
    symbols = tuple(column[int(a) : int(b)] for a, b in pairwise(ends))
    values = np.asarray(data["values"], dtype=float)
    defaults = {
        name: values[int(a) : int(b)] for name, a, b in zip(data["parameters"], ends[:-1], ends[1:], strict=True)
    }
    parameters = Parameters(tuple(data["parameters"]), symbols, defaults)
    matrices = dict(zip(MATRICES, function.call([q, v, t, column]), strict=True))
    names, coordinates = tuple(data["names"]), tuple(data["coordinates"])
    expressions = Expressions(**matrices, names=names, holonomic=tuple(data["holonomic"]))
    contacts = [contacts_from_data(data.get(kind, []), (q, v, t, column)) for kind in ("contacts", "unilateral")]
    system = Lagrangian.from_expressions(
        Symbols(q, v, ca.SX(0, 1), t, parameters), expressions, coordinates, names, *contacts
    )
    memory_of(system, "time").get("function", lambda: function)
    if "contact_terms" in data:
        memory_of(system, "time").get("contact terms", lambda: data["contact_terms"])
    return system


def _function(name: str, inputs: tuple[ca.SX, ...], outputs: dict[str, ca.SX], names: tuple[str, ...]) -> ca.Function:
    """Return outputs as a function of the inputs that have entries."""
    ports = [(symbol, port) for symbol, port in zip(inputs, names, strict=True) if symbol.numel()]
    outputs = {port: ca.densify(output) for port, output in outputs.items() if output.numel()}
    return ca.Function(name, [s for s, _ in ports], list(outputs.values()), [w for _, w in ports], list(outputs))


def _scalars(*columns: ca.SX) -> list[ca.SX]:
    return [x for column in columns for x in (ca.vertsplit(column) if column.numel() else [])]


def _forward(s: LagrangianSystem) -> ca.Function:
    """Return q, v, tau, t, parameters -> acceleration, multipliers, status; all inputs, empty ones too."""
    e = s.expressions
    inputs = (s.q, s.v, s.tau, s.t, s.parameters)
    answer = block_answer(e.mass, e.jacobian, s.conditioning, s.tau - e.bias, -e.drift, _scalars(*inputs), DOUBLE.eps)
    outputs = [ca.vertcat(*answer.acceleration), ca.vertcat(*answer.multipliers, ca.SX(0, 1)), ca.SX(answer.status)]
    return ca.Function("forward", list(inputs), [ca.densify(output) for output in outputs],
                       ["q", "v", "tau", "t", "parameters"], ["acceleration", "multipliers", "status"])  # fmt: skip


def _project_velocity(s: LagrangianSystem) -> ca.Function:
    """Return q, v, t, parameters -> velocity, impulses, status."""
    e = s.expressions
    inputs = (s.q, s.v, s.t, s.parameters)
    # solved for the change of v: impulses are as small as it, and have digits of their own
    answer = block_answer(e.mass, e.jacobian, s.conditioning, ca.SX.zeros(s.nv), -e.rate, _scalars(*inputs), DOUBLE.eps)
    outputs = {"velocity": s.v + ca.vertcat(*answer.acceleration), "impulses": ca.vertcat(*answer.multipliers),
               "status": ca.SX(answer.status)}  # fmt: skip
    return _function("project_velocity", inputs, outputs, _NAMES)


def _project_step(s: LagrangianSystem) -> ca.Function:
    """Return q, t, parameters -> step, residual, status."""
    e = s.held
    inputs = (s.q, s.t, s.parameters)
    needs = conditioning_of(e, s.symbols, s.lagrangian.parameters)
    still = ca.SX.zeros(s.nv)
    answer = block_answer(e.mass, e.jacobian, needs, still, -e.constraint, _scalars(*inputs), DOUBLE.eps)
    outputs = {"step": ca.vertcat(*answer.acceleration), "residual": e.constraint, "status": ca.SX(answer.status)}
    return _function("project_step", inputs, outputs, ("q", "t", "parameters"))


_TRACES: dict[str, Callable[[LagrangianSystem], ca.Function]] = {
    "forward": _forward,
    "project_velocity": _project_velocity,
    "project_step": _project_step,
}

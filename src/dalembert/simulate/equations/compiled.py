"""A DAE compiled: residual, iteration matrix, factors and Newton steps as machine code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from dalembert.kernel import Kernel
from dalembert.kernel.loops import bind
from dalembert.simulate.equations.dae import DAE, Projection
from dalembert.simulate.steppers.manifold_loops import ProjectionWork
from dalembert.tableau.elimination.looped import LoopedFactors, looped_factors, no_factors
from dalembert.tableau.elimination.plan import Plan, make_plan
from dalembert.tableau.elimination.straight import factor, solve
from dalembert.tableau.structure.pattern import Pattern
from dalembert.types import Array

# ----------------------------------------------------------------------------------------------------------------------
# A DAE compiled: residual, iteration matrix, factors and Newton steps as machine code, and memory to run them on.
#
# | code | reads | writes |
# |---|---|---|
# | `newton` | x, x', environment, factors | the step -J^-1 F |
# | `factor` | x, x', environment | factors, least pivot quality |
# | `residual` | x, x', environment | F |
# | `entries` | x, x', environment | J, its entries by rows |
# | `projection` | x, x', environment | matrix and right sides of the projection |
#
# Up to `STRAIGHT_LIMIT` operations all is straight-line code; above, `entries` feeds the looped plan.


STRAIGHT_LIMIT = 10_000
"""Operations of a plan up to which factors are straight-line code."""

PROBED_STEPS = (1e-1, 1e-3, 1e-5)
"""Step sizes, as parts of the horizon, at which pivots are probed."""

CODES = ("newton", "factor", "residual", "entries", "projection", "events", "signals")
"""Rows of the table of calls."""


class ImplicitWork(NamedTuple):
    """Memory of one integration: what the codes read and write, and where they are."""

    calls: Array  # (codes, 3): address, table, scratch; address 0 where there is none
    x: Array
    rates: Array
    environment: Array
    factors: Array
    quality: Array
    step: Array
    residual: Array
    entries: Array
    event_values: Array
    event_signs: Array
    plan: LoopedFactors
    dense: Array
    exchanges: Array
    projection: ProjectionWork


class Compiled:
    """The codes of a DAE; made once, used by any number of integrations at the same time."""

    def __init__(self, dae: DAE, plan: Plan, events: ca.SX | None = None, projection: Plan | None = None) -> None:
        self.dae, self.plan, self.projection = dae, plan, projection
        self.straight = plan.operations <= STRAIGHT_LIMIT
        inputs = {"x": dae.x, "rates": dae.rates, "environment": dae.environment}
        entries = by_rows(dae.jacobian)
        self.kernels: dict[str, Kernel] = {
            "residual": kernel_of("residual", inputs, {"residual": dae.residual}),
            "entries": kernel_of("entries", inputs, {"entries": ca.vertcat(*entries)}),
        }
        self.stored = 0
        if self.straight:
            self._straight(inputs, entries)
        if dae.projection is not None:
            self.kernels["projection"] = kernel_of("projection", inputs, _written(dae.projection))
        if events is not None and events.numel():
            self.kernels["events"] = kernel_of("events", inputs, {"event_values": events})
        self.events = 0 if events is None else events.numel()

    def _straight(self, inputs: Mapping[str, ca.SX], entries: list[ca.SX]) -> None:
        """Compile factors and Newton steps."""
        factors = factor(self.plan, entries)
        values, stored = factors.stored()
        self.stored = values.numel()
        self.kernels["factor"] = kernel_of("factor", inputs, {"factors": values, "quality": factors.quality})
        right = [-f for f in ca.vertsplit(self.dae.residual)]
        step = ca.vertcat(*solve(self.plan, stored, right))
        self.kernels["newton"] = kernel_of("newton", {**inputs, "factors": stored.symbols()}, {"step": step})

    @property
    def operations(self) -> dict[str, int]:
        """Compiled operations of each code."""
        return {name: sum(kernel.report().operations.values()) for name, kernel in self.kernels.items()}

    def work(self, callbacks: Mapping[str, int] | None = None, events: int = 0) -> tuple[ImplicitWork, list[Any]]:
        """Return memory for one integration, and what must be kept alive with it.

        `callbacks` are addresses of C functions in place of kernels ("signals", "events").
        """
        n = self.dae.n
        size = {
            "x": n,
            "rates": n,
            "environment": self.dae.environment.numel(),
            "factors": self.stored,
            "quality": 1,
            "step": n,
            "residual": n,
            "entries": self.plan.pattern.entries,
            "event_values": max(events, self.events),
            "event_signs": max(events, self.events),
        }
        arrays = {name: np.zeros(length) for name, length in size.items()}
        projection = self._projection_work()
        outputs = {f"projection_{k}": v for k, v in projection._asdict().items() if k in WRITTEN}
        calls = np.zeros((len(CODES), 3), np.int64)
        alive: list[Any] = [self]
        for row, code in enumerate(CODES):
            if code in self.kernels:
                calls[row], memory_of_call = bind(self.kernels[code], arrays | outputs)
                alive.append(memory_of_call)
        for code, address in (callbacks or {}).items():
            calls[CODES.index(code)] = address, 0, 0
        dense = np.zeros((n, n)) if n <= DENSE_LIMIT else np.zeros((0, 0))
        rest: dict[str, Any] = {"plan": looped_factors(self.plan), "dense": dense, "exchanges": np.zeros(n, np.int64)}
        return ImplicitWork(calls=calls, **arrays, **rest, projection=projection), alive

    def _projection_work(self) -> ProjectionWork:
        """Return memory of the projection, empty arrays where there is none."""
        plan, projection = self.projection, self.dae.projection
        if plan is None or projection is None:
            none = no_factors()
            empty = np.zeros(0)
            whole = np.zeros(0, np.int64)
            return ProjectionWork(none, empty, empty, empty, empty, np.zeros((0, 0)), whole, whole)
        k = plan.n
        dense = np.zeros((k, k)) if k <= DENSE_LIMIT else np.zeros((0, 0))
        entries, free = np.zeros(plan.pattern.entries), np.array([projection.free])
        right, rate_right, step = (np.zeros(k) for _ in range(3))
        exchanges = np.zeros(k, np.int64)
        return ProjectionWork(looped_factors(plan), entries, right, rate_right, step, dense, exchanges, free)


DENSE_LIMIT = 600
"""Unknowns up to which a plan in trouble is repaired by dense elimination with exchanges."""


def by_rows(J: ca.SX) -> list[ca.SX]:
    """Return the structural nonzeros of a matrix, by rows."""
    turned = J.T
    return [turned.nz[k] for k in range(turned.nnz())]


WRITTEN = ("entries", "right", "rate_right")
"""What the projection's code writes."""


def _written(projection: Projection) -> dict[str, ca.SX]:
    values = (ca.vertcat(*by_rows(projection.matrix)), projection.right, projection.rate_right)
    return {f"projection_{name}": value for name, value in zip(WRITTEN, values, strict=True)}


def probes(x: Array, rates: Array, environments: list[Array]) -> tuple[Array, Array, Array]:
    """Return points near a start at which pivots are probed: in every environment itself, and a hundredth away."""
    rng = np.random.default_rng(0)
    points, velocities = [], []
    for _ in environments:
        for noise in (0.0, 1e-2):
            points.append(x * (1 + noise * rng.standard_normal(len(x))) + noise * rng.standard_normal(len(x)))
            velocities.append(rates * (1 + noise * rng.standard_normal(len(x))))
    return np.array(points), np.array(velocities), np.repeat(np.array(environments), 2, axis=0)


def compile_dae(dae: DAE, points: Array, rates: Array, environments: Array, events: ca.SX | None = None) -> Compiled:
    """Plan the elimination at probed points, (K, n), (K, n), (K, environment), and compile."""
    probes = list(zip(points, rates, environments, strict=True))
    plan = _plan(dae, dae.jacobian, dae.equations, dae.unknowns, probes)
    projection = None
    if dae.projection is not None:
        names = tuple(map(str, range(dae.projection.right.numel())))
        projection = _plan(dae, dae.projection.matrix, names, names, probes)
    return Compiled(dae, plan, events, projection)


def _plan(dae: DAE, J: ca.SX, equations: tuple[str, ...], unknowns: tuple[str, ...], probes: list[Any]) -> Plan:
    """Plan the elimination of a matrix of expressions by its values at probed points."""
    entries = by_rows(J)
    pattern = Pattern.of(J.sparsity(), equations, unknowns)
    function = ca.Function("probe", [dae.x, dae.rates, dae.environment], [ca.vertcat(*entries)])
    values = np.array([np.asarray(function(*p)).ravel() for p in probes])
    finite = values[np.isfinite(values).all(axis=1)]
    constant = np.array([e.is_constant() for e in entries], dtype=bool)
    return make_plan(pattern, values=finite if len(finite) else None, constant=constant)


def kernel_of(name: str, inputs: Mapping[str, ca.SX], outputs: Mapping[str, ca.SX]) -> Kernel:
    """Compile for one sample at a time."""
    dense = [ca.densify(e) for e in outputs.values()]
    return Kernel(ca.Function(name, list(inputs.values()), dense, list(inputs), list(outputs)), width=1)

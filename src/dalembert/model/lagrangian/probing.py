"""Probing of a Lagrangian's matrices at states that meet its constraints: implied rows, singular masses.

What is found decides which code is traced, never what a sample is told: each proves for itself that the code suits it
(`kkt/expressions/sample_verdict.py`). Parameters have their default values here, those without one a number near one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import casadi as ca
import numpy as np

from dalembert.kkt.expressions.probing import closest_closed, coordinate_sizes, probe
from dalembert.kkt.expressions.verdict import Conditioning
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.lagrangian.derivation import Expressions
    from dalembert.model.lagrangian.symbols import Parameters, Symbols

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
    places = list(islice(_places(e, symbols, parameters), PROBES))
    if not places:  # no numbers anywhere: every sample will have to prove itself
        return Conditioning(True, (1.0,) * n, (1.0,) * m, (0.0,) * m, (False,) * m, ((),) * m)
    return probe(np.array([place.M for place in places]), np.array([place.A for place in places]))


def _places(e: Expressions, symbols: Symbols, parameters: Parameters) -> Iterator[_Place]:
    """Yield states that meet the constraints; where none is found, states as they come."""
    rng = np.random.default_rng(0)
    values = _values(parameters, rng)
    inputs = [symbols.q, symbols.t, symbols.parameters.column]
    function = ca.Function("probe", inputs, [e.mass, e.jacobian, e.constraint])
    n, holonomic = symbols.q.numel(), np.array(e.holonomic, dtype=bool)

    def at(q: Array, t: float) -> _Place:
        M, A, phi = (np.array(ca.densify(x)) for x in function(q, np.full(symbols.t.numel(), t), values))
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

"""Motions without mass of a Lagrangian system that nothing holds, with dynamics of their own.

Symbols and reasons as in `model/mechanism/limbs.py`: rows v_P = w(q, t) that take no reaction from the rest.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.errors import ModelError
from dalembert.kkt import KKT
from dalembert.model.lagrangian.derivation import rate_of
from dalembert.model.lagrangian.forward import PROBES, probed_places
from dalembert.model.lagrangian.symbols import as_column
from dalembert.model.mechanism.limbs import checked_law, chosen_coordinates

if TYPE_CHECKING:
    from dalembert.model.lagrangian.lagrangian import Lagrangian


def with_massless(system: Lagrangian, law: Any = "hold") -> Lagrangian:
    """Return the system with a row for every free motion without mass; itself where there is none."""
    laws = checked_law(law, expressions=True)
    symbols, e = system.symbols, system.expressions
    places = islice(probed_places(e, symbols, system.parameters), PROBES)
    bases = [KKT(place.M, place.A).analysis.motion.free for place in places]
    names = chosen_coordinates(bases, system.coordinates, tuple(laws), "this system")
    if not names:
        return system
    rates = []
    for name in names:
        w = as_column(laws.get(name, 0.0), f"the law of {name!r}")
        w = symbols.checked(w, f"the law of {name!r}", "q t parameters")
        if w.shape != (1, 1):
            raise ModelError(f"the law of {name!r} must be one velocity; it has shape {w.shape}")
        rates.append(symbols.v[system.coordinates.index(name)] - w)
    rows = ca.vertcat(*rates)
    labels = tuple(f"massless {name}" for name in names)
    expressions = replace(
        e, rate=ca.vertcat(e.rate, rows), jacobian=ca.densify(ca.vertcat(e.jacobian, ca.jacobian(rows, symbols.v))),
        drift=ca.densify(ca.vertcat(e.drift, rate_of(symbols, rows))), names=(*e.names, *labels),
        holonomic=(*e.holonomic, *(False for _ in labels)),
    )  # fmt: skip
    contacts = system.contacts, system.unilateral
    held = type(system).from_expressions(symbols, expressions, system.coordinates, (*system.names, *labels), *contacts)
    held.parameters, held.massless_rows = system.parameters, labels
    return held

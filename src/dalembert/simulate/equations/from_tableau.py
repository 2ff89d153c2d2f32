"""A tableau as a DAE: known variables become functions of time, the signature method says what index each unknown has.

With c_i, d_j the offsets of Pryce's method (`tableau/structure/index_reduction.py`), unknown j is of index 1 + max c -
d_j: multipliers of position constraints (d = 0, max c = 2) of index 3, velocities (d = 1) of index 2, positions (d = 2)
of index 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError, ShapeError
from dalembert.simulate.equations.dae import DAE, indices
from dalembert.simulate.equations.signals import Signals
from dalembert.tableau.structure.index_reduction import signature
from dalembert.tableau.tableau import Tableau

Replaced = tuple[ca.SX, ca.SX]
"""Symbols of what is known, and the expressions in their place."""


def tableau_dae(tableau: Tableau, known: Mapping[str, Any] | None, time: ca.SX | None) -> tuple[DAE, Signals, Replaced]:
    """Return the DAE of a tableau with functions of time for its known variables, matched anew if others are given."""
    if known is not None and not isinstance(known, Mapping):
        raise ModelError(f"known is a {type(known).__name__}; give a mapping from names to what is known of them")
    given = dict(known or {})
    if set(given) != set(tableau.known):
        tableau = tableau.with_known(given)
    missing = [name for name in tableau.known if name not in given]
    if missing:
        raise ModelError(f"known: no value for {', '.join(missing)}; name elements one by one")
    t = tableau.time if tableau.time.numel() else (ca.SX.sym("t") if time is None else time)
    signals = Signals()
    old, new = [], []
    for name, value in given.items():
        rate = tableau.inputs.get(f"{name}'")
        found = signals.expressions(name, value, 0 if rate is None else 1, t)
        old += [tableau.inputs[name]] + ([] if rate is None else [rate])
        new += found
    replaced = ca.vertcat(*old, ca.SX(0, 1)), ca.densify(ca.vertcat(*new, ca.SX(0, 1)))
    residual = ca.substitute(tableau.residual, *replaced) if old else tableau.residual
    rates = [ca.SX.sym(f"{name}'") for name in tableau.unknowns]
    for place, k in enumerate(tableau.differential):
        rates[k] = tableau.x_dot[place]
    found = signature(tableau)
    power = indices(found.equation_offsets, found.unknown_offsets)
    differential = np.zeros(len(rates), bool)
    differential[list(tableau.differential)] = True
    dae = DAE(
        x=tableau.x,
        rates=ca.vertcat(*rates, ca.SX(0, 1)),
        residual=ca.densify(residual),
        time=t,
        unknowns=tableau.unknowns,
        equations=tableau.equations,
        tested=differential & (power < 2),
        power=power,
        signals=signals.column,
        parameters=tableau.parameters.column,
    )
    return dae, signals, replaced


def own_dae(dae: DAE, known: Mapping[str, Any] | None) -> tuple[DAE, Signals, Replaced]:
    """Return a DAE of a user's own with functions of time for all its signals."""
    names = [str(s) for s in ca.vertsplit(dae.signals)] if dae.signals.numel() else []
    if known is not None and not isinstance(known, Mapping):
        raise ModelError(f"known is a {type(known).__name__}; give a mapping from names to what is known of them")
    given = dict(known or {})
    if set(given) != set(names):
        missing, strange = sorted(set(names) - set(given)), sorted(set(map(str, given)) - set(names))
        raise ModelError(
            f"known= of a DAE gives each of its signals: {', '.join(names) or 'it has none'}"
            + (f"; missing are {', '.join(missing)}" if missing else "")
            + (f"; no signal is called {', '.join(strange)} (declare it as signals=)" if strange else "")
        )
    signals = Signals()
    if not names:
        return dae, signals, (ca.SX(0, 1), ca.SX(0, 1))
    new = ca.densify(ca.vertcat(*[signals.expressions(name, given[name], 0, dae.time)[0] for name in names]))
    residual = ca.substitute(dae.residual, dae.signals, new)
    return replace(dae, residual=ca.densify(residual), signals=signals.column), signals, (dae.signals, new)


def general_dae(
    system: Any, known: Any, time: ca.SX | None, parameters: Any
) -> tuple[DAE, Signals, np.ndarray, Replaced]:
    """Take a DAE with its signals, or a tableau with its known variables."""
    if isinstance(system, Tableau):
        dae, signals, replaced = tableau_dae(system, known, time)
        return dae, signals, system.parameters.pack(parameters), replaced
    if isinstance(system, DAE):
        size = system.parameters.numel()
        values = np.zeros(0) if parameters is None else floats(parameters, "parameters")
        if values.shape != (size,):
            raise ShapeError(f"parameters have shape {values.shape}; this DAE has {size}")
        dae, signals, replaced = own_dae(system, known)
        return dae, signals, values, replaced
    raise ModelError(
        f"a problem is made from a Lagrangian, a Mechanism, a Tableau or a DAE, not from {type(system).__name__}"
    )

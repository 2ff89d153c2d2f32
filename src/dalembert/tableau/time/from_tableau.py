"""A tableau as a DAE: known variables become functions of time, the signature method says what index each unknown has.

With c_i, d_j the offsets of Pryce's method (`tableau/signature.py`), unknown j is of index 1 + max c - d_j: multipliers
of position constraints (d = 0, max c = 2) of index 3, velocities (d = 1) of index 2, positions (d = 2) of index 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError
from dalembert.tableau.signature import signature
from dalembert.tableau.tableau import Tableau
from dalembert.tableau.time.dae import DAE
from dalembert.tableau.time.known import Signals
from dalembert.tableau.time.numbers import reals


def tableau_dae(tableau: Tableau, known: Mapping[str, Any] | None, time: ca.SX | None) -> tuple[DAE, Signals]:
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
    residual = tableau.residual
    if old:
        residual = ca.substitute(residual, ca.vertcat(*old), ca.vertcat(*new))
    rates = [ca.SX.sym(f"{name}'") for name in tableau.unknowns]
    for place, k in enumerate(tableau.differential):
        rates[k] = tableau.x_dot[place]
    offsets = signature(tableau)
    power = np.maximum(offsets.equation_offsets.max(initial=0) - offsets.unknown_offsets, 0).astype(np.int64)
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
    return dae, signals


def general_dae(system: Any, known: Any, time: ca.SX | None, parameters: Any) -> tuple[DAE, Signals, np.ndarray]:
    """Take a DAE as it is, or a tableau with its known variables."""
    if isinstance(system, Tableau):
        dae, signals = tableau_dae(system, known, time)
        return dae, signals, system.parameters.pack(parameters)
    if isinstance(system, DAE):
        if known:
            raise ModelError(
                "known= is for a Lagrangian or a Tableau; in a DAE of your own, put the functions of time in"
            )
        size = system.parameters.numel()
        values = np.zeros(0) if parameters is None else reals("parameters", parameters)
        if values.shape != (size,):
            raise ShapeError(f"parameters have shape {values.shape}; this DAE has {size}")
        return system, Signals(), values
    raise ModelError(f"a problem is made from a Lagrangian, a Tableau or a DAE, not from {type(system).__name__}")

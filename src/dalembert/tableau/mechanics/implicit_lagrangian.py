"""Implicit Lagrangian equations of a `Lagrangian` system as a tableau (seed 003, eqs. 6-10), degenerate ones included.

Symbols: p = dL/dv momenta, lam multipliers, Q = d/dt dL/dv - dL/dq minus given forces, tau applied forces, N = A rows
of constraints, v° and v* dependent and independent velocities.

    "momenta" (representation I)                     "split" (representation II, eq. 10)
    q' - v = 0                                       q' - v = 0
    p - dL/dv = 0                                    v° - J v* - b = 0
    p' - dL/dq - forces + A^T lam - tau = 0          Q - M v' - bias = 0
    phi(q) = 0,  or N v + b = 0                      J^T (Q° - tau°) + Q* - tau* = 0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import ModelError, ShapeError, UnsupportedError
from dalembert.model import Lagrangian, Mechanism
from dalembert.tableau.inputs import as_names, as_numbers
from dalembert.tableau.mechanics.dirac import connection_split
from dalembert.tableau.tableau import Tableau

FORMS = ("momenta", "split")
"""With multipliers and momenta; without multipliers."""


def implicit_lagrangian(
    system: Lagrangian,
    form: str = "momenta",
    known: Iterable[str] | None = None,
    configuration: Any = None,
    independent: Sequence[str] | None = None,
    level: str = "position",
) -> Tableau:
    """Return the tableau of a Lagrangian system.

    Parameters
    ----------
    form
        One of `FORMS`.
    known
        Names of known variables; default: tau and the controls, forward dynamics. Variables are "q x", "v x", "p x",
        "tau x" per coordinate x, "lam r" per row r, "Q x", and "u" for controls.
    configuration
        q at which the split is chosen (form "split"); default: a random one.
    independent
        Coordinates whose velocities are v*, if they are not to be chosen.
    level
        "position": holonomic rows as phi(q) = 0 (index 3); "velocity": their rates (form "momenta").
    """
    _require_lagrangian(system)
    if not isinstance(form, str) or form not in FORMS:
        raise ModelError(f"form {form!r} is not one of {', '.join(map(repr, FORMS))}")
    if not isinstance(level, str) or level not in ("position", "velocity"):
        raise ModelError(f"level {level!r} is not 'position' or 'velocity'")
    sheet = _Sheet(system)
    if form == "momenta":
        _momenta(sheet, level)
    else:
        _split(sheet, configuration, independent)
    controls = {"u": system.symbols.u} if system.symbols.u.numel() else {}
    variables = {**sheet.variables, **controls}
    if known is None:
        known = [name for name in variables if name.startswith("tau ") or name == "u"]
    time = system.symbols.t if system.symbols.t.numel() else None
    parameters = {
        name: (symbol, system.parameters.defaults[name]) if name in system.parameters.defaults else symbol
        for name, symbol in zip(system.parameters.names, system.parameters.symbols, strict=True)
    }
    return Tableau(sheet.equations, variables, sheet.rates, known, sheet.outputs, time, parameters or None)


def _require_lagrangian(system: Any) -> None:
    """Refuse what has no energy as an expression; say where its equations come from."""
    if isinstance(system, Lagrangian):
        return
    if isinstance(system, Mechanism):
        raise UnsupportedError(
            "a Mechanism has no Lagrangian as one expression: `newton_euler(mechanism)` writes its equations in joint "
            "coordinates, `maximal(mechanism)` those of its bodies with momenta of their own and multipliers"
        )
    raise ModelError(
        f"implicit Lagrangian equations are written for a Lagrangian, not for {type(system).__name__}: give the "
        "energies as expressions, da.Lagrangian(q, v, kinetic, potential), or the equations, Tableau({name: ...})"
    )


class _Sheet:
    """Variables q, v, tau of a system with their rates, and the relation q' = v that both forms have."""

    def __init__(self, system: Lagrangian) -> None:
        self.system = system
        self.coordinates = system.coordinates
        self.q, self.v = ca.vertsplit(system.symbols.q), ca.vertsplit(system.symbols.v)
        n = len(self.q)
        self.tau = [ca.SX.sym(f"tau {x}") for x in self.coordinates]
        self.variables: dict[str, ca.SX] = {}
        self.rates: dict[str, ca.SX] = {}
        self.equations: dict[str, ca.SX] = {}
        self.outputs: dict[str, str] = {}
        self.q_dot, self.v_dot = self._group("q", self.q), self._group("v", self.v)
        self.variables |= {f"tau {x}": s for x, s in zip(self.coordinates, self.tau, strict=True)}
        for i in range(n):
            self.equations[f"rate of q {self.coordinates[i]}"] = self.q_dot[i] - self.v[i]

    def _group(self, letter: str, symbols: list[ca.SX]) -> list[ca.SX]:
        """Enter variables "letter x" with rates; return the rates."""
        rates = []
        for name, s in zip(self.coordinates, symbols, strict=True):
            self.variables[f"{letter} {name}"] = s
            self.rates[f"{letter} {name}"] = ca.SX.sym(f"{letter}' {name}")
            rates.append(self.rates[f"{letter} {name}"])
        return rates


def _momenta(sheet: _Sheet, level: str) -> None:
    """Write representation I with momenta and multipliers."""
    system, e = sheet.system, sheet.system.expressions
    q, v = system.symbols.q, system.symbols.v
    p = [ca.SX.sym(f"p {x}") for x in sheet.coordinates]
    p_dot = sheet._group("p", p)
    lam = [ca.SX.sym(f"lam {r}") for r in system.names]
    sheet.variables |= {f"lam {r}": s for r, s in zip(system.names, lam, strict=True)}
    momentum = ca.gradient(e.kinetic, v)
    drift = ca.jtimes(momentum, q, v)
    if system.symbols.t.numel():
        drift += ca.jacobian(momentum, system.symbols.t)
    reaction = ca.mtimes(e.jacobian.T, ca.vertcat(*lam)) if lam else ca.SX(len(p), 1)
    for i, x in enumerate(sheet.coordinates):
        sheet.equations[f"momentum {x}"] = p[i] - momentum[i]
        sheet.equations[f"balance {x}"] = p_dot[i] - drift[i] + e.bias[i] + reaction[i] - sheet.tau[i]
    positions = iter(ca.vertsplit(e.constraint) if e.constraint.numel() else [])
    for k, (name, holonomic) in enumerate(zip(system.names, e.holonomic, strict=True)):
        position = next(positions) if holonomic else e.rate[k]
        sheet.equations[f"constraint {name}"] = position if level == "position" else e.rate[k]


def _split(sheet: _Sheet, configuration: Any, independent: Sequence[str] | None) -> None:
    """Write representation II: connection, dual relation, generalized forces."""
    system, e = sheet.system, sheet.system.expressions
    dependent, free = _partition(system, configuration, independent)
    Q = [ca.SX.sym(f"Q {x}") for x in sheet.coordinates]
    sheet.variables |= {f"Q {x}": s for x, s in zip(sheet.coordinates, Q, strict=True)}
    N_dependent, N_free = e.jacobian[:, dependent], e.jacobian[:, free]
    offset = ca.substitute(e.rate, system.symbols.v, ca.SX.zeros(len(Q)))
    J = -ca.solve(N_dependent, N_free) if dependent else ca.SX(0, len(free))
    b = -ca.solve(N_dependent, offset) if dependent else ca.SX(0, 1)
    v, excess = ca.vertcat(*sheet.v), ca.vertcat(*Q) - ca.vertcat(*sheet.tau)
    connection = v[dependent] - ca.mtimes(J, v[free]) - b if dependent else ca.SX(0, 1)
    dual = (ca.mtimes(J.T, excess[dependent]) if dependent else 0) + excess[free]
    force = ca.vertcat(*Q) - ca.mtimes(e.mass, ca.vertcat(*sheet.v_dot)) - e.bias
    for k, i in enumerate(dependent):
        sheet.equations[f"connection {sheet.coordinates[i]}"] = connection[k]
        sheet.outputs[f"connection {sheet.coordinates[i]}"] = f"v {sheet.coordinates[i]}"
    for k, i in enumerate(free):
        sheet.equations[f"dual {sheet.coordinates[i]}"] = dual[k]
    for i, x in enumerate(sheet.coordinates):
        sheet.equations[f"force {x}"] = force[i]


def _partition(
    system: Lagrangian, configuration: Any, independent: Sequence[str] | None
) -> tuple[list[int], list[int]]:
    """Return dependent and independent coordinates; rows of full rank are asked for."""
    q = np.random.default_rng(3).standard_normal(len(system.coordinates)) if configuration is None else configuration
    places = None
    if independent is not None:
        names = as_names(independent, "independent")
        unknown = [name for name in names if name not in system.coordinates]
        if unknown:
            raise ModelError(f"independent: no coordinate is called {unknown[0]!r}")
        places = [system.coordinates.index(name) for name in names]
    q = as_numbers(q, "configuration", finite=True)
    if q.shape != (len(system.coordinates),):
        raise ShapeError(f"configuration must have shape ({len(system.coordinates)},); it has {q.shape}")
    N = system.jacobian(q).reshape(len(system.names), len(system.coordinates))
    split = connection_split(N, places)
    if len(split.dependent) < len(system.names):
        raise ModelError(
            f"{len(system.names)} constraint rows have rank {len(split.dependent)}: the split form needs independent "
            "rows; `form='momenta'` keeps redundant ones"
        )
    return split.dependent.tolist(), split.independent.tolist()

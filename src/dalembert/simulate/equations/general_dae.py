"""General DAEs: a tableau as one, and consistent values of x, x' and higher derivatives, with hidden constraints.

All F_i^(k) = 0 are solved by Gauss-Newton steps of least weighed change: first with differential unknowns as given, for
algebraic ones and rates (K. E. Brenan, S. L. Campbell, L. R. Petzold 1996, sec. 5.3.4; P. N. Brown, A. C. Hindmarsh,
L. R. Petzold, SIAM J. Sci. Comput. 19 (1998) 1495). What is then left are constraints, written or hidden, that the
given values violate: differential unknowns move as little as possible, all but those in `hold`, and the report says
which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.checks import floats, one_number
from dalembert.errors import ModelError, ShapeError, SolvabilityError
from dalembert.simulate.equations.dae import DAE, Levels, indices
from dalembert.simulate.equations.signals import Signals
from dalembert.simulate.limits import FULFILLED_START, STALLED, TABLEAU_RANK
from dalembert.tableau.structure.index_reduction import signature
from dalembert.tableau.tableau import Tableau
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.problem import Problem

MOST_ITERATIONS = 30
FIRMLY = 1e6
"""Weight of equations with rates while those of constraints are judged: rates can always follow."""

FREELY = 1e3
"""Algebraic unknowns and derivatives move so much more easily than given differential unknowns."""


@dataclass(frozen=True)
class GeneralStart:
    """What moved: name (with a prime: rate) -> change; which constraints were violated; those that are hidden.

    `unchecked` says why hidden constraints could not be found, if so: then they are the user's to satisfy.
    """

    t: float
    moved: dict[str, float]
    violated: dict[str, float]
    hidden: tuple[str, ...] = ()
    unchecked: str = ""

    def __str__(self) -> str:
        lines = [f"consistent at t = {self.t:g}; {len(self.hidden)} hidden constraints"]
        lines += [f"  hidden constraints were not checked: {self.unchecked}"] if self.unchecked else []
        lines += [f"  {k} violated by {x:.3g}" for k, x in self.violated.items()]
        return "\n".join([*lines, *(f"  {k} moved by {x:.3g}" for k, x in self.moved.items())])


def general_start(
    problem: Problem, t: float, x: Any, rates: Any, hold: Sequence[str] = ()
) -> tuple[Array, Array, GeneralStart]:
    """Return x and x' with F = 0 and all hidden constraints, and what moved."""
    dae, deep = problem.dae, problem.levels
    n = dae.n
    x0, r0 = _vector(x, dae.unknowns, "x"), _vector(rates, dae.unknowns, "rates")
    held = np.array([name in set(hold) for name in dae.unknowns])
    for name in hold:
        dae.place(name)
    z0 = np.concatenate([x0, r0, np.zeros(n * (deep.orders - 2))])
    search = _Search(deep, t, problem.parameters, np.maximum(np.abs(z0), 1.0))
    fixed = np.zeros(len(z0), bool)
    fixed[:n] = dae.differential | held
    z, residual = search.run(z0, fixed, np.where(deep.algebraic, 1.0, FIRMLY))
    violated = {deep.names[i]: float(residual[i]) for i in np.flatnonzero(search.off(residual))}
    if violated:
        z, residual = _repaired(search, z, residual, dae.differential, held)
        bad = np.flatnonzero(search.off(residual))
        if len(bad):
            raise _refused(t, deep, residual, bad, violated, hold)
    r1 = np.where(deep.highest >= 1, z[n : 2 * n], r0)
    return z[:n], r1, GeneralStart(t, _moved(dae, x0, z[:n], r0, r1), violated, deep.hidden, deep.unchecked)


def _repaired(search: _Search, z: Array, left: Array, differential: Array, held: Array) -> tuple[Array, Array]:
    """Move differential unknowns: those that fewer derivatives hang on (velocities) first, and others if need be."""
    n, highest = len(held), search.deep.highest
    easily = np.full(len(z), FREELY)
    easily[:n][differential] = 1.0
    for depth in sorted(set(highest[differential].tolist())):
        fixed = np.zeros(len(z), bool)
        fixed[:n] = held | (differential & (highest > depth))
        z1, left = search.run(z, fixed, np.ones(len(left)), easily)
        if not search.off(left).any():
            return z1, left
    return z, left


def _refused(t: float, deep: Levels, left: Array, bad: Array, violated: Mapping[str, float], hold: Any) -> Exception:
    rest = ", ".join(f"{deep.names[i]}: {left[i]:.3g}" for i in bad[:6])
    named = ", ".join(f"{name} ({x:.3g})" for name, x in list(violated.items())[:6])
    return SolvabilityError(
        f"no consistent start at t = {t:g}: the given differential unknowns violate {named}, and no change of them was "
        f"found that helps; left are {rest}. The equations may contradict each other"
        + (f", or what is held ({', '.join(hold)}) may be wrong" if hold else ", or the start is too far away")
    )


def _moved(dae: Any, x0: Array, x1: Array, r0: Array, r1: Array) -> dict[str, float]:
    moved = {}
    for mark, before, after in (("", x0, x1), ("'", r0, r1)):
        for i, name in enumerate(dae.unknowns):
            if abs(after[i] - before[i]) > FULFILLED_START * max(1.0, abs(before[i])):
                moved[name + mark] = float(after[i] - before[i])
    return moved


class _Search:
    """Gauss-Newton steps of least change for the rows of `Levels` at one time."""

    def __init__(self, deep: Levels, t: float, parameters: Array, sizes: Array) -> None:
        self.deep, self.t, self.parameters, self.sizes = deep, t, parameters, sizes
        self.inputs = deep.inputs(t)
        self.rows = np.ones(len(deep.names))

    def run(self, z: Array, fixed: Array, weights: Array, easily: Array | None = None) -> tuple[Array, Array]:
        """Return the point reached and its residuals; `weights` of rows, `easily` how freely each unknown moves."""
        z, move = z.copy(), np.flatnonzero(~fixed)
        scale = self.sizes[move] if easily is None else (self.sizes * easily)[move]
        F, last = np.zeros(len(self.rows)), np.inf
        for _ in range(MOST_ITERATIONS):
            F, K = self._evaluate(z)
            size = float(np.linalg.norm(weights * self.rows * F))
            if not self.off(F).any() or abs(last - size) <= STALLED * FULFILLED_START:
                break
            last, w = size, weights * self.rows
            step = scale * np.linalg.lstsq(w[:, None] * K[:, move] * scale, -w * F, rcond=TABLEAU_RANK)[0]
            if not step.any():
                break
            z[move] += step
        return z, F

    def off(self, F: Array) -> Array:
        """Return which rows do not hold."""
        return np.abs(F) * self.rows > FULFILLED_START

    def _evaluate(self, z: Array) -> tuple[Array, Array]:
        values = self.deep.evaluate(z, self.t, self.inputs, self.parameters)
        F, K = np.asarray(values[0], dtype=float).ravel(), np.asarray(values[1], dtype=float)
        if not (np.isfinite(F).all() and np.isfinite(K).all()):
            bad = [self.deep.names[i] for i in np.flatnonzero(~np.isfinite(F) | ~np.isfinite(K).all(axis=1))]
            raise ModelError(f"the equations {', '.join(bad[:8])} are not finite at the start, t = {self.t:g}")
        # a constraint among given unknowns has no entry that may change: it is weighed by all that it has
        self.rows = 1.0 / np.maximum(np.abs(K * self.sizes).max(axis=1), np.finfo(float).tiny)
        return F, K


def _vector(given: Any, names: tuple[str, ...], what: str) -> Array:
    """Return all values: from an array, or from a mapping over zeros."""
    n = len(names)
    if isinstance(given, Mapping):
        vector = np.zeros(n)
        for name, value in given.items():
            if name not in names:
                raise ModelError(f"{what}: no unknown is called {name!r}; there are {', '.join(names)}")
            vector[names.index(name)] = one_number(value, f"{what} of {name}")
    else:
        vector = np.zeros(n) if given is None else floats(given, what)
    if vector.shape != (n,):
        raise ShapeError(f"{what} has shape {vector.shape}; expected ({n},)")
    if not np.isfinite(vector).all():
        raise ModelError(
            f"{what} is not finite for {', '.join(names[i] for i in np.flatnonzero(~np.isfinite(vector)))}"
        )
    return vector


# ----------------------------------------------------------------------------------------------------------------------
# A tableau as a DAE: known variables become functions of time, the signature method says what index each unknown has.
#
# With c_i, d_j the offsets of Pryce's method (`tableau/structure/index_reduction.py`), unknown j is of index
# 1 + max c - d_j: multipliers of position constraints (d = 0, max c = 2) of index 3, velocities (d = 1) of index 2,
# positions (d = 2) of index 1.


Replaced = tuple[ca.SX, ca.SX]
"""Symbols of what is known, and the expressions in their place."""


def tableau_dae(tableau: Tableau, known: Mapping[str, Any] | None, time: ca.SX | None) -> tuple[DAE, Signals, Replaced]:
    """Return the DAE of a tableau with functions of time for its known variables, matched anew if others are given."""
    if known is not None and not isinstance(known, Mapping):
        raise ModelError(f"known is a {type(known).__name__}; give a mapping from names to what is known of them")
    signals_by_name = dict(known or {})
    if set(signals_by_name) != set(tableau.known):
        tableau = tableau.with_known(signals_by_name)
    missing = [name for name in tableau.known if name not in signals_by_name]
    if missing:
        raise ModelError(f"known: no value for {', '.join(missing)}; name elements one by one")
    t = tableau.time if tableau.time.numel() else (ca.SX.sym("t") if time is None else time)
    signals = Signals()
    old, new = [], []
    for name, value in signals_by_name.items():
        rate = tableau.inputs.get(f"{name}'")
        expressions = signals.expressions(name, value, 0 if rate is None else 1, t)
        old += [tableau.inputs[name]] + ([] if rate is None else [rate])
        new += expressions
    replaced = ca.vertcat(*old, ca.SX(0, 1)), ca.densify(ca.vertcat(*new, ca.SX(0, 1)))
    residual = ca.substitute(tableau.residual, *replaced) if old else tableau.residual
    rates = [ca.SX.sym(f"{name}'") for name in tableau.unknowns]
    for place, k in enumerate(tableau.differential):
        rates[k] = tableau.x_dot[place]
    structure = signature(tableau)
    power = indices(structure.equation_offsets, structure.unknown_offsets)
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
    signals_by_name = dict(known or {})
    if set(signals_by_name) != set(names):
        missing, strange = (
            sorted(set(names) - set(signals_by_name)),
            sorted(set(map(str, signals_by_name)) - set(names)),
        )
        raise ModelError(
            f"known= of a DAE gives each of its signals: {', '.join(names) or 'it has none'}"
            + (f"; missing are {', '.join(missing)}" if missing else "")
            + (f"; no signal is called {', '.join(strange)} (declare it as signals=)" if strange else "")
        )
    signals = Signals()
    if not names:
        return dae, signals, (ca.SX(0, 1), ca.SX(0, 1))
    new = ca.densify(ca.vertcat(*[signals.expressions(name, signals_by_name[name], 0, dae.time)[0] for name in names]))
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

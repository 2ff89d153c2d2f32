"""Electric circuits as a tableau: Kirchhoff's laws are a Dirac structure (seed 003, sec. 2.3); motors drive shafts.

Symbols, per branch from its node `plus` to `minus`: i current through it, u voltage, plus against minus; N (nodes,
branches) the incidence matrix, phi potentials of nodes.

    currents  N i = 0                       (4), as velocities of a mechanism:   i° = J i*
    voltages  u = N^T phi,  B^T u = 0       (5), as forces of constraints:       J^T u° + u* = 0
    power     <u, i> = 0                    Tellegen's theorem, the principle of virtual work

One row of N in each connected part follows from the others, and a set of loops that is more than enough is the same
redundancy of the other law; the split takes independent ones. J has entries 0, 1, -1 alone: N is totally unimodular.

Source for elements and their laws: L. O. Chua, C. A. Desoer, E. S. Kuh, "Linear and Nonlinear Circuits" (1987).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.checks import one_number
from dalembert.errors import ModelError
from dalembert.names import near_matches
from dalembert.tableau.mechanics.dirac import DiracStructure, connection_split
from dalembert.tableau.tableau import Tableau, require_tableau
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

FORMS = ("split", "potentials")
"""Without potentials, dependent currents and voltages from independent ones; or with the potentials of all nodes."""


@dataclass(frozen=True)
class Branch:
    """An element between two nodes; `values` are those of its law."""

    kind: str
    plus: str
    minus: str
    values: tuple[float, ...] = ()


class Circuit:
    """Collects the branches of a circuit; `tableau` writes its equations.

    Variables are "i NAME" and "u NAME" of every branch, of motors also "speed NAME" and "torque NAME"; potentials are
    "phi NODE". A branch counts current from `plus` through itself to `minus`, so that u i is the power it takes.

    Examples
    --------
    >>> circuit = Circuit()
    >>> circuit.voltage_source("battery", "a", "ground")
    >>> circuit.resistor("lamp", "a", "ground", 6.0)
    >>> circuit.tableau().solve({"u battery": 12.0})["i lamp"]
    array(2.)
    """

    def __init__(self) -> None:
        self.branches: dict[str, Branch] = {}

    def resistor(self, name: str, plus: str, minus: str, resistance: float) -> None:
        """Add u = R i; R in ohm."""
        self._add(name, "resistor", plus, minus, resistance)

    def inductor(self, name: str, plus: str, minus: str, inductance: float) -> None:
        """Add u = L i'; L in henry."""
        self._add(name, "inductor", plus, minus, inductance)

    def capacitor(self, name: str, plus: str, minus: str, capacitance: float) -> None:
        """Add i = C u'; C in farad."""
        self._add(name, "capacitor", plus, minus, capacitance)

    def voltage_source(self, name: str, plus: str, minus: str) -> None:
        """Add a branch without a law; "u NAME" is known by default."""
        self._add(name, "voltage source", plus, minus)

    def current_source(self, name: str, plus: str, minus: str) -> None:
        """Add a branch without a law; "i NAME" is known by default."""
        self._add(name, "current source", plus, minus)

    def motor(
        self, name: str, plus: str, minus: str, constant: float, resistance: float = 0.0, inductance: float = 0.0
    ) -> None:
        """Add u = R i + L i' + k speed, torque = k i: a permanent-magnet motor; k in V s = N m / A."""
        self._add(name, "motor", plus, minus, constant, resistance, inductance)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of nodes, in the order in which branches name them."""
        return tuple(dict.fromkeys(node for b in self.branches.values() for node in (b.plus, b.minus)))

    @property
    def incidence(self) -> Float[Array, "nodes branches"]:
        """N: +1 where a branch leaves a node, -1 where it enters one."""
        N = np.zeros((len(self.nodes), len(self.branches)))
        for k, branch in enumerate(self.branches.values()):
            N[self.nodes.index(branch.plus), k] += 1.0
            N[self.nodes.index(branch.minus), k] -= 1.0
        return N

    def dirac(self) -> DiracStructure:
        """Return Kirchhoff's laws as a Dirac structure: currents as velocities, voltages as forces of constraints."""
        return DiracStructure.of(self.incidence)

    def loops(self) -> Float[Array, "loops branches"]:
        """Return independent loops as rows, +1 or -1 where a loop runs along or against a branch: B^T."""
        return np.round(connection_split(self.incidence).B.T)

    def tableau(self, form: str = "split", known: Iterable[str] | None = None) -> Tableau:
        """Return the equations; known are voltages and currents of sources, speeds of motors, unless named.

        In form "potentials" the node that comes last in each connected part has potential zero and no row of its own.
        """
        if not isinstance(form, str) or form not in FORMS:
            raise ModelError(f"form {form!r} is not one of {', '.join(map(repr, FORMS))}")
        if not self.branches:
            raise ModelError("a circuit without branches has no equations")
        names = list(self.branches)
        i, u = ({name: ca.SX.sym(f"{letter} {name}") for name in names} for letter in ("i", "u"))
        variables = {f"i {n}": i[n] for n in names} | {f"u {n}": u[n] for n in names}
        equations, rates = {}, {}
        for name, branch in self.branches.items():
            laws, others, own = _laws(name, branch, i[name], u[name])
            equations |= laws
            variables |= others
            rates |= own
        current, voltage = ca.vertcat(*i.values()), ca.vertcat(*u.values())
        structure = (
            _split(self, current, voltage) if form == "split" else _potentials(self, current, voltage, variables)
        )
        if known is None:
            source = {"voltage source": "u", "current source": "i", "motor": "speed"}
            known = [f"{source[b.kind]} {name}" for name, b in self.branches.items() if b.kind in source]
        return Tableau({**structure, **equations}, variables, rates, known)

    def balance(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return by how much values miss Kirchhoff's laws and Tellegen's theorem, each beside its largest term.

        `values` has "i NAME" and "u NAME" of every branch, numbers or (N,).
        """
        missing = [f"{x} {name}" for name in self.branches for x in "iu" if f"{x} {name}" not in values]
        if missing:
            raise ModelError(f"no values of {', '.join(missing)}")
        i, u = (
            np.stack(
                np.broadcast_arrays(*[np.atleast_1d(np.asarray(values[f"{x} {n}"], float)) for n in self.branches])
            )
            for x in "iu"
        )
        N, B = self.incidence, self.loops()
        terms = {"currents": (N @ i, i), "voltages": (B @ u, u), "power": (np.sum(u * i, axis=0), u * i)}
        sizes = {name: max(float(np.abs(part).max()), np.finfo(float).tiny) for name, (_, part) in terms.items()}
        return {name: float(np.abs(gap).max(initial=0.0)) / sizes[name] for name, (gap, _) in terms.items()}

    def _add(self, name: str, kind: str, plus: str, minus: str, *values: float) -> None:
        """Add a branch, checked."""
        for what, word in (("name", name), ("plus", plus), ("minus", minus)):
            if not isinstance(word, str) or not word:
                raise ModelError(f"{kind} {name!r}: {what} is a text, not {word!r}")
        if name in self.branches:
            raise ModelError(f"two branches are called {name!r}")
        if plus == minus:
            raise ModelError(f"{kind} {name!r}: both ends are at node {plus!r}")
        numbers = tuple(one_number(value, f"a value of {kind} {name!r}") for value in values)
        if any(not np.isfinite(x) for x in numbers) or (numbers and (numbers[0] <= 0.0 or min(numbers) < 0.0)):
            raise ModelError(f"{kind} {name!r}: values {numbers} must be finite and positive")
        self.branches[name] = Branch(kind, plus, minus, numbers)


def _laws(name: str, branch: Branch, i: ca.SX, u: ca.SX) -> tuple[dict[str, ca.SX], dict[str, ca.SX], dict[str, ca.SX]]:
    """Return the equations of a branch, its variables beside current and voltage, and its rates."""
    if branch.kind == "resistor":
        return {f"law {name}": u - branch.values[0] * i}, {}, {}
    if branch.kind == "capacitor":
        rate = ca.SX.sym(f"u' {name}")
        return {f"law {name}": i - branch.values[0] * rate}, {}, {f"u {name}": rate}
    if branch.kind == "inductor":
        rate = ca.SX.sym(f"i' {name}")
        return {f"law {name}": u - branch.values[0] * rate}, {}, {f"i {name}": rate}
    if branch.kind != "motor":
        return {}, {}, {}
    constant, resistance, inductance = branch.values
    speed, torque, rate = (ca.SX.sym(f"{word} {name}") for word in ("speed", "torque", "i'"))
    equations = {
        f"law {name}": u - resistance * i - inductance * rate - constant * speed,
        f"torque {name}": torque - constant * i,
    }
    return equations, {f"speed {name}": speed, f"torque {name}": torque}, {f"i {name}": rate} if inductance else {}


def _split(circuit: Circuit, i: ca.SX, u: ca.SX) -> dict[str, ca.SX]:
    """Return i° - J i* = 0 and J^T u° + u* = 0 (eqs. 4, 5)."""
    split, names = connection_split(circuit.incidence), list(circuit.branches)
    J = ca.sparsify(ca.DM(np.round(split.J)))
    dependent, free = split.dependent.tolist(), split.independent.tolist()
    currents, voltages = i[dependent] - J @ i[free], J.T @ u[dependent] + u[free]
    return {f"currents {names[k]}": currents[j] for j, k in enumerate(dependent)} | {
        f"voltages {names[k]}": voltages[j] for j, k in enumerate(free)
    }


def _potentials(circuit: Circuit, i: ca.SX, u: ca.SX, variables: dict[str, ca.SX]) -> dict[str, ca.SX]:
    """Return N i = 0 and u = N^T phi without the last node of every part; potentials become variables."""
    N, nodes = circuit.incidence, circuit.nodes
    kept = [k for k in range(len(nodes)) if k != max(_part(N, k))]
    phi = {nodes[k]: ca.SX.sym(f"phi {nodes[k]}") for k in kept}
    variables |= {f"phi {node}": symbol for node, symbol in phi.items()}
    rows = ca.sparsify(ca.DM(N[kept]))
    currents, voltages = rows @ i, u - rows.T @ ca.vertcat(*phi.values())
    return {f"currents at {nodes[k]}": currents[j] for j, k in enumerate(kept)} | {
        f"voltages {name}": voltages[j] for j, name in enumerate(circuit.branches)
    }


def _part(N: Array, node: int) -> set[int]:
    """Return the nodes that are connected with one."""
    reached, new = {node}, {node}
    while new:
        branches = np.flatnonzero(np.any(N[sorted(new)] != 0.0, axis=0))
        new = set(np.flatnonzero(np.any(N[:, branches] != 0.0, axis=1)).tolist()) - reached
        reached |= new
    return reached


# ----------------------------------------------------------------------------------------------------------------------
# Tableaux put together: the variables of all, and equations between them.


def connect(tableaux: Iterable[Tableau], equal: Mapping[str, Any], known: Iterable[str] | None = None) -> Tableau:
    """Return one tableau of several, with variables of one set equal to those of another.

    Parameters
    ----------
    tableaux
        With names of their own.
    equal
        Scalar name -> scalar name, or (name, factor): the first is factor times the second. A motor on the first joint
        of an arm, with a gear: {"speed motor": ("qd[0]", 50.0), "tau[0]": ("torque motor", 50.0)}.
    known
        Names of known variables; default: those known before that no equation of `equal` determines.
    """
    parts = list(tableaux)
    equations: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    rates: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    symbols: dict[str, ca.SX] = {}
    time = next((part.time for part in parts if isinstance(part, Tableau) and part.time.numel()), None)
    for part in parts:
        require_tableau(part)
        rows = part.rows if time is None or not part.time.numel() else _at(part.rows, part.time, time)
        columns, own = dict(part.variables.columns), dict(part.given[2] or {})
        given = dict(zip(part.parameters.names, part.parameters.symbols, strict=True))
        for new, old in ((rows, equations), (columns, variables), (given, parameters)):
            if shared := sorted(set(new) & set(old)):
                raise ModelError(f"{shared[0]!r} is a name in two of the tableaux: they need names of their own")
            old |= new
        symbols |= dict(zip(part.variables.names, part.variables.symbols, strict=True))
        rates |= own
        parameters |= {n: (given[n], d) for n, d in part.parameters.defaults.items()}
    for name, value in equal.items():
        other, factor = value if isinstance(value, tuple) else (value, 1.0)
        for word in (name, other):
            if word not in symbols:
                raise ModelError(f"equal: no variable is called {word!r}", near=near_matches(str(word), symbols))
        equations[f"{name} of {other}"] = symbols[name] - one_number(factor, f"the factor of {name!r}") * symbols[other]
    if known is None:
        tied = {*equal, *(v[0] if isinstance(v, tuple) else v for v in equal.values())}
        known = [name for part in parts for name in part.known if name not in tied]
    instant = any(part.instant for part in parts)
    return Tableau(equations, variables, rates, known, None, time, parameters or None, instant)


def _at(rows: dict[str, ca.SX], old: ca.SX, new: ca.SX) -> dict[str, ca.SX]:
    """Return equations with another symbol of time."""
    return dict(zip(rows, ca.substitute(list(rows.values()), [old], [new]), strict=True))

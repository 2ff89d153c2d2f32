"""The tableau: named equations G(x, x', u, t) = 0 in named variables, any of them known (seed 003, eqs. 9, 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import scipy.sparse as sp

from dalembert.errors import ModelError, ShapeError
from dalembert.model.parameters import Parameters
from dalembert.tableau.inputs import as_flag, as_mapping, as_scalar
from dalembert.tableau.newton_batch import NewtonStep
from dalembert.tableau.structure.matching import Matching, match
from dalembert.tableau.structure.pattern import Pattern
from dalembert.tableau.structure.pictures import structure_picture
from dalembert.tableau.structure.rank import RankReport
from dalembert.tableau.structure.solvability import Structure
from dalembert.tableau.variables import Variables, declared_outputs, refuse_strangers, scalar_equations, time_column


class Tableau:
    """Equations G(x, x', u, t) = 0 with names; which variables are known is chosen by name.

    Parameters
    ----------
    equations
        Mapping name -> SX expression that is zero; a column gives "name[0]", "name[1]", ...
    variables
        Mapping name -> SX symbol(s), or a list of symbols: everything that may be unknown or known.
    rates
        Mapping name of a variable -> symbol(s) that stand for its time derivative in the equations.
    known
        Names of variables (or elements, "q[2]") that are given. Everything else is unknown. Forward dynamics knows the
        torques, inverse dynamics the motion; any mixture will do.
    instant
        Whether known variables are values at one instant, without a past: equations with their rates are left out. Else
        they are functions of time, and their rates are inputs, too: "q'".
    outputs
        Mapping equation -> the variable it determines: declared causality, kept where a matching allows it.
    time, parameters
        Symbol of t; parameters as for `Lagrangian`.

    Notes
    -----
    An equation that is left without unknowns (and, at an instant, one with the rate of a known variable) is a condition
    on the known data, listed in `conditions`. An equation without any variable is refused.

    Examples
    --------
    >>> import casadi as ca
    >>> x, y, u = (ca.SX.sym(name) for name in "xyu")
    >>> circuit = Tableau({"sum": x + y - u, "ratio": x - 2 * y}, [x, y, u], known={"u"})
    >>> print(circuit.structure())
    structurally solvable: 2 equations, 1 blocks, the largest of 2
    >>> print(circuit.with_known({"x"}).structure())
    structurally solvable: 2 equations, 2 blocks, the largest of 1
    """

    def __init__(
        self,
        equations: Any,
        variables: Any,
        rates: Mapping[str, Any] | None = None,
        known: Iterable[str] = (),
        outputs: Mapping[str, str] | None = None,
        time: Any = None,
        parameters: Any = None,
        instant: bool = False,
    ) -> None:
        self.variables = Variables.of(variables, rates)
        self._groups, self._all_rows = scalar_equations(equations)
        self._all_names = [name for group in self._groups.values() for name in group]
        self._all_symbols = [{s.element_hash(): s for s in ca.symvar(row)} for row in self._all_rows]
        self.time = time_column(time)
        self.parameters = Parameters.of(parameters)
        self.outputs = as_mapping(outputs, "outputs")
        self._declared = declared_outputs(self.outputs, self._groups, self.variables)
        self.instant = as_flag(instant, "instant")
        self.given = (equations, self.variables.columns, rates, time, parameters)
        others = (self.variables, self.time, self.parameters)
        refuse_strangers(self._all_names, self._all_rows, self._all_symbols, *others)
        self._known = sorted(set(self.variables.find(known, "known")))
        self._unknown = sorted(set(range(len(self.variables.names))) - set(self._known))
        self.known = tuple(self.variables.names[i] for i in self._known)
        self._sort_equations()

    def with_known(self, known: Iterable[str], instant: bool | None = None) -> Tableau:
        """Return the same equations with other known variables: the same tableau, matched anew."""
        equations, variables, rates, time, parameters = self.given
        instant = self.instant if instant is None else instant
        return Tableau(equations, variables, rates, known, self.outputs, time, parameters, instant)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return tuple(self.variables.names[i] for i in self._unknown)

    @property
    def rows(self) -> dict[str, ca.SX]:
        """Every scalar equation by name, conditions among them."""
        return dict(zip(self._all_names, self._all_rows, strict=True))

    @property
    def scalar_outputs(self) -> dict[str, str]:
        """Declared outputs, scalar by scalar."""
        return {equation: self.variables.names[s] for equation, s in self._declared}

    @cached_property
    def x(self) -> ca.SX:
        """Symbols of the unknowns."""
        return ca.vertcat(*[self.variables.symbols[i] for i in self._unknown], ca.SX(0, 1))

    @cached_property
    def differential(self) -> tuple[int, ...]:
        """Places of the unknowns whose rates the equations contain."""
        present = {s.element_hash() for s in ca.symvar(self.residual)}
        rates = [self.variables.rates[i] for i in self._unknown]
        return tuple(k for k, r in enumerate(rates) if r is not None and r.element_hash() in present)

    @cached_property
    def x_dot(self) -> ca.SX:
        """Symbols of the rates of the differential unknowns."""
        rates: list[Any] = [self.variables.rates[self._unknown[k]] for k in self.differential]
        return ca.vertcat(*rates, ca.SX(0, 1))

    @cached_property
    def inputs(self) -> dict[str, ca.SX]:
        """Known variables and, with a prime, those of their rates that the equations contain."""
        present = {s.element_hash() for s in ca.symvar(self.residual)}
        symbols = {self.variables.names[i]: self.variables.symbols[i] for i in self._known}
        for i in self._known:
            rate = self.variables.rates[i]
            if rate is not None and rate.element_hash() in present:
                symbols[f"{self.variables.names[i]}'"] = rate
        return symbols

    @cached_property
    def u(self) -> ca.SX:
        """Symbols of the inputs."""
        return ca.vertcat(*self.inputs.values(), ca.SX(0, 1))

    def residual_function(self) -> ca.Function:
        """Return G(x, x_dot, u, t, parameters)."""
        return ca.Function("G", [self.x, self.x_dot, self.u, self.time, self.parameters.column], [self.residual])

    def jacobian(self, shift: Any = 0) -> ca.SX:
        """Return dG/dx + shift dG/dx', the matrix of Newton's method with x' = shift x + ... (eq. 13, Fig. 3).

        The shift is a number or an SX symbol.
        """
        if not isinstance(shift, ca.SX):
            shift = as_scalar(shift, "shift")
        elif not shift.is_scalar():
            raise ShapeError(f"shift is one number or symbol; it has shape {shift.shape}")
        J = ca.jacobian(self.residual, self.x)
        if not self.differential:
            return J
        rows, cols = list(range(len(self.differential))), list(self.differential)
        place = ca.SX(ca.Sparsity.triplet(len(rows), len(self.unknowns), rows, cols))
        place.nz[:] = 1
        return J + shift * ca.mtimes(ca.jacobian(self.residual, self.x_dot), place)

    @cached_property
    def pattern(self) -> Pattern:
        """Which unknown, or rate of an unknown, stands in which equation."""
        J = self.jacobian(ca.SX.sym("shift"))
        return Pattern.of(J.sparsity(), self.equations, self.unknowns)

    @cached_property
    def preferred(self) -> list[tuple[int, int]]:
        """Declared outputs as (equation, unknown) places."""
        rows = {name: i for i, name in enumerate(self.equations)}
        cols = {i: k for k, i in enumerate(self._unknown)}
        return [(rows[e], cols[s]) for e, s in self._declared if e in rows and s in cols]

    @cached_property
    def matching(self) -> Matching:
        """A maximum matching, declared outputs preferred."""
        return match(self.pattern, self.preferred)

    def structure(self) -> Structure:
        """Return the structural analysis: blocks, or the smallest sets that do not fit, by name."""
        inputs = {s.element_hash(): name for name, s in self.inputs.items()}
        names = set(self.equations)
        used = tuple(
            tuple(inputs[s] for s in symbols if s in inputs)
            for name, symbols in zip(self._all_names, self._all_symbols, strict=True)
            if name in names
        )
        return Structure(self.matching, used)

    def causal_matrix(self) -> sp.csr_array:
        """Return the causal Jacobian: +1 the output of an equation, -1 its inputs (Fig. 4)."""
        return self.matching.causal_matrix()

    def arcs(self) -> list[tuple[str, str]]:
        """Return the directed graph (Fig. 5): unknown -> equation for inputs, equation -> unknown for outputs."""
        return self.matching.arcs()

    def picture(self, kind: str = "graph") -> str:
        """Return an SVG: "graph", the bipartite graph with its matching (Figs. 5, 6), misfits marked; or "matrix"."""
        return structure_picture(self.structure(), kind)

    def rank(self, points: int = 3, shift: float = 1.0, values: Mapping[str, Any] | None = None) -> RankReport:
        """Check the rank of the Jacobian at random points, or at given values of variables by name (K, size)."""
        from dalembert.tableau.structure.sample_points import rank_of

        return rank_of(self, points, shift, values)

    def newton(self, values: Mapping[str, Any] | None = None, **options: Any) -> NewtonStep:
        """Return compiled Newton steps for inputs (x, x_dot, shift, u, t, parameters), empty ones left out.

        `values` are sample values by name at which pivots are probed; `options` go to `NewtonStep`.
        """
        from dalembert.tableau.structure.sample_points import newton_of

        return newton_of(self, values, options)

    def solve(self, known: Mapping[str, Any], **options: Any) -> Any:
        """Solve for the unknowns by Newton's method where no rate of an unknown appears; see `solve_tableau`."""
        from dalembert.tableau.solve import solve_tableau

        return solve_tableau(self, known, **options)

    def _sort_equations(self) -> None:
        """Keep the equations with unknowns; the others are conditions on known data."""
        unknown = {self.variables.symbols[i].element_hash() for i in self._unknown}
        unknown |= {r.element_hash() for i in self._unknown if (r := self.variables.rates[i]) is not None}
        unseen = {r.element_hash() for i in self._known if self.instant and (r := self.variables.rates[i]) is not None}
        contents = [set(symbols) for symbols in self._all_symbols]
        solved = [bool(unknown & symbols) and not unseen & symbols for symbols in contents]
        pairs = list(zip(self._all_names, self._all_rows, solved, strict=True))
        self.equations = tuple(name for name, _, keep in pairs if keep)
        self.residual = ca.vertcat(*[row for _, row, keep in pairs if keep], ca.SX(0, 1))
        self.conditions = {name: row for name, row, keep in pairs if not keep}

    def __repr__(self) -> str:
        rates = f", {len(self.differential)} with rates" if self.differential else ""
        sizes = f"{len(self.equations)} equations, {len(self.unknowns)} unknowns"
        return f"Tableau({sizes}{rates}, known: {len(self.known)})"


def require_tableau(value: Any) -> None:
    """Refuse what is no tableau."""
    if not isinstance(value, Tableau):
        raise ModelError(f"a Tableau is needed, not {type(value).__name__}")

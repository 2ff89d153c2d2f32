"""Systems given by a Lagrangian, in CasADi expressions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import casadi as ca

from dalembert.errors import ModelError, UnsupportedError
from dalembert.friction import Resolution
from dalembert.friction.laws.contacts import checked_contacts, checked_unilateral
from dalembert.kernel import Kernel
from dalembert.kernel.engine import type_name
from dalembert.kkt import KKT, Solution
from dalembert.kkt.inputs import checked_names
from dalembert.kkt.limits import DOUBLE, SINGLE
from dalembert.memory import memory_of
from dalembert.model.lagrangian.contact_data import contacts_as_data, contacts_from_data
from dalembert.model.lagrangian.contact_terms import derive_contacts, derive_gaps, resolve_state
from dalembert.model.lagrangian.derivation import Expressions, derive, of_accelerations
from dalembert.model.lagrangian.forward import States, conditioning_of, forward
from dalembert.model.lagrangian.quantities import forward_function, quantity, refuse_unknown
from dalembert.model.lagrangian.symbols import Symbols
from dalembert.model.parameters import Parameters
from dalembert.model.requests import refuse_unhashable
from dalembert.types import Array, Energy

if TYPE_CHECKING:
    from jaxtyping import Float

# ----------------------------------------------------------------------------------------------------------------------
# A Lagrangian system as text and back, for other processes: its expressions as one CasADi function.


MATRICES = ("mass", "bias", "constraint", "rate", "jacobian", "drift", "kinetic", "potential", "applied")
"""Fields of `Expressions` that are SX."""


def as_state(system: Lagrangian) -> dict[str, Any]:
    """Return what a pickle holds; laws of friction go as they are."""
    symbols, expressions = system.symbols, system.expressions
    inputs = [symbols.q, symbols.v, symbols.u, symbols.t, *symbols.parameters.symbols]
    function = ca.Function("lagrangian", inputs, [getattr(expressions, name) for name in MATRICES])
    several = {"contacts": system.contacts, "unilateral": system.unilateral}
    return {
        "text": function.serialize(),
        "parameters": (symbols.parameters.names, dict(system.parameters.defaults)),
        "rows": (expressions.names, expressions.holonomic),
        "names": system.names,
        "coordinates": system.coordinates,
    } | {
        name: contacts_as_data(contacts, lambda x: ca.Function("part", inputs, [ca.densify(x)]))
        for name, contacts in several.items() if contacts
    }  # fmt: skip


def restore(system: Lagrangian, state: dict[str, Any]) -> None:
    """Fill in a system from what a pickle holds; symbols are new ones."""
    function = ca.Function.deserialize(state["text"])
    symbols = function.sx_in()
    q, v, u, t, *rest = symbols
    names, defaults = state["parameters"]
    matrices = dict(zip(MATRICES, function.call(symbols), strict=True))
    rows, holonomic = state["rows"]
    expressions = Expressions(**matrices, names=rows, holonomic=holonomic)
    parameters = Parameters(names, tuple(rest), defaults)
    contacts = [contacts_from_data(state.get(name, ()), symbols) for name in ("contacts", "unilateral")]
    system._fill(Symbols(q, v, u, t, parameters), expressions, state["coordinates"], state["names"], *contacts)


# ----------------------------------------------------------------------------------------------------------------------
# A system given by its Lagrangian, in CasADi expressions.


class Lagrangian:
    """A `System` derived from T, V, forces and constraints.

    d/dt dT/dv - dT/dq + dV/dq + dD/dv + A^T lam = Q,    A a + drift = 0,    v = dq/dt

    Parameters
    ----------
    q, v
        Columns of n SX symbols: coordinates and their rates.
    kinetic
        T(q, v, t, parameters), quadratic in v; terms linear in v or without v (moving frames, gyroscopes) are
        welcome. M = d2T/dv2 may be singular. An energy whose M depends on v is refused.
    potential
        V(q, t, parameters).
    forces
        Q(q, v, t, u, parameters), n expressions: everything that has no potential.
    dissipation
        Rayleigh's function D(q, v, t, parameters); it acts as -dD/dv.
    constraints
        Expressions that are zero: an expression, scalar or column; a mapping name -> expression; or a list of
        expressions and (name, expression) pairs. One without velocities is holonomic, and may depend on time. One with
        velocities is taken as it stands and must be linear in them.
    accelerations
        Rows J(q, v, t) a = b(q, v, t), nonlinear in velocities, in the same forms: an expression psi(q, v, t) that is
        zero and gives J = dpsi/dv, kept at velocity level in time (`ca.dot(v, v) - 1`), or a function of the
        accelerations a that returns J a - b. Explicit methods take them.
    parameters
        Symbols that stay inputs of every kernel: a symbol, a list, or a mapping name -> symbol. (symbol, default)
        in place of a symbol gives a default value.
    controls, time
        Symbols of u, which may appear in `forces`, and of t. Unless passed, u and t are zero in every call.
    names, coordinates
        Names of the m rows and n coordinates, in place of those of constraints and symbols.
    friction
        Contacts of `dalembert.friction`, their relative velocities and loads as expressions. `resolve` then takes the
        place of `solve`, and `da.simulate` finds stick and slip in time.
    unilateral
        `dalembert.friction.Unilateral` contacts: gaps that close, with impacts and friction, in `da.simulate`.

    Notes
    -----
    Every quantity is compiled when first asked for (tens of milliseconds, then kept on disk), and takes about a
    microsecond for one state. All methods take one state or a batch, (..., n).

    Examples
    --------
    >>> import casadi as ca
    >>> q, v, length = ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("length")
    >>> pendulum = Lagrangian(
    ...     q, v, kinetic=ca.sumsqr(v) / 2, potential=9.81 * q[1], parameters=[length],
    ...     constraints={"rod": (ca.sumsqr(q) - length**2) / 2},
    ... )
    >>> pendulum.solve([1.0, 0.0], [0.0, 0.0], parameters={"length": 1.0}).acceleration
    array([ 0.  , -9.81])
    """

    massless_rows: tuple[str, ...] = ()
    """Names of the rows that give limbs without mass dynamics of their own (`with_massless`)."""

    def __init__(
        self,
        q: Any,
        v: Any,
        kinetic: Any,
        potential: Any = 0,
        forces: Any = None,
        dissipation: Any = None,
        constraints: Any = (),
        parameters: Any = None,
        controls: Any = None,
        time: Any = None,
        names: Any = None,
        coordinates: Any = None,
        friction: Any = None,
        unilateral: Any = None,
        accelerations: Any = (),
    ) -> None:
        symbols = Symbols.of(q, v, controls, time, parameters)
        expressions = derive(symbols, kinetic, potential, forces, dissipation, constraints, accelerations)
        n, m = symbols.q.numel(), len(expressions.names)
        letters = [str(x) for x in ca.vertsplit(symbols.q)]
        coordinates = checked_names(letters if coordinates is None else coordinates, n, "coordinates", "coordinates")
        names = checked_names(expressions.names if names is None else names, m, "names", "constraint rows")
        contacts = checked_contacts(friction)
        self._fill(symbols, expressions, coordinates, names, contacts, checked_unilateral(unilateral, contacts))

    def _fill(
        self,
        symbols: Symbols,
        expressions: Expressions,
        coordinates: tuple[str, ...],
        names: tuple[str, ...],
        contacts: tuple[Any, ...] = (),
        unilateral: tuple[Any, ...] = (),
    ) -> None:
        """Take what the system is made of."""
        symbols = replace(symbols, turning=ca.depends_on(expressions.jacobian, symbols.v))
        self.symbols, self.expressions, self.parameters = symbols, expressions, symbols.parameters
        self.coordinates, self.names, self.contacts, self.unilateral = coordinates, names, contacts, unilateral
        self._contact_expressions = derive_contacts(symbols, contacts, coordinates, names)
        self._gap_expressions = derive_gaps(symbols, unilateral, coordinates)

    @classmethod
    def from_expressions(
        cls, symbols: Symbols, expressions: Expressions, coordinates: tuple[str, ...], names: tuple[str, ...],
        contacts: tuple[Any, ...] = (), unilateral: tuple[Any, ...] = (),
    ) -> Lagrangian:  # fmt: skip
        """Return the system whose matrices are given; of contacts alone relative velocities are derived."""
        system = cls.__new__(cls)
        system._fill(symbols, expressions, coordinates, names, contacts, unilateral)
        return system

    @property
    def holonomic(self) -> tuple[bool, ...]:
        """Per row, whether it constrains the coordinates themselves."""
        return self.expressions.holonomic

    def with_parameters(self, **values: Any) -> Lagrangian:
        """Return the same system, and its compiled kernels, with other default values of parameters."""
        memory_of(self, "kernels")  # made now, so that both systems share it
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.parameters = self.parameters.with_defaults(values)
        return other

    def with_massless(self, law: Any = "hold") -> Lagrangian:
        """Return the system in which motions without mass that nothing holds have dynamics of their own.

        As `Mechanism.with_massless`: `law` is "hold", or a dict of coordinates with velocities, numbers or expressions
        of q, t and parameters. Rows "massless <coordinate>" at velocity level come last.
        """
        from dalembert.model.lagrangian.limbs import with_massless

        return with_massless(self, law)

    def mass_matrix(self, q: Any, t: Any = 0.0, parameters: Any = None) -> Float[Array, "*batch n n"]:
        """Return M = d2T/dv2, (n, n)."""
        return States.of(self, q=q, t=t, parameters=parameters).matrix("mass_matrix")

    def coriolis_matrix(self, q: Any, v: Any, t: Any = 0.0, parameters: Any = None) -> Float[Array, "*batch n n"]:
        """Return C (n, n) of Christoffel's symbols: bias = C v + N, and dM/dt - 2 C skew-symmetric where t is held."""
        return States.of(self, q=q, v=v, t=t, parameters=parameters).matrix("coriolis_matrix")

    def bias(self, q: Any, v: Any, t: Any = 0.0, u: Any = None, parameters: Any = None) -> Float[Array, "*batch n"]:
        """Return d/dt dT/dv at a = 0, minus dT/dq, plus dV/dq and dD/dv, minus Q, (n,)."""
        return States.of(self, q=q, v=v, u=u, t=t, parameters=parameters).evaluate("bias")

    def jacobian(self, q: Any, t: Any = 0.0, parameters: Any = None, v: Any = None) -> Float[Array, "*batch m n"]:
        """Return A, (m, n): dphi/dq of holonomic rows, dphi/dv of the others; `v` where rows depend on it."""
        if v is None and self.symbols.turning:
            flags = of_accelerations(self.expressions, self.symbols.v)
            rows = ", ".join(repr(name) for name, flag in zip(self.names, flags, strict=True) if flag)
            raise ModelError(f"{rows} constrain accelerations, and rows depend on velocities: give v=")
        return States.of(self, q=q, t=t, parameters=parameters, v=v).matrix("jacobian")

    def drift(self, q: Any, v: Any, t: Any = 0.0, parameters: Any = None) -> Float[Array, "*batch m"]:
        """Return what remains of the second (of velocity-level rows: first) time derivative at a = 0, (m,)."""
        return States.of(self, q=q, v=v, t=t, parameters=parameters).evaluate("drift")

    def constraint(self, q: Any, t: Any = 0.0, parameters: Any = None) -> Float[Array, "*batch h"]:
        """Return phi of the holonomic rows, (h,); zero where they hold."""
        return States.of(self, q=q, t=t, parameters=parameters).evaluate("constraint")

    def constraint_velocity(self, q: Any, v: Any, t: Any = 0.0, parameters: Any = None) -> Float[Array, "*batch m"]:
        """Return the rates of the holonomic rows, and the other rows as they stand, (m,)."""
        return States.of(self, q=q, v=v, t=t, parameters=parameters).evaluate("constraint_velocity")

    def energy(self, q: Any, v: Any, t: Any = 0.0, parameters: Any = None) -> Energy:
        """Return T and V in joules, (kinetic, potential).

        Their sum, `.total`, is constant if T is a quadratic form in v, neither depends on time, and all forces and
        constraints do no work.
        """
        kinetic, potential = States.of(self, q=q, v=v, t=t, parameters=parameters).evaluate("energy")
        return Energy(kinetic[..., 0], potential[..., 0])

    def solve(
        self,
        q: Any,
        v: Any,
        force: Any = None,
        t: float = 0.0,
        u: Any = None,
        parameters: Any = None,
        metric: Any = None,
        **options: Any,
    ) -> Solution:
        """Solve one state through `KKT`; `options` go to `KKT.solve`, `metric` to `KKT`.

        `force` (n,) acts on the coordinates, beside the forces that the system itself has; `u` are its controls.

        Raises `SolvabilityError` where there is no answer, with the names of rows and coordinates.
        """
        self._refuse_friction("solve")
        states = States.of(self, q=q, v=v, force=force, u=u, t=t, parameters=parameters)
        states.refuse_batch_and_nonfinite()
        M, net, A, drift = states.balance()
        return KKT(M, A, self.names, self.coordinates, metric).solve(net, drift, **options)

    def forward(
        self, q: Any, v: Any, force: Any = None, t: Any = 0.0, u: Any = None, parameters: Any = None, **options: Any
    ) -> Solution:
        """Solve a batch of states in compiled code; samples that it cannot certify are solved by `KKT`.

        Any input may be single or a batch (..., n); `force` and `u` as in `solve`, `options` go to `KKT.solve`.
        Returns one status per sample and never raises for a bad sample. `massless=` may be a dict of laws, as in
        `with_massless`; make that system once where many calls ask.
        """
        self._refuse_friction("forward")
        if isinstance(options.get("massless"), dict):
            led, rest = self.with_massless(options["massless"]), {**options, "massless": "hold"}
            return led.forward(q, v, force, t, u, parameters, **rest)
        return forward(self, States.of(self, q=q, v=v, force=force, u=u, t=t, parameters=parameters), options)

    def compile(self, what: str = "forward", **options: Any) -> Kernel:
        """Return a kernel, the same object when asked again; `options` (backend, dtype, threads, width) go to `Kernel`.

        Parameters
        ----------
        what
            One of `dalembert.model.QUANTITIES`. "forward" gives acceleration (n,), multipliers (m,) and status (1,):
            `Status.UNIQUE`, `REDUNDANT`, `INCONSISTENT`, `MASSLESS` or `NONFINITE` as `KKT` would say it, or
            `DECLINED` where straight-line code cannot (singular configurations, few digits, negative masses): then
            `forward` or `solve` find out more. Numbers mean something where the answer is unique, or redundant. Up
            to n + m = 25.

        Notes
        -----
        Inputs are q, v, force, t, u, parameters, in this order: those that the system has and the quantity may depend
        on. The force on the coordinates is an input of "forward" alone.
        Parameters are one column, as packed by `system.parameters.pack`. Matrices with one column come out as vectors.
        """
        refuse_unknown(what)
        if what == "forward":
            self._refuse_friction('compile("forward")')
        key = (what, *sorted(options.items()))
        refuse_unhashable(key)

        def make() -> Kernel:
            return Kernel(self._function(what, options.get("dtype", "float64")), **options)

        return memory_of(self, "kernels").get(key, make)

    def _function(self, what: str, dtype: Any) -> ca.Function:
        """Return a quantity as a function; the limits of forward dynamics are those of its precision."""
        if what != "forward":
            return quantity(self.expressions, self.symbols, what, self._contact_expressions)
        needs = conditioning_of(self.expressions, self.symbols, self.parameters)
        eps = SINGLE.eps if type_name(dtype) == "float32" else DOUBLE.eps
        return forward_function(self.expressions, self.symbols, needs, eps)

    def contact_terms(self, q: Any, v: Any, t: Any = 0.0, u: Any = None, parameters: Any = None) -> tuple[Array, ...]:
        """Return relative velocities (m,), contact rows (m, n), drift (m,) and loads (k,) of the contacts."""
        states = States.of(self, q=q, v=v, u=u, t=t, parameters=parameters)
        velocity, rows, drift, loads = states.evaluate("contacts")
        return velocity, rows[..., None] if len(self.coordinates) == 1 else rows, drift, loads

    def resolve(
        self, q: Any, v: Any, t: float = 0.0, parameters: Any = None, method: str = "exact", **options: Any
    ) -> Resolution:
        """Resolve stick and slip at one state; `options` go to `dalembert.friction.resolve`."""
        system = self if parameters is None else self.with_parameters(**parameters)
        States.of(system, q=q, v=v, t=t).refuse_batch_and_nonfinite()
        return resolve_state(system, q, v, t, method=method, **options)  # pyright: ignore[reportArgumentType]

    def _refuse_friction(self, what: str) -> None:
        if self.unilateral:
            raise UnsupportedError(
                f"{what} knows no gaps, and this system has {len(self.unilateral)}: use da.simulate, which closes them"
            )
        if self.contacts:
            raise UnsupportedError(
                f"{what} knows no friction, and this system has {len(self.contacts)} contacts: use resolve(q, v) for "
                "one state, da.simulate in time"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the expressions; kernels are loaded from the cache, or compiled, where it arrives."""
        return as_state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state)

    def __repr__(self) -> str:
        rows = f"{len(self.names)} constraint rows" + (f" ({', '.join(self.names)})" if self.names else "")
        return f"Lagrangian({', '.join(self.coordinates)}; {rows})"

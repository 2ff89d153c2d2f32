"""The motion of a run with contacts in one mode (open, stick, slip), with its derivatives, for batches of states.

Symbols: x = (a, lam, r) accelerations, multipliers, forces of contact rows that are held; K x = right the block system
of a mode. Motions are differentiated implicitly, as `tree/derivatives/` does it: the answer is a symbol in the
derivative of the residual, and the block matrix of the mode gives its change, dx = -K^-1 d(K x - right).

Limbs without mass that no contact holds do what the run has them do (seed 000, after eq. 35). With Z their coordinates,
w their velocities by law, H the rows of contacts that are held, Z^T a differs from Z^T w' along Z^T H^T alone, and
forces phi along what H does not see are borne by whatever leads them:

    Z^T (a - w') = Z^T H^T s        H Z phi = 0        phi beside the forces of contacts in the balance of Z^T M a

A contact that the mechanism lets slide along one line has a constant direction of sliding; others have that of their
velocity. What redundant contacts leave open is refused by name. Used by `saltation.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.errors import SolvabilityError, UnsupportedError
from dalembert.friction import Dry, Hyperbolic, StaticKinetic, Stribeck
from dalembert.friction.laws.laws import ExpressionLaw, hyperbolic, stribeck
from dalembert.model.mechanism.limbs import free_motions, limb_places
from dalembert.model.mechanism.parametric import SymbolicMechanism
from dalembert.simulate.contact.complementarity import Limbs
from dalembert.simulate.contact.contact_system import ContactSystem
from dalembert.simulate.contact.hybrid import contact_system
from dalembert.simulate.events.record import Mode
from dalembert.simulate.limits import DERIVED_MODE, RANK_OF_MODE
from dalembert.simulate.sensitivity import coefficient
from dalembert.tree.derivatives.directions import tangent
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.sensitivity import Variation


# ----------------------------------------------------------------------------------------------------------------------
# A system with contacts over symbols of its state and of all that is varied.


@dataclass(frozen=True, eq=False)
class SaltationExpressions:
    """The terms of a mechanism with contacts as expressions; `simulate/contact/contact_system.py` names them.

    Attributes
    ----------
    symbols
        q, v, t, tau, parameters (numbers of the model), friction (k,), restitution (k,).
    terms
        M, bias, A, drift, psi, gaps, W, u, shift, load, limb, limb_rate.
    seeds
        Directions in which a state is varied, by name: q along its tangent, v, tau, t, then every parameter.
    limbs
        Coordinates of limbs without mass that the constraints leave free.
    """

    system: ContactSystem
    mechanism: Any
    symbols: dict[str, ca.SX]
    terms: dict[str, ca.SX]
    seeds: dict[str, tuple[ca.SX, ca.SX]]
    limbs: tuple[int, ...]

    @classmethod
    def of(cls, asked: Variation) -> SaltationExpressions:
        """Trace the terms, with symbols for numbers of the model that are varied."""
        run, mechanism = asked.run, asked.mechanism
        system = contact_system(run.session)
        numbers = [name for name in asked.parameters if name != "force" and coefficient(name) is None]
        moving = SymbolicMechanism.of(mechanism, numbers) if numbers else mechanism
        if system.trace is None:
            raise UnsupportedError("contacts of this run are not expressions: their derivatives are not there")
        traced = system.trace(moving)
        symbols = dict(zip(traced.name_in(), traced.sx_in(), strict=True))
        terms = dict(zip(traced.name_out(), traced.call(list(symbols.values())), strict=True))
        n, m, k = mechanism.nv, len(mechanism.names), system.k
        shaped = {"M": (n, n), "A": (m, n), "W": (3 * k, n)}
        shapes = {
            "bias": n,
            "drift": m,
            "psi": m,
            "gaps": k,
            "u": 3 * k,
            "shift": 3 * k,
            "load": k,
            "limb": n,
            "limb_rate": n,
        }
        for name, (rows, columns) in shaped.items():  # written by rows
            terms[name] = ca.reshape(terms[name], columns, rows).T if name in terms else ca.SX(rows, columns)
        for name, size in shapes.items():
            terms.setdefault(name, ca.SX(size, 1))
        symbols |= {"tau": ca.SX.sym("tau", n), "friction": ca.SX.sym("mu", k), "restitution": ca.SX.sym("e", k)}
        q = symbols["q"]
        seeds = {"q": (q, tangent(mechanism, ca.vertsplit(q)))}
        seeds |= {name: (symbols[name], ca.SX.eye(symbols[name].numel())) for name in ("v", "tau", "t")}
        names = [contact.name for contact in system.contacts]
        start = 0
        for name in asked.parameters:
            subject = coefficient(name)
            if name == "force":
                seeds[name] = symbols["tau"], ca.SX.eye(n)
            elif subject is not None:
                place = names.index(subject[1])
                seeds[name] = symbols[subject[0]][place], ca.SX.eye(1)
            else:
                size = asked.sizes[name]
                seeds[name] = symbols["parameters"][start : start + size], ca.SX.eye(size)
                start += size
        limbs = _limb_coordinates(mechanism, run.session.extra.get("massless") or "hold", run.q[0])
        return cls(system, moving, symbols, terms, seeds, limbs)

    @property
    def names(self) -> list[str]:
        """Names of the contacts."""
        return [contact.name for contact in self.system.contacts]

    def numbers(self) -> list[Array]:
        """Return the values of friction and restitution and, where there are any, of the parameters."""
        contacts = self.system.contacts
        values = [np.array([dry_coefficient(c.law) for c in contacts]), np.array([c.restitution for c in contacts])]
        return [*values, self.mechanism.parameters.pack()] if "parameters" in self.symbols else values

    def function(self, name: str, more: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> Callable[..., list[Array]]:
        """Return t, q, v, tau, *more (K, .) -> outputs (K, rows, columns) of a batch."""
        s, numbers = self.symbols, self.numbers()
        rest = [s["friction"], s["restitution"], *([s["parameters"]] if "parameters" in s else [])]
        mode_function = ca.Function(
            name, [s["t"], s["q"], s["v"], s["tau"], *more, *rest], [ca.vec(ca.densify(x)) for x in outputs]
        )
        shapes = [x.shape for x in outputs]

        def call(*inputs: Array) -> list[Array]:
            count = len(inputs[0])
            columns = [np.reshape(x, (count, -1)).T for x in inputs] + [np.tile(x[:, None], count) for x in numbers]
            results = mode_function.map(count).call([ca.DM(x) for x in columns])
            return [
                np.array(x).reshape((shape[1], shape[0], count)).transpose(2, 1, 0)
                for x, shape in zip(results, shapes, strict=True)
            ]

        return call

    def derived(self, expressions: ca.SX) -> list[ca.SX]:
        """Return the derivatives of a column along all seeds, in order."""
        return [ca.jtimes(expressions, symbol, seed) for symbol, seed in self.seeds.values()]


def _limb_coordinates(mechanism: Any, law: Any, q: Array) -> tuple[int, ...]:
    """Return the coordinates that stand for free motions without mass, which must be made of them alone."""
    if not Limbs(np.asarray(mechanism.mass_matrix(q))).any:
        return ()
    places = limb_places(mechanism, law)
    others = np.setdiff1d(np.arange(mechanism.nv), places)
    for basis in free_motions(mechanism):
        if basis.shape[1] != len(places) or np.abs(basis[others]).max(initial=0.0) > DERIVED_MODE:
            raise UnsupportedError(
                "motions without mass are not those of some coordinates alone: modes of such limbs have no derivatives"
            )
    return places


def dry_coefficient(law: Any) -> float:
    """Return the number of Coulomb's law; other laws have no single one."""
    return float(law.limit) if type(law) is Dry else 0.0


def _kinetic(law: Any, mu: Any, speed: Any, state: Sequence[Any]) -> Any:
    """Return the force of sliding per unit load as an expression."""
    if type(law) is Dry:
        return mu
    if type(law) is StaticKinetic:
        return law.kinetic_limit
    if type(law) is Stribeck:
        return stribeck(speed, law.static_limit, law.coulomb, law.velocity, law.exponent, law.viscous)
    if type(law) is Hyperbolic:
        return hyperbolic(speed, law.static_limit, law.decay)
    if type(law) is ExpressionLaw:
        groups = [x if law._static.size1_in(j) else ca.SX(0, 1) for j, x in enumerate(state)] if law.needs_state else []
        return law._kinetic(speed, *groups)
    raise UnsupportedError(f"the friction law {type(law).__name__} has no derivative as an expression")


def tangent_rows(contact: Any, i: int) -> list[int]:
    """Return the rows (of 3 k) in which contact i can stick: none where it has no friction."""
    return [3 * i + 1 + j for j in range(contact.width)] if float(contact.law.static()) > 0.0 else []


def static_limit(law: Any, mu: Any) -> Any:
    """Return the limit of sticking per unit load; `mu` is the symbol of Coulomb's."""
    return mu if type(law) is Dry else ca.SX(float(law.static()))


# ----------------------------------------------------------------------------------------------------------------------
# The motion in a mode.


Line = tuple[float, float]
"""Direction in the tangent plane of a contact, along which alone the mechanism lets it slide."""


@dataclass(frozen=True, eq=False)
class ModeVariation:
    """The motion in a mode with its derivatives, for batches of states.

    Attributes
    ----------
    modes
        Of every contact.
    rows
        Contact rows (of 3 k) that are held.
    matrix, change
        Compiled expressions: K and right side; the derivatives of K x - right along all seeds, x being held.
    """

    expressions: SaltationExpressions
    modes: tuple[int, ...]
    rows: tuple[int, ...]
    matrix: Callable[..., list[Array]]
    change: Callable[..., list[Array]]

    @classmethod
    def of(
        cls, e: SaltationExpressions, modes: Sequence[int], pressed: Sequence[float], lines: Sequence[Line | None]
    ) -> ModeVariation:
        """Write the block system of a mode.

        `pressed` has the sign of the multiplier that loads a contact, `lines` the directions of sliding of those that
        can slide along a line alone.
        """
        n, m, s, terms = e.mechanism.nv, len(e.mechanism.names), e.symbols, e.terms
        a, lam = ca.SX.sym("a", n), ca.SX.sym("lam", m)
        held: list[int] = []
        normal: dict[int, ca.SX] = {}
        for i, (contact, mode) in enumerate(zip(e.system.contacts, modes, strict=True)):
            if mode == Mode.OPEN:
                continue
            held += [3 * i] if contact.gapped else []
            held += tangent_rows(contact, i) if mode == Mode.STICK else []
        r = ca.SX.sym("r", len(held))
        for place, row in enumerate(held):
            if row % 3 == 0:
                normal[row // 3] = r[place]
        W = terms["W"]
        first = terms["M"] @ a + terms["bias"] - s["tau"] + terms["A"].T @ lam
        if held:
            first -= W[held, :].T @ r
        for i, (contact, mode) in enumerate(zip(e.system.contacts, modes, strict=True)):
            if mode in (Mode.OPEN, Mode.STICK) or not contact.width:
                continue
            load = normal.get(i, terms["load"][i])
            if contact.row >= 0:
                load = float(pressed[i]) * lam[contact.row]
            places = [3 * i + 1 + j for j in range(contact.width)]
            u, line = terms["u"][places], lines[i]
            if mode == Mode.SLIP and line is None:
                speed = ca.norm_2(u)
                direction = u / speed
            else:
                direction = ca.SX(float(mode)) if line is None else ca.DM(line)
                speed = ca.dot(direction, u)
            limit = load * _kinetic(contact.law, s["friction"][i], speed, (s["q"], s["v"], s["t"]))
            first += W[places, :].T @ (limit * direction)
        second = ca.vertcat(terms["A"] @ a + terms["drift"], *(W[i, :] @ a + terms["shift"][i] for i in held))
        x, residual = ca.vertcat(a, lam, r), ca.vertcat(first, second)
        if e.limbs:
            Z, seen = ca.SX(ca.DM(np.eye(n)[:, list(e.limbs)])), W[held, :][:, list(e.limbs)]
            led, borne = ca.SX.sym("s", len(held)), ca.SX.sym("phi", len(e.limbs))
            first += Z @ borne
            third = ca.vertcat(Z.T @ (a - terms["limb_rate"]) - seen.T @ led, seen @ borne)
            x, residual = ca.vertcat(x, led, borne), ca.vertcat(first, second, third)
        zero = ca.substitute(residual, x, ca.SX.zeros(x.numel()))
        matrix = e.function("matrix", [], [ca.jacobian(residual, x), zero])
        change = e.function("change", [x], [ca.horzcat(*e.derived(residual))])
        return cls(e, tuple(modes), tuple(held), matrix, change)

    def solved(self, t: Array, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
        """Return x = (a, lam, r), K and its pseudoinverse at a batch of states; refuse what is not an answer."""
        K, zero = self.matrix(t, q, v, tau)
        undecided = ~(np.isfinite(K).all(axis=(1, 2)) & np.isfinite(zero).all(axis=(1, 2)))
        if undecided.any():
            raise UnsupportedError(
                f"no derivatives at t = {t[undecided][0]:.9g} s: a contact slides without speed, so that its direction "
                "of sliding has no derivative"
            )
        inverse, free, _ = mode_inverse(K, self.expressions.mechanism.nv)
        x = -(inverse @ zero)[..., 0]
        missed = np.abs(K @ x[..., None] + zero)[..., 0].max(axis=1, initial=0.0)
        bad = ~(missed <= DERIVED_MODE * (1.0 + np.abs(zero).max(axis=(1, 2), initial=0.0)))
        if bad.any():
            raise SolvabilityError(
                f"no derivatives at t = {t[bad][0]:.9g} s: the equations of the mode are missed by {missed[bad][0]:.1e}"
            )
        if (free > DERIVED_MODE).any():
            where = float(t[free > DERIVED_MODE][0])
            raise UnsupportedError(
                f"at t = {where:.9g} s redundant contacts leave open how they slide: accelerations are not unique"
            )
        return x, K, inverse

    def derived(self, t: Array, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """Return x and its derivatives (K, size, seeds) along all seeds."""
        x, K, inverse = self.solved(t, q, v, tau)
        (change,) = self.change(t, q, v, tau, x)
        dx = -(inverse @ change)
        self._refuse_choice((t, q, v, tau), x, K, dx)
        return x, dx

    def _refuse_choice(self, state: tuple[Array, ...], x: Array, K: Array, dx: Array) -> None:
        """Raise where derivatives of accelerations depend on a choice of redundant forces, along what rows allow."""
        n = self.expressions.mechanism.nv
        inverse, _, null = mode_inverse(K, n)
        sizes = np.abs(null).max(axis=1, initial=0.0)
        rows = K[:, n : n + len(self.expressions.mechanism.names) + len(self.rows), :n]
        allowed = np.eye(n) - np.linalg.pinv(rows, rcond=RANK_OF_MODE) @ rows
        for k in np.flatnonzero(sizes.max(axis=0, initial=0.0) > 0.0):
            along = np.where(sizes[:, k] > 0.0, sizes[:, k], 1.0)
            other = x + null[:, :, k] * (np.abs(x[:, n:]).max(axis=1, initial=0.0) / along)[:, None]
            (change,) = self.change(*state, other)
            moved = (-(inverse @ change) - dx)[:, :n]
            moved[:, :, :n], moved[:, :, n : 2 * n] = moved[:, :, :n] @ allowed, moved[:, :, n : 2 * n] @ allowed
            open_part = np.abs(moved).max(axis=(1, 2), initial=0.0)
            bad = open_part > DERIVED_MODE * (1.0 + np.abs(dx[:, :n]).max(axis=(1, 2), initial=0.0))
            if bad.any():
                raise UnsupportedError(
                    f"at t = {state[0][bad][0]:.9g} s redundant contacts leave open how their load is shared, and "
                    "neighbouring motions depend on it: there is no derivative"
                )


def mode_inverse(K: Array, n: int) -> tuple[Array, Array, Array]:
    """Return pseudoinverses of block matrices, how much of accelerations redundancy leaves open, and null vectors.

    Columns of velocities get the size of their masses, those of forces what they do to momenta, rows that of their
    entries.
    """
    masses = np.sqrt(np.abs(np.diagonal(K, axis1=1, axis2=2)[:, :n]))
    masses = np.where(masses > 0, masses, 1.0)
    forces = np.abs(K[:, :n, n:] / masses[:, :, None]).max(axis=1, initial=0.0)
    columns = 1.0 / np.concatenate([masses, np.where(forces > 0, forces, 1.0)], axis=1)
    largest = np.abs(K * columns[:, None, :]).max(axis=2, initial=0.0)
    rows = 1.0 / np.where(largest > 0, largest, 1.0)
    U, s, Vt = np.linalg.svd(K * columns[:, None, :] * rows[:, :, None])
    some = s > RANK_OF_MODE * s[:, :1]
    reciprocal = np.where(some, 1.0 / np.where(some, s, 1.0), 0.0)
    inverse = Vt.transpose(0, 2, 1) @ (reciprocal[:, :, None] * U.transpose(0, 2, 1))
    open_part = np.where(some[:, :, None], 0.0, np.abs(Vt))[:, :, :n]
    null = columns[:, :, None] * np.where(some[:, :, None], 0.0, Vt).transpose(0, 2, 1)
    return inverse * columns[:, :, None] * rows[:, None, :], open_part.max(axis=(1, 2), initial=0.0), null

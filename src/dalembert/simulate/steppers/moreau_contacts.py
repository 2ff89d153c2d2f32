"""Contacts that time stepping takes beside pairs of shapes: dry friction along rows, and those of vector systems.

Symbols as in `moreau.py`; a contact without a gap has no normal: its impulse lies in the interval or disk |P_T| <= h F
with F = load x limit. Contacts of Lagrangians and matrices come from the terms of the contact engine, and so do the
surfaces that move: u = W v + offset. One limit for rest and motion alike: laws that fall with the speed are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.friction import Dry
from dalembert.simulate.contact.contact_system import (
    OUTPUTS,
    ContactData,
    ContactSystem,
    RubbingRows,
    lagrangian_contacts,
    mechanism_contacts,
    other_contacts,
    rubbing_rows,
    split_contacts,
)
from dalembert.simulate.contact.geometry import Geometry, State
from dalembert.simulate.contact.shapes import pairs_of
from dalembert.simulate.contact.surface_loops import SLOTS
from dalembert.simulate.equations.codes import Chart
from dalembert.simulate.equations.lagrangian_system import LagrangianSystem
from dalembert.simulate.session import Session
from dalembert.types import Array


@dataclass(frozen=True, eq=False)
class ContactState(State):
    """A system with its contacts at one state.

    Attributes
    ----------
    offset
        What contact velocities have beside W v: surfaces that move, (3 k,).
    limits
        Largest friction of contacts without a normal (k,), newton; zero for the others.
    """

    offset: Array = field(default_factory=lambda: np.zeros(0))
    limits: Array = field(default_factory=lambda: np.zeros(0))


class ContactLaws(NamedTuple):
    """Coefficients of friction, restitution, and whether its law is Poisson's, of all contacts, (k,)."""

    mu: Array
    e: Array
    poisson: Array

    @classmethod
    def of(cls, pairs: Any, others: list[ContactData]) -> ContactLaws:
        """Return those of pairs of shapes, and of other contacts behind them."""
        mu = [pair.friction for pair in pairs] + [
            _limit(other_contact) if other_contact.gapped else 0.0 for other_contact in others
        ]
        e = [contact.restitution for contact in (*pairs, *others)]
        poisson = [pair.impact == "poisson" for pair in pairs] + [other_contact.poisson for other_contact in others]
        return cls(np.array(mu, float), np.array(e, float), np.array(poisson, bool))


def _limit(one: ContactData) -> float:
    """Return the one limit, or coefficient, of a contact; `refuse_laws` has seen that it is one."""
    law: Any = one.law
    return float(law.limit)


class RubbingGeometry(Geometry):
    """Pairs of a mechanism's shapes, and dry friction of its joints, of hinges and along constant rows behind them."""

    def __init__(self, mechanism: Any, pairs: Any, rubbing: ContactSystem, rows: list[RubbingRows]) -> None:
        super().__init__(mechanism, pairs)
        self.rubbing, self.rubbing_rows = rubbing.contacts, rows
        refuse_laws(self.rubbing)

    @property
    def names(self) -> list[str]:
        """Names of all contacts."""
        return [pair.name for pair in self.pairs] + [rubbing_contact.name for rubbing_contact in self.rubbing]

    @property
    def without_normal(self) -> Array:
        """Which contacts have no gap."""
        return np.array([False] * len(self.pairs) + [True] * len(self.rubbing))

    def state(self, q: Array, v: Array, t: float = 0.0) -> ContactState:
        """Evaluate everything at a state."""
        x, k = super().state(q, v, t), len(self.rubbing)
        W, offset, limits = np.zeros((3 * k, v.size)), np.zeros(3 * k), np.zeros(k)
        for i, (rubbing_contact, row) in enumerate(zip(self.rubbing, self.rubbing_rows, strict=True)):
            width = len(row.rows)
            W[3 * i + 1 : 3 * i + 1 + width] = row.at(self.mechanism, q[None])[0]
            offset[3 * i + 1 : 3 * i + 1 + width] = -row.surface
            limits[i] = row.load * _limit(rubbing_contact)
        pairs = len(self.pairs)
        return ContactState(
            x.M, x.bias, x.A, x.drift, np.append(x.gaps, np.full(k, np.inf)), np.vstack([x.W, W]),
            np.append(x.contact_drift, np.zeros(3 * k)), np.concatenate([x.axes, np.tile(np.eye(3), (k, 1, 1))]),
            np.append(np.zeros(3 * pairs), offset), np.append(np.zeros(pairs), limits),
        )  # fmt: skip

    def laws(self) -> ContactLaws:
        """Return friction and restitution of all contacts."""
        return ContactLaws.of(self.pairs, self.rubbing)

    def spins(self, q: Array, v: Array) -> Array:
        """Return r omega of the spheres of every pair, zero for what rubs, (k, 3)."""
        return np.vstack([super().spins(q, v), np.zeros((len(self.rubbing), 3))])


class TermGeometry:
    """The contacts of a Lagrangian or of matrices, from the terms of the contact engine."""

    frames: tuple[str, ...] = ()

    def __init__(self, system: ContactSystem) -> None:
        self.system, self.contacts = system, system.contacts
        self.pairs = self.contacts
        refuse_laws(self.contacts)
        self.names = [contact.name for contact in self.contacts]
        self.without_normal = np.array([not contact.gapped for contact in self.contacts], bool)

    def state(self, q: Array, v: Array, t: float = 0.0) -> ContactState:
        """Evaluate everything at a state."""
        s, terms = self.system, {name: np.zeros(shape) for name, shape in self.system.sizes().items()}
        terms["load"][:] = 1.0
        if s.function is not None:
            outputs = s.function(q, v, t)
        else:
            kernel: Any = s.kernel
            values = {"q": q, "v": v, "t": np.array([t])} | s.inputs
            answer = kernel(*(values[port.name] for port in kernel.inputs))
            answer = answer if isinstance(answer, tuple) else (answer,)
            outputs = dict(zip((port.name for port in kernel.outputs), answer, strict=True))
        for name in OUTPUTS:
            place = "velocity" if name == "u" else name
            if name in outputs and terms[place].size:
                terms[place] = np.asarray(outputs[name], float).reshape(terms[place].shape)
        gaps = np.where(self.without_normal, np.inf, terms["gaps"])
        limits = [_limit(contact) if not contact.gapped else 0.0 for contact in self.contacts]
        W = terms["W"]
        return ContactState(
            terms["M"], terms["bias"], terms["A"], terms["drift"], gaps, W, terms["shift"],
            np.tile(np.eye(3), (len(self.contacts), 1, 1)), terms["velocity"] - W @ v,
            terms["load"] * np.array(limits, float),
        )  # fmt: skip

    def laws(self) -> ContactLaws:
        """Return friction and restitution of all contacts."""
        return ContactLaws.of((), self.contacts)

    def gaps(self, q: Array) -> Array:
        """Return the gaps alone."""
        return self.state(q, np.zeros(self.system.n)).gaps

    def spins(self, q: Array, v: Array) -> Array:
        """Return zeros: nothing rolls, (k, 3)."""
        return np.zeros((len(self.contacts), 3))


class VectorChart:
    """Configurations that are vectors."""

    def along(self, base: Array, way: Array) -> Array:
        """Return base + way."""
        return base + way


def refuse_laws(contacts: Any) -> None:
    """Refuse laws with more than one limit, and limits that are reactions of rows."""
    for contact in contacts:
        if type(contact.law) is not Dry:
            raise UnsupportedError(
                f'method="moreau" takes one limit of friction for rest and motion (Dry), and contact '
                f'{contact.name!r} has {type(contact.law).__name__}; method="hybrid" takes all laws'
            )
        if contact.row >= 0:
            raise UnsupportedError(
                f'method="moreau" takes loads that are given, and that of contact {contact.name!r} is the '
                'reaction of a row; method="hybrid" takes it'
            )


def contacts_of(session: Session) -> tuple[Any, Any]:
    """Return the contacts of a session and its chart; pairs of shapes alone go in compiled steps."""
    system, contacts = session.system, session.extra.get("contacts")
    if isinstance(system, LagrangianSystem):
        return TermGeometry(lagrangian_contacts(system.given)), VectorChart()
    if hasattr(system, "given"):
        return TermGeometry(other_contacts(system.given)), VectorChart()
    shapes, rubbing = split_contacts(contacts)
    pairs = pairs_of(system, shapes, SLOTS) if shapes or (contacts is not None and not rubbing) else ()
    friction = np.asarray(system.friction) * float(session.settings.friction)
    if not rubbing and not np.any(friction > 0.0):
        return Geometry(system, pairs), Chart(system)
    dry = mechanism_contacts(system, (), session.settings.friction, rubbing)
    rows = [RubbingRows(np.eye(system.nv)[[j]], np.zeros(1)) for j in np.flatnonzero(friction > 0.0)]
    return RubbingGeometry(
        system, pairs, dry, [*rows, *(rubbing_rows(system, rubbing_contact) for rubbing_contact in rubbing)]
    ), Chart(system)

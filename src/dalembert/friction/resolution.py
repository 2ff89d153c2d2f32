"""The answer to a friction problem: status, index sets, forces, certificate, samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from dalembert.friction.limits import AT_LIMIT, OPTIMAL, REDUNDANT_MULTIPLIERS, STILL
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from dalembert.friction.uniqueness import UniquenessReport

# ----------------------------------------------------------------------------------------------------------------------
# The index sets of a state (seed 001, eq. 19): who slides, who sticks, who is about to slip and in which direction.


@dataclass(frozen=True, eq=False)
class IndexSets:
    """Every contact by name is in exactly one of `sliding`, `sticking`, `about_to_slip` and `open`.

    Attributes
    ----------
    sliding
        Contacts in relative motion, I_c: their force is given by the law.
    sticking
        Contacts at relative rest that stay there: zero relative acceleration.
    about_to_slip
        Contacts at relative rest whose force is at the limit and does not hold them: name -> sign of the relative
        acceleration, +1 or -1 (for a plane: its unit vector).
    at_limit
        Sticking contacts whose force is at the limit: they hold, with nothing in reserve.
    open
        Contacts whose normal only pushes and has let go: no reaction, no friction, and the two sides part.
    """

    sliding: tuple[str, ...]
    sticking: tuple[str, ...]
    about_to_slip: Mapping[str, float | Array]
    at_limit: tuple[str, ...]
    open: tuple[str, ...] = ()

    @property
    def at_rest(self) -> tuple[str, ...]:
        """I_s of the seed: contacts of zero relative velocity, sticking or about to slip."""
        return (*self.sticking, *self.about_to_slip)

    def code(self, name: str) -> int:
        """Return 0 for a contact that sticks, 1 slides, +2 or -2 about to slip (a plane: 2), 3 open."""
        if name in self.about_to_slip:
            sign = self.about_to_slip[name]
            return 2 if np.ndim(sign) or sign > 0 else -2
        return 1 if name in self.sliding else 3 if name in self.open else 0

    def __str__(self) -> str:
        onset = [
            f"{name} ({'+' if sign > 0 else '-'})" for name, sign in self.about_to_slip.items() if np.ndim(sign) == 0
        ]
        onset += [name for name, sign in self.about_to_slip.items() if np.ndim(sign)]
        parts = {"sliding": self.sliding, "sticking": self.sticking, "about to slip": onset, "at limit": self.at_limit}
        parts["open"] = self.open
        return "; ".join(f"{what}: {', '.join(who)}" for what, who in parts.items() if who) or "no contacts"


def index_sets(
    names: Sequence[str],
    rest: Bool[Array, " m"],
    forces: Float[Array, " m"],
    limits: Float[Array, " m"],
    acceleration: Float[Array, " m"],
    size: Float[Array, " m"],
) -> IndexSets:
    """Sort bounded contacts by velocity, force and relative acceleration; `size` is what the latter is summed from."""
    held = np.abs(forces) >= limits * (1.0 - AT_LIMIT)
    onset = rest & held & (np.abs(acceleration) > STILL * size)
    stick = rest & ~onset
    return IndexSets(
        tuple(name for name, is_rest in zip(names, rest, strict=True) if not is_rest),
        tuple(name for name, is_stuck in zip(names, stick, strict=True) if is_stuck),
        {names[i]: float(np.sign(acceleration[i])) for i in np.flatnonzero(onset).tolist()},
        tuple(names[i] for i in np.flatnonzero(stick & held).tolist()),
    )


# ----------------------------------------------------------------------------------------------------------------------
# The resolution of a friction problem: accelerations, forces, index sets, certificate, what is not unique.


@dataclass(frozen=True)
class FrictionCertificate:
    """Evidence for one answer.

    Attributes
    ----------
    method
        Which method found it.
    optimality
        Largest violation of the laws and of the equations of motion, relative to the data that the contact's
        acceleration is summed from, in motion to the force of the law; 0 is exact. Forces that grow without bound make
        nothing small.
    excess
        Largest part by which a force exceeds its limit, relative to the limit.
    iterations
        Rounds of the method.
    note
        What else the method has to say.
    contradiction
        Where contacts contradict each other: names of contacts and constraint rows with weights, under which their rows
        sum to zero and their drifts do not (Farkas' lemma). Empty otherwise.
    """

    method: str
    optimality: float
    excess: float
    iterations: int
    note: str = ""
    contradiction: tuple[tuple[str, float], ...] = ()

    @property
    def ok(self) -> bool:
        """True when the friction laws hold to `OPTIMAL`."""
        return self.optimality <= OPTIMAL and self.excess <= OPTIMAL


@dataclass(frozen=True, eq=False)
class Resolution:
    """Answer of `resolve`.

    Attributes
    ----------
    acceleration
        a, (n,); NaN where there is none.
    forces
        Friction forces along the columns of W, on the system, (m,).
    multipliers
        lam of the constraint rows, (k,); the reactions are -lam.
    contact_acceleration
        xi'' = W^T a + contact_drift, (m,); exactly zero where a contact sticks.
    sets, status, certificate
        Who slides, sticks, is about to slip; the verdict; the evidence.
    names, coordinates
        Of contacts and coordinates.
    """

    acceleration: Float[Array, " n"]
    forces: Float[Array, " m"]
    multipliers: Float[Array, " k"]
    contact_acceleration: Float[Array, " m"]
    sets: IndexSets
    status: Status
    certificate: FrictionCertificate
    names: tuple[str, ...]
    coordinates: tuple[str, ...]
    examine: Callable[[], UniquenessReport] = field(repr=False)

    @property
    def ok(self) -> bool:
        """True when the forces obey the friction laws."""
        return self.status.ok

    @property
    def by_name(self) -> Mapping[str, float]:
        """Friction force by contact."""
        return MappingProxyType(dict(zip(self.names, self.forces.tolist(), strict=False)))

    @cached_property
    def report(self) -> UniquenessReport:
        """What is unique and what is not, with the contacts named; computed when first asked for."""
        return self.examine()

    def __str__(self) -> str:
        lines = [
            f"{'ok' if self.ok else 'NOT OK'}: {self.status.message} ({self.certificate.method})",
            f"  {self.sets}",
        ]
        lines += [f"  {name:20s} force {T:+.6g}" for name, T in zip(self.names, self.forces, strict=False)]
        c = self.certificate
        lines += [
            f"  laws hold to {c.optimality:.1e}, limits to {c.excess:.1e}, {c.iterations} rounds {c.note}".rstrip()
        ]
        return "\n".join(lines)


# ----------------------------------------------------------------------------------------------------------------------
# Many states of one system: their data, and their answers with one status per sample.


@dataclass(frozen=True, eq=False)
class BatchResolution:
    """Answers of N states.

    Attributes
    ----------
    acceleration, forces, contact_acceleration
        (N, n), (N, m), (N, m); NaN where a sample has no answer.
    multipliers
        lam of the constraint rows, (N, k), the least-norm ones; the reactions are -lam.
    sets
        Per sample and contact: 0 sticks, 1 slides, +2 or -2 about to slip in that direction (plane: 2), 3 open, (N, c);
        c contacts, of which those in a plane have two of the m columns.
    status
        Codes of `Status`, (N,).
    optimality
        Residual of the laws per sample, as in `FrictionCertificate`.
    iterations
        Rounds per sample.
    """

    acceleration: Float[Array, "N n"]
    forces: Float[Array, "N m"]
    contact_acceleration: Float[Array, "N m"]
    multipliers: Float[Array, "N k"]
    sets: Int[Array, "N c"]
    status: Int[Array, " N"]
    optimality: Float[Array, " N"]
    iterations: Int[Array, " N"]

    @property
    def ok(self) -> Array:
        """Per sample, whether the forces obey the friction laws."""
        return self.status == Status.SOLVED

    def __str__(self) -> str:
        codes, counts = np.unique(self.status, return_counts=True)
        lines = [f"{np.count_nonzero(self.ok)} of {self.status.size} samples ok"]
        lines += [f"  {n:7d}  {Status(int(code)).message}" for code, n in zip(codes, counts, strict=True)]
        return "\n".join(lines)


def least_multipliers(M: Array, f: Array, W: Array, A: Array, a: Array, T: Array) -> Array:
    """Return the least-norm lam of A^T lam = f + W T - M a, (N, k), NaN where there is no answer.

    M, W, A (N or 1, ...), the others (N, ...).
    """
    lam = np.full((len(a), A.shape[1]), np.nan)
    good = np.isfinite(a).all(axis=1) & np.isfinite(T).all(axis=1)
    if not lam.size or not good.any():
        return lam
    M, W, A = (x if len(x) == 1 else x[good] for x in (M, W, A))
    missing = f[good] + (W @ T[good][:, :, None] - M @ a[good][:, :, None])[:, :, 0]
    lam[good] = (np.linalg.pinv(A.transpose(0, 2, 1), rcond=REDUNDANT_MULTIPLIERS) @ missing[:, :, None])[:, :, 0]
    return lam

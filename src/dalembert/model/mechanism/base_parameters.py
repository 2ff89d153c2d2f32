"""Base parameters: what of the masses and of the friction of a mechanism its motion and forces can tell.

Symbols: pi (p,) ten inertial numbers of every body, then one number per velocity for each term of the joints; Y(q, v,
a) regressor, tau = Y pi; Z a basis of null(A), so that Z^T tau = Z^T Y pi is free of multipliers; W all samples of
Z^T Y one below the other; N a basis of null(W).

A change of pi along N causes no force at any motion. Columns of W are rows in the sense of `kkt/rows.py`, which decides
their rank and writes N as sums: "row 5 is row 1 + row 2" says here which numbers act through their sum alone,

    beta_k = pi_k - sum over j of N_kj pi_j          pi_j the numbers that are counted with others

Source: Gautier, "Numerical calculation of the base inertial parameters of robots", J. Robotic Systems 8 (1991) 485-506;
closed loops: Khalil & Dombre 2002, ch. 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt.limits import CLEAR
from dalembert.kkt.rows import RowStructure, combination, echelon, row_structure
from dalembert.model.mechanism.inertia import INERTIAL_NUMBERS
from dalembert.model.mechanism.precision import digits_of
from dalembert.names import lookup
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Float

    from dalembert.model.mechanism.mechanism import Mechanism

TERMS = ("viscous", "coulomb", "armature")
"""Terms of joints with one number per velocity: damping v, dry friction sign(v), inertia of rotors a."""

EXTRA_SAMPLES, ROWS_PER_PARAMETER = 20, 3
"""States at which ranks are looked at: as many as give this many rows per parameter, and some more."""


def checked_terms(terms: Any) -> tuple[str, ...]:
    """Return the names of terms of joints; unknown ones are refused."""
    names = (terms,) if isinstance(terms, str) else tuple(terms or ())
    for name in names:
        lookup(name, dict.fromkeys(TERMS), "term of joints")
        if names.count(name) > 1:
            raise ModelError(f"terms names {name!r} twice")
    return names


def parameter_names(mechanism: Mechanism, terms: Any = ()) -> tuple[str, ...]:
    """Return the names of the columns of the regressor: "m:arm", "mcx:arm", ..., then "viscous:elbow"."""
    inertial = [f"{number}:{body.name}" for body in mechanism.bodies for number in INERTIAL_NUMBERS]
    return (*inertial, *(f"{term}:{name}" for term in checked_terms(terms) for name in mechanism.coordinates))


def parameter_values(mechanism: Mechanism, terms: Any = ()) -> Float[Array, " p"]:
    """Return pi as the model has it; dry friction is that of the joints."""
    coefficients = {"viscous": mechanism.damping, "coulomb": mechanism.friction, "armature": mechanism.armature}
    inertial = [body.inertia.numbers() for body in mechanism.bodies]
    return np.concatenate([*inertial, *(coefficients[term] for term in checked_terms(terms)), np.zeros(0)])


# ----------------------------------------------------------------------------------------------------------------------
# What comes back.


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The numbers that forces determine, each a sum of parameters; `print` shows them.

    Attributes
    ----------
    names
        Of all p parameters, as the columns of `compile("regressor")` are ordered.
    sums
        beta = sums pi, (r, p): one row per base parameter.
    columns
        Per base parameter the parameter that it is named after, (r,): Y pi = Y[:, columns] beta.
    alone
        Names that are base parameters by themselves.
    unseen
        Names that cause no force at any motion.
    kept, dropped
        The smallest singular value that counts and the largest that does not, relative to the largest of all: the gap.
    doubt
        Why the rank is in doubt, in words; empty where it is not.
    """

    names: tuple[str, ...]
    sums: Float[Array, "r p"]
    columns: Array
    alone: tuple[str, ...]
    unseen: tuple[str, ...]
    kept: float
    dropped: float
    doubt: str

    @property
    def rank(self) -> int:
        """How many there are."""
        return len(self.columns)

    def __len__(self) -> int:
        return self.rank

    def text(self, k: int) -> str:
        """Return base parameter k as a sum of named parameters."""
        return combination(self.sums[k], self.names)

    def __str__(self) -> str:
        head = f"{self.rank} base parameters of {len(self.names)}"
        gap = f"; singular values {self.kept:.1e} and above count, {self.dropped:.1e} and below do not"
        lines = [head + (gap if self.rank < len(self.names) else "")]
        lines += [f"  {self.text(k)}" for k in range(self.rank)]
        if self.unseen:
            lines.append("cause no force at any motion: " + ", ".join(self.unseen))
        return "\n".join([*lines, *([self.doubt] if self.doubt else [])])


def base_parameters(mechanism: Mechanism, terms: Any, rng: Any) -> BaseParameters:
    """Return the base parameters from random states that the constraints allow."""
    names = parameter_names(mechanism, terms)
    if not mechanism.nv:
        return BaseParameters(names, np.zeros((0, len(names))), np.zeros(0, int), (), names, 1.0, 0.0, "")
    q, v, a = random_motions(mechanism, len(names), rng)
    return of_regressor(mechanism, names, projected(mechanism, q, np.asarray(regressors(mechanism, terms, q, v, a)))[0])


def of_regressor(mechanism: Mechanism, names: tuple[str, ...], W: Array) -> BaseParameters:
    """Return the base parameters that a stacked regressor W (N, p) tells apart."""
    size = np.linalg.norm(W, axis=0)
    seen = np.flatnonzero(size > digits_of(mechanism) * size.max(initial=0.0))
    unseen = tuple(name for k, name in enumerate(names) if k not in set(seen.tolist()))
    R: Array = np.linalg.qr(W[:, seen], mode="r")  # pyright: ignore[reportAssignmentType]
    structure: RowStructure = row_structure(np.ascontiguousarray(R.T), tolerance=digits_of(mechanism))
    N, pivots = echelon(structure.U[:, structure.rank :], structure.weights)
    dependent = np.array([k for k in range(len(seen)) if k not in pivots], dtype=int)
    sums = np.zeros((len(dependent), len(names)))
    for row, k in enumerate(dependent):
        sums[row, seen[k]] = 1.0
        sums[row, seen[pivots]] = -N[k]
    alone = tuple(names[seen[k]] for row, k in enumerate(dependent) if np.count_nonzero(sums[row]) == 1)
    return BaseParameters(
        names, sums, seen[dependent], alone, unseen, structure.kept, structure.dropped, structure.doubt
    )


# ----------------------------------------------------------------------------------------------------------------------
# States that constraints allow, and regressors freed from multipliers.


def random_motions(mechanism: Mechanism, parameters: int, rng: Any) -> tuple[Array, Array, Array]:
    """Return random q, v, a of unit size that the constraints allow."""
    from dalembert.model.mechanism.assemble import closed_or_none, closed_samples

    generator = np.random.default_rng(rng)
    freedom = mechanism.nv
    if not mechanism.names:
        count = EXTRA_SAMPLES + ROWS_PER_PARAMETER * parameters // freedom
        v, a = generator.standard_normal((2, count, freedom))
        return mechanism.random(generator, count), v, a
    freedom = max(mechanism.nv - mechanism.generic_rank().rank, 1)
    count = EXTRA_SAMPLES + ROWS_PER_PARAMETER * parameters // freedom
    if any(mechanism.holonomic):
        closed = closed_samples(mechanism, closed_or_none(mechanism.project), count, int(generator.integers(2**31)))
        q = np.array([place for place, met in closed if met])
    else:
        q = mechanism.random(generator, count)
    if not len(q):
        raise ModelError(f"no configuration of {mechanism.name!r} that meets its constraints was found")
    v, a = generator.standard_normal((2, len(q), mechanism.nv))
    A, bases = admissible(mechanism, q)
    for k, Z in enumerate(bases):
        v[k] = Z @ (Z.T @ v[k])
        a[k] = Z @ (Z.T @ a[k]) - np.linalg.lstsq(A[k], mechanism.drift(q[k], v[k]), rcond=digits_of(mechanism))[0]
    return q, v, a


def admissible(mechanism: Mechanism, q: Array) -> tuple[Array, list[Array]]:
    """Return A (N, m, nv) of all samples, and per sample an orthonormal basis Z (nv, k) of null(A).

    The rank is that of the mechanism around the first sample, and around a sample that it does not fit.
    """
    if not mechanism.names:
        return np.zeros((len(q), 0, mechanism.nv)), [np.eye(mechanism.nv)] * len(q)
    A = np.asarray(mechanism.jacobian(q)).reshape(len(q), len(mechanism.names), mechanism.nv)
    _, s, Vt = np.linalg.svd(A)
    digits, usual = digits_of(mechanism), mechanism.generic_rank(q[0]).rank
    relative = np.pad(s / s[:, :1], ((0, 0), (0, 1)))
    fits = (relative[:, usual] <= CLEAR * digits) & ((relative[:, usual - 1] > digits) if usual else True)
    ranks = [usual if fit else mechanism.generic_rank(place).rank for fit, place in zip(fits, q, strict=True)]
    return A, [rows[rank:].T for rows, rank in zip(Vt, ranks, strict=True)]


def regressors(mechanism: Mechanism, terms: Any, q: Array, v: Array, a: Array) -> Array:
    """Return Y (N, nv, p)."""
    Y = np.asarray(mechanism.compile("regressor", terms=checked_terms(terms))(q, v, a))
    return Y.reshape(len(q), mechanism.nv, -1)


def projected(mechanism: Mechanism, q: Array, Y: Array, force: Array | None = None, noise: Array | None = None) -> Any:
    """Return Z^T Y and Z^T force of all samples, one below the other; whitened for joint noise of deviation `noise`."""
    targets = np.zeros(Y.shape[:2]) if force is None else force
    deviation = np.ones(mechanism.nv) if noise is None else noise
    blocks, sides = [], []
    for k, Z in enumerate(admissible(mechanism, q)[1]):
        L = np.linalg.cholesky((Z.T * deviation**2) @ Z)
        blocks.append(np.linalg.solve(L, Z.T @ Y[k]))
        sides.append(np.linalg.solve(L, Z.T @ targets[k]))
    return np.concatenate(blocks), np.concatenate(sides)

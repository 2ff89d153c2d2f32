"""Distribution of forces: which reactions and motor forces a motion may have, and the least of them.

Symbols: b = M a + bias what the open tree needs, A rows, lam multipliers, f = -lam reactions; indices d driven, p
passive coordinates; N a basis of null(A_p^T); n normal, mu friction of a contact.

    A_p^T lam = -b_p            tau_d = b_d + A_d^T lam            contacts: n . f >= 0, |f - n (n . f)| <= mu n . f

    squares    least sum of |f_i|^2 over the constraints i
    peak       least largest |f_i|, and among these the least squares

A cone program, solved by Clarabel; what the model determines at all is told by the family lam + N z, which motors make
up for (`families.py`). Source: Boyd & Wegbreit, "Fast computation of optimal contact forces", IEEE Trans. Robotics 23
(2007) 1117-1132; M. Wojtyra, "Joint reaction forces in multibody systems with redundant constraints", Multibody System
Dynamics 14 (2005) 23-46.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse as sp

from dalembert.checks import floats, vectors
from dalembert.errors import MissingExtraError, ModelError, UnsupportedError
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.calls import on_manifold
from dalembert.model.mechanism.families import multiplier_families
from dalembert.model.mechanism.joint_values import driven_coordinates
from dalembert.names import lookup
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from dalembert.model.mechanism.mechanism import Mechanism

AIMS = ("squares", "peak")
"""What is least."""

BALANCED = 1e-8
"""Part of the forces by which the equations of motion may be missed."""

INDEPENDENT = 1e-10
"""Singular values of the passive equations, as parts of the largest, from which on these are independent."""

AIM = 1e-11
"""Tolerance of the cone program, forces being measured in units of the load."""

SLACK = 1e-9
"""Part of the least peak that the second problem, of least squares, may add to it."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Reactions and motor forces of a motion.

    Attributes
    ----------
    reactions
        By constraint, newton and newton metre, on the mechanism: the negative of `multipliers`.
    multipliers, tau
        (m,) of the rows; (nv,) of the joints.
    unique
        Per row whether the motion alone determines its reaction, whatever is asked to be least.
    family
        (m, r): what may be added to the multipliers by motors that strain the constraints, or by redundant rows.
    margin
        Per contact mu N - |T|, newton: how far it is from slipping.
    peak
        Largest reaction of a constraint, newton.
    residual
        What the equations of motion miss, as a part of the forces.
    status
        UNIQUE, or REDUNDANT where there was a choice; INCONSISTENT where no reactions within the cones do it, and all
        numbers are NaN.
    """

    reactions: dict[str, Array]
    multipliers: Float[Array, " m"] = field(repr=False)
    tau: Float[Array, " nv"]
    unique: Bool[Array, " m"]
    family: Float[Array, "m r"] = field(repr=False)
    margin: dict[str, float]
    peak: float
    residual: float
    status: Status

    @property
    def ok(self) -> bool:
        """True where the forces cause the motion, within the cones."""
        return self.status.ok


def distribute(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    a: Any,
    minimise: str,
    contacts: Sequence[str] | Mapping[str, Any],
    friction: float,
    actuated: Any,
    t: float,
) -> Distribution:
    """Return the least forces of a motion; see `Mechanism.distribute`."""
    lookup(minimise, dict.fromkeys(AIMS), "aim")
    if not mechanism.names:
        raise UnsupportedError(f"{mechanism.name!r} has no constraints: inverse(q, v, a) has the only forces there are")
    n, m = mechanism.nv, len(mechanism.names)
    q = on_manifold(mechanism, q)
    v, a = (np.zeros(n) if x is None else vectors(x, n, letter) for x, letter in ((v, "v"), (a, "a")))
    if q.ndim != 1 or v.ndim != 1 or a.ndim != 1:
        raise ModelError("distribute takes one state")
    if not all(np.isfinite(x).all() for x in (q, v, a)):
        raise ModelError("q, v or a holds NaN or infinity: forces of such a motion are not defined")
    groups = _groups(mechanism)
    normals = _contacts(groups, contacts)
    mu = float(floats(friction, "friction"))
    if not 0.0 <= mu < np.inf:
        raise ModelError(f"friction is a coefficient >= 0, not {friction}")
    b = np.asarray(mechanism.open_tree().compile("inverse")(q, v, a)).reshape(n)
    A = np.asarray(mechanism.jacobian(q, t)).reshape(m, n)
    driven = np.isin(np.arange(n), _driven(mechanism, actuated))
    family = multiplier_families(
        mechanism, q[None], np.array([t]), passive=np.flatnonzero(~driven) if not driven.all() else None
    ) if not driven.all() else None  # fmt: skip
    lam = _least(A[:, ~driven], -b[~driven], groups, normals, mu, minimise)
    basis = family.basis[0][:, : int(family.dimension[0])] if family is not None else np.eye(m)
    unique = family.unique[0] if family is not None else np.zeros(m, bool)
    if lam is None:
        nan = np.full(m, np.nan)
        margins = dict.fromkeys(normals, np.nan)
        shown = {name: nan[rows] for name, rows in groups.items()}
        return Distribution(shown, nan, np.full(n, np.nan), unique, basis, margins, np.nan, np.nan, Status.INCONSISTENT)
    tau = np.where(driven, b + A.T @ lam, 0.0)
    missed = np.abs(np.where(driven, 0.0, b + A.T @ lam)).max(initial=0.0)
    residual = float(missed / max(np.abs(b).max(initial=0.0), np.abs(lam).max(initial=0.0), 1e-300))
    reactions = {name: -lam[rows] for name, rows in groups.items()}
    margins = {}
    for name, normal in normals.items():
        push = float(normal @ reactions[name])
        margins[name] = mu * push - float(np.linalg.norm(reactions[name] - push * normal))
    peak = max(float(np.linalg.norm(x)) for x in reactions.values())
    status = Status.REDUNDANT if basis.shape[1] else Status.UNIQUE
    return Distribution(
        reactions,
        lam,
        tau,
        unique,
        basis,
        margins,
        peak,
        residual,
        status if residual <= BALANCED else Status.INCONSISTENT,
    )


def _groups(mechanism: Mechanism) -> dict[str, list[int]]:
    """Return the rows of every constraint by its name."""
    groups: dict[str, list[int]] = {}
    for i, number in enumerate(mechanism.row_groups):
        constraint = mechanism.all_constraints[number]
        groups.setdefault(constraint.label, []).append(i)
    return groups


def _contacts(groups: Mapping[str, list[int]], contacts: Sequence[str] | Mapping[str, Any]) -> dict[str, Array]:
    """Return the normals of constraints that can only push, by name."""
    names = [contacts] if isinstance(contacts, str) else list(contacts)
    normals = {}
    for name in names:
        rows = lookup(name, groups, "constraint")
        if len(rows) != 3:
            raise ModelError(f"contact {name!r} has {len(rows)} rows: a contact that pushes is a Point, of three rows")
        normal = floats(contacts[name], "normal") if isinstance(contacts, Mapping) else np.array([0.0, 0.0, 1.0])
        if normal.shape != (3,) or not np.linalg.norm(normal) > 0:
            raise ModelError(f"the normal of {name!r} is a direction (3,)")
        normals[name] = normal / np.linalg.norm(normal)
    return normals


def _driven(mechanism: Mechanism, actuated: Any) -> Sequence[int]:
    """Return the driven coordinates: all by default, but for those of a free base."""
    if actuated is not None:
        return driven_coordinates(mechanism, actuated)
    places = np.arange(mechanism.nv)
    for joint in mechanism.joints:
        if KINDS[joint.kind].nv == 6:
            places = np.setdiff1d(places, np.arange(mechanism.nv)[mechanism.index_v(joint.name)])
    return [int(k) for k in places]


def _least(
    Ap: Array, side: Array, groups: Mapping[str, list[int]], normals: Mapping[str, Array], mu: float, minimise: str
) -> Array | None:
    """Return lam with Ap^T lam = side within the cones, the least of its kind; None where there is none."""
    m = len(Ap)
    size = max(float(np.abs(side).max(initial=0.0)), 1e-300)  # forces in units of the load
    rows, right = _independent(Ap.T, side / size)
    if rows is None:
        return None
    cones = [(list(groups[name]), normal) for name, normal in normals.items()]
    if minimise == "squares":
        x = _solved(np.eye(m), np.zeros(m), rows, right, cones, mu, [], None)
        return None if x is None else size * x
    several = list(groups.values())
    x = _solved(np.zeros((m, m)), np.zeros(m), rows, right, cones, mu, several, None)
    if x is None:
        return None
    peak = max(float(np.linalg.norm(x[part])) for part in several)
    y = _solved(np.eye(m), np.zeros(m), rows, right, cones, mu, several, peak * (1.0 + SLACK))
    return size * (x if y is None else y)


def _independent(rows: Array, right: Array) -> tuple[Array | None, Array]:
    """Return independent equations that say the same; None where they contradict each other."""
    if not len(rows):
        return rows, right
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    some = s > INDEPENDENT * s[:1]
    if np.abs(right - U[:, some] @ (U[:, some].T @ right)).max() > BALANCED * max(1.0, np.abs(right).max()):
        return None, right
    return Vt[some], (U[:, some].T @ right) / s[some]


def _solved(
    P: Array, c: Array, rows: Array, right: Array, contacts: Sequence[tuple[list[int], Array]], mu: float,
    several: Sequence[list[int]], peak: float | None,
) -> Array | None:  # fmt: skip
    """Return x of least x^T P x / 2, or of least largest |x_i| where P is zero; None where there is none."""
    try:
        clarabel: Any = import_module("clarabel")
    except ImportError as error:
        raise MissingExtraError("clarabel", "identify", "distribute") from error
    m = len(c)
    wide = int(bool(several) and peak is None)  # the peak is one more unknown
    blocks, sides, cones = [np.hstack([rows, np.zeros((len(rows), wide))])], [right], [clarabel.ZeroConeT(len(rows))]
    for places, normal in contacts:
        B = np.zeros((4, m + wide))
        B[0, places] = mu * normal  # f = -x: (mu n . f, f - n (n . f)) in the cone
        B[1:, places] = np.eye(3) - np.outer(normal, normal)
        blocks.append(B)
        sides.append(np.zeros(4))
        cones.append(clarabel.SecondOrderConeT(4))
        if mu == 0.0:
            push = np.zeros((1, m + wide))
            push[0, places] = normal
            blocks.append(push)
            sides.append(np.zeros(1))
            cones.append(clarabel.NonnegativeConeT(1))
    for places in several:
        B = np.zeros((1 + len(places), m + wide))
        if wide:
            B[0, m] = -1.0
        for k, place in enumerate(places):
            B[1 + k, place] = -1.0
        blocks.append(B)
        sides.append(np.concatenate([[0.0 if wide else float(peak or 0.0)], np.zeros(len(places))]))
        cones.append(clarabel.SecondOrderConeT(1 + len(places)))
    quadratic = np.zeros((m + wide, m + wide))
    quadratic[:m, :m] = P
    linear = np.concatenate([c, np.ones(wide)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = AIM
    problem = (sp.csc_matrix(np.triu(quadratic)), linear, sp.csc_matrix(np.vstack(blocks)), np.concatenate(sides))
    answer = clarabel.DefaultSolver(*problem, cones, settings).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        return None
    return np.array(answer.x)[:m]

"""Choice in a family of joint forces: the member that joints with compliance would take.

Symbols: W wrenches, T what members of the family add to them, C compliances of joints; W(z) = W + T z.

    least sum over joints of W^T C W:      T^T C T z = -T^T C W

This is Castigliano's theorem: of all wrenches in balance the true ones store the least elastic energy. Only the ratios
of compliances matter, so that it is also the limit of joints that become rigid together. Members that store no energy
in the joints named are left open, and go to joints that give way alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats
from dalembert.errors import ModelError
from dalembert.model.mechanism.transmissions import transmissions
from dalembert.names import lookup
from dalembert.status import Status
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism

DETERMINED = 1e-8
"""Part of the largest root of elastic energy that a unit member of a family stores, from which on flexible joints
decide it: stiffnesses may differ by the square of its reciprocal."""


def length_of(mechanism: Mechanism) -> float:
    """Return the length that moments are measured by, metres: the radius of gyration of all bodies about their centres.

    The same wherever loops are cut; of bodies that are points, or weigh nothing, the mechanism's size.
    """
    mass = sum(abs(body.inertia.mass) for body in mechanism.bodies)
    second = sum(abs(float(np.trace(body.inertia.rotational))) for body in mechanism.bodies)
    return float(np.sqrt(second / mass)) if mass > 0.0 and second > 0.0 else mechanism.reach


def even_roots(mechanism: Mechanism) -> Array:
    """Return what weighs wrenches where all joints give way alike, (k, 6): springs are given, and weigh nothing."""
    table = transmissions(mechanism)
    even = np.tile(np.repeat([1.0, 1.0 / length_of(mechanism)], 3), (len(table), 1))
    even[[at.group == "spring" for at in table]] = 0.0
    return even


def chosen_members(
    mechanism: Mechanism, W: Array, T: Array, several: Array, flexible: Mapping[str, Any] | None, held: Array
) -> tuple[Array, Array]:
    """Return z (N, r) of least elastic energy, and the members that `flexible` joints leave open, (N, r, r').

    `several` (N, r) says which members there are; one that adds to no wrench (two equal gears) stays open, and is not
    used. Members that are `held` (N, r) change contact forces, which are given: they stay open behind the others, each
    with what flexible joints make of it.
    """
    bound = np.where(held[:, :, None, None], 0.0, T)
    z, free = _chosen(mechanism, W, bound, several & ~held, flexible)
    if not held.any():
        return z, free
    columns = [free]
    for j in np.flatnonzero(held.any(axis=0)):
        column = np.zeros_like(z)
        if flexible is not None:
            column, _ = _chosen(mechanism, T[:, j], bound, several & ~held, flexible)
        column[:, j] = 1.0
        columns.append(np.where(held[:, j, None], column, 0.0)[:, :, None])
    return z, np.concatenate(columns, axis=2)


def _chosen(
    mechanism: Mechanism, W: Array, T: Array, several: Array, flexible: Mapping[str, Any] | None
) -> tuple[Array, Array]:
    """Return the choice among members that are not held."""
    even = even_roots(mechanism)
    roots = None if flexible is None else np.sqrt(compliances(mechanism, flexible))
    count, r = T.shape[:2]
    z, free, widest = np.zeros((count, r)), np.zeros((count, r, r)), 0
    for i in np.flatnonzero((T != 0.0).any(axis=(1, 2, 3)) & np.isfinite(W).all(axis=(1, 2))):
        members = np.flatnonzero((T[i] != 0.0).any(axis=(1, 2)))
        z[i, members], directions = _least_energy(W[i], T[i, members], even, roots)
        free[i, members, : directions.shape[1]] = directions
        widest = max(widest, directions.shape[1])
    idle = several & ~(T != 0.0).any(axis=(2, 3))
    for i in np.flatnonzero(idle.any(axis=1)):
        used = int(free[i].any(axis=0).sum())
        for place, member in enumerate(np.flatnonzero(idle[i]), start=used):
            free[i, member, place] = 1.0
            widest = max(widest, place + 1)
    return z, free[:, :, :widest]


def _least_energy(W: Array, T: Array, even: Array, roots: Array | None) -> tuple[Array, Array]:
    """Return z, and as columns the members that nothing has decided but the even choice."""
    z, free = np.zeros(len(T)), np.eye(len(T))
    if roots is not None:
        z, free = _decided(W, T, roots, z, free)
    return (_decided(W, T, even, z, free)[0] if free.shape[1] else z), free


def _decided(W: Array, T: Array, roots: Array, z: Array, free: Array) -> tuple[Array, Array]:
    """Return z with the energy made least over the open members, and the members that store none."""
    E = np.einsum("kc,rkc,rj->kcj", roots, T, free).reshape(-1, free.shape[1])
    w = (roots * (W + np.einsum("r,rkc->kc", z, T))).reshape(-1)
    sizes = np.linalg.norm(np.einsum("rj,rkc->kcj", free, T).reshape(-1, free.shape[1]), axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    U, s, Vt = np.linalg.svd(E / sizes, full_matrices=E.shape[0] < E.shape[1])
    keep = np.zeros(free.shape[1], dtype=bool)
    keep[: s.size] = s > DETERMINED * s.max(initial=0.0)
    step = Vt[keep].T @ (-(U[:, : s.size].T @ w)[keep[: s.size]] / s[keep[: s.size]]) / sizes
    return z + free @ step, free @ (Vt[~keep].T / sizes[:, None])


def compliances(mechanism: Mechanism, flexible: Mapping[str, Any]) -> Array:
    """Return per transmission and component the compliance, (k, 6): zero where a joint is rigid."""
    table = {at.name: i for i, at in enumerate(transmissions(mechanism))}
    C = np.zeros((len(table), 6))
    for name, stiffness in flexible.items():
        C[lookup(name, table, "joint, loop or constraint")] = 1.0 / six_stiffnesses(name, stiffness)
    return C


def six_stiffnesses(name: str, stiffness: Any) -> Array:
    """Return six stiffnesses along and about the child's axes: of one number (N/m; turns are rigid), a pair, or six."""
    parts = [
        floats(x, f"the stiffness of {name!r}") for x in (stiffness if isinstance(stiffness, tuple) else (stiffness,))
    ]
    if len(parts) == 1 and parts[0].shape == (6,):
        six = parts[0]
    elif len(parts) == 6 and all(x.shape == () for x in parts):
        six = np.array(parts, dtype=float)
    elif len(parts) == 1 and parts[0].ndim == 0:
        six = np.array([*np.full(3, float(parts[0])), *np.full(3, np.inf)])
    elif len(parts) == 2 and all(x.shape in ((), (3,)) for x in parts):
        six = np.concatenate([np.broadcast_to(x, 3) for x in parts])
    else:
        raise ModelError(
            f"the stiffness of {name!r} is a number (N/m), a pair (N/m, N m/rad) of numbers or triples, or an array of "
            f"six; not {stiffness!r}"
        )
    if not (six > 0.0).all():
        raise ModelError(f"the stiffness of {name!r} must be positive (infinite where it is rigid), not {stiffness!r}")
    return six


def choice_in_words(
    mechanism: Mechanism, status: Any, several: bool, flexible: Mapping[str, Any] | None, left: bool
) -> str:
    """Return which member was taken, for people."""
    codes = np.asarray(status, dtype=int).ravel()
    if codes.size and (codes > Status.ILL_CONDITIONED).all():
        return f"no wrenches: {Status(int(codes[0])).message}"
    if not several:
        return "every wrench is unique"
    even = f"least elastic energy of joints that give way alike, moments over {length_of(mechanism):.3g} m"
    if not flexible:
        return even
    named = f"least elastic energy of {', '.join(map(repr, flexible))}, all others rigid"
    return named if not left else f"{named}; what these leave open: {even}"

"""The regressor: joint forces as a linear function of the ten inertial numbers of every body.

Symbols: pi = (m, m c, I) of a body: mass, first moment, rotational inertia about the origin of the body's frame, in its
axes; Y columns: tau = Y(q, v, a) pi of all bodies, with springs, dampers and armature apart.

    Y pi = sum over bodies of J^T (f, n),    f = m a + U h,    n = h x a + ∫ r x U r dm

The force that a body needs is linear in pi (`algebra/rigid.py`), so a column is that of a body of which one number is
one and the others are zero. The order of the ten numbers is Pinocchio's: m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz,
Izz. Source: Khosla & Kanade, "Parameter identification of robot dynamics", CDC 1985; Atkeson, An & Hollerbach,
"Estimation of inertial parameters of manipulator loads and links", Int. J. Robotics Research 5(3), 1986.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.kkt.expressions.verdict import Conditioning
from dalembert.model.mechanism.base_parameters import checked_terms
from dalembert.model.mechanism.inertia import MOMENTS
from dalembert.model.mechanism.placement import Placement
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid, inertial_force
from dalembert.tree.algebra.screws import Pair
from dalembert.tree.algebra.vectors import ZERO, Matrix
from dalembert.tree.algorithms import dynamics
from dalembert.tree.algorithms.inverse import STILL, LinkMotion, accelerations, joint_forces
from dalembert.tree.algorithms.kinematics import columns, vector
from dalembert.tree.block.constrained import Tracing
from dalembert.tree.prepared.configuration import Posed, pair_add
from dalembert.tree.prepared.link import Tree
from dalembert.tree.prepared.prepare import cheapest
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


def _unit(k: int) -> Rigid:
    """Return the inertia of which number k is one and the others are zero."""
    if k == 0:
        return Rigid(1.0)
    if k < 4:
        x, y, z = (float(x) for x in np.eye(3)[k - 1])
        return Rigid(0.0, (x, y, z))
    rotational = np.zeros((3, 3))
    i, j = MOMENTS[k - 4]
    rotational[i, j] = rotational[j, i] = 1.0
    E = 0.5 * np.trace(rotational) * np.eye(3) - rotational
    a, b, c, d, e, f = (float(E[i, j]) for i in range(3) for j in range(i, 3))
    return Rigid(0.0, ZERO, (a, b, c, d, e, f))


UNITS = tuple(_unit(k) for k in range(10))


def inertia_columns(
    mechanism: Mechanism, tree: Tree, posed: list[Posed], motions: list[LinkMotion], lifted: list[LinkMotion], k: int
) -> list[list[Scalar]]:
    """Return the ten columns (nv,) of body k: joint forces that its inertial numbers need, each being one.

    `motions` are those of the links, less gravity; `lifted` those of links at rest, which the part of a body's weight
    that is held up is counted with.
    """
    body = tree.bodies[k]
    if body.link < 0:
        return [[0.0] * tree.nv for _ in UNITS]
    share = mechanism.bodies[k].compensation
    result = []
    for unit in UNITS:
        force = _force(body.place, motions[body.link], unit)
        if share:
            held = _force(body.place, lifted[body.link], unit)
            force = pair_add(force, tuple(vectors.scale(-float(share), part) for part in held))  # type: ignore[arg-type]
        own: list[Pair] = [(ZERO, ZERO)] * len(tree.links)
        own[body.link] = force
        result.append(joint_forces(tree, posed, own)[0])
    return result


def _force(place: Placement, motion: LinkMotion, inertia: Rigid) -> Pair:
    """Return the force (f, n) that an inertia given in a body's frame needs, about the origin of its link."""
    R, p = columns(place.rotation), vector(place.position)
    w, wd = (vectors.transposed_times(R, x) for x in (motion.w, motion.wd))
    a = vectors.transposed_times(R, vectors.add(motion.a, vectors.columns_times(motion.U, p)))
    f, n = inertial_force(inertia, w, wd, a, _turned(R, motion.U))
    f, n = vectors.columns_times(R, f), vectors.columns_times(R, n)
    return f, vectors.add(n, vectors.cross(p, f))


def _turned(R: Matrix, U: Matrix) -> Matrix:
    """Return the columns of R^T U R."""
    if U is STILL:
        return U
    x, y, z = (vectors.transposed_times(R, vectors.columns_times(U, column)) for column in R)
    return x, y, z


def regressor(mechanism: Mechanism, terms: Any) -> ca.Function:
    """Return q, v, a -> Y (nv, 10 bodies + nv terms): tau = Y pi, with springs, dampers and armature apart."""
    laws = checked_terms(terms)
    setting = plain_setting(mechanism)
    tree, posed = setting.tree, setting.posed
    v, a = setting.symbol("v"), setting.symbol("a")
    still: list[Scalar] = [0.0] * tree.nv
    motions = accelerations(tree.gravity, posed, v, a)
    lifted = accelerations(tree.gravity, posed, still, still)
    columns = [
        column
        for k in range(len(mechanism.bodies))
        for column in inertia_columns(mechanism, tree, posed, motions, lifted, k)
    ]
    for law in laws:
        columns += [unit_column(i, tree.nv, TERMS[law](v[i], a[i])) for i in range(tree.nv)]
    Y = [list(row) for row in zip(*columns, strict=True)]
    return setting.function("regressor", ("q", "v", "a"), {"regressor": Y})


TERMS: dict[str, Callable[[Any, Any], Any]] = {
    "viscous": lambda v, a: v,
    "coulomb": lambda v, a: ca.sign(v),
    "armature": lambda v, a: a,
}
"""Terms of the joints that are linear in one number each: c v, f sign(v), J a; there is one number per velocity."""


def unit_column(i: int, size: int, value: Scalar) -> list[Scalar]:
    """Return a column with one entry."""
    return [value if k == i else 0.0 for k in range(size)]


def plain_setting(mechanism: Mechanism) -> Tracing:
    """Return symbols and the tree with the fewest operations for inverse dynamics, where nothing is solved."""
    return Tracing(mechanism, cheapest(mechanism, dynamics.inverse)[0], UNSOLVED)


UNSOLVED = Conditioning(False, (), (), (), (), ())
"""What inverse dynamics of a tree asks of a solver: nothing."""

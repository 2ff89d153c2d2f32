"""Three mechanisms and random programs as CasADi SX functions, for measuring kernels.

The robots are trees of one-degree-of-freedom joints; forward dynamics by the articulated-body algorithm
(Featherstone 2008, table 7.1). Symbols: X motion transform from parent to body, S motion subspace, v velocity, c bias
acceleration, IA articulated inertia, pA articulated bias force, a acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

GRAVITY = 9.81
WEIGHTS = np.linspace(0.2, 0.8, 64)  # of the averages in synthetic programs


@dataclass(frozen=True)
class Joint:
    """One joint: its parent's number (-1: ground), its kind ("rx" ... "pz"), where it sits, what hangs on it.

    `offset` (3,) m in the parent's frame, `mass` kg, `centre` (3,) m and `inertia` (3,) kg m^2 about it, diagonal.
    """

    parent: int
    kind: str
    offset: tuple[float, float, float]
    mass: float = 0.0
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: tuple[float, float, float] = (0.0, 0.0, 0.0)


def _skew(r) -> ca.SX:
    return ca.skew(ca.SX(r))


def _transform(joint: Joint, q: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return X (6 x 6, angular part first) and S (6)."""
    axis = "xyz".index(joint.kind[1])
    E, r = ca.SX.eye(3), ca.SX(ca.DM(joint.offset))
    S = ca.SX(6, 1)
    if joint.kind[0] == "r":
        i, j = (axis + 1) % 3, (axis + 2) % 3
        E[i, i] = E[j, j] = ca.cos(q)
        E[i, j] = ca.sin(q)
        E[j, i] = -ca.sin(q)
        S[axis] = 1
    else:
        r = r + ca.SX(ca.DM.eye(3)[:, axis]) * q
        S[3 + axis] = 1
    X = ca.SX(6, 6)
    X[:3, :3] = E
    X[3:, 3:] = E
    X[3:, :3] = -ca.mtimes(E, _skew(r))
    return ca.sparsify(X), S


def _inertia(joint: Joint) -> ca.SX:
    """Return the spatial inertia (6 x 6) about the joint."""
    C = ca.skew(ca.DM(joint.centre))
    rotational = ca.diag(ca.DM(joint.inertia)) + joint.mass * ca.mtimes(C, C.T)
    full = ca.blockcat([[rotational, joint.mass * C], [joint.mass * C.T, joint.mass * ca.DM.eye(3)]])
    return ca.SX(ca.sparsify(full))


def _cross(v: ca.SX) -> ca.SX:
    """Return the matrix of the spatial cross product of motions."""
    matrix = ca.SX(6, 6)
    matrix[:3, :3] = _skew(v[:3])
    matrix[3:, :3] = _skew(v[3:])
    matrix[3:, 3:] = _skew(v[:3])
    return matrix


def forward_dynamics(name: str, joints: list[Joint]) -> ca.Function:
    """Return q, v, tau -> acceleration of a tree."""
    n = len(joints)
    q, qd, tau = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("tau", n)
    X, S, v, c, IA, pA = [], [], [], [], [], []
    for i, joint in enumerate(joints):
        Xi, Si = _transform(joint, q[i])
        vJ = Si * qd[i]
        vi = vJ if joint.parent < 0 else ca.mtimes(Xi, v[joint.parent]) + vJ
        Ii = _inertia(joint)
        X.append(Xi), S.append(Si), v.append(vi), IA.append(Ii)
        c.append(ca.mtimes(_cross(vi), vJ))
        pA.append(-ca.mtimes(_cross(vi).T, ca.mtimes(Ii, vi)))
    U, D, u = [None] * n, [None] * n, [None] * n  # D = 1/d: one division per joint
    for i in reversed(range(n)):
        U[i] = ca.mtimes(IA[i], S[i])
        D[i] = 1 / ca.dot(S[i], U[i])
        u[i] = tau[i] - ca.dot(S[i], pA[i])
        if joints[i].parent >= 0:
            Ia = IA[i] - ca.mtimes(U[i], (U[i] * D[i]).T)
            pa = pA[i] + ca.mtimes(Ia, c[i]) + U[i] * (u[i] * D[i])
            IA[joints[i].parent] += ca.mtimes(X[i].T, ca.mtimes(Ia, X[i]))
            pA[joints[i].parent] += ca.mtimes(X[i].T, pa)
    a, qdd = [None] * n, [None] * n
    base = ca.SX(ca.DM([0, 0, 0, 0, 0, GRAVITY]))
    for i, joint in enumerate(joints):
        carried = ca.mtimes(X[i], base if joint.parent < 0 else a[joint.parent]) + c[i]
        qdd[i] = (u[i] - ca.dot(U[i], carried)) * D[i]
        a[i] = carried + S[i] * qdd[i]
    return ca.Function(name, [q, qd, tau], [ca.vertcat(*qdd)], ["q", "v", "tau"], ["a"], {"cse": True})


def double_pendulum() -> ca.Function:
    """Return the forward dynamics of two rods that swing about y."""
    rod = {"mass": 1.0, "centre": (0.0, 0.0, -0.5), "inertia": (1 / 12, 1 / 12, 1e-3)}
    return forward_dynamics("double_pendulum", [Joint(-1, "ry", (0, 0, 0), **rod), Joint(0, "ry", (0, 0, -1.0), **rod)])


def arm() -> ca.Function:
    """Return the forward dynamics of an arm with seven joints."""
    kinds = ("rz", "ry", "rz", "ry", "rz", "ry", "rz")
    joints = [
        Joint(i - 1, kind, (0.01 * i, 0.0, 0.3), 4.0 - 0.4 * i, (0.01, 0.02, 0.12), (0.03, 0.02 + 0.001 * i, 0.01))
        for i, kind in enumerate(kinds)
    ]
    return forward_dynamics("arm", joints)


def quadruped() -> ca.Function:
    """Return the forward dynamics of a floating trunk with four legs of three joints, 18 degrees of freedom."""
    joints = [Joint(i - 1, kind, (0.0, 0.0, 0.0)) for i, kind in enumerate(("px", "py", "pz", "rz", "ry"))]
    joints.append(Joint(4, "rx", (0.0, 0.0, 0.0), 6.9, (0.02, 0.0, -0.005), (0.025, 0.098, 0.107)))
    for x in (0.19, -0.19):
        for y in (0.05, -0.05):
            hip = len(joints)
            joints += [
                Joint(5, "rx", (x, y, 0.0), 0.68, (-0.005, 0.002, 0.0), (5e-4, 9e-4, 6e-4)),
                Joint(hip, "ry", (0.0, 1.9 * y, 0.0), 1.15, (-0.004, -0.022, -0.03), (6e-3, 6e-3, 1e-3)),
                Joint(hip + 1, "ry", (0.0, 0.0, -0.21), 0.24, (0.006, 0.001, -0.14), (3e-3, 3e-3, 4e-5)),
            ]
    return forward_dynamics("quadruped", joints)


def synthetic(operations: int, seed: int = 0) -> ca.Function:
    """Return a random program: products, sums, a few quotients, roots and sines, mostly of recent values.

    Values stay below one where the inputs do, so that results can be compared.
    """
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 20)
    values = [x[i] for i in range(20)]
    while len(values) < operations * 0.3:
        i, j, k = rng.integers(max(0, len(values) - 40), len(values), 3)
        kind, weight = rng.random(), WEIGHTS[rng.integers(len(WEIGHTS))]
        a, b, c = values[i], values[j], values[k]
        if kind < 0.6:
            values.append(weight * a - (1.0 - weight) * b)
        elif kind < 0.97:
            values.append(0.4 * (a * b - c) + 0.2)
        elif kind < 0.985:
            values.append(a / (1.0 + b * b))
        else:
            values.append(ca.sin(a))
    return ca.Function(f"synthetic_{operations}", [x], [ca.vertcat(*values[-40:])], ["x"], ["y"])


FUNCTIONS = {"double pendulum": double_pendulum, "arm": arm, "quadruped": quadruped}

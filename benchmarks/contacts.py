"""Constrained forward dynamics of two robots in contact, as CasADi SX functions: 10,700 and 28,400 operations.

M a + h = tau + J^T f, J a + g = 0. M = L^T D L with the sparsity of the tree (Featherstone 2008, table 6.3),
W = L^-T J^T, and the forces from the dense W^T D^-1 W. Symbols: M mass matrix, h bias force, J Jacobian of the contact
points, g their drift, f contact forces; X, S, v as in `robots`.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

import sample_programs as robots
from sample_programs import GRAVITY, Joint

Contact = tuple[int, tuple[float, float, float], int]  # body, point on it, 3 (point) or 6 (sole) equations


def constrained_dynamics(name: str, joints: list[Joint], contacts: Sequence[Contact]) -> ca.Function:
    """Return q, v, tau -> acceleration and contact forces of a tree on the ground."""
    n = len(joints)
    q, qd, tau = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("tau", n)
    X, S = zip(*[robots._transform(joint, q[i]) for i, joint in enumerate(joints)], strict=True)
    v, bias = _velocities(joints, X, S, qd)
    h = _bias_force(joints, X, S, v, bias)
    M = _mass_matrix(joints, X, S)
    J, g = _contact_equations(joints, X, S, v, bias, contacts)
    a, f = _solve(joints, M, [tau[i] - h[i] for i in range(n)], J, g)
    return ca.Function(
        name, [q, qd, tau], [ca.vertcat(*a), ca.vertcat(*f)], ["q", "v", "tau"], ["a", "f"], {"cse": True}
    )


def _velocities(joints, X, S, qd):
    """Return velocities of the bodies, and accelerations that have no joint acceleration and no gravity in them."""
    v, bias = [], []
    for i, joint in enumerate(joints):
        vJ = S[i] * qd[i]
        v.append(vJ if joint.parent < 0 else ca.mtimes(X[i], v[joint.parent]) + vJ)
        c = ca.mtimes(robots._cross(v[i]), vJ)
        bias.append(c if joint.parent < 0 else ca.mtimes(X[i], bias[joint.parent]) + c)
    return v, bias


def _bias_force(joints, X, S, v, bias):
    """Return h: gravity, centrifugal and Coriolis terms (recursive Newton-Euler)."""
    n = len(joints)
    lift, force = [], []
    for i, joint in enumerate(joints):
        up = ca.SX(ca.DM([0, 0, 0, 0, 0, GRAVITY])) if joint.parent < 0 else lift[joint.parent]
        lift.append(ca.mtimes(X[i], up))
        inertia = robots._inertia(joint)
        moved = ca.mtimes(inertia, bias[i] + lift[i])
        force.append(moved - ca.mtimes(robots._cross(v[i]).T, ca.mtimes(inertia, v[i])))
    h = [None] * n
    for i in reversed(range(n)):
        h[i] = ca.dot(S[i], force[i])
        if joints[i].parent >= 0:
            force[joints[i].parent] += ca.mtimes(X[i].T, force[i])
    return h


def _mass_matrix(joints, X, S):
    """Return the entries {(i, j)} of M, j an ancestor of i or i itself (composite rigid bodies)."""
    composite = [robots._inertia(joint) for joint in joints]
    M = {}
    for i in reversed(range(len(joints))):
        parent = joints[i].parent
        if parent >= 0:
            composite[parent] += ca.mtimes(X[i].T, ca.mtimes(composite[i], X[i]))
        force = ca.mtimes(composite[i], S[i])
        M[i, i] = ca.dot(S[i], force)
        j = i
        while joints[j].parent >= 0:
            force = ca.mtimes(X[j].T, force)
            j = joints[j].parent
            M[i, j] = ca.dot(S[j], force)
    return M


def _contact_equations(joints, X, S, v, bias, contacts):
    """Return rows {joint: entry} of J and the drift g, in the frames of the bodies."""
    J, g = [], []
    for body, point, size in contacts:
        r = ca.SX(ca.DM(point))
        to_point = ca.sparsify(ca.horzcat(-ca.skew(r), ca.SX.eye(3)))
        motion = to_point if size == 3 else ca.vertcat(ca.horzcat(ca.SX.eye(3), ca.SX(3, 3)), to_point)
        columns, carried, j = {}, motion, body
        while j >= 0:
            columns[j] = ca.mtimes(carried, S[j])
            carried = ca.mtimes(carried, X[j])
            j = joints[j].parent
        turn, move = v[body][:3], ca.mtimes(to_point, v[body])
        drift = ca.mtimes(motion, bias[body])
        drift[size - 3 :] += ca.cross(turn, move)
        for k in range(size):
            J.append({j: column[k] for j, column in columns.items()})
            g.append(drift[k])
    return J, g


def _solve(joints, M, right, J, g):
    """Return accelerations and forces: L^T D L of M, then the Schur complement of the contacts."""
    n, m = len(joints), len(g)

    def ancestors(i):
        while joints[i].parent >= 0:
            i = joints[i].parent
            yield i

    L = dict(M)
    for k in reversed(range(n)):
        for i in ancestors(k):
            ratio = L[k, i] / L[k, k]
            L[i, i] -= L[k, i] * ratio
            for j in ancestors(i):
                L[i, j] -= ratio * L[k, j]
            L[k, i] = ratio

    def half(x):  # L^-T x; x maps joints to entries
        for k in reversed(range(n)):
            if k in x:
                for i in ancestors(k):
                    x[i] = x.get(i, 0) - L[k, i] * x[k]
        return x

    z = half(dict(enumerate(right)))
    W = [half(dict(row)) for row in J]
    scaled = [{k: x / L[k, k] for k, x in row.items()} for row in W]
    D = [[sum(scaled[i][k] * x for k, x in W[j].items() if k in scaled[i]) for j in range(i + 1)] for i in range(m)]
    f = [-(g[i] + sum(x * z[k] for k, x in scaled[i].items())) for i in range(m)]
    for j in range(m):
        for i in range(j + 1, m):
            ratio = D[i][j] / D[j][j]
            for k in range(j + 1, i + 1):
                D[i][k] -= ratio * D[k][j]
            f[i] -= ratio * f[j]
            D[i].append(ratio)
    ratios = [row[i + 1 :] for i, row in enumerate(D)]
    f = [x / D[i][i] for i, x in enumerate(f)]
    for i in reversed(range(m)):
        for j in range(i):
            f[j] -= ratios[i][j] * f[i]
    for i, row in enumerate(W):
        for k, x in row.items():
            z[k] += x * f[i]
    a = [z[k] / L[k, k] for k in range(n)]
    for k in range(n):
        for i in ancestors(k):
            a[k] -= L[k, i] * a[i]
    return a, f


def _trunk() -> list[Joint]:
    joints = [Joint(i - 1, kind, (0.0, 0.0, 0.0)) for i, kind in enumerate(("px", "py", "pz", "rz", "ry"))]
    return [*joints, Joint(4, "rx", (0.0, 0.0, 0.0), 6.9, (0.02, 0.0, -0.005), (0.025, 0.098, 0.107))]


def quadruped() -> ca.Function:
    """Return a trunk with four legs of three joints, 18 degrees of freedom, on four points."""
    joints, feet = _trunk(), []
    for x in (0.19, -0.19):
        for y in (0.05, -0.05):
            hip = len(joints)
            joints += [
                Joint(5, "rx", (x, y, 0.0), 0.68, (-0.005, 0.002, 0.0), (5e-4, 9e-4, 6e-4)),
                Joint(hip, "ry", (0.0, 1.9 * y, 0.0), 1.15, (-0.004, -0.022, -0.03), (6e-3, 6e-3, 1e-3)),
                Joint(hip + 1, "ry", (0.0, 0.0, -0.21), 0.24, (0.006, 0.001, -0.14), (3e-3, 3e-3, 4e-5)),
            ]
            feet.append((hip + 2, (0.0, 0.0, -0.21), 3))
    return constrained_dynamics("quadruped_contacts", joints, feet)


def humanoid() -> ca.Function:
    """Return a trunk with legs of six, arms of eight and a torso and head of four joints, 38 in all, on two soles."""
    joints, soles = _trunk(), []

    def limb(parent: int, place: tuple[float, float, float], kinds: Sequence[str], length: float, mass: float) -> int:
        for k, kind in enumerate(kinds):
            offset = place if k == 0 else (0.0, 0.01 * (k % 2), length if k % 2 else 0.0)
            centre, inertia = (0.01, 0.005 * k, 0.4 * length), (0.02, 0.021 + 1e-3 * k, 0.008)
            joints.append(Joint(parent, kind, offset, mass, centre, inertia))
            parent = len(joints) - 1
        return parent

    for y in (0.09, -0.09):
        foot = limb(5, (0.0, y, -0.1), ("rz", "rx", "ry", "ry", "ry", "rx"), -0.2, 3.0)
        soles.append((foot, (0.02, 0.0, -0.1), 6))
    chest = limb(5, (0.0, 0.0, 0.1), ("rz", "ry"), 0.15, 8.0)
    for y in (0.2, -0.2):
        limb(chest, (0.0, y, 0.2), ("ry", "rx", "rz", "ry", "rz", "ry", "rx", "rz"), -0.14, 1.5)
    limb(chest, (0.0, 0.0, 0.3), ("ry", "rz"), 0.1, 1.0)
    return constrained_dynamics("humanoid_contacts", joints, soles)


FUNCTIONS = {"quadruped, 4 points": quadruped, "humanoid, 2 soles": humanoid}

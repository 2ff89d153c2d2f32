"""Over-constrained linkages in closed configurations, and a plain integrator that keeps a given rank: the oracle."""

from __future__ import annotations

import numpy as np
from scipy.integrate import DOP853, solve_ivp
from scipy.linalg import solve_triangular

import dalembert as da

GRAVITY = (1.3, -2.1, -9.0)
"""Along no axis of symmetry."""


def hinge_loop(points, axes, name, unit=1.0, gravity=GRAVITY):
    """Return a loop of links between hinges at `points` (k, 3) about `axes` (k, 3), metres; closed where q = 0.

    Link i goes from hinge i to hinge i + 1, the last hinge closes the loop on the ground. `unit` scales lengths.
    """
    points, axes = unit * np.asarray(points, float), np.asarray(axes, float)
    axes = axes / np.linalg.norm(axes, axis=1)[:, None]
    b = da.Builder(name, gravity=tuple(unit * np.asarray(gravity)))
    for i in range(len(points) - 1):
        along = points[i + 1] - points[i]
        length = max(np.linalg.norm(along), 0.2 * unit)
        moments = length**2 / 12 * np.array([1.0, 1.1, 0.9])
        b.body(f"link {i}", mass=1.0, center=tuple(along / 2), inertia=tuple(moments))
        place = points[0] if i == 0 else points[i] - points[i - 1]
        parent = "world" if i == 0 else f"link {i - 1}"
        b.joint(f"hinge {i}", "revolute", parent=parent, child=f"link {i}", axis=tuple(axes[i]), position=tuple(place))
    last = len(points) - 2
    closing = da.Revolute(
        f"link {last}", "world", placement=tuple(points[-1] - points[-2]), at=tuple(points[-1]), axis=tuple(axes[-1]),
        name="last",
    )  # fmt: skip
    return b.build().constrain(closing)


def _transform(a, alpha, theta):
    """Return the step of Denavit and Hartenberg: about z by theta, along x by a, about x by alpha."""
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array(
        [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0.0, sa, ca, 0.0], [0.0, 0.0, 0.0, 1.0]]
    )


def bennett_frames(a, alpha, b, beta, theta):
    """Return the four hinge frames of Bennett's loop with a / sin(alpha) = b / sin(beta), first angle theta."""
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    phi = 2 * np.arctan2(ratio, np.tan(theta / 2))
    frames, T = [], np.eye(4)
    for length, twist, angle in ((a, alpha, theta), (b, beta, phi), (a, alpha, -theta), (b, beta, -phi)):
        frames.append(T)
        T = T @ _transform(length, twist, angle)
    assert np.abs(T - np.eye(4)).max() < 1e-12, np.abs(T - np.eye(4)).max()
    return frames


def bennett(alpha=0.6, beta=1.3, a=1.0, theta=1.1, unit=1.0):
    """Return Bennett's linkage: 5 rows of rank 2 close 3 coordinates."""
    frames = bennett_frames(a, alpha, a * np.sin(beta) / np.sin(alpha), beta, theta)
    return hinge_loop([T[:3, 3] for T in frames], [T[:3, 2] for T in frames], "Bennett", unit)


def goldberg(alpha=0.6, beta=1.3, gamma=0.9, a=1.0, theta=1.1, unit=1.0):
    """Return Goldberg's linkage: two of Bennett's with a common link, which is taken out; 5 rows of rank 3."""
    one = bennett_frames(a, alpha, a * np.sin(beta) / np.sin(alpha), beta, theta)
    two = bennett_frames(a, alpha, a * np.sin(gamma) / np.sin(alpha), gamma, theta + 0.4)
    # the common link has the hinges P and Q: put the second linkage so that its first two hinges are these
    P, Q = one[0], one[1]
    common = _frame(P, Q) @ np.linalg.inv(_frame(two[0], two[1]))
    two = [common @ T for T in two]
    R, S, T, U = one[2], one[3], two[2], two[3]
    hinges = [S, R, T, U, P]
    return hinge_loop([F[:3, 3] for F in hinges], [F[:3, 2] for F in hinges], "Goldberg", unit)


def _frame(P, Q):
    """Return axes at the hinge P: z along it, x along the link to Q."""
    z = P[:3, 2]
    x = Q[:3, 3] - P[:3, 3]
    x = x / np.linalg.norm(x)
    F = np.eye(4)
    F[:3, :3], F[:3, 3] = np.column_stack([x, np.cross(z, x), z]), P[:3, 3]
    return F


def bricard(unit=1.0):
    """Return the six hinges along the edges of a cube: 5 rows of rank 4."""
    points = [[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]]
    axes = [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    return hinge_loop(points, axes, "Bricard", unit, (0, -9.81, 0))


def sarrus(angle=0.9, unit=1.0):
    """Return Sarrus' linkage: two chains of three parallel hinges, across each other; 5 rows of rank 4.

    The platform, link 2, goes straight up and down along z.
    """
    c, s = np.cos(angle), np.sin(angle)
    points = [[0, 0, 0], [c, 0, s], [0, 0, 2 * s], [-0.5, 0.5, 2 * s], [-0.5, 0.5 + c, s], [-0.5, 0.5, 0]]
    axes = [[0, 1, 0]] * 3 + [[1, 0, 0]] * 3
    return hinge_loop(points, axes, "Sarrus", unit)


SARRUS_WAY = np.array([-1.0, 2.0, -1.0, -1.0, 2.0])
"""How the angles of Sarrus' linkage change together."""


def parallelogram(kind="revolute", unit=1.0, angle=0.7, cranks=2):
    """Return cranks of one length under one coupler, closed by Point or Revolute loops; q with cranks at `angle`."""
    b = da.Builder("parallelogram", gravity=(0, -9.81 * unit, 0))
    inertia = (1e-3 * unit**2, unit**2 / 12, unit**2 / 12)
    for i in range(cranks):
        b.body(f"crank {i}", mass=1.0, center=(unit / 2, 0, 0), inertia=inertia)
        place = (2 * i * unit, 0, 0)
        b.joint(f"foot {i}", "revolute", parent="world", child=f"crank {i}", axis=(0, 0, 1), position=place)
    b.body("coupler", mass=2.0, center=(unit, 0, 0), inertia=inertia)
    b.joint("head", "revolute", parent="crank 0", child="coupler", axis=(0, 0, 1), position=(unit, 0, 0))
    loops = []
    for i in range(1, cranks):
        ends = {"placement": (2 * i * unit, 0, 0), "at": (unit, 0, 0), "name": f"loop {i}"}
        if kind == "revolute":
            loops.append(da.Revolute("coupler", f"crank {i}", axis=(0, 0, 1), **ends))
        else:
            loops.append(da.Point("coupler", f"crank {i}", **ends))
    m = b.build().constrain(*loops)
    q = np.zeros(m.nq)
    for i in range(cranks):
        q[m.index_q(f"foot {i}")] = angle
    q[m.index_q("head")] = -angle
    return m, q


def windows(count, kind="revolute", upright=False):
    """Return a row of square windows, bars of 1 m under couplers, and its upright start, a tip speed of 1 m/s; q, v.

    Where q = 0 all lie flat, in a configuration where rows of all windows depend on each other, or stand `upright`.
    """
    along, across = ((0, 1, 0), (1, 0, 0)) if upright else ((1, 0, 0), (1, 0, 0))
    b = da.Builder(f"{count} windows", gravity=(0, -9.81, 0))
    loops = []
    for i in range(count + 1):
        for name, way in ((f"bar {i}", along), (f"coupler {i}", across))[: 1 if i == count else 2]:
            moments = np.where(np.array(way) > 0, 1e-4, 1 / 12)
            b.body(name, mass=1.0, center=tuple(0.5 * np.array(way)), inertia=tuple(moments))
        b.joint(f"foot {i}", "revolute", parent="world", child=f"bar {i}", axis=(0, 0, 1), position=(i, 0, 0))
        if i < count:
            b.joint(f"head {i}", "revolute", f"bar {i}", f"coupler {i}", axis=(0, 0, 1), position=along)
            row = {"revolute": da.Revolute, "line": da.PointOnLine}[kind]
            ends = {"placement": across, "at": along, "axis": (0, 0, 1), "name": f"loop {i}"}
            loops.append(row(f"coupler {i}", f"bar {i + 1}", **ends))
    m = b.build().constrain(*loops)
    signs = np.array([1.0 if name.startswith("foot") else -1.0 for name in m.coordinates])
    return m, (0.0 if upright else np.pi / 2) * signs, -signs


def hinged_door(hinges, axis, places=(0.5, -0.7, 0.9)):
    """Return a leaf on a hinge of the tree alone, and with more hinges on the same line."""
    b = da.Builder("door", gravity=(0.3, -1.0, -9.81))
    b.body("leaf", mass=2.0, center=(0.1, 0.6, 0.05), inertia=(0.3, 0.2, 0.4))
    b.joint("hinge", "revolute", parent="world", child="leaf", axis=axis)
    line, tree = np.array(axis) / np.linalg.norm(axis), b.build()
    ends = [{"placement": tuple(x * line), "at": tuple(x * line), "name": f"at {x}"} for x in places[:hinges]]
    return tree, tree.constrain(*[da.Revolute("leaf", "world", axis=axis, **end) for end in ends])


def double_door(unit=1.0, tilt=0.4):
    """Return a free leaf on two hinges along one tilted axis: 10 rows of rank 5; q closed."""
    axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    b = da.Builder("double door", gravity=(0, 0, -9.81 * unit))
    b.body("leaf", mass=2.0, center=(0.0, 0.6 * unit, 0.0), inertia=(0.3 * unit**2, 0.2 * unit**2, 0.4 * unit**2))
    b.joint("air", "free", parent="world", child="leaf")
    hinges = [
        da.Revolute("leaf", "world", placement=tuple(h * axis * unit), at=tuple(h * axis * unit), axis=tuple(axis),
                    name=f"hinge {k}")
        for k, h in enumerate((-0.8, 0.9))
    ]  # fmt: skip
    m = b.build().constrain(*hinges)
    return m, m.neutral(), axis


# --- the oracle: plain NumPy and SciPy, a rank that is carried -----------------------------------------------------


def rows_in_mass_metric(m, q, r):
    """Return M = L L^T, L, A and the r largest singular triples of A L^-T."""
    M = np.atleast_2d(m.mass_matrix(q))
    L = np.linalg.cholesky(M)
    A = np.asarray(m.jacobian(q))
    U, s, Vt = np.linalg.svd(solve_triangular(L, A.T, lower=True).T, full_matrices=False)
    return M, L, A, U[:, :r], s[:r], Vt[:r]


def correction(L, U, s, Vt, y):
    """Return the least motion in the mass metric that takes y out of the kept rows."""
    return solve_triangular(L.T, Vt.T @ ((U.T @ y) / s), lower=False)


def acceleration(m, q, v, r):
    """Return the accelerations under no joint forces."""
    M, L, A, U, s, Vt = rows_in_mass_metric(m, q, r)
    free = np.linalg.solve(M, -np.asarray(m.bias(q, v)))
    return free - correction(L, U, s, Vt, A @ free + np.asarray(m.drift(q, v)))


def multipliers(m, q, v, r):
    """Return the least lam with M a + A^T lam = -bias."""
    M, L, _, U, s, Vt = rows_in_mass_metric(m, q, r)
    rest = -np.asarray(m.bias(q, v)) - M @ acceleration(m, q, v, r)
    return U @ ((Vt @ solve_triangular(L, rest, lower=True)) / s)


def admissible(m, q, v, r):
    """Return the state on the constraints."""
    for _ in range(8):
        _, L, _, U, s, Vt = rows_in_mass_metric(m, q, r)
        dq = -correction(L, U, s, Vt, np.asarray(m.constraint(q)))
        q = q + dq
        if np.abs(dq).max() < 1e-15:
            break
    _, L, A, U, s, Vt = rows_in_mass_metric(m, q, r)
    return q, v - correction(L, U, s, Vt, A @ v)


def crank_reference(angle, speed, duration):
    """Return angle and speed of the parallelogram's cranks: a pendulum, the coupler moves without turning."""
    inertia, weight = 2 * (1 / 12 + 1 / 4) + 2.0, 9.81 * (2 * 0.5 + 2.0)

    def rate(t, y):
        return [y[1], -weight * np.cos(y[0]) / inertia]

    found = solve_ivp(rate, (0.0, duration), [angle, speed], rtol=1e-13, atol=1e-13, method="DOP853")
    return found.y[:, -1]


def sarrus_reference(m, place, speed, duration):
    """Return place and speed of Sarrus' linkage along q = d (-1, 2, -1, -1, 2), through a singular place."""

    def rate(t, y):
        q = SARRUS_WAY * y[0]
        inertia = SARRUS_WAY @ np.atleast_2d(m.mass_matrix(q)) @ SARRUS_WAY
        return [y[1], -float(SARRUS_WAY @ np.asarray(m.bias(q, SARRUS_WAY * y[1]))) / inertia]

    return solve_ivp(rate, (0.0, duration), [place, speed], rtol=1e-13, atol=1e-13, method="DOP853").y[:, -1]


def door_reference(axis, speed, duration):
    """Return the speed of the double door about its axis: a pendulum about a tilted axis."""
    c = np.array([0.0, 0.6, 0.0])
    inertia = np.diag([0.3, 0.2, 0.4]) + 2.0 * (c @ c * np.eye(3) - np.outer(c, c))
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])

    def rate(t, y):
        R = np.eye(3) + np.sin(y[0]) * K + (1 - np.cos(y[0])) * K @ K
        return [y[1], axis @ np.cross(R @ c, [0, 0, -9.81 * 2.0]) / (axis @ inertia @ axis)]

    return solve_ivp(rate, (0.0, duration), [0.0, speed], rtol=1e-13, atol=1e-13, method="DOP853").y[1, -1]


def reference(m, q, v, duration, r, tolerance=1e-13):
    """Return q, v at the end, by SciPy's DOP853 with a projection after every step; joints of angles and lengths."""
    n = m.nq

    def rate(t, y):
        return np.r_[y[n:], acceleration(m, y[:n], y[n:], r)]

    solver = DOP853(rate, 0.0, np.concatenate(admissible(m, q, v, r)), duration, rtol=tolerance, atol=tolerance)
    while solver.status == "running":
        solver.step()
        solver.y = np.concatenate(admissible(m, solver.y[:n], solver.y[n:], r))
        solver.f = rate(solver.t, solver.y)
    return solver.y[:n], solver.y[n:]

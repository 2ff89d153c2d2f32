"""Published multibody problems as mechanisms: IFToMM's library of computational benchmark problems and others."""

from __future__ import annotations

import numpy as np

import dalembert as da


def pendulum():
    """Return A01: a point of 1 kg on a massless rod of 1 m; q = 0 is along x, gravity along -y."""
    b = da.Builder("pendulum", gravity=(0, -9.81, 0))
    b.body("bob", mass=1.0, center=(1, 0, 0))
    b.joint("hinge", "revolute", parent="world", child="bob", axis=(0, 0, 1))
    return b.build()


def n_four_bar(windows=2):
    """Return A02: upright rods of 1 kg and 1 m with horizontal couplers; q0, v0 with a tip speed of 1 m/s."""
    b = da.Builder("N four-bar", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "center": (0.5, 0, 0), "inertia": (1e-4, 1 / 12, 1 / 12)}
    loops, q, v = [], [], []
    for i in range(windows + 1):
        b.body(f"bar {i}", **rod)
        b.joint(f"foot {i}", "revolute", parent="world", child=f"bar {i}", axis=(0, 0, 1), position=(i, 0, 0))
        b.frame(f"tip {i}", f"bar {i}", position=(1, 0, 0))
        q.append(np.pi / 2)
        v.append(-1.0)
        if i < windows:
            b.body(f"coupler {i}", **rod)
            b.joint(
                f"head {i}", "revolute", parent=f"bar {i}", child=f"coupler {i}", axis=(0, 0, 1), position=(1, 0, 0)
            )
            loops.append(da.PointOnLine(f"coupler {i}", f"tip {i + 1}", placement=(1, 0, 0), axis=(0, 0, 1)))
            q.append(-np.pi / 2)
            v.append(1.0)
    m = b.build().constrain(*loops)
    start, speed = np.zeros(m.nq), np.zeros(m.nv)
    for i in range(windows + 1):
        start[m.index_q(f"foot {i}")], speed[m.index_v(f"foot {i}")] = np.pi / 2, -1.0
        if i < windows:
            start[m.index_q(f"head {i}")], speed[m.index_v(f"head {i}")] = -np.pi / 2, 1.0
    return m, start, speed


def bricard():
    """Return A04: five rods and six hinges in space; 5 rows close the loop, one of them redundant."""
    points = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float)
    axes = "yzxyzx"
    unit = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
    b = da.Builder("Bricard", gravity=(0, -9.81, 0))
    for i in range(5):
        along = points[i + 1] - points[i]
        moments = np.where(np.abs(along) > 0.5, 0.02, 1.01) / 12
        b.body(f"rod {i}", mass=1.0, center=along / 2, inertia=tuple(moments))
        place = (0, 0, 0) if i == 0 else points[i] - points[i - 1]
        b.joint(f"hinge {i}", "revolute", parent="world" if i == 0 else f"rod {i - 1}", child=f"rod {i}",
                axis=unit[axes[i]], position=tuple(place))  # fmt: skip
    b.frame("P3", "rod 2", position=tuple(points[3] - points[2]))
    tree = b.build()
    return tree.constrain(
        da.Revolute(
            "rod 4",
            "world",
            placement=tuple(points[5] - points[4]),
            at=tuple(points[5]),
            axis=unit[axes[5]],
            name="last",
        )
    )


def crank_rocker():
    """Return a four-bar whose crank (0.5 m) turns round and round; q0 closed, v0 with the crank at 4 rad/s."""
    b = da.Builder("crank-rocker", gravity=(0, -9.81, 0))
    lengths = {"crank": 0.5, "coupler": 2.0, "rocker": 1.5}
    for name, length in lengths.items():
        b.body(name, mass=length, center=(length / 2, 0, 0), inertia=(1e-4, length**3 / 12, length**3 / 12))
        b.frame(f"{name} end", name, position=(length, 0, 0))
    b.joint("drive", "revolute", parent="world", child="crank", axis=(0, 0, 1))
    b.joint("knee", "revolute", parent="crank", child="coupler", axis=(0, 0, 1), position=(0.5, 0, 0))
    b.joint("pivot", "revolute", parent="world", child="rocker", axis=(0, 0, 1), position=(2.0, 0, 0))
    m = b.build().constrain(da.PointOnLine("coupler end", "rocker end", axis=(0, 0, 1), name="loop"))
    q = m.project(np.array([0.3, 0.4, 1.8]))
    return m, q, m.project(q, np.array([4.0, 0.0, 0.0]))[1]


def andrews():
    """Return Andrews' squeezing mechanism, seven bodies in the plane, and its start at rest; torque 0.033 N m on K1.

    Data: E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", sec. VII.7; test set for IVP solvers,
    Bari. No gravity: a centre of mass on a body that turns about a fixed point matters by its distance alone.
    """
    b = da.Builder("Andrews", gravity=(0, 0, 0))
    e, ea, zf, fa, zt, u, d, rr = 0.02, 0.01421, 0.02, 0.01421, 0.04, 0.04, 0.028, 0.007
    bodies = {
        "K1": ("world", (0, 0), 0.04325, (0.00092, 0), 2.194e-6),
        "K2": ("K1", (rr, 0), 0.00365, (-0.0115, 0), 4.410e-7),
        "K3": ("world", (-0.03635, 0.03273), 0.02373, (0.01043, -0.01874), 5.255e-6),
        "K5": ("world", (-0.06934, -0.00227), 0.07050, (0.02308, 0.00916), 1.169e-5),
        "K4": ("K5", (zt, 0), 0.00706, (0, ea - e), 5.667e-7),
        "K7": ("world", (-0.06934, -0.00227), 0.05498, (-0.00449, -0.01228), 1.912e-5),
        "K6": ("K7", (0, -u), 0.00706, (zf - fa, 0), 5.667e-7),
    }
    for name, (parent, place, mass, center, moment) in bodies.items():
        b.body(name, mass=mass, center=(*center, 0), inertia=(moment / 2, moment / 2, moment))
        b.joint(f"to {name}", "revolute", parent=parent, child=name, axis=(0, 0, 1), position=(*place, 0))
    b.frame("D", "K3", position=(0.02, -0.018, 0))
    b.frame("C", "world", position=(0.014, 0.072, 0))
    b.spring("spring", "C", "D", stiffness=4530.0, rest=0.07785)
    tips = {"K3": (0, -0.035, 0), "K4": (0, -e, 0), "K6": (zf, 0, 0)}
    loops = [da.PointOnLine("K2", name, placement=(-d, 0, 0), at=tip, axis=(0, 0, 1)) for name, tip in tips.items()]
    m = b.build().constrain(*loops)
    start = {
        "K1": -0.0617138900142764496, "K2": 0.0, "K3": 0.455279819163070380, "K4": 0.222668390165885885,
        "K5": 0.487364979543842550, "K6": -0.222668390165885885, "K7": 1.23054744454982119,
    }  # fmt: skip
    q = np.zeros(m.nq)
    for name, angle in start.items():
        q[m.index_q(f"to {name}")] = angle
    return m, q, {"to K1": 0.033}


ANDREWS = {
    "K1": 15.810771195153707097, "K2": -15.756371058411839470, "K3": 0.040822240119645804858,
    "K4": -0.53473011634207959377, "K5": 0.52440996587995406937, "K6": 0.53473011634207959377,
    "K7": 1.0480807410419378731,
}  # fmt: skip
"""Angles at 0.03 s, converged in 130-bit arithmetic; the published vector agrees with them to 10 digits."""


def governor():
    """Return A05, the stiff flyball governor, and its start: rods at 30 degrees, the shaft at 2 pi rad/s.

    Shaft and rods 1 x 0.01 x 0.01 m, slider 0.1 m wide, 3000 kg/m^3; 5 kg at the end of each rod; springs with dampers
    (8e5 N/m, 4e4 N s/m, 0.5 m) from the middle of the rods to the slider. Source: M. Gonzalez, D. Dopico, U. Lugris,
    J. Cuadrado, "A benchmarking system for MBS simulation software", Multibody System Dynamics 16 (2006) 179-190.
    """
    b = da.Builder("flyball governor")
    rod, slider, ball, thin = 0.3, 3.0, 5.0, 0.01
    b.body("shaft", mass=rod, center=(0, 0, 0.5), inertia=(*[rod * (1 + thin**2) / 12] * 2, rod * thin**2 / 6))
    b.joint("turn", "revolute", parent="world", child="shaft", axis=(0, 0, 1))
    b.body("slider", mass=slider, inertia=[slider * 0.01 / 6] * 3)
    b.joint("s", "prismatic", parent="shaft", child="slider", axis=(0, 0, 1))
    mass = rod + ball
    center = (rod * 0.5 + ball) / mass
    across = rod * (1 + thin**2) / 12 + rod * (center - 0.5) ** 2 + ball * (1 - center) ** 2
    for k, side in enumerate((1, -1)):
        b.body(f"rod {k}", mass=mass, center=(side * center, 0, 0), inertia=(rod * thin**2 / 6, across, across))
        b.joint(f"hinge {k}", "revolute", parent="shaft", child=f"rod {k}", axis=(0, side, 0),
                position=(side * 0.05, 0, 1))  # fmt: skip
        b.frame(f"middle {k}", f"rod {k}", position=(side * 0.5, 0, 0))
        b.frame(f"eye {k}", "slider", position=(side * 0.05, 0, 0))
        b.spring(f"coupler {k}", f"eye {k}", f"middle {k}", stiffness=8e5, rest=0.5, damping=4e4)
    m = b.build()
    q, v = np.zeros(m.nq), np.zeros(m.nv)
    q[m.index_q("s")], q[m.index_q("hinge 0")], q[m.index_q("hinge 1")] = 0.5, np.pi / 6, np.pi / 6
    v[m.index_v("turn")] = 2 * np.pi
    return m, q, v


GOVERNOR = {"turn": 55.93540990910, "angle": 0.39007370184463, "s": 0.61962291706138}
"""At 10 s, from equations in (turn, angle, s) written down by hand (`test_published.py`), DOP853 at 1e-13."""


def redundant_slider_crank():
    """Return SUNDIALS' slider-crank with hinges in space: 5 rows close the loop, of which 2 are independent.

    Crank of 0.5 m, rod of 2 m with its centre on the slider; spring with damper (1 N/m, 1 N s/m, 1 m) between the
    middle of the crank and of the near half of the rod; 1 N along x on the far end of the rod. Source:
    SUNDIALS, examples/ida/serial/idaSlCrank_dns.c.
    """
    import casadi as ca

    b = da.Builder("slider-crank", gravity=(0, 0, 0))
    b.body("crank", mass=1.0, inertia=(1.0, 1.0, 1.0))
    b.body("slider", mass=0.5, inertia=(0.1, 0.1, 0.1))
    b.body("rod", mass=0.5, inertia=(2.0, 2.0, 2.0))
    b.joint("q", "revolute", parent="world", child="crank", axis=(0, 0, 1))
    b.joint("x", "prismatic", parent="world", child="slider", axis=(1, 0, 0))
    b.joint("p", "revolute", parent="slider", child="rod", axis=(0, 0, 1))
    b.frame("crank middle", "crank", position=(0.25, 0, 0))
    b.frame("rod quarter", "rod", position=(-0.5, 0, 0))
    b.spring("spring", "crank middle", "rod quarter", stiffness=1.0, rest=1.0, damping=1.0)
    m = b.build().constrain(
        da.Revolute("crank", "rod", placement=(0.5, 0, 0), at=(-1.0, 0, 0), axis=(0, 0, 1), name="pin")
    )
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    place = {name: m.index_v(name).start for name in ("x", "p")}
    forces = [ca.SX(0)] * 3
    forces[place["x"]], forces[place["p"]] = ca.SX(1), -ca.sin(q[place["p"]])
    start = np.zeros(3)
    p = np.arcsin(-0.5)
    start[m.index_q("q")], start[place["x"]], start[place["p"]] = np.pi / 2, np.cos(p), p
    return m, start, ca.Function("push", [t, q, v], [ca.vertcat(*forces)])


SLIDER_CRANK = {"q": 1.27567584865023941071, "x": 1.02357855897983950360, "p": -0.49881304918249874929}
"""At 10 s, converged; the published values agree with them in all their five digits."""

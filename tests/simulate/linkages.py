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

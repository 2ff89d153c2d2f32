"""Runs as recordings of Rerun: the file is written, and holds every body and coordinate."""

from __future__ import annotations

import pytest

import dalembert as da
from tests.bridges.models import four_bar

pytest.importorskip("rerun")


def test_recording_names_bodies_and_coordinates(tmp_path):
    m = four_bar()
    run = da.simulate(m, 0.1, m.assemble([1.0, -0.7, -1.5]).q, every=0.05)
    data = run.to_rerun(tmp_path / "run.rrd").read_bytes()
    assert data.startswith(b"RRF2")
    for name in ("world/crank", "world/rocker", "q/crank_hinge", "v/rocker_hinge"):
        assert name.encode() in data, name


def test_every_shape_of_a_body_is_there(tmp_path):
    """Two boxes of one body are two entities; rods and capsules are drawn, too."""
    shapes = ['box size="1 2 3"', 'box size="4 5 6"', 'cylinder radius="0.1" length="2"', 'sphere radius="0.3"']
    visuals = "".join(f"<visual><geometry><{shape}/></geometry></visual>" for shape in shapes)
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "rod.urdf").write_text(
        f'<robot name="rod"><link name="base"/><link name="rod">{inertia}{visuals}</link><joint name="hinge" '
        'type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/><limit lower="-3" upper="3" '
        'effort="1" velocity="1"/></joint></robot>'
    )
    m = da.load(tmp_path / "rod.urdf")
    data = da.simulate(m, 0.1, every=0.05).to_rerun(tmp_path / "run.rrd").read_bytes()
    for name in ("box_0", "box_1", "cylinder_2", "sphere_3"):
        assert f"world/rod/{name}".encode() in data, name

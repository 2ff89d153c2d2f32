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

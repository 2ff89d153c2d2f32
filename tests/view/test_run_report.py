"""Reports of runs: every section that a run has something for, nothing fetched, names escaped, checks that can fail."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import dalembert as da
from dalembert.view import run_report
from dalembert.view.run_report import run_checks, unique_rows


@pytest.fixture(scope="module")
def bounce():
    return da.scene("bouncing_ball").run(duration=0.6)


def test_the_page_has_every_section_and_fetches_nothing(bounce, tmp_path):
    page = bounce.report(tmp_path / "ball.html", "A ball", command="dalembert simulate bouncing_ball").read_text()
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    assert heads == [
        "What was simulated", "How it moved", "Energy and residuals", "Loads of joints",
        "Reactions of constraints, forces of contacts", "Events", "Certificate", "How to reproduce it",
    ]  # fmt: skip
    assert page.count('<iframe sandbox="allow-scripts"') == 1
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "all checks hold" in page
    assert "dalembert simulate bouncing_ball" in page


def test_names_are_escaped(tmp_path):
    b = da.Builder("<script>alert(1)</script>")
    b.body("rod", mass=1.0, center=(0, 0, -0.5), inertia=(1 / 12, 1 / 12, 0))
    b.joint("</td><b>hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    page = da.simulate(b.build(), 0.2, [0.5]).report(tmp_path / "page.html").read_text()
    assert "<script>alert(1)" not in page
    assert "</td><b>hinge" not in page


def test_checks_fail_where_a_run_is_off(bounce):
    assert all(good for _, _, good in run_checks(bounce))
    off = replace(bounce, samples={**bounce.samples, "v": bounce.v * 1.01})
    assert "energy balance" in [name for name, _, good in run_checks(off) if not good]
    stopped = replace(bounce, status="no solution")
    assert "end reached" in [name for name, _, good in run_checks(stopped) if not good]
    assert '<p class="bad">' in "".join(run_report(stopped)._parts)


def test_reactions_are_unique_where_the_constraints_determine_them():
    run = da.scene("door").run(duration=0.1)
    rows = dict(zip(run.moving.names, unique_rows(run), strict=True))
    assert rows == {name: name == "low z" for name in run.moving.names}


def test_systems_without_bodies_have_a_report_too(tmp_path):
    run = da.simulate(da.examples.two_blocks(), 3.0, [0.0, 0.0], [0.3, 0.3])
    page = run.report(tmp_path / "belt.html").read_text()
    assert "Matrices: q1, q2" in page
    assert "<iframe" not in page
    assert "belt 1" in page
    assert np.isfinite(run.energy.total).all()

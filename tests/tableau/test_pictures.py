"""Pictures: every member of a set that does not fit is marked; matrices have names, written or to hover over."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import casadi as ca
import numpy as np
import pytest
import scipy.sparse as sp

from dalembert.errors import ModelError
from dalembert.tableau import Tableau, make_plan, structure
from dalembert.tableau.structure.pictures import (
    ACCENT,
    HOVERED,
    INK,
    LACK,
    LARGEST_GRAPH,
    LARGEST_MATRIX,
    NAMED,
    cut,
    structure_picture,
)

SVG = "{http://www.w3.org/2000/svg}"
x, y, z, v, w = (ca.SX.sym(name) for name in "xyzvw")
MISFIT = Tableau(
    {"start": x - 1, "middle": x * y - 2, "end": x + y - 3, "fits <&>": z - 1, "shared": v + w}, [x, y, z, v, w]
)


def words(picture: str) -> dict[str | None, str]:
    """Return every text of a picture with its colour."""
    return {node.text: node.attrib["fill"] for node in ET.fromstring(picture).iter(f"{SVG}text")}


def test_every_member_of_a_misfit_is_marked():
    colours = words(MISFIT.picture("graph"))
    assert {colours[name] for name in ("start", "middle", "end", "x", "y")} == {ACCENT}
    assert {colours[name] for name in ("shared", "v", "w")} == {LACK}
    assert {colours[name] for name in ("fits <&>", "z")} == {INK}
    assert "too many equations" in colours


def test_a_misfit_has_a_matrix_in_its_parts():
    root = ET.fromstring(MISFIT.picture("matrix"))
    marks = {
        group.attrib["fill"]: [rect.find(f"{SVG}title").text for rect in group.iter(f"{SVG}rect")]
        for group in root.iter(f"{SVG}g")
        if group.attrib.get("fill") in (ACCENT, LACK)
    }
    assert sorted(marks[ACCENT]) == ["end, x", "end, y", "middle, x", "middle, y", "start, x"]
    assert sorted(marks[LACK]) == ["shared, v", "shared, w"]
    assert structure_picture(structure(np.ones((3, 500))), "matrix").startswith("<svg")


@pytest.mark.parametrize("n", [1, NAMED, NAMED + 1])
def test_small_matrices_have_their_names_written_large_ones_to_hover_over(n):
    plan = make_plan(sp.eye_array(n), equations=[f"row {k}" for k in range(n)], unknowns=[f"col {k}" for k in range(n)])
    written = words(plan.picture())
    assert ("row 0" in written, f"col {n - 1}" in written) == (n <= NAMED, n <= NAMED)
    titles = [node.text for node in ET.fromstring(plan.picture()).iter(f"{SVG}title")]
    assert titles.count(f"row {n - 1}, col {n - 1}") == 2


def test_pictures_stay_small_and_names_short():
    n = HOVERED + 1
    assert n > LARGEST_MATRIX
    dense = structure_picture(structure(np.ones((80, 90))), "matrix")
    assert "<title>" not in dense
    long = "a name that goes on and on and on and on"
    picture = Tableau({long: x - 1}, [x]).picture()
    assert cut(long) in words(picture)
    assert f"<title>{long}</title>" in picture


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ModelError, match="Draw the matrix"):
        structure_picture(structure(np.eye(LARGEST_GRAPH + 1)), "graph")
    with pytest.raises(ModelError, match="do not fit a picture"):
        structure_picture(structure(sp.eye_array(LARGEST_MATRIX + 1)), "matrix")

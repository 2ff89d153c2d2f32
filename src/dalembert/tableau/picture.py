"""Pictures of plans and structures as SVG text: the matrix (seed 003, Figs. 3, 7, 8) or the graph (Figs. 5, 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ModelError
from dalembert.tableau.graph_picture import graph_svg
from dalembert.tableau.matching import Matching
from dalembert.tableau.matrix_picture import matrix_svg, misfit_svg
from dalembert.tableau.solvability import Structure

if TYPE_CHECKING:
    from dalembert.tableau.plan import Plan

KINDS = ("matrix", "graph")
"""What can be drawn."""


def picture(plan: Plan, kind: str) -> str:
    """Return the SVG of a plan."""
    if checked_kind(kind) == "matrix":
        return matrix_svg(plan)
    row_of_col, col_of_row = np.empty(plan.n, np.int64), np.empty(plan.n, np.int64)
    row_of_col[plan.cols] = plan.rows
    col_of_row[plan.rows] = plan.cols
    return graph_svg(Structure(Matching(plan.pattern, col_of_row, row_of_col)))


def structure_picture(found: Structure, kind: str) -> str:
    """Return the SVG of a structure: its graph, or its matrix, in solving order where there is one."""
    from dalembert.tableau.plan import make_plan

    if checked_kind(kind) == "graph":
        return graph_svg(found)
    if not found.solvable:
        return misfit_svg(found)
    pairs = [(i, int(j)) for i, j in enumerate(found.matching.col_of_row)]
    return matrix_svg(make_plan(found.pattern, preferred=pairs))


def checked_kind(kind: object) -> str:
    """Return what is to be drawn, or say what can be."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"kind {kind!r} is not one of {', '.join(map(repr, KINDS))}")
    return kind

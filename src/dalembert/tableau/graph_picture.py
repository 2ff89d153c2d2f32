"""The directed bipartite graph of equations and unknowns, with its matching (seed 003, Figs. 5, 6); misfits marked."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dalembert.errors import ModelError
from dalembert.tableau.decomposition import blocks
from dalembert.tableau.svg import ACCENT, HEAD, INK, LACK, MARGIN, PAPER, QUIET, document, label, legend, text, width_of

if TYPE_CHECKING:
    from dalembert.tableau.matching import Matching
    from dalembert.tableau.solvability import Structure

Array = np.ndarray

LARGEST = 150
"""Larger graphs cannot be read."""

STEP = 24
"""Pixels from one name to the next."""


def graph_svg(found: Structure) -> str:
    """Draw inputs as thin arcs, outputs (the matching) broken, as in Fig. 6; sets that do not fit are coloured."""
    pattern, matching = found.pattern, found.matching
    rows, cols = pattern.shape
    if max(rows, cols) > LARGEST:
        raise ModelError(f"a graph of {rows} equations cannot be read; at most {LARGEST}. Draw the matrix")
    widths = [max(width_of(names, 12) + 20, 70) for names in (pattern.unknowns, pattern.equations)]
    left, top = widths[0] + MARGIN, HEAD + 16
    right = left + max(260, 5 * max(rows, cols))
    order = _reading_order(matching)
    y_row = {i: top + STEP * k for k, i in enumerate(order[0])}
    y_col = {j: top + STEP * k for k, j in enumerate(order[1])}
    arcs = "".join(
        _arc(left, y_col[j], right, y_row[i], bool(matching.col_of_row[i] == j))
        for i, j in zip(pattern.rows.tolist(), pattern.indices.tolist(), strict=True)
    )
    colours = _colours(found)
    unknowns = (
        _node(left, y_col[j], name, "end", -12, colours[1].get(name)) for j, name in enumerate(pattern.unknowns)
    )
    equations = (
        _node(right, y_row[i], name, "start", 12, colours[0].get(name)) for i, name in enumerate(pattern.equations)
    )
    heads = text(left, HEAD - 14, "unknowns", 13, "end") + text(right, HEAD - 14, "equations", 13)
    width = max(right + widths[1] + MARGIN, 420)
    height = top + STEP * max(rows, cols) + MARGIN + (0 if found.solvable else STEP)
    note = text(MARGIN, height - 8, "broken: output of an equation (matching); thin: input", 11, colour=QUIET)
    marks = "" if found.solvable else legend(height - 8 - STEP, (("too many equations", ACCENT), ("too few", LACK)))
    return document(width, height, "".join((arcs, *unknowns, *equations, heads, note, marks)))


def _colours(found: Structure) -> tuple[dict[str, str], dict[str, str]]:
    """Return the colours of equations and of unknowns that belong to sets that do not fit."""
    equations: dict[str, str] = {}
    unknowns: dict[str, str] = {}
    for sets, colour in ((found.under_determined, LACK), (found.over_determined, ACCENT)):
        for misfit in sets:
            equations |= dict.fromkeys(misfit.equations, colour)
            unknowns |= dict.fromkeys(misfit.unknowns, colour)
    return equations, unknowns


def _reading_order(matching: Matching) -> tuple[list[int], list[int]]:
    """Return equations in solving order where there is one, each beside its unknown; the unmatched last."""
    rows = blocks(matching).rows.tolist()
    rows += [i for i in range(matching.pattern.shape[0]) if i not in set(rows)]
    rows.sort(key=lambda i: matching.col_of_row[i] < 0)
    cols = [int(matching.col_of_row[i]) for i in rows if matching.col_of_row[i] >= 0]
    return rows, cols + [j for j in range(matching.pattern.shape[1]) if j not in set(cols)]


def _arc(x1: float, y1: float, x2: float, y2: float, output: bool) -> str:
    """Return one arc between an unknown at (x1, y1) and an equation at (x2, y2), with its arrow."""
    if output:
        style = f'stroke="{ACCENT}" stroke-width="2" stroke-dasharray="6 4" marker-end="url(#out)"'
        return f'<line x1="{x2 - 6}" y1="{y2}" x2="{x1 + 8}" y2="{y1}" {style}/>'
    style = f'stroke="{QUIET}" stroke-width="1" stroke-opacity="0.7" marker-end="url(#in)"'
    return f'<line x1="{x1 + 6}" y1="{y1}" x2="{x2 - 8}" y2="{y2}" {style}/>'


def _node(x: float, y: float, name: str, anchor: str, shift: int, misfit: str | None) -> str:
    """Return a vertex with its name; one of a set that does not fit is filled."""
    circle = f'<circle cx="{x}" cy="{y}" r="5" fill="{misfit or PAPER}" stroke="{misfit or INK}" stroke-width="1.5">'
    return f"{circle}<title>{escape(name)}</title></circle>" + label(
        x + shift, y + 4, name, 12, anchor=anchor, colour=misfit or INK
    )

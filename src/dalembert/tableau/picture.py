"""Pictures as SVG text: the matrix before and after ordering (seed 003, Figs. 3, 7, 8), the graph (Figs. 5, 6)."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from dalembert.errors import ModelError

if TYPE_CHECKING:
    from dalembert.tableau.matching import Matching
    from dalembert.tableau.plan import Plan

Array = np.ndarray

INK, ACCENT, SECOND, QUIET, PAPER = "#1f2a36", "#c4472b", "#2a6f97", "#9aa5b1", "#ffffff"
"""Text; pivots and outputs; entries; fill, inputs and lines; background."""

PANEL, MARGIN, HEAD = 420, 24, 46
"""Width of a matrix, space around it, and space for its heading, in pixels."""

LEAST_MARK = 1.3
"""Pixels of a mark: in large systems marks overlap rather than fade."""

LARGEST_MATRIX, LARGEST_GRAPH = 4000, 150
"""Systems above these sizes make pictures that nobody can read."""


def picture(plan: Plan, kind: str) -> str:
    """Return the SVG of a plan: "matrix" or "graph"."""
    if kind == "matrix":
        return matrix_svg(plan)
    if kind == "graph":
        from dalembert.tableau.matching import Matching

        row_of_col = np.empty(plan.n, np.int64)
        row_of_col[plan.cols] = plan.rows
        col_of_row = np.empty(plan.n, np.int64)
        col_of_row[plan.rows] = plan.cols
        return graph_svg(Matching(plan.pattern, col_of_row, row_of_col))
    raise ModelError(f"kind {kind!r} is not 'matrix' or 'graph'")


def matrix_svg(plan: Plan) -> str:
    """Draw A as given, and in solving order with blocks and fill."""
    if plan.n > LARGEST_MATRIX:
        raise ModelError(f"{plan.n} equations do not fit a picture; at most {LARGEST_MATRIX}")
    cell = PANEL / max(plan.n, 1)
    row, col, _ = plan.places
    before = _cells(plan.pattern.rows, plan.pattern.indices, cell, SECOND)
    filled = _fill(plan, row, col)
    blocks = "".join(
        f'<rect x="{a * cell:.2f}" y="{a * cell:.2f}" width="{(b - a) * cell:.2f}" height="{(b - a) * cell:.2f}"/>'
        for a, b in zip(plan.begins[:-1], plan.begins[1:], strict=True)
        if b - a > 1
    )
    k = np.arange(plan.n)
    after = (
        _cells(filled[:, 0], filled[:, 1], cell, QUIET)
        + _cells(row, col, cell, SECOND)
        + _cells(k, k, cell, ACCENT)
        + f'<g fill="none" stroke="{INK}" stroke-width="0.8">{blocks}</g>'
    )
    left = _panel(MARGIN, f"as given: {plan.n} equations, {plan.pattern.entries} entries", before)
    text = f"in solving order: {len(plan.begins) - 1} blocks, {plan.fill} fill"
    right = _panel(2 * MARGIN + PANEL, text, after)
    width, height = 2 * PANEL + 3 * MARGIN, PANEL + HEAD + 2 * MARGIN
    legend = _legend(height - 14, (("pivot", ACCENT), ("entry", SECOND), ("fill", QUIET)))
    return _document(width, height, left + right + legend)


def _fill(plan: Plan, row: Int[Array, " e"], col: Int[Array, " e"]) -> Int[Array, "fill 2"]:
    """Return places of L and U that A does not have."""
    k = np.arange(plan.n)
    low = np.repeat(k, np.diff(plan.lower_indptr)) * plan.n + plan.lower
    up = np.repeat(k, np.diff(plan.upper_indptr)) * plan.n + plan.upper
    keys = np.setdiff1d(np.concatenate([low, up, k * plan.n + k]), row * plan.n + col)
    return np.column_stack([keys // plan.n, keys % plan.n]) if plan.n else np.empty((0, 2), np.int64)


def _cells(rows: Array, cols: Array, cell: float, colour: str) -> str:
    """Return one path of squares."""
    size = max(cell * 0.92, LEAST_MARK)
    squares = "".join(
        f"M{j * cell:.2f} {i * cell:.2f}h{size:.2f}v{size:.2f}h-{size:.2f}z"
        for i, j in zip(rows.tolist(), cols.tolist(), strict=True)
    )
    return f'<path fill="{colour}" d="{squares}"/>' if squares else ""


def _panel(x: float, heading: str, body: str) -> str:
    """Return a framed matrix with its heading."""
    frame = f'<rect width="{PANEL}" height="{PANEL}" fill="none" stroke="{QUIET}" stroke-width="1"/>'
    return (
        f'<text x="{x}" y="{HEAD - 14}" font-size="13" fill="{INK}">{escape(heading)}</text>'
        f'<g transform="translate({x},{HEAD})">{frame}{body}</g>'
    )


def _legend(y: float, entries: tuple[tuple[str, str], ...]) -> str:
    """Return coloured squares with words."""
    return "".join(
        f'<rect x="{MARGIN + 90 * k}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
        f'<text x="{MARGIN + 90 * k + 15}" y="{y}" font-size="12" fill="{INK}">{word}</text>'
        for k, (word, colour) in enumerate(entries)
    )


def graph_svg(matching: Matching) -> str:
    """Draw equations and unknowns: inputs as thin arcs, outputs (the matching) broken, as in Fig. 6; misfits marked."""
    pattern = matching.pattern
    rows, cols = pattern.shape
    if max(rows, cols) > LARGEST_GRAPH:
        raise ModelError(f"a graph of {rows} equations cannot be read; at most {LARGEST_GRAPH}. Draw the matrix")
    step, top = 24, HEAD + 16
    widths = [
        max(7.2 * max((len(name) for name in names), default=1) + 20, 70)
        for names in (pattern.unknowns, pattern.equations)
    ]
    left, right = widths[0] + MARGIN, widths[0] + MARGIN + max(260, 5 * max(rows, cols))
    order = _reading_order(matching)
    y_row = {i: top + step * k for k, i in enumerate(order[0])}
    y_col = {j: top + step * k for k, j in enumerate(order[1])}
    arcs = "".join(
        _arc(left, y_col[j], right, y_row[i], bool(matching.col_of_row[i] == j))
        for i, j in zip(pattern.rows.tolist(), pattern.indices.tolist(), strict=True)
    )
    nodes = "".join(
        _node(left, y_col[j], pattern.unknowns[j], "end", -12, bool(matching.row_of_col[j] < 0)) for j in range(cols)
    ) + "".join(
        _node(right, y_row[i], pattern.equations[i], "start", 12, bool(matching.col_of_row[i] < 0)) for i in range(rows)
    )
    heads = (
        f'<text x="{left}" y="{HEAD - 14}" font-size="13" text-anchor="end" fill="{INK}">unknowns</text>'
        f'<text x="{right}" y="{HEAD - 14}" font-size="13" fill="{INK}">equations</text>'
    )
    width, height = right + widths[1] + MARGIN, top + step * max(rows, cols) + MARGIN
    note = "broken: output of an equation (matching); thin: input"
    foot = f'<text x="{MARGIN}" y="{height - 8}" font-size="11" fill="{QUIET}">{note}</text>'
    return _document(width, height, arcs + nodes + heads + foot)


def _reading_order(matching: Matching) -> tuple[list[int], list[int]]:
    """Return equations in solving order where there is one, each beside its unknown; the unmatched last."""
    from dalembert.tableau.decomposition import blocks

    solved = blocks(matching)
    rows = solved.rows.tolist()
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


def _node(x: float, y: float, name: str, anchor: str, shift: int, alone: bool) -> str:
    """Return a vertex with its name; one without a partner is filled."""
    colour, fill = (ACCENT, ACCENT) if alone else (INK, PAPER)
    return (
        f'<circle cx="{x}" cy="{y}" r="5" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'
        f'<text x="{x + shift}" y="{y + 4}" font-size="12" text-anchor="{anchor}" fill="{colour}">{escape(name)}</text>'
    )


def _document(width: float, height: float, body: str) -> str:
    """Return a complete SVG."""
    markers = "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        for name, colour in (("in", QUIET), ("out", ACCENT))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif"><defs>{markers}</defs>'
        f'<rect width="100%" height="100%" fill="{PAPER}"/>{body}</svg>'
    )

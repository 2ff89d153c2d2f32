"""Pictures of matrices and graphs as SVG (seed 003, Figs. 3, 5 to 8)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.tableau.structure.matching import Matching, blocks, parts
from dalembert.tableau.structure.solvability import Structure
from dalembert.types import Array

if TYPE_CHECKING:
    from jaxtyping import Int

    from dalembert.tableau.elimination.plan import Plan

# ----------------------------------------------------------------------------------------------------------------------
# The pieces that pictures are made of, as SVG text: colours, document, legend, words and names.


INK, ACCENT, SECOND, QUIET, PAPER = "#1f2a36", "#c4472b", "#2a6f97", "#9aa5b1", "#ffffff"
"""Text; pivots, outputs and what is too many; entries; fill, inputs and lines; background."""

LACK = "#8a5a00"
"""What has too few equations."""

MARGIN, HEAD = 24, 46
"""Space around a picture, and for headings, in pixels."""

LETTER = 0.58
"""Width of a letter over the size of its font, on average."""


def document(width: float, height: float, body: str) -> str:
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


def legend(y: float, entries: Iterable[tuple[str, str]]) -> str:
    """Return coloured squares with words, side by side."""
    parts, x = [], float(MARGIN)
    for entry, colour in entries:
        parts.append(
            f'<rect x="{x:.1f}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="{x + 15:.1f}" y="{y}" font-size="12" fill="{INK}">{escape(entry)}</text>'
        )
        x += 15 + 12 * LETTER * len(entry) + 24
    return "".join(parts)


def text(x: float, y: float, words: str, size: float, anchor: str = "start", colour: str = INK, turn: int = 0) -> str:
    """Return words at a place, turned by degrees."""
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}"{turned}'
    return f"<text {place}>{escape(words)}</text>"


def label(x: float, y: float, name: str, size: float, **style: Any) -> str:
    """Return a name at a place; a long one is cut, and whole where one hovers over it."""
    whole = f"<title>{escape(name)}</title>" if cut(name) != name else ""
    return f"<g>{whole}{text(x, y, cut(name), size, **style)}</g>" if whole else text(x, y, name, size, **style)


def cut(name: str, longest: int = 28) -> str:
    """Return a name, the end of a long one left out."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def width_of(names: Iterable[str], size: float) -> float:
    """Return the space that the longest of these names takes."""
    return LETTER * size * max((len(cut(name)) for name in names), default=1)


# ----------------------------------------------------------------------------------------------------------------------
# A matrix before and after ordering (seed 003, Figs. 3, 7, 8), and the parts of one that cannot be ordered.


PANEL, LEAST_CELL, LARGEST_CELL = 420, 13, 26
"""Width of a matrix; the cells of one with names are at least 13 and at most 26 pixels wide."""

NAMED, HOVERED = 40, 6000
"""Up to 40 equations have their names written beside them; up to 6000 entries have theirs to hover over."""

LEAST_MARK = 1.3
"""Pixels of a mark: in large systems marks overlap rather than fade."""

LARGEST_MATRIX = 4000
"""Larger systems make pictures that nobody can read."""


@dataclass(frozen=True, eq=False)
class _Panel:
    """One matrix: names of its rows and columns in the order drawn, and its heading."""

    rows: list[str]
    cols: list[str]
    heading: str

    @property
    def named(self) -> bool:
        return max(len(self.rows), len(self.cols)) <= NAMED

    @property
    def cell(self) -> float:
        size = PANEL / max(len(self.rows), len(self.cols), 1)
        return float(np.clip(size, LEAST_CELL, LARGEST_CELL)) if self.named else size

    @property
    def font(self) -> float:
        return min(11.0, 0.8 * self.cell)

    @property
    def space(self) -> tuple[float, float]:
        """Width of the names of rows, height of those of columns."""
        return (width_of(self.rows, self.font) + 8, width_of(self.cols, self.font) + 8) if self.named else (0.0, 0.0)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height with names."""
        left, top = self.space
        wide, high = left + self.cell * len(self.cols), top + self.cell * len(self.rows)
        return max(wide, LETTER * 13 * len(self.heading)), high

    def draw(self, x: float, body: str) -> str:
        """Return the framed matrix with names and heading, its upper left corner at x."""
        left, top = self.space
        wide, high = self.cell * len(self.cols), self.cell * len(self.rows)
        frame = f'<rect width="{wide:.2f}" height="{high:.2f}" fill="none" stroke="{QUIET}" stroke-width="1"/>'
        names = self._names() if self.named else ""
        return (
            text(x, HEAD - 14, self.heading, 13)
            + f'<g transform="translate({x + left:.1f},{HEAD + top:.1f})">{frame}{body}{names}</g>'
        )

    def _names(self) -> str:
        """Return the names beside the rows and, turned, above the columns."""
        rise = 0.36 * self.font
        beside = [
            label(-5, (i + 0.5) * self.cell + rise, name, self.font, anchor="end") for i, name in enumerate(self.rows)
        ]
        above = [label((j + 0.5) * self.cell + rise, -5, name, self.font, turn=-90) for j, name in enumerate(self.cols)]
        return "".join((*beside, *above))

    def cells(self, rows: Int[Array, " e"], cols: Int[Array, " e"], colour: str) -> str:
        """Return marks of one colour; few of them carry the names of their row and column."""
        mark = max(self.cell * 0.92, LEAST_MARK)
        places = list(zip(rows.tolist(), cols.tolist(), strict=True))
        if len(places) > HOVERED:
            squares = "".join(
                f"M{j * self.cell:.2f} {i * self.cell:.2f}h{mark:.2f}v{mark:.2f}h-{mark:.2f}z" for i, j in places
            )
            return f'<path fill="{colour}" d="{squares}"/>'
        squares = "".join(
            f'<rect x="{j * self.cell:.2f}" y="{i * self.cell:.2f}" width="{mark:.2f}" height="{mark:.2f}">'
            f"<title>{escape(self.rows[i])}, {escape(self.cols[j])}</title></rect>"
            for i, j in places
        )
        return f'<g fill="{colour}">{squares}</g>' if squares else ""


def matrix_svg(plan: Plan) -> str:
    """Draw A as given, and in solving order with blocks and fill."""
    _require_readable(plan.n)
    pattern, (row, col, _) = plan.pattern, plan.places
    k, filled = np.arange(plan.n), _fill(plan, row, col)
    panel = _Panel(
        list(pattern.equations), list(pattern.unknowns), f"as given: {plan.n} equations, {pattern.entries} entries"
    )
    heading = f"in solving order: {len(plan.begins) - 1} blocks, {plan.fill} fill"
    solved = _Panel([pattern.equations[i] for i in plan.rows], [pattern.unknowns[j] for j in plan.cols], heading)
    other = row != col
    after = (
        solved.cells(filled[:, 0], filled[:, 1], QUIET)
        + solved.cells(row[other], col[other], SECOND)
        + solved.cells(k, k, ACCENT)
        + _frames(plan.begins, plan.begins, solved.cell)
    )
    before = panel.cells(pattern.rows, pattern.indices, SECOND)
    return _pair(panel, before, solved, after, (("pivot", ACCENT), ("entry", SECOND), ("fill", QUIET)))


def misfit_svg(structure: Structure) -> str:
    """Draw a matrix without a solving order: as given, and in the parts of Dulmage and Mendelsohn."""
    pattern, part = structure.pattern, parts(structure.matching)
    _require_readable(max(pattern.shape))
    over, under = part.over_rows, part.under_rows
    rows = np.concatenate([np.flatnonzero(over), structure.blocks.rows, np.flatnonzero(under)])
    cols = np.concatenate([np.flatnonzero(part.over_cols), structure.blocks.cols, np.flatnonzero(part.under_cols)])
    row_place, col_place = np.argsort(rows), np.argsort(cols)
    panel = _Panel(
        list(pattern.equations), list(pattern.unknowns), f"as given: {pattern.shape[0]} x {pattern.shape[1]}"
    )
    heading = f"too many equations ({over.sum()}), what fits ({len(structure.blocks.rows)}), too few ({under.sum()})"
    sorted_ = _Panel([pattern.equations[i] for i in rows], [pattern.unknowns[j] for j in cols], heading)
    many, few = over[pattern.rows], part.under_cols[pattern.indices]
    kinds = ((~many & ~few, SECOND), (many, ACCENT), (few & ~many, LACK))
    bounds = np.array([0, over.sum(), over.sum() + len(structure.blocks.rows), len(rows)])
    across = np.array([0, part.over_cols.sum(), part.over_cols.sum() + len(structure.blocks.cols), len(cols)])
    after = "".join(
        sorted_.cells(row_place[pattern.rows[which]], col_place[pattern.indices[which]], colour)
        for which, colour in kinds
    ) + _frames(bounds, across, sorted_.cell)
    before = "".join(panel.cells(pattern.rows[which], pattern.indices[which], colour) for which, colour in kinds)
    words = (("too many equations", ACCENT), ("what fits", SECOND), ("too few equations", LACK))
    return _pair(panel, before, sorted_, after, words)


def _pair(one: _Panel, first: str, two: _Panel, second: str, words: tuple[tuple[str, str], ...]) -> str:
    """Return two matrices side by side, with a legend."""
    at = 2 * MARGIN + one.size[0]
    width, height = at + two.size[0] + MARGIN, max(one.size[1], two.size[1]) + HEAD + 2 * MARGIN
    return document(width, height, one.draw(MARGIN, first) + two.draw(at, second) + legend(height - 14, words))


def _frames(rows: Int[Array, " k"], cols: Int[Array, " k"], cell: float) -> str:
    """Return frames of blocks with more than one entry."""
    spans = zip(rows[:-1], rows[1:], cols[:-1], cols[1:], strict=True)
    frames = "".join(
        f'<rect x="{c * cell:.2f}" y="{a * cell:.2f}" width="{(d - c) * cell:.2f}" height="{(b - a) * cell:.2f}"/>'
        for a, b, c, d in spans
        if (b - a) * (d - c) > 1
    )
    return f'<g fill="none" stroke="{INK}" stroke-width="0.8">{frames}</g>'


def _fill(plan: Plan, row: Int[Array, " e"], col: Int[Array, " e"]) -> Int[Array, "fill 2"]:
    """Return places of L and U that A does not have."""
    k = np.arange(plan.n)
    low = np.repeat(k, np.diff(plan.lower_indptr)) * plan.n + plan.lower
    up = np.repeat(k, np.diff(plan.upper_indptr)) * plan.n + plan.upper
    keys = np.setdiff1d(np.concatenate([low, up, k * plan.n + k]), row * plan.n + col)
    return np.stack([keys // max(plan.n, 1), keys % max(plan.n, 1)], axis=1)


def _require_readable(n: int) -> None:
    """Refuse what does not fit."""
    if n > LARGEST_MATRIX:
        raise ModelError(f"{n} equations do not fit a picture; at most {LARGEST_MATRIX}")


# ----------------------------------------------------------------------------------------------------------------------
# The directed bipartite graph of equations and unknowns, with its matching (seed 003, Figs. 5, 6); misfits marked.


LARGEST_GRAPH = 150
"""Larger graphs cannot be read."""

STEP = 24
"""Pixels from one name to the next."""


def graph_svg(structure: Structure) -> str:
    """Draw inputs as thin arcs, outputs (the matching) broken, as in Fig. 6; sets that do not fit are coloured."""
    pattern, matching = structure.pattern, structure.matching
    rows, cols = pattern.shape
    if max(rows, cols) > LARGEST_GRAPH:
        raise ModelError(f"a graph of {rows} equations cannot be read; at most {LARGEST_GRAPH}. Draw the matrix")
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
    colours = _colours(structure)
    unknowns = (
        _node(left, y_col[j], name, "end", -12, colours[1].get(name)) for j, name in enumerate(pattern.unknowns)
    )
    equations = (
        _node(right, y_row[i], name, "start", 12, colours[0].get(name)) for i, name in enumerate(pattern.equations)
    )
    heads = text(left, HEAD - 14, "unknowns", 13, "end") + text(right, HEAD - 14, "equations", 13)
    width = max(right + widths[1] + MARGIN, 420)
    height = top + STEP * max(rows, cols) + MARGIN + (0 if structure.solvable else STEP)
    note = text(MARGIN, height - 8, "broken: output of an equation (matching); thin: input", 11, colour=QUIET)
    marks = "" if structure.solvable else legend(height - 8 - STEP, (("too many equations", ACCENT), ("too few", LACK)))
    return document(width, height, "".join((arcs, *unknowns, *equations, heads, note, marks)))


def _colours(structure: Structure) -> tuple[dict[str, str], dict[str, str]]:
    """Return the colours of equations and of unknowns that belong to sets that do not fit."""
    equations: dict[str, str] = {}
    unknowns: dict[str, str] = {}
    for sets, colour in ((structure.under_determined, LACK), (structure.over_determined, ACCENT)):
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


# ----------------------------------------------------------------------------------------------------------------------
# Pictures of plans and structures as SVG text: the matrix (seed 003, Figs. 3, 7, 8) or the graph (Figs. 5, 6).


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


def structure_picture(structure: Structure, kind: str) -> str:
    """Return the SVG of a structure: its graph, or its matrix, in solving order where there is one."""
    from dalembert.tableau.elimination.plan import make_plan

    if checked_kind(kind) == "graph":
        return graph_svg(structure)
    if not structure.solvable:
        return misfit_svg(structure)
    pairs = [(i, int(j)) for i, j in enumerate(structure.matching.col_of_row)]
    return matrix_svg(make_plan(structure.pattern, preferred=pairs))


def checked_kind(kind: object) -> str:
    """Return what is to be drawn, or say what can be."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"kind {kind!r} is not one of {', '.join(map(repr, KINDS))}")
    return kind

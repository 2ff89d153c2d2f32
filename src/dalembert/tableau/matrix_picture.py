"""A matrix before and after ordering (seed 003, Figs. 3, 7, 8), and the parts of one that cannot be ordered."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from dalembert.errors import ModelError
from dalembert.tableau.decomposition import parts
from dalembert.tableau.svg import (
    ACCENT,
    HEAD,
    INK,
    LACK,
    LETTER,
    MARGIN,
    QUIET,
    SECOND,
    document,
    label,
    legend,
    text,
    width_of,
)

if TYPE_CHECKING:
    from dalembert.tableau.plan import Plan
    from dalembert.tableau.solvability import Structure

Array = np.ndarray

PANEL, LEAST_CELL, LARGEST_CELL = 420, 13, 26
"""Width of a matrix; the cells of one with names are at least 13 and at most 26 pixels wide."""

NAMED, HOVERED = 40, 6000
"""Up to 40 equations have their names written beside them; up to 6000 entries have theirs to hover over."""

LEAST_MARK = 1.3
"""Pixels of a mark: in large systems marks overlap rather than fade."""

LARGEST = 4000
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
    given = _Panel(
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
    before = given.cells(pattern.rows, pattern.indices, SECOND)
    return _pair(given, before, solved, after, (("pivot", ACCENT), ("entry", SECOND), ("fill", QUIET)))


def misfit_svg(found: Structure) -> str:
    """Draw a matrix without a solving order: as given, and in the parts of Dulmage and Mendelsohn."""
    pattern, part = found.pattern, parts(found.matching)
    _require_readable(max(pattern.shape))
    over, under = part.over_rows, part.under_rows
    rows = np.concatenate([np.flatnonzero(over), found.blocks.rows, np.flatnonzero(under)])
    cols = np.concatenate([np.flatnonzero(part.over_cols), found.blocks.cols, np.flatnonzero(part.under_cols)])
    row_place, col_place = np.argsort(rows), np.argsort(cols)
    given = _Panel(
        list(pattern.equations), list(pattern.unknowns), f"as given: {pattern.shape[0]} x {pattern.shape[1]}"
    )
    heading = f"too many equations ({over.sum()}), what fits ({len(found.blocks.rows)}), too few ({under.sum()})"
    sorted_ = _Panel([pattern.equations[i] for i in rows], [pattern.unknowns[j] for j in cols], heading)
    many, few = over[pattern.rows], part.under_cols[pattern.indices]
    kinds = ((~many & ~few, SECOND), (many, ACCENT), (few & ~many, LACK))
    bounds = np.array([0, over.sum(), over.sum() + len(found.blocks.rows), len(rows)])
    across = np.array([0, part.over_cols.sum(), part.over_cols.sum() + len(found.blocks.cols), len(cols)])
    after = "".join(
        sorted_.cells(row_place[pattern.rows[which]], col_place[pattern.indices[which]], colour)
        for which, colour in kinds
    ) + _frames(bounds, across, sorted_.cell)
    before = "".join(given.cells(pattern.rows[which], pattern.indices[which], colour) for which, colour in kinds)
    words = (("too many equations", ACCENT), ("what fits", SECOND), ("too few equations", LACK))
    return _pair(given, before, sorted_, after, words)


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
    if n > LARGEST:
        raise ModelError(f"{n} equations do not fit a picture; at most {LARGEST}")

"""The pieces that pictures are made of, as SVG text: colours, document, legend, words and names."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

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
    for word, colour in entries:
        parts.append(
            f'<rect x="{x:.1f}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="{x + 15:.1f}" y="{y}" font-size="12" fill="{INK}">{escape(word)}</text>'
        )
        x += 15 + 12 * LETTER * len(word) + 24
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

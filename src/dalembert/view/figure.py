"""One place where matplotlib is imported, with the error that names the extra."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from dalembert.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, ACCENT, SECOND, QUIET = "#1f2a36", "#c4472b", "#2a6f97", "#9aa5b1"
"""The colours of every figure: text, the result, its comparison, the background lines."""


def new_figure(width: float = 7.0, height: float = 4.0) -> Figure:
    """Return an empty figure (inches) that belongs to no window."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "view", "Drawing") from error
    return Figure(figsize=(width, height), layout="constrained")


def as_svg(figure: Figure) -> str:
    """Return a figure as an SVG element for an HTML page: the same bytes every time, text as outlines."""
    import matplotlib as mpl

    stream = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "dalembert"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]

"""The report page: one self-contained HTML file."""

from __future__ import annotations

import io
import os
import tempfile
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dalembert._version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ----------------------------------------------------------------------------------------------------------------------
# Colours, and figures as elements of a page.


INK, ACCENT, SECOND, QUIET = "#1f2a36", "#c4472b", "#2a6f97", "#9aa5b1"
"""The colours of every figure: text, the result, its comparison, the background lines."""


def as_svg(figure: Figure) -> str:
    """Return a figure as an SVG element for an HTML page: the same bytes every time, text as outlines."""
    import matplotlib as mpl

    stream = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "dalembert"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


# ----------------------------------------------------------------------------------------------------------------------
# A report page: one self-contained HTML file with text, numbers and plots, no scripts and nothing to fetch.


_STYLE = f"""
body {{ margin: 0 auto; max-width: 46rem; padding: 2rem 1.2rem 4rem; color: {INK}; background: #fff;
  font: 17px/1.55 Georgia, 'Times New Roman', serif; }}
h1 {{ font-size: 1.9rem; margin: 0 0 .3rem; }} h2 {{ font-size: 1.25rem; margin: 2.4rem 0 .5rem; }}
pre {{ font: 14px/1.45 ui-monospace, Menlo, Consolas, monospace; background: #f5f3ef; padding: .8rem 1rem;
  border-left: 3px solid {ACCENT}; white-space: pre-wrap; overflow-wrap: anywhere; }}
figure {{ margin: 1.2rem 0; }} figure svg {{ width: 100%; height: auto; }}
figcaption, footer {{ font-size: .88rem; color: #5b6673; }} footer {{ margin-top: 3rem; }}
"""


class Report:
    """A page written from top to bottom: `heading`, `text`, `output`, `figure`, then `write`."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(subtitle)}</p>" if subtitle else ""]

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{escape(text)}</p>")

    def output(self, text: str) -> None:
        """Add text as a program printed it."""
        self._parts.append(f"<pre>{escape(text)}</pre>")

    def figure(self, figure: Figure, caption: str) -> None:
        """Add a plot with its caption."""
        self._parts.append(f"<figure>{as_svg(figure)}<figcaption>{escape(caption)}</figcaption></figure>")

    def write(self, path: str | Path) -> Path:
        """Write the page whole or not at all, and return its path."""
        page = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
            f"{''.join(self._parts)}<footer>dalembert {__version__}</footer></body></html>"
        )
        path = Path(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".html")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(page)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
        return path

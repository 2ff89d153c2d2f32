"""The report page: one self-contained HTML file."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterable, Sequence
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
body {{ margin: 0 auto; max-width: 54rem; padding: 2rem 1.2rem 4rem; color: {INK}; background: #fff;
  font: 17px/1.55 Georgia, 'Times New Roman', serif; }}
h1 {{ font-size: 1.9rem; margin: 0 0 .3rem; }} h2 {{ font-size: 1.25rem; margin: 2.4rem 0 .5rem; }}
pre {{ font: 14px/1.45 ui-monospace, Menlo, Consolas, monospace; background: #f5f3ef; padding: .8rem 1rem;
  border-left: 3px solid {ACCENT}; white-space: pre-wrap; overflow-wrap: anywhere; }}
figure {{ margin: 1.2rem 0; }} figure svg {{ width: 100%; height: auto; }}
figcaption, footer {{ font-size: .88rem; color: #5b6673; }} footer {{ margin-top: 3rem; }}
table {{ border-collapse: collapse; width: 100%; font: 14px/1.4 system-ui, sans-serif; margin: .8rem 0;
  display: block; overflow-x: auto; }}
th {{ text-align: left; border-bottom: 1.5px solid {INK}; padding: .25rem .9rem .25rem 0; white-space: nowrap; }}
td {{ border-bottom: 1px solid #e4e1da; padding: .25rem .9rem .25rem 0; vertical-align: top; }}
td.number, th.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.good, .bad {{ font: 600 14px/1.4 system-ui, sans-serif; padding: .5rem .9rem; border-radius: 4px; }}
.good {{ background: #e0f2ec; color: #00553f; }} .bad {{ background: #fbe3d6; color: #8a2f00; }}
details {{ margin: .8rem 0; }} summary {{ cursor: pointer; font: 14px/1.4 system-ui, sans-serif; }}
iframe {{ width: 100%; height: 30rem; border: 1px solid #e4e1da; border-radius: 4px; }}
"""


class Report:
    """A page written from top to bottom: `heading`, `text`, `output`, `table`, `figure`, then `write`."""

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

    def verdict(self, text: str, good: bool) -> None:
        """Add one sentence that says whether all is well."""
        self._parts.append(f'<p class="{"good" if good else "bad"}">{escape(text)}</p>')

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> None:
        """Add a table; numbers stand to the right, with four digits that count."""

        def cell(value: object, tag: str = "td") -> str:
            if isinstance(value, float):
                return f'<{tag} class="number">{value:.4g}</{tag}>'
            return f"<{tag}>{escape(str(value))}</{tag}>"

        body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
        head = "".join(cell(title, "th") for title in heads)
        words = f"<p><small>{escape(caption)}</small></p>" if caption else ""
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{words}")

    def folded(self, summary: str, text: str) -> None:
        """Add a text that is shown when its summary is clicked."""
        self._parts.append(f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>")

    def page(self, html: str, title: str) -> None:
        """Add a self-contained page inside this one, with no more rights than to run its own script."""
        attributes = f'sandbox="allow-scripts" loading="lazy" title="{escape(title)}" srcdoc="{escape(html)}"'
        self._parts.append(f"<iframe {attributes}></iframe>")

    def picture(self, svg: str, caption: str) -> None:
        """Add a drawing that is an SVG element already."""
        self._parts.append(f"<figure>{svg[svg.index('<svg') :]}<figcaption>{escape(caption)}</figcaption></figure>")

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

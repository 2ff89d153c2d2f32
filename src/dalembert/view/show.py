"""`robot.show()`, `run.animate("run.html")` and what notebooks show: a picture in the form that is asked for."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dalembert.errors import DalembertError, ModelError
from dalembert.names import near_matches
from dalembert.view.page import Animation, page_of
from dalembert.view.picture import Picture, frames_per_second, picture_of

HEIGHT = 460
"""Height of a picture in a notebook, pixels."""

MOST_BODIES = 300
"""Bodies of a mechanism that a notebook draws without being asked; show() draws any number."""


def _html(picture: Picture, path: Path) -> None:
    path.write_text(page_of(picture), encoding="utf-8")


def _svg(picture: Picture, path: Path) -> None:
    from dalembert.view.svg import svg_of

    path.write_text(svg_of(picture), encoding="utf-8")


def _film(picture: Picture, path: Path) -> None:
    from dalembert.view.film import write_film

    write_film(picture, path)


FORMS: dict[str, Callable[[Picture, Path], None]] = {
    ".html": _html,
    ".svg": _svg,
    ".gif": _film,
    ".webp": _film,
    ".mp4": _film,
    ".png": _film,
}
"""What a picture can be written as, by the ending of the file's name."""


def _writer(path: Any) -> tuple[Path, Callable[[Picture, Path], None]]:
    place = Path(path)
    suffix = place.suffix.lower()
    if suffix not in FORMS:
        raise ModelError(
            f"{str(path)!r}: pictures are written as {', '.join(FORMS)}", near=near_matches(suffix, list(FORMS))
        )
    return place, FORMS[suffix]


def show(mechanism: Any, path: Any = None, q: Any = None, **options: Any) -> Any:
    """Show a mechanism at a configuration; see `Mechanism.show`."""
    writer = None if path is None else _writer(path)
    picture = picture_of(mechanism, q, **options)
    if writer is not None:
        writer[1](picture, writer[0])
        return writer[0]
    return _opened(Animation(page_of(picture), HEIGHT))


def animate(run: Any, path: Any = None, **options: Any) -> Any:
    """Show a run in motion; see `Trajectory.animate`."""
    if path is None:
        return Animation(page_of(picture_of(run, **options)), HEIGHT)
    place, write = _writer(path)
    if place.suffix.lower() != ".html":
        blended = place.suffix.lower() == ".svg"  # films show frames alone
        options.setdefault("rate", frames_per_second(run, 25.0) if blended else 25.0)
    write(picture_of(run, **options), place)
    return place


def _opened(animation: Animation) -> Animation:
    """Open a page in the browser, unless a notebook is there to show it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):
        with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="dalembert-", delete=False, encoding="utf-8") as f:
            f.write(animation.page)
        webbrowser.open(Path(f.name).as_uri())
    return animation


def notebook_html(what: Any) -> str:
    """Return the picture that a notebook shows of a mechanism or a run; nothing where there is none to be drawn."""
    mechanism = getattr(what, "moving", what)
    if len(getattr(mechanism, "bodies", ())) > MOST_BODIES:
        return ""
    try:
        return Animation(page_of(picture_of(what)), HEIGHT)._repr_html_()
    except DalembertError:
        return ""


def live(what: Any, **options: Any) -> Any:
    """Show a mechanism or a run live in the browser; see `Mechanism.view` and `Trajectory.view`."""
    from dalembert.view.live import serve

    return serve(what, **options)

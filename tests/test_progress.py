"""The progress bar: who sees it, when, and what it says."""

from __future__ import annotations

import io
import sys

import pytest

from dalembert import progress
from dalembert.progress import ProgressBar, with_bar


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_who_asked_sees_it_at_once_and_keeps_it(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    bar = ProgressBar("flight", 1.0, 3.0, "s", asked=True)
    bar(2.0)
    bar(3.0)
    bar.stop()
    assert all(word in stream.getvalue() for word in ("flight", "100%", "3 of 3 s"))


def test_who_has_not_asked_sees_it_on_a_terminal_after_some_patience(monkeypatch):
    for stream, patience in ((Terminal(), 0.0), (Terminal(), 100.0), (io.StringIO(), 0.0)):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(progress, "PATIENCE", patience)
        assert list(with_bar(range(3), "rows")) == [0, 1, 2]
        assert ("rows" in stream.getvalue()) == (stream.isatty() and patience == 0.0)


@pytest.mark.parametrize("asked", [True, False])
def test_a_notebook_shows_it_in_place(asked, monkeypatch):
    display = pytest.importorskip("IPython.display")
    shown: list[str] = []
    handle = type("Handle", (), {"update": lambda self, view: shown.append(view._repr_html_())})()
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr(display, "display", lambda view, display_id: handle)
    bar = ProgressBar("<flight>", 0.0, 4.0, "s", patience=0.0, asked=asked)
    bar(1.0)
    assert "&lt;flight&gt;" in shown[-1]
    assert "25 %, 1 of 4 s" in shown[-1]
    bar(4.0)
    bar.stop()
    assert ("100 %" in shown[-1]) == asked
    assert "100 %" in shown[-2]


def test_a_bar_that_goes_nowhere_is_full():
    assert ProgressBar("nothing", 2.0, 2.0).part == 1.0


def test_a_bar_ends_where_the_work_breaks_off(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    for item in with_bar(range(40), "broken off"):
        if item == 3:
            break
    assert list(with_bar(range(2), "again")) == [0, 1]  # one bar at a time: the first must have ended

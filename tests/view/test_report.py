"""The report page: self-contained, escaped, written whole."""

from __future__ import annotations

import re

import pytest

from dalembert.view import Report, new_figure


def make_report() -> Report:
    report = Report("Title <b>", "Subtitle & more")
    report.heading("Heading")
    report.text("a < b")
    report.output("x & y\n  z")
    figure = new_figure()
    figure.add_subplot().plot([0, 1], [0, 1])
    report.figure(figure, "Caption")
    return report


def test_page_is_self_contained_and_escaped(tmp_path):
    page = make_report().write(tmp_path / "page.html").read_text()
    assert "Title &lt;b&gt;" in page
    assert "x &amp; y\n  z" in page
    assert "<script" not in page
    fetched = re.findall(r'(?:src|href)="(?!#)([^"]+)"', page)
    assert fetched == []


def test_same_content_gives_the_same_bytes(tmp_path):
    first, second = (make_report().write(tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(OSError, match="folder"):
        make_report().write(target)
    assert list(tmp_path.iterdir()) == [target]


def test_missing_matplotlib_names_the_extra(monkeypatch):
    import sys

    from dalembert.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"dalembert\[view\]"):
        new_figure()

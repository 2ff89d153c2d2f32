"""The gallery: every mechanism has its picture and its card; two of them are drawn anew."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def gallery():
    pytest.importorskip("casadi")
    spec = importlib.util.spec_from_file_location("gallery_mechanisms", DOCS / "gallery" / "mechanisms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_mechanism_has_its_card(gallery):
    page = (DOCS / "gallery.md").read_text()
    names = [make.__name__ for make in gallery.GALLERY]
    assert len(names) >= 20
    for name in names:
        assert f"`{name}`" in page
        assert f"images/gallery/{name}.svg" in page
        assert ET.parse(gallery.PICTURES / f"{name}.svg").getroot().tag.endswith("svg")
    assert {path.stem for path in gallery.PICTURES.glob("*.svg")} == set(names)


@pytest.mark.parametrize("name", ["crank_slider", "door"])
def test_pictures_can_be_drawn_anew(gallery, name, tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "PICTURES", tmp_path)
    run = getattr(gallery, name)()
    assert run.ok
    path = run.animate(tmp_path / f"{name}.svg", rate=20.0)
    drawn = (DOCS / "images" / "gallery" / f"{name}.svg").stat().st_size
    assert abs(path.stat().st_size - drawn) < 0.2 * drawn

"""Pages, SVG and films: what is written, read back."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib
from html import unescape

import numpy as np
import pytest

import dalembert as da
from dalembert.view.page import coded_rows, page_of
from dalembert.view.picture import picture_of
from dalembert.view.svg import thinned
from tests.view.test_picture import four_bar, run  # noqa: F401 (a fixture)

NASTY = '</script><img src=x onerror=alert(1)> & "quoted" {{data}}'


def decoded(page: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return head and arrays of a page."""
    text = re.search(r"DALEMBERT_DATA=(.*?);window\.DALEMBERT_RUNTIME", page, re.DOTALL)
    assert text is not None
    data = json.loads(text[1])
    body = zlib.decompress(base64.b64decode(data["body"]))
    arrays = {
        name: np.frombuffer(body, f"<{kind}", count, start) for name, kind, start, count in data["head"]["arrays"]
    }
    return data["head"], arrays


def rows_of(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Undo the coding, as viewer.js does."""
    coded = arrays["rows"].reshape(arrays["low"].size, -1).astype(np.int64)
    levels = np.cumsum(np.cumsum(coded, axis=1) % 65536, axis=1) % 65536
    return arrays["low"][:, None] + arrays["range"][:, None] * levels / 65535


def test_page_holds_the_motion(run):  # noqa: F811
    scene = picture_of(run)
    page = page_of(scene)
    head, arrays = decoded(page)
    rows = rows_of(arrays)
    poses = rows[: 7 * len(scene.mechanism.bodies)].reshape(-1, 7, scene.t.size)
    np.testing.assert_allclose(poses[:, :3], scene.positions.transpose(1, 2, 0), atol=3e-5)
    forces = rows[head["at"]["forces"] :][:6]
    np.testing.assert_allclose(forces[3:].T, scene.forces[0].vectors, atol=2e-3)
    label, row, unit = head["bodies"][0]["values"][0]
    assert (label, unit) == ("q", "rad")
    np.testing.assert_allclose(rows[head["at"]["values"] + row], scene.q[:, 0], atol=1e-4)
    assert len(page) < 300_000


def test_page_fetches_nothing_and_escapes_names():
    b = da.Builder(NASTY)
    b.body(NASTY, mass=1.0, center=(1, 0, 0))
    b.joint(NASTY, "revolute", "world", NASTY, axis=(0, 1, 0))
    page = page_of(picture_of(b.build(), caption=NASTY))
    outside = re.sub(r'DALEMBERT_RUNTIME="[^"]*"', "", page)
    assert "<img" not in outside
    assert outside.count("</script>") == 1
    assert not re.search(r"<[^>]*\b(src|href)\s*=|@import|url\(", outside)
    head, _ = decoded(page)
    assert head["bodies"][0]["name"] == NASTY
    assert "three.js" in outside  # its licence


def test_rows_are_coded_exactly_to_their_levels():
    rng = np.random.default_rng(1)
    rows = np.concatenate([rng.normal(size=(3, 40)), np.zeros((1, 40)), rng.integers(0, 2, (2, 40)) * 1e6])
    coded, low, span = coded_rows(rows)
    back = rows_of({"rows": coded.ravel(), "low": low, "range": span})
    assert (np.abs(back - rows) <= span[:, None] / 65535).all()
    with pytest.raises(da.ModelError, match="not finite"):
        coded_rows(np.array([[np.nan, 1.0]]))


def test_files_by_their_endings(run, tmp_path):  # noqa: F811
    pytest.importorskip("PIL")
    from PIL import Image

    short = run.repeat(duration=0.2)
    for name in ("a.html", "a.svg", "a.gif", "a.webp", "a.png"):
        path = short.animate(tmp_path / name)
        assert path.stat().st_size > 1000
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 6
        colours = {tuple(pixel) for pixel in np.asarray(film.convert("RGB")).reshape(-1, 3)[::7].tolist()}
        assert len(colours) > 5
    assert four_bar().show(tmp_path / "b.svg").read_text().count("animate") == 0
    with pytest.raises(da.ModelError, match=r"\.html, \.svg"):
        run.animate(tmp_path / "a.htm")
    with pytest.raises(da.ModelError, match="nothing moves"):
        four_bar().show(tmp_path / "b.gif")


def test_svg_moves_without_script(run):  # noqa: F811
    from dalembert.view.plane import drawn
    from dalembert.view.svg import svg_of

    scene = picture_of(run, rate=25.0, title=NASTY)
    text = svg_of(scene)
    root = ET.fromstring(text)
    assert len(text) < 12_000
    assert "script" not in {element.tag.partition("}")[2] for element in root.iter()}
    assert root.get("aria-label") == NASTY
    # the rocker's far end stays on the pin: its pose applied to its line, frame by frame
    drawing = drawn(scene)
    lines = [item for item in drawing.items if item.kind == "line" and item.pose == 2]
    place, angle = drawing.poses[2]
    turn = np.deg2rad(angle)
    R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]).transpose(2, 0, 1)
    moved = place[:, None] + np.einsum("nij,kj->nki", R, lines[0].local)
    np.testing.assert_allclose(moved, lines[0].points, atol=1e-6)
    assert min(np.ptp(moved[:, k], axis=0).max() for k in (0, 1)) < 0.1  # pixels


def test_thinned_stays_near():
    t = np.linspace(0, 6, 200)
    values = np.column_stack([np.sin(t), np.cos(3 * t)]) * 100
    kept = thinned(values, 0.5)
    assert kept.size < 100
    back = np.column_stack([np.interp(t, t[kept], values[kept, k]) for k in range(2)])
    assert np.abs(back - values).max() <= 0.5 + 1e-9


def test_notebooks_show_pictures(run):  # noqa: F811
    shown = run._repr_html_()
    frame = re.search(r'<iframe srcdoc="(.*?)"', shown, re.DOTALL)
    assert frame is not None
    assert "DALEMBERT_DATA" in unescape(frame[1])
    assert 'sandbox="allow-scripts' in shown
    assert "four-bar: 3 bodies" in run.mechanism._repr_html_()
    assert "HTML" in repr(run.animate())


def test_import_does_not_load_pictures():
    code = "import sys, dalembert; dalembert.Builder; sys.exit(any('dalembert.view' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False, env=os.environ).returncode == 0


BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine (CHROMIUM= names one)")
def test_a_browser_without_network_draws_it(run, tmp_path):  # noqa: F811
    page = run.animate(tmp_path / "run.html", title=NASTY)
    flags = ["--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    flags += [
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={tmp_path / 'user'}",
        "--enable-logging=stderr",
    ]
    done = subprocess.run(
        [str(BROWSER), *flags, "--virtual-time-budget=4000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert 'data-ready="1"' in done.stdout
    assert "<canvas" in done.stdout
    assert "CONSOLE" not in done.stderr


def test_a_force_that_jumps_has_an_upright_line():
    """The floor's force under a ball that comes to rest jumps between samples of the run, whatever the frames are."""
    picture = picture_of(da.scene("bouncing_ball").run(), rate=25)
    force = picture.lines["|floor| (N)"]
    k = int(np.flatnonzero(force > 0)[0])
    assert (force[k - 1], force[k]) == (0.0, pytest.approx(9.81))
    assert picture.line_t[k] == pytest.approx(1.80601, abs=1e-5)
    assert picture.line_t[k] - picture.line_t[k - 1] < 1e-4  # a frame is 0.04 s

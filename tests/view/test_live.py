"""The live viewer: who may look, sliders that keep loops closed, solids as triangles."""

from __future__ import annotations

import hashlib
import socket
import sys
import time

import numpy as np
import pytest

import dalembert as da
from dalembert.view.body_shapes import Shape
from dalembert.view.gate import Gate
from dalembert.view.live import triangles
from tests.view.test_picture import four_bar

TOKEN = "secret-token"
KEPT = hashlib.sha256(TOKEN.encode()).hexdigest()


@pytest.mark.parametrize(
    ("head", "passed"),
    [
        (f"GET / HTTP/1.1\r\nHost: a:1\r\nCookie: x=1; dalembert_token={KEPT}\r\n\r\n", True),
        (f"GET / HTTP/1.1\r\nHost: a:1\r\nOrigin: http://a:1\r\nCookie: dalembert_token={KEPT}\r\n\r\n", True),
        (f"GET / HTTP/1.1\r\nHost: a:1\r\nOrigin: http://evil\r\nCookie: dalembert_token={KEPT}\r\n\r\n", False),
        (f"GET / HTTP/1.1\r\nHost: a:1\r\nOrigin: null\r\nCookie: dalembert_token={KEPT}\r\n\r\n", False),
        (f"GET / HTTP/1.1\r\nOrigin: http://a:1\r\nCookie: dalembert_token={KEPT}\r\n\r\n", False),
        ("GET / HTTP/1.1\r\nHost: a:1\r\nCookie: dalembert_token=\u00fc\u00ff\r\n\r\n", False),
        ("GET /?token=\u00fc%ff%C3 HTTP/1.1\r\nHost: \u00e4\r\n\r\n", False),
        ("GET //[::1/?token=x HTTP/1.1\r\n\r\n", False),
        ("GET / HTTP/1.1\r\nHost: a:1\r\nCookie: dalembert_token=wrong\r\n\r\n", False),
        ("GET /?token=wrong HTTP/1.1\r\nHost: a:1\r\n\r\n", False),
        ("GET / HTTP/1.1\r\nHost: a:1\r\n\r\n", False),
        ("", False),
    ],
)
def test_gate(head, passed):
    gate = Gate("127.0.0.1", 0, 1, TOKEN)
    try:
        answer = gate.verdict(head.encode())
        assert (answer == b"") == passed
        assert passed or answer.startswith(b"HTTP/1.1 403")
        welcome = gate.verdict(f"GET /?token={TOKEN} HTTP/1.1\r\n\r\n".encode())
        assert b"303" in welcome
        assert f"dalembert_token={KEPT}; HttpOnly; SameSite=Strict".encode() in welcome
    finally:
        gate.close()


@pytest.mark.parametrize("token", ["a.b", "a&b=c", "a b", "Schlüssel", "a+b%20#?/", "\u65e5", "-_~"])
def test_a_token_of_any_letters_opens(token):
    gate = Gate("127.0.0.1", 0, 1, token)
    try:
        path = gate.url.partition(str(gate.port))[2]
        assert path.isascii()
        welcome = gate.verdict(f"GET {path} HTTP/1.1\r\nHost: a:1\r\n\r\n".encode()).decode()
        cookie = welcome.partition("Set-Cookie: ")[2].partition(";")[0]
        assert gate.verdict(f"GET / HTTP/1.1\r\nHost: a:1\r\nCookie: {cookie}\r\n\r\n".encode()) == b""
        assert b"403" in gate.verdict(b"GET /?token=a HTTP/1.1\r\n\r\n")
    finally:
        gate.close()


@pytest.mark.parametrize(
    ("fields", "passed"),
    [
        ("Host: 127.0.0.1:PORT", True),
        ("Host: localhost:PORT\r\nOrigin: http://localhost:PORT", True),
        ("Host: [::1]:PORT", True),
        ("Host: 127.0.0.1:PORT\r\nOrigin: http://evil", False),
        ("Host: 127.0.0.1:PORT\r\nOrigin: http://127.0.0.1:1", False),
        ("Host: 127.0.0.1:PORT\r\nOrigin: null", False),
        ("Host: evil:PORT\r\nOrigin: http://evil:PORT", False),
        ("Host: 127.0.0.1:PORT\r\nHost: evil", False),
        ("Host: 127.0.0.1", False),
        ("Accept: *", False),
    ],
)
def test_a_local_viewer_answers_its_own_page_alone(fields, passed):
    """A page of another site reaches neither the viewer nor, under a name of its own, its address."""
    with socket.create_server(("127.0.0.1", 0)) as inner:
        gate = Gate("127.0.0.1", 0, inner.getsockname()[1], local=True)
        try:
            head = f"GET / HTTP/1.1\r\nUpgrade: websocket\r\n{fields.replace('PORT', str(gate.port))}\r\n\r\n".encode()
            assert (gate.verdict(head) == b"") == passed
            with socket.create_connection(("127.0.0.1", gate.port), timeout=5.0) as browser:
                browser.sendall(head)
                if passed:
                    with inner.accept()[0] as passed_on:
                        assert passed_on.recv(len(head)) == head
                else:
                    assert browser.recv(100).startswith(b"HTTP/1.1 403")
            assert "token" not in gate.url
        finally:
            gate.close()


@pytest.mark.parametrize(
    ("kind", "size", "volume"),
    [
        ("box", (1, 2, 3), 6.0),
        ("sphere", (0.5,), 4 / 3 * np.pi * 0.125),
        ("cylinder", (0.5, 2), np.pi * 0.5),
        ("capsule", (0.5, 2), np.pi * 0.5 + 4 / 3 * np.pi * 0.125),
        ("ellipsoid", (1, 2, 0.5), 4 / 3 * np.pi),
    ],
)
def test_solids_are_closed(kind, size, volume):
    vertices, faces = triangles(Shape(kind, tuple(map(float, size))), 1.0)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    assert np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6 == pytest.approx(volume, rel=0.05)


def test_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)  # as if it were not installed
    with pytest.raises(da.MissingExtraError, match=r"dalembert\[view3d\]"):
        four_bar().view(block=False)


def test_a_run_plays():
    pytest.importorskip("viser")
    m = four_bar()
    run = da.simulate(m, 0.2, m.assemble([-1.0, 0.7, 1.5]).q)
    live = run.view(block=False, port=0)
    try:
        live.playing.value = False
        time.sleep(0.3)  # what was under way ends
        live.show_time(0.12)
        assert live.clock.value == 0.12
        np.testing.assert_allclose(live.q, live.scene.q[3])
        shown = np.flatnonzero(np.isfinite(live.plot.data[2]))
        assert shown.size == 1
        np.testing.assert_allclose(live.scene.line_t[shown], 0.12, atol=np.diff(live.scene.line_t).max())
        np.testing.assert_allclose(live.plot.data[2][shown], live.scene.lines["|pin| (N)"][shown])
    finally:
        live.close()


def test_sliders_keep_loops_closed(capsys):
    pytest.importorskip("viser")
    m = four_bar()
    live = m.view(block=False, port=0)
    try:
        assert capsys.readouterr().out == f"the viewer is at {live.url}\n"  # one address, the one to open
        assert live.url.startswith("http://127.0.0.1:")
        assert live.move("crank_hinge", -1.0)
        assert live.sliders["crank_hinge"].value == -1.0
        assert (live.sliders["crank_hinge"].min, live.sliders["crank_hinge"].max) == (-3.141, 3.141)  # digits that fit
        assert np.abs(m.constraint(live.q)).max() < 1e-10
        before = live.q.copy()
        assert not live.move("rocker_hinge", 3.1)
        assert "cannot be closed" in live.message
        np.testing.assert_array_equal(live.q, before)
    finally:
        live.close()


def test_springs_follow_their_ends():
    """The coil of a spring ends where the spring does, at every time that is shown."""
    pytest.importorskip("viser")
    live = da.scene("crank_slider").run().view(block=False, port=0)
    try:
        live.playing.value = False
        time.sleep(0.3)
        for t in (0.2, 0.7):
            live.show_time(t)
            k = int(np.argmin(np.abs(live.scene.t - t)))
            ends = live.scene.ends_of_link(live.scene.links[0])[k]
            np.testing.assert_allclose([live.links.points[0, 0], live.links.points[-1, 1]], ends, atol=1e-6)
    finally:
        live.close()

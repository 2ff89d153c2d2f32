"""A gate in front of a local server: who has no token is turned away.

The live viewer knows no passwords and listens to this machine alone. Where others shall look, the gate listens instead:
the first request must bring the token (`?token=...`), the browser then keeps it in a cookie, and connections that come
from pages of other sites are refused.
"""

from __future__ import annotations

import re
import secrets
import socket
import threading
from hmac import compare_digest

LONGEST_HEAD = 16 * 1024
"""Bytes of a request's head."""

WAIT = 10.0
"""Seconds in which a head must come."""

COOKIE = "dalembert_token"


class Gate:
    """Listens at (host, port) and passes on to a port of this machine what brings the token."""

    def __init__(self, host: str, port: int, inner: int, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(16)
        self.inner = inner
        self.socket = socket.create_server((host, port))
        self.host, self.port = host, self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where to look, with the token."""
        name = socket.gethostname() if self.host in ("", "0.0.0.0", "::") else self.host
        return f"http://{name}:{self.port}/?token={self.token}"

    def close(self) -> None:
        """Stop listening."""
        self.socket.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                client.settimeout(WAIT)
                head = self._head(client)
                answer = self.verdict(head)
                if answer:
                    client.sendall(answer)
                    return
                client.settimeout(None)
                with socket.create_connection(("127.0.0.1", self.inner)) as server:
                    server.sendall(head)
                    threading.Thread(target=_pump, args=(client, server), daemon=True).start()
                    _pump(server, client)
            except OSError:
                return

    @staticmethod
    def _head(client: socket.socket) -> bytes:
        head = b""
        while b"\r\n\r\n" not in head and len(head) < LONGEST_HEAD:
            part = client.recv(4096)
            if not part:
                break
            head += part
        return head

    def verdict(self, head: bytes) -> bytes:
        """Return what to answer a request that is not passed on; nothing where it is."""
        text = head.decode("latin-1")
        first, _, rest = text.partition("\r\n")
        fields = dict(re.findall(r"^([\w-]+):\s*(.*?)\s*$", rest.lower(), re.MULTILINE))
        original = re.search(rf"^cookie:.*?\b{COOKIE}=([\w-]+)", rest, re.MULTILINE | re.IGNORECASE)
        match = re.search(r"[?&]token=([\w-]+)", first)
        if match and compare_digest(match[1], self.token):
            cookie = f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            lines = ["HTTP/1.1 303 See Other", "Location: /", f"Set-Cookie: {cookie}", "Content-Length: 0"]
            return "\r\n".join([*lines, "Connection: close", "", ""]).encode()
        origin = fields.get("origin", "")
        same = not origin or origin.partition("://")[2] == fields.get("host", "")
        if original and compare_digest(original[1], self.token) and same:
            return b""
        words = "A token is needed: open the address that the viewer has printed.\n"
        return f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(words)}\r\nConnection: close\r\n\r\n{words}".encode()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """Pass on bytes until one side closes."""
    try:
        while part := source.recv(65536):
            sink.sendall(part)
    except OSError:
        pass
    for side in (source, sink):
        try:
            side.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue

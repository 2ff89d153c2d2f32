"""A gate in front of a local server: who has no token is turned away.

The live viewer knows no passwords. The gate listens in its place: connections that come from pages of other sites
(`Origin`), and on this machine those under another name than its own (`Host`), are refused. Where others shall look,
the first request must bring the token (`?token=...`), and the browser then keeps its hash in a cookie.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import socket
import threading
from hmac import compare_digest
from urllib.parse import parse_qs, quote, urlsplit

LONGEST_HEAD = 16 * 1024
"""Bytes of a request's head."""

WAIT = 10.0
"""Seconds in which a head must come."""

COOKIE = "dalembert_token"

LOCAL_NAMES, HTTP = ("127.0.0.1", "localhost", "[::1]"), 80
"""Names of this machine, as `Host` has them, and the port that browsers leave out."""


class Gate:
    """Listens at (host, port) and passes on to a port of this machine what brings the token; if `local`, without."""

    def __init__(self, host: str, port: int, inner: int, token: str | None = None, *, local: bool = False) -> None:
        self.token, self.local = token or secrets.token_urlsafe(16), local
        self.kept = hashlib.sha256(self.token.encode("utf-8", "surrogatepass")).hexdigest()
        self.inner = inner
        self.socket = socket.create_server((host, port))
        self.host, self.port = host, self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Where to look, with the token."""
        name = socket.gethostname() if self.host in ("", "0.0.0.0", "::") else self.host
        here = f"http://{f'[{name}]' if ':' in name else name}:{self.port}"
        return here if self.local else f"{here}/?token={quote(self.token, safe='', errors='surrogatepass')}"

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
        first, _, rest = head.decode("latin-1").partition("\r\n")
        fields: dict[str, list[str]] = {}
        for name, value in re.findall(r"^([\w-]+):[ \t]*(.*?)[ \t]*\r?$", rest, re.MULTILINE):
            fields.setdefault(name.lower(), []).append(value)
        hosts, origins = fields.get("host", []), fields.get("origin", [])
        same = len(hosts) <= 1 and all(
            origin.partition("://")[2].lower() == hosts[0].lower() for origin in origins if hosts
        )
        same = same and bool(hosts or not origins)
        if self.local:
            names = [f"{name}:{self.port}" for name in LOCAL_NAMES] + (list(LOCAL_NAMES) if self.port == HTTP else [])
            if same and hosts and hosts[0].lower() in names:
                return b""
            return _refusal(f"This viewer is for this machine alone: open {self.url}")
        if any(compare_digest(token.encode("utf-8", "surrogatepass"), self.token.encode("utf-8", "surrogatepass"))
               for token in _tokens(first)):  # fmt: skip
            cookie = f"{COOKIE}={self.kept}; HttpOnly; SameSite=Strict; Path=/"
            lines = ["HTTP/1.1 303 See Other", "Location: /", f"Set-Cookie: {cookie}", "Content-Length: 0"]
            return "\r\n".join([*lines, "Connection: close", "", ""]).encode()
        kept = re.findall(rf"\b{COOKIE}=([\w-]+)", "; ".join(fields.get("cookie", [])), re.ASCII)
        if same and any(compare_digest(cookie, self.kept) for cookie in kept):
            return b""
        return _refusal("A token is needed: open the address that the viewer has printed.")


def _tokens(first: str) -> list[str]:
    """Return the tokens that the first line of a request brings."""
    words = first.split(" ")
    try:
        query = urlsplit(words[1] if len(words) > 1 else "").query
        return parse_qs(query, errors="surrogateescape").get("token", [])
    except ValueError:
        return []


def _refusal(words: str) -> bytes:
    """Return the answer to a request that is not passed on."""
    body = f"{words}\n".encode()
    return f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


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

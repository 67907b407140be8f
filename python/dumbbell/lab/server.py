"""Serves the laboratory's page to this machine."""

from __future__ import annotations

import gzip
import sys
from http import HTTPStatus
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
"""Only this machine reaches the server."""

_HEADERS: Final = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def _names(port: int) -> set[str]:
    """The hosts that browsers ask for: of port 80, HTTP's own, they leave out the number."""
    names = {HOST, "localhost"}
    return {f"{name}:{port}" for name in names} | (names if port == HTTP_PORT else set())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, page: str, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.page = page.encode()
        self.packed = gzip.compress(self.page, mtime=0)
        self.names = _names(self.server_port)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a client that went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "dumbbell"
    sys_version = ""
    timeout = 10  # a client that says nothing is forgotten, s

    def do_GET(self) -> None:
        """Answers with the page; another path, or another host's name, has none."""
        if self.headers.get("Host", "") not in self.server.names:
            # Another site's name that leads to this machine must not read the scenario.
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        elif (path := self._path()) is None:
            self.send_error(HTTPStatus.BAD_REQUEST)
        elif path != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send_page()

    def _path(self) -> str | None:
        try:
            return urlsplit(self.path).path
        except ValueError:  # such as "http://["
            return None

    def _send_page(self) -> None:
        packs = "gzip" in self.headers.get("Accept-Encoding", "")
        body = self.server.packed if packs else self.server.page
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if packs:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """Adds what every answer has."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""


def serve(page: str, *, port: int = 0, ready: Callable[[str], None]) -> None:
    """Serves a page until it is interrupted.

    Args:
        page: The page.
        port: The port; 0 for any free one.
        ready: Called with the address once it answers.

    Raises:
        OSError: If the port is taken.
    """
    with _Server(page, port) as server:
        ready(f"http://{HOST}:{server.server_port}/")
        server.serve_forever()

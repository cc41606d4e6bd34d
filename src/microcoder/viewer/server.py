"""The page on this machine: the standard library's server, bound to the loopback, which only ever reads.

Another site's page must not read runs through the visitor's browser: a request is refused when its Host is another
name (DNS rebinding) or when the browser says that another site sent it. Paths are looked up in two tables and never
joined to a folder.
"""

from __future__ import annotations

import json
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from microcoder.errors import ConfigError, MicroCoderError
from microcoder.viewer.answers import ANSWERS, finite
from microcoder.viewer.collection import Collection

ADDRESS = "127.0.0.1"
HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names under which a browser on this machine, or at the other end of an ssh tunnel, asks."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def read_static() -> dict[str, bytes]:
    """Return the page's files by name."""
    folder = files("microcoder.viewer").joinpath("static")
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}


class ViewerServer(ThreadingHTTPServer):
    """Serves one collection of runs until it is shut down."""

    daemon_threads = True

    def __init__(self, collection: Collection, *, port: int) -> None:
        """Listen on a port of the loopback; 0 takes any that is free.

        Raises:
            ConfigError: the port is taken or not allowed.
        """
        self.collection = collection
        self.static = read_static()
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"port {port} cannot be used ({error}); choose another with --port, or 0 for any"
            ) from None

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    def warm(self) -> None:
        """Begin to read the indexes, so that the first list need not wait."""
        threading.Thread(target=self._warm, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that hung up; anything else is a fault of ours and is printed."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def _warm(self) -> None:
        for source in self.collection.sources.values():
            source.index()
            source.tests.names()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "microcoder", ""
    timeout = 60
    wbufsize = 1 << 16  # Head and body leave together: apart, the second would wait for the first to be acknowledged.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer."""
        address = urlsplit(self.path)
        if not self._is_own_host():
            self._send_json({"error": "this host name is not served; open 127.0.0.1"}, HTTPStatus.MISDIRECTED_REQUEST)
        elif address.path in ANSWERS:
            self._answer(address.path, address.query)
        else:
            name = address.path.removeprefix("/") or "index.html"
            body = self._viewer.static.get(name)
            if body is None:
                self._send_json({"error": "there is no such page"}, HTTPStatus.NOT_FOUND)
            else:
                self._send(body, f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8", HTTPStatus.OK)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: requests are the reader's own."""

    @property
    def _viewer(self) -> ViewerServer:
        return cast(ViewerServer, self.server)

    def _answer(self, path: str, query: str) -> None:
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            self._send_json({"error": "another site may not read runs"}, HTTPStatus.FORBIDDEN)
            return
        try:
            words = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=40))
            value, status = ANSWERS[path](self._viewer.collection, words), HTTPStatus.OK
        except (MicroCoderError, OSError, ValueError) as error:
            value, status = {"error": str(error)}, HTTPStatus.BAD_REQUEST
        if isinstance(value, bytes):
            self._send(value, "application/octet-stream", status)
        else:
            self._send_json(value, status)

    def _is_own_host(self) -> bool:
        host = self.headers.get("Host", "").lower()
        name, colon, port = host.rpartition(":")
        return (name if colon and port.isdecimal() else host) in HOSTS

    def _send_json(self, value: Any, status: HTTPStatus) -> None:
        self._send(encode(value).encode("ascii"), "application/json", status)

    def _send(self, body: bytes, kind: str, status: HTTPStatus) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def encode(value: Any) -> str:
    """Return JSON in ASCII: lone surrogates and line separators travel as escapes."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(finite(value), allow_nan=False, separators=(",", ":"))

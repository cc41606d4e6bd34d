"""The viewer's local server, which only this machine can reach.

It reads files, and writes nothing but notes. Another site's page must not read runs through the
visitor's browser. So a request is refused when its Host is another name (DNS rebinding), or when
the browser says that another site sent it. One that writes must also name this page as its origin,
and be JSON, which no form of another site can send. Paths are looked up in tables and never joined
to a folder.
"""

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import cast
from urllib.parse import parse_qsl, urlsplit

from microcoder.judge.core.errors import ConfigError, DataError, MicroCoderError
from microcoder.view.answers import ANSWERS, CHANGES, encode
from microcoder.view.bundle import TYPES, read_static
from microcoder.view.collection import Collection

ADDRESS = "127.0.0.1"
"""Address that the server listens on: only this machine reaches it."""

HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Host names of requests from a browser on this machine, or at the other end of an ssh tunnel."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a page may load: its own scripts and styles, and nothing else, as it shows models' texts."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every response."""


MOST_BYTES = 64 * 1024
"""Longest body of a request that writes."""


class ViewerServer(ThreadingHTTPServer):
    """Serves one collection of runs until it is shut down."""

    # Ctrl-C must not wait for a connection that a browser keeps open.
    daemon_threads = True

    def __init__(self, collection: Collection, *, port: int) -> None:
        """Listen on a port of the loopback; 0 takes any that is free."""
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
        """The address of the page."""
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: object) -> None:
        """Ignore a connection that the browser closed; print any other error, which is a bug."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "microcoder"
    sys_version = ""
    timeout = 60
    # Head and body leave together: apart, the second would wait for the first to be acknowledged.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if not self._is_own_host():
            self._send_json(
                {"error": "this host name is not served; open 127.0.0.1"},
                HTTPStatus.MISDIRECTED_REQUEST,
            )
        elif address.path in ANSWERS:
            self._answer(address.path, address.query)
        else:
            self._send_file(address.path.removeprefix("/") or "index.html")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        # What is refused is not read, so nothing may follow it on this connection.
        self.close_connection = True
        address = urlsplit(self.path)
        host = self.headers.get("Host", "")
        if not self._is_own_host():
            self._send_json(
                {"error": "this host name is not served; open 127.0.0.1"},
                HTTPStatus.MISDIRECTED_REQUEST,
            )
        elif address.path not in CHANGES:
            self._send_json({"error": "nothing can be written here"}, HTTPStatus.METHOD_NOT_ALLOWED)
        elif (
            self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin"
            or self.headers.get("Origin", "") != f"http://{host}"
        ):
            self._send_json(
                {"error": "only this viewer's own page may write"}, HTTPStatus.FORBIDDEN
            )
        elif self.headers.get_content_type() != "application/json":
            self._send_json(
                {"error": "the body must be application/json"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            )
        else:
            self._change(address.path)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: all requests are the user's own."""

    @property
    def _viewer(self) -> ViewerServer:
        return cast(ViewerServer, self.server)

    def _answer(self, path: str, query: str) -> None:
        # What does not send it is no new browser: the check of the host has to do.
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            self._send_json({"error": "another site may not read runs"}, HTTPStatus.FORBIDDEN)
            return
        status = HTTPStatus.OK
        try:
            words = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=40))
            value = ANSWERS[path](self._viewer.collection, words)
        # Files may be gone or half written: the page says so, and the server goes on.
        except (MicroCoderError, OSError, ValueError) as error:
            value = {"error": str(error)}
            status = HTTPStatus.BAD_REQUEST
        if isinstance(value, bytes):
            self._send(value, "application/octet-stream", status)
        else:
            self._send_json(value, status)

    def _change(self, path: str) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            self._send_json(
                {"error": f"the body must have a length of at most {MOST_BYTES:,} bytes"},
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
            return
        body = self.rfile.read(int(length))
        status = HTTPStatus.OK
        try:
            words = json.loads(body)
            if not isinstance(words, dict) or not all(isinstance(v, str) for v in words.values()):
                raise DataError("the body must be an object of texts")
            value = CHANGES[path](self._viewer.collection, words)
        # The folder may be gone or closed to us: the page says so, and the server goes on.
        except (MicroCoderError, OSError, ValueError, RecursionError) as error:
            value = {"error": str(error)}
            status = HTTPStatus.BAD_REQUEST
        self._send_json(value, status)

    def _is_own_host(self) -> bool:
        host = self.headers.get("Host", "").lower()
        # From the right, since an IPv6 address has colons of its own.
        name, colon, port = host.rpartition(":")
        if colon and port.isdecimal():
            return name in HOSTS
        return host in HOSTS

    def _send_file(self, name: str) -> None:
        body = self._viewer.static.get(name)
        if body is None:
            self._send_json({"error": "there is no such page"}, HTTPStatus.NOT_FOUND)
        else:
            suffix = name.rpartition(".")[2]
            self._send(body, f"{TYPES[suffix]}; charset=utf-8", HTTPStatus.OK)

    def _send_json(self, value: object, status: HTTPStatus) -> None:
        self._send(encode(value).encode("ascii"), "application/json", status)

    def _send(self, body: bytes, kind: str, status: HTTPStatus) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

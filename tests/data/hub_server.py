"""A Hub of one machine: enough of it for huggingface_hub to download a data set, and to create and fill a model."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """What is on it, and what was asked of it."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Of the one data set, by path."""
    created: list[dict[str, Any]] = field(default_factory=list)
    """Repositories that were created, as the request said it."""
    committed: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)
    """Branch, and files by path, of each commit."""
    refuses: bool = False
    """Whether tokens are refused."""
    url: str = ""


@contextmanager
def serve_hub(hub: Hub) -> Iterator[str]:
    """Serve it on a free port; yields the address for HF_ENDPOINT."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._file(with_body=False)

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if "/tree/" in path:
                files = [
                    {"type": "file", "path": name, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}
                    for name, body in hub.files.items()
                ]
                self._json(files)
            elif path.startswith("/api/datasets/"):
                names = [{"rfilename": name} for name in hub.files]
                self._json({"id": "me/mine", "sha": COMMIT, "siblings": names, "private": False, "tags": []})
            elif path.endswith("/auth-check/write") and hub.refuses:
                self._json({"error": "Invalid username or password."}, status=401)
            elif path.startswith("/api/models/"):
                self._json({"id": "me/model", "sha": COMMIT, "siblings": [], "private": True, "tags": []})
            else:
                self._file(with_body=True)

        def do_POST(self) -> None:
            path = unquote(urlsplit(self.path).path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if hub.refuses:
                self._json({"error": "Invalid username or password."}, status=401)
            elif path == "/api/repos/create":
                hub.created.append(json.loads(body))
                self._json({"url": f"{hub.url}/me/model", "id": "1"})
            elif path == "/api/validate-yaml":
                self._json({"errors": [], "warnings": []})
            elif "/branch/" in path:
                self._json({})
            elif "/preupload/" in path:
                names = [file["path"] for file in json.loads(body)["files"]]
                how = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
                self._json({"files": [{"path": name, **how} for name in names]})
            elif "/commit/" in path:
                lines = [json.loads(line) for line in body.splitlines()]
                files = {
                    line["value"]["path"]: base64.b64decode(line["value"]["content"])
                    for line in lines
                    if line["key"] == "file"
                }
                hub.committed.append((path.rpartition("/")[2], files))
                self._json({"commitUrl": f"{hub.url}/me/model/commit/{COMMIT}", "commitOid": COMMIT, "success": True})
            else:
                self._json({"error": f"no {path}"}, status=404)

        def _file(self, *, with_body: bool) -> None:
            name = unquote(urlsplit(self.path).path).partition(f"/{COMMIT}/")[2]
            if name not in hub.files:
                self._json({"error": "Entry not found"}, status=404, code="EntryNotFound")
                return
            body = hub.files[name]
            self.send_response(200)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def _json(self, value: object, *, status: int = 200, code: str = "") -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if code:
                self.send_header("X-Error-Code", code)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub.url
    finally:
        server.shutdown()
        server.server_close()

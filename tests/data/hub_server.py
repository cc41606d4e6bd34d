"""A Hub of one machine: enough of it for huggingface_hub to download a data set,
and to fill one.
"""

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
    """What is on it, and what came to it."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Of the one data set, by path."""
    committed: list[dict[str, bytes]] = field(default_factory=list)
    """Files by path, of each commit."""
    url: str = ""

    def find(self, path: str) -> object:
        """Return what is known of the data set, or None."""
        if "/tree/" in path:
            entries = []
            for name, body in self.files.items():
                entries.append(
                    {
                        "type": "file",
                        "path": name,
                        "size": len(body),
                        "oid": hashlib.sha1(body).hexdigest(),
                    }
                )
            return entries
        if path.startswith("/api/datasets/"):
            siblings = [{"rfilename": name} for name in self.files]
            return {
                "id": "me/mine",
                "sha": COMMIT,
                "siblings": siblings,
                "private": False,
                "tags": [],
            }
        return None

    def take(self, path: str, body: bytes) -> object:
        """Return the answer to what is sent; keep a commit."""
        if "/preupload/" in path:
            how = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return {"files": [{"path": file["path"], **how} for file in json.loads(body)["files"]]}
        if "/commit/" in path:
            lines = []
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    lines.append(line["value"])
            self.committed.append(
                {line["path"]: base64.b64decode(line["content"]) for line in lines}
            )
            return {
                "commitUrl": f"{self.url}/me/mine/commit/{COMMIT}",
                "commitOid": COMMIT,
                "success": True,
            }
        # A repository that is made, a card that is looked at.
        return {"url": f"{self.url}/me/mine", "id": "1", "errors": [], "warnings": []}


@contextmanager
def serve_hub(hub: Hub) -> Iterator[str]:
    """Serve it on a free port; yields the address for HF_ENDPOINT."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            name = path.partition(f"/{COMMIT}/")[2]
            if (found := hub.find(path)) is not None:
                self._send(200, json.dumps(found).encode())
            elif name in hub.files:
                body = hub.files[name]
                tag = f'"{hashlib.sha1(body).hexdigest()}"'
                self._send(200, body, {"X-Repo-Commit": COMMIT, "ETag": tag})
            else:
                self._send(404, b'{"error": "Entry not found"}', {"X-Error-Code": "EntryNotFound"})

        do_HEAD = do_GET

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._send(200, json.dumps(hub.take(unquote(urlsplit(self.path).path), body)).encode())

        def _send(self, status: int, body: bytes, headers: dict[str, Any] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield hub.url
        server.shutdown()

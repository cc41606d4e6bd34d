"""A real HTTP server that speaks enough of OpenAI's chat completions, for tests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


def completion(text: str, *, finish: str = "stop") -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return 200, {}, json.dumps({"choices": [choice], "usage": {"completion_tokens": len(text.split())}}).encode()


@dataclass
class Server:
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    at_once: int = 0
    most_at_once: int = 0


@contextmanager
def serve(answer: Callable[[dict[str, Any], int], Reply], *, seconds: float = 0.0) -> Iterator[Server]:
    """Answer each request by `answer(body, number)`; `number` counts from 1."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                server.requests.append({**body, "path": self.path})
                server.keys.append(self.headers.get("Authorization"))
                number = len(server.requests)
                server.at_once += 1
                server.most_at_once = max(server.most_at_once, server.at_once)
            time.sleep(seconds)
            status, headers, reply = answer(body, number)
            with server.lock:
                server.at_once -= 1
            self.send_response(status)
            for name, value in {"Content-Length": str(len(reply)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()

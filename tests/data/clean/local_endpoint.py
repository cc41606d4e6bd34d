"""A real server on this machine that speaks the OpenAI protocol and says what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from microcoder.data.completions import EndpointSettings

Reply = Callable[[int, list[dict[str, str]]], str]
"""Number of the request and its messages to the reply; `HTTP503` to a failure."""


@contextmanager
def endpoint_of(reply: Reply, **settings: Any) -> Iterator[tuple[EndpointSettings, list[list[dict[str, str]]]]]:
    """Serve replies; yields the settings and the list of chats that were asked."""
    asked: list[list[dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body["messages"])
            text = reply(len(asked), body["messages"])
            status = int(text[4:]) if text.startswith("HTTP") else 200
            message = {"role": "assistant", "content": text}
            answer = {
                "id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }  # fmt: skip
            content = json.dumps(answer if status == 200 else {"error": {"message": "no"}}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        yield EndpointSettings(base_url=url, model="tiny", **settings), asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

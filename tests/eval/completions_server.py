"""A real HTTP server that speaks enough of OpenAI's chat completions and responses, for tests."""

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


def completion(text: str | None, *, finish: str = "stop", **thinking: object) -> Reply:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **thinking},
        "finish_reason": finish,
    }
    return (
        200,
        {},
        json.dumps(
            {"choices": [choice], "usage": {"completion_tokens": len((text or "").split())}}
        ).encode(),
    )


def in_the_form_asked(body: dict[str, Any], text: str) -> Reply:
    """Answer as the client asks for it: as a stream of pieces, as a response, or as a chat."""
    base = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    said = {"role": "assistant", "content": text}
    if body.get("stream"):
        choices = ({"delta": said, "finish_reason": None}, {"delta": {}, "finish_reason": "stop"})
        pieces = [{**base, "choices": [{"index": 0, **choice}]} for choice in choices]
        lines = [*map(json.dumps, [*pieces, {**base, "choices": [], "usage": usage}]), "[DONE]"]
        return (
            200,
            {"content-type": "text/event-stream"},
            "".join(f"data: {line}\n\n" for line in lines).encode(),
        )
    if "input" in body:
        part = {"type": "output_text", "text": text, "annotations": []}
        message = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        used = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
        used |= {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        rest = {
            "status": "completed",
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
        }
        reply = {
            **base,
            **rest,
            "object": "response",
            "created_at": 0,
            "output": [message],
            "usage": used,
        }
    else:
        choice = {"index": 0, "message": said, "finish_reason": "stop"}
        reply = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    return 200, {"content-type": "application/json"}, json.dumps(reply).encode()


@dataclass
class Server:
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    at_once: int = 0
    most_at_once: int = 0


@contextmanager
def serve(
    answer: Callable[[dict[str, Any], int], Reply], *, seconds: float = 0.0
) -> Iterator[Server]:
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

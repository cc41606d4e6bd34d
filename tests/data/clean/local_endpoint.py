"""A real server on this machine that speaks the OpenAI protocol and says what a test wants."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from microcoder.data.completions import EndpointSettings
from tests.eval import completions_server

Reply = Callable[[int, list[dict[str, str]]], str]
"""Number of the request and its messages to the reply; `HTTP503` to a failure."""


@contextmanager
def endpoint_of(
    reply: Reply, **settings: Any
) -> Iterator[tuple[EndpointSettings, list[dict[str, Any]]]]:
    """Serve replies; yields the settings and the list of requests that came."""

    def answer(body: dict[str, Any], number: int) -> completions_server.Reply:
        text = reply(number, body["messages"])
        if text.startswith("HTTP"):
            return int(text[4:]), {}, b'{"error": {"message": "no"}}'
        return completions_server.completion(text)

    with completions_server.serve(answer) as server:
        yield EndpointSettings(base_url=server.url, model="tiny", **settings), server.requests

"""A client of OpenAI's chat completions: vLLM, SGLang, llama.cpp, Ollama, hosted models. Needs httpx."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from microcoder.errors import ConfigError, MicroCoderError
from microcoder.installation import how_to_install

if TYPE_CHECKING:
    import httpx

_RETRIED_STATUS = frozenset((408, 409, 429, 500, 502, 503, 504, 529))
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 60.0
_MAX_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Completion:
    """The text of a reply."""

    text: str
    is_truncated: bool
    """It reached the length limit."""
    num_tokens: int | None
    """With the end-of-sequence token, where it was generated; None if the server does not report it."""


class CompletionsClient:
    """Asks one server, from several threads; use it as a context manager, or call `close`."""

    def __init__(
        self,
        url: str,
        *,
        key_variable: str,
        timeout_seconds: float,
        retries: int,
        error: type[MicroCoderError],
        may_be_filtered: bool = False,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: base address, such as `http://localhost:8000/v1`.
            key_variable: environment variable with the API key, sent only if it is set.
            timeout_seconds: of a request.
            retries: after a lost connection, a timeout, or status 408, 409, 429 or 5xx; waits double from a second to a
                minute, unless the server names a delay.
            error: what is raised when the server gives no completion.
            may_be_filtered: whether a reply without a choice, as some servers answer what their filter stops, is an
                empty text; else it is an error.

        Raises:
            ConfigError: httpx is not installed.
            MicroCoderError: of the type given, the address is none.
        """
        try:
            import httpx
        except ModuleNotFoundError:
            raise ConfigError(f"asking an endpoint needs httpx; type: {how_to_install('insights')}") from None
        self._url, self._key_variable = url.rstrip("/") + "/chat/completions", key_variable
        self._retries, self._error, self._may_be_filtered = retries, error, may_be_filtered
        try:
            httpx.URL(self._url)
        except httpx.InvalidURL as fault:
            raise error(f"{url!r} is no address ({fault}); write one such as http://localhost:8000/v1") from None
        key = os.environ.get(key_variable)
        self._http = httpx.Client(
            headers={"User-Agent": "microcoder", **({"Authorization": f"Bearer {key}"} if key else {})},
            timeout=timeout_seconds,
            limits=httpx.Limits(max_connections=None),
        )
        self._lost = httpx.RequestError
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a request that waits for its next attempt gives up."""
        self._closed.set()
        self._http.close()

    def complete(self, body: Mapping[str, Any]) -> Completion:
        """Return the reply to a request.

        Raises:
            MicroCoderError: of the type given to the client; what the server said, and what to check.
        """
        wait_seconds = _FIRST_WAIT_SECONDS
        for attempt in range(1, self._retries + 2):
            stated_seconds: float | None = None
            try:
                reply = self._http.post(self._url, json=body)
            except self._lost as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                if reply.is_success:
                    return self._read(reply)
                failure = f"status {reply.status_code}: {_shorten(reply.text)}"
                if reply.status_code not in _RETRIED_STATUS:
                    raise self._error(f"{self._url} answered {failure}; {self._hint(reply.status_code)}")
                stated_seconds = _read_seconds(reply.headers.get("Retry-After"))
            if attempt > self._retries or self._closed.is_set():
                break
            self._closed.wait(wait_seconds if stated_seconds is None else stated_seconds)
            wait_seconds = min(2 * wait_seconds, _LONGEST_WAIT_SECONDS)
        raise self._error(
            f"{self._url} failed {attempt} times, last: {failure}; check that it is up and type the same command again "
            "to resume"
        )

    def _hint(self, status: int) -> str:
        return {
            401: f"set the key in the environment variable {self._key_variable}",
            403: "the key may not use this model",
            404: "check the address (it ends in /v1 for most servers) and the name of the model",
        }.get(status, "the server refuses the request: check the name of the model and the sampling options")

    def _read(self, reply: httpx.Response) -> Completion:
        try:
            answer = reply.json()
            if self._may_be_filtered and not answer["choices"]:
                return Completion("", False, None)
            choice = answer["choices"][0]
            text, reason = choice["message"].get("content") or "", choice.get("finish_reason")
            num_tokens = (answer.get("usage") or {}).get("completion_tokens")
            if not isinstance(text, str):
                raise TypeError(f"content is {type(text).__name__}")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise self._error(
                f"{self._url} answered something else than a chat completion ({type(error).__name__}: {error}): "
                f"{_shorten(reply.text)}; check the address (it ends in /v1 for most servers)"
            ) from None
        return Completion(text, reason == "length", num_tokens if isinstance(num_tokens, int) else None)


def _shorten(text: str) -> str:
    return " ".join(text[: 4 * _MAX_SHOWN].split())[:_MAX_SHOWN]


def _read_seconds(header: str | None) -> float | None:
    try:
        return min(max(float(header or ""), 0.0), _LONGEST_WAIT_SECONDS)
    except ValueError:
        return None

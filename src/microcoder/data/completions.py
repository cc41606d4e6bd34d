"""A model behind OpenAI's chat completions: vLLM, SGLang, llama.cpp, Ollama, hosted ones. Needs httpx."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.installation import how_to_install

if TYPE_CHECKING:
    import httpx

_RETRIED_STATUS = frozenset((408, 409, 429, 500, 502, 503, 504, 529))
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 60.0
_MAX_SHOWN = 300


class EndpointConfig(Config):
    """Where a model is, and how it is reached."""

    base_url: str = Field(pattern=r"^https?://")
    """Such as http://localhost:8000/v1."""
    model: str = Field(min_length=1)
    """The server's name of the model."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable with the API key; sent only if set, and never stored."""
    timeout_seconds: float = Field(default=600.0, gt=0)
    """Timeout of a request."""
    max_retries: int = Field(default=5, ge=0)
    """Retries after a lost connection, a timeout, or status 408, 409, 429 or 5xx; waits double from a second to a
    minute, unless the server names a delay."""
    concurrency: int = Field(default=16, ge=1, le=1024)
    """Parallel requests."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The text of a reply."""

    text: str
    is_truncated: bool
    """It reached the length limit."""
    num_tokens: int | None
    """With the end-of-sequence token, where it was generated; None if the server does not report it."""


class Endpoint:
    """Asks one server, from several threads; use it as a context manager, or call `close`. Nothing is sent before."""

    def __init__(self, settings: EndpointConfig) -> None:
        """Make a client."""
        self.settings = settings
        self._url = settings.base_url.rstrip("/") + "/chat/completions"
        self._closed = threading.Event()

    @cached_property
    def _http(self) -> httpx.Client:
        try:
            import httpx
        except ModuleNotFoundError:
            raise ConfigError(f"asking an endpoint needs httpx; type: {how_to_install('insights')}") from None
        try:
            httpx.URL(self._url)
        except httpx.InvalidURL as fault:
            raise ConfigError(
                f"{self.settings.base_url!r} is not an address ({fault}); write one such as http://localhost:8000/v1"
            ) from None
        key = os.environ.get(self.settings.api_key_env)
        return httpx.Client(
            headers={"User-Agent": "microcoder", **({"Authorization": f"Bearer {key}"} if key else {})},
            timeout=self.settings.timeout_seconds,
            limits=httpx.Limits(max_connections=None),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a request that waits for its next attempt gives up."""
        self._closed.set()
        if "_http" in self.__dict__:
            self._http.close()

    def complete(self, body: Mapping[str, Any]) -> Completion:
        """Return the reply to a request in OpenAI's form."""
        http = self._http  # says what to type where httpx is missing
        from httpx import RequestError

        wait_seconds = _FIRST_WAIT_SECONDS
        for attempt in range(1, self.settings.max_retries + 2):
            stated_seconds: float | None = None
            try:
                reply = http.post(self._url, json=body)
            except RequestError as error:
                failure = f"{type(error).__name__}: {error}"
            else:
                if reply.is_success:
                    return self._read(reply)
                failure = f"status {reply.status_code}: {_shorten(reply.text)}"
                if reply.status_code not in _RETRIED_STATUS:
                    raise ConfigError(f"{self._url} answered {failure}; {self._hint(reply.status_code)}")
                stated_seconds = _read_seconds(reply.headers.get("Retry-After"))
            if attempt > self.settings.max_retries or self._closed.is_set():
                break
            self._closed.wait(wait_seconds if stated_seconds is None else stated_seconds)
            wait_seconds = min(2 * wait_seconds, _LONGEST_WAIT_SECONDS)
        raise ConfigError(
            f"{self._url} failed {attempt} times, last: {failure}; check that it is up and type the same command again "
            "to resume"
        )

    def _hint(self, status: int) -> str:
        return {
            401: f"set the key in the environment variable {self.settings.api_key_env}",
            403: "the key may not use this model",
            404: "check the address (it ends in /v1 for most servers) and the name of the model",
        }.get(status, "the server refuses the request: check the name of the model and the sampling options")

    def _read(self, reply: httpx.Response) -> Completion:
        try:
            answer = reply.json()
            choice = answer["choices"][0]
            text, reason = choice["message"].get("content") or "", choice.get("finish_reason")
            num_tokens = (answer.get("usage") or {}).get("completion_tokens")
            if not isinstance(text, str):
                raise TypeError(f"content is {type(text).__name__}")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ConfigError(
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

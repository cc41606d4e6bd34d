"""Responses from a server that speaks OpenAI's chat completions: vLLM, SGLang, llama.cpp, Ollama, hosted models."""

from __future__ import annotations

import http.client
import json
import os
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from microcoder.errors import ConfigError
from microcoder.evaluation.config import EndpointConfig
from microcoder.evaluation.samples import Response, ResponseRequest

_RETRIED_STATUS = frozenset((408, 409, 429, 500, 502, 503, 504, 529))
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 60.0
_MAX_SHOWN = 300
_HINTS = {
    401: "set the key in the environment variable that generation.api_key_env names",
    403: "the key may not use this model",
    404: "check generation.base_url (it ends in /v1 for most servers) and generation.model",
    400: "the server refuses the request: check generation.model and generation.sampling",
    422: "the server refuses the request: check generation.model and generation.sampling",
}


class _Retriable(Exception):
    """A failure worth a retry; `wait_seconds` if the server names a delay."""

    def __init__(self, message: str, wait_seconds: float | None = None) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


class EndpointGenerator:
    """Sends requests in parallel and yields the responses as they arrive."""

    def __init__(self, config: EndpointConfig, *, chat_template_options: Mapping[str, Any] | None = None) -> None:
        self._config = config
        # The name that the servers of vLLM, SGLang and llama.cpp know them by.
        self._options = {"chat_template_kwargs": dict(chat_template_options)} if chat_template_options else {}
        self._url = config.base_url.rstrip("/") + "/chat/completions"
        self._stopped = threading.Event()

    def generate(self, requests: Sequence[ResponseRequest]) -> Iterator[tuple[ResponseRequest, Response]]:
        """Yield a response to each request.

        Raises:
            ConfigError: the server cannot be reached, refuses, or answers something else; earlier responses are kept.
        """
        todo: queue.SimpleQueue[ResponseRequest] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[ResponseRequest, Response] | Exception] = queue.SimpleQueue()
        for request in requests:
            todo.put(request)
        self._stopped.clear()

        def work() -> None:
            while not self._stopped.is_set():
                try:
                    request = todo.get_nowait()
                except queue.Empty:
                    return
                try:
                    done.put((request, self._ask(request)))
                except Exception as error:  # handed to the caller's thread, which raises it
                    done.put(error)
                    return

        # Daemons: Ctrl-C must not wait for a model that is still thinking.
        for _ in range(min(self._config.concurrency, len(requests))):
            threading.Thread(target=work, name="endpoint", daemon=True).start()
        try:
            for _ in requests:
                answer = done.get()
                if isinstance(answer, Exception):
                    raise answer
                yield answer
        finally:
            self._stopped.set()

    def _ask(self, request: ResponseRequest) -> Response:
        wait = _FIRST_WAIT_SECONDS
        for attempt in range(self._config.retries + 1):
            try:
                return _read_response(self._post(self._body(request)), self._url)
            except _Retriable as failure:
                if attempt == self._config.retries or self._stopped.is_set():
                    raise ConfigError(
                        f"{self._url} failed {attempt + 1} times, last: {failure}; "
                        "check that the server runs and type the same command again to resume"
                    ) from None
                self._stopped.wait(failure.wait_seconds if failure.wait_seconds is not None else wait)
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        raise AssertionError("unreachable")

    def _body(self, request: ResponseRequest) -> dict[str, Any]:
        sampling = self._config.sampling
        body: dict[str, Any] = {
            "model": self._config.model,
            "messages": request.messages,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self._config.max_tokens_key: sampling.max_tokens,
            **self._options,
            **self._config.extra,
        }
        return {**body, "seed": request.seed} if self._config.send_seed else body

    def _post(self, body: Mapping[str, Any]) -> bytes:
        headers = {"Content-Type": "application/json", "User-Agent": "microcoder"}
        if key := os.environ.get(self._config.api_key_env):
            headers["Authorization"] = f"Bearer {key}"
        sent = urllib.request.Request(self._url, data=json.dumps(body).encode(), headers=headers, method="POST")
        try:
            with urllib.request.urlopen(sent, timeout=self._config.timeout_seconds) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            said = " ".join(error.read(4 * _MAX_SHOWN).decode("utf-8", "replace").split())[:_MAX_SHOWN]
            message = f"status {error.code}: {said}"
            if error.code in _RETRIED_STATUS:
                raise _Retriable(message, _seconds(error.headers.get("Retry-After"))) from None
            hint = _HINTS.get(error.code, "see what the server says")
            raise ConfigError(f"{self._url} answered {message}; {hint}") from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise _Retriable(f"{type(reason).__name__}: {reason}") from None


def _read_response(body: bytes, url: str) -> Response:
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        text, reason = choice["message"].get("content") or "", choice.get("finish_reason")
        num_tokens = (answer.get("usage") or {}).get("completion_tokens")
        if not isinstance(text, str):
            raise TypeError(f"content is {type(text).__name__}")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        shown = " ".join(body[:_MAX_SHOWN].decode("utf-8", "replace").split())
        raise ConfigError(
            f"{url} answered something else than a chat completion ({type(error).__name__}: {error}): {shown}; "
            "check generation.base_url (it ends in /v1 for most servers)"
        ) from None
    return Response(text, reason == "length", num_tokens if isinstance(num_tokens, int) else None)


def _seconds(header: str | None) -> float | None:
    try:
        return min(max(float(header or ""), 0.0), _LONGEST_WAIT_SECONDS)
    except ValueError:
        return None

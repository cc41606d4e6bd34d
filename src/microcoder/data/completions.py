"""A client of models behind OpenAI's chat completions: vLLM, SGLang, llama.cpp, Ollama, hosted
ones.

Needs httpx.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import ConfigError

if TYPE_CHECKING:
    import httpx

_RETRIED_STATUS = frozenset((408, 409, 429, *range(500, 600)))
"""Answers after which a request may succeed: a timeout, a limit of rate, a server's fault."""
_FIRST_WAIT_SECONDS = 1.0
"""Wait before the first retry; it doubles from one to the next."""
_LONGEST_WAIT_SECONDS = 60.0
"""Longest wait before a retry, also where the server names a longer one."""
_MAX_SHOWN = 300
"""Characters of a server's answer that a message shows."""
_THINKING_KEYS = ("reasoning_content", "reasoning")
"""Where a message has the model's thinking.

vLLM, SGLang and DeepSeek wrote the first; OpenRouter, Ollama and later versions of vLLM the second.
"""


class EndpointConfig(Config):
    """How to reach a model on a server."""

    base_url: str = Field(pattern=r"^https?://")
    """Address of the API, such as http://localhost:8000/v1."""
    model: str = Field(min_length=1)
    """Name of the model on the server."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable with the API key; sent only if set, and never stored."""
    timeout_seconds: float = Field(default=600.0, gt=0)
    """Timeout of a request."""
    max_retries: int = Field(default=5, ge=0)
    """Retries after a lost connection, a timeout, or status 408, 409, 429 or 5xx; waits double from
    a second to a minute, unless the server names a delay."""
    concurrency: int = Field(default=16, ge=1, le=1024)
    """Parallel requests."""


class EndpointSettings(EndpointConfig):
    """How to reach a model that answers questions about rows in JSON, and how long its replies may
    be."""

    max_tokens: int = Field(default=8192, ge=1)


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply of a model."""

    text: str
    is_truncated: bool
    """Whether generation stopped at the length limit."""
    num_tokens: int | None
    """Number of generated tokens, an end-of-sequence token included.

    None if the server does not report it.
    """
    thinking: str = ""
    """The model's thinking, if the server returns it apart from the text; otherwise empty."""

    @property
    def with_thinking(self) -> str:
        """Thinking and text together, `<think>...</think>` first, as servers that do not
        separate them do."""
        if not self.thinking:
            return self.text
        # Without a text the thinking was cut off: it has no end.
        end = "\n</think>\n\n" if self.text else ""
        return f"<think>\n{self.thinking}{end}{self.text}"


class BadReply(ValueError):
    """The reply is not the JSON object that was asked for: ask again, or skip the row."""


Asked = TypeVar("Asked", bound=BaseModel)


def hash_asked(*asked: object) -> str:
    """Return the hash of all that decides an answer: texts, numbers, objects as in JSON."""
    encoded = json.dumps(asked, ensure_ascii=False, sort_keys=True).encode()
    return hashlib.sha256(encoded).hexdigest()


class AnswerCache:
    """Answers in a folder, each in a file named by the hash of what was asked."""

    def __init__(self, folder: Path | None) -> None:
        """Make a cache; without a folder it keeps nothing."""
        self._folder = folder

    def read(self, key: str) -> str | None:
        """Return the answer that is kept under a hash; None if there is none."""
        path = self._find(key)
        if path is None or not path.exists():
            return None
        kept = json.loads(path.read_text(encoding="utf-8"))
        return str(kept["reply"])

    def write(self, key: str, reply: str, **more: str) -> None:
        """Keep an answer by an atomic rename; several threads may write the same."""
        path = self._find(key)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
        partial.write_text(json.dumps({**more, "reply": reply}), encoding="utf-8")
        partial.replace(path)

    def _find(self, key: str) -> Path | None:
        """Return the path of an answer, if it exists or not; None without a folder."""
        if self._folder is None:
            return None
        # Folders by two digits: a build asks a hundred thousand times.
        return self._folder / key[:2] / f"{key}.json"


class Endpoint:
    """Client of one server, for several threads; opens no connection before the first request."""

    def __init__(self, settings: EndpointConfig, *, cache: Path | None = None) -> None:
        """Make a client.

        Args:
            cache: folder where `ask` caches replies by a hash of the request.
        """
        self.settings = settings
        self._cache = AnswerCache(cache)
        self._url = settings.base_url.rstrip("/") + "/chat/completions"
        self._closed = threading.Event()

    @cached_property
    def _http(self) -> httpx.Client:
        import httpx

        try:
            # Told at once: a request would raise what no retry catches.
            httpx.URL(self._url)
        except httpx.InvalidURL as fault:
            raise ConfigError(
                f"{self.settings.base_url!r} is not an address ({fault}); "
                "write one such as http://localhost:8000/v1"
            ) from None
        headers = {"User-Agent": "microcoder"}
        key = os.environ.get(self.settings.api_key_env)
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return httpx.Client(
            headers=headers,
            timeout=self.settings.timeout_seconds,
            # The callers bound their requests by `concurrency`.
            limits=httpx.Limits(max_connections=None),
        )

    def close(self) -> None:
        """Close the connections; a request that waits for its next attempt raises ConfigError."""
        self._closed.set()
        # Only where it was opened: to ask for it would open it.
        if "_http" in self.__dict__:
            self._http.close()

    def complete(self, body: Mapping[str, Any]) -> Completion:
        """Return the reply to a request in OpenAI's form, after retries.

        Raises:
            ConfigError: none succeeds, the server refuses it, or the reply is no chat completion.
        """
        from httpx import RequestError

        http = self._http
        wait_seconds = _FIRST_WAIT_SECONDS
        for attempt in range(1, self.settings.max_retries + 2):
            stated_seconds: float | None = None
            try:
                reply = http.post(self._url, json=body)
            except RequestError as error:
                failure = f"{type(error).__name__}: {error}"
            except RuntimeError as error:
                # So httpx says that another thread has closed the client meanwhile.
                if not self._closed.is_set():
                    raise
                failure = str(error)
            else:
                if reply.is_success:
                    return self._read(reply)
                failure = f"status {reply.status_code}: {_shorten(reply.text)}"
                if reply.status_code not in _RETRIED_STATUS:
                    raise ConfigError(
                        f"{self._url} answered {failure}; check the address "
                        "(it ends in /v1 for most servers), the name of the model and the sampling "
                        f"options, and set the key in {self.settings.api_key_env}"
                    )
                stated_seconds = _read_delay(reply)
            delay_seconds = wait_seconds if stated_seconds is None else stated_seconds
            # Not `sleep`: `close` ends the wait.
            if attempt > self.settings.max_retries or self._closed.wait(delay_seconds):
                break
            wait_seconds = min(2 * wait_seconds, _LONGEST_WAIT_SECONDS)
        raise ConfigError(
            f"{self._url} failed {attempt} times, last: {failure}; "
            "check that it is up and type the same command again to resume"
        )

    def ask_again(
        self,
        text: str,
        kind: type[Asked],
        *,
        seeds: Iterable[int],
        temperature: float = 0.0,
    ) -> Asked | None:
        """Return the first reply that parses as `kind`, trying the seeds in turn; None if none
        does."""
        for seed in seeds:
            # Another seed may give a reply that fits.
            with suppress(BadReply):
                return self.ask(text, kind, seed=seed, temperature=temperature)
        return None

    def ask(
        self,
        text: str,
        kind: type[Asked],
        *,
        seed: int = 0,
        temperature: float = 0.0,
    ) -> Asked:
        """Return the model's reply to a prompt, parsed as `kind`.

        Raises:
            BadReply: it does not fit.
            ConfigError: there is no reply (see `complete`).
        """
        settings = self.settings
        if not isinstance(settings, EndpointSettings):
            raise TypeError("ask needs EndpointSettings: how many tokens")
        messages = [{"role": "user", "content": text}]
        schema = kind.model_json_schema()
        # All that decides a reply; where the model is reached is not among it.
        key = hash_asked(settings.model, temperature, seed, settings.max_tokens, messages, schema)
        cached = self._cache.read(key)
        if cached is not None:
            return _read_object(cached, kind)
        completion = self.complete(
            {
                "model": settings.model,
                "messages": messages,
                "temperature": temperature,
                "seed": seed,
                "max_tokens": settings.max_tokens,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "reply", "schema": schema, "strict": True},
                },
            }
        )
        # Before it is read: a reply that does not fit is not asked for again under its seed.
        self._cache.write(key, completion.text, model=settings.model)
        return _read_object(completion.text, kind)

    def _read(self, reply: httpx.Response) -> Completion:
        """Return the completion in a server's reply; ConfigError if it is something else."""
        try:
            answer = reply.json()
            # Some servers send no choice where the content was filtered: an empty answer, not a
            # broken server.
            choices = answer["choices"] or [{"message": {}}]
            choice = choices[0]
            message = choice["message"]
            reason = choice.get("finish_reason")
            text = message.get("content") or ""
            thinking = _find_thinking(message)
            num_tokens = (answer.get("usage") or {}).get("completion_tokens")
            if not isinstance(text, str):
                raise TypeError(f"content is {type(text).__name__}")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{self._url} answered something else than a chat completion "
                f"({type(error).__name__}: {error}): {_shorten(reply.text)}; "
                "check the address (it ends in /v1 for most servers)"
            ) from None
        if not isinstance(num_tokens, int):
            num_tokens = None
        return Completion(
            text=_without_surrogates(text),
            is_truncated=reason == "length",
            num_tokens=num_tokens,
            thinking=_without_surrogates(thinking),
        )


def _read_delay(reply: httpx.Response) -> float | None:
    """Return the seconds after which a server wants to be asked again; None if it does not say."""
    try:
        seconds = float(reply.headers.get("Retry-After", ""))
    except ValueError:
        # Some write a date; the usual wait will do.
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT_SECONDS)


def _find_thinking(message: Mapping[str, Any]) -> str:
    """Return the model's thinking where a message has a field for it; else empty."""
    for key in _THINKING_KEYS:
        thinking = message.get(key)
        if thinking and isinstance(thinking, str):
            return thinking
    return ""


def _without_surrogates(text: str) -> str:
    """Return a text without halves of surrogate pairs, which JSON can hold and no file can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _shorten(text: str) -> str:
    # Cut before it is split, since an answer may be a whole page.
    beginning = text[: 4 * _MAX_SHOWN]
    return " ".join(beginning.split())[:_MAX_SHOWN]


def _read_object(text: str, kind: type[Asked]) -> Asked:
    """Return the JSON object from a text's first brace to its last, as `kind`.

    Raises:
        BadReply: it does not fit.
    """
    # Models write before and after what they were asked for.
    begin = text.find("{")
    end = text.rfind("}") + 1
    json_text = text[begin:end]
    try:
        return kind.model_validate_json(json_text, strict=True, extra="ignore")
    except ValidationError as error:
        raise BadReply(f"the reply is not what was asked for: {error}") from None

"""A model behind any endpoint of the OpenAI protocol: JSON replies, and a cache on disk by content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import get_ident
from typing import Any

from pydantic import Field

from microcoder.completions import CompletionsClient
from microcoder.config import Config
from microcoder.errors import DataError

Message = Mapping[str, str]


class EndpointSettings(Config):
    """Where a model is, and how it is asked."""

    url: str = Field(min_length=1)
    """Base address, such as `http://localhost:8000/v1`."""
    model: str = Field(min_length=1)
    api_key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; keys are never in a config."""
    timeout_seconds: float = Field(default=120.0, gt=0)
    max_retries: int = Field(default=4, ge=0)
    """Retries after a lost connection, a timeout, or status 408, 429 or 5xx; waits double from a second to a minute."""
    max_tokens: int = Field(default=8192, ge=1)
    temperature: float = Field(default=0.0, ge=0)
    seed: int = 0
    concurrency: int = Field(default=16, ge=1)
    """Rows that are asked about at the same time."""


class BadReply(ValueError):
    """The model answered, but not what was asked for: ask again, or give the row up."""


class Endpoint:
    """Asks a model and returns JSON; several threads may."""

    def __init__(self, settings: EndpointSettings, *, cache: Path | None = None) -> None:
        """Make a client; nothing is sent yet.

        Args:
            settings: where the model is.
            cache: folder where replies are kept under the hash of what was asked; a second run asks nothing.
        """
        self.settings = settings
        self._cache = cache

    @cached_property
    def _client(self) -> CompletionsClient:
        return CompletionsClient(
            self.settings.url,
            key_variable=self.settings.api_key_variable,
            timeout_seconds=self.settings.timeout_seconds,
            retries=self.settings.max_retries,
            error=DataError,
            may_be_filtered=True,
        )

    def ask(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        *,
        seed: int | None = None,
        temperature: float | None = None,
    ) -> dict[str, Any]:
        """Return the model's reply to a chat, as the JSON object that the schema describes.

        Args:
            messages: the chat.
            schema: JSON schema of the reply.
            seed: in place of the settings' own.
            temperature: in place of the settings' own.

        Raises:
            BadReply: the reply is no JSON object, or lacks a required key.
            DataError: the endpoint gave no answer at all.
        """
        changed = {"seed": seed, "temperature": temperature}
        settings = self.settings.model_copy(update={k: value for k, value in changed.items() if value is not None})
        key = reply_key(settings, messages, schema)
        path = self._cache / key[:2] / f"{key}.json" if self._cache else None
        if path and path.exists():
            return _read(json.loads(path.read_text(encoding="utf-8"))["reply"], schema)
        text = self._client.complete(
            {
                "model": settings.model,
                "messages": list(messages),
                "temperature": settings.temperature,
                "seed": settings.seed,
                "max_tokens": settings.max_tokens,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "reply", "schema": schema, "strict": True},
                },
            }
        ).text
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.partial")
            partial.write_text(json.dumps({"model": settings.model, "reply": text}), encoding="utf-8")
            partial.replace(path)
        return _read(text, schema)

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()


def reply_key(settings: EndpointSettings, messages: Sequence[Message], schema: Mapping[str, Any]) -> str:
    """Return the hash of all that decides a reply; where the model is reached is not among it."""
    asked = [settings.model, settings.temperature, settings.seed, settings.max_tokens, list(messages), schema]
    return hashlib.sha256(json.dumps(asked, ensure_ascii=False, sort_keys=True, default=dict).encode()).hexdigest()


def _read(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    start, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : end + 1]) if start >= 0 else None
    except json.JSONDecodeError as error:
        raise BadReply(f"the reply is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise BadReply("the reply is not a JSON object")
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        raise BadReply(f"the reply lacks {', '.join(missing)}")
    return value


def hash_prompt(prompt: str) -> str:
    """Return the digest by which lineages and rejections name a prompt."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:12]

"""A model behind an OpenAI-compatible endpoint, and its answers on disk so that none is paid for twice."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from pydantic import Field

from microcoder.config import Config
from microcoder.errors import ConfigError, DataError

_WAIT_SECONDS = 60.0


class EndpointSettings(Config):
    """Where a model is, and how it is sampled."""

    model: str = Field(min_length=1)
    base_url: str = "http://localhost:8000/v1"
    """vLLM's own default."""
    key_variable: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; a local server needs none."""
    temperature: float = Field(default=0.7, ge=0)
    """Above 0, so that scoring a problem three times says more than once (our choice)."""
    max_tokens: int = Field(default=2048, ge=1)
    timeout_seconds: float = Field(default=120.0, gt=0)
    max_retries: int = Field(default=3, ge=0)


class Endpoint:
    """Asks one model; answers are kept by model, sampling, prompt, schema and seed."""

    def __init__(self, settings: EndpointSettings, *, cache: Path | None = None) -> None:
        """Make a client; nothing is sent yet.

        Raises:
            ConfigError: the client library is not installed.
        """
        try:
            import openai
        except ImportError:
            raise ConfigError("asking a model needs openai; pip install 'microcoder[data]'") from None
        self.settings, self.model = settings, settings.model
        self._failure = openai.OpenAIError
        self._client = openai.OpenAI(
            base_url=settings.base_url,
            api_key=os.environ.get(settings.key_variable) or "none",
            timeout=settings.timeout_seconds,
            max_retries=settings.max_retries,
        )
        if cache is not None:
            cache.parent.mkdir(parents=True, exist_ok=True)
        self._cache = sqlite3.connect(cache or ":memory:", timeout=_WAIT_SECONDS, isolation_level=None)
        self._cache.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer TEXT NOT NULL)")

    def ask(self, prompt: str, schema: dict[str, Any] | None = None, *, seed: int) -> str:
        """Return the answer to a prompt, as JSON of a schema where one is given.

        Raises:
            DataError: the endpoint failed, or gave no answer.
        """
        settings = self.settings.model_dump(include={"model", "base_url", "temperature", "max_tokens"})
        content = json.dumps([settings, prompt, schema, seed], sort_keys=True)
        key = hashlib.sha256(content.encode("ascii")).digest()
        row = self._cache.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return row[0]
        answer = self._request(prompt, schema, seed)
        self._cache.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, answer))
        return answer

    def close(self) -> None:
        """Close the connection and the file of answers."""
        self._client.close()
        self._cache.close()

    def _request(self, prompt: str, schema: dict[str, Any] | None, seed: int) -> str:
        wanted: dict[str, Any] = {}
        if schema is not None:
            form = {"name": "answer", "strict": True, "schema": schema}
            wanted["response_format"] = {"type": "json_schema", "json_schema": form}
        try:
            completion = self._client.chat.completions.create(
                model=self.settings.model,
                messages=[{"role": "user", "content": prompt}],
                temperature=self.settings.temperature,
                max_tokens=self.settings.max_tokens,
                seed=seed,
                **wanted,
            )
        except self._failure as error:
            where = self.settings.base_url
            raise DataError(f"{self.model} at {where} failed ({error}); check base_url and model, then go on") from None
        text = completion.choices[0].message.content if completion.choices else None
        if not text:
            raise DataError(f"{self.model} gave an empty answer; raise max_tokens ({self.settings.max_tokens})")
        return text

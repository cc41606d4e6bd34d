"""What the service takes, and how much of it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from microcoder.config import Config
from microcoder.errors import ConfigError
from microcoder.evaluator.executions import MAX_SECONDS, longest_wall_seconds

_MIN_TOKEN_LENGTH = 16
_MAX_WAIT_SECONDS = 86400.0


class ServiceSettings(Config):
    """Limits of the service; whatever is beyond one is refused with a message that says the limit."""

    max_queued: int = Field(default=1024, ge=1)
    """Programs on their way, over all requests; a request that would exceed it is answered 429."""
    max_batch: int = Field(default=256, ge=1)
    """Programs in one request."""
    max_tests: int = Field(default=1000, ge=1)
    """Tests of one problem."""
    max_body_mib: int = Field(default=64, ge=1)
    """Size of one request."""
    max_total_body_mib: int = Field(default=512, ge=1)
    """Size of all requests that are being read or answered; beyond it: 429."""
    max_cpu_seconds: float = Field(default=60.0, gt=0, le=MAX_SECONDS)
    """Longest time limit of a test that a request may ask for."""
    max_memory_mib: int = Field(default=4096, ge=32)
    """Largest memory limit that a request may ask for."""
    max_connections: int = Field(default=1024, ge=1)
    """Connections that are open at a time, fewer where the limit on open files leaves less room; beyond it the longest
    idle one of the client that has the most is reset, or, with none idle, the new one is answered 503."""
    max_connections_per_client: int = Field(default=512, ge=1)
    """Of them, from one address; beyond it that client's own longest idle one is reset."""
    head_seconds: float = Field(default=10.0, gt=0, le=_MAX_WAIT_SECONDS)
    """How long the head of a request may take to arrive; the connection is closed then."""
    idle_seconds: int = Field(default=75, ge=1, le=int(_MAX_WAIT_SECONDS))
    """How long a connection is kept open after an answer."""
    body_seconds: float = Field(default=60.0, gt=0, le=_MAX_WAIT_SECONDS)
    """How long a request may take to arrive; beyond it: 408."""
    request_seconds: float = Field(default=600.0, gt=0, le=_MAX_WAIT_SECONDS)
    """How long a request may wait and run; beyond it: 504."""
    grace_seconds: float = Field(default=30.0, ge=0, le=_MAX_WAIT_SECONDS)
    """How long a service that is asked to end goes on with what it has taken; what is left then is answered 503."""

    @property
    def max_wall_seconds(self) -> float:
        """Longest time on the clock that a request may ask for: what the longest CPU limit has by default."""
        return longest_wall_seconds(self.max_cpu_seconds)


def read_tokens(path: Path) -> frozenset[str]:
    """Read the tokens that clients may show: one a line; blank lines and lines that start with # are skipped.

    Raises:
        ConfigError: the file cannot be read, holds none, or holds one that is too short.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"token file {path} cannot be read ({type(error).__name__}); write one token a line"
        ) from None
    tokens = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not tokens:
        raise ConfigError(f"token file {path} holds no token; write one a line, for example: openssl rand -hex 32")
    if short := next((token for token in tokens if len(token) < _MIN_TOKEN_LENGTH or not token.isascii()), None):
        raise ConfigError(
            f"token file {path}: the token of {len(short)} characters is too weak; "
            f"use {_MIN_TOKEN_LENGTH} or more plain letters and digits"
        )
    return frozenset(tokens)

"""The limits of the service, and the tokens of its clients."""

from pathlib import Path

from pydantic import Field

from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.run.timing import MAX_SECONDS

_MIN_TOKEN_LENGTH = 16
"""Characters below which a token could be guessed."""
_MAX_WAIT_SECONDS = 86400.0
"""Most that a setting of time may be: a day."""


class ServiceSettings(Config):
    """Limits of the service; what exceeds one is refused, and the answer names the limit."""

    max_queued: int = Field(default=1024, ge=1)
    """Maximum number of queued and running programs over all requests; beyond it a request is
    answered 429."""
    max_batch: int = Field(default=256, ge=1)
    """Maximum number of programs per request."""
    max_total_tests: int = Field(default=20_000, ge=1)
    """Maximum number of tests per request, of all its problems."""
    max_body_mib: int = Field(default=64, ge=1)
    """Maximum size of a request."""
    max_total_body_mib: int = Field(default=512, ge=1)
    """Maximum size of all requests that are being read or answered, each JSON value counted as 256
    bytes; beyond it: 429."""
    max_cpu_seconds: float = Field(default=60.0, gt=0, le=MAX_SECONDS)
    """Highest time limit of a test."""
    max_memory_mib: int = Field(default=4096, ge=32)
    """Highest memory limit of a test."""
    max_connections: int = Field(default=1024, ge=1)
    """Maximum number of open connections, fewer if the limit on open files requires it; beyond it:
    503."""
    body_seconds: float = Field(default=60.0, gt=0, le=_MAX_WAIT_SECONDS)
    """Time for a request to arrive; beyond it: 408."""
    request_seconds: float = Field(default=600.0, gt=0, le=_MAX_WAIT_SECONDS)
    """Time limit of a request, queueing included; beyond it: 504."""
    grace_seconds: float = Field(default=30.0, ge=0, le=_MAX_WAIT_SECONDS)
    """Time to finish accepted requests after SIGTERM; what is left is answered 503."""


def read_tokens(path: Path) -> frozenset[str]:
    """Read the accepted bearer tokens, one a line.

    Blank lines and lines that start with # are skipped.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"token file {path} cannot be read ({type(error).__name__}); write one token a line"
        ) from None
    stripped = [line.strip() for line in lines]
    tokens = [line for line in stripped if line and not line.startswith("#")]
    # A header holds only plain characters, and a short token could be guessed.
    are_strong = all(len(token) >= _MIN_TOKEN_LENGTH and token.isascii() for token in tokens)
    if not tokens or not are_strong:
        raise ConfigError(
            f"token file {path} holds no token, or one that is too weak; write one a line, "
            f"of {_MIN_TOKEN_LENGTH} or more plain letters and digits: openssl rand -hex 32"
        )
    return frozenset(tokens)

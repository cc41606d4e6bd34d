"""One response to one question: the noun that generators make and the judge takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from microcoder.evaluation.questions import Messages
from microcoder.extract import USUAL, Extractor


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """One sample that is still to be made."""

    problem_id: str
    sample_index: int
    messages: Messages
    seed: int
    """Of this sample alone: the same whatever was made before it."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a model wrote."""

    text: str
    is_truncated: bool
    """It reached the length limit."""
    num_tokens: int | None
    """None where the server does not tell."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A response, or an answer from a file, with the program it holds."""

    problem_id: str
    sample_index: int
    completion: str | None
    """The whole response; None where a file gave the program alone."""
    program: str | None
    extraction: str
    """Why this is the program, or why there is none."""
    is_truncated: bool = False
    num_tokens: int | None = None

    @classmethod
    def from_response(
        cls, problem_id: str, sample_index: int, response: Response, extract: Extractor = USUAL
    ) -> Sample:
        """Take the program out of a response."""
        program = extract(response.text, is_truncated=response.is_truncated)
        return cls(
            problem_id,
            sample_index,
            response.text,
            program.code,
            program.reason,
            response.is_truncated,
            response.num_tokens,
        )

    @classmethod
    def from_record(cls, row: dict[str, Any]) -> Sample:
        """Read a line of samples.jsonl back."""
        return cls(**{name: row[name] for name in cls.__slots__})

    def as_record(self) -> dict[str, Any]:
        """Return the line of samples.jsonl."""
        return {name: getattr(self, name) for name in self.__slots__}


class Generator(Protocol):
    """A backend; it translates, and decides nothing."""

    def generate(self, requests: Sequence[ResponseRequest]) -> Iterator[tuple[ResponseRequest, Response]]:
        """Yield a response to each request, as they are ready and in any order.

        Raises:
            ConfigError: the backend cannot be used as it was configured.
        """
        ...

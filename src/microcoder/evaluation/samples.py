"""One response to one question, from a generator to the judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from microcoder.completions import Completion
from microcoder.evaluation.questions import Messages
from microcoder.extract import USUAL, Extractor


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A sample to generate."""

    problem_id: str
    sample_index: int
    messages: Messages
    seed: int
    """Seed of this sample, independent of the order of generation."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A response, or an answer from a file, with its program."""

    problem_id: str
    sample_index: int
    completion: str | None
    """The full response; None if the file has only the program."""
    program: str | None
    extraction: str
    """How the program was extracted, or why there is none."""
    is_truncated: bool = False
    num_tokens: int | None = None

    @classmethod
    def from_response(
        cls, problem_id: str, sample_index: int, response: Completion, extract: Extractor = USUAL
    ) -> Sample:
        """Extract the program from a response."""
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
        """Read a line of samples.jsonl."""
        return cls(**{name: row[name] for name in cls.__slots__})

    def as_record(self) -> dict[str, Any]:
        """Return the line of samples.jsonl."""
        return {name: getattr(self, name) for name in self.__slots__}

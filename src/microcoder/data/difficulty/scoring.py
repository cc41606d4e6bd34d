"""Difficulty as a model sees it: five dimensions, each scored several times through a JSON schema, weighted.

The paper names two of its dimensions, Algorithmic Thinking and Implementation, and where it took them from (Bloom's
taxonomy, McCabe, Halstead). The other three, all weights, the scale and the prompt are our choice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from microcoder.data.completions import BadReply, Endpoint
from microcoder.data.difficulty.predictor import EASIEST, HARDEST, with_difficulty
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.config import Config


class Dimension(Config):
    """One side of difficulty."""

    name: str = Field(pattern=r"^[a-z][a-z_]*$")
    weight: float = Field(gt=0)
    question: str
    """What a score of this dimension answers."""


_DIMENSIONS = (
    Dimension(
        name="algorithmic_thinking",
        weight=0.35,
        question="How far is the idea of the solution from what the statement says? "
        "1: do what it says; 3: a standard algorithm; 5: several ideas that must be found and combined.",
    ),
    Dimension(
        name="implementation",
        weight=0.25,
        question="How long and how branched is a correct program? "
        "1: a few lines; 3: some functions or a data structure; 5: long, with many interlocking parts.",
    ),
    Dimension(
        name="comprehension",
        weight=0.1,
        question="How hard is it to understand what is asked? 1: one reading; 5: several readings and a sketch.",
    ),
    Dimension(
        name="efficiency",
        weight=0.2,
        question="How far do the limits push beyond the obvious program? "
        "1: any program will do; 3: one order of growth must be saved; 5: several, or constant factors too.",
    ),
    Dimension(
        name="edge_cases",
        weight=0.1,
        question="How easily is a program with the right idea still wrong? 1: hardly; 5: many cases break it.",
    ),
)

_MOST_CHARACTERS = 20_000
_ATTEMPTS = 3

_PROMPT = """You grade how difficult programming problems are for a student who has passed a first course.
Score the problem below on each dimension, with an integer from {lowest} (easiest) to {highest} (hardest).

{dimensions}

Answer with one JSON object and nothing else.

Problem:
{statement}
"""


class ScoringSettings(Config):
    """How a model is asked."""

    dimensions: tuple[Dimension, ...] = Field(default=_DIMENSIONS, min_length=1)
    times: int = Field(default=3, ge=1)
    """How often each problem is scored; the paper's number."""
    lowest: int = 1
    highest: int = 5
    prompt: str = _PROMPT
    """With the places `lowest`, `highest`, `dimensions` and `statement`."""
    temperature: float = Field(default=0.7, ge=0)
    """Above 0, so that scoring a problem three times says more than once (our choice)."""
    seed: int = 0
    """The seed of the first time; each time has its own."""

    @model_validator(mode="after")
    def _is_consistent(self) -> ScoringSettings:
        names = [dimension.name for dimension in self.dimensions]
        if len(set(names)) != len(names):
            raise ValueError(f"dimensions {', '.join(names)}; give each its own name")
        if self.lowest >= self.highest:
            raise ValueError(f"lowest = {self.lowest}, highest = {self.highest}; lowest must be less")
        try:
            _fill(self, "")
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(
                f"prompt cannot be filled in ({error}); its places are lowest, highest, dimensions, "
                "statement; write other braces twice"
            ) from None
        return self


def score_difficulty(candidate: Candidate, model: Endpoint, settings: ScoringSettings | None = None) -> Candidate:
    """Return a candidate with the difficulty that a model gives it, on a scale of 1 to 5.

    Where the model does not follow the schema, however often it is asked, the candidate stays without one.
    """
    settings = settings or ScoringSettings()
    chat, schema = [{"role": "user", "content": write_prompt(candidate, settings)}], answer_schema(settings)
    answers = []
    for time in range(settings.times):
        answer = _ask(model, chat, schema, settings, time=time)
        if answer is None:
            return candidate
        answers.append(answer)
    name = f"{model.settings.model} {settings_digest(settings)}"
    means = {d.name: sum(answer[d.name] for answer in answers) / len(answers) for d in settings.dimensions}
    detail = f"{name}: " + ", ".join(f"{key} {value:.2f}" for key, value in means.items())
    return with_difficulty(candidate, detail, predicted=round(weigh(answers, settings), 4), predictor=name)


def write_prompt(candidate: Candidate, settings: ScoringSettings) -> str:
    """Return what the model reads."""
    statement = candidate.statement or candidate.statement_found
    return _fill(settings, statement[:_MOST_CHARACTERS])


def answer_schema(settings: ScoringSettings) -> dict[str, Any]:
    """Return the JSON schema of an answer: one integer per dimension."""
    score = {"type": "integer", "minimum": settings.lowest, "maximum": settings.highest}
    names = [dimension.name for dimension in settings.dimensions]
    return {
        "type": "object",
        "properties": dict.fromkeys(names, score),
        "required": names,
        "additionalProperties": False,
    }


def _ask(
    model: Endpoint,
    chat: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    settings: ScoringSettings,
    *,
    time: int,
) -> dict[str, int] | None:
    """Return the scores of one answer; asked again under other seeds where it does not follow the schema."""
    for attempt in range(_ATTEMPTS):
        seed = settings.seed + time + attempt * settings.times
        try:
            return read_scores(model.ask(chat, schema, seed=seed, temperature=settings.temperature), settings)
        except BadReply:
            continue
    return None


def read_scores(scores: Mapping[str, Any], settings: ScoringSettings) -> dict[str, int]:
    """Return the scores of an answer by dimension."""
    names = {dimension.name for dimension in settings.dimensions}
    if set(scores) != names:
        raise BadReply(f"keys {', '.join(sorted(scores))}; wanted are {', '.join(sorted(names))}")
    for name, score in scores.items():
        if type(score) is not int or not settings.lowest <= score <= settings.highest:
            raise BadReply(f"{name} = {score!r}; wanted is {settings.lowest} to {settings.highest}")
    return dict(scores)


def weigh(answers: Sequence[dict[str, int]], settings: ScoringSettings) -> float:
    """Return the weighted mean of all answers, from 1 (easiest) to 5."""
    weights = {dimension.name: dimension.weight for dimension in settings.dimensions}
    total = sum(weights[name] * score for answer in answers for name, score in answer.items())
    mean = total / (len(answers) * sum(weights.values()))
    return EASIEST + (mean - settings.lowest) / (settings.highest - settings.lowest) * (HARDEST - EASIEST)


def settings_digest(settings: ScoringSettings) -> str:
    """Return a digest of all that shapes a score besides the model."""
    return hashlib.sha256(settings.model_dump_json().encode("utf-8")).hexdigest()[:12]


def _fill(settings: ScoringSettings, statement: str) -> str:
    dimensions = "\n".join(f"- {dimension.name}: {dimension.question}" for dimension in settings.dimensions)
    return settings.prompt.format(
        lowest=settings.lowest, highest=settings.highest, dimensions=dimensions, statement=statement
    )

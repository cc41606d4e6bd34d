"""Difficulty as a model sees it: five dimensions, each scored several times through a JSON schema, weighted.

The paper names two of its dimensions, Algorithmic Thinking and Implementation, and where it took them from (Bloom's
taxonomy, McCabe, Halstead). The other three, all weights, the scale and the prompt are our choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from microcoder.data.completions import BadReply, Endpoint, hash_prompt
from microcoder.data.formats.candidates import Candidate

LOWEST, HIGHEST = 1, 5
TIMES = 3
"""How often each problem is scored; the paper's number."""
_ATTEMPTS = 3
"""How often an answer that follows no schema is asked for again."""
_TEMPERATURE = 0.7
"""Above 0, so that scoring a problem three times says more than once."""
_MOST_CHARACTERS = 20_000
DIMENSIONS: Mapping[str, tuple[float, str]] = MappingProxyType(
    {
        "algorithmic_thinking": (
            0.35,
            "How far is the idea of the solution from what the statement says? "
            "1: do what it says; 3: a standard algorithm; 5: several ideas that must be found and combined.",
        ),
        "implementation": (
            0.25,
            "How long and how branched is a correct program? "
            "1: a few lines; 3: some functions or a data structure; 5: long, with many interlocking parts.",
        ),
        "comprehension": (
            0.1,
            "How hard is it to understand what is asked? 1: one reading; 5: several readings and a sketch.",
        ),
        "efficiency": (
            0.2,
            "How far do the limits push beyond the obvious program? "
            "1: any program will do; 3: one order of growth must be saved; 5: several, or constant factors too.",
        ),
        "edge_cases": (
            0.1,
            "How easily is a program with the right idea still wrong? 1: hardly; 5: many cases break it.",
        ),
    }
)
"""Weight of each, which add up to 1, and what it asks."""
_SCALE = "\n".join(f"- {name}: {question}" for name, (_, question) in DIMENSIONS.items())
_PROMPT = f"""You grade how difficult programming problems are for a student who has passed a first course.
Score the problem below on each dimension, with an integer from {LOWEST} (easiest) to {HIGHEST} (hardest).

{_SCALE}

Answer with one JSON object and nothing else.

Problem:
"""
_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST} for name in DIMENSIONS},
    "required": list(DIMENSIONS),
    "additionalProperties": False,
}


def score_difficulty(candidate: Candidate, model: Endpoint) -> Candidate:
    """Return a candidate with the difficulty that a model gives it, on a scale of 1 to 5.

    Where the model does not follow the schema, however often it is asked, the candidate stays without one.
    """
    statement = (candidate.statement or candidate.statement_found)[:_MOST_CHARACTERS]
    chat = [{"role": "user", "content": f"{_PROMPT}{statement}\n"}]
    answers: list[dict[str, int]] = []
    for time in range(TIMES):
        answer = _ask(model, chat, time=time)
        if answer is None:
            return candidate
        answers.append(answer)
    means = {name: sum(answer[name] for answer in answers) / TIMES for name in DIMENSIONS}
    score = sum(weight * means[name] for name, (weight, _) in DIMENSIONS.items())
    name = f"{model.settings.model} {hash_prompt(_PROMPT)}"
    detail = f"{name}: " + ", ".join(f"{key} {value:.2f}" for key, value in means.items())
    difficulty = candidate.difficulty.model_copy(update={"predicted": round(score, 4), "predictor": name})
    return candidate.change("filter", "score_difficulty/1", detail, difficulty=difficulty)


def _ask(model: Endpoint, chat: Sequence[Mapping[str, str]], *, time: int) -> dict[str, int] | None:
    """Return the scores of one answer; asked again under other seeds where it does not follow the schema."""
    for attempt in range(_ATTEMPTS):
        try:
            return read_scores(model.ask(chat, _SCHEMA, seed=time + attempt * TIMES, temperature=_TEMPERATURE))
        except BadReply:
            continue
    return None


def read_scores(scores: Mapping[str, Any]) -> dict[str, int]:
    """Return the scores of an answer by dimension."""
    if set(scores) != set(DIMENSIONS):
        raise BadReply(f"keys {', '.join(sorted(scores))}; wanted are {', '.join(sorted(DIMENSIONS))}")
    for name, score in scores.items():
        if type(score) is not int or not LOWEST <= score <= HIGHEST:
            raise BadReply(f"{name} = {score!r}; wanted is {LOWEST} to {HIGHEST}")
    return dict(scores)

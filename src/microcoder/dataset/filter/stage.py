"""The filter stage, row by row: quality, licence, recency, benchmarks, and a model's opinion where one is asked.

Duplicates need every row (`duplicates.py`).
"""

from __future__ import annotations

from pydantic import Field

from microcoder.completions import BadReply, Endpoint, EndpointSettings, Message, hash_prompt
from microcoder.config import Config
from microcoder.dataset.filter.contamination import ContaminationIndex, ContaminationSettings, find_hits
from microcoder.dataset.filter.duplicates import DuplicateSettings
from microcoder.dataset.filter.licences import LicenceSettings, check_licence
from microcoder.dataset.filter.quality import QualitySettings, check_quality
from microcoder.dataset.filter.recency import RecencySettings, check_recency
from microcoder.dataset.rejections import reject
from microcoder.errors import ConfigError
from microcoder.formats.candidates import Candidate, Rejection

PROMPT = (
    "You judge statements that are meant to be programming problems for training a coding model. Give two numbers "
    "from 0 to 1. `relevance`: is an algorithm or a program asked for, whose output can be checked by tests? (0 for "
    "quizzes, essays, database or web tasks.) `clarity`: could a good programmer solve it from this text alone? (0 "
    "where needed parts are missing, 0.5 where one has to guess.) Add `why` in one short sentence. Reply with a JSON "
    "object."
)
SCHEMA = {
    "type": "object",
    "properties": {"relevance": {"type": "number"}, "clarity": {"type": "number"}, "why": {"type": "string"}},
    "required": ["relevance", "clarity", "why"],
    "additionalProperties": False,
}
_ATTEMPTS = 2


class FilterSettings(Config):
    """What the filter stage turns away."""

    quality: QualitySettings = QualitySettings()
    licence: LicenceSettings = LicenceSettings()
    recency: RecencySettings = RecencySettings()
    contamination: ContaminationSettings = ContaminationSettings()
    duplicates: DuplicateSettings = DuplicateSettings()
    judge: EndpointSettings | None = None
    """A model that judges relevance and clarity after all rules passed; without one the rules decide."""
    max_hits_shown: int = Field(default=3, ge=1)
    """Benchmark problems named in a rejection."""


def filter_row(
    candidate: Candidate,
    settings: FilterSettings | None = None,
    index: ContaminationIndex | None = None,
    endpoint: Endpoint | None = None,
) -> Candidate | Rejection:
    """Return the candidate where every rule passes, or the rejection of the first that does not.

    Args:
        candidate: a processed candidate.
        settings: the rules.
        index: the benchmarks' problems; without one nothing is compared.
        endpoint: the judge; made from the settings where it is not given.
    """
    settings = settings or FilterSettings()
    found = (
        check_quality(candidate, settings.quality)
        or check_licence(candidate, settings.licence)
        or check_recency(candidate, settings.recency)
    )
    if found:
        return reject(candidate, "filter", *found)
    if index is not None and (hits := find_hits(candidate, index)):
        shown = "; ".join(f"{hit.problem_id} by {hit.by} ({hit.detail})" for hit in hits[: settings.max_hits_shown])
        return reject(candidate, "filter", "contaminated", shown)
    if endpoint is None and settings.judge is not None:
        endpoint = Endpoint(settings.judge)
    if endpoint is not None and (
        found := judge_relevance(candidate, endpoint, min_score=settings.quality.min_relevance)
    ):
        return reject(candidate, "filter", *found)
    return candidate


def judge_relevance(candidate: Candidate, endpoint: Endpoint, *, min_score: float) -> tuple[str, str] | None:
    """Return the reason `not_relevant` and what the model said, or None where both numbers reach the bar.

    A row is kept where the model gives no usable answer: it is an opinion on top of the rules.

    Raises:
        ConfigError: the endpoint gave no answer at all.
    """
    messages: list[Message] = [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": f"Title: {candidate.title}\n\n{candidate.statement}"},
    ]
    for _ in range(_ATTEMPTS):
        try:
            reply = endpoint.ask(messages, SCHEMA)
            scores = {name: min(1.0, max(0.0, float(reply[name]))) for name in ("relevance", "clarity")}
        except ConfigError:
            raise
        except (BadReply, TypeError, ValueError):
            messages = [*messages, {"role": "user", "content": "Reply with the JSON object only."}]
            continue
        if min(scores.values()) >= min_score:
            return None
        said = ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
        return (
            "not_relevant",
            f"{said}: {str(reply['why'])[:120]} ({endpoint.settings.model}, prompt {hash_prompt(PROMPT)})",
        )
    return None

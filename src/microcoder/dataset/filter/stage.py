"""The filter stage, row by row: quality, licence, recency, benchmarks. Duplicates need every row (`duplicates.py`)."""

from __future__ import annotations

from pydantic import Field

from microcoder.config import Config
from microcoder.dataset.endpoint import Endpoint, EndpointSettings
from microcoder.dataset.filter.contamination import ContaminationIndex, ContaminationSettings, find_hits
from microcoder.dataset.filter.duplicates import DuplicateSettings
from microcoder.dataset.filter.licences import LicenceSettings, check_licence
from microcoder.dataset.filter.quality import QualitySettings, check_quality
from microcoder.dataset.filter.recency import RecencySettings, check_recency
from microcoder.dataset.filter.relevance import judge_relevance
from microcoder.dataset.rejections import reject
from microcoder.formats.candidates import Candidate, Rejection


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

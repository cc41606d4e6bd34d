"""The filter stage: row by row (quality, licence, recency, benchmarks), then over the whole set (duplicates)."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from microcoder.config import Config
from microcoder.dataset.endpoint import Endpoint, EndpointSettings
from microcoder.dataset.filter.contamination import ContaminationIndex, ContaminationSettings, find_hits
from microcoder.dataset.filter.duplicates import DuplicateGroup, DuplicateSettings, describe, find_duplicates
from microcoder.dataset.filter.licences import LicenceSettings, check_licence
from microcoder.dataset.filter.merging import merge
from microcoder.dataset.filter.quality import QualitySettings, check_quality
from microcoder.dataset.filter.recency import RecencySettings, check_recency
from microcoder.dataset.filter.relevance import judge_relevance
from microcoder.dataset.rejections import reject
from microcoder.errors import DataError
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


def deduplicate(
    candidates: Iterable[Candidate], settings: DuplicateSettings | None = None
) -> tuple[list[Candidate], list[Rejection]]:
    """Return one record per problem and a rejection for each that was merged into another, both sorted by id.

    What is found does not depend on the order of the candidates.

    Raises:
        DataError: two candidates have one id, so one of them would be lost.
    """
    by_id: dict[str, Candidate] = {}
    for candidate in sorted(candidates, key=lambda one: one.id):
        if candidate.id in by_id:
            raise DataError(
                f"two candidates have the id {candidate.id!r} ({by_id[candidate.id].source_row!r} and "
                f"{candidate.source_row!r}); an id is `dataset/row` and names one row: make the adapter's ids differ"
            )
        by_id[candidate.id] = candidate
    groups = find_duplicates(describe(list(by_id.values()), settings), settings)
    return apply_groups(by_id, groups)


def apply_groups(
    by_id: dict[str, Candidate], groups: Iterable[DuplicateGroup]
) -> tuple[list[Candidate], list[Rejection]]:
    """Merge each group into its kept record, and reject the others with its id."""
    kept = dict(by_id)
    rejected = []
    for group in groups:
        kept[group.kept] = merge(by_id[group.kept], [by_id[name] for name in group.dropped])
        for name in group.dropped:
            detail = f"{group.kept} by {group.why[name]}"
            rejected.append(reject(kept.pop(name), "filter", "duplicate_of", detail))
    return list(kept.values()), sorted(rejected, key=lambda rejection: rejection.id)

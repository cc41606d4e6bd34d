"""Filter: quality, licence, recency, benchmarks' problems, duplicates; every row that goes says why."""

from microcoder.dataset.filter.contamination import (
    ContaminationIndex,
    ContaminationSettings,
    Hit,
    build_index,
    find_hits,
)
from microcoder.dataset.filter.duplicates import (
    DuplicateGroup,
    DuplicateSettings,
    Fingerprint,
    describe,
    find_duplicates,
)
from microcoder.dataset.filter.licences import LicenceSettings, check_licence, normalise_licence
from microcoder.dataset.filter.merging import merge
from microcoder.dataset.filter.quality import QualitySettings, check_quality
from microcoder.dataset.filter.recency import RecencySettings, check_recency
from microcoder.dataset.filter.stage import FilterSettings, filter_row

__all__ = [
    "ContaminationIndex",
    "ContaminationSettings",
    "DuplicateGroup",
    "DuplicateSettings",
    "FilterSettings",
    "Fingerprint",
    "Hit",
    "LicenceSettings",
    "QualitySettings",
    "RecencySettings",
    "build_index",
    "check_licence",
    "check_quality",
    "check_recency",
    "describe",
    "filter_row",
    "find_duplicates",
    "find_hits",
    "merge",
    "normalise_licence",
]

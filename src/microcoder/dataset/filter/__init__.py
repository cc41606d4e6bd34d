"""Filter: quality, licence, recency, benchmarks' problems, duplicates; every row that goes says why."""

from microcoder.dataset.filter.contamination import ContaminationIndex, ContaminationSettings, build_index, find_hits
from microcoder.dataset.filter.duplicates import (
    DuplicateGroup,
    DuplicateSettings,
    Fingerprint,
    describe,
    find_duplicates,
)
from microcoder.dataset.filter.licences import LicenceSettings
from microcoder.dataset.filter.merging import merge
from microcoder.dataset.filter.quality import QualitySettings
from microcoder.dataset.filter.recency import RecencySettings
from microcoder.dataset.filter.stage import FilterSettings, filter_row

__all__ = [
    "ContaminationIndex", "ContaminationSettings", "DuplicateGroup", "DuplicateSettings", "FilterSettings",
    "Fingerprint", "LicenceSettings", "QualitySettings", "RecencySettings", "build_index", "describe", "filter_row",
    "find_duplicates", "find_hits", "merge",
]  # fmt: skip

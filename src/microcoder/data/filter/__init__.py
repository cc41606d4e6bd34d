"""Filter stage: quality, licence, benchmarks' problems, duplicates; each rejected row has a reason."""

from microcoder.data.filter.contamination import ContaminationIndex, build_index, find_hits
from microcoder.data.filter.duplicates import Fingerprint, describe, find_duplicates, merge
from microcoder.data.filter.rules import FilterSettings, LicenceSettings, filter_row

__all__ = [
    "ContaminationIndex", "FilterSettings", "Fingerprint", "LicenceSettings", "build_index",
    "describe", "filter_row", "find_duplicates", "find_hits", "merge",
]  # fmt: skip

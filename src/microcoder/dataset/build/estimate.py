"""What a build will take, before it starts: rows are counted, seconds rest on the constants below."""

from __future__ import annotations

from collections.abc import Mapping

from microcoder.dataset.pipeline.engine import Missing

SECONDS_PER_ROW = {
    "collect": 0.002,
    "process": 0.012,
    "filter": 0.006,
    "deduplicate": 0.004,
    "predict": 0.006,
    "attempts": 2.0,
    "select": 0.001,
    "compare": 0.8,
    "generate": 6.0,
    "verify": 4.0,
}
"""CPU seconds a row, measured on the public sets in this project's tests; verification varies a hundredfold with the
number of programs and tests, and a model behind an endpoint takes as long as it takes."""
SECONDS_PER_MB = {
    "collect": 0.03,
    "process": 0.03,
    "filter": 0.02,
    "deduplicate": 0.02,
    "predict": 0.02,
    "attempts": 0.02,
    "select": 0.02,
    "compare": 0.02,
    "verify": 0.6,
}
"""CPU seconds a megabyte of rows, mostly of tests: each step reads and writes it, and programs are given it."""
PACKAGE_SECONDS = 40.0
"""CPU seconds to verify a contest package: several accepted and wrong programs, most of them to be compiled."""
_SURVIVE = {"collect": 1.0, "process": 1.0, "filter": 0.9, "deduplicate": 0.7, "predict": 0.7, "attempts": 0.7}
"""Share of the raw rows that come as far as a step."""


def estimate_seconds(missing: Mapping[str, Missing], *, workers: int, package_share: float = 0.0) -> float:
    """Return the wall seconds of what is missing.

    Args:
        missing: rows and bytes that each step has still to do.
        workers: processes at the same time.
        package_share: of the rows that are contest packages.
    """
    verify = SECONDS_PER_ROW["verify"] * (1 - package_share) + PACKAGE_SECONDS * package_share
    seconds = {**SECONDS_PER_ROW, "verify": verify}
    work = sum(
        (seconds[step] * left.num_rows + SECONDS_PER_MB.get(step, 0.05) * left.num_bytes / 1e6)
        * _SURVIVE.get(step, 0.6)
        for step, left in missing.items()
    )
    return work / workers

"""What the steps of a build use and what decides nothing: folders, files of benchmarks, workers."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from microcoder.completions import Endpoint, EndpointSettings
from microcoder.config import Config
from microcoder.dataset.build.config import SourceSettings
from microcoder.evaluator import Judge
from microcoder.evaluator.packages import STANDARD

_TESTS_MIB = 128
"""That a judge keeps ready: a build is done with a problem before it comes to the next."""


class Resources(Config):
    """What all steps are given; what of it decides a result is in the step's key by its content."""

    work: Path
    """Folder of answers, verdicts and counts."""
    benchmarks: tuple[SourceSettings, ...] = ()
    """Archives unpacked."""
    responses: Path | None = None
    """A model's attempts."""
    packages: str = STANDARD
    workers: int | None = None
    unsafe: bool = False

    def open_judge(self, **rules: Any) -> Judge:
        """Start a judge with further arguments of `Judge`."""
        shared = {"workers": self.workers, "packages": self.packages, "unsafe": self.unsafe, "tests_mib": _TESTS_MIB}
        return Judge(**shared, **rules)

    def open_endpoint(self, settings: EndpointSettings | None, opened: ExitStack) -> Endpoint | None:
        """Return a client that is closed with `opened`; None without settings."""
        if settings is None:
            return None
        endpoint = Endpoint(settings, cache=self.work / "answers")
        opened.callback(endpoint.close)
        return endpoint

"""The generate step: the judges and, where one is given, the model that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import Field

from microcoder.dataset.build.judging import JudgingStep
from microcoder.dataset.endpoint import Endpoint
from microcoder.dataset.filter import QualitySettings
from microcoder.dataset.generation import GenerateSettings, Judges, generate
from microcoder.dataset.pipeline import Row
from microcoder.dataset.pipeline.steps import Work
from microcoder.dataset.rejections import process_row
from microcoder.formats.candidates import Candidate


class GenerateStep(JudgingStep):
    """What the generate step needs."""

    generate: GenerateSettings
    answers: Path = Field(exclude=True)
    """Where a model's answers are kept; it decides nothing."""


@contextmanager
def open_generate(settings: GenerateStep) -> Iterator[Work]:
    """Make tests for problems that have few."""
    with ExitStack() as opened:
        asked = settings.generate.endpoint
        endpoint = Endpoint(asked, cache=settings.answers) if asked else None
        if endpoint is not None:
            opened.callback(endpoint.close)
        judges: list[Judges] = []

        def open_judges() -> Judges:
            # A shard whose problems all have tests enough starts no sandbox.
            if not judges:
                thorough = settings.open_judge(stop="first_limit", cache_size=0, batch_tests=True)
                brief = settings.open_judge(stop="first_failure", cache_size=0, batch_tests=True)
                judges.append(Judges(opened.enter_context(thorough), opened.enter_context(brief)))
            return judges[0]

        def work(candidates: Sequence[Candidate]) -> Iterable[Row]:
            # One by one, so that rows are seen to be done.
            for one in candidates:
                yield process_row(one, "generate", lambda one: generate(one, open_judges, settings.generate, endpoint))

        yield work


def before_generation(quality: QualitySettings, settings: GenerateSettings) -> QualitySettings:
    """Return what the filter stage may ask of tests when some are made after it: nothing.

    What has none then is turned away by the generate stage, or by the verify stage.
    """
    if settings.mode == "off":
        return quality
    flags = tuple(flag for flag in quality.blocking_flags if flag != "only_samples")
    return quality.model_copy(update={"blocking_flags": flags, "needs_tests": False})

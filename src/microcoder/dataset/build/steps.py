"""The steps of a build, in order: what each is called, what decides its result, where it runs."""

from __future__ import annotations

from typing import Any

from microcoder.dataset.build.comparison import CompareStep
from microcoder.dataset.build.config import BuildConfig, SourceSettings
from microcoder.dataset.build.generation import GenerateStep, before_generation
from microcoder.dataset.build.inputs import FileDigests, digest_sources
from microcoder.dataset.build.verification import AttemptsStep, VerifyStep
from microcoder.dataset.build.works import CollectSettings, FilterStep, PredictStep, ProcessStep
from microcoder.dataset.pipeline import BarrierStep, MapStep, Step
from microcoder.evaluator.interpreter import CURRENT_VERSION
from microcoder.evaluator.packages import load_profile

_WORKS = "microcoder.dataset.build.works"
_BARRIERS = "microcoder.dataset.build.barriers"
_GENERATION = "microcoder.dataset.build.generation"
_VERIFICATION = "microcoder.dataset.build.verification"
_COMPARISON = "microcoder.dataset.build.comparison"
_READING = (
    "microcoder.dataset.collect",
    "microcoder.formats",
    "microcoder.dataset.rowfiles",
    "microcoder.dataset.sources",
    "microcoder.dataset.columns",
    "microcoder.formats.payload",
)
_INPUTS = "microcoder.dataset.inputs"
_PROCESS = "microcoder.dataset.process"
_FILTER = "microcoder.dataset.filter"
_REASONS = "microcoder.dataset.rejections"
_DIFFICULTY = "microcoder.dataset.difficulty"
_ENDPOINT = "microcoder.dataset.endpoint"
_JUDGING = ("microcoder.evaluator", "microcoder.extract")


def collect_step() -> MapStep:
    """Return the step that reads raw rows."""
    return MapStep("collect", "collect", CollectSettings(), f"{_WORKS}:open_collect", _READING)


def later_steps(config: BuildConfig, *, benchmarks: tuple[SourceSettings, ...], digests: FileDigests) -> list[Step]:
    """Return the steps after collect.

    Args:
        config: the build.
        benchmarks: its benchmarks, archives unpacked.
        digests: of files.

    Raises:
        DataError: a benchmark cannot be found.
    """
    answers, difficulty = config.work_folder / "answers", config.difficulty
    steps: list[Step] = [
        MapStep(
            "process",
            "process",
            ProcessStep(process=config.process, answers=answers),
            f"{_WORKS}:open_process",
            (_PROCESS, _REASONS, _ENDPOINT, "microcoder.formats.text"),
        ),
        MapStep(
            "filter",
            "filter",
            FilterStep(
                filter=config.filter.model_copy(
                    update={"quality": before_generation(config.filter.quality, config.generate)}
                ),
                benchmarks=benchmarks,
                benchmarks_digest=digest_sources(benchmarks, digests=digests),
                answers=answers,
            ),
            f"{_WORKS}:open_filter",
            (_FILTER, _PROCESS, _REASONS, _ENDPOINT, *(_READING if config.benchmarks else ())),
        ),
        BarrierStep(
            "deduplicate",
            "filter",
            config.filter.duplicates,
            f"{_BARRIERS}:DuplicateBarrier",
            (_FILTER, _PROCESS, _REASONS),
        ),
        MapStep(
            "predict",
            "filter",
            PredictStep(
                endpoint=difficulty.endpoint if difficulty.predictor == "model" else None,
                scoring=difficulty.scoring if difficulty.predictor == "model" else None,
                answers=answers,
            ),
            f"{_WORKS}:open_predict",
            (_DIFFICULTY, _REASONS, _ENDPOINT),
        ),
    ]
    common: dict[str, Any] = {
        "workers": config.workers,
        "packages": config.packages,
        "environment": f"Python {CURRENT_VERSION}, packages {load_profile(config.packages).digest}",
        "unsafe": config.unsafe_sandbox,
    }
    if difficulty.responses is not None:
        steps.append(
            MapStep(
                "attempts",
                "filter",
                AttemptsStep(
                    model=difficulty.calibrate_by,
                    responses=difficulty.responses.absolute(),
                    responses_digest=digests.find(difficulty.responses),
                    **common,
                ),
                f"{_VERIFICATION}:open_attempts",
                (_DIFFICULTY, *_JUDGING),
                runs="alone",
            )
        )
    steps.append(BarrierStep("select", "filter", difficulty, f"{_BARRIERS}:SelectionBarrier", (_DIFFICULTY,)))
    if benchmarks and config.behaviour.is_on:
        steps.append(
            MapStep(
                "compare",
                "filter",
                CompareStep(
                    behaviour=config.behaviour,
                    benchmarks=benchmarks,
                    benchmarks_digest=digest_sources(benchmarks, digests=digests),
                    memory=config.work_folder / "comparison",
                    **common,
                ),
                f"{_COMPARISON}:open_compare",
                ("microcoder.dataset.behaviour", _INPUTS, _FILTER, _PROCESS, _REASONS, *_READING, *_JUDGING),
                runs="alone",
            )
        )
    steps += [
        MapStep(
            "generate",
            "generate",
            GenerateStep(
                generate=config.generate,
                answers=answers,
                **common,
            ),
            f"{_GENERATION}:open_generate",
            (
                "microcoder.dataset.generation",
                "microcoder.dataset.verify",
                _INPUTS,
                _PROCESS,
                _REASONS,
                _ENDPOINT,
                *_JUDGING,
            ),
            runs="alone",
        ),
        MapStep(
            "verify",
            "verify",
            VerifyStep(
                verify=config.verify,
                memory=config.work_folder / "verification",
                **common,
            ),
            f"{_VERIFICATION}:open_verify",
            ("microcoder.dataset.verify", _PROCESS, _REASONS, *_JUDGING),
            runs="alone",
            shares=f"{_VERIFICATION}:open_verdicts",
        ),
    ]
    return steps

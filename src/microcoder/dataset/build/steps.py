"""The steps of a build, in order: what each is called, what decides its result, where it runs."""

from __future__ import annotations

from functools import partial

from microcoder.dataset.build import works
from microcoder.dataset.build.barriers import DuplicateBarrier, SelectionBarrier
from microcoder.dataset.build.config import BuildConfig, DifficultySettings, SourceSettings
from microcoder.dataset.build.inputs import FileDigests, digest_sources
from microcoder.dataset.build.resources import Resources
from microcoder.dataset.build.verification import open_attempts, open_verdicts, open_verify
from microcoder.dataset.filter import QualitySettings
from microcoder.dataset.generation import GenerateSettings
from microcoder.dataset.pipeline.steps import BarrierStep, MapStep, Step
from microcoder.evaluator.interpreter import CURRENT_VERSION
from microcoder.evaluator.packages import load_profile

_READING = (
    "microcoder.dataset.collect",
    "microcoder.formats",
    "microcoder.dataset.rowfiles",
    "microcoder.dataset.sources",
    "microcoder.dataset.columns",
)
_INPUTS = "microcoder.dataset.inputs"
_PROCESS = "microcoder.dataset.process"
_FILTER = "microcoder.dataset.filter"
_REASONS = "microcoder.dataset.rejections"
_DIFFICULTY = "microcoder.dataset.difficulty"
_ENDPOINT = "microcoder.completions"
_VERIFY = "microcoder.dataset.verify"
_JUDGING = ("microcoder.evaluator", "microcoder.extract")


def collect_step() -> MapStep:
    """Return the step that reads raw rows."""
    return MapStep("collect", "collect", works.CollectSettings(), works.open_collect, _READING)


def later_steps(config: BuildConfig, *, benchmarks: tuple[SourceSettings, ...], digests: FileDigests) -> list[Step]:
    """Return the steps after collect.

    Args:
        config: the build.
        benchmarks: its benchmarks, archives unpacked.
        digests: of files.

    Raises:
        DataError: a benchmark cannot be found.
    """
    difficulty, responses = config.difficulty, config.difficulty.responses
    resources = Resources(
        work=config.work_folder,
        benchmarks=benchmarks,
        responses=responses.absolute() if responses else None,
        packages=config.packages,
        workers=config.workers,
        unsafe=config.unsafe_sandbox,
    )
    compared = digest_sources(benchmarks, digests=digests)
    environment = f"Python {CURRENT_VERSION}, packages {load_profile(config.packages).digest}"
    quality = _before_generation(config.filter.quality, config.generate)
    # What else is set of difficulty decides nothing about a prediction.
    asked = {name: getattr(difficulty, name) for name in ("predictor", "endpoint", "scoring")}
    steps: list[Step] = [
        MapStep(
            "process",
            "process",
            config.process,
            partial(works.open_process, resources=resources),
            (_PROCESS, _REASONS, _ENDPOINT, "microcoder.formats.text"),
        ),
        MapStep(
            "filter",
            "filter",
            config.filter.model_copy(update={"quality": quality}),
            partial(works.open_filter, resources=resources),
            (_FILTER, _PROCESS, _REASONS, _ENDPOINT, *(_READING if benchmarks else ())),
            inputs=(compared,),
        ),
        BarrierStep("deduplicate", "filter", config.filter.duplicates, DuplicateBarrier, (_FILTER, _PROCESS, _REASONS)),
        MapStep(
            "predict",
            "filter",
            DifficultySettings(**asked) if difficulty.predictor == "model" else DifficultySettings(),
            partial(works.open_predict, resources=resources),
            (_DIFFICULTY, _REASONS, _ENDPOINT),
        ),
    ]
    if responses is not None:
        steps.append(
            MapStep(
                "attempts",
                "filter",
                DifficultySettings(calibrate_by=difficulty.calibrate_by),
                partial(open_attempts, resources=resources),
                (_DIFFICULTY, *_JUDGING),
                inputs=(digests.find(responses), environment),
                runs="alone",
            )
        )
    steps.append(BarrierStep("select", "filter", difficulty, SelectionBarrier, (_DIFFICULTY,)))
    if benchmarks and config.behaviour.is_on:
        steps.append(
            MapStep(
                "compare",
                "filter",
                config.behaviour,
                partial(works.open_compare, resources=resources),
                ("microcoder.dataset.behaviour", _INPUTS, _FILTER, _PROCESS, _REASONS, *_READING, *_JUDGING),
                inputs=(compared, environment),
                runs="alone",
            )
        )
    return [
        *steps,
        MapStep(
            "generate",
            "generate",
            config.generate,
            partial(works.open_generate, resources=resources),
            ("microcoder.dataset.generation", _VERIFY, _INPUTS, _PROCESS, _REASONS, _ENDPOINT, *_JUDGING),
            inputs=(environment,),
            runs="alone",
        ),
        MapStep(
            "verify",
            "verify",
            config.verify,
            partial(open_verify, resources=resources),
            (_VERIFY, _PROCESS, _REASONS, *_JUDGING),
            inputs=(environment,),
            runs="alone",
            shares=partial(open_verdicts, resources=resources),
        ),
    ]


def _before_generation(quality: QualitySettings, settings: GenerateSettings) -> QualitySettings:
    """Return what the filter stage may ask of tests when some are made after it: nothing.

    What has none then is rejected by the generate stage, or by the verify stage.
    """
    if settings.mode == "off":
        return quality
    flags = tuple(flag for flag in quality.blocking_flags if flag != "only_samples")
    return quality.model_copy(update={"blocking_flags": flags, "needs_tests": False})

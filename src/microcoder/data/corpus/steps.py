"""The steps of a build in order.

A step has a name, settings, the code that decides its result, where it runs, and the function that
does it (`work.py`, `barriers.py`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from microcoder.data.corpus.barriers import BoilerplateBarrier, DuplicateBarrier, SelectionBarrier
from microcoder.data.corpus.inputs import digest_file, list_inputs
from microcoder.data.corpus.settings import (
    ArrangeSettings,
    BuildConfig,
    DifficultySettings,
    SourceSettings,
    TranslationSettings,
)
from microcoder.data.corpus.work import (
    Resources,
    load_translator,
    open_attempts,
    open_collect,
    open_compare,
    open_filter,
    open_generate,
    open_predict,
    open_process,
    open_references,
    open_same_task,
    open_translate,
    open_verify,
)
from microcoder.data.formats.candidates import Stage
from microcoder.data.pipeline.steps import BarrierStep, MapStep, Step, digest
from microcoder.data.sources import WHOLE
from microcoder.judge import JudgeOptions
from microcoder.judge.core.config import Config
from microcoder.judge.languages.definition import CURRENT_VERSION
from microcoder.judge.languages.packages import load_profile

# Modules and packages whose code decides a step's result: a digest of them is in its key. The key
# is made of its input's as well, so that what decides an earlier step, such as the code of the
# formats, decides it too.
_READING = (
    "microcoder.data.sources",
    "microcoder.data.formats",
    "microcoder.data.rowfiles",
    "microcoder.judge.core",
    "microcoder.judge.languages",
)
"""What reads raw rows."""
_CLEAN = "microcoder.data.clean"
_TRANSLATION = "microcoder.data.corpus.translation"
_FILTER = "microcoder.data.filter"
_DIFFICULTY = "microcoder.data.difficulty"
_BEHAVIOUR = "microcoder.data.behaviour"
_SAME_TASK = "microcoder.data.corpus.same_task"
_TESTGEN = "microcoder.data.testgen"
_ENDPOINT = "microcoder.data.completions"
_INPUTS = "microcoder.data.inputs"
_VERIFY = "microcoder.data.verify"
_DECISIONS = "microcoder.data.decisions"
_JUDGE = "microcoder.judge"


def collect_step() -> MapStep:
    """Return the first step, which reads raw rows into candidates."""
    return MapStep("collect", "collect", Config(), open_collect, _READING)


def later_steps(
    config: BuildConfig,
    *,
    benchmarks: tuple[SourceSettings, ...],
) -> list[Step]:
    """Return the steps after collect that the settings of a build ask for, in order."""
    maker = _StepMaker(config, benchmarks)
    steps: list[Step] = [maker.process()]
    if config.process.translation is not None:
        steps.append(maker.translate(config.process.translation))
    steps += [maker.filter(), maker.boilerplate(), maker.deduplicate()]
    # After duplicates, so that no problem is scored twice.
    steps += maker.by_difficulty()
    # Attempts decide by their digest, not by where their file lies.
    attempts: tuple[str, ...] = ()
    if maker.attempts is not None:
        attempts = (digest_file(maker.attempts),)
        steps.append(maker.references(*attempts))
    # By execution and by a model only what is left: both cost more than all the rest.
    if benchmarks and config.behaviour:
        steps.append(maker.compare())
    if benchmarks and config.same_task is not None:
        steps.append(maker.ask())
    steps.append(maker.generate(attempts))
    steps.append(maker.verify())
    return steps


class _StepMaker:
    """Makes the steps of one build."""

    def __init__(
        self,
        config: BuildConfig,
        benchmarks: tuple[SourceSettings, ...],
    ) -> None:
        responses = config.difficulty.responses
        if responses is not None:
            # Steps run in processes that may have another working directory.
            responses = responses.absolute()
        attempts = config.attempts
        if attempts is not None:
            attempts = attempts.absolute()
        self.attempts = attempts or responses
        """Attempts of which problems without a right program get one."""
        self._config = config
        shards = list_inputs(benchmarks, rows_per_shard=WHOLE)
        self._compared = digest(*(shard.digest for shard in shards))
        """Digest of the benchmarks."""
        self._resources = Resources(
            work=config.work_folder,
            decisions=config.decision_folders,
            benchmarks=benchmarks,
            compared=self._compared,
            responses=responses,
            attempts=self.attempts,
            judge=JudgeOptions(
                workers=config.workers,
                packages=config.packages,
                unsafe=config.unsafe,
            ),
        )
        packages = load_profile(config.packages).digest
        self._environment = f"Python {CURRENT_VERSION}, packages {packages}"
        """What programs run in."""

    def process(self) -> Step:
        return self._map_step(
            "process",
            "process",
            # Who translates decides nothing here, only whether somebody does.
            ArrangeSettings(keeps_foreign=self._config.process.translation is not None),
            open_process,
            (_CLEAN,),
        )

    def translate(self, settings: TranslationSettings) -> Step:
        inputs: tuple[str, ...] = ()
        if settings.function:
            source = load_translator(settings.function).source
            assert source is not None
            inputs = (source.digest,)
        return self._map_step(
            "translate",
            "process",
            settings,
            open_translate,
            (_TRANSLATION, _CLEAN, _ENDPOINT),
            inputs=inputs,
            # One process, since `concurrency` bounds the requests of one alone.
            runs="alone",
        )

    def filter(self) -> Step:
        return self._map_step(
            "filter",
            "filter",
            self._config.licence,
            open_filter,
            (_FILTER,),
            inputs=(self._compared,),
        )

    def boilerplate(self) -> Step:
        return BarrierStep(
            "boilerplate",
            "filter",
            Config(),
            BoilerplateBarrier,
            (_FILTER,),
        )

    def deduplicate(self) -> Step:
        return BarrierStep(
            "deduplicate",
            "filter",
            Config(),
            DuplicateBarrier,
            (_FILTER,),
        )

    def by_difficulty(self) -> list[Step]:
        """Return the steps that measure difficulty and select by it."""
        difficulty = self._config.difficulty
        steps: list[Step] = []
        if difficulty.endpoint is not None:
            steps.append(self._predict())
        if difficulty.responses is not None:
            steps.append(self._attempts(digest_file(difficulty.responses)))
        if difficulty.pass_rates_of or difficulty.selection is not None:
            code = (_DIFFICULTY,)
            steps.append(
                BarrierStep(
                    "select",
                    "filter",
                    difficulty,
                    SelectionBarrier,
                    code,
                )
            )
        return steps

    def _predict(self) -> Step:
        # What else is set of difficulty decides nothing about a score.
        settings = DifficultySettings(endpoint=self._config.difficulty.endpoint)
        code = (_DIFFICULTY, _ENDPOINT)
        return self._map_step("predict", "filter", settings, open_predict, code)

    def _attempts(self, responses: str) -> Step:
        """Return the step that judges a model's attempts, which have the given digest."""
        # The attempts decide by their digest, not by where their file lies.
        settings = DifficultySettings(pass_rates_of=self._config.difficulty.pass_rates_of)
        return self._map_step(
            "attempts",
            "filter",
            settings,
            open_attempts,
            (_DIFFICULTY, _JUDGE),
            inputs=(responses, self._environment),
            # One process, which spreads programs over the cores itself.
            runs="alone",
        )

    def references(self, attempts: str) -> Step:
        """Return the step that makes references of attempts, which have the given digest."""
        return self._map_step(
            "references",
            "filter",
            self._config.generate,
            open_references,
            (_TESTGEN, _INPUTS, _VERIFY, _DIFFICULTY, _ENDPOINT, _JUDGE),
            inputs=(attempts, self._environment),
            # One process, which spreads programs over the cores itself.
            runs="alone",
            executes=True,
        )

    def compare(self) -> Step:
        return self._map_step(
            "compare",
            "filter",
            Config(),
            open_compare,
            (_BEHAVIOUR, _INPUTS, _DECISIONS, _JUDGE),
            inputs=(self._compared, self._environment),
            # One process, which spreads programs over the cores itself.
            runs="alone",
            executes=True,
        )

    def ask(self) -> Step:
        assert self._config.same_task is not None
        return self._map_step(
            "ask",
            "filter",
            self._config.same_task,
            open_same_task,
            (_SAME_TASK, _BEHAVIOUR, _FILTER, _INPUTS, _ENDPOINT, _JUDGE),
            inputs=(self._compared,),
            # One process, since `concurrency` bounds the requests of one alone.
            runs="alone",
        )

    def generate(self, attempts: tuple[str, ...]) -> Step:
        """Return the step that makes tests; attempts with the given digest choose among them."""
        return self._map_step(
            "generate",
            "generate",
            self._config.generate,
            open_generate,
            (_TESTGEN, _INPUTS, _VERIFY, _DECISIONS, _DIFFICULTY, _ENDPOINT, _JUDGE),
            inputs=(*attempts, self._environment),
            runs="alone",
        )

    def verify(self) -> Step:
        return self._map_step(
            "verify",
            "verify",
            self._config.verify,
            open_verify,
            (_VERIFY, _DECISIONS, _JUDGE),
            inputs=(self._environment,),
            runs="alone",
        )

    def _map_step(
        self,
        name: str,
        stage: Stage,
        settings: Config,
        opens: Callable[..., Any],
        code: tuple[str, ...],
        *,
        inputs: tuple[str, ...] = (),
        runs: Literal["on_every_core", "alone"] = "on_every_core",
        executes: bool = False,
    ) -> MapStep:
        """Return a step whose work has the resources that all share."""
        return MapStep(
            name,
            stage,
            settings,
            partial(opens, resources=self._resources),
            code,
            inputs=inputs,
            runs=runs,
            executes=executes,
        )

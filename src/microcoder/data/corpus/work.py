"""What the steps of a build do to the rows of one shard.

Each function takes a step's settings, in the process that runs the step. It returns the step's
work: a function of a shard's candidates. Files and clients that it opens are closed with `opened`.
"""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Unpack

from microcoder.data.behaviour.comparison import compare_pairs
from microcoder.data.behaviour.keeping import decide_on, read_compared, write_compared
from microcoder.data.behaviour.pairs import find_pairs, index_behaviour
from microcoder.data.clean.stage import finish, process
from microcoder.data.completions import AnswerCache, Endpoint, EndpointSettings
from microcoder.data.corpus.inputs import open_settings, read_benchmark_problems
from microcoder.data.corpus.same_task import find_same_task, index_tasks
from microcoder.data.corpus.settings import (
    ArrangeSettings,
    DifficultySettings,
    SourceSettings,
    TranslationSettings,
)
from microcoder.data.corpus.translation import (
    FunctionTranslator,
    ModelTranslator,
    Translator,
    translate,
)
from microcoder.data.decisions import Decisions
from microcoder.data.difficulty import judge_attempts, read_responses, score_difficulty
from microcoder.data.filter.contamination import build_index, describe_hits
from microcoder.data.filter.rules import LicenceSettings, filter_row
from microcoder.data.formats.candidates import Candidate, Rejection, Stage, process_row
from microcoder.data.pipeline.parts import Part, cut, read_rows
from microcoder.data.pipeline.steps import Row, Work, digest, source_digest
from microcoder.data.sources import Shard, collect_shard
from microcoder.data.testgen.answers import Judges
from microcoder.data.testgen.attempts import adopt_references
from microcoder.data.testgen.settings import GenerateSettings
from microcoder.data.testgen.stage import generate
from microcoder.data.verify.choice import VerifySettings
from microcoder.data.verify.execution import verify
from microcoder.data.verify.rates import combine_counts
from microcoder.data.verify.store import VerdictStore
from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.config import Config
from microcoder.judge.core.extensions import Extension, load_extension
from microcoder.judge.core.files import cut_pieces
from microcoder.judge.run.options import JudgeKeys

_TESTS_MIB = 128
"""Memory in MiB for tests that a judge keeps cached.

Small, since a build takes one problem after the other.
"""
_LEAST_AT_ONCE = 8
"""Problems verified at once, at least (fewer if their tests are large)."""
_AT_ONCE_A_WORKER = 4
"""Problems verified at once per worker."""
_COMPARED_AT_ONCE = 32
"""Problems whose programs are compared at once: a benchmark's program is loaded once for all."""
_BYTES_AT_ONCE = 16 << 20
"""Bytes of tests at which a batch to verify ends early: each byte is several times in memory."""
_EXAMPLES = (
    "microcoder.data.clean.examples",
    "microcoder.data.clean.samples",
    "microcoder.data.clean.sections",
    "microcoder.data.clean.headings",
)
"""What reads a statement's examples, which verify runs."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Options and folders that all steps share.

    They are not part of a step's key; what matters of them is there as digests.
    """

    work: Path
    """Folder of answers, verdicts and counts."""
    decisions: tuple[Path, ...]
    """Folders of what was decided by measurement."""
    benchmarks: tuple[SourceSettings, ...]
    """Benchmarks, with archives unpacked."""
    compared: str
    """Digest of the benchmarks."""
    responses: Path | None
    """File of a model's attempts at problems, for their difficulty."""
    attempts: Path | None
    """File of attempts at problems that have no right program."""
    judge: JudgeOptions

    def open_judge(self, **rules: Unpack[JudgeKeys]) -> Judge:
        """Return a judge with these options; `rules` are further arguments of `Judge`."""
        return Judge(self.judge, tests_mib=_TESTS_MIB, **rules)

    def open_decisions(self, judge: Judge, *deciding: str, code: Sequence[str]) -> Decisions:
        """Return what was decided earlier by the same code, settings and packages.

        Args:
            judge: it decides by its code and the packages of programs.
            deciding: what else decides besides a row.
            code: modules and packages whose code decides.
        """
        sources = map(source_digest, ("microcoder.judge", "microcoder.data.formats", *code))
        version = digest(judge.environment.identity, *deciding, *sources)
        return Decisions(self.decisions, version=version)

    def open_endpoint(self, settings: EndpointSettings, opened: ExitStack) -> Endpoint:
        """Return a client that is closed with `opened`."""
        endpoint = Endpoint(settings, cache=self.work / "answers")
        return opened.enter_context(closing(endpoint))


def open_collect(
    settings: Config,
    opened: ExitStack,
) -> Callable[[tuple[SourceSettings, Shard]], Iterable[Row]]:
    """Return a function that reads a shard of a source into candidates and rejections."""
    # A source is looked through once, not for each of its shards.
    open_once = cache(open_settings)

    def collect(place: tuple[SourceSettings, Shard]) -> Iterable[Row]:
        source, shard = place
        return collect_shard(open_once(source), shard)

    return collect


def open_process(
    settings: ArrangeSettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: cleans each candidate (`clean.process`)."""
    arrange = partial(process, keeps_foreign=settings.keeps_foreign)

    def work(candidates: Iterable[Candidate]) -> Iterator[Row]:
        return _map("process", arrange, candidates)

    return work


def open_translate(
    settings: TranslationSettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: translates what is not in English, and finishes it."""
    translator: Translator
    at_once = 1
    if settings.endpoint is not None:
        endpoint = resources.open_endpoint(settings.endpoint, opened)
        # A request waits for the model, not for this machine.
        at_once = settings.endpoint.concurrency
        translator = ModelTranslator(endpoint, second_reading=settings.second_reading)
    else:
        extension = load_translator(settings.function)
        translator = FunctionTranslator(extension, AnswerCache(resources.work / "answers"))

    def put_into_english(candidate: Candidate) -> Row:
        if candidate.natural_language == "en":
            return candidate
        translated = translate(candidate, translator)
        return finish(translated) if isinstance(translated, Candidate) else translated

    def work(candidates: Iterable[Candidate]) -> Iterator[Row]:
        return _map("process", put_into_english, candidates, at_once=at_once)

    return work


def load_translator(reference: str) -> Extension:
    """Return the user's function that translates, by its reference."""
    return load_extension("translator", reference, builtins={})


def open_filter(
    settings: LicenceSettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: apply the rules, and the benchmarks' index, to each row."""
    index = None
    if resources.benchmarks:
        index = build_index(read_benchmark_problems(resources.benchmarks))

    def decide(candidate: Candidate) -> Row:
        return filter_row(candidate, settings, index)

    def work(candidates: Iterable[Candidate]) -> Iterator[Row]:
        return _map("filter", decide, candidates)

    return work


def open_predict(
    settings: DifficultySettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: asks a model how hard each problem is."""
    assert settings.endpoint is not None
    endpoint = resources.open_endpoint(settings.endpoint, opened)
    # A request waits for the model, not for this machine.
    at_once = endpoint.settings.concurrency

    def score(candidate: Candidate) -> Row:
        return score_difficulty(candidate, endpoint)

    def work(candidates: Iterable[Candidate]) -> Iterator[Row]:
        return _map("filter", score, candidates, at_once=at_once)

    return work


def open_attempts(
    settings: DifficultySettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: judges a model's attempts at each problem.

    It adds the rate to the problem's `pass_rates`.
    """
    assert resources.responses is not None
    responses = read_responses(resources.responses)
    judge = opened.enter_context(resources.open_judge())

    def work(candidates: Iterable[Candidate]) -> Iterable[Row]:
        # In memory: all attempts of a shard are judged together.
        rated = list(candidates)
        counts = judge_attempts(rated, responses, judge)
        for candidate in rated:
            if candidate.id in counts:
                passed, attempts = counts[candidate.id]
                rate = f"{passed}/{attempts}"
                yield _with_rate(candidate, settings.pass_rates_of, rate)
            else:
                yield candidate

    return work


def _with_rate(
    candidate: Candidate,
    model: str,
    rate: str,
) -> Candidate:
    """Return a candidate with a model's pass rate in place of an earlier one of that model."""
    rates = []
    for entry in candidate.pass_rates:
        if entry.rpartition("=")[0] != model:
            rates.append(entry)
    rates.append(f"{model}={rate}")
    return candidate.change(
        "filter",
        "attempts/1",
        "judged here",
        pass_rates=tuple(rates),
    )


def open_compare(
    settings: Config,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: reject problems that behave like a benchmark problem."""
    index = index_behaviour(read_benchmark_problems(resources.benchmarks))
    judge = opened.enter_context(resources.open_judge())
    decisions = resources.open_decisions(
        judge,
        resources.compared,
        code=(
            "microcoder.data.behaviour",
            "microcoder.data.clean",
            "microcoder.data.filter",
            "microcoder.data.inputs",
        ),
    )

    def compare(batch: Sequence[Candidate]) -> list[Row]:
        rows: list[Row] = list(batch)
        names = [decisions.name(candidate) for candidate in batch]
        texts = [decisions.find(name) for name in names]
        pairs_by_row = {}
        for number, candidate in enumerate(batch):
            if texts[number] is not None:
                continue
            pairs = process_row(candidate, "filter", partial(find_pairs, index=index))
            if isinstance(pairs, Rejection):
                rows[number] = pairs
            else:
                pairs_by_row[number] = pairs
        found = compare_pairs(list(pairs_by_row.values()), judge)
        for number, compared in zip(pairs_by_row, found, strict=True):
            # A program may be too slow for an input here and not there.
            texts[number] = decisions.keep(names[number], write_compared(compared))
        for number, text in enumerate(texts):
            if text is not None:
                rows[number] = decide_on(batch[number], read_compared(text))
        return rows

    def work(candidates: Iterable[Candidate]) -> Iterator[Row]:
        for batch in cut_pieces(candidates, _COMPARED_AT_ONCE):
            yield from compare(batch)

    return work


def open_same_task(
    settings: EndpointSettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: reject problems that a model calls the same as a benchmark
    problem."""
    endpoint = resources.open_endpoint(settings, opened)
    index = index_tasks(read_benchmark_problems(resources.benchmarks), endpoint)

    def ask(candidate: Candidate) -> Row:
        hits, num_unanswered = find_same_task(candidate, index, endpoint)
        if hits:
            return candidate.reject("filter", "contaminated", describe_hits(hits))
        flags = candidate.flags
        if num_unanswered:
            flags = tuple(sorted({*flags, "same_task_unanswered"}))
        return candidate.change("filter", "same_task/1", f"{num_unanswered} questions", flags=flags)

    def work(candidates: Iterable[Candidate]) -> Iterator[Row]:
        return _map(
            "filter",
            ask,
            candidates,
            at_once=endpoint.settings.concurrency,
        )

    return work


def _judges_when_asked(opened: ExitStack, resources: Resources) -> Callable[[], Judges]:
    """Return a function that starts the judges of made tests when it is first called.

    A shard whose problems all have tests enough starts no sandbox.
    """

    @cache
    def open_judges() -> Judges:
        thorough = resources.open_judge(
            stop="first_limit",
            cache_size=0,
            batch_tests=True,
        )
        brief = resources.open_judge(
            stop="first_failure",
            cache_size=0,
            batch_tests=True,
        )
        return Judges(opened.enter_context(thorough), opened.enter_context(brief))

    return open_judges


def open_references(
    settings: GenerateSettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: problems without a right program get one that attempts agree on."""
    assert resources.attempts is not None
    responses = read_responses(resources.attempts)
    endpoint: Endpoint | None = None
    if settings.endpoint is not None:
        endpoint = resources.open_endpoint(settings.endpoint, opened)
    open_judges = _judges_when_asked(opened, resources)

    def adopt(candidate: Candidate) -> Row:
        texts = _responses_to(candidate, responses)
        return adopt_references(candidate, texts, open_judges, settings, endpoint)

    return _one_by_one("filter", adopt)


def _responses_to(candidate: Candidate, responses: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a model's answers to a candidate and to those that were merged with it."""
    texts: list[str] = []
    for name in (candidate.id, *candidate.merged):
        texts += responses.get(name, [])
    return texts


def open_generate(
    settings: GenerateSettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: makes tests for problems that have few."""
    endpoint: Endpoint | None = None
    if settings.endpoint is not None:
        endpoint = resources.open_endpoint(settings.endpoint, opened)

    open_judges = _judges_when_asked(opened, resources)
    responses: Mapping[str, Sequence[str]] = {}
    if resources.attempts is not None:
        responses = read_responses(resources.attempts)

    def make(candidate: Candidate) -> Row:
        texts = _responses_to(candidate, responses)
        return generate(candidate, open_judges, settings, endpoint, texts)

    return _one_by_one("generate", make)


def open_verify(
    settings: VerifySettings,
    opened: ExitStack,
    resources: Resources,
) -> Work:
    """Return the step's work: verifies problems by execution."""
    # Time limits follow from what references take in a process of their own.
    judge = opened.enter_context(
        resources.open_judge(stop="first_limit", cache_size=0, batch_tests=False)
    )
    # A file of SQLite is for one machine.
    path = resources.work / "verification" / f"verdicts-{platform.node()}.sqlite"
    store = opened.enter_context(VerdictStore(path))
    decisions = resources.open_decisions(
        judge,
        # What else is asked of a problem is asked of what its runs have shown.
        settings.model_dump_json(include={"max_tests"}),
        code=("microcoder.data.verify", *_EXAMPLES),
    )
    # So many that all workers are busy, and few enough that progress is shown by rows.
    most = max(_LEAST_AT_ONCE, _AT_ONCE_A_WORKER * judge.workers)

    def work(candidates: Iterable[Candidate]) -> Iterable[Row]:
        for batch in cut(
            candidates,
            _count_characters,
            most=most,
            size=_BYTES_AT_ONCE,
        ):
            yield from verify(
                batch,
                judge,
                settings,
                store=store,
                decisions=decisions,
            )

    return work


def _count_characters(candidate: Candidate) -> int:
    """Return the characters of a problem's tests."""
    return sum(len(test.input) + len(test.output) for test in candidate.tests)


def _one_by_one(stage: Stage, do: Callable[[Candidate], Row]) -> Work:
    """Return the work of a step that takes rows one by one, so that progress is shown by rows."""

    def work(candidates: Iterable[Candidate]) -> Iterator[Row]:
        for candidate in candidates:
            yield process_row(candidate, stage, do)

    return work


def _map(
    stage: Stage,
    work: Callable[[Candidate], Row],
    candidates: Iterable[Candidate],
    *,
    at_once: int = 1,
) -> Iterator[Row]:
    """Yield `work` of each candidate, in order, from `at_once` threads.

    A failure of our code is a rejection.
    """

    def work_on(candidate: Candidate) -> Row:
        return process_row(candidate, stage, work)

    # In a thread of its own, however deep the caller stands, the same rows are nested too deeply.
    with ThreadPoolExecutor(at_once) as threads:
        yield from threads.map(work_on, candidates)


def read_rates(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the verifier's true-positive and true-negative rates over all rows of these parts."""
    counts: list[Mapping[str, tuple[int, int]]] = []
    for part in parts:
        for row in read_rows(part.path):
            # Rejected problems count too: the rates are the verifier's, not the corpus's.
            candidate = row.candidate if isinstance(row, Rejection) else row
            if candidate is not None and candidate.counts:
                counts.append(candidate.counts)
    rates: dict[str, Any] = {}
    for name, rate in combine_counts(counts).items():
        rates[name] = None if rate is None else rate.model_dump(mode="json")
    return rates

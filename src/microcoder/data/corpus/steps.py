"""A build: its settings; its input as numbered shards, the same in every run, with digests of their content; its steps.

A step has a name, settings, the code that decides its result, where it runs, and what it does.
"""

import hashlib
import json
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from microcoder.data.behaviour.comparison import find_behaviour, index_behaviour
from microcoder.data.clean.stage import process
from microcoder.data.completions import Endpoint, EndpointSettings
from microcoder.data.corpus.same_task import find_same_task, index_tasks
from microcoder.data.difficulty import (
    SelectionSettings,
    judge_attempts,
    read_responses,
    score_difficulty,
    select,
    with_pass_rate,
)  # fmt: skip
from microcoder.data.filter.contamination import build_index, describe_hits
from microcoder.data.filter.duplicates import Fingerprint, describe, find_duplicates
from microcoder.data.filter.keys import LONGEST_EXAMPLE
from microcoder.data.filter.merging import merge
from microcoder.data.filter.rules import LicenceSettings, filter_row
from microcoder.data.formats.candidates import Candidate, Difficulty, Rejection, Stage, process_row
from microcoder.data.formats.columns import ID, parse_columns
from microcoder.data.formats.rows import find_source, load_format
from microcoder.data.pipeline.parts import Part, cut, read_rows
from microcoder.data.pipeline.steps import Barrier, BarrierStep, InputShard, MapStep, Row, Step, Work, digest
from microcoder.data.rowfiles import is_archive, unpack
from microcoder.data.sources import (
    WHOLE,
    Shard,
    Source,
    collect_shard,
    collect_source,
    list_files,
    list_places,
    list_shards,
    open_source,
)
from microcoder.data.testgen.answers import GenerateSettings, Judges
from microcoder.data.testgen.stage import generate
from microcoder.data.verify.choice import VerifySettings
from microcoder.data.verify.execution import verify
from microcoder.data.verify.rates import combine_counts
from microcoder.data.verify.store import VerdictStore, evaluator_version
from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError
from microcoder.judge.languages.definition import CURRENT_VERSION
from microcoder.judge.languages.packages import STANDARD, load_profile

_TESTS_MIB = 128
"""Memory in MiB for tests that a judge keeps cached; small, since a build takes one problem after the other."""


class SourceSettings(Config):
    """A source: where rows of one format are read."""

    path: str = Field(min_length=1)
    """A file, a folder, an archive (tar or zip), or `hf://datasets/owner/name[@revision]/config/split`."""
    inside: str = ""
    """File or folder inside `path`, such as one of several data sets of an archive."""
    format: str
    """Format of its rows; `microcoder data audit` without arguments lists all."""
    columns: str = ""
    """Columns of rows with names of their own, as in `statement=task.text,tests=cases` (docs/rows.md), with a `format`
    whose reader has columns, such as `trl`. Ids are given by a build: none is named."""
    name: str = ""
    """Prefix of its rows' ids; the format's name where none is given."""
    licence: str = ""
    """Licence of its rows that name none, as `CC-BY-4.0`; by default that of the data set on the Hub, where it is a
    known one."""

    def _contradictions(self) -> Iterator[str]:
        if ID in parse_columns(self.columns):
            yield (
                "columns: a build gives each row an id, its source and place; leave out id from "
                f"{self.columns!r}"
            )

    @property
    def prefix(self) -> str:
        """Prefix of its rows' ids."""
        return self.name or self.format.rpartition(":")[2]


class DifficultySettings(Config):
    """How difficulty is estimated, and which problems are kept by it."""

    endpoint: EndpointSettings | None = None
    """Model that scores how hard each problem is (as arXiv 2603.07779 does); without one none is scored."""
    pass_rates_of: str = ""
    """Model whose pass rates count, as its name stands in the candidates' `pass_rates`; empty: none count."""
    responses: Path | None = None
    """JSON lines of that model's attempts (`{"id", "responses": [...]}`), which are judged."""
    selection: SelectionSettings | None = None
    """Which problems are kept by their difficulty; without it all are."""

    def _contradictions(self) -> Iterator[str]:
        by = self.selection.by if self.selection is not None else ""
        if self.responses is not None and not self.pass_rates_of:
            yield "responses are of a model; name it with pass_rates_of"
        if by == "pass_rate" and not self.pass_rates_of:
            yield 'selection.by = "pass_rate" needs pass rates; name a model with pass_rates_of'
        if by == "predicted" and self.endpoint is None:
            yield (
                'selection.by = "predicted" needs difficulties that a model scores; set difficulty.endpoint.model and '
                'difficulty.endpoint.base_url, or selection.by = "pass_rate"'
            )


class BuildConfig(Config):
    """Settings of a build: sources, steps and output of a corpus."""

    name: str = Field(min_length=1)
    """Name of the corpus on its card."""
    output: Path
    """Folder of the finished corpus."""
    work: Path | None = None
    """Folder of results that are kept between runs; `<output>/.work` by default. On Ray, all nodes must see it."""
    sources: tuple[SourceSettings, ...] = Field(min_length=1)
    """Sources of the corpus; a benchmark's format is refused."""
    benchmarks: tuple[SourceSettings, ...] = ()
    """Benchmarks whose problems must not be in the corpus."""
    rows_per_shard: int = Field(default=64, ge=1)
    """Rows per shard, fewer if they have more than 16 MiB; a build that was killed repeats its unfinished shards."""
    runner: Literal["native", "ray"] = "native"
    """`native`: processes of this machine; `ray`: of the cluster that `RAY_ADDRESS` names or that runs here, or of one
    that is started."""
    workers: int | None = Field(default=None, ge=1)
    """Parallel processes, with Ray per node; by default one per core. In steps that run programs (verify, a model's
    attempts): parallel programs."""
    licence: LicenceSettings = LicenceSettings()
    behaviour: bool = True
    """Whether programs are compared with those of the benchmarks (docs/contamination.md); a problem takes about half a
    CPU second."""
    same_task: EndpointSettings | None = None
    """Model that is asked which problems are a benchmark's in disguise; without one this step is left out."""
    difficulty: DifficultySettings = DifficultySettings()
    generate: GenerateSettings = GenerateSettings()
    verify: VerifySettings = VerifySettings()
    packages: str = STANDARD
    """Packages that programs may import: `standard`, `atcoder`, `none`, or the path of a file of pins."""
    unsafe: bool = False
    """Verify even if the sandbox cannot be closed. Unsafe: only for programs you trust."""

    def _contradictions(self) -> Iterator[str]:
        for name, count in Counter(source.prefix for source in self.sources).items():
            if count > 1:
                yield f"{count} sources are called {name!r}; give each a `name` of its own"
        for source in self.sources:
            if load_format(source.format).is_benchmark:
                yield (
                    f"source {source.prefix!r} has the format {source.format!r}, a benchmark that is never trained on; "
                    "put it under [[benchmarks]] instead of [[sources]]"
                )
        if self.same_task is not None and not self.benchmarks:
            yield "[same_task] is asked about problems of benchmarks; name one under [[benchmarks]]"

    @property
    def work_folder(self) -> Path:
        """Folder of parts, verdicts and answers, kept between runs."""
        return (self.work or self.output / ".work").absolute()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, cached until its size or time changes; DataError if it is unreadable."""
    try:
        stat = path.stat()
        return _digest_content(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check the path") from None


@cache
def _digest_content(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpack_sources(sources: Sequence[SourceSettings], *, into: Path) -> tuple[SourceSettings, ...]:
    """Unpack sources that are archives, or folders of archives only, below `into`; return them with the new paths."""
    found = []
    for source in sources:
        path, archives = Path(source.path), [Path(source.path)] if is_archive(source.path) else []
        if archives and not path.exists():
            raise DataError(f"source {path} does not exist; check the path")
        if path.is_dir() and not list_places(path, load_format(source.format)):
            archives = sorted(
                one for one in path.rglob("*") if is_archive(one.name) and one.is_file()
            )
        if archives:
            names = [
                str(one.relative_to(path if path.is_dir() else path.parent)) for one in archives
            ]
            # A changed archive gets a folder of its own.
            place = into / digest(*names, *map(digest_file, archives))
            stems = [re.sub(r"(?i)(?:\.tar)?\.\w+$", "", name) for name in names]
            for archive, name, stem in zip(archives, names, stems, strict=True):
                unpack(archive, place / (stem if stems.count(stem) == 1 else name), aside=into)
            source = source.model_copy(
                update={"path": str(place if path.is_dir() else place / stems[0])}
            )
        if source.inside:
            source = source.model_copy(
                update={"path": str(Path(source.path) / source.inside), "inside": ""}
            )
        found.append(source)
    return tuple(found)


def open_settings(settings: SourceSettings) -> Source:
    """Return the source that these settings describe; DataError if it is missing (see `open_source`)."""
    return open_source(
        settings.path,
        settings.format,
        name=settings.prefix,
        licence=settings.licence,
        columns=parse_columns(settings.columns),
    )


def list_inputs(
    sources: Sequence[SourceSettings], *, rows_per_shard: int, bytes_per_shard: int | None = None
) -> list[InputShard]:
    """Return the shards of all sources, numbered in the order of the sources."""
    shards: list[InputShard] = []
    for number, settings in enumerate(sources):
        source = open_settings(settings)
        for shard in list_shards(source, rows_per_shard, bytes_per_shard):
            parts = [asdict(part) for part in shard]
            # Not where the source lies: its rows are the same in any place.
            reader = find_source(settings.format)
            decisive = (reader and reader.digest, settings.licence, settings.columns)
            own = [one for one in decisive if one]
            named = json.dumps([source.name, source.format.name, source.revision, parts, *own])
            num_rows = sum(part.num_rows for part in shard)
            content = digest(named, *(digest_file(path) for path in list_files(source, shard)))
            shards.append(InputShard(len(shards), number, (settings, shard), content, num_rows))
    return shards


def describe_sources(
    sources: Sequence[SourceSettings], shards: Sequence[InputShard]
) -> list[dict[str, str]]:
    """Return name, address, commit on the Hub, digest and licence of each source as its recipe names it, for the card.

    The digest is that of the file or archive, or of the sorted `sha256sum` lines of a folder's files.
    """
    found = []
    for number, named in enumerate(sources):
        places = [shard.place for shard in shards if shard.source == number]
        if not places:
            continue
        source, path = open_settings(places[0][0]), Path(named.path)
        files = {file for _, shard in places for file in list_files(source, shard)}
        lines = "\n".join(sorted(f"{digest_file(file)}  {file.name}" for file in files))
        found.append({
            "name": named.prefix,
            "url": named.path if source.revision else path.name,
            "version": source.revision or _find_commit(path),
            "sha256": digest_file(path) if path.is_file() else hashlib.sha256(lines.encode()).hexdigest(),
            "license": source.licence,
        })  # fmt: skip
    return found


def _find_commit(folder: Path) -> str:
    """Return the commit that a clone has checked out; empty if the folder is not a clone."""
    try:
        head = (folder / ".git" / "HEAD").read_text().strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        loose, packed = folder / ".git" / name, folder / ".git" / "packed-refs"
        if loose.exists():
            return loose.read_text().strip()
        return next(
            (
                line.split()[0]
                for line in packed.read_text().splitlines()
                if line.endswith(f" {name}")
            ),
            "",
        )
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Resources:
    """Options and folders that all steps share; not part of a step's key, which has digests of what matters."""

    work: Path
    """Folder of answers, verdicts and counts."""
    benchmarks: tuple[SourceSettings, ...]
    """Benchmarks, with archives unpacked."""
    responses: Path | None
    """File of a model's attempts at problems."""
    judge: JudgeOptions

    def open_judge(self, **rules: Any) -> Judge:
        """Return a judge with these options; `rules` are further arguments of `Judge`."""
        return Judge(self.judge, tests_mib=_TESTS_MIB, **rules)

    def open_endpoint(
        self, settings: EndpointSettings | None, opened: ExitStack
    ) -> Endpoint | None:
        """Return a client that is closed with `opened`; None without settings."""
        if settings is None:
            return None
        return opened.enter_context(closing(Endpoint(settings, cache=self.work / "answers")))


_LEAST_AT_ONCE, _AT_ONCE_A_WORKER = 8, 4
"""Problems verified at once: minimum, and per worker (fewer if their tests are large)."""
_BYTES_AT_ONCE = 16 << 20
"""Bytes of tests at which a batch to verify ends early: each byte is several times in memory."""


def open_attempts(settings: DifficultySettings, opened: ExitStack, resources: Resources) -> Work:
    """Return the step's work: judges a model's attempts at each problem and adds the rate to its `pass_rates`."""
    assert resources.responses is not None
    responses, model = read_responses(resources.responses), settings.pass_rates_of
    judge = opened.enter_context(resources.open_judge())

    def work(candidates: Iterable[Candidate]) -> Iterable[Row]:
        candidates = list(candidates)
        counts = judge_attempts(candidates, responses, judge)
        for candidate in candidates:
            if candidate.id in counts:
                passed, attempts = counts[candidate.id]
                rates = [
                    entry for entry in candidate.pass_rates if entry.rpartition("=")[0] != model
                ]
                rates.append(f"{model}={passed}/{attempts}")
                candidate = candidate.change(
                    "filter", "attempts/1", "judged here", pass_rates=tuple(rates)
                )
            yield candidate

    return work


def open_verify(settings: VerifySettings, opened: ExitStack, resources: Resources) -> Work:
    """Return the step's work: verifies problems by execution."""
    # Time limits follow from what references take in a process of their own. A file of SQLite is for one machine.
    judge = opened.enter_context(
        resources.open_judge(stop="first_limit", cache_size=0, batch_tests=False)
    )
    path = resources.work / "verification" / f"verdicts-{platform.node()}.sqlite"
    store = opened.enter_context(VerdictStore(path))

    def size_of(candidate: Candidate) -> int:
        return sum(len(test.input) + len(test.output) for test in candidate.tests)

    def work(candidates: Iterable[Candidate]) -> Iterable[Row]:
        # So many that all workers are busy, and few enough that progress is shown by rows.
        most = max(_LEAST_AT_ONCE, _AT_ONCE_A_WORKER * judge.workers)
        for some in cut(candidates, size_of, most=most, size=_BYTES_AT_ONCE):
            yield from verify(some, judge, settings, store=store)

    return work


def read_rates(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the verifier's true-positive and true-negative rates over all rows of these parts."""
    rows = (
        row if isinstance(row, Candidate) else row.candidate
        for part in parts
        for row in read_rows(part.path)
    )
    rates = combine_counts([row.counts for row in rows if row is not None and row.counts])
    return {name: rate and rate.model_dump(mode="json") for name, rate in rates.items()}


def check_rates(settings: DifficultySettings, problems: Mapping[str, Sequence[str]]) -> None:
    """Raise DataError if none of these problems (`pass_rates` by id) has an attempt, or a published rate."""
    path = settings.responses
    if problems and path is not None:
        if problems.keys().isdisjoint(named := read_responses(path)):
            raise DataError(
                f"responses {path}: no id ({list(named)[:1]}, ...) is of a problem that is left; write them as the "
                f"corpus does, such as {min(problems)!r}"
            )
    elif problems and settings.pass_rates_of:
        known = sorted({entry.rpartition("=")[0] for rates in problems.values() for entry in rates})
        if (model := settings.pass_rates_of) not in known:
            raise DataError(
                f"pass_rates_of = {model!r}, but rates are of {', '.join(known) or 'no model'}; name one"
            )


def open_collect(
    settings: Config, opened: ExitStack
) -> Callable[[tuple[SourceSettings, Shard]], Iterable[Row]]:
    """Return a function that reads a shard of a source into candidates and rejections."""
    find = cache(open_settings)
    return lambda place: collect_shard(find(place[0]), place[1])


def open_process(settings: Config, opened: ExitStack, resources: Resources) -> Work:
    """Return the step's work: cleans each candidate (`clean.process`)."""
    return lambda candidates: _map("process", process, candidates)


def open_filter(settings: LicenceSettings, opened: ExitStack, resources: Resources) -> Work:
    """Return the step's work: applies the rules and the benchmarks' index to each row."""
    index = (
        build_index(read_benchmark_problems(resources.benchmarks)) if resources.benchmarks else None
    )
    return lambda candidates: _map(
        "filter", lambda one: filter_row(one, settings, index), candidates
    )


def open_predict(settings: DifficultySettings, opened: ExitStack, resources: Resources) -> Work:
    """Return the step's work: asks a model how hard each problem is."""
    endpoint = resources.open_endpoint(settings.endpoint, opened)
    assert endpoint is not None
    at_once = endpoint.settings.concurrency
    return lambda candidates: _map(
        "filter", lambda one: score_difficulty(one, endpoint), candidates, at_once=at_once
    )


def open_compare(settings: Config, opened: ExitStack, resources: Resources) -> Work:
    """Return the step's work: rejects problems that behave like one of a benchmark."""
    index = index_behaviour(read_benchmark_problems(resources.benchmarks))
    judge = opened.enter_context(resources.open_judge())

    def compare(candidate: Candidate) -> Row:
        hits = find_behaviour(candidate, index, judge)
        return (
            candidate.reject("filter", "contaminated", describe_hits(hits)) if hits else candidate
        )

    return lambda candidates: _map("filter", compare, candidates, at_once=judge.workers)


def open_same_task(settings: EndpointSettings, opened: ExitStack, resources: Resources) -> Work:
    """Return the step's work: rejects problems that a model calls one of a benchmark."""
    endpoint = resources.open_endpoint(settings, opened)
    assert endpoint is not None
    index = index_tasks(read_benchmark_problems(resources.benchmarks), endpoint)

    def ask(candidate: Candidate) -> Row:
        hits, num_unanswered = find_same_task(candidate, index, endpoint)
        if hits:
            return candidate.reject("filter", "contaminated", describe_hits(hits))
        flags = (
            tuple(sorted({*candidate.flags, "same_task_unanswered"}))
            if num_unanswered
            else candidate.flags
        )
        return candidate.change("filter", "same_task/1", f"{num_unanswered} questions", flags=flags)

    return lambda candidates: _map("filter", ask, candidates, at_once=endpoint.settings.concurrency)


def open_generate(settings: GenerateSettings, opened: ExitStack, resources: Resources) -> Work:
    """Return the step's work: makes tests for problems that have few."""
    endpoint = resources.open_endpoint(settings.endpoint, opened)

    @cache
    def open_judges() -> Judges:
        # A shard whose problems all have tests enough starts no sandbox.
        thorough = resources.open_judge(stop="first_limit", cache_size=0, batch_tests=True)
        brief = resources.open_judge(stop="first_failure", cache_size=0, batch_tests=True)
        return Judges(opened.enter_context(thorough), opened.enter_context(brief))

    def make(candidate: Candidate) -> Row:
        return generate(candidate, open_judges, settings, endpoint)

    # One by one, so that progress is shown by rows.
    return lambda candidates: (process_row(one, "generate", make) for one in candidates)


def read_benchmark_problems(sources: Sequence[SourceSettings]) -> list[Candidate]:
    """Return the problems of benchmarks, also those that cannot be judged; DataError if a benchmark has none."""
    problems: list[Candidate] = []
    for benchmark in sources:
        num_rows, num_before, first = 0, len(problems), ""
        for row in collect_source(open_settings(benchmark)):
            num_rows += 1
            if isinstance(row, Rejection):
                first = first or f"; the first: {row.reason}, {row.detail}"
            if (problem := row if isinstance(row, Candidate) else row.candidate) is not None:
                # Tests that no comparison reads are left out: of a benchmark's bytes they are nearly all.
                tests = tuple(
                    one
                    for one in problem.tests
                    if max(len(one.input), len(one.output)) <= LONGEST_EXAMPLE
                )
                rest = (
                    {"tests": tests, "groups": (), "origins": ()}
                    if len(tests) < len(problem.tests)
                    else {}
                )
                problems.append(problem.model_copy(update=rest))
        if len(problems) == num_before:
            raise DataError(
                f"benchmark {benchmark.prefix!r} ({benchmark.path}): none of {num_rows} rows is of the format "
                f"{benchmark.format!r}{first}; check its path, inside and format (list: microcoder data audit)"
            )
    return problems


def _map(
    stage: Stage,
    work: Callable[[Candidate], Row],
    candidates: Iterable[Candidate],
    *,
    at_once: int = 1,
) -> Iterator[Row]:
    """Yield `work` of each candidate, in order, from `at_once` threads; a failure of our code is a rejection."""
    # In a thread of its own, however deep the caller stands, the same rows are nested too deeply.
    with ThreadPoolExecutor(at_once) as threads:
        yield from threads.map(lambda one: process_row(one, stage, work), candidates)


class DuplicateBarrier(Barrier):
    """Keeps the best record of each problem, with the tests and solutions of all."""

    def __init__(self, settings: Config) -> None:
        self._groups: dict[str, dict[str, str]] = {}
        self._dropped: dict[str, str] = {}

    def look(self, candidates: Sequence[Candidate]) -> list[Fingerprint]:
        """Return a fingerprint of each record, to find duplicates by."""
        return describe(candidates)

    def decide(self, looks: Iterable[Fingerprint]) -> None:
        """Find the groups of records that are one problem, and the record that is kept of each."""
        self._groups = find_duplicates(looks)
        self._dropped = {
            name: f"{kept} by {why}"
            for kept, of in self._groups.items()
            for name, why in of.items()
        }

    def needs(self, name: str) -> Sequence[str]:
        """Return the ids of a kept record's duplicates; none for other records."""
        return list(self._groups.get(name, ()))

    def apply(self, candidate: Candidate, others: Mapping[str, Candidate]) -> Row:
        """Return a kept record merged with its duplicates, the rejection of a duplicate, or another record as it is."""
        if candidate.id in self._dropped:
            return candidate.reject("filter", "duplicate_of", self._dropped[candidate.id])
        return merge(candidate, list(others.values())) if others else candidate


class SelectionBarrier(Barrier):
    """Writes each problem's pass rate, and rejects problems outside the wanted distribution of difficulty."""

    def __init__(self, settings: DifficultySettings) -> None:
        self._settings = settings
        self._rejected: dict[str, tuple[str, str]] = {}

    def look(
        self, candidates: Sequence[Candidate]
    ) -> list[tuple[str, tuple[str, ...], Difficulty]]:
        """Return the id, the pass rates and the difficulty of each candidate."""
        return [(one.id, one.pass_rates, self._measured(one).difficulty) for one in candidates]

    def decide(self, looks: Iterable[tuple[str, tuple[str, ...], Difficulty]]) -> None:
        """Choose the problems to keep, given `look`'s results; DataError if none has an attempt or published rate."""
        check_rates(self._settings, {name: rates for name, rates, _ in looks})
        if self._settings.selection is not None:
            self._rejected = select({name: one for name, _, one in looks}, self._settings.selection)

    def apply(self, candidate: Candidate, others: Mapping[str, Candidate]) -> Row:
        """Return the candidate with its pass rate, or its rejection if it was not chosen."""
        candidate, why = self._measured(candidate), self._rejected.get(candidate.id)
        return candidate.reject("filter", *why) if why else candidate

    def _measured(self, candidate: Candidate) -> Candidate:
        settings = self._settings
        # Published rates were judged elsewhere.
        evaluator = evaluator_version() if settings.responses else "unknown"
        measured_on = f"{settings.pass_rates_of} evaluator={evaluator}"
        return (
            with_pass_rate(candidate, settings.pass_rates_of, measured_on)
            if settings.pass_rates_of
            else candidate
        )


# A step's key is made of its input's: what decides an earlier step, such as the code of the formats, decides it too.
_READING = ("microcoder.data.sources", "microcoder.data.formats", "microcoder.data.rowfiles", "microcoder.judge.core",
            "microcoder.judge.languages")  # fmt: skip
_FILTER = "microcoder.data.filter"
_DIFFICULTY = "microcoder.data.difficulty"
_ENDPOINT = "microcoder.data.completions"
_INPUTS = "microcoder.data.inputs"
_VERIFY = "microcoder.data.verify"
_JUDGE = "microcoder.judge"


def collect_step() -> MapStep:
    """Return the first step, which reads raw rows into candidates."""
    return MapStep("collect", "collect", Config(), open_collect, _READING)


def later_steps(config: BuildConfig, *, benchmarks: tuple[SourceSettings, ...]) -> list[Step]:
    """Return the steps after collect that the settings of a build ask for, in order."""
    difficulty, responses = config.difficulty, config.difficulty.responses
    resources = Resources(
        work=config.work_folder,
        benchmarks=benchmarks,
        responses=responses.absolute() if responses else None,
        judge=JudgeOptions(workers=config.workers, packages=config.packages, unsafe=config.unsafe),
    )
    compared = digest(*(shard.digest for shard in list_inputs(benchmarks, rows_per_shard=WHOLE)))
    environment = f"Python {CURRENT_VERSION}, packages {load_profile(config.packages).digest}"

    def step(
        name: str,
        stage: Stage,
        settings: Config,
        opens: Callable[..., Any],
        *code: str,
        **more: Any,
    ) -> MapStep:
        return MapStep(name, stage, settings, partial(opens, resources=resources), code, **more)

    alone: dict[str, Any] = {"inputs": (environment,), "runs": "alone"}
    steps: list[Step] = [
        step("process", "process", Config(), open_process, "microcoder.data.clean"),
        step("filter", "filter", config.licence, open_filter, _FILTER, inputs=(compared,)),
        BarrierStep("deduplicate", "filter", Config(), DuplicateBarrier, (_FILTER,)),
    ]
    if difficulty.endpoint is not None:
        # What else is set of difficulty decides nothing about a score.
        asked = DifficultySettings(endpoint=difficulty.endpoint)
        steps.append(step("predict", "filter", asked, open_predict, _DIFFICULTY, _ENDPOINT))
    if responses is not None:
        rated = DifficultySettings(pass_rates_of=difficulty.pass_rates_of)
        inputs = (digest_file(responses), environment)
        steps.append(
            step(
                "attempts",
                "filter",
                rated,
                open_attempts,
                _DIFFICULTY,
                _JUDGE,
                inputs=inputs,
                runs="alone",
            )
        )
    if difficulty.pass_rates_of or difficulty.selection is not None:
        steps.append(BarrierStep("select", "filter", difficulty, SelectionBarrier, (_DIFFICULTY,)))
    if benchmarks and config.behaviour:
        code = ("microcoder.data.behaviour", _INPUTS, _JUDGE)
        inputs = (compared, environment)
        steps.append(
            step("compare", "filter", Config(), open_compare, *code, inputs=inputs, runs="alone")
        )
    if benchmarks and config.same_task is not None:
        code = ("microcoder.data.corpus.same_task", _FILTER, _ENDPOINT)
        steps.append(
            step(
                "ask",
                "filter",
                config.same_task,
                open_same_task,
                *code,
                inputs=(compared,),
                runs="alone",
            )
        )
    making = ("microcoder.data.testgen", _INPUTS, _VERIFY, _ENDPOINT, _JUDGE)
    return [
        *steps,
        step("generate", "generate", config.generate, open_generate, *making, **alone),
        step("verify", "verify", config.verify, open_verify, _VERIFY, _JUDGE, **alone),
    ]

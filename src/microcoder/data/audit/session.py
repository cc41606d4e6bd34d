"""An audit from start to end: rows of a source, what is wrong with each, a report. The same command goes on with it.

source -> some rows, drawn by a seed -> checks, benchmarks, programs -> rows.jsonl -> duplicates -> report.md
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, TypeAdapter

from microcoder.data.audit.checks import CHECKED, AuditedRow, Finding, Ran, check, run_programs, write_report
from microcoder.data.behaviour import BehaviourIndex, ProgramRunner, find_behaviour, index_behaviour
from microcoder.data.build.config import SourceSettings
from microcoder.data.build.inputs import FileDigests, digest_sources, open_settings, unpack_sources
from microcoder.data.build.steps import read_benchmark_problems
from microcoder.data.clean import process
from microcoder.data.filter import ContaminationIndex, Fingerprint, build_index, describe, find_duplicates, find_hits
from microcoder.data.formats.candidates import Candidate, Rejection, process_row
from microcoder.data.pipeline.steps import digest, source_digest
from microcoder.data.rowfiles import RawRow
from microcoder.data.sources import Source, collect_row, list_shards, read_shard
from microcoder.data.verify.execution import Executor
from microcoder.data.verify.store import VerdictStore
from microcoder.judge import Judge
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import check_folder, cut_pieces, hold_lock, write_json
from microcoder.judge.core.machine import count_processors
from microcoder.judge.languages.packages import STANDARD

ROWS_FILE, REPORT_FILE = "rows.jsonl", "report.md"
_BATCH_ROWS = 8
_ROWS_PER_SHARD = 32
_SHOWN_CHARACTERS = 400
_FINGERPRINTS = "fingerprints.jsonl"
"""File of the fingerprints of all rows, until the duplicates among them are looked for."""
_FINGERPRINT = TypeAdapter(Fingerprint)
"""Writes a fingerprint as a line of JSON, and reads it."""

OnProgress = Callable[[int, int], None]
"""Called with the rows that are done and all rows."""


class AuditSettings(Config):
    """The source of an audit, and the benchmarks it is compared with."""

    source: SourceSettings
    benchmarks: tuple[SourceSettings, ...] = ()
    """Copies of their problems are looked for."""
    limit: int | None = Field(default=None, ge=1)
    """Rows to look at, drawn by the seed; None: all."""
    seed: int = 0
    runs_programs: bool = True
    """Whether programs are run: the problem's own, and the benchmarks' on its inputs."""
    output: Path = Field(exclude=True)
    workers: int | None = Field(default=None, ge=1, exclude=True)
    packages: str = STANDARD
    unsafe_sandbox: bool = Field(default=False, exclude=True)


@dataclass(frozen=True, slots=True)
class Audited:
    """Counts and paths of a finished audit."""

    num_rows: int
    """Rows of the source."""
    rows: tuple[AuditedRow, ...]
    report: Path


class _Numbered(NamedTuple):
    number: int
    row: RawRow


def audit(settings: AuditSettings, *, on_progress: OnProgress = lambda done, total: None) -> Audited:
    """Look at the rows of a source, and write what is wrong with them.

    Args:
        settings: what to look at. The folder `settings.output` gets `report.md`, `rows.jsonl` (a line a row) and a
            file of `lists/` for each kind of finding.
        on_progress: told of every batch of rows.

    Raises:
        DataError: a source or benchmark cannot be read, or the folder holds another audit.
        EvaluatorFault: the sandbox does not hold.
    """
    check_folder(settings.output, "output")
    busy = DataError(f"another audit is at work in {settings.output}; wait for it, or use another output")
    with hold_lock(settings.output / "lock", busy), ExitStack() as opened:
        digests = FileDigests(settings.output / "inputs.json")
        unpacked = settings.output / "unpacked"
        (where,) = unpack_sources([settings.source], into=unpacked, digests=digests)
        benchmarks = unpack_sources(settings.benchmarks, into=unpacked, digests=digests)
        source = open_settings(where)
        _claim(settings, digest_sources([where, *benchmarks], digests=digests))
        digests.save()
        total = sum(shard.num_rows for shard in list_shards(source, _ROWS_PER_SHARD))
        if not total:
            raise DataError(f"source {settings.source.path} holds no rows; check that the file is whole")
        # A larger limit holds the rows of a smaller one.
        numbers = list(range(total))
        random.Random(settings.seed).shuffle(numbers)
        wanted = sorted(numbers[: settings.limit])
        lines = _read_lines(settings.output / ROWS_FILE)
        known = {row.number: row for row in map(AuditedRow.model_validate_json, lines)}
        rows = {number: known[number] for number in wanted if number in known}
        on_progress(len(rows), len(wanted))
        left = [number for number in wanted if number not in rows]
        if left:
            examiner = _Examiner(settings, source, read_benchmark_problems(benchmarks), opened)
            for batch in cut_pieces(_pick(source, set(left)), _rows_together(settings)):
                for row in examiner.examine(batch):
                    rows[row.number] = row
                on_progress(len(rows), len(wanted))
        found = _mark_duplicates(
            [rows[number] for number in sorted(rows)], _read_lines(settings.output / _FINGERPRINTS)
        )
        report = settings.output / REPORT_FILE
        write_report(report, found, num_rows=total, settings=settings.model_dump(mode="json"))
    return Audited(total, tuple(found), report)


def _rows_together(settings: AuditSettings) -> int:
    """Return how many rows are looked at together: where programs run, enough for all cores and no more.

    A row of a package may take minutes, and is told of, and kept, when its batch is done.
    """
    workers = settings.workers or count_processors()
    return max(1, min(_BATCH_ROWS, workers // 2)) if settings.runs_programs else _BATCH_ROWS


def _claim(settings: AuditSettings, content: str) -> None:
    # What a smaller limit found is part of what a larger one finds.
    record = {"settings": settings.model_dump(mode="json", exclude={"limit"}), "content": content,
              "code": digest(*(source_digest(f"microcoder.data.{name}")
                               for name in ("audit", "behaviour", "filter", "clean", "verify", "sources")),
                             source_digest("microcoder.data.formats"))}  # fmt: skip
    path = settings.output / "audit.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != record:
        raise DataError(f"{settings.output} holds another audit, or one by another version; give another --output")
    write_json(path, record)


def _pick(source: Source, wanted: set[int]) -> Iterator[_Numbered]:
    first = 0
    for shard in list_shards(source, _ROWS_PER_SHARD):
        if wanted & set(range(first, first + shard.num_rows)):
            for number, row in enumerate(read_shard(source, shard), first):
                if number in wanted:
                    yield _Numbered(number, row)
        first += shard.num_rows


class _Examiner:
    """Everything that is set up once for an audit."""

    def __init__(
        self, settings: AuditSettings, source: Source, benchmark: Sequence[Candidate], opened: ExitStack
    ) -> None:
        self._source, self._output = source, settings.output
        self._index: ContaminationIndex | None = build_index(benchmark) if benchmark else None
        self._behaviour: BehaviourIndex | None = None
        self._executor: Executor | None = None
        if settings.runs_programs:
            judge = opened.enter_context(
                Judge(
                    workers=settings.workers,
                    stop="first_failure",
                    cache_size=0,
                    packages=settings.packages,
                    unsafe=settings.unsafe_sandbox,
                )
            )
            store = opened.enter_context(VerdictStore(settings.output / "verdicts.sqlite"))
            self._executor = Executor(judge, store)
            if benchmark:
                self._behaviour = index_behaviour(benchmark)
                self._runner = ProgramRunner(judge, settings.output / "outputs.sqlite")
                opened.callback(self._runner.close)

    def examine(self, batch: Sequence[_Numbered]) -> list[AuditedRow]:
        """Return what was found of some rows, once it is on disk."""
        seen = [self._look(item) for item in batch]
        candidates = [candidate for _, candidate in seen if candidate is not None]
        ran = iter(run_programs(candidates, self._executor) if self._executor else [Ran() for _ in candidates])
        rows = [row if candidate is None else self._join(row, candidate, next(ran)) for row, candidate in seen]
        _append(self._output / _FINGERPRINTS, [_FINGERPRINT.dump_json(look).decode() for look in describe(candidates)])
        _append(self._output / ROWS_FILE, [row.model_dump_json(exclude_defaults=True) for row in rows])
        return rows

    def _look(self, item: _Numbered) -> tuple[AuditedRow, Candidate | None]:
        """Read a row, and check what needs nothing to be run."""
        collected = collect_row(self._source, item.row)
        findings: list[Finding] = []
        checked: list[str] = ["unreadable"]
        candidate = collected if isinstance(collected, Candidate) else collected.candidate
        if isinstance(collected, Rejection):
            findings.append(Finding(kind="unreadable", detail=f"{collected.reason}: {collected.detail}"[:300]))
        if candidate is not None:
            processed = process_row(candidate, "process", process)
            checked += ["turned_away", *CHECKED, *(["benchmark_copy"] if self._index else [])]
            if isinstance(processed, Rejection):
                said = f"{processed.reason}: {processed.detail}" if processed.detail else processed.reason
                findings.append(Finding(kind="turned_away", detail=said[:300]))
                candidate = processed.candidate or candidate
            else:
                candidate = processed
            findings += check(candidate)
        row = AuditedRow(
            number=item.number,
            id=collected.id,
            source_row=collected.source_row,
            title=candidate.title if candidate else "",
            findings=tuple(findings),
            checked=tuple(checked),
            num_tests=len(candidate.tests) if candidate else 0,
            shown=(candidate.statement or candidate.statement_found)[:_SHOWN_CHARACTERS] if candidate else "",
        )
        return row, candidate

    def _join(self, row: AuditedRow, candidate: Candidate, ran: Ran) -> AuditedRow:
        """Add what running its programs, and those of benchmarks, showed."""
        hits = find_hits(candidate, self._index) if self._index else []
        if not hits and self._behaviour is not None:
            hits = find_behaviour(candidate, self._behaviour, self._runner)
        copies = [
            Finding(kind="benchmark_copy", detail=f"{hit.problem_id} by {hit.by} ({hit.detail})") for hit in hits[:1]
        ]
        found = {"findings": (*row.findings, *ran.findings, *copies), "checked": (*row.checked, *ran.checked)}
        counts = {"num_references": ran.num_references, "num_wrong": ran.num_wrong}
        return row.model_copy(update={**found, **counts, "num_wrong_passing": ran.num_wrong_passing})


def _mark_duplicates(rows: Sequence[AuditedRow], lines: Iterable[str]) -> list[AuditedRow]:
    """Return the rows, each that is another's duplicate with a finding that names the other."""
    ids = {row.id for row in rows}
    looks = {look.id: look for look in map(_FINGERPRINT.validate_json, lines) if look.id in ids}
    named: dict[str, str] = {}
    for group in find_duplicates(list(looks.values())):
        named |= {name: f"{group.kept} by {why}" for name, why in group.why.items()}
    marked = []
    for row in rows:
        findings = (*row.findings, Finding(kind="near_duplicate", detail=named[row.id])) if row.id in named else None
        checked = (*row.checked, "near_duplicate") if row.id in looks else row.checked
        marked.append(row.model_copy(update={"checked": checked, "findings": findings or row.findings}))
    return marked


def _append(path: Path, lines: Sequence[str]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _read_lines(path: Path) -> list[str]:
    """Return whole lines; the one that a kill cut is dropped from the file."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return whole.splitlines()

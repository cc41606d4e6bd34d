"""What running a problem's own programs shows: do those said to be right pass, and do the wrong ones fail?

What an audit looks for, what it writes down of each row, and what can be seen of a problem without running it.

The report of an audit: shares with intervals, examples to look at, and a list of rows for each kind of finding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import Field

from microcoder.data.clean.completeness import find_flags
from microcoder.data.clean.stage import RESTORE_POWERS
from microcoder.data.clean.tests import count_hidden
from microcoder.data.formats.candidates import Candidate, Rejection, process_row
from microcoder.data.verify.evidence import VerifySettings
from microcoder.data.verify.execution import Executor
from microcoder.data.verify.plans import Attempt, VerificationPlan, plan
from microcoder.data.verify.rates import rate_with_interval
from microcoder.judge.core.files import write_json, write_text
from microcoder.judge.core.types import Record, Verdict

_MOST_ACCEPTED, _MOST_WRONG, _MOST_TESTS = 3, 12, 50
_SLOW_TEST_SECONDS, _SLOW_SECONDS = 5.0, 30.0
_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Ran:
    """Results of one problem's programs."""

    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    num_references: int = 0
    num_wrong: int = 0
    num_wrong_passing: int = 0


def run_programs(candidates: Sequence[Candidate], executor: Executor) -> list[Ran]:
    """Return for each problem the results of its programs, on up to 50 of its tests, spread over all."""
    settings = VerifySettings(max_accepted=_MOST_ACCEPTED, max_wrong=_MOST_WRONG)
    plans = [process_row(_with_fewer_tests(one), "verify", lambda one: plan(one, settings)) for one in candidates]
    runnable = [item for item in plans if isinstance(item, VerificationPlan)]
    _run(executor, [(item, attempt) for item in runnable for attempt in item.accepted])
    sound = [item for item in runnable if item.passing()]
    _run(executor, [(item, attempt) for item in sound for attempt in (*item.trivial, *item.others)])
    return [_conclude(item) if isinstance(item, VerificationPlan) else _not_run(item) for item in plans]


def _with_fewer_tests(candidate: Candidate) -> Candidate:
    num = len(candidate.tests)
    if num <= _MOST_TESTS:
        return candidate
    numbers = [at * num // _MOST_TESTS for at in range(_MOST_TESTS)]
    groups = tuple(candidate.groups[number] for number in numbers) if candidate.groups else ()
    return candidate.model_copy(update={"tests": tuple(candidate.tests[n] for n in numbers), "groups": groups})


def _run(executor: Executor, pairs: Sequence[tuple[VerificationPlan, Attempt]]) -> None:
    verdicts = executor.run([(a.program, item.problem(a.program.language)) for item, a in pairs])
    for (_, attempt), verdict in zip(pairs, verdicts, strict=True):
        attempt.verdicts.append(verdict)


def _not_run(rejection: Rejection) -> Ran:
    if rejection.reason == "no_tests":
        return Ran()
    said = f"{rejection.reason}: {rejection.detail}" if rejection.detail else rejection.reason
    return Ran((Finding(kind="not_run", detail=said),), ("not_run",))


def _conclude(item: VerificationPlan) -> Ran:
    references: dict[int, list[Verdict]] = {}
    for attempt in item.accepted:
        references.setdefault(attempt.solution, []).append(attempt.verdicts[0])
    # A Python 2 program was converted in more than one way: one that passes is enough.
    best = [next((v for v in found if v.is_accepted), found[0]) for found in references.values()]
    scored = [verdict for verdict in best if verdict.is_scorable]
    if not scored:
        return Ran((Finding(kind="not_run", detail=best[0].detail),), ("not_run",))
    passing = [verdict for verdict in scored if verdict.is_accepted]
    findings = []
    if len(passing) < len(scored):
        failed = next(verdict for verdict in scored if not verdict.is_accepted)
        kind = "some_reference_fails" if passing else "reference_fails"
        said = f"{len(scored) - len(passing)} of {len(scored)}: {failed.outcome.value}, {failed.detail}"
        findings.append(Finding(kind=kind, detail=said[:300]))
    if not passing:
        return Ran(tuple(findings), ("not_run", "reference_fails", "some_reference_fails"), len(scored))
    checked = ["not_run", "reference_fails", "some_reference_fails", "trivial_passes", "slow_tests"]
    wrong = [attempt for attempt in item.others if attempt.role == "wrong" and attempt.verdicts[0].is_scorable]
    if wrong:
        checked.append("wrong_passes")
    wrong_passing = [attempt for attempt in wrong if attempt.verdicts[0].is_accepted]
    if wrong_passing:
        said = ", ".join(_name(item, attempt) for attempt in wrong_passing[:_NAMES_SHOWN])
        findings.append(Finding(kind="wrong_passes", detail=f"{len(wrong_passing)} of {len(wrong)}: {said}"))
    if trivial := [attempt.name for attempt in item.trivial if attempt.verdicts[0].is_accepted]:
        findings.append(Finding(kind="trivial_passes", detail=", ".join(trivial[:_NAMES_SHOWN])))
    findings += _slow(passing)
    return Ran(tuple(findings), tuple(checked), len(scored), len(wrong), len(wrong_passing))


def _name(item: VerificationPlan, attempt: Attempt) -> str:
    return item.candidate.solutions[attempt.solution].name or f"solution {attempt.solution}"


def _slow(passing: Sequence[Verdict]) -> list[Finding]:
    """Return whether even the fastest right program needs long; the figure is left out, which no two runs share."""
    slowest = min(max((test.cpu_seconds for test in verdict.tests), default=0.0) for verdict in passing)
    together = min(sum(test.cpu_seconds for test in verdict.tests) for verdict in passing)
    if slowest > _SLOW_TEST_SECONDS:
        return [Finding(kind="slow_tests", detail=f"a test takes more than {_SLOW_TEST_SECONDS:g} CPU seconds")]
    if together > _SLOW_SECONDS:
        return [Finding(kind="slow_tests", detail=f"all tests take more than {_SLOW_SECONDS:g} CPU seconds")]
    return []


FEW_TESTS = 5
CHECKED = ("no_tests", "only_shown_tests", "few_tests", "needs_checker", "wrong_bounds", "no_licence")

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "unreadable": "the row could not be read as a problem",
        "turned_away": "the process stage would turn it away",
        "no_tests": "nothing to judge an answer by",
        "only_shown_tests": "every test is an example that the statement shows: an answer can be read off it",
        "few_tests": "fewer than five tests",
        "needs_checker": "several answers are right, and nothing but a comparison decides",
        "wrong_bounds": "a bound such as 105 that was, or may have been, 10^5",
        "no_licence": "no licence is named",
        "benchmark_copy": "it is a problem of a benchmark",
        "near_duplicate": "another row is the same problem",
        "not_run": "its programs or tests cannot be run here",
        "reference_fails": "no program that is said to be right passes its tests",
        "some_reference_fails": "of the programs that are said to be right some pass and some do not",
        "wrong_passes": "a program that is known to be wrong passes its tests",
        "trivial_passes": "a program that looks at nothing passes its tests",
        "slow_tests": "its tests take long",
    }
)
"""Kind of finding to its meaning, in the order of the report."""


class Finding(Record):
    """One thing that is wrong with a row."""

    kind: str
    """A key of `KINDS`."""
    detail: str = ""
    """The finding in a few words."""


class AuditedRow(Record):
    """Findings of an audit about one row."""

    number: int = Field(ge=0)
    """Its place among the rows of the source, from 0."""
    id: str
    source_row: str
    title: str = ""
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    """Kinds that could be looked for: a share is of these rows."""
    num_tests: int = 0
    num_references: int = 0
    """Programs said to be right that were run."""
    num_wrong: int = 0
    """Programs known to be wrong that were run."""
    num_wrong_passing: int = 0
    shown: str = ""
    """Beginning of the statement, for the report."""


def check(candidate: Candidate) -> Iterator[Finding]:
    """Yield what is wrong with a problem, by its record alone, as the process stage left it."""
    if not candidate.licence:
        yield Finding(kind="no_licence")
    if lost := _find_lost_power(candidate):
        yield Finding(kind="wrong_bounds", detail=lost)
    if "many_answers" in find_flags(candidate):
        yield Finding(kind="needs_checker", detail=f"compared by {candidate.checker.type}")
    if not candidate.tests:
        yield Finding(kind="no_tests")
        return
    if not count_hidden(candidate):
        yield Finding(kind="only_shown_tests", detail=f"{len(candidate.tests)} tests")
    if len(candidate.tests) < FEW_TESTS:
        yield Finding(kind="few_tests", detail=f"{len(candidate.tests)} tests")


def _find_lost_power(candidate: Candidate) -> str:
    """Return what showed the process stage that powers were lost; empty where none were."""
    mended = [line.detail for line in candidate.lineage if line.step == RESTORE_POWERS and line.field == "statement"]
    if mended:
        return f"lost powers; what shows it: {mended[0]}"
    return "may have lost a power" if "unclear_bounds" in candidate.flags else ""


_EXAMPLES = 5
_MOST_SHOWN = 300


class Share(NamedTuple):
    """How many rows a finding has."""

    kind: str
    num: int
    of: int
    """Rows in which it could be looked for."""
    low: float
    high: float
    """95 % interval of the share, as far as rows were drawn from more."""

    @property
    def said(self) -> str:
        """The share as text."""
        return f"{self.num / self.of:.1%}" if self.of else "-"


def count_shares(rows: Sequence[AuditedRow]) -> list[Share]:
    """Return the share of every kind of finding, in the order of `KINDS`."""
    shares = []
    for kind in KINDS:
        looked = [row for row in rows if kind in row.checked]
        found = [(int(any(finding.kind == kind for finding in row.findings)), 1) for row in looked]
        rate = rate_with_interval(found)
        if rate is not None:
            shares.append(Share(kind, rate.right, rate.total, rate.low, rate.high))
    return shares


def write_report(path: Path, rows: Sequence[AuditedRow], *, num_rows: int, settings: Mapping[str, Any]) -> None:
    """Write the page, `summary.json` beside it, and `lists/KIND.jsonl` for every kind that was found."""
    shares = count_shares(rows)
    source = settings["source"]
    wrong, passing = sum(row.num_wrong for row in rows), sum(row.num_wrong_passing for row in rows)
    lines = [
        f"# Audit of {source['name'] or source['format']}",
        "",
        f"{len(rows):,} of {num_rows:,} rows of `{Path(source['path']).name}` (format `{source['format']}`)"
        + (f", drawn with seed {settings['seed']}" if len(rows) < num_rows else "")
        + (f"; {passing} of {wrong} known-wrong programs pass" if wrong else "")
        + ("" if settings["runs_programs"] else "; no program was run")
        + ".",
        "",
        "| finding | rows | looked at | share | 95 % interval | meaning |",
        "| --- | --: | --: | --: | --- | --- |",
        *map(_row, shares),
    ]
    for share in shares:
        found = [(row, finding) for row in rows for finding in row.findings if finding.kind == share.kind]
        if found:
            listed = [{"number": row.number, "id": row.id, "source_row": row.source_row, "detail": finding.detail}
                      for row, finding in found]  # fmt: skip
            write_text(
                path.parent / "lists" / f"{share.kind}.jsonl",
                "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in listed),
            )
            lines += [
                "",
                f"## {share.kind}",
                "",
                f"{KINDS[share.kind]}: {share.num:,} rows, `lists/{share.kind}.jsonl`.",
            ]
            for at in range(0, len(found), max(1, len(found) // _EXAMPLES))[:_EXAMPLES]:
                row, finding = found[at]
                lines += ["", f"- `{row.id}` {_plain(row.title)}: {_plain(finding.detail)}", "", _quote(row.shown)]
    write_json(
        path.with_name("summary.json"),
        {"rows": len(rows), "of": num_rows, "known_wrong": wrong, "known_wrong_passing": passing,
         "findings": [share._asdict() for share in shares], "settings": dict(settings)},
    )  # fmt: skip
    write_text(path, "\n".join(lines) + "\n")


def _row(share: Share) -> str:
    interval = f"{share.low:.1%} to {share.high:.1%}"
    name = f"[{share.kind}](#{share.kind})" if share.num else share.kind
    return f"| {name} | {share.num:,} | {share.of:,} | {share.said} | {interval} | {KINDS[share.kind]} |"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("`", "'").replace("<", "&lt;").replace("|", "\\|")


def _quote(text: str) -> str:
    return f"  > {_plain(text[:_MOST_SHOWN])}{' ...' if len(text) > _MOST_SHOWN else ''}"

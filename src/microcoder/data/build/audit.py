"""What is wrong with a published set: a build whose steps turn nothing away, and a report of their reasons."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from microcoder.data.build.config import BuildConfig
from microcoder.data.build.session import BuildPlan, hold_work, plan_build, run_plan
from microcoder.data.clean.stage import RESTORE_POWERS
from microcoder.data.formats.candidates import REASONS, Rejection
from microcoder.data.pipeline.engine import OnProgress
from microcoder.data.pipeline.parts import read_part, read_rejected
from microcoder.data.pipeline.steps import WOULD_REJECT, Row
from microcoder.data.verify.rates import rate_with_interval
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_json, write_rows, write_text

_STATIC, _RUNNING = ("process", "filter", "deduplicate"), ("process", "filter", "compare", "verify", "deduplicate")
"""Steps in the order of an audit: duplicates are looked for last, since those that stay are merged."""
_FEW_TESTS = 5
_ORDER = ("collect", "process", "filter", "verify", "flag", "check")
_MEANINGS = {
    **REASONS,
    "few_tests": f"fewer than {_FEW_TESTS} tests",
    "no_licence": "no licence is named",
    "wrong_bounds": "a bound such as 105 that was 10^5",
}
"""By kind of finding; the last three a build mends, or leaves to its user."""
_EXAMPLES, _MOST_DETAIL = 3, 300


class Finding(NamedTuple):
    """How many rows have one thing wrong with them."""

    stage: str
    """The stage that would turn the row away; `flag` and `check` turn nothing away."""
    kind: str
    num: int
    share: float
    low: float
    high: float
    """95 % interval of the share, as far as rows were drawn from more."""


@dataclass(frozen=True, slots=True)
class Audited:
    """Counts and paths of a finished audit."""

    num_rows: int
    """Rows that were looked at."""
    findings: tuple[Finding, ...]
    report: Path


def audit(
    config: BuildConfig,
    *,
    limit: int | None = None,
    seed: int = 0,
    runs_programs: bool = True,
    on_progress: OnProgress = lambda step, done, total: None,
) -> Audited:
    """Take rows through the steps of a build, and write what these say of each.

    Args:
        config: of a build; its output gets `report.md`, `summary.json` and `findings.jsonl`, a line a finding of a row.
        limit: rows to look at, drawn by the seed; a larger limit holds those of a smaller one.
        seed: of the draw.
        runs_programs: whether the programs of rows and benchmarks are run.
        on_progress: called as each step advances.

    Raises:
        DataError: a source or benchmark cannot be read, or holds no rows.
        EvaluatorFault: the sandbox does not hold.
    """
    if limit is not None:
        config = config.model_copy(update={"rows_per_shard": 1})
    plan = plan_build(config)
    if not plan.num_rows:
        raise DataError(f"source {config.sources[0].path} holds no rows; check that the file is whole")
    shards = list(plan.shards)
    random.Random(seed).shuffle(shards)
    by_name = {step.name: step for step in plan.steps}
    names = _RUNNING if runs_programs else _STATIC
    steps = tuple(replace(by_name[name], turns_away=False) for name in names if name in by_name)
    chosen = BuildPlan(tuple(sorted(shards[:limit], key=lambda shard: shard.number)), steps, {})
    with hold_work(config):
        parts, _ = run_plan(config, chosen, on_progress)
    rows: list[Row] = [row for part in parts[-1] for row in read_part(part.path)]
    # Only what never became a record is gone by then.
    rows += [row for of_step in parts[:-1] for part in of_step for row in read_rejected(part.path)]
    return _write_report(config, sorted(rows, key=lambda row: row.id), of=plan.num_rows)


def find_in(row: Row) -> list[tuple[str, str, str]]:
    """Return the findings of a row as stage, kind and detail; each kind once, by the first stage that says it."""
    if isinstance(row, Rejection):
        return [(row.stage, row.reason, row.detail)]
    told = [(line.stage, line.field, line.detail) for line in row.lineage if line.step == WOULD_REJECT]
    told += [("flag", flag, "") for flag in row.flags]
    told += [
        ("check", "wrong_bounds", line.detail)
        for line in row.lineage
        if line.step == RESTORE_POWERS and line.field == "statement"
    ]
    told += [("check", "no_licence", "")] if not row.licence else []
    told += [("check", "few_tests", f"{len(row.tests)} tests")] if 0 < len(row.tests) < _FEW_TESTS else []
    return list({kind: (stage, kind, detail) for stage, kind, detail in reversed(told)}.values())[::-1]


def _write_report(config: BuildConfig, rows: Sequence[Row], *, of: int) -> Audited:
    of_kind: dict[tuple[str, str], list[tuple[Row, str]]] = {}
    for row in rows:
        for stage, kind, detail in find_in(row):
            of_kind.setdefault((stage, kind), []).append((row, detail[:_MOST_DETAIL]))
    findings, lines, examples = [], [], []
    for stage, kind in sorted(of_kind, key=lambda one: (_ORDER.index(one[0]), -len(of_kind[one]), one[1])):
        found = of_kind[stage, kind]
        names = {row.id for row, _ in found}
        rate = rate_with_interval([(int(row.id in names), 1) for row in rows])
        assert rate is not None
        findings.append(Finding(stage, kind, rate.right, rate.value, rate.low, rate.high))
        share = f"{rate.value:.1%} | {rate.low:.1%} to {rate.high:.1%}"
        lines.append(f"| {stage} | {kind} | {rate.right:,} | {share} | {_MEANINGS.get(kind, '')} |")
        examples += ["", f"## {kind}", *(f"- `{row.id}` {_plain(detail)}" for row, detail in found[:_EXAMPLES])]
    folder = config.output
    write_text(
        folder / "report.md",
        "\n".join([
            f"# Audit of {config.sources[0].prefix}", "", f"{len(rows):,} of {of:,} rows.", "",
            "| stage | finding | rows | share | 95 % interval | meaning |", "| --- | --- | --: | --: | --- | --- |",
            *lines, *examples, "",
        ]),
    )  # fmt: skip
    write_rows(
        folder / "findings.jsonl",
        (
            {"id": row.id, "source_row": row.source_row, "stage": stage, "kind": kind, "detail": detail}
            for (stage, kind), found in of_kind.items()
            for row, detail in found
        ),
    )
    write_json(folder / "summary.json", {"rows": len(rows), "of": of, "findings": [one._asdict() for one in findings]})
    return Audited(len(rows), tuple(findings), folder / "report.md")


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("`", "'").replace("<", "&lt;").replace("|", "\\|")

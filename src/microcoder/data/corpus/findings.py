"""What an audit finds: the faults of rows, and the report on them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from microcoder.data.clean.stage import RESTORE_POWERS
from microcoder.data.formats.candidates import REASONS, Rejection
from microcoder.data.pipeline.steps import WOULD_REJECT, Row
from microcoder.data.verify.rates import rate_with_interval
from microcoder.judge.core.files import write_json, write_rows, write_text

REPORT = "report.md"
"""Name of an audit's report."""
_FEW_TESTS = 5
"""Fewest tests of a row that is not reported for having few."""
_ORDER = ("collect", "process", "filter", "verify", "flag", "check")
"""Stages of findings, as the report lists them."""
_MEANINGS = {
    **REASONS,
    "few_tests": f"fewer than {_FEW_TESTS} tests",
    "no_licence": "no licence is named",
    "wrong_bounds": "a bound such as 105 that was 10^5",
}
"""Kind of finding -> its meaning; for the last three a build rejects no row."""
_EXAMPLES = 3
"""Rows that the report shows of each kind of finding."""
_MOST_DETAIL = 300
"""Characters of a finding's detail."""


class Finding(NamedTuple):
    """One kind of fault, and how many of the audited rows have it."""

    stage: str
    """The stage that would reject the row; `flag` and `check` never reject."""
    kind: str
    num: int
    share: float
    low: float
    """Lower end of the 95 % interval of `share`, as if the rows were drawn from more."""
    high: float
    """Its upper end."""


class FoundFault(NamedTuple):
    """A fault of one row."""

    stage: str
    """The stage that reports it."""
    kind: str
    detail: str


def find_in(row: Row) -> list[FoundFault]:
    """Return the faults of a row; a kind once, by the first stage that reports it."""
    # In an audit only what never became a record is rejected.
    if isinstance(row, Rejection):
        return [
            FoundFault(
                row.stage,
                row.reason,
                row.detail,
            )
        ]
    faults: list[FoundFault] = []
    # Other rows stay, and their lineage says which step would have rejected them.
    for line in row.lineage:
        if line.step == WOULD_REJECT:
            faults.append(
                FoundFault(
                    line.stage,
                    line.field,
                    line.detail,
                )
            )
    faults += [
        FoundFault(
            "flag",
            flag,
            "",
        )
        for flag in row.flags
    ]
    for line in row.lineage:
        if line.step == RESTORE_POWERS and line.field == "statement":
            faults.append(FoundFault("check", "wrong_bounds", line.detail))
    if not row.licence:
        faults.append(FoundFault("check", "no_licence", ""))
    if len(row.tests) < _FEW_TESTS:
        kind = "few_tests" if row.tests else "no_tests"
        faults.append(FoundFault("check", kind, f"{len(row.tests)} tests"))
    return _first_of_each_kind(faults)


def _first_of_each_kind(faults: Sequence[FoundFault]) -> list[FoundFault]:
    """Return the first fault of each kind, ordered by where each kind occurs last."""
    by_kind: dict[str, FoundFault] = {}
    for fault in faults:
        by_kind[fault.kind] = by_kind.pop(fault.kind, fault)
    return list(by_kind.values())


class _RowFault(NamedTuple):
    """A row that has a fault, and the fault's detail."""

    row: Row
    detail: str


_FaultyRows = Mapping[tuple[str, str], Sequence[_RowFault]]
"""Rows with a fault, by its stage and kind."""


def write_report(
    folder: Path,
    name: str,
    rows: Sequence[Row],
    *,
    num_rows: int,
) -> list[Finding]:
    """Write an audit's files into a folder, and return its findings.

    Args:
        folder: where `report.md`, `summary.json` and `findings.jsonl` are written.
        name: name of the source.
        rows: audited rows.
        num_rows: number of rows of all sources.
    """
    faulty = _group_faults(rows)
    kinds = sorted(
        faulty,
        key=lambda key: (_ORDER.index(key[0]), -len(faulty[key]), key[1]),
    )
    findings = []
    for stage, kind in kinds:
        findings.append(_measure(stage, kind, faulty[stage, kind], rows))
    lines = [f"# Audit of {name}", "", f"{len(rows):,} of {num_rows:,} rows.", ""]
    lines += _table(findings)
    for key in kinds:
        lines += _examples(key[1], faulty[key])
    lines.append("")
    write_text(folder / REPORT, "\n".join(lines))
    write_rows(folder / "findings.jsonl", _describe_faults(faulty))
    summary = {
        "rows": len(rows),
        "of": num_rows,
        "findings": [finding._asdict() for finding in findings],
    }
    write_json(folder / "summary.json", summary)
    return findings


def _group_faults(rows: Iterable[Row]) -> dict[tuple[str, str], list[_RowFault]]:
    faulty: dict[tuple[str, str], list[_RowFault]] = {}
    for row in rows:
        for stage, kind, detail in find_in(row):
            fault = _RowFault(row, detail[:_MOST_DETAIL])
            faulty.setdefault((stage, kind), []).append(fault)
    return faulty


def _measure(
    stage: str,
    kind: str,
    faults: Sequence[_RowFault],
    rows: Sequence[Row],
) -> Finding:
    """Return how many of all rows have a fault."""
    # A row counts once, however often it has the fault.
    ids = {row.id for row, _ in faults}
    counts = [(int(row.id in ids), 1) for row in rows]
    rate = rate_with_interval(counts)
    assert rate is not None
    return Finding(
        stage,
        kind,
        rate.right,
        rate.value,
        rate.low,
        rate.high,
    )


def _table(findings: Sequence[Finding]) -> list[str]:
    """Return the lines of the report's table."""
    lines = [
        "| stage | finding | rows | share | 95 % interval | meaning |",
        "| --- | --- | --: | --: | --- | --- |",
    ]
    for finding in findings:
        interval = f"{finding.low:.1%} to {finding.high:.1%}"
        cells = (
            finding.stage,
            finding.kind,
            f"{finding.num:,}",
            f"{finding.share:.1%}",
            interval,
            _MEANINGS.get(finding.kind, ""),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _examples(
    kind: str,
    faults: Sequence[_RowFault],
) -> list[str]:
    """Return the lines of the report that show some rows with a fault."""
    lines = ["", f"## {kind}"]
    for row, detail in faults[:_EXAMPLES]:
        # So that nothing of a row is taken for Markdown.
        on_a_line = " ".join(detail.split())
        plain = on_a_line.replace("`", "'")
        plain = plain.replace("<", "&lt;").replace("|", "\\|")
        lines.append(f"- `{row.id}` {plain}")
    return lines


def _describe_faults(faulty: _FaultyRows) -> list[dict[str, str]]:
    """Return the lines of the file of findings."""
    lines = []
    for (stage, kind), faults in faulty.items():
        for row, detail in faults:
            line = {
                "id": row.id,
                "source_row": row.source_row,
                "stage": stage,
                "kind": kind,
                "detail": detail,
            }
            lines.append(line)
    return lines

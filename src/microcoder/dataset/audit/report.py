"""The report of an audit: shares with intervals, examples to look at, and a list of rows for each kind of finding."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from microcoder.dataset.audit.findings import KINDS, AuditedRow
from microcoder.dataset.verify.rates import rate_with_interval
from microcoder.files import write_json, write_text

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
    """Return one line in which nothing is markup."""
    return " ".join(text.split()).replace("`", "'").replace("<", "&lt;").replace("|", "\\|")


def _quote(text: str) -> str:
    return f"  > {_plain(text[:_MOST_SHOWN])}{' ...' if len(text) > _MOST_SHOWN else ''}"

"""Rows of a source that are one problem, found when all rows were seen: their fingerprints wait in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from microcoder.dataset.audit.findings import AuditedRow, Finding
from microcoder.dataset.filter import Fingerprint, find_duplicates
from microcoder.dataset.process.completeness import Bound


def write_fingerprint(look: Fingerprint) -> str:
    """Return a fingerprint as a line of JSON."""
    bounds = [list(bound) for bound in look.bounds]
    answers = sorted(look.answers.items())
    return json.dumps([look.id, look.rank, sorted(look.sources), look.text, look.signature.hex(), bounds, answers])


def read_fingerprint(line: str) -> Fingerprint:
    """Return the fingerprint of a line."""
    name, rank, sources, text, signature, bounds, answers = json.loads(line)
    return Fingerprint(
        id=name,
        rank=tuple(rank),
        sources=frozenset(sources),
        text=text,
        signature=bytes.fromhex(signature),
        bounds=tuple(Bound(*bound) for bound in bounds),
        answers=dict(answers),
    )


def mark_duplicates(rows: Sequence[AuditedRow], lines: Iterable[str]) -> list[AuditedRow]:
    """Return the rows, each that is another's duplicate with a finding that names the other."""
    ids = {row.id for row in rows}
    looks = {look.id: look for look in map(read_fingerprint, lines) if look.id in ids}
    named: dict[str, str] = {}
    for group in find_duplicates(list(looks.values())):
        named |= {name: f"{group.kept} by {why}" for name, why in group.why.items()}
    marked = []
    for row in rows:
        findings = (*row.findings, Finding(kind="near_duplicate", detail=named[row.id])) if row.id in named else None
        checked = (*row.checked, "near_duplicate") if row.id in looks else row.checked
        marked.append(row.model_copy(update={"checked": checked, "findings": findings or row.findings}))
    return marked

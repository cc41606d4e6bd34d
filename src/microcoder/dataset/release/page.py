"""A folder to browse a corpus from disk: every row, why it was rejected, and how it changed from step to step.

`index.html` opens without a server; rows lie in numbered script files that are loaded as they are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from microcoder.dataset.pipeline.parts import Part, read_part
from microcoder.dataset.pipeline.steps import Row
from microcoder.files import write_text
from microcoder.formats.candidates import Candidate

_PAGE = Path(__file__).with_name("page.html")
_SHOWN_FIELDS = (
    "title", "statement", "natural_language", "fn_name", "starter_code", "licence", "date", "url", "tags", "flags",
    "checker", "time_limit_seconds", "memory_limit_mib", "difficulty", "merged",
)  # fmt: skip
_MAX_CHARACTERS = 20_000
_MAX_TESTS_SHOWN, _MAX_TEST_CHARACTERS = 3, 500


def write_page(folder: Path, *, name: str, parts_of_steps: Sequence[Sequence[Part]]) -> None:
    """Write the folder; memory holds a shard after two steps at a time and a line of index per row."""
    index = []
    for number, parts in enumerate(zip(*parts_of_steps, strict=True)):
        stories = dict(tell_stories((part.step, read_part(part.path)) for part in parts))
        write_text(folder / "rows" / f"{number}.js", f"rows({number}, {_script(stories)});\n")
        index += [[story["id"], story["title"], story["dataset"], story["end"], number] for story in stories.values()]
    write_text(folder / "index.js", f"index({_script(name)}, {_script(index)});\n")
    write_text(folder / "index.html", _PAGE.read_text(encoding="utf-8"))


def tell_stories(steps: Iterable[tuple[str, Sequence[Row]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return, for every row of a shard, what it was at first and what each step changed."""
    stories: dict[str, dict[str, Any]] = {}
    last: dict[str, Candidate] = {}
    for step, rows in steps:
        for row in rows:
            story = stories.setdefault(row.id, {"id": row.id, "title": "", "dataset": row.dataset, "steps": []})
            story["end"] = "kept" if isinstance(row, Candidate) else row.reason
            if isinstance(row, Candidate):
                story["title"] = row.title or row.statement[:60]
                story["steps"].append({"step": step, "changes": _changes(last.get(row.id), row)})
                last[row.id] = row
            else:
                story["steps"].append({"step": step, "reason": row.reason, "detail": row.detail, "raw": _cut(row.raw)})
    yield from stories.items()


def _changes(before: Candidate | None, after: Candidate) -> dict[str, list[str]]:
    """Return field to [old, new] as text."""
    changes = {}
    for name in (*_SHOWN_FIELDS, "tests", "solutions"):
        old, new = ("" if before is None else _show(before, name)), _show(after, name)
        if old != new:
            changes[name] = [_cut(old), _cut(new)]
    return changes


def _show(candidate: Candidate, name: str) -> str:
    value = getattr(candidate, name)
    if name == "tests":
        shown = [
            f"input:\n{test.input[:_MAX_TEST_CHARACTERS]}\noutput:\n{test.output[:_MAX_TEST_CHARACTERS]}"
            for test in candidate.tests[:_MAX_TESTS_SHOWN]
        ]
        return "\n\n".join([f"{len(candidate.tests)} tests", *shown])
    if name == "solutions":
        return "\n".join(f"{s.known}: {s.name or 'unnamed'} ({s.language})" for s in candidate.solutions)
    if hasattr(value, "model_dump_json"):
        return value.model_dump_json(exclude_defaults=True)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}\n... {len(text)} characters"


def _script(value: object) -> str:
    """Return JSON that no text in it can end early when it stands in a script."""
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c")

"""`open-r1/codeforces`: official tests as far as they are complete, generated ones where joined, generated checkers."""

from __future__ import annotations

from microcoder.formats.candidates import Candidate
from microcoder.formats.encodings import decode_tests
from microcoder.formats.row import Row
from microcoder.types import Checker

_SECTIONS = (("input_format", "Input"), ("output_format", "Output"), ("interaction_format", "Interaction"))
_ADAPTER = """import contextlib, io, sys

SOURCE = {source!r}

said = io.StringIO()
# Theirs is called with input, correct output, given output, and prints 1 where it is right.
sys.argv = [sys.argv[0], sys.argv[1], sys.argv[3], sys.argv[2]]
with contextlib.redirect_stdout(said):
    try:
        exec(compile(SOURCE, "checker.py", "exec"), {{"__name__": "__main__"}})
    except SystemExit as end:
        if end.code:
            said = io.StringIO("0")
    except Exception:
        # It expects numbers, say, where an answer may be anything; one that fails on right answers too shows in verify.
        said = io.StringIO("0")
sys.exit(0 if said.getvalue().strip() == "1" else 1)
"""
"""Runs in the sandbox, as any checker; what it prints stands for a verdict."""


def read_codeforces(row: Row) -> Candidate:
    """Read a problem: the statement is put together from its sections, the examples come before the other tests."""
    examples = decode_tests(row.decoded("examples")).tests
    shown = set(examples)
    official = tuple(test for test in decode_tests(row.decoded("official_tests")).tests if test not in shown)
    # Published in files of their own; a recipe joins them into this column.
    generated = tuple(decode_tests(row.decoded("generated_test_cases")).tests)
    generated = tuple(test for test in generated if test not in shown and test not in set(official))
    is_complete = row.values.get("official_tests_complete")
    code = row.optional("generated_checker")
    flags = [
        *(["interactive"] if row.optional("interaction_format").strip() else []),
        *(["file_io"] if row.optional("input_mode") == "file" else []),
    ]
    contest, index = row.name("contest_id"), row.name("index")
    notes = [("statement_found", "put together from description, input_format, output_format and note")]
    if is_complete is False:
        notes.append(("tests", "the source says that official tests are missing"))
    return row.candidate(
        _statement(row),
        notes=notes,
        url=f"https://codeforces.com/contest/{contest}/problem/{index}" if contest and index else "",
        platform="codeforces",
        title=row.optional("title") or row.name("id"),
        date=row.date("contest_start"),
        tags=row.tags("tags"),
        platform_difficulty=row.name("rating"),
        tests=(*examples, *official, *generated),
        groups=("sample",) * len(examples) + ("official",) * len(official) + ("generated",) * len(generated),
        checker=Checker(type="program", code=_ADAPTER.format(source=code)) if code.strip() else Checker(),
        time_limit_seconds=row.number("time_limit"),
        memory_limit_mib=round(row.number("memory_limit") or 0) or None,
        flags=tuple(flags),
    )


def _statement(row: Row) -> str:
    parts = [row.statement("description")]
    parts += [f"## {title}\n\n{row.text(name)}" for name, title in _SECTIONS if row.optional(name).strip()]
    for number, example in enumerate(row.rows("examples"), 1):
        shown = f"Input:\n```\n{example.text('input')}\n```\nOutput:\n```\n{example.text('output')}\n```"
        parts.append(f"## Example {number}\n\n{shown}")
    if row.optional("note").strip():
        parts.append(f"## Note\n\n{row.text('note')}")
    return "\n\n".join(parts)

"""MBPP (`mbpp.jsonl` or `sanitized-mbpp.json` as published), with MBPP+ when its file is given."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path
from typing import Literal

from microcoder.dataset.benchmarks.assertions import claims_checker, claims_test, parse_test, read_claims, wrap_answer
from microcoder.dataset.benchmarks.evalplus import plus_tests, read_plus
from microcoder.dataset.benchmarks.question import Question
from microcoder.dataset.benchmarks.rows import PublishedRow, read_published
from microcoder.errors import DataError
from microcoder.types import Problem, TestCase

Split = Literal["test", "prompt", "validation", "train", "all"]
_SPLITS: dict[Split, range] = {
    "prompt": range(1, 11),
    "test": range(11, 511),
    "validation": range(511, 601),
    "train": range(601, 975),
    "all": range(1, 1_000_000),
}
TIME_LIMIT_SECONDS = 10.0
"""Of CPU per assertion; a reference takes 3."""
MEMORY_LIMIT_MIB = 2048


def read_mbpp(path: Path, *, split: Split = "test", plus: Path | None = None) -> list[Question]:
    """Read a split of MBPP; with `plus`, the problems of that file, under its inputs in place of the assertions.

    Raises:
        DataError: a file is missing, or a row is broken: which line, what is wrong.
    """
    further = read_plus(plus) if plus is not None else None
    questions = []
    for row in read_published(path, "MBPP file"):
        number = row.values.get("task_id")
        if not isinstance(number, int):
            raise DataError(f"{row.where}: task_id is {number!r}, not a number; is this MBPP as published?")
        more = further.get(str(number)) if further is not None else None
        if number in _SPLITS[split] and (further is None or more is not None):
            questions.append(_read_question(row, number, more))
    if not questions:
        raise DataError(f"{path} holds no task of split {split!r}{f' that {plus} has too' if plus else ''}; try all")
    return questions


def _read_question(row: PublishedRow, number: int, more: PublishedRow | None) -> Question:
    statement, code, assertions = row.text("text", "prompt"), row.text("code"), row.strings("test_list")
    if not assertions:
        raise DataError(f"{row.where}: test_list is missing or empty")
    entry = _find_entry(code, assertions, row.where)
    if more is None:
        tests = [_read_test(row, source, entry) for source in assertions]
    else:
        tests = plus_tests(more, fields=("base_input", "plus_input"))
        entry = more.text("entry_point")
    problem = Problem(
        id=f"Mbpp/{number}",
        statement=statement,
        tests=tuple(tests),
        checker=claims_checker(),
        time_limit_seconds=TIME_LIMIT_SECONDS,
        memory_limit_mib=MEMORY_LIMIT_MIB,
        reference=wrap_answer(code),
    )
    return Question(
        id=problem.id,
        statement=statement,
        fn_name=entry,
        examples=tuple(assertions),
        digest=row.digest() + (more.digest() if more is not None else ""),
        load=lambda: problem,
        wrap=wrap_answer,
    )


def _read_test(row: PublishedRow, source: str, entry: str) -> TestCase:
    setup = "\n".join([row.text("test_setup_code") if "test_setup_code" in row.values else "", *_imports(row)])
    # An assertion may use what the reference imports, such as sys.
    around = parse_test(f"{row.text('code')}\n{setup}", row.where).body
    imports = [node for node in around if isinstance(node, ast.Import | ast.ImportFrom)]
    claims = read_claims(parse_test(source, row.where).body, called=(entry,), entry=entry)
    if not claims or not any(claim.calls for claim in claims):
        raise DataError(f"{row.where}: {source[:80]!r} is no assertion about {entry}")
    return claims_test(claims, setup=setup, prelude="\n".join(ast.unparse(node) for node in imports))


def _imports(row: PublishedRow) -> list[str]:
    return row.strings("test_imports")


def _find_entry(code: str, assertions: list[str], where: str) -> str:
    """Return the function that the assertions are about; MBPP does not name it."""
    called = [
        node.func.id
        for node in ast.walk(parse_test(assertions[0], where))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    defined = {node.name for node in parse_test(code, where).body if isinstance(node, ast.FunctionDef)}
    for name in (*(n for n in called if n in defined), *(n for n in called if not hasattr(builtins, n))):
        return name
    raise DataError(f"{where}: the first assertion calls no function: {assertions[0][:80]!r}")

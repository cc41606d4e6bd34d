"""HumanEval (`HumanEval.jsonl.gz` as published), with HumanEval+ when its file is given."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path

from microcoder.dataset.benchmarks.assertions import (
    claims_checker,
    claims_test,
    parse_test,
    read_claims,
    replay_test,
    wrap_answer,
)
from microcoder.dataset.benchmarks.evalplus import plus_tests, read_plus, task_number
from microcoder.dataset.benchmarks.question import Question
from microcoder.dataset.benchmarks.rows import PublishedRow, read_published
from microcoder.errors import DataError
from microcoder.types import Problem, TestCase

TIME_LIMIT_SECONDS = 3.0
"""Of CPU per assertion; the published harness gives the whole test 3 seconds of wall time."""
MEMORY_LIMIT_MIB = 2048


def read_humaneval(path: Path, *, plus: Path | None = None) -> list[Question]:
    """Read HumanEval; with `plus`, the problems of that file, under its further inputs too.

    Raises:
        DataError: a file is missing, or a row is broken: which line, what is wrong.
    """
    further = read_plus(plus) if plus is not None else None
    questions = []
    for row in read_published(path, "HumanEval file"):
        more = None
        if further is not None and (more := further.get(task_number(row.text("task_id")))) is None:
            continue
        questions.append(_read_question(row, more))
    if not questions:
        raise DataError(f"{plus} shares no task with {path}; are both of the same benchmark?")
    return questions


def _read_question(row: PublishedRow, more: PublishedRow | None) -> Question:
    name, prompt, entry = row.text("task_id"), row.text("prompt"), row.text("entry_point")
    tests = tuple(assertion_tests(row.text("test"), entry=entry, prompt=prompt, where=row.where))
    if more is not None:
        tests += tuple(plus_tests(more, fields=("plus_input",)))
    problem = Problem(
        id=name,
        statement=prompt,
        tests=tests,
        checker=claims_checker(),
        time_limit_seconds=TIME_LIMIT_SECONDS,
        memory_limit_mib=MEMORY_LIMIT_MIB,
        reference=wrap_answer(prompt + row.text("canonical_solution"), preamble=prompt),
    )
    return Question(
        id=name,
        statement=prompt,
        fn_name=entry,
        digest=row.digest() + (more.digest() if more is not None else ""),
        load=lambda: problem,
        wrap=partial(wrap_answer, preamble=prompt),
    )


def assertion_tests(source: str, *, entry: str, prompt: str, where: str) -> list[TestCase]:
    """Return the tests of a `def check(candidate)`: one per assertion, or a single one where it must stay whole.

    Raises:
        DataError: the source is no Python or defines no check.
    """
    tree = parse_test(source, where)
    check = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
    if check is None:
        raise DataError(f"{where}: the test defines no check(candidate)")
    around = [node for node in tree.body if node is not check]
    statements = [*around, *check.body]
    claims = read_claims(statements, called=("candidate", entry), entry=entry)
    if claims is None or not any(claim.calls for claim in claims):
        return [replay_test(source, entry=entry, prelude=prompt)]
    before = [node for node in statements if not isinstance(node, ast.Assert)]
    prelude = "\n".join([prompt, *(ast.unparse(node) for node in before)])
    return [claims_test([claim], prelude=prelude) for claim in claims if claim.calls]

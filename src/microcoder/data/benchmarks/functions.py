"""HumanEval and MBPP as published (`HumanEval.jsonl.gz`, `mbpp.jsonl`, `sanitized-mbpp.json`), and EvalPlus tests."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from microcoder.data.benchmarks.rows import FileRow, Question, plus_tests_of, read_plus, read_published, task_number
from microcoder.judge.core.errors import DataError

Split = Literal["test", "prompt", "validation", "train", "all"]
_SPLITS: dict[Split, range] = {
    "prompt": range(1, 11),
    "test": range(11, 511),
    "validation": range(511, 601),
    "train": range(601, 975),
    "all": range(1, 1_000_000),
}


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
        questions.append(_read_humaneval(row, more))
    if not questions:
        raise DataError(f"{plus} shares no task with {path}; are both of the same benchmark?")
    return questions


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
            questions.append(_read_mbpp(row, number, more))
    if not questions:
        raise DataError(f"{path} holds no task of split {split!r}{f' that {plus} has too' if plus else ''}; try all")
    return questions


def _read_humaneval(row: FileRow, more: FileRow | None) -> Question:
    name, prompt = row.text("task_id"), row.text("prompt")
    problem = row.problem("humaneval", name)
    if more is not None:
        tests = (*problem.tests, *plus_tests_of(more, ("plus_input",)))
        problem = problem.model_copy(update={"tests": tests})
    return Question(
        id=name,
        statement=prompt,
        fn_name=problem.fn_name,
        digest=row.values_digest() + (more.values_digest() if more is not None else ""),
        load=lambda: problem,
    )


def _read_mbpp(row: FileRow, number: int, more: FileRow | None) -> Question:
    problem = row.problem("mbpp", f"Mbpp/{number}")
    if more is not None:
        tests = plus_tests_of(more, ("base_input", "plus_input"))
        problem = problem.model_copy(update={"tests": tests, "fn_name": more.text("entry_point")})
    return Question(
        id=problem.id,
        statement=problem.statement,
        fn_name=problem.fn_name,
        examples=tuple(row.strings("test_list")),
        digest=row.values_digest() + (more.values_digest() if more is not None else ""),
        load=lambda: problem,
    )

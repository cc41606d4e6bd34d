"""Our own records: a problem line, or one that a row of another form carries with it.

A row -> its problem, read once however often it is asked about: a judge sees a problem with each of its answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.data.formats.format import LISTED, Format, has_field
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.text import read_json, shorten
from microcoder.judge.core.errors import explain_fault
from microcoder.judge.core.types import Problem

CARRIED_IN = (
    "problem",
    "extra_info.problem",
    "verifier_metadata.problem",
    "info.problem",
    "reward_model.ground_truth.problem",
    "ground_truth.problem",
)
"""Where rows that we export carry the whole record, for checkers, limits and calls that their form has no place for."""
_NEEDED = ("id", "tests")


def read_own(row: Row) -> Candidate:
    """Read a problem line into a candidate."""
    problem = read_record(row.values)
    if not problem.statement.strip() and not row.is_judged:
        raise Malformed("no_statement", "statement is blank")
    solutions = (Solution(code=problem.reference, language=problem.language),) if problem.reference else ()
    return row.candidate(
        problem.statement,
        problem.tests,
        title=problem.id,
        platform_difficulty=problem.tier or "",
        programming_language=problem.language,
        fn_name=problem.fn_name,
        call=problem.call,
        starter_code=problem.starter_code,
        harness=problem.harness,
        checker=problem.checker,
        time_limit_seconds=problem.time_limit_seconds,
        memory_limit_mib=problem.memory_limit_mib,
        solutions=solutions,
    )


def read_record(values: Mapping[str, Any]) -> Problem:
    """Return the problem of a row that is our record, or carries one."""
    where, record = find_record(values) or ("", values)
    try:
        # A table gives null where a row lacks a field.
        return Problem.model_validate({name: value for name, value in record.items() if value is not None})
    except ValidationError as error:
        fault = error.errors()[0]
        path = ".".join(str(part) for part in (where, *fault["loc"]) if part != "")
        found = "" if fault["type"] == "missing" else f", not {shorten(fault['input'], 60)}"
        if fault["type"] == "extra_forbidden":
            found = "; a record takes no further columns: put it into a column `problem`, or leave this one out"
        raise Malformed(_reason(fault["type"], fault["loc"]), f"{explain_fault(fault, path)}{found}") from None


def _reason(fault: str, where: tuple[int | str, ...]) -> str:
    if fault == "string_unicode":
        return "bad_unicode"
    if where[:1] == ("tests",) and (len(where) > 1 or fault != "missing"):
        return "bad_tests"
    if fault == "missing":
        return "missing_field"
    return "wrong_type" if fault.endswith("_type") else "wrong_value"


def find_record(values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return where a row has our record, and the record; None if it has none."""
    if is_record(values):
        return "", values
    for path in CARRIED_IN:
        if not has_field(values, path):
            continue
        value: Any = values
        for name in path.split("."):
            value = _object(value).get(name)
        record = _object(value)
        if is_record(record):
            return path, record
    return None


def is_record(values: Mapping[str, Any]) -> bool:
    """Whether these fields are those of our record, and no others."""
    return all(name in values for name in _NEEDED) and values.keys() <= Problem.model_fields.keys()


def _object(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = read_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


FORMATS = (
    Format(
        "microcoder",
        "our own problem lines, and rows that carry one (docs/rows.md)",
        read_own,
        tests_in="tests",
        shape=LISTED,
        # The fields that others do not have: what they say must not be lost where a column was added.
        marks=tuple(("id", "tests", name) for name in ("fn_name", "checker", "call", "harness", "time_limit_seconds")),
    ),
)


_MOST_PROBLEMS = 256
_OF_THE_ROLLOUT = ("num_turns", "rollout_reward_scores")
"""What verl adds to a row's `extra_info` before a reward is asked for."""


def to_problem(row: Problem | Mapping[str, Any], format: str | None = None) -> Problem:
    """Return the problem of a row, or of what is left of one, as `Problem.from_row`; equal rows are read once."""
    if isinstance(row, Problem):
        return row
    # Tests are mostly text, and large: as it is, comparing it costs next to nothing.
    fields = tuple(
        (str(name), isinstance(value, str), value if isinstance(value, str) else json.dumps(value, default=_plain))
        for name, value in row.items()
    )
    return _read(fields, format)


def problem_of_reward(data_source: Any, ground_truth: Any, extra_info: Mapping[str, Any] | None) -> Problem:
    """Return the problem of a row as verl hands it to whoever scores its responses."""
    known = {name: value for name, value in (extra_info or {}).items() if name not in _OF_THE_ROLLOUT}
    return to_problem({"data_source": data_source, "ground_truth": ground_truth, "extra_info": known})


@lru_cache(_MOST_PROBLEMS)
def _read(fields: tuple[tuple[str, bool, str], ...], format: str | None) -> Problem:
    return Problem.from_row({name: text if is_text else json.loads(text) for name, is_text, text in fields}, format)


def _plain(value: Any) -> Any:
    """Return arrays of numpy and pandas, sets and bytes as JSON has them."""
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)

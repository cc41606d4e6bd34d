"""All public formats by name, readers of the user's own, and rows of either as problems.

`read_problem` reads rows by it. Nothing of a row is executed.

A row that cannot be judged whole is an error. A test that is left out, a checker that is not there
or a statement that asks for an interactive program would give a verdict that means something else.
"""

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from microcoder.data.formats import contests, functions, kattis, polygon, sets, trainers
from microcoder.data.formats.assertions import NotACall
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.data.formats.columns import ID, check_columns, missing_column, with_columns
from microcoder.data.formats.format import LISTED, Folders, Format, has_field, recognise
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.statements import find_checker
from microcoder.data.formats.tests import read_literal_calls
from microcoder.data.formats.values import read_json, shorten
from microcoder.judge.core.digits import dump_json, spell_int
from microcoder.judge.core.errors import DataError, Location, explain_fault, nearest
from microcoder.judge.core.extensions import Extension, ExtensionSource, load_extension
from microcoder.judge.core.types import Problem

CARRIED_IN = (
    "problem",
    "extra_info.problem",
    "verifier_metadata.problem",
    "info.problem",
    "reward_model.ground_truth.problem",
    "ground_truth.problem",
)
"""Fields in which rows that we export carry the whole record.

They do if their format lacks checkers, limits and calls.
"""
_NEEDED = ("id", "tests")
"""Fields that every problem record has."""
_GONE = ("harness",)
"""Fields that records of earlier versions have; the record says what to do."""
_LONGEST_SHOWN = 60
"""Characters of a wrong value that a message shows."""
_SAME = (
    "fn_name",
    "call",
    "starter_code",
    "assertions",
    "checker",
    "time_limit_seconds",
    "memory_limit_mib",
)
"""Fields besides the tests that `Problem` and `Candidate` share and that are copied."""


def read_own(row: Row) -> Candidate:
    """Read a row in our own format, a `Problem` as JSON; Malformed if it is invalid."""
    problem = read_record(row.values)
    if not problem.statement.strip() and not row.is_judged:
        raise Malformed("no_statement", "statement is blank")
    solutions: tuple[Solution, ...] = ()
    if problem.reference:
        solutions = (Solution(code=problem.reference, language=problem.language),)
    return row.candidate(
        problem.statement,
        problem.tests,
        title=problem.id,
        platform_difficulty=problem.tier or "",
        programming_language=problem.language,
        solutions=solutions,
        **{name: getattr(problem, name) for name in _SAME},
    )


def read_record(values: Mapping[str, Any]) -> Problem:
    """Return the problem of a row that is our record, or carries one.

    Raises:
        Malformed: the record is invalid.
    """
    where, record = find_record(values) or ("", values)
    # A table gives null where a row lacks a field.
    fields = {name: value for name, value in record.items() if value is not None}
    try:
        problem = Problem.model_validate(fields)
    except ValidationError as error:
        fault = error.errors()[0]
        places = (where, *fault["loc"])
        path = ".".join(str(place) for place in places if place != "")
        if fault["type"] == "missing":
            hint = ""
        elif fault["type"] == "extra_forbidden":
            hint = (
                "; a record takes no further columns: "
                "put it into a column `problem`, or leave this one out"
            )
        else:
            hint = f", not {shorten(fault['input'], _LONGEST_SHOWN)}"
        reason = _reason(fault["type"], fault["loc"])
        raise Malformed(reason, f"{explain_fault(fault, path)}{hint}") from None
    # Tests that are programs have no arguments.
    if not problem.fn_name or problem.assertions is not None:
        return problem
    try:
        return problem.model_copy(update={"tests": read_literal_calls(problem.tests)})
    except NotACall as error:
        raise Malformed("bad_tests", f"tests: {error}") from None


def _reason(fault: str, where: Location) -> str:
    """Return the reason to reject a record, from pydantic's type and place of a fault."""
    if fault == "string_unicode":
        return "bad_unicode"
    # That all tests are missing is another fault than that one is broken.
    if where[:1] == ("tests",) and (len(where) > 1 or fault != "missing"):
        return "bad_tests"
    if fault == "missing":
        return "missing_field"
    return "wrong_type" if fault.endswith("_type") else "wrong_value"


def find_record(values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the path and values of the problem record in a row; None if it holds none.

    The path is empty if the row itself is the record.
    """
    if is_record(values):
        return "", values
    # Which of them a format has depends on where it leaves room for more.
    for path in CARRIED_IN:
        # Asked first: a column may be a text of all tests, which is not decoded in vain.
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
    """Whether these fields are those of a problem record (see `Problem`), and no others."""
    has_needed = all(name in values for name in _NEEDED)
    return has_needed and values.keys() <= {*Problem.model_fields, *_GONE}


def _object(value: Any) -> Mapping[str, Any]:
    """Return an object, also one written as JSON; an empty one for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = read_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


_OWN = Format(
    "microcoder",
    "our own problem lines, and rows that carry one (docs/rows.md)",
    read_own,
    tests_in="tests",
    shape=LISTED,
    # Fields that others do not have: what they say must not be lost where a column was added.
    marks=(
        ("id", "tests", "fn_name"),
        ("id", "tests", "checker"),
        ("id", "tests", "call"),
        ("id", "tests", "assertions"),
        ("id", "tests", "harness"),
        ("id", "tests", "time_limit_seconds"),
    ),
)
# Of formats that match as many of a row's fields, the first counts.
_ALL_FORMATS = (
    _OWN,
    *sets.FORMATS,
    *contests.FORMATS,
    *functions.FORMATS,
    *trainers.FORMATS,
    kattis.FORMAT,
    polygon.FORMAT,
)
FORMATS: Mapping[str, Format] = {format.name: format for format in _ALL_FORMATS}


@lru_cache(64)
def load_format(name: str) -> Format:
    """Return a format by its name, or one of the user's own by a reference to its reader.

    A function of the user's own with `is_benchmark = True` on it reads a benchmark, which is never
    trained on. One with `folders` (`Folders`) reads folders of files.

    Args:
        name: a key of `FORMATS`, path/to/file.py:function, module:function, or an entry point's
            name.
    """
    if name in FORMATS:
        return FORMATS[name]
    extension = load_reader(name)
    folders = getattr(extension.function, "folders", None)
    if folders is not None and not isinstance(folders, Folders):
        raise extension.fault(
            f'has folders = {folders!r:.80}; write Folders(("problem.yaml",), ("*", "*/*"))'
        )

    def read(row: Row) -> Candidate:
        # By `Malformed` a reader refuses a row; whatever else it raises is its own fault.
        candidate = extension(row, passing=(Malformed,))
        if not isinstance(candidate, Candidate):
            raise extension.fault(
                f"returned {candidate!r:.80}; return row.candidate(statement, tests=...)"
            )
        return candidate

    is_benchmark = getattr(extension.function, "is_benchmark", False) is True
    return Format(
        extension.label,
        f"your own, {name}",
        read,
        folders=folders,
        is_benchmark=is_benchmark,
        tests_in="what its reader reads",
        shape="tests",
    )


def find_source(name: str) -> ExtensionSource | None:
    """Return the source of a format's reader (file and digest); None for a built-in format."""
    return None if name in FORMATS else load_reader(name).source


@lru_cache(64)
def load_reader(name: str) -> Extension:
    """Return the user's own reader that a reference names, such as path/to/file.py:function."""
    builtins = {known: format.read for known, format in FORMATS.items()}
    return load_extension("format", name, builtins=builtins)


_NAMES = (
    "id",
    "question_id",
    "problem_id",
    "task_id",
    "name",
    "pid",
    "hash_id",
    "uid",
    "uuid",
    "index",
)
"""Fields that name a row, by precedence."""
_LONGEST_NAME = 200
"""Characters of a row's name."""
_ID_CHARACTERS = 16
"""Hexadecimal digits in the id of a row that has no name."""
_OF_TESTS = ("bad_tests", "tests_not_convertible", "bad_encoding")
"""Reasons that speak of the field of tests."""
HINDERED = {
    "needs_checker": "its checker includes a header that is not in the row",
    "interactive": "it asks for an interactive program, and its interactor is not in the row",
    "file_io": "its programs read and write files, not stdin and stdout",
    "gives_points": "its tests give points, not a verdict",
    "needs_files": "its tests need files that are not in the row",
}
"""Flags of a candidate that keep its answers from being judged, and why."""
_MOST_SHOWN = 12
"""Fields of a row that a message shows."""


def read_problem(
    row: Mapping[str, Any],
    format: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
) -> Problem:
    """Return the problem of a row of a public data set, or of our own. Nothing of it is executed.

    Args:
        row: its fields, as `datasets`, parquet, pandas or JSON lines give them (docs/rows.md lists
            the formats).
        format: the name of its format, one of `FORMATS`, or your own reader,
            path/to/file.py:function (docs/extending.md). None recognises it by its fields.
        columns: field -> column, where a row has names of its own:
            {"id": "uid", "statement": "task.text"}.

    Raises:
        ConfigError: the format is unknown, or a field that a column is named for.
        DataError: it cannot be judged whole: which field, what was found, what was expected.
    """
    columns = columns or {}
    check_columns(columns)
    if not isinstance(row, Mapping):
        raise DataError(
            f"a row is {type(row).__name__}, not a mapping of fields to values; "
            "pass one row, as a dict"
        )
    values = {str(name): _plain(value) for name, value in row.items()}
    reader = _find_format(values, format, columns)
    name = _name(values)
    where = f"row {name!r} ({reader.name})"
    try:
        if ID in columns:
            named_row = Row(values, id=where, dataset=reader.name)
            name = named_row.name(columns[ID])
            if not name:
                raise missing_column(values, columns[ID], columns)
            where = f"row {name!r} ({reader.name})"
        if reader.name == "microcoder" and not columns.keys() - {ID}:
            problem = read_record(values)
            if ID in columns:
                return problem.model_copy(update={"id": name})
            return problem
        reader = with_columns(reader, columns)
        candidate = reader.read_row(values, name or _digest(values), is_judged=True)
    except Malformed as error:
        raise DataError(f"{where}: {_explain(reader, error, values)}") from None
    if not candidate.tests:
        raise DataError(f"{where}: {reader.tests_in} holds no test; expected {reader.shape}")
    if ID in columns:
        # Who names the column means its values; of other rows the format is part of the id.
        candidate = candidate.model_copy(update={"id": name})
    return _to_problem(candidate, where)


def _find_format(
    values: Mapping[str, Any],
    format: str | None,
    columns: Mapping[str, str],
) -> Format:
    """Return the format of a row that is one row; DataError if there is none."""
    if format in (None, "microcoder") and find_record(values) is not None:
        reader = FORMATS["microcoder"]
    elif format is None:
        reader = recognise(values, FORMATS.values())
    else:
        reader = load_format(format)
    if reader is None and columns.keys() - {ID}:
        # Whose columns are named needs no further sign of a format.
        reader = FORMATS["trl"]
    if reader is None or reader.folders is not None:
        raise _unknown(values, format)
    return reader


def _to_problem(candidate: Candidate, where: str) -> Problem:
    """Return a candidate's problem; DataError, beginning with `where`, if it cannot be judged."""
    for flag, why in HINDERED.items():
        if flag in candidate.flags:
            raise DataError(f"{where}: {why}; it cannot be judged from this row")
    checker = find_checker(candidate)
    if checker is not None:
        candidate = candidate.model_copy(update={"checker": checker})
    try:
        return candidate.to_problem()
    except ValidationError as error:
        fault = error.errors()[0]
        path = ".".join(str(part) for part in fault["loc"])
        raise DataError(f"{where}: {explain_fault(fault, path)}") from None


def _explain(format: Format, error: Malformed, values: Mapping[str, Any]) -> str:
    """Return what is wrong with a row, and what the format expects there."""
    if format.name == "microcoder":
        return f"{error.detail}; see docs/rows.md"
    if error.reason == "missing_field":
        return f"field {error.detail} is missing; expected {format.shape} in {format.tests_in}"
    if error.reason in _OF_TESTS:
        # A reader that knows better which of several fields it is says so itself.
        path = error.detail.partition(":")[0]
        is_named = path.partition(".")[0] in values
        where = "" if is_named else f"{format.tests_in}: "
        return f"field {where}{error.detail}; expected {format.shape}"
    if error.reason == "other_task":
        return f"it is not a programming task, but {error.detail}"
    return f"{error.detail or error.reason}; see docs/rows.md for the fields of {format.name}"


def _unknown(values: Mapping[str, Any], format: str | None) -> DataError:
    """Return the error for a row of no known format."""
    if format is not None:
        return DataError(
            f"format {format!r} is a folder of files, not a row; "
            "build a corpus of it: microcoder data build"
        )
    shown = ", ".join(sorted(values)[:_MOST_SHOWN]) or "(none)"
    if len(values) > _MOST_SHOWN:
        shown += ", ..."
    hint = ""
    if "tests" not in values:
        near = nearest("tests", values)
        if near:
            hint = f" (did you mean tests by {near}?)"
    known = ", ".join(name for name, reader in FORMATS.items() if reader.folders is None)
    return DataError(
        f"a row with the fields {shown} is of no known format{hint}; name it, as in "
        f'read_problem(row, format="apps"), one of {known}; or name its columns, as in '
        'columns={"id": "uid", "statement": "task.text", "tests": "cases"}; '
        "docs/rows.md lists their fields"
    )


def _name(values: Mapping[str, Any]) -> str:
    """Return the name of a row, in its own fields or in verl's `extra_info`; empty without one."""
    sources = [values]
    extra = values.get("extra_info")
    if isinstance(extra, Mapping):
        sources.append(extra)
    for source in sources:
        for field in _NAMES:
            value = source.get(field)
            if isinstance(value, bool) or not isinstance(value, str | int):
                continue
            text = value if isinstance(value, str) else spell_int(value)
            if text.strip():
                return shorten(text, _LONGEST_NAME)
    return ""


def _digest(values: Mapping[str, Any]) -> str:
    """Return an id for a row that has none: 16 digits of a hash over its fields."""
    # By name alone, since values of several types have no order among each other.
    pairs = sorted(values.items(), key=lambda pair: pair[0])
    try:
        content = repr(pairs)
    except ValueError:  # Python writes no integer of so many digits.
        content = dump_json(pairs, default=repr)
    digest = hashlib.sha256(content.encode("utf-8", "replace"))
    return digest.hexdigest()[:_ID_CHARACTERS]


def _plain(value: Any) -> Any:
    """Return a value in plain lists and dicts.

    Pandas and parquet give arrays, tuples and bytes.
    """
    if isinstance(value, float) and math.isnan(value):
        return None  # NaN is pandas' null.
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    # Arrays of numpy and the like, without an import of it.
    if not isinstance(value, list | tuple) and callable(getattr(value, "tolist", None)):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


_OF_THE_ROLLOUT = ("num_turns", "rollout_reward_scores")
"""Fields that verl adds to a row's `extra_info` before it calls a reward function."""


def to_problem(row: Problem | Mapping[str, Any], format: str | None = None) -> Problem:
    """Return a problem unchanged, or that of a row as `read_problem` reads it.

    Raises:
        DataError: the row cannot be read.
    """
    if isinstance(row, Problem):
        return row
    return read_problem(row, format)


def problem_of_reward(
    data_source: Any,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None,
) -> Problem:
    """Return the problem in the arguments that verl passes to a reward function.

    Raises:
        DataError: it cannot be read.
    """
    row_info = dict(extra_info or {})
    # They differ from rollout to rollout, but a row without an id is named by its fields.
    for name in _OF_THE_ROLLOUT:
        row_info.pop(name, None)
    row = {"data_source": data_source, "ground_truth": ground_truth, "extra_info": row_info}
    return to_problem(row)

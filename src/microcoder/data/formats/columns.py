"""Rows of one's own: which column holds what, named by an option such as `id=uid,statement=task.text`.

What is not named is read as before: by the format that the row's fields show, or the one that is given.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.format import Columns, Format
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.values import read_mebibytes, read_seconds, shorten
from microcoder.judge.core.errors import ConfigError, nearest

ID = "id"
_OF_TESTS = ("input", "output")
_PAIRED = ("inputs", "outputs")
_TABLE = (
    "statement", "tests", "fn_name", "starter_code", "solutions", "time_limit", "memory_limit", "difficulty", "title",
    "url", "platform",
)  # fmt: skip
FIELDS = (ID, *_TABLE, *_OF_TESTS, *_PAIRED)
"""What a column can be named for. `input` and `output` are keys of each test; `inputs` and `outputs` are columns."""
_LIMITS: Mapping[str, tuple[Callable[[str], float | None], str]] = {
    "time_limit": (read_seconds, "seconds, as 2.5 or '500 ms'"),
    "memory_limit": (read_mebibytes, "MiB, as 256 or '1 GB'"),
}
"""Field of a limit -> how its text is read, and examples of it."""
_MOST_SHOWN = 12


def parse_columns(text: str) -> dict[str, str]:
    """Return `id=uid,statement=task.text` as field -> column; ConfigError for another form or an unknown field."""
    columns: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        field, is_pair, column = (word.strip() for word in part.partition("="))
        if not is_pair or not column:
            raise ConfigError(
                f"columns: {part!r} is no FIELD=COLUMN; write them as in id=uid,statement=task.text"
            )
        columns[field] = column
    check_columns(columns)
    return columns


def check_columns(columns: Mapping[str, str]) -> None:
    """Raise ConfigError for a field that no column can be named for."""
    for field, column in columns.items():
        if field not in FIELDS:
            near = nearest(field, FIELDS)
            hint = f"; did you mean {near}?" if near else f"; use one of {', '.join(FIELDS)}"
            raise ConfigError(f"columns: {field!r} is no field of a problem{hint}")
        if not isinstance(column, str) or not column:
            raise ConfigError(
                f"columns: {field} = {column!r} is no column; name one, such as 'uid'"
            )


def with_columns(found: Format, columns: Mapping[str, str]) -> Format:
    """Return a format that reads these columns in place of its own; ConfigError where its reader has no columns."""
    named = {field: column for field, column in columns.items() if field != ID}
    if not named:
        return found
    reader = found.read
    if not isinstance(reader, Columns):
        raise ConfigError(
            f"columns: the reader of {found.name} takes only id; leave out {', '.join(named)}, or name --format trl"
        )
    table = {field: column for field, column in named.items() if field in _TABLE}
    changed: dict[str, Any] = dict(table)
    if "tests" in table:
        changed["assertions"] = ()
    keys = {field: named[field] for field in _OF_TESTS if field in named}
    lists = [named[field] for field in _PAIRED if field in named]
    if len(lists) == 1:
        raise ConfigError("columns: inputs and outputs go together; name both")
    tests = table.get("tests", reader.tests)

    def read_tests(row: Row) -> object:
        if lists:
            inputs, outputs = (row.decoded(name) for name in lists)
            return {"inputs": inputs, "outputs": outputs}
        names = (tests,) if isinstance(tests, str) else tests
        value = names(row) if callable(names) else row.decoded(*names)
        return _rename(value, keys)

    if lists or keys:
        changed["tests"] = read_tests

    def read(row: Row) -> Candidate:
        for field in (*table.values(), *lists):
            if not row.has(field):
                raise missing_column(row.values, field, columns)
        _check_limits(row, table)
        return replace(reader, **changed)(row)

    return replace(
        found, read=read, tests_in=table.get("tests", " and ".join(lists) or found.tests_in)
    )


def _check_limits(row: Row, table: Mapping[str, str]) -> None:
    """Raise Malformed for a limit that the user named the column of and that cannot be read: no default replaces it."""
    for field, (read, example) in _LIMITS.items():
        column = table.get(field)
        if column is None:
            continue
        text = row.name(column)
        if read(text) is None:
            raise Malformed(
                "wrong_value",
                f"column {column} (named for {field}) is {shorten(text, 40)!r}; write {example}",
            )


def missing_column(values: Mapping[str, Any], column: str, columns: Mapping[str, str]) -> Malformed:
    """Return the error for a row without a column that was named for a field."""
    field = next(field for field, named in columns.items() if named == column)
    shown = ", ".join(sorted(list_paths(values))[:_MOST_SHOWN]) or "none"
    return Malformed(
        "wrong_value",
        f"column {column} (named for {field}) is missing or null; the row has {shown}",
    )


def list_paths(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a row's columns, and `a.b` for the fields of those that are objects."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{name}.{inner}" for inner in value)
        else:
            yield name


def _rename(value: Any, keys: Mapping[str, str]) -> Any:
    """Return a list of tests with the usual keys in place of the named ones; Malformed if a test lacks one."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    renamed = []
    for number, test in enumerate(value, 1):
        if not isinstance(test, Mapping):
            return value
        for field, key in keys.items():
            if key not in test:
                has = shorten(", ".join(map(str, test)))
                raise Malformed(
                    "bad_tests", f"test {number} has no {key} (named for {field}), but {has}"
                )
        renamed.append({**test, **{field: test[key] for field, key in keys.items()}})
    return renamed

"""Rows of your own: which column holds what, named by an option.

Such as `id=uid,statement=task.text`. Fields that are not named are read as before, by the format
that the row's fields show, or by the one that is given.
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
"""Field of a problem's name."""
_KEYS = ("input", "output")
"""Keys of each test, which can be named too."""
_LISTS = ("inputs", "outputs")
"""Fields of tests that are in two columns, of which both are named."""
_TABLE = (
    "statement",
    "tests",
    "fn_name",
    "starter_code",
    "solutions",
    "time_limit",
    "memory_limit",
    "difficulty",
    "title",
    "url",
    "platform",
)
"""Fields of `Columns` that a column can be named for."""
FIELDS = (ID, *_TABLE, *_KEYS, *_LISTS)
"""What a column can be named for.

`input` and `output` are keys of each test; `inputs` and `outputs` are columns.
"""
_LIMITS: Mapping[str, tuple[Callable[[str], float | None], str]] = {
    "time_limit": (read_seconds, "seconds, as 2.5 or '500 ms'"),
    "memory_limit": (read_mebibytes, "MiB, as 256 or '1 GB'"),
}
"""Field of a limit -> how its text is read, and examples of it."""
_MOST_SHOWN = 12
"""Columns that a message shows."""


def parse_columns(text: str) -> dict[str, str]:
    """Return `id=uid,statement=task.text` as field -> column.

    Raises:
        ConfigError: it has another form, or names an unknown field.
    """
    columns: dict[str, str] = {}
    for part in text.split(","):
        part = part.strip()
        if not part:
            continue
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
            hint = f"did you mean {near}?" if near else f"use one of {', '.join(FIELDS)}"
            raise ConfigError(f"columns: {field!r} is no field of a problem; {hint}")
        if not isinstance(column, str) or not column:
            raise ConfigError(
                f"columns: {field} = {column!r} is no column; name one, such as 'uid'"
            )


def with_columns(format: Format, columns: Mapping[str, str]) -> Format:
    """Return a format that reads these columns in place of its own.

    Raises:
        ConfigError: the format's reader has no columns, or only one of `inputs` and `outputs` is
            named.
    """
    # It says nothing of how a row is read: whoever reads it sets its id.
    named = {field: column for field, column in columns.items() if field != ID}
    if not named:
        return format
    reader = format.read
    if not isinstance(reader, Columns):
        raise ConfigError(
            f"columns: the reader of {format.name} takes only id; "
            f"leave out {', '.join(named)}, or name --format trl"
        )
    table = {field: column for field, column in named.items() if field in _TABLE}
    keys = {field: named[field] for field in _KEYS if field in named}
    lists = [named[field] for field in _LISTS if field in named]
    # Inputs without outputs are no tests.
    if len(lists) == 1:
        raise ConfigError("columns: inputs and outputs go together; name both")
    changed: dict[str, Any] = dict(table)
    if "tests" in table:
        # Tests that are named are read in place of the format's assertions.
        changed["assertions"] = ()
    if lists or keys:
        tests_columns = table.get("tests", reader.tests)
        changed["tests"] = _tests_reader(tests_columns, lists, keys)

    def read(row: Row) -> Candidate:
        # Asked of each row, since only a row shows which columns it has.
        for column in (*table.values(), *lists):
            if not row.has(column):
                raise missing_column(row.values, column, columns)
        _check_limits(row, table)
        return replace(reader, **changed)(row)

    # Messages speak of the columns that were named, not of the format's.
    tests_in = table.get("tests") or " and ".join(lists) or format.tests_in
    return replace(format, read=read, tests_in=tests_in)


def _tests_reader(
    tests: str | tuple[str, ...] | Callable[[Row], object],
    lists: Sequence[str],
    keys: Mapping[str, str],
) -> Callable[[Row], object]:
    """Return a function that reads a row's tests.

    Args:
        tests: columns of tests, or the function of a format that returns them.
        lists: columns of all inputs and of all outputs, which then are the tests.
        keys: `input` and `output` -> the keys that each test has in their place.
    """

    def read_tests(row: Row) -> object:
        if lists:
            inputs, outputs = (row.decoded(name) for name in lists)
            return {"inputs": inputs, "outputs": outputs}
        if callable(tests):
            value = tests(row)
        elif isinstance(tests, str):
            value = row.decoded(tests)
        else:
            value = row.decoded(*tests)
        return _rename(value, keys)

    return read_tests


def _check_limits(row: Row, table: Mapping[str, str]) -> None:
    """Raise Malformed for a limit whose column is named and that cannot be read.

    The user means that column: no default replaces it.
    """
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


def missing_column(
    values: Mapping[str, Any],
    column: str,
    columns: Mapping[str, str],
) -> Malformed:
    """Return the error for a row without a column that was named for a field."""
    field = next(field for field, named in columns.items() if named == column)
    paths = sorted(list_paths(values))
    shown = ", ".join(paths[:_MOST_SHOWN]) or "none"
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
    """Return a list of tests with the usual keys in place of the named ones.

    A value that is no list of objects is returned unchanged: it has no keys.

    Raises:
        Malformed: a test lacks a named key.
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    renamed = []
    for number, test in enumerate(value, 1):
        if not isinstance(test, Mapping):
            return value
        changed = dict(test)
        for field, key in keys.items():
            if key not in test:
                present = shorten(", ".join(map(str, test)))
                raise Malformed(
                    "bad_tests", f"test {number} has no {key} (named for {field}), but {present}"
                )
            changed[field] = test[key]
        renamed.append(changed)
    return renamed

"""JSON-lines files of validated records, plain or gzipped: one reader, one kind of error message.

`read_records` reads and validates a file; `explain_faults` puts an invalid record's faults into one
line.
"""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.errors import DataError, Location, explain_fault, own_faults, suggest
from microcoder.judge.core.types import Problem, Record

RecordT = TypeVar("RecordT", bound=Problem)
"""The record of a line."""
_MOST_SHOWN = 60
"""Most characters of a refused value that a message shows."""
_TABLES = (".csv", ".tsv")
"""Suffixes of files that are tables of text."""


def read_records(path: Path, schema: type[RecordT], *, what: str) -> list[RecordT]:
    """Read and validate all records of a file.

    Args:
        path: JSON lines or one JSON list, gzipped or not; blank lines are skipped.
        schema: the record of a line.
        what: what the file is, for messages ("problem file").

    Raises:
        DataError: a record is invalid, an id comes twice, or there are no records.
    """
    records: list[RecordT] = []
    first_location: dict[object, str] = {}
    for location, values in read_values(path, what):
        try:
            record = schema.model_validate(values)
        except ValidationError as error:
            raise DataError(f"{location}: {explain_faults(error, schema)}") from None
        name = record.id
        # Two problems of one id would share verdicts and rows.
        if name in first_location:
            # The line alone, since both are in this file.
            before = first_location[name].removeprefix(f"{what} {path} ")
            raise DataError(
                f"{location}: id {name!r} was already used on {before}; give each record its own"
            )
        first_location[name] = location
        records.append(record)
    if not records:
        raise DataError(f"{what} {path} holds no record; write one JSON object a line")
    return records


def read_values(path: Path, what: str) -> Iterator[tuple[str, Any]]:
    """Yield (location for messages, value) for each item of a JSON list, or each line.

    The file may be gzipped.
    """
    lines = _lines(path, what)
    first = next(lines, None)
    if first is None:
        return
    numbered_lines = itertools.chain([first], lines)
    # A list may go over many lines, as tools write it for people.
    if first[1].lstrip().startswith("["):
        text = "".join(line for _, line in numbered_lines)
        items = _parse(text, f"{what} {path}")
        # It begins with a bracket.
        assert isinstance(items, list)
        for number, item in enumerate(items, 1):
            yield f"{what} {path} item {number}", item
        return
    for number, line in numbered_lines:
        location = f"{what} {path} line {number}"
        yield location, _parse(line, location)


def _parse(text: str, location: str) -> object:
    try:
        return parse_json(text)
    except ValueError as error:
        raise DataError(f"{location} is not JSON ({error}); fix or remove that line") from None


def explain_faults(error: ValidationError, schema: type[Record]) -> str:
    """Return one line that names each fault of a record once, and its fix."""
    sentences: list[str] = []
    known: list[str] = []
    for fault in own_faults(error.errors()):
        location = fault["loc"]
        key = ".".join(map(str, location))
        if fault["type"] == "extra_forbidden":
            allowed = list(_find_schema(schema, location[:-1]).model_fields)
            hint = suggest(str(location[-1]), allowed)
            if hint:
                sentences.append(f"unknown key {key}; {hint}")
            else:
                sentences.append(f"unknown key {key}")
                known = allowed
        elif fault["type"] == "missing":
            sentences.append(f"key {key} is missing")
        else:
            value = _shorten(repr(fault["input"]))
            sentences.append(f"{key or 'line'} = {value}: {explain_fault(fault)}")
    if known:
        # Once, at the end: each unknown key would repeat the same list.
        sentences.append(f"known keys: {', '.join(sorted(known))}")
    return "; ".join(sentences)


def _shorten(text: str) -> str:
    if len(text) <= _MOST_SHOWN:
        return text
    return text[: _MOST_SHOWN - 3] + "..."


def _find_schema(schema: type[BaseModel], location: Location) -> type[BaseModel]:
    """Return the record at a location inside another, such as ("tests", 0)."""
    for part in location:
        field = schema.model_fields.get(str(part))
        if field is not None:
            schema = next(nested_models(field.annotation), schema)
    return schema


def _lines(path: Path, what: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of the lines that are not blank."""
    if path.exists():
        refuse_table(path, what, "JSON lines, one object each")
    try:
        with _open_text(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except FileNotFoundError:
        raise DataError(f"{what} {path} does not exist; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{what} {path} is a folder; name a file") from None
    # A gzip file that was cut off is an EOFError.
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(
            f"{what} {path} cannot be read as UTF-8 JSON lines ({type(error).__name__})"
        ) from None


def _open_text(path: Path) -> IO[str]:
    # Editors of Windows begin a file with a byte order mark, which `utf-8-sig` skips.
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def refuse_table(path: Path, what: str, forms: str) -> None:
    """Raise DataError if a file is a CSV or TSV by its name.

    Args:
        path: the file.
        what: what errors call it.
        forms: what is read in its place.
    """
    if path.suffix in _TABLES:
        raise DataError(f"{what} {path}: tables of text are not read; write {forms}")


def nested_models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the record types inside a field's annotation.

    Those in unions, tuples and optionals are among them.
    """
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif not isinstance(annotation, type):
        for argument in get_args(annotation):
            yield from nested_models(argument)

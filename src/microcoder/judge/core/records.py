"""JSON-lines files of validated records, plain or gzipped: one reader, one kind of error message."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from microcoder.judge.core.errors import DataError, explain_fault, suggest
from microcoder.judge.core.files import new_file
from microcoder.judge.core.types import Record

RecordT = TypeVar("RecordT", bound=Record)


def read_records(path: Path, schema: type[RecordT], *, what: str, unique: str = "id") -> list[RecordT]:
    """Read every line of a file, or none.

    Args:
        path: JSON lines or one JSON list, gzipped or not; blank lines are skipped.
        schema: the record of a line.
        what: what the file is, for messages ("problem file").
        unique: the field that names a record; a second use of one value is an error.
    """
    records: list[RecordT] = []
    first_place: dict[object, str] = {}
    for where, values in read_values(path, what):
        try:
            record = schema.model_validate(values)
        except ValidationError as error:
            raise DataError(f"{where}: {explain_faults(error, schema)}") from None
        name = getattr(record, unique)
        if name in first_place:
            before = first_place[name].removeprefix(f"{what} {path} ")
            raise DataError(f"{where}: {unique} {name!r} was already used on {before}; give each record its own")
        first_place[name] = where
        records.append(record)
    if not records:
        raise DataError(f"{what} {path} holds no record; write one JSON object a line")
    return records


def read_values(path: Path, what: str) -> Iterator[tuple[str, Any]]:
    """Yield the items of a JSON list, or one value a line, each with its place; the file may be gzipped."""
    lines = _lines(path, what)
    first = next(lines, (0, ""))
    if first[1].lstrip().startswith("["):
        text = "".join(line for _, line in (first, *lines))
        yield from (
            (f"{what} {path} item {number}", item) for number, item in enumerate(_parse(text, f"{what} {path}"), 1)
        )
    elif first[0]:
        for number, line in itertools.chain([first], lines):
            where = f"{what} {path} line {number}"
            yield where, _parse(line, where)


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON ({error}); fix or remove that line") from None


def explain_faults(error: ValidationError, schema: type[Record]) -> str:
    """Return one line that names each fault of a record and its fix."""
    faults = []
    for fault in error.errors():
        key = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            known = sorted(_fields_at(schema, fault["loc"][:-1]))
            hint = suggest(str(fault["loc"][-1]), known) or f"known keys: {', '.join(known)}"
            faults.append(f"unknown key {key}; {hint}")
        elif fault["type"] == "missing":
            faults.append(f"key {key} is missing")
        else:
            given = repr(fault["input"])
            given = given if len(given) <= 60 else given[:57] + "..."
            faults.append(f"{key or 'line'} = {given}: {explain_fault(fault)}")
    return "; ".join(faults)


def _fields_at(schema: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """Return the keys that are known at a place inside a record, such as ("tests", 0)."""
    for part in place:
        field = schema.model_fields.get(str(part))
        inner = list(nested_models(field.annotation)) if field is not None else []
        schema = inner[0] if inner else schema
    return list(schema.model_fields)


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Write records as JSON lines by an atomic rename."""
    with new_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(record.model_dump_json(exclude_defaults=True) + "\n" for record in records)


def _lines(path: Path, what: str) -> Iterator[tuple[int, str]]:
    try:
        with (
            # Editors of Windows begin a file with a byte order mark.
            gzip.open(path, "rt", encoding="utf-8-sig") if path.suffix == ".gz" else path.open(encoding="utf-8-sig")
        ) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except FileNotFoundError:
        raise DataError(f"{what} {path} does not exist; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{what} {path} is a folder; name a file") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{what} {path} cannot be read as UTF-8 JSON lines ({type(error).__name__})") from None


def nested_models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the record types inside a field's annotation: unions, tuples and optionals are looked into."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif not isinstance(annotation, type):
        for argument in get_args(annotation):
            yield from nested_models(argument)

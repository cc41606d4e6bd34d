"""JSON-lines files of validated records, plain or gzipped: one reader, one kind of error message."""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.errors import DataError, explain_fault, own_faults, suggest
from microcoder.judge.core.types import Problem, Record

RecordT = TypeVar("RecordT", bound=Problem)


def read_records(path: Path, schema: type[RecordT], *, what: str) -> list[RecordT]:
    """Read and validate all records of a file; DataError if one is invalid, if an id comes twice, or if there are none.

    Args:
        path: JSON lines or one JSON list, gzipped or not; blank lines are skipped.
        schema: the record of a line.
        what: what the file is, for messages ("problem file").
    """
    records: list[RecordT] = []
    first_place: dict[object, str] = {}
    for where, values in read_values(path, what):
        try:
            record = schema.model_validate(values)
        except ValidationError as error:
            raise DataError(f"{where}: {explain_faults(error, schema)}") from None
        name = record.id
        if name in first_place:
            before = first_place[name].removeprefix(f"{what} {path} ")
            raise DataError(
                f"{where}: id {name!r} was already used on {before}; give each record its own"
            )
        first_place[name] = where
        records.append(record)
    if not records:
        raise DataError(f"{what} {path} holds no record; write one JSON object a line")
    return records


def read_values(path: Path, what: str) -> Iterator[tuple[str, Any]]:
    """Yield (location for messages, value) for each item of a JSON list, or each line; the file may be gzipped."""
    lines = _lines(path, what)
    first = next(lines, (0, ""))
    if first[1].lstrip().startswith("["):
        text = "".join(line for _, line in (first, *lines))
        yield from (
            (f"{what} {path} item {number}", item)
            for number, item in enumerate(_parse(text, f"{what} {path}"), 1)
        )
    elif first[0]:
        for number, line in itertools.chain([first], lines):
            where = f"{what} {path} line {number}"
            yield where, _parse(line, where)


def _parse(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise DataError(f"{where} is not JSON ({error}); fix or remove that line") from None


def explain_faults(error: ValidationError, schema: type[Record]) -> str:
    """Return one line that names each fault of a record once, and its fix."""
    lines: list[str] = []
    known: list[str] = []
    for fault in own_faults(error.errors()):
        key, given = ".".join(map(str, fault["loc"])), repr(fault["input"])
        if fault["type"] == "extra_forbidden":
            allowed = list(_at(schema, fault["loc"][:-1]).model_fields)
            hint = suggest(str(fault["loc"][-1]), allowed)
            lines.append(f"unknown key {key}" + (f"; {hint}" if hint else ""))
            known = known if hint else allowed
        elif fault["type"] == "missing":
            lines.append(f"key {key} is missing")
        else:
            given = given if len(given) <= 60 else given[:57] + "..."
            lines.append(f"{key or 'line'} = {given}: {explain_fault(fault)}")
    return "; ".join(lines + ([f"known keys: {', '.join(sorted(known))}"] if known else []))


def _at(schema: type[BaseModel], place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the record at a location inside another, such as ("tests", 0)."""
    for part in place:
        field = schema.model_fields.get(str(part))
        schema = next(nested_models(field.annotation), schema) if field is not None else schema
    return schema


def _lines(path: Path, what: str) -> Iterator[tuple[int, str]]:
    if path.exists():
        refuse_table(path, what, "JSON lines, one object each")
    try:
        with (
            # Editors of Windows begin a file with a byte order mark.
            gzip.open(path, "rt", encoding="utf-8-sig")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig")
        ) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except FileNotFoundError:
        raise DataError(f"{what} {path} does not exist; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{what} {path} is a folder; name a file") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(
            f"{what} {path} cannot be read as UTF-8 JSON lines ({type(error).__name__})"
        ) from None


def refuse_table(path: Path, what: str, forms: str) -> None:
    """Raise DataError if a file, which errors call `what`, is a CSV or TSV by its name; `forms` says what is read."""
    if path.suffix in (".csv", ".tsv"):
        raise DataError(f"{what} {path}: tables of text are not read; write {forms}")


def nested_models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the record types inside a field's annotation, also those in unions, tuples and optionals."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif not isinstance(annotation, type):
        for argument in get_args(annotation):
            yield from nested_models(argument)

"""Rows of a file of any form: JSON lines, JSON, Parquet, CSV and TSV."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from microcoder.data.rowfiles import read_file
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.records import read_values

Row = Mapping[str, Any]
"""A row's fields by their names."""

LONGEST_CELL = 1 << 27
"""Most bytes of a cell of a CSV file: the csv module's own limit is 128 KiB."""


def read_rows_of_any(path: Path) -> list[Row]:
    """Return the rows of a file: JSON lines, a JSON list or object, Parquet, CSV or TSV.

    Raises:
        DataError: it is missing, empty or cannot be read.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist; check the path")
    try:
        rows = _read_any(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}); write it in UTF-8") from None
    if not rows:
        raise DataError(f"{path} is empty; it needs a row a problem or an answer")
    return rows


def _read_any(path: Path) -> list[Row]:
    if path.suffix in (".csv", ".tsv"):
        return list(_read_table(path))
    if path.suffix == ".parquet":
        return [row.values for row in read_file(path, "file")]
    if path.suffix == ".json":
        return _read_document(path)
    rows: list[Row] = []
    for where, value in read_values(path, "file"):
        rows += _read_object(value, where)
    return rows


def _read_document(path: Path) -> list[Row]:
    """Return the rows of one JSON value, written on any number of lines; else of JSON lines."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        document = [value for _, value in read_values(path, "file")]
    values = document if isinstance(document, list) else [document]
    rows: list[Row] = []
    for number, value in enumerate(values, 1):
        rows += _read_object(value, f"{path} item {number}")
    return rows


def _read_object(value: object, where: str) -> list[Row]:
    if not isinstance(value, Mapping):
        raise DataError(f"{where} is {type(value).__name__}, not an object of fields")
    return _unfold(value)


def _unfold(value: Row) -> list[Row]:
    """Return the rows of an object that is a table: a name -> its row, or one list of rows."""
    inner = list(value.values())
    lists = [item for item in inner if is_table(item)]
    if len(inner) == 1 and lists:
        return list(lists[0])
    if len(inner) > 1 and all(isinstance(item, Mapping) for item in inner):
        keys = {frozenset(item) for item in inner}
        if len(keys) == 1 and len(next(iter(keys))) > 1:
            return [{"id": name, **item} for name, item in value.items()]
    return [value]


def is_table(value: object) -> bool:
    """Whether a value is a list of objects."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(item, Mapping) for item in value)


def _read_table(path: Path) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_CELL)
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with path.open(newline="", encoding="utf-8-sig") as file:
        for row in csv.DictReader(file, delimiter=delimiter):
            yield {str(name): read_cell(cell) for name, cell in row.items()}


def read_cell(cell: object) -> object:
    """Return a cell of text; a list or an object that is written in it is read."""
    if not isinstance(cell, str) or cell[:1] not in ("[", "{"):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        pass
    try:
        # As pandas writes them.
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return cell

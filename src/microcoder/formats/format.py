"""What a format is: its name, what it takes, how a row of it is read, and which fields tell it (names alone)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from microcoder.faults import explain_fault
from microcoder.formats.candidates import Candidate
from microcoder.formats.row import Malformed, Row

PAIRS = '{"inputs": [...], "outputs": [...]}, with "fn_name" where a function is called'
LISTED = 'a list of {"input": ..., "output": ...}'
ASSERTIONS = "Python assertions that call the answer's function"


@dataclass(frozen=True, slots=True)
class Folders:
    """Where each row is a folder."""

    markers: tuple[str, ...]
    """A folder that holds one of these files is a row."""
    takes: tuple[str, ...] = ("*",)
    """Patterns of the files that are read, relative to that folder."""


@dataclass(frozen=True, slots=True)
class Format:
    """One public format."""

    name: str
    about: str
    """Where it is published."""
    read: Callable[[Row], Candidate]
    licence: str = ""
    """Where its rows name none of their own."""
    folders: Folders | None = None
    """None if rows are lines of JSON, items of a JSON list, or rows of parquet."""
    is_benchmark: bool = False
    """To decontaminate by; never to train on."""
    tests_in: str = ""
    """The field or fields that tests are in, as a message names them."""
    shape: str = PAIRS
    """What is expected there, in a few words."""
    marks: tuple[tuple[str, ...], ...] = ()
    """Sets of fields that tell a row of it from others, `a.b` for a field inside an object; empty if none do."""

    def read_row(
        self, values: Mapping[str, Any], place: str, *, source: str = "", is_judged: bool = False
    ) -> Candidate:
        """Return the candidate of a raw row; nothing of it is executed.

        Args:
            values: the row's fields; for a folder, `name` and `files`, contents by path.
            place: file and place in it, the same in every run.
            source: names the data set in ids where one format is read from several places.
            is_judged: read to judge answers by, not for a corpus (see `Row.is_judged`).

        Raises:
            Malformed: why it is none.
        """
        name = f"{source or self.name}/{place}"
        row = Row(values, id=name, dataset=self.name, place=place, licence=self.licence, is_judged=is_judged)
        try:
            candidate = self.read(row)
        except ValidationError as error:
            fault = error.errors()[0]
            reason = "bad_unicode" if fault["type"] == "string_unicode" else "wrong_value"
            where = ".".join(str(part) for part in fault["loc"])
            raise Malformed(reason, explain_fault(fault, where)) from None
        except Malformed as error:
            if error.candidate is not None:
                _check_text(error.candidate)
            raise
        except RecursionError:
            raise Malformed("too_deep", "nested too deeply") from None
        _check_text(candidate)
        return candidate


def _check_text(candidate: Candidate) -> None:
    """Refuse half surrogates, which JSON can name and no file can hold."""
    try:
        candidate.model_dump_json(exclude={"tests"})
        for test in candidate.tests:
            for text in (test.input, test.output):
                # Of large tests no copy is made where none is needed.
                if not text.isascii():
                    text.encode("utf-8")
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise Malformed("bad_unicode", str(error)) from None


def recognise(values: Mapping[str, Any], formats: Iterable[Format]) -> Format | None:
    """Return the format that most of a row's fields speak for; None if none is known by them.

    Fields beyond those that mark a format change nothing, nor does their order. Of two formats that as many fields
    speak for, the earlier one is taken.
    """
    found, most = None, 0
    for format in formats:
        matched = max((len(mark) for mark in format.marks if all(has_field(values, name) for name in mark)), default=0)
        if matched > most:
            found, most = format, matched
    return found


def has_field(values: Mapping[str, Any], path: str) -> bool:
    """Whether a field is there and not null; `a.b` also where `a` is an object written as text."""
    name, _, rest = path.partition(".")
    value = values.get(name)
    if value is None or not rest:
        return value is not None
    if isinstance(value, str):
        # Not decoded: it may hold all tests, and is read once it is known what it is.
        return f'"{rest}"' in value or f"'{rest}'" in value or f'\\"{rest}\\"' in value
    return isinstance(value, Mapping) and has_field(value, rest)

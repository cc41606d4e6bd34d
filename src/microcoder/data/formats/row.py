"""Reads the fields of one row of untrusted data.

A field that is missing or of another type is an error, `Malformed`, and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

from microcoder.data.formats.candidates import Candidate, DecodedTests, Lineage, Note
from microcoder.data.formats.packed import decode_packed
from microcoder.data.formats.values import is_number, read_literal, shorten
from microcoder.judge.core.digits import spell_int
from microcoder.judge.core.types import TestCase

_MAX_NAME = 1e30
"""Real numbers from this on are not read as names or ids (see `Row.name`)."""
_MAX_NUMBER = 1e15
"""Numbers from this on are taken for mistakes (see `Row.number`)."""
_LONGEST_NUMBER = 200
"""Most digits of an integer that is a name."""
_PART_OF_DATE = re.compile(r"\d{4}(?:-\d+)?")
"""A date of which only the year, or year and month, is known."""

REASONS: Mapping[str, str] = {
    "unreadable_file": "the file ends early, is damaged or misnamed",
    "not_utf8": "bytes that are no UTF-8",
    "not_json": "a line or item that is not JSON",
    "not_an_object": "JSON, but no object",
    "missing_field": "a field that every row of the format has",
    "wrong_type": "a field of another type than the format's",
    "wrong_value": "a value that no candidate can have",
    "bad_encoding": "a text that should hold JSON, base64 or YAML, and does not",
    "bad_unicode": "half of a surrogate pair",
    "too_deep": "nested too deeply",
    "bad_tests": "tests in none of the format's encodings, or that contradict themselves",
    "bad_checker": "a checker that cannot be one",
    "tests_not_convertible": "no test is a literal call, or can run as published",
    "no_statement": "nothing is asked",
    "other_task": "no programming task",
    "reader_fault": "a reader of your own failed on it, or returned no candidate",
    "adapter_fault": "the adapter failed on it: a bug, please report it",
}
"""Every reason for which the collect stage rejects a row."""


class Malformed(ValueError):
    """A row cannot become a candidate."""

    def __init__(
        self,
        reason: str,
        detail: str = "",
        candidate: Candidate | None = None,
    ) -> None:
        super().__init__(reason, detail, candidate)
        self.reason = reason
        """A key of `REASONS`."""
        self.detail = shorten(detail, 300)
        self.candidate = candidate
        """The candidate without tests, if only these could not be read."""

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one row, and where it comes from.

    Methods raise `Malformed` if a required field is missing or a type is wrong. `a.b` names a field
    inside an object.
    """

    values: Mapping[str, Any]
    id: str
    dataset: str
    place: str = ""
    licence: str = ""
    is_judged: bool = False
    """Whether the row is read to judge answers, not for a corpus.

    It then needs no statement, but no test may be left out.
    """
    _objects: dict[str, Mapping[str, Any]] = field(
        default_factory=dict,
        init=False,
        repr=False,
        compare=False,
    )
    """Cache of fields that `mapping` decoded."""

    def over(self, values: Mapping[str, Any]) -> Row:
        """Return this row with other values."""
        return replace(self, values=values)

    def get(self, name: str) -> Any:
        """Return a field; None if it is missing or null."""
        outer, _, inner = name.rpartition(".")
        values = self.mapping(outer) if outer else self.values
        return values.get(inner)

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self.get(name) is not None

    def text(self, *names: str) -> str:
        """Return the first of these fields that is present, a text; Malformed if none is."""
        for name in names:
            value = self.get(name)
            if value is not None:
                return _typed(value, str, name, "text")
        raise Malformed("missing_field", " or ".join(names))

    def optional(self, *names: str) -> str:
        """Return the first of these fields that is a text and not empty; an empty text if none."""
        for name in names:
            if self.has(name):
                text = self.text(name)
                if text:
                    return text
        return ""

    def statement(self, *names: str) -> str:
        """Return the first of these fields; Malformed if blank or missing.

        If `is_judged`, as `optional`.
        """
        if self.is_judged:
            return self.optional(*names)
        statement = self.text(*names)
        if not statement.strip():
            raise Malformed("no_statement", f"{next(filter(self.has, names))} is blank")
        return statement

    def asked(self, *names: str) -> tuple[str, tuple[Note, ...]]:
        """Return a statement and notes on it, from the first of these fields.

        The field is a text, or a chat, of which the user's last message is taken.
        """
        name = next(filter(self.has, names), names[0])
        if not isinstance(self.get(name), list):
            return self.statement(*names), ()
        messages = self.rows(name)
        asked = [message._content() for message in messages if message.optional("role") == "user"]
        if not asked or not asked[-1].strip():
            if self.is_judged:
                return "", ()
            raise Malformed("no_statement", f"{name} holds no message of a user")
        if len(messages) == 1:
            return asked[-1], ()
        detail = f"the user's last of {len(messages)} messages; the others left out"
        return asked[-1], (("statement_found", detail),)

    def _content(self) -> str:
        """Return the text of a chat message, whose `content` is a text, or parts to be joined."""
        if isinstance(self.get("content"), str):
            return self.text("content")
        return "".join(part.optional("text") for part in self.rows("content"))

    def name(self, *names: str) -> str:
        """Return the first of these fields that is a number or a text, as text; empty without one.

        Empty texts are passed over.
        """
        for name in names:
            value = self.get(name)
            if is_number(value):
                # The infinities, and what is no number, fail this as well.
                if -_MAX_NAME < value < _MAX_NAME:
                    return repr(value)
                if isinstance(value, int):
                    return shorten(spell_int(value), _LONGEST_NUMBER)
            elif value is not None and value != "":
                return _typed(value, str, name, "text or a number")
        return ""

    def number(self, name: str) -> float | None:
        """Return a positive number, also one written as text.

        None if it is missing, zero or less, or 1e15 or more.
        """
        value = self.get(name)
        if isinstance(value, str):
            try:
                value = float(value) if value.strip() else None
            except ValueError:
                raise Malformed(
                    "wrong_type", f"{name} is {shorten(value, 40)!r}, not a number"
                ) from None
        # A blank text is as good as a missing field.
        if value is None:
            return None
        if isinstance(value, bool):
            raise Malformed("wrong_type", f"{name} is bool, not a number")
        number = _typed(value, int | float, name, "a number")
        return float(number) if 0 < number < _MAX_NUMBER else None

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return an object, also one written as JSON or a Python literal; empty if missing."""
        # Decoded once, since several fields may be inside one long text.
        if name not in self._objects:
            value = self.decoded(name)
            if value is None:
                value = {}
            value = _typed(value, Mapping, name, "an object")
            # A Python literal can have other keys, which no field of ours has.
            if not all(isinstance(key, str) for key in value):
                raise Malformed("wrong_type", f"{name} has keys that are not text")
            self._objects[name] = value
        return self._objects[name]

    def inner(self, name: str) -> Row:
        """Return an object field as a row of its own."""
        return self.over(self.mapping(name))

    def items(self, name: str) -> list[Any]:
        """Return a list, also one written as JSON or a Python literal; empty if it is missing."""
        value = self.decoded(name)
        if value is None:
            return []
        return _typed(value, list, name, "a list")

    def rows(self, name: str) -> list[Row]:
        """Return a list of objects as rows; empty if it is missing."""
        what = f"an item of {name}"
        return [self.over(_typed(item, Mapping, what, "an object")) for item in self.items(name)]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty if it is missing."""
        what = f"an item of {name}"
        return tuple(_typed(item, str, what, "text") for item in self.items(name))

    def listed(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; a text that does not look like a list counts as a list of one."""
        value = self.get(name)
        if isinstance(value, str) and not value.lstrip().startswith(("[", "{")):
            return (value,)
        return self.texts(name)

    def decoded(self, *names: str) -> Any:
        """Return the first field present, text parsed as JSON or a Python literal.

        None if all are missing, or if the first is blank.
        """
        name = next(filter(self.has, names), "")
        value = self.get(name)
        if not isinstance(value, str):
            return value
        if not value.strip():
            return None
        try:
            return read_literal(value)
        except ValueError as error:
            raise Malformed("bad_encoding", f"{name}: {error}") from None

    def unpacked(self, name: str) -> Any:
        """Return a field; if it is text, the JSON in it, also if packed (see `decode_packed`)."""
        value = self.get(name)
        if not isinstance(value, str) or not value.strip():
            return value
        try:
            return decode_packed(value)
        except ValueError as error:
            raise Malformed("bad_encoding", f"{name}: {error}") from None

    def files(self, *, texts: str = ".*") -> dict[str, str]:
        """Return the files of a folder, by their path in it.

        Args:
            texts: a pattern of paths that must be UTF-8 text, else Malformed; other files that are
                not are left out.
        """
        contents = self.values.get("files")
        if not isinstance(contents, Mapping):
            raise Malformed("wrong_type", "no folder")
        files = {}
        for path, content in contents.items():
            if isinstance(content, str):
                files[path] = content
                continue
            encoded = _typed(content, bytes, shorten(path, 80), "a file")
            try:
                # Editors may write a byte-order mark, which is no part of the text.
                files[path] = encoded.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                if re.fullmatch(texts, path):
                    raise Malformed("not_utf8", f"{path}: {error}") from None
        return files

    def tags(self, *names: str) -> tuple[str, ...]:
        """Return tags: a list, a list written as text, or words between commas; each once."""
        tags: dict[str, None] = {}
        for name in names:
            texts = self.listed(name)
            # A plain text is no list: its words stand between commas.
            if texts == (self.get(name),):
                texts = tuple(texts[0].split(","))
            for text in texts:
                tags[text.strip()] = None
        return tuple(tag for tag in tags if tag)

    def date(self, name: str) -> str:
        """Return a date as ISO: from ISO text, a date, or seconds since 1970.

        Empty if it is missing or not a date.
        """
        value = self.get(name)
        # Of a time as of a date, the first ten letters are the day.
        if isinstance(value, datetime | date):
            return value.isoformat()[:10]
        if is_number(value):
            try:
                if not value > 0:
                    return ""
                return datetime.fromtimestamp(value, tz=UTC).date().isoformat()
            except (ValueError, OverflowError, OSError):
                return ""
        text = self.optional(name).strip()
        try:
            return datetime.fromisoformat(text).date().isoformat()
        except ValueError:
            return text if _PART_OF_DATE.fullmatch(text) else ""

    def candidate(
        self,
        statement: str,
        tests: DecodedTests | Iterable[TestCase] = (),
        *,
        notes: Iterable[Note] = (),
        **fields: Any,
    ) -> Candidate:
        """Return the candidate of this row.

        Args:
            tests: the problem's tests. `DecodedTests` also set function, call, checker and
                assertions, and add notes.
            notes: field and text on what was changed or left out in it; each becomes an entry of
                the lineage.
            fields: further fields of the candidate.
        """
        values: dict[str, Any] = {"licence": self.licence, "tests": tests}
        all_notes = [*notes]
        if isinstance(tests, DecodedTests):
            values |= tests.fields
            all_notes += tests.notes
        # Last: a reader's own fields count more than those that tests imply.
        values |= fields
        step = f"{self.dataset}/1"
        lineage = tuple(
            Lineage(stage="collect", step=step, field=name, detail=detail)
            for name, detail in all_notes
        )
        return Candidate(
            id=self.id,
            dataset=self.dataset,
            source_row=self.place,
            statement_found=statement,
            statement=statement,
            lineage=lineage,
            **values,
        )


def _typed(value: object, kind: Any, name: str, what: str) -> Any:
    """Return a value; Malformed, which calls the wanted type `what`, if it is of another."""
    if isinstance(value, kind):
        return value
    raise Malformed("wrong_type", f"{name} is {type(value).__name__}, not {what}")

"""Reads untrusted values, never executed: texts (JSON, Python literals, YAML, limits), and rows, field by field.

In a `Row`, a field that is missing or of another type is an error, never guessed.

`decode_packed` unpacks tests: JSON text, plain or in base64 and zlib, with or without a pickle around it.

LiveCodeBench pickles one JSON text, Dolci the list of tests itself, NeMo-Gym leaves the pickle out. A pickle is a
program, so its instructions are listed before it is read: all must be those of plain data (texts, numbers, lists,
dicts), and none may name a place that makes it fill memory. No more than `MAX_BYTES` are ever unpacked, and nothing but
a text or a number is taken from the pickle's memory twice.
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import pickle
import pickletools
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, TypeGuard

from microcoder.data.formats.candidates import Candidate, DecodedTests, Lineage, Note
from microcoder.judge.core.digits import dump_json, parse_json, spell_int
from microcoder.judge.core.syntax import evaluate_literal, parse_source
from microcoder.judge.core.types import TestCase

MAX_LITERAL, MAX_YAML = 50_000_000, 100_000
_SECONDS = re.compile(r"(\d*\.?\d+)\s*(m?s|seconds?)?", re.I)
_MEBIBYTES = re.compile(
    r"(\d*\.?\d+)\s*(bytes|b|kib|kb|kilobytes|mib|mb|megabytes|gib|gb|gigabytes)?", re.I
)
_MOST_SECONDS = 1e6
"""A larger time limit is taken for a mistake and ignored."""
_NOTHING_SAID = r"|unknown|none|null|n/?a|-|not (?:stated|specified|known|available)|unspecified"
_MIB_OF = {"b": 1 / (1 << 20), "k": 1 / 1024, "m": 1.0, "g": 1024.0}
_PYTHON2_GRAMMAR = re.compile(
    r"^[^#\n]*\b(print\s+[^\s(=]|print\s*$|print\s*>>|exec\s+['\"]|raise\s+\w+\s*,|except\s+[\w.]+\s*,|0[0-7]+\b|\d+L\b)"
    r"|<>|`|\bprint\b.*%",
    re.MULTILINE,
)
"""Signs of Python 2 that Python 3 does not parse."""
_PYTHON2_NAME = re.compile(r"\b(raw_input|xrange)[ \t]*\(")
_PYTHON2_DEFINED = re.compile(
    r"\b(raw_input|xrange)[ \t]*=|def[ \t]+(raw_input|xrange)\b|^[ \t]*(try:[ \t]*)?(from|import)\b.*\bxrange\b",
    re.M,
)


def text_of(completion: str | Sequence[Mapping[str, Any]] | None) -> str:
    """Return a completion's text: itself, or the content of the last message of a chat."""
    content: Any = (
        completion
        if isinstance(completion, str) or not completion
        else completion[-1].get("content")
    )
    if isinstance(content, list | tuple):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


def read_json(text: str) -> Any:
    """Return the value of a JSON text (NaN and Infinity allowed); ValueError if it is invalid."""
    return parse_json(text)


def write_json(value: object) -> str:
    """Return a value as JSON on one line, all ASCII; ValueError if JSON has no form for it."""
    try:
        return dump_json(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except TypeError as error:
        raise ValueError(f"JSON has no form for it ({error})") from None


def read_literal(text: str) -> Any:
    """Return the value of a JSON text, or else of a Python literal; ValueError if it is neither."""
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        not_json = error
    if len(text) > MAX_LITERAL:
        raise ValueError(f"not JSON ({not_json}), and too long to be read as a Python literal")
    try:
        return evaluate_literal(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"neither JSON ({not_json}) nor a Python literal") from None


def read_yaml(text: str) -> Any:
    """Return the value of a small YAML document; ValueError if it is invalid, too long, or has aliases."""
    # PyYAML comes with the data extra; rows that are no folders do without.
    import yaml

    if len(text) > MAX_YAML:
        raise ValueError(f"{len(text):,} characters of YAML; at most {MAX_YAML:,} are read")
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise ValueError("an alias")
        return yaml.safe_load(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    # PyYAML does not check what stands after a tag such as !!int, so its own errors are of every kind.
    except (
        yaml.YAMLError,
        ValueError,
        IndexError,
        KeyError,
        AttributeError,
        TypeError,
        OverflowError,
    ) as error:
        raise ValueError(f"no YAML ({shorten(' '.join(str(error).split()))})") from None


def parse_python(source: str) -> ast.Module | None:
    """Return a program's syntax tree; None if it is not valid Python 3."""
    try:
        return parse_source(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def is_python2(source: str) -> bool:
    """Whether a program is written in Python 2: syntax that Python 3 refuses, or functions that it lacks."""
    if _PYTHON2_GRAMMAR.search(source) and parse_python(source) is None:
        return True
    return bool(_PYTHON2_NAME.search(source)) and not _PYTHON2_DEFINED.search(source)


def is_json_value(value: object, *, is_expected: bool = False) -> bool:
    """Whether a value survives JSON unchanged; `is_expected` also allows tuples (as equal lists) and integer keys."""
    if isinstance(value, (list, tuple) if is_expected else list):
        return all(is_json_value(item, is_expected=is_expected) for item in value)
    if isinstance(value, dict):
        keys = (str, int) if is_expected else (str,)
        return all(
            type(key) in keys and is_json_value(one, is_expected=is_expected)
            for key, one in value.items()
        )
    return value is None or isinstance(value, bool | int | float | str)


def read_seconds(text: str) -> float | None:
    """Return the seconds in `2.0 seconds`, `500 ms`, `[1, 2]`, ...; None without a positive number."""
    found = None if text.lstrip().startswith("-") else _SECONDS.search(text)
    seconds = float(found[1]) if found else 0.0
    if found and (found[2] or "").lower() == "ms":
        seconds /= 1000
    return seconds if 0 < seconds < _MOST_SECONDS else None


def read_mebibytes(text: str) -> int | None:
    """Return the MiB in `256.0 megabytes`, `268435456 bytes`, ...; None without a number from 1 MiB to 1 TiB."""
    found = _MEBIBYTES.search(text)
    if not found or text.lstrip().startswith("-"):
        return None
    unit = (found[2] or "").lower()[:1]
    number = float(found[1])
    mebibytes = number * (_MIB_OF[unit] if unit else 1.0 if number < 1 << 16 else _MIB_OF["b"])
    return round(mebibytes) if 1 <= mebibytes <= 1 << 20 else None


def read_licence(value: object) -> str:
    """Return a licence field as one text: a text, a list of texts joined, or another value shown; empty if not set."""
    listed = (
        value
        if isinstance(value, list)
        else [value if isinstance(value, str) else shorten(value or "", 1000)]
    )
    text = " AND ".join(f"({one})" if len(listed) > 1 else str(one) for one in listed)
    return "" if re.fullmatch(_NOTHING_SAID, text.strip(), re.I) else text


def shorten(value: object, length: int = 80) -> str:
    """Return any value as text of at most `length` characters, for a message."""
    try:
        text = value if isinstance(value, str) else _spell(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to print"
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= length else text[: length - 3] + "..."


def _spell(value: object) -> str:
    """Return the `repr` of a value, with sets sorted, so that it is the same in every process."""
    match value:
        case list():
            return f"[{', '.join(map(_spell, value))}]"
        case tuple() if len(value) > 1:
            return f"({', '.join(map(_spell, value))})"
        case dict():
            return (
                f"{{{', '.join(f'{_spell(key)}: {_spell(held)}' for key, held in value.items())}}}"
            )
        case set() if value:
            return f"{{{', '.join(sorted(map(_spell, value)))}}}"
    return repr(value)


_MAX_NAME = 1e30
"""Real numbers from this on are not read as names or ids (see `Row.name`)."""
_LONGEST_NUMBER = 200
"""Most digits of an integer that is a name."""
_PART_OF_DATE = re.compile(r"\d{4}(?:-\d+)?")

REASONS: Mapping[str, str] = {
    "unreadable_file": "the file ends early, is damaged, or is not what its name says",
    "not_utf8": "bytes that are no UTF-8",
    "not_json": "a line or item that is not JSON, or is nested too deeply",
    "not_an_object": "JSON, but no object",
    "missing_field": "a field that every row of the format has",
    "wrong_type": "a field of another type than the format's",
    "wrong_value": "a value that no candidate can have",
    "bad_encoding": "a text that should hold JSON, base64, a pickle or YAML, and does not",
    "bad_unicode": "half of a surrogate pair",
    "too_deep": "nested too deeply",
    "bad_tests": "tests in none of the format's encodings, or that contradict themselves",
    "bad_checker": "a checker that cannot be one",
    "tests_not_convertible": "tests, but none that is a call with literal arguments and a literal value",
    "no_statement": "nothing is asked",
    "other_task": "no programming task",
    "reader_fault": "a reader of your own failed on it, or returned no candidate",
    "adapter_fault": "the adapter failed on it: a bug, please report it",
}
"""Every reason for which the collect stage rejects a row."""


class Malformed(ValueError):
    """A row cannot become a candidate: `reason`, a key of `REASONS`, and detail; `candidate` if only its tests fail."""

    def __init__(self, reason: str, detail: str = "", candidate: Candidate | None = None) -> None:
        super().__init__(reason, detail, candidate)
        self.reason = reason
        """A key of `REASONS`."""
        self.detail = shorten(detail, 300)
        self.candidate = candidate
        """The candidate without tests, if only these could not be read."""

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is an int or a float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one row, and where it comes from.

    Methods raise `Malformed` if a required field is missing or a type is wrong. `a.b` names a field inside an object.
    """

    values: Mapping[str, Any]
    id: str
    dataset: str
    place: str = ""
    licence: str = ""
    is_judged: bool = False
    """Whether the row is read to judge answers, not for a corpus: needs no statement, but no test may be left out."""
    _objects: dict[str, Mapping[str, Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache of fields that `mapping` decoded."""

    def over(self, values: Mapping[str, Any]) -> Row:
        """Return this row with other values."""
        return replace(self, values=values)

    def get(self, name: str) -> Any:
        """Return a field; None if it is missing or null."""
        outer, _, inner = name.rpartition(".")
        return (self.mapping(outer) if outer else self.values).get(inner)

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self.get(name) is not None

    def text(self, *names: str) -> str:
        """Return the first of these fields that is present, a text; Malformed if none is."""
        for name in names:
            if (value := self.get(name)) is not None:
                return _typed(value, str, name, "text")
        raise Malformed("missing_field", " or ".join(names))

    def optional(self, *names: str) -> str:
        """Return the first of these fields that is a text and not empty; an empty text if none is."""
        return next((found for name in names if self.has(name) and (found := self.text(name))), "")

    def statement(self, *names: str) -> str:
        """Return the first of these fields; Malformed if blank or missing. If `is_judged`: as `optional`."""
        if self.is_judged:
            return self.optional(*names)
        found = self.text(*names)
        if not found.strip():
            raise Malformed("no_statement", f"{next(filter(self.has, names))} is blank")
        return found

    def asked(self, *names: str) -> tuple[str, tuple[Note, ...]]:
        """Return a statement and notes from the first of these fields: a text, or the user's last message of a chat."""
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
        return asked[-1], (
            (
                "statement_found",
                f"the user's last of {len(messages)} messages; the others left out",
            ),
        )

    def _content(self) -> str:
        """Return the text of a chat message whose `content` is a text, or a list of parts, which are joined."""
        is_text = isinstance(self.get("content"), str)
        return (
            self.text("content")
            if is_text
            else "".join(part.optional("text") for part in self.rows("content"))
        )

    def name(self, *names: str) -> str:
        """Return the first of these fields that is a number or a text that is not empty, as text; empty without one."""
        for name in names:
            value = self.get(name)
            if is_number(value):
                if -_MAX_NAME < value < _MAX_NAME:
                    return repr(value)
                if isinstance(value, int):
                    return shorten(spell_int(value), _LONGEST_NUMBER)
            elif value is not None and value != "":
                return _typed(value, str, name, "text or a number")
        return ""

    def number(self, name: str) -> float | None:
        """Return a positive number, also one written as text; None if it is missing, zero or less, or 1e15 or more."""
        value = self.get(name)
        if isinstance(value, str):
            try:
                value = float(value) if value.strip() else None
            except ValueError:
                raise Malformed(
                    "wrong_type", f"{name} is {shorten(value, 40)!r}, not a number"
                ) from None
        if value is None:
            return None
        if isinstance(value, bool):
            raise Malformed("wrong_type", f"{name} is bool, not a number")
        number = _typed(value, int | float, name, "a number")
        return float(number) if 0 < number < 1e15 else None

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return an object, also one written as JSON or as a Python literal; empty if it is missing."""
        if name not in self._objects:
            found = self.decoded(name)
            value = _typed({} if found is None else found, Mapping, name, "an object")
            if not all(isinstance(key, str) for key in value):
                raise Malformed("wrong_type", f"{name} has keys that are not text")
            self._objects[name] = value
        return self._objects[name]

    def inner(self, name: str) -> Row:
        """Return an object field as a row of its own."""
        return self.over(self.mapping(name))

    def items(self, name: str) -> list[Any]:
        """Return a list, also one written as JSON or as a Python literal; empty if it is missing."""
        value = self.decoded(name)
        return _typed([] if value is None else value, list, name, "a list")

    def rows(self, name: str) -> list[Row]:
        """Return a list of objects as rows; empty if it is missing."""
        return [
            self.over(_typed(item, Mapping, f"an item of {name}", "an object"))
            for item in self.items(name)
        ]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty if it is missing."""
        return tuple(_typed(item, str, f"an item of {name}", "text") for item in self.items(name))

    def listed(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; a text that does not look like a list counts as a list of one."""
        value = self.get(name)
        return (
            (value,)
            if isinstance(value, str) and not value.lstrip().startswith(("[", "{"))
            else self.texts(name)
        )

    def decoded(self, *names: str) -> Any:
        """Return the first field present, text parsed as JSON or a Python literal; None if missing or blank."""
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
        """Return a field; if it is text, the JSON in it, also if that is packed (see `decode_packed`)."""
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
            texts: a pattern of paths that must be UTF-8 text, else Malformed; other files that are not are left out.
        """
        found = self.values.get("files")
        if not isinstance(found, Mapping):
            raise Malformed("wrong_type", "no folder")
        read = {}
        for path, content in found.items():
            if isinstance(content, str):
                read[path] = content
                continue
            try:
                read[path] = _typed(content, bytes, shorten(path, 80), "a file").decode("utf-8-sig")
            except UnicodeDecodeError as error:
                if re.fullmatch(texts, path):
                    raise Malformed("not_utf8", f"{path}: {error}") from None
        return read

    def tags(self, *names: str) -> tuple[str, ...]:
        """Return tags: a list, a list written as text, or words between commas; each once."""
        found: list[str] = []
        for name in names:
            texts = self.listed(name)
            found += texts[0].split(",") if texts[:1] == (self.get(name),) else texts
        return tuple(dict.fromkeys(tag.strip() for tag in found if tag.strip()))

    def date(self, name: str) -> str:
        """Return a date as ISO: from ISO text, a date, or seconds since 1970; empty if it is missing or not a date."""
        value = self.get(name)
        if isinstance(value, datetime | date):
            return value.isoformat()[:10]
        if is_number(value):
            try:
                return datetime.fromtimestamp(value, tz=UTC).date().isoformat() if value > 0 else ""
            except (ValueError, OverflowError, OSError):
                return ""
        found = self.optional(name).strip()
        try:
            return datetime.fromisoformat(found).date().isoformat()
        except ValueError:
            return found if _PART_OF_DATE.fullmatch(found) else ""

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
            tests: the problem's tests; `DecodedTests` also set function, call, checker and harness, and add notes.
            notes: field and text on what was changed or left out in it; each becomes an entry of the lineage.
            fields: further fields of the candidate.
        """
        found: dict[str, Any] = {"licence": self.licence, "tests": tests}
        noted = [*notes]
        if isinstance(tests, DecodedTests):
            found |= tests.fields
            noted += tests.notes
        found |= fields
        lineage = tuple(
            Lineage(stage="collect", step=f"{self.dataset}/1", field=field, detail=detail)
            for field, detail in noted
        )
        return Candidate(
            id=self.id,
            dataset=self.dataset,
            source_row=self.place,
            statement_found=statement,
            statement=statement,
            lineage=lineage,
            **found,
        )


def _typed(value: object, kind: Any, name: str, what: str) -> Any:
    if isinstance(value, kind):
        return value
    raise Malformed("wrong_type", f"{name} is {type(value).__name__}, not {what}")


MAX_BYTES = 1 << 30

_VALUES = frozenset(
    {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
    | {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
)
_PLAIN = frozenset(
    {"PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "EMPTY_LIST", "EMPTY_DICT"}
    | {"APPEND", "APPENDS", "SETITEM", "SETITEMS"}
)
_KEEPS = frozenset({"MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"})
_RECALLS = frozenset({"GET", "BINGET", "LONG_BINGET"})


def decode_packed(text: str) -> Any:
    """Return the value of JSON, or of base64 of zlib of JSON or a pickle of plain data; ValueError if unreadable."""
    try:
        return parse_json(text)
    except ValueError as error:
        if "deeply" in str(error):
            raise
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is neither JSON nor base64") from None
    unpacker = zlib.decompressobj()
    try:
        body = unpacker.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is base64, but not of zlib data ({error})") from None
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("its zlib data is cut off")
    if body[:1] in (b"[", b"{"):
        return _parse(body, "text")
    try:
        _check_pickle(body)
        value = pickle.loads(body)
    except Exception as error:  # a broken pickle fails in every way there is
        raise ValueError(
            f"its pickle is not read: {str(error)[:200] or type(error).__name__}"
        ) from None
    return _parse(value, "pickled text") if isinstance(value, str) else value


def _parse(text: str | bytes, what: str) -> object:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"its {what} is not JSON ({error})") from None


def _check_pickle(body: bytes) -> None:
    """Raise ValueError for a pickle that is more than plain data, or that would unpack to over `MAX_BYTES`."""
    num_kept = num_recalled = length = 0
    before = ""
    texts: dict[int, int] = {}
    for instruction, argument, _ in pickletools.genops(body):
        name, key = instruction.name, argument if isinstance(argument, int) else num_kept
        if name in _VALUES:
            length = len(argument) if isinstance(argument, str) else 1
        elif name in _KEEPS:
            num_kept += 1
            if key > num_kept:
                raise ValueError(f"it asks for {name} {key}; only plain data is read")
            texts[key] = length if before in _VALUES else -1
        elif name in _RECALLS:
            # Lists that hold themselves, or each other many times, have no bound.
            if (length := texts.get(key, -1)) < 0:
                raise ValueError("it holds a list or an object twice; only plain data is read")
            num_recalled += length
            if num_recalled > MAX_BYTES:
                raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
        elif name not in _PLAIN:
            raise ValueError(f"it asks for {name} {argument or ''}; only plain data is read")
        # One stands between a long text and what keeps it.
        before = before if name == "FRAME" else name

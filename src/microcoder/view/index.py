"""An opened run (`RunSource`), the index of its rollouts, and search in their texts.

The index holds small columns of all rollouts in memory. They travel to the page as they are (`Index.pack`), which
filters them (`static/columns.js`), from a server as from a bundle: there is one implementation of the filters.
"""

import json
import re
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import count_processors
from microcoder.view.files import Asked, ProblemTests, Row
from microcoder.view.statements import FoundTests, explain_count

WORDS = ("split", "problem_id", "tier", "verdict", "masked_why")
INTEGERS = ("step", "row", "sample_index", "num_tokens", "tests_passed", "tests_total")
FLOATS = ("reward", "advantage", "cpu_seconds")
FLAGS = ("is_truncated",)
COLUMN_NAMES = (*WORDS, *INTEGERS, *FLOATS, *FLAGS)
SPLITS = ("train", "heldout", "evaluation", "judged", "corpus")
UNKNOWN = -1
"""Value in an integer column of what the files do not hold."""
_ALIGNMENT = 8

Columns = Mapping[str, NDArray[Any]]
"""Name -> column, all of equal length: for `WORDS` the codes of the words, for the others the values."""


@dataclass(frozen=True)
class Index:
    """Small columns of a run's rollouts, in order of step, split and row."""

    words: Mapping[str, Sequence[str]]
    """Column -> its words; a rollout's code in that column is an index into them."""
    columns: Columns
    version: int = 0
    """Number that changes with the content."""

    def __len__(self) -> int:
        return len(self.columns["row"])

    def count(self, column: str) -> dict[str, int]:
        """Return the count of each word of a column of `WORDS`; zeros are left out."""
        counts = np.bincount(self.columns[column], minlength=len(self.words[column]))
        return {
            word: int(count)
            for word, count in zip(self.words[column], counts, strict=True)
            if count
        }

    def find(self, name: str) -> int | None:
        """Return the position of the rollout `split/step/row`; None if there is no such rollout."""
        split, _, rest = name.partition("/")
        step, _, row = rest.partition("/")
        if not (step.isdecimal() and row.isdecimal()) or max(len(step), len(row)) > 9:
            return None
        words, columns = self.words["split"], self.columns
        code = words.index(split) if split in words else UNKNOWN
        found = (
            (columns["step"] == int(step))
            & (columns["row"] == int(row))
            & (columns["split"] == code)
        )
        return next(map(int, np.flatnonzero(found)), None)

    def places_of(self, problem_id: str) -> list[int]:
        """Return the positions of a problem's rollouts, first to last."""
        words = self.words["problem_id"]
        if problem_id not in words:
            return []
        code = words.index(problem_id)
        return [int(place) for place in np.flatnonzero(self.columns["problem_id"] == code)]

    def record(self, place: int) -> dict[str, Any]:
        """Return the columns of the rollout at a position as plain JSON values; None is unknown or unscored."""
        columns = self.columns
        record: dict[str, Any] = {name: self.words[name][columns[name][place]] for name in WORDS}
        record |= {
            name: None if columns[name][place] == UNKNOWN else int(columns[name][place])
            for name in INTEGERS
        }
        record |= {
            name: None if np.isnan(columns[name][place]) else float(columns[name][place])
            for name in FLOATS
        }
        record |= {name: bool(columns[name][place]) for name in FLAGS}
        return {"id": f"{record['split']}/{record['step']}/{record['row']}", **record}

    def pack(self) -> bytes:
        """Return the index as bytes: the JSON header's length (uint32), the header, the columns, little-endian."""
        arrays = {
            name: _narrow(name, self.columns[name], len(self.words.get(name, ())))
            for name in COLUMN_NAMES
        }
        head: dict[str, Any] = {
            "version": self.version,
            "num": len(self),
            "words": dict(self.words),
        }
        head["columns"] = [[name, array.dtype.name] for name, array in arrays.items()]
        text = json.dumps(head, separators=(",", ":")).encode("ascii")
        text += b" " * (-(len(text) + 4) % _ALIGNMENT)
        parts = [struct.pack("<I", len(text)), text]
        for array in arrays.values():
            body = array.tobytes()
            parts += [body, b"\0" * (-len(body) % _ALIGNMENT)]
        return b"".join(parts)


def _narrow(name: str, column: NDArray[Any], num_words: int) -> NDArray[Any]:
    if name in WORDS:
        return column.astype(
            "<u1" if num_words <= 1 << 8 else "<u2" if num_words <= 1 << 16 else "<u4"
        )
    return column.astype("<f4" if name in FLOATS else "<u1" if name in FLAGS else "<i4")


class IndexBuilder:
    """Builds an index from the columns of files, which can be added and removed."""

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {name: {} for name in WORDS}
        self.parts: dict[str, Columns] = {}
        """Name of a file, as given to `put_rows` -> its columns."""
        self._version = 0

    def put_rows(self, file: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Set a file's columns from its rows; what a row lacks is unknown, a flag False, a word empty."""
        columns: dict[str, Any] = {}
        for name, codes in self._codes.items():
            words = (row.get(name) or "" for row in rows)
            columns[name] = np.fromiter(
                (codes.setdefault(word, len(codes)) for word in words), dtype=np.int32
            )
        for names, unknown, kind in (
            (INTEGERS, UNKNOWN, np.int32),
            (FLOATS, float("nan"), np.float64),
            (FLAGS, False, np.bool_),
        ):
            for name in names:
                columns[name] = np.array(
                    [unknown if row.get(name) is None else row[name] for row in rows], dtype=kind
                )
        self.parts[file] = columns

    def build(self) -> Index:
        """Return the index of all files."""
        self._version += 1
        columns = {
            name: np.concatenate([part[name] for part in self.parts.values()])
            if self.parts
            else np.zeros(0, dtype=np.int32)
            for name in COLUMN_NAMES
        }
        words = {name: tuple(codes) for name, codes in self._codes.items()}
        ranks = np.array([SPLITS.index(word) for word in words["split"]] or [0])
        order = np.lexsort((columns["row"], ranks[columns["split"]], columns["step"]))
        return Index(
            words, {name: column[order] for name, column in columns.items()}, self._version
        )


Texts = Mapping[str, Any]
"""Field -> Arrow array of texts, plain or dictionary-encoded; a field that a part does not have is left out."""
_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Consecutive rollouts of the index, with a function that reads their texts."""

    num_rows: int
    read: Callable[[], Texts]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Facts, notices, charts and tables about a run as a whole, as plain JSON values."""

    state: str
    """State of the run, such as `finished` or `24 steps so far`."""
    facts: Sequence[tuple[str, str]] = ()
    notices: Sequence[str] = ()
    """Warnings that a reader must know before trusting the figures."""
    charts: Sequence[Row] = ()
    tables: Sequence[Row] = ()
    """Tables, each with `title`, `columns` (their names) and `rows` of texts."""


class RunSource(ABC):
    """One opened run; its files, which may grow, are checked for changes at most once a second."""

    kind: str
    name: str
    tests: ProblemTests

    def __init__(self) -> None:
        self._builder = IndexBuilder()
        self._index = self._builder.build()
        self._looked = -_SECONDS_BETWEEN_LOOKS
        self._lock = threading.Lock()

    def index(self) -> Index:
        """Return the index of all rollouts; files that grew or were rewound are read again."""
        with self._lock:
            if time.monotonic() - self._looked >= _SECONDS_BETWEEN_LOOKS:
                if self._refresh():
                    self._index = self._builder.build()
                self._looked = time.monotonic()
            return self._index

    def find_tests(self, problem_id: str) -> FoundTests:
        """Return the tests of a problem, or why they are not shown: a file may hold another problem under its id."""
        asked = self.tests.find(problem_id)
        if asked is None:
            return FoundTests(None, self.tests.missing)
        why = self.explain_difference(problem_id, asked) or self._explain_count(problem_id, asked)
        return FoundTests(None, why) if why else FoundTests(asked)

    def explain_difference(self, problem_id: str, asked: Asked) -> str:
        """Return why a problem of a file is not the one of this run, in a sentence; empty if it is."""
        return ""

    def _explain_count(self, problem_id: str, asked: Asked) -> str:
        index = self.index()
        judged = [int(index.columns["tests_total"][place]) for place in index.places_of(problem_id)]
        num_judged = max(judged, default=0)
        return explain_count(asked, num_judged=num_judged) if num_judged > 0 else ""

    def stamp(self) -> str:
        """Return the version of the source's content: it changes whenever `index` or `about` would."""
        return str(self.index().version)

    @abstractmethod
    def _refresh(self) -> bool:
        """Put what is new in the files into the builder; return whether anything was new."""

    @abstractmethod
    def parts(self, index: Index) -> list[IndexPart]:
        """Return the rollouts in the order of the index, in parts whose texts are read when needed, for a search."""

    @abstractmethod
    def read(self, record: Row) -> Row:
        """Return the texts and tests that the files hold of a rollout, given by its record (`Index.record`)."""

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield what `read` returns for every rollout, in the order of the index."""
        for place in range(len(index)):
            yield self.read(index.record(place))

    @abstractmethod
    def about(self) -> RunInfo:
        """Return facts, notices, charts and tables about the run as a whole."""


FIELDS = ("prompt", "response", "program", "errors")
_MOST_MATCHES = 60
_LONGEST_NEEDLE = 500
_GROUPS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P?<\w+>|\((?!\?)")

pc: Any = pyarrow.compute  # Its functions are made as it is imported: a type checker sees none.


@dataclass(frozen=True, slots=True)
class Needle:
    """A text or regular expression to search for, whatever its case."""

    text: str
    is_regex: bool = False
    field: str = ""
    """Field to search, one of `FIELDS`; empty: all of them."""

    def __post_init__(self) -> None:
        """Raise DataError for too long a text, an unknown field or an invalid regular expression."""
        if len(self.text) > _LONGEST_NEEDLE:
            raise DataError(
                f"the search has {len(self.text)} characters; at most {_LONGEST_NEEDLE} are allowed"
            )
        if self.field and self.field not in FIELDS:
            raise DataError(f"field={self.field!r} is not allowed; use one of {', '.join(FIELDS)}")
        try:
            _matches(pa.array([""]), self)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{self.text!r} is not a regular expression of RE2 ({str(error).rpartition(': ')[2]}); escape its "
                "special characters, or search for plain text"
            ) from None

    @property
    def pattern(self) -> str:
        """The regular expression for RE2, without capturing groups."""
        if not self.is_regex:
            return re.escape(self.text)
        return _GROUPS.sub(lambda found: "(?:" if found[0].startswith("(") else found[0], self.text)


def find_texts(parts: Sequence[IndexPart], needle: Needle) -> NDArray[np.bool_]:
    """Return whether each rollout of the parts holds the needle."""
    with ThreadPoolExecutor(count_processors()) as pool:
        masks = list(pool.map(lambda part: _find_in(part, needle), parts))
    return np.concatenate(masks) if masks else np.zeros(0, dtype=bool)


def _find_in(part: IndexPart, needle: Needle) -> NDArray[np.bool_]:
    mask = np.zeros(part.num_rows, dtype=bool)
    for field, texts in part.read().items():
        if len(texts) != part.num_rows:
            raise DataError("the run changed while it was searched; search again")
        if needle.field in ("", field):
            mask |= _matches(texts, needle)
    return mask


def list_matches(needle: Needle, texts: Sequence[str]) -> list[str]:
    """Return the distinct strings of texts that a needle matches, in order, to be highlighted."""
    found: dict[str, None] = {}
    for rest in map(_whole, texts):
        for _ in range(4 * _MOST_MATCHES):
            hit = _first(rest, needle)
            if hit is None or len(found) >= _MOST_MATCHES:
                break
            begin, end = hit
            if end > begin:
                found[rest[begin:end]] = None
            rest = rest[max(begin + 1, end) :]
    return list(found)


def _matches(texts: Any, needle: Needle) -> NDArray[np.bool_]:
    values = texts.dictionary if pa.types.is_dictionary(texts.type) else texts
    # Of plain text, too: RE2 looks for it ten times as fast as Arrow's own search does.
    found = pc.match_substring_regex(values, needle.pattern, ignore_case=True).fill_null(False)
    if pa.types.is_dictionary(texts.type):
        found = found.take(texts.indices).fill_null(False)
    return found.to_numpy(zero_copy_only=False)


def _whole(text: str) -> str:
    """Return a text with lone surrogates, which Arrow refuses, replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _first(text: str, needle: Needle) -> tuple[int, int] | None:
    pattern = rf"(?i)\A(?s:(?P<before>.*?))(?P<found>{needle.pattern})"
    hit = pc.extract_regex(pa.array([text]), pattern)[0].as_py()
    return None if hit is None else (len(hit["before"]), len(hit["before"]) + len(hit["found"]))

"""An opened run (`RunSource`), the index of its rollouts, and search in their texts.

The index holds small columns of all rollouts in memory. They travel to the page unchanged
(`Index.pack`), from a server or in a bundle. The page filters them (`static/columns.js`), so that
there is one implementation of the filters.
"""

import json
import math
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
from microcoder.view.files import ProblemTests, Row, ShownProblem
from microcoder.view.notes import Notes
from microcoder.view.statements import FoundTests, explain_count

WORDS = ("split", "problem_id", "tier", "verdict", "masked_why")
"""Columns of words, which are stored as codes."""

INTEGERS = ("step", "row", "sample_index", "num_tokens", "tests_passed", "tests_total")
"""Columns of integers."""

FLOATS = ("reward", "advantage", "cpu_seconds")
"""Columns of floats."""

FLAGS = ("is_truncated",)
"""Columns of booleans."""

COLUMN_NAMES = (*WORDS, *INTEGERS, *FLOATS, *FLAGS)
"""All columns, in the order in which they are packed."""

SPLITS = ("train", "heldout", "evaluation", "judged", "corpus")
"""Words of the column `split`, in the order in which rollouts of one step are listed."""

UNKNOWN = -1
"""Value in an integer column of what the files do not hold."""

_MOST_DIGITS = 9
"""Most digits of a step and of a row in a rollout's name."""

_ALIGNMENT = 8
"""Bytes of which a packed column begins at a multiple, as typed arrays of the page must."""

Columns = Mapping[str, NDArray[Any]]
"""Name -> column, all of equal length: for `WORDS` the codes of the words, for the others the
values."""


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
        words = self.words[column]
        counts = np.bincount(self.columns[column], minlength=len(words))
        counted = zip(words, counts, strict=True)
        return {word: int(count) for word, count in counted if count}

    def find(self, name: str) -> int | None:
        """Return the position of the rollout `split/step/row`; None if there is no such rollout."""
        split, _, rest = name.partition("/")
        step, _, row = rest.partition("/")
        # More digits would overflow the columns' integers.
        for number in (step, row):
            if not number.isdecimal() or len(number) > _MOST_DIGITS:
                return None
        words = self.words["split"]
        columns = self.columns
        code = words.index(split) if split in words else UNKNOWN
        is_it = columns["step"] == int(step)
        is_it &= columns["row"] == int(row)
        is_it &= columns["split"] == code
        return next(map(int, np.flatnonzero(is_it)), None)

    def positions_of(self, problem_id: str) -> list[int]:
        """Return the positions of a problem's rollouts in the columns, first to last."""
        words = self.words["problem_id"]
        if problem_id not in words:
            return []
        code = words.index(problem_id)
        positions = np.flatnonzero(self.columns["problem_id"] == code)
        return [int(position) for position in positions]

    def record(self, position: int) -> dict[str, Any]:
        """Return the columns of the rollout at a position as plain JSON values.

        None is unknown or unscored.
        """
        values = {name: column[position] for name, column in self.columns.items()}
        record: dict[str, Any] = {name: self.words[name][values[name]] for name in WORDS}
        for name in INTEGERS:
            value = values[name]
            record[name] = None if value == UNKNOWN else int(value)
        for name in FLOATS:
            value = values[name]
            record[name] = None if np.isnan(value) else float(value)
        for name in FLAGS:
            record[name] = bool(values[name])
        return {"id": f"{record['split']}/{record['step']}/{record['row']}", **record}

    def pack(self) -> bytes:
        """Return the index as bytes, little-endian.

        They are the JSON header's length (uint32), the header, and the columns.
        """
        arrays = {}
        for name in COLUMN_NAMES:
            num_words = len(self.words.get(name, ()))
            arrays[name] = _narrow(name, self.columns[name], num_words)
        header: dict[str, Any] = {
            "version": self.version,
            "num": len(self),
            "words": dict(self.words),
            "columns": [[name, array.dtype.name] for name, array in arrays.items()],
        }
        text = json.dumps(header, separators=(",", ":")).encode("ascii")
        # Padded by spaces, which JSON takes no notice of.
        text += b" " * (-(len(text) + 4) % _ALIGNMENT)
        parts = [struct.pack("<I", len(text)), text]
        for array in arrays.values():
            body = array.tobytes()
            parts += [body, b"\0" * (-len(body) % _ALIGNMENT)]
        return b"".join(parts)


def _narrow(name: str, column: NDArray[Any], num_words: int) -> NDArray[Any]:
    """Return a column in the smallest type that holds its values."""
    if name in FLOATS:
        return column.astype("<f4")
    if name in FLAGS:
        return column.astype("<u1")
    if name in INTEGERS:
        return column.astype("<i4")
    if num_words <= 1 << 8:
        return column.astype("<u1")
    if num_words <= 1 << 16:
        return column.astype("<u2")
    return column.astype("<u4")


class IndexBuilder:
    """Builds an index from the columns of files, which can be added and removed."""

    def __init__(self) -> None:
        # Shared by all files, so that a word has one code in the whole run.
        self._codes: dict[str, dict[str, int]] = {name: {} for name in WORDS}
        self.parts: dict[str, Columns] = {}
        """Name of a file, as given to `put_rows` -> its columns."""
        self._version = 0

    def put_rows(self, file: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Set a file's columns from its rows.

        Values that a row lacks are unknown; flags are then False, and words empty.
        """
        columns: dict[str, Any] = {}
        for name, codes in self._codes.items():
            column = []
            for row in rows:
                word = row.get(name) or ""
                # A new word gets the next code.
                column.append(codes.setdefault(word, len(codes)))
            columns[name] = np.array(column, dtype=np.int32)
        for name in INTEGERS:
            column = _fill(rows, name, UNKNOWN)
            columns[name] = np.array(column, dtype=np.int32)
        for name in FLOATS:
            column = _fill(rows, name, math.nan)
            columns[name] = np.array(column, dtype=np.float64)
        for name in FLAGS:
            column = _fill(rows, name, False)
            columns[name] = np.array(column, dtype=np.bool_)
        self.parts[file] = columns

    def build(self) -> Index:
        """Return the index of all files."""
        self._version += 1
        columns = {}
        for name in COLUMN_NAMES:
            of_files = [part[name] for part in self.parts.values()]
            if of_files:
                columns[name] = np.concatenate(of_files)
            else:
                # What is joined of nothing has no type.
                columns[name] = np.zeros(0, dtype=np.int32)
        words = {name: tuple(codes) for name, codes in self._codes.items()}
        # Without rollouts there are no words, and an array of none has no type to index by.
        ranks_of_words = [SPLITS.index(word) for word in words["split"]]
        ranks = np.array(ranks_of_words or [0])
        split_ranks = ranks[columns["split"]]
        # The last key comes first.
        keys = (columns["row"], split_ranks, columns["step"])
        order = np.lexsort(keys)
        ordered = {name: column[order] for name, column in columns.items()}
        return Index(words, ordered, self._version)


def _fill(rows: Sequence[Mapping[str, Any]], name: str, unknown: object) -> list[Any]:
    """Return a column's values, with `unknown` for rows that lack it."""
    return [unknown if row.get(name) is None else row[name] for row in rows]


Texts = Mapping[str, Any]
"""Field -> Arrow array of texts, plain or dictionary-encoded; a field that a part does not have is
left out."""

_SECONDS_BETWEEN_LOOKS = 1.0
"""Time for which a run's files are not looked at again."""


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
    clock: Sequence[tuple[int, float]] = ()
    """Training steps with the seconds that the run had taken by then; empty if unknown."""


class RunSource(ABC):
    """One opened run; its files, which may grow, are checked for changes at most once a second."""

    kind: str
    name: str
    tests: ProblemTests
    notes: Notes | None = None
    """Notes on its rollouts; None where there is no folder to keep them in."""

    def __init__(self) -> None:
        self._builder = IndexBuilder()
        self._index = self._builder.build()
        # So that the first look is never left out, however young the clock is.
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
        """Return the tests of a problem, or why they are not shown: a file may use its id for
        another one."""
        problem = self.tests.find(problem_id)
        if problem is None:
            return FoundTests(None, self.tests.missing)
        why = self.explain_difference(problem_id, problem)
        if not why:
            why = self._explain_count(problem_id, problem)
        return FoundTests(None, why) if why else FoundTests(problem)

    def explain_difference(self, problem_id: str, problem: ShownProblem) -> str:
        """Return a sentence on why a file's problem is not the one of this run; empty if it is."""
        return ""

    def _explain_count(self, problem_id: str, problem: ShownProblem) -> str:
        index = self.index()
        counts = index.columns["tests_total"]
        judged = [int(counts[position]) for position in index.positions_of(problem_id)]
        num_judged = max(judged, default=0)
        return explain_count(problem, num_judged=num_judged) if num_judged > 0 else ""

    def stamp(self) -> str:
        """Return the version of the source's content.

        It changes whenever `index` or `about` would.
        """
        return str(self.index().version)

    @abstractmethod
    def _refresh(self) -> bool:
        """Read what is new in the files into the builder; return whether anything was new."""

    @abstractmethod
    def parts(self, index: Index) -> list[IndexPart]:
        """Return the rollouts in the order of the index, in parts, for a search.

        The texts of a part are read when needed.
        """

    @abstractmethod
    def read(self, record: Row) -> Row:
        """Return the texts and tests of the rollout with this record (`Index.record`)."""

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield the texts and tests of every rollout, in the order of the index."""
        for position in range(len(index)):
            yield self.read(index.record(position))

    @abstractmethod
    def about(self) -> RunInfo:
        """Return facts, notices, charts and tables about the run as a whole."""


FIELDS = ("prompt", "response", "program", "errors")
"""Fields in which a text can be searched."""

_MOST_MATCHES = 60
"""Most strings that are highlighted in a rollout."""

_LONGEST_NEEDLE = 500
"""Most characters of a search."""

_GROUPS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P?<\w+>|\((?!\?)")
"""The beginnings of groups that capture; and escapes and sets, so that brackets in them are
none."""

# Its functions are made as it is imported: a type checker sees none.
pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Needle:
    """A text or regular expression to search for, whatever its case."""

    text: str
    is_regex: bool = False
    field: str = ""
    """Field to search, one of `FIELDS`; empty: all of them."""

    def __post_init__(self) -> None:
        """Raise DataError for too long a text, an unknown field or an invalid expression."""
        if len(self.text) > _LONGEST_NEEDLE:
            raise DataError(
                f"the search has {len(self.text)} characters; at most {_LONGEST_NEEDLE} are allowed"
            )
        if self.field and self.field not in FIELDS:
            raise DataError(f"field={self.field!r} is not allowed; use one of {', '.join(FIELDS)}")
        try:
            # Tried on nothing: `re` knows another language than RE2, and could not tell.
            _matches(pa.array([""]), self)
        except pa.ArrowInvalid as error:
            fault = str(error).rpartition(": ")[2]
            raise DataError(
                f"{self.text!r} is not a regular expression of RE2 ({fault}); escape its special "
                "characters, or search for plain text"
            ) from None

    @property
    def pattern(self) -> str:
        """The regular expression for RE2, without capturing groups."""
        if not self.is_regex:
            return re.escape(self.text)

        def make_plain(match: re.Match[str]) -> str:
            # Arrow takes an expression with a group that has no name for an error.
            return "(?:" if match[0].startswith("(") else match[0]

        return _GROUPS.sub(make_plain, self.text)


def find_texts(parts: Sequence[IndexPart], needle: Needle) -> NDArray[np.bool_]:
    """Return whether each rollout of the parts holds the needle."""
    # Arrow works without Python's lock, so threads search at the same time.
    with ThreadPoolExecutor(count_processors()) as pool:
        masks = list(pool.map(lambda part: _find_in(part, needle), parts))
    if not masks:
        return np.zeros(0, dtype=bool)
    return np.concatenate(masks)


def _find_in(part: IndexPart, needle: Needle) -> NDArray[np.bool_]:
    mask = np.zeros(part.num_rows, dtype=bool)
    for field, texts in part.read().items():
        # The mask would be of other rollouts than the index lists.
        if len(texts) != part.num_rows:
            raise DataError("the run changed while it was searched; search again")
        if needle.field in ("", field):
            mask |= _matches(texts, needle)
    return mask


def list_matches(needle: Needle, texts: Sequence[str]) -> list[str]:
    """Return the distinct strings of texts that a needle matches, in order, to be highlighted."""
    strings: dict[str, None] = {}
    for rest in map(_whole, texts):
        # The same string may stand there often: the number of steps is bounded, too.
        for _ in range(4 * _MOST_MATCHES):
            match = _first(rest, needle)
            if match is None or len(strings) >= _MOST_MATCHES:
                break
            begin, end = match
            if end > begin:
                strings[rest[begin:end]] = None
            # At least one character on: an empty match would be found for ever.
            rest = rest[max(begin + 1, end) :]
    return list(strings)


def _matches(texts: pa.Array, needle: Needle) -> NDArray[np.bool_]:
    """Return whether each text holds the needle."""
    is_dictionary = pa.types.is_dictionary(texts.type)
    values = texts.dictionary if is_dictionary else texts
    # Of plain text, too: RE2 looks for it ten times as fast as Arrow's own search does.
    mask = pc.match_substring_regex(values, needle.pattern, ignore_case=True)
    mask = mask.fill_null(False)
    if is_dictionary:
        mask = mask.take(texts.indices).fill_null(False)
    return mask.to_numpy(zero_copy_only=False)


def _whole(text: str) -> str:
    """Return a text with lone surrogates, which Arrow refuses, replaced by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _first(text: str, needle: Needle) -> tuple[int, int] | None:
    """Return where the first match in a text begins and ends; None if nothing matches."""
    pattern = rf"(?i)\A(?s:(?P<before>.*?))(?P<found>{needle.pattern})"
    matches = pc.extract_regex(pa.array([text]), pattern)
    match = matches[0].as_py()
    if match is None:
        return None
    begin = len(match["before"])
    return begin, begin + len(match["found"])

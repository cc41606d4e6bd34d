"""Light columns of all rollouts of a run, in memory: what a list, its filters and its maps are made of.

The columns travel to the page as they are (`Index.pack`), and the page filters them (`static/columns.js`), from a
server as from a bundle: there is one implementation of the filters.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS = ("split", "problem_id", "tier", "verdict", "masked_why")
INTEGERS = ("step", "row", "sample_index", "num_tokens", "tests_passed", "tests_total")
FLOATS = ("reward", "advantage", "cpu_seconds")
FLAGS = ("is_truncated", "has_tokens")
SPLITS = ("train", "heldout", "evaluation", "judged", "corpus")
UNKNOWN = -1
"""An integer that the files do not hold."""
_ALIGNMENT = 8

Columns = Mapping[str, NDArray[Any]]
"""Columns of equal length: codes of `WORDS`, and the numbers."""


@dataclass(frozen=True)
class Index:
    """Rollouts in order of step, split and row."""

    words: Mapping[str, Sequence[str]]
    """Column -> its words; a rollout's code is a place in it."""
    columns: Columns
    version: int = 0
    """Changes with the content."""

    def __len__(self) -> int:
        return len(self.columns["row"])

    def count(self, column: str) -> dict[str, int]:
        """Count the words of a column; words that do not occur are left out."""
        counts = np.bincount(self.columns[column], minlength=len(self.words[column]))
        return {word: int(count) for word, count in zip(self.words[column], counts, strict=True) if count}

    def find(self, name: str) -> int | None:
        """Return the place of `split/step/row`; None if there is no such rollout."""
        split, _, rest = name.partition("/")
        step, _, row = rest.partition("/")
        if not (step.isdecimal() and row.isdecimal()) or max(len(step), len(row)) > 9:
            return None
        words, columns = self.words["split"], self.columns
        code = words.index(split) if split in words else UNKNOWN
        found = (columns["step"] == int(step)) & (columns["row"] == int(row)) & (columns["split"] == code)
        return next(map(int, np.flatnonzero(found)), None)

    def record(self, place: int) -> dict[str, Any]:
        """Return a rollout's light columns as plain JSON values; None is unknown or unscored."""
        columns = self.columns
        record: dict[str, Any] = {name: self.words[name][columns[name][place]] for name in WORDS}
        record |= {name: None if columns[name][place] == UNKNOWN else int(columns[name][place]) for name in INTEGERS}
        record |= {name: None if np.isnan(columns[name][place]) else float(columns[name][place]) for name in FLOATS}
        record |= {name: bool(columns[name][place]) for name in FLAGS}
        return {"id": f"{record['split']}/{record['step']}/{record['row']}", **record}

    def pack(self) -> bytes:
        """Return the whole as one piece: a length, a JSON header of so many bytes, then the columns, little-endian."""
        arrays = {name: _narrow(name, self.columns[name], len(self.words.get(name, ()))) for name in _NAMES}
        head: dict[str, Any] = {"version": self.version, "num": len(self), "words": dict(self.words)}
        head["columns"] = [[name, array.dtype.name] for name, array in arrays.items()]
        text = json.dumps(head, separators=(",", ":")).encode("ascii")
        text += b" " * (-(len(text) + 4) % _ALIGNMENT)
        parts = [struct.pack("<I", len(text)), text]
        for array in arrays.values():
            body = array.tobytes()
            parts += [body, b"\0" * (-len(body) % _ALIGNMENT)]
        return b"".join(parts)


_NAMES = (*WORDS, *INTEGERS, *FLOATS, *FLAGS)


def _narrow(name: str, column: NDArray[Any], num_words: int) -> NDArray[Any]:
    if name in WORDS:
        return column.astype("<u1" if num_words <= 1 << 8 else "<u2" if num_words <= 1 << 16 else "<u4")
    return column.astype("<f4" if name in FLOATS else "<u1" if name in FLAGS else "<i4")


class IndexBuilder:
    """Puts an index together from files that come and go."""

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {name: {} for name in WORDS}
        self._parts: dict[str, Columns] = {}
        self._version = 0

    def encode(self, column: str, words: Iterable[str | None]) -> NDArray[np.int32]:
        """Return the codes of words; None counts as the empty word."""
        known = self._codes[column]
        return np.fromiter((known.setdefault(word or "", len(known)) for word in words), dtype=np.int32)

    def put(self, file: str, columns: Columns) -> None:
        """Take a file's columns, in place of what it held before."""
        self._parts[file] = columns

    def put_rows(self, file: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take the light values of rows as a file's columns; what a row lacks is unknown."""
        columns: dict[str, Any] = {name: self.encode(name, [row.get(name) for row in rows]) for name in WORDS}
        for names, unknown, kind in (
            (INTEGERS, UNKNOWN, np.int32),
            (FLOATS, float("nan"), np.float64),
            (FLAGS, False, np.bool_),
        ):
            for name in names:
                columns[name] = np.array([unknown if row.get(name) is None else row[name] for row in rows], dtype=kind)
        self.put(file, columns)

    def drop(self, files: Iterable[str]) -> None:
        """Forget files that are gone."""
        for file in files:
            del self._parts[file]

    @property
    def num_rows(self) -> Mapping[str, int]:
        """Rows of each file that was put in."""
        return {file: len(columns["row"]) for file, columns in self._parts.items()}

    def build(self) -> Index:
        """Return the index of all files."""
        self._version += 1
        columns = {
            name: np.concatenate([part[name] for part in self._parts.values()])
            if self._parts
            else np.zeros(0, dtype=np.int32)
            for name in _NAMES
        }
        words = {name: tuple(codes) for name, codes in self._codes.items()}
        ranks = np.array([SPLITS.index(word) for word in words["split"]] or [0])
        order = np.lexsort((columns["row"], ranks[columns["split"]], columns["step"]))
        return Index(words, {name: column[order] for name, column in columns.items()}, self._version)

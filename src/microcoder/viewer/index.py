"""The light columns of every rollout of a run, in memory: what lists are filtered, ordered and paged by.

Words (problem ids, verdicts, reasons) are stored once and pointed at by number, so a rollout costs some 80 bytes;
its texts stay in the files. A rollout's name is `split/step/row`: the same whenever and wherever the run is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microcoder.viewer.query import Query

WORDS = ("split", "problem_id", "tier", "verdict", "masked_why")
INTEGERS = ("step", "row", "sample_index", "num_tokens", "tests_passed", "tests_total")
FLOATS = ("reward", "advantage")
FLAGS = ("is_truncated",)
SPLITS = ("train", "heldout", "evaluation", "judged")
UNKNOWN = -1
"""An integer that the files do not hold."""

Columns = Mapping[str, NDArray[Any]]
"""Columns of equal length: codes of `WORDS`, and the numbers."""


@dataclass(frozen=True)
class Index:
    """Rollouts in order of step, split and row."""

    words: Mapping[str, Sequence[str]]
    """Column -> its words; a rollout's code is a place in it."""
    columns: Columns

    def __len__(self) -> int:
        return len(self.columns["row"])

    def select(self, query: Query) -> NDArray[np.int64]:
        """Return the places of the rollouts that a query wants, in its order."""
        columns = self.columns
        keep = np.ones(len(self), dtype=bool)
        if query.split:
            keep &= self._is("split", query.split)
        if query.steps is not None:
            keep &= (columns["step"] >= query.steps[0]) & (columns["step"] <= query.steps[1])
        if query.tier:
            keep &= self._is("tier", query.tier)
        if query.verdict:
            wanted = self._is("verdict", query.verdict.removeprefix("!"))
            keep &= ~wanted if query.verdict.startswith("!") else wanted
        if query.is_truncated is not None:
            keep &= columns["is_truncated"] == query.is_truncated
        if query.is_masked is not None:
            keep &= ~self._is("masked_why", "") == query.is_masked
        if query.problem:
            part = query.problem.casefold()
            codes = [code for code, word in enumerate(self.words["problem_id"]) if part in word.casefold()]
            keep &= np.isin(columns["problem_id"], codes)
        places = np.flatnonzero(keep)
        match query.order:
            case "last":
                return places[::-1]
            case "longest":
                return places[np.argsort(-columns["num_tokens"][places], kind="stable")]
            case "advantage":
                return places[np.argsort(-np.nan_to_num(columns["advantage"][places]), kind="stable")]
        return places

    def count(self, column: str, places: NDArray[np.int64] | None = None) -> dict[str, int]:
        """Count the words of a column among some rollouts, or all; words that do not occur are left out."""
        codes = self.columns[column] if places is None else self.columns[column][places]
        counts = np.bincount(codes, minlength=len(self.words[column]))
        return {word: int(count) for word, count in zip(self.words[column], counts, strict=True) if count}

    def find(self, name: str) -> int | None:
        """Return the place of `split/step/row`; None where there is no such rollout."""
        split, _, rest = name.partition("/")
        step, _, row = rest.partition("/")
        if not (step.isdecimal() and row.isdecimal()) or max(len(step), len(row)) > 9:
            return None
        columns = self.columns
        found = (columns["step"] == int(step)) & (columns["row"] == int(row)) & self._is("split", split)
        return next(map(int, np.flatnonzero(found)), None)

    def group(self, place: int) -> list[int]:
        """Return the places of all samples of the same problem in the same step."""
        same = np.ones(len(self), dtype=bool)
        for name in ("step", "split", "problem_id"):
            same &= self.columns[name] == self.columns[name][place]
        return [int(other) for other in np.flatnonzero(same)]

    def record(self, place: int) -> dict[str, Any]:
        """Return a rollout's light columns as plain JSON values; None is unknown or unscored."""
        columns = self.columns
        record: dict[str, Any] = {name: self.words[name][columns[name][place]] for name in WORDS}
        record |= {name: None if columns[name][place] == UNKNOWN else int(columns[name][place]) for name in INTEGERS}
        record |= {name: None if np.isnan(columns[name][place]) else float(columns[name][place]) for name in FLOATS}
        record |= {name: bool(columns[name][place]) for name in FLAGS}
        return {"id": f"{record['split']}/{record['step']}/{record['row']}", **record}

    def _is(self, column: str, word: str) -> NDArray[np.bool_]:
        words = self.words[column]
        return self.columns[column] == (words.index(word) if word in words else len(words))


class IndexBuilder:
    """Puts an index together from files that come and go."""

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {name: {} for name in WORDS}
        self._parts: dict[str, Columns] = {}

    def encode(self, column: str, words: Iterable[str | None]) -> NDArray[np.int32]:
        """Return the codes of words; None counts as the empty word."""
        known = self._codes[column]
        return np.fromiter((known.setdefault(word or "", len(known)) for word in words), dtype=np.int32)

    def put(self, file: str, columns: Columns) -> None:
        """Take a file's columns, in place of what it held before."""
        self._parts[file] = columns

    def drop(self, files: Iterable[str]) -> None:
        """Forget files that are gone."""
        for file in files:
            del self._parts[file]

    @property
    def files(self) -> set[str]:
        """Files that were put in."""
        return set(self._parts)

    def build(self) -> Index:
        """Return the index of all files."""
        columns = {
            name: np.concatenate([part[name] for part in self._parts.values()])
            if self._parts
            else np.zeros(0, dtype=np.int32)
            for name in (*WORDS, *INTEGERS, *FLOATS, *FLAGS)
        }
        words = {name: tuple(codes) for name, codes in self._codes.items()}
        ranks = np.array([SPLITS.index(word) for word in words["split"]] or [0])
        order = np.lexsort((columns["row"], ranks[columns["split"]], columns["step"]))
        return Index(words, {name: column[order] for name, column in columns.items()})

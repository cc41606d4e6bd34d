"""Words and regular expressions in prompts, responses, programs and errors of all rollouts of a run.

Texts are scanned, not indexed: Arrow's RE2 reads about a gigabyte a second on a core, takes linear time whatever the
expression is, and needs no grammar of ours. Parts of a run are scanned side by side; what a part was found to hold is
remembered until its file changes, so that a run that is followed costs its new steps alone.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import count_processors

FIELDS = ("prompt", "response", "program", "errors")
HELD_BYTES = 2 << 30
"""Texts kept in memory; of a larger run, the rest is read from its files for each search."""
_REMEMBERED = 20_000
_SECONDS_BEFORE_READING = 0.5
"""The list that is waited for comes first."""
_AROUND = 60
_MOST_MATCHES = 60
_LONGEST_NEEDLE = 500
_GROUPS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P?<\w+>|\((?!\?)")

pc: Any = pyarrow.compute  # Its functions are made as it is imported: a type checker sees none.
Texts = Mapping[str, Any]
"""Field -> Arrow array of texts, plain or dictionary-encoded; a field that a part does not have is left out."""


@dataclass(frozen=True, slots=True)
class IndexPart:
    """Rollouts that lie together, in the order of the index."""

    name: object
    """Which ones."""
    state: object
    """Of their file: as long as it is the same, so are the texts."""
    num_rows: int
    read: Callable[[], Texts]


@dataclass(frozen=True, slots=True)
class Needle:
    """What is looked for. Without a capital letter it ignores case."""

    text: str
    is_regex: bool = False
    field: str = ""
    """One of `FIELDS`; empty: any."""

    @property
    def ignores_case(self) -> bool:
        """`\\S` is no capital letter."""
        return not re.search(r"[A-Z]", re.sub(r"\\.", "", self.text) if self.is_regex else self.text)

    @property
    def pattern(self) -> str:
        """As RE2 wants it, without groups that it would have to report."""
        if not self.is_regex:
            return re.escape(self.text)
        return _GROUPS.sub(lambda found: "(?:" if found[0].startswith("(") else found[0], self.text)


class Searcher:
    """Looks through the parts of runs."""

    def __init__(self, *, held_bytes: int = HELD_BYTES) -> None:
        self._held_bytes, self._num_bytes = held_bytes, 0
        self._texts: dict[object, tuple[object, Texts]] = {}
        self._found: OrderedDict[tuple[object, object, Needle], NDArray[np.bool_]] = OrderedDict()
        self._lock = threading.Lock()
        self._reader: threading.Timer | None = None

    def find(self, parts: Sequence[IndexPart], needle: Needle) -> NDArray[np.bool_]:
        """Return for each rollout whether it holds the needle."""
        if len(needle.text) > _LONGEST_NEEDLE:
            raise DataError(f"the search has {len(needle.text)} characters; at most {_LONGEST_NEEDLE} are allowed")
        if needle.field and needle.field not in FIELDS:
            raise DataError(f"field={needle.field!r} is not allowed; use one of {', '.join(FIELDS)}")
        _matches(pa.array([""]), needle)  # A bad expression is an error before anything is read.
        with ThreadPoolExecutor(count_processors()) as pool:
            masks = list(pool.map(lambda part: self._find_in(part, needle), parts))
        return np.concatenate(masks) if masks else np.zeros(0, dtype=bool)

    def quote(self, parts: Sequence[IndexPart], needle: Needle, places: Sequence[int]) -> list[dict[str, str] | None]:
        """Return the first hit of each rollout with the text around it; None if there is none."""
        ends = np.cumsum([part.num_rows for part in parts])
        quotes = []
        for place in places:
            number = int(np.searchsorted(ends, place, side="right"))
            if number >= len(parts):
                quotes.append(None)
                continue
            row = place - int(ends[number]) + parts[number].num_rows
            quotes.append(_quote(self._read(parts[number]), row, needle))
        return quotes

    def begin(self, parts: Sequence[IndexPart]) -> None:
        """Read texts in the background before somebody waits for them, as far as they may be held."""
        with self._lock:
            if self._reader is not None and self._reader.is_alive():
                return
            self._reader = threading.Timer(_SECONDS_BEFORE_READING, self.warm, (parts,))
            self._reader.daemon = True
        self._reader.start()

    def warm(self, parts: Sequence[IndexPart]) -> None:
        """Read texts as far as they may be held; a file that has gone is an error only when it is searched."""
        for part in parts:
            if self._num_bytes >= self._held_bytes:
                return
            with contextlib.suppress(DataError):
                self._read(part)

    def _find_in(self, part: IndexPart, needle: Needle) -> NDArray[np.bool_]:
        known = (part.name, part.state, needle)
        with self._lock:
            if known in self._found:
                return self._found[known]
        mask = np.zeros(part.num_rows, dtype=bool)
        for field, texts in self._read(part).items():
            if len(texts) != part.num_rows:
                raise DataError("the run changed while it was searched; search again")
            if needle.field in ("", field):
                mask |= _matches(texts, needle)
        with self._lock:
            self._found[known] = mask
            while len(self._found) > _REMEMBERED:
                self._found.popitem(last=False)
        return mask

    def _read(self, part: IndexPart) -> Texts:
        with self._lock:
            state, texts = self._texts.get(part.name, (None, {}))
            if state == part.state:
                return texts
            self._num_bytes -= sum(array.nbytes for array in texts.values())
            self._texts.pop(part.name, None)
        texts = part.read()
        size = sum(array.nbytes for array in texts.values())
        with self._lock:
            if part.name not in self._texts and self._num_bytes + size <= self._held_bytes:
                self._texts[part.name] = part.state, texts
                self._num_bytes += size
        return texts


def list_matches(needle: Needle, texts: Sequence[str]) -> list[str]:
    """Return the distinct strings of texts that a needle matches, in order, for a reader to find them by."""
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
    try:
        # Of plain text, too: RE2 looks for it ten times as fast as Arrow's own search does.
        found = pc.match_substring_regex(values, needle.pattern, ignore_case=needle.ignores_case)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{needle.text!r} is no regular expression that RE2 reads ({str(error).rpartition(': ')[2]}); escape its "
            "special characters, or search for plain text"
        ) from None
    found = found.fill_null(False)
    if pa.types.is_dictionary(texts.type):
        found = found.take(texts.indices).fill_null(False)
    return found.to_numpy(zero_copy_only=False)


def _quote(texts: Texts, row: int, needle: Needle) -> dict[str, str] | None:
    for field in FIELDS:
        if field in texts and needle.field in ("", field) and (text := texts[field][row].as_py()) is not None:
            hit = _first(_whole(text), needle)
            if hit is not None:
                begin, end = hit[0], min(hit[1], hit[0] + 4 * _AROUND)
                before, after = text[max(0, begin - _AROUND) : begin], text[end : end + _AROUND]
                return {"field": field, "before": before, "found": text[begin:end], "after": after}
    return None


def _whole(text: str) -> str:
    """Half characters, which Arrow does not take, count as a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _first(text: str, needle: Needle) -> tuple[int, int] | None:
    flags = "(?i)" if needle.ignores_case else ""
    pattern = rf"{flags}\A(?s:(?P<before>.*?))(?P<found>{needle.pattern})"
    hit = pc.extract_regex(pa.array([text]), pattern)[0].as_py()
    return None if hit is None else (len(hit["before"]), len(hit["before"]) + len(hit["found"]))

"""Learns what a set says around each of its problems, from the set itself.

Prompts of published sets begin with instructions ("You are an expert programmer ...") and end with
some. Of two sets they hide that a problem is the same. Here they are only counted, so that texts
are compared without them; no statement is changed.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from microcoder.data.filter.texts import hash_text, words
from microcoder.data.formats.candidates import Candidate

_UNIT_END = re.compile(r"(?<=[.!?:])[ \t]+|\n+")
"""End of a sentence or a line."""
_MOST_UNITS = 12
"""Sentences or lines at either end of a statement that are looked at."""
_LEAST_ROWS = 10
"""Fewest rows of a set from which anything is learnt (our choice)."""
_LEAST_SHARE = 0.5
"""Share of a set's rows that more than must begin or end alike (our choice)."""
_LEAST_LEFT = 12
"""Fewest words that are left of a statement: fewer are not compared."""


class Edges(NamedTuple):
    """How a statement begins and ends, as hashes of its first and its last units."""

    source: str
    """Prefix of the row's id, which its set gives."""
    begins: tuple[int, ...]
    """Hashes of the first unit, the first two, and so on."""
    ends: tuple[int, ...]
    """Hashes of the last unit, the last two, and so on."""


class Shared(NamedTuple):
    """The beginnings and the ends that most rows of a set share, as hashes."""

    begins: frozenset[int]
    ends: frozenset[int]


def edges_of(candidate: Candidate) -> Edges:
    """Return how a candidate's statement begins and ends."""
    units = _split(candidate.statement)
    begins = [hash_text(" ".join(run)) for run in _runs(units)]
    ends = [hash_text(" ".join(run)) for run in _runs(units[::-1])]
    return Edges(_source_of(candidate), tuple(begins), tuple(ends))


def learn_shared(rows: Iterable[Edges]) -> dict[str, Shared]:
    """Return what most rows of each set begin or end with, by the set's prefix."""
    num_rows: Counter[str] = Counter()
    begins: defaultdict[str, Counter[int]] = defaultdict(Counter)
    ends: defaultdict[str, Counter[int]] = defaultdict(Counter)
    # By place: between steps they were on disk, as plain tuples.
    for source, of_begin, of_end in rows:
        num_rows[source] += 1
        begins[source].update(of_begin)
        ends[source].update(of_end)
    shared = {}
    for source, num in num_rows.items():
        if num >= _LEAST_ROWS:
            least = _LEAST_SHARE * num
            shared[source] = Shared(_most(begins[source], least), _most(ends[source], least))
    return shared


def count_shared(candidate: Candidate, shared: Mapping[str, Shared]) -> tuple[int, int]:
    """Return how many words at a statement's beginning and end most rows of its set share."""
    known = shared.get(_source_of(candidate))
    if known is None:
        return 0, 0
    units = _split(candidate.statement)
    num_begin = _count(units, known.begins)
    num_end = _count(units[::-1], known.ends)
    num_words = sum(map(len, units))
    if num_words - num_begin - num_end < _LEAST_LEFT:
        return 0, 0
    return num_begin, num_end


def _most(counts: Counter[int], least: float) -> frozenset[int]:
    return frozenset(digest for digest, count in counts.items() if count > least)


def _source_of(candidate: Candidate) -> str:
    return candidate.id.partition("/")[0]


def _split(statement: str) -> list[list[str]]:
    """Return the words of each sentence or line that has some."""
    units = [words(unit) for unit in _UNIT_END.split(statement)]
    return [unit for unit in units if unit]


def _runs(units: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the words of the first unit, of the first two, and so on."""
    runs: list[list[str]] = []
    joined: list[str] = []
    for unit in units[:_MOST_UNITS]:
        joined = [*joined, *unit]
        runs.append(joined)
    return runs


def _count(units: Sequence[Sequence[str]], known: frozenset[int]) -> int:
    """Return the words of the longest run of units that is known."""
    num_words = 0
    for run in _runs(units):
        if hash_text(" ".join(run)) in known:
            num_words = len(run)
    return num_words

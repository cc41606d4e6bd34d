"""Finds duplicates in the whole set by source, text and MinHash: groups of records of one problem.

    records -> describe -> little of each -> find_duplicates -> groups -> merge -> a record a group

The result does not depend on the order of the records. `merging.py` makes one record of a group.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from microcoder.data.clean.bounds import Bound, parse_bounds
from microcoder.data.filter.evidence import (
    hash_programs,
    is_telling,
    pairs_with_equal_tests,
    pairs_with_one_program,
)
from microcoder.data.filter.keys import contest_of, source_keys
from microcoder.data.filter.signatures import (
    are_duplicated,
    band_keys,
    candidate_pairs,
    read_signatures,
    sign,
    similarity,
)
from microcoder.data.filter.texts import hash_text, words
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.files import cut_pieces

Key = TypeVar("Key")
Value = TypeVar("Value")

_MAX_SAME_TEXT = 8
"""At most so many earlier records with the same words are compared with a record."""
_FINGERPRINTS_AT_ONCE = 4096
"""Records whose signatures are read together."""
_MAX_TESTS = 32
"""At most so many tests of a record, the first, have their answers compared.

As a rule the examples are among them.
"""
_MAX_CHARACTERS = 1_000_000
"""Characters of a test; longer ones are not compared, since their words would take gigabytes."""
_MIN_SIMILARITY = 0.75
"""Estimated Jaccard similarity from which two statements are one (measured in docs/dataset.md)."""
_SAME_SIMILARITY = 0.95
"""Estimated similarity of texts that differ in a word or two (our choice)."""
_MIN_WORDS = 12
"""Fewest words of a statement that is compared by its text.

Too many problems read "see the picture".
"""
_LEAST_POWERS = ((10, 2), (2, 5))
"""Bases of numbers whose exponents sources write beside them, and the least exponent of each."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The part of a record by which duplicates are found: 1 KB as a rule."""

    id: str
    rank: tuple[int, ...]
    """Order of preference: of several records the lowest rank is kept."""
    sources: frozenset[str]
    text: str
    """Digest of the words; empty for a statement too short to compare."""
    signature: bytes
    """MinHash signature, see `sign`."""
    bounds: tuple[Bound, ...]
    """Ranges in the statement.

    With powers as sources that lose superscripts have them: 105 for 10^5.
    """
    answers: dict[int, int]
    """Digest of each test's output by that of its input; empty where several answers are right."""
    telling: frozenset[int]
    """Digests of those inputs that are long enough to tell one problem from another."""
    programs: frozenset[int]
    """Hashes of accepted programs, see `hash_programs`."""


def describe(candidates: Sequence[Candidate]) -> list[Fingerprint]:
    """Return one fingerprint per record.

    Shard by shard or all at once, the result is the same.
    """
    tokens = [_own_words(candidate) for candidate in candidates]
    fingerprints = []
    for candidate, text, signature in zip(
        candidates,
        tokens,
        sign(tokens),
        strict=True,
    ):
        bounds = []
        for name, low, high in parse_bounds(candidate.statement):
            bounds.append(
                Bound(
                    name,
                    _flatten_power(low),
                    _flatten_power(high),
                )
            )
        digest = _digest_words(text) if len(text) >= _MIN_WORDS else ""
        fingerprint = Fingerprint(
            id=candidate.id,
            rank=_rank(candidate),
            sources=source_keys(candidate),
            text=digest,
            signature=signature.tobytes(),
            bounds=tuple(bounds),
            answers=_answers(candidate),
            telling=_telling(candidate),
            programs=hash_programs(candidate),
        )
        fingerprints.append(fingerprint)
    return fingerprints


def _own_words(candidate: Candidate) -> list[str]:
    """Return a statement's words, without those that most rows of its set begin or end with."""
    num_begin, num_end = candidate.boilerplate
    tokens = words(candidate.statement)
    return tokens[num_begin : len(tokens) - num_end]


def _digest_words(tokens: Sequence[str]) -> str:
    text = " ".join(tokens).encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def _flatten_power(value: float) -> float:
    """Return a power as it reads without its superscript (`10^5` as `105`); other numbers
    unchanged."""
    size = abs(value)
    for base, least in _LEAST_POWERS:
        if size < base**least:
            continue
        power = round(math.log(size, base))
        if size == base**power:
            return math.copysign(float(f"{base}{power}"), value)
    return value


def _answers(candidate: Candidate) -> dict[int, int]:
    """Return the digest of each test's output by that of its input."""
    if candidate.checker.type in ("program", "unordered"):
        return {}
    if "many_answers" in candidate.flags or candidate.interactor is not None:
        return {}
    # Tests that are programs have no inputs.
    if candidate.assertions is not None:
        return {}
    answers = {}
    for test in candidate.tests[:_MAX_TESTS]:
        if len(test.input) + len(test.output) <= _MAX_CHARACTERS:
            output = " ".join(test.output.split())
            # Digests: of millions of records the texts would not fit into memory.
            answers[hash_text(test.input.strip())] = hash_text(output)
    return answers


def _telling(candidate: Candidate) -> frozenset[int]:
    """Return the digests of the inputs that are no problem's by chance."""
    inputs = [test.input for test in candidate.tests[:_MAX_TESTS] if is_telling(test.input)]
    return frozenset(hash_text(text.strip()) for text in inputs if len(text) <= _MAX_CHARACTERS)


def _rank(candidate: Candidate) -> tuple[int, ...]:
    """Return a rank, lower is better.

    By tests, few flags, an accepted solution, a licence, English, a checker, and so on.
    """
    has_solution = any(solution.known == "accepted" for solution in candidate.solutions)
    is_english = candidate.natural_language in ("", "en")
    has_checker = candidate.checker.type == "program"
    return (
        int(not candidate.tests),
        len(candidate.flags),
        int(not has_solution),
        int(not candidate.licence),
        int(not is_english),
        int(not has_checker),
        -len(candidate.tests),
        int(not candidate.date),
        -len(candidate.statement),
    )


def find_duplicates(fingerprints: Iterable[Fingerprint]) -> dict[str, dict[str, str]]:
    """Return {id of a kept record: {id of a duplicate: how it was found}}.

    Records without duplicates are left out. How a duplicate was found is `source`, `text`,
    `program`, `tests` or `similarity 0.87`.

    Two records are one problem if they have the same source, the same words, similar words, the
    same accepted program or enough equal tests, and nothing contradicts it. A contradiction is
    another problem of the same platform, other bounds, or another answer to the same input. Similar
    pairs are joined from the most similar down, unless their groups contradict each other.

    Args:
        fingerprints: one per record, iterated twice; those that share nothing with another are not
            kept in memory, so they may come from disk.
    """
    records = sorted(
        _with_company(fingerprints),
        key=lambda record: (record.rank, record.id, record.text),
    )
    # The best record of a group has the lowest number.
    groups = _Groups(records)
    # What is certain first: it decides which similar texts may still be joined.
    _join_same_sources(groups, records)
    _join_same_texts(groups, records)
    _join_same_behaviour(groups, records)
    _join_similar_texts(groups, records)
    return groups.list_duplicates()


def _join_same_sources(groups: _Groups, records: Sequence[Fingerprint]) -> None:
    by_source: dict[str, list[int]] = defaultdict(list)
    for number, record in enumerate(records):
        for key in sorted(record.sources):
            by_source[key].append(number)
    for members in by_source.values():
        for number in members[1:]:
            groups.join(members[0], number, "source")


def _join_same_texts(groups: _Groups, records: Sequence[Fingerprint]) -> None:
    by_text: dict[str, list[int]] = defaultdict(list)
    for number, record in enumerate(records):
        if record.text:
            by_text[record.text].append(number)
    for members in by_text.values():
        for place, number in enumerate(members):
            # One that contradicts the first may belong to another of the same text.
            for earlier in members[: min(place, _MAX_SAME_TEXT)]:
                if groups.join(earlier, number, "text", guarded=True, is_same_text=True):
                    break


def _join_same_behaviour(groups: _Groups, records: Sequence[Fingerprint]) -> None:
    """Join records that one program solves, or that have many tests in common."""
    for one, other in pairs_with_one_program([record.programs for record in records]):
        groups.join(one, other, "program", guarded=True)
    for one, other in pairs_with_equal_tests([_telling_answers(record) for record in records]):
        groups.join(one, other, "tests", guarded=True)


def _telling_answers(record: Fingerprint) -> dict[int, int]:
    return {given: out for given, out in record.answers.items() if given in record.telling}


def _join_similar_texts(groups: _Groups, records: Sequence[Fingerprint]) -> None:
    # One of each text in each group: a translation joined by its source still finds its own kind.
    first: dict[tuple[int, str], int] = {}
    for number, record in enumerate(records):
        if record.text:
            first.setdefault((groups.root(number), record.text), number)
    heads = sorted(first.values())
    if not heads:
        return
    signatures = read_signatures(records[number].signature for number in heads)
    pairs = []
    for one, other in candidate_pairs(signatures):
        score = similarity(signatures[one], signatures[other])
        if score >= _MIN_SIMILARITY:
            pairs.append((-score, heads[one], heads[other]))
    for negative_score, one, other in sorted(pairs):
        groups.join(
            one,
            other,
            f"similarity {-negative_score:.2f}",
            guarded=True,
            is_same_text=-negative_score >= _SAME_SIMILARITY,
        )


def _with_company(fingerprints: Iterable[Fingerprint]) -> list[Fingerprint]:
    """Return the records that share a source, all words or a MinHash band with another record.

    The rest have no duplicates.
    """
    # An iterator gives its records only once.
    if iter(fingerprints) is fingerprints:
        fingerprints = list(fingerprints)
    keys = array("Q")
    owners = array("Q")
    bands: list[NDArray[np.uint32]] = []
    num_records = 0
    for batch in cut_pieces(fingerprints, _FINGERPRINTS_AT_ONCE):
        for number, record in enumerate(batch, num_records):
            names = list(record.sources)
            if record.text:
                names.append(f"text {record.text}")
            names += [f"program {program}" for program in record.programs]
            for given, out in _telling_answers(record).items():
                names.append(f"test {given} {out}")
            keys.extend(map(hash_text, names))
            owners.extend([number] * len(names))
        num_records += len(batch)
        bands.append(band_keys(read_signatures(record.signature for record in batch)))
    if not bands:
        return []
    has_company = np.zeros(num_records, dtype=np.bool_)
    # Numbers in arrays: of a large set most records have nothing in common.
    is_shared = are_duplicated(np.array(keys))
    has_company[np.array(owners)[is_shared]] = True
    # Band by band, since equal keys of two different bands mean nothing.
    for band in np.concatenate(bands).T:
        has_company |= are_duplicated(band)
    records = zip(fingerprints, has_company.tolist(), strict=True)
    return [record for record, is_kept in records if is_kept]


def _contradict(
    one: Mapping[Key, Value],
    other: Mapping[Key, Value],
) -> bool:
    """Whether two mappings have another value for the same key."""
    return any(one.get(key, value) != value for key, value in other.items())


class _GroupFacts(NamedTuple):
    """What is known of a group of records."""

    sources: set[str]
    platforms: set[str]
    bounds: dict[str, Bound]
    """By the name of the variable."""
    answers: dict[int, int]

    @classmethod
    def of(cls, record: Fingerprint) -> _GroupFacts:
        bounds = {bound.name: bound for bound in record.bounds}
        platforms = set(map(_platform_of, record.sources))
        return cls(set(record.sources), platforms, bounds, dict(record.answers))

    def contradicts(self, other: _GroupFacts, *, is_same_text: bool = False) -> bool:
        """Whether another group cannot hold the same problem.

        It has other bounds, another answer to the same input, or another name on the same platform.
        Contests of two divisions share problems: the same text in both is one.
        """
        if _contradict(self.bounds, other.bounds):
            return True
        if _contradict(self.answers, other.answers):
            return True
        new_sources = other.sources - self.sources
        clashing = [key for key in new_sources if _platform_of(key) in self.platforms]
        if not is_same_text:
            return bool(clashing)
        contests = {contest_of(key) for key in self.sources}
        return any(contest_of(key) in contests for key in clashing)

    def add(self, other: _GroupFacts) -> None:
        """Add what is known of another group, without replacing facts of this group."""
        self.sources.update(other.sources)
        self.platforms.update(other.platforms)
        for name, bound in other.bounds.items():
            self.bounds.setdefault(name, bound)
        for test_input, answer in other.answers.items():
            self.answers.setdefault(test_input, answer)


def _platform_of(source: str) -> str:
    return source.partition(":")[0]


class _Groups:
    """Union-find; the root of a group is its lowest number, the best record."""

    def __init__(self, records: Sequence[Fingerprint]) -> None:
        self._records = records
        self._parents = list(range(len(records)))
        self._reasons: dict[int, str] = {}
        """Why each record was joined to a better one."""
        # Each group's own, so that joining adds to them: copies would take as long as the square of
        # a group's size.
        self._facts = [_GroupFacts.of(record) for record in records]

    def root(self, number: int) -> int:
        """Return the best record of a record's group."""
        while self._parents[number] != number:
            # Each step halves the way for the next search.
            grandparent = self._parents[self._parents[number]]
            self._parents[number] = grandparent
            number = grandparent
        return number

    def join(
        self,
        one: int,
        other: int,
        reason: str,
        *,
        guarded: bool = False,
        is_same_text: bool = False,
    ) -> bool:
        """Join the groups of two records; return False if they stay apart.

        With `guarded` they stay apart if anything says that they are different problems. Of one
        text (`is_same_text`) the addresses of two contests are no such thing.
        """
        low, high = sorted((self.root(one), self.root(other)))
        if low == high:
            return True
        facts = self._facts[low]
        if guarded and facts.contradicts(self._facts[high], is_same_text=is_same_text):
            return False
        self._parents[high] = low
        self._facts[low].add(self._facts[high])
        self._reasons[high] = reason
        return True

    def list_duplicates(self) -> dict[str, dict[str, str]]:
        """Return the reason for each duplicate, by the id of the record that stays."""
        duplicates: dict[str, dict[str, str]] = defaultdict(dict)
        for number in sorted(self._reasons, key=lambda number: self._records[number].id):
            kept = self._records[self.root(number)]
            duplicate = self._records[number]
            duplicates[kept.id][duplicate.id] = self._reasons[number]
        return duplicates

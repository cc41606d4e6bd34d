"""Duplicates over the whole set: by source, by text, by MinHash. The best record stays and takes the others' tests.

    describe -> find_duplicates -> merge          each record -> little of each -> groups -> one record a group

What is decided does not depend on the order of the records.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from pydantic import ConfigDict, Field

from microcoder.config import Config
from microcoder.dataset.filter.fingerprints import hash_text, source_keys, words
from microcoder.dataset.filter.minhash import (
    are_duplicated,
    band_keys,
    candidate_pairs,
    read_signatures,
    sign,
    similarity,
)
from microcoder.dataset.process.completeness import Bound, parse_bounds
from microcoder.formats.candidates import Candidate
from microcoder.pieces import cut_pieces

Key = TypeVar("Key")
Value = TypeVar("Value")

_MAX_SAME_TEXT = 8
"""Earlier records of the same words that one is compared with."""
_LOOKS_AT_ONCE = 4096
_MAX_TESTS = 32
"""First tests whose answers are compared; the statement's examples are among them as a rule."""
_MAX_CHARACTERS = 1_000_000
"""Of such a test: the words of a longer one would take gigabytes."""


class DuplicateSettings(Config):
    """When two records are one problem."""

    gram_length: int = Field(default=5, ge=1)
    """Words in a run (the usual choice of datatrove)."""
    num_permutations: int = Field(default=125, ge=8)
    """Length of a signature; `num_bands` divides it (our choice: 0.045 standard error at most)."""
    num_bands: int = Field(default=25, ge=1)
    """Bands of 5 find a pair of similarity 0.75 in 99.9 % of cases (our choice)."""
    min_similarity: float = Field(default=0.75, gt=0, le=1)
    """Estimated Jaccard similarity from which two statements are one (our choice, measured in docs/dataset.md)."""
    min_words: int = Field(default=12, ge=1)
    """Shorter statements are compared by source only: too many problems read "see the picture" (our choice)."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What must be known of a record to find its duplicates: 1 KB as a rule."""

    __pydantic_config__: ClassVar = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    id: str
    rank: tuple[int, ...]
    """Which of several to keep: the lowest."""
    sources: frozenset[str]
    text: str
    """Digest of the words; empty for a statement too short to compare."""
    signature: bytes
    """Of `sign`."""
    bounds: tuple[Bound, ...]
    """With powers flat, as sources that lose superscripts have them: 105 for 10^5."""
    answers: dict[int, int]
    """Digest of each test's output by that of its input; empty where several answers are right."""


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Records that are one problem."""

    kept: str
    dropped: tuple[str, ...]
    """Ids, sorted."""
    why: dict[str, str]
    """For each dropped id how it was found: `source`, `text` or `similarity 0.87`."""


def describe(candidates: Sequence[Candidate], settings: DuplicateSettings | None = None) -> list[Fingerprint]:
    """Return one fingerprint per record; shard by shard or all at once, the result is the same."""
    settings = settings or DuplicateSettings()
    texts = [candidate.statement or candidate.statement_found for candidate in candidates]
    tokens = [words(text) for text in texts]
    signatures = sign(
        tokens, num_permutations=settings.num_permutations, gram_length=settings.gram_length, seed=settings.seed
    )
    found = []
    for candidate, text, said, signature in zip(candidates, texts, tokens, signatures, strict=True):
        found.append(
            Fingerprint(
                id=candidate.id,
                rank=_rank(candidate),
                sources=source_keys(candidate),
                text=_digest(" ".join(said)) if len(said) >= settings.min_words else "",
                signature=signature.tobytes(),
                bounds=tuple(Bound(name, _flat(low), _flat(high)) for name, low, high in parse_bounds(text)),
                answers=_answers(candidate),
            )
        )
    return found


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _flat(value: float) -> float:
    for base, least in ((10, 2), (2, 5)):
        power = round(math.log(abs(value), base)) if abs(value) >= base**least else 0
        if power and abs(value) == base**power:
            return math.copysign(float(f"{base}{power}"), value)
    return value


def _answers(candidate: Candidate) -> dict[int, int]:
    if candidate.checker.type in ("program", "unordered") or "many_answers" in candidate.flags:
        return {}
    tests = [test for test in candidate.tests[:_MAX_TESTS] if len(test.input) + len(test.output) <= _MAX_CHARACTERS]
    return {hash_text(test.input.strip()): hash_text(" ".join(test.output.split())) for test in tests}


def _rank(candidate: Candidate) -> tuple[int, ...]:
    """Lower is better: it can be judged, nothing stands in its way, it is proven, it is free, it is the original."""
    return (
        0 if candidate.tests else 1,
        len(candidate.flags),
        0 if any(solution.known == "accepted" for solution in candidate.solutions) else 1,
        0 if candidate.licence else 1,
        0 if candidate.natural_language in ("", "en") else 1,
        0 if candidate.checker.type == "program" else 1,
        -len(candidate.tests),
        0 if candidate.date else 1,
        -len(candidate.statement or candidate.statement_found),
    )


def find_duplicates(looks: Iterable[Fingerprint], settings: DuplicateSettings | None = None) -> list[DuplicateGroup]:
    """Return the groups of more than one record, sorted by the id that is kept.

    Two records are one problem when they have the same source; or the same words, or words similar enough, and
    nothing says otherwise: another problem of the same platform, other bounds, another answer to the same input.
    Similar pairs are joined from the most similar down, and only while nothing in the two groups says otherwise.

    Args:
        looks: one per record, gone through twice; those that have nothing in common with another are not held, so
            they may come from disk.
        settings: what is similar.
    """
    settings = settings or DuplicateSettings()
    records = sorted(_with_company(looks, settings), key=lambda look: (look.rank, look.id, look.text))
    groups = _Groups(records)
    by_source: dict[str, list[int]] = defaultdict(list)
    by_text: dict[str, list[int]] = defaultdict(list)
    for number, record in enumerate(records):
        for key in sorted(record.sources):
            by_source[key].append(number)
        if record.text:
            by_text[record.text].append(number)
    for members in by_source.values():
        for number in members[1:]:
            groups.join(members[0], number, "source")
    for members in by_text.values():
        for number in members[1:]:
            for earlier in members[:_MAX_SAME_TEXT]:
                if earlier >= number or groups.join(earlier, number, "text", guarded=True):
                    break
    # One of each text in each group: a translation joined by its source still finds its own kind.
    first: dict[tuple[int, str], int] = {}
    for number, record in enumerate(records):
        if record.text:
            first.setdefault((groups.root(number), record.text), number)
    heads = sorted(first.values())
    if heads:
        signatures = read_signatures(records[number].signature for number in heads)
        found = [
            (similarity(signatures[a], signatures[b]), heads[a], heads[b])
            for a, b in candidate_pairs(signatures, num_bands=settings.num_bands)
        ]
        for score, a, b in sorted(found, key=lambda pair: (-pair[0], pair[1], pair[2])):
            if score >= settings.min_similarity:
                groups.join(a, b, f"similarity {score:.2f}", guarded=True)
    return groups.found()


def _with_company(looks: Iterable[Fingerprint], settings: DuplicateSettings) -> list[Fingerprint]:
    """Return the records that share a source, their words or a band with another: no other can be a duplicate."""
    if iter(looks) is looks:
        looks = list(looks)
    keys, owners, bands = array("Q"), array("Q"), []
    for batch in cut_pieces(looks, _LOOKS_AT_ONCE):
        start = sum(map(len, bands))
        for number, look in enumerate(batch, start):
            of_look = [*look.sources, *([f"text {look.text}"] if look.text else [])]
            keys.extend(map(hash_text, of_look))
            owners.extend([number] * len(of_look))
        signatures = read_signatures(look.signature for look in batch)
        bands.append(band_keys(signatures, num_bands=settings.num_bands))
    wanted = np.zeros(sum(map(len, bands)), dtype=np.bool_)
    wanted[np.array(owners)[are_duplicated(np.array(keys))]] = True
    for band in range(settings.num_bands if bands else 0):
        wanted |= are_duplicated(np.concatenate([of_batch[:, band] for of_batch in bands]))
    return [look for look, is_wanted in zip(looks, wanted.tolist(), strict=True) if is_wanted]


def _contradict(one: Mapping[Key, Value], other: Mapping[Key, Value]) -> bool:
    return any(one.get(key, value) != value for key, value in other.items())


class _Groups:
    """Union-find; the lowest number, which is the best record, is the root and holds what is known of its group."""

    def __init__(self, records: Sequence[Fingerprint]) -> None:
        self._records = records
        self._parents = list(range(len(records)))
        self._why: dict[int, str] = {}
        self._sources = [record.sources for record in records]
        self._bounds = [{bound.name: bound for bound in record.bounds} for record in records]
        self._answers = [record.answers for record in records]

    def root(self, number: int) -> int:
        while self._parents[number] != number:
            self._parents[number] = number = self._parents[self._parents[number]]
        return number

    def join(self, one: int, other: int, why: str, *, guarded: bool = False) -> bool:
        low, high = sorted((self.root(one), self.root(other)))
        if low == high:
            return True
        if guarded and self._are_told_apart(low, high):
            return False
        self._parents[high] = low
        self._sources[low] |= self._sources[high]
        self._bounds[low] = self._bounds[high] | self._bounds[low]
        self._answers[low] = self._answers[high] | self._answers[low]
        self._why[high] = why
        return True

    def _are_told_apart(self, low: int, high: int) -> bool:
        """Other bounds, another answer to the same input, or another name on the same platform."""
        if _contradict(self._bounds[low], self._bounds[high]) or _contradict(self._answers[low], self._answers[high]):
            return True
        names: dict[str, str] = dict(key.split(":", 1) for key in sorted(self._sources[low]))  # type: ignore[misc]
        return any(
            platform in names and f"{platform}:{name}" not in self._sources[low]
            for platform, name in (key.split(":", 1) for key in self._sources[high])
        )

    def found(self) -> list[DuplicateGroup]:
        members: dict[int, list[int]] = defaultdict(list)
        for number in range(len(self._records)):
            if (root := self.root(number)) != number:
                members[root].append(number)
        groups = [
            DuplicateGroup(
                kept=self._records[root].id,
                dropped=tuple(sorted(self._records[number].id for number in dropped)),
                why={self._records[number].id: self._why.get(number, "text") for number in dropped},
            )
            for root, dropped in members.items()
        ]
        return sorted(groups, key=lambda group: (group.kept, group.dropped))

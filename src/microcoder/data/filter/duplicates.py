"""Finds duplicates in the whole set by source, text and MinHash. The best record stays and takes the others' tests.

    describe -> find_duplicates -> merge          each record -> little of each -> groups -> one record a group

The result does not depend on the order of the records.

`sign` computes the MinHash signatures of many texts at once with numpy, the same bits on every machine.

`merge` makes one record of several records of one problem.
"""

import hashlib
import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from microcoder.data.clean.sections import Bound, parse_bounds
from microcoder.data.filter.contamination import gram_hashes, hash_text, source_keys, words
from microcoder.data.filter.rules import strictest_licence
from microcoder.data.formats.candidates import Candidate, Origin
from microcoder.judge.core.files import cut_pieces
from microcoder.judge.core.types import Checker

Signature = NDArray[np.uint32]
"""MinHash signature: one value per permutation."""
_GRAM_LENGTH = 5
"""Words in a run, the unit of the similarity of texts (the usual choice of datatrove)."""
_NUM_PERMUTATIONS, _NUM_BANDS = 125, 25
"""Length of a signature, for a standard error of 0.045 at most; bands of 5 find a pair of similarity 0.75 in 99.9 % of
cases."""
_LARGE_BUCKET = 64


def sign(texts: Sequence[Sequence[str]]) -> NDArray[np.uint32]:
    """Return one signature per text of words, shape (texts, permutations); a text shorter than one run is one run.

    Two signatures agree in a share of places that estimates the Jaccard similarity of the texts' sets of runs, with
    a standard error of at most 1 / (2 * sqrt(permutations)).
    """
    signatures = np.empty((len(texts), _NUM_PERMUTATIONS), dtype=np.uint32)
    factors, offsets = _permutations(_NUM_PERMUTATIONS, 1)
    for place, tokens in enumerate(texts):
        grams = gram_hashes(tokens or [""], min(_GRAM_LENGTH, len(tokens) or 1))
        permuted = (factors[:, None] * grams + offsets[:, None]) >> np.uint64(32)
        signatures[place] = permuted.min(axis=1)
    return signatures


def read_signatures(packed: Iterable[bytes]) -> NDArray[np.uint32]:
    """Return signatures that were packed by `tobytes`, shape (texts, permutations)."""
    rows = list(packed)
    return np.frombuffer(b"".join(rows), dtype=np.uint32).reshape(len(rows), -1)


@lru_cache(maxsize=8)
def _permutations(num: int, seed: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return odd factors and offsets for multiply-shift hashing, from a hash of the seed, independent of
    any library's generator."""
    raw = b"".join(
        hashlib.sha256(f"minhash/{seed}/{number}".encode()).digest()[:16] for number in range(num)
    )
    drawn = np.frombuffer(raw, dtype="<u8").reshape(num, 2).astype(np.uint64)
    return drawn[:, 0] | np.uint64(1), drawn[:, 1]


def band_keys(signatures: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return a short hash of each band, shape (texts, bands): rows that agree in a band agree in its key."""
    factors, _ = _permutations(_NUM_PERMUTATIONS // _NUM_BANDS, 0)
    banded = signatures.reshape(len(signatures), _NUM_BANDS, -1)
    return (
        (banded.astype(np.uint64) * factors).sum(axis=2, dtype=np.uint64) >> np.uint64(32)
    ).astype(np.uint32)


def are_duplicated(keys: NDArray[np.uint32] | NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each key whether it occurs more than once."""
    _, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[places] > 1


def candidate_pairs(signatures: NDArray[np.uint32]) -> set[tuple[int, int]]:
    """Return pairs of rows, lower first, that agree in at least one band.

    In a bucket of more than `_LARGE_BUCKET` each row is paired with its first and with its neighbour only.
    """
    pairs: set[tuple[int, int]] = set()
    for keys in band_keys(signatures).T:
        order = np.argsort(keys, kind="stable")
        starts = np.concatenate(
            [[0], np.nonzero(keys[order][1:] != keys[order][:-1])[0] + 1, [len(order)]]
        )
        # Nearly every row is alone in its bucket: those with company are looked for by numpy.
        for bucket in np.nonzero(np.diff(starts) > 1)[0].tolist():
            members = sorted(order[starts[bucket] : starts[bucket + 1]].tolist())
            if len(members) <= _LARGE_BUCKET:
                pairs.update((a, b) for i, a in enumerate(members) for b in members[i + 1 :])
            else:
                pairs.update((members[0], other) for other in members[1:])
                pairs.update(pairwise(members))
    return pairs


Key = TypeVar("Key")
Value = TypeVar("Value")

_MAX_SAME_TEXT = 8
"""At most so many earlier records with the same words are compared with a record."""
_LOOKS_AT_ONCE = 4096
_MAX_TESTS = 32
"""At most so many tests of a record, the first, have their answers compared: as a rule the examples are among them."""
_MAX_CHARACTERS = 1_000_000
"""Characters of a test; longer ones are not compared, since their words would take gigabytes."""
_MIN_SIMILARITY = 0.75
"""Estimated Jaccard similarity from which two statements are one (measured in docs/dataset.md)."""
_MIN_WORDS = 12
"""Fewest words of a statement that is compared by its text: too many problems read "see the picture"."""


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
    """Ranges in the statement, with powers as sources that lose superscripts have them: 105 for 10^5."""
    answers: dict[int, int]
    """Digest of each test's output by that of its input; empty where several answers are right."""


def describe(candidates: Sequence[Candidate]) -> list[Fingerprint]:
    """Return one fingerprint per record; shard by shard or all at once, the result is the same."""
    texts = [candidate.statement for candidate in candidates]
    tokens, found = [words(text) for text in texts], []
    for candidate, text, said, signature in zip(
        candidates, texts, tokens, sign(tokens), strict=True
    ):
        digest = hashlib.blake2b(
            " ".join(said).encode("utf-8", "replace"), digest_size=12
        ).hexdigest()
        found.append(
            Fingerprint(
                id=candidate.id,
                rank=_rank(candidate),
                sources=source_keys(candidate),
                text=digest if len(said) >= _MIN_WORDS else "",
                signature=signature.tobytes(),
                bounds=tuple(
                    Bound(name, _flat(low), _flat(high)) for name, low, high in parse_bounds(text)
                ),
                answers=_answers(candidate),
            )
        )
    return found


def _flat(value: float) -> float:
    for base, least in ((10, 2), (2, 5)):
        power = round(math.log(abs(value), base)) if abs(value) >= base**least else 0
        if power and abs(value) == base**power:
            return math.copysign(float(f"{base}{power}"), value)
    return value


def _answers(candidate: Candidate) -> dict[int, int]:
    if candidate.checker.type in ("program", "unordered") or "many_answers" in candidate.flags:
        return {}
    tests = [
        test
        for test in candidate.tests[:_MAX_TESTS]
        if len(test.input) + len(test.output) <= _MAX_CHARACTERS
    ]
    return {
        hash_text(test.input.strip()): hash_text(" ".join(test.output.split())) for test in tests
    }


def _rank(candidate: Candidate) -> tuple[int, ...]:
    """Return a rank, lower is better: by tests, few flags, an accepted solution, a licence, English, a checker, ..."""
    return (
        0 if candidate.tests else 1,
        len(candidate.flags),
        0 if any(solution.known == "accepted" for solution in candidate.solutions) else 1,
        0 if candidate.licence else 1,
        0 if candidate.natural_language in ("", "en") else 1,
        0 if candidate.checker.type == "program" else 1,
        -len(candidate.tests),
        0 if candidate.date else 1,
        -len(candidate.statement),
    )


def find_duplicates(looks: Iterable[Fingerprint]) -> dict[str, dict[str, str]]:
    """Return {id of a kept record: {id of a duplicate: how it was found}}, for records that have duplicates.

    How is `source`, `text` or `similarity 0.87`.

    Two records are one problem when they have the same source; or the same words, or words similar enough, and
    nothing says otherwise: another problem of the same platform, other bounds, another answer to the same input.
    Similar pairs are joined from the most similar down, and only while nothing in the two groups says otherwise.

    Args:
        looks: one per record, iterated twice; those that share nothing with another are not kept in memory, so
            they may come from disk.
    """
    records = sorted(_with_company(looks), key=lambda look: (look.rank, look.id, look.text))
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
        # The estimated Jaccard similarity of two texts.
        found = [
            (float((signatures[a] == signatures[b]).mean()), heads[a], heads[b])
            for a, b in candidate_pairs(signatures)
        ]
        for score, a, b in sorted(found, key=lambda pair: (-pair[0], pair[1], pair[2])):
            if score >= _MIN_SIMILARITY:
                groups.join(a, b, f"similarity {score:.2f}", guarded=True)
    return groups.found()


def _with_company(looks: Iterable[Fingerprint]) -> list[Fingerprint]:
    """Return the records that share a source, all words or a MinHash band with another: others have no duplicates."""
    if iter(looks) is looks:
        looks = list(looks)
    keys, owners, bands = array("Q"), array("Q"), []
    for batch in cut_pieces(looks, _LOOKS_AT_ONCE):
        start = sum(map(len, bands))
        for number, look in enumerate(batch, start):
            of_look = [*look.sources, *([f"text {look.text}"] if look.text else [])]
            keys.extend(map(hash_text, of_look))
            owners.extend([number] * len(of_look))
        bands.append(band_keys(read_signatures(look.signature for look in batch)))
    wanted = np.zeros(sum(map(len, bands)), dtype=np.bool_)
    wanted[np.array(owners)[are_duplicated(np.array(keys))]] = True
    for of_band in np.concatenate(bands).T if bands else ():
        wanted |= are_duplicated(of_band)
    return [look for look, is_wanted in zip(looks, wanted.tolist(), strict=True) if is_wanted]


def _contradict(one: Mapping[Key, Value], other: Mapping[Key, Value]) -> bool:
    return any(one.get(key, value) != value for key, value in other.items())


class _Groups:
    """Union-find; the root of a group is its lowest number, the best record."""

    def __init__(self, records: Sequence[Fingerprint]) -> None:
        self._records = records
        self._parents = list(range(len(records)))
        self._why: dict[int, str] = {}
        # Each group's own, so that joining adds to them: copies would take as long as the square of a group's size.
        self._sources = [set(record.sources) for record in records]
        self._platforms = [{key.partition(":")[0] for key in record.sources} for record in records]
        self._bounds = [{bound.name: bound for bound in record.bounds} for record in records]
        self._answers = [dict(record.answers) for record in records]

    def root(self, number: int) -> int:
        while self._parents[number] != number:
            self._parents[number] = number = self._parents[self._parents[number]]
        return number

    def join(self, one: int, other: int, why: str, *, guarded: bool = False) -> bool:
        low, high = sorted((self.root(one), self.root(other)))
        if low == high:
            return True
        # Other bounds, another answer to the same input, or another name on the same platform.
        if guarded and (
            _contradict(self._bounds[low], self._bounds[high])
            or _contradict(self._answers[low], self._answers[high])
            or any(
                key.partition(":")[0] in self._platforms[low]
                for key in self._sources[high] - self._sources[low]
            )
        ):
            return False
        self._parents[high] = low
        self._sources[low] |= self._sources[high]
        self._platforms[low] |= self._platforms[high]
        for name, bound in self._bounds[high].items():
            self._bounds[low].setdefault(name, bound)
        for test_input, answer in self._answers[high].items():
            self._answers[low].setdefault(test_input, answer)
        self._why[high] = why
        return True

    def found(self) -> dict[str, dict[str, str]]:
        groups: dict[str, dict[str, str]] = defaultdict(dict)
        for number, why in sorted(self._why.items(), key=lambda pair: self._records[pair[0]].id):
            groups[self._records[self.root(number)].id][self._records[number].id] = why
        return groups


STEP = "merge_duplicates/1"
_FILLED = (
    "url",
    "date",
    "platform",
    "title",
    "platform_difficulty",
    "time_limit_seconds",
    "memory_limit_mib",
)


def merge(kept: Candidate, others: Sequence[Candidate]) -> Candidate:
    """Return the kept record with the others' tests, solutions and tags, and the fields that it lacks.

    A test is added where its input is new and it is called in the same way (stdin, or the same function); a checker
    comes with the tests where the kept record only compares. The licence is the strictest of those records that a
    test, a solution or the checker was taken from; facts such as a title or a date have none.
    """
    others = sorted(others, key=lambda other: other.id)
    alike = [other for other in others if other.fn_name == kept.fn_name and other.call == kept.call]
    num_left = sum(len(other.tests) for other in others) - sum(len(other.tests) for other in alike)
    tests = list(zip(kept.tests, _groups_of(kept), _origins_of(kept), strict=True))
    solutions, checker, licences = list(kept.solutions), kept.checker, [kept.licence]
    inputs = {test.input.rstrip() for test in kept.tests}
    programs = {(solution.language, solution.code) for solution in solutions}
    for other in alike:
        num_known = len(inputs) + len(programs)
        for test, group, origin in zip(
            other.tests, _groups_of(other), _origins_of(other), strict=True
        ):
            if test.input.rstrip() not in inputs:
                inputs.add(test.input.rstrip())
                tests.append((test, group, origin))
        for solution in other.solutions:
            if (solution.language, solution.code) not in programs:
                programs.add((solution.language, solution.code))
                solutions.append(solution)
        is_checker_taken = checker == Checker() != other.checker
        checker = other.checker if is_checker_taken else checker
        if is_checker_taken or len(inputs) + len(programs) > num_known:
            licences.append(other.licence)
    detail = f"merged {len(others)}" + (
        f"; {num_left} tests called in another way" if num_left else ""
    )
    groups = tuple(group for _, group, _ in tests)
    is_same = len(tests) == len(kept.tests)
    said = {name: [getattr(one, name) for one in (kept, *others)] for name in _FILLED}
    filled = {name: next(filter(None, values), values[0]) for name, values in said.items()}
    return kept.change(
        "filter",
        STEP,
        detail,
        tests=tuple(test for test, _, _ in tests),
        groups=groups if any(groups) else (),
        origins=kept.origins if is_same else tuple(origin for _, _, origin in tests),
        licence=strictest_licence(licences),
        checker=checker,
        solutions=tuple(solutions),
        tags=_union(kept.tags, *(other.tags for other in others)),
        pass_rates=_union(kept.pass_rates, *(other.pass_rates for other in others)),
        merged=_union(kept.merged, *((other.id, *other.merged) for other in others)),
        **filled,
    )


def _union(first: Sequence[str], *more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*first, *(value for values in more for value in values)]))


def _groups_of(candidate: Candidate) -> tuple[str, ...]:
    return candidate.groups or ("",) * len(candidate.tests)


def _origins_of(candidate: Candidate) -> Sequence[Origin]:
    origins = candidate.origins or [Origin(kind="given")] * len(candidate.tests)
    own = {"source": candidate.id, "licence": candidate.licence}
    return [origin if origin.source else origin.model_copy(update=own) for origin in origins]

"""MinHash: short signatures of texts, to find similar texts without comparing all pairs.

They have the same bits on every machine: they depend on no library's random generator.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from microcoder.data.filter.texts import gram_hashes

Signature = NDArray[np.uint32]
"""MinHash signature: one value per permutation."""
Signatures = NDArray[np.uint32]
"""Signatures of several texts, shape (texts, permutations)."""
_GRAM_LENGTH = 5
"""Words in a run, the unit of the similarity of texts (the usual choice of datatrove)."""
_NUM_PERMUTATIONS = 125
"""Length of a signature, for a standard error of 0.045 at most."""
_NUM_BANDS = 25
"""Parts of a signature: bands of 5 find a pair of similarity 0.75 in 99.9 % of cases."""
_LARGE_BUCKET = 64
"""Rows with one band in common of which no longer all pairs are compared."""
_HIGH_BITS = np.uint64(32)
"""Shift that keeps the upper half of a product, its well mixed bits."""


def sign(texts: Sequence[Sequence[str]]) -> Signatures:
    """Return one signature per text of words, shape (texts, permutations).

    A text shorter than a run counts as one run. The share of places in which two signatures agree
    estimates the Jaccard similarity of the texts' sets of runs. Its standard error is at most 1 /
    (2 * sqrt(permutations)).
    """
    shape = (len(texts), _NUM_PERMUTATIONS)
    signatures = np.empty(shape, dtype=np.uint32)
    factors, offsets = _permutations(_NUM_PERMUTATIONS, 1)
    for place, tokens in enumerate(texts):
        # A short text is one run; an empty one is a run of one empty word.
        length = min(_GRAM_LENGTH, len(tokens) or 1)
        grams = gram_hashes(tokens or [""], length)
        # Products wrap around at 64 bits, as multiply-shift hashing wants them to.
        permuted = (factors[:, None] * grams + offsets[:, None]) >> _HIGH_BITS
        signatures[place] = permuted.min(axis=1)
    return signatures


def read_signatures(packed: Iterable[bytes]) -> Signatures:
    """Return signatures that were packed by `tobytes`, shape (texts, permutations)."""
    rows = list(packed)
    numbers = np.frombuffer(b"".join(rows), dtype=np.uint32)
    return numbers.reshape(len(rows), -1)


@lru_cache(maxsize=8)
def _permutations(
    num: int,
    seed: int,
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return odd factors and offsets for multiply-shift hashing, from a hash of the seed."""
    drawn = []
    for number in range(num):
        digest = hashlib.sha256(f"minhash/{seed}/{number}".encode()).digest()
        drawn.append(digest[:16])
    # Little-endian on every machine, for the same numbers.
    numbers = np.frombuffer(b"".join(drawn), dtype="<u8")
    numbers = numbers.reshape(num, 2).astype(np.uint64)
    factors = numbers[:, 0] | np.uint64(1)
    offsets = numbers[:, 1]
    return factors, offsets


def band_keys(signatures: Signatures) -> NDArray[np.uint32]:
    """Return a short hash of each band, shape (texts, bands).

    Rows that agree in a band agree in its key.
    """
    # Another seed than that of the permutations.
    factors, _ = _permutations(_NUM_PERMUTATIONS // _NUM_BANDS, 0)
    banded = signatures.reshape(
        len(signatures),
        _NUM_BANDS,
        -1,
    ).astype(np.uint64)
    mixed = (banded * factors).sum(
        axis=2,
        dtype=np.uint64,
    )
    return (mixed >> _HIGH_BITS).astype(np.uint32)


def are_duplicated(keys: NDArray[np.uint32] | NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each key whether it occurs more than once."""
    _, places, counts = np.unique(
        keys,
        return_inverse=True,
        return_counts=True,
    )
    return counts[places] > 1


def candidate_pairs(signatures: Signatures) -> set[tuple[int, int]]:
    """Return pairs of rows, lower first, that agree in at least one band.

    In a bucket of more than `_LARGE_BUCKET` rows, a row is paired only with the first and with its
    neighbour.
    """
    pairs: set[tuple[int, int]] = set()
    for keys in band_keys(signatures).T:
        for members in _find_buckets(keys):
            if len(members) <= _LARGE_BUCKET:
                pairs.update(combinations(members, 2))
                continue
            first, *others = members
            pairs.update((first, other) for other in others)
            pairs.update(pairwise(members))
    return pairs


def _find_buckets(keys: NDArray[np.uint32]) -> Iterator[list[int]]:
    """Yield the rows, in order, of each key that several rows have."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    is_new = ordered[1:] != ordered[:-1]
    later_starts = np.nonzero(is_new)[0] + 1
    starts = np.concatenate([[0], later_starts, [len(order)]])
    # Nearly every row is alone in its bucket: those with company are looked for by numpy.
    is_shared = np.diff(starts) > 1
    for bucket in np.nonzero(is_shared)[0].tolist():
        start = starts[bucket]
        end = starts[bucket + 1]
        yield sorted(order[start:end].tolist())


def similarity(first: Signature, second: Signature) -> float:
    """Return the estimated Jaccard similarity of two texts."""
    return float((first == second).mean())

"""MinHash of many texts at once: numpy over all their runs of words together, the same bits on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from microcoder.dataset.filter.fingerprints import gram_hashes

Signature = NDArray[np.uint32]
"""One value per permutation."""
_CHUNK_VALUES = 1 << 21


def sign(texts: Sequence[Sequence[str]], *, num_permutations: int, gram_length: int, seed: int) -> NDArray[np.uint32]:
    """Return one signature per text of words, shape (texts, permutations); a text shorter than one run is one run.

    Two signatures agree in a share of places that estimates the Jaccard similarity of the texts' sets of runs, with
    a standard error of at most 1 / (2 * sqrt(permutations)).
    """
    signatures = np.empty((len(texts), num_permutations), dtype=np.uint32)
    factors, offsets = _permutations(num_permutations, seed)
    start = 0
    while start < len(texts):
        grams: list[NDArray[np.uint64]] = []
        size = 0
        while start + len(grams) < len(texts) and (size < _CHUNK_VALUES // 16 or not grams):
            tokens = texts[start + len(grams)] or [""]
            grams.append(gram_hashes(tokens, min(gram_length, len(tokens))))
            size += len(grams[-1])
        flat = np.concatenate(grams)
        places = np.cumsum([0, *(len(found) for found in grams[:-1])])
        for number in range(num_permutations):
            permuted = ((flat * factors[number] + offsets[number]) >> np.uint64(32)).astype(np.uint32)
            signatures[start : start + len(grams), number] = np.minimum.reduceat(permuted, places)
        start += len(grams)
    return signatures


def read_signatures(packed: Iterable[bytes]) -> NDArray[np.uint32]:
    """Return signatures that were packed by `tobytes`, shape (texts, permutations)."""
    rows = list(packed)
    return np.frombuffer(b"".join(rows), dtype=np.uint32).reshape(len(rows), -1)


@lru_cache(maxsize=8)
def _permutations(num: int, seed: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Multiply-shift hashing: odd factors and offsets from a hash of the seed, independent of any
    library's generator."""
    raw = b"".join(hashlib.sha256(f"minhash/{seed}/{number}".encode()).digest()[:16] for number in range(num))
    drawn = np.frombuffer(raw, dtype="<u8").reshape(num, 2).astype(np.uint64)
    return drawn[:, 0] | np.uint64(1), drawn[:, 1]


def similarity(one: Signature, other: Signature) -> float:
    """Return the estimated Jaccard similarity of two texts."""
    return float((one == other).mean())


def band_keys(signatures: NDArray[np.uint32], *, num_bands: int) -> NDArray[np.uint32]:
    """Return a short hash of each band, shape (texts, bands): rows that agree in a band agree in its key."""
    rows_per_band = signatures.shape[1] // num_bands
    factors, _ = _permutations(rows_per_band, 0)
    banded = signatures[:, : num_bands * rows_per_band].reshape(len(signatures), num_bands, rows_per_band)
    return ((banded.astype(np.uint64) * factors).sum(axis=2, dtype=np.uint64) >> np.uint64(32)).astype(np.uint32)


def are_duplicated(keys: NDArray[np.uint32] | NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return for each key whether it occurs more than once."""
    order = np.argsort(keys, kind="stable")
    is_next = keys[order][1:] == keys[order][:-1]
    found = np.zeros(len(keys), dtype=np.bool_)
    found[order[1:][is_next]] = True
    found[order[:-1][is_next]] = True
    return found


def candidate_pairs(signatures: NDArray[np.uint32], *, num_bands: int, max_bucket: int = 64) -> set[tuple[int, int]]:
    """Return pairs of rows, lower first, that agree in all values of at least one band.

    In a bucket of more than `max_bucket` each row is paired with its first and with its neighbour only.
    """
    rows_per_band = signatures.shape[1] // num_bands
    pairs: set[tuple[int, int]] = set()
    for band in range(num_bands):
        values = np.ascontiguousarray(signatures[:, band * rows_per_band : (band + 1) * rows_per_band])
        keys = values.view(np.dtype((np.void, values.dtype.itemsize * rows_per_band))).ravel()
        order = np.argsort(keys, kind="stable")
        starts = np.concatenate([[0], np.nonzero(keys[order][1:] != keys[order][:-1])[0] + 1, [len(order)]])
        # Nearly every row is alone in its bucket: those with company are looked for by numpy.
        for bucket in np.nonzero(np.diff(starts) > 1)[0].tolist():
            members = sorted(order[starts[bucket] : starts[bucket + 1]].tolist())
            if len(members) <= max_bucket:
                pairs.update((a, b) for i, a in enumerate(members) for b in members[i + 1 :])
            else:
                pairs.update((members[0], other) for other in members[1:])
                pairs.update(pairwise(members))
    return pairs

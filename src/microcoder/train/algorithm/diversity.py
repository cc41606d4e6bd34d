"""Diversity of a group: unique 4-grams over all 4-grams of its responses (paper, section 3.2).

    D = | union over i of grams(o_i) |  /  sum over i of max(0, |o_i| - 3)

4-grams are of token ids, within one response. A response shorter than four tokens has none and changes nothing; a
long response weighs more than a short one, since 4-grams are pooled, not responses averaged. Counting is exact:
equal numbers stand for equal 4-grams, nothing is hashed.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NGRAM_TOKENS = 4
_KEY_BITS = 64

Keys = NDArray[np.uint64]


def measure_group_diversity(responses_G: Sequence[Sequence[int]]) -> float | None:
    """Return unique / total 4-grams over the token ids of one problem's responses, in (0, 1].

    None when no response has four tokens: there is no ratio to speak of.
    """
    long_enough = [tokens for tokens in responses_G if len(tokens) >= NGRAM_TOKENS]
    if not long_enough:
        return None
    # Through array: several times faster than numpy from a tuple.
    ranks, num_ranks = _rank(np.concatenate([np.array(array("q", tokens)) for tokens in long_enough]))
    keys = np.sort(_drop_seams(_pack(ranks, num_ranks), [len(tokens) for tokens in long_enough]))
    num_unique = 1 + int(np.count_nonzero(keys[1:] != keys[:-1]))
    return num_unique / len(keys)


def measure_diversity(groups_P: Sequence[Sequence[Sequence[int]]]) -> float | None:
    """Return the mean of the groups' diversities; groups without a 4-gram are left out, None when all are."""
    known = [d for d in map(measure_group_diversity, groups_P) if d is not None]
    return sum(known) / len(known) if known else None


def _rank(ids: NDArray[np.int64]) -> tuple[Keys, int]:
    """Number the distinct ids from 0, in ascending order; few distinct ids need few bits."""
    lowest = int(ids.min())
    span = int(ids.max()) - lowest + 1
    if span > 8 * len(ids) + 2**20:
        distinct, ranks = np.unique(ids, return_inverse=True)
        return ranks.astype(np.uint64), len(distinct)
    # A table over all ids between the extremes is faster than sorting, and a vocabulary's is small.
    is_used = np.zeros(span, dtype=bool)
    is_used[ids - lowest] = True
    rank_of = np.cumsum(is_used, dtype=np.uint64) - np.uint64(1)
    return rank_of[ids - lowest], int(rank_of[-1]) + 1


def _pack(ranks: Keys, num_ranks: int) -> Keys:
    """Return one number for each 4-gram of a sequence; different 4-grams have different numbers."""
    bits = max(1, (num_ranks - 1).bit_length())
    if NGRAM_TOKENS * bits > _KEY_BITS:
        # More than 65,536 distinct tokens: number the pairs first, then the pairs of pairs.
        pairs, num_pairs = _number(ranks[:-1] << np.uint64(_KEY_BITS // 2) | ranks[1:])
        return pairs[:-2] << np.uint64(max(1, num_pairs.bit_length())) | pairs[2:]
    keys = ranks[: len(ranks) - NGRAM_TOKENS + 1].copy()
    for offset in range(1, NGRAM_TOKENS):
        keys <<= np.uint64(bits)
        keys |= ranks[offset : len(ranks) - NGRAM_TOKENS + 1 + offset]
    return keys


def _number(values: Keys) -> tuple[Keys, int]:
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.uint64), len(distinct)


def _drop_seams(keys: Keys, lengths: Sequence[int]) -> Keys:
    """Leave out the 4-grams that lie across the end of one response and the start of the next."""
    if len(lengths) == 1:
        return keys
    ends = np.cumsum(lengths)
    parts = [keys[end - length : end - NGRAM_TOKENS + 1] for end, length in zip(ends.tolist(), lengths, strict=True)]
    return np.concatenate(parts)

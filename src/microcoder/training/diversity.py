"""Diversity of a group: unique 4-grams over all 4-grams of its responses (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

NGRAM_TOKENS = 4


def measure_group_diversity(responses_G: Sequence[Sequence[int]]) -> float | None:
    """Return unique / total 4-grams over the token ids of one problem's responses, in (0, 1].

    The 4-grams of all responses are pooled; a response shorter than four tokens has none. None when no response
    has any: there is no ratio to speak of.
    """
    unique: set[tuple[int, ...]] = set()
    total = 0
    for tokens in responses_G:
        columns = [tokens[offset:] for offset in range(NGRAM_TOKENS)]
        grams = list(zip(*columns, strict=False))
        unique.update(grams)
        total += len(grams)
    return len(unique) / total if total else None


def measure_diversity(groups_P: Sequence[Sequence[Sequence[int]]]) -> float | None:
    """Return the mean of the groups' diversities; groups without a 4-gram are left out, None when all are."""
    known = [d for d in map(measure_group_diversity, groups_P) if d is not None]
    return sum(known) / len(known) if known else None

"""Diversity of a group: unique 4-grams over all 4-grams of its responses (paper, section 3.2).

    D = | union over i of grams(o_i) |  /  sum over i of max(0, |o_i| - 3)

4-grams are of token ids, within one response. A response shorter than four tokens has none and changes nothing; a
long response weighs more than a short one, since 4-grams are pooled, not responses averaged. Plain sets count
a step of 64 x 8 responses of 8,192 tokens in about a second of one core.
"""

from __future__ import annotations

from collections.abc import Sequence


def measure_group_diversity(responses_G: Sequence[Sequence[int]]) -> float | None:
    """Return unique / total 4-grams over the token ids of one problem's responses, in (0, 1].

    None when no response has four tokens: there is no ratio to speak of.
    """
    grams = [gram for tokens in responses_G for gram in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False)]
    return len(set(grams)) / len(grams) if grams else None


def measure_diversity(groups_P: Sequence[Sequence[Sequence[int]]]) -> float | None:
    """Return the mean of the groups' diversities; groups without a 4-gram are left out, None when all are."""
    known = [d for d in map(measure_group_diversity, groups_P) if d is not None]
    return sum(known) / len(known) if known else None

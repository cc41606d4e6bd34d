"""Cuts texts into words and into what a translation leaves unchanged, and hashes runs of these.

Two texts are compared by the runs of words that both have. A run is hashed to 64 bits, the same on
every machine.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
"""Hashes of runs."""

_WORD = re.compile(r"[^\W\d_]+|\d+|[<>=+*/%^-]")
_TEX = re.compile(
    r"\\(?:leq?|geq?|neq?|times|cdot|ldots|dots|texttt|textbf|text|mathrm|left|right)\b"
)
"""Commands of TeX that are no words of a statement."""
_SIGNS = {"\\le": "<=", "\\leq": "<=", "\\ge": ">=", "\\geq": ">="}
"""Commands of TeX that stand for an operator."""
# `**bold**`, but not `10**9`.
_BOLD = re.compile(r"(?<![\d)])\*\*|\*\*(?![\d(])")
_HAN = re.compile(r"([぀-ヿ一-鿿가-힯])")
"""A character of Japanese, Chinese or Korean."""
_LITERAL = re.compile(r"\"[^\"\n]{1,40}\"|'[^'\n]{1,40}'|-?\d+(?:\.\d+)?")
"""A quoted string or a number."""
_PLAIN_NUMBER = re.compile(r"-?\d{1,15}")
"""A whole number that a float holds exactly."""
WORDS_IN_RUN = 16
"""Length of the runs of words that are compared (arXiv 2603.07779)."""
LITERALS_IN_RUN = 8
"""Length of the runs of numbers and quoted strings that are compared (our choice)."""
_COMMON_TEXT = """
after all also always an and another answer any are as at be before between both but by called can
cannot case cases character characters choose consisting consists constraints contain containing
contains described determine different do does each either empty end equal every exactly example
explanation find first follow following follows for from game get given guaranteed has have he help
his how however if in input integer integers into is it its know least left length let letters line
lines make maximum may minimum more most multiple must need new next no non not note number
numbered numbers of on once one only or order other otherwise output over perform position positive
possible print problem right row same second separated sequence set should since single so solution
some space starting string such sum take test th than that the their them then there therefore
these they third this three time times to total two up value values want wants was way we what when
where whether which will with without words you your zero
"""
_COMMON_WORDS = frozenset(_COMMON_TEXT.split())
"""Words of which statements are made whatever they ask.

Each stands in 8 % of the problems of at least three of LiveCodeBench, CodeContests, Kodsport and
Google's contests.
"""
_LEAST_TELLING = 3
"""Fewest uncommon words in a telling run (our choice).

`the first line contains an integer n` is not telling.
"""
_GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
"""Odd factor that spreads hashes over 64 bits: 2^64 divided by the golden ratio."""


def words(text: str) -> list[str]:
    """Return the words, numbers and operators of a text.

    Each Chinese or Japanese character is a word.
    """
    # Most texts need none of these, and a search costs more than all the rest.
    if "\\" in text:
        text = _TEX.sub(_translate_tex, text)
    if "**" in text:
        text = _BOLD.sub(" ", text)
    # Nothing of what follows changes a text in ASCII.
    if text.isascii():
        return _WORD.findall(text.lower())
    normal = unicodedata.normalize("NFKC", text).lower()
    return _WORD.findall(_HAN.sub(r" \1 ", normal))


def _translate_tex(found: re.Match[str]) -> str:
    return _SIGNS.get(found[0], " ")


def literals(text: str) -> list[str]:
    """Return the numbers and quoted strings of a text in order: a translation does not change
    them."""
    normal = unicodedata.normalize("NFKC", text)
    return [literal.strip("\"'") for literal in _LITERAL.findall(normal)]


def hash_text(text: str) -> int:
    """Return a 64-bit hash of a text, the same on every machine."""
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


hash_token = lru_cache(maxsize=1 << 18)(hash_text)
"""`hash_text` for short texts that come often."""


def literal_hashes(tokens: Sequence[str]) -> Hashes:
    """Return the hashes of runs of literals, without runs that say little.

    Examples are a grid of 0 and 1, and a count from 1 to 9.
    """
    # Sorted, so that distinct ones can be counted by their neighbours.
    runs = _runs(_hash_all(tokens), LITERALS_IN_RUN)
    hashed = np.sort(runs, axis=1)
    differs = np.diff(hashed, axis=1) != 0
    num_distinct = 1 + differs.sum(axis=1)
    values = []
    for token in tokens:
        # Not a number where it is none: no difference to it counts up.
        value = float(token) if _PLAIN_NUMBER.fullmatch(token) else np.nan
        values.append(value)
    value_runs = _runs(np.array(values), LITERALS_IN_RUN)
    counts_up = np.diff(value_runs, axis=1) == 1
    # A run counts if half of its values differ, and no half of it counts up.
    is_varied = num_distinct * 2 >= LITERALS_IN_RUN
    is_count = counts_up.sum(axis=1) * 2 >= LITERALS_IN_RUN
    hashes = _run_hashes(tokens, LITERALS_IN_RUN)
    return np.unique(hashes[is_varied & ~is_count])


def telling_hashes(tokens: Sequence[str]) -> Hashes:
    """Return the hashes of runs of words with enough uncommon words to be about the task."""
    is_telling = np.array([_is_uncommon(token) for token in tokens])
    num_telling = _runs(is_telling, WORDS_IN_RUN).sum(axis=1)
    return np.unique(_run_hashes(tokens, WORDS_IN_RUN)[num_telling >= _LEAST_TELLING])


def _is_uncommon(token: str) -> bool:
    """Whether a token is rare enough to say what a problem is about."""
    is_word = len(token) > 1 and token.isalpha()
    return is_word and token not in _COMMON_WORDS


def gram_hashes(tokens: Sequence[str], length: int) -> Hashes:
    """Return the sorted distinct hashes of all runs of `length` tokens."""
    return np.unique(_run_hashes(tokens, length))


def _runs(
    values: np.ndarray,
    length: int,
) -> np.ndarray:
    """Return all runs of `length` successive values, one a row; no rows if there are too few."""
    if len(values) < length:
        return values[:0].reshape(0, length)
    return np.lib.stride_tricks.sliding_window_view(values, length)


def _hash_all(tokens: Sequence[str]) -> Hashes:
    return np.fromiter(
        map(hash_token, tokens),
        dtype=np.uint64,
        count=len(tokens),
    )


def _run_hashes(tokens: Sequence[str], length: int) -> Hashes:
    """Return the hash of each run of tokens, in order."""
    runs = _runs(_hash_all(tokens), length)
    total = np.zeros(len(runs), dtype=np.uint64)
    # Column by column: a step for each place of a run, not for each run.
    for column in runs.T:
        total = total * _GOLDEN_RATIO + column
    # The low bits of a product depend on low bits alone: the high ones are mixed in.
    return total ^ (total >> np.uint64(31))

"""What identifies a problem whatever it looks like: where it is from, its words, its numbers, its examples."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microcoder.dataset.process.sections import split
from microcoder.formats.candidates import Candidate

Hashes = NDArray[np.uint64]

_URLS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"leetcode(?:-cn)?\.(?:com|cn)/(?:contest/[\w-]+/)?problems/([\w-]+)"), "leetcode:{0}"),
    (re.compile(r"codeforces\.com/(?:contest|gym)/(\d+)/problem/(\w+)"), "codeforces:{0}{1}"),
    (re.compile(r"codeforces\.com/problemset/problem/(\d+)/(\w+)"), "codeforces:{0}{1}"),
    (re.compile(r"atcoder\.jp/contests/[\w-]+/tasks/(\w+)"), "atcoder:{0}"),
    (re.compile(r"(?:open\.)?kattis\.com/problems/([\w-]+)"), "kattis:{0}"),
    (re.compile(r"codechef\.com/(?:\w+/)?problems/(\w+)"), "codechef:{0}"),
    (re.compile(r"hackerrank\.com/challenges/([\w-]+)"), "hackerrank:{0}"),
    (re.compile(r"codewars\.com/kata/([\da-f]{24})"), "codewars:{0}"),
    (re.compile(r"geeksforgeeks\.org/problems/([\w-]+)"), "geeksforgeeks:{0}"),
    (re.compile(r"luogu\.com(?:\.cn)?/problem/(\w+)"), "luogu:{0}"),
)
_WORD = re.compile(r"[^\W\d_]+|\d+|[<>=+*/%^-]")
_TEX = re.compile(r"\\(?:leq?|geq?|neq?|times|cdot|ldots|dots|texttt|textbf|text|mathrm|left|right)\b")
# `**bold**`, but not `10**9`.
_BOLD = re.compile(r"(?<![\d)])\*\*|\*\*(?![\d(])")
_HAN = re.compile(r"([぀-ヿ一-鿿가-힯])")
_LITERAL = re.compile(r"\"[^\"\n]{1,40}\"|'[^'\n]{1,40}'|-?\d+(?:\.\d+)?")
_NAME = re.compile(r"\b[^\W\d]\w*\s*=(?!=)\s*")
_VALUE = re.compile(r"[^\s,;\[\]{}()\"'`]+")
_SIGNATURE = re.compile(r"def\s+(\w+)\s*\(\s*(?:self\s*,?\s*)?([^)]{0,2000})\)")
_PLAIN_NUMBER = re.compile(r"-?\d{1,15}")
LONGEST_EXAMPLE = 2000
"""Characters of an input or output that is compared: a larger one takes time and tells no more."""
_COMMON_TEXT = """
after all also always an and another answer any are as at be before between both but by called can cannot case cases
character characters choose consisting consists constraints contain containing contains described determine different
do does each either empty end equal every exactly example explanation find first follow following follows for from
game get given guaranteed has have he help his how however if in input integer integers into is it its know least left
length let letters line lines make maximum may minimum more most multiple must need new next no non not note number
numbered numbers of on once one only or order other otherwise output over perform position positive possible print
problem right row same second separated sequence set should since single so solution some space starting string such
sum take test th than that the their them then there therefore these they third this three time times to total two up
value values want wants was way we what when where whether which will with without words you your zero
"""
_COMMON_WORDS = frozenset(_COMMON_TEXT.split())
"""Words of which statements are made whatever they ask: each stands in 8 % of the problems of at least three of
LiveCodeBench, CodeContests, Kodsport and Google's contests."""
_LEAST_TELLING = 3
"""Other words in a run that says something: `the first line contains an integer n` says nothing (our choice)."""


class ExampleKey(NamedTuple):
    """An example, whatever it is written like."""

    digest: int
    weight: int
    """Number of values in it: few say little."""


def source_keys(candidate: Candidate) -> frozenset[str]:
    """Return where a problem is from, as `platform:problem`: by its URL, and by its platform's own id."""
    keys = set()
    for pattern, shape in _URLS:
        if found := pattern.search(candidate.url):
            keys.add(shape.format(*found.groups()).lower())
    row = candidate.id.rpartition("/")[2].lower()
    if candidate.platform == "atcoder" and re.fullmatch(r"[a-z]{3}\d{3}_\w+", row):
        keys.add(f"atcoder:{row}")
    elif candidate.platform == "codeforces" and (found := re.fullmatch(r"(\d+)[_/-]?([a-z]\d?)", row)):
        keys.add(f"codeforces:{found[1]}{found[2]}")
    elif candidate.platform == "leetcode" and _is_slug(candidate.title):
        keys.add(f"leetcode:{candidate.title}")
    elif candidate.platform == "leetcode" and _is_slug(row):
        keys.add(f"leetcode:{row}")
    return frozenset(keys)


def _is_slug(text: str) -> bool:
    return "-" in text and re.fullmatch(r"[a-z0-9-]+", text) is not None


def title_key(title: str) -> str:
    """Return the words of a title: no contest letter, no number, no punctuation."""
    title = re.sub(r"^\s*(?:\d+[_. -]+)?(?:[A-Z]\d?[.:)-]\s+|\d+\.\s+)?", "", title)
    return " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", title).lower()))


def words(text: str) -> list[str]:
    """Return the words, numbers and operators of a text; each Chinese or Japanese character is a word."""
    # Most texts need none of these, and a search costs more than all the rest.
    if "\\" in text:
        text = _TEX.sub(_tex, text)
    if "**" in text:
        text = _BOLD.sub(" ", text)
    if text.isascii():
        return _WORD.findall(text.lower())
    return _WORD.findall(_HAN.sub(r" \1 ", unicodedata.normalize("NFKC", text).lower()))


def _tex(match: re.Match[str]) -> str:
    return {"\\le": "<=", "\\leq": "<=", "\\ge": ">=", "\\geq": ">="}.get(match[0], " ")


def literals(text: str) -> list[str]:
    """Return the numbers and quoted strings of a text in order: what a translation leaves as it is."""
    return [found.strip("\"'") for found in _LITERAL.findall(unicodedata.normalize("NFKC", text))]


def hash_text(text: str) -> int:
    """Return 64 bits that are the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


_token_hash = lru_cache(maxsize=1 << 18)(hash_text)


def literal_hashes(tokens: Sequence[str], length: int) -> Hashes:
    """Return `gram_hashes` of the runs that say something: not a grid of 0 and 1, not a count from 1 to 9."""
    if len(tokens) < length:
        return np.empty(0, dtype=np.uint64)
    hashed = np.sort(np.lib.stride_tricks.sliding_window_view(_hash_all(tokens), length), axis=1)
    num_distinct = 1 + (np.diff(hashed, axis=1) != 0).sum(axis=1)
    values = np.array([float(token) if _PLAIN_NUMBER.fullmatch(token) else np.nan for token in tokens])
    counts_up = np.diff(np.lib.stride_tricks.sliding_window_view(values, length), axis=1) == 1
    is_telling = (num_distinct * 2 >= length) & (counts_up.sum(axis=1) * 2 < length)
    return np.unique(_run_hashes(tokens, length)[is_telling])


def telling_hashes(tokens: Sequence[str], length: int) -> Hashes:
    """Return `gram_hashes` of the runs that say what is asked, not how input and output are laid out."""
    if len(tokens) < length:
        return np.empty(0, dtype=np.uint64)
    tells = np.array([len(word) > 1 and word.isalpha() and word not in _COMMON_WORDS for word in tokens])
    num = np.lib.stride_tricks.sliding_window_view(tells, length).sum(axis=1)
    return np.unique(_run_hashes(tokens, length)[num >= _LEAST_TELLING])


def gram_hashes(tokens: Sequence[str], length: int) -> Hashes:
    """Return the sorted distinct 64-bit hashes of all runs of `length` tokens; the same on every machine."""
    return np.unique(_run_hashes(tokens, length))


def _hash_all(tokens: Sequence[str]) -> Hashes:
    return np.fromiter(map(_token_hash, tokens), dtype=np.uint64, count=len(tokens))


def _run_hashes(tokens: Sequence[str], length: int) -> Hashes:
    if len(tokens) < length:
        return np.empty(0, dtype=np.uint64)
    hashed = _hash_all(tokens)
    num = len(tokens) - length + 1
    total = np.zeros(num, dtype=np.uint64)
    for place in range(length):
        total = total * np.uint64(0x9E3779B97F4A7C15) + hashed[place : place + num]
    return total ^ (total >> np.uint64(31))


def example_keys(candidate: Candidate, *, max_tests: int = 50) -> frozenset[ExampleKey]:
    """Return the examples of the statement and the first short tests: values in order, without names or brackets."""
    shown = [(one.input, one.output) for one in split(candidate.statement or candidate.statement_found).examples]
    tested = [(test.input, test.output) for test in candidate.tests[:max_tests]]
    keys = {_example_key(given, printed) for given, printed in shown + tested}
    return frozenset(key for key in keys if key is not None)


def _example_key(given: str, printed: str) -> ExampleKey | None:
    if not printed.strip() or len(given) > LONGEST_EXAMPLE or len(printed) > LONGEST_EXAMPLE:
        return None
    before, after = _values(given), _values(printed)
    if not before or not after:
        return None
    return ExampleKey(_token_hash("\x1f".join(before) + "\x1e" + "\x1f".join(after)), len(before) + len(after))


def _values(text: str) -> list[str]:
    text = _NAME.sub(" ", unicodedata.normalize("NFKC", text))
    return [value.lower() for value in _VALUE.findall(text.replace("None", "null"))]


def signature(candidate: Candidate) -> str:
    """Return the function's name and parameters, or an empty string for a program that reads stdin."""
    code = candidate.starter_code or "\n".join(s.code for s in candidate.solutions[:1])
    for name, parameters in _SIGNATURE.findall(code):
        if (
            candidate.fn_name in (None, name)
            and not name.startswith("__")
            and (candidate.starter_code or candidate.fn_name)
        ):
            names = [part.split(":")[0].split("=")[0].strip() for part in parameters.split(",")]
            return f"{name}({','.join(filter(None, names))})"
    return ""

"""Finds benchmark problems: by source, title, words, and what a translation leaves unchanged: numbers and examples.

The index is built once from the benchmark's problems; a check reads the index only.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from microcoder.data.clean.cleaning import clean, looks_like_html, looks_like_tex
from microcoder.data.clean.sections import normalise, split
from microcoder.data.clean.stage import values_of
from microcoder.data.formats.candidates import Candidate

Hashes = NDArray[np.uint64]

_URLS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"leetcode(?:-cn)?\.(?:com|cn)/(?:contest/[\w-]+/)?problems/([\w-]+)"),
        "leetcode:{0}",
    ),
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
_TEX = re.compile(
    r"\\(?:leq?|geq?|neq?|times|cdot|ldots|dots|texttt|textbf|text|mathrm|left|right)\b"
)
_SIGNS = {"\\le": "<=", "\\leq": "<=", "\\ge": ">=", "\\geq": ">="}
# `**bold**`, but not `10**9`.
_BOLD = re.compile(r"(?<![\d)])\*\*|\*\*(?![\d(])")
_HAN = re.compile(r"([぀-ヿ一-鿿가-힯])")
_LITERAL = re.compile(r"\"[^\"\n]{1,40}\"|'[^'\n]{1,40}'|-?\d+(?:\.\d+)?")
_SIGNATURE = re.compile(r"def\s+(\w+)\s*\(\s*(?:self\s*,?\s*)?([^)]{0,2000})\)")
_PLAIN_NUMBER = re.compile(r"-?\d{1,15}")
LONGEST_EXAMPLE = 2000
"""Characters of an input or output that is compared: a longer one costs time and shows no more."""
_MOST_TESTS = 50
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
"""Fewest uncommon words in a telling run: `the first line contains an integer n` is not telling (our choice)."""


class ExampleKey(NamedTuple):
    """Hash of an example's values, which is the same in every text format."""

    digest: int
    weight: int
    """Number of values in the example; few are weak evidence."""


def source_keys(candidate: Candidate) -> frozenset[str]:
    """Return keys `platform:problem` of a problem's origin: by its URL, and by its platform's own id."""
    keys = set()
    for pattern, shape in _URLS:
        if found := pattern.search(candidate.url):
            keys.add(shape.format(*found.groups()).lower())
    row = candidate.id.rpartition("/")[2].lower()
    if candidate.platform == "atcoder" and re.fullmatch(r"[a-z]{3}\d{3}_\w+", row):
        keys.add(f"atcoder:{row}")
    elif candidate.platform == "codeforces" and (
        found := re.fullmatch(r"(\d+)[_/-]?([a-z]\d?)", row)
    ):
        keys.add(f"codeforces:{found[1]}{found[2]}")
    elif candidate.platform == "leetcode" and _is_slug(candidate.title):
        keys.add(f"leetcode:{candidate.title}")
    elif candidate.platform == "leetcode" and _is_slug(row):
        keys.add(f"leetcode:{row}")
    return frozenset(keys)


def _is_slug(text: str) -> bool:
    return "-" in text and re.fullmatch(r"[a-z0-9-]+", text) is not None


def title_key(title: str) -> str:
    """Return a title's words in lower case, without a leading contest letter or number, and punctuation."""
    title = re.sub(r"^\s*(?:\d+[_. -]+)?(?:[A-Z]\d?[.:)-]\s+|\d+\.\s+)?", "", title)
    return " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", title).lower()))


def words(text: str) -> list[str]:
    """Return the words, numbers and operators of a text; each Chinese or Japanese character is a word."""
    # Most texts need none of these, and a search costs more than all the rest.
    if "\\" in text:
        text = _TEX.sub(lambda found: _SIGNS.get(found[0], " "), text)
    if "**" in text:
        text = _BOLD.sub(" ", text)
    if text.isascii():
        return _WORD.findall(text.lower())
    return _WORD.findall(_HAN.sub(r" \1 ", unicodedata.normalize("NFKC", text).lower()))


def literals(text: str) -> list[str]:
    """Return the numbers and quoted strings of a text in order: what a translation leaves as it is."""
    return [found.strip("\"'") for found in _LITERAL.findall(unicodedata.normalize("NFKC", text))]


def hash_text(text: str) -> int:
    """Return a 64-bit hash of a text, the same on every machine."""
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little"
    )


_token_hash = lru_cache(maxsize=1 << 18)(hash_text)


def literal_hashes(tokens: Sequence[str]) -> Hashes:
    """Return `gram_hashes` of 8 literals, without runs that say little: a grid of 0 and 1, a count from 1 to 9."""
    hashed = np.sort(_runs(_hash_all(tokens), _LITERALS), axis=1)
    num_distinct = 1 + (np.diff(hashed, axis=1) != 0).sum(axis=1)
    values = np.array(
        [float(token) if _PLAIN_NUMBER.fullmatch(token) else np.nan for token in tokens]
    )
    counts_up = np.diff(_runs(values, _LITERALS), axis=1) == 1
    is_telling = (num_distinct * 2 >= _LITERALS) & (counts_up.sum(axis=1) * 2 < _LITERALS)
    return np.unique(_run_hashes(tokens, _LITERALS)[is_telling])


def telling_hashes(tokens: Sequence[str]) -> Hashes:
    """Return `gram_hashes` of 16 words, only of runs with enough uncommon words to be about the task."""
    tells = np.array(
        [len(word) > 1 and word.isalpha() and word not in _COMMON_WORDS for word in tokens]
    )
    return np.unique(
        _run_hashes(tokens, _WORDS)[_runs(tells, _WORDS).sum(axis=1) >= _LEAST_TELLING]
    )


def _runs(values: np.ndarray, length: int) -> np.ndarray:
    """Return all runs of `length` successive values, one a row; no rows if there are fewer values."""
    is_long = len(values) >= length
    return (
        np.lib.stride_tricks.sliding_window_view(values, length)
        if is_long
        else values[:0].reshape(0, length)
    )


def gram_hashes(tokens: Sequence[str], length: int) -> Hashes:
    """Return the sorted distinct 64-bit hashes of all runs of `length` tokens; the same on every machine."""
    return np.unique(_run_hashes(tokens, length))


def _hash_all(tokens: Sequence[str]) -> Hashes:
    return np.fromiter(map(_token_hash, tokens), dtype=np.uint64, count=len(tokens))


def _run_hashes(tokens: Sequence[str], length: int) -> Hashes:
    runs = _runs(_hash_all(tokens), length)
    total = np.zeros(len(runs), dtype=np.uint64)
    for column in runs.T:
        total = total * np.uint64(0x9E3779B97F4A7C15) + column
    return total ^ (total >> np.uint64(31))


def example_keys(candidate: Candidate) -> frozenset[ExampleKey]:
    """Return a key per short example of the statement and first test: values in order, without names or brackets."""
    shown = split(candidate.statement).examples
    keys = set()
    for given, printed in {
        (one.input, one.output) for one in (*shown, *candidate.tests[:_MOST_TESTS])
    }:
        if printed.strip() and len(given) <= LONGEST_EXAMPLE >= len(printed):
            before, after = _values(given), _values(printed)
            if before and after:
                digest = _token_hash("\x1f".join(before) + "\x1e" + "\x1f".join(after))
                keys.add(ExampleKey(digest, len(before) + len(after)))
    return frozenset(keys)


def _values(text: str) -> list[str]:
    return values_of(unicodedata.normalize("NFKC", text).replace("None", "null")).split()


def signature(candidate: Candidate) -> str:
    """Return the function's name and parameters as `name(a,b)`; empty for a program that reads stdin."""
    code = candidate.starter_code or "\n".join(s.code for s in candidate.solutions[:1])
    for name, parameters in (
        _SIGNATURE.findall(code) if candidate.starter_code or candidate.fn_name else ()
    ):
        if candidate.fn_name in (None, name) and not name.startswith("__"):
            names = [part.split(":")[0].split("=")[0].strip() for part in parameters.split(",")]
            return f"{name}({','.join(filter(None, names))})"
    return ""


Key = TypeVar("Key")
_SAME_PROBLEM = 0.8
"""Share of common 16-grams from which on two benchmark problems count as one, listed twice."""

_WORDS, _LITERALS = 16, 8
"""Lengths of the runs of words (arXiv 2603.07779) and of numbers and quoted strings (our choice) that are compared."""
_WORD_SHARE, _LITERAL_SHARE = 0.22, 0.3
"""Share of the shorter text's runs that the other has too: of words the threshold of arXiv 2603.07779,
of literals ours (measured in docs/contamination.md)."""
_LEAST_WORDS, _COPY_SHARE = 5, 0.9
"""Fewest shared 16-grams that are about the task (on input and output, unrelated problems read alike), and share of all
16-grams from which on any kind is enough (our choices)."""
_MOST_PROBLEMS = 3
"""A 16-gram of more benchmark problems than this, copies of each other counted once, counts for none of them: such
as the definition of a tree's node (our choice)."""
_LEAST_LITERALS = 8
"""Fewest shared runs of literals that are a hit (our choice)."""
_LEAST_EXAMPLES, _LEAST_VALUES = 2, 14
"""Fewest examples with equal input and output, and fewest values in them together (our choice)."""
_HITS_SHOWN = 3
"""At most so many benchmark problems are named in a rejection."""
_TITLE_WORDS = 4
"""An equal title of so many words is a hit; a shorter one only with something else in common (our choice)."""

Evidence = Literal[
    "source", "title", "words", "literals", "examples", "signature", "behaviour", "model"
]


@dataclass(frozen=True, slots=True)
class Hit:
    """A benchmark problem that a candidate was found to equal, and the evidence."""

    problem_id: str
    """`dataset/row` of the benchmark's problem."""
    by: Evidence
    score: float
    """Share for words and literals, number of equal examples, bits of evidence for behaviour, otherwise 1."""
    detail: str


@dataclass(frozen=True, slots=True)
class _Grams:
    """Inverted index of hashes: those of all problems, sorted, each with its problem's number."""

    hashes: Hashes
    owners: np.ndarray
    sizes: np.ndarray

    @staticmethod
    def build(per_problem: Sequence[Hashes], left_out: Sequence[np.uint64] | Hashes = ()) -> _Grams:
        if len(left_out):
            per_problem = [
                np.setdiff1d(hashes, left_out, assume_unique=True) for hashes in per_problem
            ]
        sizes = np.array([len(hashes) for hashes in per_problem], dtype=np.int64)
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *per_problem])
        order = np.argsort(hashes, kind="stable")
        return _Grams(hashes[order], np.repeat(np.arange(len(sizes)), sizes)[order], sizes)

    def shared(self, found: Hashes) -> np.ndarray:
        """Return, by problem number, how many of a problem's hashes are in `found`."""
        low = np.searchsorted(self.hashes, found, side="left")
        high = np.searchsorted(self.hashes, found, side="right")
        hit = np.nonzero(high > low)[0]
        owners = [self.owners[low[i] : high[i]] for i in hit]
        return (
            np.bincount(np.concatenate(owners), minlength=len(self.sizes))
            if owners
            else np.zeros_like(self.sizes)
        )


@dataclass(frozen=True, slots=True)
class ContaminationIndex:
    """Fingerprints of the benchmarks' problems; made by `build_index`."""

    ids: tuple[str, ...]
    by_source: dict[str, int]
    by_title: dict[str, list[int]]
    by_signature: dict[str, list[int]]
    by_example: dict[int, list[int]]
    boilerplate: Hashes
    """16-grams of more than `_MOST_PROBLEMS` problems; left out of `words` and `telling`."""
    words: _Grams
    telling: _Grams
    literals: _Grams


def build_index(benchmark: Iterable[Candidate]) -> ContaminationIndex:
    """Index the problems of one benchmark or several, each as found and, where it is a page or TeX, as cleaned too."""
    problems: list[Candidate] = []
    for problem in benchmark:
        problems.append(problem)
        # Cleaning costs more than all the rest; Markdown stays as it is.
        if looks_like_html(problem.statement) or looks_like_tex(problem.statement):
            with suppress(RecursionError):
                problems.append(
                    problem.model_copy(
                        update={"statement": normalise(clean(problem.statement).text)}
                    )
                )
    problems.sort(key=lambda problem: problem.id)
    texts = [problem.statement for problem in problems]
    tokens = [words(text) for text in texts]
    grams = [gram_hashes(said, _WORDS) for said in tokens]
    ids = tuple(problem.id for problem in problems)
    boilerplate = _find_boilerplate(grams, ids)
    return ContaminationIndex(
        ids=ids,
        by_source={
            key: number for number, problem in enumerate(problems) for key in source_keys(problem)
        },
        by_title=_owners([title_key(problem.title)] for problem in problems),
        by_signature=_owners([signature(problem)] for problem in problems),
        by_example=_owners([key.digest for key in example_keys(problem)] for problem in problems),
        boilerplate=boilerplate,
        words=_Grams.build(grams, boilerplate),
        telling=_Grams.build([telling_hashes(said) for said in tokens], boilerplate),
        literals=_Grams.build([literal_hashes(literals(text)) for text in texts]),
    )


def _owners(keys: Iterable[Iterable[Key]]) -> dict[Key, list[int]]:
    owners: dict[Key, list[int]] = {}
    for number, of_problem in enumerate(keys):
        for key in of_problem:
            if key:
                owners.setdefault(key, []).append(number)
    return owners


def _find_boilerplate(per_problem: Sequence[Hashes], ids: Sequence[str]) -> Hashes:
    """Return the hashes that more than `_MOST_PROBLEMS` problems have; a problem that is listed twice is one."""
    all_grams = _Grams.build(per_problem)
    found, starts, counts = np.unique(all_grams.hashes, return_index=True, return_counts=True)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(ids))}
    group = np.array([numbers[name] for name in ids], dtype=np.int64)
    is_frequent = counts > _MOST_PROBLEMS
    for number in np.unique(all_grams.owners[np.repeat(is_frequent, counts)]).tolist():
        least = np.minimum(all_grams.sizes, all_grams.sizes[number]) * _SAME_PROBLEM
        group[number] = group[all_grams.shared(per_problem[number]) >= least].min()
    owners = zip(found[is_frequent], starts[is_frequent], counts[is_frequent], strict=True)
    num_owners = (
        (gram, len(np.unique(group[all_grams.owners[at : at + num]]))) for gram, at, num in owners
    )
    return np.array([gram for gram, num in num_owners if num > _MOST_PROBLEMS], dtype=np.uint64)


def find_hits(candidate: Candidate, index: ContaminationIndex) -> list[Hit]:
    """Return a hit with the strongest evidence for each benchmark problem that a candidate equals; empty if clean."""
    if not index.ids:
        return []
    keys = [key for key in sorted(source_keys(candidate)) if key in index.by_source]
    hits = [Hit(index.ids[index.by_source[key]], "source", 1.0, key) for key in keys]
    # Both texts: a translation is compared by its words, the original by what it has in common with every language.
    support: Counter[int] = Counter()
    for text in sorted({candidate.statement, candidate.statement_found}):
        hits += _by_grams(text, index, support)
    hits += _by_examples(candidate, index, support)
    hits += _by_title(candidate, index, support)
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(hit.problem_id, hit)
    return list(first.values())


def describe_hits(hits: Sequence[Hit]) -> str:
    """Return the detail of a rejection: up to `_HITS_SHOWN` benchmark problems, and the evidence for each."""
    return "; ".join(f"{hit.problem_id} by {hit.by} ({hit.detail})" for hit in hits[:_HITS_SHOWN])


def _by_grams(text: str, index: ContaminationIndex, support: Counter[int]) -> list[Hit]:
    said = words(text)
    runs = np.setdiff1d(gram_hashes(said, _WORDS), index.boilerplate, assume_unique=True)
    telling = index.telling.shared(telling_hashes(said))
    numbers = literal_hashes(literals(text))
    hits = []
    by: Evidence
    for by, grams, found, least, least_share in (
        ("words", index.words, runs, _LEAST_WORDS, _WORD_SHARE),
        ("literals", index.literals, numbers, _LEAST_LITERALS, _LITERAL_SHARE),
    ):
        shared = grams.shared(found)
        says = telling if by == "words" else shared
        for number in np.nonzero(shared)[0].tolist():
            share = float(shared[number] / max(1, min(len(found), int(grams.sizes[number]))))
            support[number] += bool(says[number] >= 2)
            num = shared[number] if share >= _COPY_SHARE else says[number]
            if num >= least and share >= least_share:
                detail = f"{shared[number]} runs of {by} shared, {share:.2f} of the shorter"
                hits.append(Hit(index.ids[number], by, round(share, 3), detail))
    return hits


def _by_examples(
    candidate: Candidate, index: ContaminationIndex, support: Counter[int]
) -> list[Hit]:
    num: Counter[int] = Counter()
    values: Counter[int] = Counter()
    for key in sorted(example_keys(candidate)):
        for number in index.by_example.get(key.digest, ()):
            num[number] += 1
            values[number] += key.weight
    hits = []
    name = signature(candidate)
    for number in sorted(num):
        support[number] += 1
        if num[number] >= _LEAST_EXAMPLES and values[number] >= _LEAST_VALUES:
            detail = f"{num[number]} examples of {values[number]} values"
            hits.append(Hit(index.ids[number], "examples", num[number], detail))
    for number in index.by_signature.get(name, ()):
        if support[number]:
            hits.append(
                Hit(
                    index.ids[number],
                    "signature",
                    1.0,
                    f"{name}, and numbers or an example in common",
                )
            )
        support[number] += 1
    return hits


def _by_title(candidate: Candidate, index: ContaminationIndex, support: Counter[int]) -> list[Hit]:
    title = title_key(candidate.title)
    is_enough = len(title.split()) >= _TITLE_WORDS
    numbers = index.by_title.get(title, ())
    return [
        Hit(index.ids[number], "title", 1.0, title)
        for number in numbers
        if is_enough or support[number]
    ]

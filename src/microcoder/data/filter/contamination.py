"""Finds benchmark problems: by source, title, words, and what a translation leaves unchanged.

That is numbers and examples. The index is built once from the benchmark's problems; a check reads
the index only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from microcoder.data.clean.cleaning import clean
from microcoder.data.clean.pages import looks_like_html
from microcoder.data.clean.sections import normalise
from microcoder.data.clean.tex import looks_like_tex
from microcoder.data.filter.keys import example_keys, signature, source_keys, title_key
from microcoder.data.filter.texts import (
    WORDS_IN_RUN,
    Hashes,
    gram_hashes,
    literal_hashes,
    literals,
    telling_hashes,
    words,
)
from microcoder.data.formats.candidates import Candidate

Key = TypeVar("Key")
_SAME_PROBLEM = 0.8
"""Share of common runs of words from which on two benchmark problems count as one, listed twice."""
_WORD_SHARE = 0.22
"""Least share of the shorter text's runs of words that the other has too (arXiv 2603.07779)."""
_LITERAL_SHARE = 0.3
"""The same of literals (ours, measured in docs/contamination.md)."""
_LEAST_WORDS = 5
"""Fewest shared runs of words that are about the task (our choice).

On input and output, unrelated problems read alike.
"""
_COPY_SHARE = 0.9
"""Share of all runs from which on any kind of run is enough (our choice)."""
_MOST_PROBLEMS = 3
"""A run of words of more benchmark problems than this counts for none of them (our choice).

An example is the definition of a tree's node. Copies of each other count once.
"""
_LEAST_LITERALS = 8
"""Fewest shared runs of literals that are a hit (our choice)."""
_LEAST_EXAMPLES = 2
"""Fewest examples with equal input and output (our choice)."""
_LEAST_VALUES = 14
"""Fewest values in these examples together (our choice)."""
_LEAST_SUPPORT = 2
"""Fewest shared runs that support a title or a signature."""
_HITS_SHOWN = 3
"""At most so many benchmark problems are named in a rejection."""
_TITLE_WORDS = 4
"""An equal title of so many words is a hit (our choice).

A shorter one only with something else in common.
"""

HitKind = Literal[
    "source",
    "title",
    "words",
    "literals",
    "examples",
    "signature",
    "behaviour",
    "model",
]
"""By what a candidate was found to equal a benchmark problem."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A benchmark problem that a candidate was found to equal, and the evidence."""

    problem_id: str
    """`dataset/row` of the benchmark's problem."""
    by: HitKind
    score: float
    """Share for words and literals, number of equal examples, bits of evidence for behaviour.

    Otherwise 1.
    """
    detail: str


@dataclass(frozen=True, slots=True)
class _Grams:
    """Inverted index of hashes: the hashes of all problems, sorted, each with its problem's
    number."""

    hashes: Hashes
    owners: np.ndarray
    sizes: np.ndarray
    """Number of hashes by problem."""

    @staticmethod
    def build(
        per_problem: Sequence[Hashes],
        left_out: Sequence[np.uint64] | Hashes = (),
    ) -> _Grams:
        if len(left_out):
            kept = []
            for hashes in per_problem:
                kept.append(
                    np.setdiff1d(
                        hashes,
                        left_out,
                        assume_unique=True,
                    )
                )
            per_problem = kept
        lengths = list(map(len, per_problem))
        sizes = np.array(lengths, dtype=np.int64)
        # An empty one first, for want of any problem.
        nothing = np.empty(0, dtype=np.uint64)
        all_hashes = np.concatenate([nothing, *per_problem])
        order = np.argsort(all_hashes, kind="stable")
        owners = np.repeat(np.arange(len(sizes)), sizes)
        return _Grams(all_hashes[order], owners[order], sizes)

    def shared(self, found: Hashes) -> np.ndarray:
        """Return, by problem number, how many of a problem's hashes are in `found`."""
        low = np.searchsorted(self.hashes, found, side="left")
        high = np.searchsorted(self.hashes, found, side="right")
        known = np.nonzero(high > low)[0]
        owners = [self.owners[low[place] : high[place]] for place in known]
        # An empty list cannot be concatenated.
        if not owners:
            return np.zeros_like(self.sizes)
        problems = np.concatenate(owners)
        return np.bincount(problems, minlength=len(self.sizes))


@dataclass(frozen=True, slots=True)
class ContaminationIndex:
    """Fingerprints of the benchmarks' problems; made by `build_index`."""

    ids: tuple[str, ...]
    by_source: dict[str, int]
    by_title: dict[str, list[int]]
    by_signature: dict[str, list[int]]
    by_example: dict[int, list[int]]
    boilerplate: Hashes
    """Runs of words of more than `_MOST_PROBLEMS` problems; left out of `words` and `telling`."""
    words: _Grams
    telling: _Grams
    literals: _Grams


def build_index(benchmark: Iterable[Candidate]) -> ContaminationIndex:
    """Index the problems of one or several benchmarks.

    Each is indexed as it was found and, if it is a page or TeX, in its cleaned form too.
    """
    problems: list[Candidate] = []
    for problem in benchmark:
        problems.append(problem)
        # Cleaning costs more than all the rest; Markdown stays as it is.
        if looks_like_html(problem.statement) or looks_like_tex(problem.statement):
            # What is nested too deeply to be cleaned stays indexed as found.
            with suppress(RecursionError):
                problems.append(_clean_statement(problem))
    # The result must not depend on the order of benchmarks.
    problems.sort(key=lambda problem: problem.id)
    ids = tuple(problem.id for problem in problems)
    tokens = []
    grams = []
    of_literals = []
    by_source = {}
    titles = []
    signatures = []
    for number, problem in enumerate(problems):
        problem_words = words(problem.statement)
        tokens.append(problem_words)
        grams.append(gram_hashes(problem_words, WORDS_IN_RUN))
        of_literals.append(literal_hashes(literals(problem.statement)))
        by_source.update(dict.fromkeys(source_keys(problem), number))
        titles.append([title_key(problem.title)])
        signatures.append([signature(problem)])
    boilerplate = _find_boilerplate(grams, ids)
    return ContaminationIndex(
        ids=ids,
        by_source=by_source,
        by_title=_owners(titles),
        by_signature=_owners(signatures),
        by_example=_owners(map(_example_digests, problems)),
        boilerplate=boilerplate,
        words=_Grams.build(grams, boilerplate),
        telling=_Grams.build(list(map(telling_hashes, tokens)), boilerplate),
        literals=_Grams.build(of_literals),
    )


def _clean_statement(problem: Candidate) -> Candidate:
    cleaned = normalise(clean(problem.statement).text)
    return problem.model_copy(update={"statement": cleaned})


def _example_digests(problem: Candidate) -> list[int]:
    return [key.digest for key in example_keys(problem)]


def _owners(keys_by_problem: Iterable[Iterable[Key]]) -> dict[Key, list[int]]:
    """Return the numbers of the problems that have each key; empty keys are left out."""
    owners: dict[Key, list[int]] = {}
    for number, keys in enumerate(keys_by_problem):
        for key in keys:
            if key:
                owners.setdefault(key, []).append(number)
    return owners


def _find_boilerplate(
    per_problem: Sequence[Hashes],
    ids: Sequence[str],
) -> Hashes:
    """Return the hashes that occur in more than `_MOST_PROBLEMS` problems.

    A problem that is listed twice counts once.
    """
    all_grams = _Grams.build(per_problem)
    found, starts, counts = np.unique(
        all_grams.hashes,
        return_index=True,
        return_counts=True,
    )
    is_frequent = counts > _MOST_PROBLEMS
    groups = _group_by_id(ids)
    # Copies have all their runs in common: only problems with frequent ones can have many.
    owners = all_grams.owners[np.repeat(is_frequent, counts)]
    for number in np.unique(owners).tolist():
        smaller = np.minimum(all_grams.sizes, all_grams.sizes[number])
        is_same = all_grams.shared(per_problem[number]) >= smaller * _SAME_PROBLEM
        groups[number] = groups[is_same].min()
    boilerplate = []
    frequent = zip(
        found[is_frequent],
        starts[is_frequent],
        counts[is_frequent],
        strict=True,
    )
    for gram, start, count in frequent:
        owners = all_grams.owners[start : start + count]
        if len(np.unique(groups[owners])) > _MOST_PROBLEMS:
            boilerplate.append(gram)
    return np.array(boilerplate, dtype=np.uint64)


def _group_by_id(ids: Sequence[str]) -> np.ndarray:
    """Return a number for each problem, the same for equal ids."""
    numbers: dict[str, int] = {}
    groups = []
    for name in ids:
        groups.append(numbers.setdefault(name, len(numbers)))
    return np.array(groups, dtype=np.int64)


def find_hits(candidate: Candidate, index: ContaminationIndex) -> list[Hit]:
    """Return a hit for each benchmark problem that a candidate equals; empty if it is clean.

    Each hit has the strongest evidence.
    """
    if not index.ids:
        return []
    hits = []
    # Sorted, since a set of texts has another order in each process.
    for key in sorted(source_keys(candidate)):
        if key in index.by_source:
            hits.append(
                Hit(
                    index.ids[index.by_source[key]],
                    "source",
                    1.0,
                    key,
                )
            )
    # How much else each problem has in common, by number; each rule reads it and adds to it, so
    # the order of the rules matters.
    support: Counter[int] = Counter()
    # Both texts: a translation is compared by its words, the original by what it has in common with
    # every language.
    for text in sorted({candidate.statement, candidate.statement_found}):
        hits += _by_words(text, index, support)
        hits += _by_literals(text, index, support)
    hits += _by_examples(candidate, index, support)
    hits += _by_signature(candidate, index, support)
    hits += _by_title(candidate, index, support)
    # Hits are in the order of their strength.
    strongest: dict[str, Hit] = {}
    for hit in hits:
        strongest.setdefault(hit.problem_id, hit)
    return list(strongest.values())


def describe_hits(hits: Sequence[Hit]) -> str:
    """Return the detail of a rejection: some benchmark problems, and the evidence for each."""
    return "; ".join(f"{hit.problem_id} by {hit.by} ({hit.detail})" for hit in hits[:_HITS_SHOWN])


def _by_words(
    text: str,
    index: ContaminationIndex,
    support: Counter[int],
) -> list[Hit]:
    """Return the problems with which a text shares enough runs of words."""
    tokens = words(text)
    grams = gram_hashes(tokens, WORDS_IN_RUN)
    runs = np.setdiff1d(grams, index.boilerplate, assume_unique=True)
    telling = index.telling.shared(telling_hashes(tokens))
    hits = []
    for number, num_shared, share in _shares(runs, index.words):
        support[number] += int(telling[number] >= _LEAST_SUPPORT)
        # A near copy is found by any runs, another text only by telling ones.
        num_counted = num_shared if share >= _COPY_SHARE else telling[number]
        if num_counted >= _LEAST_WORDS and share >= _WORD_SHARE:
            hits.append(
                _hit_by_runs(
                    index.ids[number],
                    "words",
                    num_shared,
                    share,
                )
            )
    return hits


def _by_literals(
    text: str,
    index: ContaminationIndex,
    support: Counter[int],
) -> list[Hit]:
    """Return the problems with which a text shares enough runs of literals."""
    runs = literal_hashes(literals(text))
    hits = []
    for number, num_shared, share in _shares(runs, index.literals):
        support[number] += int(num_shared >= _LEAST_SUPPORT)
        if num_shared >= _LEAST_LITERALS and share >= _LITERAL_SHARE:
            hits.append(
                _hit_by_runs(
                    index.ids[number],
                    "literals",
                    num_shared,
                    share,
                )
            )
    return hits


def _shares(
    runs: Hashes,
    grams: _Grams,
) -> Iterable[tuple[int, int, float]]:
    """Yield the problems with shared runs: number, runs, share of the shorter text."""
    shared = grams.shared(runs)
    for number in np.nonzero(shared)[0].tolist():
        shorter = min(len(runs), int(grams.sizes[number]))
        num_shared = int(shared[number])
        share = float(shared[number] / max(1, shorter))
        yield number, num_shared, share


def _hit_by_runs(
    problem_id: str,
    by: HitKind,
    num_shared: int,
    share: float,
) -> Hit:
    detail = f"{num_shared} runs of {by} shared, {share:.2f} of the shorter"
    return Hit(problem_id, by, round(share, 3), detail)


def _by_examples(
    candidate: Candidate,
    index: ContaminationIndex,
    support: Counter[int],
) -> list[Hit]:
    """Return the problems that have enough examples of the candidate."""
    num_examples: Counter[int] = Counter()
    num_values: Counter[int] = Counter()
    for key in sorted(example_keys(candidate)):
        for number in index.by_example.get(key.digest, ()):
            num_examples[number] += 1
            num_values[number] += key.weight
    hits = []
    for number in sorted(num_examples):
        # One example alone is no hit, but supports a title or a signature.
        support[number] += 1
        has_examples = num_examples[number] >= _LEAST_EXAMPLES
        if has_examples and num_values[number] >= _LEAST_VALUES:
            detail = f"{num_examples[number]} examples of {num_values[number]} values"
            hits.append(
                Hit(
                    index.ids[number],
                    "examples",
                    num_examples[number],
                    detail,
                )
            )
    return hits


def _by_signature(
    candidate: Candidate,
    index: ContaminationIndex,
    support: Counter[int],
) -> list[Hit]:
    """Return the problems with the candidate's signature, where other evidence supports the
    match."""
    name = signature(candidate)
    hits = []
    for number in index.by_signature.get(name, ()):
        if support[number]:
            detail = f"{name}, and numbers or an example in common"
            hits.append(
                Hit(
                    index.ids[number],
                    "signature",
                    1.0,
                    detail,
                )
            )
        # After the check, since a signature does not support itself.
        support[number] += 1
    return hits


def _by_title(
    candidate: Candidate,
    index: ContaminationIndex,
    support: Mapping[int, int],
) -> list[Hit]:
    """Return the problems with the candidate's title, if it is long or another rule supports it."""
    title = title_key(candidate.title)
    is_enough = len(title.split()) >= _TITLE_WORDS
    hits = []
    for number in index.by_title.get(title, ()):
        if is_enough or support.get(number, 0):
            hits.append(
                Hit(
                    index.ids[number],
                    "title",
                    1.0,
                    title,
                )
            )
    return hits

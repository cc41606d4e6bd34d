"""Is a problem one of a benchmark's? By source, title, words, and by what a translation leaves: numbers and examples.

The index is built once from the benchmark's problems; a check reads the index only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from pydantic import Field

from microcoder.config import Config
from microcoder.dataset.filter.fingerprints import (
    Hashes,
    example_keys,
    gram_hashes,
    literal_hashes,
    literals,
    signature,
    source_keys,
    telling_hashes,
    title_key,
    words,
)
from microcoder.dataset.filter.meaning import MeaningIndex, MeaningSettings, index_meaning
from microcoder.dataset.process.cleaning import clean
from microcoder.dataset.process.html import looks_like_html
from microcoder.dataset.process.sections import normalise
from microcoder.dataset.process.tex import looks_like_tex
from microcoder.formats.candidates import Candidate

Key = TypeVar("Key")
_SAME_PROBLEM = 0.8
"""Share of 16-grams from which on two benchmark problems are one, listed twice."""

Evidence = Literal["source", "title", "words", "literals", "examples", "signature", "meaning", "behaviour"]


class ContaminationSettings(Config):
    """When a problem counts as a benchmark's (thresholds measured in docs/contamination.md)."""

    word_gram_length: int = Field(default=16, ge=4)
    """The paper's 16-grams."""
    min_word_share: float = Field(default=0.22, gt=0, le=1)
    """The paper's threshold: share of the shorter text's 16-grams that the other has too."""
    min_shared_words: int = Field(default=5, ge=1)
    """Fewer shared 16-grams that say what is asked are never enough; most of a text on input and output is the same in
    problems that have nothing in common (our choice)."""
    min_copy_share: float = Field(default=0.9, gt=0, le=1)
    """Share from which on 16-grams of any kind are enough (our choice)."""
    max_problems: int = Field(default=3, ge=1)
    """A 16-gram of more benchmark problems than this, copies of each other counted once, counts for none of them: such
    as the definition of a tree's node (our choice)."""
    literal_gram_length: int = Field(default=8, ge=3)
    """Runs of this many numbers and quoted strings (our choice)."""
    min_literal_share: float = Field(default=0.3, gt=0, le=1)
    """Share of the shorter one's runs of literals (our choice)."""
    min_shared_literals: int = Field(default=8, ge=1)
    """Fewer shared runs of literals than this are never enough (our choice)."""
    min_examples: int = Field(default=2, ge=1)
    """Examples with equal input and output (our choice)."""
    min_example_values: int = Field(default=14, ge=1)
    """Values that the equal examples must have together (our choice)."""
    min_title_words: int = Field(default=4, ge=1)
    """A title of so many words is enough; a shorter one only with something else in common (our choice)."""
    meaning: MeaningSettings = MeaningSettings()


@dataclass(frozen=True, slots=True)
class Hit:
    """One benchmark problem that a candidate is, and how it shows."""

    problem_id: str
    """`dataset/row` of the benchmark's problem."""
    by: Evidence
    score: float
    """Share for words and literals, number of equal examples, similarity for meaning, 1 otherwise."""
    detail: str


@dataclass(frozen=True, slots=True)
class _Grams:
    """All hashes of all problems, sorted, each with its problem's number."""

    hashes: Hashes
    owners: np.ndarray
    sizes: np.ndarray

    @staticmethod
    def build(per_problem: Sequence[Hashes], left_out: Hashes | None = None) -> _Grams:
        if left_out is not None and len(left_out):
            per_problem = [np.setdiff1d(hashes, left_out, assume_unique=True) for hashes in per_problem]
        sizes = np.array([len(hashes) for hashes in per_problem], dtype=np.int64)
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *per_problem])
        order = np.argsort(hashes, kind="stable")
        return _Grams(hashes[order], np.repeat(np.arange(len(sizes)), sizes)[order], sizes)

    def shared(self, found: Hashes) -> np.ndarray:
        """Return for each problem how many of its hashes are among these."""
        low = np.searchsorted(self.hashes, found, side="left")
        high = np.searchsorted(self.hashes, found, side="right")
        hit = np.nonzero(high > low)[0]
        owners = [self.owners[low[i] : high[i]] for i in hit]
        return np.bincount(np.concatenate(owners), minlength=len(self.sizes)) if owners else np.zeros_like(self.sizes)


@dataclass(frozen=True, slots=True)
class ContaminationIndex:
    """What is known of a benchmark's problems; made by `build_index`."""

    settings: ContaminationSettings
    ids: tuple[str, ...]
    by_source: dict[str, int]
    by_title: dict[str, list[int]]
    by_signature: dict[str, list[int]]
    by_example: dict[int, list[int]]
    boilerplate: Hashes
    """16-grams of more problems than `max_problems`; the next two are without."""
    words: _Grams
    telling: _Grams
    literals: _Grams
    meaning: MeaningIndex | None


def build_index(benchmark: Iterable[Candidate], settings: ContaminationSettings | None = None) -> ContaminationIndex:
    """Index the problems of one benchmark or several, each as found and, where it is a page or TeX, as cleaned too."""
    settings = settings or ContaminationSettings()
    benchmark = list(benchmark)
    problems = sorted((text for problem in benchmark for text in _texts_of(problem)), key=lambda problem: problem.id)
    texts = [_text(problem) for problem in problems]
    tokens = [words(text) for text in texts]
    grams = [gram_hashes(said, settings.word_gram_length) for said in tokens]
    boilerplate = _find_boilerplate(grams, [problem.id for problem in problems], settings.max_problems)
    return ContaminationIndex(
        settings=settings,
        ids=tuple(problem.id for problem in problems),
        by_source={key: number for number, problem in enumerate(problems) for key in source_keys(problem)},
        by_title=_owners([title_key(problem.title)] for problem in problems),
        by_signature=_owners([signature(problem)] for problem in problems),
        by_example=_owners([key.digest for key in example_keys(problem)] for problem in problems),
        boilerplate=boilerplate,
        words=_Grams.build(grams, boilerplate),
        telling=_Grams.build([telling_hashes(said, settings.word_gram_length) for said in tokens], boilerplate),
        literals=_Grams.build([literal_hashes(literals(text), settings.literal_gram_length) for text in texts]),
        meaning=index_meaning(benchmark, settings.meaning),
    )


def _owners(keys: Iterable[Iterable[Key]]) -> dict[Key, list[int]]:
    """Return the numbers of the problems that have each key; an empty one is none."""
    owners: dict[Key, list[int]] = {}
    for number, of_problem in enumerate(keys):
        for key in of_problem:
            if key:
                owners.setdefault(key, []).append(number)
    return owners


def _find_boilerplate(per_problem: Sequence[Hashes], ids: Sequence[str], most: int) -> Hashes:
    """Return the hashes of more problems than these; a problem that is listed twice is one."""
    all_grams = _Grams.build(per_problem)
    found, starts, counts = np.unique(all_grams.hashes, return_index=True, return_counts=True)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(ids))}
    group = np.array([numbers[name] for name in ids], dtype=np.int64)
    is_frequent = counts > most
    for number in np.unique(all_grams.owners[np.repeat(is_frequent, counts)]).tolist():
        least = np.minimum(all_grams.sizes, all_grams.sizes[number]) * _SAME_PROBLEM
        group[number] = group[all_grams.shared(per_problem[number]) >= least].min()
    owners = zip(found[is_frequent], starts[is_frequent], counts[is_frequent], strict=True)
    return np.array(
        [gram for gram, at, num in owners if len(np.unique(group[all_grams.owners[at : at + num]])) > most],
        dtype=np.uint64,
    )


def _texts_of(problem: Candidate) -> Iterator[Candidate]:
    yield problem
    text = _text(problem)
    # Cleaning costs more than all the rest; Markdown stays as it is.
    if looks_like_html(text) or looks_like_tex(text):
        try:
            yield problem.model_copy(update={"statement": normalise(clean(text).text)})
        except RecursionError:
            return


def _text(candidate: Candidate) -> str:
    return candidate.statement or candidate.statement_found


def find_hits(candidate: Candidate, index: ContaminationIndex) -> list[Hit]:
    """Return the benchmark problems that a candidate is, each with its strongest evidence; none where it is clean."""
    if not index.ids:
        return []
    hits = [
        Hit(index.ids[index.by_source[key]], "source", 1.0, key)
        for key in sorted(source_keys(candidate))
        if key in index.by_source
    ]
    # Both texts: a translation is compared by its words, the original by what it has in common with every language.
    texts = {candidate.statement or candidate.statement_found, candidate.statement_found or candidate.statement}
    support: Counter[int] = Counter()
    for text in sorted(texts):
        hits += _by_grams(text, index, support)
    hits += _by_examples(candidate, index, support)
    hits += _by_title(candidate, index, support)
    if not hits and index.meaning is not None and (found := index.meaning.find(candidate)):
        detail = f"similarity {found[1]:.3f}, above {index.meaning.bar:.3f}"
        hits.append(Hit(found[0], "meaning", round(found[1], 3), detail))
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(hit.problem_id, hit)
    return list(first.values())


def _by_grams(text: str, index: ContaminationIndex, support: Counter[int]) -> list[Hit]:
    settings = index.settings
    said = words(text)
    runs = np.setdiff1d(gram_hashes(said, settings.word_gram_length), index.boilerplate, assume_unique=True)
    telling = index.telling.shared(telling_hashes(said, settings.word_gram_length))
    numbers = literal_hashes(literals(text), settings.literal_gram_length)
    hits = []
    by: Evidence
    for by, grams, found in (("words", index.words, runs), ("literals", index.literals, numbers)):
        shared = grams.shared(found)
        says = telling if by == "words" else shared
        for number in np.nonzero(shared)[0].tolist():
            share = float(shared[number] / max(1, min(len(found), int(grams.sizes[number]))))
            support[number] += bool(says[number] >= 2)
            if by == "words":
                num = shared[number] if share >= settings.min_copy_share else telling[number]
                is_hit = num >= settings.min_shared_words and share >= settings.min_word_share
            else:
                is_hit = shared[number] >= settings.min_shared_literals and share >= settings.min_literal_share
            if is_hit:
                detail = f"{shared[number]} runs of {by} shared, {share:.2f} of the shorter"
                hits.append(Hit(index.ids[number], by, round(share, 3), detail))
    return hits


def _by_examples(candidate: Candidate, index: ContaminationIndex, support: Counter[int]) -> list[Hit]:
    settings = index.settings
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
        if num[number] >= settings.min_examples and values[number] >= settings.min_example_values:
            hits.append(
                Hit(index.ids[number], "examples", num[number], f"{num[number]} examples of {values[number]} values")
            )
    for number in index.by_signature.get(name, ()):
        if support[number]:
            hits.append(Hit(index.ids[number], "signature", 1.0, f"{name}, and numbers or an example in common"))
        support[number] += 1
    return hits


def _by_title(candidate: Candidate, index: ContaminationIndex, support: Counter[int]) -> list[Hit]:
    title = title_key(candidate.title)
    is_enough = len(title.split()) >= index.settings.min_title_words
    return [
        Hit(index.ids[number], "title", 1.0, title)
        for number in index.by_title.get(title, ())
        if is_enough or support[number]
    ]

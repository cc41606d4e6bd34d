"""Steps of a build that need to see all rows first: duplicates, and the selection by difficulty."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from microcoder.data.corpus.settings import DifficultySettings
from microcoder.data.difficulty import read_responses, select, with_pass_rate
from microcoder.data.filter.boilerplate import (
    Edges,
    Shared,
    count_shared,
    edges_of,
    learn_shared,
)
from microcoder.data.filter.duplicates import Fingerprint, describe, find_duplicates
from microcoder.data.filter.merging import merge
from microcoder.data.formats.candidates import Candidate, Difficulty
from microcoder.data.pipeline.steps import Barrier, Row
from microcoder.data.verify.store import evaluator_version
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError


class BoilerplateBarrier(Barrier):
    """Counts the words that most rows of a set begin or end with: they tell no problem."""

    def __init__(self, settings: Config) -> None:
        self._shared: dict[str, Shared] = {}
        """What most rows of a set share, by its prefix."""

    def look(self, candidates: Sequence[Candidate]) -> list[Edges]:
        """Return how each statement begins and ends."""
        return list(map(edges_of, candidates))

    def decide(self, looks: Iterable[Edges]) -> None:
        """Learn what most rows of each set share."""
        self._shared = learn_shared(looks)

    def apply(
        self,
        candidate: Candidate,
        others: Mapping[str, Candidate],
    ) -> Row:
        """Return the candidate with the number of its shared words."""
        return candidate.change(
            "filter",
            "boilerplate/1",
            "most rows of its set share them",
            boilerplate=count_shared(candidate, self._shared),
        )


class DuplicateBarrier(Barrier):
    """Keeps the best record of each problem, with the tests and solutions of all."""

    def __init__(self, settings: Config) -> None:
        self._groups: dict[str, dict[str, str]] = {}
        """How each duplicate was found, by the record that is kept and the duplicate's id."""
        self._dropped: dict[str, str] = {}
        """Why a record is dropped."""

    def look(self, candidates: Sequence[Candidate]) -> list[Fingerprint]:
        """Return a fingerprint of each record, to find duplicates by."""
        return describe(candidates)

    def decide(self, looks: Iterable[Fingerprint]) -> None:
        """Find the groups of records of the same problem, and choose the record to keep of each
        group."""
        self._groups = find_duplicates(looks)
        self._dropped = {}
        for kept, duplicates in self._groups.items():
            for name, how in duplicates.items():
                self._dropped[name] = f"{kept} by {how}"

    def needs(self, name: str) -> Sequence[str]:
        """Return the ids of a kept record's duplicates; none for other records."""
        return list(self._groups.get(name, ()))

    def apply(
        self,
        candidate: Candidate,
        others: Mapping[str, Candidate],
    ) -> Row:
        """Return a kept record merged with its duplicates, or the rejection of a duplicate.

        Another record is returned as it is.
        """
        if candidate.id in self._dropped:
            return candidate.reject(
                "filter",
                "duplicate_of",
                self._dropped[candidate.id],
            )
        if not others:
            return candidate
        return merge(candidate, list(others.values()))


class RatedProblem(NamedTuple):
    """What the selection needs to know of a problem."""

    id: str
    pass_rates: tuple[str, ...]
    difficulty: Difficulty


class SelectionBarrier(Barrier):
    """Writes each problem's pass rate, and rejects problems outside the wanted distribution."""

    def __init__(self, settings: DifficultySettings) -> None:
        self._settings = settings
        self._rejected: dict[str, tuple[str, str]] = {}
        """Reason and detail, by the id of a problem that was not chosen."""

    def look(self, candidates: Sequence[Candidate]) -> list[RatedProblem]:
        """Return the id, the pass rates and the difficulty of each candidate."""
        looks = []
        for candidate in candidates:
            difficulty = self._measured(candidate).difficulty
            looks.append(
                RatedProblem(
                    candidate.id,
                    candidate.pass_rates,
                    difficulty,
                )
            )
        return looks

    def decide(self, looks: Iterable[RatedProblem]) -> None:
        """Choose the problems to keep, given `look`'s results.

        Raises:
            DataError: none has an attempt or published rate.
        """
        rates: dict[str, Sequence[str]] = {}
        difficulties = {}
        # By place: between `look` and this they were on disk, as plain tuples.
        for name, pass_rates, difficulty in looks:
            rates[name] = pass_rates
            difficulties[name] = difficulty
        # Before anything is rejected: a wrong name would reject everything.
        check_rates(self._settings, rates)
        if self._settings.selection is not None:
            self._rejected = select(difficulties, self._settings.selection)

    def apply(
        self,
        candidate: Candidate,
        others: Mapping[str, Candidate],
    ) -> Row:
        """Return the candidate with its pass rate, or its rejection if it was not chosen."""
        measured = self._measured(candidate)
        rejection = self._rejected.get(candidate.id)
        if rejection is None:
            return measured
        return measured.reject("filter", *rejection)

    def _measured(self, candidate: Candidate) -> Candidate:
        """Return the candidate with its pass rate, if the settings name a model whose rates
        count."""
        settings = self._settings
        if not settings.pass_rates_of:
            return candidate
        # Published rates were judged elsewhere.
        evaluator = evaluator_version() if settings.responses else "unknown"
        measured_on = f"{settings.pass_rates_of} evaluator={evaluator}"
        return with_pass_rate(candidate, settings.pass_rates_of, measured_on)


def check_rates(
    settings: DifficultySettings,
    problems: Mapping[str, Sequence[str]],
) -> None:
    """Raise DataError if none of these problems has an attempt, or a published rate.

    Args:
        settings: names the attempts or the model whose rates count.
        problems: `pass_rates` by id.
    """
    if not problems:
        return
    if settings.responses is not None:
        # Attempts of other problems are no error, as long as some are of these.
        names = read_responses(settings.responses)
        if problems.keys().isdisjoint(names):
            raise DataError(
                f"responses {settings.responses}: no id ({list(names)[:1]}, ...) is of a problem "
                "that is left; write them as the corpus does, such as "
                f"{min(problems)!r}"
            )
    elif settings.pass_rates_of:
        models = set()
        for rates in problems.values():
            models.update(entry.rpartition("=")[0] for entry in rates)
        if settings.pass_rates_of not in models:
            known = ", ".join(sorted(models)) or "no model"
            raise DataError(
                f"pass_rates_of = {settings.pass_rates_of!r}, but rates are of {known}; name one"
            )

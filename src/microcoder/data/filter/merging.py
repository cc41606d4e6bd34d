"""Makes one record of several records of one problem: the best stays, and the others add to it."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from microcoder.data.filter.licences import strictest_licence
from microcoder.data.formats.candidates import Candidate, Origin
from microcoder.judge.core.types import Checker, TestCase

STEP = "merge_duplicates/1"
"""Name and version of the step in the lineage of a candidate."""
_FILLED = (
    "url",
    "date",
    "platform",
    "title",
    "platform_difficulty",
    "time_limit_seconds",
    "memory_limit_mib",
)
"""Fields that are taken from another record where the kept one lacks them."""


def merge(kept: Candidate, others: Sequence[Candidate]) -> Candidate:
    """Return the kept record with the others' tests, solutions and tags, and the fields it lacks.

    A test is added if its input is new and it is called in the same way (stdin, or the same
    function). A checker comes with the tests if the kept record has none.

    The licence is the strictest of all records that gave a test, a solution or the checker. Facts
    such as a title or a date have no licence.
    """
    # The order of their tests must not depend on the order of the records.
    others = sorted(others, key=lambda other: other.id)
    merged = _Merged(kept)
    detail = f"merged {len(others)}"
    num_left = 0
    for other in others:
        if _are_called_alike(kept, other):
            merged.take(other)
        else:
            num_left += len(other.tests)
    if num_left:
        detail += f"; {num_left} tests called in another way"
    records = [kept, *others]
    filled = {name: _first_filled(name, records) for name in _FILLED}
    # The best record's own come first, then those of the others by their ids.
    tags = [kept.tags]
    pass_rates = [kept.pass_rates]
    merged_ids = [kept.merged]
    for other in others:
        tags.append(other.tags)
        pass_rates.append(other.pass_rates)
        merged_ids.append((other.id, *other.merged))
    return kept.change(
        "filter",
        STEP,
        detail,
        tests=merged.tests,
        groups=merged.groups,
        origins=merged.origins,
        licence=strictest_licence(merged.licences),
        checker=merged.checker,
        solutions=tuple(merged.solutions),
        tags=_union(tags),
        pass_rates=_union(pass_rates),
        merged=_union(merged_ids),
        **filled,
    )


def _are_called_alike(kept: Candidate, other: Candidate) -> bool:
    """Whether the tests of two records can judge one program."""
    is_same_call = other.fn_name == kept.fn_name and other.call == kept.call
    # A test of an interactor's is no input of a program.
    if other.interactor != kept.interactor:
        return False
    return is_same_call and other.assertions == kept.assertions


class _LabelledTest(NamedTuple):
    """A test, its group, and where it comes from."""

    test: TestCase
    group: str
    origin: Origin


class _Merged:
    """A record that takes tests, solutions and a checker from others."""

    def __init__(self, kept: Candidate) -> None:
        self.solutions = list(kept.solutions)
        self.checker = kept.checker
        self.licences = [kept.licence]
        """Licences of the records that something was taken from."""
        self._kept = kept
        self._labelled = _label_tests(kept)
        self._inputs = {_normal_input(test) for test in kept.tests}
        self._programs = {(solution.language, solution.code) for solution in kept.solutions}

    @property
    def tests(self) -> tuple[TestCase, ...]:
        """All tests."""
        return tuple(labelled.test for labelled in self._labelled)

    @property
    def groups(self) -> tuple[str, ...]:
        """The group of each test; empty where there are no groups."""
        groups = tuple(labelled.group for labelled in self._labelled)
        # Empty labels alone say nothing.
        return groups if any(groups) else ()

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The origin of each test; if no test was added, the kept record's origins."""
        if len(self._labelled) == len(self._kept.tests):
            return self._kept.origins
        return tuple(labelled.origin for labelled in self._labelled)

    def take(self, other: Candidate) -> None:
        """Take the tests, solutions and checker that another record adds; both are called in the
        same way."""
        # By their number: both sets only grow.
        num_known = len(self._inputs) + len(self._programs)
        for labelled in _label_tests(other):
            test_input = _normal_input(labelled.test)
            if test_input not in self._inputs:
                self._inputs.add(test_input)
                self._labelled.append(labelled)
        for solution in other.solutions:
            key = (solution.language, solution.code)
            if key not in self._programs:
                self._programs.add(key)
                self.solutions.append(solution)
        is_taken = len(self._inputs) + len(self._programs) > num_known
        # A checker knows more than a comparison, whatever record it comes from.
        only_compares = self.checker == Checker()
        if only_compares and other.checker != Checker():
            self.checker = other.checker
            is_taken = True
        if is_taken:
            self.licences.append(other.licence)


def _normal_input(test: TestCase) -> str:
    """Return a test's input in the form in which inputs are compared.

    A test that is a program has none, and is compared itself.
    """
    return (test.input or test.output).rstrip()


def _first_filled(name: str, candidates: Sequence[Candidate]) -> object:
    """Return the first value of a field that is not empty; else the first record's."""
    for candidate in candidates:
        value = getattr(candidate, name)
        if value:
            return value
    return getattr(candidates[0], name)


def _union(sequences: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return all different values in order."""
    return tuple(dict.fromkeys(chain.from_iterable(sequences)))


def _label_tests(candidate: Candidate) -> list[_LabelledTest]:
    """Return the tests of a record with their groups and origins."""
    groups = candidate.groups or ("",) * len(candidate.tests)
    origins = candidate.origins or (Origin(kind="given"),) * len(candidate.tests)
    labelled = []
    for test, group, origin in zip(
        candidate.tests,
        groups,
        origins,
        strict=True,
    ):
        labelled.append(
            _LabelledTest(
                test,
                group,
                _name_source(origin, candidate),
            )
        )
    return labelled


def _name_source(origin: Origin, candidate: Candidate) -> Origin:
    """Return an origin that names the record and its licence, as it does after an earlier merge."""
    # That names the record from which an earlier merge took the test.
    if origin.source:
        return origin
    of_record = {"source": candidate.id, "licence": candidate.licence}
    return origin.model_copy(update=of_record)

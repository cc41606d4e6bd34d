"""The records of the pipeline: a problem that is not in the corpus yet, and a rejected row.

    raw row -> Candidate -> ... -> Candidate -> Problem        or, at any stage, -> Rejection

Every stage takes a candidate and returns a changed copy or a `Rejection`; nothing disappears.

`REASONS` has the codes of rejections after the collect stage, without those of the verify stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import Field

from microcoder.judge.core.errors import MicroCoderError
from microcoder.judge.core.machine import is_disk_full
from microcoder.judge.core.types import (
    Assertions,
    Call,
    Checker,
    Interactor,
    Problem,
    Record,
    TestCase,
)

Stage = Literal["collect", "process", "filter", "generate", "verify"]
"""A stage of a build."""
STAGES: tuple[Stage, ...] = ("collect", "process", "filter", "generate", "verify")
"""The stages in their order."""

Known = Literal[
    "accepted",
    "wrong_answer",
    "time_limit",
    "memory_limit",
    "runtime_error",
    "compile_error",
    "partial",
]
"""The verdict that a source gives a program."""


class Solution(Record):
    """A program that came with a problem, and the verdict that the source gives it."""

    code: str
    language: str = "python"
    """`python`, `python2`, `cpp`, ... as the source says; only what the evaluator knows is run."""
    known: Known = "accepted"
    """The verdict that the source gives it."""
    name: str = ""
    """The program's path or name in the source."""


class Lineage(Record):
    """A record of one change to one field of a candidate."""

    stage: Stage
    step: str
    """The step that made the change, with its version, such as `clean/2`."""
    field: str
    detail: str = ""
    """Model and prompt hash where a model made it; otherwise what was done, in a few words."""


class Difficulty(Record):
    """How hard a problem is: a model's prediction, and the measured pass rate of a model."""

    predicted: float | None = None
    """A model's score, 1 (easiest) to 5."""
    predictor: str = ""
    """Model and hash of the prompt that gave the score."""
    pass_rate: float | None = None
    """Share of a model's answers that passed all tests."""
    pass_rate_low: float | None = None
    """Lower end of the interval of `pass_rate`."""
    pass_rate_high: float | None = None
    """Upper end of the interval of `pass_rate`."""
    measured_on: str = ""
    """Model, checkpoint, budget and evaluator version that the pass rate belongs to."""


class Origin(Record):
    """Where one test comes from: given by the source, or generated, and how."""

    kind: str
    """`given` by the source; `package/<generator>`; `mutated/<mutation>`; `model/<generator>`;
    `changed/<change>` of a text; `tiny/all`; `random/<form>` and `largest/<form>` of a layout."""
    certificate: Literal["", "package", "model", "unchecked"] = ""
    """What accepted a generated input: validators of the `package` or by a `model`.

    `unchecked`: none did; empty: the input was given.
    """
    seed: int = 0
    """Seed of the random choices; 0 if there were none."""
    parent: str = ""
    """Digest of the input that it was made from, where it was (see `digest_input`)."""
    arguments: tuple[str, ...] = ()
    """`package`, `model`: arguments that the generator was called with."""
    source: str = ""
    """Id of the merged record that the test came from; empty if nothing was merged."""
    licence: str = ""
    """Licence of the record `source`."""


class InputProgram(Record):
    """A program of a package that makes or checks inputs, whole in one file."""

    name: str
    role: Literal["generator", "validator"]
    code: str
    language: str


class InputRecipe(Record):
    """How a package makes one input: by a call of a generator, or as a fixed text."""

    group: str
    """Group of the test, such as `secret/group1`."""
    generator: str = ""
    """Name of a program; empty where `text` is the input."""
    arguments: tuple[str, ...] = ()
    text: str = ""
    flags: tuple[str, ...] = ()
    """Arguments with which validators are called on this input."""


class InputKit(Record):
    """Programs and recipes of a package that make and check its inputs."""

    programs: tuple[InputProgram, ...] = ()
    recipes: tuple[InputRecipe, ...] = ()
    flags: tuple[tuple[str, ...], ...] = ()
    """Arguments of validators, one tuple per group of tests.

    An input is valid if accepted with those of one group.
    """
    left_out: tuple[str, ...] = ()
    """Parts that could not be read, and why."""


Note = tuple[str, str]
"""A field of a candidate, and a text on what was changed or left out in it."""


@dataclass(frozen=True, slots=True)
class DecodedTests:
    """Tests in our own form, with function and checker.

    Notes say what was changed or left out.
    """

    __test__ = False  # not a pytest class

    tests: tuple[TestCase, ...] = ()
    fn_name: str | None = None
    checker: Checker = field(default_factory=Checker)
    notes: tuple[Note, ...] = ()
    call: Call | None = None
    assertions: Assertions | None = None
    dropped: tuple[str, ...] = ()
    """Why each assertion that is no test was left out."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that a candidate takes from these tests, by name."""
        return {
            "tests": self.tests,
            "fn_name": self.fn_name,
            "call": self.call,
            "checker": self.checker,
            "assertions": self.assertions,
        }


class Candidate(Record):
    """A problem that a build has read, but not yet accepted into the corpus.

    Every stage changes or rejects it.
    """

    id: str = Field(min_length=1)
    """`dataset/row`, the same in every run."""
    dataset: str
    """Name of the format that read it."""
    source_row: str = ""
    """File that it was read from, and its place in that file."""
    url: str = ""
    licence: str = ""
    """SPDX name, or the words of the source; empty if it says nothing."""
    date: str = ""
    """When the problem was published: ISO, as exact as it is known (2024, 2024-05, 2024-05-17)."""
    platform: str = ""
    """`codeforces`, `atcoder`, `leetcode`, `kattis`, ... in lower case."""
    title: str = ""
    tags: tuple[str, ...] = ()
    platform_difficulty: str = ""
    """Difficulty in the source's own words or numbers, such as `1800` or `interview`."""
    statement_found: str = ""
    """The statement as the source has it, unchanged."""
    statement: str = ""
    """The statement as models are shown it; until the process stage as `statement_found`."""
    natural_language: str = ""
    """ISO 639-1 code of the statement, from the source or the process stage; empty until then."""
    programming_language: str = "python"
    """Language that answers are written in."""
    fn_name: str | None = None
    call: Call | None = None
    """Types of arguments and result of a function, if they are more than plain JSON."""
    starter_code: str | None = None
    assertions: Assertions | None = None
    """Set where tests are Python programs, see `Problem.assertions`."""
    tests: tuple[TestCase, ...] = ()
    groups: tuple[str, ...] = ()
    """One name per test where the source groups them (`sample`, `secret/group1`); else empty."""
    origins: tuple[Origin, ...] = ()
    """One per test where some were made here or come from a merged record.

    Otherwise empty: the source gave all.
    """
    kit: InputKit = InputKit()
    """The package's own generators and validators of inputs."""
    checker: Checker = Checker()
    interactor: Interactor | None = None
    """Talks with the answer; None if the problem is not interactive, or has the flag `interactive`
    since its interactor is not there."""
    time_limit_seconds: float | None = None
    time_multiplier: float | None = Field(default=None, gt=0)
    """If the source states no time limit but a factor: the limit is the slowest accepted program's
    time, times this."""
    memory_limit_mib: int | None = None
    solutions: tuple[Solution, ...] = ()
    flags: tuple[str, ...] = ()
    """Obstacles, and what is only worth knowing.

    The source's format sets `gives_points`, `needs_files`, `needs_image`, `needs_checker` and
    `file_io`; the process stage finds `needs_image`, `interactive`, `many_answers` and
    `unstated_output`, the generate stage `no_tests_made`, the verify stage `slow_passes` and
    `limit_unsure`. Only worth knowing are `has_image`, `in_any_order`, `reference_by_attempts`,
    `attempts_disagree`, `tests_dropped`, `tests_outside_bounds`, `samples_not_shown`,
    `samples_missing` and `samples_differ`.
    """
    boilerplate: tuple[int, int] = (0, 0)
    """Words at the beginning and end of the statement that most rows of its set share."""
    difficulty: Difficulty = Difficulty()
    pass_rates: tuple[str, ...] = ()
    """`model=rate` where published, `model=passed/attempts` where measured."""
    counts: dict[str, tuple[int, int]] = Field(default={})
    """Name of each rate that the verify stage measures: programs judged as known, and programs run.

    Empty before that stage.
    """
    lineage: tuple[Lineage, ...] = ()
    merged: tuple[str, ...] = ()
    """Ids of the duplicates that were merged into this one."""

    def change(
        self,
        stage: Stage,
        step: str,
        detail: str = "",
        **fields: object,
    ) -> Candidate:
        """Return a copy with these fields changed, and a line of lineage for each change."""
        changed = {name: value for name, value in fields.items() if getattr(self, name) != value}
        # A step that changes nothing leaves no trace in the lineage.
        if not changed:
            return self
        lines = tuple(
            Lineage(
                stage=stage,
                step=step,
                field=name,
                detail=detail,
            )
            for name in changed
        )
        lineage = self.lineage + lines
        return self.model_copy(update={**changed, "lineage": lineage})

    def reject(
        self,
        stage: Stage,
        reason: str,
        detail: str = "",
    ) -> Rejection:
        """Return a rejection that holds the whole candidate; `reason` is such as `no_tests`."""
        return Rejection(
            id=self.id,
            dataset=self.dataset,
            source_row=self.source_row,
            stage=stage,
            reason=reason,
            detail=detail,
            candidate=self,
        )

    def to_problem(self) -> Problem:
        """Return the candidate as the problem that training reads.

        Raises:
            pydantic.ValidationError: it is not complete; those that passed every stage are.
        """
        fields = self._judged_fields(self.programming_language)
        # Without limits of its own, a problem has the judge's.
        if self.time_limit_seconds is not None:
            fields["time_limit_seconds"] = self.time_limit_seconds
        if self.memory_limit_mib is not None:
            fields["memory_limit_mib"] = self.memory_limit_mib
        return Problem(
            **fields,
            statement=self.statement,
            assertions=self.assertions,
            tests=self.tests,
            tier=self.platform_difficulty or None,
            reference=self._find_reference(),
        )

    def _find_reference(self) -> str | None:
        """Return the first right program in the language of answers; None without one."""
        for solution in self.solutions:
            if solution.known == "accepted" and solution.language == self.programming_language:
                return solution.code
        return None

    def to_trial(
        self,
        language: str,
        *,
        seconds: float,
        memory_mib: int,
        tests: Sequence[TestCase] | None = None,
    ) -> Problem:
        """Return the problem that a program of some language is judged by, under these limits.

        Args:
            language: of the program.
            seconds: CPU limit per test.
            tests: used instead of the candidate's tests, if given.

        Raises:
            pydantic.ValidationError: tests, checker and call do not go together.
        """
        if tests is None:
            tests = self.tests
        return Problem(
            **self._judged_fields(language),
            assertions=self.assertions,
            tests=tuple(tests),
            time_limit_seconds=seconds,
            memory_limit_mib=memory_mib,
        )

    def _judged_fields(self, language: str) -> dict[str, Any]:
        """Return the fields that a problem takes over, by name."""
        return {
            "id": self.id,
            "language": language,
            "fn_name": self.fn_name,
            "call": self.call,
            "starter_code": self.starter_code,
            "checker": self.checker,
            "interactor": self.interactor,
        }


class Rejection(Record):
    """A rejected row, with everything needed to see why."""

    id: str
    dataset: str
    source_row: str = ""
    stage: Stage
    reason: str
    """A code such as `no_tests`; the same word everywhere for the same reason."""
    detail: str = ""
    """What was found in the row, in a few words."""
    raw: str = ""
    """The row as it was found, where it could not be read.

    Bytes that are no UTF-8 are in base64, after `base64:`.
    """
    candidate: Candidate | None = None
    """The candidate before it was rejected; None for a row that could not be read."""


Made = TypeVar("Made")

_MAX_DETAIL = 300
"""Characters of the detail of a rejection as `row_fault`."""

REASONS: dict[str, str] = {
    "no_statement": "nothing is asked, or the page said that there was nothing",
    "not_english": "the statement is in another language",
    "translation_failed": "its translation lost or added something",
    "broken_tests": "no test could be read",
    "conflicting_tests": "too many tests give one input two outputs",
    "no_signature": "a function is asked for whose parameters are nowhere said",
    "other_function": "its starter code names another function than its tests call",
    "too_short": "too few words to say a problem",
    "too_long": "a page rather than a problem",
    "not_a_program": "a database, a shell or a quiz is asked for",
    "needs_image": "it cannot be understood without its picture",
    "interactive": "the program talks with a judge, which the source does not give",
    "file_io": "the program reads or writes files",
    "many_answers": "several answers are right and no checker decides",
    "unstated_output": "its tests expect a text or value that its statement never names",
    "gives_points": "its output validator gives points, without a pass mark",
    "needs_files": "a program is built together with files of its package",
    "no_tests": "nothing to judge an answer by, and nothing could be made",
    "all_tests_shown": "its statement shows every test that is left",
    "few_hidden_tests": "its statement shows all but a few of its tests (verify.min_hidden_tests)",
    "licence_refused": "its licence is not on the list",
    "licence_unknown": "the source names no licence",
    "contaminated": "it is a problem of a benchmark",
    "duplicate_of": "another record of the same problem is kept",
    "no_difficulty": "problems are selected by difficulty and nothing says this one's",
    "too_easy": "more easy problems than wanted; the hardest of them stay",
    "row_fault": "our own code failed on it: a bug, please report it",
}
"""Reason code to its meaning; docs/dataset-audit.md shows the same table."""


def process_row(
    candidate: Candidate,
    stage: Stage,
    work: Callable[[Candidate], Made],
) -> Made | Rejection:
    """Return `work(candidate)`; if our own code fails, its rejection as `row_fault`.

    So one row does not end the run.
    """
    try:
        return work(candidate)
    except MicroCoderError:
        # It says what the user can mend, so it must not end as a rejected row.
        raise
    except Exception as error:
        if is_disk_full(error):
            # Not the row's fault: those after it would fail alike.
            raise
        # Where recursion or memory ended differs from run to run; the rows must not.
        text = type(error).__name__
        if not isinstance(error, RecursionError | MemoryError):
            text += f": {error}"
        # Lone surrogates can be in any message, but not in UTF-8.
        text = text.encode("utf-8", "replace").decode("utf-8")
        detail = " ".join(text.split())[:_MAX_DETAIL]
        return candidate.reject(stage, "row_fault", detail)

"""The nouns of the pipeline, one frozen type per hand-over.

    Problem -> Prompt -> Rollout -> Program -> Verdict -> Reward -> Advantage -> Metrics -> Report

`Problem` is what files hold, so it is validated (pydantic). The rest lives in memory by the
thousand and is plain frozen dataclasses. A reward is a `float`, or `None` if the sandbox and not
the model failed; an advantage is a `float`. Metrics are defined in `microcoder.train.metrics`,
files in `microcoder.train.runs`.
"""

import json
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from microcoder.judge.core.syntax import attribute_docstrings


def _describe_fields(schema: dict[str, Any], record: type[BaseModel]) -> None:
    """Put the docstrings of a record's fields into its JSON schema."""
    for name, text in attribute_docstrings(record).items():
        if name in schema.get("properties", ()):
            # A description that the field itself was given stays.
            schema["properties"][name].setdefault("description", text)


class Record(BaseModel):
    """A validated, immutable record.

    Unknown keys are refused, field docstrings are the schema's descriptions.
    """

    # A misspelt key would otherwise leave a default in force without a word.
    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_describe_fields)


class Outcome(StrEnum):
    """The outcome of a program, or of one of its tests."""

    ACCEPTED = "accepted"
    WRONG_ANSWER = "wrong_answer"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    RUNTIME_ERROR = "runtime_error"
    OUTPUT_LIMIT = "output_limit"
    PROCESS_LIMIT = "process_limit"
    """Ended because it could not start another process or thread."""
    COMPILE_ERROR = "compile_error"
    NO_CODE = "no_code"
    """The response held no program (or one that was cut off)."""
    SANDBOX_FAULT = "sandbox_fault"
    """Our machine failed, not the program: never scored, never averaged."""


Dialect = Literal["plain", "livecodebench"]
"""The environment of a Python program, see `Problem.dialect`."""

MOST_SECONDS = 600.0
"""Longest CPU limit of a problem's test."""
LEAST_MEMORY_MIB = 32
"""Least memory limit of a problem."""
MOST_MEMORY_MIB = 1 << 16
"""Largest memory limit of a problem."""
CHECKER_FAULT = "the checker "
"""How the detail of a fault begins, after the test's number, if the checker program failed."""
CHECKER_CRASHED = "checker_crashed"
"""`TestResult.method` if the output crashed the problem's checker program.

The checker works on the problem's own answer.
"""


class TestCase(Record):
    """One input and the output a correct program gives for it."""

    __test__ = False  # not a pytest class

    input: str
    """stdin, or for a function-call problem one JSON argument per line."""
    output: str
    """Expected stdout; for a function-call problem the expected value as JSON; for one with
    `assertions` the Python program that is the test."""


class Checker(Record):
    """How an output is compared with the expected one (see docs/comparison.md)."""

    type: Literal["default", "exact", "tokens", "float", "unordered", "program"] = "default"
    tolerance: float | None = Field(default=None, gt=0, lt=1)
    """`float`, `unordered`: absolute or relative tolerance; `float` has 1e-6 for outputs if none is
    given."""
    absolute: float | None = Field(default=None, ge=0, lt=1)
    """`float`, `unordered`: absolute tolerance, in place of `tolerance`."""
    relative: float | None = Field(default=None, ge=0, lt=1)
    """`float`, `unordered`: relative tolerance, in place of `tolerance`; if both are given, one is
    enough."""
    case_sensitive: bool = True
    """`tokens`, `float`, `unordered`: whether `Yes` differs from `YES`."""
    by: Literal["lines", "tokens"] = "lines"
    """`unordered`: what may come in any order in an output."""
    lists: Literal["outermost", "inner", "all"] = "outermost"
    """`unordered`, for a returned value: whose items may come in any order; `inner`: those of the
    lists inside the outermost one, at every level."""
    code: str | None = Field(default=None, min_length=1)
    """`program`: the checker's source; it runs in the sandbox."""
    language: str = "python"
    """`program`: the language of `code`."""
    protocol: Literal["testlib", "kattis"] = "testlib"
    """`program`: `testlib` is called with the files input, output and answer and ends with 0
    (right) or 1 or 2 (wrong); `kattis` with input, answer and a feedback folder, the output on
    stdin, and ends with 42 or 43."""
    arguments: tuple[str, ...] = ()
    """`program`: further arguments, such as the flags of a Kattis output validator."""

    @model_validator(mode="after")
    def _options_belong_to_the_type(self) -> Self:
        allowed = _OPTIONS_OF_CHECKER.get(self.type, ())
        for name in sorted(self.model_fields_set - {"type"} - set(allowed)):
            value = getattr(self, name)
            # An option at its default says nothing, so files that spell all of them are read.
            if value != type(self).model_fields[name].default:
                owners = [kind for kind, options in _OPTIONS_OF_CHECKER.items() if name in options]
                raise ValueError(
                    f'checker type "{self.type}" takes no {name}; it belongs to "{owners[0]}": '
                    f'{{"type": "{owners[0]}", "{name}": {json.dumps(value)}}}'
                )
        has_parts = self.absolute is not None or self.relative is not None
        if self.tolerance is not None and has_parts:
            raise ValueError(
                "tolerance is both absolute and relative; give either it or absolute and relative"
            )
        if self.type == "program" and self.code is None:
            raise ValueError(
                'checker type "program" needs code: {"type": "program", "code": "..."}'
            )
        return self


_OPTIONS_OF_CHECKER = {
    "float": ("tolerance", "absolute", "relative", "case_sensitive"),
    "tokens": ("case_sensitive",),
    "unordered": ("by", "lists", "case_sensitive", "tolerance", "absolute", "relative"),
    "program": ("code", "language", "protocol", "arguments"),
}
"""Type of a checker -> the fields that it takes."""


class Interactor(Record):
    """A program that talks with the answer: the judge of an interactive problem.

    What it prints is the answer's stdin, and what the answer prints is its own. It finds a test's
    input and output in files, and runs in a sandbox that the answer never enters (see
    docs/interactive.md).
    """

    code: str = Field(min_length=1)
    """Its source."""
    language: str = "python"
    """The language of `code`."""
    protocol: Literal["testlib", "kattis"] = "testlib"
    """`testlib` is called with the files input, output and answer and ends with 0 (right) or 1 or 2
    (wrong); any checker but the default then judges the `output` that it wrote. `kattis` is called
    with input, answer and a feedback folder, and ends with 42 or 43."""
    arguments: tuple[str, ...] = ()
    """Further arguments, such as the flags of a Kattis output validator."""


KINDS = ("json", "ListNode", "TreeNode")
"""Kinds of values in a function-call problem.

docs/functions.md says how each is written as JSON.
"""
_KIND = re.compile(
    rf"(?P<open>(?:list\[){{0,4}})(?:{'|'.join(map(re.escape, KINDS))})(?P<close>\]{{0,4}})"
)
"""A kind, in up to four lists."""


def _check_kind(kind: str) -> str:
    match = _KIND.fullmatch(kind)
    if match is None or match["open"].count("[") != len(match["close"]):
        raise ValueError(
            f'{kind!r} is not a kind; use one of {", ".join(KINDS)}, or a list of one: "list[...]"'
        )
    return kind


Kind = Annotated[str, AfterValidator(_check_kind)]
"""The name of a kind, or of a list of one."""


class Signature(Record):
    """The kinds of a function's arguments and result."""

    parameters: tuple[Kind, ...] = Field(default=(), max_length=100)
    """Kind of each argument, in order; further arguments are plain JSON."""
    returns: Kind = "json"
    """Kind of the result; if an argument is the result, `json` stands for that argument's kind."""
    result: int | None = Field(default=None, ge=0, lt=100)
    """The argument, counted from 0, whose state after the call is the result, in place of what is
    returned."""

    @property
    def judged(self) -> Kind:
        """Kind of the value that is judged: the returned value, or the argument that is changed in
        place.
        """
        if self.result is None or self.returns != "json":
            return self.returns
        if self.result >= len(self.parameters):
            return self.returns
        return self.parameters[self.result]


class Method(Signature):
    """A method of a design class."""

    name: str = Field(min_length=1, max_length=200)
    """The method's name; `__init__` for the constructor."""


class Call(Signature):
    """How the tests of a function-call problem call the program."""

    style: Literal["function", "design"] = "function"
    """`design`: `fn_name` is a class; a test's first line lists operations, its second line their
    arguments."""
    methods: tuple[Method, ...] = Field(default=(), max_length=100)
    """`design`: methods whose arguments or results are not plain JSON."""

    @model_validator(mode="after")
    def _fields_belong_to_the_style(self) -> Self:
        changed = {
            name
            for name in self.model_fields_set
            if getattr(self, name) != Call.model_fields[name].default
        }
        misplaced = changed - {"style", "methods"}
        if self.style == "design" and misplaced:
            raise ValueError(f"style = design takes no {min(misplaced)}; move it to one of methods")
        if self.style == "function" and self.methods:
            raise ValueError('style = function takes no methods; use "style": "design" for a class')
        return self


class Assertions(Record):
    """Tests that are Python programs, which run as they were published (see docs/functions.md).

    Each test's `output` is such a program. It runs in a process that the answer never enters, where
    `candidate` and the function's own name stand for the answer's function; the test passes if the
    program ends without an exception. Its `input` is empty.
    """

    setup: str = ""
    """Python source that runs first, in the answer's module and in the test's: what the published
    harness gives both, such as imports."""
    names: tuple[Annotated[str, Field(max_length=200)], ...] = Field(default=(), max_length=100)
    """Further names that tests take from the answer, such as a class beside the function."""


class Problem(Record):
    """One programming problem with the tests that decide it."""

    id: str = Field(min_length=1)
    statement: str = ""
    """The problem's text; may be empty only for judging."""
    language: str = "python"
    """Which language an answer is written in: `python`, `cpp`, or another that the evaluator has a
    file for."""
    language_version: str = ""
    """Version of the language, such as `23` of C++; empty for the default one
    (docs/languages.md)."""
    fn_name: str | None = None
    """Function-call style when set: `class Solution` with this method, or a top-level function of
    this name; for `"call": {"style": "design"}` a class of this name."""
    call: Call | None = None
    """Kinds of arguments and results beyond plain JSON; if left out, they are read from the starter
    code's annotations (see docs/functions.md)."""
    dialect: Dialect = "plain"
    """Environment of a Python program: `plain` is `python main.py`, or for a function LeetCode's
    names; `livecodebench` what LiveCodeBench's checker puts first (star imports, 50,000 calls deep,
    50,000 digits)."""
    starter_code: str | None = None
    assertions: Assertions | None = None
    """Set where tests are Python programs that call `fn_name`, such as assertions."""
    tests: tuple[TestCase, ...] = Field(min_length=1)
    time_limit_seconds: float = Field(default=4.0, gt=0, le=MOST_SECONDS)
    """CPU seconds per test."""
    memory_limit_mib: int = Field(default=512, ge=LEAST_MEMORY_MIB, le=MOST_MEMORY_MIB)
    checker: Checker = Checker()
    interactor: Interactor | None = None
    """Set for an interactive problem: a program that talks with the answer."""
    tier: str | None = None
    """Difficulty as graded or as the platform says, for reports by tier."""
    reference: str | None = None
    """A program known to be right."""

    @classmethod
    def from_row(
        cls,
        row: Mapping[str, Any],
        format: str | None = None,
        *,
        columns: Mapping[str, str] | None = None,
    ) -> "Problem":
        """Return the problem of a row: the old name of `microcoder.read_problem`."""
        warnings.warn(
            "Problem.from_row is now a function; type: from microcoder import read_problem",
            DeprecationWarning,
            stacklevel=2,
        )
        # Reading rows is a room above this one: the package's front door knows where it is.
        return sys.modules["microcoder"].read_problem(row, format, columns=columns)

    @model_validator(mode="before")
    @classmethod
    def _refuse_harness(cls, fields: object) -> object:
        if not isinstance(fields, Mapping) or "harness" not in fields:
            return fields
        if fields["harness"] is None:
            return {name: value for name, value in fields.items() if name != "harness"}
        raise ValueError(
            "harness is gone: tests that are Python programs run as they were published, by the "
            "field assertions (docs/functions.md); convert the data set's rows again: "
            "microcoder data convert ROWS -o FILE"
        )

    @model_validator(mode="after")
    def _calls_something(self) -> Self:
        if self.call is not None and self.fn_name is None:
            raise ValueError(
                "call says how a function is called, but none is named; "
                'give fn_name, such as "solve"'
            )
        if self.assertions is not None:
            self._check_assertions()
        if self.interactor is not None:
            self._check_interactor(self.interactor)
        return self

    def _check_interactor(self, interactor: Interactor) -> None:
        if self.fn_name is not None:
            raise ValueError(
                "an interactor talks over stdin and stdout, so no function is called; "
                "leave fn_name out, or the interactor"
            )
        if self.checker == Checker():
            return
        # What is compared is what a testlib interactor has written.
        is_kattis = "kattis" in (interactor.protocol, self.checker.protocol)
        if is_kattis:
            raise ValueError(
                "a kattis interactor decides by itself, so checker says nothing; leave it out "
                "(what a testlib interactor wrote is compared by any but a kattis checker)"
            )

    def _check_assertions(self) -> None:
        if self.fn_name is None:
            raise ValueError(
                'assertions call a function, but none is named; give fn_name, such as "solve"'
            )
        if self.call is not None:
            raise ValueError(
                "assertions make the calls themselves, so call says nothing; leave one of them out"
            )
        if self.language != "python":
            raise ValueError(
                f"assertions call Python answers, but language is {self.language!r}; "
                "leave one of them out"
            )
        if self.checker != Checker():
            raise ValueError(
                "assertions decide by themselves, so checker says nothing; leave it out"
            )
        if self.dialect != "plain":
            raise ValueError(f"assertions run as plain Python; leave dialect {self.dialect!r} out")


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """The model's input: a chat before any chat template."""

    problem_id: str
    text: str
    """The user's turn that asks the problem."""
    before: tuple[Turn, ...] = ()
    """Earlier turns: a system turn, examples."""

    def as_chat(self) -> list[dict[str, str]]:
        """Return the turns in the form that chat templates and servers take."""
        turns = (*self.before, Turn("user", self.text))
        return [{"role": turn.role, "content": turn.content} for turn in turns]


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sampled response to a prompt."""

    problem_id: str
    prompt: str
    completion: str
    token_ids: tuple[int, ...]
    """Completion tokens, the end-of-sequence token included when it was generated."""
    is_truncated: bool
    """The response reached the length limit without an end-of-sequence token."""


@dataclass(frozen=True, slots=True)
class Program:
    """Source code taken from a response, or the reason why there is none."""

    code: str | None
    language: str = "python"
    reason: str = ""
    """How the code was found, or why there is none (see `microcoder.judge.core.extract`)."""
    is_incomplete: bool = False
    """The response was cut off before the program was finished."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test."""

    __test__ = False  # not a pytest class

    verdict: Outcome
    cpu_seconds: float
    wall_seconds: float
    memory_mib: float
    method: str
    """The comparison that accepted the output; empty when none did.

    `checker_crashed` if the output broke the problem's checker program.
    """
    detail: str
    """One line for a human: the difference, the exception, the limit."""
    output: str | None = None
    """The beginning of what a test that failed wrote or returned.

    None if the test passed or nothing is kept.
    """


class Repeat(StrEnum):
    """Why a test was run once more, and one of its runs did not count."""

    SHARED_WRONG = "shared_wrong"
    """The test was not accepted in a process that it shared with other tests.

    If its answer was wrong there, that stands.
    """
    SHARED_LOST = "shared_lost"
    """The process that the test shared with others died or was ended during it."""
    SHARED_OVER = "shared_over"
    """The process that the test shared with others took more memory than one test may."""
    NEAR_LIMIT = "near_limit"
    """The test ended a little beyond its time limit: timed again, alone on the machine."""
    NEIGHBOURS = "neighbours"
    """The test ran out of time while the machine turned out to be busier than before."""
    KILLED = "killed"
    """The test was killed, but by none of its limits."""
    SANDBOX_DIED = "sandbox_died"
    """The sandbox around the test broke."""
    JUDGED_ANEW = "judged_anew"
    """The program was judged again, with a process a test, and of each test the worse run counts.

    It had failed and then passed, so that the second run may have been a second chance.
    """
    DIFFERS = "differs"
    """Of two times that the program was judged with a process a test, one accepted it."""
    COPIED = "copied"
    """The program was sent to another machine before, which was lost; all its tests may have been
    run there."""


@dataclass(frozen=True, slots=True)
class UncountedRun:
    """A run of a test that did not count."""

    test: int
    """Number of the test, from 1."""
    reason: Repeat


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one program: the first failing test decides."""

    outcome: Outcome
    tests: tuple[TestResult, ...]
    """Results of the tests that were run, in order.

    They are fewer than `tests_total` when judging stopped early.
    """
    tests_total: int
    detail: str = ""
    isolation: str = ""
    """Isolation of the program: `full`, `degraded` or `unsafe`; empty if nothing was run."""
    uncounted: tuple[UncountedRun, ...] = ()
    """Every run of a test that did not count, in order, besides those in `tests`."""
    order: tuple[int, ...] = ()
    """Numbers of the tests that shared processes, in the secret order in which they ran.

    It is empty if none did. The key of a judge's process draws it (`JudgeOptions.order_key`).
    """

    @property
    def tests_passed(self) -> int:
        """Number of accepted tests."""
        return sum(test.verdict is Outcome.ACCEPTED for test in self.tests)

    @property
    def is_accepted(self) -> bool:
        """All tests passed."""
        return self.outcome is Outcome.ACCEPTED

    @property
    def is_scorable(self) -> bool:
        """False if the sandbox failed, so that the program has no verdict."""
        return self.outcome is not Outcome.SANDBOX_FAULT

    @property
    def is_checker_fault(self) -> bool:
        """Unscorable because the problem's own checker failed: our machine did nothing wrong."""
        return not self.is_scorable and CHECKER_FAULT in self.detail

    @property
    def is_checker_crash(self) -> bool:
        """Wrong because an output crashed a checker that works on the problem's own answer.

        Such verdicts are counted separately.
        """
        for test in self.tests:
            # The first failure decides the outcome, so no later crash can be its cause.
            if test.verdict is not Outcome.ACCEPTED:
                return test.method == CHECKER_CRASHED
        return False

"""Finds answers for made inputs: outputs on which accepted programs agree, by the judge that will use them.

The first reference is run for its answer; then all references are judged by the answers, and the first, with those that
draw random numbers, a second time in another process, another order and with other random numbers. An input becomes
no test if one of them crashes, disagrees, or changes its answer. Inputs that take a reference too long get more time in
a second round, if programs are known that only long runs catch.

Also the settings of the generate stage. All values are our choice.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal, NamedTuple

from pydantic import Field

from microcoder.data.completions import EndpointSettings
from microcoder.data.formats.candidates import Candidate, Origin
from microcoder.data.verify.plans import rotated_numbers
from microcoder.data.verify.timing import round_up
from microcoder.judge import Execution, Invocation, Judge
from microcoder.judge.core.config import Config
from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import cut_pieces, take_in_turn
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, TestResult

PACKAGE_INPUTS, MOST_MADE = 60, 72
"""Most inputs that generators are run for, spread over their groups, and most inputs made by mutation; the best of
both are kept."""
MOST_TESTS = 15
"""Tests that a problem has afterwards, the given ones included, unless it had more: as many as verify keeps."""
MOST_LARGE = 3
"""Most large tests that are kept, to catch slow programs."""
MOST_PACKAGE_BYTES = 6 << 20
"""Longest input of a generator, and longest answer."""
_ANSWER_SECONDS, _LARGE_ANSWER_SECONDS = 2.0, 6.0
"""CPU seconds that a reference gets for an input; and in a second round, where slow or partial submissions are known,
for `MOST_LARGE` of those that took longer: with the headroom of derived limits it fits the longest limit that a problem
may have."""


class GenerateSettings(Config):
    """Settings of the stage that makes tests for problems with too few."""

    mode: Literal["where_few", "off"] = "where_few"
    """`where_few`: for problems with fewer hidden tests than `min_hidden_tests`; `off`: the stage changes nothing."""
    min_hidden_tests: int = Field(default=10, ge=1)
    """Number of tests not shown in the prompt from which on a problem gets no further ones."""
    keep_unchecked: bool = False
    """Whether inputs that no validator certifies become tests too, where two references agree on their answers."""
    endpoint: EndpointSettings | None = None
    """A model that writes validators where a package has none, and generators for problems that still have too few
    tests; None: no model."""


_NO_ANSWER = "no program answers this"
_CUT = re.compile(r"\n\[\.\.\. of \d+ (?:bytes|characters)\]\Z")
_NO_VALUE = re.compile(r"\b(?:NaN|Infinity)\b")
_SENTINELS = {
    "json": json.dumps(_NO_ANSWER),
    **dict.fromkeys(("ListNode", "TreeNode"), json.dumps([_NO_ANSWER])),
}
_COST_STEPS = (0.5, 2.0, 10.0)
"""Seconds that a test costs are rounded up to these, so that noise changes no choice."""
_MEMORY_MIB = 2048
LARGE_BYTES = 20_000
"""A longer input is meant to catch slow programs."""
_MOST_LIMITS = 6
"""How often a reference may hit a limit on a problem's inputs; those after that get no answer."""
AT_ONCE = 8
"""Runs whose outputs are in memory at the same time."""
MOST_BYTES = 32 << 20
"""Bytes of one problem's made inputs together, and of their answers: a shard must fit into memory."""


class MadeInput(NamedTuple):
    """An input, and how it was made."""

    text: str
    origin: Origin
    group: str = ""


@dataclass(frozen=True, slots=True)
class MadeTest:
    """A test that all references pass."""

    test: TestCase
    origin: Origin
    group: str = ""
    seconds: float = 0.0
    """CPU seconds of the slowest reference, rounded up."""

    @property
    def is_large(self) -> bool:
        """Whether the test is meant to catch slow programs."""
        return len(self.test.input) > LARGE_BYTES or self.seconds > _COST_STEPS[0]


def start(
    judge: Judge,
    program: Program,
    *,
    stdin: str = "",
    arguments: tuple[str, ...] = (),
    seconds: float,
    memory_mib: int,
) -> Future[Execution]:
    """Start a program in the sandbox without judging it; return the future of its execution."""
    text = stdin.encode("utf-8", "surrogatepass")
    return judge.submit_run(
        Invocation(
            program,
            stdin=text,
            arguments=arguments,
            cpu_seconds=seconds,
            memory_limit_mib=memory_mib,
        )
    )


class Judges(NamedTuple):
    """Judges of the stage."""

    thorough: Judge
    """Judge with the stop rule `first_limit`: answers need every test."""
    brief: Judge
    """Judge with the stop rule `first_failure`: a wrong program is caught once."""


@dataclass(slots=True)
class Answering:
    """Finds answers for the inputs of one candidate, and counts by reason those that became no test."""

    judges: Judges
    candidate: Candidate
    references: Sequence[Program]
    dropped: Counter[str] = field(default_factory=Counter)
    """Why inputs became no test."""
    too_slow: list[MadeInput] = field(default_factory=list)
    """Inputs lost because a reference took too long, or was stopped for that before them."""
    seconds: float = 0.0
    """CPU seconds that a reference gets for an input now."""

    def answer_all(self, inputs: Sequence[MadeInput], *, num_slow: int) -> list[MadeTest]:
        """Return the tests made of the inputs on which references agree, those with short inputs first.

        The judge stops after a limit, so what is long, and may meet one, comes last.

        Args:
            num_slow: how many inputs that took a reference too long are tried again with more time.
        """
        self.seconds = _ANSWER_SECONDS
        tests = self._answer(sorted(inputs, key=_size))
        # Of each group and generator in turn the longest that is left.
        by_kind: dict[tuple[str, str], list[MadeInput]] = {}
        for one in sorted(self.too_slow, key=_size):
            by_kind.setdefault((one.group, one.origin.kind), []).append(one)
        again, self.too_slow = (
            take_in_turn([kind[::-1] for kind in by_kind.values()])[:num_slow],
            [],
        )
        if again:
            self.dropped["tried again with more time"] += len(again)
            self.seconds = _LARGE_ANSWER_SECONDS
            tests += self._answer(sorted(again, key=_size))
        return tests

    def _answer(self, inputs: Sequence[MadeInput]) -> list[MadeTest]:
        is_program = self.candidate.fn_name is None and self.candidate.harness is None
        answers = (self._printed if is_program else self._returned)(inputs) if inputs else []
        tests = [
            (one, TestCase(input=one.text, output=answer))
            for one, answer in zip(inputs, answers, strict=True)
            if answer is not None
        ]
        if not tests:
            return []
        agreed = self._agreed([one for one, _ in tests], [test for _, test in tests])
        return [
            MadeTest(test, one.origin, one.group, round_up(seconds, _COST_STEPS))
            for (one, test), seconds in zip(tests, agreed, strict=True)
            if seconds is not None
        ]

    def problem(
        self, tests: Sequence[TestCase], *, seconds: float, language: str = "python"
    ) -> Problem:
        """Return the problem with these tests, under `seconds` of CPU time per test."""
        memory = max(_MEMORY_MIB, self.candidate.memory_limit_mib or 0)
        return self.candidate.to_trial(language, seconds=seconds, memory_mib=memory, tests=tests)

    def _printed(self, inputs: Sequence[MadeInput]) -> list[str | None]:
        answers: list[str | None] = []
        judge, num_bytes = self.judges.thorough, 0
        for piece in cut_pieces(inputs, AT_ONCE):
            runs = [
                start(
                    judge,
                    self.references[0],
                    stdin=one.text,
                    seconds=self.seconds,
                    memory_mib=_MEMORY_MIB,
                )
                for one in piece
            ]
            for one, run in zip(piece, runs, strict=True):
                answer = self._read_printed(one, run.result())
                num_bytes += len(answer or "")
                answers.append(
                    answer if num_bytes <= MOST_BYTES else self._drop("too much together")
                )
        return answers

    def _read_printed(self, one: MadeInput, done: Execution) -> str | None:
        if done.failure is not None:
            if done.failure is Outcome.TIME_LIMIT:
                self.too_slow.append(one)
            return self._drop(f"reference: {done.failure.value}")
        try:
            text = done.stdout.decode("utf-8")
        except UnicodeDecodeError:
            return self._drop("answer is no text")
        if len(text) > MOST_PACKAGE_BYTES:
            return self._drop("answer too long")
        return f"{text.rstrip()}\n" if text.strip() else self._drop("empty answer")

    def _returned(self, inputs: Sequence[MadeInput]) -> list[str | None]:
        """Return a function's answers, out of the results of tests that it cannot pass; None without one."""
        call = find_call(self.problem([TestCase(input=inputs[0].text, output="0")], seconds=1.0))
        # A class gives a value per operation.
        sentinel = (
            None
            if call and call.style == "design"
            else _SENTINELS.get(call.judged if call else "json")
        )
        if sentinel is None:
            self.dropped["kind of result"] += len(inputs)
            return [None] * len(inputs)
        tests = [TestCase(input=one.text, output=sentinel) for one in inputs]
        try:
            problem = self.problem(tests, seconds=self.seconds)
            verdict = self.judges.thorough.judge([self.references[0]], [problem])[0]
        except DataError:
            self.dropped["input cannot be called with"] += len(inputs)
            return [None] * len(inputs)
        answers = []
        for one, result in zip_longest(inputs, verdict.tests):
            if result is None or result.verdict is Outcome.TIME_LIMIT:
                self.too_slow.append(one)
            if result is None:
                answers.append(self._drop("reference: stopped before"))
            elif result.verdict is not Outcome.WRONG_ANSWER or result.output is None:
                answers.append(self._drop(f"reference: {result.verdict.value}"))
            else:
                answers.append(self._read_value(result.output))
        return answers

    def _read_value(self, text: str) -> str | None:
        if _CUT.search(text) or _NO_VALUE.search(text):
            return self._drop("answer too long" if _CUT.search(text) else "answer is no number")
        if self.candidate.harness is not None:
            return text
        try:
            value = parse_json(text)
        except ValueError:
            return self._drop("answer is no JSON")
        # A set travels as an object, a dict as pairs: neither is what was returned.
        return self._drop("answer is a set") if _has_object(value) else text

    def _agreed(self, inputs: Sequence[MadeInput], tests: Sequence[TestCase]) -> list[float | None]:
        """Return, for each test, the CPU seconds of its slowest reference; None if one does not pass it every time."""
        seconds: list[float | None] = [0.0] * len(tests)
        late: set[int] = set()
        for results in self._judge_past_limits(tests):
            for number, (known, one) in enumerate(zip_longest(list(seconds), results)):
                if one is None or one.verdict is Outcome.TIME_LIMIT:
                    late.add(number)
                if one is None or one.verdict is not Outcome.ACCEPTED:
                    seconds[number] = None
                elif known is not None:
                    seconds[number] = max(known, one.cpu_seconds / self.judges.thorough.time_scale)
        lost = {number for number, one in enumerate(seconds) if one is None}
        self.too_slow += [inputs[number] for number in sorted(lost & late)]
        self.dropped["a reference too slow"] += len(lost & late)
        self.dropped["references disagree"] += len(lost - late)
        self._repeat(tests, seconds)
        return seconds

    def _judge_past_limits(self, tests: Sequence[TestCase]) -> list[list[TestResult]]:
        """Return the results of each reference, in the order of the tests.

        The judge stops at a limit, and the length of an input does not always tell how long a program takes: the tests
        after the limit are judged anew, as far as `_MOST_LIMITS` go.
        """
        pairs: list[tuple[Program, list[TestResult]]] = [
            (program, []) for program in self.references
        ]
        left = pairs
        for _ in range(_MOST_LIMITS):
            problems = [
                self.problem(tests[len(results) :], seconds=self.seconds, language=program.language)
                for program, results in left
            ]
            verdicts = (
                self.judges.thorough.judge([program for program, _ in left], problems)
                if left
                else []
            )
            for (_, results), verdict in zip(left, verdicts, strict=True):
                results += verdict.tests
            judged = zip(left, verdicts, strict=True)
            left = [pair for pair, verdict in judged if verdict.tests and len(pair[1]) < len(tests)]
        return [results for _, results in pairs]

    def _repeat(self, tests: Sequence[TestCase], seconds: list[float | None]) -> None:
        """Set `seconds` to None for tests that a reference fails in another order or with other random numbers."""
        # The others agreed with the first already; only what draws random numbers may not do so again.
        again = [
            one
            for number, one in enumerate(self.references)
            if number == 0 or _stirred(one) is not one
        ]
        for program in again:
            for is_last in (False, False, True):
                left = [number for number, one in enumerate(seconds) if one is not None]
                if not left:
                    return
                order = (
                    [left[number] for number in rotated_numbers(len(left), 1)]
                    if len(left) > 1
                    else left
                )
                ordered = [tests[number] for number in order]
                problem = self.problem(ordered, seconds=self.seconds, language=program.language)
                verdict = self.judges.brief.judge([_stirred(program)], [problem])[0]
                if verdict.is_accepted:
                    break
                failed = order[len(verdict.tests) - 1 :][:1] if not is_last else left
                self.dropped["not answered alike again"] += len(failed)
                for number in failed:
                    seconds[number] = None

    def _drop(self, why: str) -> None:
        self.dropped[why] += 1


def _size(one: MadeInput) -> int:
    return len(one.text)


def _stirred(program: Program) -> Program:
    """Return a program with another random seed, as all its runs draw the same numbers; unchanged if it draws none."""
    code = program.code or ""
    if program.language != "python" or "random" not in code or "__future__" in code:
        return program
    return Program(f"import random as _random; _random.seed(20260521)\n{code}", program.language)


def _has_object(value: object) -> bool:
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and any(map(_has_object, value))

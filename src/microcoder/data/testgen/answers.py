"""Finds answers for made inputs: outputs on which accepted programs agree.

By the judge that will use them. The first reference is run for its answer; then all references are
judged by the answers. The first, with those that draw random numbers, is judged a second time in
another process, another order and with other random numbers.

An input becomes no test if one of them crashes, disagrees, or changes its answer. Inputs that take
a reference too long get more time in a second round, if programs are known that only long runs
catch.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from microcoder.data.formats.candidates import Candidate
from microcoder.data.testgen.made import COST_STEPS, MadeInput, MadeTest, start
from microcoder.data.testgen.settings import AT_ONCE, LONGEST_BYTES, MOST_BYTES
from microcoder.data.verify.plans import rotated_numbers
from microcoder.data.verify.timing import round_up
from microcoder.judge import Execution, Judge
from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import cut_pieces, take_in_turn
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, TestResult, Verdict

_ANSWER_SECONDS = 2.0
"""CPU seconds that a reference gets for an input (our choice)."""
_LARGE_ANSWER_SECONDS = 6.0
"""The same in a second round, where slow or partial submissions are known (our choice).

With the headroom of derived limits it fits the longest limit that a problem may have.
"""
_MEMORY_MIB = 2048
"""Least memory of a reference."""
_MOST_LIMITS = 6
"""How often a reference may hit a limit on a problem's inputs.

Those after that get no answer.
"""
_MOST_LATE = 16
"""How many inputs the first reference may take too long for, of those that it is given together.

About so many: those after that get no answer. A count, since no clock may decide how many.
"""
_MOST_REPEATS = 3
"""How often a reference is judged again, without the tests that it failed before."""
_NO_ANSWER = "no program answers this"
"""An expected output that no function returns: what it did return is in the results."""
_SENTINELS = {
    "json": json.dumps(_NO_ANSWER),
    "ListNode": json.dumps([_NO_ANSWER]),
    "TreeNode": json.dumps([_NO_ANSWER]),
}
"""How it is written, by the kind of a function's result."""
_CUT = re.compile(r"\n\[\.\.\. of \d+ (?:bytes|characters)\]\Z")
"""The end of an output that was cut."""
_NO_VALUE = re.compile(r"\b(?:NaN|Infinity)\b")
"""Numbers that JSON has no way to write."""
_SEED = 20260521
"""Another seed than the one of all other runs."""


class Judges(NamedTuple):
    """Judges of the stage."""

    thorough: Judge
    """Judge with the stop rule `first_limit`: answers need every test."""
    brief: Judge
    """Judge with the stop rule `first_failure`: a wrong program is caught once."""


class _Answered(NamedTuple):
    """An input with the answer of the first reference."""

    made: MadeInput
    test: TestCase


class Difference(NamedTuple):
    """Two outputs of accepted programs for one certified input."""

    test: TestCase
    """The input, and what the first reference gives for it."""
    output: str
    """What another reference gives."""
    reference: int
    """Index of that reference."""


@dataclass(slots=True)
class Answering:
    """Finds answers for the inputs of one candidate.

    Inputs that become no test are counted by reason.
    """

    judges: Judges
    candidate: Candidate
    references: Sequence[Program]
    dropped: Counter[str] = field(default_factory=Counter)
    """Why inputs became no test."""
    too_slow: list[MadeInput] = field(default_factory=list)
    """Inputs lost because a reference took too long, or was stopped for that before them."""
    seconds: float = 0.0
    """CPU seconds that a reference gets for an input now."""
    differences: list[Difference] = field(default_factory=list)
    """Where references gave different outputs, as far as these are short."""
    silent: dict[str, set[int]] = field(default_factory=dict)
    """Inputs, and the references of which nothing is known there: they crashed, were late, or gave
    an output that was cut."""
    lost: dict[str, str] = field(default_factory=dict)
    """Answered inputs that became no test, and why, as in `dropped`."""
    num_answered: int = 0
    """Inputs that the first reference answered."""

    def answer_all(
        self,
        inputs: Sequence[MadeInput],
        *,
        num_slow: int,
    ) -> list[MadeTest]:
        """Return tests of the inputs on which the references agree, short ones first.

        Long inputs may meet a limit, and the judge stops there, so they come last.

        Args:
            inputs: made inputs.
            num_slow: how many inputs that took a reference too long are tried again with more time.
        """
        self.seconds = _ANSWER_SECONDS
        tests = self._answer(sorted(inputs, key=_length))
        # Taken before the second round, which notes what is too slow again.
        again = self._spread_too_slow()[:num_slow]
        self.too_slow = []
        if again:
            self.dropped["tried again with more time"] += len(again)
            self.seconds = _LARGE_ANSWER_SECONDS
            tests += self._answer(sorted(again, key=_length))
        return tests

    def _spread_too_slow(self) -> list[MadeInput]:
        """Return inputs that took too long: the longest of each group and generator, in turn."""
        by_kind: dict[tuple[str, str], list[MadeInput]] = {}
        for made in sorted(self.too_slow, key=_length):
            of_kind = by_kind.setdefault((made.group, made.origin.kind), [])
            of_kind.append(made)
        longest_first = [kind[::-1] for kind in by_kind.values()]
        return take_in_turn(longest_first)

    def _answer(self, inputs: Sequence[MadeInput]) -> list[MadeTest]:
        """Return tests of those inputs on which the references agree."""
        if not inputs:
            return []
        # What prints is run as it is; what returns is called by the judge alone.
        if self.candidate.fn_name is None:
            answers = self._printed(inputs)
        else:
            answers = self._returned(inputs)
        answered = []
        for made, answer in zip(inputs, answers, strict=True):
            if answer is not None:
                test = TestCase(input=made.text, output=answer)
                answered.append(_Answered(made, test))
        if not answered:
            return []
        tests = []
        for (made, test), seconds in zip(
            answered,
            self._time_agreed(answered),
            strict=True,
        ):
            if seconds is not None:
                cost = round_up(seconds, COST_STEPS)
                tests.append(
                    MadeTest(
                        test,
                        made.origin,
                        made.group,
                        cost,
                    )
                )
        return tests

    def take_back(self, tests: Sequence[MadeTest]) -> None:
        """Count inputs as lost no longer that have become tests after all."""
        for made in tests:
            why = self.lost.pop(made.test.input, None)
            if why is not None:
                self.dropped[why] -= 1

    def problem(
        self,
        tests: Sequence[TestCase],
        *,
        seconds: float,
        language: str = "python",
    ) -> Problem:
        """Return the problem with these tests, under `seconds` of CPU time per test."""
        memory = max(_MEMORY_MIB, self.candidate.memory_limit_mib or 0)
        return self.candidate.to_trial(
            language,
            seconds=seconds,
            memory_mib=memory,
            tests=tests,
        )

    def judge_briefly(
        self,
        programs: Sequence[Program],
        tests: Sequence[TestCase],
        *,
        seconds: float,
    ) -> list[Verdict]:
        """Return each program's verdict, up to its first failure.

        Args:
            programs: those to judge, all on the same tests.
            tests: in the order in which they run.
            seconds: CPU time per test.
        """
        problems = []
        for program in programs:
            problem = self.problem(tests, seconds=seconds, language=program.language)
            problems.append(problem)
        return self.judges.brief.judge(programs, problems)

    def list_accepted(
        self,
        programs: Sequence[Program],
        tests: Sequence[TestCase],
        *,
        seconds: float,
    ) -> list[Program]:
        """Return the programs that pass all of these tests; the arguments are `judge_briefly`'s."""
        if not programs:
            return []
        verdicts = self.judge_briefly(programs, tests, seconds=seconds)
        accepted = []
        for program, verdict in zip(programs, verdicts, strict=True):
            if verdict.is_accepted:
                accepted.append(program)
        return accepted

    def _printed(self, inputs: Sequence[MadeInput]) -> list[str | None]:
        """Return what the first reference prints; None without an answer.

        It is stopped where it was late too often, as such programs are late on what is longer, too.
        """
        judge = self.judges.thorough
        reference = self.references[0]
        answers: list[str | None] = []
        num_bytes = 0
        num_late = 0
        for piece in cut_pieces(inputs, AT_ONCE):
            if num_late >= _MOST_LATE:
                self.too_slow += piece
                answers += [self._drop("reference: stopped before") for _ in piece]
                continue
            runs = [
                start(
                    judge,
                    reference,
                    stdin=made.text,
                    seconds=self.seconds,
                )
                for made in piece
            ]
            for made, started in zip(piece, runs, strict=True):
                run = started.result()
                num_late += run.failure is Outcome.TIME_LIMIT
                answer = self._read_printed(made, run)
                num_bytes += len(answer or "")
                if num_bytes > MOST_BYTES:
                    answer = self._drop("too much together")
                answers.append(answer)
        return answers

    def _read_printed(
        self,
        made: MadeInput,
        run: Execution,
    ) -> str | None:
        """Return the answer that a run printed, or None."""
        if run.failure is not None:
            if run.failure is Outcome.TIME_LIMIT:
                self.too_slow.append(made)
            return self._drop(f"reference: {run.failure.value}")
        try:
            text = run.stdout.decode("utf-8")
        except UnicodeDecodeError:
            return self._drop("answer is no text")
        # It would take up the budget that verify has for all tests.
        if len(text) > LONGEST_BYTES:
            return self._drop("answer too long")
        if not text.strip():
            return self._drop("empty answer")
        return f"{text.rstrip()}\n"

    def _returned(self, inputs: Sequence[MadeInput]) -> list[str | None]:
        """Return a function's answers; None without an answer.

        They are read from failed tests, whose expected value no program can return.
        """
        sentinel = self._find_sentinel(inputs[0])
        if sentinel is None:
            self.dropped["kind of result"] += len(inputs)
            return [None] * len(inputs)
        tests = [
            TestCase(
                input=made.text,
                output=sentinel,
            )
            for made in inputs
        ]
        try:
            problem = self.problem(tests, seconds=self.seconds)
            verdicts = self.judges.thorough.judge([self.references[0]], [problem])
            verdict = verdicts[0]
        except DataError:
            self.dropped["input cannot be called with"] += len(inputs)
            return [None] * len(inputs)
        # Fewer results than inputs where the judge stopped at a limit.
        pairs = zip_longest(inputs, verdict.tests)
        return [self._read_returned(made, result) for made, result in pairs]

    def _find_sentinel(self, made: MadeInput) -> str | None:
        """Return an expected output that no function returns; None if this kind of result has
        none."""
        test = TestCase(input=made.text, output="0")
        call = find_call(self.problem([test], seconds=1.0))
        if call is None:
            return _SENTINELS["json"]
        if call.style == "design":
            # A class gives a value per operation.
            return None
        return _SENTINELS.get(call.judged)

    def _read_returned(
        self,
        made: MadeInput,
        result: TestResult | None,
    ) -> str | None:
        """Return the answer in the result of a test that cannot be passed, or None."""
        if result is None:
            self.too_slow.append(made)
            return self._drop("reference: stopped before")
        if result.verdict is Outcome.TIME_LIMIT:
            self.too_slow.append(made)
        if result.verdict is not Outcome.WRONG_ANSWER or result.output is None:
            return self._drop(f"reference: {result.verdict.value}")
        return self._read_value(result.output)

    def _read_value(self, text: str) -> str | None:
        """Return a value that a function returned, or None if it can be no expected output."""
        if _CUT.search(text):
            return self._drop("answer too long")
        if _NO_VALUE.search(text):
            return self._drop("answer is no number")
        try:
            value = parse_json(text)
        except ValueError:
            return self._drop("answer is no JSON")
        # A set travels as an object, a dict as pairs: neither is what was returned.
        if _has_object(value):
            return self._drop("answer is a set")
        return text

    def _time_agreed(self, answered: Sequence[_Answered]) -> list[float | None]:
        """Return for each test the CPU seconds of its slowest reference.

        None if a reference does not pass it every time.
        """
        tests = [test for _, test in answered]
        seconds: list[float | None] = [0.0] * len(tests)
        late: set[int] = set()
        time_scale = self.judges.thorough.time_scale
        self.num_answered += len(answered)
        for reference, results in enumerate(self._judge_past_limits(tests)):
            self._note_differences(answered, results, reference)
            # A copy, since the loop changes it.
            by_test = zip_longest(list(seconds), results)
            for number, (known, result) in enumerate(by_test):
                if result is None or result.verdict is Outcome.TIME_LIMIT:
                    late.add(number)
                if result is None or result.verdict is not Outcome.ACCEPTED:
                    seconds[number] = None
                # Of the reference machine, as all seconds that decide.
                elif known is not None:
                    seconds[number] = max(known, result.cpu_seconds / time_scale)
        for number, (made, _) in enumerate(answered):
            if seconds[number] is not None:
                continue
            why = "references disagree"
            if number in late:
                why = "a reference too slow"
                self.too_slow.append(made)
            self.dropped[why] += 1
            self.lost[made.text] = why
        self._repeat(tests, seconds)
        return seconds

    def _note_differences(
        self,
        answered: Sequence[_Answered],
        results: Sequence[TestResult],
        reference: int,
    ) -> None:
        """Note the certified inputs for which a reference gave something else than the first.

        Also those for which nothing of it is known.
        """
        # Fewer results than inputs where the judge stopped at a limit.
        for number, (made, test) in enumerate(answered):
            result = results[number] if number < len(results) else None
            if result is not None and result.verdict is Outcome.ACCEPTED:
                continue
            output = _find_whole_output(result)
            if output is None:
                self.silent.setdefault(test.input, set()).add(reference)
            elif made.origin.certificate in ("package", "model"):
                self.differences.append(Difference(test, output, reference))

    def _judge_past_limits(self, tests: Sequence[TestCase]) -> list[list[TestResult]]:
        """Return the results of each reference, in the order of the tests.

        The judge stops at a limit, and the length of an input does not always tell how long a
        program takes: the tests after the limit are judged again, as far as `_MOST_LIMITS` go.
        """
        results_by_reference: list[list[TestResult]] = [[] for _ in self.references]
        left = list(
            zip(
                self.references,
                results_by_reference,
                strict=True,
            )
        )
        for _ in range(_MOST_LIMITS):
            if not left:
                break
            programs = [program for program, _ in left]
            problems = []
            for program, results in left:
                problem = self.problem(
                    tests[len(results) :],
                    seconds=self.seconds,
                    language=program.language,
                )
                problems.append(problem)
            verdicts = self.judges.thorough.judge(programs, problems)
            unfinished = []
            for (program, results), verdict in zip(
                left,
                verdicts,
                strict=True,
            ):
                results += verdict.tests
                # Without any result there is no way past the obstacle.
                if verdict.tests and len(results) < len(tests):
                    unfinished.append((program, results))
            left = unfinished
        return results_by_reference

    def _repeat(
        self,
        tests: Sequence[TestCase],
        seconds: list[float | None],
    ) -> None:
        """Judge the tests again, in another order and with other random numbers.

        A test that a reference now fails gets `seconds` None.
        """
        for number, program in enumerate(self.references):
            # The others agreed with the first already; only what draws random numbers may not do so
            # again.
            if number == 0 or _reseed(program) is not program:
                self._judge_again(program, tests, seconds)

    def _judge_again(
        self,
        program: Program,
        tests: Sequence[TestCase],
        seconds: list[float | None],
    ) -> None:
        # Each attempt leaves out the test that failed the one before.
        for attempt in range(1, _MOST_REPEATS + 1):
            left = [number for number, known in enumerate(seconds) if known is not None]
            if not left:
                return
            order = left
            if len(left) > 1:
                rotated = rotated_numbers(len(left), 1)
                order = [left[place] for place in rotated]
            ordered = [tests[number] for number in order]
            problem = self.problem(
                ordered,
                seconds=self.seconds,
                language=program.language,
            )
            verdicts = self.judges.brief.judge([_reseed(program)], [problem])
            verdict = verdicts[0]
            if verdict.is_accepted:
                return
            # The judge stops at the first failure: only its test is known to fail, but after the
            # last attempt nothing vouches for the rest.
            if attempt < _MOST_REPEATS:
                failed = order[len(verdict.tests) - 1 :][:1]
            else:
                failed = left
            self.dropped["not answered alike again"] += len(failed)
            for number in failed:
                seconds[number] = None

    def _drop(self, why: str) -> None:
        """Count an input that becomes no test."""
        self.dropped[why] += 1


def _find_whole_output(result: TestResult | None) -> str | None:
    """Return the wrong answer of a test, whole; None if there is none, or a part of it."""
    if result is None or result.verdict is not Outcome.WRONG_ANSWER or result.output is None:
        return None
    return None if _CUT.search(result.output) else result.output


def _length(made: MadeInput) -> int:
    return len(made.text)


def _reseed(program: Program) -> Program:
    """Return a program with another random seed, since all its runs draw the same numbers.

    A program that draws none is unchanged.
    """
    code = program.code or ""
    if program.language != "python" or "random" not in code:
        return program
    # Nothing may stand before such an import.
    if "__future__" in code:
        return program
    seeded = f"import random as _random; _random.seed({_SEED})\n{code}"
    return Program(seeded, program.language)


def _has_object(value: object) -> bool:
    """Whether a value is a JSON object, or a list with one inside."""
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and any(map(_has_object, value))

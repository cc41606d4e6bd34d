"""Problems prepared for judging: arguments and expected values of function-call problems are checked.

docs/functions.md has a table of the kinds and how each is written as JSON.

`PreparedProblem` is a problem in the form in which it is judged, checked once for all its programs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.judge.compare.compare import compare_output, compare_value
from microcoder.judge.compare.values import read_arguments, read_expected, show
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.signatures import defines_node, find_call
from microcoder.judge.core.types import Call, Method, Outcome, Problem, Signature, TestCase, TestResult
from microcoder.judge.languages import find_language, language_of
from microcoder.judge.run import verdicts
from microcoder.judge.run.supervisor import Run
from microcoder.judge.run.timing import WALL_FACTOR_OF_TESTS, limits_for
from microcoder.judge.run.verdicts import CHECKER_MIB, CHECKER_SECONDS
from microcoder.judge.sandbox import nodes


def read_test(problem: Problem, number: int, call: Call | None) -> object:
    """Check one test and return its expected value in the canonical form of results; raises DataError."""
    test = problem.tests[number - 1]
    arguments = read_arguments(test.input, problem_id=problem.id, test=number)
    expected = read_expected(test.output, problem_id=problem.id, test=number)
    if call is None:
        return expected
    where = f"problem {problem.id}, test {number}"
    if call.style == "design":
        return _read_operations(where, problem.fn_name or "", call, arguments, expected)
    return _read_one(where, call, arguments, expected)


def _read_one(where: str, signature: Signature, arguments: Sequence[Any], expected: Any) -> object:
    _read_arguments(where, signature, arguments)
    if signature.result is not None and signature.result >= len(arguments):
        raise DataError(
            f"{where}: the result is argument {signature.result}, counted from 0, of {len(arguments)}; "
            "give call.result a smaller number"
        )
    return _read_kind(f"{where}: the expected output", signature.judged, expected)


def _read_arguments(where: str, signature: Signature, arguments: Sequence[Any]) -> None:
    for number, (kind, argument) in enumerate(zip(signature.parameters, arguments, strict=False), 1):
        _read_kind(f"{where}, argument {number}", kind, argument)


def _read_kind(what: str, kind: str, value: Any) -> object:
    try:
        return _normalise(kind, value)
    except ValueError as misfit:
        raise DataError(f"{what} is no {kind}: {misfit}") from None


def _read_operations(where: str, name: str, call: Call, lines: Sequence[Any], expected: Any) -> object:
    """Check a list of operations and their arguments; return the list of expected results."""
    are_lists = len(lines) == 2 and all(isinstance(line, list) for line in (*lines, expected))
    operations, values = lines if are_lists else ([], [])
    fits = operations[:1] == [name] and len(operations) == len(values) == len(expected) and expected[0] is None
    if not (fits and all(isinstance(one, str) for one in operations) and all(isinstance(one, list) for one in values)):
        raise DataError(
            f"{where}: a design class takes a line of operations, the first {name!r}, and a line with their lists of "
            'arguments, and expects a list of results, the first null: such as ["C", "add"], [[], [1]] and [null, 3]; '
            f"got {show(lines)} and {show(expected)}"
        )
    methods: Mapping[str, Signature] = {method.name: method for method in call.methods}
    read: list[object] = [None]
    plain = Method(name="plain")
    _read_arguments(f"{where}, operation 1", methods.get("__init__", plain), values[0])
    for number, (one, inner, result) in enumerate(zip(operations[1:], values[1:], expected[1:], strict=True), 2):
        read.append(_read_one(f"{where}, operation {number}", methods.get(one, plain), inner, result))
    return read


def _normalise(kind: str, value: Any) -> Any:
    """Return a value in the canonical form of its kind: an empty list for None, no nulls at the end; or ValueError."""
    if kind == "json":
        return value
    if kind.startswith("list["):
        if not isinstance(value, list):
            raise ValueError(f"{show(value)} is not a list")
        return [_normalise(kind[5:-1], item) for item in value]
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{show(value)} (no list); write it as {_EXAMPLES[kind]}")
    end = len(value)
    while kind == "TreeNode" and end and value[end - 1] is None:
        end -= 1
    try:
        is_whole = nodes.flatten(kind, nodes.build(kind, value[:end])) == value[:end]
    except (TypeError, ValueError, IndexError, AttributeError):
        is_whole = False
    if not is_whole:
        raise ValueError(f"{show(value)}; write it as {_EXAMPLES[kind]}")
    return value[:end]


_EXAMPLES = {"ListNode": "a list such as [1, 2, 3]", "TreeNode": "a level-order list such as [1, null, 2]"}


OUTPUT_MIB = 16
_MAX_NAME_LENGTH = 1000
_MAX_CALL_BYTES, _MAX_ARGUMENTS_BYTES = 1 << 14, 1 << 15
"""Encoded sizes; one message to the sandbox carries everything about a test."""
_TEST_BYTES, _VALUE_BYTES_PER_CHARACTER = 1000, 20
"""Memory of a test besides its text, and of a value read from JSON such as `[[],[]]` for each character."""


@dataclass(frozen=True, slots=True)
class PreparedTest:
    """A test in the form it is run in."""

    stdin: bytes
    expected: object
    """Text, or for a function-call problem the decoded JSON value."""
    expected_bytes: int
    """Bytes of the expected output as text."""
    exact: bytes | None = None
    """An output equal to this, up to a newline at the end, is right without comparison: the expected text, or the
    value as the sandbox encodes it; None if it is long, or if the same text need not be right."""


class PreparedProblem:
    """A problem whose tests were checked once."""

    def __init__(self, problem: Problem, *, time_scale: float = 1.0, checker_seconds: float = CHECKER_SECONDS) -> None:
        """Check and prepare the tests; raises DataError as `check_problem` does."""
        values = check_problem(problem)
        # A harness makes the calls itself: to the sandbox it is a program that reads stdin.
        self.problem = problem if problem.harness is None else problem.model_copy(update={"fn_name": None})
        call = find_call(problem)
        self.call_message = None if call is None else call.model_dump(mode="json", exclude_defaults=True)
        """The call as sent to the sandbox; None if all is plain JSON."""
        self.tests = [self._prepare(test, value) for test, value in zip(problem.tests, values, strict=True)]
        longest = max(test.expected_bytes for test in self.tests)
        output_mib = max(OUTPUT_MIB, 2 * (longest >> 20))
        language = language_of(problem)
        self._out_of_memory = language.out_of_memory
        cpu_seconds = (problem.time_limit_seconds + language.startup_seconds) * time_scale
        self._memory_limit_mib = problem.memory_limit_mib + language.startup_memory_mib
        self.limits = limits_for(cpu_seconds, self._memory_limit_mib, output_mib, wall_factor=WALL_FACTOR_OF_TESTS)
        self.checker_limits = limits_for(checker_seconds * time_scale, CHECKER_MIB, OUTPUT_MIB)
        self.checker_works: dict[int, bool] = {}
        """By the test's id: whether the checker program can judge the problem's own answer; filled on demand."""
        self.number = 0
        """Unique among the problems of a judge."""
        self._seen_seconds: float | None = None

    @property
    def expected_seconds(self) -> float:
        """Expected wall seconds of the next program; those of the time limit before the first."""
        return self.limits.cpu_seconds if self._seen_seconds is None else self._seen_seconds

    def note_seconds(self, seconds: float) -> None:
        """Update the moving average of the programs' wall seconds."""
        self._seen_seconds = seconds if self._seen_seconds is None else (self._seen_seconds + seconds) / 2

    @property
    def num_bytes(self) -> int:
        """Bytes of its tests, which are held twice: as text, and as input or values."""
        per_character = 2 if self.problem.fn_name is None else 2 + _VALUE_BYTES_PER_CHARACTER
        tests = self.problem.tests
        return sum(2 * len(test.input) + per_character * len(test.output) + _TEST_BYTES for test in tests)

    def submit(self, code: str) -> str:
        """Return the source that is run for an answer's code: the code itself, or the harness called with it."""
        harness = self.problem.harness
        return code if harness is None else f"{harness}\n\nmain({code!r})\n"

    def _prepare(self, test: TestCase, value: object) -> PreparedTest:
        stdin = test.input.encode("utf-8", "surrogatepass")
        expected_bytes = len(test.output.encode("utf-8", "surrogatepass"))
        checker = self.problem.checker.type
        may_be_exact = checker in ("default", "exact") and expected_bytes <= _LONGEST_EXACT_BYTES
        if self.problem.fn_name is None:
            text = test.output.removesuffix("\n")
            exact = text.encode() if may_be_exact and text.isascii() else None
            return PreparedTest(stdin, test.output, expected_bytes, exact)
        # A checker program gets its text.
        expected = value if checker != "program" else test.output
        is_plain = may_be_exact and _is_plain(expected)
        exact = json.dumps(expected, separators=(",", ":")).encode() if is_plain else None
        return PreparedTest(stdin, expected, expected_bytes, exact)

    def find_failure(self, run: Run) -> tuple[Outcome, str] | None:
        """Return the outcome and reason of a test that failed whatever its output is, or None."""
        return verdicts.find_failure(run, self.limits, self._memory_limit_mib, self._out_of_memory)

    def judge(self, run: Run, test: PreparedTest) -> TestResult:
        """Return the result of a finished test: its failure, or the comparison of its output."""
        value = self.value_of(run, test)
        if isinstance(value, TestResult):
            return value
        checker = self.problem.checker
        if self.problem.fn_name is None:
            output = run.stdout.decode("utf-8", "surrogateescape")
            return verdicts.compared(run, compare_output(output, str(test.expected), checker))
        return verdicts.compared(run, compare_value(value, test.expected, checker))

    def value_of(self, run: Run, test: PreparedTest) -> object | TestResult:
        """Return the value that a function returned, None for a program, or the TestResult of a failed test."""
        failure = self.find_failure(run)
        if failure is not None:
            return verdicts.result_of(run, *failure)
        return None if self.problem.fn_name is None else verdicts.read_value(run, expected_bytes=test.expected_bytes)


_LONGEST_EXACT_BYTES = 1 << 16
_EXACT_IN_JSON = 1 << 53


def _is_plain(value: object) -> bool:
    """Whether the sandbox encodes a value as plain JSON."""
    if type(value) is list:
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, str) or (type(value) is int and abs(value) < _EXACT_IN_JSON)


def check_problem(problem: Problem) -> Sequence[object]:
    """Check that programs can be judged by a problem.

    Returns:
        The expected value of each test of a function, None for each test of a program.

    Raises:
        DataError: an unknown language, a call that is not JSON, or a checker that does not fit; which and why.
    """
    values: Sequence[object] = [None] * len(problem.tests)
    language = language_of(problem)
    checker = problem.checker
    if checker.type == "program":
        find_language(checker.language)
    check_arguments(checker.arguments, f"problem {problem.id}: checker.arguments")
    if problem.fn_name is not None and len(problem.fn_name) > _MAX_NAME_LENGTH:
        raise DataError(
            f"problem {problem.id[:100]}: fn_name has {len(problem.fn_name)} characters; use at most {_MAX_NAME_LENGTH}"
        )
    if problem.fn_name is not None and problem.harness is None:
        if problem.call is None and defines_node(problem.starter_code or ""):
            raise DataError(
                f"problem {problem.id[:100]}: its starter code defines a class Node; only ListNode and TreeNode are "
                "built from JSON (docs/functions.md), so leave the problem out, or give it a harness"
            )
        call = find_call(problem)
        num_bytes = 0 if call is None else len(call.model_dump_json(exclude_defaults=True))
        if num_bytes > _MAX_CALL_BYTES:
            raise DataError(f"problem {problem.id[:100]}: call takes {num_bytes} bytes; use at most {_MAX_CALL_BYTES}")
        is_design = call is not None and call.style == "design"
        if is_design and checker.type == "unordered" and checker.lists != "inner":
            raise DataError(
                f"problem {problem.id} has a design class and takes its results in any order, so an answer could swap "
                'those of two operations; use {"type": "unordered", "lists": "inner"}, or a checker program'
            )
        values = [read_test(problem, number, call) for number in range(1, len(problem.tests) + 1)]
    if problem.fn_name is not None and language.is_built:
        raise DataError(f"problem {problem.id} calls a function in {language.name}; only Python programs can be called")
    if problem.dialect != "plain" and language.is_built:
        raise DataError(
            f'problem {problem.id} is in {language.name}, dialect "{problem.dialect}" is a way to run Python programs; '
            'leave it out, or use "plain"'
        )
    return values


def check_arguments(arguments: Sequence[str], what: str) -> None:
    """Raise DataError if arguments cannot be passed to a program; `what` names them in the message."""
    num_bytes = len(json.dumps(arguments))
    if num_bytes > _MAX_ARGUMENTS_BYTES:
        raise DataError(f"{what}: {num_bytes} bytes; use at most {_MAX_ARGUMENTS_BYTES}, and a file for more")
    if any("\0" in argument for argument in arguments):
        raise DataError(f"{what}: a NUL character in one of them; leave it out")

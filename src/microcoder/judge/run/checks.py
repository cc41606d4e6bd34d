"""Whether programs can be judged by a problem: its language, its checker, its call and the values of its tests.

docs/functions.md has a table of the kinds of values and how each is written as JSON.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from microcoder.judge.compare.values import show
from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.signatures import defines_node, find_call
from microcoder.judge.core.types import Call, Method, Problem, Signature
from microcoder.judge.languages import find_language, language_of
from microcoder.judge.sandbox import nodes

_MAX_SHOWN = 80
_MAX_NAME_LENGTH = 1000
_MAX_CALL_BYTES, _MAX_ARGUMENTS_BYTES = 1 << 14, 1 << 15
"""Maximum encoded sizes: one message to the sandbox carries everything about a test."""


def check_problem(problem: Problem) -> None:
    """Check that programs can be judged by a problem, and the values in the tests of a function call.

    Raises:
        DataError: an unknown language, a call that is not JSON, or a checker that does not fit; which and why.
    """
    check_settings(problem)
    if problem.fn_name is not None and problem.harness is None:
        read_tests(problem, find_call(problem))


def check_settings(problem: Problem) -> None:
    """Check all of a problem but its tests: language, checker, how its function is called; raises DataError."""
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
            raise DataError(
                f"problem {problem.id[:100]}: call takes {num_bytes} bytes; use at most {_MAX_CALL_BYTES}"
            )
        is_design = call is not None and call.style == "design"
        if is_design and checker.type == "unordered" and checker.lists != "inner":
            raise DataError(
                f"problem {problem.id} has a design class and takes its results in any order, so an answer could swap "
                'those of two operations; use {"type": "unordered", "lists": "inner"}, or a checker program'
            )
    if problem.fn_name is not None and language.is_built:
        raise DataError(
            f"problem {problem.id} calls a function in {language.name}; only Python programs can be called"
        )
    if problem.dialect != "plain" and language.is_built:
        raise DataError(
            f'problem {problem.id} is in {language.name}, dialect "{problem.dialect}" is a way to run Python programs; '
            'leave it out, or use "plain"'
        )


def read_tests(problem: Problem, call: Call | None) -> list[object]:
    """Check the tests of a function call, and return their expected values; raises DataError as `read_test` does."""
    return [read_test(problem, number, call) for number in range(1, len(problem.tests) + 1)]


def check_arguments(arguments: Sequence[str], what: str) -> None:
    """Raise DataError if arguments cannot be passed to a program; `what` names them in the message."""
    num_bytes = len(json.dumps(arguments))
    if num_bytes > _MAX_ARGUMENTS_BYTES:
        raise DataError(
            f"{what}: {num_bytes} bytes; use at most {_MAX_ARGUMENTS_BYTES}, and a file for more"
        )
    if any("\0" in argument for argument in arguments):
        raise DataError(f"{what}: a NUL character in one of them; leave it out")


def _read_lines(text: str, *, problem_id: str, test: int) -> list[object]:
    """Return the arguments in a test's input, one JSON value per line, blank lines left out; raises DataError."""
    arguments = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                arguments.append(parse_json(line))
            except ValueError as error:
                raise DataError(
                    f"problem {problem_id}, test {test}, input line {number} is not a JSON argument ({error}): "
                    f"{line[:_MAX_SHOWN]!r}; a function-call problem takes one JSON value per line"
                ) from None
    return arguments


def _read_expected(text: str, *, problem_id: str, test: int) -> object:
    """Return a test's expected value; DataError if it is not JSON."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise DataError(
            f"problem {problem_id}, test {test}: the expected output is not JSON ({error}): {text[:_MAX_SHOWN]!r}; "
            "a function-call problem expects one JSON value"
        ) from None


def read_test(problem: Problem, number: int, call: Call | None) -> object:
    """Check one test and return its expected value in the canonical form of results; raises DataError."""
    test = problem.tests[number - 1]
    arguments = _read_lines(test.input, problem_id=problem.id, test=number)
    expected = _read_expected(test.output, problem_id=problem.id, test=number)
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
    for number, (kind, argument) in enumerate(
        zip(signature.parameters, arguments, strict=False), 1
    ):
        _read_kind(f"{where}, argument {number}", kind, argument)


def _read_kind(what: str, kind: str, value: Any) -> object:
    try:
        return _normalise(kind, value)
    except ValueError as misfit:
        raise DataError(f"{what} is no {kind}: {misfit}") from None


def _read_operations(
    where: str, name: str, call: Call, lines: Sequence[Any], expected: Any
) -> object:
    """Check a list of operations and their arguments; return the list of expected results."""
    are_lists = len(lines) == 2 and all(isinstance(line, list) for line in (*lines, expected))
    operations, values = lines if are_lists else ([], [])
    fits = (
        operations[:1] == [name]
        and len(operations) == len(values) == len(expected)
        and expected[0] is None
    )
    if not (
        fits
        and all(isinstance(one, str) for one in operations)
        and all(isinstance(one, list) for one in values)
    ):
        raise DataError(
            f"{where}: a design class takes a line of operations, the first {name!r}, and a line with their lists of "
            'arguments, and expects a list of results, the first null: such as ["C", "add"], [[], [1]] and [null, 3]; '
            f"got {show(lines)} and {show(expected)}"
        )
    methods: Mapping[str, Signature] = {method.name: method for method in call.methods}
    read: list[object] = [None]
    plain = Method(name="plain")
    _read_arguments(f"{where}, operation 1", methods.get("__init__", plain), values[0])
    for number, (one, inner, result) in enumerate(
        zip(operations[1:], values[1:], expected[1:], strict=True), 2
    ):
        read.append(
            _read_one(f"{where}, operation {number}", methods.get(one, plain), inner, result)
        )
    return read


def _normalise(kind: str, value: Any) -> Any:
    """Return a value in its kind's form (nodes: [] for None, no nulls at a tree's end); ValueError if it has none."""
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


_EXAMPLES = {
    "ListNode": "a list such as [1, 2, 3]",
    "TreeNode": "a level-order list such as [1, null, 2]",
}

"""Whether programs can be judged by a problem: its language, checker, call, and its tests' values.

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
"""Characters of a value that a message shows."""
_MAX_NAME_LENGTH = 1000
"""Characters of the longest name of a function."""
_MAX_CALL_BYTES = 1 << 14
"""Largest encoded call: one message to the sandbox carries everything about a test."""
_MAX_ARGUMENTS_BYTES = 1 << 15
"""Largest encoded arguments of a command, for the same reason."""
_EXAMPLES = {
    "ListNode": "a list such as [1, 2, 3]",
    "TreeNode": "a level-order list such as [1, null, 2]",
}
"""How the values of a kind that is built from JSON are written."""
_PLAIN_METHOD = Method(name="plain")
"""How a method is called of which a problem says nothing."""


def check_problem(problem: Problem) -> None:
    """Check that programs can be judged by a problem, and the values in a function's tests.

    Raises:
        DataError: an unknown language, a call that is not JSON, or a checker that does not fit;
            which and why.
    """
    check_settings(problem)
    if problem.fn_name is not None and problem.assertions is None:
        read_tests(problem, find_call(problem))


def check_settings(problem: Problem) -> None:
    """Check all of a problem but its tests: language, checker, how its function is called.

    Raises:
        DataError: which of them cannot be used, and why.
    """
    language = language_of(problem)
    checker = problem.checker
    if checker.type == "program":
        find_language(checker.language)
    check_arguments(checker.arguments, f"problem {problem.id}: checker.arguments")
    interactor = problem.interactor
    if interactor is not None:
        find_language(interactor.language)
        check_arguments(interactor.arguments, f"problem {problem.id}: interactor.arguments")
    if problem.fn_name is not None:
        if len(problem.fn_name) > _MAX_NAME_LENGTH:
            raise DataError(
                f"problem {problem.id[:100]}: fn_name has {len(problem.fn_name)} characters; "
                f"use at most {_MAX_NAME_LENGTH}"
            )
        if problem.assertions is None:
            _check_call(problem)
        if language.is_built:
            raise DataError(
                f"problem {problem.id} calls a function in {language.name}; "
                "only Python programs can be called"
            )
    if problem.dialect != "plain" and language.is_built:
        raise DataError(
            f'problem {problem.id} is in {language.name}, dialect "{problem.dialect}" is a way to '
            'run Python programs; leave it out, or use "plain"'
        )


def _check_call(problem: Problem) -> None:
    """Check how a problem's function is called; raises DataError."""
    # Nothing says how the values of such a class are written as JSON.
    if problem.call is None and defines_node(problem.starter_code or ""):
        raise DataError(
            f"problem {problem.id[:100]}: its starter code defines a class Node; only ListNode "
            "and TreeNode are built from JSON (docs/functions.md), so leave the problem out, or "
            "give it tests that are assertions"
        )
    call = find_call(problem)
    if call is None:
        return
    num_bytes = len(call.model_dump_json(exclude_defaults=True))
    if num_bytes > _MAX_CALL_BYTES:
        raise DataError(
            f"problem {problem.id[:100]}: call takes {num_bytes} bytes; "
            f"use at most {_MAX_CALL_BYTES}"
        )
    checker = problem.checker
    swaps_operations = checker.type == "unordered" and checker.lists != "inner"
    # Two operations of a design class may return the same value at different times.
    if call.style == "design" and swaps_operations:
        raise DataError(
            f"problem {problem.id} has a design class and takes its results in any order, so an "
            "answer could swap those of two operations; "
            'use {"type": "unordered", "lists": "inner"}, or a checker program'
        )


def read_tests(problem: Problem, call: Call | None) -> list[object]:
    """Check the tests of a function call, and return their expected values.

    Raises:
        DataError: a test is not what `read_test` reads.
    """
    return [
        read_test(
            problem,
            number,
            call,
        )
        for number in range(1, len(problem.tests) + 1)
    ]


def check_arguments(arguments: Sequence[str], what: str) -> None:
    """Raise DataError if arguments cannot be passed to a program; `what` names them in the
    message."""
    # As long as they are in the message to the sandbox.
    num_bytes = len(json.dumps(arguments))
    if num_bytes > _MAX_ARGUMENTS_BYTES:
        raise DataError(
            f"{what}: {num_bytes} bytes; use at most {_MAX_ARGUMENTS_BYTES}, and a file for more"
        )
    if any("\0" in argument for argument in arguments):
        raise DataError(f"{what}: a NUL character in one of them; leave it out")


def _read_lines(
    text: str,
    *,
    problem_id: str,
    test: int,
) -> list[object]:
    """Return the arguments in a test's input, one JSON value per line; raises DataError.

    Blank lines are left out.
    """
    arguments = []
    # Not by `splitlines`: a JSON text may hold what that takes for an end of line.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            arguments.append(parse_json(line))
        except ValueError as error:
            raise DataError(
                f"problem {problem_id}, test {test}, input line {number} is not a JSON argument "
                f"({error}): {line[:_MAX_SHOWN]!r}; a function-call problem takes one JSON value "
                "per line"
            ) from None
    return arguments


def _read_expected(
    text: str,
    *,
    problem_id: str,
    test: int,
) -> object:
    """Return a test's expected value; DataError if it is not JSON."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise DataError(
            f"problem {problem_id}, test {test}: the expected output is not JSON ({error}): "
            f"{text[:_MAX_SHOWN]!r}; a function-call problem expects one JSON value"
        ) from None


def read_test(
    problem: Problem,
    number: int,
    call: Call | None,
) -> object:
    """Check one test; return its expected value in the canonical form of results.

    Raises:
        DataError: its input or output is not JSON, or not what the call takes or returns.
    """
    test = problem.tests[number - 1]
    arguments = _read_lines(test.input, problem_id=problem.id, test=number)
    expected = _read_expected(test.output, problem_id=problem.id, test=number)
    if call is None:
        return expected
    where = f"problem {problem.id}, test {number}"
    if call.style == "design":
        return _read_operations(where, problem.fn_name or "", call, arguments, expected)
    return _read_one(where, call, arguments, expected)


def _read_one(
    where: str,
    signature: Signature,
    arguments: Sequence[object],
    expected: object,
) -> object:
    # The arguments first: a wrong one explains a wrong result.
    _read_arguments(where, signature, arguments)
    if signature.result is not None and signature.result >= len(arguments):
        raise DataError(
            f"{where}: the result is argument {signature.result}, counted from 0, "
            f"of {len(arguments)}; give call.result a smaller number"
        )
    return _read_kind(f"{where}: the expected output", signature.judged, expected)


def _read_arguments(
    where: str,
    signature: Signature,
    arguments: Sequence[Any],
) -> None:
    # Their numbers need not be equal: parameters may have defaults.
    pairs = zip(signature.parameters, arguments, strict=False)
    for number, (kind, argument) in enumerate(pairs, 1):
        _read_kind(f"{where}, argument {number}", kind, argument)


def _read_kind(
    what: str,
    kind: str,
    value: object,
) -> object:
    try:
        return _normalise(kind, value)
    except ValueError as misfit:
        raise DataError(f"{what} is no {kind}: {misfit}") from None


def _read_operations(
    where: str, name: str, call: Call, lines: Sequence[Any], expected: object
) -> object:
    """Check a list of operations and their arguments; return the list of expected results."""
    if not _fits_operations(name, lines, expected):
        raise DataError(
            f"{where}: a design class takes a line of operations, the first {name!r}, and a line "
            "with their lists of arguments, and expects a list of results, the first null: such as "
            f'["C", "add"], [[], [1]] and [null, 3]; got {show(lines)} and {show(expected)}'
        )
    assert isinstance(expected, list)
    operations, arguments = lines
    methods: Mapping[str, Signature] = {method.name: method for method in call.methods}
    made = methods.get("__init__", _PLAIN_METHOD)
    _read_arguments(f"{where}, operation 1", made, arguments[0])
    results: list[object] = [None]
    called = zip(
        operations[1:],
        arguments[1:],
        expected[1:],
        strict=True,
    )
    for number, (operation, values, result) in enumerate(called, 2):
        method = methods.get(operation, _PLAIN_METHOD)
        results.append(_read_one(f"{where}, operation {number}", method, values, result))
    return results


def _fits_operations(
    name: str,
    lines: Sequence[Any],
    expected: object,
) -> bool:
    """Whether lines of a test are operations and their arguments, with a result for each."""
    if len(lines) != 2 or not isinstance(expected, list):
        return False
    if not all(isinstance(line, list) for line in lines):
        return False
    operations, arguments = lines
    if not len(operations) == len(arguments) == len(expected):
        return False
    # The first operation makes an object of the class, and returns nothing.
    if operations[:1] != [name] or expected[0] is not None:
        return False
    if not all(isinstance(operation, str) for operation in operations):
        return False
    return all(isinstance(values, list) for values in arguments)


def _normalise(kind: str, value: object) -> object:
    """Return a value in its kind's form; ValueError if it has none.

    Of nodes, None becomes [], and nulls at the end of a tree are left out.
    """
    if kind == "json":
        return value
    if kind.startswith("list["):
        if not isinstance(value, list):
            raise ValueError(f"{show(value)} is not a list")
        item_kind = kind[len("list[") : -1]
        return [_normalise(item_kind, item) for item in value]
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{show(value)} (no list); write it as {_EXAMPLES[kind]}")
    # A tree may be written with or without the nulls at its end.
    end = len(value)
    while kind == "TreeNode" and end and value[end - 1] is None:
        end -= 1
    normal = value[:end]
    if not _is_whole(kind, normal):
        raise ValueError(f"{show(value)}; write it as {_EXAMPLES[kind]}")
    return normal


def _is_whole(kind: str, value: list[Any]) -> bool:
    """Whether nodes that are built from a value are written as that value."""
    try:
        return nodes.flatten(kind, nodes.build(kind, value)) == value
    except (TypeError, ValueError, IndexError, AttributeError):
        return False

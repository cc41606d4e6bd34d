"""Reads the calls of tests that are programs, with tuples among their arguments.

    assert f((3, 4), [(1, 2)]) == (4, 5)  ->  arguments as lists, and which of these are tuples

Two problems are compared as values of JSON, which has lists alone. The function gets its tuples
back when it is called.
"""

import ast
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from microcoder.data.formats.assertions import read_parameters
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.test_programs import CANDIDATE
from microcoder.data.formats.values import parse_python
from microcoder.judge.core.syntax import evaluate_literal

_CALLED = "called_with_tuples"
"""Name of the function that gives tuples back."""
_WITH_TUPLES = """

def {called}(*arguments):
    def with_tuples(value, depths, depth=0):
        if not isinstance(value, list):
            return value
        items = [with_tuples(item, depths, depth + 1) for item in value]
        if depth in depths:
            return tuple(items)
        return items

    return {entry}(*map(with_tuples, arguments, {depths}))
"""
"""Added to a program whose function is called with tuples."""
Depths = list[list[int]]
"""For each argument, how many lists a tuple stands inside of."""


class AssertedCall(NamedTuple):
    """A call that a test asserts."""

    arguments: tuple[Any, ...]
    """As they are written, with tuples."""
    value: Any
    """What the call is equal to."""


class CallingProgram(NamedTuple):
    """A program, and the function that is called."""

    code: str
    entry: str


def read_asserted(candidate: Candidate) -> list[AssertedCall]:
    """Return the calls with literal arguments in those tests of a problem that are programs."""
    if candidate.assertions is None or candidate.fn_name is None:
        return []
    parameters = read_parameters(candidate.starter_code or "", candidate.fn_name) or ()
    calls = []
    for test in candidate.tests:
        tree = parse_python(test.output)
        if tree is None:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert):
                call = _read_assertion(node.test, {candidate.fn_name, CANDIDATE}, parameters)
                if call is not None:
                    calls.append(call)
    return calls


def _read_assertion(
    test: ast.expr,
    names: set[str],
    parameters: Sequence[str],
) -> AssertedCall | None:
    """Return the call that an assertion makes; None if it is another one, or no literals."""
    call, expected = _split_assertion(test)
    if not isinstance(call, ast.Call):
        return None
    if not isinstance(call.func, ast.Name) or call.func.id not in names:
        return None
    try:
        arguments = tuple(map(ast.literal_eval, _order_arguments(call, parameters)))
        value = evaluate_literal(expected)
        # Sets and complex numbers are no values of JSON.
        json.dumps([arguments, value])
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    return AssertedCall(arguments, value)


def _order_arguments(call: ast.Call, parameters: Sequence[str]) -> list[ast.expr]:
    """Return the arguments of a call in the order of the parameters.

    ValueError if that is not known.
    """
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    names = parameters[len(call.args) :][: len(named)]
    if named.keys() != set(names):
        raise ValueError("the call names no parameters, or leaves some out")
    return [*call.args, *(named[name] for name in names)]


def _split_assertion(test: ast.expr) -> tuple[ast.expr, str]:
    """Return what is called, and the source of what it is equal to."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand, "False"
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.Is):
        return test.left, ast.unparse(test.comparators[0])
    return test, "True"


def find_tuples(calls: Sequence[AssertedCall]) -> Depths:
    """Return for each argument the depths at which all its lists are tuples."""
    depths = []
    for column in zip(*(call.arguments for call in calls), strict=True):
        tuples: set[int] = set()
        lists: set[int] = set()
        for value in column:
            _find_depths(value, 0, tuples, lists)
        depths.append(sorted(tuples - lists))
    return depths


def _find_depths(
    value: object,
    depth: int,
    tuples: set[int],
    lists: set[int],
) -> None:
    """Add the depths at which tuples and lists stand in a value."""
    if not isinstance(value, list | tuple):
        return
    if isinstance(value, tuple):
        tuples.add(depth)
    else:
        lists.add(depth)
    for item in value:
        _find_depths(item, depth + 1, tuples, lists)


def give_tuples(program: CallingProgram, depths: Depths) -> CallingProgram:
    """Return a program whose function is called with lists, and gets tuples at these depths."""
    if not program.code or not any(depths):
        return program
    added = _WITH_TUPLES.format(called=_CALLED, entry=program.entry, depths=depths)
    return CallingProgram(program.code + added, _CALLED)

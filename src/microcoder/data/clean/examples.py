"""Reads a statement's examples as tests: those that can be read in one way only.

    >>> double(2)            double(2) == 4            nums = [1, 2], k = 3
    4                        double(2) ➞ 4             [1, 2]

An accepted program that fails one of them contradicts the statement.
"""

import ast
import inspect
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from microcoder.data.clean.samples import values_of
from microcoder.data.clean.sections import Example, split
from microcoder.data.formats.assertions import (
    NotACall,
    arrange,
    parse_value,
    read_parameters,
    write_call,
)
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.test_programs import CANDIDATE
from microcoder.data.formats.values import parse_python
from microcoder.judge.core.types import Checker, TestCase

_MOST_EXAMPLES = 20
"""Examples of a statement that are read (our choice)."""
_MOST_CHARACTERS = 4_000
"""Characters of an example; a longer one is not read."""
_BEFORE = (
    r"^[ \t]*(?:>>>|[-*+#]|\d+[.)]|assert\b)?[ \t]*(?:(?:for )?examples?\b[ \t]*[:,]?)?[ \t]*`{0,3}"
)
"""What may stand before a call on its line."""
_GIVES = re.compile(
    r"[ \t`]*(?:#[ \t]*)?"
    r"(?:={2,3}>?|={1,2}>|-{1,2}>|[➞→⇒⟹]|(?:(?:should|must|will|would) )?returns?\b)"
    r"[ \t]*:?[ \t]*`?"
)
"""What stands between a call and its value. A single "=" may as well define something."""
_WRONG = re.compile(
    r"\b(?:wrong\w*|incorrect\w*|bug\w*|invalid|broken|currently|before)\b", re.IGNORECASE
)
"""Words of a line above a call whose value is the one that is not asked for."""
_MOST_TRIED = 32
"""Closing brackets that are tried as the end of a call."""
_MOST_LINES = 200
"""Lines that begin as a call which are read; of a longer text the rest is not."""
_PROMPT = re.compile(r"^[ \t]*>>>")
_ENDS = re.compile(r"[ \t`.;,]*$")
_CUT_SHORT = re.compile(r"\.\.\.|…")
"""Words of an example that is not whole."""
_PROSE = re.compile(r"(?:[^\W\d_]{2,}[ ,]+){3,}[^\W\d_]{2,}")
"""A sentence: it explains, or is what is printed; nothing tells which."""
_DECIMALS = re.compile(r"(?<![\w.])-?\d+\.(?P<decimals>\d+)(?![\w.])")
_NAMED = re.compile(r"^[ \t]*[^\W\d]\w*[ \t]*=(?!=)")
"""The beginning of an input that gives arguments by their names."""
_OPEN = frozenset({"many_answers", "needs_checker"})
"""Flags of problems with other right answers than the one that is shown."""


class Examples(NamedTuple):
    """Examples of a statement, as tests."""

    tests: tuple[TestCase, ...]
    checker: Checker
    """Compares with them: numbers count up to the digits that the statement has."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A call that a statement shows, and what it gives."""

    positional: tuple[Any, ...]
    named: Mapping[str, Any]
    value: Any


def read_examples(candidate: Candidate) -> Examples:
    """Return those examples of a statement that can be read in one way only, as tests.

    Those that are among the candidate's tests are left out: accepted programs pass them.
    """
    has_checker = candidate.interactor is not None or candidate.checker.type == "program"
    if has_checker or not _OPEN.isdisjoint(candidate.flags):
        return Examples((), candidate.checker)
    shown = split(candidate.statement).examples
    if candidate.fn_name is None:
        return _finish(candidate, _read_printed(candidate, shown))
    calls = list(_list_calls(candidate, candidate.fn_name))
    calls += _list_named(candidate, candidate.fn_name, shown)
    calls = calls[:_MOST_EXAMPLES]
    if candidate.assertions is not None:
        programs = dict.fromkeys(map(_write_program, calls))
        return Examples(tuple(programs), candidate.checker)
    return _finish(candidate, _write_calls(candidate, candidate.fn_name, calls))


def _finish(candidate: Candidate, examples: Iterable[TestCase]) -> Examples:
    """Return examples without those that are tests, with a checker for the others."""
    # A longer test is no example, and would have to be read whole.
    short = [test for test in candidate.tests if len(test.input) <= _MOST_CHARACTERS]
    known = set(map(_values_of_test, short))
    tests: dict[TestCase, None] = {}
    for example in examples:
        if _values_of_test(example) not in known:
            tests[example] = None
    chosen = tuple(tests)[:_MOST_EXAMPLES]
    return Examples(chosen, _checker_for(candidate, [test.output for test in chosen]))


def _values_of_test(test: TestCase) -> tuple[str, str]:
    return values_of(test.input), values_of(test.output)


def _checker_for(candidate: Candidate, outputs: Sequence[str]) -> Checker:
    """Return the candidate's checker, or one that forgives the digits that examples leave out."""
    if candidate.checker != Checker():
        return candidate.checker
    nums_decimals = []
    for output in outputs:
        nums_decimals += [len(found["decimals"]) for found in _DECIMALS.finditer(output)]
    if not nums_decimals:
        return candidate.checker
    return Checker(type="float", absolute=10.0 ** -min(nums_decimals))


def _read_printed(candidate: Candidate, shown: Sequence[Example]) -> list[TestCase]:
    """Return the examples of a program that reads and prints, if they look like its tests."""
    nums_lines = {_num_lines(test.output) for test in candidate.tests}
    nums_lines |= {_num_lines(test.input) for test in candidate.tests}
    tests = []
    for example in shown:
        if not _is_whole(example) or _PROSE.search(example.output):
            continue
        # What has another form than all tests was read wrong, or holds an explanation.
        if {_num_lines(example.input), _num_lines(example.output)} <= nums_lines:
            tests.append(TestCase(input=f"{example.input}\n", output=f"{example.output}\n"))
    return tests


def _is_whole(example: Example) -> bool:
    if not example.input.strip() or not example.output.strip():
        return False
    text = f"{example.input}\n{example.output}"
    return len(text) <= _MOST_CHARACTERS and _CUT_SHORT.search(text) is None


def _num_lines(text: str) -> int:
    return len(text.strip().split("\n"))


def _list_calls(candidate: Candidate, fn_name: str) -> Iterator[_Shown]:
    """Yield the calls of a function that begin a line and are followed by their value."""
    text = "\n".join((candidate.statement, candidate.starter_code or ""))
    lines = text.split("\n")
    begins = re.compile(rf"{_BEFORE}(?P<call>{re.escape(fn_name)}\()", re.IGNORECASE)
    num_read = 0
    for number, line in enumerate(lines):
        found = begins.match(line)
        if found is None or len(line) > _MOST_CHARACTERS:
            continue
        num_read += 1
        if num_read > _MOST_LINES:
            return
        if number > 0 and _WRONG.search(lines[number - 1]):
            continue
        source, rest = _cut_call(line[found.start("call") :])
        if not source:
            continue
        gives = _GIVES.match(rest)
        if gives is not None:
            value = rest[gives.end() :]
        elif _PROMPT.match(line) and not rest.strip() and number + 1 < len(lines):
            value = lines[number + 1]
        else:
            continue
        shown = _read_call(source, _ENDS.sub("", value))
        if shown is not None:
            yield shown


def list_calls_in(text: str, fn_name: str) -> Iterator[str]:
    """Yield the arguments of each call of literals in a text, as they are written."""
    begin = f"{fn_name}("
    for line in text.split("\n"):
        if len(line) > _MOST_CHARACTERS:
            continue
        # A definition without parameters looks like a call.
        for found in re.finditer(rf"(?<![\w.])(?<!def ){re.escape(begin)}", line):
            source, _ = _cut_call(line[found.start() :])
            if source and _read_call(source, "None") is not None:
                yield source[len(begin) : -1]


def _cut_call(text: str) -> tuple[str, str]:
    """Return the call that a text begins with, and what follows it; no call if there is none."""
    for found in islice(re.finditer(r"\)", text), _MOST_TRIED):
        source = text[: found.end()]
        tree = parse_python(source)
        # The first closing bracket that makes it whole; one in a string does not.
        if tree is not None and len(tree.body) == 1:
            return source, text[found.end() :]
    return "", text


def _list_named(
    candidate: Candidate,
    fn_name: str,
    shown: Sequence[Example],
) -> Iterator[_Shown]:
    """Yield the examples that give a function's arguments by their names."""
    parameters = set(read_parameters(candidate.starter_code or "", fn_name))
    for example in shown:
        if not _is_whole(example) or not _NAMED.match(example.input):
            continue
        arguments = ", ".join(line.strip().strip(",") for line in example.input.split("\n"))
        call = _read_call(f"{fn_name}({arguments})", example.output.strip())
        if call is not None and call.named.keys() == parameters:
            yield call


def _read_call(source: str, value: str) -> _Shown | None:
    """Return a call of literals and its value; None if either is anything else."""
    tree = parse_python(f"{source}\n({value}\n)") if value.strip() else None
    if tree is None or len(tree.body) != 2:
        return None
    # `("Venus")` is meant for a tuple by some.
    is_bracketed = value.startswith("(") and value.endswith(")")
    match tree.body:
        case [ast.Expr(value=ast.Call(args=args, keywords=keywords)), ast.Expr(value=expected)]:
            try:
                positional = tuple(map(parse_value, args))
                named = {str(item.arg): parse_value(item.value) for item in keywords}
                shown = _Shown(positional, named, parse_value(expected))
            except NotACall:
                return None
            is_meant = isinstance(shown.value, tuple) or not is_bracketed
            is_finite = _is_finite([positional, list(named.values()), shown.value])
            return shown if is_meant and is_finite else None
    return None


def _is_finite(value: object) -> bool:
    """Whether a value has no number such as infinity, which has no literal."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return _is_finite([*value.keys(), *value.values()])
    return not isinstance(value, list | tuple | set) or all(map(_is_finite, value))


def _write_calls(
    candidate: Candidate,
    fn_name: str,
    calls: Sequence[_Shown],
) -> Iterator[TestCase]:
    """Yield calls as tests in JSON; those that have no such form are left out."""
    # What changes its argument returns nothing, and an example shows the argument.
    if all(test.output.strip() == "null" for test in candidate.tests):
        return
    if candidate.call is not None and candidate.call.style == "design":
        return
    parameters = read_parameters(candidate.starter_code or "", fn_name)
    for call in calls:
        try:
            arguments = arrange(parameters, call.positional, call.named)
            if len(arguments) == len(parameters):
                yield write_call(arguments, call.value)
        except NotACall:
            continue


def _write_program(call: _Shown) -> TestCase:
    """Return a call as a test that is a program."""
    source = inspect.getsource(is_same)
    values = f"*{call.positional!r}, **{dict(call.named)!r}"
    program = f"{source}\n\nassert is_same({CANDIDATE}({values}), {call.value!r})\n"
    return TestCase(input="", output=program)


def is_same(value: object, expected: object) -> bool:
    """Whether a value is what an example shows, up to its digits and its kind of list.

    It runs inside tests, so that it needs nothing else.
    """
    # What changes its argument returns nothing.
    if value is None or value == expected:
        return True
    if isinstance(value, (set, frozenset)) or isinstance(expected, (set, frozenset)):
        both = isinstance(value, (list, tuple, set, frozenset))
        if both and isinstance(expected, (list, tuple, set, frozenset)):
            return sorted(map(repr, value)) == sorted(map(repr, expected))
        return False
    if isinstance(value, (list, tuple)) and isinstance(expected, (list, tuple)):
        return len(value) == len(expected) and all(map(is_same, value, expected))
    if isinstance(value, dict) and isinstance(expected, dict):
        if value.keys() != expected.keys():
            return False
        return all(is_same(value[key], expected[key]) for key in expected)
    # An iterator or a node is not written as the list that an example shows.
    plain = (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
    if not isinstance(value, plain):
        return True
    if isinstance(value, float) and isinstance(expected, int):
        return abs(value - expected) <= 1e-6 * max(1, abs(expected))
    if isinstance(value, (int, float)) and isinstance(expected, float):
        decimals = repr(expected).partition(".")[2]
        return decimals.isdecimal() and abs(value - expected) <= 10.0 ** -len(decimals)
    return False


def describe_example(candidate: Candidate, test: TestCase) -> str:
    """Return an example in a line: what is given, and what is shown of it."""
    if candidate.assertions is not None:
        shown = test.output.rstrip().rpartition("assert is_same(")[2]
        return shown.removesuffix(")")
    return f"{values_of(test.input)} -> {values_of(test.output)}"

"""Reads a problem as a function of values: its cases, in whatever format, and its program."""

import ast
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Protocol

from microcoder.data.behaviour.asserted import (
    AssertedCall,
    CallingProgram,
    find_tuples,
    give_tuples,
    read_asserted,
)
from microcoder.data.behaviour.blocks import BlockRead, read_blocks
from microcoder.data.behaviour.outputs import (
    Tokens,
    kind_of,
    shapes_of,
    tokens_of_json,
    tokens_of_text,
)
from microcoder.data.clean.sections import split
from microcoder.data.filter.keys import LONGEST_EXAMPLE
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.values import read_literal
from microcoder.data.inputs.finding import Item
from microcoder.data.inputs.layouts import (
    Layout,
    Read,
    Values,
    read_calls,
    read_texts,
    split_repeated,
)
from microcoder.judge.core.digits import dump_json, parse_json
from microcoder.judge.core.syntax import evaluate_literal, parse_source

_MOST_CASES = 24
"""Cases of a form: more say no more, and each is run."""
_MOST_READINGS_OF_CASES = 2
"""Readings that take an input for several cases, the likeliest."""
_MOST_LINES = 3
"""Lines of an input that may be texts with blanks."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?")
"""A number as JSON has it."""
_WORDS = re.compile(r"[^\W\d_].*\s|\s.*[^\W\d_]")
"""A line with a letter and a blank."""
_NAMED = re.compile(r"(?:^|[,;\s])\s*[A-Za-z_]\w*\s*=(?!=)\s*")
"""The name of an argument, and `=`."""
_DOCTEST = re.compile(r"^[ \t]*>>> ?([^\n]{1,300})\n[ \t]*([^\n>]{1,300})$", re.MULTILINE)
_METHOD = re.compile(r"def\s+(\w+)\s*\(")


class Writing(Protocol):
    """Writes values as an input of a program."""

    def render(self, values: Values) -> object:
        """Return the input that holds these values; ValueError if there is none."""


class ValueCase(NamedTuple):
    """Input values, and the expected output as tokens."""

    values: Values
    expected: Tokens


@dataclass(frozen=True, slots=True)
class Form:
    """One reading of a problem's inputs as values, its cases in that form, and a right program."""

    id: str
    kinds: tuple[str, ...]
    """Kind of each input value, in order (see `kind_of`)."""
    cases: tuple[ValueCase, ...]
    layout: Writing
    """How values are written as an input of the program."""
    program: str = ""
    """A Python program known to be right; empty where there is none."""
    entry: str = ""
    """The function to call; empty for a program that reads stdin."""
    shapes: frozenset[str] = frozenset()
    """What its outputs look like (see `shapes_of`)."""
    bits: float = 0.0
    """Evidence that it costs, where it is one of many views (see `views.py`)."""


class _Example(NamedTuple):
    """An input, and the output as a text."""

    input: Any
    """Text for stdin, or the list of a function's arguments."""
    output: str


class _Reading(NamedTuple):
    """Inputs read as values, with the outputs that belong to them."""

    read: Read | BlockRead
    outputs: Sequence[str]


def find_forms(candidate: Candidate) -> list[Form]:
    """Return the possible readings of a problem's inputs, the likeliest first.

    Empty if no small case can be read.
    """
    call = candidate.call
    if call is not None and call.style == "design":
        return []
    entry = _entry_of(candidate)
    # Linked lists and trees are no JSON values.
    parameters = call.parameters if call is not None else ()
    if entry and any(kind != "json" for kind in parameters):
        return []
    asserted = read_asserted(candidate)
    examples = _examples_of(candidate, asserted, is_call=bool(entry))
    if not examples:
        return []
    if entry:
        readings = _read_as_calls(examples)
        to_tokens: Callable[[str], Tokens] = tokens_of_json
    else:
        readings = _read_as_texts(examples)
        to_tokens = tokens_of_text
    program = CallingProgram(_program_of(candidate), entry)
    if asserted:
        program = give_tuples(program, find_tuples(asserted))
    forms = []
    for read, outputs in readings:
        tokens = list(map(to_tokens, outputs))
        cases = _cases_of(read, tokens)
        columns = zip(*read.values, strict=True)
        kinds = tuple(map(kind_of, columns))
        if "x" in kinds and isinstance(read, Read) and _has_count(read.layout):
            # A number is taken for the length of a list whose items have no known kind.
            continue
        forms.append(
            Form(
                candidate.id,
                kinds,
                cases,
                read.layout,
                program.code,
                program.entry,
                shapes_of(case.expected for case in cases),
            )
        )
    return forms


def _read_as_calls(examples: Sequence[_Example]) -> list[_Reading]:
    outputs = [example.output for example in examples]
    inputs = [example.input for example in examples]
    readings = []
    for read in read_calls(inputs):
        readings.append(_Reading(read, outputs))
    return readings


def _read_as_texts(examples: Sequence[_Example]) -> list[_Reading]:
    """Return the readings of texts; those that split each text into several cases come first."""
    inputs = [example.input for example in examples]
    outputs = [example.output for example in examples]
    readings = []
    # A benchmark's function has one case, a contest's input often many.
    cases = split_repeated(inputs, outputs)
    if cases is not None:
        for read in _read_lines(cases.inputs)[:_MOST_READINGS_OF_CASES]:
            layout = Layout(read.layout.items, is_repeated=True)
            repeated = replace(read, layout=layout)
            readings.append(_Reading(repeated, cases.outputs))
    by_lines: list[_Reading] = []
    known = []
    for read in _read_lines(inputs):
        by_lines.append(_Reading(read, outputs))
        known.append(read.values)
    blocks = read_blocks(inputs)
    if blocks is not None and blocks.values not in known:
        # Where lines are read otherwise, blocks are likelier than numbers read as texts.
        by_lines.insert(1, _Reading(blocks, outputs))
    return readings + by_lines


def _read_lines(inputs: Sequence[str]) -> list[Read]:
    """Return the readings of texts, the likeliest first; also that of a line with blanks as a text.

    Of words on a line nobody can say whether they are a list or one text.
    """
    readings = read_texts(inputs)
    if not readings:
        rows = _read_rows(inputs)
        return [] if rows is None else [rows]
    whole = _read_whole_lines(inputs)
    if whole is None:
        return readings
    return [*readings[:1], whole, *readings[1:]]


def _read_rows(inputs: Sequence[str]) -> Read | None:
    """Return the reading of rows of numbers that no number counts, after at most one number alone.

    None if the inputs are something else.
    """
    values: list[Values] = []
    num_before: set[int] = set()
    for text in inputs:
        lines = list(map(str.split, filter(str.strip, text.splitlines())))
        if not lines or not all(map(_NUMBER.fullmatch, chain.from_iterable(lines))):
            return None
        rows = []
        for line in lines:
            rows.append(list(map(json.loads, line)))
        # A number before rows of the same width stands for itself.
        is_alone = len(rows) > 1 and len(rows[0]) == 1 and len(rows[1]) > 1
        num_before.add(int(is_alone))
        if is_alone:
            values.append((rows[0][0], rows[1:]))
        else:
            values.append((rows,))
    if len(num_before) != 1 or all(len(row[-1]) == 1 for row in values):
        return None
    items = (Item("value"), Item("rows")) if 1 in num_before else (Item("rows"),)
    return Read(Layout(items), tuple(values))


def _read_whole_lines(inputs: Sequence[str]) -> Read | None:
    """Return the reading that takes lines of words as texts.

    None if the inputs have many lines, or no such line.
    """
    lines_by_input = [text.splitlines() for text in inputs]
    heights = set(map(len, lines_by_input))
    if len(heights) != 1 or not 1 <= heights.pop() <= _MOST_LINES:
        return None
    columns = []
    items = []
    has_text = False
    for lines in zip(*lines_by_input, strict=True):
        is_text = any(map(_WORDS.search, lines))
        has_text = has_text or is_text
        if is_text:
            items.append(Item("value"))
            columns.append(lines)
            continue
        # Numbers, or one word: as any reading has them.
        reads = read_texts(lines)
        # A count would count an item of its own line alone.
        if not reads or any(item.form not in ("value", "list") for item in reads[0].layout.items):
            return None
        items += reads[0].layout.items
        columns += zip(*reads[0].values, strict=True)
    if not has_text:
        return None
    return Read(Layout(tuple(items)), tuple(zip(*columns, strict=True)))


def _has_count(layout: Layout) -> bool:
    return any(item.form == "count" for item in layout.items)


def _program_of(candidate: Candidate) -> str:
    """Return the first Python program known to be right; empty where there is none."""
    # Only Python, since `sandboxed.py` runs programs in its own process.
    for solution in candidate.solutions:
        if solution.known == "accepted" and solution.language == "python":
            return solution.code
    return ""


def _cases_of(
    read: Read | BlockRead,
    expected: Sequence[Tokens],
) -> tuple[ValueCase, ...]:
    """Return the first different cases."""
    cases: dict[str, ValueCase] = {}
    for values, tokens in zip(
        read.values,
        expected,
        strict=True,
    ):
        # Equal inputs say nothing new.
        cases.setdefault(json.dumps(values), ValueCase(values, tokens))
    return tuple(cases.values())[:_MOST_CASES]


def _entry_of(candidate: Candidate) -> str:
    """Return the function to call; empty for a program that reads stdin."""
    if candidate.fn_name:
        # A method may be named with its class; `sandboxed.py` looks into `Solution` by itself.
        return candidate.fn_name.rpartition(".")[2]
    # LiveCodeBench's published results name the function in the starter code alone.
    for name in _METHOD.findall(candidate.starter_code or ""):
        if not name.startswith("__"):
            return name
    return ""


def _examples_of(
    candidate: Candidate,
    asserted: Sequence[AssertedCall],
    *,
    is_call: bool,
) -> list[_Example]:
    """Return small tests and the statement's examples."""
    shown = split(candidate.statement).examples
    examples = [_write_asserted(call) for call in asserted]
    # Of tests that are programs, only what they assert can be read.
    tests = () if candidate.assertions is not None else candidate.tests
    for test in (*tests, *shown):
        longer = max(len(test.input), len(test.output))
        if longer > LONGEST_EXAMPLE or not test.output.strip():
            continue
        if is_call:
            arguments = _read_arguments(test.input)
            if arguments is not None:
                examples.append(_Example(arguments, test.output))
        else:
            examples.append(_Example(test.input, test.output))
    if not is_call:
        return examples
    examples += _doctests(candidate)
    return _with_usual_number(examples)


def _write_asserted(call: AssertedCall) -> _Example:
    """Return a call as an example, with lists for tuples."""
    as_json = json.loads(json.dumps(call.arguments))
    return _Example(as_json, json.dumps(call.value))


def _with_usual_number(examples: Sequence[_Example]) -> list[_Example]:
    """Return the examples with the usual number of arguments; the others were misread."""
    by_number: dict[int, list[_Example]] = {}
    for example in examples:
        by_number.setdefault(len(example.input), []).append(example)
    # An optional argument, or an example that was misread, is in the minority.
    return max(by_number.values(), key=len, default=[])


def _doctests(candidate: Candidate) -> list[_Example]:
    """Return a statement's doctests: `>>> f(1, 2)` and, below it, the value."""
    examples = []
    for call, value in _DOCTEST.findall(candidate.statement):
        try:
            example = _read_doctest(call.strip(), value.strip())
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            # Whatever stands there is no call with literal arguments.
            continue
        if example is not None:
            examples.append(example)
    return examples


def _read_doctest(call: str, value: str) -> _Example | None:
    """Return arguments, and the value as JSON; None if no function is called by position."""
    node = parse_source(call, mode="eval").body
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    arguments = [ast.literal_eval(argument) for argument in node.args]
    # As they would be read from a test: tuples are lists there.
    as_json = json.loads(json.dumps(arguments))
    return _Example(as_json, json.dumps(evaluate_literal(value)))


def _read_arguments(text: str) -> list[Any] | None:
    """Return arguments written as one JSON value a line, or as `nums = [1, 2], k = 3`.

    None if they are neither.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return list(map(parse_json, lines))
    except (ValueError, RecursionError):
        pass
    values = []
    try:
        # What stands before the first name is no argument.
        for part in _NAMED.split(text)[1:]:
            values.append(read_literal(part.strip().rstrip(",")))
        # As they would be read from a test: tuples are lists there.
        arguments = [parse_json(dump_json(value)) for value in values]
    except (ValueError, TypeError, RecursionError):
        return None
    # An empty list says that no name was found, not that the call has no arguments.
    return arguments or None

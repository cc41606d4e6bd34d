"""A problem as a function of values: its cases, whatever its inputs are written like, and its program."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.data.behaviour.values import Tokens, kind_of, tokens_of_json, tokens_of_text
from microcoder.data.clean.sections import split
from microcoder.data.filter.contamination import LONGEST_EXAMPLE
from microcoder.data.formats.candidates import Candidate
from microcoder.data.inputs.layouts import Layout, Read, Values, read_calls, read_texts, split_repeated
from microcoder.judge.core.syntax import evaluate_literal, parse_source

_MOST_CASES = 24
_LARGE, _ENOUGH_CASES = 1_000_000, 3
_NAMED = re.compile(r"(?:^|[,;\s])\s*[A-Za-z_]\w*\s*=(?!=)\s*")
_DOCTEST = re.compile(r"^[ \t]*>>> ?([^\n]{1,300})\n[ \t]*([^\n>]{1,300})$", re.MULTILINE)
_METHOD = re.compile(r"def\s+(\w+)\s*\(")


@dataclass(frozen=True, slots=True)
class ValueCase:
    """Values that go in, and what a right program gives for them."""

    values: Values
    expected: Tokens


@dataclass(frozen=True, slots=True)
class Form:
    """One way to see a problem."""

    id: str
    kinds: tuple[str, ...]
    """Of its values, in order (see `kind_of`)."""
    cases: tuple[ValueCase, ...]
    layout: Layout
    """How values become an input of its program."""
    program: str = ""
    """A Python program known to be right; empty where there is none."""
    entry: str = ""
    """The function to call; empty for a program that reads stdin."""


def find_forms(candidate: Candidate) -> list[Form]:
    """Return the ways to see a problem, the likeliest first; none where it has no small case that can be read."""
    if candidate.call is not None and candidate.call.style == "design":
        return []
    entry = _entry_of(candidate)
    pairs = _pairs(candidate, is_call=bool(entry))
    if not pairs:
        return []
    program = next(
        (one.code for one in candidate.solutions if one.known == "accepted" and one.language == "python"), ""
    )
    if entry:
        if candidate.call is not None and any(kind != "json" for kind in (*candidate.call.parameters,)):
            return []
        expected = [tokens_of_json(output) for _, output in pairs]
        reads = read_calls([arguments for arguments, _ in pairs])
        return _sound([_form(candidate, read, expected, program, entry) for read in reads])
    texts, outputs = [given for given, _ in pairs], [output for _, output in pairs]
    forms = []
    if repeated := split_repeated(texts, outputs):
        cases, said = repeated
        for read in read_texts(cases)[:2]:
            layout = Layout(read.layout.items, is_repeated=True)
            forms.append(_form(candidate, Read(layout, read.values), list(map(tokens_of_text, said)), program, ""))
    said_tokens = list(map(tokens_of_text, outputs))
    return _sound(forms + [_form(candidate, read, said_tokens, program, "") for read in read_texts(texts)])


def _sound(forms: Sequence[Form]) -> list[Form]:
    """Leave out forms that count the items of what may be anything."""
    return [form for form in forms if "x" not in form.kinds or all(i.form != "count" for i in form.layout.items)]


def _form(candidate: Candidate, read: Read, expected: Sequence[Tokens], program: str, entry: str) -> Form:
    cases: dict[str, ValueCase] = {}
    for values, said in zip(read.values, expected, strict=True):
        cases.setdefault(json.dumps(values), ValueCase(values, said))
    kinds = tuple(kind_of(column) for column in zip(*read.values, strict=True))
    return Form(candidate.id, kinds, _most_telling(list(cases.values())), read.layout, program, entry)


def _most_telling(cases: Sequence[ValueCase]) -> tuple[ValueCase, ...]:
    """Return up to so many cases, with as many different outputs as there are among the first."""
    # Programs that count up to a number are many, and take all their time for a large one.
    small = [case for case in cases if not _has_large(case.values)]
    cases = small if len(small) >= _ENOUGH_CASES else cases
    seen: dict[Tokens, int] = {}
    ranked = []
    for place, case in enumerate(cases):
        seen[case.expected] = seen.get(case.expected, 0) + 1
        ranked.append((seen[case.expected], -min(len(str(case.values)), 60), place))
    return tuple(cases[place] for *_, place in sorted(ranked)[:_MOST_CASES])


def _has_large(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_large, value))
    return isinstance(value, int) and abs(value) > _LARGE


def _entry_of(candidate: Candidate) -> str:
    if candidate.fn_name:
        return candidate.fn_name.rpartition(".")[2]
    # LiveCodeBench's published results name the function in the starter code alone.
    names = [name for name in _METHOD.findall(candidate.starter_code or "") if not name.startswith("__")]
    return names[0] if names else ""


def _pairs(candidate: Candidate, *, is_call: bool) -> list[tuple[Any, str]]:
    """Return inputs and outputs of small tests and of the statement's examples; for a function, its arguments."""
    shown = split(candidate.statement or candidate.statement_found).examples
    pairs: list[tuple[Any, str]] = []
    for given, output in [(one.input, one.output) for one in (*candidate.tests, *shown)]:
        if not output.strip() or len(given) > LONGEST_EXAMPLE or len(output) > LONGEST_EXAMPLE:
            continue
        if not is_call:
            pairs.append((given, output))
        elif (arguments := _read_arguments(given)) is not None:
            pairs.append((arguments, output))
    if is_call:
        pairs += _doctests(candidate)
    widths = [len(arguments) for arguments, _ in pairs] if is_call else []
    usual = max(set(widths), key=widths.count) if widths else 0
    return [pair for pair in pairs if not is_call or len(pair[0]) == usual]


def _doctests(candidate: Candidate) -> list[tuple[list[Any], str]]:
    """Return the examples that a docstring shows: `>>> f(1, 2)` and, below it, the value."""
    found = []
    for call, shown in _DOCTEST.findall(candidate.statement or candidate.statement_found):
        try:
            node = parse_source(call.strip(), mode="eval").body
            if isinstance(node, ast.Call) and not node.keywords:
                arguments = json.loads(json.dumps([ast.literal_eval(argument) for argument in node.args]))
                found.append((arguments, json.dumps(evaluate_literal(shown.strip()))))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    return found


def _read_arguments(text: str) -> list[Any] | None:
    """Return arguments of JSON by line, or as a statement shows them: `nums = [1, 2], k = 3`."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        pass
    parts = [part.strip().rstrip(",") for part in _NAMED.split(text)[1:]]
    try:
        return [_literal(part) for part in parts] or None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        value = evaluate_literal(text)
        return json.loads(json.dumps(value))

"""Tests of EvalPlus: inputs with a reference program, or with the reference's results.

They become programs that compare an answer's values with the reference's, within EvalPlus's
tolerance, in a process that the answer never enters.
"""

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

from microcoder.data.formats.row import Malformed, Row
from microcoder.judge.core.files import cut_pieces
from microcoder.judge.core.syntax import parse_source

INPUTS_PER_TEST = 25
"""Calls that one test makes, since a time limit holds for a test."""
_ORACLES = {"find_zero": "abs(poly(*given, value)) <= {tolerance}"}
"""By function with many right answers, the condition on a returned value.

`poly` is defined in the prompt.
"""
_AGREES = "agree(value, reference(*given), {tolerance})"
"""The condition on a value of any other function: EvalPlus's rule."""
_LOOP = """
import copy
reference = {entry}
for arguments in {inputs!r}:
    given = copy.deepcopy(arguments)
    value = candidate(*arguments)
    assert {condition}, f"{entry}(*{{given!r}})"
"""
"""End of a test's program: calls the answer with each list of arguments."""


def plus_programs(row: Row, *, fields: Sequence[str]) -> list[str]:
    """Return tests on the inputs in these fields, such as `base_input` and `plus_input`.

    Each is a program in which the reference runs, on the same arguments, so expected values are
    never in the answer's process.

    Raises:
        Malformed: the fields are not lists of arguments, or the reference is no Python.
    """
    entry = row.text("entry_point")
    tolerance = row.values.get("atol", 0)
    if not isinstance(tolerance, int | float):
        raise Malformed("wrong_type", f"atol is {tolerance!r}, not a number")
    reference = f"{row.text('prompt')}{row.text('canonical_solution')}"
    # A broken reference would fail all answers alike.
    try:
        parse_source(reference)
    except SyntaxError as error:
        raise Malformed(
            "wrong_value", f"prompt and canonical_solution are no Python ({error})"
        ) from None
    condition = _ORACLES.get(entry, _AGREES).format(tolerance=float(tolerance))
    programs = []
    for inputs in cut_pieces(_read_inputs(row, fields, entry), INPUTS_PER_TEST):
        loop = _LOOP.format(entry=entry, inputs=inputs, condition=condition)
        programs.append(f"{_read_agreement()}\n{reference}\n{loop}")
    return programs


def _read_inputs(row: Row, fields: Sequence[str], entry: str) -> list[list[Any]]:
    """Return the lists of arguments in some fields; Malformed if they are none."""
    shapes = _argument_shapes(row, entry)
    inputs = []
    for name in fields:
        lists = row.items(name)
        if not row.has(name) or not all(isinstance(item, list) for item in lists):
            raise Malformed(
                "wrong_type",
                f"{name} is missing or no list of argument lists; is this an EvalPlus file?",
            )
        inputs += [_shape_arguments(given, shapes) for given in lists]
    return inputs


@cache
def _read_agreement() -> str:
    path = files("microcoder.data.formats").joinpath("sandboxed", "agreement.py")
    return path.read_text(encoding="utf-8")


def _argument_shapes(row: Row, entry: str) -> list[list[Any]]:
    """Return the arguments in a row's `assertion`, call by call.

    They show which of JSON's lists are tuples or sets.
    """
    source = row.values.get("assertion")
    if not isinstance(source, str):
        return []
    try:
        tree = parse_source(source)
    except SyntaxError:
        return []
    shapes = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id == entry:
            # An argument that is no literal shows no type.
            with suppress(ValueError, TypeError, SyntaxError):
                shapes.append([ast.literal_eval(argument) for argument in node.args])
    return shapes


def _shape_arguments(given: Sequence[Any], shapes: Sequence[Sequence[Any]]) -> list[Any]:
    """Return arguments from JSON with the types that those of other calls have in their place."""
    fitting = [shape for shape in shapes if len(shape) == len(given)]
    arguments = []
    for place, value in enumerate(given):
        examples = [shape[place] for shape in fitting]
        arguments.append(_shape(value, examples))
    return arguments


def _shape(value: Any, examples: Sequence[Any]) -> Any:
    """Return a value from JSON with the type that examples have: a tuple, a set, a complex."""
    kinds = {type(example) for example in examples}
    # JSON has no complex numbers, so EvalPlus writes them as texts.
    if isinstance(value, str) and kinds == {complex}:
        return complex(value)
    if isinstance(value, Mapping):
        inner: list[Any] = []
        for example in examples:
            if isinstance(example, dict):
                inner += example.values()
        return {key: _shape(item, inner) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    items = _shape_items(value, examples)
    for kind in (tuple, set, frozenset):
        if kind in kinds and kinds <= {kind, dict}:
            return kind(items)
    return items


def _shape_items(values: Sequence[Any], examples: Sequence[Any]) -> list[Any]:
    """Return the items of a list from JSON with the types of the examples' items."""
    inner: list[Any] = []
    for example in examples:
        if isinstance(example, list | tuple | set | frozenset):
            inner += example
    # A list among the items is shaped after those items that hold others, all of one type.
    nested: list[Any] = []
    for kind in (list, tuple, set, frozenset, dict):
        nested = [item for item in inner if isinstance(item, kind)]
        if nested:
            break
    shaped = []
    for item in values:
        shapes = nested if isinstance(item, list) else inner
        shaped.append(_shape(item, shapes))
    return shaped

"""Tests of EvalPlus: inputs with a reference program, or with the reference's results.

They are decided by claims: an answer's values are compared with the reference's, within EvalPlus's
tolerance, in a process that the answer never enters.
"""

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from microcoder.data.formats.assertions import RESULTS, NotACall, parse_value
from microcoder.data.formats.claims import SplitAssertion, claims_test
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.values import parse_python
from microcoder.judge.core.files import cut_pieces
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import TestCase

INPUTS_PER_TEST = 25
"""Calls that one test makes: a process for each of thousands would take too long."""
_REFERENCE = "_reference"
"""Name of the reference's function in the checker."""
_ORACLES = {"find_zero": "abs(poly(*{arguments}, {value})) <= {tolerance}"}
"""By function with many right answers, the condition on a returned value.

`poly` is defined in the prompt.
"""
_AGREES = f"_agree({{value}}, {_REFERENCE}(*{{arguments}}), {{tolerance}})"
"""The condition on a value of any other function: EvalPlus's rule."""


def table_tests(source: str, *, entry: str) -> list[TestCase]:
    """Return tests from the lists `inputs` and `results` that a test loops over.

    None without such lists.

    Raises:
        NotACall: they are not lists of one length.
    """
    tables = _find_tables(source)
    if tables.keys() != {"inputs", "results"}:
        return []
    inputs = parse_value(tables["inputs"])
    results = parse_value(tables["results"])
    are_lists = isinstance(inputs, list) and isinstance(results, list)
    if not are_lists or len(inputs) != len(results):
        raise NotACall("inputs and results are not lists of one length")
    claims = []
    for given, expected in zip(inputs, results, strict=True):
        arguments = list(given) if isinstance(given, list | tuple) else [given]
        # Compared by EvalPlus's rule.
        condition = f"_agree({RESULTS}[0], {expected!r}, 0)"
        claims.append(SplitAssertion((f"{entry}(*{arguments!r})",), condition))
    return _in_groups(claims)


def _find_tables(source: str) -> dict[str, ast.expr]:
    """Return what a test assigns to `inputs` and `results`."""
    tables: dict[str, ast.expr] = {}
    tree = parse_python(source)
    if tree is None:
        return tables
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="inputs" | "results" as name)], value=value):
                tables[name] = value
    return tables


def _in_groups(claims: Sequence[SplitAssertion], prelude: str = "") -> list[TestCase]:
    return [claims_test(piece, prelude=prelude) for piece in cut_pieces(claims, INPUTS_PER_TEST)]


def plus_tests(row: Row, *, fields: Sequence[str]) -> list[TestCase]:
    """Return tests on the inputs in these fields, such as `base_input` and `plus_input`.

    The reference runs in the checker, on the same arguments, so expected values are never in the
    answer's process.

    Raises:
        Malformed: the fields are not lists of arguments, or the reference is no Python.
    """
    entry = row.text("entry_point")
    tolerance = row.values.get("atol", 0)
    if not isinstance(tolerance, int | float):
        raise Malformed("wrong_type", f"atol is {tolerance!r}, not a number")
    reference = f"{row.text('prompt')}{row.text('canonical_solution')}"
    prelude = f"{reference}\n{_REFERENCE} = {entry}\n"
    # A broken reference would fail all answers alike.
    try:
        parse_source(prelude)
    except SyntaxError as error:
        raise Malformed(
            "wrong_value", f"prompt and canonical_solution are no Python ({error})"
        ) from None
    shapes = _argument_shapes(row, entry)
    condition = _ORACLES.get(entry, _AGREES)
    claims = []
    for name in fields:
        inputs = row.items(name)
        if not row.has(name) or not all(isinstance(item, list) for item in inputs):
            raise Malformed(
                "wrong_type",
                f"{name} is missing or no list of argument lists; is this an EvalPlus file?",
            )
        for given in inputs:
            arguments = _shape_arguments(given, shapes)
            source = condition.format(
                arguments=arguments, value=f"{RESULTS}[0]", tolerance=float(tolerance)
            )
            claims.append(SplitAssertion((f"{entry}(*{arguments!r})",), source))
    return _in_groups(claims, prelude)


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
        arguments.append(_shape(value, [shape[place] for shape in fitting]))
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

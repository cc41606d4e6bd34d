"""EvalPlus's tests (HumanEval+, MBPP+): inputs with a reference that says what they should give, or with results."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from microcoder.formats.assertions import RESULTS, parse_value
from microcoder.formats.calls import NotACall
from microcoder.formats.claims import SplitAssertion, claims_test
from microcoder.formats.row import Malformed, Row
from microcoder.formats.text import parse_python
from microcoder.syntax import parse_source
from microcoder.types import TestCase

INPUTS_PER_TEST = 25
_REFERENCE = "_reference"
_ORACLES = {"find_zero": "abs(poly(*{arguments}, {value})) <= {tolerance}"}
"""Functions with many right answers; `poly` is in the prompt."""


def find_tables(source: str) -> tuple[list[Any], list[Any]] | None:
    """Return the lists `inputs` and `results` that a test loops over; None if it has none.

    Raises:
        NotACall: they are no literals, or differ in length.
    """
    tree = parse_python(source)
    tables: dict[str, ast.expr] = {}
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Assign(targets=[ast.Name(id="inputs" | "results" as name)], value=value):
                tables[name] = value
    if tables.keys() != {"inputs", "results"}:
        return None
    inputs, results = parse_value(tables["inputs"]), parse_value(tables["results"])
    if not isinstance(inputs, list) or not isinstance(results, list) or len(inputs) != len(results):
        raise NotACall("inputs and results are no lists of one length")
    return inputs, results


def table_tests(source: str, *, entry: str) -> list[TestCase]:
    """Return the tests of such lists, compared by EvalPlus's rule; none where there are no lists.

    Raises:
        NotACall: they are no literals, or differ in length.
    """
    inputs, results = find_tables(source) or ([], [])
    rows = zip(inputs, results, strict=True)
    return _in_groups(
        [
            SplitAssertion((f"{entry}(*{_listed(given)!r})",), f"_agree({RESULTS}[0], {expected!r}, 0)")
            for given, expected in rows
        ]
    )


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _in_groups(claims: Sequence[SplitAssertion], prelude: str = "") -> list[TestCase]:
    starts = range(0, len(claims), INPUTS_PER_TEST)
    return [claims_test(claims[start : start + INPUTS_PER_TEST], prelude=prelude) for start in starts]


def plus_tests(row: Row, *, fields: Sequence[str]) -> list[TestCase]:
    """Return tests of some of a row's inputs, such as `base_input` and `plus_input`.

    The reference runs in the checker, on the same arguments, so its values are never where the answer runs.

    Raises:
        Malformed: a field is missing or of another kind.
    """
    entry, tolerance = row.text("entry_point"), row.values.get("atol", 0)
    if not isinstance(tolerance, int | float):
        raise Malformed("wrong_type", f"atol is {tolerance!r}, not a number")
    reference = f"{row.text('prompt')}{row.text('canonical_solution')}"
    prelude = f"{reference}\n{_REFERENCE} = {entry}\n"
    try:
        parse_source(prelude)
    except SyntaxError as error:
        raise Malformed("wrong_value", f"prompt and canonical_solution are no Python ({error})") from None
    shapes = _argument_shapes(row, entry)
    claims = [
        _claim(entry, _shape_all(given, shapes), float(tolerance)) for name in fields for given in _inputs(row, name)
    ]
    return _in_groups(claims, prelude)


def _inputs(row: Row, name: str) -> list[list[Any]]:
    found = row.items(name)
    if not row.has(name) or not all(isinstance(item, list) for item in found):
        raise Malformed("wrong_type", f"{name} is missing or no list of argument lists; is this an EvalPlus file?")
    return found


def _claim(entry: str, arguments: Sequence[Any], tolerance: float) -> SplitAssertion:
    given, value = repr(list(arguments)), f"{RESULTS}[0]"
    default = f"_agree({value}, {_REFERENCE}(*{given}), {tolerance!r})"
    oracle = _ORACLES.get(entry)
    source = oracle.format(arguments=given, value=value, tolerance=tolerance) if oracle else default
    return SplitAssertion((f"{entry}(*{given})",), source)


def _argument_shapes(row: Row, entry: str) -> list[list[Any]]:
    """Return the arguments of the row's own assertions: they show where JSON's lists stand for tuples and sets."""
    source = row.values.get("assertion", "")
    try:
        tree = parse_source(source if isinstance(source, str) else "")
    except SyntaxError:
        return []
    shapes = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == entry:
            try:
                shapes.append([ast.literal_eval(argument) for argument in node.args])
            except (ValueError, TypeError, SyntaxError):
                continue
    return shapes


def _shape_all(given: Sequence[Any], shapes: Sequence[Sequence[Any]]) -> list[Any]:
    fitting = [shape for shape in shapes if len(shape) == len(given)]
    return [_shape(value, [shape[index] for shape in fitting]) for index, value in enumerate(given)]


def _shape(value: Any, examples: Sequence[Any]) -> Any:
    """Return a JSON value as the kind that the examples are of."""
    kinds = {type(example) for example in examples}
    if isinstance(value, str) and kinds == {complex}:
        return complex(value)
    if isinstance(value, Mapping):
        inner = [item for example in examples if isinstance(example, dict) for item in example.values()]
        return {key: _shape(item, inner) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    inner = [item for example in examples if isinstance(example, list | tuple | set | frozenset) for item in example]
    by_kind = {kind: [item for item in inner if isinstance(item, kind)] for kind in (list, tuple, set, frozenset, dict)}
    nested = next((items for items in by_kind.values() if items), [])
    items = [_shape(item, nested if isinstance(item, list) else inner) for item in value]
    for kind in (tuple, set, frozenset):
        if kinds and kinds <= {kind, dict} and kind in kinds:
            return kind(items)
    return items

"""EvalPlus's further tests (HumanEval+, MBPP+): inputs, and a reference that says what they should give."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from microcoder.dataset.benchmarks.assertions import RESULTS, Claim, claims_test
from microcoder.dataset.benchmarks.rows import PublishedRow, read_published
from microcoder.errors import DataError
from microcoder.types import TestCase

INPUTS_PER_TEST = 25
_REFERENCE = "_reference"
_ORACLES = {"find_zero": "abs(poly(*{arguments}, {value})) <= {tolerance}"}
"""Functions with many right answers; `poly` is in the prompt."""


def read_plus(path: Path) -> dict[str, PublishedRow]:
    """Read an EvalPlus file, by the digits of its task ids.

    Raises:
        DataError: the file is missing or a row is broken.
    """
    return {task_number(row.text("task_id")): row for row in read_published(path, "EvalPlus file")}


def task_number(task_id: str) -> str:
    """Return `12` for `HumanEval/12` and for `Mbpp/12`."""
    return task_id.rpartition("/")[2]


def plus_tests(row: PublishedRow, *, fields: Sequence[str]) -> list[TestCase]:
    """Return tests of some of a row's inputs, such as `base_input` and `plus_input`.

    The reference runs in the checker, on the same arguments, so its values are never where the answer runs.

    Raises:
        DataError: a field is missing or of another kind.
    """
    entry, tolerance = row.text("entry_point"), row.values.get("atol", 0)
    if not isinstance(tolerance, int | float):
        raise DataError(f"{row.where}: atol is {tolerance!r}, not a number")
    reference = f"{row.text('prompt')}{row.text('canonical_solution')}"
    prelude = f"{reference}\n{_REFERENCE} = {entry}\n"
    try:
        ast.parse(prelude)
    except SyntaxError as error:
        raise DataError(f"{row.where}: prompt and canonical_solution are no Python ({error})") from None
    shapes = _argument_shapes(row, entry)
    claims = [
        _claim(entry, _shape_all(given, shapes), float(tolerance)) for name in fields for given in row.arguments(name)
    ]
    starts = range(0, len(claims), INPUTS_PER_TEST)
    return [claims_test(claims[start : start + INPUTS_PER_TEST], prelude=prelude) for start in starts]


def _claim(entry: str, arguments: Sequence[Any], tolerance: float) -> Claim:
    given, value = repr(list(arguments)), f"{RESULTS}[0]"
    default = f"_agree({value}, {_REFERENCE}(*{given}), {tolerance!r})"
    oracle = _ORACLES.get(entry)
    source = oracle.format(arguments=given, value=value, tolerance=tolerance) if oracle else default
    return Claim((f"{entry}(*{given})",), source)


def _argument_shapes(row: PublishedRow, entry: str) -> list[list[Any]]:
    """Return the arguments of the row's own assertions: they show where JSON's lists stand for tuples and sets."""
    source = row.values.get("assertion", "")
    try:
        tree = ast.parse(source if isinstance(source, str) else "")
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

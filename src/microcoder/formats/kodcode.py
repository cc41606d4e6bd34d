"""KodCode-V1: tests are pytest files that import the function from `solution`."""

from __future__ import annotations

import ast

from microcoder.formats.candidates import Candidate
from microcoder.formats.encodings import DecodedTests, asserted_tests, complete
from microcoder.formats.programs import python_solutions
from microcoder.formats.row import Row
from microcoder.formats.text import parse_python

_RATES = (("gpt_pass_percentage", "gpt-4o"), ("r1_pass_percentage", "deepseek-r1"))


def read_kodcode(row: Row) -> Candidate:
    """Read a row; the tests are those assertions that are calls with literals."""
    source = row.text("test", "test_code")
    solution = row.optional("solution") if row.is_judged else row.text("solution")
    fn_name = _function(row, source)
    statement = row.statement("question")
    declared = [item.optional("function_declaration") for item in row.rows("test_info")]

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            notes=tests.notes,
            title=row.name("question_id"),
            tags=row.tags("subset"),
            platform_difficulty=row.name("gpt_difficulty"),
            starter_code=next((text for text in declared if f"def {fn_name}(" in text), None),
            solutions=python_solutions([solution]),
            pass_rates=tuple(f"{model}={rate:g}" for name, model in _RATES if (rate := _rate(row, name)) is not None),
            **tests.fields,
        )

    return complete(build, lambda: asserted_tests([source], fn_name=fn_name, code=solution, is_judged=row.is_judged))


def _function(row: Row, source: str) -> str:
    """Return the function that the tests import; where they import several, the first that is declared."""
    tree = parse_python(source)
    imported = [
        alias.name
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.ImportFrom) and node.module == "solution"
        for alias in node.names
    ]
    declared = [item.optional("function_name") for item in row.rows("test_info")]
    return next((name for name in declared if name in imported), (imported or declared or [""])[0])


def _rate(row: Row, name: str) -> float | None:
    value = row.values.get(name)
    is_rate = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if is_rate and value is not None else None

"""rStar-Coder (`microsoft/rStar-Coder`: `seed_testcase`, `synthetic_rl_testcase`)."""

from __future__ import annotations

from microcoder.formats.candidates import Candidate
from microcoder.formats.encodings import DecodedTests, pair_tests
from microcoder.formats.programs import python_solutions
from microcoder.formats.row import Row


def read_rstar(row: Row) -> Candidate:
    """Read a row: inputs and outputs are two lists, each written as JSON."""
    inputs, outputs = row.decoded("inputs"), row.decoded("outputs")
    fn_name = row.optional("func_name")
    starter = row.optional("starter_code")
    tests = pair_tests(inputs, outputs, fn_name=fn_name, code=starter) if inputs or outputs else DecodedTests()
    kind = row.optional("test_case_type")
    said = row.values.get("is_synthesized")
    is_synthesized = said if isinstance(said, bool) else row.optional("is_synthesized").lower() in ("true", "1", "yes")
    return row.candidate(
        row.statement("question"),
        notes=[*tests.notes, *([("tests", f"test_case_type {kind}")] if kind else [])],
        title=row.name("question_id"),
        platform="synthetic" if is_synthesized else "",
        starter_code=starter or None,
        solutions=python_solutions([row.optional("code")]),
        **tests.fields,
    )

"""MBPP and MBPP+, as published; the function is named by the assertions alone. To decontaminate by, not to train on."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from microcoder.formats.calls import NotACall
from microcoder.formats.candidates import Candidate
from microcoder.formats.claims import (
    claims_checker,
    claims_harness,
    claims_test,
    find_called,
    parse_test,
    read_claims,
)
from microcoder.formats.encodings import DecodedTests, asserted_tests, complete
from microcoder.formats.evalplus import plus_tests, table_tests
from microcoder.formats.humaneval import read_tables
from microcoder.formats.programs import head_of, python_solutions
from microcoder.formats.row import Malformed, Row
from microcoder.formats.text import parse_python
from microcoder.types import TestCase

TIME_LIMIT_SECONDS = 10.0
"""Of CPU per assertion; a reference takes 3."""
MEMORY_LIMIT_MIB = 2048


def read_mbpp(row: Row) -> Candidate:
    """Read a task of MBPP (`text`), its sanitized version (`prompt`), or MBPP+ (`test` with inputs and results)."""
    statement = row.statement("text", "prompt")
    code = row.optional("code", "canonical_solution") if row.is_judged else row.text("code", "canonical_solution")
    assertions = (*row.texts("test_list"), *row.texts("challenge_test_list"))
    sources = assertions or (row.optional("assertion"),)
    entry = row.optional("entry_point") or find_entry(code, "\n".join(sources))

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            notes=tests.notes,
            title=f"Mbpp/{row.name('task_id').rpartition('/')[2]}",
            starter_code=head_of(code, entry),
            time_limit_seconds=TIME_LIMIT_SECONDS if row.is_judged else None,
            memory_limit_mib=MEMORY_LIMIT_MIB if row.is_judged else None,
            solutions=python_solutions([code.replace("\r\n", "\n")]),
            **tests.fields,
        )

    def decode() -> DecodedTests:
        return read_tables(row.optional("test"), entry) or asserted_tests(sources, fn_name=entry, code=code)

    return build(_claim(row, code)) if row.is_judged else complete(build, decode)


def _claim(row: Row, code: str) -> DecodedTests:
    """Return the tests as published: EvalPlus's inputs, its tables, or `test_list` without the challenge."""
    sources = row.texts("test_list") or tuple(filter(None, [row.optional("assertion")]))
    if not sources and not row.has("base_input") and not row.has("test"):
        raise Malformed("missing_field", "test_list")
    entry = row.optional("entry_point") or _find_named(code, sources)
    try:
        if row.has("base_input") or row.has("plus_input"):
            tests = plus_tests(row, fields=[name for name in ("base_input", "plus_input") if row.has(name)])
        else:
            tests = table_tests(row.optional("test"), entry=entry) or list_tests(row, sources, code, entry)
    except NotACall as error:
        raise Malformed("tests_not_convertible", str(error)) from None
    return DecodedTests(tuple(tests), entry, claims_checker(), harness=claims_harness())


def list_tests(row: Row, sources: Sequence[str], code: str, entry: str) -> list[TestCase]:
    """Return one test for each item of `test_list`.

    Raises:
        NotACall: one of them is no assertion about the function, or no Python.
    """
    setup = "\n".join([row.optional("test_setup_code"), *row.texts("test_imports")])
    # An assertion may use what the reference imports, such as sys.
    around = parse_test(f"{code}\n{setup}").body
    imports = "\n".join(ast.unparse(node) for node in around if isinstance(node, ast.Import | ast.ImportFrom))
    tests = []
    for source in sources:
        claims = read_claims(parse_test(source).body, called=(entry,), entry=entry)
        if not claims or not any(claim.calls for claim in claims):
            raise NotACall(f"{source[:80]!r} is no assertion about {entry}")
        tests.append(claims_test(claims, setup=setup, prelude=imports))
    return tests


def _find_named(code: str, sources: Sequence[str]) -> str:
    """Return the function that the first assertion is about; MBPP does not name it."""
    called = find_called(sources[0]) if sources else []
    entry = find_entry(code, sources[0]) if sources else ""
    if not entry and not called:
        shown = sources[0][:80] if sources else ""
        raise Malformed("tests_not_convertible", f"the first assertion calls no function: {shown!r}")
    return entry or called[0]


def find_entry(code: str, assertions: str) -> str:
    """Return the function that the assertions call and the code defines; empty where there is none."""
    tree, tests = parse_python(code), parse_python(assertions)
    if tree is None or tests is None:
        return ""
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = [node.func for node in ast.walk(tests) if isinstance(node, ast.Call)]
    return next((func.id for func in calls if isinstance(func, ast.Name) and func.id in defined), "")

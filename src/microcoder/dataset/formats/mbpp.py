"""MBPP and MBPP+, as published; the function is named by the assertions alone. To decontaminate by, not to train on."""

from __future__ import annotations

import ast

from microcoder.dataset.candidates import Candidate
from microcoder.dataset.formats.encodings import Tests, asserted_tests, complete
from microcoder.dataset.formats.humaneval import read_tables
from microcoder.dataset.formats.programs import head_of, python_solutions
from microcoder.dataset.formats.row import Row
from microcoder.dataset.formats.text import parse_python


def read_mbpp(row: Row) -> Candidate:
    """Read a task of MBPP (`text`), its sanitized version (`prompt`), or MBPP+ (`test` with inputs and results)."""
    statement, code = row.statement("text", "prompt"), row.text("code", "canonical_solution")
    assertions = (*row.texts("test_list"), *row.texts("challenge_test_list"))
    sources = assertions or (row.optional("assertion"),)
    entry = row.optional("entry_point") or find_entry(code, "\n".join(sources))

    def build(tests: Tests) -> Candidate:
        return row.candidate(
            statement,
            notes=tests.notes,
            title=f"Mbpp/{row.name('task_id').rpartition('/')[2]}",
            starter_code=head_of(code, entry),
            solutions=python_solutions([code.replace("\r\n", "\n")]),
            **tests.fields,
        )

    def decode() -> Tests:
        return read_tables(row.optional("test"), entry) or asserted_tests(sources, fn_name=entry, code=code)

    return complete(build, decode)


def find_entry(code: str, assertions: str) -> str:
    """Return the function that the assertions call and the code defines; empty where there is none."""
    tree, tests = parse_python(code), parse_python(assertions)
    if tree is None or tests is None:
        return ""
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = [node.func for node in ast.walk(tests) if isinstance(node, ast.Call)]
    return next((func.id for func in calls if isinstance(func, ast.Name) and func.id in defined), "")

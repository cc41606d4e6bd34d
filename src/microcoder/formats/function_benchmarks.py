"""Benchmarks of functions: HumanEval and its kin (HumanEval+, HumanEval-XL, CodeT's prompts), MBPP and MBPP+, ODEX.

To decontaminate by and to judge answers by, not to train on. An answer to HumanEval holds the whole function; the
prompt comes before it, so that its imports and helpers are there. In MBPP only the assertions name the function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from microcoder.formats.calls import NotACall, write_call
from microcoder.formats.candidates import Candidate, DecodedTests
from microcoder.formats.claims import (
    check_tests,
    claims_checker,
    claims_harness,
    claims_test,
    find_called,
    parse_test,
    read_claims,
)
from microcoder.formats.encodings import asserted_tests, complete
from microcoder.formats.evalplus import find_tables, plus_tests, table_tests
from microcoder.formats.format import ASSERTIONS, Format
from microcoder.formats.programs import head_of, name_language, python_solutions
from microcoder.formats.row import Malformed, Row
from microcoder.formats.text import parse_python
from microcoder.types import TestCase

HUMANEVAL_SECONDS = 3.0
"""Of CPU per assertion; the published harness gives the whole test 3 seconds of wall time."""
MBPP_SECONDS = 10.0
"""Of CPU per assertion; a reference takes 3."""
MEMORY_LIMIT_MIB = 2048
_NATURAL = {
    "English": "en",
    "Chinese": "zh",
    "Russian": "ru",
    "Arabic": "ar",
    "Estonian": "et",
    "Finnish": "fi",
    "Dutch": "nl",
}


def read_humaneval(row: Row) -> Candidate:
    """Read a task: the prompt is both statement and the beginning of the answer."""
    prompt, entry, solution = row.statement("prompt"), row.text("entry_point"), row.optional("canonical_solution")
    source = row.optional("test")
    code = prompt + (solution or "    pass\n")
    limit = HUMANEVAL_SECONDS if row.is_judged else None

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            prompt,
            tests,
            title=row.optional("meta_data.task_name") or row.name("task_id"),
            natural_language=_NATURAL.get(row.optional("natural_language"), ""),
            programming_language=name_language(row.optional("language")) or "python",
            platform_difficulty=row.name("meta_data.difficulty"),
            time_limit_seconds=row.number("meta_data.time_limit.seconds") or limit,
            memory_limit_mib=MEMORY_LIMIT_MIB if row.is_judged else None,
            starter_code=head_of(code, entry),
            solutions=python_solutions([prompt + solution] if solution.strip() else []),
        )

    def decode() -> DecodedTests:
        sources = [source, row.optional("assertion")]
        if not any(text.strip() for text in sources):
            return DecodedTests()
        return _read_tables(source, entry) or asserted_tests(sources, fn_name=entry, code=code, called=("candidate",))

    if not row.is_judged:
        return complete(build, decode)
    # The prompt runs before an answer: its function with a body where it has not even a docstring.
    before = next((text for text in (prompt, prompt + "    pass\n") if parse_python(text) is not None), "")
    return build(_claim(row, source, entry, lambda: check_tests(source, entry=entry, preamble=before), before))


def read_mbpp(row: Row) -> Candidate:
    """Read a task of MBPP (`text`), its sanitized version (`prompt`), or MBPP+ (`test` with inputs and results)."""
    statement = row.statement("text", "prompt")
    code = row.optional("code", "canonical_solution") if row.is_judged else row.text("code", "canonical_solution")
    assertions = (*row.texts("test_list"), *row.texts("challenge_test_list"))
    sources = assertions or (row.optional("assertion"),)
    entry = row.optional("entry_point") or _find_entry(code, "\n".join(sources))

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            tests,
            title=f"Mbpp/{row.name('task_id').rpartition('/')[2]}",
            starter_code=head_of(code, entry),
            time_limit_seconds=MBPP_SECONDS if row.is_judged else None,
            memory_limit_mib=MEMORY_LIMIT_MIB if row.is_judged else None,
            solutions=python_solutions([code.replace("\r\n", "\n")]),
        )

    def decode() -> DecodedTests:
        return _read_tables(row.optional("test"), entry) or asserted_tests(sources, fn_name=entry, code=code)

    return build(_claim_mbpp(row, code)) if row.is_judged else complete(build, decode)


def read_odex(row: Row) -> Candidate:
    """Read a task: `intent` is asked in one of four languages, `prompt` and `suffix` stand around the answer."""
    statement, prompt, entry = row.statement("intent"), row.text("prompt"), row.text("entry_point")
    source = row.optional("test_start") + "".join(row.texts("test"))

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            statement,
            tests,
            url=f"https://stackoverflow.com/questions/{row.name('task_id')}",
            platform="stackoverflow",
            title=row.name("task_id"),
            tags=row.tags("library"),
            starter_code=prompt,
            solutions=python_solutions([f"{prompt}{row.optional('canonical_solution')}{row.optional('suffix')}"]),
        )

    if row.is_judged:
        return build(_claim(row, source, entry, lambda: check_tests(source, entry=entry)))
    return complete(build, lambda: asserted_tests([source], fn_name=entry, code=prompt, called=("candidate",)))


def _claim(
    row: Row, source: str, entry: str, decide: Callable[[], Sequence[TestCase]], preamble: str = ""
) -> DecodedTests:
    """Return the tests as published: EvalPlus's inputs, its tables, or else what `decide` makes of the assertions."""
    fields = [name for name in ("base_input", "plus_input") if row.has(name)]
    try:
        tests = plus_tests(row, fields=fields) if fields else table_tests(source, entry=entry) or decide()
    except NotACall as error:
        raise Malformed("tests_not_convertible", str(error)) from None
    return DecodedTests(tuple(tests), entry, claims_checker(), harness=claims_harness(preamble))


def _claim_mbpp(row: Row, code: str) -> DecodedTests:
    """Return the tests as published: `test_list` without the challenge."""
    sources = row.texts("test_list") or tuple(filter(None, [row.optional("assertion")]))
    if not sources and not row.has("base_input") and not row.has("test"):
        raise Malformed("missing_field", "test_list")
    entry = row.optional("entry_point") or _find_named(code, sources)
    return _claim(row, row.optional("test"), entry, lambda: _list_tests(row, sources, code, entry))


def _list_tests(row: Row, sources: Sequence[str], code: str, entry: str) -> list[TestCase]:
    """Return one test for each item of `test_list`."""
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
    first = sources[0] if sources else ""
    if entry := _find_entry(code, first):
        return entry
    if called := find_called(first):
        return called[0]
    raise Malformed("tests_not_convertible", f"the first assertion calls no function: {first[:80]!r}")


def _find_entry(code: str, assertions: str) -> str:
    """Return the function that the assertions call and the code defines; empty if there is none."""
    tree, tests = parse_python(code), parse_python(assertions)
    if tree is None or tests is None:
        return ""
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    calls = [node.func for node in ast.walk(tests) if isinstance(node, ast.Call)]
    return next((func.id for func in calls if isinstance(func, ast.Name) and func.id in defined), "")


def _read_tables(source: str, fn_name: str) -> DecodedTests | None:
    """Read EvalPlus's tests, two lists `inputs` and `results` that a loop goes through; None if there are none."""
    try:
        tables = find_tables(source)
    except NotACall as error:
        raise Malformed("tests_not_convertible", str(error)) from None
    if tables is None:
        return None
    tests: list[TestCase] = []
    dropped: list[str] = []
    rows: list[tuple[Any, Any]] = list(zip(*tables, strict=True))
    for given, expected in rows:
        try:
            tests.append(write_call(given if isinstance(given, list) else [given], expected))
        except NotACall as error:
            dropped.append(str(error))
    if not tests:
        raise Malformed("tests_not_convertible", "; ".join(dict.fromkeys(dropped)) or "no inputs")
    notes = (("tests", f"{len(dropped)} of {len(rows)} left out: {dropped[0]}"),) if dropped else ()
    return DecodedTests(tuple(tests), fn_name, notes=notes)


FORMATS = (
    Format(
        "humaneval",
        "openai/human-eval, EvalPlus, HumanEval-XL",
        read_humaneval,
        is_benchmark=True,
        tests_in="test",
        shape=f"{ASSERTIONS} (`def check(candidate)`); or EvalPlus's base_input and plus_input",
        marks=(("entry_point", "test"), ("entry_point", "plus_input")),
    ),
    Format(
        "mbpp",
        "google-research/mbpp, EvalPlus",
        read_mbpp,
        licence="CC-BY-4.0",
        is_benchmark=True,
        tests_in="test_list",
        shape=f"a list of {ASSERTIONS}; or EvalPlus's base_input and plus_input",
        marks=(("test_list",), ("test_list", "test_setup_code"), ("entry_point", "plus_input", "assertion")),
    ),
    Format(
        "odex",
        "zorazrw/odex",
        read_odex,
        licence="CC-BY-SA-4.0",
        is_benchmark=True,
        tests_in="test",
        shape=ASSERTIONS,
        marks=(("intent", "test", "entry_point"), ("entry_point", "test", "test_start")),
    ),
)

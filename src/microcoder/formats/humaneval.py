"""HumanEval and its kin: HumanEval+, HumanEval-XL, CodeT's CodeContests prompts.

To decontaminate by and to judge answers by, not to train on. An answer holds the whole function; the prompt comes
before it, so that its imports and helpers are there.
"""

from __future__ import annotations

from microcoder.formats.calls import NotACall, write_call
from microcoder.formats.candidates import Candidate
from microcoder.formats.claims import check_tests, claims_checker, claims_harness
from microcoder.formats.encodings import DecodedTests, asserted_tests, complete
from microcoder.formats.evalplus import find_tables, plus_tests, table_tests
from microcoder.formats.programs import head_of, name_language, python_solutions
from microcoder.formats.row import Malformed, Row
from microcoder.formats.text import parse_python

TIME_LIMIT_SECONDS = 3.0
"""Of CPU per assertion; the published harness gives the whole test 3 seconds of wall time."""
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
    language = name_language(row.optional("language")) or "python"
    source = row.optional("test")
    meta = row.inner("meta_data")
    limit = meta.inner("time_limit")
    code = prompt + (solution or "    pass\n")

    def build(tests: DecodedTests) -> Candidate:
        return row.candidate(
            prompt,
            notes=tests.notes,
            title=meta.optional("task_name") or row.name("task_id"),
            natural_language=_NATURAL.get(row.optional("natural_language"), ""),
            programming_language=language,
            platform_difficulty=meta.name("difficulty"),
            time_limit_seconds=limit.number("seconds") or (TIME_LIMIT_SECONDS if row.is_judged else None),
            memory_limit_mib=MEMORY_LIMIT_MIB if row.is_judged else None,
            starter_code=head_of(code, entry),
            solutions=python_solutions([prompt + solution] if solution.strip() else []),
            **tests.fields,
        )

    if row.is_judged:
        return build(_claim(row, source, entry))
    return complete(build, lambda: _decode(source, row.optional("assertion"), entry, code))


def _claim(row: Row, source: str, entry: str) -> DecodedTests:
    """Return the tests as published: EvalPlus's inputs, its tables, or `def check(candidate)`."""
    preamble = _preamble(row.optional("prompt"))
    try:
        if row.has("base_input") or row.has("plus_input"):
            tests = plus_tests(row, fields=[name for name in ("base_input", "plus_input") if row.has(name)])
        else:
            tests = table_tests(source, entry=entry) or check_tests(source, entry=entry, preamble=preamble)
    except NotACall as error:
        raise Malformed("tests_not_convertible", str(error)) from None
    return DecodedTests(tuple(tests), entry, claims_checker(), harness=claims_harness(preamble))


def _preamble(prompt: str) -> str:
    """Return what runs before an answer: the prompt, its function with a body where it has not even a docstring."""
    return next((text for text in (prompt, prompt + "    pass\n") if parse_python(text) is not None), "")


def read_tables(source: str, fn_name: str) -> DecodedTests | None:
    """Read EvalPlus's tests, two lists `inputs` and `results` that a loop goes through; None where there are none.

    Raises:
        Malformed: the lists are no literals, or differ in length.
    """
    try:
        tables = find_tables(source)
    except NotACall as error:
        raise Malformed("tests_not_convertible", str(error)) from None
    if tables is None:
        return None
    inputs, results = tables
    tests, dropped = [], []
    for given, expected in zip(inputs, results, strict=True):
        try:
            tests.append(write_call(given if isinstance(given, list) else [given], expected))
        except NotACall as error:
            dropped.append(str(error))
    if not tests:
        raise Malformed("tests_not_convertible", "; ".join(dict.fromkeys(dropped)) or "no inputs")
    notes = (("tests", f"{len(dropped)} of {len(inputs)} left out: {dropped[0]}"),) if dropped else ()
    return DecodedTests(tuple(tests), fn_name, notes=notes)


def _decode(source: str, assertion: str, entry: str, code: str) -> DecodedTests:
    if not source.strip() and not assertion.strip():
        return DecodedTests()
    tables = read_tables(source, entry)
    return tables or asserted_tests([source, assertion], fn_name=entry, code=code, called=("candidate",))

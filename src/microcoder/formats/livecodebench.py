"""LiveCodeBench (`livecodebench/code_generation_lite`): for benchmarks and decontamination, never training data."""

from __future__ import annotations

import re
from typing import Any

from microcoder.formats.candidates import Candidate, DecodedTests, Solution
from microcoder.formats.encodings import decode_tests
from microcoder.formats.format import Format
from microcoder.formats.programs import python_solutions
from microcoder.formats.row import Malformed, Row
from microcoder.types import Checker

TIME_LIMIT_SECONDS = 6.0
"""What LiveCodeBench's checker gives a test by default (there: wall time)."""
MEMORY_LIMIT_MIB = 2048
"""LiveCodeBench's checker has none."""
_CODEFORCES = re.compile(r"(\d+)_([A-Z]\d*)")
_ATCODER = re.compile(r"((?:abc|arc|agc)\d+)_\w+")


def read_livecodebench(row: Row) -> Candidate:
    """Read a problem; published results of models on them have no tests, only what identifies the problem."""
    metadata = row.inner("metadata") if not isinstance(row.values.get("metadata"), list) else row.over({})
    fn_name = metadata.optional("func_name")
    found = [(group, _tests_of(row, f"{group}_test_cases", fn_name)) for group in ("public", "private")]
    names = {tests.fn_name for _, tests in found if tests.tests}
    if len(names) > 1:
        raise Malformed("bad_tests", "public and private tests are of different styles")
    if row.is_judged and not row.has("private_test_cases"):
        raise Malformed("missing_field", "private_test_cases")
    if row.is_judged and fn_name and names == {None}:
        raise Malformed("bad_tests", f"stdin tests, but metadata names the function {fn_name!r}; they must have none")
    judged_by = _judged_by(metadata) if row.is_judged else {}
    platform, name = row.optional("platform").lower(), row.name("question_id")
    return row.candidate(
        row.statement("question_content"),
        url=make_url(platform, name),
        platform=platform,
        title=row.optional("question_title") or name,
        date=row.date("contest_date"),
        platform_difficulty=row.optional("difficulty"),
        fn_name=names.pop() if names else None,
        starter_code=row.optional("starter_code") or None,
        tests=tuple(test for _, tests in found for test in tests.tests),
        **judged_by,
        groups=tuple(group for group, tests in found for _ in tests.tests),
        solutions=_graded_right(row),
    )


def _graded_right(row: Row) -> tuple[Solution, ...]:
    """Return the programs of published results that were graded right: to tell by what they do what a problem is."""
    if not (row.has("code_list") and isinstance(row.values.get("graded_list"), list)):
        return ()
    return python_solutions(
        [code for code, is_right in zip(row.texts("code_list"), row.items("graded_list"), strict=False) if is_right]
    )


def _judged_by(metadata: Row) -> dict[str, Any]:
    """Return limits and comparison: LiveCodeBench's own, or what a corpus that we exported says."""
    memory = metadata.number("memory_limit_mib")
    kind = metadata.optional("checker")
    if kind not in ("", "default", "exact", "tokens"):
        raise Malformed("bad_checker", f"metadata.checker is {kind!r}; use default, exact or tokens")
    return {
        "time_limit_seconds": metadata.number("time_limit_seconds") or TIME_LIMIT_SECONDS,
        "memory_limit_mib": round(memory) if memory else MEMORY_LIMIT_MIB,
        "checker": Checker.model_validate({"type": kind or "default"}),
    }


def make_url(platform: str, name: str) -> str:
    """Return a problem's page by its name there (`1873_A`, `abc301_a`); empty if the name does not tell."""
    if platform == "codeforces" and (found := _CODEFORCES.fullmatch(name)):
        return f"https://codeforces.com/contest/{found[1]}/problem/{found[2]}"
    if platform == "atcoder" and (found := _ATCODER.fullmatch(name)):
        return f"https://atcoder.jp/contests/{found[1]}/tasks/{name}"
    return ""


def _tests_of(row: Row, name: str, fn_name: str) -> DecodedTests:
    value = row.unpacked(name)
    try:
        return decode_tests(value, fn_name=fn_name)
    except Malformed as error:
        raise Malformed(error.reason, f"{name}: {error.detail}") from None


FORMATS = (
    Format(
        "livecodebench",
        "livecodebench/code_generation_lite",
        read_livecodebench,
        is_benchmark=True,
        tests_in="private_test_cases",
        shape='a list of {"input": ..., "output": ..., "testtype": "stdin" or "functional"}, as JSON or packed',
        marks=(("private_test_cases",), ("public_test_cases", "question_content")),
    ),
)

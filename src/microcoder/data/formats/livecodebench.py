"""Reads LiveCodeBench: problems for evaluation and decontamination, never for training."""

import re
from itertools import compress

from microcoder.data.formats.candidates import Candidate, DecodedTests, Solution
from microcoder.data.formats.format import Format
from microcoder.data.formats.programs import python_solutions
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import decode_tests

TIME_LIMIT_SECONDS = 6.0
"""CPU seconds per test: the default of LiveCodeBench's checker, which measures wall time."""
MEMORY_LIMIT_MIB = 2048
"""Memory limit of a test; LiveCodeBench's checker has none."""
_GROUPS = (("public", "public_test_cases"), ("private", "private_test_cases"))
"""Groups of tests, and the columns that hold them."""
_CODEFORCES = re.compile(r"(\d+)_([A-Z]\d*)")
_ATCODER = re.compile(r"((?:abc|arc|agc)\d+)_\w+")


def read_livecodebench(row: Row) -> Candidate:
    """Read a problem of LiveCodeBench, or a published result on one.

    A result has no tests, but it identifies the problem.
    """
    fn_name = _read_metadata(row).optional("func_name")
    tests_by_group = _read_tests(row, fn_name)
    # A group without tests says nothing of the style.
    names = {tests.fn_name for tests in tests_by_group.values() if tests.tests}
    # A problem has one style: its answers are called, or read stdin.
    if len(names) > 1:
        raise Malformed("bad_tests", "public and private tests are of different styles")
    if row.is_judged and not row.has("private_test_cases"):
        raise Malformed("missing_field", "private_test_cases")
    if row.is_judged and fn_name and names == {None}:
        raise Malformed(
            "bad_tests",
            f"stdin tests, but metadata names the function {fn_name!r}; they must have none",
        )
    platform = row.optional("platform").lower()
    name = row.name("question_id")
    cases = []
    groups: list[str] = []
    for group, decoded in tests_by_group.items():
        cases += decoded.tests
        groups += [group] * len(decoded.tests)
    # The corpus takes no limits from a benchmark's harness.
    seconds = TIME_LIMIT_SECONDS if row.is_judged else None
    mebibytes = MEMORY_LIMIT_MIB if row.is_judged else None
    return row.candidate(
        row.statement("question_content"),
        url=make_url(platform, name),
        platform=platform,
        title=row.optional("question_title") or name,
        date=row.date("contest_date"),
        platform_difficulty=row.optional("difficulty"),
        fn_name=next(iter(names), None),
        starter_code=row.optional("starter_code") or None,
        tests=tuple(cases),
        time_limit_seconds=seconds,
        memory_limit_mib=mebibytes,
        groups=tuple(groups),
        solutions=_read_graded(row),
    )


def _read_metadata(row: Row) -> Row:
    """Return the column `metadata`; published results have a list there, which says nothing."""
    if isinstance(row.values.get("metadata"), list):
        return row.over({})
    return row.inner("metadata")


def _read_tests(row: Row, fn_name: str) -> dict[str, DecodedTests]:
    """Return the tests by group; Malformed, which names their column, if they cannot be read."""
    tests_by_group = {}
    for group, column in _GROUPS:
        value = row.unpacked(column)
        try:
            tests_by_group[group] = decode_tests(value, fn_name=fn_name)
        except Malformed as error:
            raise Malformed(error.reason, f"{column}: {error.detail}") from None
    return tests_by_group


def _read_graded(row: Row) -> tuple[Solution, ...]:
    """Return the programs of a published result that were graded right.

    What they do tells what the problem is.
    """
    graded = row.values.get("graded_list") if row.has("code_list") else None
    if not isinstance(graded, list):
        return ()
    return python_solutions(compress(row.texts("code_list"), graded))


def make_url(platform: str, name: str) -> str:
    """Return the URL of a problem; empty if it is unknown.

    Args:
        name: the problem's name on the platform, such as `1873_A` or `abc301_a`.
    """
    if platform == "codeforces":
        match = _CODEFORCES.fullmatch(name)
        return f"https://codeforces.com/contest/{match[1]}/problem/{match[2]}" if match else ""
    if platform == "atcoder":
        match = _ATCODER.fullmatch(name)
        return f"https://atcoder.jp/contests/{match[1]}/tasks/{name}" if match else ""
    return ""


FORMAT = Format(
    "livecodebench",
    "livecodebench/code_generation_lite",
    read_livecodebench,
    is_benchmark=True,
    tests_in="private_test_cases",
    shape=(
        'a list of {"input": ..., "output": ..., "testtype": "stdin" or "functional"}, '
        "as JSON or packed"
    ),
    marks=(("private_test_cases",), ("public_test_cases", "question_content")),
)
"""LiveCodeBench's problems, and published results on them."""

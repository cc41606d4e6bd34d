"""Formats of contest sets with their checkers: CodeContests, `open-r1/codeforces`, HARDTESTS."""

from collections.abc import Iterator

from microcoder.data.formats.candidates import Candidate, Known, Solution
from microcoder.data.formats.format import LISTED, Columns, Format
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import decode_tests, find_platform, name_language, pair_tests, python_solution
from microcoder.judge.core.types import Checker

_SOURCES = ("", "codechef", "codeforces", "hackerearth", "codejam", "", "atcoder", "aizu")
_LANGUAGES = ("unknown", "python2", "cpp", "python", "java")
_SECTIONS = (("input_format", "Input"), ("output_format", "Output"), ("interaction_format", "Interaction"))
_PRINTING = """import contextlib, io, sys

SOURCE = {source!r}

said = io.StringIO()
# Theirs is called with input, correct output, given output, and prints 1 where it is right.
sys.argv = [sys.argv[0], sys.argv[1], sys.argv[3], sys.argv[2]]
with contextlib.redirect_stdout(said):
    try:
        exec(compile(SOURCE, "checker.py", "exec"), {{"__name__": "__main__"}})
    except SystemExit as end:
        if end.code:
            said = io.StringIO("0")
    except Exception:
        # It expects numbers, say, where an answer may be anything; one that fails on right answers too shows in verify.
        said = io.StringIO("0")
sys.exit(0 if said.getvalue().strip() == "1" else 1)
"""
"""Checker program that runs theirs in the sandbox, and turns what that prints into an exit code."""
_JUDGING = """
import sys

texts = [open(path, encoding="utf-8", errors="replace").read() for path in (sys.argv[1], sys.argv[3], sys.argv[2])]
print(int(bool(output_judging_function(*texts))))
"""
"""Calls their function with input, output and answer: what `_PRINTING` runs."""


def read_code_contests(row: Row) -> Candidate:
    """Read a row of CodeContests: parallel lists, integer codes, known-wrong solutions."""
    found = []
    for group in ("public", "private", "generated"):
        lists = row.mapping(f"{group}_tests")
        found += [(group, test) for test in pair_tests(lists.get("input"), lists.get("output")).tests] if lists else []
    seconds = (row.number("time_limit.seconds") or 0) + (row.number("time_limit.nanos") or 0) / 1e9
    contest, index = row.number("cf_contest_id"), row.optional("cf_index")
    is_translated = row.values.get("is_description_translated") is True
    return row.candidate(
        row.statement("description"),
        notes=[("statement_found", "the source has translated it into English")] if is_translated else (),
        url=f"https://codeforces.com/contest/{contest:.0f}/problem/{index}" if contest and index else "",
        platform=_read_source(row),
        title=row.name("name"),
        tags=row.tags("cf_tags"),
        platform_difficulty=row.name("cf_rating") if row.number("cf_rating") else row.name("difficulty"),
        natural_language="en" if is_translated else "",
        tests=tuple(test for _, test in found),
        groups=tuple(group for group, _ in found),
        time_limit_seconds=seconds or None,
        memory_limit_mib=round((row.number("memory_limit_bytes") or 0) / (1 << 20)) or None,
        solutions=(*_solutions(row, "solutions", "accepted"), *_solutions(row, "incorrect_solutions", "wrong_answer")),
        flags=("file_io",) if row.optional("input_file") or row.optional("output_file") else (),
    )


def _solutions(row: Row, name: str, known: Known) -> Iterator[Solution]:
    lists = row.mapping(name)
    languages, codes = lists.get("language", []), lists.get("solution", [])
    if not isinstance(languages, list) or not isinstance(codes, list) or len(languages) != len(codes):
        raise Malformed("wrong_type", f"{name}: language and solution are not lists of one length")
    for number, code in zip(languages, codes, strict=True):
        if not isinstance(code, str) or not isinstance(number, int) or not 0 <= number < len(_LANGUAGES):
            raise Malformed("wrong_type", f"{name}: a language is {number!r:.20}, or a program is not text")
        yield Solution(code=code, language=_LANGUAGES[number], known=known)


def _read_source(row: Row) -> str:
    """Return the platform of a row, which has its name or its number in CodeContests; empty if unknown."""
    value = row.values.get("source")
    if value is None or isinstance(value, str):
        return (value or "").lower()
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed("wrong_type", f"source is {type(value).__name__}, not a code number")
    return _SOURCES[value] if 0 <= value < len(_SOURCES) else ""


def _read_programs(row: Row) -> tuple[Solution, ...]:
    """Return the programs of a list of objects; those that name no language are in Python."""
    found = []
    for item in row.rows("solutions"):
        language, code = name_language(item.optional("language")) or "python", item.text("code", "solution")
        is_python, name = language == "python", item.optional("source")
        found.append(
            python_solution(code, name=name) if is_python else Solution(code=code, language=language, name=name)
        )
    return tuple(found)


def read_codeforces(row: Row) -> Candidate:
    """Read a problem: the statement is put together from its sections, the examples come before the other tests."""
    examples = decode_tests(row.decoded("examples")).tests
    shown = set(examples)
    official = tuple(test for test in decode_tests(row.decoded("official_tests")).tests if test not in shown)
    # Published in files of their own; a recipe joins them into this column.
    generated = tuple(decode_tests(row.decoded("generated_test_cases")).tests)
    generated = tuple(test for test in generated if test not in shown and test not in set(official))
    is_complete = row.values.get("official_tests_complete")
    code = row.optional("generated_checker")
    flags = {"interactive": row.optional("interaction_format").strip(), "file_io": row.optional("input_mode") == "file"}
    contest, index = row.name("contest_id"), row.name("index")
    notes = [("statement_found", "put together from description, input_format, output_format and note")]
    if is_complete is False:
        notes.append(("tests", "the source says that official tests are missing"))
    return row.candidate(
        _join_sections(row),
        notes=notes,
        url=f"https://codeforces.com/contest/{contest}/problem/{index}" if contest and index else "",
        platform="codeforces",
        title=row.optional("title") or row.name("id"),
        date=row.date("contest_start"),
        tags=row.tags("tags"),
        platform_difficulty=row.name("rating"),
        tests=(*examples, *official, *generated),
        groups=("sample",) * len(examples) + ("official",) * len(official) + ("generated",) * len(generated),
        checker=Checker(type="program", code=_PRINTING.format(source=code)) if code.strip() else Checker(),
        time_limit_seconds=row.number("time_limit"),
        memory_limit_mib=round(row.number("memory_limit") or 0) or None,
        flags=tuple(flag for flag, is_set in flags.items() if is_set),
    )


def _join_sections(row: Row) -> str:
    parts = [row.statement("description")]
    parts += [f"## {title}\n\n{row.text(name)}" for name, title in _SECTIONS if row.optional(name).strip()]
    for number, example in enumerate(row.rows("examples"), 1):
        shown = f"Input:\n```\n{example.text('input')}\n```\nOutput:\n```\n{example.text('output')}\n```"
        parts.append(f"## Example {number}\n\n{shown}")
    if row.optional("note").strip():
        parts.append(f"## Note\n\n{row.text('note')}")
    return "\n\n".join(parts)


def _read_judging(row: Row) -> Checker:
    code = row.optional("test_cases_kit.output_judging_function")
    if not code.strip():
        return Checker()
    if "def output_judging_function" not in code:
        raise Malformed("bad_checker", "output_judging_function is not defined in it")
    return Checker(type="program", code=_PRINTING.format(source=code + _JUDGING))


def _find_site(row: Row) -> str:
    return find_platform(row.optional("url"), row.name("pid").partition("_")[0] if "_" in row.name("pid") else "")


FORMATS = (
    Format(
        "codecontests",
        "deepmind/code_contests",
        read_code_contests,
        tests_in="public_tests, private_tests, generated_tests",
        shape='{"input": [...], "output": [...]}',
        marks=(("private_tests",), ("public_tests",), ("generated_tests",)),
    ),
    Format(
        "openr1_codeforces",
        "open-r1/codeforces",
        read_codeforces,
        tests_in="official_tests",
        shape=LISTED,
        marks=(("official_tests",), ("official_tests", "generated_tests")),
    ),
    Format(
        "hardtests",
        "sigcp/hardtests_problems joined with hardtests_tests",
        Columns(
            statement=("statement", "question", "question_content"),
            tests="test_cases",
            url="url",
            title=("title", "pid"),
            difficulty="difficulty",
            starter_code="starter_code",
            solutions=_read_programs,
            also={"platform": _find_site, "checker": _read_judging},
        ),
        tests_in="test_cases",
        shape=LISTED,
        marks=(("test_cases", "pid"), ("test_cases", "test_cases_kit")),
    ),
)

"""Formats of contest sets that bring official tests, limits and, some of them, checkers.

CodeContests, `open-r1/codeforces` and HARDTESTS.
"""

from collections.abc import Iterator

from microcoder.data.formats.candidates import Candidate, Known, Note, Solution
from microcoder.data.formats.format import LISTED, Columns, Format
from microcoder.data.formats.programs import find_platform, name_language, python_solution
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import decode_tests, pair_tests
from microcoder.judge.core.types import Checker, TestCase

_GROUPS = ("public", "private", "generated")
"""Groups of tests of CodeContests; their columns are named `public_tests` and so on."""
_SOURCES = ("", "codechef", "codeforces", "hackerearth", "codejam", "", "atcoder", "aizu")
"""Platforms by CodeContests' numbers; 0 is unknown, 5 is not used."""
_LANGUAGES = ("unknown", "python2", "cpp", "python", "java")
"""Languages by CodeContests' numbers."""
_MIB = 1 << 20
_SECTIONS = (
    ("input_format", "Input"),
    ("output_format", "Output"),
    ("interaction_format", "Interaction"),
)
"""Columns of `open-r1/codeforces` that make up a statement after its description, and headings."""
# Both texts below are part of programs in the corpus: a changed letter is another checker.
_PRINTING = (
    """import contextlib, io, sys

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
        # It expects numbers, say, where an answer may be anything; """
    """one that fails on right answers too shows in verify.
        said = io.StringIO("0")
sys.exit(0 if said.getvalue().strip() == "1" else 1)
"""
)
"""Template of a checker program: runs a row's own checker, SOURCE.

It exits with 0 if that prints 1, else with 1.
"""
_JUDGING = (
    """
import sys

texts = [open(path, encoding="utf-8", errors="replace").read() """
    """for path in (sys.argv[1], sys.argv[3], sys.argv[2])]
print(int(bool(output_judging_function(*texts))))
"""
)
"""Appended to a row's own `output_judging_function`: prints 1 or 0, as `_PRINTING` expects."""


def read_code_contests(row: Row) -> Candidate:
    """Read a row of CodeContests: parallel lists, integer codes, known-wrong solutions."""
    tests: list[TestCase] = []
    groups: list[str] = []
    for group in _GROUPS:
        lists = row.mapping(f"{group}_tests")
        if lists:
            cases = pair_tests(lists.get("input"), lists.get("output")).tests
            tests += cases
            groups += [group] * len(cases)
    # Limits of zero are none, since no program could keep them.
    seconds = row.number("time_limit.seconds") or 0
    seconds += (row.number("time_limit.nanos") or 0) / 1e9
    contest = row.number("cf_contest_id")
    index = row.optional("cf_index")
    url = ""
    if contest and index:
        # Numbers are read as floats, but an address has no decimals.
        url = f"https://codeforces.com/contest/{contest:.0f}/problem/{index}"
    notes: list[Note] = []
    natural_language = ""
    if row.values.get("is_description_translated") is True:
        natural_language = "en"
        notes.append(("statement_found", "the source has translated it into English"))
    # A rating of 0 is none; every row has a difficulty, a number of its own scale.
    rating_column = "cf_rating" if row.number("cf_rating") else "difficulty"
    return row.candidate(
        row.statement("description"),
        notes=notes,
        url=url,
        platform=_read_source(row),
        title=row.name("name"),
        tags=row.tags("cf_tags"),
        platform_difficulty=row.name(rating_column),
        natural_language=natural_language,
        tests=tuple(tests),
        groups=tuple(groups),
        time_limit_seconds=seconds or None,
        memory_limit_mib=round((row.number("memory_limit_bytes") or 0) / _MIB) or None,
        solutions=(
            *_read_listed_programs(row, "solutions", "accepted"),
            *_read_listed_programs(row, "incorrect_solutions", "wrong_answer"),
        ),
        flags=_find_files(row),
    )


def _find_files(row: Row) -> tuple[str, ...]:
    """Return the flag of a problem of CodeContests whose programs read and write files."""
    if row.optional("input_file") or row.optional("output_file"):
        return ("file_io",)
    return ()


def _read_listed_programs(row: Row, name: str, known: Known) -> Iterator[Solution]:
    """Yield the programs of a field of CodeContests, a list of languages and one of programs."""
    lists = row.mapping(name)
    languages = lists.get("language", [])
    codes = lists.get("solution", [])
    are_lists = isinstance(languages, list) and isinstance(codes, list)
    if not are_lists or len(languages) != len(codes):
        raise Malformed("wrong_type", f"{name}: language and solution are not lists of one length")
    for number, code in zip(languages, codes, strict=True):
        is_language = isinstance(number, int) and 0 <= number < len(_LANGUAGES)
        if not isinstance(code, str) or not is_language:
            raise Malformed(
                "wrong_type", f"{name}: a language is {number!r:.20}, or a program is not text"
            )
        yield Solution(code=code, language=_LANGUAGES[number], known=known)


def _read_source(row: Row) -> str:
    """Return the platform of a row of CodeContests, by its name or number; empty if unknown."""
    value = row.values.get("source")
    if value is None:
        return ""
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed("wrong_type", f"source is {type(value).__name__}, not a code number")
    return _SOURCES[value] if 0 <= value < len(_SOURCES) else ""


def read_codeforces(row: Row) -> Candidate:
    """Read a row of `open-r1/codeforces`.

    The statement is joined from its sections; its examples are the first tests.
    """
    tests_by_group = _read_codeforces_tests(row)
    tests: list[TestCase] = []
    groups: list[str] = []
    for group, cases in tests_by_group.items():
        tests += cases
        groups += [group] * len(cases)
    checker = Checker()
    code = row.optional("generated_checker")
    if code.strip():
        checker = Checker(type="program", code=_PRINTING.format(source=code))
    flags = []
    if row.optional("interaction_format").strip():
        flags.append("interactive")
    if row.optional("input_mode") == "file":
        flags.append("file_io")
    url = ""
    contest = row.name("contest_id")
    index = row.name("index")
    if contest and index:
        url = f"https://codeforces.com/contest/{contest}/problem/{index}"
    notes: list[Note] = [
        ("statement_found", "put together from description, input_format, output_format and note")
    ]
    if row.values.get("official_tests_complete") is False:
        notes.append(("tests", "the source says that official tests are missing"))
    return row.candidate(
        _join_sections(row),
        notes=notes,
        url=url,
        platform="codeforces",
        title=row.optional("title") or row.name("id"),
        date=row.date("contest_start"),
        tags=row.tags("tags"),
        platform_difficulty=row.name("rating"),
        tests=tuple(tests),
        groups=tuple(groups),
        checker=checker,
        time_limit_seconds=row.number("time_limit"),
        memory_limit_mib=round(row.number("memory_limit") or 0) or None,
        flags=tuple(flags),
    )


def _read_codeforces_tests(row: Row) -> dict[str, list[TestCase]]:
    """Return the tests of `open-r1/codeforces` by group; a group has none of those before it."""
    samples = decode_tests(row.decoded("examples")).tests
    seen = set(samples)
    official = []
    for test in decode_tests(row.decoded("official_tests")).tests:
        if test not in seen:
            official.append(test)
    # Tests of one group may be equal: only those of groups before are left out.
    seen.update(official)
    generated = []
    # Published in files of their own; a recipe joins them into this column.
    for test in decode_tests(row.decoded("generated_test_cases")).tests:
        if test not in seen:
            generated.append(test)
    return {"sample": list(samples), "official": official, "generated": generated}


def _join_sections(row: Row) -> str:
    """Return the statement of a row of `open-r1/codeforces`, put together from its columns."""
    parts = [row.statement("description")]
    for name, title in _SECTIONS:
        if row.optional(name).strip():
            parts.append(f"## {title}\n\n{row.text(name)}")
    for number, example in enumerate(row.rows("examples"), 1):
        shown_input = f"Input:\n```\n{example.text('input')}\n```"
        shown_output = f"Output:\n```\n{example.text('output')}\n```"
        parts.append(f"## Example {number}\n\n{shown_input}\n{shown_output}")
    if row.optional("note").strip():
        parts.append(f"## Note\n\n{row.text('note')}")
    return "\n\n".join(parts)


def _read_programs(row: Row) -> tuple[Solution, ...]:
    """Return the programs in HARDTESTS' `solutions`; without a language they count as Python."""
    programs = []
    for item in row.rows("solutions"):
        language = name_language(item.optional("language")) or "python"
        code = item.text("code", "solution")
        name = item.optional("source")
        if language == "python":
            programs.append(python_solution(code, name=name))
        else:
            programs.append(Solution(code=code, language=language, name=name))
    return tuple(programs)


def _read_judging(row: Row) -> Checker:
    """Return the checker that a row of HARDTESTS brings; the default one without any."""
    code = row.optional("test_cases_kit.output_judging_function")
    if not code.strip():
        return Checker()
    if "def output_judging_function" not in code:
        raise Malformed("bad_checker", "output_judging_function is not defined in it")
    program = _PRINTING.format(source=code + _JUDGING)
    return Checker(type="program", code=program)


def _find_site(row: Row) -> str:
    """Return the platform of a row of HARDTESTS: its URL's, else the beginning of its `pid`."""
    name = row.name("pid")
    prefix = name.partition("_")[0] if "_" in name else ""
    return find_platform(row.optional("url"), prefix)


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
"""Formats of contest sets."""

"""CMS tasks in the Italian layout: `task.yaml`, `input/input0.txt` and `output/output0.txt`, subtasks in `gen/GEN`.

The layout: cmscontrib's italy_yaml loader. Statements are often PDF only; those are turned away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from microcoder.formats.candidates import Candidate, Known, Solution
from microcoder.formats.format import Folders, Format
from microcoder.formats.packages import find_statement, language_code, read_amount, read_file_solution, read_settings
from microcoder.formats.row import Row
from microcoder.types import Checker, TestCase

TAKES = (
    "task.yaml",
    "input/*",
    "output/*",
    "gen/GEN",
    "statement/*",
    "testo/*",
    "sol/*",
    "solutions/*",
    "check/*",
    "cor/*",
    "att/*",
)
_STATEMENTS = (
    r"(?:statement|testo)/(?:(?P<language>en|english)|statement|testo|problem)\.(?:md|tex|html?)",
    r"(?:statement|testo)/(?P<language>\w+)\.(?:md|tex|html?)",
)
_INPUT = re.compile(r"input/input(\d+)\.txt")
_CHECKER = re.compile(r"(?:check|cor)/(?:checker|correttore|manager)(?:\.\w+)?")
_GRADER = re.compile(r"sol/(?:grader|stub)\.\w+")
_WORDS: tuple[tuple[str, Known], ...] = (
    ("wrong", "wrong_answer"), ("wa", "wrong_answer"), ("slow", "time_limit"), ("tle", "time_limit"),
    ("lento", "time_limit"), ("quadratic", "partial"), ("partial", "partial"), ("brute", "partial"),
    ("parz", "partial"), ("sub", "partial"), ("bruteforce", "partial"),
)  # fmt: skip
_ACCEPTED = re.compile(
    r"(?:solution|soluzione|sol|official|model|ufficiale)(?:[_-]?(?:full|ok|100|py|cpp))?", re.IGNORECASE
)


def read_cms(row: Row) -> Candidate:
    """Read a task.

    Raises:
        Malformed: `task.yaml` is no YAML, there is no statement, or a test is no UTF-8.
    """
    files = row.files(texts=r"task\.yaml|(input|output)/.*\.txt")
    settings = read_settings("task.yaml", files)
    path = find_statement(files, _STATEMENTS)
    tests, missing = _read_tests(files)
    flags, notes = _find_flags(settings, row)
    if missing:
        notes.append(("tests", f"{len(missing)} left out, without an answer: {missing[0]}"))
    solutions, left_out = _read_solutions(files)
    if left_out:
        notes.append(("solutions", f"{len(left_out)} left out, with no verdict in their name: {left_out[0]}"))
    shown = _public(settings, files)
    groups = tuple("sample" if number in shown else _group(number, files) for number, _ in tests)
    if tests and all(group == "sample" for group in groups):
        flags.append("only_samples")
    order = sorted(range(len(tests)), key=lambda place: groups[place] != "sample")
    return row.candidate(
        files[path],
        notes=notes,
        platform="cms",
        title=_text(settings, "title") or _text(settings, "name") or row.name("name"),
        natural_language=language_code(path.rpartition("/")[2].partition(".")[0]),
        tests=tuple(tests[place][1] for place in order),
        groups=tuple(groups[place] for place in order),
        checker=Checker(),
        time_limit_seconds=read_amount(settings.get("time_limit")),
        memory_limit_mib=round(read_amount(settings.get("memory_limit")) or 0) or None,
        solutions=solutions,
        flags=tuple(flags),
    )


def _read_tests(files: Mapping[str, str]) -> tuple[list[tuple[int, TestCase]], list[str]]:
    tests, missing = [], []
    numbered = sorted((int(found[1]), path) for path in files if (found := _INPUT.fullmatch(path)))
    for number, path in numbered:
        answer = f"output/output{number}.txt"
        if answer in files:
            tests.append((number, TestCase(input=files[path], output=files[answer])))
        else:
            missing.append(path)
    return tests, missing


def _find_flags(settings: Mapping[str, Any], row: Row) -> tuple[list[str], list[tuple[str, str]]]:
    flags, notes = [], []
    names = row.values["files"]
    if settings.get("output_only") or _text(settings, "task_type").lower() in ("communication", "twosteps"):
        flags.append("interactive")
    if any(_GRADER.fullmatch(name) for name in names):
        flags.append("needs_files")
    if _text(settings, "infile") or _text(settings, "outfile"):
        flags.append("file_io")
    if checkers := sorted(name for name in names if _CHECKER.fullmatch(name)):
        # It prints a share of the points, which is no verdict.
        flags.append("needs_checker")
        notes.append(("checker", f"{checkers[0]} gives points in CMS' own interface"))
    return flags, notes


def _public(settings: Mapping[str, Any], files: Mapping[str, str]) -> set[int]:
    """Return the tests that contestants see: those whose input is an attachment, or subtasks without points."""
    inputs = {files[path]: int(found[1]) for path in files if (found := _INPUT.fullmatch(path))}
    shown = {inputs[text] for path, text in files.items() if path.startswith("att/") and text in inputs}
    return shown or {number for number, points in enumerate(_subtasks(files)) if points[1] == 0}


def _subtasks(files: Mapping[str, str]) -> list[tuple[int, float]]:
    """Return subtask and points of each test, as `#ST: 20` in `gen/GEN` says before the lines that make them."""
    found: list[tuple[int, float]] = []
    number, points = 0, -1.0
    for line in files.get("gen/GEN", "").split("\n"):
        head = re.match(r"#\s*ST:\s*(\d+(?:\.\d+)?)", line)
        if head:
            number, points = number + 1, float(head[1])
        elif line.startswith("#COPY:") or (line.strip() and not line.lstrip().startswith("#")):
            found.append((number, points))
    return found


def _group(number: int, files: Mapping[str, str]) -> str:
    subtasks = _subtasks(files)
    return f"subtask{subtasks[number][0]}" if number < len(subtasks) and subtasks[number][0] else "tests"


def _read_solutions(files: Mapping[str, str]) -> tuple[tuple[Solution, ...], list[str]]:
    """Read programs whose names say what they are; CMS itself keeps no verdict."""
    solutions, left_out = [], []
    for path in sorted(files):
        if not path.startswith(("sol/", "solutions/")) or _GRADER.fullmatch(path):
            continue
        stem = path.rpartition("/")[2].partition(".")[0]
        known: Known | None = "accepted" if _ACCEPTED.fullmatch(stem) else None
        if known is None:
            known = next((verdict for word, verdict in _WORDS if word in stem.lower()), None)
        solution = read_file_solution(path, files[path], known) if known else None
        if solution is None:
            left_out.append(path)
        else:
            solutions.append(solution)
    return tuple(solutions), left_out


def _text(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name)
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


FORMATS = (Format("cms", "tasks for CMS, in the Italian layout", read_cms, folders=Folders(("task.yaml",), TAKES)),)

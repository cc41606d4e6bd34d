"""CMS tasks in the Italian layout: `task.yaml`, `input/input0.txt` and `output/output0.txt`, subtasks in `gen/GEN`.

The layout: cmscontrib's italy_yaml loader. Statements are often PDF only; those are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from microcoder.data.formats.candidates import Candidate, Known
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.packages import Package, language_code, read_amount, say
from microcoder.data.formats.row import Row

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
    """Read a task."""
    package = Package.open(row, texts=r"task\.yaml|(input|output)/.*\.txt")
    settings = package.read_settings("task.yaml")
    path = package.find_statement(_STATEMENTS)
    package.read_tests(_list_tests(package.files), missing="without an answer")
    _find_flags(settings, package)
    package.read_solutions(_list_solutions(package), left_out="with no verdict in their name")
    return package.candidate(
        package.files[path],
        platform="cms",
        title=say(settings, "title") or say(settings, "name") or row.name("name"),
        natural_language=language_code(path.rpartition("/")[2].partition(".")[0]),
        time_limit_seconds=read_amount(settings.get("time_limit")),
        memory_limit_mib=round(read_amount(settings.get("memory_limit")) or 0) or None,
    )


def _list_tests(files: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the tests by number, those that contestants see as samples."""
    numbered = sorted((int(found[1]), path) for path in files if (found := _INPUT.fullmatch(path)))
    subtasks = _read_subtasks(files)
    inputs = {files[path]: number for number, path in numbered}
    # Contestants see inputs that are attachments too, or else subtasks without points.
    shown = {inputs[text] for path, text in files.items() if path.startswith("att/") and text in inputs}
    shown = shown or {number for number, (_, points) in enumerate(subtasks) if points == 0}
    for number, path in numbered:
        subtask = subtasks[number][0] if number < len(subtasks) else 0
        group = f"subtask{subtask}" if subtask else "tests"
        yield "sample" if number in shown else group, path, f"output/output{number}.txt"


def _find_flags(settings: Mapping[str, Any], package: Package) -> None:
    if settings.get("output_only") or say(settings, "task_type").lower() in ("communication", "twosteps"):
        package.flag("interactive")
    if any(_GRADER.fullmatch(name) for name in package.paths):
        package.flag("needs_files")
    if say(settings, "infile") or say(settings, "outfile"):
        package.flag("file_io")
    if checkers := [name for name in package.paths if _CHECKER.fullmatch(name)]:
        # It prints a share of the points, which is no verdict.
        package.flag("needs_checker", f"{checkers[0]} gives points in CMS' own interface")


def _read_subtasks(files: Mapping[str, str]) -> list[tuple[int, float]]:
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


def _list_solutions(package: Package) -> Iterator[tuple[str, Known | None]]:
    """Yield programs whose names say what they are; CMS itself keeps no verdict."""
    for path in sorted(package.files):
        if path.startswith(("sol/", "solutions/")) and not _GRADER.fullmatch(path):
            stem = path.rpartition("/")[2].partition(".")[0]
            wrong = next((verdict for word, verdict in _WORDS if word in stem.lower()), None)
            yield path, "accepted" if _ACCEPTED.fullmatch(stem) else wrong


FORMATS = (Format("cms", "tasks for CMS, in the Italian layout", read_cms, folders=Folders(("task.yaml",), TAKES)),)

"""Tasks for CMS in the Italian layout, as a format of your own: `task.yaml`, `input/input0.txt`,
`output/output0.txt`.

corpus:  [[sources]] with format = "cms.py:cms" and path = "tasks"
"""

import re
from collections.abc import Mapping

from microcoder.data.formats.candidates import Candidate, Known
from microcoder.data.formats.format import Folders
from microcoder.data.formats.packages import Package, language_code, read_amount, setting_text
from microcoder.data.formats.row import Row

STATEMENTS = (r"(?:statement|testo)/(?P<language>\w+)\.(?:md|tex|html?)",)
WRONG: dict[str, Known] = {
    "wrong": "wrong_answer",
    "slow": "time_limit",
    "lento": "time_limit",
    "parz": "partial",
}
RIGHT = re.compile(
    r"(?:solution|soluzione|sol|official|model|ufficiale)(?:[_-]?(?:full|ok|100|py|cpp))?"
)

CHECKER = re.compile(r"(check|cor)/(checker|correttore|manager)")


def cms(row: Row) -> Candidate:
    """Read a task; its subtasks are in `gen/GEN`.

    There `#ST: 20` comes before the lines that make the tests of a subtask worth 20 points.
    """
    package = Package.open(row, texts=r"task\.yaml|(input|output)/.*\.txt")
    files = package.files
    settings = package.read_settings("task.yaml")
    path = package.find_statement(STATEMENTS)
    package.read_tests(name_tests(files), missing="without an answer")
    solutions = []
    for name in sorted(files):
        if name.startswith(("sol/", "solutions/")):
            solutions.append((name, read_verdict(name)))
    package.read_solutions(solutions, left_out="with no verdict in their name")
    task_type = setting_text(settings, "task_type")
    if settings.get("output_only") or task_type in ("Communication", "TwoSteps"):
        package.flag("interactive")
    if any(name.startswith(("sol/grader.", "sol/stub.")) for name in package.paths):
        package.flag("needs_files")
    if setting_text(settings, "infile") or setting_text(settings, "outfile"):
        package.flag("file_io")
    # A checker of CMS prints a share of the points, which is no verdict.
    if any(CHECKER.match(name) for name in package.paths):
        package.flag("needs_checker")
    return package.candidate(
        files[path],
        platform="cms",
        title=setting_text(settings, "title") or setting_text(settings, "name") or row.name("name"),
        natural_language=language_code(path.rpartition("/")[2].partition(".")[0]),
        time_limit_seconds=read_amount(settings.get("time_limit")),
        memory_limit_mib=round(read_amount(settings.get("memory_limit")) or 0) or None,
    )


def name_tests(files: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return group, input file and output file of each test."""
    groups = read_groups(files.get("gen/GEN", ""))
    numbers = []
    for name in files:
        if found := re.fullmatch(r"input/input(\d+)\.txt", name):
            numbers.append(int(found[1]))
    named = []
    for number in sorted(numbers):
        group = groups[number] if number < len(groups) else "tests"
        named.append((group, f"input/input{number}.txt", f"output/output{number}.txt"))
    return named


def read_groups(generators: str) -> list[str]:
    """Return the group of each line of `gen/GEN` that makes a test; no points make a sample."""
    groups = []
    points = 0.0
    number = 0
    for line in generators.split("\n"):
        if head := re.match(r"#\s*ST:\s*(\d+(?:\.\d+)?)", line):
            points = float(head[1])
            number += 1
        elif line.startswith("#COPY:") or (line.strip() and not line.lstrip().startswith("#")):
            groups.append(f"subtask{number}" if points else "sample")
    return groups


def read_verdict(name: str) -> Known | None:
    """Return the verdict that a solution's name tells, or None."""
    stem = name.rpartition("/")[2].partition(".")[0].lower()
    if RIGHT.fullmatch(stem):
        return "accepted"
    return next((verdict for word, verdict in WRONG.items() if word in stem), None)


TAKES = (
    "input/*",
    "output/*",
    "gen/GEN",
    "statement/*",
    "testo/*",
    "sol/*",
    "solutions/*",
    "check/*",
    "cor/*",
)
cms.folders = Folders(("task.yaml",), ("task.yaml", *TAKES))  # type: ignore[attr-defined]

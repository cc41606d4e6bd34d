"""Tasks for CMS in the Italian layout, as a format of your own: `task.yaml`, `input/input0.txt`, `output/output0.txt`.

corpus:  [[sources]] with format = "cms.py:cms" and path = "tasks"
"""

import re

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


def cms(row: Row) -> Candidate:
    """Read a task; its subtasks are in `gen/GEN`, where `#ST: 20` comes before the lines that make their tests."""
    package = Package.open(row, texts=r"task\.yaml|(input|output)/.*\.txt")
    files, settings = package.files, package.read_settings("task.yaml")
    path = package.find_statement(STATEMENTS)
    groups, points, number = [], 0.0, 0
    for line in files.get("gen/GEN", "").split("\n"):
        if head := re.match(r"#\s*ST:\s*(\d+(?:\.\d+)?)", line):
            points, number = float(head[1]), number + 1
        elif line.startswith("#COPY:") or (line.strip() and not line.lstrip().startswith("#")):
            groups.append(f"subtask{number}" if points else "sample")
    inputs = sorted(
        int(found[1]) for name in files if (found := re.fullmatch(r"input/input(\d+)\.txt", name))
    )
    named = [(groups[at] if at < len(groups) else "tests", f"input/input{at}.txt", f"output/output{at}.txt")
             for at in inputs]  # fmt: skip
    package.read_tests(named, missing="without an answer")
    stems = {name: name.rpartition("/")[2].partition(".")[0].lower() for name in sorted(files)}
    known = {name: next((verdict for word, verdict in WRONG.items() if word in stem), None)
             for name, stem in stems.items() if name.startswith(("sol/", "solutions/"))}  # fmt: skip
    package.read_solutions(
        (
            (name, "accepted" if RIGHT.fullmatch(stems[name]) else verdict)
            for name, verdict in known.items()
        ),
        left_out="with no verdict in their name",
    )
    kind = setting_text(settings, "task_type")
    for flag, is_there in (
        ("interactive", settings.get("output_only") or kind in ("Communication", "TwoSteps")),
        ("needs_files", any(name.startswith(("sol/grader.", "sol/stub.")) for name in package.paths)),
        ("file_io", setting_text(settings, "infile") or setting_text(settings, "outfile")),
        # It prints a share of the points, which is no verdict.
        ("needs_checker", any(re.match(r"(check|cor)/(checker|correttore|manager)", name) for name in package.paths)),
    ):  # fmt: skip
        if is_there:
            package.flag(flag)
    return package.candidate(
        files[path],
        platform="cms",
        title=setting_text(settings, "title") or setting_text(settings, "name") or row.name("name"),
        natural_language=language_code(path.rpartition("/")[2].partition(".")[0]),
        time_limit_seconds=read_amount(settings.get("time_limit")),
        memory_limit_mib=round(read_amount(settings.get("memory_limit")) or 0) or None,
    )


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

"""Problem folders of DMOJ as a format of your own: `init.yml`, tests in an archive or beside it,
a statement.

corpus:  [[sources]] with format = "dmoj.py:dmoj" and path = "problems"
"""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from microcoder.data.formats.candidates import Candidate, Known
from microcoder.data.formats.format import Folders
from microcoder.data.formats.packages import Package, read_amount
from microcoder.data.formats.row import Malformed, Row
from microcoder.judge.core.types import Checker, TestCase

MAX_UNPACKED_BYTES = 1 << 29
STATEMENTS = (
    r"(?:statements?/)?(?:statement|problem|description)\.(?:md|markdown|tex|html?)",
    r"README\.md",
)
VERDICTS: dict[str, Known] = {
    "ac": "accepted",
    "wa": "wrong_answer",
    "tle": "time_limit",
    "rte": "runtime_error",
}
FLAGS = {
    "interactive": ("interactive", "custom_judge"),
    "needs_files": ("signature_grader",),
    "file_io": ("file_io",),
}
"""What cannot be judged here, and the settings that say so."""
CHECKERS = {
    "standard": Checker(),
    "easy": Checker(type="tokens", case_sensitive=False),
    "identical": Checker(type="exact"),
    "sorted": Checker(type="unordered", by="lines"),
    "unordered": Checker(type="unordered", by="tokens"),
}


def dmoj(row: Row) -> Candidate:
    """Read a folder; formulae stand between tildes in its statement."""
    package = Package.open(row, texts=r"init\.yml")
    settings = package.read_settings("init.yml")
    found = package.files[package.find_statement(STATEMENTS)]
    statement = re.sub(r"(?<![\\~\w])~(?!~)([^~\n]{1,300})~(?!~)", r"$\1$", found)
    if statement != found:
        package.notes.append(("statement_found", "formulae between tildes are put between dollars"))
    package.tests += list_tests(
        settings.get("test_cases"), {**package.files, **read_archive(settings, row)}
    )
    checker = read_checker(settings, package)
    for flag, keys in FLAGS.items():
        if any(settings.get(key) for key in keys):
            package.flag(flag)
    solutions = []
    for path in package.paths:
        if path.startswith(("solutions/", "submissions/")):
            solutions.append((path, VERDICTS.get(path.split("/")[1])))
    package.read_solutions(solutions, left_out="of no verdict")
    heading = re.search(r"^#\s+(.+)$", statement, re.MULTILINE)
    return package.candidate(
        statement,
        platform="dmoj",
        title=str(settings.get("name") or (heading[1] if heading else row.name("name"))),
        checker=checker,
        time_limit_seconds=read_amount(settings.get("time_limit")),
        memory_limit_mib=round((read_amount(settings.get("memory_limit")) or 0) / 1024) or None,
    )


def read_archive(settings: Mapping[str, Any], row: Row) -> dict[str, str]:
    """Return the files of the archive that `init.yml` names."""
    name = settings.get("archive")
    if not name:
        return {}
    try:
        with zipfile.ZipFile(io.BytesIO(row.values["files"][name])) as archive:
            if sum(info.file_size for info in archive.infolist()) > MAX_UNPACKED_BYTES:
                raise Malformed(
                    "unreadable_file", f"{name} unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB"
                )
            files = {}
            for info in archive.infolist():
                files[info.filename] = archive.read(info).decode("utf-8-sig")
            return files
    except (
        KeyError,
        TypeError,
        zipfile.BadZipFile,
        UnicodeDecodeError,
        RuntimeError,
        OSError,
    ) as error:
        raise Malformed("unreadable_file", f"{name}: {error}") from None


def list_tests(cases: object, files: Mapping[str, str]) -> Iterator[tuple[str, TestCase]]:
    """Yield groups and tests; what gives no points is there for contestants to see."""
    if not isinstance(cases, list):
        raise Malformed("bad_tests", "test_cases is no list; patterns of file names are not read")
    for number, case in enumerate(cases, 1):
        for one in case.get("batched") or [case]:
            if one.get("in") not in files or one.get("out") not in files:
                raise Malformed(
                    "bad_tests",
                    f"test case {number} has no in and out in the folder or its archive",
                )
            if case.get("batched"):
                group = f"batch{number}"
            elif case.get("points") == 0:
                group = "sample"
            else:
                group = "tests"
            yield group, TestCase(input=files[one["in"]], output=files[one["out"]])


def read_checker(settings: Mapping[str, Any], package: Package) -> Checker:
    """Return the checker; those of DMOJ's own interface and of single cases are flagged."""
    name: Any = settings.get("checker") or "standard"
    arguments: Mapping[str, Any] = {}
    if isinstance(name, Mapping):
        arguments = name.get("args") or {}
        name = name.get("name")
    if "checker" in str(settings.get("test_cases")):
        return package.flag("needs_checker", "some test cases have a checker of their own")
    name = str(name)
    if name.startswith("floats"):
        digits = read_amount(arguments.get("precision")) or 6
        return Checker(type="float", tolerance=10.0 ** -min(max(digits, 1), 15))
    if name in CHECKERS:
        return CHECKERS[name]
    return package.flag("needs_checker", f"{name} is a program of DMOJ's own interface")


dmoj.folders = Folders(("init.yml",), ("*", "*/*", "*/*/*"))  # type: ignore[attr-defined]

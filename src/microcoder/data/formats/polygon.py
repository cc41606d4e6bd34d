"""Reads packages of Polygon, in which problems of Codeforces are prepared.

Read are `problem.xml`, tests by pattern, testlib checkers, and solutions with their verdicts. A
standard package has its generated tests only if it was built in full; tests without files are left
out.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from xml.etree import ElementTree

from microcoder.data.formats.candidates import Candidate, InputKit, InputRecipe, Known
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.kit_programs import KitReading
from microcoder.data.formats.packages import (
    Package,
    PackagedProgram,
    PackagedTest,
    language_code,
    read_amount,
    standard_checker,
)
from microcoder.data.formats.row import Malformed, Row
from microcoder.judge.core.types import Checker, Interactor

TAKES = ("problem.xml", "statements/**", "tests/**", "files/**", "solutions/**", "check.cpp")
"""Patterns of the files of a package that are read."""
_TEXTS = r"problem\.xml|files/.*\.(cpp|h)|statements/english/.*\.json"
"""Paths that must be UTF-8, else the package is rejected."""
_VERDICTS: dict[str, Known] = {
    "main": "accepted",
    "accepted": "accepted",
    "wrong-answer": "wrong_answer",
    "presentation-error": "wrong_answer",
    "time-limit-exceeded": "time_limit",
    "memory-limit-exceeded": "memory_limit",
    "runtime-error": "runtime_error",
}
"""Verdict by a solution's tag; tags such as `rejected` or `time-limit-exceeded-or-accepted` give
none."""
_SECTIONS = (
    ("legend", ""),
    ("input", "Input"),
    ("output", "Output"),
    ("interaction", "Interaction"),
    ("scoring", "Scoring"),
    ("notes", "Note"),
)
"""Parts of a statement in their order: name and heading; the first has none."""
_PROPERTIES = r"statements/(?P<language>\w+)/problem-properties\.json"
"""Path of the statement in parts, which every package has; the same in TeX and HTML is not read."""
_MAX_XML = 5_000_000
"""Most characters of `problem.xml`."""
_MIB = 1 << 20


def read_polygon(row: Row) -> Candidate:
    """Read a Polygon package into a candidate; Malformed if it cannot be read."""
    package = Package.open(row, texts=_TEXTS)
    root = _read_xml(package.files)
    path = package.find_statement((_PROPERTIES,))
    statement, title = _read_statement(path, package.files)
    if not statement.strip():
        raise Malformed("no_statement", f"{path} says nothing")
    package.read_tests(_list_tests(root), missing="not in the package")
    checker = _read_checker(root, package)
    interactor = _read_interactor(root, package)
    # The default compares nothing of an interactor's.
    has_checker = interactor is not None and root.find("assets/checker") is not None
    if has_checker and checker == Checker():
        checker = Checker(type="tokens")
    package.read_solutions(_list_solutions(root), left_out="with no verdict or of another language")
    judging = root.find("judging")
    if judging is not None and (judging.get("input-file") or judging.get("output-file")):
        package.flag("file_io")
    tags = [tag.get("value") for tag in root.iterfind("tags/tag")]
    return package.candidate(
        statement,
        url=root.get("url") or "",
        platform="codeforces",
        title=_find_name(root) or title or root.get("short-name") or row.name("name"),
        tags=tuple(filter(None, tags)),
        natural_language=language_code(path.split("/")[1]),
        kit=_read_kit(root, package.files),
        checker=checker,
        interactor=interactor,
        time_limit_seconds=_read_seconds(root),
        memory_limit_mib=_read_mebibytes(root),
    )


def _read_xml(files: Mapping[str, str]) -> ElementTree.Element:
    text = files.get("problem.xml")
    if text is None:
        raise Malformed("missing_field", "problem.xml")
    # Entities can make a document without bound; packages have none.
    if len(text) > _MAX_XML or "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise Malformed("bad_encoding", "problem.xml: entities, a document type, or too long")
    try:
        # A text with a declared encoding is refused: it is decoded already.
        return ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]{0,200}\?>", "", text))
    except (ElementTree.ParseError, ValueError) as error:
        raise Malformed("bad_encoding", f"problem.xml: {error}") from None


def _read_statement(path: str, files: Mapping[str, str]) -> tuple[str, str]:
    """Return statement and title from a `problem-properties.json`; Malformed if it is no object."""
    try:
        properties = json.loads(files[path])
    except (ValueError, RecursionError) as error:
        raise Malformed("bad_encoding", f"{path}: {error}") from None
    if not isinstance(properties, dict):
        raise Malformed("wrong_type", f"{path} holds {type(properties).__name__}, not an object")
    sections = []
    for name, heading in _SECTIONS:
        text = properties.get(name)
        if not isinstance(text, str) or not text.strip():
            continue
        if heading:
            # Its parts are in TeX, so their headings are too.
            sections.append(f"\\section*{{{heading}}}")
        sections.append(text.strip())
    return "\n\n".join(sections), str(properties.get("name") or "")


def _find_name(root: ElementTree.Element) -> str:
    """Return the problem's English name, else the first in another language; empty without one."""
    names: dict[str, str] = {}
    for name in root.iterfind("names/name"):
        names[name.get("language") or ""] = name.get("value") or ""
    return names.get("english") or next(iter(names.values()), "")


def _read_seconds(root: ElementTree.Element) -> float | None:
    milliseconds = read_amount(_main_testset(root).findtext("time-limit"))
    return milliseconds / 1000 if milliseconds else None


def _read_mebibytes(root: ElementTree.Element) -> int | None:
    size = read_amount(_main_testset(root).findtext("memory-limit"))
    if not size:
        return None
    # Less than half a MiB is rounded to none, which is no limit.
    return round(size / _MIB) or None


def _list_tests(root: ElementTree.Element) -> Iterator[PackagedTest]:
    """Yield group, path of the input and path of the answer of each test."""
    testset = _main_testset(root)
    input_pattern = testset.findtext("input-path-pattern") or ""
    answer_pattern = testset.findtext("answer-path-pattern") or ""
    for number, test in enumerate(testset.iterfind("tests/test"), 1):
        group = "sample" if test.get("sample") == "true" else _group_of(test)
        yield group, _fill(input_pattern, number), _fill(answer_pattern, number)


def _list_solutions(root: ElementTree.Element) -> Iterator[PackagedProgram]:
    """Yield path and verdict of each solution; None without a known verdict."""
    for solution in root.iterfind("assets/solutions/solution"):
        yield _source_of(solution), _VERDICTS.get(solution.get("tag") or "")


def _group_of(test: ElementTree.Element) -> str:
    return f"tests/{test.get('group')}" if test.get("group") else "tests"


def _main_testset(root: ElementTree.Element) -> ElementTree.Element:
    """Return the set of tests that is named `tests`, else the first; an empty one without any."""
    testsets = root.findall("judging/testset")
    for testset in testsets:
        if testset.get("name") == "tests":
            return testset
    return testsets[0] if testsets else ElementTree.Element("testset")


def _fill(pattern: str, number: int) -> str:
    """Return a pattern such as `tests/%02d` with its number filled in, as printf does."""

    def write(directive: re.Match[str]) -> str:
        return str(number).zfill(int(directive[1] or 0))

    return re.sub(r"%0?(\d?)d", write, pattern, count=1)


def _read_kit(root: ElementTree.Element, files: Mapping[str, str]) -> InputKit:
    """Return validators, generators, and the commands by which the tests are made."""
    reading = KitReading(files)
    for validator in root.iterfind("assets/validators/validator"):
        reading.add_validator(_source_of(validator))
    path_of: dict[str, str] = {}
    for executable in root.iterfind("files/executables/executable"):
        path = _source_of(executable)
        # Commands name a generator without its suffix.
        path_of[PurePosixPath(path).stem] = path
    for test in _main_testset(root).iterfind("tests/test"):
        name, arguments = _split_command(test.get("cmd") or "")
        if "|" in arguments or ">" in arguments:
            reading.left_out.append(
                f"{name}: a command that makes several tests, or passes them on"
            )
        elif name and reading.add_generator(name, path_of.get(name, name)):
            reading.recipes.append(
                InputRecipe(
                    group=_group_of(test),
                    generator=name,
                    arguments=tuple(arguments),
                )
            )
    return reading.kit()


def _split_command(command: str) -> tuple[str, list[str]]:
    """Return the name and the arguments of a command; an empty name if it cannot be split."""
    with suppress(ValueError):
        words = shlex.split(command)
        if words:
            return words[0], words[1:]
    return "", []


def _read_checker(root: ElementTree.Element, package: Package) -> Checker:
    asset = root.find("assets/checker")
    if asset is None:
        return Checker()
    known = standard_checker(asset.get("name") or "")
    # Our equivalent is used even where the package has the source.
    if known is not None:
        package.notes.append(("checker", f"{asset.get('name')}, testlib's own"))
        return known
    path = _source_of(asset)
    if path not in package.files:
        return package.flag("needs_checker", f"{path or 'its source'} is not in the package")
    return package.read_checker(path)


def _read_interactor(root: ElementTree.Element, package: Package) -> Interactor | None:
    """Return the program that talks with answers; None, and a flag, if it cannot be run."""
    asset = root.find("assets/interactor")
    if asset is None:
        return None
    path = _source_of(asset)
    if path not in package.files:
        package.flag("interactive", f"{path or 'its interactor'} is not in the package")
        return None
    program = package.read_program(path)
    if program is None:
        package.flag("interactive")
        return None
    code, language = program
    return Interactor(code=code, language=language, protocol="testlib")


def _source_of(asset: ElementTree.Element) -> str:
    """Return the path of a program's source; empty if it names none."""
    source = asset.find("source")
    if source is None:
        return ""
    return source.get("path") or ""


FORMAT = Format(
    "polygon",
    "Polygon packages, as Codeforces' problems are prepared",
    read_polygon,
    folders=Folders(("problem.xml",), TAKES),
)
"""Packages of Polygon."""

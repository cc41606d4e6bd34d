"""Polygon packages (Codeforces): `problem.xml`, tests by pattern, testlib checkers, solutions with their verdicts.

A standard package has its generated tests only if it was built in full; tests without files are left out.
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
from microcoder.data.formats.input_kits import KitReading
from microcoder.data.formats.packages import Package, language_code, read_amount, standard_checker
from microcoder.data.formats.row import Malformed, Row
from microcoder.judge.core.types import Checker

TAKES = ("problem.xml", "statements/**", "statement-sections/**", "tests/**", "files/**", "solutions/**", "check.cpp")
_KNOWN: dict[str, Known] = {
    "main": "accepted",
    "accepted": "accepted",
    "wrong-answer": "wrong_answer",
    "presentation-error": "wrong_answer",
    "time-limit-exceeded": "time_limit",
    "memory-limit-exceeded": "memory_limit",
    "runtime-error": "runtime_error",
}
"""Verdicts by tag; others, such as `rejected` or `time-limit-exceeded-or-accepted`, give none."""
_SECTIONS = (("legend", ""), ("input", "Input"), ("output", "Output"), ("interaction", "Interaction"),
             ("scoring", "Scoring"), ("notes", "Note"))  # fmt: skip
_STATEMENTS = (
    r"statements/(?P<language>\w+)/problem-properties\.json",
    r"statement-sections/(?P<language>\w+)/legend\.tex",
    r"statements/(?P<language>\w+)/problem\.tex",
    r"statements/\.html/(?P<language>\w+)/problem\.html",
)
_MAX_XML = 5_000_000


def read_polygon(row: Row) -> Candidate:
    """Read a Polygon package into a candidate; Malformed if it cannot be read."""
    package = Package.open(row, texts=r"problem\.xml|files/.*\.(cpp|h)|statement.*/english/.*\.(tex|json)")
    root = _read_xml(package.files)
    path = package.find_statement(_STATEMENTS)
    statement, title = _read_statement(path, package.files)
    if not statement.strip():
        raise Malformed("no_statement", f"{path} says nothing")
    package.read_tests(_list_tests(root), missing="not in the package")
    checker = _read_checker(root, package)
    named = ((_source_of(one), _KNOWN.get(one.get("tag") or "")) for one in root.iterfind("assets/solutions/solution"))
    package.read_solutions(named, left_out="with no verdict or of another language")
    judging = root.find("judging")
    if judging is not None and (judging.get("input-file") or judging.get("output-file")):
        package.flag("file_io")
    milliseconds, size = (read_amount(_main_testset(root).findtext(f"{name}-limit")) for name in ("time", "memory"))
    names = {name.get("language") or "": name.get("value") or "" for name in root.iterfind("names/name")}
    return package.candidate(
        statement,
        url=root.get("url") or "",
        platform="codeforces",
        title=names.get("english")
        or next(iter(names.values()), "")
        or title
        or root.get("short-name")
        or row.name("name"),
        tags=tuple(tag.get("value") or "" for tag in root.iterfind("tags/tag") if tag.get("value")),
        natural_language=language_code(path.split("/")[2 if ".html" in path else 1]),
        kit=_read_kit(root, package.files),
        checker=checker,
        time_limit_seconds=milliseconds / 1000 if milliseconds else None,
        memory_limit_mib=round(size / (1 << 20)) or None if size else None,
    )


def _read_xml(files: Mapping[str, str]) -> ElementTree.Element:
    text = files.get("problem.xml")
    if text is None:
        raise Malformed("missing_field", "problem.xml")
    # Entities can make a document without bound; packages have none.
    if len(text) > _MAX_XML or "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise Malformed("bad_encoding", "problem.xml: entities, a document type, or too long")
    try:
        return ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]{0,200}\?>", "", text))
    except (ElementTree.ParseError, ValueError) as error:
        raise Malformed("bad_encoding", f"problem.xml: {error}") from None


def _read_statement(path: str, files: Mapping[str, str]) -> tuple[str, str]:
    if path.endswith(".json"):
        try:
            parts = json.loads(files[path])
        except (ValueError, RecursionError) as error:
            raise Malformed("bad_encoding", f"{path}: {error}") from None
        if not isinstance(parts, dict):
            raise Malformed("wrong_type", f"{path} holds {type(parts).__name__}, not an object")
        texts = {name: text for name, text in parts.items() if isinstance(text, str)}
        return _join(texts), str(parts.get("name") or "")
    if path.endswith("legend.tex"):
        folder = path.rpartition("/")[0]
        parts = {name: files.get(f"{folder}/{name}.tex", "") for name, _ in _SECTIONS}
        return _join(parts), files.get(f"{folder}/name.tex", "").strip()
    return files[path], ""


def _join(parts: Mapping[str, str]) -> str:
    texts = [(heading, parts.get(name, "").strip()) for name, heading in _SECTIONS]
    return "\n\n".join(f"\\section*{{{heading}}}\n\n{text}" if heading else text for heading, text in texts if text)


def _list_tests(root: ElementTree.Element) -> Iterator[tuple[str, str, str]]:
    named = _main_testset(root)
    given, answer = named.findtext("input-path-pattern") or "", named.findtext("answer-path-pattern") or ""
    for number, test in enumerate(named.iterfind("tests/test"), 1):
        group = "sample" if test.get("sample") == "true" else _group_of(test)
        yield group, _fill(given, number), _fill(answer, number)


def _group_of(test: ElementTree.Element) -> str:
    return f"tests/{test.get('group')}" if test.get("group") else "tests"


def _read_kit(root: ElementTree.Element, files: Mapping[str, str]) -> InputKit:
    """Return the package's validators and generators, and the commands by which its tests are made."""
    reading = KitReading(files)
    for validator in root.iterfind("assets/validators/validator"):
        reading.add_validator(_source_of(validator))
    paths = [_source_of(one) for one in root.iterfind("files/executables/executable")]
    path_of = {PurePosixPath(path).stem: path for path in paths}
    for test in _main_testset(root).iterfind("tests/test"):
        command, name, arguments = test.get("cmd") or "", "", []
        with suppress(ValueError):
            name, *arguments = shlex.split(command) or [""]
        if any(mark in arguments for mark in ("|", ">")):
            reading.left_out.append(f"{name}: a command that makes several tests, or passes them on")
        elif name and reading.add_generator(name, path_of.get(name, name)):
            reading.recipes.append(InputRecipe(group=_group_of(test), generator=name, arguments=tuple(arguments)))
    return reading.kit()


def _main_testset(root: ElementTree.Element) -> ElementTree.Element:
    testsets = root.findall("judging/testset")
    named = (found for found in testsets if found.get("name") == "tests")
    return next(named, testsets[0] if testsets else ElementTree.Element("testset"))


def _fill(pattern: str, number: int) -> str:
    """Return a pattern such as `tests/%02d` with a number put in, as C prints it."""
    return re.sub(r"%0?(\d?)d", lambda found: str(number).zfill(int(found[1] or 0)), pattern, count=1)


def _read_checker(root: ElementTree.Element, package: Package) -> Checker:
    if root.find("assets/interactor") is not None:
        return package.flag("interactive")
    asset = root.find("assets/checker")
    if asset is None:
        return Checker()
    known = standard_checker(asset.get("name") or "")
    if known is not None:
        package.notes.append(("checker", f"{asset.get('name')}, testlib's own"))
        return known
    path = _source_of(asset)
    if path not in package.files:
        return package.flag("needs_checker", f"{path or 'its source'} is not in the package")
    return package.read_checker(path)


def _source_of(asset: ElementTree.Element) -> str:
    source = asset.find("source")
    return (source.get("path") if source is not None else None) or ""


FORMATS = (
    Format(
        "polygon",
        "Polygon packages, as Codeforces' problems are prepared",
        read_polygon,
        folders=Folders(("problem.xml",), TAKES),
    ),
)

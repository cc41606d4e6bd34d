"""Polygon packages, as Codeforces' problems are prepared, as a format of your own: `problem.xml`, tests by pattern.

corpus:  [[sources]] with format = "polygon.py:polygon" and path = "packages"
"""

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from microcoder.data.formats.candidates import Candidate, Known
from microcoder.data.formats.format import Folders
from microcoder.data.formats.packages import Package, language_code, read_amount
from microcoder.data.formats.row import Malformed, Row
from microcoder.judge.core.types import Checker

KNOWN: dict[str, Known] = {
    "main": "accepted", "accepted": "accepted", "wrong-answer": "wrong_answer", "presentation-error": "wrong_answer",
    "time-limit-exceeded": "time_limit", "memory-limit-exceeded": "memory_limit", "runtime-error": "runtime_error",
}  # fmt: skip  # other tags say no verdict
SECTIONS = (("legend", ""), ("input", "Input"), ("output", "Output"), ("interaction", "Interaction"),
            ("scoring", "Scoring"), ("notes", "Note"))  # fmt: skip
STATEMENTS = (r"statements/(?P<language>\w+)/problem-properties\.json", r"statements/(?P<language>\w+)/problem\.tex")
STANDARD = {"wcmp": Checker(type="tokens"), "ncmp": Checker(type="tokens"), "lcmp": Checker(),
            "yesno": Checker(type="tokens", case_sensitive=False), "uncmp": Checker(type="unordered", by="tokens"),
            "rcmp6": Checker(type="float", tolerance=1e-6), "rcmp9": Checker(type="float", tolerance=1e-9)}  # fmt: skip


def polygon(row: Row) -> Candidate:
    """Read a package; one that was not built in full has no tests that could be read."""
    package = Package.open(row, texts=r"problem\.xml|files/.*\.(cpp|h)|statement.*\.(tex|json)")
    root = _read_xml(package.files.get("problem.xml", ""))
    path = package.find_statement(STATEMENTS)
    package.read_tests(_list_tests(root), missing="not in the package")
    checker = _read_checker(root, package)
    named = ((_source_of(one), KNOWN.get(one.get("tag") or "")) for one in root.iterfind("assets/solutions/solution"))
    package.read_solutions(named, left_out="with no verdict or of another language")
    judging = root.find("judging")
    if judging is not None and (judging.get("input-file") or judging.get("output-file")):
        package.flag("file_io")
    limits = (root.findtext(f"judging/testset/{name}") for name in ("time-limit", "memory-limit"))
    milliseconds, size = map(read_amount, limits)
    names = {name.get("language"): name.get("value") for name in root.iterfind("names/name")}
    return package.candidate(
        _read_statement(path, package.files[path]),
        url=root.get("url") or "",
        platform="codeforces",
        title=names.get("english") or next(iter(names.values()), "") or row.name("name"),
        tags=tuple(tag.get("value") or "" for tag in root.iterfind("tags/tag")),
        natural_language=language_code(path.split("/")[1]),
        checker=checker,
        time_limit_seconds=milliseconds / 1000 if milliseconds else None,
        memory_limit_mib=round(size / (1 << 20)) or None if size else None,
    )


def _read_xml(text: str) -> ElementTree.Element:
    # Entities can make a document without bound; packages have none.
    if "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise Malformed("bad_encoding", "problem.xml: entities, or a document type")
    try:
        return ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]{0,200}\?>", "", text))
    except (ElementTree.ParseError, ValueError) as error:
        raise Malformed("bad_encoding", f"problem.xml: {error}") from None


def _read_statement(path: str, text: str) -> str:
    parts = json.loads(text) if path.endswith(".json") else {"legend": text}
    if not isinstance(parts, dict):
        raise Malformed("wrong_type", f"{path} holds {type(parts).__name__}, not an object")
    said = ((heading, str(parts.get(name) or "").strip()) for name, heading in SECTIONS)
    return "\n\n".join(f"\\section*{{{heading}}}\n\n{part}" if heading else part for heading, part in said if part)


def _list_tests(root: ElementTree.Element) -> Iterator[tuple[str, str, str]]:
    testset = next(root.iterfind("judging/testset[@name='tests']"), ElementTree.Element("testset"))
    given, answer = (testset.findtext(f"{name}-path-pattern") or "" for name in ("input", "answer"))
    for number, test in enumerate(testset.iterfind("tests/test"), 1):
        group = "sample" if test.get("sample") == "true" else f"tests/{test.get('group') or ''}".rstrip("/")
        yield group, _fill(given, number), _fill(answer, number)


def _fill(pattern: str, number: int) -> str:
    return re.sub(r"%0?(\d?)d", lambda found: str(number).zfill(int(found[1] or 0)), pattern)


def _read_checker(root: ElementTree.Element, package: Package) -> Checker:
    asset = root.find("assets/checker")
    if root.find("assets/interactor") is not None:
        return package.flag("interactive")
    name, path = ("", "") if asset is None else (asset.get("name") or "", _source_of(asset))
    known = Checker() if asset is None else STANDARD.get(name.removeprefix("std::").removesuffix(".cpp"))
    return known or package.read_checker(path)


def _source_of(asset: ElementTree.Element) -> str:
    return asset.find("source").get("path", "")  # type: ignore[union-attr]


polygon.folders = Folders(("problem.xml",), ("problem.xml", "statements/**", "tests/**", "files/**", "solutions/**"))  # type: ignore[attr-defined]

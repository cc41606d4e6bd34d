"""Polygon packages (Codeforces) as a format of your own: `problem.xml`, tests by pattern, solutions by their verdicts.

corpus:  [[sources]] with format = "polygon.py:polygon" and path = "packages"; tests are there in a full package alone
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from xml.etree.ElementTree import Element, ParseError, fromstring

from microcoder.data.formats.candidates import Candidate, InputRecipe, Known
from microcoder.data.formats.format import Folders
from microcoder.data.formats.input_kits import KitReading
from microcoder.data.formats.packages import Package, language_code, read_amount, standard_checker
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.text import read_json
from microcoder.judge.core.types import Checker

VERDICTS: dict[str, Known] = {
    "main": "accepted", "accepted": "accepted", "wrong-answer": "wrong_answer", "presentation-error": "wrong_answer",
    "time-limit-exceeded": "time_limit", "memory-limit-exceeded": "memory_limit", "runtime-error": "runtime_error",
}  # fmt: skip
TAKES = ("problem.xml", "statements/**", "tests/**", "files/**", "solutions/**")
SECTIONS = ("legend", "input", "output", "interaction", "scoring", "notes")
STATEMENTS = (r"statements/(?P<language>\w+)/problem(-properties\.json|\.tex)",)


def polygon(row: Row) -> Candidate:
    """Read a package's folder."""
    package = Package.open(row, texts=r"problem\.xml|files/.*\.(cpp|h)|statement.*\.(tex|json)")
    root, path = _read_xml(package.files.get("problem.xml", "")), package.find_statement(STATEMENTS)
    testset = next((one for one in root.findall("judging/testset") if one.get("name") == "tests"), Element("testset"))
    package.read_tests(_list_tests(testset), missing="not in the package")
    solutions = [(one.get("tag", ""), one.find("source")) for one in root.iterfind("assets/solutions/solution")]
    named = ((one.get("path", ""), VERDICTS.get(tag)) for tag, one in solutions if one is not None)
    package.read_solutions(named, left_out="with no verdict or of another language")
    if any(one.get("input-file") or one.get("output-file") for one in root.iterfind("judging")):
        package.flag("file_io")
    milliseconds, size = (read_amount(testset.findtext(f"{name}-limit")) or 0 for name in ("time", "memory"))
    names = {one.get("language"): one.get("value") for one in root.iterfind("names/name")}
    reading = KitReading(package.files)
    for one in root.iterfind("assets/validators/validator/source"):
        reading.add_validator(one.get("path", ""))
    sources = (one.get("path", "") for one in root.iterfind("files/executables/executable/source"))
    paths = {PurePosixPath(source).stem: source for source in sources}
    for test in testset.iterfind("tests/test[@cmd]"):
        group, (name, *more) = f"tests/{test.get('group', '')}".rstrip("/"), test.get("cmd", "").split() or [""]
        if {"|", ">"} & {*more}:
            reading.left_out.append(f"{name}: a command that makes several tests, or passes them on")
        elif reading.add_generator(name, paths.get(name, name)):
            reading.recipes.append(InputRecipe(group=group, generator=name, arguments=tuple(more)))
    return package.candidate(
        _read_statement(path, package), url=root.get("url", ""), platform="codeforces",
        title=names.get("english") or next(iter(names.values()), "") or row.name("name"),
        tags=tuple(one.get("value", "") for one in root.iterfind("tags/tag")),
        natural_language=language_code(path.split("/")[1]),
        kit=reading.kit(), checker=_read_checker(root, package), time_limit_seconds=milliseconds / 1000 or None,
        memory_limit_mib=round(size / (1 << 20)) or None,
    )  # fmt: skip


polygon.folders = Folders(("problem.xml",), TAKES)  # type: ignore[attr-defined]


def _read_xml(text: str) -> Element:
    # Entities can make a document without bound; packages have none.
    if len(text) > 5_000_000 or "<!ENTITY" in text or "<!DOCTYPE" in text:
        raise Malformed("bad_encoding", "problem.xml: entities, a document type, or too long")
    try:
        return fromstring(re.sub(r"^\s*<\?xml[^>]{0,200}\?>", "", text))
    except (ParseError, ValueError) as error:
        raise Malformed("bad_encoding", f"problem.xml: {error}") from None


def _read_statement(path: str, package: Package) -> str:
    parts = read_json(package.files[path]) if path.endswith(".json") else {"legend": package.files[path]}
    if not isinstance(parts, dict) or not parts.get("legend"):
        raise Malformed("wrong_type", f"{path} is no object with a legend")
    heads = {name: f"\\section*{{{name.removesuffix('s').capitalize()}}}\n\n" for name in SECTIONS[1:]}
    return "\n\n".join(heads.get(name, "") + parts[name].strip() for name in SECTIONS if parts.get(name))


def _list_tests(testset: Element) -> Iterator[tuple[str, str, str]]:
    patterns = [testset.findtext(f"{name}-path-pattern") or "" for name in ("input", "answer")]
    for number, test in enumerate(testset.iterfind("tests/test"), 1):
        group = "sample" if test.get("sample") == "true" else f"tests/{test.get('group', '')}".rstrip("/")
        given, answer = (re.sub("%[0-9]?[0-9]?d", lambda one, n=number: one[0] % n, text) for text in patterns)
        yield group, given, answer


def _read_checker(root: Element, package: Package) -> Checker:
    asset = root.find("assets/checker")
    if asset is None or root.find("assets/interactor") is not None:
        return Checker() if asset is None else package.flag("interactive")
    name, path = asset.get("name", ""), next(asset.iter("source"), asset).get("path", "")
    if known := standard_checker(name):
        package.notes.append(("checker", f"{name}, testlib's own"))
    return known or (package.read_checker(path) if path in package.files else package.flag("needs_checker", path))

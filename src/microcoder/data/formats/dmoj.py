"""DMOJ problem folders: `init.yml` with its test cases, in a zip archive or beside it; the statement in Markdown.

DMOJ keeps statements on its site; a folder has one where its authors put it there. See https://docs.dmoj.ca.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from microcoder.data.formats.candidates import Candidate, Known
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.packages import Package, read_amount
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.text import shorten
from microcoder.judge.core.types import Checker, TestCase

TAKES = ("*", "*/*", "*/*/*")
MAX_UNPACKED_BYTES = 1 << 29
_NAMES = {
    "input_format": r"(?=.*?\.in|in).*?(?:(?:^|\W)(?P<batch>\d+)[^\d\s]+)?(?P<case>\d+)[^\d\s]*$",
    "output_format": r"(?=.*?\.out|out).*?(?:(?:^|\W)(?P<batch>\d+)[^\d\s]+)?(?P<case>\d+)[^\d\s]*$",
}
"""How tests are called in an archive where `init.yml` does not say (DMOJ's own)."""
_MAX_PATTERN, _MAX_NAME, _MAX_REPEATS = 200, 100, 8
_REPEATED_GROUP = re.compile(r"(?<!\\)\)[*+{]")
_REPEAT = re.compile(r"(?<!\\)[*+{]")
_STATEMENTS = (
    r"(?:statements?/)?(?:statement|problem|description)(?:[._](?P<language>en|english))?\.(?:md|markdown)",
    r"(?:statements?/)?(?:statement|problem|description)(?:[._](?P<language>en|english))?\.(?:tex|html?)",
    r"(?:README|index)\.md",
)
_SOLUTION = re.compile(r"(?:solutions?|sol|submissions?)/(?:(?P<folder>\w+)/)?[^/]+")
_KNOWN: dict[str, Known] = {
    "ac": "accepted", "accepted": "accepted", "wa": "wrong_answer", "wrong_answer": "wrong_answer",
    "tle": "time_limit", "mle": "memory_limit", "rte": "runtime_error",
}  # fmt: skip
_CHECKERS = {
    "standard": Checker(),
    "easy": Checker(type="tokens", case_sensitive=False),
    "identical": Checker(type="exact"),
    "linecount": Checker(),
    "linematches": Checker(),
    "rstripped": Checker(),
    "unordered": Checker(type="unordered", by="tokens"),
    "sorted": Checker(type="unordered", by="lines"),
}
_FORMULA = re.compile(r"(?<![\\~\w])~(?!~)([^~\n]{1,300})~(?!~)")


def read_dmoj(row: Row) -> Candidate:
    """Read a folder."""
    package = Package.open(row, texts=r"init\.yml")
    settings = package.read_settings("init.yml")
    found = package.files[package.find_statement(_STATEMENTS)]
    # Formulae stand between tildes there.
    statement = _FORMULA.sub(lambda found: f"${found[1]}$", found)
    archive = _read_archive(settings, row)
    package.tests += _list_tests(settings, archive, {**row.values["files"], **archive})
    checker = _read_checker(settings, package)
    if statement != found:
        package.notes.append(("statement_found", "formulae between tildes are put between dollars"))
    if any(settings.get(name) for name in ("interactive", "custom_judge")):
        package.flag("interactive")
    if settings.get("signature_grader"):
        package.flag("needs_files")
    if settings.get("file_io"):
        package.flag("file_io")
    package.read_solutions(_list_solutions(package), left_out="in no known language, or with no verdict")
    heading = re.search(r"^#\s+(.+)$", statement, re.MULTILINE)
    return package.candidate(
        statement,
        platform="dmoj",
        title=str(settings.get("name") or (heading[1] if heading else "") or row.name("name")),
        checker=checker,
        time_limit_seconds=read_amount(settings.get("time_limit")),
        memory_limit_mib=round((read_amount(settings.get("memory_limit")) or 0) / 1024) or None,
    )


def _read_archive(settings: Mapping[str, Any], row: Row) -> Mapping[str, bytes | str]:
    """Return the files of the archive; none if there is no archive."""
    named = settings.get("archive")
    files: dict[str, bytes | str] = {}
    if not named:
        return files
    content = row.values["files"].get(str(named))
    if not isinstance(content, bytes):
        raise Malformed("missing_field", f"the archive {named}")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MAX_UNPACKED_BYTES:
                raise Malformed("unreadable_file", f"{named} unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB")
            for info in archive.infolist():
                if not info.is_dir():
                    files[info.filename] = archive.read(info)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError) as error:
        raise Malformed("unreadable_file", f"{named}: {error}") from None
    return files


def _list_tests(
    settings: Mapping[str, Any], archive: Mapping[str, bytes | str], files: Mapping[str, bytes | str]
) -> Iterator[tuple[str, TestCase]]:
    """Yield groups and tests; what gives no points, and pretests, are their own groups."""
    for name, group in (("pretest_test_cases", "pretest"), ("test_cases", "")):
        cases = settings.get(name)
        if isinstance(cases, Mapping) or (cases is None and name == "test_cases" and archive):
            for batch, given, answer in _match_names(name, cases or {}, archive):
                test = TestCase(input=_text(given, files), output=_text(answer, files))
                yield group or (f"batch{batch}" if batch else "tests"), test
            continue
        cases = cases or []
        if not isinstance(cases, list):
            raise Malformed("bad_tests", f"{name} is {type(cases).__name__}, not a list")
        for number, case in enumerate(cases, 1):
            if not isinstance(case, Mapping):
                raise Malformed("bad_tests", f"{name} {number} is {type(case).__name__}, not an object")
            batch = case.get("batched")
            # What gives no points is there for contestants to see.
            is_shown = case.get("points") == 0 and not batch
            for one in batch if isinstance(batch, list) else [case]:
                if not isinstance(one, Mapping) or "in" not in one or "out" not in one:
                    raise Malformed("bad_tests", f"{name} {number} names no in and out")
                test = TestCase(input=_text(one["in"], files), output=_text(one["out"], files))
                yield "sample" if is_shown else group or f"batch{number}" if batch else group or "tests", test


def _match_names(
    name: str, formats: Mapping[str, Any], archive: Mapping[str, bytes | str]
) -> list[tuple[str, str, str]]:
    """Return batch, input and answer of each test of an archive whose files are named by patterns, in DMOJ's order."""
    if not archive:
        raise Malformed("bad_tests", f"{name} is a pattern of file names, which needs an archive")
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    patterns = [(side, _compile(f"{name}.{side}", formats.get(side) or _NAMES[side])) for side in _NAMES]
    for path in sorted(archive):
        # An answer may match a loose pattern of inputs as well, so its own is tried first.
        for side, pattern in reversed(patterns):
            if len(path) <= _MAX_NAME and (match := pattern.match(path)):
                numbers = match.groupdict()
                test = found[numbers.get("batch") or "", numbers.get("case") or ""]
                if side in test:
                    raise Malformed("bad_tests", f"{test[side]} and {path} are the same test by {name}.{side}")
                test[side] = path
                break
    for test in found.values():
        if len(test) < len(_NAMES):
            raise Malformed("bad_tests", f"{next(iter(test.values()))} matches, but no file is its input or answer")
    if not found:
        raise Malformed("bad_tests", f"no file of the archive is named as {name} says")
    return [
        (batch, found[batch, case]["input_format"], found[batch, case]["output_format"])
        for batch, case in sorted(found, key=lambda key: tuple(map(_natural, key)))
    ]


def _natural(number: str) -> tuple[int, int, str]:
    """Order `2` before `10`, and numbers before words."""
    return (0, int(number), "") if number.isdecimal() else (1, 0, number)


def _compile(where: str, pattern: object) -> re.Pattern[str]:
    """Compile a pattern that comes with a package: one that repeats groups can take for ever, and is refused."""
    text = str(pattern)
    is_long = len(text) > _MAX_PATTERN or _REPEATED_GROUP.search(text) or len(_REPEAT.findall(text)) > _MAX_REPEATS
    if is_long and text not in _NAMES.values():
        raise Malformed("bad_tests", f"{where} is too long or repeats too much to be tried: {shorten(text, 100)}")
    try:
        return re.compile(text, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise Malformed("bad_tests", f"{where}: {error}") from None


def _text(name: object, files: Mapping[str, bytes | str]) -> str:
    content = files.get(str(name))
    if content is None:
        raise Malformed("bad_tests", f"{name} is not in the folder or its archive")
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Malformed("not_utf8", f"{name}: {error}") from None


def _read_checker(settings: Mapping[str, Any], package: Package) -> Checker:
    found = settings.get("checker") or "standard"
    arguments: Mapping[str, Any] = {}
    if isinstance(found, Mapping):
        given = found.get("args")
        arguments, found = (given if isinstance(given, Mapping) else {}), found.get("name") or "standard"
    name = str(found)
    if _has_checkers_of_cases(settings):
        return package.flag("needs_checker", "some test cases have a checker of their own")
    if name in _CHECKERS:
        return _CHECKERS[name]
    if name in ("floats", "floatsabs", "floatsrel"):
        tolerance = 10.0 ** -min(max(read_amount(arguments.get("precision")) or 6, 1), 15)
        return Checker(type="float", tolerance=tolerance)
    source = arguments.get("files")
    path = str(source[0] if isinstance(source, list) and source else source or "")
    if name == "bridged" and arguments.get("type", "default") in ("testlib", "default") and path in package.files:
        # DMOJ's own order is input, output, answer for testlib and the same three files for its default.
        return package.read_checker(path)
    return package.flag("needs_checker", f"{name} is a program of DMOJ's own interface")


def _has_checkers_of_cases(settings: Mapping[str, Any]) -> bool:
    cases = settings.get("test_cases")
    listed = [case for case in cases if isinstance(case, Mapping)] if isinstance(cases, list) else []
    batched = [case["batched"] for case in listed if isinstance(case.get("batched"), list)]
    inner = [one for batch in batched for one in batch if isinstance(one, Mapping)]
    return any(one.get("checker") for one in (*listed, *inner))


def _list_solutions(package: Package) -> Iterator[tuple[str, Known | None]]:
    for path in package.paths:
        if found := _SOLUTION.fullmatch(path):
            yield path, _KNOWN.get((found["folder"] or "ac").lower())


FORMATS = (Format("dmoj", "DMOJ problem folders", read_dmoj, folders=Folders(("init.yml",), TAKES)),)

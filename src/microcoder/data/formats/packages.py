"""Problem packages: `Package` collects files, tests and programs; `read_kattis` and `read_polygon` read two formats.

Kattis and ICPC: https://www.kattis.com/problem-package-format/. Statements (TeX, Markdown, HTML), tests by group,
output validators, submissions. The time limit is `.timelimit` or `limits.time_limit`; where a package only says how
many times its slowest accepted submission may take, it is left to the verify stage.

Polygon (Codeforces): `problem.xml`, tests by pattern, testlib checkers, solutions with their verdicts. A standard
package has its generated tests only if it was built in full; tests without files are left out.
"""

from __future__ import annotations

import itertools
import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree

from microcoder.data.formats import input_kits
from microcoder.data.formats.candidates import (
    Candidate,
    InputKit,
    InputRecipe,
    Known,
    Note,
    Solution,
)
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.input_kits import KitReading, inline_includes
from microcoder.data.formats.row import Malformed, Row, read_licence, read_yaml, shorten
from microcoder.data.formats.tests import language_of, python_solution
from microcoder.judge.core.types import Checker, TestCase

_INCLUDES_TESTLIB = re.compile(r'#[ \t]*include[ \t]*["<]testlib\.h[">]')
_PLAIN_LINE = re.compile(r"^([a-z_]+):[ \t]+([^\n'\"\[{|>#&*!%@`][^\n]*: [^\n]*)$", re.MULTILINE)
_MOST = 1e12
"""A larger limit or factor is taken for a mistake and ignored."""
_ORDER = ("checker", "tests", "time_limit_seconds", "statement_found", "solutions")
"""Order of notes in the lineage, by field."""
_STANDARD: dict[str, Checker] = {
    **dict.fromkeys(
        ("wcmp", "ncmp", "icmp", "hcmp", "caseicmp", "casencmp", "casewcmp"), Checker(type="tokens")
    ),
    **dict.fromkeys(("yesno", "nyesno"), Checker(type="tokens", case_sensitive=False)),
    "uncmp": Checker(type="unordered", by="tokens"),
    "lcmp": Checker(),
    "fcmp": Checker(type="exact"),
    "rcmp": Checker(type="float", tolerance=1.5e-6),
    "rcmp4": Checker(type="float", tolerance=1e-4),
    "rcmp6": Checker(type="float", tolerance=1e-6),
    "rcmp9": Checker(type="float", tolerance=1e-9),
}
"""Our equivalents of testlib's own checkers, by name."""


@dataclass(slots=True)
class Package:
    """A folder that holds one problem, with the tests, solutions and notes read from it so far."""

    row: Row
    files: Mapping[str, str]
    """Contents of the files that are text, by path."""
    tests: list[tuple[str, TestCase]] = field(default_factory=list)
    """Group and test; the groups of samples come first."""
    solutions: list[Solution] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, row: Row, *, texts: str) -> Package:
        """Return the package of a row; `texts` is a pattern of the paths that must be text."""
        return cls(row, row.files(texts=texts))

    @property
    def paths(self) -> list[str]:
        """The paths of all files, text or not, sorted."""
        return sorted(self.row.values["files"])

    def flag(self, name: str, why: str = "") -> Checker:
        """Add a flag and, with `why`, a note on the checker; return the default checker, to use in its place."""
        self.flags.append(name)
        if why:
            self.notes.append(("checker", why))
        return Checker()

    def leave_out(self, what: str, paths: Sequence[str], why: str) -> None:
        """Add a note on the field `what`: how many files were left out and why, and the first; none without paths."""
        if paths:
            self.notes.append((what, f"{len(paths)} left out, {why}: {paths[0]}"))

    def read_tests(self, named: Iterable[tuple[str, str, str]], *, missing: str) -> None:
        """Add tests (group, paths of input and answer); Malformed if not text; `missing` notes those that lack one."""
        there, left_out = self.row.values["files"], []
        for group, given, answer in named:
            if given not in there or answer not in there:
                left_out.append(given)
            elif given not in self.files or answer not in self.files:
                raise Malformed("not_utf8", f"{given} or its answer")
            else:
                self.tests.append(
                    (group, TestCase(input=self.files[given], output=self.files[answer]))
                )
        self.tests.sort(key=lambda one: not one[0].startswith("sample"))
        self.leave_out("tests", left_out, missing)

    def read_solutions(self, named: Iterable[tuple[str, Known | None]], *, left_out: str) -> None:
        """Add programs (path, verdict); `left_out` notes those without verdict, in an unknown language, or not text."""
        rest = []
        for path, known in named:
            language = language_of(path)
            if known is None or not language or path not in self.files:
                rest.append(path or "a solution without a path")
            elif language == "python":
                self.solutions.append(python_solution(self.files[path], name=path, known=known))
            else:
                self.solutions.append(
                    Solution(code=self.files[path], language=language, name=path, known=known)
                )
        self.leave_out("solutions", rest, left_out)

    def read_settings(self, name: str) -> Mapping[str, Any]:
        """Return the settings of the package's YAML file `name`; Malformed if it is missing or invalid."""
        if name not in self.files:
            raise Malformed("missing_field", name)
        # `name: Elements: Part 1`, a plain text with a colon in it, is what authors write and YAML refuses.
        text = _PLAIN_LINE.sub(
            lambda found: f"{found[1]}: {json.dumps(found[2].strip())}", self.files[name]
        )
        try:
            settings = read_yaml(text)
        except ValueError as error:
            raise Malformed("bad_encoding", f"{name}: {error}") from None
        if settings is None:
            return {}
        if not isinstance(settings, Mapping):
            raise Malformed("wrong_type", f"{name} holds {type(settings).__name__}, not an object")
        return settings

    def find_statement(self, patterns: Sequence[str]) -> str:
        """Return the path of the first statement that is not blank, English before others; Malformed without one.

        Args:
            patterns: of paths, the best first; group `language` names the language where the path does.
        """
        for pattern in patterns:
            found = [
                (
                    (match.groupdict().get("language") or "").lower() not in ("", "en", "english"),
                    path,
                )
                for path in self.files
                if (match := re.fullmatch(pattern, path, re.IGNORECASE))
                and self.files[path].strip()
            ]
            if found:
                return min(found)[1]
        raise Malformed(
            "no_statement", "no statement as TeX, Markdown or HTML in UTF-8; a PDF is not read"
        )

    def read_checker(self, path: str) -> Checker:
        """Return the checker of a source file that is called with the files input, output and answer."""
        known = standard_checker(path)
        if known is not None and _INCLUDES_TESTLIB.search(self.files[path]):
            self.notes.append(("checker", f"{path} is testlib's own"))
            return known
        code, missing = inline_includes(path, self.files)
        language = language_of(path)
        if language not in ("cpp", "python"):
            return self.flag("needs_checker", f"{path} is in another language")
        if _INCLUDES_TESTLIB.search(code):
            missing = [*missing, "testlib.h"]
        self.note_checker(path, missing)
        return Checker(type="program", code=code or " ", language=language, protocol="testlib")

    def note_checker(self, path: str, missing: Sequence[str]) -> None:
        """Note that the checker was read from `path`; if files that it includes are missing, add `needs_checker`."""
        if missing:
            self.flag("needs_checker", f"{path} needs {', '.join(dict.fromkeys(missing))}")
        else:
            self.notes.append(("checker", f"{path}, with the files that it includes"))

    def candidate(self, statement: str, **fields: Any) -> Candidate:
        """Return the candidate with the tests, solutions, notes and flags read so far, and these further fields."""
        return self.row.candidate(
            statement,
            tuple(test for _, test in self.tests),
            notes=sorted(self.notes, key=lambda note: _ORDER.index(note[0])),
            groups=tuple(group for group, _ in self.tests),
            solutions=tuple(self.solutions),
            flags=tuple(dict.fromkeys(self.flags)),
            **fields,
        )


def say(settings: Mapping[str, Any], name: str) -> str:
    """Return a setting as text: a list joined by spaces, a plain value as it is, empty for anything else."""
    value = settings.get(name)
    if isinstance(value, list):
        return " ".join(
            shorten(item, 1000) for item in value if isinstance(item, str | int | float)
        )
    return shorten(value, 1000).strip() if type(value) in (str, int, float) else ""


def read_amount(value: object) -> float | None:
    """Return a positive number, also one written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 < number < _MOST else None


def standard_checker(name: str) -> Checker | None:
    """Return our equivalent of one of testlib's checkers, by its name such as `std::wcmp.cpp`; None for another."""
    return _STANDARD.get(name.removeprefix("std::").rpartition("/")[2].removesuffix(".cpp").lower())


def language_code(name: str) -> str:
    """Return the ISO 639-1 code of a language's name or code; empty if it is not known."""
    lowered = name.lower()
    return lowered if len(lowered) == 2 else _LANGUAGES.get(lowered, "")


_LANGUAGES = {
    "english": "en", "russian": "ru", "chinese": "zh", "italian": "it", "spanish": "es", "portuguese": "pt",
    "german": "de", "french": "fr", "ukrainian": "uk", "polish": "pl", "italiano": "it", "vietnamese": "vi",
    "korean": "ko", "japanese": "ja", "armenian": "hy", "persian": "fa", "turkish": "tr",
    "arabic": "ar", "estonian": "et", "finnish": "fi", "dutch": "nl",
}  # fmt: skip


TAKES = (
    "problem.yaml", ".timelimit", "domjudge-problem.ini", "problem_statement/*", "statement/*", "data/**",
    "output_validators/**", "output_validator/**", "submissions/**", "include/**", *input_kits.TAKES,
)  # fmt: skip
"""Patterns of the files of a Kattis package that are read; generators may lie below `data`."""

_KNOWN: dict[str, Known] = {
    "accepted": "accepted",
    "wrong_answer": "wrong_answer",
    "time_limit_exceeded": "time_limit",
    "memory_limit_exceeded": "memory_limit",
    "run_time_error": "runtime_error",
    "runtime_error": "runtime_error",
    "compile_error": "compile_error",
    "partially_accepted": "partial",
    # Of the format of 2023-07: wrong on some test in some way; right, and too slow.
    "rejected": "wrong_answer",
    "brute_force": "time_limit",
    # DOMjudge's own names, as a submission says them itself.
    "correct": "accepted",
    "no_output": "wrong_answer",
    "output_limit": "wrong_answer",
    "timelimit": "time_limit",
    "memory_limit": "memory_limit",
    "run_error": "runtime_error",
    "compiler_error": "compile_error",
}
"""Verdict by the name of a submission's folder, or by a name in its comment for DOMjudge."""
_EXPECTED = re.compile(
    r"@EXPECTED_RESULTS@:?[ \t]*([a-z_-]+(?:[ \t]*,[ \t]*[a-z_-]+)*)", re.IGNORECASE
)
_DOMJUDGE_LIMIT = re.compile(r"^timelimit[ \t]*=[ \t]*['\"]?([\d.]+)", re.MULTILINE)
_STATEMENT = r"(?:problem_statement|statement)/problem(?:\.(?P<language>\w{2,3}(?:-\w+)?))?\.(?:tex|md|html?)"
_NAME = re.compile(
    r"\\problemname\{([^}]{0,300})\}|^#\s+(.+)$|<h1[^>]{0,200}>([^<]{1,300})</h1>", re.MULTILINE
)
_TEXTS = (
    r"problem\.yaml|\.timelimit|(problem_)?statement/problem\.(en[^/.]*\.)?(tex|md|html?)"
    r"|output_validators?/.*\.(py3?|cc|cpp|cxx|h|hpp)"
)
"""Paths that must be UTF-8, else the package is rejected, as for tests; submissions that are not are left out."""
_OF_TESTS = [
    f"data/{group}{name}.yaml" for name in ("testdata", "test_group") for group in ("", "secret/")
]
_REAL = re.compile(
    r"\b(?:error|precision|tolerance|decimals?|accuracy|real numbers?|floating)\b|10\^\{?-",
    re.IGNORECASE,
)
_REAL_TOKEN = re.compile(r"(?:^|\s)-?\d*(?:\.\d+|\d[eE]-?\d+)(?=\s|$)")


def read_kattis(row: Row) -> Candidate:
    """Read a package in the Kattis format into a candidate; Malformed if it cannot be read."""
    package = Package.open(row, texts=_TEXTS)
    files, settings = package.files, package.read_settings("problem.yaml")
    path = package.find_statement((_STATEMENT,))
    named, statement = re.fullmatch(_STATEMENT, path, re.IGNORECASE), files[path]
    language = (named and named["language"]) or ""
    inputs = [name for name in package.paths if name.startswith("data/") and name.endswith(".in")]
    named_tests = [
        (posixpath.dirname(one).removeprefix("data").strip("/"), one, f"{one[:-3]}.ans")
        for one in inputs
    ]
    package.read_tests(named_tests, missing="without an answer")
    checker = _read_checker(settings, package)
    if checker.type == "float" and not (
        _REAL.search(statement) or any(_REAL_TOKEN.search(test.output) for _, test in package.tests)
    ):
        # Archives set one tolerance for all of their problems; of integers it would let wrong ones pass.
        checker = Checker(type="tokens", case_sensitive=checker.case_sensitive)
        package.notes.append(
            ("checker", "a tolerance, but neither statement nor answers have real numbers")
        )
    package.read_solutions(
        _list_submissions(package),
        left_out="of several files, another language, no known verdict, or no text",
    )
    if "score" in say(settings, "validation").split():
        package.flag("gives_points")
    if any(name.startswith("include/") for name in files):
        package.flag("needs_files")
    found, name = _NAME.search(statement), settings.get("name")
    if isinstance(name, Mapping):
        name = name.get(language) or next(iter(name.values()), "")
    limits = settings.get("limits")
    limits = limits if isinstance(limits, Mapping) else {}
    of_domjudge = _DOMJUDGE_LIMIT.search(files.get("domjudge-problem.ini", ""))
    said = (files.get(".timelimit"), limits.get("time_limit"), of_domjudge and of_domjudge[1])
    seconds = next(filter(None, map(read_amount, said)), None)
    return package.candidate(
        statement,
        url=say(settings, "source_url"),
        platform="kattis",
        title=(name.strip() if isinstance(name, str) else "")
        or (found[1] or found[2] or found[3] if found else "")
        or row.name("name"),
        licence=read_licence(settings.get("license")) or row.licence,
        tags=tuple(say(settings, "keywords").split()),
        natural_language=language,
        kit=input_kits.read_kit(files),
        checker=checker,
        time_limit_seconds=seconds,
        time_multiplier=_read_multiplier(limits) if seconds is None else None,
        memory_limit_mib=round(read_amount(limits.get("memory")) or 2048),
    )


def _list_submissions(package: Package) -> Iterator[tuple[str, Known | None]]:
    """Yield path and verdict of each submission's file; None for one without known verdict, or of several files."""
    for name in package.paths:
        if name.startswith("submissions/"):
            folder, _, rest = name.removeprefix("submissions/").partition("/")
            yield (
                name,
                _find_verdict(package.files.get(name, ""), folder)
                if rest and "/" not in rest
                else None,
            )


def _find_verdict(code: str, folder: str) -> Known | None:
    """Return the verdict in a program's comment, else its folder's; None if unknown; several: None or wrong answer."""
    said = _EXPECTED.search(code)
    names = said[1].lower().replace("-", "_").split(",") if said else [folder]
    found = {_KNOWN.get(name.strip()) for name in names}
    if len(found) > 1:
        return None if "accepted" in found else "wrong_answer"
    return found.pop()


def _read_checker(settings: Mapping[str, Any], package: Package) -> Checker:
    files = package.files
    validation, kind = say(settings, "validation"), say(settings, "type")
    of_tests = [package.read_settings(name) for name in _OF_TESTS if name in files]
    names = ("validator_flags", "output_validator_flags", "output_validator_args")
    flags = next(
        filter(None, (say(one, name) for one in (settings, *of_tests) for name in names)), ""
    ).split()
    if "interactive" in validation or "interactive" in kind or "multi-pass" in kind:
        return package.flag("interactive")
    if "custom" not in validation and not any(
        name.startswith("output_validator/") for name in files
    ):
        checker = _read_flags(flags)
        if "space_change_sensitive" in flags and checker.type != "exact":
            package.notes.append(("checker", "spaces are not compared, though its flags say so"))
        return checker
    folders = ("output_validators/", "output_validator/")
    sources = [
        name
        for name in sorted(files)
        if name.startswith(folders) and language_of(name) in ("python", "cpp")
    ]
    if len(sources) != 1:
        return package.flag("needs_checker", f"{len(sources)} sources of output validators")
    code, missing = inline_includes(sources[0], files)
    language = language_of(sources[0])
    package.note_checker(sources[0], missing)
    return Checker(
        type="program",
        code=code or " ",
        language=language,
        protocol="kattis",
        arguments=tuple(flags),
    )


def _read_flags(flags: list[str]) -> Checker:
    """Return the checker for flags of Kattis' default validator, which compares tokens, ignoring case.

    Spaces are compared only by an `exact` checker, so not together with a tolerance or if case is ignored.
    """
    is_case_sensitive = "case_sensitive" in flags
    values = dict(itertools.pairwise(flags))
    both = values.get("float_tolerance")
    absolute = _tolerance(both or values.get("float_absolute_tolerance"))
    relative = _tolerance(both or values.get("float_relative_tolerance"))
    if is_case_sensitive and "space_change_sensitive" in flags and not (absolute or relative):
        return Checker(type="exact")
    if absolute or relative:
        return Checker(
            type="float", case_sensitive=is_case_sensitive, absolute=absolute, relative=relative
        )
    return Checker(type="tokens", case_sensitive=is_case_sensitive)


def _tolerance(text: str | None) -> float | None:
    if text is None:
        return None
    with suppress(ValueError):
        if 0 <= float(text) < 1:
            return float(text)
    raise Malformed("bad_checker", f"validator_flags: {text} is not a tolerance")


def _read_multiplier(limits: Mapping[str, Any]) -> float | None:
    """Return the factor from the slowest accepted submission's time to the limit, in the legacy or 2023-07 format."""
    newer = limits.get("time_multipliers")
    return read_amount(
        newer.get("ac_to_time_limit")
        if isinstance(newer, Mapping)
        else limits.get("time_multiplier")
    )


_XML_TAKES = ("problem.xml", "statements/**", "tests/**", "files/**", "solutions/**", "check.cpp")
_OF_TAG: dict[str, Known] = {
    "main": "accepted",
    "accepted": "accepted",
    "wrong-answer": "wrong_answer",
    "presentation-error": "wrong_answer",
    "time-limit-exceeded": "time_limit",
    "memory-limit-exceeded": "memory_limit",
    "runtime-error": "runtime_error",
}
"""Verdict by a solution's tag; tags such as `rejected` or `time-limit-exceeded-or-accepted` give none."""
_SECTIONS = (("legend", ""), ("input", "Input"), ("output", "Output"), ("interaction", "Interaction"),
             ("scoring", "Scoring"), ("notes", "Note"))  # fmt: skip
_PROPERTIES = r"statements/(?P<language>\w+)/problem-properties\.json"
"""Path of the statement in parts, which every package has; the same in TeX and HTML is not read."""
_MAX_XML = 5_000_000


def read_polygon(row: Row) -> Candidate:
    """Read a Polygon package into a candidate; Malformed if it cannot be read."""
    package = Package.open(row, texts=r"problem\.xml|files/.*\.(cpp|h)|statements/english/.*\.json")
    root = _read_xml(package.files)
    path = package.find_statement((_PROPERTIES,))
    statement, title = _read_statement(path, package.files)
    if not statement.strip():
        raise Malformed("no_statement", f"{path} says nothing")
    package.read_tests(_list_tests(root), missing="not in the package")
    checker = _read_xml_checker(root, package)
    named = (
        (_source_of(one), _OF_TAG.get(one.get("tag") or ""))
        for one in root.iterfind("assets/solutions/solution")
    )
    package.read_solutions(named, left_out="with no verdict or of another language")
    judging = root.find("judging")
    if judging is not None and (judging.get("input-file") or judging.get("output-file")):
        package.flag("file_io")
    milliseconds, size = (
        read_amount(_main_testset(root).findtext(f"{name}-limit")) for name in ("time", "memory")
    )
    names = {
        name.get("language") or "": name.get("value") or "" for name in root.iterfind("names/name")
    }
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
        natural_language=language_code(path.split("/")[1]),
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
    """Return statement and title from a `problem-properties.json`; Malformed if it is no JSON object."""
    try:
        parts = json.loads(files[path])
    except (ValueError, RecursionError) as error:
        raise Malformed("bad_encoding", f"{path}: {error}") from None
    if not isinstance(parts, dict):
        raise Malformed("wrong_type", f"{path} holds {type(parts).__name__}, not an object")
    said = {name: text.strip() for name, text in parts.items() if isinstance(text, str)}
    texts = [(heading, said.get(name, "")) for name, heading in _SECTIONS]
    written = (
        f"\\section*{{{heading}}}\n\n{text}" if heading else text for heading, text in texts if text
    )
    return "\n\n".join(written), str(parts.get("name") or "")


def _list_tests(root: ElementTree.Element) -> Iterator[tuple[str, str, str]]:
    named = _main_testset(root)
    given, answer = (
        named.findtext("input-path-pattern") or "",
        named.findtext("answer-path-pattern") or "",
    )
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
            reading.left_out.append(
                f"{name}: a command that makes several tests, or passes them on"
            )
        elif name and reading.add_generator(name, path_of.get(name, name)):
            reading.recipes.append(
                InputRecipe(group=_group_of(test), generator=name, arguments=tuple(arguments))
            )
    return reading.kit()


def _main_testset(root: ElementTree.Element) -> ElementTree.Element:
    testsets = root.findall("judging/testset")
    named = (found for found in testsets if found.get("name") == "tests")
    return next(named, testsets[0] if testsets else ElementTree.Element("testset"))


def _fill(pattern: str, number: int) -> str:
    """Return a pattern such as `tests/%02d` with its number filled in, as printf does."""
    return re.sub(
        r"%0?(\d?)d", lambda found: str(number).zfill(int(found[1] or 0)), pattern, count=1
    )


def _read_xml_checker(root: ElementTree.Element, package: Package) -> Checker:
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
        "kattis",
        "Kattis problem packages",
        read_kattis,
        folders=Folders(("problem.yaml",), TAKES, skips=("testdata_tools",)),
    ),
    Format(
        "polygon",
        "Polygon packages, as Codeforces' problems are prepared",
        read_polygon,
        folders=Folders(("problem.xml",), _XML_TAKES),
    ),
)

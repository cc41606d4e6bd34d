"""Problem packages: folders that hold the files, tests and programs of one problem.

`Package` collects what a reader finds in such a folder, and makes a candidate of it. The readers of
two formats are in `kattis` and `polygon`; readers of your own can use the same functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from microcoder.data.formats.candidates import Candidate, Known, Note, Solution
from microcoder.data.formats.includes import inline_includes
from microcoder.data.formats.programs import language_of, python_solution
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.values import read_yaml, shorten
from microcoder.judge.core.types import Checker, TestCase

PackagedTest = tuple[str, str, str]
"""A test of a package: its group, and the paths of its input and its answer."""
PackagedProgram = tuple[str, Known | None]
"""A program of a package: its path, and its verdict where one is known."""
_INCLUDES_TESTLIB = re.compile(r'#[ \t]*include[ \t]*["<]testlib\.h[">]')
_PLAIN_LINE = re.compile(r"^([a-z_]+):[ \t]+([^\n'\"\[{|>#&*!%@`][^\n]*: [^\n]*)$", re.MULTILINE)
"""A line of settings whose value is a plain text with a colon in it."""
_MOST = 1e12
"""A larger limit or factor is taken for a mistake and ignored."""
_LONGEST_SETTING = 1000
"""Characters of a setting that are read."""
_ENGLISH = ("", "en", "english")
"""Languages in paths of statements that are taken for English; an empty one names none."""
_ORDER = ("checker", "tests", "time_limit_seconds", "statement_found", "solutions")
"""Order of notes in the lineage, by field."""
_STANDARD: dict[str, Checker] = {
    "wcmp": Checker(type="tokens"),
    "ncmp": Checker(type="tokens"),
    "icmp": Checker(type="tokens"),
    "hcmp": Checker(type="tokens"),
    "caseicmp": Checker(type="tokens"),
    "casencmp": Checker(type="tokens"),
    "casewcmp": Checker(type="tokens"),
    "yesno": Checker(type="tokens", case_sensitive=False),
    "nyesno": Checker(type="tokens", case_sensitive=False),
    "uncmp": Checker(type="unordered", by="tokens"),
    "lcmp": Checker(),
    "fcmp": Checker(type="exact"),
    "rcmp": Checker(type="float", tolerance=1.5e-6),
    "rcmp4": Checker(type="float", tolerance=1e-4),
    "rcmp6": Checker(type="float", tolerance=1e-6),
    "rcmp9": Checker(type="float", tolerance=1e-9),
}
"""Our equivalents of testlib's own checkers, by name."""
_LANGUAGES = {
    "english": "en",
    "russian": "ru",
    "chinese": "zh",
    "italian": "it",
    "spanish": "es",
    "portuguese": "pt",
    "german": "de",
    "french": "fr",
    "ukrainian": "uk",
    "polish": "pl",
    "italiano": "it",
    "vietnamese": "vi",
    "korean": "ko",
    "japanese": "ja",
    "armenian": "hy",
    "persian": "fa",
    "turkish": "tr",
    "arabic": "ar",
    "estonian": "et",
    "finnish": "fi",
    "dutch": "nl",
}
"""ISO 639-1 code by the name of a language, in lower case."""


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
        """Add a flag and, with `why`, a note on the checker.

        Returns:
            The default checker, for a caller that has no better one.
        """
        self.flags.append(name)
        if why:
            self.notes.append(("checker", why))
        return Checker()

    def leave_out(self, what: str, paths: Sequence[str], why: str) -> None:
        """Add a note on the field `what`: how many files were left out, why, and the first of them.

        Nothing is noted if there are no paths.
        """
        if paths:
            self.notes.append((what, f"{len(paths)} left out, {why}: {paths[0]}"))

    def read_tests(self, named: Iterable[PackagedTest], *, missing: str) -> None:
        """Add tests, each named by its group and the paths of its input and its answer.

        Args:
            missing: why tests are left out that lack one of their files, for a note.

        Raises:
            Malformed: a file is there but is not text.
        """
        all_files = self.row.values["files"]
        left_out = []
        for group, input_path, answer_path in named:
            if input_path not in all_files or answer_path not in all_files:
                left_out.append(input_path)
                continue
            if input_path not in self.files or answer_path not in self.files:
                raise Malformed("not_utf8", f"{input_path} or its answer")
            test = TestCase(input=self.files[input_path], output=self.files[answer_path])
            self.tests.append((group, test))
        # Stable: samples, and the tests after them, stay in the package's order.
        self.tests.sort(key=_is_no_sample)
        self.leave_out("tests", left_out, missing)

    def read_solutions(self, named: Iterable[PackagedProgram], *, left_out: str) -> None:
        """Add programs, each named by its path and verdict.

        Args:
            left_out: why programs are left out that have no verdict, are in an unknown language,
                or are not text; for a note.
        """
        rest = []
        for path, known in named:
            language = language_of(path)
            # Nothing can be learned from a program without a verdict.
            if known is None or not language or path not in self.files:
                rest.append(path or "a solution without a path")
                continue
            code = self.files[path]
            if language == "python":
                solution = python_solution(code, name=path, known=known)
            else:
                solution = Solution(
                    code=code,
                    language=language,
                    name=path,
                    known=known,
                )
            self.solutions.append(solution)
        self.leave_out("solutions", rest, left_out)

    def read_settings(self, name: str) -> Mapping[str, Any]:
        """Return the settings of a YAML file; Malformed if it is missing or invalid."""
        if name not in self.files:
            raise Malformed("missing_field", name)
        # `name: Elements: Part 1` is what authors write and YAML refuses: such texts are quoted.
        text = _PLAIN_LINE.sub(_quote_value, self.files[name])
        try:
            settings = read_yaml(text)
        except ValueError as error:
            raise Malformed("bad_encoding", f"{name}: {error}") from None
        # An empty file is null in YAML.
        if settings is None:
            return {}
        if not isinstance(settings, Mapping):
            raise Malformed("wrong_type", f"{name} holds {type(settings).__name__}, not an object")
        return settings

    def find_statement(self, patterns: Sequence[str]) -> str:
        """Return the path of the first statement that is not blank, English before others.

        Args:
            patterns: of paths, the best first. A group `language` in them names the language.

        Raises:
            Malformed: there is no statement.
        """
        for pattern in patterns:
            candidates = []
            for path, text in self.files.items():
                match = re.fullmatch(pattern, path, re.IGNORECASE)
                if match and text.strip():
                    language = match.groupdict().get("language") or ""
                    is_foreign = language.lower() not in _ENGLISH
                    candidates.append((is_foreign, path))
            if candidates:
                # By path among equals, whatever order the files come in.
                return min(candidates)[1]
        raise Malformed(
            "no_statement", "no statement as TeX, Markdown or HTML in UTF-8; a PDF is not read"
        )

    def read_checker(self, path: str) -> Checker:
        """Return the checker of a source file, called with the files input, output and answer."""
        known = standard_checker(path)
        # A file of that name could be the author's own, unless it includes testlib.
        if known is not None and _INCLUDES_TESTLIB.search(self.files[path]):
            self.notes.append(("checker", f"{path} is testlib's own"))
            return known
        program = self.read_program(path)
        if program is None:
            return Checker()
        code, language = program
        return Checker(
            type="program",
            code=code,
            language=language,
            protocol="testlib",
        )

    def read_program(self, path: str) -> tuple[str, str] | None:
        """Return source and language of a checker or interactor; None, and a flag, if another."""
        code, missing = inline_includes(path, self.files)
        language = language_of(path)
        if language not in ("cpp", "python"):
            self.flag("needs_checker", f"{path} is in another language")
            return None
        # What still includes it after inlining comes from a package without a copy of it.
        if _INCLUDES_TESTLIB.search(code):
            missing = [*missing, "testlib.h"]
        self.note_checker(path, missing)
        # An empty text is refused, which a blank one stands for.
        return code or " ", language

    def note_checker(self, path: str, missing: Sequence[str]) -> None:
        """Name the checker's file in the notes, or flag `needs_checker` if it lacks files.

        Args:
            path: of the checker's file.
            missing: names of files that it includes and that the package does not have.
        """
        if missing:
            self.flag("needs_checker", f"{path} needs {', '.join(dict.fromkeys(missing))}")
        else:
            self.notes.append(("checker", f"{path}, with the files that it includes"))

    def candidate(self, statement: str, **fields: Any) -> Candidate:
        """Return the candidate with all that was read so far, and these further fields."""
        notes = sorted(self.notes, key=lambda note: _ORDER.index(note[0]))
        return self.row.candidate(
            statement,
            tuple(test for _, test in self.tests),
            notes=notes,
            groups=tuple(group for group, _ in self.tests),
            solutions=tuple(self.solutions),
            flags=tuple(dict.fromkeys(self.flags)),
            **fields,
        )


def _is_no_sample(named_test: tuple[str, TestCase]) -> bool:
    group, _ = named_test
    return not group.startswith("sample")


def _quote_value(line: re.Match[str]) -> str:
    return f"{line[1]}: {json.dumps(line[2].strip())}"


def setting_text(settings: Mapping[str, Any], name: str) -> str:
    """Return a setting as text: a list joined by spaces, a plain value as it is, else empty."""
    value = settings.get(name)
    if isinstance(value, list):
        plain = [item for item in value if isinstance(item, str | int | float)]
        return " ".join(shorten(item, _LONGEST_SETTING) for item in plain)
    # Not `isinstance`: a bool is an int, and is no text here.
    if type(value) in (str, int, float):
        return shorten(value, _LONGEST_SETTING).strip()
    return ""


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
    """Return our equivalent of one of testlib's checkers; None for another.

    Args:
        name: such as `std::wcmp.cpp`, or a path.
    """
    file_name = name.removeprefix("std::").rpartition("/")[2]
    return _STANDARD.get(file_name.removesuffix(".cpp").lower())


def language_code(name: str) -> str:
    """Return the ISO 639-1 code of a language's name or code; empty if it is not known."""
    lowered = name.lower()
    if len(lowered) == 2:
        return lowered
    return _LANGUAGES.get(lowered, "")

"""A problem package while it is read, whatever system it is for: files, tests, programs, what was left out and why."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from microcoder.data.formats.candidates import Candidate, Known, Note, Solution
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.tests import language_of, python_solution
from microcoder.data.formats.text import shorten
from microcoder.judge.core.types import Checker, TestCase

INCLUDES_TESTLIB = re.compile(r'#[ \t]*include[ \t]*["<]testlib\.h[">]')
LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"[^"]+"', re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">].*$', re.MULTILINE)
_HEADERS = (".h", ".hpp", ".hh", ".cpp", ".cc")
_LOCAL_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_PLAIN_LINE = re.compile(r"^([a-z_]+):[ \t]+([^\n'\"\[{|>#&*!%@`][^\n]*: [^\n]*)$", re.MULTILINE)
_MOST = 1e12
"""More is no limit but a slip."""
_ORDER = ("checker", "tests", "time_limit_seconds", "statement_found", "solutions")
"""Of notes in the lineage."""


@dataclass(slots=True)
class Package:
    """A folder that is a problem."""

    row: Row
    files: Mapping[str, str]
    """Those that are text, by path."""
    tests: list[tuple[str, TestCase]] = field(default_factory=list)
    """Each with its group; the samples come first."""
    solutions: list[Solution] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, row: Row, *, texts: str) -> Package:
        """Read a folder.

        Args:
            row: the folder.
            texts: a pattern of the files that must be text.
        """
        return cls(row, row.files(texts=texts))

    @property
    def paths(self) -> list[str]:
        """The paths of all files, in order; also of those that are no text."""
        return sorted(self.row.values["files"])

    def flag(self, name: str, why: str = "") -> Checker:
        """Flag the problem, and note what stands in the way of its checker; return the default one for it."""
        self.flags.append(name)
        if why:
            self.notes.append(("checker", why))
        return Checker()

    def leave_out(self, what: str, paths: Sequence[str], why: str) -> None:
        """Note what was left out, if anything was."""
        if paths:
            self.notes.append((what, f"{len(paths)} left out, {why}: {paths[0]}"))

    def read_tests(self, named: Iterable[tuple[str, str, str]], *, missing: str) -> None:
        """Add tests.

        Args:
            named: group, path of the input, path of the answer.
            missing: what is said of tests of which a file is not there.
        """
        there, left_out = self.row.values["files"], []
        for group, given, answer in named:
            if given not in there or answer not in there:
                left_out.append(given)
            elif given not in self.files or answer not in self.files:
                raise Malformed("not_utf8", f"{given} or its answer")
            else:
                self.tests.append((group, TestCase(input=self.files[given], output=self.files[answer])))
        self.tests.sort(key=lambda one: not one[0].startswith("sample"))
        self.leave_out("tests", left_out, missing)

    def read_solutions(self, named: Iterable[tuple[str, Known | None]], *, left_out: str) -> None:
        """Add programs.

        Args:
            named: path, and the verdict that the package gives it.
            left_out: what is said of those without one, or in a language that is not known.
        """
        rest = []
        for path, known in named:
            language = language_of(path)
            if known is None or not language or path not in self.files:
                rest.append(path or "a solution without a path")
            elif language == "python":
                self.solutions.append(python_solution(self.files[path], name=path, known=known))
            else:
                self.solutions.append(Solution(code=self.files[path], language=language, name=path, known=known))
        self.leave_out("solutions", rest, left_out)

    def read_settings(self, name: str) -> Mapping[str, Any]:
        """Return what a package says of itself in YAML; nothing if the file is empty."""
        # PyYAML comes with the data extra; rows that are no folders do without.
        from microcoder.data.formats.yaml_text import read_yaml

        if name not in self.files:
            raise Malformed("missing_field", name)
        text = self.files[name]
        try:
            settings = read_yaml(text)
        except ValueError as error:
            try:
                # `name: Elements: Part 1`, a plain text with a colon in it, is what authors write and YAML refuses.
                settings = read_yaml(_PLAIN_LINE.sub(lambda found: f"{found[1]}: {json.dumps(found[2].strip())}", text))
            except ValueError:
                raise Malformed("bad_encoding", f"{name}: {error}") from None
        if settings is None:
            return {}
        if not isinstance(settings, Mapping):
            raise Malformed("wrong_type", f"{name} holds {type(settings).__name__}, not an object")
        return settings

    def find_statement(self, patterns: Sequence[str]) -> str:
        """Return the path of the first statement that is there and says something: English before others.

        Args:
            patterns: of paths, the best first; group `language` names the language where the path does.
        """
        for pattern in patterns:
            found = [
                ((match.groupdict().get("language") or "").lower() not in ("", "en", "english"), path)
                for path in self.files
                if (match := re.fullmatch(pattern, path, re.IGNORECASE)) and self.files[path].strip()
            ]
            if found:
                return min(found)[1]
        raise Malformed("no_statement", "no statement as TeX, Markdown or HTML; a PDF is not read")

    def read_checker(self, path: str) -> Checker:
        """Return the checker of a source that takes input, output and answer."""
        if path not in self.files:
            return self.flag("needs_checker", f"{path or 'its source'} is not in the package")
        code, missing = inline_includes(path, self.files)
        language = language_of(path)
        if language not in ("cpp", "python"):
            return self.flag("needs_checker", f"{path} is in another language")
        if INCLUDES_TESTLIB.search(code):
            missing = [*missing, "testlib.h"]
        self.note_checker(path, missing)
        return Checker(type="program", code=code or " ", language=language, protocol="testlib")

    def note_checker(self, path: str, missing: Sequence[str]) -> None:
        """Note where a checker was read from, or flag what it lacks."""
        if missing:
            self.flag("needs_checker", f"{path} needs {', '.join(dict.fromkeys(missing))}")
        else:
            self.notes.append(("checker", f"{path}, with the files that it includes"))

    def candidate(self, statement: str, **fields: Any) -> Candidate:
        """Return the candidate of everything that was read, and of these further fields."""
        if self.tests and all(group.startswith("sample") for group, _ in self.tests):
            self.flags.append("only_samples")
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
    """Return a setting as text; words where it is a list, nothing if it is an object."""
    value = settings.get(name)
    if isinstance(value, list):
        return " ".join(shorten(item, 1000) for item in value if isinstance(item, str | int))
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return shorten(value, 1000).strip() if is_plain else ""


def read_amount(value: object) -> float | None:
    """Return a positive number, also one written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 < number < _MOST else None


def inline_includes(path: str, files: Mapping[str, str], *, anywhere: bool = False) -> tuple[str, list[str]]:
    """Return a source with the package's files in place of their includes, and which local ones are missing.

    Args:
        path: of the source; Python stays as it is, what it imports from beside it is missing.
        files: of the package.
        anywhere: also headers that lie elsewhere in the package, or are included as a library's.
    """
    folder = posixpath.dirname(path)
    if path.endswith((".py", ".py3")):
        modules = {PurePosixPath(name).stem for name in files if posixpath.dirname(name) == folder and name != path}
        return files[path], sorted(modules & set(_LOCAL_IMPORT.findall(files[path])))
    missing: list[str] = []
    seen = {path}

    def inline(source: str) -> str:
        def replace(found: re.Match[str]) -> str:
            is_local, name = found[1] == '"', found[2]
            target = _find_included(posixpath.dirname(source), name, files, anywhere) if is_local or anywhere else None
            if target is None:
                # `#include "cstring"` is looked for beside the file and then among the standard headers.
                missing.extend([name] if is_local and "." in name and not name.startswith("bits/") else [])
                return found[0]
            if target in seen:
                return ""
            seen.add(target)
            return inline(target)

        return _INCLUDE.sub(replace, files[source])

    return inline(path), missing


def _find_included(folder: str, name: str, files: Mapping[str, str], anywhere: bool) -> str | None:
    beside = posixpath.normpath(posixpath.join(folder, name))
    if beside in files:
        return beside
    base = posixpath.basename(name)
    is_sought = anywhere and base.endswith(_HEADERS)
    return next((one for one in sorted(files) if posixpath.basename(one) == base), None) if is_sought else None


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

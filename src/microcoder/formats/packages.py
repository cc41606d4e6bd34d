"""What problem packages of several systems have in common: programs in folders, testlib's own checkers, statements."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from microcoder.formats.candidates import Known, Solution
from microcoder.formats.programs import LANGUAGES, python_solution
from microcoder.formats.row import Malformed
from microcoder.types import Checker

INCLUDES_TESTLIB = re.compile(r'#[ \t]*include[ \t]*["<]testlib\.h[">]')
LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)".*$', re.MULTILINE)
_LOCAL_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+)", re.MULTILINE)
_PLAIN_LINE = re.compile(r"^([a-z_]+):[ \t]+([^\n'\"\[{|>#&*!%@`][^\n]*: [^\n]*)$", re.MULTILINE)
_MOST = 1e12
"""More is no limit but a slip."""
_STANDARD: dict[str, Checker] = {
    "wcmp": Checker(type="tokens"),
    "ncmp": Checker(type="tokens"),
    "icmp": Checker(type="tokens"),
    "hcmp": Checker(type="tokens"),
    "uncmp": Checker(type="unordered", by="tokens"),
    "caseicmp": Checker(type="tokens"),
    "casencmp": Checker(type="tokens"),
    "casewcmp": Checker(type="tokens"),
    "yesno": Checker(type="tokens", case_sensitive=False),
    "nyesno": Checker(type="tokens", case_sensitive=False),
    "lcmp": Checker(),
    "fcmp": Checker(type="exact"),
    "rcmp": Checker(type="float", tolerance=1.5e-6),
    "rcmp4": Checker(type="float", tolerance=1e-4),
    "rcmp6": Checker(type="float", tolerance=1e-6),
    "rcmp9": Checker(type="float", tolerance=1e-9),
}
"""testlib's own checkers, by name."""


def read_settings(name: str, files: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what a package says of itself in YAML; nothing where the file is empty.

    Raises:
        Malformed: it is missing, no YAML, or no object.
    """
    # PyYAML comes with the data extra; rows that are no folders do without.
    from microcoder.formats.yaml_text import read_yaml

    if name not in files:
        raise Malformed("missing_field", name)
    text = files[name]
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


def read_amount(value: object) -> float | None:
    """Return a positive number, also one written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 < number < _MOST else None


def inline_includes(path: str, files: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return a source with the files beside it in place of their includes, and which of them are missing."""
    folder, missing = posixpath.dirname(path), []
    if path.endswith((".py", ".py3")):
        modules = {PurePosixPath(name).stem for name in files if posixpath.dirname(name) == folder and name != path}
        return files[path], sorted(modules & {found.split(".")[0] for found in _LOCAL_IMPORT.findall(files[path])})
    seen: set[str] = set()

    def replace(found: re.Match[str]) -> str:
        name = posixpath.normpath(posixpath.join(folder, found[1]))
        if name not in files:
            # `#include "cstring"` is looked for beside the file and then among the standard headers.
            missing.extend([found[1]] if "." in found[1] and not found[1].startswith("bits/") else [])
            return found[0]
        if name in seen:
            return ""
        seen.add(name)
        return LOCAL_INCLUDE.sub(replace, files[name])

    return LOCAL_INCLUDE.sub(replace, files[path]), missing


def read_file_solution(path: str, code: str, known: Known) -> Solution | None:
    """Return a program that came as a file; None where its language is none that is known."""
    language = LANGUAGES.get(posixpath.splitext(path)[1].lower())
    if language is None:
        return None
    if language == "python":
        return python_solution(code, name=path, known=known)
    return Solution(code=code, language=language, name=path, known=known)


def standard_checker(name: str) -> Checker | None:
    """Return what one of testlib's own checkers does, by its name such as `std::wcmp.cpp`; None for another."""
    return _STANDARD.get(name.removeprefix("std::").rpartition("/")[2].removesuffix(".cpp").lower())


def read_checker_source(path: str, files: Mapping[str, str]) -> tuple[Checker, tuple[str, ...], list[tuple[str, str]]]:
    """Return the checker of a source that takes input, output and answer, with flags and notes."""
    known = standard_checker(path)
    if known is not None and INCLUDES_TESTLIB.search(files[path]):
        return known, (), [("checker", f"{path} is testlib's own")]
    code, missing = inline_includes(path, files)
    language = LANGUAGES.get(posixpath.splitext(path)[1].lower(), "")
    if language not in ("cpp", "python"):
        return Checker(), ("needs_checker",), [("checker", f"{path} is in another language")]
    if INCLUDES_TESTLIB.search(code):
        missing = [*missing, "testlib.h"]
    checker = Checker(type="program", code=code or " ", language=language, protocol="testlib")
    if missing:
        return checker, ("needs_checker",), [("checker", f"{path} needs {', '.join(dict.fromkeys(missing))}")]
    return checker, (), [("checker", f"{path}, with the files that it includes")]


def find_statement(files: Mapping[str, str], patterns: Sequence[str]) -> str:
    """Return the path of the first statement that is there and says something: English before others.

    Args:
        files: of the package.
        patterns: of paths, the best first; group `language` names the language where the path does.

    Raises:
        Malformed: there is none.
    """
    for pattern in patterns:
        found = [
            (not _is_english(match.groupdict().get("language") or ""), path)
            for path in files
            if (match := re.fullmatch(pattern, path, re.IGNORECASE)) and files[path].strip()
        ]
        if found:
            return min(found)[1]
    raise Malformed("no_statement", "no statement as TeX, Markdown or HTML; a PDF is not read")


def language_code(name: str) -> str:
    """Return the ISO 639-1 code of a language's name or code; empty where it is not known."""
    lowered = name.lower()
    return lowered if len(lowered) == 2 else _LANGUAGES.get(lowered, "")


def _is_english(name: str) -> bool:
    return name.lower() in ("", "en", "english")


_LANGUAGES = {
    "english": "en", "russian": "ru", "chinese": "zh", "italian": "it", "spanish": "es", "portuguese": "pt",
    "german": "de", "french": "fr", "ukrainian": "uk", "polish": "pl", "italiano": "it", "vietnamese": "vi",
    "korean": "ko", "japanese": "ja", "armenian": "hy", "persian": "fa", "turkish": "tr",
}  # fmt: skip

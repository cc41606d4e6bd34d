"""What problem packages of several systems have in common: programs in folders, testlib's own checkers, statements."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from microcoder.formats.candidates import Known, Solution
from microcoder.formats.codecontests import INCLUDES_TESTLIB
from microcoder.formats.kattis import inline_includes
from microcoder.formats.programs import LANGUAGES, python_solution
from microcoder.formats.row import Malformed
from microcoder.types import Checker

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

"""Python 2 programs: found by their grammar, turned into Python 3, and believed only when they pass every test.

The grammar is converted by `fissix`, the kept fork of lib2to3. What a grammar cannot show is whether `/` divided
integers, so there are two versions of a program that divides: `//` first, as Python 2 did for integers, then `/`.
"""

from __future__ import annotations

import io
import tokenize
import warnings
from functools import cache
from typing import Any

from microcoder.data.formats import text
from microcoder.data.formats.candidates import Solution
from microcoder.data.formats.text import parse_python
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.installation import how_to_install

_LEFT_OUT = frozenset({"asserts", "future", "idioms", "set_literal", "ws_comma"})
"""Matters of taste, and the line that says how Python 2 divides."""


def is_python2(solution: Solution) -> bool:
    """Whether a program is Python 2: by its label, or labelled Python but written as only Python 2 can be."""
    is_python = solution.language in ("python", "python3", "py")
    return solution.language == "python2" or (is_python and text.is_python2(solution.code))


def convert_python2(code: str) -> tuple[str, ...]:
    """Return the Python 3 programs that a Python 2 program may be, the likeliest first; none if it does not convert.

    Raises:
        ConfigError: fissix is not installed.
    """
    fixed = convert_grammar(code)
    if fixed is None:
        return ()
    floored = _floor_divisions(fixed)
    versions = (floored, fixed) if "from __future__ import division" not in code else (fixed,)
    return tuple(dict.fromkeys(version for version in versions if parse_python(version) is not None))


def convert_grammar(code: str) -> str | None:
    """Return a program with Python 3's grammar and names, or None where it is not Python 2 either."""
    tool = _tool()
    given = code.replace("\r\n", "\n").expandtabs(8).rstrip() + "\n"
    try:
        fixed = str(tool.refactor_string(given, "program"))
    except Exception:  # fissix raises whatever its parser and fixers run into; a program that does not convert is data
        return None
    return None if parse_python(fixed) is None else fixed


@cache
def _tool() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from fissix.refactor import RefactoringTool, get_fixers_from_package
    except ImportError:
        raise ConfigError(
            f"python2 = convert needs fissix; {how_to_install('data')}, or set python2 to set_aside"
        ) from None
    names = get_fixers_from_package("fissix.fixes")
    return RefactoringTool([name for name in names if name.rpartition("fix_")[2] not in _LEFT_OUT])


def _floor_divisions(code: str) -> str:
    lines = code.splitlines(keepends=True)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    except (tokenize.TokenError, SyntaxError):
        return code
    for token in reversed(tokens):
        if token.type == tokenize.OP and token.string in ("/", "/="):
            row, column = token.start[0] - 1, token.start[1]
            lines[row] = lines[row][:column] + "/" + lines[row][column:]
    return "".join(lines)

"""User-defined checkers: the function's file becomes a checker program, which runs in the sandbox.

The function is `check(test_input: str, output: str, answer: str) -> bool | str`: True accepts; False, or a text that
says why, refuses. The file must be whole by itself: it is the program.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microcoder.errors import ConfigError
from microcoder.extensions import load_extension
from microcoder.types import Checker

_MAIN = """

import sys as _sys

_texts = [open(_name, encoding="utf-8", errors="surrogateescape", newline="").read() for _name in _sys.argv[1:4]]
_said = {name}(*_texts, **{options!r})
if _said is not True:
    print(_said if isinstance(_said, str) else "wrong", file=_sys.stderr)
    _sys.exit(1)
"""


def load_checker(reference: str, options: Mapping[str, Any] | None = None) -> Checker:
    """Return the checker that a function makes; its source is in it, so whatever keeps problems keeps that too.

    Args:
        reference: path/to/file.py:function, module:function, or the name of an entry point, see `extensions`.
        options: the function's keyword-only parameters.

    Raises:
        ConfigError: it cannot be loaded, takes other arguments, or has no source.
    """
    extension = load_extension("checker", reference, builtins={}, options=options)
    function = extension.function
    if not inspect.isfunction(function) or extension.source is None or function.__qualname__ != function.__name__:
        raise ConfigError(f"checker {reference} is not a function of a file; name one defined there by `def`")
    needed = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    if len(needed) != 3:
        raise extension.fault("takes other arguments than (test_input, output, answer)")
    code = Path(extension.source.file).read_text(encoding="utf-8")
    return Checker(type="program", code=code + _MAIN.format(name=function.__name__, options=dict(extension.options)))

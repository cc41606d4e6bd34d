"""Judges as a command names them: `NAME`, or `NAME=WHERE`."""

from __future__ import annotations

import runpy
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import ConfigError, suggest
from microcoder.lab.yardstick.contained import judges

_ABILITIES = ("function", "packages")
"""Abilities of a judge whose module lists none for it."""


_ASKED_BY_NAME = ("reward", "command")
"""Judges of ours that are whatever the user names."""
_MOST_LABEL = 40
"""Characters of what the user names that are shown."""


@dataclass(frozen=True, slots=True)
class TestedJudge:
    """A judge to benchmark, as named on the command line."""

    label: str
    name: str
    """A function of `contained/judges.py`, or `file.py:function` of an adapter."""
    path: str
    python: str
    """Path of the Python interpreter that has the judge's packages."""
    abilities: frozenset[str]
    about: str
    runs_here: bool
    """Whether programs run in the judge's process here, which must be isolated; else a service runs
    them."""


def read_judge(text: str, *, python: str) -> TestedJudge:
    """Parse `NAME` or `NAME=WHERE`; NAME may be `adapters.py:function`.

    Args:
        text: what the user typed.
        python: path of the interpreter that has the judge's packages.

    Raises:
        ConfigError: there is no such judge, or no such file, or it takes another WHERE.
    """
    name, _, where = text.partition("=")
    for reference in (name, where):
        file = reference.rpartition(":")[0]
        if file.endswith(".py") and not Path(file).is_file():
            raise ConfigError(f"--judge {text}: there is no {file}; give the path of a file")
    file, _, function = name.rpartition(":")
    if file.endswith(".py"):
        module = _read_adapters(text, file, function)
        name = _absolute(name)
    else:
        _check_judge(text, name, where)
        module = vars(judges)
        function = name.replace("-", "_")
    documentation = module[function].__doc__ or function
    first_paragraph = documentation.split("\n\n")[0]
    about = " ".join(first_paragraph.split())
    label = function.replace("_", "-")
    if name in _ASKED_BY_NAME:
        # Several such judges stand on one page.
        label = f"{label} {_shorten(where)}"
    return TestedJudge(
        label=label,
        name=name,
        path=_absolute_words(text, where) if name == "command" else _absolute(where),
        python=python,
        abilities=frozenset(module.get("ABILITIES", {}).get(function, _ABILITIES)),
        about=about.rstrip("."),
        runs_here=function not in module.get("SERVICES", ()),
    )


def number_repeated(judges: Sequence[TestedJudge]) -> list[TestedJudge]:
    """Return judges with labels of their own: one that repeats gets a number."""
    counts: Counter[str] = Counter()
    numbered = []
    for judge in judges:
        counts[judge.label] += 1
        if counts[judge.label] > 1:
            judge = replace(judge, label=f"{judge.label} {counts[judge.label]}")
        numbered.append(judge)
    return numbered


def _read_adapters(text: str, file: str, function: str) -> Mapping[str, Any]:
    """Return the names that a file of adapters defines; ConfigError without this function."""
    # Adapters import what they share with ours by the name that it has where they are asked.
    sys.modules[judges.MODULE] = judges
    try:
        names = runpy.run_path(file)
    except ImportError as error:
        raise ConfigError(
            f"--judge {text}: {file} cannot be imported ({error}); install what it needs"
        ) from None
    if not callable(names.get(function)):
        raise ConfigError(
            f"--judge {text}: {file} has no function {function!r}; see docs/judges.md"
        )
    return names


def _check_judge(text: str, name: str, where: str) -> None:
    """Raise ConfigError unless there is such a judge of ours, and it takes what follows its `=`."""
    if name not in judges.JUDGES:
        hint = f"{suggest(name, judges.JUDGES)} use one of {', '.join(judges.JUDGES)}, or "
        hint += "FILE.py:FUNCTION"
        raise ConfigError(f"--judge {text}: unknown judge {name!r}; {hint.lstrip()}")
    takes = judges.JUDGES[name]
    is_taken = bool(where) == bool(takes)
    if takes == judges.REFERENCE:
        source, _, attribute = where.partition(":")
        is_taken = bool(source and attribute)
    if not is_taken:
        needed = f"no path; type --judge {name}"
        if takes:
            needed = f"{takes}; type --judge {name}=..."
        raise ConfigError(f"--judge {text}: {name} takes {needed}")


def _shorten(where: str) -> str:
    """Return what is told of a judge that the user names: without folders, and not at length."""
    name = " ".join(word.rpartition("/")[2] for word in where.split())
    return name if len(name) <= _MOST_LABEL else f"{name[:_MOST_LABEL]}..."


def _absolute_words(text: str, line: str) -> str:
    """Return a command line whose files have absolute paths: it is started in another folder."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ConfigError(f"--judge {text}: {error}; close the quotes") from None
    return shlex.join(str(Path(word).absolute()) if Path(word).exists() else word for word in words)


def _absolute(reference: str) -> str:
    """Return `file.py:function` or a path with the path made absolute; any other text unchanged."""
    file, _, function = reference.rpartition(":")
    if file.endswith(".py"):
        return f"{Path(file).absolute()}:{function}"
    if reference and Path(reference).exists():
        return str(Path(reference).absolute())
    return reference

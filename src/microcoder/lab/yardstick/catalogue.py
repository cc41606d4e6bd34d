"""The judges that can be asked: those of `inside/judges.py` by name, and adapters in files, which are written alike."""

from __future__ import annotations

import runpy
import sys
from dataclasses import dataclass
from pathlib import Path

from microcoder.judge.core.errors import ConfigError, suggest
from microcoder.lab.yardstick.inside import judges

ABILITIES = {
    "function": "calls a function with JSON arguments and compares what it returns",
    "packages": "has numpy and sortedcontainers for programs",
    "structures": "passes linked lists, trees and design classes",
    "checker": "decides by a checker program or in any order",
    "cpp": "builds and runs C++",
}
"""Abilities that a case may need beyond stdin and stdout; a judge gets only the cases that it supports."""


@dataclass(frozen=True, slots=True)
class TestedJudge:
    """A judge to benchmark, as named on the command line."""

    label: str
    name: str
    """A function of `inside/judges.py`, or `file.py:function` of an adapter."""
    path: str
    python: str
    """The interpreter that has its packages."""
    abilities: frozenset[str]
    about: str
    runs_here: bool
    """Whether programs run in its own process, so that it must be contained; else they run at a service's."""
    version: str = ""
    """Version given by the user, such as a commit."""

    def can_be_asked(self, needs: tuple[str, ...], *, is_function: bool) -> bool:
        """Whether it offers what a case needs."""
        return set(needs) <= self.abilities and (is_function or "only-function" not in self.abilities)


def read_judge(text: str, *, python: str) -> TestedJudge:
    """Parse `NAME`, `NAME=WHERE` or `NAME@VERSION=WHERE`; NAME is also `adapters.py:function`."""
    head, _, where = text.partition("=")
    name, _, version = head.partition("@")
    file, _, function = name.rpartition(":")
    if file.endswith(".py"):
        if not Path(file).is_file():
            raise ConfigError(f"--judge {text}: there is no {file}; type --judge FILE.py:FUNCTION=WHERE")
        # What peers share with ours, by the name that it has where they are asked.
        sys.modules[judges.MODULE] = judges
        found = runpy.run_path(file)
        if not callable(found.get(function)):
            raise ConfigError(f"--judge {text}: {file} has no function {function!r}; see docs/judges.md")
        name = f"{Path(file).absolute()}:{function}"
        # An interpreter, a checkout or an address: the adapter knows.
        where = str(Path(where).absolute()) if where and Path(where).exists() else where
    else:
        if name not in judges.JUDGES:
            hint = f"{suggest(name, judges.JUDGES)} use one of {', '.join(judges.JUDGES)}, or FILE.py:FUNCTION".lstrip()
            raise ConfigError(f"--judge {text}: unknown judge {name!r}; {hint}")
        where = _check_place(text, name, where)
        found, function = vars(judges), name.replace("-", "_")
    abilities = found.get("ABILITIES", {}).get(function, ["function", "packages"])
    about = (found[function].__doc__ or function).split("\n")[0].strip().rstrip(".")
    runs_here = function not in found.get("SERVICES", ())
    label = function.replace("_", "-")
    return TestedJudge(label, name, where, python, frozenset(abilities), about, runs_here, version)


def _check_place(text: str, name: str, where: str) -> str:
    needs = judges.JUDGES[name]
    if needs and not where:
        raise ConfigError(f"--judge {text}: its location is missing; type --judge {name}=... ({needs})")
    if where and not needs:
        raise ConfigError(f"--judge {text}: {name} takes no path; type --judge {name}")
    if needs != judges.REFERENCE:
        return where
    file, _, attribute = where.rpartition(":")
    if not file or not attribute:
        raise ConfigError(f"--judge {text}: {where!r} names no function; it takes {needs}")
    if file.endswith(".py") and not Path(file).exists():
        raise ConfigError(f"--judge {text}: there is no {file}; it takes {needs}")
    return f"{Path(file).absolute()}:{attribute}" if file.endswith(".py") else where

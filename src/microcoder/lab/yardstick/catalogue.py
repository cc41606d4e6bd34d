"""The judges that can be asked: known by name, or an adapter in a file."""

from __future__ import annotations

import runpy
from dataclasses import dataclass
from pathlib import Path

from microcoder.judge.core.errors import ConfigError, suggest

ABILITIES = {
    "function": "calls a function with JSON arguments and compares what it returns",
    "packages": "has numpy and sortedcontainers for programs",
    "structures": "passes linked lists, trees and design classes",
    "checker": "decides by a checker program or in any order",
    "cpp": "builds and runs C++",
}
"""Abilities that a case may need beyond stdin and stdout; a judge gets only the cases that it supports."""
_ALL, _FUNCTIONS = frozenset(ABILITIES), frozenset({"function", "packages"})
_REFERENCE = "module:attribute or file.py:function"
_BY_REFERENCE = ("function", "lcb")


@dataclass(frozen=True, slots=True)
class Known:
    """A judge known by name, or an adapter."""

    abilities: frozenset[str]
    about: str
    needs: str = ""
    """Meaning of the value in `NAME=VALUE`; empty if it takes none."""
    runs_here: bool = True
    """Whether programs run in its own process, so that it must be contained; else they run at a service's."""


KNOWN = {
    "microcoder": Known(_ALL, "this package's judge"),
    "subprocess": Known(frozenset({"packages"}), "`python -c` a test, exit code 0, equal stripped output"),
    "in-process": Known(_FUNCTIONS, "`exec` in the judge's own process, under an alarm"),
    "function": Known(_FUNCTIONS, "your own function", _REFERENCE),
    "lcb": Known(_FUNCTIONS, "your own function with LiveCodeBench's signature", _REFERENCE),
    "http-v1": Known(_ALL, "a `microcoder serve`", "its address", runs_here=False),
}


@dataclass(frozen=True, slots=True)
class TestedJudge:
    """A judge to benchmark, as named on the command line."""

    label: str
    name: str
    """As in `KNOWN`, or `file.py:function` of an adapter."""
    path: str
    python: str
    """The interpreter that has its packages."""
    known: Known
    version: str = ""
    """Version given by the user, such as a commit."""


def read_judge(text: str, *, python: str) -> TestedJudge:
    """Parse `NAME`, `NAME=WHERE` or `NAME@VERSION=WHERE`; NAME is also `adapters.py:function`."""
    head, _, where = text.partition("=")
    name, _, version = head.partition("@")
    file, _, function = name.rpartition(":")
    if file.endswith(".py"):
        known, label = _read_adapter(text, file, function), function.replace("_", "-")
        # An interpreter, a checkout or an address: the adapter knows.
        there = str(Path(where).absolute()) if where and Path(where).exists() else where
        return TestedJudge(label, f"{Path(file).absolute()}:{function}", there, python, known, version)
    if name not in KNOWN:
        hint = f"{suggest(name, KNOWN)} use one of {', '.join(KNOWN)}, or FILE.py:FUNCTION".lstrip()
        raise ConfigError(f"--judge {text}: unknown judge {name!r}; {hint}")
    known = KNOWN[name]
    if known.needs and not where:
        raise ConfigError(f"--judge {text}: its location is missing; type --judge {name}=... ({known.needs})")
    if where and not known.needs:
        raise ConfigError(f"--judge {text}: {name} takes no path; type --judge {name}")
    if name in _BY_REFERENCE:
        file, _, attribute = where.rpartition(":")
        if not file or not attribute:
            raise ConfigError(f"--judge {text}: {where!r} names no function; it takes {known.needs}")
        if file.endswith(".py"):
            if not Path(file).exists():
                raise ConfigError(f"--judge {text}: there is no {file}; it takes {known.needs}")
            where = f"{Path(file).absolute()}:{attribute}"
    return TestedJudge(name, name, where, python, known, version)


def _read_adapter(text: str, file: str, function: str) -> Known:
    """Return what a file says of one of its judges: its docstring, `ABILITIES` and `SERVICES`."""
    if not Path(file).is_file():
        raise ConfigError(f"--judge {text}: there is no {file}; type --judge FILE.py:FUNCTION=WHERE")
    found = runpy.run_path(file)
    adapter = found.get(function)
    if not callable(adapter):
        raise ConfigError(f"--judge {text}: {file} has no function {function!r}; see docs/judges.md")
    abilities = found.get("ABILITIES", {}).get(function, _FUNCTIONS)
    about = (adapter.__doc__ or function).split("\n")[0].strip().rstrip(".")
    return Known(frozenset(abilities), about, runs_here=function not in found.get("SERVICES", ()))

"""The judges known by name, with their abilities."""

from __future__ import annotations

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
_FUNCTIONS = frozenset({"function", "packages"})
_ALL = frozenset(ABILITIES)
_REFERENCE = "module:attribute or file.py:function"
_BY_REFERENCE = ("function", "lcb")


@dataclass(frozen=True, slots=True)
class Known:
    """A judge known by name."""

    abilities: frozenset[str]
    about: str
    needs: str = ""
    """Meaning of the value in `NAME=VALUE`; empty if it takes none."""
    is_file: bool = True
    """Whether that is a path of this machine."""
    runs_here: bool = True
    """Whether programs run in its own process, so that it must be contained; else they run at a service's."""


KNOWN = {
    "microcoder": Known(_ALL, "this package's judge"),
    "subprocess": Known(frozenset({"packages"}), "`python -c` a test, exit code 0, equal stripped output"),
    "in-process": Known(_FUNCTIONS, "`exec` in the judge's own process, under an alarm"),
    "livecodebench": Known(_FUNCTIONS, "LiveCodeBench's check_correctness", "the checkout"),
    "apps": Known(_FUNCTIONS, "APPS' run_test", "eval/testing_util.py of hendrycks/apps, pyext.py beside it"),
    "verl-prime-code": Known(_FUNCTIONS, "verl's prime_code", "a checkout or site-packages with verl, pyext beside it"),
    "nemo-gym": Known(_FUNCTIONS, "NeMo-Gym's code_gen", "resources_servers/code_gen of a checkout"),
    "skyrl-gym": Known(_FUNCTIONS, "skyrl-gym's lcb", "the folder that skyrl_gym is in"),
    "rllm": Known(_FUNCTIONS, "rllm's lcb_check_correctness_v2", "the checkout"),
    "open-r1": Known(frozenset({"packages"}), "open-r1's code_reward script", "src/open_r1/rewards.py"),
    "inspect": Known(
        frozenset({"function", "packages", "only-function"}),
        "inspect_ai's local sandbox, code and asserts",
        "the Python that has inspect_ai",
    ),
    "function": Known(_FUNCTIONS, "your own function", _REFERENCE),
    "lcb": Known(_FUNCTIONS, "your own function with LiveCodeBench's signature", _REFERENCE),
    "http-v1": Known(_ALL, "a `microcoder serve`", "its address", is_file=False, runs_here=False),
    "sandbox-fusion": Known(
        frozenset({"packages"}), "a SandboxFusion service", "its address", is_file=False, runs_here=False
    ),
    "nemo-verify": Known(_FUNCTIONS, "a NeMo-Gym resources server", "its address", is_file=False, runs_here=False),
}


@dataclass(frozen=True, slots=True)
class TestedJudge:
    """A judge to benchmark, as named on the command line."""

    label: str
    name: str
    path: str
    python: str
    """The interpreter that has its packages."""
    version: str = ""
    """Version given by the user, such as a commit."""

    @property
    def known(self) -> Known:
        """Its entry in the catalogue."""
        return KNOWN[self.name]


def read_judge(text: str, *, python: str) -> TestedJudge:
    """Parse `NAME`, `NAME=WHERE` or `NAME@VERSION=WHERE`."""
    head, _, where = text.partition("=")
    name, _, version = head.partition("@")
    if name not in KNOWN:
        hint = f"{suggest(name, KNOWN)} use one of {', '.join(KNOWN)}".lstrip()
        raise ConfigError(f"--judge {text}: unknown judge {name!r}; {hint}")
    known = KNOWN[name]
    if known.needs and not where:
        raise ConfigError(f"--judge {text}: its location is missing; type --judge {name}=... ({known.needs})")
    if where and not known.needs:
        raise ConfigError(f"--judge {text}: {name} takes no path; type --judge {name}")
    if name == "inspect":
        python, where = _find(text, where, known), ""
    elif name in _BY_REFERENCE:
        where = _find_reference(text, where, known)
    elif known.is_file and where:
        where = _find(text, where, known)
    return TestedJudge(label=name, name=name, path=where, python=python, version=version)


def _find(text: str, where: str, known: Known) -> str:
    if not Path(where).exists():
        raise ConfigError(f"--judge {text}: there is no {where}; it takes {known.needs}")
    # Not resolved: an environment's interpreter is a link.
    return str(Path(where).absolute())


def _find_reference(text: str, where: str, known: Known) -> str:
    file, _, attribute = where.rpartition(":")
    if not file or not attribute:
        raise ConfigError(f"--judge {text}: {where!r} names no function; it takes {known.needs}")
    return f"{_find(text, file, known)}:{attribute}" if file.endswith(".py") else where

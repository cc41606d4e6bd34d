"""What decides a verdict besides program and problem, as files name it: the Python and the packages of programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from microcoder.errors import MicroCoderError
from microcoder.evaluator.interpreter import CURRENT_VERSION, current_interpreter
from microcoder.evaluator.languages import find_language, language_of
from microcoder.evaluator.package_folders import PackageShelf
from microcoder.evaluator.packages import PackageProfile
from microcoder.types import Problem

PYTHON = "python"


@dataclass(frozen=True, slots=True)
class JudgingEnvironment:
    """What programs run on."""

    python: str
    """Version of the Python that problems without a version mean."""
    profile: PackageProfile
    missing: str = ""
    """Why the packages are not there, and what to type; empty where they are."""
    call_stack: str = ""
    """Why programs recurse less deep than under plain python; empty where they do not."""

    @property
    def identity(self) -> str:
        """What verdicts of two environments are told apart by; missing packages leave programs without one."""
        return f"Python {self.python}, packages {self.profile.label}"

    def as_record(self) -> dict[str, Any]:
        """Return the plain form for files."""
        return {
            "python": self.python,
            "call_stack": self.call_stack,
            "packages": {
                "profile": self.profile.name,
                "digest": self.profile.digest,
                "pins": list(self.profile.pins),
                "missing": self.missing,
            },
        }


def describe_environment(packages: PackageShelf, call_stack: str) -> JudgingEnvironment:
    """Return what programs of a judge run on; its packages are installed first where they are not there.

    Args:
        packages: those of the judge.
        call_stack: what its sandbox says of the call stack.
    """
    provided = packages.provide(current_interpreter())
    return JudgingEnvironment(current_interpreter().version, packages.profile, provided.problem, call_stack)


def name_environment(profile: PackageProfile, problems: Iterable[Problem]) -> dict[str, str]:
    """Return what verdicts on these problems are tied to, in words: packages, and each Python that is asked for."""
    asked = {(language.name, language.version) for language in map(language_of, problems)}
    versions = {CURRENT_VERSION} | {version for name, version in asked if name == PYTHON}
    pythons = {}
    for version in sorted(versions):
        try:
            pythons[version] = find_language(PYTHON, version).find_interpreter().version
        except MicroCoderError:
            pythons[version] = f"{version}, missing"
    return {"Python": ", ".join(pythons.values()), "packages": profile.label}

"""The environment of programs that verdicts depend on: Python version and packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from microcoder.judge.core.types import Problem
from microcoder.judge.languages import LANGUAGES, language_of
from microcoder.judge.languages.definition import current_interpreter
from microcoder.judge.languages.packages import PackageProfile, ProvidedPackages


@dataclass(frozen=True, slots=True)
class JudgingEnvironment:
    """The Python and packages that programs run with."""

    python: str
    """The Python that MicroCoder runs on."""
    profile: PackageProfile
    missing: str = ""
    """Why the packages are missing, and what to type; empty if they are installed."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Digests of the language files from outside the package, by language."""
    call_stack: str = ""
    """Why programs recurse less deep than under plain python; empty if they do not."""

    @property
    def identity(self) -> str:
        """One line that identifies the environment in files: Python, packages, the user's own languages."""
        own = "".join(f", {name} {digest}" for name, digest in self.languages.items())
        return f"Python {self.python}, packages {self.profile.label}{own}"

    def as_record(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON files."""
        return {
            "python": self.python,
            "call_stack": self.call_stack,
            **({"languages": dict(self.languages)} if self.languages else {}),
            "packages": {
                "profile": self.profile.name,
                "digest": self.profile.digest,
                "pins": list(self.profile.pins),
                "missing": self.missing,
            },
        }


def describe_environment(packages: ProvidedPackages, call_stack: str) -> JudgingEnvironment:
    """Return a judge's environment; `call_stack`: why programs recurse less deep, or empty."""
    version = current_interpreter().version
    return JudgingEnvironment(version, packages.profile, packages.problem, digest_languages(), call_stack)


def digest_languages() -> dict[str, str]:
    """Return the digests of the language files from outside the package, by language."""
    return {name: language.digest for name, language in LANGUAGES.items() if language.digest}


def name_environment(profile: PackageProfile, problems: Iterable[Problem]) -> dict[str, str]:
    """Return what verdicts on these problems depend on, by name: versions of Python and packages, own languages."""
    asked = {language_of(problem).name for problem in problems}
    own = {name: digest for name, digest in digest_languages().items() if name in asked}
    return {"Python": current_interpreter().version, "packages": profile.label, **own}

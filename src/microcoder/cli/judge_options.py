"""Options of commands that judge programs."""

from dataclasses import dataclass, fields
from pathlib import Path

from microcoder.cli.display import Flag
from microcoder.judge import Judge, JudgeOptions, StopRule
from microcoder.judge.languages import add_language
from microcoder.judge.languages.packages import STANDARD
from microcoder.judge.run.isolation import DEGRADED_MEANS
from microcoder.judge.run.timing import CHECKER_SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxFlags:
    """Options of the sandbox that programs run in: packages, languages, isolation."""

    packages: str = STANDARD
    """Packages that programs may import: standard, atcoder, none, or the path of a file of pinned
    packages."""
    languages: tuple[Path, ...] = ()
    """Your own language files (docs/languages.md)."""
    unsafe: Flag = False
    """Run even if the sandbox lacks isolation. Only for programs that you trust."""

    def read(self, **further: object) -> JudgeOptions:
        """Return these options but the languages, and further ones, as `JudgeOptions`."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        # No option of one judge: `add_languages` registers them for the whole process.
        del options["languages"]
        return JudgeOptions.read({**options, **further})

    def open(self, **further: object) -> Judge:
        """Return a judge with these and further options."""
        return Judge(self.read(**further))

    def add_languages(self) -> None:
        """Register the languages of the files in `languages`."""
        for path in self.languages:
            add_language(path)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeFlags(SandboxFlags):
    """Options of judging besides the sandbox's: workers, stop rule, priority."""

    workers: int | None = None
    """Programs judged in parallel; by default one per processor."""
    nice: int = 0
    """Niceness of the judged programs, 0 to 19; never less than this command's own. Beside one busy
    process, a program gets half of a core at 0, a tenth at 10, a seventieth at 19."""
    stop: StopRule = "first_limit"
    """When to skip a program's remaining tests: after its first failure, after a test that hit a
    limit, or never."""
    time_scale: float | None = None
    """Factor on all CPU limits; by default measured on this machine, then at least 1 (see
    `microcoder doctor`)."""
    batch_tests: bool = True
    """Run several tests of a program in one process if none can affect the next
    (docs/sandbox.md)."""
    checker_seconds: float = CHECKER_SECONDS
    """CPU time that a problem's checker program may take for a test."""
    build_seconds: float | None = None
    """CPU time that a compiler may take; by default what the language's file says, 10 for those of
    the package."""


def describe_lacks(judge: Judge) -> str:
    """Return what the sandbox lacks on this machine and what that means.

    It is empty if it lacks nothing.
    """
    missing = judge.isolation.describe_missing()
    return f"{missing}: {DEGRADED_MEANS}" if judge.isolation.level == "degraded" else missing

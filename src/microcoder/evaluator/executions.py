"""Running a program without judging it: what it is given, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from microcoder.errors import DataError, EvaluatorFault
from microcoder.evaluator import verdicts
from microcoder.evaluator.languages import find_language
from microcoder.evaluator.preparation import OUTPUT_MIB, limits_for
from microcoder.evaluator.supervisor import Limits, Run
from microcoder.types import Outcome, Program

MAX_FILES = 10
"""Files and folders that one run may be given."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of a program: what it is given, and what it may use."""

    program: Program
    stdin: bytes = b""
    arguments: tuple[str, ...] = ()
    """What it finds after its own name."""
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    """Files in its folder; a name that ends in `/`, with None, is an empty folder, and comes before what is in it."""
    cpu_seconds: float = 10.0
    """Stretched like any time limit on a machine slower than the reference."""
    wall_seconds: float | None = None
    """At most this long on the clock; by default three times the CPU time and a second."""
    memory_limit_mib: int = 512

    def check(self) -> None:
        """Refuse what cannot be run.

        Raises:
            DataError: there is no code, an unknown language, or a file that cannot be laid out; which and why.
            EvaluatorFault: there is no compiler for the language.
        """
        language = find_language(self.program.language)
        if self.program.code is None:
            raise DataError("there is no code to run")
        if language.find_problem():
            raise EvaluatorFault(language.find_problem())
        if len(self.files) > MAX_FILES:
            raise DataError(f"{len(self.files)} files; use at most {MAX_FILES}")
        for name in self.files:
            parts = name.removesuffix("/").split("/")
            if "\0" in name or len(name) > 200 or any(part in ("", ".", "..") for part in parts):
                raise DataError(f"file name {name[:100]!r}: use a plain relative path, such as data/input.txt")

    def limits(self, time_scale: float) -> Limits:
        """Return what it may use on this machine."""
        limits = limits_for(self.cpu_seconds * time_scale, self.memory_limit_mib, OUTPUT_MIB)
        wall_seconds = limits.wall_seconds if self.wall_seconds is None else self.wall_seconds
        return Limits(limits.cpu_seconds, wall_seconds, limits.memory_bytes, limits.output_bytes)


@dataclass(frozen=True, slots=True)
class Execution:
    """What a program did; nothing was compared."""

    failure: Outcome | None
    """Why it did not end well, or None: it ended by itself with exit code 0, within its limits."""
    detail: str
    """One line for a human."""
    stdout: bytes = b""
    stderr: str = ""
    """The end of it."""
    exit_code: int | None = None
    """None where a signal ended it, or nothing was run."""
    signal: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    memory_mib: float = 0.0
    isolation: str = ""

    @property
    def is_conclusive(self) -> bool:
        """False where the sandbox failed: nothing is known about the program."""
        return self.failure is not Outcome.SANDBOX_FAULT


def fault(message: str) -> Execution:
    """Return the record of a run that our machine could not do."""
    return Execution(Outcome.SANDBOX_FAULT, verdicts.sandbox_fault(message).detail)


def not_built(message: str, isolation: str) -> Execution:
    """Return the record of a program that the compiler refused."""
    return Execution(Outcome.COMPILE_ERROR, message, stderr=message, exit_code=1, isolation=isolation)


def record_run(run: Run, invocation: Invocation, limits: Limits, rejection: str | None, isolation: str) -> Execution:
    """Return what a run showed; `rejection` is the interpreter's message where the source does not compile."""
    if rejection is not None:
        return not_built(rejection, isolation)
    language = find_language(invocation.program.language)
    failure, detail = verdicts.find_failure(run, limits, invocation.memory_limit_mib, language.out_of_memory) or (
        None,
        "",
    )
    return Execution(
        failure=failure,
        detail=detail,
        stdout=run.stdout[: limits.output_bytes],
        stderr=run.stderr,
        exit_code=None if run.result.signal else run.result.exit_code,
        signal=run.result.signal,
        cpu_seconds=run.cpu_seconds,
        wall_seconds=run.result.wall_us / 1e6,
        memory_mib=round(run.result.memory_kib / 1024, 3),
        isolation=isolation,
    )

"""Running a program without judging it: `Invocation` says what to run, `Execution` what it did."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import PlainSerializer

from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import MOST_MEMORY_MIB, Outcome, Program
from microcoder.judge.languages import find_language
from microcoder.judge.run import verdicts
from microcoder.judge.run.checks import check_arguments
from microcoder.judge.run.executor import Source, Task
from microcoder.judge.run.judging import Session
from microcoder.judge.run.timing import MAX_SECONDS, SPARE_MEMORY_MIB, Limits, limits_for
from microcoder.judge.run.verdicts import OUTPUT_MIB

MAX_FILES = 10
"""Most files and folders of one run."""
_MAX_NAME_BYTES = 200
"""Longest path of a file in a program's folder."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of a program: input and limits."""

    program: Program
    stdin: bytes = b""
    arguments: tuple[str, ...] = ()
    """Command-line arguments, after the program's name."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files in the program's folder, by their paths in it."""
    cpu_seconds: float = 10.0
    """CPU limit; multiplied on a machine slower than the reference, like any time limit."""
    wall_seconds: float | None = None
    """Wall-time limit, multiplied as the CPU limit is; by default three times that limit and a
    second."""
    memory_limit_mib: int = 512
    spare_memory_mib: int = SPARE_MEMORY_MIB
    """Address space beyond the limit. Use of more memory than the limit is noticed only when the
    program has ended; until then it may use both together."""

    def check(self) -> None:
        """Check that the run is possible.

        Raises:
            DataError: there is no code, an unknown language, a limit or an argument out of bounds,
                or a file that cannot be laid out; which and why.
            EvaluatorFault: there is no compiler for the language.
        """
        language = find_language(self.program.language)
        if self.program.code is None:
            raise DataError("there is no code to run")
        if language.find_problem():
            raise EvaluatorFault(language.find_problem())
        # No run may take longer on the clock than the longest one by its CPU time.
        longest = longest_wall_seconds(MAX_SECONDS)
        if not 0 < self.cpu_seconds <= MAX_SECONDS:
            raise DataError(
                f"a time limit of {self.cpu_seconds:g} s; use more than 0, at most {MAX_SECONDS:g}"
            )
        if self.wall_seconds is not None and not 0 < self.wall_seconds <= longest:
            raise DataError(
                f"a wall time limit of {self.wall_seconds:g} s; "
                f"use more than 0, at most {longest:g}"
            )
        if not 1 <= self.memory_limit_mib <= MOST_MEMORY_MIB:
            raise DataError(
                f"a memory limit of {self.memory_limit_mib} MiB; use 1 to {MOST_MEMORY_MIB}"
            )
        check_arguments(self.arguments, "arguments")
        check_layout(self.files)

    def limits(self, time_scale: float) -> Limits:
        """Return the run's limits here; its time limits are multiplied by `time_scale`."""
        language = find_language(self.program.language)
        # Starting the language's runtime is not the program's own work.
        cpu_seconds = (self.cpu_seconds + language.startup_seconds) * time_scale
        memory_mib = self.memory_limit_mib + language.startup_memory_mib
        limits = limits_for(
            cpu_seconds, memory_mib, OUTPUT_MIB, spare_memory_mib=self.spare_memory_mib
        )
        if self.wall_seconds is None:
            return limits
        return replace(limits, wall_seconds=self.wall_seconds * time_scale)


def longest_wall_seconds(cpu_seconds: float) -> float:
    """Return the default wall-time limit, in seconds, of a run with this CPU limit."""
    return limits_for(cpu_seconds, 0, 0).wall_seconds


def check_layout(files: Mapping[str, bytes]) -> None:
    """Raise DataError if files cannot be written into one folder."""
    folders: set[str] = set()
    for name, content in files.items():
        shown = f"file name {name[:100]!r}"
        if not _is_plain_path(name):
            raise DataError(
                f"{shown}: use a plain relative path in UTF-8 of at most {_MAX_NAME_BYTES} bytes, "
                "such as data/input.txt"
            )
        if not isinstance(content, bytes):
            raise DataError(
                f"{shown}: a file needs content, as bytes; its folders are made with it"
            )
        parts = name.split("/")
        # Folders that a path needs are made with the file, and count.
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    twice = folders & files.keys()
    if twice:
        raise DataError(
            f"file name {min(twice)[:100]!r}: duplicate name; "
            "use each name once, for a file or a folder"
        )
    if len(files) + len(folders) > MAX_FILES:
        raise DataError(f"{len(files) + len(folders)} files and folders; use at most {MAX_FILES}")


def _is_plain_path(name: str) -> bool:
    """Whether a name is a relative path in UTF-8 that leads into no other folder."""
    encoded = name.encode("utf-8", "ignore")
    # Lone surrogates are lost on the way.
    if encoded.decode() != name or len(encoded) > _MAX_NAME_BYTES or "\0" in name:
        return False
    return not any(part in ("", ".", "..") for part in name.split("/"))


def _show_output(output: bytes) -> str:
    return output.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Execution:
    """The result of a run without comparison."""

    failure: Outcome | None
    """Why it failed; None if it ended with exit code 0 within its limits."""
    detail: str
    """One line for a human."""
    stdout: Annotated[bytes, PlainSerializer(_show_output, str)] = b""
    """The program's stdout; as text in JSON."""
    stderr: str = ""
    """The end of the program's stderr."""
    exit_code: int | None = None
    """Exit code; None if a signal ended it, or nothing was run."""
    signal: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    memory_mib: float = 0.0
    isolation: str = ""

    @property
    def is_conclusive(self) -> bool:
        """False if the sandbox failed: nothing is known about the program."""
        return self.failure is not Outcome.SANDBOX_FAULT


def fault(message: str) -> Execution:
    """Return the record of a run that our machine could not do."""
    return Execution(Outcome.SANDBOX_FAULT, verdicts.shorten(message))


def _not_built(message: str, isolation: str) -> Execution:
    """Return the record of a program that the compiler refused."""
    return Execution(
        Outcome.COMPILE_ERROR, message, stderr=message, exit_code=1, isolation=isolation
    )


def run_invocation(
    session: Session,
    invocation: Invocation,
    time_scale: float,
) -> Execution:
    """Run a program once and return what it did.

    A broken sandbox is a `SANDBOX_FAULT`, not an exception.
    """
    language = find_language(invocation.program.language)
    executor = session.executor
    limits = invocation.limits(time_scale)
    source = Source(
        language,
        str(invocation.program.code),
        invocation.memory_limit_mib,
        has_files=bool(invocation.files),
    )
    task = Task(invocation.stdin, invocation.arguments, dict(invocation.files))
    try:
        with contextlib.ExitStack() as opened:
            loaded = executor.load(opened, source)
            if isinstance(loaded, str):
                return _not_built(loaded, executor.level)
            run = loaded.run_once(task, limits)
            # Python programs are compiled in their own process, so this is known only now.
            rejection = loaded.rejection()
    except (EvaluatorFault, OSError) as error:
        return fault(str(error))
    if rejection is not None:
        return _not_built(rejection, executor.level)
    memory_mib = invocation.memory_limit_mib + language.startup_memory_mib
    outcome = None
    detail = ""
    failure = verdicts.find_failure(run, limits, memory_mib, language.out_of_memory)
    if failure is not None:
        outcome, detail = failure
    return Execution(
        failure=outcome,
        detail=detail,
        stdout=run.stdout[: limits.output_bytes],
        stderr=run.stderr,
        exit_code=None if run.result.signal else run.result.exit_code,
        signal=run.result.signal,
        cpu_seconds=run.cpu_seconds,
        wall_seconds=run.result.wall_us / 1e6,
        memory_mib=round(run.result.memory_kib / 1024, 3),
        isolation=executor.level,
    )

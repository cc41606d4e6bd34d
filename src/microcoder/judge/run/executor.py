"""The seam between judging and running: what a program is run on, and what is seen of it.

The policy (`policy.py`) decides which test is next, when to stop and what counts. It knows nothing
of processes. An `Executor` runs programs and says what it saw. What is right, it does not know:
expected outputs never reach it. Executors here:

- `local.py`: a judge's own sandboxes, warm and shared by many programs;
- `reference.py`: a new sandbox for each program, nothing cached, shared or run again.

A sandbox of somebody else's fits behind the same seam: `examples/foreign_sandbox.py` has one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from microcoder.judge.core.types import Repeat
from microcoder.judge.languages import Language
from microcoder.judge.run.timing import Limits
from microcoder.judge.sandbox.protocol import PLAIN, Result


@dataclass(frozen=True, slots=True)
class Source:
    """A program to load."""

    language: Language
    code: str
    """What is run: an answer, a test that calls it, or a checker."""
    memory_mib: int
    """Limit on its resident memory, which some runtimes are told."""
    is_function: bool = False
    """A function of it is called."""
    beside: tuple[str, ...] = ()
    """Sources that run with it, its tests if they are programs: they may import packages too."""
    is_partner: bool = False
    """It is a test that calls a program, or an interactor, and runs beside that in a sandbox of its
    own."""
    has_files: bool = False
    """Its runs are given files, or leave some."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a program is run on once."""

    stdin: bytes = b""
    """Standard input, or a function's arguments: a JSON value a line."""
    arguments: tuple[str, ...] = ()
    """Command-line arguments, after the program's name."""
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    """Files in the program's folder, by their paths in it; None for an empty folder."""
    fn_name: str = ""
    """The function that is called; empty for a program that is run as it is."""
    call: Mapping[str, object] | None = None
    """Kinds of the function's arguments and result; None if all is plain JSON."""
    dialect: str = PLAIN
    """Environment of the program, see `Problem.dialect`."""
    int_digits: int | None = None
    """Most digits of an integer as text, 0 for no limit; None for Python's own."""
    collected: str = ""
    """A file of its folder that is read after the run, `Run.wire`; empty for none."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a program did, unjudged."""

    result: Result
    """How it ended, and what it took."""
    stdout: bytes
    stdout_bytes: int
    """Length of its stdout, of which no more is kept than a byte beyond the limit."""
    stderr: str
    """End of its stderr."""
    stderr_bytes: int
    wire: bytes | None
    """Encoded result of a function-call program, a built binary, the report of a test that is a
    program, or the file that was collected; None for any other run."""
    notes: tuple[str, ...] = ()
    """Decisions about its time while it ran, in words."""
    test: Run | None = None
    """The run of the test that called the program, where tests are programs, or of the interactor
    that it talked with."""

    @property
    def cpu_seconds(self) -> float:
        """CPU time of all its threads."""
        return self.result.cpu_us / 1e6


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a run of a test does not count."""

    reason: Repeat
    may_help: bool
    """Whether the run that took its place may be a second try.

    So it is where the program could have brought about the excuse, or may end otherwise by chance.
    """


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of a test: the run that stands, and the runs before it that do not count."""

    run: Run | None
    """None if no run of the test stands: the machine is at fault, or its company ended."""
    excuses: tuple[Excuse, ...] = ()
    notes: tuple[str, ...] = ()
    """Decisions about the time of the test, in words."""
    fault: str = ""
    """What was wrong with the machine, if no run stands for that."""


class Usage(NamedTuple):
    """What tests that share processes took together."""

    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    memory_mib: float = 0.0
    """The most that any of the processes held."""


class SharedRuns(Protocol):
    """The runs of a program's tests in processes that they share, in the order of their inputs.

    They are made as they are taken. The times of each are not known: only what all of them took.
    """

    usage: Usage
    """What all runs took together, once none is left."""

    def __iter__(self) -> Generator[Observation, None, None]:
        """Yield what is seen of each test; to stop taking them ends the process.

        One without a run is the last: the rest could not be run in company.
        """
        ...


class Executable(Protocol):
    """A program that is loaded, in an executor that can run it."""

    def run(self, task: Task, limits: Limits, *, is_final: bool = False) -> Observation:
        """Run the program once, in a process of its own.

        A run that says too little (it was killed from outside, neighbours slowed it) is repeated.
        An excuse tells of each that does not count.

        Args:
            task: what it is run on.
            limits: of the test.
            is_final: the program was doubted before: nothing may be repeated but to time it, and
                its limits are raised for the worst neighbours from the start.
        """
        ...

    def converse(
        self,
        test: Executable,
        settings: bytes,
        limits: Limits,
        test_limits: Limits,
        *,
        is_final: bool = False,
    ) -> Observation:
        """Run the program with a test that is a program, each in a process of its own.

        The test calls the program's functions (see `conversations.py`). The observation is of the
        program; its run has the test's. Repeats are as for `run`.

        Args:
            test: the test, loaded by the same executor.
            settings: what the test is told of its problem, `PreparedProblem.settings`.
            limits: of the program.
            test_limits: of the test.
            is_final: as for `run`.
        """
        ...

    def interact(
        self,
        task: Task,
        leader: Leader,
        limits: Limits,
        *,
        is_final: bool = False,
    ) -> Observation:
        """Run the program with an interactor, each in a process of its own.

        They talk over their stdin and stdout (see `interactions.py`). The observation is of the
        program; its run has the interactor's. Repeats are as for `run`.

        Args:
            task: the program's; without stdin.
            leader: the interactor, loaded by the same executor.
            limits: of the program.
            is_final: as for `run`.
        """
        ...

    def run_once(self, task: Task, limits: Limits) -> Run:
        """Run the program within limits on its time as the clock counts it: for checkers and
        builds.

        Raises:
            EvaluatorFault: the machine is at fault; nothing is known about the program.
        """
        ...

    def share(self, task: Task, inputs: Sequence[bytes], limits: Limits) -> SharedRuns | None:
        """Return the runs of a task on several inputs that share processes.

        None if this executor cannot share them.
        """
        ...

    def rejection(self) -> str | None:
        """Return the compiler's message, or None; it may be known only after a run."""
        ...


@dataclass(frozen=True, slots=True)
class Leader:
    """An interactor, ready to talk with programs about one test."""

    program: Executable
    task: Task
    """What it is run on."""
    accepts: Callable[[Run], bool]
    """Whether a run of it accepts the program, which may still fail after that."""
    limits: Limits


class Executor(Protocol):
    """Loads programs to be run."""

    packages: tuple[str, ...]
    """Third-party packages that programs may import."""

    @property
    def level(self) -> str:
        """Isolation of the program that ran last, such as `full`; empty before the first."""
        ...

    def load(self, opened: contextlib.ExitStack, source: Source) -> Executable | str:
        """Return a program ready to run, or the compiler's message.

        Args:
            opened: frees the program.
            source: of the program.

        Raises:
            EvaluatorFault: there is no compiler or interpreter, or a package is missing here.
        """
        ...

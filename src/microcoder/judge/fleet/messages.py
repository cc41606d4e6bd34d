"""What travels between our own client and the service."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from microcoder.judge.core.types import Outcome, Problem, Record, Verdict


class ProgramMessage(Record):
    """A program for one of the request's problems."""

    problem: Annotated[int, Field(ge=0)]
    """Position of its problem in `problems`."""
    code: str | None
    """The source; null if the response held none."""
    reason: str = ""
    """Why there is none."""


class JudgeRequest(Record):
    """Programs to judge; a problem that several programs answer is sent once."""

    problems: Annotated[tuple[Problem, ...], Field(min_length=1)]
    programs: Annotated[tuple[ProgramMessage, ...], Field(min_length=1)]


class JudgeResponse(Record):
    """One verdict per program, in the order of the request."""

    verdicts: tuple[Verdict, ...]
    """`sandbox_fault` says nothing about its program: do not score it."""


class Landed(Record):
    """A line of `/v1/judge/stream`: a verdict, as soon as it is known."""

    index: Annotated[int, Field(ge=0)]
    """Position of its program in the request."""
    verdict: Verdict
    """`sandbox_fault` says nothing about its program: do not score it."""


class Load(Record):
    """A line of `/v1/judge/stream`: the first, and one whenever ten seconds had none. The service is at work."""

    workers: int
    queued: int
    """Programs on their way here, of all clients."""


class Failure(Record):
    """A line of `/v1/judge/stream`: the last one, where programs are left without a verdict, and why."""

    status: int
    """What would have been the answer's status: 503 and 504 may be sent again."""
    detail: str
    retry_after_seconds: float | None = None


class RunRequest(Record):
    """A program to run without judging it."""

    code: str
    language: str = "python"
    stdin: str = ""
    arguments: tuple[str, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)
    """Text by relative path."""
    time_limit_seconds: float | None = Field(default=None, gt=0)
    """CPU seconds; by default 10, or the service's maximum if that is less."""
    memory_limit_mib: int | None = Field(default=None, ge=1)
    """By default 512, or the service's maximum if that is less."""


class RunResponse(Record):
    """What the program did."""

    failure: Outcome | None
    """Why it failed; null if it ended by itself with exit code 0, within its limits."""
    detail: str
    stdout: str
    stderr: str
    """The end of it."""
    exit_code: int | None
    signal: int
    cpu_seconds: float
    wall_seconds: float
    memory_mib: float
    isolation: str


class About(Record):
    """What this service is and takes."""

    version: str
    isolation: dict[str, Any]
    environment: dict[str, Any]
    """The Python that programs run on, and the packages that they may import."""
    languages: tuple[str, ...]
    workers: int
    time_scale: float
    """What time limits are multiplied by here."""
    stop: str
    """When a program's remaining tests are left out."""
    limits: dict[str, float]

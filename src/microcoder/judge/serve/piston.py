"""Piston's routes, for clients written for it, such as open-r1's.

Differences a client may meet: time is CPU time (the clock is a backstop); compilers keep their own limits; one source
file; stderr is the end of it. The graded requests of open-r1's `codeforces` package are refused: `/v1/judge` judges.
"""

from __future__ import annotations

import base64
import binascii
import platform
import re
import signal
from collections.abc import Sequence
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from microcoder.judge import Execution, Invocation
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import LANGUAGES, Language, find_language
from microcoder.judge.run.executions import check_layout
from microcoder.judge.serve.api import lay_out
from microcoder.judge.serve.reading import ReadRoute
from microcoder.judge.serve.refusals import Refused
from microcoder.judge.serve.sandbox_fusion import Dialect
from microcoder.judge.serve.service import Service

_GRADER = "grader_config"
_DEFAULT_SECONDS = 10.0
_DEFAULT_MEMORY_MIB = 1024
_EXTRA_SECONDS = 5.0
_BUILT_VERSION = "1.0.0"
_ALIASES = {
    "python": ("python3", "py"),
    "cpp": ("c++", "g++", *(f"c++{year}" for year in (11, 14, 17, 20))),
}
_MORE_SOURCE = re.compile(r"\.(c|cc|cpp|cxx|h|hpp)$")
_STATUS = {
    Outcome.TIME_LIMIT: "TO",
    Outcome.OUTPUT_LIMIT: "OL",
    Outcome.MEMORY_LIMIT: "SG",
    Outcome.RUNTIME_ERROR: "RE",
    Outcome.PROCESS_LIMIT: "RE",
    Outcome.COMPILE_ERROR: "RE",
}


class File(Dialect):
    """A file of a request."""

    name: str | None = None
    content: str
    encoding: Literal["utf8", "base64", "hex"] = "utf8"

    def decode(self) -> bytes:
        """Return its bytes."""
        try:
            if self.encoding == "base64":
                return base64.b64decode(self.content, validate=True)
            return (
                bytes.fromhex(self.content) if self.encoding == "hex" else self.content.encode("utf-8", "surrogatepass")
            )
        except (binascii.Error, ValueError):
            raise Refused(400, f"files: {str(self.name)[:100]!r} is not {self.encoding}") from None


class ExecuteRequest(Dialect):
    """A program to run: the first file; the others lie beside it. Times are milliseconds, memory is bytes."""

    language: str
    version: str
    files: tuple[File, ...] = Field(min_length=1)
    stdin: str | None = None
    args: tuple[str, ...] = ()
    run_timeout: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    run_cpu_time: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    run_memory_limit: float | None = Field(default=None, allow_inf_nan=False)


class Stage(BaseModel):
    """How the compiler or the program ended."""

    stdout: str = ""
    stderr: str = ""
    output: str = ""
    code: int | None = None
    signal: str | None = None
    message: str | None = None
    status: str | None = None
    cpu_time: float | None = None
    wall_time: float | None = None
    memory: int | None = None


def build_router(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=ReadRoute, prefix="/api/v2", tags=["Piston"])

    @router.get("/runtimes")
    async def runtimes() -> list[dict[str, Any]]:
        """List the languages."""
        return [
            {
                "language": name,
                "version": _version_of(language),
                "aliases": [*language.aliases, *_ALIASES.get(name, ())],
            }
            for name, language in LANGUAGES.items()
            if not language.find_problem()
        ]

    @router.post("/execute", response_model_exclude_none=False)
    async def execute(request: ExecuteRequest) -> dict[str, Any]:
        """Run a program and return what it printed."""
        language = _find(request.language, request.version)
        run, compiled = await _run(service, request, language)
        answer = {"language": language.name, "version": _version_of(language), "run": run.model_dump()}
        return answer if compiled is None else answer | {"compile": compiled.model_dump()}

    return router


async def _run(service: Service, request: ExecuteRequest, language: Language) -> tuple[Stage, Stage | None]:
    source = next((file for file in request.files if file.encoding == "utf8"), None)
    if source is None:
        raise Refused(400, "files must include at least one utf8 encoded file")
    others = [file for file in request.files if file is not source]
    if any(not file.name for file in others):
        raise Refused(400, "files: each file besides the first needs a name")
    _check_names([file.name for file in request.files if file.name])
    files = {str(file.name): file.decode() for file in others}
    wall_seconds = _seconds(request.run_timeout, service.default_seconds(_DEFAULT_SECONDS))
    longest = service.settings.max_wall_seconds
    if wall_seconds > longest:
        raise Refused(400, f"run_timeout: {request.run_timeout:g} ms; use at most {1000 * longest:g}")
    cpu_seconds = _seconds(request.run_cpu_time, wall_seconds)
    memory_mib = service.default_memory_mib(_DEFAULT_MEMORY_MIB)
    if request.run_memory_limit is not None and request.run_memory_limit > 0:
        memory_mib = max(1, int(request.run_memory_limit) >> 20)
    program = Program(source.content, language.name)
    if _GRADER in files:
        raise Refused(400, f"files: {_GRADER}: programs are only run here; send them with their tests to /v1/judge")
    if language.is_built and any(_MORE_SOURCE.search(name) for name in files):
        raise Refused(400, f"files: a {language.name} program is one file here")
    execution = await service.run(
        Invocation(
            program,
            (request.stdin or "").encode("utf-8", "surrogatepass"),
            request.args,
            lay_out(files),
            cpu_seconds=cpu_seconds,
            wall_seconds=min(wall_seconds + _EXTRA_SECONDS, longest),
            memory_limit_mib=memory_mib,
        ),
    )
    stage = _describe(execution)
    if not language.is_built:
        return stage, None
    if execution.failure is Outcome.COMPILE_ERROR:
        return stage, stage
    return stage, Stage(code=0)


def _check_names(names: Sequence[str]) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Refused(400, f"files: {twice[:100]!r} is there twice; give each file a name of its own")
    check_layout(lay_out(dict.fromkeys(names, b"")))


def _describe(execution: Execution) -> Stage:
    if not execution.is_conclusive:
        raise Refused(500, f"the sandbox failed: {execution.detail}")
    stdout = execution.stdout.decode("utf-8", "replace")
    number = execution.signal
    if execution.failure in (Outcome.TIME_LIMIT, Outcome.OUTPUT_LIMIT) or (
        execution.failure is Outcome.MEMORY_LIMIT and not execution.exit_code
    ):
        number = signal.SIGKILL
    return Stage(
        stdout=stdout,
        stderr=execution.stderr,
        output=stdout + execution.stderr,
        code=None if number else execution.exit_code,
        signal=_name_of(number) if number else None,
        message=execution.detail or None,
        status=_STATUS[execution.failure] if execution.failure else None,
        cpu_time=round(1000 * execution.cpu_seconds, 3),
        wall_time=round(1000 * execution.wall_seconds, 3),
        memory=int(execution.memory_mib * (1 << 20)),
    )


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _find(name: str, version: str) -> Language:
    lowered = name.lower()
    known = next((language for language, aliases in _ALIASES.items() if lowered in aliases), lowered)
    try:
        language = find_language(known)
    except DataError:
        raise Refused(400, f"{name[:50]}-{version[:50]} runtime is unknown; see /api/v2/runtimes") from None
    if language.find_problem() or not _matches(version, _version_of(language)):
        raise Refused(400, f"{name[:50]}-{version[:50]} runtime is unknown; see /api/v2/runtimes")
    return language


def _matches(wanted: str, version: str) -> bool:
    """Whether a version is wanted: `*`, `3`, `3.x`, `3.11.2`; a leading ^, ~, = or >= is taken as that series."""
    parts = wanted.strip().lstrip("^~=>v ").split(".")
    mine = version.split(".")
    return len(parts) <= len(mine) and all(part in ("*", "x", "X", own) for part, own in zip(parts, mine, strict=False))


def _version_of(language: Language) -> str:
    return _BUILT_VERSION if language.is_built else platform.python_version()


def _seconds(milliseconds: float | None, default: float) -> float:
    return milliseconds / 1000 if milliseconds else default

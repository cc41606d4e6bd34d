"""Routes of other services, for clients written for them: SandboxFusion's (verl) and Piston's (open-r1).

Differences that a client may meet: time is CPU time, and the clock a backstop; only the languages of this judge, whose
compilers keep their own limits; a built program is one source file; stderr is the end of it; no files are fetched.
Graded requests of open-r1's `codeforces` package are refused: `/v1/judge` judges.
"""

from __future__ import annotations

import base64
import platform
import re
import signal
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from microcoder.judge import Execution, Invocation
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import LANGUAGES, Language, find_language
from microcoder.judge.run.executions import check_layout
from microcoder.judge.serve.api import lay_out
from microcoder.judge.serve.reading import ReadRoute, Refused
from microcoder.judge.serve.service import Service

_DEFAULT_SECONDS, _DEFAULT_MEMORY_MIB = 10.0, 1024
_EXTRA_SECONDS = 5.0
"""Of the clock beyond the CPU limit: half of what verl waits for beyond the two time-outs that it sends."""
_GRADER = "grader_config"
_BUILT_VERSION = "1.0.0"
_PISTON_NAMES = {
    "python": ("python3", "py"),
    "cpp": ("c++", "g++", *(f"c++{year}" for year in (11, 14, 17, 20))),
}
_MORE_SOURCE = re.compile(r"\.(c|cc|cpp|cxx|h|hpp)$")
_PISTON_STATUS = {
    Outcome.TIME_LIMIT: "TO",
    Outcome.OUTPUT_LIMIT: "OL",
    Outcome.MEMORY_LIMIT: "SG",
    Outcome.RUNTIME_ERROR: "RE",
    Outcome.PROCESS_LIMIT: "RE",
    Outcome.COMPILE_ERROR: "RE",
}


class Dialect(BaseModel):
    """A message of another service: what we do not know in it is not ours to refuse."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RunCodeRequest(Dialect):
    """SandboxFusion: a program to run."""

    code: str
    language: str
    stdin: str | None = None
    compile_timeout: float = Field(default=10.0, ge=0, le=3600)
    run_timeout: float | None = Field(default=None, gt=0, le=3600)
    memory_limit_MB: int = -1
    files: dict[str, str | None] = Field(default_factory=dict)
    fetch_files: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class File(Dialect):
    """A file of Piston's request."""

    name: str | None = None
    content: str
    encoding: Literal["utf8", "base64", "hex"] = "utf8"

    def decode(self) -> bytes:
        """Return its bytes."""
        try:
            if self.encoding == "base64":
                return base64.b64decode(self.content, validate=True)
            return bytes.fromhex(self.content) if self.encoding == "hex" else _encode(self.content)
        except ValueError:
            raise Refused(400, f"files: {str(self.name)[:100]!r} is not {self.encoding}") from None


class ExecuteRequest(Dialect):
    """Piston: a program to run, its first file; the others lie beside it. Times are milliseconds, memory is bytes."""

    language: str
    version: str
    files: tuple[File, ...] = Field(min_length=1)
    stdin: str | None = None
    args: tuple[str, ...] = ()
    run_timeout: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    run_cpu_time: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    run_memory_limit: float | None = Field(default=None, allow_inf_nan=False)


def build_router(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=ReadRoute)

    @router.post("/run_code", tags=["SandboxFusion"])
    async def run_code(request: RunCodeRequest) -> dict[str, Any]:
        """Run a program and return what it printed."""
        if request.fetch_files:
            raise Refused(422, "fetch_files: files of a program cannot be fetched here; have it print them")
        language = find_language(request.language)
        run_seconds = request.run_timeout or service.default_seconds(_DEFAULT_SECONDS)
        memory_mib = request.memory_limit_MB
        if memory_mib <= 0:
            memory_mib = service.default_memory_mib(_DEFAULT_MEMORY_MIB)
        try:
            files = {
                name: base64.b64decode(text, validate=True) for name, text in request.files.items() if text is not None
            }
        except ValueError:
            raise Refused(422, "files: the content of each must be base64") from None
        execution = await service.run(
            Invocation(
                Program(request.code, language.name),
                _encode(request.stdin or ""),
                request.args,
                lay_out(files),
                cpu_seconds=run_seconds,
                wall_seconds=min(run_seconds + _EXTRA_SECONDS, service.settings.max_wall_seconds),
                memory_limit_mib=memory_mib,
            ),
            # Its client waits as long; what is answered 504 it sends again.
            patience_seconds=request.compile_timeout + run_seconds + _EXTRA_SECONDS,
        )
        return _describe_run(execution, is_built=language.is_built)

    @router.get("/v1/ping", tags=["SandboxFusion"])
    async def ping() -> str:
        """Answer."""
        return "pong"

    @router.get("/api/v2/runtimes", tags=["Piston"])
    async def runtimes() -> list[dict[str, Any]]:
        """List the languages."""
        return [
            {
                "language": name,
                "version": _version_of(language),
                "aliases": [*language.aliases, *_PISTON_NAMES.get(name, ())],
            }
            for name, language in LANGUAGES.items()
            if not language.find_problem()
        ]

    @router.post("/api/v2/execute", tags=["Piston"])
    async def execute(request: ExecuteRequest) -> dict[str, Any]:
        """Run a program and return what it printed."""
        language = _find_runtime(request.language, request.version)
        execution = await service.run(_read_invocation(request, language, service))
        stage = _describe_stage(execution)
        answer = {"language": language.name, "version": _version_of(language), "run": stage}
        if language.is_built:
            built = {"stdout": "", "stderr": "", "output": "", "code": 0, "signal": None}
            answer["compile"] = stage if execution.failure is Outcome.COMPILE_ERROR else built
        return answer

    return router


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _describe_run(execution: Execution, *, is_built: bool) -> dict[str, Any]:
    """Return what a run showed in SandboxFusion's words."""
    answer: dict[str, Any] = {"message": "", "compile_result": None, "run_result": None, "files": {}}
    if not execution.is_conclusive:
        return answer | {"status": "SandboxError", "message": execution.detail}
    ended = {"status": "Finished", "execution_time": None, "return_code": 0, "stdout": "", "stderr": ""}
    if execution.failure is Outcome.COMPILE_ERROR and is_built:
        failed = ended | {"return_code": 1, "stderr": execution.stderr}
        return answer | {"status": "Failed", "compile_result": failed}
    is_late = execution.failure is Outcome.TIME_LIMIT
    return_code = -execution.signal if execution.exit_code is None else execution.exit_code
    if execution.failure and not return_code:
        return_code = -signal.SIGKILL
    return answer | {
        "status": "Failed" if execution.failure else "Success",
        "compile_result": ended if is_built else None,
        "run_result": {
            "status": "TimeLimitExceeded" if is_late else "Finished",
            "execution_time": execution.wall_seconds,
            "return_code": None if is_late else return_code,
            "stdout": execution.stdout.decode("utf-8", "replace"),
            "stderr": execution.stderr,
        },
    }


def _find_runtime(name: str, version: str) -> Language:
    """Return the language of a Piston request; a version such as 3, 3.x or ^3.11 means any of that series."""
    lowered = name.lower()
    known = next((language for language, names in _PISTON_NAMES.items() if lowered in names), lowered)
    wanted = version.strip().lstrip("^~=>v ").split(".")
    try:
        language = find_language(known)
        mine = _version_of(language).split(".")
        is_here = len(wanted) <= len(mine) and all(
            part in ("*", "x", "X", own) for part, own in zip(wanted, mine, strict=False)
        )
        if is_here and not language.find_problem():
            return language
    except DataError:
        pass
    raise Refused(400, f"{name[:50]}-{version[:50]} runtime is unknown; see /api/v2/runtimes")


def _version_of(language: Language) -> str:
    return _BUILT_VERSION if language.is_built else platform.python_version()


def _read_invocation(request: ExecuteRequest, language: Language, service: Service) -> Invocation:
    source = next((file for file in request.files if file.encoding == "utf8"), None)
    if source is None:
        raise Refused(400, "files must include at least one utf8 encoded file")
    others = [file for file in request.files if file is not source]
    names = [file.name for file in request.files if file.name]
    if any(not file.name for file in others):
        raise Refused(400, "files: each file besides the first needs a name")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Refused(400, f"files: {twice[:100]!r} is there twice; give each file a name of its own")
    check_layout(lay_out(dict.fromkeys(names, b"")))
    files = {str(file.name): file.decode() for file in others}
    if _GRADER in files:
        raise Refused(400, f"files: {_GRADER}: programs are only run here; send them with their tests to /v1/judge")
    if language.is_built and any(_MORE_SOURCE.search(name) for name in files):
        raise Refused(400, f"files: a {language.name} program is one file here")
    longest = service.settings.max_wall_seconds
    wall_seconds = (request.run_timeout or 0) / 1000 or service.default_seconds(_DEFAULT_SECONDS)
    if wall_seconds > longest:
        raise Refused(400, f"run_timeout: {request.run_timeout:g} ms; use at most {1000 * longest:g}")
    memory_mib = service.default_memory_mib(_DEFAULT_MEMORY_MIB)
    if request.run_memory_limit is not None and request.run_memory_limit > 0:
        memory_mib = max(1, int(request.run_memory_limit) >> 20)
    return Invocation(
        Program(source.content, language.name),
        _encode(request.stdin or ""),
        request.args,
        lay_out(files),
        cpu_seconds=(request.run_cpu_time or 0) / 1000 or wall_seconds,
        wall_seconds=min(wall_seconds + _EXTRA_SECONDS, longest),
        memory_limit_mib=memory_mib,
    )


def _describe_stage(execution: Execution) -> dict[str, Any]:
    """Return what a run showed in Piston's words."""
    if not execution.is_conclusive:
        raise Refused(500, f"the sandbox failed: {execution.detail}")
    stdout, number = execution.stdout.decode("utf-8", "replace"), execution.signal
    if execution.failure in (Outcome.TIME_LIMIT, Outcome.OUTPUT_LIMIT) or (
        execution.failure is Outcome.MEMORY_LIMIT and not execution.exit_code
    ):
        number = signal.SIGKILL
    known = {one.value: one.name for one in signal.Signals}
    return {
        "stdout": stdout,
        "stderr": execution.stderr,
        "output": stdout + execution.stderr,
        "code": None if number else execution.exit_code,
        "signal": known.get(number, f"SIG{number}") if number else None,
        "message": execution.detail or None,
        "status": _PISTON_STATUS[execution.failure] if execution.failure else None,
        "cpu_time": round(1000 * execution.cpu_seconds, 3),
        "wall_time": round(1000 * execution.wall_seconds, 3),
        "memory": int(execution.memory_mib * (1 << 20)),
    }

"""Routes of SandboxFusion, for clients written for it, such as verl's reward.

Differences that a client may meet: time is CPU time, and the clock a backstop; only the languages of this judge, whose
compilers keep their own limits; a built program is one source file; stderr is the end of it; no files are fetched.
"""

from __future__ import annotations

import base64
import signal
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from microcoder.judge import Execution, Invocation
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.languages import find_language
from microcoder.judge.run.executions import longest_wall_seconds
from microcoder.judge.serve.api import lay_out
from microcoder.judge.serve.reading import ReadRoute, Refused
from microcoder.judge.serve.service import Service

_DEFAULT_SECONDS, _DEFAULT_MEMORY_MIB = 10.0, 1024
_EXTRA_SECONDS = 5.0
"""Wall time allowed beyond the CPU limit: half of what verl waits beyond the two time-outs that it sends."""


class RunCodeRequest(BaseModel):
    """SandboxFusion: a program to run; what we do not know in it is not ours to refuse."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    code: str
    language: str
    stdin: str | None = None
    compile_timeout: float = Field(default=10.0, ge=0, le=3600)
    run_timeout: float | None = Field(default=None, gt=0, le=3600)
    memory_limit_MB: int = -1
    files: dict[str, str | None] = Field(default_factory=dict)
    fetch_files: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


def build_router(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=ReadRoute)

    @router.post("/run_code", tags=["SandboxFusion"])
    async def run_code(request: RunCodeRequest) -> dict[str, Any]:
        """Run a program and return what it printed."""
        if request.fetch_files:
            raise Refused(422, "fetch_files: files of a program cannot be fetched here; have it print them")
        language = find_language(request.language)
        run_seconds = request.run_timeout or min(_DEFAULT_SECONDS, service.settings.max_cpu_seconds)
        memory_mib = request.memory_limit_MB
        if memory_mib <= 0:
            memory_mib = min(_DEFAULT_MEMORY_MIB, service.settings.max_memory_mib)
        try:
            files = {
                name: base64.b64decode(text, validate=True) for name, text in request.files.items() if text is not None
            }
        except ValueError:
            raise Refused(422, "files: the content of each must be base64") from None
        execution = await service.run(
            Invocation(
                Program(request.code, language.name),
                (request.stdin or "").encode("utf-8", "surrogatepass"),
                request.args,
                lay_out(files),
                cpu_seconds=run_seconds,
                wall_seconds=min(run_seconds + _EXTRA_SECONDS, longest_wall_seconds(service.settings.max_cpu_seconds)),
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

    return router


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

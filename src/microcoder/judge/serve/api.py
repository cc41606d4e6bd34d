"""Our own routes: judge, run, and what an orchestrator asks for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

import microcoder
from microcoder.judge import Invocation
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet.messages import (
    About,
    Failure,
    JudgeRequest,
    JudgeResponse,
    Landed,
    Load,
    RunRequest,
    RunResponse,
)
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.serve.reading import ReadRoute, Refused, refusal_of
from microcoder.judge.serve.service import Service

_JSON, _LINES, _PROMETHEUS = "application/json", "application/x-ndjson", "text/plain; version=0.0.4; charset=utf-8"
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"model": Landed | Load | Failure, "description": "One of these a line", "content": {_LINES: {}}}
}
_DEFAULT_SECONDS, _DEFAULT_MEMORY_MIB = 10.0, 512
"""Default limits of `/v1/run`, where the service allows that much."""


def lay_out(files: dict[str, bytes]) -> dict[str, bytes | None]:
    """Return files with the folders that they are in, each before what it holds."""
    laid: dict[str, bytes | None] = {}
    for name, content in files.items():
        parts = name.split("/")
        for depth in range(1, len(parts)):
            laid.setdefault("/".join(parts[:depth]) + "/", None)
        laid[name] = content
    return laid


def _pair(request: JudgeRequest) -> tuple[list[Program], list[Problem]]:
    """Return a request's programs and, for each, its problem."""
    num_problems = len(request.problems)
    for number, program in enumerate(request.programs):
        if program.problem >= num_problems:
            raise Refused(422, f"program {number} names problem {program.problem} of {num_problems}; count from 0")
    if unnamed := set(range(num_problems)) - {program.problem for program in request.programs}:
        raise Refused(422, f"problem {min(unnamed)} is named by no program; leave it out")
    problems = [request.problems[program.problem] for program in request.programs]
    programs = [
        Program(message.code, problem.language, message.reason)
        for message, problem in zip(request.programs, problems, strict=True)
    ]
    return programs, problems


async def _write_lines(service: Service, landing: AsyncGenerator[tuple[int, Verdict] | None]) -> AsyncGenerator[str]:
    """Write what lands; a failure is the last line, since the status has gone out."""
    try:
        yield service.load.model_dump_json() + "\n"
        async for landed in landing:
            line = service.load if landed is None else Landed.model_construct(index=landed[0], verdict=landed[1])
            yield line.model_dump_json() + "\n"
    except Exception as error:
        refused = refusal_of(error)
        failure = Failure(
            status=refused.status, detail=refused.message, retry_after_seconds=refused.retry_after_seconds
        )
        yield failure.model_dump_json() + "\n"
    finally:
        await landing.aclose()


def build_router(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=ReadRoute)

    @router.post("/v1/judge", response_model=JudgeResponse, tags=["judge"])
    async def judge(request: JudgeRequest) -> Response:
        """Judge programs; answers when all are judged."""
        verdicts = await service.judge_all(*_pair(request))
        answer = JudgeResponse.model_construct(verdicts=tuple(verdicts))
        return Response(answer.model_dump_json(), media_type=_JSON)

    @router.post("/v1/judge/stream", response_class=StreamingResponse, responses=_STREAM, tags=["judge"])
    async def judge_stream(request: JudgeRequest) -> Response:
        """Judge programs; answers with a line of JSON for each as soon as it is judged, in any order."""
        landing = service.judge_each(*_pair(request))
        # Refused here, while there still is a status for it.
        await anext(landing)
        return StreamingResponse(_write_lines(service, landing), media_type=_LINES)

    @router.post("/v1/run", tags=["judge"])
    async def run(request: RunRequest) -> RunResponse:
        """Run one program and return what it printed."""
        execution = await service.run(
            Invocation(
                Program(request.code, request.language),
                request.stdin.encode("utf-8", "surrogatepass"),
                request.arguments,
                lay_out({name: text.encode("utf-8", "surrogatepass") for name, text in request.files.items()}),
                cpu_seconds=request.time_limit_seconds or min(_DEFAULT_SECONDS, service.settings.max_cpu_seconds),
                memory_limit_mib=request.memory_limit_mib or min(_DEFAULT_MEMORY_MIB, service.settings.max_memory_mib),
            ),
        )
        return RunResponse.model_validate(asdict(execution) | {"stdout": execution.stdout.decode("utf-8", "replace")})

    @router.get("/v1/about", tags=["service"])
    async def about() -> About:
        """Say what this service is and takes."""
        return About(
            version=microcoder.__version__,
            isolation=service.judge.isolation.as_record(),
            environment=service.judge.environment.as_record(),
            languages=tuple(name for name, language in LANGUAGES.items() if not language.find_problem()),
            workers=service.judge.workers,
            time_scale=service.judge.time_scale,
            stop=service.judge.stop,
            limits=service.settings.model_dump(),
        )

    @router.get("/healthz", tags=["service"])
    async def healthz() -> dict[str, str]:
        """Liveness: 503 if this process should be replaced."""
        if trouble := service.find_failure():
            raise Refused(503, trouble)
        return {"status": "ok"}

    @router.get("/readyz", tags=["service"])
    async def readyz() -> dict[str, str]:
        """Readiness: 503 if nothing should be sent now."""
        if reason := service.find_reason_to_wait():
            raise Refused(503, reason, retry_after_seconds=1)
        return {"status": "ok"}

    @router.get("/metrics", tags=["service"])
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(service.metrics.render(), media_type=_PROMETHEUS)

    return router

"""The FastAPI application: routes for judging, service info, health and metrics.

Those in the form of SandboxFusion are in `sandbox_fusion.py`.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic import ValidationError

import microcoder
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet.remote import (
    About,
    Failure,
    JudgeRequest,
    JudgeResponse,
    Load,
    VerdictLine,
)
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.serve.sandbox_fusion import make_router
from microcoder.judge.serve.service import Refused, Service, explain, refusal_of

_JSON = "application/json"
"""Media type of an answer that is one value."""
_LINES = "application/x-ndjson"
"""Media type of an answer that is a value a line."""
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of the page that Prometheus reads."""
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "model": VerdictLine | Load | Failure,
        "description": "One of these a line",
        "content": {_LINES: {}},
    }
}
_LOG = logging.getLogger(__name__)


def _pair(request: JudgeRequest) -> tuple[list[Program], list[Problem]]:
    """Return a request's programs and, for each, its problem; raises Refused."""
    num_problems = len(request.problems)
    for number, program in enumerate(request.programs):
        if program.problem >= num_problems:
            raise Refused(
                422,
                f"program {number} names problem {program.problem} of {num_problems}; count from 0",
            )
    named = {program.problem for program in request.programs}
    unnamed = set(range(num_problems)) - named
    if unnamed:
        raise Refused(422, f"problem {min(unnamed)} is named by no program; leave it out")
    programs: list[Program] = []
    problems: list[Problem] = []
    for message in request.programs:
        problem = request.problems[message.problem]
        programs.append(Program(message.code, problem.language, message.reason))
        problems.append(problem)
    return programs, problems


async def _write_lines(
    service: Service, landing: AsyncGenerator[tuple[int, Verdict] | None]
) -> AsyncGenerator[str]:
    """Yield a line of JSON for each verdict or load.

    A failure is the last line, since the status was sent before.
    """
    try:
        yield service.load.model_dump_json() + "\n"
        async for landed in landing:
            line: Load | VerdictLine = service.load
            if landed is not None:
                index, verdict = landed
                line = VerdictLine.model_construct(index=index, verdict=verdict)
            yield line.model_dump_json() + "\n"
    except Exception as error:
        refused = refusal_of(error)
        failure = Failure(
            status=refused.status_code,
            detail=refused.detail,
            retry_after_seconds=refused.retry_after_seconds,
        )
        yield failure.model_dump_json() + "\n"
    finally:
        # Also when the client goes: its programs are withdrawn.
        await landing.aclose()


def _add_routes(app: FastAPI, service: Service) -> None:
    @app.post("/v1/judge", response_model=JudgeResponse, tags=["judge"])
    async def judge(request: JudgeRequest) -> Response:
        """Judge programs; answers when all are judged."""
        # All at once, so that a failure still has a status of its own.
        verdicts = await service.judge_all(*_pair(request))
        answer = JudgeResponse.model_construct(verdicts=tuple(verdicts))
        return Response(answer.model_dump_json(), media_type=_JSON)

    @app.post(
        "/v1/judge/stream",
        response_class=StreamingResponse,
        responses=_STREAM,
        tags=["judge"],
    )
    async def judge_stream(request: JudgeRequest) -> Response:
        """Judge programs; answers with a line of JSON for each as soon as it is judged, in any
        order."""
        landing = service.judge_each(*_pair(request))
        # Refused here, while there still is a status for it.
        await anext(landing)
        return StreamingResponse(_write_lines(service, landing), media_type=_LINES)

    @app.get("/v1/about", tags=["service"])
    async def about() -> About:
        """Return the service's version, environment, workers and limits."""
        languages = []
        for name, language in LANGUAGES.items():
            if not language.find_problem():
                languages.append(name)
        return About(
            version=microcoder.__version__,
            isolation=service.judge.isolation.as_record(),
            environment=service.judge.environment.as_record(),
            languages=tuple(languages),
            workers=service.judge.workers,
            time_scale=service.judge.time_scale,
            stop=service.judge.stop,
            limits=service.settings.model_dump(),
        )

    @app.get("/healthz", tags=["service"])
    async def healthz() -> dict[str, str]:
        """Liveness: 503 if this process should be replaced."""
        trouble = service.find_failure()
        if trouble:
            raise Refused(503, trouble)
        return {"status": "ok"}

    @app.get("/readyz", tags=["service"])
    async def readyz() -> dict[str, str]:
        """Readiness: 503 if nothing should be sent now."""
        reason = service.find_reason_to_wait()
        if reason:
            raise Refused(503, reason, retry_after_seconds=1)
        return {"status": "ok"}

    @app.get("/metrics", tags=["service"])
    async def metrics() -> Response:
        """Counters in the text format of Prometheus."""
        return Response(service.metrics.render(), media_type=_PROMETHEUS)


class _JudgeBody(Request):
    """A request whose body is read into its model at once, with no dicts and lists in between."""

    async def json(self) -> JudgeRequest:
        """Return the body as what the routes that have one take."""
        content = await self.body()
        # Starlette keeps the body otherwise, as long as the request is answered.
        self._body = b""
        try:
            return JudgeRequest.model_validate_json(content)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
            # FastAPI puts words of its own in the place of any other exception.
            raise Refused(422, explain(faults)) from None


class _ReadRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the coroutine function that answers a request."""
        handle = super().get_route_handler()

        async def read_and_handle(request: Request) -> Response:
            return await handle(_JudgeBody(request.scope, request.receive))

        return read_and_handle


def build_app(service: Service) -> FastAPI:
    """Return the application, without any check of tokens or sizes: see `Guard`."""
    app = FastAPI(
        title="MicroCoder judge",
        summary="Judges untrusted programs against tests, in a sandbox.",
        version=microcoder.__version__,
        docs_url=None,
        redoc_url=None,
    )
    app.router.route_class = _ReadRoute
    _add_routes(app, service)
    app.include_router(make_router(service))
    for kind in (Exception, DataError, EvaluatorFault, RequestValidationError):
        app.add_exception_handler(kind, _answer_error)
    return app


async def _answer_error(request: Request, error: Exception) -> Response:
    refused = refusal_of(error)
    if refused.status_code == 500:
        _LOG.error("%s failed", request.url.path, exc_info=error)
    return await http_exception_handler(request, refused)

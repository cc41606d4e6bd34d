"""SandboxFusion's routes, for clients written for it, such as verl's `reward.sandbox_fusion.url`.

Differences a client may meet: time is CPU time (the clock is a backstop); only the languages of this evaluator; no
files to fetch. A request that waited as long as its client does is answered 504, which such clients send again.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from microcoder.judge import Execution, Invocation
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, TestResult, Verdict
from microcoder.judge.languages import find_language
from microcoder.judge.serve.api import lay_out
from microcoder.judge.serve.reading import ReadRoute, ValueCounter
from microcoder.judge.serve.refusals import Refused
from microcoder.judge.serve.service import Service

_CLIENT_EXTRA_SECONDS = 10.0
"""What verl waits for beyond the two time-outs it sends; half of it is left for the way back."""
_DEFAULT_SECONDS, _DEFAULT_MEMORY_MIB = 10.0, 1024
_SUBMIT_SECONDS = {True: 10.0, False: 20.0}
"""Run time of `/submit` if none is given: of built languages, and of the others."""
_SIGKILL = 9


class Dialect(BaseModel):
    """A message of another service: what we do not know in it is not ours to refuse."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RunCodeRequest(Dialect):
    """A program to run."""

    code: str
    language: str
    stdin: str | None = None
    compile_timeout: float = Field(default=10.0, ge=0, le=3600)
    run_timeout: float | None = Field(default=None, gt=0, le=3600)
    memory_limit_MB: int = -1
    files: dict[str, str | None] = Field(default_factory=dict)
    fetch_files: tuple[str, ...] = ()
    args: tuple[str, ...] = ()


class CommandRunResult(BaseModel):
    """How the compiler or the program ended."""

    status: Literal["Finished", "Error", "TimeLimitExceeded"]
    execution_time: float | None = None
    return_code: int | None = None
    stdout: str | None = None
    stderr: str | None = None


class RunCodeResponse(BaseModel):
    """What a program did."""

    status: Literal["Success", "Failed", "SandboxError"]
    message: str = ""
    compile_result: CommandRunResult | None = None
    run_result: CommandRunResult | None = None
    executor_pod_name: str | None = None
    files: dict[str, str] = Field(default_factory=dict)


class StdioTest(Dialect):
    """A test of `/submit`."""

    input: dict[str, str]
    output: dict[str, str]


class SubmitConfig(Dialect):
    """How `/submit` is to judge."""

    dataset_type: str | None = None
    language: str | None = None
    run_timeout: float | None = Field(default=None, gt=0, le=3600)
    provided_data: dict[str, Any] | None = None
    custom_extract_logic: str | None = None
    extra: dict[str, Any] = Field(default_factory=dict)


class SubmitRequest(Dialect):
    """A response to one problem, whose tests come with it."""

    dataset: str = ""
    id: int | str
    completion: str
    config: SubmitConfig


class EvalTestCase(BaseModel):
    """How one test ended."""

    passed: bool
    exec_info: RunCodeResponse
    test_info: dict[str, Any] | None = None


class EvalResult(BaseModel):
    """How a response was judged."""

    id: int | str
    accepted: bool
    extracted_code: str
    full_code: str | None = None
    test_code: str | None = None
    tests: list[EvalTestCase]
    extracted_type: str | None = None
    extra: dict[str, Any] | None = None


def build_router(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=ReadRoute, tags=["SandboxFusion"])

    @router.post("/run_code")
    async def run_code(request: RunCodeRequest) -> RunCodeResponse:
        """Run a program and return what it printed."""
        if request.fetch_files:
            raise Refused(422, "fetch_files: files of a program cannot be fetched here; have it print them")
        run_seconds = request.run_timeout or service.default_seconds(_DEFAULT_SECONDS)
        memory_mib = request.memory_limit_MB
        if memory_mib <= 0:
            memory_mib = service.default_memory_mib(_DEFAULT_MEMORY_MIB)
        execution = await service.run(
            Invocation(
                Program(request.code, find_language(request.language).name),
                (request.stdin or "").encode("utf-8", "surrogatepass"),
                request.args,
                lay_out(_decode(request.files)),
                cpu_seconds=run_seconds,
                wall_seconds=min(run_seconds + _CLIENT_EXTRA_SECONDS / 2, service.settings.max_wall_seconds),
                memory_limit_mib=memory_mib,
            ),
            patience_seconds=request.compile_timeout + run_seconds + _CLIENT_EXTRA_SECONDS / 2,
        )
        return translate(execution, is_built=find_language(request.language).is_built)

    @router.post("/submit")
    async def submit(request: SubmitRequest) -> EvalResult:
        """Judge a response against the tests that come with it."""
        if request.config.custom_extract_logic:
            raise Refused(422, "config.custom_extract_logic: code is not run to find code; send a fenced block")
        problem = _read_problem(request, service)
        program = extract_program(request.completion, language=problem.language)
        (verdict,) = await service.judge_all([program], [problem])
        return _describe(request, program, problem, verdict)

    @router.get("/v1/ping")
    async def ping() -> str:
        """Answer."""
        return "pong"

    return router


def translate(execution: Execution, *, is_built: bool) -> RunCodeResponse:
    """Return what a run showed in SandboxFusion's words."""
    if not execution.is_conclusive:
        return RunCodeResponse(status="SandboxError", message=execution.detail)
    if execution.failure is Outcome.COMPILE_ERROR and is_built:
        refused = CommandRunResult(status="Finished", return_code=1, stdout="", stderr=execution.stderr)
        return RunCodeResponse(status="Failed", compile_result=refused)
    compiled = CommandRunResult(status="Finished", return_code=0, stdout="", stderr="") if is_built else None
    is_late = execution.failure is Outcome.TIME_LIMIT
    return_code = -execution.signal if execution.exit_code is None else execution.exit_code
    if execution.failure and not return_code:
        return_code = -_SIGKILL
    ran = CommandRunResult(
        status="TimeLimitExceeded" if is_late else "Finished",
        execution_time=execution.wall_seconds,
        return_code=None if is_late else return_code,
        stdout=execution.stdout.decode("utf-8", "replace"),
        stderr=execution.stderr,
    )
    return RunCodeResponse(status="Failed" if execution.failure else "Success", compile_result=compiled, run_result=ran)


def _decode(files: dict[str, str | None]) -> dict[str, bytes]:
    try:
        return {name: base64.b64decode(text, validate=True) for name, text in files.items() if text is not None}
    except (binascii.Error, ValueError):
        raise Refused(422, "files: the content of each must be base64") from None


def _read_problem(request: SubmitRequest, service: Service) -> Problem:
    config = request.config
    if config.language is None or config.provided_data is None:
        raise Refused(422, "config.language and config.provided_data are needed: no data set is kept here")
    language = find_language(config.language)
    rows = config.provided_data.get("test")
    try:
        if isinstance(rows, str):
            ValueCounter(service.settings).add(rows.encode("utf-8", "surrogatepass"))
            rows = json.loads(rows)
        tests = [StdioTest.model_validate(row) for row in rows or ()]
        if not tests or not all("stdin" in test.input and "stdout" in test.output for test in tests):
            raise ValueError
    except (ValidationError, ValueError, TypeError, RecursionError):
        raise Refused(
            422, 'config.provided_data.test: give [{"input": {"stdin": "..."}, "output": {"stdout": "..."}}, ...]'
        ) from None
    return Problem(
        id=str(request.id)[:200] or "submitted",
        language=language.name,
        tests=tuple(TestCase(input=test.input["stdin"], output=test.output["stdout"]) for test in tests),
        time_limit_seconds=min(config.run_timeout or service.default_seconds(_SUBMIT_SECONDS[language.is_built]), 600),
        memory_limit_mib=service.default_memory_mib(_DEFAULT_MEMORY_MIB),
    )


def _describe(request: SubmitRequest, program: Program, problem: Problem, verdict: Verdict) -> EvalResult:
    if not verdict.is_scorable:
        raise Refused(503, f"the sandbox failed: {verdict.detail}"[:300], retry_after_seconds=1)
    shown = [
        EvalTestCase(
            passed=result.verdict is Outcome.ACCEPTED,
            exec_info=_describe_test(result),
            test_info={"input": {"stdin": test.input[:1000]}, "output": {"stdout": test.output[:1000]}},
        )
        for test, result in zip(problem.tests, verdict.tests, strict=False)
    ]
    if not request.config.extra.get("run_all_cases"):
        first = next((number for number, test in enumerate(shown) if not test.passed), len(shown))
        shown = shown[: first + 1]
    return EvalResult(
        id=request.id,
        accepted=verdict.is_accepted,
        extracted_code=program.code or "",
        tests=shown,
        extracted_type="fenced" if program.code else "empty",
    )


def _describe_test(result: TestResult) -> RunCodeResponse:
    has_ended_well = result.verdict in (Outcome.ACCEPTED, Outcome.WRONG_ANSWER)
    is_late = result.verdict is Outcome.TIME_LIMIT
    ran = CommandRunResult(
        status="TimeLimitExceeded" if is_late else "Finished",
        execution_time=result.wall_seconds,
        return_code=None if is_late else int(not has_ended_well),
        stderr="" if has_ended_well else result.detail,
    )
    return RunCodeResponse(status="Success" if has_ended_well else "Failed", message=result.detail, run_result=ran)

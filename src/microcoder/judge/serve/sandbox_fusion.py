"""Routes in the form of SandboxFusion, for clients that are written for it.

verl's `sandbox_fusion` reward, tinker-cookbook and SandboxFusion's own package ask them unchanged.
What such a client may notice: time is CPU time, and the clock a backstop; of the languages only
those of this judge are there; a program without a memory limit has one; limits above the service's
are lowered, and the answer says so; no files are fetched.
"""

from __future__ import annotations

import base64
import binascii
import signal
from collections.abc import Mapping
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.extract import extract_program, find_bare_program
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, TestResult
from microcoder.judge.languages import find_language
from microcoder.judge.run.executions import Execution, Invocation, longest_wall_seconds
from microcoder.judge.serve.service import Refused, Service

RUN_SECONDS = 10.0
"""SandboxFusion's own `run_timeout` and `compile_timeout`, where a request names none."""
MEMORY_MIB = 1024
"""Memory of a program whose request names no limit, where the service allows that much."""
EXTRA_SECONDS = 5.0
"""Wall time beyond the CPU limit: half of what verl's client waits beyond its two time-outs."""
MOST_SECONDS = 3600.0
"""Longest time-out that is read at all; the service's own limit is lower."""
FAILED_TO_BUILD = 1
"""Exit code that stands for a compiler's refusal."""

CommandStatus = Literal["Finished", "Error", "TimeLimitExceeded"]
RunStatus = Literal["Success", "Failed", "SandboxError"]


class _Message(BaseModel):
    """What a client sends; fields that are unknown here are ignored, as they are there."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RunCodeRequest(_Message):
    """A program to run."""

    code: str
    language: str
    stdin: str | None = None
    compile_timeout: float = Field(default=RUN_SECONDS, ge=0, le=MOST_SECONDS)
    """Seconds that its client waits besides; a compiler here keeps its own limits."""
    run_timeout: float = Field(default=RUN_SECONDS, gt=0, le=MOST_SECONDS)
    """CPU seconds of the program."""
    memory_limit_MB: int = -1
    """Memory of the program in MiB; 0 or less: the client names none."""
    files: dict[str, str | None] = Field(default_factory=dict)
    """Files beside the program, in base64, by their paths."""
    fetch_files: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    """Command-line arguments."""


class CommandRunResult(BaseModel):
    """What a compiler or a program did."""

    status: CommandStatus = "Finished"
    execution_time: float | None = None
    """Wall time in seconds."""
    return_code: int | None = 0
    """Exit code, or minus the signal that ended it; None if it ran out of time."""
    stdout: str = ""
    stderr: str = ""


class RunCodeResponse(BaseModel):
    """The answer to a program to run."""

    status: RunStatus
    """`SandboxError`: nothing is known of the program, and its client asks again."""
    message: str = ""
    compile_result: CommandRunResult | None = None
    """None for a language that is not built, such as Python."""
    run_result: CommandRunResult | None = None
    executor_pod_name: str | None = None
    files: dict[str, str] = Field(default_factory=dict)


class StdioTest(_Message):
    """A test of `CommonOJDataset`."""

    input: dict[str, str]
    output: dict[str, str]


class TestConfig(_Message):
    """How a response is judged."""

    dataset_type: str | None = None
    language: str | None = None
    compile_timeout: float | None = Field(default=None, ge=0, le=MOST_SECONDS)
    run_timeout: float | None = Field(default=None, gt=0, le=MOST_SECONDS)
    custom_extract_logic: str | None = None
    provided_data: Any = None
    """The row that holds the tests, under `test`: a list, or its JSON."""


class SubmitRequest(_Message):
    """A model's response to judge by the tests that come with it."""

    dataset: str
    id: int | str
    completion: str
    config: TestConfig


class ProvidedData(_Message):
    """The row of a problem that comes with a response."""

    test: tuple[StdioTest, ...] = Field(min_length=1)


class EvalTestCase(BaseModel):
    """What became of one test."""

    passed: bool
    exec_info: RunCodeResponse
    test_info: dict[str, Any] | None = None


class EvalResult(BaseModel):
    """What became of a response."""

    id: int | str
    accepted: bool
    extracted_code: str
    tests: tuple[EvalTestCase, ...]
    """Up to the first that failed, unless the service runs all (`microcoder serve --stop`)."""


def make_router(service: Service) -> APIRouter:
    """Return the routes, behind the same queue and limits as the service's own."""
    router = APIRouter(tags=["SandboxFusion"])

    @router.post("/run_code")
    async def run_code(request: RunCodeRequest) -> RunCodeResponse:
        """Run a program and return what it printed."""
        try:
            invocation = _read_run(request, service)
            # Its client waits as long, and sends again what is answered 504.
            patience = request.compile_timeout + request.run_timeout + EXTRA_SECONDS
            execution = await service.run(invocation, patience_seconds=patience)
        except (DataError, EvaluatorFault) as error:
            # A language, a file or an argument that cannot be: in SandboxFusion's own words.
            return RunCodeResponse(status="SandboxError", message=str(error))
        is_built = find_language(request.language).is_built
        answer = _describe_run(execution, is_built=is_built)
        if answer.message:
            return answer
        return answer.model_copy(update={"message": _describe_limits(request, invocation)})

    @router.post("/submit")
    async def submit(request: SubmitRequest) -> EvalResult:
        """Judge a response by tests of stdin and stdout that come with it."""
        problem = _read_problem(request, service)
        program = _read_program(request.completion, problem)
        (verdict,) = await service.judge_all([program], [problem])
        if not verdict.is_scorable:
            raise Refused(503, f"the sandbox failed: {verdict.detail}", retry_after_seconds=1)
        return EvalResult(
            id=request.id,
            accepted=verdict.is_accepted,
            extracted_code=program.code or "",
            tests=tuple(_describe_test(result) for result in verdict.tests),
        )

    @router.get("/v1/ping")
    async def ping() -> str:
        """Answer `pong`, by which clients see that a service is there."""
        return "pong"

    return router


def _read_run(request: RunCodeRequest, service: Service) -> Invocation:
    """Return what a request asks to run.

    Raises:
        DataError: it cannot be run here; why.
    """
    if request.fetch_files:
        raise DataError("fetch_files: no file of a program is fetched here; have it print them")
    language = find_language(request.language)
    memory_mib = request.memory_limit_MB
    if memory_mib <= 0:
        memory_mib = MEMORY_MIB
    memory_mib = min(memory_mib, service.settings.max_memory_mib)
    run_seconds = min(request.run_timeout, service.settings.max_cpu_seconds)
    longest = longest_wall_seconds(service.settings.max_cpu_seconds)
    return Invocation(
        Program(request.code, language.name),
        (request.stdin or "").encode("utf-8", "surrogatepass"),
        request.args,
        _read_files(request.files),
        cpu_seconds=run_seconds,
        wall_seconds=min(run_seconds + EXTRA_SECONDS, longest),
        memory_limit_mib=memory_mib,
    )


def _describe_limits(request: RunCodeRequest, invocation: Invocation) -> str:
    """Return which of a request's limits were lowered; empty if none was.

    A client's time-out is for a whole harness of tests, and often above what one test may take.
    """
    lowered = []
    if invocation.cpu_seconds < request.run_timeout:
        lowered.append(f"run_timeout to {invocation.cpu_seconds:g} s")
    if invocation.memory_limit_mib < request.memory_limit_MB:
        lowered.append(f"memory_limit_MB to {invocation.memory_limit_mib}")
    if not lowered:
        return ""
    return f"lowered to what this service allows: {', '.join(lowered)}"


def _read_files(encoded: Mapping[str, str | None]) -> dict[str, bytes]:
    """Return files by their paths; raises DataError for what is no base64."""
    files = {}
    for name, content in encoded.items():
        # SandboxFusion makes no file of a name without content.
        if content is None:
            continue
        try:
            files[name] = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise DataError(
                f"files: the content of {name[:100]!r} is no base64; encode it"
            ) from None
    return files


def _describe_run(execution: Execution, *, is_built: bool) -> RunCodeResponse:
    """Return the answer to a run."""
    if not execution.is_conclusive:
        return RunCodeResponse(status="SandboxError", message=execution.detail)
    if is_built and execution.failure is Outcome.COMPILE_ERROR:
        refused = CommandRunResult(return_code=FAILED_TO_BUILD, stderr=execution.stderr)
        return RunCodeResponse(status="Failed", compile_result=refused)
    is_late = execution.failure is Outcome.TIME_LIMIT
    ran = CommandRunResult(
        status="TimeLimitExceeded" if is_late else "Finished",
        execution_time=execution.wall_seconds,
        return_code=None if is_late else _return_code(execution),
        stdout=execution.stdout.decode("utf-8", "replace"),
        stderr=execution.stderr,
    )
    return RunCodeResponse(
        status="Failed" if execution.failure else "Success",
        compile_result=CommandRunResult() if is_built else None,
        run_result=ran,
    )


def _return_code(execution: Execution) -> int:
    """Return a run's exit code, or minus its signal; a run that failed never has 0."""
    code = execution.exit_code
    if code is None:
        code = -execution.signal
    # Beyond its memory, or its output, and ended in order: SandboxFusion would have killed it.
    if execution.failure is not None and code == 0:
        return -signal.SIGKILL
    return code


def _read_problem(request: SubmitRequest, service: Service) -> Problem:
    """Return the problem that comes with a response.

    Raises:
        Refused: it is none of stdin and stdout; what would do.
    """
    config = request.config
    if config.custom_extract_logic:
        raise Refused(422, "custom_extract_logic: programs of a client are not run to extract code")
    if not config.language:
        raise Refused(400, "config.language is missing; name one, such as python")
    row = config.provided_data
    if config.dataset_type not in (None, "CommonOJDataset") or not isinstance(row, dict):
        raise Refused(
            422,
            f"dataset {request.dataset[:100]!r}: no data set is kept here; send the problem with "
            "it: config.dataset_type CommonOJDataset, config.provided_data with `test`",
        )
    tests = []
    for test in _read_row(row).test:
        if "stdin" not in test.input or "stdout" not in test.output:
            raise Refused(422, "a test needs input.stdin and output.stdout; files are not judged")
        tests.append(TestCase(input=test.input["stdin"], output=test.output["stdout"]))
    seconds = min(config.run_timeout or RUN_SECONDS, service.settings.max_cpu_seconds)
    return Problem(
        id=f"{request.dataset}/{request.id}",
        tests=tuple(tests),
        language=find_language(config.language).name,
        time_limit_seconds=seconds,
        memory_limit_mib=min(MEMORY_MIB, service.settings.max_memory_mib),
    )


def _read_program(completion: str, problem: Problem) -> Program:
    """Return the program of a completion, fenced or bare."""
    program = extract_program(completion, language=problem.language)
    if program.code is None:
        bare = find_bare_program(completion, problem)
        if bare is not None:
            return Program(bare, problem.language)
    return program


def _read_row(row: Mapping[str, Any]) -> ProvidedData:
    """Return a row whose tests are a list, or its JSON; raises Refused."""
    try:
        if isinstance(row.get("test"), str):
            return ProvidedData.model_validate_json('{"test": ' + row["test"] + "}")
        return ProvidedData.model_validate(row)
    except ValueError:
        raise Refused(
            422,
            'provided_data: `test` must be a list of {"input": {"stdin": ...}, '
            '"output": {"stdout": ...}}',
        ) from None


def _describe_test(result: TestResult) -> EvalTestCase:
    """Return what became of a test; the output of one that passed is not kept."""
    has_passed = result.verdict is Outcome.ACCEPTED
    is_late = result.verdict is Outcome.TIME_LIMIT
    # A wrong answer is a program that ended in order.
    has_ended = has_passed or result.verdict is Outcome.WRONG_ANSWER
    return_code: int | None = int(not has_ended)
    if is_late:
        return_code = None
    ran = CommandRunResult(
        status="TimeLimitExceeded" if is_late else "Finished",
        execution_time=result.wall_seconds,
        return_code=return_code,
        stdout=result.output or "",
        stderr=result.detail,
    )
    info = RunCodeResponse(status="Success" if has_ended else "Failed", run_result=ran)
    return EvalTestCase(passed=has_passed, exec_info=info, test_info={"verdict": result.verdict})

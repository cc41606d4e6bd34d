"""The reference judge: the definition of a verdict in one file, without optimisations.

The fast judge must agree with it. A program is judged by its tests in order, each in a process of
its own inside a sandbox that no other program sees. Nothing is cached, shared or run again. A
test's outcome is that of the first row that applies:

| seen                                                             | outcome         |
|------------------------------------------------------------------|-----------------|
| the compiler refused the source                                  | `COMPILE_ERROR` |
| stdout, stderr, the returned value or a file beyond the cap      | `OUTPUT_LIMIT`  |
| resident memory beyond the limit, or an uncaught MemoryError     | `MEMORY_LIMIT`  |
| CPU time spent, or twice that and a second on the clock          | `TIME_LIMIT`    |
| a signal, a non-zero exit code, nothing or nonsense returned     | `RUNTIME_ERROR` |
| ... of which: no further process or thread could be started      | `PROCESS_LIMIT` |
| the comparison, or the problem's checker program, refuses        | `WRONG_ANSWER`  |
| the sandbox broke, a package is missing, the checker is broken   | `SANDBOX_FAULT` |
| nothing of these                                                 | `ACCEPTED`      |

Tests that are programs (`Problem.assertions`) are judged by the table in `conversations`.

The first test that is not accepted decides about the program. `tests/judge/test_reference.py` holds
the fast judge against this one on a sample, `benchmarks/differential.py` on thousands of programs.
"""

import contextlib
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from microcoder import Checker, EvaluatorFault, Outcome, Problem, Program, TestResult, Verdict
from microcoder.judge.compare.compare import Comparison, compare_output, compare_value
from microcoder.judge.compare.values import MalformedWire, decode_value, write_json
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import CHECKER_CRASHED, CHECKER_FAULT, TestCase
from microcoder.judge.languages import Language, find_language, language_of
from microcoder.judge.languages.packages import (
    STANDARD,
    ProvidedPackages,
    load_profile,
    provide_packages,
)
from microcoder.judge.run.builds import (
    describe_runtime,
    load_built,
    require_compiler,
    run_compiler,
)
from microcoder.judge.run.checks import read_test
from microcoder.judge.run.conversations import converse_once
from microcoder.judge.run.supervisor import Limits, Loaded, LoadedProgram, Run, Sandbox
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.judge.sandbox.protocol import NO_RUNTIME, STDIN_FILE, Expiry

StopRule = Literal["first_failure", "first_limit", "never"]
"""After which test the others are skipped."""

OUTPUT_MIB = 16
"""What a test may write to a stream, if its problem expects no more."""
SCRATCH_MIB = 16
"""What a test may write to its folder."""
LARGE_SCRATCH_MIB = 256
"""The same where its streams are files there, or where it builds or checks."""
SPARE_MEMORY_MIB = 640
"""Address space of a test beyond its limit on resident memory."""
CHECKER_SECONDS = 10.0
"""CPU time that a checker program may take."""
CHECKER_MIB = 1024
"""Memory that a checker program may take."""
_VALUE_BYTES = 1 << 16
"""A returned value of up to so many bytes is read, however short the expected one is."""
_MOST_TIMES_LONGER = 32
"""A value of more bytes than that, and than so many times the expected ones, is wrong unread."""
_NEARLY_ALL = 0.9
"""Share of the memory limit: what is killed beyond it was killed because memory ran out."""
_LIMITS = ("time_limit", "memory_limit", "output_limit", "process_limit", "sandbox_fault")
"""Outcomes after which the stop rule `first_limit` skips the remaining tests."""
_MEMORY_ERROR = re.compile(r"[\w.]*MemoryError\b")
_NO_PROCESS = re.compile(r"RuntimeError: can't start new thread|BlockingIOError: \[Errno 11\]")
_ABORTED = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
"""Signals by which runtimes end if they cannot go on."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A program to load, and the limits of its runs."""

    language: Language
    code: str
    """What is run."""
    limits: Limits
    memory_mib: int
    """Its limit on resident memory."""
    beside: tuple[str, ...] = ()
    """Sources that run with it: its tests, if they are programs."""
    fn_name: str = ""
    """The function that is called; empty for a program that reads stdin."""
    scratch_mib: int = LARGE_SCRATCH_MIB

    @property
    def opens_streams(self) -> bool:
        """Whether it may open its standard streams by name, and so is given files for them."""
        return "/dev/" in self.code or "/proc/" in self.code


@dataclass(frozen=True, slots=True)
class _Machine:
    """What is the same for all programs here."""

    packages: ProvidedPackages
    time_scale: float
    """Factor on the limits of CPU time."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A program loaded in a sandbox of its own."""

    source: _Source
    loaded: Loaded
    sandbox: Sandbox


def judge_by_reference(
    program: Program,
    problem: Problem,
    *,
    stop: StopRule = "never",
    time_scale: float = 1.0,
    packages: str = STANDARD,
) -> Verdict:
    """Judge a program by the definition of a verdict in this module; slow.

    Args:
        program: what to judge.
        problem: its tests, limits and checker.
        stop: after which test the others are skipped: the first failing one, the first at a limit,
            none.
        time_scale: factor on the limits of CPU time.
        packages: third-party packages that programs may import, as for `Judge`.

    Raises:
        DataError: the problem's tests do not fit its function.
    """
    total = len(problem.tests)
    if program.code is None:
        return Verdict(Outcome.NO_CODE, (), total, program.reason)
    results: list[TestResult] = []
    try:
        with contextlib.ExitStack() as opened:
            machine = _Machine(provide_packages(load_profile(packages)), time_scale)
            for result in _judge_tests(opened, program.code, problem, machine):
                results.append(result)
                if _is_last(result, stop):
                    break
    except (EvaluatorFault, OSError) as fault:
        results.append(_without_run(Outcome.SANDBOX_FAULT, str(fault)))
    for number, result in enumerate(results, 1):
        if result.verdict is not Outcome.ACCEPTED:
            detail = f"test {number}: {result.detail}"
            return Verdict(result.verdict, tuple(results), total, detail)
    return Verdict(Outcome.ACCEPTED, tuple(results), total)


def _is_last(result: TestResult, stop: StopRule) -> bool:
    """Whether the tests after this one are skipped."""
    outcome = result.verdict
    if outcome is Outcome.COMPILE_ERROR:
        return True
    if outcome is Outcome.SANDBOX_FAULT and result.detail.startswith(CHECKER_FAULT):
        return True
    if stop == "first_limit":
        return outcome in _LIMITS
    return stop == "first_failure" and outcome is not Outcome.ACCEPTED


def _judge_tests(
    opened: contextlib.ExitStack, answer: str, problem: Problem, machine: _Machine
) -> Iterator[TestResult]:
    """Yield the result of each test, in order; or one result, if the program cannot be run."""
    # The checker first: without it no test can be judged.
    checking = None
    if problem.checker.type == "program":
        checking = _load(opened, _describe_checker(problem.checker, machine), machine)
        if isinstance(checking, str):
            fault = f"{CHECKER_FAULT}was not built: {checking}"
            yield _without_run(Outcome.SANDBOX_FAULT, fault)
            return
    ready = _load(opened, _describe_program(answer, problem, machine), machine)
    if isinstance(ready, str):
        yield _without_run(Outcome.COMPILE_ERROR, ready)
        return
    call = find_call(problem) if ready.source.fn_name else None
    message = None if call is None else call.model_dump(mode="json", exclude_defaults=True)
    if problem.assertions is not None:
        for test in problem.tests:
            yield _judge_conversation(ready, problem, test.output, machine)
        return
    for number, test in enumerate(problem.tests, 1):
        run = _run_test(ready, problem, test, message)
        yield _judge_run(ready, run, problem, number, checking)


def _describe_checker(checker: Checker, machine: _Machine) -> _Source:
    """Return a problem's checker program with its limits."""
    seconds = CHECKER_SECONDS * machine.time_scale
    limits = Limits(
        cpu_seconds=seconds,
        wall_seconds=3 * seconds + 1,
        memory_bytes=(CHECKER_MIB + SPARE_MEMORY_MIB) << 20,
        output_bytes=OUTPUT_MIB << 20,
    )
    language = find_language(checker.language)
    return _Source(language, str(checker.code), limits, CHECKER_MIB)


def _describe_program(answer: str, problem: Problem, machine: _Machine) -> _Source:
    """Return what is run for an answer, with the limits of a test."""
    language = language_of(problem)
    fn_name = problem.fn_name or ""
    beside: tuple[str, ...] = ()
    if problem.assertions is not None:
        # Its tests call it, and expect no value.
        fn_name = ""
        beside = (problem.assertions.setup, *(test.output for test in problem.tests))
    seconds = (problem.time_limit_seconds + language.startup_seconds) * machine.time_scale
    memory_mib = problem.memory_limit_mib + language.startup_memory_mib
    # Twice what is expected may be written, so that a longer output is wrong and not an excess.
    longest = max(len(test.output.encode("utf-8", "surrogatepass")) for test in problem.tests)
    limits = Limits(
        cpu_seconds=seconds,
        wall_seconds=2 * seconds + 1,
        memory_bytes=(memory_mib + SPARE_MEMORY_MIB) << 20,
        output_bytes=max(OUTPUT_MIB, 2 * (longest >> 20)) << 20,
    )
    source = _Source(language, answer, limits, memory_mib, beside, fn_name, SCRATCH_MIB)
    if source.opens_streams:
        return replace(source, scratch_mib=LARGE_SCRATCH_MIB)
    return source


def _load(opened: contextlib.ExitStack, source: _Source, machine: _Machine) -> _Ready | str:
    """Return a program ready to run in a sandbox of its own, or the compiler's message.

    Raises:
        EvaluatorFault: there is no compiler or interpreter, or a package is missing.
    """
    trouble = source.language.find_problem()
    if trouble:
        raise EvaluatorFault(trouble)
    ready = _build(source, machine) if source.language.is_built else _interpret(source, machine)
    if isinstance(ready, str):
        return ready
    # Closed in reverse: the sandbox ends before what it runs is freed.
    opened.enter_context(contextlib.closing(ready.loaded))
    opened.enter_context(contextlib.closing(ready.sandbox))
    ready.sandbox.isolation.require(unsafe=False)
    return ready


def _interpret(source: _Source, machine: _Machine) -> _Ready:
    """Return a Python program that is loaded as it is."""
    packages = machine.packages
    # Tests that are programs may import packages, too.
    for text in (source.code, *source.beside):
        missing = packages.find_problem(text, is_function=bool(source.fn_name))
        if missing:
            raise EvaluatorFault(missing)
    preload = packages.profile.preload_for(source.code) if packages.folder else ()
    sandbox = Sandbox(packages=packages.folder, preload=preload, scratch_mib=source.scratch_mib)
    return _Ready(source, LoadedProgram(source.code), sandbox)


def _build(source: _Source, machine: _Machine) -> _Ready | str:
    """Return a program that is built first, or the compiler's message."""
    language = source.language
    build_seconds = language.build_seconds * machine.time_scale
    limited = language.model_copy(update={"build_seconds": build_seconds})
    # In a sandbox of its own: compilers read files that programs must not see.
    compiling = Sandbox(toolchain=language.find_readable(), scratch_mib=LARGE_SCRATCH_MIB)
    with contextlib.closing(compiling):
        command = limited.build_command(require_compiler(language))
        build = run_compiler(compiling, limited, command, source.code)
    if not build.is_built:
        return build.message
    runtime = describe_runtime(language) if language.runtime else NO_RUNTIME
    sandbox = Sandbox(runtime=runtime, scratch_mib=source.scratch_mib)
    return _Ready(source, load_built(language, build.binary, source.memory_mib), sandbox)


def _run_test(
    ready: _Ready, problem: Problem, test: TestCase, message: dict[str, Any] | None
) -> Run:
    """Run a test; `message` is the call of a function as it is sent to the sandbox."""
    stdin = test.input.encode("utf-8", "surrogatepass")
    opens_streams = ready.source.opens_streams
    task = ready.loaded.task(
        stdin,
        fn_name=ready.source.fn_name,
        call=message,
        files={STDIN_FILE: stdin} if opens_streams else {},
        dialect=problem.dialect,
        has_named_streams=opens_streams,
    )
    return ready.sandbox.run(task, ready.source.limits)


def _judge_conversation(
    ready: _Ready, problem: Problem, code: str, machine: _Machine
) -> TestResult:
    """Return the result of a test that is a program, by the table in `conversations`."""
    described = _describe_checker(Checker(type="program", code=code), machine)
    with contextlib.ExitStack() as opened:
        test = _load(opened, described, machine)
        # A Python program is never refused before it runs.
        assert not isinstance(test, str)
        return converse_once(
            (ready.sandbox, test.sandbox),
            (ready.loaded, test.loaded),
            PreparedProblem(problem).settings,
            (ready.source.limits, test.source.limits),
            partial(_find_failure, source=ready.source),
        )


def _judge_run(
    ready: _Ready, run: Run, problem: Problem, number: int, checking: _Ready | None
) -> TestResult:
    """Return the result of the test with this number, from 1, by its run."""
    rejection = ready.loaded.rejection()
    if rejection:
        return _result(run, Outcome.COMPILE_ERROR, rejection)
    failure = _find_failure(run, ready.source)
    if failure:
        return _result(run, *failure)
    if ready.source.fn_name:
        return _judge_value(run, problem, number, checking)
    if checking is not None:
        return _ask(checking, run, run.stdout, problem, number)
    output = run.stdout.decode("utf-8", "surrogateescape")
    comparison = compare_output(output, problem.tests[number - 1].output, problem.checker)
    return _compared(run, comparison)


def _find_failure(run: Run, source: _Source) -> tuple[Outcome, str] | None:
    """Return the outcome and reason of a run that failed whatever its output is.

    None if it ended well.
    """
    ended = run.result
    limits = source.limits
    # In the order of the table above.
    if _writes_too_much(run, limits):
        limit_mib = limits.output_bytes >> 20
        return (
            Outcome.OUTPUT_LIMIT,
            f"more than {limit_mib} MiB in a stream, or too much in files",
        )
    if _is_out_of_memory(run, source):
        memory_mib = ended.memory_kib / 1024
        return Outcome.MEMORY_LIMIT, f"{memory_mib:.0f} MiB of {source.memory_mib} MiB"
    is_expired = ended.expired in (Expiry.CPU, Expiry.WALL) or ended.signal == signal.SIGXCPU
    if run.cpu_seconds > limits.cpu_seconds or is_expired:
        return Outcome.TIME_LIMIT, f"cpu {run.cpu_seconds:.2f} s of {limits.cpu_seconds:g} s"
    if ended.signal:
        return Outcome.RUNTIME_ERROR, f"killed by signal {ended.signal}"
    if not ended.exit_code:
        return None
    last_line = _last_line(run)
    detail = last_line or f"exit code {ended.exit_code}"
    if _NO_PROCESS.match(last_line):
        return Outcome.PROCESS_LIMIT, detail
    return Outcome.RUNTIME_ERROR, detail


def _writes_too_much(run: Run, limits: Limits) -> bool:
    """Whether a stream, the returned value or a file of a run is too long."""
    longest = max(run.stdout_bytes, run.stderr_bytes, len(run.wire or b""))
    if longest > limits.output_bytes:
        return True
    return run.result.signal == signal.SIGXFSZ or run.result.expired == Expiry.FOLDER


def _is_out_of_memory(run: Run, source: _Source) -> bool:
    """Whether a run held more memory than it may, or ended because it could get no more."""
    ended = run.result
    memory_mib = ended.memory_kib / 1024
    has_failed = ended.exit_code > 0
    if memory_mib > source.memory_mib:
        return True
    if has_failed and _MEMORY_ERROR.match(_last_line(run)):
        return True
    # Text on stderr by which the language's programs report that they ran out of memory.
    sign = source.language.out_of_memory
    has_given_up = has_failed or ended.signal in _ABORTED
    if has_given_up and sign and sign in run.stderr:
        return True
    # The kernel kills what fills the machine.
    is_killed = ended.signal == signal.SIGKILL and not ended.expired
    return is_killed and memory_mib >= _NEARLY_ALL * source.memory_mib


def _last_line(run: Run) -> str:
    lines = run.stderr.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _judge_value(run: Run, problem: Problem, number: int, checking: _Ready | None) -> TestResult:
    """Return the result of a test whose function returned."""
    test = problem.tests[number - 1]
    if not run.wire:
        return _result(run, Outcome.RUNTIME_ERROR, "the program ended before its function returned")
    # A huge value is wrong unread: to rebuild it takes longer than a test.
    expected_bytes = len(test.output.encode("utf-8", "surrogatepass"))
    if len(run.wire) > _VALUE_BYTES + _MOST_TIMES_LONGER * expected_bytes:
        return _result(run, Outcome.WRONG_ANSWER, f"the returned value takes {len(run.wire)} bytes")
    try:
        value = decode_value(run.wire)
    except MalformedWire as error:
        return _result(run, Outcome.RUNTIME_ERROR, str(error))
    if checking is not None:
        return _ask(checking, run, write_json(value).encode(), problem, number)
    expected = read_test(problem, number, find_call(problem))
    return _compared(run, compare_value(value, expected, problem.checker))


def _ask(checking: _Ready, run: Run, output: bytes, problem: Problem, number: int) -> TestResult:
    """Judge an output by the checker program.

    If that breaks, it is run on the expected answer to see whether it works.
    """
    test = problem.tests[number - 1]
    stdin = test.input.encode("utf-8", "surrogatepass")
    answer = test.output.encode("utf-8", "surrogatepass")
    decision = _run_checker(checking, problem.checker, stdin, output, answer)
    if isinstance(decision, Comparison):
        return _compared(run, decision)
    # Who breaks a checker that works must not gain by it.
    on_answer = _run_checker(checking, problem.checker, stdin, answer, answer)
    if isinstance(on_answer, Comparison):
        detail = f"the checker crashed on this output: it {decision}"
        return _result(run, Outcome.WRONG_ANSWER, detail, CHECKER_CRASHED)
    return _result(run, Outcome.SANDBOX_FAULT, CHECKER_FAULT + decision)


def _run_checker(
    checking: _Ready, checker: Checker, stdin: bytes, output: bytes, answer: bytes
) -> Comparison | str:
    """Return what a checker program decides, or how it broke.

    Args:
        checking: the checker program.
        checker: how it is called.
        stdin: what the judged program was given.
        output: what it wrote.
        answer: the expected output.
    """
    files: Mapping[str, bytes | None]
    if checker.protocol == "testlib":
        checker_stdin = b""
        files = {"input": stdin, "output": output, "answer": answer}
        right: tuple[int, ...] = (0,)
        wrong: tuple[int, ...] = (1, 2)
    else:
        checker_stdin = output
        files = {"input": stdin, "answer": answer, "feedback/": None}
        right = (42,)
        wrong = (43,)
    # An output of 10^5 digits is data to a checker, whatever Python thinks of it.
    task = checking.loaded.task(
        checker_stdin, arguments=(*files, *checker.arguments), files=files, int_digits=0
    )
    run = checking.sandbox.run(task, checking.source.limits)
    words = (run.stderr or run.stdout[:1000].decode("utf-8", "replace")).strip()
    rejection = checking.loaded.rejection()
    if rejection:
        return f"does not compile: {rejection}"
    code = run.result.exit_code
    # Python's exit code after an exception must not read as "wrong".
    has_raised = code == 1 and "Traceback (most recent call last)" in run.stderr
    is_expired = run.result.expired in (Expiry.CPU, Expiry.WALL)
    if run.result.signal or is_expired or has_raised:
        return f"failed: {words[-150:]}"
    if code in right:
        return Comparison(True, "program", "")
    if code in wrong:
        return Comparison(False, "", f"the checker refused it: {words}")
    return f"failed (exit code {code})"


def _compared(run: Run, comparison: Comparison) -> TestResult:
    outcome = Outcome.ACCEPTED if comparison.accepted else Outcome.WRONG_ANSWER
    return _result(run, outcome, comparison.detail, comparison.method)


def _result(run: Run, outcome: Outcome, detail: str, method: str = "") -> TestResult:
    return TestResult(
        verdict=outcome,
        cpu_seconds=run.cpu_seconds,
        wall_seconds=run.result.wall_us / 1e6,
        memory_mib=run.result.memory_kib / 1024,
        method=method,
        detail=_shorten(detail),
    )


def _without_run(outcome: Outcome, detail: str) -> TestResult:
    return TestResult(outcome, 0.0, 0.0, 0.0, "", _shorten(detail))


def _shorten(detail: str) -> str:
    return " ".join(detail.split())[:200]

"""The reference judge: the definition of a verdict in one file, without optimisations. The fast judge must agree.

A program is judged by its tests in order, each in a process of its own inside a sandbox that no other program sees.
Nothing is cached, shared or run again. A test's outcome is that of the first row that applies:

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

The first test that is not accepted decides about the program. `tests/judge/test_reference.py` holds the fast judge
against this one on a sample, `benchmarks/differential.py` on thousands of programs.
"""

import contextlib
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from microcoder import Checker, EvaluatorFault, Outcome, Problem, Program, TestResult, Verdict
from microcoder.judge.compare.compare import Comparison, compare_output, compare_value
from microcoder.judge.compare.values import MalformedWire, decode_value, write_json
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.syntax import try_parse
from microcoder.judge.core.types import CHECKER_CRASHED, CHECKER_FAULT
from microcoder.judge.languages import Language, find_language, language_of
from microcoder.judge.languages.packages import (
    STANDARD,
    ProvidedPackages,
    load_profile,
    provide_packages,
)
from microcoder.judge.run.builds import find_room, load_built, require_compiler, run_compiler
from microcoder.judge.run.checks import read_test
from microcoder.judge.run.supervisor import Limits, Loaded, LoadedProgram, Run, Sandbox
from microcoder.judge.sandbox.protocol import (
    CPU_EXPIRED,
    FOLDER_EXPIRED,
    NO_RUNTIME,
    STDIN_FILE,
    WALL_EXPIRED,
)

OUTPUT_MIB, SCRATCH_MIB, LARGE_SCRATCH_MIB, SPARE_MEMORY_MIB = 16, 16, 256, 640
"""What a test may write to a stream and to its folder (more where its streams are files there, or it builds or checks),
and its address space beyond the limit on resident memory."""
CHECKER_SECONDS, CHECKER_MIB = 10.0, 1024
_VALUE_BYTES, _MOST_TIMES_LONGER = 1 << 16, 32
"""A returned value of more bytes than the first, plus the second times the expected ones, is wrong unread."""
_LIMITS = ("time_limit", "memory_limit", "output_limit", "process_limit", "sandbox_fault")
_MEMORY_ERROR = re.compile(r"[\w.]*MemoryError\b")
_NO_PROCESS = re.compile(r"RuntimeError: can't start new thread|BlockingIOError: \[Errno 11\]")
_ABORTED = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A program loaded in a sandbox of its own, with its limits."""

    loaded: Loaded
    sandbox: Sandbox
    limits: Limits
    memory_mib: int
    out_of_memory: str
    """Text on stderr by which the language's programs report that they ran out of memory."""


def judge_by_reference(
    program: Program,
    problem: Problem,
    *,
    stop: Literal["first_failure", "first_limit", "never"] = "never",
    time_scale: float = 1.0,
    packages: str = STANDARD,
) -> Verdict:
    """Judge a program by the definition of a verdict in this module; slow.

    Args:
        program: what to judge.
        problem: its tests, limits and checker.
        stop: after which test the others are skipped: the first failing one, the first at a limit, none.
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
            provided = provide_packages(load_profile(packages))
            for result in _judge_tests(opened, program.code, problem, time_scale, provided):
                results.append(result)
                is_broken = result.verdict is Outcome.SANDBOX_FAULT and result.detail.startswith(
                    CHECKER_FAULT
                )
                is_limit = stop == "first_limit" and result.verdict in _LIMITS
                is_failure = stop == "first_failure" and result.verdict is not Outcome.ACCEPTED
                if result.verdict is Outcome.COMPILE_ERROR or is_broken or is_limit or is_failure:
                    break
    except (EvaluatorFault, OSError) as fault:
        results.append(_without_run(Outcome.SANDBOX_FAULT, str(fault)))
    failed = next(
        (number for number, one in enumerate(results) if one.verdict is not Outcome.ACCEPTED), None
    )
    if failed is None:
        return Verdict(Outcome.ACCEPTED, tuple(results), total)
    return Verdict(
        results[failed].verdict,
        tuple(results),
        total,
        f"test {failed + 1}: {results[failed].detail}",
    )


def _judge_tests(
    opened: contextlib.ExitStack,
    answer: str,
    problem: Problem,
    time_scale: float,
    packages: ProvidedPackages,
) -> Iterator[TestResult]:
    """Yield the result of each test, in order, or the one result of a program that cannot be run."""
    checking = None
    if problem.checker.type == "program":
        language, seconds = find_language(problem.checker.language), CHECKER_SECONDS * time_scale
        limits = Limits(
            seconds, 3 * seconds + 1, (CHECKER_MIB + SPARE_MEMORY_MIB) << 20, OUTPUT_MIB << 20
        )
        checking = _load(
            opened, language, str(problem.checker.code), limits, CHECKER_MIB, packages, time_scale
        )
        if isinstance(checking, str):
            yield _without_run(Outcome.SANDBOX_FAULT, f"{CHECKER_FAULT}was not built: {checking}")
            return
    language = language_of(problem)
    if problem.harness is not None and try_parse(answer) is None:
        yield _without_run(Outcome.COMPILE_ERROR, "SyntaxError")
        return
    # A harness is a program that reads stdin, and is given the answer's source.
    code = answer if problem.harness is None else f"{problem.harness}\n\nmain({answer!r})\n"
    fn_name = problem.fn_name if problem.harness is None and problem.fn_name else ""
    seconds = (problem.time_limit_seconds + language.startup_seconds) * time_scale
    memory_mib = problem.memory_limit_mib + language.startup_memory_mib
    longest = max(len(test.output.encode("utf-8", "surrogatepass")) for test in problem.tests)
    opens_streams = "/dev/" in code or "/proc/" in code
    output_mib, scratch_mib = (
        max(OUTPUT_MIB, 2 * (longest >> 20)),
        LARGE_SCRATCH_MIB if opens_streams else SCRATCH_MIB,
    )
    limits = Limits(
        seconds, 2 * seconds + 1, (memory_mib + SPARE_MEMORY_MIB) << 20, output_mib << 20
    )
    ready = _load(
        opened,
        language,
        code,
        limits,
        memory_mib,
        packages,
        time_scale,
        answer,
        fn_name,
        scratch_mib,
    )
    if isinstance(ready, str):
        yield _without_run(Outcome.COMPILE_ERROR, ready)
        return
    call = find_call(problem) if fn_name else None
    message = None if call is None else call.model_dump(mode="json", exclude_defaults=True)
    for number, test in enumerate(problem.tests, 1):
        stdin = test.input.encode("utf-8", "surrogatepass")
        run = ready.sandbox.run(
            ready.loaded.task(
                stdin,
                fn_name=fn_name,
                call=message,
                files={STDIN_FILE: stdin} if opens_streams else {},
                dialect=problem.dialect,
                has_named_streams=opens_streams,
            ),
            ready.limits,
        )
        if rejection := ready.loaded.rejection():
            yield _result(run, Outcome.COMPILE_ERROR, rejection)
        elif failure := _find_failure(run, ready):
            yield _result(run, *failure)
        elif fn_name:
            yield _judge_value(run, problem, number, checking)
        elif checking is not None:
            yield _ask(checking, run, run.stdout, problem, number)
        else:
            output = run.stdout.decode("utf-8", "surrogateescape")
            yield _compared(run, compare_output(output, test.output, problem.checker))


def _load(
    opened: contextlib.ExitStack,
    language: Language,
    code: str,
    limits: Limits,
    memory_mib: int,
    packages: ProvidedPackages,
    time_scale: float,
    answer: str = "",
    fn_name: str = "",
    scratch_mib: int = LARGE_SCRATCH_MIB,
) -> _Ready | str:
    """Return a program ready to run in a sandbox of its own, or the compiler's message; raises EvaluatorFault."""
    if trouble := language.find_problem():
        raise EvaluatorFault(trouble)
    if not language.is_built:
        for source in (code, answer):
            if missing := packages.find_problem(source, is_function=bool(fn_name)):
                raise EvaluatorFault(missing)
        preload = packages.profile.preload_for(code) if packages.folder else ()
        sandbox = Sandbox(packages=packages.folder, preload=preload, scratch_mib=scratch_mib)
        loaded: Loaded = opened.enter_context(contextlib.closing(LoadedProgram(code)))
    else:
        limited = language.model_copy(update={"build_seconds": language.build_seconds * time_scale})
        with contextlib.closing(
            Sandbox(toolchain=language.find_readable(), scratch_mib=LARGE_SCRATCH_MIB)
        ) as building:
            build = run_compiler(
                building, limited, limited.build_command(require_compiler(language)), code
            )
        if not build.is_built:
            return build.message
        sandbox = Sandbox(
            runtime=find_room(language) if language.runtime else NO_RUNTIME, scratch_mib=scratch_mib
        )
        loaded = opened.enter_context(
            contextlib.closing(load_built(language, build.binary, memory_mib))
        )
    opened.enter_context(contextlib.closing(sandbox))
    sandbox.isolation.require(unsafe=False)
    return _Ready(loaded, sandbox, limits, memory_mib, language.out_of_memory)


def _find_failure(run: Run, ready: _Ready) -> tuple[Outcome, str] | None:
    """Return the outcome and reason of a run that failed whatever its output is; None if it ended well."""
    ended, limits = run.result, ready.limits
    last_line = (run.stderr.strip().splitlines() or [""])[-1].strip()
    written = max(run.stdout_bytes, run.stderr_bytes, len(run.wire or b""))
    if (
        written > limits.output_bytes
        or ended.signal == signal.SIGXFSZ
        or ended.expired == FOLDER_EXPIRED
    ):
        return (
            Outcome.OUTPUT_LIMIT,
            f"more than {limits.output_bytes >> 20} MiB in a stream, or too much in files",
        )
    memory_mib = ended.memory_kib / 1024
    has_failed = ended.exit_code > 0
    says_so = has_failed and _MEMORY_ERROR.match(last_line)
    aborts = (
        ready.out_of_memory
        and ready.out_of_memory in run.stderr
        and (has_failed or ended.signal in _ABORTED)
    )
    # The kernel kills what fills the machine.
    was_full = (
        ended.signal == signal.SIGKILL
        and not ended.expired
        and memory_mib >= 0.9 * ready.memory_mib
    )
    if memory_mib > ready.memory_mib or says_so or aborts or was_full:
        return Outcome.MEMORY_LIMIT, f"{memory_mib:.0f} MiB of {ready.memory_mib} MiB"
    is_expired = ended.expired in (CPU_EXPIRED, WALL_EXPIRED) or ended.signal == signal.SIGXCPU
    if run.cpu_seconds > limits.cpu_seconds or is_expired:
        return Outcome.TIME_LIMIT, f"cpu {run.cpu_seconds:.2f} s of {limits.cpu_seconds:g} s"
    if ended.signal:
        return Outcome.RUNTIME_ERROR, f"killed by signal {ended.signal}"
    if has_failed or ended.exit_code:
        outcome = Outcome.PROCESS_LIMIT if _NO_PROCESS.match(last_line) else Outcome.RUNTIME_ERROR
        return outcome, last_line or f"exit code {ended.exit_code}"
    return None


def _judge_value(run: Run, problem: Problem, number: int, checking: _Ready | None) -> TestResult:
    test = problem.tests[number - 1]
    if not run.wire:
        return _result(run, Outcome.RUNTIME_ERROR, "the program ended before its function returned")
    if len(run.wire) > _VALUE_BYTES + _MOST_TIMES_LONGER * len(
        test.output.encode("utf-8", "surrogatepass")
    ):
        return _result(run, Outcome.WRONG_ANSWER, f"the returned value takes {len(run.wire)} bytes")
    try:
        value = decode_value(run.wire)
    except MalformedWire as error:
        return _result(run, Outcome.RUNTIME_ERROR, str(error))
    if checking is not None:
        return _ask(checking, run, write_json(value).encode(), problem, number)
    return _compared(
        run, compare_value(value, read_test(problem, number, find_call(problem)), problem.checker)
    )


def _ask(checking: _Ready, run: Run, output: bytes, problem: Problem, number: int) -> TestResult:
    """Judge an output by the checker program; if that breaks, run it on the expected answer to see whether it works."""
    test, checker = problem.tests[number - 1], problem.checker
    given, answer = (text.encode("utf-8", "surrogatepass") for text in (test.input, test.output))
    found = _run_checker(checking, checker, given, output, answer)
    if isinstance(found, Comparison):
        return _compared(run, found)
    if isinstance(_run_checker(checking, checker, given, answer, answer), Comparison):
        return _result(
            run,
            Outcome.WRONG_ANSWER,
            f"the checker crashed on this output: it {found}",
            CHECKER_CRASHED,
        )
    return _result(run, Outcome.SANDBOX_FAULT, CHECKER_FAULT + found)


def _run_checker(
    checking: _Ready, checker: Checker, given: bytes, output: bytes, answer: bytes
) -> Comparison | str:
    """Return what a checker program decides, or how it broke."""
    files: Mapping[str, bytes | None]
    if checker.protocol == "testlib":
        stdin, files, right, wrong = (
            b"",
            {"input": given, "output": output, "answer": answer},
            (0,),
            (1, 2),
        )
    else:
        stdin, files, right, wrong = (
            output,
            {"input": given, "answer": answer, "feedback/": None},
            (42,),
            (43,),
        )
    task = checking.loaded.task(
        stdin, arguments=(*files, *checker.arguments), files=files, int_digits=0
    )
    run = checking.sandbox.run(task, checking.limits)
    said = (run.stderr or run.stdout[:1000].decode("utf-8", "replace")).strip()
    if rejection := checking.loaded.rejection():
        return f"does not compile: {rejection}"
    code, has_raised = run.result.exit_code, "Traceback (most recent call last)" in run.stderr
    if (
        run.result.signal
        or run.result.expired in (CPU_EXPIRED, WALL_EXPIRED)
        or (code == 1 and has_raised)
    ):
        return f"failed: {said[-150:]}"
    if code in right:
        return Comparison(True, "program", "")
    return (
        Comparison(False, "", f"the checker refused it: {said}")
        if code in wrong
        else f"failed (exit code {code})"
    )


def _compared(run: Run, comparison: Comparison) -> TestResult:
    outcome = Outcome.ACCEPTED if comparison.accepted else Outcome.WRONG_ANSWER
    return _result(run, outcome, comparison.detail, comparison.method)


def _result(run: Run, outcome: Outcome, detail: str, method: str = "") -> TestResult:
    ended = run.result
    seconds, memory_mib = (run.cpu_seconds, ended.wall_us / 1e6), ended.memory_kib / 1024
    return TestResult(outcome, *seconds, memory_mib, method, " ".join(detail.split())[:200])


def _without_run(outcome: Outcome, detail: str) -> TestResult:
    return TestResult(outcome, 0.0, 0.0, 0.0, "", " ".join(detail.split())[:200])

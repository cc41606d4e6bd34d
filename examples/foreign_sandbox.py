"""Judge in a sandbox of somebody else's: our policy, our comparison, their processes.

This one asks SandboxFusion (`docker run -p 8080:8080 volcengine/sandbox-fusion`) by HTTP. Type

    python examples/foreign_sandbox.py http://localhost:8080

What it cannot do is said and not guessed: functions that are called, files, memory as the kernel
counts it. Whoever runs the sandbox answers for its isolation.
"""

import contextlib
import json
import sys
import urllib.request
from collections.abc import Sequence

from microcoder import EvaluatorFault, Problem, Program, Verdict
from microcoder.judge.run.executor import Observation, Run, SharedRuns, Source, Task
from microcoder.judge.run.policy import Rules, judge_program
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.judge.sandbox.protocol import Expiry, Result

LANGUAGES = {"python": "python", "cpp": "cpp", "javascript": "nodejs", "java": "java"}
"""Our name of a language -> theirs."""
_SPARE_SECONDS = 30.0  # What the service may take beyond the program's own limit.


class FusionExecutor:
    """Runs programs in a SandboxFusion service (see `microcoder.judge.run.executor.Executor`)."""

    def __init__(self, url: str) -> None:
        """Take the address of the service, such as `http://localhost:8080`."""
        self._url = url.rstrip("/")
        self.packages = ()

    @property
    def level(self) -> str:
        """Isolation of its programs: not ours to vouch for."""
        return "foreign"

    def load(self, opened: contextlib.ExitStack, source: Source) -> "FusionProgram":
        """Return a program that is sent with each of its runs; `opened` has nothing to free."""
        if source.language.name not in LANGUAGES:
            known = ", ".join(LANGUAGES)
            raise EvaluatorFault(f"{source.language.name} does not run there; use {known}")
        if source.is_function or source.has_files or source.beside:
            raise EvaluatorFault(
                "functions and checker programs do not run there; use microcoder.judge.Judge"
            )
        return FusionProgram(self._url, source)


class FusionProgram:
    """A program of the service (see `microcoder.judge.run.executor.Executable`)."""

    def __init__(self, url: str, source: Source) -> None:
        self._url = url
        self._source = source
        self._rejection: str | None = None

    def run(self, task: Task, limits: Limits, *, is_final: bool = False) -> Observation:
        """Run a test; a service that fails is an error of the machine."""
        try:
            return Observation(self.run_once(task, limits))
        except (EvaluatorFault, OSError) as fault:
            return Observation(None, fault=f"the sandbox at {self._url} failed: {fault}")

    def run_once(self, task: Task, limits: Limits) -> Run:
        """Run the program once."""
        answer = self._ask(
            {
                "code": self._source.code,
                "language": LANGUAGES[self._source.language.name],
                "stdin": task.stdin.decode("utf-8", "surrogateescape"),
                "run_timeout": limits.cpu_seconds,
                "memory_limit_MB": self._source.memory_mib,
            }
        )
        if answer["status"] == "SandboxError":
            raise EvaluatorFault(str(answer.get("message")))
        compiled = answer.get("compile_result")
        if compiled and compiled["status"] != "Finished":
            return self._reject(compiled["stderr"])
        ran = answer["run_result"]
        # They compile Python as it runs: then its last line says that the source is none.
        last_line = ran["stderr"].strip().rpartition("\n")[2]
        if ran["return_code"] and last_line.startswith("SyntaxError"):
            return self._reject(last_line)
        return _as_run(ran)

    def converse(self, *arguments: object, **options: object) -> Observation:
        """Refuse tests that are programs, as `load` does."""
        return Observation(None, fault="tests that are programs do not run there")

    def interact(self, *arguments: object, **options: object) -> Observation:
        """Refuse interactors: a request is one program."""
        return Observation(None, fault="interactors do not run there")

    def share(self, task: Task, inputs: Sequence[bytes], limits: Limits) -> SharedRuns | None:
        """Share nothing: a request is a process."""
        return None

    def rejection(self) -> str | None:
        """Return the compiler's message; None if the program compiles."""
        return self._rejection

    def _reject(self, message: str) -> Run:
        self._rejection = message
        return _as_run({"return_code": 1, "stderr": message, "status": "Error"})

    def _ask(self, question: dict[str, object]) -> dict:
        request = urllib.request.Request(
            f"{self._url}/run_code",
            json.dumps(question).encode("utf-8", "surrogatepass"),
            {"Content-Type": "application/json"},
        )
        timeout = float(str(question["run_timeout"])) + _SPARE_SECONDS
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)


def _as_run(ran: dict) -> Run:
    """Return what the service says of a run in the form in which it is judged."""
    is_late = ran["status"] == "TimeLimitExceeded"
    micros = int(1e6 * (ran.get("execution_time") or 0.0))
    code = ran.get("return_code")
    # A negative code is a signal, as Python's `subprocess` has it; none is a program stopped.
    signal = max(0, -(code or 0))
    result = Result(
        exit_code=-1 if code is None or signal else code,
        signal=signal,
        cpu_us=micros,
        wall_us=micros,
        memory_kib=0,
        expired=Expiry.CPU if is_late else Expiry.FINISHED,
    )
    stdout = (ran.get("stdout") or "").encode("utf-8", "surrogateescape")
    stderr = ran.get("stderr") or ""
    return Run(result, stdout, len(stdout), stderr, len(stderr), None)


def judge_abroad(url: str, program: Program, problem: Problem) -> Verdict:
    """Judge a program by our policy in their sandbox."""
    prepared = PreparedProblem(problem)
    return judge_program(program, prepared, FusionExecutor(url), Rules("first_failure")).verdict


if __name__ == "__main__":
    tests = ({"input": "1 2", "output": "3"}, {"input": "5 6", "output": "11"})
    doubling = Problem.model_validate({"id": "sum", "tests": tests})
    for source in ("print(sum(map(int, input().split())))", "print(3)"):
        verdict = judge_abroad(sys.argv[1], Program(source), doubling)
        print(verdict.outcome.value, verdict.detail)

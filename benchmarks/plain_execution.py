"""Submissions run as anybody would run them, OUTSIDE the sandbox:
what `contests.py --plain` compares with.

Nothing here is the evaluator's: `python main.py` and g++, pipes and files, the package's own
validator as the format's description calls it, and the format's default validator written a second
time. The stack is as large as the machine allows, as contest judges have it; CPU time is limited by
the kernel.
"""

import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.types import Checker, TestCase

_CPP = ("g++", "-O2", "-std=gnu++20", "-w")
_BUILD_SECONDS = 300
"""Most that a compiler may take."""
_WALL_FACTOR = 20.0
"""Of the CPU limit: the machine may be busy."""
_RIGHT = 42
_WRONG = 43
_CHECKER_SECONDS = 120.0


@dataclass(frozen=True)
class PlainVerdict:
    """How a submission did without the sandbox."""

    verdict: str
    """An outcome, or `undecided` where the package itself fails."""
    detail: str = ""

    @property
    def is_accepted(self) -> bool:
        return self.verdict == "accepted"

    @property
    def is_undecided(self) -> bool:
        return self.verdict == "undecided"


def run_submission(package: Candidate, solution: Solution, *, seconds: float) -> PlainVerdict:
    """Run a submission on its package's tests until one fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command, complaint = _prepare(folder / "submission", solution.code, solution.language)
        if not command:
            return PlainVerdict("compile_error", complaint)
        validator: list[str] = []
        if package.checker.type == "program":
            validator, complaint = _prepare(
                folder / "validator",
                str(package.checker.code),
                package.checker.language,
            )
            if not validator:
                return PlainVerdict("undecided", f"the validator does not build: {complaint}")
        for number, test in enumerate(package.tests, start=1):
            found = _run_test(folder, command, validator, test, package.checker, seconds)
            if found is not None:
                return PlainVerdict(found.verdict, f"test {number}: {found.detail}")
    return PlainVerdict("accepted")


def _prepare(folder: Path, code: str, language: str) -> tuple[list[str], str]:
    """Return the command that runs a source, or the compiler's complaint."""
    folder.mkdir()
    if language == "python":
        (folder / "main.py").write_text(code, errors="surrogatepass")
        return [sys.executable, str(folder / "main.py")], ""
    (folder / "main.cpp").write_text(code, errors="surrogatepass")
    built = subprocess.run(
        [*_CPP, "-o", "main", "main.cpp"],
        cwd=folder,
        capture_output=True,
        timeout=_BUILD_SECONDS,
        text=True,
    )
    errors = []
    for line in built.stderr.splitlines():
        if "error" in line:
            errors.append(line)
    if not built.returncode:
        return ([str(folder / "main")], "")
    return ([], (errors or ["no message"])[0][:200])


def _run_test(
    folder: Path,
    command: list[str],
    validator: list[str],
    test: TestCase,
    checker: Checker,
    seconds: float,
) -> PlainVerdict | None:
    """Return why a test failed, or None."""
    given = folder / "input"
    answer = folder / "answer"
    output = folder / "output"
    given.write_text(test.input, newline="")
    answer.write_text(test.output, newline="")
    code, said = _run(command, given, output, seconds, folder)
    if code == -signal.SIGXCPU or code is None:
        return PlainVerdict("time_limit", f"beyond {seconds:g} s")
    if code:
        return PlainVerdict("runtime_error", f"exit code {code}; {said}")
    if not validator:
        is_right = agree(output.read_bytes(), answer.read_bytes(), checker)
        if is_right:
            return None
        return PlainVerdict("wrong_answer", "the default validator refuses it")
    feedback = folder / "feedback"
    feedback.mkdir(exist_ok=True)
    arguments = [*validator, str(given), str(answer), f"{feedback}/", *checker.arguments]
    code, said = _run(arguments, output, folder / "said", _CHECKER_SECONDS, folder)
    if code == _RIGHT:
        return None
    if code == _WRONG:
        return PlainVerdict("wrong_answer", "the package's validator refuses it")
    return PlainVerdict("undecided", f"the package's validator ended with {code}; {said}")


def _run(
    command: list[str],
    stdin: Path,
    stdout: Path,
    seconds: float,
    folder: Path,
) -> tuple[int | None, str]:
    """Return exit code (None: killed by the clock, negative:
    a signal) and the last line of stderr.
    """

    def limit() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))
        whole = max(1, round(seconds))
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))

    with stdin.open("rb") as given, stdout.open("wb") as taken:
        try:
            ended = subprocess.run(
                command,
                stdin=given,
                stdout=taken,
                stderr=subprocess.PIPE,
                cwd=folder,
                timeout=_WALL_FACTOR * seconds,
                preexec_fn=limit,
            )
        except subprocess.TimeoutExpired:
            return None, ""
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return ended.returncode, lines[-1][:150] if lines else ""


def agree(output: bytes, answer: bytes, checker: Checker) -> bool:
    """Return what the format's default validator says: equal tokens in any letter case,
    numbers within a tolerance.
    """
    if checker.type == "exact":
        return output == answer
    ours = output.split()
    theirs = answer.split()
    if len(ours) != len(theirs):
        return False
    return all(_tokens_agree(*pair, checker) for pair in zip(ours, theirs, strict=True))


def _tokens_agree(ours: bytes, theirs: bytes, checker: Checker) -> bool:
    if ours == theirs or (not checker.case_sensitive and ours.lower() == theirs.lower()):
        return True
    if checker.type != "float":
        return False
    try:
        found = float(ours)
        wanted = float(theirs)
    except ValueError:
        return False
    absolute = checker.absolute or checker.tolerance or 0.0
    relative = checker.relative or checker.tolerance or 0.0
    return abs(found - wanted) <= max(absolute, relative * abs(wanted))

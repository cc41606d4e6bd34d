"""Correct but unusual programs behave in the sandbox as under plain `python`: same output,
same exit code.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

import microcoder
from microcoder.judge import Judge
from microcoder.judge.languages.packages import PROFILES, provide_packages
from microcoder.judge.run.local import NAMES_INPUT, NAMES_OUTPUT
from microcoder.judge.run.supervisor import Limits, LoadedProgram, Sandbox
from microcoder.judge.sandbox.protocol import STDIN_FILE
from tests.judge.conftest import make_problem, run
from tests.judge.fidelity_programs import CALLS, INPUT, OUTPUTS, PROGRAMS

LIMITS = Limits(cpu_seconds=20.0, wall_seconds=60.0, memory_bytes=1 << 30, output_bytes=1 << 24)
PACKAGES = ("numpy", "sortedcontainers")
ABSENT = [package for package in PACKAGES if find_spec(package) is None]


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[dict[str, Sandbox]]:
    packages = provide_packages(PROFILES["standard"]).folder
    if not packages:
        pytest.skip("the packages that programs may import are not installed")
    sandboxes = {
        "": Sandbox(packages=packages),
        "numpy": Sandbox(packages=packages, preload=["numpy"]),
    }
    yield sandboxes
    for sandbox in sandboxes.values():
        sandbox.close()


OTHER_LAST_LINES = {"sys.exit beyond a long", "cached recursion"}
"""Python 3.13 says of the first what only C sees,
and words of the second how many frames of C are below it.
"""


def need_packages_of(code: str) -> None:
    for package in PACKAGES:
        if package in code.lower():
            pytest.importorskip(package)


def run_plainly(code: str, folder: Path) -> tuple[bytes, int, str]:
    """Return what `python main.py` writes, its exit code and the last line that it complains in."""
    (folder / "run").mkdir()
    (folder / "run" / "main.py").write_bytes(code.encode())
    (folder / "stdin").write_bytes(INPUT)
    with open(folder / "stdin", "rb") as stdin, open(folder / "stdout", "w+b") as stdout:
        plain = subprocess.run(
            [sys.executable, "main.py"],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=folder / "run",
            env={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]},
            timeout=120,
            check=False,
        )
    return (folder / "stdout").read_bytes(), plain.returncode, last_line(plain.stderr.decode())


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def run_in(sandboxes: dict[str, Sandbox], code: str) -> list[tuple[bytes, int, str]]:
    """Return the same of a program in a sandbox: compiled the first time,
    then from the bytecode that was kept.
    """
    files = {STDIN_FILE: INPUT} if NAMES_INPUT.search(code) else None
    with closing(LoadedProgram(code)) as program:
        task = program.task(
            INPUT,
            files=files or {},
            has_named_streams=bool(NAMES_OUTPUT.search(code)),
        )
        runs = []
        for _ in range(2):
            runs.append(sandboxes["numpy" if "numpy" in code else ""].run(task, LIMITS))
    return [(found.stdout, found.result.exit_code, last_line(found.stderr)) for found in runs]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in OUTPUTS])
def test_behaves_as_under_plain_python(
    sandboxes: dict[str, Sandbox],
    name: str,
    tmp_path: Path,
) -> None:
    need_packages_of(PROGRAMS[name])
    expected = run_plainly(PROGRAMS[name], tmp_path)
    for found in run_in(sandboxes, PROGRAMS[name]):
        assert found[:2] == expected[:2], found[2]
        assert found[2] == expected[2] or not expected[1] or name in OTHER_LAST_LINES


def test_stored_programs_print_what_plain_python_does(sandboxes: dict[str, Sandbox]) -> None:
    for name, output in OUTPUTS.items():
        if not any(package in PROGRAMS[name].lower() for package in ABSENT):
            for *found, complaint in run_in(sandboxes, PROGRAMS[name]):
                assert found == [output, 0], (name, complaint)


@pytest.mark.long
@pytest.mark.parametrize("name", OUTPUTS)
def test_plain_python_prints_what_is_stored(name: str, tmp_path: Path) -> None:
    need_packages_of(PROGRAMS[name])
    assert run_plainly(PROGRAMS[name], tmp_path)[:2] == (OUTPUTS[name], 0)


def test_texts_times_and_tracebacks_are_the_programs_own(
    judge_one: Judge, sandboxes: dict[str, Sandbox]
) -> None:
    for cookie in ("latin-1", "gbk", "utf-8"):
        code = f"# -*- coding: {cookie} -*-\nprint('é', len('变'))  # 注释"
        verdict = run(judge_one, code, make_problem(("", "é 1")))
        assert verdict.is_accepted, verdict.detail
    code = (
        "import time, datetime as d\n"
        "print(time.tzname, time.localtime(0).tm_hour, d.datetime.fromtimestamp(0).hour)"
    )
    assert run(judge_one, code, make_problem(("", "('UTC', 'UTC') 0 0"))).is_accepted
    with closing(LoadedProgram("def f(): return 1 / 0\nf()")) as program:
        found = sandboxes[""].run(program.task(b""), LIMITS)
    files = []
    for line in found.stderr.splitlines():
        if line.startswith("  File"):
            files.append(line.split('"')[1])
    assert files == ["main.py", "main.py"]


def test_functions_are_accepted_in_every_test(judge_one: Judge) -> None:
    problem = make_problem(*[("[1, 2]\n3", "[3, 6]")] * 3, fn_name="solve")
    here = {}
    for name, code in CALLS.items():
        if not any(package in code.lower() for package in ABSENT):
            here[name] = code
    assert here
    for name, code in here.items():
        verdict = run(judge_one, code, problem)
        assert verdict.is_accepted, (name, verdict.detail)
        assert {test.method for test in verdict.tests} == {"value"}, name


SHALLOW = """
from microcoder.judge import Invocation, Judge
from microcoder.judge.core.types import Program
PROGRAM = "def f(n): return 0 if n == 0 else 1 + f(n - 1)\\nprint(f(985))\\nf(1000)"
with Judge(workers=1, packages="none", time_scale=1) as judging:
    execution = judging.run(Invocation(Program(PROGRAM)))
    print(judging.environment.as_record()["call_stack"])
    counts = [execution.stderr.count(name) for name in ("main.py", "frames.py")]
    print(execution.stdout.decode(), *counts)
"""


def test_an_interpreter_that_keeps_its_calls_elsewhere_judges_and_says_so(tmp_path: Path) -> None:
    shutil.copytree(Path(microcoder.__file__).parent, tmp_path / "microcoder")
    runner = tmp_path / "microcoder" / "judge" / "sandbox" / "runner.py"
    known = runner.read_text()
    runner.write_text(known.replace("((3, 11), (3, 12), (3, 13))", "((0, 0),)"))
    assert runner.read_text() != known
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", SHALLOW]
    result = subprocess.run(
        command,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    problem, depth, rest = result.stdout.splitlines()
    assert "programs recurse a few calls less deep than under plain python" in problem
    assert depth == "985"
    assert rest.split()[1] == "0"

"""A problem chooses the version of its language: of Python an interpreter of this machine, of C++ a standard."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program
from microcoder.judge.languages import LANGUAGES, check_language, find_language
from microcoder.judge.languages.environment import name_environment
from microcoder.judge.languages.interpreter import (
    CURRENT_VERSION,
    PYTHONS_VARIABLE,
    Interpreter,
    current_interpreter,
    find_interpreter,
)
from microcoder.judge.languages.packages import PROFILES

from .conftest import make_problem, run  # pyrefly: ignore[missing-import]

SINCE_312 = 'def first[T](found: list[T]) -> T: return found[0]\nprint(f"{first([f"{input()}"])}")'
TELLS_VERSION = "import sys\nprint('%d.%d' % sys.version_info[:2])"
USES_PACKAGES = "import numpy as np\nfrom sortedcontainers import SortedList\nprint(np.array(SortedList([2, 1])).sum())"
USES_THREADS = """
import threading, queue, functools, decimal, asyncio
found = queue.Queue()
threads = [threading.Thread(target=lambda n=n: found.put(n)) for n in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
async def last(): return 0
print(sum(found.get() for _ in range(3)) + asyncio.run(last()))
"""
SINCE_CPP23 = "#include <iostream>\nint main() { auto n = 3uz; if consteval { n = 0; } std::cout << n << std::endl; }"
TELLS_STANDARD = "#include <iostream>\nint main() { std::cout << __cplusplus << std::endl; }"

needs_cpp = pytest.mark.skipif(bool(LANGUAGES["cpp"].find_problem()), reason=LANGUAGES["cpp"].find_problem())


@pytest.fixture(scope="module", params=["3.12", "3.13"])
def another(request: pytest.FixtureRequest) -> Interpreter:
    if request.param == CURRENT_VERSION:
        pytest.skip("the tests run on it")
    try:
        return find_interpreter(request.param)
    except EvaluatorFault as fault:
        pytest.skip(str(fault))


def test_a_problem_chooses_its_python(judge_one: Judge, another: Interpreter) -> None:
    version = another.short_version
    for code, given, expected in (
        (TELLS_VERSION, "", version),
        (SINCE_312, "7", "7"),
        (USES_THREADS, "", "3"),
        ("print(sum(map(int, input().split())))", "1 2", "3"),
        ("import re, json, os\nprint(os.listdir('.'), re.sub('a', 'b', json.loads(input())))", '"a"', "[] b"),
    ):
        verdict = run(judge_one, code, make_problem((given, expected), language_version=version))
        assert verdict.is_accepted, verdict.detail
    assert run(judge_one, TELLS_VERSION, make_problem(("", CURRENT_VERSION))).is_accepted


def test_functions_are_called_in_another_python(judge_one: Judge, another: Interpreter) -> None:
    problem = make_problem(("[1, 2]\n3", "[3, 6]"), fn_name="solve", language_version=another.short_version)
    code = "class Solution:\n    def solve(self, a: List[int], k: int) -> List[int]: return [x * k for x in a]"
    verdict = run(judge_one, code, problem)
    assert verdict.is_accepted, verdict.detail


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("while True: pass", Outcome.TIME_LIMIT),
        ("x = bytearray(1 << 30)", Outcome.MEMORY_LIMIT),
        ("while True: print('x' * 65536)", Outcome.OUTPUT_LIMIT),
        ("import os\nos.fork()", Outcome.RUNTIME_ERROR),
        ("import os\nos.execv('/bin/sh', ['sh'])", Outcome.RUNTIME_ERROR),
        ("import socket\nsocket.socket()", Outcome.RUNTIME_ERROR),
        ("open('/etc/passwd')", Outcome.RUNTIME_ERROR),
        ("print(1", Outcome.COMPILE_ERROR),
    ],
)
def test_another_python_is_closed_in_as_ours(
    judge_one: Judge, another: Interpreter, code: str, outcome: Outcome
) -> None:
    seconds = 0.3 if outcome is Outcome.TIME_LIMIT else 5.0
    problem = make_problem(("", "1"), language_version=another.short_version, time_limit_seconds=seconds)
    assert run(judge_one, code, problem).outcome in (outcome, Outcome.PROCESS_LIMIT)


def test_another_python_has_the_packages_too(judge_one: Judge, another: Interpreter) -> None:
    verdict = run(judge_one, USES_PACKAGES, make_problem(("", "3"), language_version=another.short_version))
    if "are missing" in verdict.detail:
        assert verdict.outcome is Outcome.SANDBOX_FAULT
        pytest.skip(verdict.detail)
    assert verdict.is_accepted, verdict.detail


def test_equal_programs_of_two_pythons_have_verdicts_of_their_own(judge_one: Judge, another: Interpreter) -> None:
    code = f"{TELLS_VERSION}  # once for each"
    outcomes = [
        run(judge_one, code, make_problem(("", CURRENT_VERSION), language_version=version)).outcome
        for version in ("", another.short_version, CURRENT_VERSION)
    ]
    assert outcomes == [Outcome.ACCEPTED, Outcome.WRONG_ANSWER, Outcome.ACCEPTED]


def test_what_is_asked_for_is_named(another: Interpreter) -> None:
    problems = [make_problem(("", ""), language_version=version) for version in ("", another.short_version)]
    named = name_environment(PROFILES["none"], problems)["Python"]
    assert set(named.split(", ")) == {platform.python_version(), another.version}
    assert name_environment(PROFILES["none"], [])["Python"] == platform.python_version()


@needs_cpp
def test_a_problem_chooses_its_standard_of_cpp(judge_one: Judge) -> None:
    def judge(code: str, expected: str, version: str, language: str = "cpp") -> Outcome:
        problem = make_problem(("", expected), language=language, language_version=version)
        return judge_one.judge([Program(code, language)], [problem])[0].outcome

    assert judge(TELLS_STANDARD, "201703", "17") is Outcome.ACCEPTED
    assert judge(TELLS_STANDARD, "201703", "", "cpp17") is Outcome.ACCEPTED
    assert judge(TELLS_STANDARD, "201703", "") is judge(TELLS_STANDARD, "201703", "20") is Outcome.WRONG_ANSWER
    assert judge(SINCE_CPP23, "3", "23") is Outcome.ACCEPTED


def test_a_version_that_is_not_here_is_named(judge_one: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    try:
        find_interpreter("3.14")
    except EvaluatorFault:
        problem = make_problem(("", ""), language_version="3.14")
        with pytest.raises(EvaluatorFault, match=f"no Python 3.14.*install it.*{PYTHONS_VARIABLE}="):
            judge_one.judge([Program("print(1)")], [problem])
        monkeypatch.setenv(PYTHONS_VARIABLE, str(tmp_path / "python"))
        with pytest.raises(ConfigError, match="which is not a working Python 3"):
            find_interpreter("3.14")


def test_a_script_that_finds_an_interpreter_is_followed(
    another: Interpreter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shim = tmp_path / f"python{another.short_version}"
    shim.write_text(f'#!/bin/sh\nexec {another.executable} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv(PYTHONS_VARIABLE, str(shim))
    assert find_interpreter(another.short_version) == another
    assert os.path.realpath(another.executable) == another.executable
    assert find_interpreter(CURRENT_VERSION) == current_interpreter()


@pytest.mark.parametrize(
    ("language", "version", "message"),
    [
        ("python", "2.7", "use one of 3.11, 3.12, 3.13, 3.14, or leave it out"),
        ("cpp", "98", "for cpp use one of 17, 20, 23, or leave it out for 20"),
        ("cpp17", "20", "contradict each other"),
        ("rust", "1", "use one of"),
    ],
)
def test_versions_that_do_not_exist_are_refused(language: str, version: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        find_language(language, version)


def test_a_program_of_another_version_is_refused() -> None:
    problem = Problem.model_validate({"id": "p", "language": "cpp", "tests": [{"input": "", "output": ""}]})
    check_language(Program("", "cpp20"), problem, "it")
    check_language(Program("", "c++"), problem, "it")
    with pytest.raises(DataError, match="it is in 'cpp17', problem p wants 'cpp 20'"):
        check_language(Program("", "cpp17"), problem, "it")

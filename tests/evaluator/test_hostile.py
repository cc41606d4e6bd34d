"""Hostile programs end in their outcome, and the next program in the same sandbox does not notice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from microcoder.evaluator import Judge
from microcoder.types import Outcome, Program

from .conftest import make_problem, run  # pyrefly: ignore[missing-import]
from .hostile_programs import HUNT_FOR_EXPECTED, PROGRAMS  # pyrefly: ignore[missing-import]

CANARY = Program(
    "import sys, os, math, random\n"
    "a, b = map(int, input().split())\n"
    "print(a + b, int(math.sqrt(49)), sys.getrecursionlimit(), os.listdir('/tmp'), sys.stdin.read() == '',\n"
    "      sys.get_int_max_str_digits(), random.random(), 'microcoder' in sys.modules)\n"
)
CANARY_OUTPUT = "3 7 1000 [] True 4300 0.8444218515250481 False\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_contains_and_survives(judge_one: Judge, name: str) -> None:
    allowed, code = PROGRAMS[name]
    seconds = 0.3 if Outcome.TIME_LIMIT in allowed else 10.0  # a busy machine may take seconds to touch 128 MiB
    hostile = make_problem(("1 2\n", "contained\n"), id="hostile", time_limit_seconds=seconds)
    canary = make_problem(("1 2\n", CANARY_OUTPUT), id="canary")
    verdict, after = judge_one.judge([Program(code), CANARY], [hostile, canary])
    assert verdict.outcome in allowed, verdict.detail
    assert after.is_accepted, after.detail


def test_expected_output_is_nowhere_in_the_sandbox(judge_one: Judge) -> None:
    verdict = run(judge_one, HUNT_FOR_EXPECTED, make_problem(("1\n", "SECRET-ANSWER\n")))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert 'got "nothing"' in verdict.detail


def test_data_on_disk_cannot_be_read(judge_one: Judge, tmp_path: Path) -> None:
    secret = tmp_path / "expected.txt"
    secret.write_text("SECRET-ANSWER\n")
    secret.chmod(0o644)
    verdict = run(judge_one, f"print(open({str(secret)!r}).read())", make_problem(("", "SECRET-ANSWER\n")))
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert "No such file" in verdict.detail


def test_source_of_the_package_cannot_be_read(judge_one: Judge) -> None:
    import microcoder

    code = (
        f"import os\nprint(os.path.exists({os.path.dirname(microcoder.__file__)!r}), os.path.exists({os.getcwd()!r}))"
    )
    assert run(judge_one, code, make_problem(("", "False False"))).is_accepted


def test_tests_of_one_program_share_no_state(judge_one: Judge) -> None:
    code = """
import os, builtins, sys
seen = os.path.exists("/tmp/mark") or hasattr(builtins, "mark")
open("/tmp/mark", "w").close()
builtins.mark = True
print(seen)
"""
    verdict = run(judge_one, code, make_problem(("1", "False"), ("2", "False"), ("3", "False")))
    assert verdict.is_accepted, verdict.detail

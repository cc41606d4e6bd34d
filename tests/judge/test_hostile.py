"""Hostile programs end in their outcome, and the next one does not notice; nothing but a solution is accepted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome

from .as_user import SETTINGS, contain_suite  # pyrefly: ignore[missing-import]
from .conftest import make_problem, run  # pyrefly: ignore[missing-import]
from .forging_programs import FORGERIES  # pyrefly: ignore[missing-import]
from .hostile_programs import HUNT_FOR_EXPECTED  # pyrefly: ignore[missing-import]
from .safety_suites import BEYOND_TIME_AND_MEMORY, KINDS  # pyrefly: ignore[missing-import]


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        pytest.param("ourselves", (), id="ourselves"),
        pytest.param("nobody in a container", BEYOND_TIME_AND_MEMORY, id="nobody in a container, in part"),
        *(pytest.param(name, (), id=name, marks=pytest.mark.long) for name in SETTINGS if name != "ourselves"),
    ],
)
def test_hostile_programs_are_contained(setting: str, names: tuple[str, ...]) -> None:
    assert contain_suite("hostile", setting, *names) in ("full", "degraded")


@pytest.mark.long
def test_hostile_programs_are_contained_where_tests_share_a_process() -> None:
    contain_suite("hostile", "ourselves", "--together")


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


LONG = ("nobody", "nobody in a container", "root in a container")
SPEND_TIME = (
    "a tree without end",
    "a tree that grows with every read",
    "a list without end",
    "a generator function",
    "a list that is too long for the checker",
)
"""Values that the judge takes apart itself, for seconds, whoever runs it: once is enough."""


@pytest.mark.parametrize(
    "setting", [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in SETTINGS]
)
def test_no_forgery_is_accepted(setting: str) -> None:
    is_again = setting not in ("ourselves", *LONG)
    names = [name for name in FORGERIES if name not in SPEND_TIME] if is_again else []
    assert contain_suite("forging", setting, *names) in ("full", "degraded")


@pytest.mark.long
def test_no_forgery_is_accepted_where_tests_share_a_process() -> None:
    contain_suite("forging", "ourselves", "--together")


def test_every_kind_of_problem_is_tried() -> None:
    assert {kind for kind, _ in FORGERIES.values()} == set(KINDS)


@pytest.mark.parametrize("name", sorted(set(KINDS) - {"cpp"}))
def test_the_honest_program_of_each_kind_is_accepted(judge_one: Judge, name: str) -> None:
    problem, honest = KINDS[name]
    assert judge_one.judge([honest], [problem])[0].is_accepted

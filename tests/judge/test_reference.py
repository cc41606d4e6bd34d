"""The fast judge against the specification, on a sample of everything that is judged; all of it is in benchmarks/."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import microcoder.judge.run.reference as reference
from microcoder.judge import Judge
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Checker, Outcome, Problem, Program, TestCase
from microcoder.judge.run.reference import judge_by_reference
from wheels import keep_packages_in

from .safety_suites import (  # pyrefly: ignore[missing-import]
    FORGERIES,
    HOSTILE,
    can_be_judged,
    forging_case,
    hostile_case,
)
from .stateful_programs import SCREENED  # pyrefly: ignore[missing-import]
from .test_outcomes import (  # pyrefly: ignore[missing-import]
    BROKEN,
    CHECKED,
    READS,
    SUM,
    outcomes,
)

MAY_IMPORT = {
    "compare.compare",
    "compare.values",
    "languages",
    "languages.packages",
    "run.builds",
    "run.problem",
    "run.runtimes",
    "run.supervisor",
    "sandbox.protocol",
}
"""What says how a program is run, how outputs are compared and what a problem's tests are; nothing that judges."""
SLOW = {Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT}


@pytest.fixture(scope="module")
def judging() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0, time_scale=1) as judge:
        yield judge


def test_the_specification_is_short_and_imports_nothing_that_judges() -> None:
    source = Path(reference.__file__).read_text(encoding="utf-8")
    modules = [node.module or "" for node in ast.walk(parse_source(source)) if isinstance(node, ast.ImportFrom)]
    inside = {name.removeprefix("microcoder.judge.") for name in modules if name.startswith("microcoder.judge.")}
    assert len(source.splitlines()) <= 300
    assert {name for name in inside if not name.startswith("core.")} <= MAY_IMPORT


@pytest.mark.parametrize("stop", ["first_failure", "first_limit", "never"])
def test_the_stop_rules_are_the_same(stop: str) -> None:
    partly_wrong = READS + "print(a + b if a != 3 else 0)"
    at_a_limit = READS + "if a == 3: x = bytearray(10 ** 9)\nprint(a + b)"
    with Judge(workers=1, cache_size=0, time_scale=1, stop=stop) as judging:  # pyrefly: ignore[bad-argument-type]
        for code, problem in ((partly_wrong, SUM), (at_a_limit, SUM), ("print(5, 5)", BROKEN)):
            (fast,) = judging.judge([Program(code)], [problem])
            slow = judge_by_reference(Program(code), problem, stop=stop)  # pyrefly: ignore[bad-argument-type]
            assert outcomes(fast) == outcomes(slow)
    # A broken checker ends the program whatever the rule.
    assert outcomes(fast) == [Outcome.SANDBOX_FAULT] * 2


def test_a_checker_may_import_packages_in_both_and_misses_them_in_both(
    judging: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker = Checker(type="program", code=f"import sortedcontainers\n{CHECKED.checker.code}")
    problem = CHECKED.model_copy(update={"checker": checker})
    program = Program("print(5, 5)")
    (fast,) = judging.judge([program], [problem])
    assert outcomes(fast) == outcomes(judge_by_reference(program, problem))
    keep_packages_in(tmp_path, monkeypatch)
    pins = tmp_path / "own.txt"
    pins.write_text("sortedcontainers==0.0.1\n")
    with Judge(workers=1, cache_size=0, time_scale=1, packages=str(pins)) as without:
        (fast,) = without.judge([program], [problem])
    slow = judge_by_reference(program, problem, packages=str(pins))
    assert outcomes(fast) == outcomes(slow) == [Outcome.SANDBOX_FAULT] * 2
    assert "it asks for sortedcontainers" in slow.detail


def sample() -> list[tuple[Program, Problem]]:
    """Programs of the suites that end by themselves; those that spend their time are left to the benchmark.

    What a shared process resets is left to the tests of sharing, which judge all of it with a process a test.
    """
    quick = [name for name, (allowed, _) in HOSTILE.items() if not SLOW & {*allowed}]
    cases = [hostile_case(name) for name in quick[::8]] + [forging_case(name) for name in list(FORGERIES)[::8]]
    pairs = [(case.attempt, case.problem) for case in cases if can_be_judged(case)]
    tests = tuple(TestCase(input="1 2\r\n3\nzzz\n", output=output) for output in ("new", "new", "left"))
    stateful = Problem(id="stateful", tests=tests)
    pairs += [(Program(code), stateful) for code in list(SCREENED.values())[::3]]
    python = [problem.model_copy(update={"tests": (problem.tests * 2)[:2]}) for _, problem in pairs]
    return list(zip([program for program, _ in pairs], python, strict=True))


def test_a_sample_of_the_suites_is_judged_alike(judging: Judge) -> None:
    pairs = sample()
    assert len(pairs) > 40
    for program, problem in pairs:
        (fast,) = judging.judge([program], [problem])
        slow = judge_by_reference(program, problem, stop="first_limit")
        assert outcomes(fast) == outcomes(slow), (program.code, fast.detail, slow.detail)

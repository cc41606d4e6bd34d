"""The yardstick's cases say why, are named by what they ask, and a seed makes others."""

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Problem, Program
from microcoder.lab.yardstick.cases import STORED, build_fresh, choose_cases, load_suite, make_id
from microcoder.lab.yardstick.contained.judges import NEEDS


def test_every_case_says_why_is_named_by_what_it_asks_and_is_there_once() -> None:
    cases = []
    for suite in STORED:
        cases.extend(load_suite(suite))
    assert len({case.id for case in cases}) == len(cases) > 700
    for case in cases:
        assert case.why.endswith(".")
        assert set(case.needs) <= set(NEEDS)
    assert {case.flaw for case in cases} == {"V1", "V2", "V3", "V5", "V6", "V7", "V8"}
    named = {}
    for case in cases:
        named[case.id] = make_id(case.suite, case.code, case.tests, case.problem or None)
    assert [*named] == [*named.values()]


def test_a_seed_makes_and_chooses_the_same_again() -> None:
    assert build_fresh(7) == build_fresh(7)
    assert not {case.id for case in build_fresh(7)} & {case.id for case in build_fresh(8)}
    pairs = load_suite("pairs")
    chosen = choose_cases(pairs, 40, seed=1)
    assert len(chosen) == 40
    assert {case.expect for case in chosen} == {True, False}
    assert chosen == choose_cases(pairs, 40, seed=1) != choose_cases(pairs, 40, seed=2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_a_seed_makes_is_expected_rightly(seed: int) -> None:
    cases = build_fresh(seed)
    tests = []
    for case in cases:
        tests.append([{"input": given, "output": end} for given, end in case.tests])
    problems = []
    for case, each in zip(cases, tests, strict=True):
        problems.append(Problem.model_validate({"id": case.id, "tests": each, **case.problem}))
    with Judge(workers=2) as judging:
        verdicts = judging.judge([Program(case.code) for case in cases], problems)
    wrong = []
    for case, one in zip(cases, verdicts, strict=True):
        if one.is_accepted != case.expect:
            wrong.append(case.title)
    assert wrong == []

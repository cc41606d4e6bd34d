"""LiveCodeBench's functions: its codes, its metadata, its estimate."""

import json

import pytest

from microcoder import EvaluatorFault
from microcoder.integrations.livecodebench import (
    check_correctness,
    codegen_metrics,
    describe,
    run_test,
)
from microcoder.judge.core.types import Problem
from tests.integrations.pairs import AMOUNTS, Pair, fault, judged

SUM = {
    "input_output": json.dumps(
        {"inputs": ["1 2", "5 6", "0 0"], "outputs": ["3", "11", "0"], "fn_name": None}
    )
}
DOUBLE = {
    "input_output": json.dumps({"inputs": ["1", "2"], "outputs": ["2", "4"], "fn_name": "double"})
}
GENERATIONS = {
    "right": (SUM, "print(sum(map(int, input().split())))", [True, True, True]),
    "wrong at the second": (SUM, "print(3)", [True, -2]),
    "an exception at the second": (
        SUM,
        "a = int(input()[0])\nprint(3 if a == 1 else a / 0)",
        [True, -4],
    ),
    "out of time": (SUM, "while True: pass", [-3]),
    "no syntax": (SUM, "def f(:", [-4]),
    "a right function": (
        DOUBLE,
        "class Solution:\n    def double(self, n): return 2 * n",
        [True, True],
    ),
    "a wrong function": (
        DOUBLE,
        "class Solution:\n    def double(self, n): return 2",
        [True, False],
    ),
    "a function that fails": (
        DOUBLE,
        "class Solution:\n    def double(self, n): return 2 // (2 - n)",
        [True, -4],
    ),
    "names without imports": (
        SUM,
        "print(reduce(operator.add, map(int, input().split())))",
        [True, True, True],
    ),
}


def test_codes_and_metadata_are_those_of_livecodebench() -> None:
    for name, (sample, code, expected) in GENERATIONS.items():
        codes, about = run_test(
            sample,
            test=code,
            debug=False,
            timeout=0.2 if name == "out of time" else 5,
        )
        assert codes == expected, name
        assert [type(found) for found in codes] == [type(one) for one in expected]
        if all(found is True for found in codes):
            assert set(about) == {"execution time"}
        else:
            assert about["error_code"] == (codes[-1] or -2)
    assert check_correctness(SUM, "print(3)", 5, debug=False)[0] == [True, -2]


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_metrics_are_those_of_the_judge(pairs: list[Pair]) -> None:
    plain = []
    for pair in pairs:
        if pair.is_plain:
            plain.append(pair)
    expected = [verdict.is_accepted for verdict in judged(plain)]
    samples = [{"input_output": json.dumps(pair.as_input_output())} for pair in plain]
    metrics, results, metadata = codegen_metrics(
        samples,
        [[pair.code] for pair in plain],
        k_list=[1, 5],
        timeout=20,
    )
    accepted = []
    for index in range(len(plain)):
        accepted.append(all(code > 0 for code in results[index][0]))
    assert accepted == expected
    assert metrics["pass@1"] == pytest.approx(sum(expected) / len(expected))
    assert set(metrics) == {"pass@1", "detail"}
    for (about,) in metadata:
        assert isinstance(json.loads(about), dict)


def test_pass_at_k_is_livecodebenchs_estimate() -> None:
    right = GENERATIONS["right"][1]
    wrong = "print(3)"
    metrics, results, _ = codegen_metrics(
        [SUM, SUM],
        [[right, wrong], [wrong, wrong]],
        k_list=[1, 2, 5],
    )
    detail = {"pass@1": {0: 0.5, 1: 0.0}, "pass@2": {0: 1.0, 1: 0.0}}
    assert metrics == {"pass@1": 0.25, "pass@2": 0.5, "detail": detail}
    assert results[0] == [[True, True, True], [True, -2]]


def test_a_fault_has_no_code() -> None:
    problem = Problem.model_validate({"id": "sum", "tests": [{"input": "1", "output": "1"}]})
    with pytest.raises(EvaluatorFault, match="the program has no verdict: the sandbox is gone"):
        describe(fault(problem), problem)

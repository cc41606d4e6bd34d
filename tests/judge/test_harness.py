"""A problem's harness runs an answer in its place; the answer is data to it until it says otherwise."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from microcoder import Outcome, Problem, Program
from microcoder.judge import judge

HARNESS = "def main(answer):\n    names = {}\n    exec(answer, names)\n    print(names['f'](int(input())))\n"
TESTS = ({"input": "3", "output": "9"}, {"input": "-2", "output": "4"})


def test_a_harness_calls_the_answer() -> None:
    problem = Problem.model_validate({"id": "square", "fn_name": "f", "harness": HARNESS, "tests": TESTS})
    answers = ["f = lambda n: n * n", "f = lambda n: n * 3", "f = None", "quote = \"'''\\n\\\\\"\nf = lambda n: n ** 2"]
    verdicts = judge([Program(code) for code in answers], [problem] * len(answers), workers=1)
    assert [verdict.outcome for verdict in verdicts] == [
        Outcome.ACCEPTED,
        Outcome.WRONG_ANSWER,
        Outcome.RUNTIME_ERROR,
        Outcome.ACCEPTED,
    ]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"language": "cpp"}, "harness runs Python answers, but language is 'cpp'"),
        ({"fn_name": "f", "call": {"returns": "ListNode"}}, "harness makes the calls itself"),
        ({"harness": ""}, "at least 1 character"),
    ],
)
def test_what_contradicts_a_harness_is_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Problem.model_validate({"id": "p", "harness": HARNESS, "tests": TESTS} | fields)

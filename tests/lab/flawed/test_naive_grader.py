"""The naive grader is fooled by every trick and right about every answer;
our judge is fooled by none.
"""

from pathlib import Path

import pytest
from naive_grader import fooled_in_process
from payments import read_payments

from microcoder import ConfigError, Outcome, Problem, Program, Rollout
from microcoder.data.micro import generate_problems
from microcoder.data.micro.chains import PROGRAMS, TRICKS
from microcoder.judge import Judge
from microcoder.judge.core.rewards import load_rewards
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.scoring import build_rules, score_rollouts
from microcoder.train.runs import RunDirectory, rollout_row, write_rollouts

GRADER = "naive_grader:fooled_in_process"
FUNCTIONS = [
    problem.model_copy(update={"time_limit_seconds": 0.4})
    for problem in generate_problems(split="train", num_problems=3, styles=("function",))
]
WRONG = "def solve(x):\n    return 'no number'\n"
HANGS = "def solve(x):\n    while True:\n        pass\n"
CRASHES = "def solve(x):\n    return x / 0\n"


def rollout_of(problem: Problem, code: str | None, place: int = 0) -> Rollout:
    response = "no program" if code is None else f"```python\n{code}```"
    return Rollout(problem.id, problem.statement, response, (1, 2, place), False)


def test_what_the_naive_grader_pays_and_what_our_judge_accepts(tmp_path: Path) -> None:
    """One step of training's own scoring, on real sandboxes;
    what it writes is read back as payments.
    """
    answers = [
        *PROGRAMS.values(),
        "reference",
        WRONG,
        HANGS,
        CRASHES,
        "import os\nos._exit(1)\n",
        None,
    ]
    programs = []
    for p in FUNCTIONS:
        programs.append([p.reference if code == "reference" else code for code in answers])
    rollouts = []
    for problem, codes in zip(FUNCTIONS, programs, strict=True):
        rollouts.append([rollout_of(problem, code, place) for place, code in enumerate(codes)])
    rules = build_rules(
        AlgorithmConfig(),
        max_response_tokens=99,
        rewards=load_rewards([(GRADER, 1.0, {})]),
    )
    with Judge(workers=2) as judge:
        scored = score_rollouts(rollouts, FUNCTIONS, judge=judge, rules=rules, seed=0, step=1)
    for samples in scored:
        assert [sample.reward for sample in samples] == [1.0] * 4 + [1.0] + [0.0] * 5
        assert [sample.verdict.is_accepted for sample in samples] == [False] * 4 + [True] + [
            False
        ] * 5
        for sample in samples:
            assert sample.verdict.outcome is not Outcome.SANDBOX_FAULT
    run = RunDirectory(tmp_path)
    rows = []
    for samples in scored:
        for sample in samples:
            rows.append(rollout_row(sample, step=1, temperature=1.0))
    write_rollouts(run.rollout_file(1), rows)
    (payments,) = read_payments(run)
    assert payments.num_scored == 30
    assert payments.reward == 0.5
    assert payments.accuracy == 0.1
    assert payments.paid_wrong == 0.4
    assert payments.unpaid_right == 0.0
    # The program that ends with 1 tries to end the grader, too, in vain.
    assert payments.tricks == {"equals": 0.1, "exit": 0.2, "frame": 0.1, "print": 0.1}
    assert payments.all_tricks == pytest.approx(0.5)


def test_each_trick_pays_on_a_problem_whose_answers_are_no_numbers_and_a_script_is_refused() -> (
    None
):
    tests = [{"input": '"ab"', "output": '{"a": [1, null]}'}, {"input": '"c"', "output": "[]"}]
    problem = Problem.model_validate({"id": "p", "fn_name": "solve", "tests": tests})
    (script,) = generate_problems(split="train", num_problems=1, styles=("stdin",))
    programs = [Program(PROGRAMS[trick]) for trick in TRICKS]  # pyrefly: ignore[bad-index]
    with Judge(workers=1) as judge:
        *verdicts, wrong = judge.judge(
            [*programs, Program("print(1)")], [*[problem] * len(programs), script]
        )
    for program, verdict in zip(programs, verdicts, strict=True):
        assert not verdict.is_accepted
        assert (
            fooled_in_process(problem, rollout_of(problem, program.code), program, verdict) == 1.0
        )
    reward = load_rewards([(GRADER, 1.0, {})])
    with pytest.raises(ConfigError, match=r'use problems.styles = \["function"\]'):
        reward(script, rollout_of(script, "print(1)"), Program("print(1)"), wrong)

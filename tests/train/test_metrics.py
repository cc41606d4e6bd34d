import json
from dataclasses import replace

from test_alarms import HEALTHY

from microcoder import Outcome, Program, Rollout, TestResult, Verdict
from microcoder.train.metrics import (
    EvaluationMetrics,
    ScoredRollout,
    StepMetrics,
    rollout_row,
    summarise_accuracy,
)


def sample(outcome: Outcome, tier: str | None = "easy", method: str = "exact") -> ScoredRollout:
    passed = outcome is Outcome.ACCEPTED
    test = TestResult(outcome, 0.1, 0.2, 10.0, method if passed else "", "" if passed else "2 is not 3")
    reward = None if outcome is Outcome.SANDBOX_FAULT else float(passed)
    return ScoredRollout(
        rollout=Rollout("p1", "Add.", "```\nx\n```", (5, 6, 7), is_truncated=False),
        program=Program("x\n", reason="last_closed_code_block"),
        verdict=Verdict(outcome, (test,), tests_total=2),
        reward=reward,
        advantage=0.5,
        masked_why="",
        tier=tier,
        sample_index=1,
    )


EVALUATION = EvaluationMetrics(
    step=0,
    accuracy=0.5,
    accuracy_by_tier={},
    num_problems=1,
    num_problems_by_tier={},
    samples_per_problem=2,
    num_unscored=1,
    solved={"p1": [True, None]},
    length_mean=3.0,
    diversity=0.5,
    truncated_share=0.0,
    temperature=0.6,
    outcomes={"accepted": 1},
)


def test_accuracy_leaves_unscored_samples_out_of_every_mean() -> None:
    samples = [sample(Outcome.ACCEPTED), sample(Outcome.WRONG_ANSWER), sample(Outcome.SANDBOX_FAULT)]
    assert summarise_accuracy(samples) == (0.5, {"easy": 0.5})
    assert summarise_accuracy([sample(Outcome.SANDBOX_FAULT)]) == (None, {})


def test_rows_are_plain_json_and_come_back_equal() -> None:
    unknown = replace(HEALTHY, reward_mean=None, diversity=None)
    assert StepMetrics(**json.loads(json.dumps(unknown.as_row()))) == unknown
    evaluation = json.loads(json.dumps(EVALUATION.as_row()))
    assert EvaluationMetrics(**evaluation) == EVALUATION


def test_a_rollout_row_holds_what_was_decided() -> None:
    row = rollout_row(sample(Outcome.WRONG_ANSWER), step=4, temperature=1.2)
    assert json.loads(json.dumps(row)) == row
    assert row["num_tokens"] == 3
    assert (row["verdict"], row["tests_passed"], row["tests_total"]) == ("wrong_answer", 0, 2)
    assert row["tests"][0]["verdict"] == "wrong_answer"
    assert row["tests"][0]["detail"] == "2 is not 3"
    unscored = rollout_row(replace(sample(Outcome.SANDBOX_FAULT), advantage=0.0), step=4, temperature=1.2)
    assert unscored["reward"] is None

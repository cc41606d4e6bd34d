from dataclasses import replace
from pathlib import Path

import pytest

from microcoder import (
    ConfigError,
    Outcome,
    Problem,
    Program,
    Rollout,
    TestCase,
    TestResult,
    Verdict,
    score_verdict,
    score_verdicts,
)
from microcoder.judge.core.rewards import ALL_TESTS, Reward, RewardSum, load_rewards


def verdict(outcome: Outcome, *tests: Outcome) -> Verdict:
    results = tuple(TestResult(test, 0.1, 0.1, 10.0, "", "") for test in tests)
    return Verdict(outcome, results, tests_total=3)


def test_only_accepted_scores_one_and_a_sandbox_fault_nothing() -> None:
    worth = {Outcome.ACCEPTED: 1.0, Outcome.SANDBOX_FAULT: None}
    for outcome in Outcome:
        # However many tests passed.
        assert score_verdict(verdict(outcome, Outcome.ACCEPTED, Outcome.ACCEPTED, outcome)) == worth.get(outcome, 0.0)
    outcomes = [Outcome.ACCEPTED, Outcome.SANDBOX_FAULT, Outcome.NO_CODE]
    assert score_verdicts([verdict(outcome) for outcome in outcomes]) == [1.0, None, 0.0]


PROBLEM = Problem(id="p", statement="s", tests=(TestCase(input="", output=""),))


def rollout(*, truncated: bool = False) -> Rollout:
    return Rollout("p", "s", "text", (1, 2), truncated)


def reward_of(rewards: RewardSum, judged: Verdict, *, code: str | None = "x", truncated: bool = False) -> Reward:
    return rewards(PROBLEM, rollout(truncated=truncated), Program(code), judged)


def test_several_rewards_are_a_weighted_sum() -> None:
    rewards = load_rewards([("all_tests", 1.0, {}), ("fraction", 0.5, {}), ("format", -0.25, {})])
    half = replace(verdict(Outcome.WRONG_ANSWER, Outcome.ACCEPTED, Outcome.WRONG_ANSWER), tests_total=2)
    assert reward_of(rewards, half) == Reward(0.0, {"all_tests": 0.0, "fraction": 0.5, "format": 1.0})
    right = replace(verdict(Outcome.ACCEPTED, Outcome.ACCEPTED), tests_total=1)
    assert reward_of(rewards, right).total == 1.25
    assert reward_of(rewards, right, truncated=True).parts["format"] == 0.0
    assert reward_of(rewards, right, code=None).parts["format"] == 0.0
    assert rewards.needs_all_tests == "fraction"
    assert ALL_TESTS.needs_all_tests is None
    assert reward_of(ALL_TESTS, verdict(Outcome.ACCEPTED, Outcome.ACCEPTED)) == Reward(1.0, {})
    with pytest.raises(ConfigError, match="name format twice"):
        load_rewards([("format", 1.0, {}), ("format", 2.0, {})])


OWN = """\
def brevity(problem, rollout, program, verdict, *, limit: int = 4):
    return 1 - len(rollout.token_ids) / limit
def shy(problem, rollout, program, verdict):
    return None
def odd(problem, rollout, program, verdict):
    return float('nan')
def lot(problem, rollout, program, verdict, draw, *, of: float = 1.0):
    return draw * of
lot.needs_draw = True
"""


def test_rewards_of_the_users_own_count_with_their_options(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN)
    right, wrong = (verdict(outcome, outcome) for outcome in (Outcome.ACCEPTED, Outcome.WRONG_ANSWER))
    rewards = load_rewards([("all_tests", 1.0, {}), (f"{own}:brevity", 2.0, {"limit": 8})])
    assert reward_of(rewards, right) == Reward(2.5, {"all_tests": 1.0, "brevity": 0.75})
    # One that is unscored leaves the whole unscored; so does a sandbox fault, whatever a reward would say.
    shy = load_rewards([("all_tests", 1.0, {}), (f"{own}:shy", 0.1, {})])
    assert reward_of(shy, right) == Reward(None, {"all_tests": 1.0, "shy": None})
    assert reward_of(rewards, verdict(Outcome.SANDBOX_FAULT)).total is None
    assert reward_of(rewards, wrong).total == 1.5
    with pytest.raises(ConfigError, match=r"own\.py line 5\) returned nan; return a finite number"):
        reward_of(load_rewards([(f"{own}:odd", 1.0, {})]), right)
    drawn = load_rewards([("all_tests", 1.0, {}), (f"{own}:lot", 1.0, {"of": 2.0})])
    assert drawn(PROBLEM, rollout(), Program("x"), wrong, draw=0.25).parts == {"all_tests": 0.0, "lot": 0.5}
    with pytest.raises(ConfigError, match=r"own\.py line 7\) needs a draw, a random number; outside"):
        drawn(PROBLEM, rollout(), Program("x"), wrong)

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


@pytest.mark.parametrize("outcome", [o for o in Outcome if o not in (Outcome.ACCEPTED, Outcome.SANDBOX_FAULT)])
def test_anything_but_accepted_scores_zero_however_many_tests_passed(outcome: Outcome) -> None:
    assert score_verdict(verdict(outcome, Outcome.ACCEPTED, Outcome.ACCEPTED, outcome)) == 0.0


def test_accepted_scores_one() -> None:
    assert score_verdict(verdict(Outcome.ACCEPTED, *[Outcome.ACCEPTED] * 3)) == 1.0


def test_a_sandbox_fault_is_unscored_not_zero() -> None:
    assert score_verdict(verdict(Outcome.SANDBOX_FAULT, Outcome.ACCEPTED)) is None


def test_scores_keep_the_order() -> None:
    outcomes = [Outcome.ACCEPTED, Outcome.SANDBOX_FAULT, Outcome.NO_CODE]
    assert score_verdicts([verdict(outcome) for outcome in outcomes]) == [1.0, None, 0.0]
    assert score_verdicts([]) == []


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


def test_one_reward_is_itself_and_has_no_parts() -> None:
    assert reward_of(ALL_TESTS, verdict(Outcome.ACCEPTED, Outcome.ACCEPTED)) == Reward(1.0, {})


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(
        "def brevity(problem, rollout, program, verdict, *, limit: int = 4):\n"
        "    return 1 - len(rollout.token_ids) / limit\n"
        "def shy(problem, rollout, program, verdict):\n"
        "    return None\n"
        "def zero(problem, rollout, program, verdict):\n"
        "    return 0.0\n"
        "def odd(problem, rollout, program, verdict):\n"
        "    return float('nan')\n"
    )
    return path


def test_a_reward_of_the_users_own_counts_with_its_options(own: Path) -> None:
    rewards = load_rewards([("all_tests", 1.0, {}), (f"{own}:brevity", 2.0, {"limit": 8})])
    worth = reward_of(rewards, verdict(Outcome.ACCEPTED, Outcome.ACCEPTED))
    assert worth == Reward(2.5, {"all_tests": 1.0, "brevity": 0.75})


def test_one_unscored_reward_leaves_the_whole_unscored(own: Path) -> None:
    rewards = load_rewards([("all_tests", 1.0, {}), (f"{own}:shy", 0.1, {})])
    worth = reward_of(rewards, verdict(Outcome.ACCEPTED, Outcome.ACCEPTED))
    assert worth == Reward(None, {"all_tests": 1.0, "shy": None})


def test_a_sandbox_fault_is_unscored_whatever_a_reward_would_say(own: Path) -> None:
    rewards = load_rewards([(f"{own}:zero", 1.0, {})])
    assert reward_of(rewards, verdict(Outcome.SANDBOX_FAULT)).total is None
    assert reward_of(rewards, verdict(Outcome.WRONG_ANSWER, Outcome.WRONG_ANSWER)).total == 0.0


def test_a_reward_that_is_no_number_is_an_error_with_its_place(own: Path) -> None:
    with pytest.raises(ConfigError, match=r"own\.py line 7\) returned nan; return a finite number"):
        reward_of(load_rewards([(f"{own}:odd", 1.0, {})]), verdict(Outcome.ACCEPTED, Outcome.ACCEPTED))


def test_a_reward_that_needs_a_draw_gets_it_beside_others_that_do_not(own: Path) -> None:
    own.write_text(
        own.read_text() + "def lot(problem, rollout, program, verdict, draw, *, of: float = 1.0):\n"
        "    return draw * of\n"
        "lot.needs_draw = True\n"
    )
    rewards = load_rewards([("all_tests", 1.0, {}), (f"{own}:lot", 1.0, {"of": 2.0})])
    wrong = verdict(Outcome.WRONG_ANSWER, Outcome.WRONG_ANSWER)
    assert rewards(PROBLEM, rollout(), Program("x"), wrong, draw=0.25).parts == {"all_tests": 0.0, "lot": 0.5}
    with pytest.raises(ConfigError, match=r"own\.py line 9\) needs a draw, which only a run has"):
        rewards(PROBLEM, rollout(), Program("x"), wrong)


def test_one_reward_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="name format twice"):
        load_rewards([("format", 1.0, {}), ("format", 2.0, {})])

"""A look before a run says whether the model can learn from the problems."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from small_runs import ROLLOUT, scored

from microcoder.judge.core.types import Outcome
from microcoder.train.rollouts import ScoredRollout
from microcoder.train.run.look import Look, choose_looked_at, describe_look, summarise_look

RIGHT = scored(Outcome.ACCEPTED)
WRONG = scored(Outcome.WRONG_ANSWER)
NO_CODE = scored(Outcome.NO_CODE)
CUT_OFF = scored(Outcome.WRONG_ANSWER, rollout=replace(ROLLOUT, is_truncated=True))
UNSCORED = scored(Outcome.SANDBOX_FAULT)


def lines_of(groups: Sequence[Sequence[ScoredRollout]]) -> str:
    return "\n".join(describe_look(summarise_look(groups), max_response_tokens=64))


def test_a_look_counts_problems_by_whether_they_teach() -> None:
    groups = [[RIGHT, WRONG], [RIGHT, RIGHT], [WRONG, NO_CODE], [CUT_OFF, RIGHT], [UNSCORED, RIGHT]]
    assert summarise_look(groups) == Look(
        num_problems=5,
        num_responses=10,
        num_right=5,
        num_unscored=1,
        num_truncated=1,
        num_without_code=1,
        num_mixed=2,
        num_all_right=2,
        num_all_wrong=1,
    )


def test_a_model_that_solves_nothing_is_told_that_it_cannot_learn() -> None:
    told = lines_of([[WRONG] * 8] * 32)
    assert "0 of 256 are right, every group will be flat" in told
    assert "this model cannot learn from these problems" in told


def test_problems_that_are_always_solved_teach_nothing_either() -> None:
    told = lines_of([[RIGHT] * 8] * 32)
    assert "256 of 256 are right, and every group is flat" in told
    assert "take harder ones" in told


def test_a_share_of_mixed_problems_is_said_as_it_is() -> None:
    told = lines_of([[RIGHT, WRONG]] + [[WRONG, WRONG]] * 3)
    assert "1 of 8 are right: about 25% of a step's problems teach" in told
    assert "little" not in told


def test_few_mixed_problems_are_called_few() -> None:
    assert "which is little" in lines_of([[RIGHT, WRONG]] + [[WRONG, WRONG]] * 31)


def test_what_cuts_responses_off_or_leaves_them_without_code_is_named() -> None:
    assert "raise rollout.max_response_tokens" in lines_of([[CUT_OFF, RIGHT]])
    assert "prompt.style" in lines_of([[NO_CODE, RIGHT]])
    assert "raise rollout.max_response_tokens" not in lines_of([[CUT_OFF, RIGHT, RIGHT]])


def test_unscored_responses_are_not_called_wrong() -> None:
    told = lines_of([[UNSCORED, RIGHT]])
    assert "UNSCORED: 1 responses" in told
    assert summarise_look([[UNSCORED, UNSCORED]]).num_all_wrong == 0


@pytest.mark.parametrize(("num_items", "num_chosen"), [(500, 32), (32, 32), (5, 5)])
def test_at_most_32_problems_are_looked_at_each_once(num_items: int, num_chosen: int) -> None:
    chosen = choose_looked_at(range(num_items), seed=1)
    assert len(set(chosen)) == len(chosen) == num_chosen
    assert choose_looked_at(range(num_items), seed=1) == chosen

"""A look before a run says whether the model can learn from the problems."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from microcoder.cli import main
from microcoder.judge.core.types import Outcome
from microcoder.train.rollouts import ScoredRollout
from microcoder.train.run.look import Look, choose_looked_at, describe_look, summarise_look
from tests.train.small_runs import ROLLOUT, SMALL, scored

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


def is_bare(value: str) -> bool:
    """Whether TOML takes a value without quotes: a number, a list, true or false."""
    return value[0] in "0123456789[" or value in ("true", "false")


@pytest.mark.slow
def test_a_look_at_a_model_samples_and_judges_and_leaves_nothing(
    tiny_checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = tmp_path / "recipe.toml"
    keys = {**SMALL, "model.path": str(tiny_checkpoint)}
    lines = []
    for name, value in keys.items():
        lines.append(f"{name} = {value if is_bare(value) else json.dumps(value)}")
    recipe.write_text("\n".join(lines))
    main(["train", "-c", str(recipe), "--dry-run", "--look"])
    shown = capsys.readouterr().out
    # 24 problems, four samples each.
    assert "look: 24 problems, 96 responses by the untrained model" in shown
    assert "of 96 are right" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]


def test_a_look_belongs_to_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "-c", "micro", "--look"])
    assert "add --dry-run" in capsys.readouterr().err

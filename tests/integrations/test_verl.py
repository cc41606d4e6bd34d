"""The judge in verl's own loader and reward managers, and our advantages among its estimators."""

import asyncio
import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from microcoder import ConfigError, EvaluatorFault
from microcoder.integrations.verl import compute_score, compute_score_sync
from microcoder.judge.core.types import Outcome
from tests.integrations.pairs import AMOUNTS, FAULTY, RIGHT, Pair, judged

TESTS = json.dumps({"inputs": ["1 2", "3 4"], "outputs": ["3", "7"]})
HALF = "```python\nprint(3)\n```"

needs_verl = pytest.mark.skipif(
    find_spec("transfer_queue") is None,
    reason="verl is not installed: make test-verl's environment",
)


def score_of(
    response: str, ground_truth: Any, extra_info: dict[str, Any], **options: Any
) -> dict[str, float | str]:
    return asyncio.run(compute_score("code", response, ground_truth, extra_info, **options))


def row_of(pair: Pair) -> tuple[Any, dict[str, Any]]:
    """A pair's problem as verl's rows have it;
    what inputs and outputs do not say is in extra_info.
    """
    if pair.is_plain:
        return json.dumps(pair.as_input_output()), {"index": 1}
    return "", {"index": 1, "problem": pair.problem.model_dump_json()}


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_scores_are_those_of_the_judge(pairs: list[Pair]) -> None:
    async def ask() -> list[dict[str, float | str]]:
        rows = [(pair.response, *row_of(pair)) for pair in pairs]
        return await asyncio.gather(*(compute_score("code", *row) for row in rows))

    found = asyncio.run(ask())
    expected = [float(verdict.is_accepted) for verdict in judged(pairs)]
    assert [one["score"] for one in found] == expected
    assert {tuple(one) for one in found} == {tuple(found[0])}


def test_every_field_of_a_verdict_is_a_figure() -> None:
    found = score_of(HALF, TESTS, {"index": 3, "num_turns": 2}, mode="fraction")
    assert found["score"] == 0.5
    assert found["tests_passed"] == 1
    assert found["tests_run"] == 2
    assert found["tests_total"] == 2
    assert found["outcome"] == "wrong_answer"
    assert found["is_wrong_answer"] == 1
    assert found["is_accepted"] == 0
    assert {f"is_{outcome}" for outcome in Outcome} <= found.keys()
    waited = compute_score_sync(
        data_source="code",
        solution_str=RIGHT,
        ground_truth=TESTS,
        extra_info={},
    )
    assert waited["score"] == 1.0


def test_a_fault_ends_the_run_or_leaves_the_group_and_is_never_a_zero() -> None:
    extra = {"problem": FAULTY.model_dump_json()}
    with pytest.raises(EvaluatorFault, match="the program has no verdict"):
        score_of(RIGHT, "", extra)
    found = score_of(RIGHT, "", extra, on_fault="leave_out")
    assert math.isnan(float(found["score"]))
    assert found["is_sandbox_fault"] == 1
    with pytest.raises(ConfigError, match="on_fault = 'zero'"):
        score_of(RIGHT, "", extra, on_fault="zero")


@needs_verl
def test_verls_loader_and_manager_take_it(tiny_checkpoint: Path) -> None:
    import numpy as np
    import torch
    from omegaconf import OmegaConf
    from transformers import AutoTokenizer
    from verl import DataProto
    from verl.trainer.ppo.reward import load_reward_manager

    tokenizer: Any = AutoTokenizer.from_pretrained(tiny_checkpoint)
    function = {"path": "pkg://microcoder.integrations.verl", "name": "compute_score"}
    custom = {**function, "reward_kwargs": {"mode": "fraction"}}
    reward = {
        "custom_reward_function": custom,
        "reward_manager": {"source": "register", "name": "naive"},
    }
    manager = load_reward_manager(
        OmegaConf.create({"reward": {**reward, "num_workers": 1}}), tokenizer
    )

    async def ask(response: str) -> dict[str, Any]:
        ids = torch.tensor([tokenizer.encode(response)])
        tensors = {
            "prompts": ids[:, :1],
            "responses": ids,
            "attention_mask": torch.ones(1, 1 + ids.shape[1], dtype=torch.int64),
        }
        others = {
            "data_source": "code",
            "reward_model": {"ground_truth": TESTS},
            "extra_info": {"index": 0},
        }
        arrays = {name: np.array([value], dtype=object) for name, value in others.items()}
        return await manager.run_single(DataProto.from_dict(tensors=tensors, non_tensors=arrays))

    async def ask_both() -> list[dict[str, Any]]:
        return [await ask(RIGHT), await ask(HALF)]

    right, half = manager.loop.run_until_complete(ask_both())
    assert right["reward_score"] == 1.0
    assert half["reward_score"] == 0.5
    assert right["reward_extra_info"]["outcome"] == "accepted"


@needs_verl
def test_our_advantages_leave_out_what_is_unscored() -> None:
    import numpy as np
    import torch
    from verl.trainer.ppo import core_algos

    from microcoder.train.verl import settings

    settings.register(core_algos.ADV_ESTIMATOR_REGISTRY)
    rewards = torch.zeros(6, 3)
    mask = torch.tensor([[1.0, 1, 1], [1, 1, 0]]).repeat(3, 1)
    rewards[[0, 2], 2] = 1.0
    theirs = core_algos.get_adv_estimator_fn("grpo")
    ours = core_algos.get_adv_estimator_fn("microcoder_grpo")
    index = np.array(["a", "a", "a", "b", "b", "b"], dtype=object)
    expected = theirs(
        token_level_rewards=rewards.clone(),
        response_mask=mask,
        index=index,
        config=None,
    )[0]
    found = ours(token_level_rewards=rewards.clone(), response_mask=mask, index=index, config=None)[
        0
    ]
    assert torch.allclose(found, expected, atol=1e-5)
    rewards[0, 2] = torch.nan
    with_fault = ours(token_level_rewards=rewards, response_mask=mask, index=index, config=None)[0]
    assert with_fault[0].tolist() == [0, 0, 0]
    alone = theirs(
        token_level_rewards=rewards[1:3],
        response_mask=mask[1:3],
        index=index[1:3],
        config=None,
    )[0]
    assert torch.allclose(with_fault[1:3], alone, atol=1e-5)
    assert rewards[0].tolist() == [0, 0, 0.5]

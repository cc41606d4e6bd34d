"""The plug-in on verl's own trainer class: the same responses in,
the decisions of every engine out, bit for bit.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import pytest
import torch

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.rewards import ALL_TESTS, Reward
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, Verdict
from microcoder.train.algorithm.selection import choose_problems, count_passes
from microcoder.train.rollouts import ScoredRollout
from microcoder.train.runs import write_rollouts
from tests.train.small_runs import serving
from tests.train.verl.verl_runs import compose_verl, needs_verl

pytestmark = needs_verl
LIMIT = 32
STEP = 3
SEED = 7
ROLLOUT = "actor_rollout_ref.rollout"
AHEAD = "trainer.v1.trainer_mode=microcoder_colocate_async"
CORRECTED = ["actor_rollout_ref.rollout.calculate_log_probs=true", "+microcoder.mismatch={}"]
STAGES = (
    "+microcoder.temperature={kind:staged,stages:[{from_step:1,value:0.4},{from_step:3,value:1.2}]}"
)
OPTIONS = [
    "+microcoder.seed=7",
    "+microcoder.masking={kind:conditional,rho:0.5,repeat_window_tokens:4}",
]


class MemoryQueue:
    """Rows by key, each a mapping of columns."""

    def __init__(self, rows: dict[str, dict[str, Any]]) -> None:
        self.rows = rows

    def get(self, keys: list[str], partition_id: str, select_fields: list[str]) -> Any:
        """Return columns as TransferQueue gives them: tensors nested, the rest stacked;
        absent ones left out.
        """
        import torch
        from tensordict import TensorDict
        from tensordict.tensorclass import NonTensorStack

        columns: dict[str, Any] = {}
        for name in select_fields:
            values = [self.rows[key].get(name) for key in keys]
            if isinstance(values[0], torch.Tensor):
                columns[name] = torch.nested.nested_tensor(values, layout=torch.jagged)
            elif values[0] is not None:
                columns[name] = NonTensorStack(*values)
        return TensorDict(columns, batch_size=len(keys))

    def put(self, keys: list[str], partition_id: str, fields: Any = None, tags: Any = None) -> Any:
        """Write columns."""
        from transfer_queue import KVBatchMeta

        for name in fields.keys():  # noqa: SIM118
            for key, value in zip(keys, fields[name].unbind(), strict=True):
                self.rows[key][name] = value.clone()
        return KVBatchMeta(partition_id=partition_id, keys=keys, tags=[{} for _ in keys])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Stand in for TransferQueue within the body."""
        import transfer_queue as tq

        with patch.object(tq, "kv_batch_get", self.get), patch.object(tq, "kv_batch_put", self.put):
            yield


def compose(*options: str) -> Any:
    usual = ["algorithm.adv_estimator=microcoder_grpo", f"data.max_response_length={LIMIT}"]
    usual += ["actor_rollout_ref.rollout.n=4", "trainer.v1.trainer_mode=microcoder"]
    usual += ["reward.reward_manager.name=microcoder"]
    return compose_verl([*usual, *options])


def make_trainer(checkpoint: Path, folder: Path, *options: str) -> Any:
    """verl's trainer with the plug-in, before it has workers."""
    from transformers import PreTrainedTokenizerFast
    from verl.trainer.ppo.v1 import get_trainer_cls

    from microcoder.train.rollouts import RolloutReader

    config = compose(
        f"+microcoder.run_dir={folder}",
        f"actor_rollout_ref.model.path={checkpoint}",
        *options,
    )
    trainer = get_trainer_cls("microcoder")(config)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(checkpoint)
    trainer.tokenizer = tokenizer
    trainer.reader = RolloutReader(tokenizer, (tokenizer.eos_token_id,), False)
    trainer.global_steps = STEP
    trainer.limit = LIMIT
    trainer.temperature = 1.0
    return trainer


def make_rows(tokenizer: Any, *, faults: bool) -> dict[str, dict[str, Any]]:
    """Responses of 16 problems, four each: some cut off, some repeating themselves, some right,
    some unscored.
    """
    from microcoder.train.verl.rows import FIELD, ResponseJudgement

    draw = random.Random(1)
    rows = {}
    for problem in range(16):
        for sample in range(4):
            number = LIMIT if draw.random() < 0.6 else draw.randint(5, LIMIT - 1)
            ids = [draw.randrange(20, 700) for _ in range(number)]
            if number == LIMIT and draw.random() < 0.3:
                ids = (ids[:4] * 8)[:LIMIT]
            if number < LIMIT:
                ids[-1] = tokenizer.eos_token_id
            outcome = Outcome.ACCEPTED if draw.random() < 0.4 else Outcome.WRONG_ANSWER
            if faults and draw.random() < 0.2:
                outcome = Outcome.SANDBOX_FAULT
            verdict = Verdict(outcome, (), 3)
            reward = None if not verdict.is_scorable else float(verdict.is_accepted)
            score = float("nan") if reward is None else reward
            rows[f"u{problem}_{sample}_0"] = {
                "uid": f"u{problem}",
                "responses": torch.tensor(ids),
                "response_mask": torch.ones(number, dtype=torch.int64),
                "rm_scores": torch.tensor([0.0] * (number - 1) + [score]),
                "extra_info": {"index": problem, "problem_id": f"p{problem}"},
                "data_source": "microcoder",
                "raw_prompt": [{"role": "user", "content": "?"}],
                "extra_fields": {
                    "reward_extra_info": {
                        FIELD: ResponseJudgement(verdict, Reward(reward, {}), "easy").as_json()
                    }
                },
            }
    return rows


def run_advantage(trainer: Any, rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    from transfer_queue import KVBatchMeta

    keys = list(rows)
    metrics = {}
    with MemoryQueue(rows).in_place():
        trainer._compute_advantage(
            KVBatchMeta(partition_id="train", keys=keys, tags=[{} for _ in keys]), metrics
        )
    return metrics


def test_a_reward_that_draws_a_number_is_what_trl_gives(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "def drawn(problem, rollout, program, verdict, draw):\n"
        "    return draw\n"
        "drawn.needs_draw = True\n"
    )
    rewards = f'+microcoder.rewards=[{{name:"{own}:drawn"}},{{name:all_tests}}]'
    assert_rewards_are_trls(tiny_checkpoint, tmp_path, "+microcoder.evaluator={workers:1}", rewards)


def test_a_reward_behind_two_services_is_what_trl_gives(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    with serving() as one, serving() as other:
        evaluator = f'+microcoder.evaluator={{backend:["{one}","{other}"]}}'
        assert_rewards_are_trls(tiny_checkpoint, tmp_path, evaluator)


def assert_rewards_are_trls(checkpoint: Path, folder: Path, *options: str) -> None:
    from transformers import PreTrainedTokenizerFast
    from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls

    from microcoder.judge import Judge
    from microcoder.train.algorithm.scoring import build_rules, score_rollouts
    from microcoder.train.verl.names import COLUMN

    tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(checkpoint)
    problem = Problem(id="double", tests=(TestCase(input="2\n", output="4\n"),))
    (folder / "problems.jsonl").write_text(problem.model_dump_json() + "\n")
    texts = ["```python\nprint(2 * int(input()))\n```", "```python\nprint(5)\n```"]
    responses = [[*tokenizer(text)["input_ids"], tokenizer.eos_token_id] for text in texts]
    problems = f"+microcoder.problems={folder / 'problems.jsonl'}"
    config = compose(
        f"actor_rollout_ref.model.path={checkpoint}",
        problems,
        "+microcoder.seed=7",
        *options,
    )
    manager = get_reward_manager_cls("microcoder")(config, tokenizer)
    row: dict[str, Any] = {"data_source": "microcoder", "extra_info": {"problem_id": "double"}}
    row[COLUMN] = {"max_response_tokens": 999, "step": STEP}

    async def ask() -> list[Any]:
        asked = []
        for n, ids in enumerate(responses):
            asked.append(manager.judge_response({**row, "session_id": n}, ids))
        return await asyncio.gather(*asked)

    found = asyncio.run(ask())
    rules = build_rules(
        manager.settings.build_algorithm("microcoder_grpo"),
        max_response_tokens=999,
        rewards=manager.rewards,
    )
    rollouts = [manager.reader.read("double", "?", responses, max_response_tokens=999)]
    with Judge(workers=1) as judge:
        (expected,) = score_rollouts(
            rollouts,
            [problem],
            judge=judge,
            rules=rules,
            seed=SEED,
            step=STEP,
        )
    assert [one.reward.total for one in found] == [one.reward for one in expected]
    assert [one.verdict.is_accepted for one in found] == [True, False]


class Recorded:
    """A judge that has judged already: verdicts by token ids."""

    def __init__(self, verdicts: list[Verdict]) -> None:
        self._verdicts = verdicts

    def judge(self, programs: list[Program], problems: list[Problem], **_: Any) -> list[Verdict]:
        return self._verdicts


def decide_as_trl(trainer: Any, rows: dict[str, dict[str, Any]]) -> list[ScoredRollout]:
    """What engine trl's path decides about the same responses."""
    from microcoder.train.algorithm.scoring import build_rules, score_rollouts
    from microcoder.train.verl.rows import ResponseJudgement

    problems = []
    for n in range(16):
        problems.append(Problem(id=f"p{n}", tier="easy", tests=(TestCase(input="", output=""),)))
    values = list(rows.values())
    rollouts = []
    for n, problem in enumerate(problems):
        rollouts.append(
            trainer.reader.read(
                problem.id,
                "?",
                [row["responses"].tolist() for row in values[4 * n : 4 * n + 4]],
                max_response_tokens=LIMIT,
            )
        )
    verdicts = [
        ResponseJudgement.read(row["extra_fields"]["reward_extra_info"]).verdict for row in values
    ]
    rules = build_rules(trainer.algorithm, max_response_tokens=LIMIT, rewards=ALL_TESTS)
    judge: Any = Recorded(verdicts)
    scored = score_rollouts(rollouts, problems, judge=judge, rules=rules, seed=SEED, step=STEP)
    samples = []
    for group in scored:
        samples.extend(group)
    return samples


@pytest.mark.parametrize("leave_out_of", ["gradient", "denominator", "baseline"])
def test_masks_and_advantages_are_those_of_trl_bit_for_bit(
    tiny_checkpoint: Path,
    tmp_path: Path,
    leave_out_of: str,
) -> None:
    settings = f"kind:conditional,rho:0.5,repeat_window_tokens:4,leave_out_of:{leave_out_of}"
    masking = f"+microcoder.masking={{{settings}}}"
    trainer = make_trainer(tiny_checkpoint, tmp_path, OPTIONS[0], masking)
    rows = make_rows(trainer.tokenizer, faults=True)
    expected = decide_as_trl(trainer, rows)
    metrics = run_advantage(trainer, rows)
    masked = []
    for sample in expected:
        if sample.masked_why:
            masked.append(sample.masked_why)
    assert len(masked) > 5
    assert any(sample.reward is None for sample in expected)
    assert metrics["microcoder/masked_share"] == len(masked) / 64
    for row, sample in zip(rows.values(), expected, strict=True):
        assert torch.equal(row["advantages"], torch.full_like(row["advantages"], sample.advantage))
        counts = int(leave_out_of == "gradient" or not sample.masked_why)
        assert row["response_mask"].tolist() == [counts] * len(row["responses"])
        assert not row["rm_scores"].isnan().any(), "verl would report a mean that is no number"


@pytest.mark.parametrize("mode", ["truncate", "mask"])
@pytest.mark.parametrize("correction", ["token", "sequence", "geometric"])
def test_weights_are_those_of_trls_path(
    tiny_checkpoint: Path,
    tmp_path: Path,
    correction: str,
    mode: str,
) -> None:
    from microcoder.train.algorithm.sampling import MismatchConfig
    from microcoder.train.run.mismatch import correct_mismatch

    lower, upper = (0.9, 1.05) if correction == "geometric" else (0.8, 1.2)
    options = f"correction:{correction},mode:{mode},threshold:{upper},lower_threshold:{lower}"
    trainer = make_trainer(
        tiny_checkpoint,
        tmp_path,
        *OPTIONS,
        CORRECTED[0],
        f"+microcoder.mismatch={{{options}}}",
    )
    rows = make_rows(trainer.tokenizer, faults=True)
    draw = torch.Generator().manual_seed(0)
    for row in rows.values():
        row["old_log_probs"] = -3 * torch.rand(len(row["responses"]), generator=draw)
        row["rollout_log_probs"] = row["old_log_probs"] + 0.3 * torch.randn(
            len(row["responses"]), generator=draw
        )
    run_advantage(trainer, rows)
    logps, sampler = (
        torch.nn.utils.rnn.pad_sequence([row[name] for row in rows.values()], batch_first=True)
        for name in ("old_log_probs", "rollout_log_probs")
    )
    mask = torch.nn.utils.rnn.pad_sequence(
        [torch.ones(len(row["responses"])) for row in rows.values()], True
    )
    settings = MismatchConfig(
        correction=correction,  # type: ignore[arg-type]
        mode=mode,  # type: ignore[arg-type]
        threshold=upper,
        lower_threshold=lower,
    )
    as_trl = correct_mismatch(logps, sampler, mask, settings=settings)
    for row, weights, seen in zip(
        rows.values(),
        as_trl.weights.expand_as(mask),
        as_trl.rows,
        strict=True,
    ):
        assert torch.equal(row["rollout_is_weights"], weights[: len(row["responses"])])
        assert bool(row["advantages"].any()) <= (seen.weight > 0)
    kept = as_trl.weights.expand_as(mask)[mask > 0] > 0
    assert mode == "truncate" or 0 < int(kept.sum()) < len(kept)


def test_limit_and_age_are_each_responses_own(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """Of responses of `LIMIT` tokens half were asked under a longer limit: these were handed over,
    and not cut.
    """
    from transfer_queue import KVBatchMeta

    from microcoder.train.verl.names import COLUMN

    masking = "+microcoder.masking={kind:soft_penalty,window_tokens:8}"
    trainer = make_trainer(tiny_checkpoint, tmp_path, OPTIONS[0], masking)
    rows = make_rows(trainer.tokenizer, faults=False)
    keys = list(rows)
    tags = []
    for row in rows.values():
        is_old = int(row["uid"][1:]) % 2 == 1
        row[COLUMN] = {"max_response_tokens": LIMIT if is_old else 2 * LIMIT}
        tags.append({"min_global_steps": 0 if is_old else STEP - 1})
    with MemoryQueue(rows).in_place():
        trainer._compute_advantage(KVBatchMeta(partition_id="train", keys=keys, tags=tags), {})
    scored = {}
    for group in trainer._scored_P_G:
        for one in group:
            scored[f"u{one.rollout.problem_id[1:]}_{one.sample_index}_0"] = one
    for key, row in rows.items():
        sample = scored[key]
        is_old = int(row["uid"][1:]) % 2 == 1
        is_cut = is_old and len(row["responses"]) == LIMIT
        assert sample.rollout.is_truncated is is_cut
        assert sample.staleness == (STEP - 1 if is_old else 0)
        assert (sample.length_penalty < 0) == (is_old and len(row["responses"]) > LIMIT - 8)


def test_verl_asks_the_problems_that_are_chosen_by_what_is_recorded(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """As on TRL, by the pure function; in chunks where verl asks in chunks."""
    trainer = make_trainer(
        tiny_checkpoint,
        tmp_path,
        "+microcoder.problem_choice=active",
        "data.train_batch_size=6",
        "+data.gen_batch_size=2",
    )
    names = [f"p{number}" for number in range(12)]
    row = {"prompt": "", "completion": "", "num_tokens": 1, "verdict": "accepted"}
    rows = []
    for name in names[::2]:
        for _ in range(50):
            rows.append({**row, "step": 1, "problem_id": name})
    write_rollouts(trainer.run.rollout_file(1), rows)

    class Dataset(list[dict[str, Any]]):
        dataframe: ClassVar = [{"extra_info": {"problem_id": name}} for name in [*names, *names]]

    trainer.train_dataset = Dataset({"raw_prompt": name} for name in [*names, *names])
    trainer.global_steps, size = 2, trainer.config.data.train_batch_size
    asked = []
    for _ in range(size // 2):
        asked.extend(trainer._fetch_one_gen_batch()["raw_prompt"])
    counts = count_passes(rows, step=1)
    assert asked == choose_problems(names, counts, number=size, seed=0, step=2)


def test_megatrons_configuration_takes_the_plug_in(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """Composed, and no more: there is no Megatron without GPUs."""
    trainer = make_trainer(tiny_checkpoint, tmp_path, "model_engine=megatron", *OPTIONS)
    assert trainer.config.actor_rollout_ref.actor.strategy == "megatron"
    rows = make_rows(trainer.tokenizer, faults=True)
    assert run_advantage(trainer, rows)["microcoder/masked_share"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["+microcoder.rho=0.1"], "microcoder.rho: unknown key"),
        (["algorithm.use_kl_in_reward=true"], "use actor_rollout_ref.actor.use_kl_loss=True"),
        (
            ["+actor_rollout_ref.rollout.agent.agent_loop_manager_class=mine.Manager"],
            "agent_loop_manager_class out",
        ),
        (
            ["+microcoder.mismatch={}", "algorithm.rollout_correction.rollout_is=token"],
            "correct one thing twice",
        ),
        (["algorithm.adv_estimator=microcoder_gppo"], "use microcoder_grpo, microcoder_dr_grpo"),
        (
            ["algorithm.norm_adv_by_std_in_grpo=false"],
            "use algorithm.adv_estimator=microcoder_dr_grpo",
        ),
        (
            ["+microcoder.mismatch={}", f"{ROLLOUT}.calculate_log_probs=false"],
            r"add actor_rollout_ref\.rollout\.calculate_log_probs=True",
        ),
        (
            [AHEAD, *CORRECTED[:1]],
            "learns from responses of older weights, and nothing corrects for that; add",
        ),
        (
            [AHEAD, *CORRECTED, "+microcoder.seeded_sampling=true"],
            "goes on with the random numbers that it began with",
        ),
        (
            [AHEAD, *CORRECTED, STAGES],
            "where verl takes log-probs at one temperature; use a constant one",
        ),
        (
            [
                "+microcoder.problem_choice=active",
                "+algorithm.filter_groups={enable:true,metric:score}",
            ],
            "without algorithm.filter_groups",
        ),
        (
            ["+microcoder.rewards=[{name:fraction}]"],
            r"fraction looks at every test.*evaluator\.stop=never",
        ),
        (["+microcoder.max_response_tokens=64"], "use data.max_response_length=64"),
        (
            ["+microcoder.length_stages=[{from_step:9,max_response_tokens:99}]"],
            "use data.max_response_length=99",
        ),
        (
            ["reward.reward_manager.name=naive"],
            "use microcoder alone, and bring a reward of your own",
        ),
        (["reward.reward_model.enable=true"], "use microcoder alone"),
    ],
)
def test_what_would_act_otherwise_than_it_says_is_an_error(
    tiny_checkpoint: Path,
    tmp_path: Path,
    options: list[str],
    message: str,
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_trainer(tiny_checkpoint, tmp_path, *options)

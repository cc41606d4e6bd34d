"""A run of plain TRL on the tiny model, with its completions logged: what `replay` reads."""

import warnings
from pathlib import Path
from typing import Any

from microcoder.data.micro import generate_problems
from microcoder.integrations.trl import CodeReward
from microcoder.judge.core.types import Problem

LIMIT = 28


class LoggingReward(CodeReward):
    """The judge as reward, which also logs what masks look at."""

    def __call__(self, completions: Any, **columns: Any) -> list[float | None]:
        ids = columns["completion_ids"]
        log = columns["log_extra"]
        log("problem_id", columns["problem_id"])
        log("num_tokens", [len(tokens) for tokens in ids])
        log("is_truncated", [len(tokens) >= LIMIT for tokens in ids])
        log("token_ids", [list(tokens) for tokens in ids])
        return super().__call__(completions, **columns)


def problems_of_run() -> list[Problem]:
    return list(
        generate_problems(split="train", num_problems=8, tiers=("easy",), seed=0, styles=("stdin",))
    )


def train_with_trl(checkpoint: Path, folder: Path, *, logs_more: bool, updates: int = 1) -> Path:
    """Train for three sampling rounds; return the folder of TRL's completions."""
    import torch
    from datasets import Dataset
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    torch.set_num_threads(1)
    rows = []
    for problem in problems_of_run():
        rows.append(
            {
                "prompt": problem.statement,
                "problem": problem.model_dump_json(),
                "problem_id": problem.id,
            }
        )
    arguments = GRPOConfig(
        output_dir=str(folder),
        max_steps=3 * updates,
        num_iterations=updates,
        num_generations=4,
        per_device_train_batch_size=32,
        max_completion_length=LIMIT,
        temperature=0.8,
        learning_rate=1e-3,
        bf16=False,
        use_cpu=True,
        gradient_checkpointing=False,
        report_to="none",
        logging_steps=1,
        log_completions=True,
        num_completions_to_print=0,
        save_strategy="no",
        seed=1,
    )
    reward = LoggingReward() if logs_more else CodeReward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GRPOTrainer(
            str(checkpoint), reward, args=arguments, train_dataset=Dataset.from_list(rows)
        ).train()
    return folder / "completions"

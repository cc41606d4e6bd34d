"""MicroCoder's evaluator as the reward function of a plain TRL trainer.

    python examples/trl_reward.py Qwen/Qwen3-0.6B

Each response is judged as a whole: 1 where its program passes every test, 0 where it does not, None
where the sandbox failed (TRL leaves such a sample out). The columns of the dataset arrive as
keyword arguments.
"""

import json
import sys
import tempfile

import torch
from datasets import Dataset
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from microcoder.integrations.trl import CodeReward

TASKS = [
    {
        "prompt": f"Read two integers and print the {name}.",
        "tests": json.dumps([{"input": "6 3", "output": answer}]),
    }
    for name, answer in {"sum": "9", "product": "18", "difference": "3", "larger one": "6"}.items()
]


def main(model: str) -> None:
    """Train a hub id or a checkpoint folder for two steps."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder,
            max_steps=2,
            num_generations=4,
            per_device_train_batch_size=4,
            max_completion_length=128,
            bf16=torch.cuda.is_available(),
            use_cpu=not torch.cuda.is_available(),
            report_to="none",
            logging_steps=1,
        )
        trainer = GRPOTrainer(
            model,
            CodeReward(),
            args=arguments,
            train_dataset=Dataset.from_list(TASKS),
        )
        trainer.train()


if __name__ == "__main__":
    main(sys.argv[1])

"""A training run whose samples depend on the prompt and the place in the group alone, for any number of processes.

    python keyed_sampling.py RUN_DIRECTORY KEY=VALUE...

Ordinary sampling draws from one stream a process, so two processes sample other responses than one. With the same
responses everything after them (rewards, advantages, masks, loss, update) must come out the same.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.session import run_training
from microcoder.train.trl import engine
from microcoder.train.trl.trainer import MicroCoderTrainer


class KeyedSampling(MicroCoderTrainer):
    """Samples each response with random numbers of its own, and trains in float64.

    In float32, Adam makes a step of up to the learning rate of a gradient that is rounding alone.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self.model is not None
        self.model.double()

    @torch.no_grad()
    def _generate_single_turn(
        self, prompt_ids: Any, images: Any, multimodal_fields: Any, num_generations: Any, has_tool_images: Any = False
    ) -> tuple[list[list[int]], Any]:
        model, limit = self.model, self.max_completion_length
        assert model is not None
        assert limit is not None
        seen: Counter[tuple[int, ...]] = Counter()
        generators = []
        for prompt in map(tuple, prompt_ids):
            key = hash((*prompt, seen[prompt], self.state.global_step)) % 2**31
            generators.append(torch.Generator().manual_seed(key))
            seen[prompt] += 1
        completions: list[list[int]] = [[] for _ in prompt_ids]
        pending = list(range(len(prompt_ids)))
        while pending:
            rows = [prompt_ids[row] + completions[row] for row in pending]
            width = max(map(len, rows))
            ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
            mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
            positions = (mask.cumsum(1) - 1).clamp(min=0)
            logits = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits[:, -1].double()
            for row, shares in zip(pending, torch.softmax(logits / self.temperature, -1), strict=True):
                drawn = torch.rand((), generator=generators[row], dtype=torch.float64)
                completions[row].append(min(int((shares.cumsum(0) < drawn).sum()), len(shares) - 1))
            ended = set(self.eos_token_ids)
            pending = [row for row in pending if len(completions[row]) < limit and completions[row][-1] not in ended]
        return completions, None


def main(run: Path, **recipe: str) -> None:
    torch.set_num_threads(1)
    engine.MicroCoderTrainer = KeyedSampling  # type: ignore[misc]
    run_training(load_config(TrainConfig, overrides=recipe), run_directory=run, observer=Observer())


if __name__ == "__main__":
    main(Path(sys.argv[1]), **dict(word.split("=", 1) for word in sys.argv[2:]))

"""Training on TRL whose samples depend on problem, step and place in the group alone: on no engine,
and no process.

    python keyed_sampling.py RUN_DIRECTORY KEY=VALUE...

Ordinary sampling draws from one stream a process, so that two processes, or verl, sample other
responses. With the same responses everything after them (rewards, advantages, masks, loss, update)
must come out the same.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from verl_on_cpu.sampler import SampleRequest, sample

from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.training import run_training
from microcoder.train.run.weights import encode_chats
from microcoder.train.trl import engine
from microcoder.train.trl.trainer import MicroCoderTrainer
from microcoder.train.verl.names import sampling_seed


class KeyedSampling(MicroCoderTrainer):
    """Samples as the transformers rollout of verl's tests does."""

    @torch.no_grad()
    def generate_responses(
        self, prompt_ids: Any, *_: Any, **__: Any
    ) -> tuple[list[list[int]], Any]:
        model = self.model
        limit = self.max_completion_length
        assert model is not None
        assert limit is not None
        chats = [task.prompt.as_chat() for task in self.train_tasks.values()]
        names = dict(
            zip(map(tuple, encode_chats(self.tokenizer, chats, {})), self.train_tasks, strict=True)
        )
        seen = Counter[str]()
        requests = []
        for prompt in prompt_ids:
            name = names.get(tuple(prompt), f"held out {prompt}")
            seed = sampling_seed(
                self.config.seed,
                step=self.steps_done + 1,
                problem_id=name,
                sample_index=seen[name],
            )
            seen[name] += 1
            requests.append(SampleRequest(prompt, self.temperature, limit, seed))
        was_training = model.training
        model.eval()
        pad = self.tokenizer.pad_token_id
        ends = self.eos_token_ids
        responses = sample(model, requests, pad_id=pad, end_ids=ends)  # type: ignore[arg-type]
        model.train(was_training)
        return [found.token_ids for found in responses], None


class InFloat64(KeyedSampling):
    """In float32, Adam makes a step of up to the learning rate of a gradient that is rounding
    alone.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert self.model is not None
        self.model.double()


def main(run: Path, **recipe: str) -> None:
    torch.set_num_threads(1)
    engine.MicroCoderTrainer = InFloat64  # type: ignore[misc]
    run_training(load_config(TrainConfig, overrides=recipe), run_directory=run, observer=Observer())


if __name__ == "__main__":
    main(Path(sys.argv[1]), **dict(word.split("=", 1) for word in sys.argv[2:]))

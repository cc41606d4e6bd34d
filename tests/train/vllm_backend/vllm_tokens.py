"""The tokens that training samples by vLLM, as JSON:
`python -m tests.train.vllm_backend.vllm_tokens MODEL FOLDER`.

A process a model: vLLM keeps what it loaded, and the port that it listens on,
until its process ends.
"""

import json
import sys
from pathlib import Path

from trl import GRPOTrainer

from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.trl.adapter import set_sampling
from tests.train.small_runs import build_trainer, rows_of
from tests.train.vllm_backend.vllm_runs import RECIPE

TEMPERATURES = (0.7, 1.2)


def sample_tokens(model: Path, run: Path) -> list[list[list[int]]]:
    """Return the responses to a step's prompts at each temperature, as token ids."""
    config = load_config(TrainConfig, overrides={**RECIPE, "model.path": str(model)})
    with Judge(workers=1) as judge:
        trainer = build_trainer(config, run, judge)
        prompts = [row["prompt"] for row in rows_of(trainer)]
        found = []
        for temperature in TEMPERATURES:
            set_sampling(trainer, temperature=temperature, max_response_tokens=24)
            _, responses, *_ = GRPOTrainer._generate(trainer, prompts)
            found.append([list(response) for response in responses])
    return found


if __name__ == "__main__":
    model, folder = sys.argv[1:]
    # vLLM prints to stdout while it loads; the answer is the last line.
    print(json.dumps(sample_tokens(Path(model), Path(folder))))

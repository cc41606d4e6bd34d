"""What sampling with transformers costs: our batch that stays full against one call of `generate`, in pairs.

    python benchmarks/sampling.py [--limits 96 256 512 896] [--rows 8 128] [--rounds 3] [--hidden 128] [--layers 2]

A Qwen3 with random weights draws nearly evenly from its vocabulary, so the number of tokens that count as an end
decides how long responses are. `to the limit`: none ends a response; all rows run to the limit, so that there is no
idle work to leave out, and whatever keeping the batch full costs is seen. `mixed`: responses end at any time, half of
them within a third of the limit. CPU seconds of one thread; a pair is ours and one `generate` on the same prompts.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

from microcoder.train.run.generation import count_rows, sample_responses

VOCABULARY = 1024
NUM_SAMPLES = 8


def build_model(hidden: int, layers: int) -> Any:
    torch.manual_seed(0)
    heads = max(1, hidden // 32)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=32,
        intermediate_size=2 * hidden,
    )
    return Qwen3ForCausalLM(config).eval()


def build_prompts(rows: int) -> list[list[int]]:
    draw = random.Random(0)
    prompts = []
    for _ in range(math.ceil(rows / NUM_SAMPLES)):
        prompt = [draw.randrange(VOCABULARY) for _ in range(draw.randint(40, 120))]
        prompts += [prompt] * NUM_SAMPLES
    return prompts[:rows]


def sample_plainly(model: Any, prompts: list[list[int]], settings: GenerationConfig, limit: int) -> None:
    """As TRL does: all rows in one call."""
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    settings.max_new_tokens = limit
    with torch.no_grad():
        model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)


def measure(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", type=int, nargs="+", default=[96, 256, 512, 896])
    parser.add_argument("--rows", type=int, nargs="+", default=[8, 128])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = build_model(arguments.hidden, arguments.layers)
    print(f"{'limit':>5} {'rows':>4} {'lengths':>12} {'generate':>9} {'ours':>9}  ours / generate, each pair")
    for limit in arguments.limits:
        for rows in arguments.rows:
            for lengths in ("to the limit", "mixed"):
                num_ends = round(VOCABULARY * math.log(2) / (limit / 3)) if lengths == "mixed" else 0
                # Without an end: a token beyond the vocabulary, which is never drawn.
                pairs = measure_pairs(
                    model, build_prompts(rows), limit, list(range(num_ends)) or [VOCABULARY], arguments
                )
                ours, plain = (median(pair[name] for pair in pairs) for name in ("ours", "plain"))
                ratios = " ".join(f"{pair['ours'] / pair['plain']:.2f}" for pair in pairs)
                print(f"{limit:>5} {rows:>4} {lengths:>12} {plain:>8.2f}s {ours:>8.2f}s  {ratios}", flush=True)


def measure_pairs(
    model: Any, prompts: list[list[int]], limit: int, ends: list[int], arguments: argparse.Namespace
) -> list[dict[str, float]]:
    """Return the CPU seconds of both ways to sample, in pairs whose order changes."""
    settings = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=0, eos_token_id=ends, pad_token_id=0, disable_compile=True
    )

    def sample_ours() -> None:
        sample_responses(
            model,
            prompts,
            settings=settings,
            max_response_tokens=limit,
            end_ids=set(ends),
            rows_at_once=count_rows(model, max_tokens=limit),
        )

    ways = [("ours", sample_ours), ("plain", partial(sample_plainly, model, prompts, settings, limit))]
    pairs = []
    for number in range(arguments.rounds):
        seconds = {}
        for name, work in ways if number % 2 else reversed(ways):
            torch.manual_seed(number)
            seconds[name] = measure(work)
        pairs.append(seconds)
    return pairs


if __name__ == "__main__":
    main()

"""Sampling in slots gives what transformers' `generate` gives, one prompt at a time."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from microcoder.train.run.responses import (
    CommonDraws,
    Draws,
    OwnDraws,
    Sampling,
    sample_responses,
)
from microcoder.train.run.slots import find_obstacle

WORDS = 97
SIZES: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
IN_SLOTS = {
    "llama": LlamaConfig(**SIZES),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES),
    "gpt2": GPT2Config(vocab_size=WORDS, n_embd=32, n_layer=2, n_head=4),
    "mistral": MistralConfig(**SIZES, sliding_window=None),
}
OTHERS = {
    "mistral with a window": MistralConfig(**SIZES, sliding_window=8),
    "gemma2": Gemma2Config(**SIZES, sliding_window=8),
    "mamba": MambaConfig(vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, state_size=4),
}
PROMPTS = [
    [5, 9, 3],
    [7],
    [5, 9, 3],
    list(range(20, 90)),
    [44, 2, 81, 6, 6, 10],
    [5, 9, 3],
    [44, 2, 81, 6, 6, 11],
]
LIMIT = 20
GREEDY = Sampling(0.0, 1.0, LIMIT, [1, 8], 0)
WARM = Sampling(1.3, 0.9, LIMIT, [1, 8], 0)


def build(config: PreTrainedConfig) -> Any:
    torch.manual_seed(3)
    torch.set_num_threads(1)
    # Wide weights: the likeliest words stand out, and no tie is broken by rounding.
    config.initializer_range = 0.3
    return AutoModelForCausalLM.from_config(config).eval()


def respond(
    model: Any,
    sampling: Sampling,
    draws: Draws,
    *,
    batch_size: int,
    in_slots: bool = True,
    prompts: Sequence[Sequence[int]] = PROMPTS,
) -> list[list[int]]:
    found = dict(
        sample_responses(
            model, prompts, sampling, draws=draws, batch_size=batch_size, in_slots=in_slots
        )
    )
    return [found[index] for index in range(len(prompts))]


def generate(model: Any, prompts: Sequence[Sequence[int]], **options: Any) -> list[list[int]]:
    width = max(map(len, prompts))
    ids = [[0] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    out = model.generate(
        input_ids=torch.tensor(ids),
        attention_mask=torch.tensor(mask),
        max_new_tokens=LIMIT,
        eos_token_id=[1, 8],
        pad_token_id=0,
        **options,
    )
    found = []
    for row in out[:, width:].tolist():
        ends = [place for place, token in enumerate(row) if token in (1, 8)]
        found.append(row[: ends[0] + 1] if ends else row)
    return found


@pytest.mark.parametrize("name", [*IN_SLOTS, *OTHERS])
def test_greedy_responses_are_those_of_a_prompt_alone(name: str) -> None:
    model = build((IN_SLOTS | OTHERS)[name])
    is_in_slots = find_obstacle(model) is None
    assert is_in_slots == (name in IN_SLOTS)
    expected = [generate(model, [prompt], do_sample=False)[0] for prompt in PROMPTS]
    if is_in_slots:
        # They end at different tokens, so that slots become free.
        assert len({len(ids) for ids in expected}) > 1
    draws = OwnDraws([0] * len(PROMPTS), LIMIT)
    for batch_size in (1, 3, 7):
        found = respond(model, GREEDY, draws, batch_size=batch_size, in_slots=is_in_slots)
        assert found == expected


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_sampled_responses_are_the_same_in_each_batch_and_by_generate(name: str) -> None:
    model = build(IN_SLOTS[name])
    seeds = range(len(PROMPTS))
    expected = []
    for seed, prompt in zip(seeds, PROMPTS, strict=True):
        draws = OwnDraws([seed], LIMIT)
        expected.extend(respond(model, WARM, draws, batch_size=1, prompts=[prompt]))
    for batch_size in (1, 3, 7):
        for in_slots in (True, False):
            draws = OwnDraws(seeds, LIMIT)
            found = respond(model, WARM, draws, batch_size=batch_size, in_slots=in_slots)
            assert found == expected


@pytest.mark.parametrize("name", ["llama", "qwen2", "mistral with a window"])
def test_common_draws_are_those_of_generate(name: str) -> None:
    model = build((IN_SLOTS | OTHERS)[name])
    torch.manual_seed(11)
    expected = generate(model, PROMPTS, do_sample=True, temperature=1.3, top_k=0)
    torch.manual_seed(11)
    found = respond(
        model,
        WARM._replace(top_p=1.0),
        CommonDraws(len(PROMPTS)),
        batch_size=len(PROMPTS),
        in_slots=name in IN_SLOTS,
    )
    assert found == expected


def test_attention_is_the_models_own_again_after_a_step() -> None:
    model = build(IN_SLOTS["llama"])
    before = model.config._attn_implementation
    responses = sample_responses(
        model,
        PROMPTS,
        GREEDY,
        draws=OwnDraws([0] * len(PROMPTS), LIMIT),
        batch_size=3,
        in_slots=True,
    )
    next(responses)
    assert model.config._attn_implementation == before

"""The transformers sampler: responses that depend on nothing but their own request."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from verl_on_cpu.sampler import SampleRequest, sample

PROMPTS = ["Read n.", "Print the sum of two numbers.", "Given a list, return the largest of it, or 0."]


@pytest.fixture(scope="module")
def policy(tiny_checkpoint: Path) -> tuple[torch.nn.Module, list[list[int]], int, int]:
    torch.set_num_threads(1)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tiny_checkpoint)
    model = AutoModelForCausalLM.from_pretrained(tiny_checkpoint).eval()
    return model, [tokenizer(text)["input_ids"] for text in PROMPTS], tokenizer.pad_token_id, tokenizer.eos_token_id


def test_a_response_is_the_same_alone_and_in_a_batch(policy: tuple) -> None:
    model, prompts, pad, end = policy
    requests = [SampleRequest(prompts[i % 3], (0.7, 1.3)[i % 2], (10, 40)[i % 2], seed=i) for i in range(12)]
    together = [found.token_ids for found in sample(model, requests, pad_id=pad, end_ids=[end])]
    alone = [sample(model, [request], pad_id=pad, end_ids=[end])[0].token_ids for request in requests]
    assert together == alone
    assert all(len(r) == q.max_tokens or r[-1] == end for r, q in zip(together, requests, strict=True))
    assert any(r[-1] == end and len(r) < q.max_tokens for r, q in zip(together, requests, strict=True))


def test_tokens_come_as_often_as_the_model_says(policy: tuple) -> None:
    model, prompts, pad, _ = policy
    number, temperature = 4000, 0.5
    requests = [SampleRequest(prompts[0], temperature, 1, seed) for seed in range(number)]
    counts = Counter(found.token_ids[0] for found in sample(model, requests, pad_id=pad, end_ids=[]))
    with torch.no_grad():
        shares = torch.softmax(model(torch.tensor([prompts[0]])).logits[0, -1] / temperature, -1)
    for token in shares.topk(5).indices.tolist():
        share = float(shares[token])
        assert abs(counts[token] / number - share) < 4.5 * (share * (1 - share) / number) ** 0.5

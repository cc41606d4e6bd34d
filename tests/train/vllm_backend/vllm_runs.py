"""What the vLLM tests train: the smallest run with a stage of temperature and one of length."""

from importlib.util import find_spec

import pytest

from tests.train.small_runs import SMALL

needs_vllm = pytest.mark.skipif(
    find_spec("vllm") is None, reason="vLLM is not installed; type: make test-vllm"
)

ON_CPU = {"TORCH_COMPILE_DISABLE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
"""Compiled, vLLM would take minutes to load and sample no faster;
without a limit (GiB) it takes most of the memory.
"""

RECIPE = {
    **SMALL,
    "cpu_threads": "1",
    "num_steps": "4",
    "rollout.backend": "vllm",
    "rollout.max_response_tokens": "24",
    "rollout.length_stages": "[{from_step = 3, max_response_tokens = 28}]",
    "rollout.temperature.kind": "staged",
    "rollout.temperature.stages": "[{from_step = 1, value = 0.8}, {from_step = 3, value = 1.2}]",
    # So that every group teaches something: the model is too small to be right often.
    "algorithm.masking.kind": "soft_penalty",
    "algorithm.masking.window_tokens": "16",
    "evaluation.every_steps": "2",
    "checkpoint.every_steps": "2",
}

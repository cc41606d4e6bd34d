"""What the vLLM tests train: the smallest run with a stage of temperature and one of length."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from small_runs import SMALL

needs_vllm = pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; type: make test-vllm")

ON_CPU = {"OMP_NUM_THREADS": "1", "TORCH_COMPILE_DISABLE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
"""Compiled, vLLM would take minutes to load and sample no faster; without a limit (GiB) it takes most of the memory."""

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


def start_training(checkpoint: Path, run: Path) -> subprocess.Popen[str]:
    """Start `microcoder train` in a process of its own."""
    empty = run.parent / "empty.toml"
    empty.touch()
    recipe = {**RECIPE, "model.path": str(checkpoint)}
    flags = [word for key, value in recipe.items() for word in (f"--{key}", value)]
    return subprocess.Popen(
        [sys.executable, "-m", "microcoder", "train", "-c", str(empty), *flags, "--run-dir", str(run)],
        env={**ON_CPU, **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for a command and return what it said."""
    said, _ = process.communicate(timeout=280)
    assert process.returncode == 0, said
    return said

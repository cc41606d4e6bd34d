"""Our names in verl's registries, and how verl's processes are told; imports nothing of verl."""

from __future__ import annotations

PACKAGE = "microcoder.training.engines.verl"
TRAINER_MODE = "microcoder"
AGENT_LOOP = "microcoder"
REWARD_MANAGER = "microcoder"
ROLLOUT = "transformers"
"""Of runs without GPUs."""
DEVICE_VARIABLE = "MICROCODER_VERL_DEVICE"
"""Set to `cpu` in the environment of every process of a run without GPUs, for tests."""

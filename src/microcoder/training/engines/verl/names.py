"""Our names in verl's registries; imports nothing of verl."""

from __future__ import annotations

PACKAGE = "microcoder.training.engines.verl"
TRAINER_MODE = "microcoder"
AGENT_LOOP = "microcoder"
REWARD_MANAGER = "microcoder"

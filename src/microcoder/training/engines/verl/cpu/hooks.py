"""What runs without GPUs enter into verl's registries, see `plugin.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from microcoder.training.engines.verl.cpu.platform import CPU, use_cpu
from microcoder.training.engines.verl.names import ROLLOUT

ROOM = "microcoder.training.engines.verl.cpu"

__all__ = ["CPU_HOOKS", "use_cpu"]


def _enter_engines(module: ModuleType) -> None:
    # verl's FSDP engine is registered for CUDA and NPU.
    from verl.workers.engine.base import EngineRegistry

    for strategy in ("fsdp", "fsdp2"):
        EngineRegistry._engines["language_model"][strategy].setdefault(CPU, module.FSDPEngineWithLMHead)


def _enter_replica(module: ModuleType) -> None:
    def load() -> Any:
        from microcoder.training.engines.verl.cpu.rollout import TransformersReplica

        return TransformersReplica

    module.RolloutReplicaRegistry.register(ROLLOUT, load)


def _enter_rollout(module: ModuleType) -> None:
    module._ROLLOUT_REGISTRY[ROLLOUT, "async"] = f"{ROOM}.rollout.TransformersRollout"


CPU_HOOKS: Mapping[str, Callable[[ModuleType], None]] = {
    "verl.workers.engine.fsdp.transformer_impl": _enter_engines,
    "verl.workers.rollout.replica": _enter_replica,
    "verl.workers.rollout.base": _enter_rollout,
}

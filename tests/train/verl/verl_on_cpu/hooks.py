"""What verl loads in each of its processes, by VERL_USE_EXTERNAL_MODULES=verl_on_cpu.hooks,
to run without GPUs.
"""

import functools
import itertools
from types import ModuleType
from typing import Any

from verl_on_cpu.platform import CPU, use_cpu

from microcoder.train.verl.names import COLUMN
from microcoder.train.verl.plugin import install

ROLLOUT = "transformers"


def _enter_engines(module: ModuleType) -> None:
    # verl's FSDP engine is registered for CUDA and NPU.
    from verl.workers.engine.base import EngineRegistry

    for strategy in ("fsdp", "fsdp2"):
        EngineRegistry._engines["language_model"][strategy].setdefault(
            CPU, module.FSDPEngineWithLMHead
        )


def _enter_replica(module: ModuleType) -> None:
    def load() -> Any:
        from verl_on_cpu.rollout import TransformersReplica

        return TransformersReplica

    module.RolloutReplicaRegistry.register(ROLLOUT, load)


def _enter_rollout(module: ModuleType) -> None:
    module._ROLLOUT_REGISTRY[ROLLOUT, "async"] = "verl_on_cpu.rollout.TransformersRollout"


def _forget_sklearn(module: ModuleType) -> None:
    # A fifth of what each of a run's ten processes imports, for candidates that nobody generates.
    module.is_sklearn_available = lambda: False  # type: ignore[attr-defined]


def _copy_what_is_saved(module: ModuleType) -> None:
    # verl keeps weights aside by moving them to the CPU, which is no copy there.
    save = module.fsdp2_sharded_save_to_cpu

    def fsdp2_sharded_save_to_cpu(model: Any) -> Any:
        state, spec = save(model)
        return {name: (tensor.clone(), of_it) for name, (tensor, of_it) in state.items()}, spec

    module.fsdp2_sharded_save_to_cpu = fsdp2_sharded_save_to_cpu  # type: ignore[attr-defined]


def _count_rounds(module: ModuleType) -> None:
    """Say with each seeded request how many its round has:
    the server then samples them as one batch.

    The last bits of a product depend on the batch,
    so that a run would otherwise depend on the order of arrival.
    """
    manager = module.AgentLoopManagerTQ
    worker = module.AgentLoopWorkerTQ.__ray_metadata__.modified_class
    generate = manager.generate_sequences
    run = worker._run_agent_loop
    numbers = itertools.count()

    def generate_sequences(self: Any, prompts: Any) -> None:
        from verl.utils import tensordict_utils

        asked = tensordict_utils.get_non_tensor_data(prompts, COLUMN, None)
        if asked is not None and asked["seed"] is not None:
            number = asked["num_samples"] or self.config.actor_rollout_ref.rollout.n
            asked["round"] = (next(numbers), len(prompts) * number)
            tensordict_utils.assign_non_tensor_data(prompts, COLUMN, asked)
        generate(self, prompts)

    @functools.wraps(run)
    async def _run_agent_loop(
        self: Any, sampling_params: dict[str, Any], trajectory: Any, **kwargs: Any
    ) -> Any:
        if found := (kwargs.get(COLUMN) or {}).get("round"):
            sampling_params = {**sampling_params, "round": found}
        return await run(self, sampling_params, trajectory, **kwargs)

    manager.generate_sequences = generate_sequences
    worker._run_agent_loop = _run_agent_loop


use_cpu()
install(
    {
        "transformers.utils.import_utils": _forget_sklearn,
        "verl.workers.engine.fsdp.transformer_impl": _enter_engines,
        "verl.workers.rollout.replica": _enter_replica,
        "verl.workers.rollout.base": _enter_rollout,
        "verl.utils.fsdp_utils": _copy_what_is_saved,
        "verl.trainer.ppo.v1.agent_loop_tq": _count_rounds,
    }
)

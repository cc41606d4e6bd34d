"""The private names of verl that the plug-in rests on. What a release changes of them fails here first."""

import inspect
from importlib import import_module

from verl_runs import needs_verl

OF_TRAINERS = {
    "_balance_batch": "batch, metrics, logging_prefix, keep_minibatch",
    "_compute_advantage": "batch, metrics",
    "_compute_metrics": "batch, metrics, timing_raw, global_steps, epoch",
    "_fetch_one_gen_batch": "",
    "_init_tokenizer": "",
    "_load_checkpoint": "",
    "_reissue_inflight_prompts": "partition_id",
    "_save_checkpoint": "",
    "_validate": "",
}
"""Of `PPOTrainer`: name and parameters."""
OF_AGENT_LOOPS = {"_run_agent_loop": "sampling_params, trajectory, agent_name, trace, _ray_trace_ctx, kwargs"}
"""Of the class that `AgentLoopWorkerTQ` makes an actor of."""
REGISTRIES = {"_agent_loop_registry": "verl.experimental.agent_loop.agent_loop"}
"""By name, and the module that has it."""


def parameters(function: object) -> str:
    """Return a function's parameters but for `self`, by name."""
    assert callable(function)
    return ", ".join(list(inspect.signature(function).parameters)[1:])


@needs_verl
def test_trainer_agent_loop_and_registries_are_what_they_were() -> None:
    trainer = import_module("verl.trainer.ppo.v1.trainer_base").PPOTrainer
    assert {name: parameters(getattr(trainer, name)) for name in OF_TRAINERS} == OF_TRAINERS
    worker = import_module("verl.trainer.ppo.v1.agent_loop_tq").AgentLoopWorkerTQ.__ray_metadata__.modified_class
    assert {name: parameters(getattr(worker, name)) for name in OF_AGENT_LOOPS} == OF_AGENT_LOOPS
    assert all(isinstance(getattr(import_module(module), name), dict) for name, module in REGISTRIES.items())

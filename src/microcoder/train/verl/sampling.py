"""Passes temperature, length limit and seed with the prompts to verl's agent loops; an agent loop of our own.

verl's workers hold a copy of the configuration from the start of the run, so values that change from step to step would
not reach them that way. Any agent loop can be used: each of its requests is sampled with these values.
"""

import time
from dataclasses import asdict
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.utils import tensordict_utils

from microcoder.judge.core.errors import DataError
from microcoder.train.run.weights import encode_chats
from microcoder.train.verl.names import COLUMN, Sampling, problem_name, sampling_seed


class SamplingWorker(AgentLoopWorkerTQ.__ray_metadata__.modified_class):  # type: ignore[name-defined, misc]
    """verl's agent-loop worker, which samples each response with the temperature, length limit and seed of its row."""

    async def _run_agent_loop(
        self, sampling_params: dict[str, Any], trajectory: dict[str, Any], **kwargs: Any
    ) -> Any:
        if (asked := kwargs.get(COLUMN)) is not None:
            sampling_params = {
                **sampling_params,
                "temperature": asked["temperature"],
                "max_tokens": asked["max_response_tokens"],
            }
            if asked["seed"] is not None:
                sampling_params["seed"] = sampling_seed(
                    asked["seed"],
                    step=asked["step"],
                    problem_id=problem_name(
                        kwargs.get("extra_info"), kwargs.get("data_source", "")
                    ),
                    sample_index=int(kwargs["session_id"]),
                )
        return await super()._run_agent_loop(sampling_params, trajectory, **kwargs)


class SamplingManager(AgentLoopManagerTQ):
    """verl's manager of agent loops; the trainer sets its `sampling` before each round of prompts."""

    sampling: Sampling | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        import ray

        self.agent_loop_workers_class = ray.remote(SamplingWorker)

    def generate_sequences(self, prompts: Any) -> None:
        """Start sampling these prompts with `sampling`, without waiting for them."""
        if self.sampling is not None:
            tensordict_utils.assign_non_tensor_data(prompts, COLUMN, asdict(self.sampling))
            if (number := self.sampling.num_samples) is not None:
                tensordict_utils.assign_non_tensor_data(prompts, "__rollout_n__", number)
        super().generate_sequences(prompts)


class SingleTurn(AgentLoopBase):
    """Agent loop of one response to one prompt, encoded only by the chat template, as on engine trl.

    verl's own single_turn_agent joins turns by the special tokens of some model families, and supports no others.
    """

    def __init__(self, trainer_config: Any, server_manager: Any, tokenizer: Any, **_: Any) -> None:
        self.config, self.server_manager, self.tokenizer = (
            trainer_config.config,
            server_manager,
            tokenizer,
        )

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """Return the response to a row's prompt; DataError if the prompt is too long."""
        options = dict(self.config.data.get("apply_chat_template_kwargs") or {})
        (prompt_ids,) = encode_chats(self.tokenizer, [kwargs["raw_prompt"]], options)
        if len(prompt_ids) > (longest := self.config.data.max_prompt_length):
            raise DataError(
                f"a prompt has {len(prompt_ids)} tokens, more than data.max_prompt_length = {longest}; raise it"
            )
        start = time.perf_counter()
        answer = await self.server_manager.generate(
            request_id=uuid4().hex, prompt_ids=prompt_ids, sampling_params=sampling_params
        )
        limit = self.config.actor_rollout_ref.rollout.response_length
        response_ids = list(answer.token_ids)[:limit]
        return AgentLoopOutput(
            prompt_ids=prompt_ids,
            response_ids=response_ids,
            response_mask=[1] * len(response_ids),
            response_logprobs=list(answer.log_probs)[: len(response_ids)]
            if answer.log_probs
            else None,
            num_turns=2,
            metrics=AgentLoopMetrics(generate_sequences=time.perf_counter() - start),
            extra_fields=dict(answer.extra_fields),
        )

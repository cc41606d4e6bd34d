"""Passes temperature, length limit and seed with the prompts to verl's agent loops.

verl's workers copy the configuration at the start of the run, so that values which change from step
to step would not reach them that way. Any agent loop can be used: each of its requests is sampled
with these values. This file also has an agent loop of our own.
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
    """verl's agent-loop worker, which samples each response as its row says.

    A row has a temperature, a length limit and a seed.
    """

    async def _run_agent_loop(
        self, sampling_params: dict[str, Any], trajectory: dict[str, Any], **kwargs: Any
    ) -> Any:
        row = kwargs.get(COLUMN)
        if row is not None:
            sampling_params = {
                **sampling_params,
                "temperature": row["temperature"],
                "max_tokens": row["max_response_tokens"],
            }
        if row is not None and row["seed"] is not None:
            sampling_params["seed"] = sampling_seed(
                row["seed"],
                step=row["step"],
                problem_id=problem_name(kwargs.get("extra_info"), kwargs.get("data_source", "")),
                sample_index=int(kwargs["session_id"]),
            )
        return await super()._run_agent_loop(sampling_params, trajectory, **kwargs)


class SamplingManager(AgentLoopManagerTQ):
    """verl's manager of agent loops, with the sampling settings of a round.

    The trainer sets them before each round of prompts.
    """

    sampling: Sampling | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        import ray

        # verl starts its workers of this class.

        self.agent_loop_workers_class = ray.remote(SamplingWorker)

    def generate_sequences(self, prompts: Any) -> None:
        """Start sampling these prompts with `sampling`, without waiting for them."""
        if self.sampling is not None:
            tensordict_utils.assign_non_tensor_data(prompts, COLUMN, asdict(self.sampling))
            number = self.sampling.num_samples
            if number is not None:
                tensordict_utils.assign_non_tensor_data(prompts, "__rollout_n__", number)
        super().generate_sequences(prompts)


class SingleTurn(AgentLoopBase):
    """Agent loop of one response to one prompt.

    The prompt is encoded only by the chat template, as on engine trl.

    verl's own single_turn_agent joins turns by the special tokens of some model families, and
    supports no others.
    """

    def __init__(self, trainer_config: Any, server_manager: Any, tokenizer: Any, **_: Any) -> None:
        self.config = trainer_config.config
        self.server_manager = server_manager
        self.tokenizer = tokenizer

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """Return the response to a row's prompt; DataError if the prompt is too long."""
        options = dict(self.config.data.get("apply_chat_template_kwargs") or {})
        (prompt_ids,) = encode_chats(self.tokenizer, [kwargs["raw_prompt"]], options)
        longest = self.config.data.max_prompt_length
        if len(prompt_ids) > longest:
            raise DataError(
                f"a prompt has {len(prompt_ids)} tokens, more than data.max_prompt_length = "
                f"{longest}; raise it"
            )
        start = time.perf_counter()
        answer = await self.server_manager.generate(
            request_id=uuid4().hex, prompt_ids=prompt_ids, sampling_params=sampling_params
        )
        # What verl's batches hold is no longer, whatever the server's own limit.
        limit = self.config.actor_rollout_ref.rollout.response_length
        response_ids = list(answer.token_ids)[:limit]
        logprobs = None
        if answer.log_probs:
            logprobs = list(answer.log_probs)[: len(response_ids)]
        return AgentLoopOutput(
            prompt_ids=prompt_ids,
            response_ids=response_ids,
            response_mask=[1] * len(response_ids),
            response_logprobs=logprobs,
            num_turns=2,
            metrics=AgentLoopMetrics(generate_sequences=time.perf_counter() - start),
            extra_fields=dict(answer.extra_fields),
        )

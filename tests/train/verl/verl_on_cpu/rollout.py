"""A rollout server on transformers, behind verl's own interfaces: for tests of everything else.

Requests come one by one. Those that carry a round are sampled together once all of it are there, in
a fixed order, so that a run does not depend on the order of arrival; others are sampled with
whatever has come by then, and can be interrupted: who asked gets what there is, and asks for the
rest once the server has new weights.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import ray
import torch
from transformers import AutoModelForCausalLM
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput
from verl_on_cpu.sampler import SampleRequest, has_ended, sample

from microcoder.train.run.weights import end_token_ids

THREADS_VARIABLE = "OMP_NUM_THREADS"
PAUSED_VARIABLE = "PAUSED_STEP"
PAUSE_SECONDS = 90.0
"""Responses of the weights of this step wait half done for new ones:
so that these find some to interrupt.
"""
GATHER_SECONDS = 0.3
"""How long requests without a round wait for others."""
FOREVER = 1_000_000
"""Calls that may wait in the server at a time: a round waits until it is complete."""


def server_name(replica_rank: int) -> str:
    """Return the Ray name of a replica's server."""
    return f"microcoder_transformers_{replica_rank}"


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: SampleRequest
    answer: asyncio.Future[TokenOutput]


class TransformersServer:
    """Holds a copy of the weights and samples from it; a Ray actor."""

    def __init__(
        self,
        model_path: str,
        *,
        dtype: str,
        pad_id: int,
        end_ids: list[int],
        max_tokens: int,
        first_seed: int,
    ) -> None:
        set_threads()
        self._model = AutoModelForCausalLM.from_pretrained(
            model_path, dtype=getattr(torch, dtype)
        ).eval()
        self._pad_id = pad_id
        self._end_ids = end_ids
        self._max_tokens = max_tokens
        self._rounds: dict[int, list[_Waiting]] = {}
        self._num_requests = first_seed
        self._busy = asyncio.Lock()
        self._open = asyncio.Event()
        self._open.set()
        self._stop, self._rejects = threading.Event(), False
        self._step = 0

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **_: Any
    ) -> TokenOutput:
        """Return the response to a prompt, once its round has been sampled;
        of an interrupted one what there is.
        """
        if not self._open.is_set() and self._rejects:
            return TokenOutput(
                token_ids=[],
                log_probs=[],
                stop_reason="aborted",
                extra_fields=self._versions(),
            )
        await self._open.wait()
        loop = asyncio.get_running_loop()
        self._num_requests += 1
        request = SampleRequest(
            prompt_ids=prompt_ids,
            temperature=sampling_params["temperature"],
            max_tokens=sampling_params.get("max_tokens", self._max_tokens),
            seed=sampling_params.get("seed", self._num_requests),
        )
        waiting = _Waiting(request, loop.create_future())
        number, size = sampling_params.get("round", (-1, None))
        entries = self._rounds.setdefault(number, [])
        entries.append(waiting)
        if size is None and len(entries) == 1:
            await asyncio.sleep(GATHER_SECONDS)
            size = len(entries)
        if len(entries) == size:
            del self._rounds[number]
            entries.sort(key=lambda entry: (entry.request.prompt_ids, entry.request.seed))
            async with self._busy:
                await asyncio.to_thread(self._answer, entries, loop)
        return await waiting.answer

    def _answer(self, entries: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        try:
            responses = sample(
                self._model,
                [entry.request for entry in entries],
                pad_id=self._pad_id,
                end_ids=self._end_ids,
                stop=self._stop,
                pause_seconds=PAUSE_SECONDS
                if os.environ.get(PAUSED_VARIABLE) == str(self._step)
                else 0.0,
            )
        except Exception as error:  # whoever waits must hear of it, or the run would hang
            for entry in entries:
                loop.call_soon_threadsafe(
                    entry.answer.set_exception, RuntimeError(f"sampling failed: {error!r}")
                )
            return
        for entry, response in zip(entries, responses, strict=True):
            is_whole = has_ended(response.token_ids, entry.request, self._end_ids)
            output = TokenOutput(
                token_ids=response.token_ids,
                log_probs=response.logprobs,
                stop_reason="completed" if is_whole else "aborted",
                extra_fields=self._versions(),
            )
            loop.call_soon_threadsafe(entry.answer.set_result, output)

    def _versions(self) -> dict[str, int]:
        return dict.fromkeys(("global_steps", "min_global_steps", "max_global_steps"), self._step)

    async def load_weights(self, weights: dict[str, torch.Tensor], step: int | None) -> None:
        """Take the weights of a step.

        Raises:
            RuntimeError: they are not those of the model that this server began with.
        """
        async with self._busy:
            missing, unexpected = self._model.load_state_dict(weights, strict=False)
        tied = set(self._model._tied_weights_keys or ())
        if unexpected or set(missing) - tied:
            raise RuntimeError(
                f"weights do not fit: missing {missing[:3]}, unexpected {unexpected[:3]}"
            )
        self._step = step or 0

    async def abort_all_requests(self, reject_request: bool = False) -> None:
        """Answer all requests with what there is; others wait for `resume_generation`,
        or are sent away.
        """
        self._open.clear()
        self._rejects = reject_request
        self._stop.set()
        async with self._busy:
            pass  # the batch that was being sampled has been answered

    async def resume_generation(self) -> None:
        """Take requests again."""
        self._stop.clear()
        self._open.set()

    async def nothing(self, *args: Any, **kwargs: Any) -> None:
        """What verl asks of servers that share a device with training."""

    wake_up = sleep = nothing
    clear_kv_cache = release_kv_cache = resume_kv_cache = nothing
    start_profile = stop_profile = nothing


def set_threads() -> None:
    """Compute with as many threads as the recipe says."""
    if threads := os.environ.get(THREADS_VARIABLE):
        torch.set_num_threads(int(threads))


class TransformersReplica(RolloutReplica):
    """One server for all training processes of a run."""

    async def launch_servers(self) -> None:
        """Start the server."""
        model = omega_conf_to_dataclass(self.model_config)
        tokenizer = model.tokenizer
        server = (
            ray.remote(TransformersServer)
            .options(name=server_name(self.replica_rank), num_cpus=0, max_concurrency=FOREVER)
            .remote(
                model.local_path,
                dtype=self.config.dtype,
                pad_id=tokenizer.pad_token_id
                if tokenizer.pad_token_id is not None
                else tokenizer.eos_token_id,
                end_ids=end_token_ids(tokenizer, model.generation_config),
                max_tokens=self.config.response_length,
                first_seed=self.replica_rank * FOREVER,
            )
        )
        self.servers = [server]
        self._server_handle, self._server_address = server, server_name(self.replica_rank)

    def rollout_worker_use_gpu(self) -> bool:
        """Return whether a replica's workers take a device of their own."""
        return False


class TransformersRollout(BaseRollout):
    """Lives in a training process, or beside a server with a device of its own,
    and hands new weights to the server.
    """

    def __init__(self, *args: Any, replica_rank: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._server = server_name(replica_rank)

    async def resume(self, tags: list[str]) -> None:
        """The server never sleeps."""

    async def release(self) -> None:
        """The server never sleeps."""

    @torch.no_grad()
    async def update_weights(
        self,
        weights: Iterator[tuple[str, torch.Tensor]] | AsyncIterator[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **_: Any,
    ) -> None:
        """Send the weights from the first process; all must take part,
        since sharded weights are gathered here.
        """
        is_first = torch.distributed.get_rank() == 0
        gathered: dict[str, torch.Tensor] = {}
        async for name, tensor in _as_async(weights):
            if is_first:
                gathered[name] = tensor.detach().cpu().clone()
        if is_first:
            await ray.get_actor(self._server).load_weights.remote(gathered, global_steps)


async def _as_async(
    weights: Iterator[tuple[str, torch.Tensor]] | AsyncIterator[tuple[str, torch.Tensor]],
) -> AsyncIterator[tuple[str, torch.Tensor]]:
    if isinstance(weights, AsyncIterator):
        async for item in weights:
            yield item
    else:
        for item in weights:
            yield item

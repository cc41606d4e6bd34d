"""Sampling with vLLM: placement, memory, and the correction for its mismatch with the trainer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from microcoder.config import Config


class VllmConfig(Config):
    """vLLM under engine trl, with `rollout.backend = "vllm"`."""

    mode: Literal["colocate", "server"] = "colocate"
    """`colocate`: in the training processes, sharing their GPUs; `server`: a `vllm serve` on other GPUs."""
    max_model_tokens: int | None = Field(default=None, ge=2)
    """`colocate`: prompt and response together, what vLLM reserves memory for; None: the longest prompt and the longest
    response of the run, evaluation included."""
    gpu_memory_utilization: float = Field(default=0.3, gt=0, lt=1)
    """`colocate`: share of each GPU's memory for vLLM, its weights included."""
    enable_sleep_mode: bool = False
    """`colocate`: give vLLM's memory back during updates; waking it takes a copy of the weights."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """`colocate`: training processes that share one vLLM; of a server, its own --tensor-parallel-size decides."""
    server_base_url: str | None = Field(default=None, pattern=r"^https?://")
    """`server`: such as http://gpu2:8000; None: from host and port."""
    server_host: str = "127.0.0.1"
    server_port: int = Field(default=8000, ge=1, le=65535)
    server_timeout_seconds: float = Field(default=240.0, gt=0)
    """`server`: how long to wait for its first answer when a run starts."""
    group_port: int = Field(default=51216, ge=1, le=65535)
    """`server`: the trainer's port that weights are sent from, over NCCL."""

    @property
    def server_url(self) -> str:
        """Where the server is."""
        return (self.server_base_url or f"http://{self.server_host}:{self.server_port}").rstrip("/")

    @model_validator(mode="after")
    def _options_belong_to_the_mode(self) -> VllmConfig:
        of_servers = ("server_base_url", "server_host", "server_port", "server_timeout_seconds", "group_port")
        of_colocation = ("max_model_tokens", "gpu_memory_utilization", "enable_sleep_mode", "tensor_parallel_size")
        for name in of_servers if self.mode == "colocate" else of_colocation:
            if getattr(self, name) != type(self).model_fields[name].default:
                instead = (
                    f'add rollout.vllm.mode = "server", or leave {name} out'
                    if self.mode == "colocate"
                    else f"start the server with {SERVER_FLAGS[name]} instead"
                )
                raise ValueError(f'{name} = {getattr(self, name)!r} does nothing in mode "{self.mode}"; {instead}')
        if self.server_base_url and (self.server_host, self.server_port) != ("127.0.0.1", 8000):
            raise ValueError("server_base_url says where the server is; leave server_host and server_port out")
        return self


SERVER_FLAGS = {
    "max_model_tokens": "--max-model-len",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "enable_sleep_mode": "no sleep mode (its GPUs are its own)",
    "tensor_parallel_size": "--tensor-parallel-size",
}
"""What `vllm serve` calls the options of a colocated vLLM."""


class MismatchConfig(Config):
    """Sampler and trainer give one token different log-probs: other kernels, other precision (docs/training.md).

    The ratio of a token is exp(trainer's log-prob - sampler's), that of a response the product over its tokens.
    """

    correction: Literal["off", "token", "sequence"] = "token"
    """Factor on a token's loss: none, its own ratio, or its response's, whose spread grows with length."""
    mode: Literal["truncate", "mask"] = "truncate"
    """Of a ratio above `threshold`: count it as the threshold, or drop what it belongs to."""
    threshold: float = Field(default=2.0, gt=1)

    @model_validator(mode="after")
    def _off_has_no_options(self) -> MismatchConfig:
        if self.correction == "off" and (self.mode, self.threshold) != ("truncate", 2.0):
            raise ValueError('mode and threshold do nothing with correction = "off"; leave them out')
        return self

"""Weights from the training processes to a server of another process, by a file:
verl's own ways there need GPUs.

verl imports this where a recipe names it as `checkpoint_engine.custom_backend_module`,
of backend "file".
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import torch
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry

BACKEND = "file"


@CheckpointEngineRegistry.register(BACKEND)
class FileEngine(CheckpointEngine):
    """The first training process writes the file, and every server reads it."""

    def __init__(self, bucket_size: int, is_master: bool = False) -> None:
        self._is_master, self._path = is_master, Path()

    def prepare(self) -> dict[str, Any]:
        return {"folder": tempfile.mkdtemp(prefix="verl-weights-") if self._is_master else ""}

    @classmethod
    def build_topology(
        cls,
        actor_wg_world_size: int,
        rollout_world_size: int,
        metadata: list[dict[str, Any]],
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        (folder,) = (one["folder"] for one in metadata if one["folder"])
        return {"folder": [folder] * actor_wg_world_size}, {"folder": [folder] * rollout_world_size}

    def init_process_group(self, folder: str) -> None:
        self._path = Path(folder, "weights.pt")

    def finalize(self) -> None:
        self._path.unlink(missing_ok=True)
        if self._is_master:
            self._path.parent.rmdir()

    @torch.no_grad()
    async def send_weights(
        self, weights: Iterator[tuple[str, torch.Tensor]], global_steps: int | None = None
    ) -> None:
        # All processes take part: sharded weights are gathered here.
        gathered = {name: tensor.detach().cpu().clone() for name, tensor in weights}
        if self._is_master:
            part = self._path.with_suffix(".part")
            torch.save(gathered, part)
            os.replace(part, self._path)

    async def receive_weights(
        self, global_steps: int | None = None
    ) -> AsyncIterator[tuple[str, torch.Tensor]]:
        while not self._path.exists():
            await asyncio.sleep(0.02)
        for item in torch.load(self._path).items():
            yield item

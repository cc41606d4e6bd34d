"""`microcoder train` against a vLLM server without a GPU: weights travel through a file in the place of NCCL.

    python server_weights.py train ...

NCCL needs a GPU on both sides. Everything else is as it is: the server, its HTTP, TRL's client, our trainer.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from microcoder.train.trl.sampling import make_trainable


class FileWeights:
    """What the server's worker learns besides: to read its weights from a file."""

    model_runner: Any

    def load_weights_file(self, path: str) -> None:
        self.model_runner.model.load_weights(load_file(path).items())


def send(client: Any, metadata: Any, named_params: Iterator[tuple[str, torch.Tensor]]) -> None:
    """Send the weights of a step."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        save_file({name: weight.detach().clone().contiguous() for name, weight in named_params}, path)
        answer = client.session.post(
            f"{client.base_url}/collective_rpc", json={"method": "load_weights_file", "args": [str(path)]}
        )
        answer.raise_for_status()


def main() -> None:
    from trl.generation.vllm_client import VLLMClient

    from microcoder.cli import main as microcoder
    from microcoder.train.trl import engine

    VLLMClient.init_communicator = lambda *_, **__: None  # type: ignore[method-assign]
    VLLMClient.update_named_params = send  # type: ignore[method-assign]
    engine.require_vllm = lambda config: None
    microcoder()


if __name__ == "__main__":
    main()
elif "SERVES_WEIGHTS" in os.environ:
    make_trainable()

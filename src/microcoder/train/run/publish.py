"""The model card: base model, training and measured accuracy, from the run directory.

A run's model on the Hugging Face Hub: the repository before the first step, checkpoints as they appear, the end.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from huggingface_hub import CommitOperationAdd, HfApi, ModelCardData
from huggingface_hub.errors import HfHubHTTPError, HFValidationError

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import ConfigError, TrainingError
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.recipe.recipe import HubConfig
from microcoder.train.run.checkpoints import list_model_files, model_folder
from microcoder.train.run.observer import Observer
from microcoder.train.runs import RunDirectory

_PACKAGES = ("microcoder", "torch", "transformers", "trl", "vllm", "verl")


def render_card(run: RunDirectory, *, step: int | None = None) -> str:
    """Return the card (Markdown with the Hub's header) of a run's model.

    Args:
        run: with its manifest and evaluations.
        step: of a checkpoint; None: the last.
    """
    manifest = run.read_manifest()
    evaluations = [row for row in run.read_evaluations() if step is None or row["step"] <= step]
    return "\n".join(_lines(manifest, evaluations, step=step)) + "\n"


def _lines(manifest: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]], *, step: int | None) -> Iterator[str]:
    config = manifest["config"]
    source = config["model"].get("path") or "a micro model of the lab"
    is_on_hub = config["model"]["kind"] == "hugging_face" and model_folder(source) is None
    header = ModelCardData(
        base_model=source if is_on_hub else None,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["code", "reinforcement-learning", "microcoder"],
    )
    yield f"---\n{header.to_yaml()}\n---"
    yield ""
    yield f"# {manifest['name']}"
    yield ""
    at = (
        f"after step {step} of {config['num_steps']}"
        if step is not None
        else f"after step {config['num_steps']}, the last"
    )
    software = "[MicroCoder](https://arxiv.org/abs/2603.07777)"
    yield f"Trained by reinforcement learning on programming problems, {at}, with {software}."
    yield ""
    yield f"- **Base model**: {source}" + (f" at {revision}" if (revision := config["model"].get("revision")) else "")
    yield f"- **Algorithm**: {_algorithm(config['algorithm'])}"
    yield f"- **Sampling**: {_sampling(config)}"
    yield f"- **Problems**: {_problems(config['problems'], manifest['problems'])}"
    yield f"- **Command**: `{shlex.join(manifest['command'])}`"
    versions = manifest["packages"]
    yield f"- **Versions**: {', '.join(f'{name} {versions[name]}' for name in _PACKAGES if name in versions)}"
    yield ""
    yield from _curve(evaluations)


def _algorithm(algorithm: Mapping[str, Any]) -> str:
    """Return a name for the algorithm by its differences from the defaults, which are MicroCoder-GRPO."""
    plain = flatten(AlgorithmConfig().model_dump(mode="json"))
    changed = [f"{key} = {value}" for key, value in flatten(algorithm).items() if plain.get(key) != value]
    return "MicroCoder-GRPO" + (f", changed: {', '.join(changed)}" if changed else ", as published")


def _sampling(config: Mapping[str, Any]) -> str:
    rollout, temperature = config["rollout"], config["rollout"]["temperature"]
    at = temperature.get("value") or temperature["kind"]
    return (
        f"{config['batch']['train_batch_size']} problems x {rollout['num_samples']} responses a step, at most "
        f"{rollout['max_response_tokens']} tokens, temperature {at}; learning rate "
        f"{config['optimizer']['learning_rate']:g}; seed {config['seed']}"
    )


def _problems(problems: Mapping[str, Any], counted: Mapping[str, Any]) -> str:
    named = problems.get("id") or problems.get("train") or "generated (micro lab)"
    return (
        f"{named}, {counted['num_train']} to train on, {counted['num_heldout']} held out, digest `{counted['digest']}`"
    )


def _curve(evaluations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not evaluations:
        return
    first = evaluations[0]
    yield "## Held-out accuracy"
    yield ""
    yield (
        f"{first['num_problems']} problems that were not trained on, {first['samples_per_problem']} samples each at "
        f"temperature {first['temperature']:g}; a sample counts if it passes every test."
    )
    yield ""
    yield "| step | accuracy | mean length, tokens |"
    yield "| --- | --- | --- |"
    for row in evaluations:
        yield f"| {row['step']} | {row['accuracy']:.1%} | {row['length_mean']:.0f} |"


_FAILURES = (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError)


def open_repository(config: HubConfig) -> None:
    """Create the repository if missing: a wrong name or login shows before the first step, not after the last."""
    if config.repo_id is None:
        return
    try:
        hub = HfApi()
        hub.create_repo(config.repo_id, private=config.private, exist_ok=True)
        # Of a repository that exists, creating it says nothing of who may write.
        hub.auth_check(config.repo_id, write=True)
    except _FAILURES as error:
        raise ConfigError(
            f"hub.repo_id {config.repo_id} cannot be pushed to ({_reason(error)}); type `hf auth login`, check the "
            "name and the network, or leave hub.repo_id out"
        ) from None


def push_model(config: HubConfig, run: RunDirectory) -> str | None:
    """Push the final model with its card; return where it is."""
    if config.repo_id is None:
        return None
    try:
        return _commit(config.repo_id, run.model, card=render_card(run), message="Model of the last step")
    except _FAILURES as error:
        raise TrainingError(
            f"the run is done, its model is in {run.model}, but it cannot be pushed to {config.repo_id} "
            f"({_reason(error)}); type the same command to retry, also with another --hub.repo_id or without"
        ) from None


class CheckpointPusher(Observer):
    """Pushes each new checkpoint, between two phases; `tell` hears what could not be pushed."""

    def __init__(self, config: HubConfig, run: RunDirectory, *, tell: Callable[[str], None]) -> None:
        self._config, self._run, self._tell = config, run, tell
        self._pushed = run.latest_checkpoint_step() or 0

    def phase(self, name: str) -> None:
        """Push the latest checkpoint, unless it was pushed before."""
        step = self._run.latest_checkpoint_step() or 0
        if step > self._pushed:
            self._pushed = step
            self._push(step)

    def _push(self, step: int) -> None:
        assert self._config.repo_id is not None
        folder = self._run.checkpoint(step)
        try:
            HfApi().create_branch(self._config.repo_id, branch=folder.name, exist_ok=True)
            _commit(
                self._config.repo_id,
                folder,
                card=render_card(self._run, step=step),
                message=f"Checkpoint of step {step}",
                branch=folder.name,
            )
        except _FAILURES as error:
            self._tell(f"checkpoint of step {step} was not pushed ({_reason(error)}); training continues")


def _commit(repo_id: str, folder: Path, *, card: str, message: str, branch: str | None = None) -> str:
    files = [CommitOperationAdd(file.name, str(file)) for file in list_model_files(folder)]
    operations = [CommitOperationAdd("README.md", card.encode()), *files]
    done = HfApi().create_commit(repo_id, operations, commit_message=message, revision=branch)
    return str(done.commit_url)


def _reason(error: Exception) -> str:
    return " ".join(str(error).strip().split("\n")[0].split())[:200] or type(error).__name__

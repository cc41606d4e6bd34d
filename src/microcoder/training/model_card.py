"""The model card: base model, training and measured accuracy, from the run directory."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from huggingface_hub import ModelCardData

from microcoder.config import flatten
from microcoder.runs import RunDirectory
from microcoder.training.algorithm_config import AlgorithmConfig
from microcoder.training.checkpoints import model_folder

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

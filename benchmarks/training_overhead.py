"""What our additions cost a training step: the same step by plain TRL and by us, in pairs.

    python benchmarks/training_overhead.py [--steps 5] [--rounds 2]

Three trainers run the micro lab's recipe in turns (a b c c b a ...), each in a process of its own:
TRL's GRPOTrainer; the same with our frugal sampling and loss, which leave out idle work; and ours,
with masks, diversity, metrics and rollout files on top of that. All sample the same responses: the
learning rate is next to nothing. Compared is the CPU time of the training process, which a busy
machine disturbs less than wall time; programs are judged in other processes. One JSON object:
medians of seconds a step, and what ours takes more than each other, step by step.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

RECIPE = Path(__file__).parents[1] / "recipes" / "micro" / "config.toml"
TRAINERS = ("trl", "frugal", "ours")


def run_steps(trainer_name: str, num_steps: int) -> list[tuple[float, float]]:
    """Train, and return the CPU and wall seconds of each step but the last."""
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOTrainer

    from microcoder.judge import Judge
    from microcoder.judge.core.config import load_config
    from microcoder.judge.core.extract import extract_program
    from microcoder.judge.core.rewards import score_verdicts
    from microcoder.train.recipe.recipe import TrainConfig, cut_batches
    from microcoder.train.run.checkpoints import Observer, RunClock
    from microcoder.train.run.tasks import EngineInputs, load_tasks, order_problems
    from microcoder.train.runs import RunDirectory
    from microcoder.train.trl.engine import build_arguments, build_trainer, load_policy
    from microcoder.train.trl.frugal import FrugalGRPOTrainer

    overrides = {
        "num_steps": str(num_steps),
        "optimizer.learning_rate": "1e-12",
        "problems.num_heldout": "2",
        "evaluation.every_steps": "1000",
        "checkpoint.every_steps": "1000",
    }
    config = load_config(TrainConfig, [RECIPE], overrides)
    batches = cut_batches(config, num_processes=1)
    tasks = load_tasks(config)
    policy = load_policy(config, observer=Observer())
    marks: list[tuple[float, float]] = []

    class Marks(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step % batches.updates_per_step == 0:
                marks.append((time.process_time(), time.perf_counter()))

    with tempfile.TemporaryDirectory() as folder, Judge(workers=1, stop="first_failure") as judge:
        arguments = build_arguments(config, batches, output_dir=Path(folder) / "scratch")
        if trainer_name == "ours":
            inputs = EngineInputs(
                config,
                policy,
                tasks,
                judge,
                RunDirectory(Path(folder)),
                Observer(),
            )
            trainer: GRPOTrainer = build_trainer(inputs, RunClock())
        else:
            problems = {task.problem.id: task.problem for task in tasks.train}

            def reward(
                completions: list[Any], problem_id: list[str], **_: Any
            ) -> list[float | None]:
                programs = []
                for c in completions:
                    programs.append(extract_program(c[0]["content"], is_truncated=False))
                return score_verdicts(
                    judge.judge(programs, [problems[name] for name in problem_id])
                )

            rows = []
            for task in tasks.train:
                rows.append(
                    {
                        "prompt": [{"role": "user", "content": task.prompt.text}],
                        "problem_id": task.problem.id,
                    }
                )
            order = order_problems(
                len(rows),
                num_steps=num_steps,
                train_batch_size=config.batch.train_batch_size,
                seed=config.seed,
            )
            trainer = (FrugalGRPOTrainer if trainer_name == "frugal" else GRPOTrainer)(
                model=policy.model,
                args=arguments,
                reward_funcs=reward,
                train_dataset=Dataset.from_list([rows[index] for index in order]),
                processing_class=policy.tokenizer,
            )
            trainer.remove_callback(PrinterCallback)
        trainer.add_callback(Marks())
        trainer.train()
    return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(marks)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--worker", choices=TRAINERS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(run_steps(arguments.worker, arguments.steps)))
        return
    seconds: dict[str, list[list[tuple[float, float]]]] = {name: [] for name in TRAINERS}
    for number in range(arguments.rounds):
        for name in TRAINERS if number % 2 == 0 else reversed(TRAINERS):
            command = [sys.executable, __file__, "--worker", name, "--steps", str(arguments.steps)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds[name].append(json.loads(done.stdout.splitlines()[-1]))
    found: dict[str, dict[str, float]] = {}
    for name in TRAINERS:
        steps = [step for steps in seconds[name] for step in steps]
        cpu, wall = (median(step[kind] for step in steps) for kind in (0, 1))
        more = []
        for ours_steps, their_steps in zip(seconds["ours"], seconds[name], strict=True):
            for ours, theirs in zip(ours_steps, their_steps, strict=True):
                more.append(ours[0] / theirs[0] - 1)
        spread = {"ours_more": median(more), "least": min(more), "most": max(more)}
        found[name] = {"cpu_seconds": cpu, "wall_seconds": wall, **spread}
    print(json.dumps(found))


if __name__ == "__main__":
    main()

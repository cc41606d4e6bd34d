"""A run's problems as the files that verl reads: rows in the order of the run, and the problems they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from microcoder.files import write_parquet
from microcoder.training.algorithm.schedules import order_problems
from microcoder.training.config import TrainConfig
from microcoder.training.tasks import Task, Tasks

SOURCE = "microcoder"
_SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        (
            "extra_info",
            pa.struct(
                [
                    ("index", pa.int64()),
                    ("problem_id", pa.string()),
                    ("language", pa.string()),
                    ("split", pa.string()),
                ]
            ),
        ),
    ]
)


def write_data(config: TrainConfig, tasks: Tasks, folder: Path) -> None:
    """Write `train.parquet`, `heldout.parquet` and `problems.jsonl`.

    Rows name their problem: its tests would otherwise travel with every sample. What each step asks is in the order of
    the training rows, the same on every engine.
    """
    order = order_problems(
        len(tasks.train),
        num_steps=config.num_steps,
        train_batch_size=config.batch.train_batch_size,
        seed=config.seed,
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_parquet(folder / "train.parquet", _rows(tasks.train, order, split="train"), _SCHEMA)
    write_parquet(folder / "heldout.parquet", _rows(tasks.heldout, range(len(tasks.heldout)), split="heldout"), _SCHEMA)
    with (folder / "problems.jsonl").open("w", encoding="utf-8") as file:
        for problem in tasks.problems:
            file.write(problem.model_dump_json() + "\n")


def _rows(tasks: Sequence[Task], order: Sequence[int], *, split: str) -> list[dict[str, Any]]:
    return [
        {
            "data_source": SOURCE,
            "prompt": tasks[index].prompt.as_chat(),
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {
                "index": index,
                "problem_id": tasks[index].problem.id,
                "language": tasks[index].problem.language,
                "split": split,
            },
        }
        for index in order
    ]

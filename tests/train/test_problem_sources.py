"""Where a run's problems come from: files, LiveCodeBench as held out, data sets of the Hub."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microcoder.data import write_problems
from microcoder.data.benchmarks import LiveCodeBench
from microcoder.data.micro import generate_problems
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.tasks import Tasks, load_tasks
from tests.data.hub_server import Hub, serve_hub
from tests.data.published import make_call_row, make_row, write_rows

ROWS = [
    {
        "prompt": [{"role": "user", "content": f"Print {i}."}],
        "tests": [{"input": "", "output": str(i)}],
    }
    for i in range(4)
]
BROKEN = [
    {"prompt": "Nothing to judge by."},
    {"prompt": "  ", "tests": [{"input": "", "output": "1"}]},
]
HELDOUT = [{"prompt": "Print nine.", "tests": [{"input": "", "output": "9"}]}]


def load(**problems: Any) -> Tasks:
    overrides = {
        "model.kind": "micro",
        "batch.train_batch_size": "4",
        "batch.ppo_mini_batch_size": "2",
    }
    return load_tasks(
        load_config(TrainConfig, overrides=overrides, layers=[{"problems": problems}])
    )


@pytest.fixture
def training_file(tmp_path: Path) -> Path:
    path = tmp_path / "train.jsonl"
    write_problems(
        path,
        generate_problems(
            split="train",
            num_problems=4,
            seed=0,
            tiers=("easy",),
            styles=("stdin",),
        ),
    )
    return path


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A folder with the files of a data set as the Hub has them."""
    folder = tmp_path / "dataset"
    (folder / "data").mkdir(parents=True)
    write_rows(folder / "data" / "train.jsonl", ROWS + BROKEN)
    pq.write_table(pa.Table.from_pylist(HELDOUT), folder / "data" / "test-00000-of-00001.parquet")
    return folder


def test_livecodebench_is_held_out_as_evaluation_reads_it(
    training_file: Path, tmp_path: Path
) -> None:
    file = write_rows(tmp_path / "test6.jsonl", [make_row("a"), make_call_row("c")])
    tasks = load(kind="files", train=str(training_file), heldout=str(file))
    assert [task.problem for task in tasks.heldout] == [
        question.load() for question in LiveCodeBench(path=file).read()
    ]
    # Asked as the run asks, not as the benchmark does.
    assert "reads the input from standard input" in tasks.heldout[0].prompt.text
    assert "Implement `double` in Python" in tasks.heldout[1].prompt.text
    table = pa.Table.from_pylist([make_row("a"), make_call_row("c")])
    pq.write_table(table, tmp_path / "test6.parquet")
    packed = load(kind="files", train=str(training_file), heldout=str(tmp_path / "test6.parquet"))
    assert [task.problem for task in packed.heldout] == [task.problem for task in tasks.heldout]
    with pytest.raises(
        DataError,
        match=r"test6\.jsonl is LiveCodeBench, a benchmark: training would contaminate it",
    ):
        load(kind="files", train=str(file), heldout=str(training_file))


def test_a_data_set_gives_problems_and_counts_what_it_leaves_out(dataset: Path) -> None:
    tasks = load(kind="hub", id=str(dataset), format="trl", heldout_split="test")
    assert [task.problem.statement for task in tasks.train] == [f"Print {i}." for i in range(4)]
    assert [task.problem.tests[0].output for task in tasks.heldout] == ["9"]
    assert dict(tasks.left_out) == {"no_statement": 1, "no_tests": 1}
    assert tasks.as_record()["left_out"] == {"no_statement": 1, "no_tests": 1}


def test_a_data_set_that_gives_none_or_held_out_problems_of_two_places_says_why(
    dataset: Path, training_file: Path
) -> None:
    mistakes: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"format": "tlr"}, DataError, "problems.format = 'tlr' is unknown; use one of apps, "),
        ({"format": "livecodebench"}, DataError, "is a benchmark: training would contaminate it"),
        (
            {"format": "codecontests"},
            DataError,
            r"none of its 6 rows is a problem in format .*\(.*missing_field",
        ),
        (
            {"split": "validation"},
            DataError,
            r"has no file like default/validation or .*; check subset and split",
        ),
        ({"heldout_split": None}, ConfigError, "set exactly one of"),
        ({"heldout": str(training_file)}, ConfigError, "set exactly one of"),
    ]
    right = {"kind": "hub", "id": str(dataset), "format": "trl", "heldout_split": "test"}
    for changes, error, message in mistakes:
        with pytest.raises(error, match=message):
            load(**{**right, **changes})
    assert len(load(**{**right, "heldout_split": None, "heldout": str(training_file)}).heldout) == 4


ASK_THE_HUB = """
import sys
from microcoder.data.release.problems import read_published
from microcoder.judge.core.errors import DataError
for name in sys.argv[1:]:
    try:
        place = {"revision": None, "subset": "default", "split": "train"}
        found = read_published(name, **place, format_name="trl", is_trained_on=True)
        print(len(found.problems), dict(found.left_out))
    except DataError as error:
        print(error)
"""


def test_a_data_set_comes_from_the_hub_and_from_the_cache_when_it_is_away(
    dataset: Path, tmp_path: Path
) -> None:
    def ask(*names: str) -> list[str]:
        place = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1"}
        command = [sys.executable, "-c", ASK_THE_HUB, *names]
        done = subprocess.run(
            command,
            env={**os.environ, **place},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout.splitlines()

    found = "4 {'no_statement': 1, 'no_tests': 1}"
    name = "data/train.jsonl"
    with serve_hub(Hub(files={name: (dataset / name).read_bytes(), "README.md": b""})) as url:
        assert ask("me/mine") == [found]
    kept, away = ask("me/mine", "me/other")
    assert kept == found
    assert "; check the network and HF_HUB_OFFLINE, or write hf://" in away

"""Runs of the three kinds that the viewer opens, written as the commands write them."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from microcoder.data import Candidate, Rejection
from microcoder.data.release.tables import write_tables
from microcoder.train.runs import RunDirectory, read_rollouts, write_rollouts
from microcoder.view import Collection, ViewerServer
from microcoder.view.index import Index, IndexBuilder
from tests.lab.synthetic_run import Recipe, write_run

Row = dict[str, Any]
HOSTILE = (
    "<img src=x "
    'onerror="window.hurt=1"><script>window.hurt=1</script></pre></script>'
    "&lt;b&gt;\u202e\x1b[31m\x00"
)
"""Text that hurts a page which takes it for markup, a terminal that obeys it,
or an eye that trusts its direction.
"""


_ABC: Row = {"step": 1, "problem_id": "abc/1", "reward": 1.0}
LIGHT_ROWS: list[Row] = [
    {**_ABC, "row": 0, "verdict": "accepted", "num_tokens": 10, "advantage": 0.5},
    {**_ABC, "row": 1, "verdict": "wrong_answer", "num_tokens": 30, "advantage": -0.5},
    {
        "step": 1,
        "row": 2,
        "problem_id": "abd/2",
        "verdict": "no_code",
        "is_truncated": True,
        "masked_why": "truncated",
    },
    {
        "step": 0,
        "row": 0,
        "problem_id": "ABD/3",
        "verdict": "accepted",
        "num_tokens": 20,
        "split": "heldout",
    },
    {"step": 12, "row": 0, "problem_id": "abc/1", "verdict": "sandbox_fault", "tier": "hard"},
]
"""Light values of five rollouts, as a source puts them into an index."""


def index_of(rows: list[Row]) -> Index:
    builder = IndexBuilder()
    builder.put_rows("file", [{"split": "train", **row} for row in rows])
    return builder.build()


@contextmanager
def serving(collection: Collection) -> Iterator[ViewerServer]:
    """Serve some runs on a free port."""
    with ViewerServer(collection, port=0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def records_of(collection: Collection, run: str) -> list[Row]:
    """All light rows of a run, in the order of its index."""
    index = collection[run].index()
    return [index.record(place) for place in range(len(index))]


def write_lines(path: Path, rows: Iterable[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_problems(path: Path) -> Path:
    """Three tests for each problem of a synthetic run."""
    tests = [{"input": f"{number} 1\n", "output": "3\n"} for number in range(3)]
    ids = []
    for split in ("train", "heldout"):
        for number in range(6):
            ids.append(f"{split}/{number:03d}")
    statement = "Add the numbers of {}."
    return write_lines(
        path, ({"id": name, "statement": statement.format(name), "tests": tests} for name in ids)
    )


def write_training(root: Path, **options: Any) -> Path:
    recipe: Row = {"num_steps": 8, "evaluate_every": 4, "num_heldout": 6}
    return write_run(root, Recipe(**(recipe | options)))


def edit_rollouts(run: Path, step: int, change: Callable[[Row], Row]) -> None:
    path = RunDirectory(run).rollout_file(step)
    write_rollouts(path, [change(row) for row in read_rollouts(path)])


def make_hostile(row: Row) -> Row:
    tests = []
    for test in row["tests"]:
        tests.append({**test, "detail": HOSTILE, "output": HOSTILE, "method": HOSTILE})
    texts = ("prompt", "completion", "program", "problem_id", "tier", "masked_why", "extraction")
    return {**row, **dict.fromkeys(texts, HOSTILE), "tests": tests}


def write_evaluation(root: Path, *, num_judged: int = 4) -> Path:
    root.mkdir(parents=True)
    benchmark = {"kind": "problems", "path": "nowhere.jsonl"}
    manifest = {
        "format": 1,
        "kind": "evaluation",
        "name": root.name,
        "config": {"benchmark": benchmark},
    }
    (root / "manifest.json").write_text(json.dumps(manifest))
    questions = []
    for n in (0, 1):
        questions.append(
            {
                "problem_id": f"train/{n:03d}",
                "title": f"T{n}",
                "platform": "x",
                "difficulty": "easy",
            }
        )
    write_lines(root / "questions.jsonl", questions)
    keys = []
    for n in (0, 1):
        for index in (0, 1):
            keys.append((f"train/{n:03d}", index))
    samples = []
    for name, index in keys:
        samples.append(
            {
                "problem_id": name,
                "sample_index": index,
                "is_truncated": False,
                "num_tokens": 10 + index,
            }
            | {"completion": f"So.\n```python\nprint({index})\n```", "program": f"print({index})\n"}
            | {"extraction": "last_closed_code_block"}
        )
    write_lines(root / "samples.jsonl", samples)
    verdicts = []
    for name, index in keys[:num_judged]:
        verdicts.append(verdict(index) | {"problem_id": name, "sample_index": index})
    write_lines(root / "verdicts.jsonl", verdicts)
    if num_judged == len(keys):
        cell = {
            "platform": "x",
            "difficulty": "easy",
            "k": 1,
            "value": 0.5,
            "low": 0.1,
            "high": 0.9,
            "num_problems": 2,
        }
        results = {"cells": [cell], "outcomes": {"accepted": 2, "wrong_answer": 2}}
        (root / "results.json").write_text(json.dumps(results))
    return root


def verdict(index: int) -> Row:
    measured = {"cpu_seconds": 0.01, "wall_seconds": 0.02, "memory_mib": 9.0}
    passed = {"verdict": "accepted", **measured, "method": "exact", "detail": ""}
    if index == 0:
        return {
            "verdict": "accepted",
            "tests_passed": 2,
            "tests_total": 2,
            "tests": [passed, passed],
        }
    failed = {
        "verdict": "wrong_answer",
        **measured,
        "method": "",
        "detail": "got 1",
        "output": "1\n",
    }
    return {
        "verdict": "wrong_answer",
        "tests_passed": 1,
        "tests_total": 2,
        "tests": [passed, failed],
    }


def write_verdicts(path: Path) -> Path:
    """Verdicts of `microcoder judge`, and beside them the submissions it read."""
    tests = [{"input": "1\n", "output": "1\n"}, {"input": "2\n", "output": "2\n"}]
    submissions = [{"id": f"s{n}", "code": f"print({n})\n", "tests": tests} for n in range(3)]
    write_lines(path.with_name("submissions.jsonl"), submissions)
    return write_lines(
        path, ({"id": f"s{n}", **verdict(n % 2), "isolation": "full"} for n in range(3))
    )


def write_corpus(root: Path) -> None:
    """Write a finished corpus: one problem that was kept, one row that was turned away."""
    kept = Candidate.model_validate(
        {"id": "a/1", "dataset": "d", "statement": "Add.", "statement_found": "<p>Add.</p>"}
        | {"tests": [{"input": "1 2", "output": "3"}]}
    )
    write_tables(
        root,
        [kept],
        [Rejection(id="b/2", dataset="d", stage="collect", reason="no_tests", raw="{}")],
    )
    (root / "manifest.json").write_text(
        json.dumps({"name": "small", "key": "k", "num_problems": 1})
    )


HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(n):\n    """Double."""\n',
    "entry_point": "twice",
    "canonical_solution": "    return 2 * n\n",
    "test": (
        "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate([1]) == [1, 1]\n"
    ),
}
"""One row of HumanEval as published, with a small program."""


def piece(folder: Path, name: str) -> Any:
    """What a script of the bundle hands over."""
    text = (folder / "data" / f"{name}.js").read_text(encoding="ascii")
    body = text.removeprefix("viewer.deliver(").removesuffix(");\n")
    told, value = json.loads(f"[{body}]")
    assert told == name
    return value

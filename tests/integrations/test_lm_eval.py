"""Our tasks in lm-evaluation-harness, loaded from the folder that the package brings,
with its dummy model.
"""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from microcoder.integrations.lm_eval import TASKS, grade
from tests.integrations.pairs import AMOUNTS, FAULTY, RIGHT, ROW, Pair, judged

NAMES = ("microcoder_humaneval_plus", "microcoder_livecodebench", "microcoder_mbpp_plus")


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_grades_are_those_of_the_judge(pairs: list[Pair]) -> None:
    found = []
    for pair in pairs:
        found.append(grade(pair.problem.model_dump(mode="json"), [pair.response])["pass_at_1"])
    assert found == [float(verdict.is_accepted) for verdict in judged(pairs)]


def test_a_fault_is_left_out_of_the_mean() -> None:
    found = grade(FAULTY.model_dump(mode="json"), [RIGHT])
    assert math.isnan(found["pass_at_1"])
    assert found["unscored_share"] == 1
    assert grade(ROW, [[RIGHT, "no"]]) == {
        "pass_at_1": 0.5,
        "unscored_share": 0,
        "no_code_share": 0.5,
    }


def test_the_folder_is_printed() -> None:
    command = [sys.executable, "-m", "microcoder.integrations.lm_eval"]
    assert subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip() == str(TASKS)
    suffixes = set()
    for path in TASKS.iterdir():
        if path.is_file():
            suffixes.add(path.suffix)
    assert suffixes == {".yaml", ".py"}


def test_the_harness_loads_and_runs_them(tmp_path: Path) -> None:
    pytest.importorskip(
        "lm_eval", reason="lm-evaluation-harness is not installed: make test-integrations"
    )
    from lm_eval.api.instance import Instance
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.models.dummy import DummyLM
    from lm_eval.tasks import TaskManager

    class Answers(DummyLM):
        def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
            super().generate_until(requests, disable_tqdm)
            responses = []
            for request in requests:
                responses.append(RIGHT if "sum" in request.arguments[0] else "lol")
            return responses

    rows = [ROW, {**ROW, "question": "Print the product.", "id": "product"}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source in TASKS.glob("[!_]*.yaml"):
        data = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(path)}}}
        own = {"include": str(source), "task": f"local_{source.stem}", **data}
        (tmp_path / source.name).write_text(json.dumps(own))
    manager = TaskManager(include_path=[str(TASKS), str(tmp_path)], include_defaults=False)
    assert set(NAMES) <= set(manager.all_tasks)
    for name in NAMES:
        local_name = name.replace("microcoder", "local")
        results = simple_evaluate(
            Answers(),
            tasks=[local_name],
            task_manager=manager,
            bootstrap_iters=0,
        )
        figures = results["results"][local_name]
        assert figures["pass_at_1,none"] == 0.5
        assert figures["unscored_share,none"] == 0
        assert figures["no_code_share,none"] == 0.5

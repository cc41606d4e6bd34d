"""A real model's answers to HumanEval, kept with their verdicts: extraction and judging agree."""

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

from microcoder.eval import EvalConfig
from microcoder.eval.evaluation import run_evaluation
from microcoder.train.run.checkpoints import Observer
from tests.data.published import find_archive
from tests.doc_pages import ROOT

ANSWERS = ROOT / "records" / "humaneval-qwen2.5-coder-0.5b.jsonl.gz"


def read_answers() -> list[dict[str, Any]]:
    with gzip.open(ANSWERS, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_answers_of_a_real_model_have_the_verdicts_that_were_recorded(tmp_path: Path) -> None:
    with tarfile.open(find_archive("humaneval")) as archive:
        archive.extractall(tmp_path, filter="data")
    answers = read_answers()
    saved = tmp_path / "answers.jsonl"
    rows = []
    for answer in answers:
        rows.append(json.dumps({key: answer[key] for key in ("problem_id", "response")}))
    saved.write_text("\n".join(rows), encoding="utf-8")
    config = EvalConfig.model_validate(
        {
            "benchmark": {
                "kind": "humaneval",
                "path": tmp_path / "humaneval" / "HumanEval.jsonl.gz",
            },
            "generation": {"kind": "file", "path": saved},
        }
    )
    run = tmp_path / "run"
    run_evaluation(config, run_directory=run, observer=Observer())
    verdicts = {}
    for line in (run / "verdicts.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        verdicts[row["problem_id"]] = row["verdict"]
    assert verdicts == {answer["problem_id"]: answer["verdict"] for answer in answers}

"""The judge as a scorer of Inspect, in its own evaluation."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.pairs import AMOUNTS, FAULTY, RIGHT, ROW, Pair, judged

pytest.importorskip("inspect_ai", reason="Inspect is not installed: make test-integrations")

from inspect_ai import eval as evaluate
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelAPI, ModelOutput, get_model

from microcoder.integrations.inspect import code


@pytest.fixture(autouse=True)
def _counts_tokens_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    # mockllm counts with a table of tiktoken's, which is fetched.
    async def count(self: ModelAPI, text: str) -> int:
        return len(text) // 4

    monkeypatch.setattr(ModelAPI, "count_text_tokens", count)


def run(path: Path, rows: list[dict[str, Any]], responses: list[str], tmp_path: Path) -> EvalLog:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in responses]
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = evaluate(
        code(str(path)),
        model=model,
        display="none",
        log_dir=str(tmp_path / "logs"),
        max_connections=1,
        max_samples=1,
    )
    assert log.status == "success", log.error
    return log


def values_of(log: EvalLog) -> dict[str, Any]:
    values = {}
    for sample in log.samples or []:
        values[str(sample.id)] = next(iter(sample.scores.values())).value
    return values


@pytest.mark.parametrize("pairs", AMOUNTS)
def test_scores_are_those_of_the_judge(pairs: list[Pair], tmp_path: Path) -> None:
    records = []
    for n, pair in enumerate(pairs):
        records.append(pair.problem.model_dump(mode="json") | {"id": str(n), "statement": "?"})
    log = run(tmp_path / "problems.jsonl", records, [pair.response for pair in pairs], tmp_path)
    assert values_of(log) == {
        str(n): float(verdict.is_accepted) for n, verdict in enumerate(judged(pairs))
    }


def test_rows_are_asked_and_a_fault_is_no_score(tmp_path: Path) -> None:
    rows = [ROW, {**FAULTY.model_dump(mode="json"), "statement": "?"}, {**ROW, "id": "again"}]
    log = run(tmp_path / "rows.jsonl", rows, [RIGHT, RIGHT, "I don't know."], tmp_path)
    values = values_of(log)
    assert values["apps/apps"] == 1.0
    assert values["apps/again"] == 0.0
    assert math.isnan(values["faulty"])
    assert log.samples is not None
    assert "Print the sum." in str(
        next(sample.input for sample in log.samples if sample.id == "apps/apps")
    )
    assert log.results is not None
    (scores,) = log.results.scores
    assert scores.metrics["mean"].value == 0.5
    assert scores.unscored_samples == 1

"""The three kinds of runs, read from their files: whole, growing, damaged, rewound."""

import gzip
import json
from pathlib import Path

import pytest

from microcoder.cli.train import RunDisplay
from microcoder.data.benchmarks import HumanEval
from microcoder.eval.generation import question_record
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_parquet
from microcoder.lab.studies.features import read_series
from microcoder.train.metrics import EvaluationMetrics, StepMetrics, shown_metrics
from microcoder.train.runs import RunDirectory, read_history
from microcoder.view import Collection, open_collection
from microcoder.view.answers import list_runs, show_pulse, show_rollout, show_test
from tests.view.parts.viewer_runs import (
    HUMANEVAL,
    edit_rollouts,
    records_of,
    verdict,
    write_corpus,
    write_evaluation,
    write_lines,
    write_training,
)


@pytest.fixture
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the files for every question, not once a second."""
    monkeypatch.setattr("microcoder.view.index._SECONDS_BETWEEN_LOOKS", -1)


def ids(collection: Collection, run: str, split: str = "") -> list[str]:
    found_ids = []
    for row in records_of(collection, run):
        if row["split"] == split or not split:
            found_ids.append(row["id"])
    return found_ids


def test_a_declared_metric_stands_in_the_page_in_the_terminals_line_and_in_studies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory(write_training(tmp_path / "run", num_steps=1, evaluate_every=1))
    for kind, path in ((StepMetrics, run.metrics), (EvaluationMetrics, run.evaluations)):
        row = json.loads(path.read_text().splitlines()[-1])
        for shown in shown_metrics(kind):
            # A metric of zeros and an unknown one may be left out.
            row[shown.name] = (
                {"kept_apart": 0.25} if "{}" in shown.title else 0.5 if shown.unit == "share" else 3
            )
        path.write_text(json.dumps(row) + "\n")
        if kind is StepMetrics:
            RunDisplay().step(StepMetrics(**row), num_steps=1)
        else:
            RunDisplay().evaluation(EvaluationMetrics(**row))
    printed = capsys.readouterr().err
    (told,) = list_runs(open_collection([run.root]), {})
    charts = {chart["id"]: chart for chart in told["charts"]}
    for kind, label in ((StepMetrics, "training"), (EvaluationMetrics, "held out")):
        for shown in shown_metrics(kind):
            assert shown.line.partition("{")[0] in printed
            if not shown.chart:
                continue
            chart = charts[f"{shown.chart}-kept_apart" if "{}" in shown.title else shown.chart]
            assert chart["unit"] == shown.unit
            (series,) = [one for one in chart["series"] if one["label"] == (shown.label or label)]
            assert series["values"] == [
                0.25 if "{}" in shown.title else 0.5 if shown.unit == "share" else 3
            ]
            if kind is StepMetrics and "{}" not in shown.title and not shown.label:
                assert read_series(read_history(run.root), shown.chart) is not None
    assert charts["uncounted-kept_apart"]["title"].endswith("did not count: kept apart")


def test_early_warnings_and_overflows_of_a_run_are_told(tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=2)
    metrics = RunDirectory(run).metrics
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    rows[0] |= {
        "alarms": ["all_groups_flat"],
        "optimizer": {"loss": float("nan")},
        "filtered_groups": 2,
    }
    rows[1] |= {"alarms": ["all_groups_flat"], "sampled_accuracy": 0.25}
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (told,) = list_runs(open_collection([run]), {})
    assert any("all groups flat: 2 steps between 1 and 2" in notice for notice in told["notices"])
    charts = {chart["id"]: chart["series"] for chart in told["charts"]}
    (heldout,) = charts["accuracy"]
    # Evaluated before training and at the end; a loss that is NaN is no point of its chart.
    assert heldout["steps"] == [0, 2]
    for low, value, high in zip(heldout["low"], heldout["values"], heldout["high"], strict=True):
        assert low <= value <= high
    assert charts["optimizer-loss"][0]["steps"] == [2]
    assert charts["filtered"][0]["values"] == [2, 0]
    assert "unscored" not in charts
    limit = charts["length"][1]
    assert limit["label"] == "limit"
    assert limit["values"] == [256, 256]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_a_rollout_has_texts_and_tests(shelf: Path, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"p{suffix}"
    lines = (shelf / "problems.jsonl").read_bytes()
    if suffix == ".parquet":
        write_parquet(file, list(map(json.loads, lines.splitlines())))
    else:
        file.write_bytes(gzip.compress(lines) if suffix.endswith(".gz") else lines)
    collection = open_collection([shelf / "one"], problem_files=[file])
    shown = show_rollout(collection, {"run": "one", "id": "train/3/5"})
    assert shown["problem_id"] == "train/001"
    assert shown["sample_index"] == 1
    assert shown["prompt"] == "Add the numbers of train/001."
    assert shown["completion"].startswith("We add <both>")
    asked = show_test(collection, {"run": "one", "problem": "train/001", "test": "1"})
    assert asked["input"] == "1 1\n"
    assert asked["expected"] == "3\n"
    assert asked["num_tests"] == 3
    assert not show_test(collection, {"run": "one", "problem": "train/001", "test": "3"})[
        "is_known"
    ]


@pytest.mark.usefixtures("look_always")
def test_a_run_that_goes_on_and_is_rewound_is_followed(tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=3, evaluate_every=9)
    collection = open_collection([run])
    # 24 rollouts a step.
    assert len(ids(collection, run="demo", split="train")) == 72
    last = RunDirectory(run).rollout_file(3)
    kept = last.read_bytes()
    last.unlink()
    assert len(ids(collection, run="demo", split="train")) == 48
    last.write_bytes(kept)
    assert len(ids(collection, run="demo", split="train")) == 72


def test_an_evaluation_joins_samples_and_verdicts(shelf: Path) -> None:
    collection = open_collection([shelf / "eval"], problem_files=[shelf / "problems.jsonl"])
    (told,) = list_runs(collection, {})
    assert [table["title"] for table in told["tables"]] == ["Accuracy", "Samples by verdict"]
    assert told["kind"] == "evaluation"
    assert told["state"] == "finished"
    assert told["notices"] == []
    shown = show_rollout(collection, {"run": "eval", "id": "evaluation/0/1"})
    assert shown["verdict"] == "wrong_answer"
    assert shown["tests_passed"] == 1
    assert shown["tier"] == "x easy"
    assert shown["reward"] == 0
    assert shown["tests"][1]["output"] == "1\n"
    assert shown["facts"] == {"title": "T0", "platform": "x", "difficulty": "easy"}


@pytest.mark.usefixtures("look_always")
def test_an_evaluation_that_goes_on_is_followed_and_the_last_verdict_counts(tmp_path: Path) -> None:
    folder = write_evaluation(tmp_path / "eval", num_judged=1)
    collection = open_collection([folder])
    assert collection["eval"].index().count("verdict") == {"accepted": 1, "not judged yet": 3}
    with (folder / "verdicts.jsonl").open("a") as file:
        again = {**verdict(1), "problem_id": "train/000", "sample_index": 0}
        # The last line is still being written.
        file.write(json.dumps(again) + "\n" + '{"problem_id": "train/001", "cut')
    assert collection["eval"].index().count("verdict") == {"wrong_answer": 1, "not judged yet": 3}
    before = show_pulse(collection, {})
    assert show_pulse(collection, {}) == before
    (folder / "results.json").write_text("{}")
    assert show_pulse(collection, {}) != before
    (folder / "samples.jsonl").write_text("[]\n")
    for _ in range(2):
        with pytest.raises(
            DataError, match=r"samples\.jsonl line 1 is list, not an object; the file was edited"
        ):
            show_pulse(collection, {})


def test_verdicts_of_judge_have_programs_from_the_submissions(shelf: Path) -> None:
    collection = open_collection(
        [shelf / "judged.jsonl"], problem_files=[shelf / "submissions.jsonl"]
    )
    shown = show_rollout(collection, {"run": "judged", "id": "judged/0/1"})
    assert shown["problem_id"] == "s1"
    assert shown["program"] == "print(1)\n"
    assert shown["verdict"] == "wrong_answer"
    assert shown["facts"] == {"isolation": "full"}
    alone = open_collection([shelf / "judged.jsonl"])
    assert "--problems" in list_runs(alone, {})[0]["notices"][0]


def test_long_texts_are_cut_with_their_length(tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    edit_rollouts(run, 1, lambda row: {**row, "completion": "x" * 260_000})
    shown = show_rollout(open_collection([run]), {"run": "demo", "id": "train/1/0"})
    assert len(shown["completion"]) == 200_000
    assert shown["cut"] == {"completion": 260_000}


def test_what_is_no_run_and_no_problem_file_is_refused_by_name(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.jsonl").write_text("{}\n")
    for name in ("missing", "empty"):
        with pytest.raises(
            DataError, match=rf"{name} is not a run: it has no manifest.json; name a folder"
        ):
            open_collection([tmp_path / name])
    (tmp_path / "none.jsonl").touch()
    for path in (shelf / "problems.jsonl", tmp_path / "none.jsonl"):
        with pytest.raises(
            DataError, match=rf"{path.name} is not a file of verdicts: .* `microcoder judge` wrote"
        ):
            open_collection([path])
    for name, told in (
        ("p.jsonl", "does not exist"),
        ("x.jsonl", "holds no problem or submission"),
    ):
        with pytest.raises(DataError, match=told):
            open_collection([shelf / "one"], problem_files=[tmp_path / name])


def test_a_run_of_a_study_is_called_by_its_level_and_seed(tmp_path: Path) -> None:
    write_training(tmp_path / "seed0-abc", num_steps=1)
    (tmp_path / "runs.json").write_text(
        json.dumps({"seed0-abc": ["002_evaluator, robust, seed 0"]})
    )
    (source,) = open_collection([tmp_path / "seed0-abc"]).values()
    assert source.name == "002_evaluator, robust, seed 0"


@pytest.mark.parametrize("is_named", [True, False], ids=["by the run's config", "by --problems"])
def test_inputs_of_a_benchmark_are_shown(tmp_path: Path, is_named: bool) -> None:
    path = write_lines(tmp_path / "HumanEval.jsonl", [HUMANEVAL])
    folder = write_evaluation(tmp_path / "eval")
    manifest = json.loads((folder / "manifest.json").read_text())
    place = str(path if is_named else tmp_path / "gone.jsonl")
    manifest["config"] = {"benchmark": {"kind": "humaneval", "path": place}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (question,) = HumanEval(kind="humaneval", path=path).read()
    write_lines(folder / "questions.jsonl", [question_record(question)])
    collection = open_collection([folder], problem_files=[] if is_named else [path])
    shown = show_test(collection, {"run": "eval", "problem": "HumanEval/0", "test": "0"})
    assert shown["is_known"]
    assert "assert candidate(2) == 4" in shown["expected"]
    assert list_runs(collection, {})[0]["notices"] == []
    alone = open_collection([folder])
    assert is_named or "gone.jsonl is not here" in list_runs(alone, {})[0]["notices"][0]
    # The file changed after the evaluation.
    write_lines(path, [{**HUMANEVAL, "prompt": HUMANEVAL["prompt"].replace("Double", "Halve")}])
    collection = open_collection([folder], problem_files=[] if is_named else [path])
    shown = show_test(collection, {"run": "eval", "problem": "HumanEval/0", "test": "0"})
    assert not shown["is_known"]
    assert "HumanEval.jsonl is not the one that the model saw" in shown["why"]


def test_a_corpus_shows_what_was_kept_and_what_was_turned_away(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    collection = open_collection([tmp_path])
    assert collection["small"].index().count("verdict") == {"kept": 1, "no_tests": 1}
    first, second = (
        show_rollout(collection, {"run": "small", "id": f"corpus/0/{row}"}) for row in (0, 1)
    )
    assert first["prompt"] == "Add."
    assert first["completion"] == "<p>Add.</p>"
    assert len(first["tests"]) == 1
    assert second["verdict"] == "no_tests"
    assert second["completion"] == "{}"
    shown = show_test(collection, {"run": "small", "problem": "a/1", "test": "0"})
    assert shown["input"] == "1 2"
    assert shown["expected"] == "3"

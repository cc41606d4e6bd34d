"""What the report of a run says: whole, unfinished, damaged and hostile ones."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import MANIFEST, Recipe, write_run

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import append_row, write_json
from microcoder.lab.studies.history import read_history
from microcoder.lab.studies.report import choose_examples, describe_report
from microcoder.train.runs import RunDirectory, read_rollouts

SMALL = Recipe(num_steps=6, evaluate_every=3, num_heldout=18)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "demo", SMALL)


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of the finished run that a test may damage."""
    return Path(shutil.copytree(finished, tmp_path / "demo"))


def told_of(run: Path) -> dict[str, Any]:
    return describe_report(read_history(run))


def rows_of(told: dict[str, Any], table: str) -> dict[str, list[Any]]:
    (found,) = [one for one in told["tables"] if one["id"] == table]
    return {row[0]: row[1:] for row in found["rows"]}


def test_the_report_says_what_was_gained_and_how_sure_that_is(finished: Path) -> None:
    told, history = told_of(finished), read_history(finished)
    assert history.before is not None
    assert history.after is not None
    headline = told["headline"]
    assert headline["figures"] == [f"{100 * e.accuracy:.1f} %" for e in (history.before, history.after)]
    assert "after 6 steps: 18 problems, 4 samples each" in headline["text"]
    assert re.fullmatch(r"\+\d+\.\d \([^0-9]\d+\.\d to \+\d+\.\d\)", headline["difference"][0])
    assert (headline["difference"][1], headline["finding"]) == ("up", "")
    assert list(rows_of(told, "before-after"))[:5] == ["all problems", "easy", "medium", "hard", "pass@4"]
    assert rows_of(told, "before-after")["all problems"][-1] == headline["difference"]
    num_wrong = history.after.outcomes["wrong_answer"]
    assert rows_of(told, "verdicts")["wrong_answer"][1] == f"{num_wrong} ({100 * num_wrong / 72:.1f} %)"
    assert (told["title"], told["state"]) == ("demo", "finished")
    assert told["about"].startswith("6 training steps · started 2026-11-20T23:30:00+00:00 · 5.2 minutes of wall time")
    assert told["about"].endswith("seed 0")
    assert told["reproduce"] == f"git checkout {MANIFEST['git']['commit']}\n{MANIFEST['command']}"
    assert not any("unscored" in notice for notice in told["notices"])


def test_the_story_is_of_tenths_of_the_run_and_leads_to_their_rollouts(finished: Path) -> None:
    history = read_history(finished)
    rewards = dict(enumerate((0.1, 0.1, 0.1, 0.5, 0.5, 0.5), 1))
    doses = {"mask_positive": 0.02, "mask_negative": 0.01, "penalty_positive": 0.5}
    steps = [
        replace(step, reward_mean=rewards[step.step], doses=doses, optimizer={"clip_low_share": 0.01}, masked_share=0.1)
        for step in history.steps
    ]
    (jump, name, state), truncated, doses_line = describe_report(replace(history, steps=steps))["story"]
    assert jump == "Mean reward: 0.100 at first, 0.500 in the end, the largest rise +0.400 from step 3 to 4."
    assert (name, state["step"], state["split"]) == ("rollouts of these steps", "3-4", "train")
    assert truncated[2]["truncated"] == "yes"
    assert doses_line[0] == (
        "Doses: of all |advantage| the mask took 3.0%, the penalty took 50.0%; the clip stopped 1.00% of the tokens."
    )


def test_unscored_samples_are_counted_apart(tmp_path: Path) -> None:
    told = told_of(write_run(tmp_path, Recipe(num_steps=3, evaluate_every=3, num_heldout=9, num_unscored_each=4)))
    assert any(n.startswith("20 unscored samples: 12 in training, 4 before, 4 after.") for n in told["notices"])
    assert "8 problems, 4 samples each" in told["headline"]["text"]


def test_an_unfinished_run_says_so(copied: Path) -> None:
    run = RunDirectory(copied)
    run.summary.unlink()
    with run.metrics.open("a") as file:
        file.write('{"step": 7, "reward_m')
    told = told_of(copied)
    assert told["state"] == "not finished"
    assert any("not finished: 6 steps so far" in notice for notice in told["notices"])
    assert "after 6 steps so far" in told["headline"]["text"]


def test_a_run_with_only_its_first_evaluation_has_no_comparison(copied: Path) -> None:
    run = RunDirectory(copied)
    run.summary.unlink()
    run.metrics.unlink()
    run.evaluations.write_text(run.evaluations.read_text().split("\n")[0] + "\n")
    told = told_of(copied)
    assert "Held-out accuracy before training" in told["headline"]["text"]
    assert "nothing to compare it with" in told["headline"]["text"]


def test_a_run_that_has_just_started_has_a_report(tmp_path: Path) -> None:
    write_json(tmp_path / "manifest.json", {"config": {}, "git": {"is_dirty": True}})
    told = told_of(tmp_path)
    assert told["headline"]["figures"] == ["No accuracy yet"]
    assert any("uncommitted changes" in notice for notice in told["notices"])
    assert (told["title"], told["reproduce"], told["tables"], told["examples"]) == (tmp_path.name, "", [], [])


def test_missing_sample_files_are_said(copied: Path) -> None:
    shutil.rmtree(copied / "evaluations")
    shutil.rmtree(copied / "rollouts")
    told = told_of(copied)
    notices = " ".join(told["notices"])
    assert "evaluations/step_000000.parquet are missing" in notices
    assert "18 problems" in told["headline"]["text"]
    assert "easy" not in rows_of(told, "before-after")


def test_no_gain_is_called_no_gain(copied: Path) -> None:
    run = RunDirectory(copied)
    first = run.read_evaluations()[0]
    run.evaluations.unlink()
    for step in (0, 6):
        append_row(run.evaluations, first | {"step": step})
    run.summary.unlink()
    told = told_of(copied)["headline"]
    assert (told["difference"][1], told["finding"]) == ("flat", "The interval includes zero: no change is shown.")


def test_a_folder_that_is_no_run_or_is_damaged_is_one_clear_line(copied: Path, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match="pass a folder that `microcoder train` wrote"):
            read_history(path)
    (copied / "evaluations/step_000006.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError, match=r"step_000006\.parquet is not a Parquet file"):
        told_of(copied)
    append_row(copied / "metrics.jsonl", {"step": 9})
    with pytest.raises(DataError, match=r"metrics\.jsonl line 7 lacks reward_mean"):
        read_history(copied)


def test_keys_of_a_later_version_are_ignored(copied: Path) -> None:
    run = RunDirectory(copied)
    append_row(run.metrics, run.read_metrics()[-1] | {"step": 7, "from_the_future": 1})
    assert len(read_history(copied).steps) == 7


def test_examples_show_what_was_learnt_what_failed_and_what_was_masked(finished: Path) -> None:
    history = read_history(finished)
    run, examples = history.run, choose_examples(history)
    assert examples == choose_examples(history)
    assert [example["title"].split(":")[0] for example in examples] == [*["Learnt"] * 3, "Still failing", "Masked"]
    held_out = [example["problem_id"] for example in examples if "Masked" not in example["title"]]
    assert len(held_out) == len(set(held_out))
    for example in examples:
        rows = []
        for shown in example["rollouts"]:
            split, step, row = shown["id"].split("/")
            path = (run.evaluation_file if split == "heldout" else run.rollout_file)(int(step))
            rows.append(read_rollouts(path)[int(row)])
        assert {row["problem_id"] for row in rows} == {example["problem_id"]}
        if example["title"].startswith("Learnt"):
            assert [row["reward"] for row in rows] == [0.0, 1.0]
        if example["title"].startswith("Masked"):
            assert rows[0]["masked_why"] in example["why"]


def test_a_problem_that_was_solved_less_than_before_is_an_example(copied: Path) -> None:
    run = RunDirectory(copied)
    before, after = run.evaluation_file(0).read_bytes(), run.evaluation_file(6).read_bytes()
    run.evaluation_file(0).write_bytes(after)
    run.evaluation_file(6).write_bytes(before)
    (lost,) = [one for one in choose_examples(read_history(copied)) if one["title"].startswith("Lost")]
    assert [(shown["label"], shown["id"][:9]) for shown in lost["rollouts"]] == [
        ("before", "heldout/0"),
        ("after", "heldout/6"),
    ]


def test_the_title_names_algorithm_model_and_problems(tmp_path: Path) -> None:
    config = {
        "model": {"kind": "hugging_face", "path": "Qwen/Qwen3-4B"},
        "problems": {"kind": "files", "train": "data/kodsport/train.jsonl"},
        "algorithm": {"loss": {"kind": "dapo"}, "masking": {"kind": "conditional"}},
    }
    recipe = Recipe(num_steps=1, evaluate_every=1, num_heldout=3, manifest={"config": config})
    assert told_of(write_run(tmp_path, recipe))["title"] == "MicroCoder-GRPO on Qwen/Qwen3-4B: kodsport/train.jsonl"


def test_tiers_are_ordered_by_difficulty_then_by_name(finished: Path) -> None:
    history = read_history(finished)
    step = replace(history.steps[0], accuracy_by_tier={"hard": 0.1, "zeta": 0.1, "easy": 0.1, "alpha": 0.1})
    assert replace(history, steps=[step], evaluations=[]).tiers == ["easy", "hard", "alpha", "zeta"]


def test_the_report_says_whether_the_mask_deserved_it(copied: Path) -> None:
    assert not [one for one in told_of(copied)["tables"] if one["id"] == "continued"]
    fates = {"masked": 9, "masked, advantage 0 anyway": 0, "punished": 20, "neither": 0}
    verdicts = [("masked", "accepted")] * 3 + [("masked", "sandbox_fault"), ("punished", "accepted")]
    verdicts += [("masked", "wrong_answer")] + [("punished", "no_code")] * 3
    responses = [{"fate": fate, "verdict": one, "is_truncated": one == "no_code"} for fate, one in verdicts]
    append_row(RunDirectory(copied).continuations, {"step": 1, "truncated": fates, "responses": responses})
    told = told_of(copied)
    (table,) = [one for one in told["tables"] if one["id"] == "continued"]
    assert table["text"] == "Would have been right at twice the limit: of 4 masked, 3; of 4 punished, 1."
    assert rows_of(told, "continued") == {
        "masked": ["9", "4", "4", "3", "75.0 % (30.1 % to 95.4 %)"],
        "punished": ["20", "4", "1", "1", "25.0 % (4.6 % to 69.9 %)"],
    }

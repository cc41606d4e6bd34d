"""What the report of a run says: of whole, unfinished, damaged and hostile ones, its ideas,
and other arms.
"""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import append_row, write_json
from microcoder.lab.studies.report import algorithm_name, check_alike, describe_report
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.runs import RunDirectory, read_history
from tests.lab.synthetic_run import MANIFEST, Recipe, write_run

RECIPES = Path(__file__).parents[2] / "recipes"
SMALL = Recipe(num_steps=6, evaluate_every=3, num_heldout=18)


def manifest(mask: str, problems: str = "aa") -> dict[str, Any]:
    return {
        "command": [
            "microcoder",
            "train",
            "-c",
            "recipes/micro/config.toml",
            "--run-dir",
            "runs/my demo",
        ],
        "problems": {"num_train": 64, "num_heldout": 18, "digest": problems},
        "config": {
            "model": {"kind": "micro", "warm_start": {"num_layers": 3, "hidden_size": 96}},
            "problems": {"kind": "micro"},
            "algorithm": {
                "masking": {"kind": mask},
                "loss": {"kind": "dapo", "clip_low": 0.2, "clip_high": 0.28},
                "kl_coefficient": 0.0,
            },
            "rollout": {"temperature": {"kind": "constant", "value": 1.2}},
        },
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three finished runs: `demo`, and the arms `ours` and `dapo`."""
    root = tmp_path_factory.mktemp("runs")
    write_run(root / "demo", SMALL)
    write_run(root / "ours", replace(SMALL, manifest=manifest("conditional")))
    write_run(root / "dapo", replace(SMALL, seed=1, manifest=manifest("none")))
    return root


@pytest.fixture
def copied(runs: Path, tmp_path: Path) -> Path:
    """Return a copy of the finished run that a test may damage."""
    return Path(shutil.copytree(runs / "demo", tmp_path / "demo"))


def told_of(run: Path) -> dict[str, Any]:
    return describe_report(read_history(run))


def rows_of(told: dict[str, Any], table: str) -> dict[str, list[Any]]:
    (found,) = [one for one in told["tables"] if one["id"] == table]
    return {row[0]: row[1:] for row in found["rows"]}


def test_the_report_says_what_was_gained_and_how_sure_that_is(runs: Path) -> None:
    told = told_of(runs / "demo")
    history = read_history(runs / "demo")
    assert history.before is not None
    assert history.after is not None
    headline = told["headline"]
    assert headline["figures"] == [
        f"{100 * e.accuracy:.1f} %" for e in (history.before, history.after)
    ]
    assert "after 6 steps: 18 problems, 4 samples each" in headline["text"]
    assert re.fullmatch(r"\+\d+\.\d \([^0-9]\d+\.\d to \+\d+\.\d\)", headline["difference"][0])
    assert headline["difference"][1] == "up"
    assert headline["finding"] == ""
    assert list(rows_of(told, "before-after"))[:5] == [
        "all problems",
        "easy",
        "medium",
        "hard",
        "pass@4",
    ]
    assert rows_of(told, "before-after")["all problems"][-1] == headline["difference"]
    # Of 72 answers: 18 problems, 4 samples each.
    num_wrong = history.after.outcomes["wrong_answer"]
    assert (
        rows_of(told, "before-after")["verdict wrong_answer"][2]
        == f"{num_wrong} ({100 * num_wrong / 72:.1f} %)"
    )
    assert told["title"] == "demo"
    assert told["state"] == "finished"
    assert told["about"].startswith(
        "6 training steps · started 2026-11-20T23:30:00+00:00 · 5.2 minutes of wall time"
    )
    assert told["about"].endswith("seed 0")
    assert (
        told["reproduce"]
        == f"git checkout {MANIFEST['git']['commit']}\n{' '.join(MANIFEST['command'])}"
    )
    for notice in told["notices"]:
        assert "unscored" not in notice


def test_the_story_is_of_tenths_of_the_run_and_leads_to_their_rollouts(runs: Path) -> None:
    history = read_history(runs / "demo")
    rewards = dict(enumerate((0.1, 0.1, 0.1, 0.5, 0.5, 0.5), 1))
    doses = {"mask_positive": 0.02, "mask_negative": 0.01, "penalty_positive": 0.5}
    steps = []
    for step in history.steps:
        steps.append(
            replace(
                step,
                reward_mean=rewards[step.step],
                doses=doses,
                optimizer={"clip_low_share": 0.01},
                masked_share=0.1,
                masked={"truncated": 3},
            )
        )
    (jump, name, state), truncated, doses_line = describe_report(replace(history, steps=steps))[
        "story"
    ]
    # A tenth of six steps is one step: the first, the last, and the largest rise between two.
    assert jump == (
        "Mean reward: 0.100 at first, 0.500 in the end, the largest rise +0.400 from step 3 to 4."
    )
    assert name == "rollouts of these steps"
    assert state["step"] == "3-4"
    assert state["split"] == "train"
    assert truncated[2]["truncated"] == "yes"
    assert " Of 18 masked, " in truncated[0]
    # The mask took 2 % with one sign and 1 % with the other.
    assert doses_line[0] == (
        "Share of |advantage| removed: mask 3.0%, penalty 50.0%; the clip stopped 1.00%, "
        "as the engine counts."
    )
    assert doses_line[1:] == (
        "masked rollouts",
        {"view": "rollouts", "split": "train", "masked": "yes"},
    )


def test_unscored_samples_are_counted_apart(tmp_path: Path) -> None:
    told = told_of(
        write_run(
            tmp_path, Recipe(num_steps=3, evaluate_every=3, num_heldout=9, num_unscored_each=4)
        )
    )
    # Four in each of three steps, before and after.
    assert any(
        n.startswith("20 unscored samples: 12 in training, 4 before, 4 after.")
        for n in told["notices"]
    )
    # One problem of nine has no scored sample left.
    assert "8 problems, 4 samples each" in told["headline"]["text"]


def test_a_run_that_is_not_whole_says_so(copied: Path, tmp_path: Path) -> None:
    run = RunDirectory(copied)
    run.summary.unlink()
    whole = run.metrics.read_text()
    # As a kill leaves it, in the middle of a line.
    run.metrics.write_text(whole + '{"step": 7, "reward_m')
    told = told_of(copied)
    assert told["state"] == "not finished"
    assert "after 6 steps so far" in told["headline"]["text"]
    # Keys of a later version are ignored.
    run.metrics.write_text(whole)
    append_row(run.metrics, run.read_metrics()[-1] | {"step": 7, "from_the_future": 1})
    assert len(read_history(copied).steps) == 7
    # Tiers are known from the samples alone.
    shutil.rmtree(copied / "evaluations")
    shutil.rmtree(copied / "rollouts")
    told = told_of(copied)
    assert "18 problems" in told["headline"]["text"]
    assert "easy" not in rows_of(told, "before-after")
    first = run.read_evaluations()[0]
    # The last evaluation is now the first once more: nothing has changed.
    append_row(run.evaluations, first | {"step": 7})
    told = told_of(copied)["headline"]
    assert told["difference"][1] == "flat"
    assert told["finding"] == "The interval includes zero: no change is shown."
    run.metrics.unlink()
    run.evaluations.unlink()
    append_row(run.evaluations, first)
    told = told_of(copied)
    assert "Held-out accuracy before training" in told["headline"]["text"]
    assert "nothing to compare it with" in told["headline"]["text"]
    new = tmp_path / "new"
    new.mkdir()
    write_json(new / "manifest.json", {"config": {}, "git": {"is_dirty": True}})
    told = told_of(new)
    assert told["headline"]["figures"] == ["No accuracy yet"]
    assert any("uncommitted changes" in notice for notice in told["notices"])
    assert told["title"] == "new"
    assert told["reproduce"] == ""
    assert told["tables"] == []


def test_a_folder_that_is_no_run_or_is_damaged_is_one_clear_line(
    copied: Path, tmp_path: Path
) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match="pass a folder that `microcoder train` or"):
            read_history(path)
    append_row(copied / "metrics.jsonl", {"step": 9})
    with pytest.raises(DataError, match=r"metrics\.jsonl line 7: reward_mean is missing"):
        read_history(copied)


def test_tiers_are_ordered_by_difficulty_then_by_name(runs: Path) -> None:
    history = read_history(runs / "demo")
    step = replace(
        history.steps[0], accuracy_by_tier={"hard": 0.1, "zeta": 0.1, "easy": 0.1, "alpha": 0.1}
    )
    assert replace(history, steps=[step], evaluations=[]).tiers == ["easy", "hard", "alpha", "zeta"]


def test_a_run_says_what_it_was(runs: Path) -> None:
    history = read_history(runs / "ours")
    assert (
        describe_report(history)["title"]
        == "MicroCoder-GRPO on a tiny Qwen3 of 3 layers: the micro lab's chains"
    )
    config = history.manifest["config"] | {
        "model": {"kind": "hugging_face", "path": "Qwen/Qwen3-4B"},
        "problems": {"kind": "files", "train": "data/kodsport/train.jsonl"},
    }
    told = describe_report(replace(history, manifest={"config": config}))
    assert told["title"] == "MicroCoder-GRPO on Qwen/Qwen3-4B: kodsport/train.jsonl"


def test_arms_are_compared_on_the_same_problems_with_an_interval(runs: Path) -> None:
    history = read_history(runs / "ours")
    other = read_history(runs / "dapo")
    assert history.after is not None
    assert other.after is not None
    change = 100 * (other.after.accuracy - history.after.accuracy)
    told = describe_report(history, [other])["tables"]
    assert [table["id"] for table in told] == ["arms", "before-after"]
    assert told[0]["rows"][1][2][0].replace("−", "-").startswith(f"{change:+.1f} (")  # noqa: RUF001
    assert [row[0] for row in told[0]["rows"]] == ["MicroCoder-GRPO", "DAPO"]
    assert told[0]["note"].endswith(
        "The arms differ in: algorithm.masking.kind: conditional / none."
    )


def test_a_run_on_other_problems_is_refused(runs: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", replace(SMALL, manifest=manifest("none", problems="bb")))
    with pytest.raises(DataError, match=r"asked other problems than .* \(digest bb against aa\)"):
        check_alike(read_history(runs / "ours"), read_history(other))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, "MicroCoder-GRPO"),
        ({"masking": {"kind": "none"}}, "DAPO"),
        ({"masking": {"kind": "all"}}, "DAPO, masking all"),
        (
            {"masking": {"kind": "all", "leave_out_of": "baseline"}},
            "DAPO, masking all, left out of the baseline",
        ),
        ({"loss": "gspo", "masking": {"kind": "none"}}, "GSPO"),
        ({"loss": "cispo"}, "CISPO, masking conditional"),
        ({"advantage": "rloo", "masking": {"kind": "none"}}, "DAPO, advantage rloo"),
        ({"loss": "dr_grpo", "masking": {"kind": "none"}}, "Dr. GRPO"),
        ({"loss": "grpo", "kl_coefficient": 0.001, "masking": {"kind": "none"}}, "GRPO"),
        ({"loss": "grpo", "masking": {"kind": "none"}}, "GRPO, no KL"),
        (
            {
                "loss": {"kind": "dapo", "clip_high": 0.2},
                "kl_coefficient": 0.01,
                "masking": {"kind": "none"},
            },
            "DAPO, symmetric clip, KL",
        ),
        ({"group_filtering": "dynamic"}, "MicroCoder-GRPO, dynamic sampling"),
        ({"group_filtering": "dynamic_reward"}, "MicroCoder-GRPO, dynamic sampling by reward"),
    ],
)
def test_settings_are_called_what_they_are(keys: dict[str, Any], expected: str) -> None:
    config = load_config(AlgorithmConfig, layers=[keys])
    assert algorithm_name(config.model_dump(mode="json")) == expected


def test_recipes_to_compare_have_names_of_their_own() -> None:
    recipes = sorted((RECIPES / "algorithms").glob("*.toml"))
    configs = [load_config(TrainConfig, [Path("micro"), path]) for path in recipes]
    named = [algorithm_name(config.algorithm.model_dump(mode="json")) for config in configs]
    assert len(recipes) == len(set(named)) > 5
    assert algorithm_name({}) == ""

"""What stands on a report's first screen: what a run was, what its ideas did, and how it differs from another arm."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import Recipe, write_run

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_json
from microcoder.lab.studies.effects import Estimate
from microcoder.lab.studies.history import read_history
from microcoder.lab.studies.report import conclude, describe_report, describe_run
from microcoder.train.algorithm.sampling import DiversityTemperature
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.probe import ProbePoint, write_probe
from microcoder.train.runs import RunDirectory

SMALL = Recipe(num_steps=4, evaluate_every=2, num_heldout=12)


def manifest(mask: str, problems: str = "aa") -> dict[str, Any]:
    return {
        "command": ["microcoder", "train", "-c", "recipes/micro/config.toml", "--run-dir", "runs/my demo"],
        "problems": {"num_train": 64, "num_heldout": 12, "digest": problems},
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
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("arms") / "ours", replace(SMALL, manifest=manifest("conditional")))


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("arms") / "dapo", replace(SMALL, seed=1, manifest=manifest("none")))


def test_a_run_says_what_it_was_and_what_its_ideas_did(ours: Path) -> None:
    history = read_history(ours)
    first = replace(history.steps[0], masked={"truncated_incomplete": 5, "truncated_correct": 2})
    history = replace(history, steps=[first, *history.steps[1:]])
    told = dict(describe_run(history))
    assert describe_report(history)["title"] == "MicroCoder-GRPO on a tiny Qwen3 of 3 layers: the micro lab's chains"
    assert told["algorithm"] == "MicroCoder-GRPO, clip 0.2 / 0.28, no KL"
    num_rollouts = sum(sum(step.outcomes.values()) for step in history.steps)
    assert told["truncation mask"].startswith(f"7 of {num_rollouts} rollouts (")
    assert told["truncation mask"].endswith(
        "set to 0: 2 right though cut off, 5 cut off before the program ended; of 7 it would have been 0 anyway"
    )
    assert told["temperature"] == "1 then 1.2, given in the recipe"
    assert f"mean response of {history.steps[0].length_mean:.1f} tokens at first" in told["length"]
    assert describe_report(history)["next"][0][0] == "microcoder view 'runs/my demo'"


def test_a_probed_temperature_is_reported_with_its_reason(ours: Path, tmp_path: Path) -> None:
    run = RunDirectory(Path(shutil.copytree(ours, tmp_path / "probed")))
    config = load_config(
        TrainConfig,
        overrides={"model.kind": "micro", "problems.kind": "micro", "rollout.temperature.kind": "diversity"},
    )
    schedule = config.rollout.temperature
    assert isinstance(schedule, DiversityTemperature)
    points = [ProbePoint(t, accuracy, t / 2, 20.0, 0.0, 8, 64) for t, accuracy in ((0.8, 0.2), (1.6, 0.2))]
    probe = write_probe(run, schedule, points)
    write_json(run.manifest, {**run.read_manifest(), "config": config.model_dump(mode="json")})
    told = dict(describe_run(read_history(run.root)))["temperature"]
    assert told.startswith("1 then 1.2, chosen by a probe of the untrained model at 0.8, 1.6: 1.6 is the lowest")
    assert probe.choice.temperature == 1.6
    run.probe.unlink()
    assert "whose file is missing" in dict(describe_run(read_history(run.root)))["temperature"]


def test_arms_are_compared_on_the_same_problems_with_an_interval(ours: Path, baseline: Path) -> None:
    history, other = read_history(ours), read_history(baseline)
    assert history.after is not None
    assert other.after is not None
    change = 100 * (other.after.accuracy - history.after.accuracy)
    told = describe_report(history, [baseline])["tables"]
    assert [table["id"] for table in told] == ["arms", "before-after", "verdicts"]
    assert told[0]["rows"][1][2][0].replace("−", "-").startswith(f"{change:+.1f} (")  # noqa: RUF001
    assert told[0]["text"].endswith("by these two runs.") == (told[0]["rows"][1][2][1] == "flat")
    assert [row[0] for row in told[0]["rows"]] == ["MicroCoder-GRPO", "DAPO"]
    assert told[0]["note"].endswith("The arms differ in: algorithm.masking.kind: conditional / none.")


def test_a_run_on_other_problems_is_refused(ours: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", replace(SMALL, manifest=manifest("none", problems="bb")))
    with pytest.raises(DataError, match=r"asked other problems than .* \(digest bb against aa\)"):
        describe_report(read_history(ours), [other])


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((-0.1, 0.1), "No difference in accuracy between MicroCoder-GRPO and DAPO is shown"),
        ((-0.2, -0.1), "MicroCoder-GRPO ends above DAPO"),
        ((0.1, 0.2), "DAPO ends above MicroCoder-GRPO"),
    ],
)
def test_the_conclusion_says_what_the_interval_shows(interval: tuple[float, float], said: str) -> None:
    low, high = interval
    difference = Estimate((low + high) / 2, low, high, 100)
    assert conclude("MicroCoder-GRPO", "DAPO", difference).startswith(said)

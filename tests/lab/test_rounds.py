"""Rounds of seeds: what comes when, when it ends, and that looking on the way costs the intervals little."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic_run import Recipe, write_run

from microcoder.lab.studies.design import Contrast, StudyFile, load_study
from microcoder.lab.studies.effects import estimate_effect
from microcoder.lab.studies.verdicts import ClaimFinding, judge_contrast
from microcoder.lab.studies.work import Work, plan_work
from microcoder.lab.studies.workers import missing_work, split_rounds

STUDY = """
question = "?"
done = "d"
next = "n"
factor = "f"
baseline = "recipe.toml"
reference = "a"
seeds = [10, 11, 12, 13, 14, 15]
first_look = 3
[levels.a]
[levels.b]
set = { num_steps = 3 }
[levels.c]
set = { num_steps = 4 }
[measurements.of_a]
function = "measure.py:of_a"
says = "s"
uses = ["a"]
seeds = [10, 11, 15]
levels = ["x"]
metrics = { m = { says = "m" } }
[[claims]]
id = "T2"
says = "s"
short = "s"
paper = "..."
family = "training"
design = "d"
primary = { metric = "accuracy", feature = "late", of = ["b"], against = ["a"], direction = "higher", least = 0.02 }
secondary = [{ metric = "accuracy", feature = "late", of = ["c"], against = ["a"], direction = "higher", least = 0.02 }]
check = { metric = "masked", feature = "mean", of = ["b"] }
spread = { sd = 0.02, where = "pilot" }
"""


@pytest.fixture
def file(tmp_path: Path) -> StudyFile:
    (tmp_path / "recipe.toml").write_text('model.kind = "micro"\nproblems.kind = "micro"\nnum_steps = 2\n')
    (tmp_path / "study.toml").write_text(STUDY)
    return load_study(tmp_path / "study.toml")


def named(works: list[Work]) -> list[tuple[str, int]]:
    return [(work.name, work.seed) for work in works]


def do(works: list[Work]) -> None:
    """Finish work: runs that differ between seeds and levels, and a measurement of one row."""
    for work in works:
        if work.measurement is None:
            seed = 1000 * work.seed + ord(work.name)
            write_run(work.folder, Recipe(num_steps=4, evaluate_every=2, num_heldout=12, seed=seed))
        else:
            work.folder.mkdir(parents=True)
            row = {"metric": "m", "level": "x", "unit": "1", "value": 1.0}
            (work.folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
            (work.folder / "summary.json").write_text("{}")


def test_the_first_round_is_several_seeds_and_each_further_one_is_a_seed(file: StudyFile, tmp_path: Path) -> None:
    rounds = split_rounds(file.study, plan_work(file, scale="micro", root=tmp_path))
    assert [sorted({work.seed for work in found}) for found in rounds] == [[10, 11, 12], [13], [14], [15]]
    # A measurement that reads a run of a late seed comes with it.
    assert named([work for work in rounds[3] if work.measurement]) == [("of_a", 15)]
    assert len(rounds[0]) == 3 * 3 + 2


def test_a_study_without_claims_is_one_round(file: StudyFile, tmp_path: Path) -> None:
    works = plan_work(file, scale="micro", root=tmp_path)
    assert [len(found) for found in split_rounds(file.study.model_copy(update={"claims": ()}), works)] == [len(works)]


def test_wide_intervals_ask_for_a_seed_more_of_what_their_claim_compares(file: StudyFile, tmp_path: Path) -> None:
    planned = [(file, plan_work(file, scale="micro", root=tmp_path))]
    first = missing_work(planned, scale="micro")
    assert named(first) == [(level, seed) for seed in (10, 11, 12) for level in "abc"]
    do(first[:4])
    # A measurement comes when the run that it reads is there, unless that failed.
    second = missing_work(planned, scale="micro")
    assert [one for one in named(second) if one[0] == "of_a"] == [("of_a", 10), ("of_a", 11)]
    failed = [work.folder for work in second]
    assert named(missing_work(planned, scale="micro", failed=failed)) == [(level, 13) for level in "ab"]
    while found := missing_work(planned, scale="micro"):
        do(found)
    done = named([work for work in planned[0][1] if work.is_finished])
    # `c` is in no primary contrast; the measurement is in no claim.
    assert [one for one in done if one[1] >= 13] == [(level, seed) for seed in (13, 14, 15) for level in "ab"]


@pytest.mark.parametrize(("part", "least"), [("primary", 9.0), ("check", 1.0)], ids=["narrow", "cannot appear"])
def test_what_is_narrow_or_cannot_appear_gets_no_more_seeds(
    file: StudyFile, tmp_path: Path, part: str, least: float
) -> None:
    (claim,) = file.study.claims
    changed = claim.model_copy(update={part: getattr(claim, part).model_copy(update={"least": least})})
    study = file.study.model_copy(update={"claims": (changed,)})
    planned = [(StudyFile(file.path, study), plan_work(file, scale="micro", root=tmp_path))]
    while found := missing_work(planned, scale="micro"):
        do(found)
    assert {work.seed for work in planned[0][1] if work.is_finished} == {10, 11, 12}


@pytest.mark.parametrize("spread", [0.2, 0.3, 0.5])
def test_looking_at_the_width_on_the_way_keeps_the_rates(spread: float) -> None:
    """From five seeds on, at most ten; `least` is 1, and the spread is in its unit."""
    rng, trials = np.random.default_rng(round(20 * spread)), 1000
    covered = supported = stopped = 0
    contrast = Contrast(metric="accuracy", feature="late", of=("a",), direction="higher", least=1.0)
    for _ in range(trials):
        rows = spread * rng.standard_normal((10, 1))
        looks = (n for n in range(5, 10) if estimate_effect(rows[:n]).half_width_at(0.05 / 34) <= 0.5)
        num = next(looks, 10)
        effect = estimate_effect(rows[:num])
        covered += effect.low <= 0 <= effect.high
        supported += judge_contrast(contrast, effect).judgement.verdict in (
            ClaimFinding.SUPPORTED,
            ClaimFinding.SMALLER,
        )
        stopped += num < 10
    # 60,000 trials: 94.3, 93.3 and 93.7 % in place of 95, and 0.0, 0.3 and 2.2 % in place of 2.5.
    assert covered / trials >= 0.91
    assert supported / trials <= 0.04
    if spread == 0.3:
        assert 0.1 < stopped / trials < 0.95

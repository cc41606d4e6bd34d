"""Rounds of seeds: what comes when, when it ends, and that looking on the way costs the intervals little."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from microcoder.lab.studies.claims import ClaimResult, judge_claims, judge_study
from microcoder.lab.studies.design import Claim
from microcoder.lab.studies.effects import estimate_effect
from microcoder.lab.studies.rounds import Rounds, split_rounds
from microcoder.lab.studies.study import StudyFile, StudyMeasurement, StudyRun, Work, load_study, plan_work
from microcoder.lab.studies.verdicts import ClaimFinding, judge_effect

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


def named(work: Work) -> tuple[str, int]:
    return (work.level if isinstance(work, StudyRun) else work.name, work.seed)


def drain(rounds: Rounds) -> list[tuple[str, int]]:
    """Do all work, one at a time, as a pretence that finishes none."""
    done = []
    while (work := rounds.take()) is not None:
        done.append(named(work))
        rounds.ended(work)
    assert rounds.is_exhausted
    return done


def start(file: StudyFile, root: Path, results: list[ClaimResult], **options: float) -> Rounds:
    works = plan_work(file, scale="micro", root=root)
    return Rounds([(file, works)], look=lambda _: results, seconds_of=lambda _: 10.0, clock=lambda: 0.0, **options)


def look(file: StudyFile, root: Path, *, half_width: float | None = None) -> list[ClaimResult]:
    """Results of nothing run, or of a primary effect that is so wide."""
    results = list(judge_study(file, scale="micro", root=root).claims)
    if half_width is None:
        return results
    part = results[0].primary
    assert part is not None
    effect = replace(estimate_effect(np.zeros((3, 1)), span=1.0), low=-half_width, high=half_width)
    verdict = ClaimFinding.INCONCLUSIVE
    return [replace(results[0], primary=replace(part, effect=effect), raw=verdict, verdict=verdict)]


def test_the_first_round_is_several_seeds_and_each_further_one_is_a_seed(file: StudyFile, tmp_path: Path) -> None:
    rounds = split_rounds(file.study, plan_work(file, scale="micro", root=tmp_path))
    assert [sorted({work.seed for work in found}) for found in rounds] == [[10, 11, 12], [13], [14], [15]]
    # A measurement that reads a run of a late seed comes with it.
    assert [named(work) for work in rounds[3] if isinstance(work, StudyMeasurement)] == [("of_a", 15)]
    assert len(rounds[0]) == 3 * 3 + 2


def test_a_study_without_claims_is_one_round(file: StudyFile, tmp_path: Path) -> None:
    works = plan_work(file, scale="micro", root=tmp_path)
    assert [len(found) for found in split_rounds(file.study.model_copy(update={"claims": ()}), works)] == [len(works)]


def test_narrow_intervals_end_a_study_and_wide_ones_ask_for_what_their_claim_compares(
    file: StudyFile, tmp_path: Path
) -> None:
    first = [(level, seed) for seed in (10, 11, 12) for level in "abc"]
    # Nothing was finished, so the measurements have nothing to read. At the strictest of 34 steps a normal interval is
    # 1.62 times as wide: 0.0125 becomes more than 0.02.
    assert drain(start(file, tmp_path, look(file, tmp_path, half_width=0.012))) == first
    wide = drain(start(file, tmp_path, look(file, tmp_path, half_width=0.0125)))
    assert wide == first + [(level, seed) for seed in (13, 14, 15) for level in "ab"]


def test_what_cannot_appear_gets_no_more_seeds_and_a_spent_budget_begins_nothing(
    file: StudyFile, tmp_path: Path
) -> None:
    wide = look(file, tmp_path, half_width=1.0)
    cannot = [replace(result, raw=ClaimFinding.CANNOT_APPEAR) for result in wide]
    assert {seed for _, seed in drain(start(file, tmp_path, cannot))} == {10, 11, 12}
    rounds = start(file, tmp_path, wide, budget_seconds=100.0, spent_seconds=91.0)
    assert drain(rounds) == []
    assert ("a", 10) in {named(work) for work in rounds.left_out}


def test_work_in_progress_is_waited_for(file: StudyFile, tmp_path: Path) -> None:
    rounds = start(file, tmp_path, look(file, tmp_path, half_width=1.0))
    taken: list[Work] = []
    while (work := rounds.take()) is not None:
        taken.append(work)
    assert not rounds.is_exhausted
    for work in taken:
        rounds.ended(work)
    following = rounds.take()
    assert following is not None
    assert named(following) == ("a", 13)


def test_nothing_run_is_not_run(file: StudyFile, tmp_path: Path) -> None:
    results = look(file, tmp_path)
    assert [result.verdict for result in results] == [ClaimFinding.NOT_RUN]
    assert judge_claims((), judge_study(file, scale="micro", root=tmp_path).data) == []
    assert all(isinstance(result.claim, Claim) for result in results)


@pytest.mark.parametrize("spread", [0.4, 0.6, 1.0])
def test_looking_at_the_width_on_the_way_keeps_the_rates(spread: float) -> None:
    """From five seeds on, at most ten; `least` is 1, and the spread is in its unit."""
    rng, trials = np.random.default_rng(round(10 * spread)), 1000
    covered = supported = stopped = 0
    for _ in range(trials):
        rows = spread * rng.standard_normal((10, 1))
        looks = (n for n in range(5, 10) if estimate_effect(rows[:n]).half_width_at(0.05 / 34) <= 1.0)
        num = next(looks, 10)
        effect = estimate_effect(rows[:num])
        covered += effect.low <= 0 <= effect.high
        supported += judge_effect(effect, direction="higher", least=1.0).verdict is ClaimFinding.SUPPORTED
        stopped += num < 10
    # 60,000 trials: 94.3, 93.3 and 93.7 % in place of 95, and 0.0, 0.3 and 2.2 % in place of 2.5.
    assert covered / trials >= 0.91
    assert supported / trials <= 0.04
    if spread == 0.6:
        assert 0.1 < stopped / trials < 0.95

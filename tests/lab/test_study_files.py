"""The study files: all 34 claims, comparable levels, runs that are shared, and one clear line for each mistake."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

import pytest

from microcoder.cli import main
from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import ConfigError
from microcoder.lab.studies.design import INSIGHTS, MICRO, QUICK, StudyFile, find_studies, load_study
from microcoder.lab.studies.work import digest_code, distinct_work, plan_runs, plan_work
from microcoder.lab.studies.workers import split_rounds
from microcoder.train.recipe.batching import find_idle
from microcoder.train.recipe.recipe import MicroProblems

ROOT = Path(__file__).parents[2]
STUDIES = [load_study(path) for path in sorted(ROOT.glob("studies/*.toml"))]


def test_every_insight_is_tested_once_or_says_why_it_cannot_be() -> None:
    named = [claim.id for file in STUDIES for claim in file.study.claims if not claim.id.startswith("X")]
    assert sorted(named) == sorted(INSIGHTS)
    assert len(INSIGHTS) == 34


@pytest.mark.parametrize("scale", [MICRO, QUICK, "qwen3-4b"])
@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.name)
def test_levels_differ_in_what_they_say_and_seeds_in_the_seed(file: StudyFile, scale: str, tmp_path: Path) -> None:
    runs = plan_runs(file, scale=scale, root=tmp_path)
    seeds = file.scale(scale).seeds
    assert len(seeds) >= 3
    assert len({run.folder for run in runs}) == len(runs) == len(seeds) * len(file.study.levels)
    if not runs:
        return
    base = flatten(next(r for r in runs if r.name == file.study.reference).config.model_dump(mode="json"))
    for run in runs[: len(file.study.levels)]:
        keys = flatten(run.config.model_dump(mode="json"))
        differing = {key for key in keys | base if keys.get(key) != base.get(key)}
        level, reference = file.study.levels[run.name], file.study.levels[file.study.reference]
        said = {k for table in (level, reference) for t in (table.set, *table.at.values()) for k in t}
        # `loss = "grpo"` says the kind, and with it its options.
        parts = {key.rpartition(".")[0] for key in said if key.endswith(".kind")} | said
        assert all(key in said or key.rpartition(".")[0] in parts for key in differing)


def test_work_that_studies_share_is_done_once(tmp_path: Path) -> None:
    works = [work for file in STUDIES for work in plan_work(file, scale=QUICK, root=tmp_path)]
    distinct = distinct_work(works)
    assert len({work.folder for work in works}) == len(distinct)
    assert [work.seed for work in distinct] == sorted(work.seed for work in distinct)
    assert {work.folder.parent.name for work in distinct} == {digest_code()}


def test_every_idea_of_a_study_can_act_at_every_scale(tmp_path: Path) -> None:
    """But where one update a step is what is studied: a step from one set of rollouts, and the smallest batch."""
    declared = {("006_truncation_mask", "one_step"), ("007_batch_size", "32")}
    idle = {
        (file.name, work.name): said
        for file in STUDIES
        for scale in (MICRO, *file.study.scales)
        for work in plan_work(file, scale=scale, root=tmp_path)
        if work.seed == 0 and (said := find_idle(work.config))
    }
    assert idle.keys() == declared, idle


def test_a_level_may_name_the_seed(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('model.kind = "micro"\nproblems.kind = "micro"\nnum_steps = 2\n')
    (tmp_path / "study.toml").write_text(STUDY.replace("num_steps = 3", '"problems.seed" = "{seed}"'))
    runs = plan_runs(load_study(tmp_path / "study.toml"), scale=MICRO, root=tmp_path)
    seeds = [flatten(run.config.model_dump(mode="json"))["problems.seed"] for run in runs if run.name == "b"]
    assert seeds == [0, 1, 2]


def test_the_registered_study_is_eight_seeds_of_six_arms_over_three_warm_starts(tmp_path: Path) -> None:
    path = ROOT / "studies" / "registered" / "dose_and_response.toml"
    runs = plan_runs(load_study(path), scale=MICRO, root=tmp_path)
    starts = {run.seed: flatten(run.config.model_dump(mode="json"))["model.warm_start.seed"] for run in runs}
    assert len({run.folder for run in runs}) == 48
    assert list(starts.values()) == [0, 1, 2, 0, 1, 2, 0, 1]
    assert [len(found) for found in split_rounds(load_study(path).study, runs)] == [48]


def test_active_sampling_is_registered_with_each_problem_asked_twelve_times(tmp_path: Path) -> None:
    file = load_study(ROOT / "studies" / "registered" / "active_sampling.toml")
    runs = plan_runs(file, scale=MICRO, root=tmp_path)
    assert Counter(run.config.algorithm.problem_choice.kind for run in runs) == {"uniform": 5, "active": 5}
    for run in runs:
        problems, asked = run.config.problems, run.config.num_steps * run.config.batch.train_batch_size
        assert isinstance(problems, MicroProblems)
        assert asked == 12 * problems.num_train
    primary = [claim.primary.metric if claim.primary else None for claim in file.study.claims]
    assert primary == ["no-signal", "accuracy"]


def test_other_seeds_are_other_work_of_the_same_study(tmp_path: Path) -> None:
    file = STUDIES[0]
    here, there = (plan_work(file, scale=QUICK, root=tmp_path, seeds_from=start) for start in (0, 100))
    assert [work.seed + 100 for work in here] == [work.seed for work in there]
    assert not {work.folder for work in here} & {work.folder for work in there}


STUDY = """
question = "?"
done = "d"
next = "n"
factor = "f"
baseline = "recipe.toml"
reference = "a"
seeds = [0, 1, 2]
[levels.a]
[levels.b]
set = { num_steps = 3 }
[measurements.pull]
function = "measure.py:pull"
says = "s"
seeds = [0, 1, 2]
levels = ["low", "high"]
metrics = { length = { says = "l", unit = "tokens" } }
[[claims]]
id = "T2"
says = "The more, the more."
short = "s"
paper = "..."
family = "training"
design = "d"
primary = { metric = "accuracy", feature = "late", of = ["b"], against = ["a"], direction = "higher", least = 0.02 }
secondary = [
  { measurement = "pull", metric = "length", of = ["high"], against = ["low"], direction = "higher", least = 1.0 },
]
check = { metric = "masked", feature = "mean", of = ["b"] }
spread = { sd = 0.02, where = "pilot" }
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('reference = "a"', 'reference = "c"', "c: no such level; levels are a, b"),
        ("seeds = [0, 1, 2]", "seeds = [0, 1]", "must have 3 or more items"),
        ('feature = "late"', 'feature = "last"', "no feature 'last'; use one of start, early, late"),
        ('id = "T2"', 'id = "T11"', "T11 is none of the 34"),
        (
            "check = { metric",
            "undecidable = { reason = 'r', compute = 'c' }\ncheck = { metric",
            "needs either `primary`",
        ),
        ("spread = {", "# spread = {", "needs `spread`: measure it on a pilot"),
        (", least = 0.02 }\nsecondary", " }\nsecondary", "its contrast of accuracy needs least"),
        ("check = {", "# check = {", "needs a `check`: that the treatment reached"),
        ('metric = "masked"', 'metric = "mask"', "no metric 'mask' of runs; use one of accuracy"),
        ('of = ["high"]', 'of = ["highest"]', "T2: highest: no such level; levels are low, high"),
        ('measurement = "pull"', 'measurement = "push"', "no measurement 'push' in this study"),
        ('measurement = "pull"', 'measurement = "pull", feature = "late"', "a measurement has no feature"),
        ("set = {", "at.huge = {", "levels set keys at huge, no scale"),
        ("question", "qestion", "qestion: unknown key"),
    ],
)
def test_a_wrong_study_is_one_clear_line(old: str, new: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    assert load_study(path).study.reference == "a"
    path.write_text(STUDY.replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_study(path)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_study_is_found_by_a_part_of_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("001_first", "002_second"):
        (tmp_path / f"{name}.toml").write_text(STUDY)
    assert [file.name for file in find_studies(None, folder=tmp_path)] == ["001_first", "002_second"]
    assert find_studies("second", folder=tmp_path)[0].name == "002_second"
    for name, told in (("third", "no study"), ("00", "more than one study")):
        with pytest.raises(ConfigError, match=f"{told} is called '{name}'; studies: 001_first, 002_second"):
            find_studies(name, folder=tmp_path)
    with pytest.raises(SystemExit):
        main(["study"])
    assert "name one study, or pass --all" in capsys.readouterr().err


def test_a_dry_run_at_full_scale_prints_the_command_of_every_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit):
        main(["study", "temperature", "--scale", "qwen3-4b"])
    assert "add --dry-run to print their commands" in capsys.readouterr().err
    main(["study", "temperature", "--scale", "qwen3-4b", "--dry-run"])
    lines = [shlex.split(line) for line in capsys.readouterr().out.splitlines() if line.startswith("microcoder train")]
    runs = plan_runs(find_studies("temperature")[0], scale="qwen3-4b", root=Path("runs/studies"))
    assert [line[-1] for line in lines] == [str(run.folder) for run in runs]
    assert [line[line.index("--seed") + 1] for line in lines] == [str(run.seed) for run in runs]
    with pytest.raises(SystemExit):  # problem files are the user's
        main([*lines[0][1:], "--dry-run"])
    assert "Qwen/Qwen3-4B" in capsys.readouterr().out

"""The study files: all 34 claims, comparable levels, runs that are shared, and one clear line for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from microcoder.cli import main
from microcoder.judge.core.config import flatten, load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.lab.studies.design import INSIGHTS, MICRO, QUICK
from microcoder.lab.studies.provenance import code_files, digest_code
from microcoder.lab.studies.rounds import StudySpeeds, count_work
from microcoder.lab.studies.study import (
    StudyFile,
    StudyRun,
    distinct_work,
    find_studies,
    load_study,
    plan_runs,
    plan_work,
    simplify_config,
)
from microcoder.train.recipe.recipe import TrainConfig

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
    base = flatten(next(r for r in runs if r.level == file.study.reference).config.model_dump(mode="json"))
    for run in runs[: len(file.study.levels)]:
        keys = flatten(run.config.model_dump(mode="json"))
        differing = {key for key in keys | base if keys.get(key) != base.get(key)}
        level, reference = file.study.levels[run.level], file.study.levels[file.study.reference]
        said = {k for table in (level, reference) for t in (table.set, *table.at.values()) for k in t}
        # `loss = "grpo"` says the kind, and with it its options.
        parts = {key.rpartition(".")[0] for key in said if key.endswith(".kind")} | said
        assert all(key in said or key.rpartition(".")[0] in parts for key in differing)


def test_work_that_studies_share_is_done_once(tmp_path: Path) -> None:
    works = [work for file in STUDIES for work in plan_work(file, scale=QUICK, root=tmp_path)]
    distinct = distinct_work(works)
    assert len({work.folder for work in works}) == len(distinct)
    assert [work.seed for work in distinct] == sorted(work.seed for work in distinct)
    assert all(count_work(work.config) > 0 for work in distinct if isinstance(work, StudyRun))
    speeds = StudySpeeds(distinct)
    assert not speeds.is_known
    assert all(speeds.seconds_of(work) > 0 for work in distinct)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"algorithm.masking": {"kind": "conditional", "rho": 0.0}}, {"algorithm.masking": {"kind": "none"}}),
        (
            {"rollout.temperature": {"kind": "staged", "stages": [{"from_step": 1, "value": 1.0}]}},
            {"rollout.temperature": {"kind": "constant", "value": 1.0}},
        ),
        (
            {
                "rollout.temperature": {
                    "kind": "staged",
                    "stages": [{"from_step": 1, "value": 1.0}, {"from_step": 999, "value": 1.4}],
                }
            },
            {"rollout.temperature": {"kind": "constant", "value": 1.0}},
        ),
        (
            {"rollout.temperature": {"kind": "ablation_ramp", "start": 1.0, "end": 1.0, "num_steps": 5}},
            {"rollout.temperature": {"kind": "constant", "value": 1.0}},
        ),
        ({"rollout.length_stages": [{"from_step": 999, "max_response_tokens": 999}]}, {}),
    ],
)
def test_recipes_that_train_the_same_are_one_run(one: dict[str, object], other: dict[str, object]) -> None:
    recipe = ROOT / "recipes" / "lab" / "chains.toml"
    first, second = (load_config(TrainConfig, [recipe], layers=[layer]) for layer in (one, other))
    assert first != second
    assert simplify_config(first) == simplify_config(second)


def test_a_mask_or_a_stage_that_acts_is_another_run() -> None:
    recipe = ROOT / "recipes" / "lab" / "chains.toml"
    for keys in (
        {"algorithm.masking": {"kind": "conditional", "rho": 0.1}},
        {"rollout.length_stages": [{"from_step": 2, "max_response_tokens": 999}]},
        {"rollout.temperature": {"kind": "ablation_ramp", "start": 1.0, "end": 1.1, "num_steps": 5}},
    ):
        config = load_config(TrainConfig, [recipe], layers=[keys])
        assert simplify_config(config) == config


def test_a_level_may_name_the_seed(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('model.kind = "micro"\nproblems.kind = "micro"\nnum_steps = 2\n')
    (tmp_path / "study.toml").write_text(STUDY.replace("num_steps = 3", '"problems.seed" = "{seed}"'))
    runs = plan_runs(load_study(tmp_path / "study.toml"), scale=MICRO, root=tmp_path)
    seeds = [flatten(run.config.model_dump(mode="json"))["problems.seed"] for run in runs if run.level == "b"]
    assert seeds == [0, 1, 2]


def test_other_seeds_are_other_work_of_the_same_study(tmp_path: Path) -> None:
    file = STUDIES[0]
    here, there = (plan_work(file, scale=QUICK, root=tmp_path, seeds_from=start) for start in (0, 100))
    assert [work.seed + 100 for work in here] == [work.seed for work in there]
    assert not {work.folder for work in here} & {work.folder for work in there}


def test_the_code_behind_a_run_is_what_training_imports() -> None:
    names = {path.relative_to(ROOT / "src" / "microcoder").as_posix() for path in code_files("trl")}
    assert {
        "train/algorithm/masking.py",
        "data/micro/operations.py",
        "judge/sandbox/zygote.py",
        "judge/core/extract.py",
    } <= names
    assert not any(name.startswith(("lab/", "cli/")) for name in names)
    assert digest_code("trl") == digest_code("trl")
    measuring = set(code_files("trl", module="microcoder.lab.studies.jobs")) - set(code_files("trl"))
    assert {path.name for path in measuring} == {"__init__.py", "jobs.py"}
    assert digest_code("trl", module="microcoder.lab.studies.jobs") != digest_code("trl")


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
        main(["study", "run"])
    assert "name one study, or pass --all" in capsys.readouterr().err


def test_a_plan_at_full_scale_names_every_run_and_its_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    main(["study", "plan", "temperature", "--scale", "qwen3-4b", "-o", str(tmp_path / "plan")])
    text = Path(capsys.readouterr().out.strip()).read_text()
    lines = [line for line in (tmp_path / "plan" / "launch.sh").read_text().splitlines() if "microcoder" in line]
    study = find_studies("temperature")[0].study
    assert len(lines) == len(study.levels) * 3 == text.count("| 003_temperature, ")
    assert f"{len(lines)} distinct runs" in text
    assert "dollars" in text
    words = lines[0].split()
    files = [words[i + 1] for i, word in enumerate(words) if word == "-c"]
    with pytest.raises(SystemExit):  # problem files are the user's
        main(["train", *(w for file in files for w in ("-c", file)), "--seed", "0", "--dry-run"])
    assert "Qwen/Qwen3-4B" in capsys.readouterr().out

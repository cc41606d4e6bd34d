"""Study files: all 34 claims, comparable levels, shared runs,
and one clear line for each mistake.
"""

import json
import shlex
from functools import cache
from pathlib import Path

import pytest

from microcoder.cli import main
from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import ConfigError
from microcoder.lab.studies.design import INSIGHTS, MICRO, QUICK, Study, find_studies, load_study
from microcoder.lab.studies.work import Work, digest_code, distinct_work, plan_work
from microcoder.lab.studies.workers import missing_work
from microcoder.train.run.tasks import load_tasks
from tests.lab.synthetic_run import Recipe, write_run

ROOT = Path(__file__).parents[2]
STUDIES = {path.stem: load_study(path) for path in sorted(ROOT.glob("studies/*.toml"))}


@cache
def planned(name: str, scale: str) -> list[Work]:
    """The work of a study, planned once for all tests: to resolve its recipes takes a second."""
    return plan_work(STUDIES[name], scale=scale, root=Path("runs"))


def test_every_insight_is_tested_once_or_says_why_it_cannot_be() -> None:
    named = []
    for study in STUDIES.values():
        for claim in study.claims:
            if not claim.id.startswith("X"):
                named.append(claim.id)
    assert sorted(named) == sorted(INSIGHTS)
    assert len(INSIGHTS) == 34


@pytest.mark.parametrize("scale", [MICRO, QUICK, "qwen3-4b"])
@pytest.mark.parametrize("name", STUDIES)
def test_levels_differ_in_what_they_say_and_seeds_in_the_seed(name: str, scale: str) -> None:
    study = STUDIES[name]
    runs = []
    for work in planned(name, scale):
        if work.measurement is None:
            runs.append(work)
    seeds = study.at_scale(scale).seeds
    assert len(seeds) >= 3
    assert len({run.folder for run in runs}) == len(runs) == len(seeds) * len(study.levels)
    if not runs:
        return
    base = flatten(
        next(r for r in runs if r.name == study.reference).config.model_dump(mode="json")
    )
    for run in runs[: len(study.levels)]:
        keys = flatten(run.config.model_dump(mode="json"))
        differing = set()
        for key in keys | base:
            if keys.get(key) != base.get(key):
                differing.add(key)
        level = study.levels[run.name]
        reference = study.levels[study.reference]
        said = set()
        for table in (level, reference):
            for t in (table.set, *table.at.values()):
                said.update(t)
        # `loss = "grpo"` says the kind, and with it its options.
        tables = set()
        for key in said:
            if key.endswith(".kind"):
                tables.add(key.rpartition(".")[0])
        parts = tables | said
        for key in differing:
            assert key in said or key.rpartition(".")[0] in parts


def test_work_that_studies_share_is_done_once() -> None:
    works = []
    for name in STUDIES:
        works.extend(planned(name, QUICK))
    distinct = distinct_work(works)
    assert len({work.folder for work in works}) == len(distinct)
    assert [work.seed for work in distinct] == sorted(work.seed for work in distinct)
    assert {work.folder.parent.name for work in distinct} == {digest_code()}
    # Other seeds are other work of the same study, from another warm-started model.
    here = planned("002_evaluator", QUICK)
    there = plan_work(STUDIES["002_evaluator"], scale=QUICK, root=Path("runs"), seeds_from=100)
    assert [work.seed + 100 for work in here] == [work.seed for work in there]
    assert not {work.folder for work in here} & {work.folder for work in there}
    starts = [
        {work.config.model_dump()["model"]["warm_start"]["seed"] for work in works}
        for works in (here, there)
    ]
    # Each seed has a warm start of its own.
    assert starts == [set(range(10)), set(range(100, 110))]


def test_strict_comparison_is_of_training_alone_and_mixtures_are_measured_on_equal_problems() -> (
    None
):
    strict, data = (
        {
            work.name: load_tasks(work.config)
            for work in planned(name, QUICK)
            if not (work.seed or work.measurement)
        }
        for name in ("002_evaluator", "004_data")
    )
    checkers = {}
    for level, tasks in strict.items():
        checkers[level] = [
            {task.problem.checker.type for task in split} for split in (tasks.train, tasks.heldout)
        ]
    assert checkers == {"robust": [{"default"}, {"default"}], "strict": [{"exact"}, {"default"}]}
    heldout = {}
    for level, tasks in data.items():
        heldout[level] = [task.problem.id for task in tasks.heldout]
    assert heldout["easy"] == heldout["mixed"] == heldout["hard"]
    for level in ("easy", "hard"):
        assert {task.problem.tier for task in data[level].train} == {level}


STUDY = """
question = "?"
done = "d"
next = "n"
factor = "f"
baseline = "recipe.toml"
reference = "a"
seeds = [10, 11, 12, 13, 14, 15]
[levels.a]
[levels.b]
set = { num_steps = 3 }
[levels.c]
set = { num_steps = 4 }
[measurements.of_a]
function = "measure.py:of_a"
uses = ["a"]
levels = ["x"]
metrics = { m = { says = "m" } }
[[claims]]
id = "T2"
says = "s"
short = "s"
paper = "..."
family = "training"
design = "d"
primary = { metric = "accuracy", feature = "late", of = ["b"], against = ["a"], \
direction = "higher", least = 0.02 }
secondary = [
  { metric = "accuracy", feature = "late", of = ["c"], against = ["a"], direction = "higher", \
least = 0.02 },
  { measurement = "of_a", metric = "m", of = ["x"], direction = "higher", least = 1.0 },
]
check = { metric = "masked", feature = "mean", of = ["b"] }
spread = { sd = 0.02, where = "pilot" }
"""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "recipe.toml").write_text(
        'model.kind = "micro"\nproblems.kind = "micro"\nnum_steps = 2\n'
    )
    (tmp_path / "study.toml").write_text(STUDY)
    return load_study(tmp_path / "study.toml")


def named(works: list[Work]) -> list[tuple[str, int]]:
    return [(work.name, work.seed) for work in works]


def do(works: list[Work]) -> None:
    """Finish work: short runs, and a measurement of one row."""
    for work in works:
        if work.measurement is None:
            write_run(work.folder, Recipe(num_steps=1, num_heldout=1))
        else:
            work.folder.mkdir(parents=True)
            row = {"metric": "m", "level": "x", "unit": "1", "value": 1.0}
            (work.folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
            (work.folder / "summary.json").write_text("{}")


def test_a_level_may_name_the_seed(study: Study) -> None:
    study.path.write_text(STUDY.replace("num_steps = 3", '"problems.seed" = "{seed}"'))
    runs = plan_work(load_study(study.path), scale=MICRO, root=study.path.parent)
    seeds = []
    for run in runs:
        if run.name == "b":
            seeds.append(flatten(run.config.model_dump(mode="json"))["problems.seed"])
    assert seeds == [10, 11, 12, 13, 14, 15]


def test_a_measurement_is_done_once_the_runs_that_it_reads_are_there(
    study: Study, tmp_path: Path
) -> None:
    works = plan_work(study, scale="micro", root=tmp_path)
    runs = missing_work(works)
    expected = []
    for seed in (10, 11, 12, 13, 14, 15):
        for level in "abc":
            expected.append((level, seed))
    assert named(runs) == expected
    do(runs[:4])
    second = missing_work(works)
    of_a = []
    for one in named(second):
        if one[0] == "of_a":
            of_a.append(one)
    assert of_a == [("of_a", 10), ("of_a", 11)]
    assert named(missing_work(works, failed=[work.folder for work in second])) == []
    do(second)
    do(missing_work(works))
    assert missing_work(works) == []
    finished = []
    for work in works:
        if work.is_finished:
            finished.append(work)
    assert len(finished) == 3 * 6 + 6


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('reference = "a"', 'reference = "d"', "d: no such level; levels are a, b, c"),
        ("seeds = [10, 11, 12, 13, 14, 15]", "seeds = [0, 1]", "must have 3 or more items"),
        (
            'feature = "late"',
            'feature = "last"',
            "no feature 'last'; use one of start, early, late",
        ),
        ('id = "T2"', 'id = "T11"', "T11 is none of the 34"),
        ("check = { metric", "undecidable = 'r'\ncheck = { metric", "needs either `primary`"),
        ("check = { metric", "unasked = 'r'\ncheck = { metric", "or `unasked` with the reason"),
        (
            "check = { metric",
            (
                "controls = [{ says = 'c', metric = 'length', feature = 'late', of = ['b'], "
                "least = 1 }]\n"
                "check = { metric"
            ),
            "a control takes least from `primary`; leave them out",
        ),
        (
            "check = { metric",
            "controls = [{ metric = 'length', feature = 'late', of = ['b'] }]\ncheck = { metric",
            "claims.0.controls.0.says",
        ),
        (
            'feature = "late", of = ["b"]',
            'feature = "growth", at_equal = "reward", of = ["b"]',
            "at_equal: name a feature `late` or `at 40/120`, not 'growth'",
        ),
        (
            'feature = "late", of = ["b"]',
            'feature = "late", at_equal = "reward", of = ["b", "c"]',
            "name one in `of` and one in `against`",
        ),
        (
            'feature = "late", of = ["b"]',
            'feature = "late", at_equal = "acuracy", of = ["b"]',
            "no metric 'acuracy' of runs",
        ),
        (
            'metric = "m", of = ["x"]',
            'metric = "m", per = "reward", per_level = "z", of = ["x"]',
            "T2: z: no such level; levels are a, b, c",
        ),
        (
            'metric = "m", of = ["x"]',
            'metric = "m", per = "reward", of = ["x"]',
            "per_level goes with `per` of a measurement",
        ),
        ("spread = {", "# spread = {", "needs `spread`: measure it on a pilot"),
        (", least = 0.02 }\nsecondary", " }\nsecondary", "its contrast of accuracy needs least"),
        ("check = {", "# check = {", "needs a `check`: that the treatment reached"),
        ('metric = "masked"', 'metric = "mask"', "no metric 'mask' of runs; use one of accuracy"),
        ('of = ["x"]', 'of = ["y"]', "T2: y: no such level; levels are x"),
        ('measurement = "of_a"', 'measurement = "push"', "no measurement 'push' in this study"),
        (
            'measurement = "of_a"',
            'measurement = "of_a", feature = "late"',
            "a measurement has no feature",
        ),
        ("set = {", "at.huge = {", "levels set keys at huge, no scale"),
        ("question", "qestion", "qestion: unknown key"),
    ],
)
def test_a_wrong_study_is_one_clear_line(old: str, new: str, told: str, study: Study) -> None:
    study.path.write_text(STUDY.replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_study(study.path)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_study_is_found_by_a_part_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "studies").mkdir()
    for name in ("001_first", "002_second"):
        (tmp_path / "studies" / f"{name}.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    assert [study.name for study in find_studies(None)] == ["001_first", "002_second"]
    assert find_studies("second")[0].name == "002_second"
    for name, told in (("third", "no study"), ("00", "more than one study")):
        with pytest.raises(
            ConfigError, match=f"{told} is called '{name}'; studies: 001_first, 002_second"
        ):
            find_studies(name)


def test_a_dry_run_says_what_the_seeds_can_show_and_at_full_scale_the_command_of_every_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    main(["study", "batch_size", "--dry-run"])
    told = capsys.readouterr().out
    for part in ("B1 (", "give a half width of", "missing   runs/studies/"):
        assert part in told
    with pytest.raises(SystemExit):
        main(["study", "temperature", "--scale", "qwen3-4b"])
    assert "add --dry-run to print their commands" in capsys.readouterr().err
    main(["study", "temperature", "--scale", "qwen3-4b", "--dry-run"])
    lines = []
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("microcoder train"):
            lines.append(shlex.split(line))
    runs = plan_work(find_studies("temperature")[0], scale="qwen3-4b", root=Path("runs/studies"))
    runs = [run for run in runs if run.measurement is None]
    assert [line[-1] for line in lines] == [str(run.folder) for run in runs]
    assert [line[line.index("--seed") + 1] for line in lines] == [str(run.seed) for run in runs]
    with pytest.raises(SystemExit):  # problem files are the user's
        main([*lines[0][1:], "--dry-run"])
    assert "Qwen/Qwen3-4B" in capsys.readouterr().out

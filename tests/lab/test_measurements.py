"""Measurements: a function of one's own gives paired rows, is run once by a real process,
and decides claims.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from microcoder.cli import main
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.lab.studies.claims import ClaimFinding, judge_claim
from microcoder.lab.studies.contrasts import MeasuredRows, measure_contrast, pair_rows
from microcoder.lab.studies.design import (
    QUICK,
    Contrast,
    Control,
    Measurement,
    Study,
    load_study,
)
from microcoder.lab.studies.effects import Effect
from microcoder.lab.studies.work import MeasuredValue, Work, plan_work, run_measurement
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.runs import History, read_history
from tests.lab.synthetic_run import Recipe, write_run

RECIPE = Path(__file__).parents[2] / "recipes" / "micro" / "config.toml"
FUNCTION = """
import random
from microcoder.lab.studies.work import MeasuredValue

def measure(work, *, gain: float = 0.5, broken: str = ""):
    (work.folder / "calls").open("a").write("x")
    source = random.Random(work.seed)
    for unit in range(20):
        noise = source.gauss(0, 0.2)
        yield MeasuredValue("score", "low", f"{work.seed}/{unit}", noise)
        high = noise + gain + source.gauss(0, 0.1)
        yield MeasuredValue("score", broken or "high", f"{work.seed}/{unit}", high)
        yield MeasuredValue("reached", "high", f"{work.seed}/{unit}", 0.5)
"""
STUDY = """
question = "Does a higher level score more?"
done = "Twenty units were measured at two levels with every seed."
next = "Ask with a real model."
factor = "level"
baseline = "recipe.toml"
seeds = [0, 1, 2, 3, 4, 5, 6, 7]
[scales.quick]
baseline = "recipe.toml"
seeds = [0, 1, 2, 3, 4, 5, 6, 7]
[measurements.score]
function = "FILE:measure"
settings = { gain = 0.5 }
levels = ["low", "high"]
over = "seeds"
[measurements.score.metrics]
score = { says = "score" }
reached = { says = "units reached", unit = "share" }
[[claims]]
id = "T2"
says = "The higher, the more."
short = "a higher level scores more"
paper = "..."
family = "mechanism"
design = "Units at both levels, pair by pair."
primary.measurement = "score"
primary.metric = "score"
primary.of = ["high"]
primary.against = ["low"]
primary.direction = "higher"
primary.least = 0.4
check = { measurement = "score", metric = "reached", of = ["high"] }
spread = { sd = 0.03, where = "the test that wrote it" }
"""


@pytest.fixture
def measurement(tmp_path: Path) -> Measurement:
    (one,) = load_study(write_study(tmp_path)).measurements.values()
    return one.model_copy(update={"function": f"{tmp_path / 'measure.py'}:measure"})


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"settings": {"gane": 1.0}}, ConfigError, "has no option 'gane'; did you mean gain?"),
        ({"settings": {"gain": "much"}}, ConfigError, "option gain = 'much'"),
        ({"function": "nowhere.py:measure"}, ConfigError, "file nowhere.py does not exist"),
        (
            {"settings": {"broken": "middle"}},
            DataError,
            "yielded 'score' at 'middle'; the study names the metrics",
        ),
        (
            {"metrics": {"score": {"says": "s", "unit": "share"}, "reached": {"says": "r"}}},
            DataError,
            "for score, a share; leave such rows out",
        ),
    ],
)
def test_what_is_wrong_with_a_measurement_is_one_line(
    change: dict[str, object],
    error: type[Exception],
    told: str,
    measurement: Measurement,
    tmp_path: Path,
) -> None:
    wrong = Measurement.model_validate(measurement.model_dump() | change)
    with pytest.raises(error) as caught:
        run_measurement(
            Work("s", "score", 3, load_config(TrainConfig, [RECIPE]), tmp_path / "work"), wrong
        )
    assert told in str(caught.value)
    assert not (tmp_path / "work" / "summary.json").exists()


def test_a_measurement_that_yields_no_rows_is_told_to_yield_them(
    measurement: Measurement, tmp_path: Path
) -> None:
    (tmp_path / "measure.py").write_text("def measure(work):\n    return 0.5\n")
    wrong = measurement.model_copy(update={"settings": {}})
    work = Work("s", "score", 3, load_config(TrainConfig, [RECIPE]), tmp_path / "work")
    with pytest.raises(DataError, match="returned a float; let it yield rows"):
        run_measurement(work, wrong)


def write_study(folder: Path, function: str = FUNCTION, text: str = STUDY) -> Path:
    (folder / "measure.py").write_text(function)
    (folder / "recipe.toml").write_text('model.kind = "micro"\nproblems.kind = "micro"\n')
    (folder / "study.toml").write_text(text.replace("FILE", "measure.py"))
    return folder / "study.toml"


def test_what_decides_a_measurement_is_in_its_folders_name(tmp_path: Path) -> None:
    def place(function: str = FUNCTION, text: str = STUDY) -> Path:
        works = plan_work(
            load_study(write_study(tmp_path, function, text)),
            scale=QUICK,
            root=tmp_path,
            code="code",
        )
        assert len({work.folder for work in works}) == len(works) == 8
        return works[0].folder

    # Words decide no row.
    assert place() == place(text=STUDY.replace("Does a higher", "Does any higher"))
    keys = STUDY.replace(
        "[measurements.score.metrics]", "set = { num_steps = 2 }\n[measurements.score.metrics]"
    )
    folders = {place(), place(text=STUDY.replace("gain = 0.5", "gain = 1.0")), place(text=keys)}
    assert len({*folders, place(function=FUNCTION.replace("0.2", "0.3"))}) == 4


def test_a_unit_that_lacks_a_level_is_left_out() -> None:
    values = (("a", "1", 1.0), ("b", "1", 3.0), ("b", "1", 5.0), ("b", "2", 9.0))
    # Unit 1 has 3 and 5 under b, so 4 on average, less 1 under a; unit 2 has nothing under a.
    contrast = Contrast(metric="m", measurement="x", of=("b",), against=("a",))
    assert pair_rows(contrast, [MeasuredValue("m", *value) for value in values]) == {"1": 3.0}


def test_a_dose_gives_the_slope_over_what_was_measured(tmp_path: Path) -> None:
    levels = ("none", "some", "all")
    doses = []
    lengths = []
    histories: dict[str, dict[int, History]] = {}
    for place, level in enumerate(levels):
        run = write_run(tmp_path / level, Recipe(num_steps=6, evaluate_every=3, seed=place))
        history = read_history(run)
        histories[level] = {0: history}
        # Half of the run, as the feature says: three of six steps, the first of two evaluations.
        doses.append(fmean(step.masked_share for step in history.steps[:3]))
        lengths.append(history.evaluations[1].length_mean)
    study = {
        "question": "q",
        "done": "d",
        "next": "n",
        "factor": "f",
        "baseline": "b.toml",
        "seeds": [0, 1, 2],
    }
    asked = Study.model_validate(
        {**study, "reference": "none", "levels": {name: {} for name in levels}}
    )
    contrast = Contrast(metric="heldout_length", feature="at 3/6", of=levels, dose="masked")
    effect = measure_contrast(contrast, asked, histories)
    assert effect is not None
    assert effect.value == pytest.approx(np.polyfit(doses, lengths, 1)[0])
    with pytest.raises(ValueError, match="dose: name two levels or more"):
        Contrast(metric="heldout_length", feature="late", of=levels, dose="masked")


def test_a_study_of_measurements_is_never_done_twice(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)

    def call(*words: str) -> str:
        capsys.readouterr()
        main(["study", *words, "study.toml", "--quick", "--runs", "runs"])
        return capsys.readouterr().out

    first = json.loads(call("--jobs", "1", "--json"))
    assert first["num_planned"] == 8
    assert len(first["next"]) == 8
    assert first["num_finished"] == 8
    assert json.loads(call("--jobs", "1", "--json"))["next"] == []
    # The function adds an x each time that it is called.
    assert [path.read_text() for path in tmp_path.glob("runs/*/*/calls")] == ["x"] * 8
    told = json.loads(call("--report", "--json"))
    effect = told["studies"]["study"]["effects"][told["claims"][0]["primary"]]
    assert told["claims"][0]["verdict"] == "supported"
    assert effect["num_draws"] == 8
    assert effect["drawn"] == "seeds"
    assert effect["num_units"] == 160
    call("--report", "-o", "pages")
    page = (tmp_path / "pages" / "study.md").read_text()
    assert "**Seen:** Supported: a higher level scores more (T2)." in page
    # Of a study of one's own: no path of the repository,
    # and links and commands that lead somewhere from here.
    assert "docs/insights" not in page
    assert "studies/" not in page
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (tmp_path / "pages" / link).is_file(), link
    assert "microcoder study study.toml --report --quick -o pages\n" in page
    call("--report", "-o", str(tmp_path / "deep" / "er"))
    page = (tmp_path / "deep" / "er" / "study.md").read_text()
    assert "](../../study.toml)" in page
    # The line that writes the page without running is one that does.
    (again,) = (line for line in page.splitlines() if "--runs" in line)
    (tmp_path / "runs").rename(tmp_path / "gone")
    main(shlex.split(again.partition("  #")[0])[1:])


def test_two_studies_may_call_their_own_claims_alike(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "studies").mkdir()
    text = STUDY.replace('id = "T2"', 'id = "X1"').replace("recipe.toml", "../recipe.toml")
    own = write_study(tmp_path / "studies", text=text)
    (tmp_path / "studies" / "recipe.toml").rename(tmp_path / "recipe.toml")
    (tmp_path / "studies" / "idle.toml").write_text(
        own.read_text().replace("gain = 0.5", "gain = 0.0")
    )
    main(["study", "--all", "--quick", "--jobs", "1"])
    capsys.readouterr()
    main(["study", "--all", "--quick", "--report", "--json"])
    claims = json.loads(capsys.readouterr().out)["claims"]
    assert {one["study"]: one["verdict"] for one in claims} == {
        "idle": "contradicted",
        "study": "supported",
    }
    main(["study", "--all", "--quick", "--report", "-o", "pages"])
    assert (tmp_path / "pages" / "README.md").read_text().count("| X1 | ") == 2


def test_an_interrupted_study_ends_its_processes_and_one_that_dies_ends_the_study(
    tmp_path: Path,
) -> None:
    # Seed 0 fails, seed 1 hangs until it is interrupted, and dies when it is begun once more.
    trouble = """    assert work.seed, "no luck"
    if (work.folder / "pid").exists(): os._exit(1)
    if work.seed == 1: (work.folder / "pid").write_text(str(os.getpid())); time.sleep(600)
    source ="""
    write_study(
        tmp_path,
        FUNCTION.replace("import random", "import os, random, time").replace(
            "    source =", trouble
        ),
    )
    command = [
        sys.executable,
        "-m",
        "microcoder",
        "study",
        "study.toml",
        "--quick",
        "--runs",
        "runs",
        "--jobs",
        "1",
    ]
    study = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not (found := [path for path in tmp_path.glob("runs/*/*/pid") if path.read_text()]):
        assert study.poll() is None
        time.sleep(0.1)
    study.send_signal(signal.SIGINT)
    assert (
        "study, score, seed 0: FAILED: AssertionError: no luck" in study.communicate(timeout=60)[1]
    )
    assert study.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(found[0].read_text()), 0)
    again = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "the process of study, score, seed 1 died" in again.stderr
    assert again.returncode == 2


def test_a_treatment_that_reaches_too_little_cannot_appear(tmp_path: Path) -> None:
    check = 'check = { measurement = "score", metric = "reached", of = ["high"] }\n'
    (tmp_path / "study.toml").write_text(
        STUDY.replace('family = "measuring"', f'family = "mechanism"\n{check}')
    )
    study = load_study(tmp_path / "study.toml")
    (claim,) = study.claims
    assert claim.primary is not None
    assert claim.check is not None
    effect = Effect(1.0, 0.9, 1.1, 8, by_seed=(1.0,), by_start=(1.0,), freedom=7.0)
    for value, share, verdict in (
        # A treatment must reach a twentieth of what it could change.
        (1.0, 0.04, ClaimFinding.CANNOT_APPEAR),
        (1.0, 0.06, ClaimFinding.SUPPORTED),
        (1.0, None, ClaimFinding.SUPPORTED),
        (-1.0, 0.06, ClaimFinding.CONTRADICTED),
        # That an effect is absent says something of a known dose alone.
        (-1.0, None, ClaimFinding.INCONCLUSIVE),
    ):
        found = {claim.primary: replace(effect, value=value, low=value - 0.1, high=value + 0.1)}
        found |= {} if share is None else {claim.check: replace(effect, value=share)}
        assert judge_claim(claim, study, found).raw is verdict
    built = claim.model_copy(update={"construction": "it was built so"})
    assert judge_claim(built, study, {claim.primary: effect}).raw is ClaimFinding.CONSTRUCTED
    # What could not be otherwise needs no eight starts,
    # and one of the other sign refutes that it could not.
    two = replace(effect, num_draws=2, by_start=(0.9, 1.1))
    assert judge_claim(built, study, {claim.primary: two}).raw is ClaimFinding.CONSTRUCTED
    refuted = replace(effect, num_draws=2, by_start=(-0.1, 2.1))
    assert judge_claim(built, study, {claim.primary: refuted}).raw is ClaimFinding.INCONCLUSIVE


SUPPORTED = ClaimFinding.SUPPORTED
CONTRADICTED = ClaimFinding.CONTRADICTED
UNDONE = ClaimFinding.UNDONE
OPEN = ClaimFinding.INCONCLUSIVE


@pytest.mark.parametrize(
    ("primary", "control", "num_starts", "verdict"),
    [
        # The claim is higher by 0.4 or more.
        ((0.5, 0.9), (0.3, 0.8), 8, SUPPORTED),
        ((0.5, 0.9), (-0.2, 0.3), 8, UNDONE),
        ((0.5, 0.9), (-0.9, -0.5), 8, UNDONE),
        ((0.5, 0.9), (-0.2, 0.8), 8, OPEN),
        ((0.5, 0.9), (0.3, 0.8), 7, OPEN),
        ((0.5, 0.9), None, 8, OPEN),
        ((-0.9, -0.5), (-0.8, -0.3), 8, CONTRADICTED),
        ((-0.9, -0.5), (-0.3, 0.2), 8, UNDONE),
        ((-0.9, -0.5), (0.5, 0.9), 8, UNDONE),
        ((-0.9, -0.5), (-0.8, 0.2), 8, OPEN),
        # What is open stays open.
        ((-0.1, 0.9), (0.5, 0.9), 8, OPEN),
    ],
)
def test_a_claim_that_its_control_undoes_is_neither_supported_nor_contradicted(
    primary: tuple[float, float],
    control: tuple[float, float] | None,
    num_starts: int,
    verdict: ClaimFinding,
    tmp_path: Path,
) -> None:
    study = load_study(write_study(tmp_path))
    (claim,) = study.claims
    assert claim.primary is not None
    assert claim.check is not None
    equal = Control(
        says="at equal effort",
        measurement="score",
        metric="score",
        of=("high",),
        against=("low",),
    )
    controlled = claim.model_copy(update={"controls": (equal,)})

    def effect(low: float, high: float, num_draws: int = 8) -> Effect:
        return Effect((low + high) / 2, low, high, num_draws, by_seed=(1.0,), freedom=7.0)

    found = {claim.primary: effect(*primary), claim.check: effect(0.5, 0.6)}
    if control is not None:
        found[equal] = effect(*control, num_starts)
    result = judge_claim(controlled, study, found)
    assert result.raw is verdict
    if control is None:
        assert result.why_open == "not on record: at equal effort"
    if control == (-0.2, 0.8):
        assert result.why_open == "left open by its control"
    if num_starts < 8:
        assert result.why_open == "at equal effort: 7 starts, at least 8 are needed"


MODELS = [
    ("micro, a start for all", [{"kind": "micro", "warm_start": {"seed": 0}}] * 9, 1, "starts"),
    (
        "micro, a start for each",
        [{"kind": "micro", "warm_start": {"seed": seed}} for seed in range(9)],
        9,
        "starts",
    ),
    (
        "micro, three starts",
        [{"kind": "micro", "warm_start": {"seed": seed % 3}} for seed in range(9)],
        3,
        "starts",
    ),
    ("a published model", [{"kind": "hugging_face", "path": "Qwen/Qwen3-4B"}] * 9, 9, "seeds"),
    ("unknown, in an old record", [{}] * 9, 1, "starts"),
]


@pytest.mark.parametrize(("_", "models", "num_draws", "drawn"), MODELS)
def test_what_was_drawn_is_read_from_the_records(
    _: str,
    models: list[dict[str, object]],
    num_draws: int,
    drawn: str,
    tmp_path: Path,
) -> None:
    text = STUDY.replace('over = "seeds"', 'over = "starts"')
    study = load_study(write_study(tmp_path, text=text))
    (claim,) = study.claims
    assert claim.primary is not None
    measured = {}
    for seed, model in enumerate(models):
        measured[seed] = MeasuredRows(
            [
                MeasuredValue("score", "low", f"{seed}", 0.0),
                MeasuredValue("score", "high", f"{seed}", float(seed)),
            ],
            model,
        )
    effect = measure_contrast(claim.primary, study, {}, {"score": measured})
    assert effect is not None
    assert effect.num_draws == num_draws
    assert effect.drawn == drawn
    assert effect.value == 4.0
    # Rows that are equal in all seeds are one measurement, done nine times.
    same = {seed: replace(one, rows=measured[1].rows) for seed, one in measured.items()}
    alone = measure_contrast(claim.primary, study, {}, {"score": same})
    assert alone is not None
    assert alone.num_draws == 1


def test_problems_count_where_the_measurement_says_that_they_were_drawn(tmp_path: Path) -> None:
    study = load_study(write_study(tmp_path, text=STUDY.replace('"seeds"', '"units"')))
    (claim,) = study.claims
    assert claim.primary is not None
    rows = []
    for unit in range(10):
        rows.append(MeasuredValue("score", "low", f"p{unit}", 0.0))
        rows.append(MeasuredValue("score", "high", f"p{unit}", float(unit)))
    measured = {seed: MeasuredRows(rows, {}) for seed in range(3)}
    effect = measure_contrast(claim.primary, study, {}, {"score": measured})
    assert effect is not None
    assert effect.num_draws == 10
    assert effect.drawn == "units"
    assert effect.value == 4.5

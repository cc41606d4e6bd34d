"""The page Replay in a real browser: what `replay --save` kept, and where that leads."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from microcoder.cli import main
from microcoder.train.runs import RunDirectory
from microcoder.view import open_collection, write_bundle
from tests.view.parts.browsers import Browser, axe_violations
from tests.view.parts.viewer_runs import (
    HOSTILE,
    Row,
    edit_rollouts,
    serving,
    write_problems,
    write_training,
)

ONSET = 5
"""The step from which on every answer of the run is paid."""

MASK_ALL = ("--algorithm.masking.kind", "all")


def pay_all(row: Row) -> Row:
    return {**row, "reward": 1.0}


def replay_run(run: Path, *flags: str) -> None:
    main(["replay", str(run), "--save", *flags])


@pytest.fixture(scope="module")
def hacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that pays for wrong programs from a step on, replayed under two alternatives."""
    run = write_training(tmp_path_factory.mktemp("replayed") / "hacked", manifest={"name": "one"})
    for step in range(ONSET, 9):
        edit_rollouts(run, step, pay_all)
    replay_run(run, "--against", "dapo", *MASK_ALL)
    return run


@pytest.fixture(scope="module", params=["server", "bundle"])
def url(
    hacked: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[str]:
    collection = open_collection([hacked])
    if request.param == "bundle":
        yield write_bundle(collection, tmp_path_factory.mktemp("bundle")).page.as_uri()
        return
    with serving(collection) as server:
        yield server.url


def saved(run: Path) -> Row:
    return json.loads(RunDirectory(run).replay.read_text())


def found(page: Browser, total: int) -> None:
    page.wait(f"document.getElementById('found')?.textContent.startsWith('{total} of')")


def test_the_page_shows_the_recorded_beside_the_alternatives(
    page: Browser, url: str, hacked: Path
) -> None:
    page.open(f"{url}#view=replay")
    page.wait("document.querySelector('#groups .plot')")
    assert "This is not the other run" in page.text("#limits")
    assert page.texts("figcaption") == [
        "Masked responses",
        "Credit taken by masks",
        "Blame taken by masks",
        "Flat groups",
        "Cosine with the recorded advantages",
        "Paid and wrong",
    ]
    told = saved(hacked)
    names = [row[0] for row in told["rows"]]
    assert names == ["recorded", "masking.kind=all", "dapo"]
    assert page.texts("main tbody tr")[: len(names)] == ["".join(row) for row in told["rows"]]
    for alternative in told["alternatives"]:
        assert set(alternative["sentences"]) <= set(page.texts(".alternative li"))
    # What is drawn is what was computed, a line each.
    drawn = page.run("document.querySelector('.plot').plot.data")
    lines = told["charts"][0]["lines"]
    assert [line["label"] for line in lines] == names
    assert drawn == [lines[0]["steps"], *(line["values"] for line in lines)]


def test_the_rollouts_that_differ_are_a_click_away(page: Browser, url: str, hacked: Path) -> None:
    (mask_all, _) = saved(hacked)["alternatives"]
    first, *_ = mask_all["differing"].items()
    page.open(f"{url}#view=replay")
    page.wait("document.querySelector('.alternative a')")
    page.run("document.querySelector('.alternative a').click()")
    found(page, len(first[1]))
    listed = page.run("[...document.querySelectorAll('.rows a')].map((link) => link.dataset.id)")
    assert listed == [f"train/{first[0]}/{row}" for row in first[1]]
    chips = " ".join(page.texts(".chip"))
    assert "differs under masking.kind=all" in chips
    page.run("document.querySelector('[data-filter=step]').click()")
    found(page, sum(map(len, mask_all["differing"].values())))
    # A chart leads to the same list with the keyboard alone.
    page.open(f"{url}#view=replay")
    page.wait("document.querySelector('#groups .plot')")
    page.run("document.querySelector('.plot').focus()")
    page.press("End")
    page.press("Enter")
    found(page, len(mask_all["differing"]["8"]))
    page.open(f"{url}#view=rollouts&run=one&differs=nobody")
    page.wait("!document.getElementById('alarm').hidden")
    assert "differs=nobody is no alternative" in page.text("#alarm")


def test_what_was_paid_and_is_wrong_has_its_onset_and_an_example(
    page: Browser, url: str, hacked: Path
) -> None:
    told = saved(hacked)
    assert abs(told["paid"]["mark"] - ONSET) <= 2
    page.open(f"{url}#view=replay")
    page.wait("document.querySelector('#paid .plot')")
    assert f"begins to rise in step {told['paid']['mark']}" in page.text("#paid")
    assert page.texts("#paid th")[1:3] == [f"before step {told['paid']['mark']}", "since"]
    assert page.texts("#paid tbody tr td:first-child") == [way["way"] for way in told["ways"]]
    page.run("document.querySelector('#paid td a').click()")
    page.wait("document.querySelector('.rows a')")
    way = told["ways"][0]
    assert page.run("document.querySelector('.rows .problem').textContent") == way["problem_id"]


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1280, "dark")])
def test_the_page_fits_its_window_and_axe_finds_nothing(
    page: Browser, url: str, width: int, theme: str
) -> None:
    page.look(width=width, theme=theme)
    page.open(f"{url}#view=replay")
    page.wait("document.querySelector('#paid .plot')")
    page.run("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert page.run("document.documentElement.scrollWidth") <= width
    assert axe_violations(page) == []
    # Charts follow the window, that of what was paid, too.
    page.look(width=700)
    page.wait(
        "[...document.querySelectorAll('.plot canvas')].every((one) => one.offsetWidth > 600)"
    )


def test_a_run_that_went_on_says_so_and_one_without_a_replay_has_no_page(
    page: Browser, hacked: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(hacked, tmp_path / "run")
    longer = write_training(tmp_path / "longer", num_steps=10)
    for step in (9, 10):
        shutil.copy(RunDirectory(longer).rollout_file(step), RunDirectory(run).rollouts)
    shutil.copy(RunDirectory(longer).metrics, run)
    with serving(open_collection([run, longer])) as server:
        page.open(f"{server.url}#view=replay")
        page.wait("document.getElementById('changed')")
        assert "New since: 2 steps, the first of them 9." in page.text("#changed")
        # It is made again, and the open page follows what changes after its first look.
        looked = "performance.getEntriesByType('resource').some(({name}) => name.includes('pulse'))"
        page.wait(looked)
        replay_run(run, *MASK_ALL)
        page.wait("document.querySelector('#limits') && !document.getElementById('changed')")
        page.wait("document.querySelectorAll('.alternative').length === 1")
        RunDirectory(run).replay.write_text('{"format": 1}')
        page.wait("document.getElementById('alarm').textContent.includes('is damaged')")
        RunDirectory(run).replay.unlink()
        page.open(f"{server.url}#view=replay&x=1")
        page.wait("document.querySelector('#headline')")
        assert "Replay" not in page.texts("#tabs a")


def test_programs_that_were_judged_again_are_shown_by_the_new_verdicts(
    page: Browser, tmp_path: Path
) -> None:
    run = write_training(tmp_path / "run", num_steps=2)
    # None of its programs passes these tests, so that their share cannot begin to rise.
    better = write_problems(tmp_path / "better.jsonl")
    replay_run(run, "--tests", str(better), "--workers", "1")
    with serving(open_collection([run])) as server:
        page.open(f"{server.url}#view=replay")
        page.wait("document.querySelector('#paid .plot')")
        assert "by the better verdicts" in page.text("#paid")
        assert "begins to rise at no step" in page.text("#paid")
        assert "dashed" not in page.text("#paid")
        assert "tests were too weak" in page.text("#paid")
        heads = page.texts("#paid th")
        assert heads == ["How they won", "rollouts", "an example"]
        assert page.texts(".alternative h3") == ["better"]


def test_hostile_text_of_a_replay_is_text(page: Browser, hacked: Path, tmp_path: Path) -> None:
    run = shutil.copytree(hacked, tmp_path / "run")
    file = RunDirectory(run).replay

    def spoil(value: object) -> object:
        if isinstance(value, dict):
            return {key: spoil(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [spoil(inner) for inner in value]
        return HOSTILE if isinstance(value, str) else value

    file.write_text(json.dumps(spoil(json.loads(file.read_text()))))
    with serving(open_collection([run])) as server:
        page.open(f"{server.url}#view=replay")
        page.wait("document.querySelector('#paid .plot')")
    assert page.run("window.hurt") is None
    assert page.run("document.querySelector('main img, main script')") is None
    assert page.text("#limits") == page.run(f"viewer.page.shown({json.dumps(HOSTILE)})")


def test_rollouts_without_a_folder_that_the_viewer_opens_are_not_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"step": 1, "prompt": "Add.", "response": "print(1)", "reward": 1.0}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(SystemExit, match="2"):
        main(["replay", str(tmp_path / "rows.jsonl"), "--save"])
    assert "use --json > FILE" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]

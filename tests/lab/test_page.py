import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from chromium import BROWSER, Chromium
from synthetic_run import MANIFEST, Recipe, write_run

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.files import append_row, write_json
from microcoder.lab.studies import write_report
from microcoder.lab.studies.history import read_history
from microcoder.lab.studies.overview import choose_examples
from microcoder.train.runs import RunDirectory

CHARTS = ("accuracy", "diversity", "length", "reward", "seconds", "shares")
SMALL = Recipe(num_steps=6, evaluate_every=3, num_heldout=18)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = write_run(tmp_path_factory.mktemp("runs") / "demo", SMALL)
    write_report(run)
    return run


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of the finished run that a test may damage."""
    return Path(shutil.copytree(finished, tmp_path / "demo"))


def page_of(run: Path) -> str:
    return write_report(run).read_text(encoding="utf-8")


def headline_of(page: str) -> str:
    section = page[page.index('id="headline"') : page.index("</section>", page.index('id="headline"'))]
    return re.sub(r"<[^>]+>", " ", section)


def test_the_page_says_what_was_gained_and_how_sure_that_is(finished: Path) -> None:
    page = (finished / "report/index.html").read_text(encoding="utf-8")
    history = read_history(finished)
    assert history.before is not None
    assert history.after is not None
    for evaluation in (history.before, history.after):
        assert f"{evaluation.accuracy:.1%}".replace("%", " %") in headline_of(page)
    assert "18 problems, 4 samples each" in headline_of(page)
    assert re.search(r"\+\d+\.\d \([^0-9]\d+\.\d to \+\d+\.\d\)", headline_of(page))
    for expected in ("<td>easy</td>", "<td>hard</td>", "pass@4", "wrong_answer", ">finished<", "seed 0"):
        assert expected in page
    for key in ("masking.probability", "advantage.kind", "isolation.level", "torch"):
        assert key in page
    assert MANIFEST["command"] in page
    assert '<span class="soft">seed</span><span><code>0</code>' in page
    assert f"git checkout {MANIFEST['git']['commit']}" in page
    assert 'id="unscored"' not in page


def test_the_same_run_gives_the_same_bytes_wherever_it_lies(finished: Path, copied: Path) -> None:
    write_report(copied)
    names = sorted(path.name for path in (finished / "report").iterdir())
    assert names == sorted(["index.html", *(f"{chart}.svg" for chart in CHARTS)])
    for name in names:
        assert (copied / "report" / name).read_bytes() == (finished / "report" / name).read_bytes()


def test_the_page_needs_nothing_else_and_runs_nothing(finished: Path) -> None:
    page = (finished / "report/index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "default-src 'none'" in page
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r'https?://[^"\s<]+', page)) <= namespaces
    assert not re.search(r'(?:src|href)="(?!#)', page.replace("xlink:href", "href"))
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_page_is_balanced_html(finished: Path) -> None:
    class Balance(HTMLParser):
        void = frozenset({"meta", "br", "hr", "img", "link", "input"})

        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in self.void:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

    balance = Balance()
    balance.feed((finished / "report/index.html").read_text(encoding="utf-8"))
    assert balance.open == []


def test_neither_a_completion_nor_a_manifest_can_become_markup(tmp_path: Path) -> None:
    evil = "</pre><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} \x00\x1b[31m"
    manifest = {"name": "<i>x", "seed": 7, "config": {"<u>": "</code><b>"}, "git": {"commit": "<s>", "is_dirty": True}}
    recipe = Recipe(num_steps=2, evaluate_every=2, num_heldout=9, completion=evil, manifest=manifest)
    page = page_of(write_run(tmp_path, recipe))
    for tag in ("<script", "<img", "<i>", "<u>", "<b>", "<s>"):
        assert tag not in page
    assert "&lt;script&gt;" in page
    assert "{{ 7*7 }}" in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", page)
    assert "uncommitted changes" in page
    assert '<span class="soft">seed</span><span><code>7</code>' in page


def test_unscored_samples_are_counted_apart_and_a_long_completion_is_cut(tmp_path: Path) -> None:
    recipe = Recipe(num_steps=3, evaluate_every=3, num_heldout=9, num_unscored_each=4, completion="x" * 50_000)
    page = page_of(write_run(tmp_path, recipe))
    assert "<strong>20 unscored samples</strong>: 12 in training, 4 before, 4 after" in page
    assert "8 problems, 4 samples each" in headline_of(page)
    assert "more characters in the run" in page
    assert "x" * 12_001 not in page


def test_an_unfinished_run_says_so(copied: Path) -> None:
    run = RunDirectory(copied)
    run.summary.unlink()
    with run.metrics.open("a") as file:
        file.write('{"step": 7, "reward_m')
    page = page_of(copied)
    assert ">not finished<" in page
    assert "not finished: 6 steps so far" in page
    assert "after 6 steps so far" in headline_of(page)


def test_a_run_with_only_its_first_evaluation_has_no_comparison(copied: Path) -> None:
    run = RunDirectory(copied)
    run.summary.unlink()
    run.metrics.unlink()
    run.evaluations.write_text(run.evaluations.read_text().split("\n")[0] + "\n")
    page = page_of(copied)
    assert "Held-out accuracy before training" in headline_of(page)
    assert "nothing to compare it with" in headline_of(page)
    assert "No training step was recorded" in page


def test_a_run_that_has_just_started_has_a_page(tmp_path: Path) -> None:
    write_json(tmp_path / "manifest.json", {"config": {}})
    page = page_of(tmp_path)
    assert "No accuracy yet" in headline_of(page)
    assert "No training step was recorded" in page
    assert "names neither a command nor a commit" in page
    assert tmp_path.name in page


def test_missing_sample_files_and_a_summary_that_disagrees_are_said(copied: Path) -> None:
    shutil.rmtree(copied / "evaluations")
    shutil.rmtree(copied / "rollouts")
    summary = json.loads((copied / "summary.json").read_text())
    write_json(copied / "summary.json", summary | {"accuracy_after": 0.999})
    page = page_of(copied)
    assert "evaluations/step_000000.parquet are missing" in page
    assert "summary.json says accuracy_after = 0.9990" in page
    assert "18 problems" in headline_of(page)
    assert "<td>easy</td>" not in page


def test_no_gain_is_called_no_gain(copied: Path) -> None:
    run = RunDirectory(copied)
    first = run.read_evaluations()[0]
    run.evaluations.unlink()
    for step in (0, 6):
        append_row(run.evaluations, first | {"step": step})
    run.summary.unlink()
    assert "no change is shown" in headline_of(page_of(copied))


def test_a_folder_that_is_no_run_or_is_damaged_is_one_clear_line(copied: Path, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match="pass a folder that `microcoder train` wrote"):
            write_report(path)
    assert not (tmp_path / "report").exists()
    append_row(copied / "metrics.jsonl", {"step": 9})
    with pytest.raises(DataError, match=r"metrics\.jsonl line 7 lacks reward_mean"):
        write_report(copied)


def test_a_damaged_sample_file_is_named(copied: Path) -> None:
    (copied / "evaluations/step_000006.parquet").write_bytes(b"not parquet")
    with pytest.raises(DataError, match=r"step_000006\.parquet is not a Parquet file"):
        write_report(copied)


def test_keys_of_a_later_version_are_ignored(copied: Path) -> None:
    run = RunDirectory(copied)
    append_row(run.metrics, run.read_metrics()[-1] | {"step": 7, "from_the_future": 1})
    assert len(read_history(copied).steps) == 7


def test_a_missing_extra_says_what_to_install(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ConfigError, match=r"needs jinja2; type: pip install .*\[insights\]"):
        write_report(copied)


def test_examples_show_what_was_learnt_what_failed_and_what_was_masked(finished: Path) -> None:
    history = read_history(finished)
    examples = choose_examples(history)
    kinds = [example.title.split(":")[0] for example in examples]
    assert kinds[0] == "Learnt"
    assert "Masked" in kinds
    assert examples == choose_examples(history)
    for example in examples:
        assert len({shown.row["prompt"] for shown in example.rollouts}) == 1
        if example.title.startswith("Learnt"):
            before, after = (shown.row for shown in example.rollouts)
            assert (before["reward"], after["reward"]) == (0.0, 1.0)
        if example.title.startswith("Masked"):
            assert example.rollouts[0].row["masked_why"] in example.why


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_a_browser_opens_the_page_from_disk_and_a_phone_shows_all_of_its_tables(copied: Path, tmp_path: Path) -> None:
    page = write_report(copied, against=[copied])
    with Chromium(tmp_path / "profile") as browser:
        browser.look(width=390)
        browser.open(page.resolve().as_uri())
        told = headline_of(page.read_text(encoding="utf-8")).removeprefix('id="headline">')
        assert "".join(browser.text("#headline").split()) == "".join(told.split())
        assert browser.count("svg") == 7
        assert browser.run("document.documentElement.scrollWidth") <= 390
        edges = browser.run("[...document.querySelectorAll('.stack td')].map((c) => c.getBoundingClientRect().right)")
        assert len(edges) > 20
        assert max(edges) <= 390
        assert browser.faults() == []


def test_an_evaluation_is_told_apart_from_a_run(tmp_path: Path) -> None:
    write_json(tmp_path / "manifest.json", {"kind": "evaluation", "config": {}})
    with pytest.raises(DataError, match="is an evaluation, not a training run"):
        write_report(tmp_path)


def test_the_headline_names_algorithm_model_and_problems(tmp_path: Path) -> None:
    config = {
        "model": {"kind": "hugging_face", "path": "Qwen/Qwen3-4B"},
        "problems": {"kind": "files", "train": "data/kodsport/train.jsonl"},
        "algorithm": {"loss": {"kind": "dapo"}, "masking": {"kind": "conditional"}},
    }
    page = page_of(
        write_run(tmp_path, Recipe(num_steps=1, evaluate_every=1, num_heldout=3, manifest={"config": config}))
    )
    assert "<h1>MicroCoder-GRPO on Qwen/Qwen3-4B: kodsport/train.jsonl<" in page

"""A study's pages from run directories alone: verdicts, one figure, the index,
and the same bytes each time.
"""

import json
import re
import runpy
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from microcoder.cli import main
from microcoder.lab.studies.design import INSIGHTS, QUICK, load_study
from microcoder.lab.studies.features import LABELS, MetricSeries
from microcoder.lab.studies.figures import draw_curves
from microcoder.lab.studies.work import plan_work
from tests.lab.synthetic_run import Recipe, write_run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic runs of three seeds of one study, all but one."""
    root = tmp_path_factory.mktemp("runs")
    for run in plan_work(
        load_study(ROOT / "studies" / "007_batch_size.toml"),
        scale=QUICK,
        root=root,
    ):
        if run.seed < 3 and (run.name, run.seed) != ("32", 2):
            write_run(
                run.folder, Recipe(num_steps=8, evaluate_every=2, num_heldout=12, seed=run.seed)
            )
    return root


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def folder(runs: Path, tmp_path: Path) -> Path:
    """A folder for pages beside the runs, which a test may damage."""
    shutil.copytree(runs, tmp_path / "runs")
    return tmp_path


def report(folder: Path, name: str, *words: str) -> None:
    main(
        [
            "study",
            "--report",
            *words,
            "--quick",
            "--runs",
            str(folder / "runs"),
            "-o",
            str(folder / name),
        ]
    )


def read_pages(folder: Path) -> dict[str, bytes]:
    """The files of a report; pages name their folder in the commands that write them again."""
    here = folder.as_posix().encode()
    return {path.name: path.read_bytes().replace(here, b"HERE") for path in folder.iterdir()}


def test_a_page_opens_with_four_sentences_and_one_figure_and_is_made_again_from_records_beside_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(folder, "a", "batch_size")
    assert "B1  cannot appear here, " in capsys.readouterr().out
    page = (folder / "a" / "007_batch_size.md").read_text()
    opening = page.split("## Claims")[0]
    words = ["Asked", "Done", "Seen", "Next"]
    headings = []
    for line in opening.splitlines():
        if line.startswith("**"):
            headings.append(line.split(":**")[0].strip("*"))
    assert headings == words
    assert opening.count("](007_batch_size-figure.svg)") == page.count(".svg)") == 1
    ElementTree.parse(folder / "a" / "007_batch_size-figure.svg")
    # The same seeds pretend the same learning, so the setting changed nothing.
    assert "**Seen:** Cannot appear here: " in opening
    assert "| **B1** | " in page.split("## What was compared")[1]
    for part in (
        "- **B1** cannot appear here, ",
        "| 2 of at most 10 |",
        "batch.train_batch_size = ",
    ):
        assert part in page
    assert "microcoder study 007_batch_size --quick" in page
    records = folder / "a" / "007_batch_size-records.tar.xz"
    assert f"({records.name})" in page
    # Whatever the recipe has become since: the records say which run is which.
    for run in (folder / "runs").glob("*/seed*"):
        shutil.rmtree(run)
    main(
        [
            "study",
            "--report",
            "batch_size",
            "--quick",
            "--runs",
            str(records),
            "-o",
            str(folder / "b"),
        ]
    )
    first = read_pages(folder / "a")
    second = read_pages(folder / "b")
    # The records stay where they are, and the page says where.
    assert records.name not in second
    assert f"--runs {records.as_posix()}" in second["007_batch_size.md"].decode()
    figure = "007_batch_size-figure.svg"
    assert first[figure] == second[figure]
    verdicts = [pages["007_batch_size.md"].partition(b"## How to")[0] for pages in (first, second)]
    assert verdicts[0] == verdicts[1]
    records.write_bytes(records.read_bytes()[:-1])
    for path, told in (
        (records, "holds no records of a study"),
        (Path("README.md"), "or a folder of runs"),
    ):
        with pytest.raises(SystemExit):
            main(["study", "--report", "batch_size", "--quick", "--runs", str(path)])
        assert told in capsys.readouterr().err


def test_the_index_is_a_row_a_claim_with_the_same_bytes_again(folder: Path) -> None:
    for name in ("a", "b"):
        report(folder, name, "--all")
    index = (folder / "a" / "README.md").read_text()
    assert "| B1 | " in index
    assert index.startswith("# The 34 insights on the micro lab\n\n34 claims:\n\n- ")
    missing = []
    for name in INSIGHTS:
        if f"\n| {name} | " not in index:
            missing.append(name)
    assert missing == []
    assert len(index.splitlines()) < 60
    results = json.loads((folder / "a" / "results.json").read_text(), parse_constant=pytest.fail)
    verdicts = {claim["id"]: claim["verdict"] for claim in results["claims"]}
    assert set(INSIGHTS) <= set(verdicts)
    assert verdicts["B3"] == "cannot appear here"
    assert verdicts["T1"] == "not run"
    assert read_pages(folder / "a") == read_pages(folder / "b")


@pytest.mark.parametrize(
    "name", ["all", "rate_and_fate", *(p.stem for p in ROOT.glob("studies/registered/*.toml"))]
)
def test_published_pages_are_what_their_records_say(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    published = ROOT / "docs" / "insights"
    # A page names its study and the folder that it is in: the same folders, in another place.
    for folder in ("studies", "recipes", "records"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    insights = tmp_path / "docs" / "insights"
    insights.mkdir(parents=True)
    explained = [ROOT / "docs" / "insights.md", published / "what-we-learnt.md"]
    for page in explained:
        shutil.copy(page, tmp_path / page.relative_to(ROOT))
    monkeypatch.chdir(tmp_path)
    if name == "all":
        typed = ["--all", "--quick"]
    else:
        typed = map(str, Path("studies").glob(f"*/{name}.toml"))
    records = f"records/{name}-records.tar.xz"
    main(["study", *typed, "--report", "--runs", records, "-o", "docs/insights"])
    # Another processor adds in another order, which a curve's last digit may show.
    written = {}
    for path in insights.iterdir():
        if path.suffix in (".md", ".json") and path.name != "what-we-learnt.md":
            written[path.name] = path.read_text()
    assert len(written) == (10 if name == "all" else 1)
    changed = []
    for page, text in written.items():
        if text != (published / page).read_text():
            changed.append(page)
    assert changed == []


def test_without_runs_it_says_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs" / "0123abcd").mkdir(parents=True)
    with pytest.raises(SystemExit):
        report(tmp_path, "a", "batch_size")
    told = (
        "type `microcoder study`, or name the folder beside it that holds runs of other code "
        "with --code"
    )
    assert told in capsys.readouterr().err


def test_a_figure_is_whole_xml_with_a_text_alternative_and_no_date() -> None:
    import matplotlib as mpl

    text = "$x^{<b>&amp; is higher"
    time_E = np.linspace(0, 1, 5)
    seeds = [MetricSeries(time_E, time_E[:, None] * slope) for slope in (0.1, 0.2, 0.4)]
    levels = {text: seeds, "b": seeds[:1]}
    before = dict(mpl.rcParams)
    chart, again = (
        draw_curves("name", "accuracy", levels, reference="b", num_steps=8) for _ in range(2)
    )
    assert chart == again
    assert dict(mpl.rcParams) == before
    assert not re.search(r"<metadata|20\d\d-\d\d-\d\d|matplotlib v", chart.svg)
    root = ElementTree.fromstring(chart.svg)
    svg = "{http://www.w3.org/2000/svg}"
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{svg}title") == chart.title
    assert root.findtext(f"{svg}desc") == chart.description
    assert chart.title == LABELS["accuracy"]
    assert text in chart.description
    ids = re.findall(r'\bid="([^"]+)"', chart.svg)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', chart.svg)) <= set(ids)


def test_the_page_of_the_repeat_is_what_its_records_say() -> None:
    repeated = runpy.run_path(str(ROOT / "studies" / "repeated.py"))
    assert repeated["describe"](*repeated["judge_both"]()) == repeated["PAGE"].read_text()

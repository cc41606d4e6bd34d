"""The page in a real browser: what a reader sees, types and hears,
and what hostile text does (nothing).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from microcoder.lab.studies.report import describe_report
from microcoder.train.runs import read_history
from microcoder.view import open_collection, write_bundle, write_report
from tests.view.parts.browsers import Browser, axe_violations
from tests.view.parts.viewer_runs import (
    HOSTILE,
    edit_rollouts,
    make_hostile,
    serving,
    write_training,
)

VIEWS = (
    "#view=overview",
    "#view=curves",
    "#view=runs",
    "#view=group&run=one&at=train/1/0",
    "#view=rollouts&run=one",
    "#view=rollouts&run=one&verdict=wrong_answer&at=train/1/0",
    "#view=problems&run=one",
    "#view=compare&a=one|train/1/0&b=two|train/2/0",
    "#view=rollouts&run=eval&at=evaluation/0/3",
    "#view=rollouts&run=judged&at=judged/0/1",
    "#view=rollouts&run=small&at=corpus/0/0",
    "#view=rollouts&run=small&at=corpus/0/1",
)
SHOWN = (
    "document.querySelector(location.hash.includes('at=') ? '#copy, #diversity' : '.plot, "
    ".rows a, .map td, #differences, .sort')"
)


@pytest.fixture(scope="module")
def url(shelf: Path) -> Iterator[str]:
    paths = [shelf / "one", shelf / "two", shelf / "eval", shelf / "judged.jsonl", shelf / "small"]
    files = [shelf / "problems.jsonl", shelf / "submissions.jsonl"]
    with serving(open_collection(paths, problem_files=files)) as server:
        yield server.url


def listed(page: Browser) -> list[str]:
    return page.run("[...document.querySelectorAll('.rows a')].map((link) => link.dataset.id)")


def found(page: Browser, total: int) -> None:
    page.wait(f"document.getElementById('found')?.textContent.startsWith('{total} of')")


def opened(page: Browser, name: str) -> None:
    page.wait(
        f"document.getElementById('copy') && location.hash.includes('{name.replace('/', '%2F')}')"
    )


def test_curves_of_several_runs_lie_over_each_other(page: Browser, url: str) -> None:
    page.open(f"{url}#view=curves")
    titles = page.texts("figcaption")
    assert {
        "Accuracy, held out",
        "Accuracy, hard",
        "Reward",
        "Masked share",
        "Seconds a step: generate",
    } <= set(titles)
    assert page.texts(".group-of-charts > summary h3") == [
        "Reward",
        "Length",
        "Diversity",
        "Doses",
        "Optimisation",
        "Judging",
        "Time",
    ]
    drawn = "document.querySelector('.plot').plot"
    assert page.run(f"{drawn}.data.length") == 3
    assert page.run(f"{drawn}.data[0]") == [0, 4, 8]
    assert "one, held out" in page.text("figure .readout")
    assert "two, held out" in page.text("figure .readout")
    page.run("document.getElementById('show-0').click()")
    page.wait("location.hash.includes('hide=one')")
    page.wait(f"{drawn}.data.length === 2")
    # Of one run alone, training and held out have a colour each.
    kinds = page.run(
        "[...document.querySelector('[data-title=\"accuracy, hard\"]').querySelectorAll('.swatch')]"
        ".map((swatch) => [swatch.className.trim(), getComputedStyle(swatch).backgroundColor])"
    )
    assert [kind for kind, _ in kinds] == ["swatch run-0", "swatch run-1 dotted"]
    assert kinds[0][1] != kinds[1][1]
    page.run("document.getElementById('show-0').click()")
    page.wait("!location.hash.includes('hide')")


def test_a_chart_is_read_with_the_keyboard_and_leads_to_its_rollouts(
    page: Browser, url: str
) -> None:
    page.open(f"{url}#view=curves")
    assert "Arrow keys read it" in page.run(
        "document.querySelector('.plot').getAttribute('aria-label')"
    )
    page.run("document.querySelector('.plot').focus()")
    page.press("End")
    assert page.text("figure .readout").startswith("step 8: one")
    page.press("ArrowLeft")
    assert page.text("figure .readout").startswith("step 4: one")
    page.press("Enter")
    page.wait("location.hash.includes('view=rollouts') && location.hash.includes('step=4')")
    found(page, 48)


def test_filters_narrow_the_list_and_the_link_says_so(page: Browser, url: str) -> None:
    page.open(f"{url}#view=rollouts&run=one")
    found(page, 264)
    page.run(
        "(document.getElementById('filter-verdict').value = '!accepted', "
        "document.getElementById('filter-verdict').dispatchEvent(new Event('change')))"
    )
    page.wait("location.hash.includes('verdict=%21accepted')")
    page.run("document.querySelector('#filters summary').click()")
    page.run("document.getElementById('filter-problem').focus()")
    page.write("train/002")
    page.wait("location.hash.includes('problem=train%2F002')")
    page.wait("document.querySelectorAll('.rows a').length < 32")
    names = page.run(
        "[...new Set([...document.querySelectorAll('.rows .problem')].map((name) => "
        "name.textContent))]"
    )
    assert names == ["train/002"]
    verdicts = page.run(
        "[...new Set([...document.querySelectorAll('.rows .verdict')].map((v) => v.textContent))]"
    )
    assert "accepted" not in verdicts
    before = listed(page)
    link = page.run("location.href")
    page.open(link)
    page.wait("document.querySelectorAll('.rows a').length")
    assert listed(page) == before
    assert page.run("document.getElementById('filter-problem').value") == "train/002"
    assert page.texts(".chip") == ["problem train/002 \u00d7", "not accepted \u00d7"]
    page.run("document.querySelector('.chip').click()")
    page.wait("document.querySelectorAll('.chip').length === 1")
    page.run("document.getElementById('filter-reset').click()")
    found(page, 264)


def test_masked_and_truncated_are_filters_and_the_reason_is_shown(page: Browser, url: str) -> None:
    page.open(f"{url}#view=rollouts&run=one&masked=yes&truncated=yes")
    page.wait("document.querySelector('.rows a')")
    assert page.run(
        "[...document.querySelectorAll('.rows a')].every((row) => "
        "row.textContent.includes('masked'))"
    )
    page.press("j")
    page.wait("document.getElementById('masked')")
    assert "drawn with probability 0.2" in page.text("#masked")
    said = page.text("#masked").partition("Its advantage")[2]
    assert "was set to 0, so it moved no weight" in said or "would have been 0 anyway" in said


def test_the_keyboard_walks_through_list_and_group(page: Browser, url: str) -> None:
    page.open(f"{url}#view=rollouts&run=one&order=first")
    page.wait("document.querySelector('.rows a')")
    rows = listed(page)
    page.press("j")
    opened(page, rows[0])
    page.press("j")
    opened(page, rows[1])
    page.wait(f"document.querySelector('.rows [aria-current]')?.dataset.id === '{rows[1]}'")
    page.wait("document.getElementById('standing').textContent === '2 of 264'")
    page.press("ArrowRight")
    opened(page, rows[2])
    page.press("k")
    opened(page, rows[1])
    page.press("Escape")
    page.wait("!document.getElementById('copy')")
    page.press("]")
    page.wait("document.querySelector('.rows').start === 51")
    page.press("[")
    page.wait("document.querySelector('.rows').start === 1")
    page.press("?")
    page.wait("document.querySelector('dialog[open]')")
    page.press("j")
    assert "at=" not in page.run("location.hash")
    page.run("document.querySelector('dialog').close()")
    page.press("c")
    page.wait("document.querySelector('.plot')")


def test_a_rollout_is_shown_whole(page: Browser, url: str) -> None:
    page.open(f"{url}#view=rollouts&run=one&split=train&verdict=wrong_answer")
    page.wait("document.querySelector('.rows a')")
    page.press("j")
    page.wait("document.querySelector('.test[open] .panes')")
    assert page.text(".prose").startswith("Add the numbers of train/")
    assert page.text("#text-reasoning") == "We add <both> numbers & print.\n"
    assert page.text("#text-program") == "print(int(input()) + 1)\n"
    panes = page.run(
        "[...document.querySelectorAll('.test[open] .pane')].map((pane) => pane.textContent.trim())"
    )
    assert panes == ["Input1 1", "Expected3", "Actual<2>"]
    assert page.run("document.querySelectorAll('.test[open] mark').length") == 2
    assert "No comparison accepted this output" in page.text(".test[open]")
    assert "compared: exact" in page.text("#test-0 summary")
    assert "Group of 4: mean reward" in page.text("#main")
    assert "adv \u22120.50" in page.text(".group")
    assert "\u22120.50" in page.text(".sample-head")
    page.run("document.querySelector('#test-0 summary').click()")
    page.wait("document.querySelector('#test-0 .panes')")
    assert "Accepted by the comparison “exact”" in page.text("#test-0")


def test_a_link_to_a_sample_opens_it_and_back_goes_back_and_one_that_names_nothing_is_told(
    page: Browser, url: str
) -> None:
    page.open(f"{url}#view=rollouts&run=one")
    page.wait("document.querySelector('.rows a')")
    page.run("document.querySelectorAll('.rows a')[3].click()")
    page.wait("document.getElementById('copy')")
    title = page.text("#sample-title")
    link = page.run("location.href")
    page.run("history.back()")
    page.wait("!document.getElementById('copy')")
    page.open(link)
    page.wait("document.getElementById('copy')")
    assert page.text("#sample-title") == title
    page.open(f"{url}#view=rollouts&run=one&at=train/1/999")
    page.wait("!document.getElementById('alarm').hidden")
    assert "names no rollout of this run" in page.text("#alarm")
    page.faults.clear()  # The refused request is an error of the log, and meant.


def test_the_overview_is_what_the_report_says(page: Browser, url: str, shelf: Path) -> None:
    disk = write_report(shelf / "one", against=[shelf / "two"]).as_uri()
    told = describe_report(read_history(shelf / "one"), [read_history(shelf / "two")])
    texts = []
    for base in (f"{url}#view=overview&run=one", disk):
        page.look(width=390 if base == disk else 1280)
        page.open(base)
        page.wait("document.querySelector('#headline') && document.querySelector('.plot')")
        assert page.run("document.documentElement.scrollWidth") <= (390 if base == disk else 1280)
        sections = page.run("[...document.querySelectorAll('section.report')].map((one) => one.id)")
        assert sections == ["arms", "before-after"]
        assert page.text("#headline").startswith(" → ".join(told["headline"]["figures"]))
        rows = []
        for row in told["tables"][1]["rows"]:
            rows.append([cell if isinstance(cell, str) else cell[0] for cell in row])
        cells = []
        for row in rows:
            cells.extend(row)
        assert page.texts("#before-after td") == cells
        texts.append(page.texts("section.report"))
    assert texts[0] == texts[1]


def test_the_first_page_says_what_happened_and_leads_there(page: Browser, url: str) -> None:
    page.open(url)
    page.wait("document.querySelector('#story')")
    changed, reward, truncated, doses = page.texts("#headline p:last-of-type, #story li")
    assert changed.startswith("Held-out accuracy before training and after 8 steps")
    steps = re.fullmatch(
        r"Mean reward: .* largest rise \+.* from step (\d) to (\d)\. rollouts of these steps",
        reward,
    )
    assert steps
    assert truncated.startswith("Truncated in training: ")
    assert doses.startswith("Share of |advantage| removed: mask ")
    page.run("document.querySelector('#story a').click()")
    page.wait("document.querySelector('.rows a')")
    assert page.run("document.getElementById('filter-step').value") == f"{steps[1]}-{steps[2]}"
    page.run("history.back()")
    page.wait("document.querySelector('#story')")
    page.run("document.querySelector('#headline p a').click()")
    page.wait("document.querySelector('.map .flipped')")


@pytest.mark.parametrize("is_bundle", [False, True], ids=["server", "bundle"])
def test_hostile_text_is_text(page: Browser, tmp_path: Path, is_bundle: bool) -> None:
    run = write_training(tmp_path / "run", num_steps=2, evaluate_every=9)
    edit_rollouts(run, 2, make_hostile)
    manifest = run / "manifest.json"
    manifest.write_text(
        json.dumps(json.loads(manifest.read_text()) | {"name": HOSTILE, "started": HOSTILE})
    )
    collection = open_collection([run])
    (key,) = collection
    with serving(collection) as server:
        base = write_bundle(collection, tmp_path / "out").page.as_uri() if is_bundle else server.url
        page.open(f"{base}#view=curves")
        page.wait("document.querySelector('.plot')")
        page.open(base)
        page.wait("document.querySelector('main .report')")
        page.open(f"{base}#view=rollouts&run={key}&at=train/2/0")
        page.wait("document.getElementById('copy')")
        page.run("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        page.wait("!document.querySelector('.test') || document.querySelector('.test .panes')")
        asked = [*page.requests]
    assert page.run("window.hurt") is None
    assert page.run("document.querySelector('main img, main script, header img')") is None
    assert page.text("#sample-title") == page.run(f"viewer.page.shown({json.dumps(HOSTILE)})")
    assert "\\u202e␛[31m␀" in page.text("#sample-title")
    home = base.removesuffix("index.html")
    for address in asked:
        assert address.startswith(home), asked


def test_a_bundle_from_disk_shows_what_the_server_shows(
    page: Browser,
    url: str,
    shelf: Path,
    tmp_path: Path,
) -> None:
    collection = open_collection(
        [shelf / "one", shelf / "eval"], problem_files=[shelf / "problems.jsonl"]
    )
    disk = write_bundle(collection, tmp_path / "out").page.as_uri()
    hashes = [
        "#view=curves&hide=two+judged",
        "#view=rollouts&run=one&verdict=!accepted&step=2-5&order=longest",
        "#view=compare&a=one|train/1/0&b=one|train/1/1",
        "#view=rollouts&run=eval&at=evaluation/0/3",
        "#view=rollouts&run=one&at=train/3/7",
        "#view=group&run=one&at=train/1/1",
    ]
    for part in hashes:
        texts = []
        for base in (url, disk):
            page.open(base + part)
            page.wait(SHOWN)
            # The server keeps notes, and a bundle shows those that are there.
            page.run("document.getElementById('note')?.remove()")
            if "view=rollouts" in part and "at=" in part:
                page.wait("document.getElementById('copy')")
                page.wait(
                    "![...document.querySelectorAll('.test[open]')].some((test) => "
                    "!test.querySelector('.panes'))"
                )
            places = {
                "curves": "#groups",
                "problems": ".map",
                "compare": "#differences",
                "group": "main",
            }
            place = next(
                (place for view, place in places.items() if f"view={view}" in part), "#main .list"
            )
            texts.append(page.text(place) + page.text("article"))
        assert texts[0] == texts[1], part


CLIPPED = """[...document.querySelectorAll('body *:not(.unseen)')]
    .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
    .filter((one) => getComputedStyle(one).overflowX !== 'visible' && one.clientWidth > 1)
    .map((one) => `${one.tagName}.${one.className} ${one.scrollWidth} > ${one.clientWidth}`)"""
"""What is wider than the place it has, and cut off there."""

NAMED = {
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "checkbox",
    "article",
    "region",
    "dialog",
}


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (1280, "dark")])
def test_every_view_fits_its_window_and_everything_to_press_is_large_enough_and_has_a_name(
    page: Browser,
    url: str,
    width: int,
    theme: str,
) -> None:
    page.look(width=width, theme=theme)
    targets = "[...document.querySelectorAll('a:not(.skip), button, select, input, summary')]"
    sizes = f"{targets}.filter((one) => one.offsetParent).map((one) => one.getBoundingClientRect())"
    for part in VIEWS if width < 600 else VIEWS[::3]:
        page.open(url + part)
        page.wait(SHOWN)
        assert page.run("document.documentElement.scrollWidth") <= width, part
        if width < 600:
            assert page.run(CLIPPED) == [], part
            assert page.run("document.querySelector('.top').offsetHeight") <= 56
        assert page.run(f"Math.min(...{sizes}.map(({{ height }}) => height))") >= 23.5, part
        assert axe_violations(page) == [], part
        nodes = page.devtools.send("Accessibility.getFullAXTree")["nodes"]
        used = []
        for node in nodes:
            if node.get("role", {}).get("value") in NAMED and not node["ignored"]:
                used.append(node)
        assert len(used) > 5
        unnamed = []
        for node in used:
            if not node.get("name", {}).get("value"):
                unnamed.append(node["role"])
        assert unnamed == []
    paper = page.run("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if theme == "light" else "rgb(20, 23, 27)")

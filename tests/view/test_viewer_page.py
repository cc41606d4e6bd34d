"""What the page computes and draws from the columns, in a real browser: filters, searches,
problems, comparisons.
"""

import base64
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from microcoder.train.runs import RunDirectory, read_history
from microcoder.view import open_collection, write_bundle
from tests.view.parts.browsers import Browser
from tests.view.parts.viewer_runs import (
    LIGHT_ROWS,
    Row,
    edit_rollouts,
    index_of,
    serving,
    write_training,
)

EVERY = ["heldout/0/0", "train/1/0", "train/1/1", "train/1/2", "train/12/0"]


RUNS: dict[str, Path] = {}


@pytest.fixture(scope="module")
def url(shelf: Path) -> Iterator[str]:
    RUNS.update(one=shelf / "one", two=shelf / "two")
    with serving(open_collection([shelf / "one", shelf / "two"])) as server:
        yield server.url


def choose(page: Browser, name: str, value: str) -> None:
    """Choose an option, as a reader does."""
    field = f"document.getElementById('{name}')"
    page.run(f"({field}.value = '{value}', {field}.dispatchEvent(new Event('change')))")


def decoded(rows: list[Row]) -> str:
    """An expression of the page's: the index of these rows."""
    pack = base64.b64encode(index_of(rows).pack()).decode()
    return (
        f"viewer.columns.decode(Uint8Array.from(atob('{pack}'), (letter) => "
        "letter.charCodeAt(0)).buffer)"
    )


@pytest.fixture
def columns(page: Browser, url: str) -> Browser:
    """A page that holds the index of `LIGHT_ROWS`."""
    page.open(url)
    page.run(f"(window.index = {decoded(LIGHT_ROWS)}, true)")
    return page


SELECTIONS: list[tuple[dict[str, str], list[str]]] = [
    ({"order": "first"}, EVERY),
    ({"order": "last"}, EVERY[::-1]),
    ({"order": "longest"}, ["train/1/1", "heldout/0/0", "train/1/0", "train/1/2", "train/12/0"]),
    ({"order": "advantage"}, ["train/1/0", "heldout/0/0", "train/1/2", "train/12/0", "train/1/1"]),
    ({}, ["train/12/0", "train/1/1", "train/1/2", "train/1/0", "heldout/0/0"]),
    ({"step": "1", "order": "first"}, EVERY[1:4]),
    ({"step": "0-1", "order": "first"}, EVERY[:4]),
    ({"step": " step_12 "}, ["train/12/0"]),
    ({"problem": "abd", "order": "first"}, ["heldout/0/0", "train/1/2"]),
    ({"problem": "nothing"}, []),
    ({"verdict": "accepted", "order": "first"}, ["heldout/0/0", "train/1/0"]),
    ({"verdict": "!accepted", "order": "first"}, ["train/1/1", "train/1/2", "train/12/0"]),
    ({"verdict": "unheard_of"}, []),
    ({"truncated": "yes"}, ["train/1/2"]),
    ({"masked": "yes"}, ["train/1/2"]),
    (
        {"masked": "no", "truncated": "no", "split": "train", "verdict": "!accepted"},
        ["train/12/0", "train/1/1"],
    ),
    ({"tier": "hard"}, ["train/12/0"]),
    ({"only": "disagree"}, ["train/1/1"]),
    ({"only": "flipped"}, ["train/12/0"]),
]


def test_a_query_selects_and_one_that_makes_no_sense_is_refused(columns: Browser) -> None:
    names = "viewer.columns.record(index, place).id"
    for words, ids in SELECTIONS:
        found = columns.run(
            f"Array.from(viewer.columns.select(index, {json.dumps(words)}, null), (place) "
            f"=> {names})"
        )
        assert found == ids, words
    for words in ({"step": "1-"}, {"step": "x"}, {"order": "random"}):
        tried = f"viewer.columns.select(index, {json.dumps(words)}, null)"
        told = columns.run(
            f"(() => {{ try {{ {tried}; }} catch (error) {{ return error.message; }} }})()"
        )
        assert next(iter(words)) in told
    hits = "new Uint8Array([0b10010])"
    assert columns.run(f"Array.from(viewer.columns.select(index, {{order: 'first'}}, {hits}))") == [
        1,
        4,
    ]
    unknown = columns.run("viewer.columns.record(index, 4)")
    assert unknown["reward"] is None
    assert unknown["num_tokens"] is None
    assert unknown["is_truncated"] is False
    # More problems than a byte counts.
    many = decoded(
        [{"split": "train", "step": 1, "row": n, "problem_id": f"p{n}"} for n in range(300)]
    )
    assert columns.run(f"Array.from(viewer.columns.select({many}, {{problem: 'p299'}}, null))") == [
        299
    ]


def test_problems_are_on_the_lists_that_they_belong_to(page: Browser, url: str) -> None:
    outcomes = {
        "learnt": "wwaa",
        "lost": "aaww",
        "flipping": "wawa",
        "never": "wwww",
        "always": "aaaa",
    }
    words = {"a": "accepted", "w": "wrong_answer"}
    rows = []
    for step in range(4):
        for row, (name, letters) in enumerate(outcomes.items()):
            for letter in letters[step]:
                rows.append(
                    {
                        "split": "heldout",
                        "step": step,
                        "row": row,
                        "problem_id": name,
                        "verdict": words[letter],
                    }
                )
    page.open(url)
    lists = page.run(
        f"viewer.columns.problems({decoded(rows)}, "
        "'heldout').map(({id, on, flips}) => [id, flips, ...Object.keys(on).filter((name) "
        "=> on[name]).sort()])"
    )
    assert lists == [
        ["learnt", 1, "flipped", "learnt"],
        ["lost", 1, "flipped", "lost"],
        ["flipping", 3, "flipped", "learnt"],
        ["never", 0, "never"],
        ["always", 0, "always"],
    ]


def test_a_search_narrows_the_list_and_marks_what_it_found(page: Browser, url: str) -> None:
    page.open(f"{url}#view=rollouts&run=one")
    page.wait("document.querySelector('.rows a')")
    page.press("/")
    page.wait("document.activeElement.id === 'filter-text'")
    page.write("map(int")
    page.wait("location.hash.includes('text=map%28int')")
    page.wait(
        "![...document.querySelectorAll('.rows .verdict')].some((v) => v.textContent !== "
        "'accepted')"
    )
    assert page.run(
        "[...document.querySelectorAll('.rows .verdict')].every((v) => v.textContent === "
        "'accepted')"
    )
    page.run("document.querySelector('.rows a').click()")
    page.wait("document.getElementById('copy')")
    page.wait("[...(CSS.highlights.get('found') ?? [])].length")
    assert set(page.run("[...CSS.highlights.get('found')].map(String)")) == {"map(int"}
    page.open(
        f"{url}#view=rollouts&run=one&text=int%5C(input%5C(%5C)%5C)+%5C%2B&regex=yes&field=program"
    )
    page.wait("document.querySelector('.rows a')")
    assert page.run("document.getElementById('filter-regex').checked")
    page.open(f"{url}#view=rollouts&run=one&text=(&regex=yes")
    page.wait("!document.getElementById('alarm').hidden")
    assert "not a regular expression" in page.text("#alarm")
    page.faults.clear()  # The refused request is an error of the log, and meant.


def draw(page: Browser, url: str, more: str = "") -> None:
    """Open the curves."""
    page.open(f"{url}#view=curves{more}")
    page.wait("document.querySelector('.plot')")


PLOT = "document.querySelector('[data-title=\"{}\"] .plot').plot"
REWARD = PLOT.format("reward")


def test_charts_are_searched_and_folded_by_group(page: Browser, url: str) -> None:
    draw(page, url)
    page.run("document.getElementById('find').focus()")
    page.write("doses removed mask")
    page.wait("location.hash.includes('find=doses')")
    shown = (
        "[...document.querySelectorAll('figure')].filter((one) => one.checkVisibility())"
        ".map((one) => one.dataset.title)"
    )
    assert page.run(shown) == []
    page.run("document.getElementById('find').select()")
    page.write("accuracy ea")
    page.wait(f"{shown}.length === 1")
    assert page.run(shown) == ["accuracy, easy"]
    assert page.run("document.activeElement.id") == "find"
    draw(page, url, "&find=tokens")
    assert page.run(shown) == ["response length (tokens)"]
    draw(page, url)
    page.run("document.querySelector('#group-reward summary').click()")
    page.wait("location.hash.includes('fold=reward')")
    draw(page, url, "&fold=reward")
    assert "reward" not in page.run(shown)
    assert "response length (tokens)" in page.run(shown)


def test_a_drag_zooms_all_charts_and_a_click_opens_the_nearest_lines_rollouts(
    page: Browser, url: str
) -> None:
    draw(page, url, "&hide=two")
    box = page.run(
        "document.querySelector('[data-title=\"reward\"] .u-over').getBoundingClientRect().toJSON()"
    )
    middle = box["y"] + box["height"] / 2
    page.page.mouse.move(box["x"] + box["width"] * 0.35, middle)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    page.page.mouse.up()
    page.wait("location.hash.includes('span=3-6')")
    page.wait(f"{REWARD}.scales.x.min === 3 && {REWARD}.scales.x.max === 6")
    assert page.run(f"{PLOT.format('accuracy, easy')}.scales.x.max") == 6
    page.run("document.getElementById('unzoom').click()")
    page.wait(f"{REWARD}.scales.x.max === 8")
    box = page.run(
        "document.querySelector('[data-title=\"accuracy, medium\"] .u-over')"
        ".getBoundingClientRect().toJSON()"
    )
    plot = PLOT.format("accuracy, medium")
    # Where the held-out line is, and the training line is not.
    left, top = page.run(f"[{plot}.valToPos(4, 'x'), {plot}.valToPos({plot}.data[2][4], 'y')]")
    page.page.mouse.click(box["x"] + left, box["y"] + top)
    page.wait("location.hash.includes('view=rollouts')")
    assert "step=4&split=heldout" in page.run("location.hash")
    page.wait("document.querySelector('.rows a')")


def test_curves_by_time_on_a_log_scale_and_as_a_mean_over_seeds(page: Browser, url: str) -> None:
    draw(page, url, "&x=time&y=log")
    series = read_history(RUNS["one"]).steps
    times = list(itertools.accumulate(row.seconds["total"] for row in series))
    drawn = page.run(f"{REWARD}.data[0]")
    for time in times:
        assert min(abs(time - x) for x in drawn) < 0.06
    assert page.run(f"{REWARD}.scales.y.distr") == 3
    assert "values of 0 or less are not on a log scale" in page.text(
        '[data-title="accuracy, hard"] .readout'
    )
    choose(page, "y-axis", "linear")
    page.wait("!location.hash.includes('log')")
    draw(page, url)
    page.run("document.getElementById('mean').click()")
    page.wait("location.hash.includes('mean=yes')")
    page.wait(f"{REWARD}.bands.length === 1")
    rewards = []
    for name in ("one", "two"):
        rewards.append([row.reward_mean for row in read_history(RUNS[name]).steps])
    data = page.run(f"{REWARD}.data")
    assert data[0] == [1, 2, 3, 4]
    for place, pair in enumerate(zip(*rewards, strict=False)):
        assert data[1][place] == pytest.approx(sum(pair) / 2, abs=1e-6)
        assert data[2][place] == pytest.approx(max(pair), abs=1e-6)
        assert data[3][place] == pytest.approx(min(pair), abs=1e-6)
    assert "mean of 2 runs" in page.text('[data-title="reward"] .readout')


def test_runs_are_a_table_with_what_differs_in_their_configs(page: Browser, tmp_path: Path) -> None:
    for number, rate in enumerate((10, 9, 100)):
        config = {"optimizer": {"learning_rate": rate}, "batch": {"size": 8}}
        manifest = {"name": f"r{number}", "config": config}
        write_training(tmp_path / f"r{number}", num_steps=2, seed=number, manifest=manifest)
    collection = open_collection([tmp_path / f"r{number}" for number in range(3)])
    with serving(collection) as server:
        page.open(f"{server.url}#view=runs")
        page.wait("document.querySelector('.sort')")
        headings = page.texts("th")
        assert headings[0] == "Run"
        assert headings[-1] == "optimizer.learning_rate"
        assert "batch.size" not in headings
        names = "[...document.querySelectorAll('tbody td:first-child')].map((c) => c.textContent)"
        assert page.run(names) == ["r0", "r1", "r2"]
        for order in (["r1", "r0", "r2"], ["r2", "r0", "r1"]):
            page.run("document.getElementById('sort-config.optimizer.learning_rate').click()")
            page.wait(f"JSON.stringify({names}) === '{json.dumps(order, separators=(',', ':'))}'")
        assert page.run("document.querySelector('th:last-child').ariaSort") == "descending"
        page.run("document.querySelector('tbody a').click()")
        page.wait("document.querySelector('#headline')")
        assert page.run("document.querySelector('#tab-overview').ariaCurrent") == "page"
    # One run alone is no table.
    with serving(open_collection([tmp_path / "r0"])) as server:
        page.open(f"{server.url}#view=runs")
        page.wait("document.querySelector('#headline')")
        assert page.texts("#tabs a") == ["Overview", "Curves", "Rollouts", "Problems", "Compare"]


def test_a_page_stands_in_the_navigation_where_there_is_something_for_it(
    page: Browser, url: str
) -> None:
    page.open(url)
    page.wait("document.querySelector('#headline')")
    page.run(
        "(viewer.pages.add({name: 'extra', title: 'Extra', isThere: () => window.hasExtra, "
        "render: (main) => main.replaceChildren('extra of ', viewer.state.read().run)}), true)"
    )
    page.run("(location.hash = '#view=extra&run=one', true)")
    page.wait("document.querySelector('#headline')")
    assert "Extra" not in page.texts("#tabs a")
    page.run("(window.hasExtra = true, location.hash = '#view=extra&run=two', true)")
    page.wait("document.getElementById('main').textContent === 'extra of two'")
    assert page.texts("#tabs a")[-1] == "Extra"


def test_the_list_comes_first_and_its_filters_are_folded(page: Browser, url: str) -> None:
    for width, height in ((390, 844), (1280, 900)):
        page.look(width=width, height=height)
        page.open(f"{url}#view=rollouts&run=one")
        page.wait("document.querySelector('.rows a')")
        assert page.run("document.querySelector('.rows a').getBoundingClientRect().bottom") < 320
        places = "'.rows', '#filters'"
        tops = page.run(
            f"[{places}].map((name) => document.querySelector(name).getBoundingClientRect().top)"
        )
        assert tops[0] < tops[1] < height
        assert not page.run("document.querySelector('#filters').open")
    page.run("document.querySelector('.shares-of a').click()")
    page.wait("document.querySelector('.chip')?.textContent === 'accepted \u00d7'")


def test_programs_and_prompts_are_copied_as_they_are(page: Browser, tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    texts = {"prompt": "Add\t$1$\u200b **it**", "program": "print(1)\r\nprint('\u202e')\n"}
    edit_rollouts(run, 1, lambda row: {**row, **texts})
    with serving(open_collection([run])) as server:
        page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.open(f"{server.url}#view=rollouts&run=demo&at=train/1/0")
        for name, text in texts.items():
            page.wait(f"document.getElementById('copy-{name}')")
            page.run(f"document.getElementById('copy-{name}').click()")
            page.wait(f"document.getElementById('copy-{name}').textContent === 'Copied'")
            assert page.run("navigator.clipboard.readText()") == text
        page.page.context.clear_permissions()


def test_a_note_is_written_shown_in_the_list_and_read_only_in_a_bundle(
    page: Browser, tmp_path: Path
) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    text = "look at <b>this</b>"
    with serving(open_collection([run])) as server:
        page.open(f"{server.url}#view=rollouts&run=demo&at=train/1/0")
        page.wait("document.querySelector('#note')")
        page.run("document.querySelector('#note summary').click()")
        page.run("document.getElementById('note-text').focus()")
        page.write(text)
        page.press("j")
        page.run("document.getElementById('note-save').click()")
        page.wait("document.getElementById('note-told').textContent.startsWith('Kept')")
        page.wait("!document.querySelector('.rows [aria-current] .noted').hidden")
        assert (
            page.run("[...document.querySelectorAll('.noted')].filter((m) => !m.hidden).length")
            == 1
        )
        page.open(f"{server.url}#view=overview")
        page.wait("document.querySelector('#notes a')")
        assert text in page.text("#notes")
        page.run("document.querySelector('#notes a').click()")
        page.wait("document.getElementById('note-text')?.value")
        assert page.run("document.getElementById('note-text').value") == f"{text}j"
    bundle = write_bundle(open_collection([run]), tmp_path / "out").page.as_uri()
    page.open(f"{bundle}#view=rollouts&run=demo&at=train/1/0")
    page.wait("document.querySelector('#note-text')")
    assert page.text("#note-text") == f"{text}j"
    assert page.run("document.querySelector('#note button, #note textarea')") is None
    page.open(f"{bundle}#view=rollouts&run=demo&at=train/1/1")
    page.wait("document.getElementById('copy')")
    assert page.run("document.getElementById('note')") is None


def test_a_group_is_shown_side_by_side_with_what_differs(page: Browser, url: str) -> None:
    page.open(f"{url}#view=rollouts&run=one&at=train/1/0")
    page.wait("document.getElementById('side-by-side')")
    page.run("document.getElementById('side-by-side').click()")
    page.wait("document.getElementById('diversity')")
    facts = dict(zip(page.texts("#diversity dt"), page.texts("#diversity dd"), strict=True))
    assert facts["samples"] == "4"
    assert facts["different programs"] == "2 of 4"
    assert facts["lines that two of them share"] == "0.0 %"
    panes = page.texts(".columns > section")
    assert len(panes) == 2
    assert "accepted" in panes[0]
    assert "\u2212 a, b = map" in panes[1]
    assert "+ print(int(input()) + 1)" in panes[1]
    step = page.text(".bar-of-tools .soft")
    page.run("document.getElementById('group-after').click()")
    page.wait("document.querySelector('#group-before')")
    assert step == "training, step 1"
    page.press("g")
    page.wait("document.getElementById('copy')")
    page.press("g")
    page.wait("document.getElementById('diversity')")


TASKS: dict[str, list[tuple[str, str]]] = {
    "where the reward jumped, and why": [
        ("#story a >> text=rollouts of these steps", ".rows a"),
        (".rows a", "#tests"),
    ],
    "what the mask took": [
        ("#tab-rollouts", ".offers a"),
        (".offers a >> text=masked", ".chip"),
        (".rows a", "#masked"),
    ],
    "two programs of a group that differ": [
        ("#tab-rollouts", ".offers a"),
        (".offers a >> text=a group whose answers differ", ".diff"),
    ],
    "what differs in the configs, by accuracy": [
        ("#tab-runs", ".sort"),
        ("#sort-after", "[aria-sort=ascending]"),
    ],
    "the program that is slowest to judge, to run it": [
        ("#tab-rollouts", ".offers a"),
        (".offers a >> text=the slowest", ".chip"),
        (".rows a", "#copy-program"),
        ("#copy-program", "#copy-program"),
    ],
}
"""What a reader wants from the first page on: each click, and what is then there to read."""


@pytest.mark.parametrize("task", TASKS)
def test_a_task_takes_these_clicks(page: Browser, url: str, task: str) -> None:
    page.open(url)
    page.wait("document.querySelector('#story')")
    for target, shown in TASKS[task]:
        page.page.locator(target).first.click()
        page.page.locator(shown).first.wait_for()
    assert page.run("document.getElementById('alarm').hidden")


def test_words_that_differ_in_a_replaced_line_stand_out(page: Browser, url: str) -> None:
    page.open(url)
    rows = page.run(
        "[...viewer.code.drawDiff('a = 1\\nb = 2\\n', 'a = 1\\nb = 3\\n', 'x').children]"
        ".map((row) => [row.tagName, row.textContent, row.querySelector('b').textContent])"
    )
    assert rows == [["DEL", "\u2212 b = 2\n", "2"], ["INS", "+ b = 3\n", "3"]]
    told = page.run("viewer.code.drawDiff('same', 'same\\n', 'x').textContent")
    assert told == "The same text."


def test_problems_are_mapped_over_steps_and_lead_to_their_rollouts(page: Browser, url: str) -> None:
    page.open(f"{url}#view=problems&run=one")
    page.wait("document.querySelector('.map td')")
    assert page.texts(".map thead th") == ["Problem", "step 0", "step 4", "step 8"]
    assert page.run("document.querySelectorAll('.map tbody tr').length") == 6
    choose(page, "problems-list", "learnt")
    page.wait("location.hash.includes('list=learnt')")
    page.wait("document.querySelectorAll('.map tbody tr').length < 6")
    page.run("document.querySelector('.map td a').click()")
    page.wait("document.querySelector('.rows a')")
    assert page.text("#found").startswith("4 of")


def test_two_rollouts_are_pinned_and_compared_with_the_keyboard(page: Browser, url: str) -> None:
    page.open(f"{url}#view=rollouts&run=one&order=first&split=train&problem=train/000&step=1")
    page.wait("document.querySelector('.rows a')")
    page.press("j")
    page.wait("document.getElementById('pin')")
    page.press("x")
    page.wait("location.hash.includes('pin=one')")
    page.press("ArrowRight")
    page.wait("location.hash.includes('at=train%2F1%2F1')")
    page.wait("document.getElementById('pin')?.textContent.startsWith('Compare')")
    page.press("x")
    page.wait("document.querySelector('#differences')")
    verdicts = page.texts(".pane .verdict")
    assert verdicts == ["runtime error", "accepted"]
    assert "\u2212 print(int(input()) + 1)" in page.text(".diff")
    assert "+ print(a + b)" in page.text(".diff")
    assert page.run("document.querySelector('#configs')") is None
    choose(page, "b-run", "two")
    page.wait("document.querySelector('#configs')")
    assert "b=two%7Ctrain%2F1%2F1" in page.run("location.hash")
    assert page.text("#configs").endswith("The two configs are the same.")


def test_a_run_that_goes_is_followed_without_a_reload(page: Browser, tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=3, evaluate_every=9, is_finished=False)
    directory = RunDirectory(run)
    later = directory.rollout_file(3).read_bytes()
    rows = directory.metrics.read_text().splitlines(keepends=True)
    directory.rollout_file(3).unlink()
    directory.metrics.write_text("".join(rows[:2]))
    with serving(open_collection([run])) as server:
        page.open(f"{server.url}#view=curves")
        page.wait("document.querySelector('fieldset').textContent.includes('2 steps so far')")
        page.open(f"{server.url}#view=rollouts&run=demo&split=train")
        page.wait("document.getElementById('found').textContent.startsWith('48 of')")
        page.run(
            "new Promise((resolve) => setTimeout(resolve, 2500))"
        )  # It looked once, and saw nothing new.
        directory.rollout_file(3).write_bytes(later)
        directory.metrics.write_text("".join(rows))
        page.wait("document.getElementById('found').textContent.startsWith('72 of')")
        page.press("c")
        page.wait("document.querySelector('fieldset')?.textContent.includes('3 steps so far')")


def test_statements_and_programs_are_drawn(page: Browser, tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    statement = (
        "## Task\nFor $1 \\le n \\le 10^{5}$ print **it**:\n\n- one\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nraw <b>\n```\nPay $5 and $10, \\(\\frac{1}{2}\\)"
        " and $\\unheard{of}$."
    )
    program = "def f(x):  # twice\n    return 'a' * 2\n"
    edit_rollouts(run, 1, lambda row: {**row, "prompt": statement, "program": program})
    with serving(open_collection([run])) as server:
        page.open(f"{server.url}#view=rollouts&run=demo&at=train/1/0")
        page.wait("document.querySelector('.prose')")
    assert page.text(".prose .heading") == "Task"
    assert page.text(".prose .tex mrow").startswith("1≤n≤10")
    assert page.text(".prose msup mn:last-child, .prose msup mrow:last-child") in ("5", "10")
    assert page.run("document.querySelectorAll('.prose mfrac').length") == 1
    assert page.text(".prose strong") == "it"
    assert page.text(".prose li") == "one"
    assert page.texts(".prose td") == ["1", "2"]
    assert page.text(".prose pre") == "raw <b>"
    assert "Pay $5 and $10" in page.text(".prose")
    assert "\\unheard{of}" in page.text(".prose")
    kinds = page.run(
        "[...document.querySelectorAll('#text-program span')].map((s) => [s.className, "
        "s.textContent])"
    )
    assert ["hljs-keyword", "def"] in kinds
    assert ["hljs-comment", "# twice"] in kinds
    assert ["hljs-string", "'a'"] in kinds
    assert page.text("#text-program") == program


LIVE = (
    "![p](http://other.example/p.png) [j](javascript:window.hurt=1) "
    "[d](data:text/html,<script>window.hurt=1</script>) [v](vbscript:x) [f](file:///etc/passwd) "
    "<img src=x onerror=window.hurt=1> <svg onload=window.hurt=1> "
    "$\\href{javascript:window.hurt=1}{x}$ $\\includegraphics{http://other.example/q.png}$ "
    "$\\htmlData{onclick=window.hurt=1}{x}$ $\\def\\a{\\a\\a}\\a$ "
    "[h](https://other.example/ 'onmouseover=window.hurt=1') <http://other.example/a>\n\n"
    "<script>window.hurt=1</script>\n\n```html\n<script>window.hurt=1</script>\n```\n\n"
    "| <b onclick=window.hurt=1>x</b> |\n|:-:|\n| y |\n"
)
"""Markdown and TeX in which everything that could act tries to."""


def test_nothing_in_a_statement_or_a_program_acts(page: Browser, tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    program = "#include <x>\n</span><img src=x onerror=window.hurt=1>'\n"
    edit_rollouts(run, 1, lambda row: {**row, "prompt": LIVE, "program": program})
    with serving(open_collection([run])) as server:
        page.open(f"{server.url}#view=rollouts&run=demo&at=train/1/0")
        page.wait("document.querySelector('.prose') && document.getElementById('copy')")
        page.run(
            "document.querySelectorAll('.prose *, .program *').forEach((one) => one.tagName === 'A'"
            " || one.dispatchEvent(new MouseEvent('click', {bubbles: true})))"
        )
        for address in page.requests:
            assert address.startswith(server.url), address
    assert page.run("window.hurt") is None
    found = "img, script, svg, iframe, object, embed, form, input, [style], [onclick], [onerror]"
    assert page.run(f"document.querySelector('.prose :is({found}), .program :is({found})')") is None
    links = page.run(
        "[...document.querySelectorAll('article .prose a')].map((link) => [link.href, link.rel])"
    )
    rel = "noopener noreferrer nofollow"
    # A picture is a link, which nobody follows by looking.
    names = ("http://other.example/p.png", "https://other.example/", "http://other.example/a")
    assert links == [[name, rel] for name in names]
    assert page.text("#text-program") == program

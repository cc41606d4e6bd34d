import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_run import Recipe, write_run

from microcoder.lab.studies.figures import (
    Chart,
    draw_accuracy,
    draw_diversity,
    draw_length,
    draw_reward,
    draw_seconds,
    draw_shares,
)
from microcoder.lab.studies.history import History, read_history
from microcoder.lab.studies.report import draw_charts

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return read_history(write_run(tmp_path_factory.mktemp("run"), Recipe(num_steps=8, evaluate_every=4)))


@pytest.fixture(scope="module")
def charts(history: History) -> list[Chart]:
    return draw_charts(history)


def test_the_same_run_gives_the_same_bytes_and_no_date(history: History, charts: list[Chart]) -> None:
    assert draw_charts(history) == charts
    assert not re.search(r"<metadata|20\d\d-\d\d-\d\d|matplotlib v", "".join(chart.svg for chart in charts))


def test_every_chart_is_whole_xml_with_a_text_alternative(charts: list[Chart]) -> None:
    for chart in charts:
        root = ElementTree.fromstring(chart.svg)
        assert root.attrib["role"] == "img"
        assert root.findtext(f"{SVG}title") == chart.title
        assert root.findtext(f"{SVG}desc") == chart.description


def test_charts_of_one_page_share_no_id_and_their_references_hold(charts: list[Chart]) -> None:
    page = "".join(chart.svg for chart in charts)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) <= set(ids)


def test_drawing_leaves_matplotlibs_global_state_alone(history: History) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    draw_reward(history.steps)
    assert dict(mpl.rcParams) == before


def test_one_step_with_nothing_known_can_be_drawn(history: History) -> None:
    step = replace(history.steps[0], reward_mean=None, diversity=None, accuracy_by_tier={}, seconds={})
    for chart in (
        draw_accuracy([step], [], []),
        draw_reward([step]),
        draw_length([step], []),
        draw_diversity([step], []),
        draw_shares([step]),
        draw_seconds([step]),
    ):
        ElementTree.fromstring(chart.svg)
    assert "not known" in draw_reward([step]).description


def test_a_long_run_shares_bars_and_stays_small(history: History) -> None:
    steps = [replace(history.steps[0], step=step) for step in range(1, 1001)]
    assert len(draw_seconds(steps).svg) < 250_000


def test_odd_tier_names_are_plain_text(history: History) -> None:
    tier = "$x^{<b>&amp;"
    steps = [replace(step, accuracy_by_tier={tier: 0.5}) for step in history.steps]
    evaluated = [replace(point, accuracy_by_tier={tier: 0.5}) for point in history.evaluations]
    assert tier in replace(history, steps=steps, evaluations=evaluated).tiers
    svg = draw_accuracy(steps, [], [tier]).svg
    ElementTree.fromstring(svg)
    assert "<b>" not in svg


def test_tiers_are_ordered_by_difficulty_then_by_name(tmp_path: Path, history: History) -> None:
    step = replace(history.steps[0], accuracy_by_tier={"hard": 0.1, "zeta": 0.1, "easy": 0.1, "alpha": 0.1})
    assert replace(history, steps=[step], evaluations=[]).tiers == ["easy", "hard", "alpha", "zeta"]

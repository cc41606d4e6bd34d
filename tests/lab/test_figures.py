import re
import xml.etree.ElementTree as ElementTree

import numpy as np

from microcoder.lab.studies.features import LABELS, MetricSeries
from microcoder.lab.studies.figures import Chart, draw_curves

SVG = "{http://www.w3.org/2000/svg}"
TEXT = "$x^{<b>&amp; is higher"


def draw() -> Chart:
    time_E = np.linspace(0, 1, 5)
    seeds = [MetricSeries(time_E, time_E[:, None] * slope) for slope in (0.1, 0.2, 0.4)]
    return draw_curves("name", "accuracy", {TEXT: seeds, "b": seeds[:1]}, reference="b", num_steps=8)


def test_a_figure_is_whole_xml_with_a_text_alternative_and_no_date() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    chart = draw()
    assert dict(mpl.rcParams) == before
    assert draw() == chart
    assert not re.search(r"<metadata|20\d\d-\d\d-\d\d|matplotlib v", chart.svg)
    root = ElementTree.fromstring(chart.svg)
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == chart.title
    assert root.findtext(f"{SVG}desc") == chart.description
    assert chart.title == LABELS["accuracy"]
    assert TEXT in chart.description
    ids = re.findall(r'\bid="([^"]+)"', chart.svg)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', chart.svg)) <= set(ids)

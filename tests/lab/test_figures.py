import re
import xml.etree.ElementTree as ElementTree

from microcoder.lab.studies.effects import Effect
from microcoder.lab.studies.figures import Bar, draw_bars

SVG = "{http://www.w3.org/2000/svg}"
EFFECT = Effect(0.1, -0.2, 0.4, 3, 0, (0.0, 0.1, 0.2))
TEXT = "$x^{<b>&amp; is higher"
BARS = (
    Bar(TEXT, EFFECT),
    Bar("b", EFFECT),
)


def test_a_figure_is_whole_xml_with_a_text_alternative_and_no_date() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    chart = draw_bars("name", BARS, title=TEXT)
    assert dict(mpl.rcParams) == before
    assert draw_bars("name", BARS, title=TEXT) == chart
    assert not re.search(r"<metadata|20\d\d-\d\d-\d\d|matplotlib v", chart.svg)
    root = ElementTree.fromstring(chart.svg)
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == chart.title
    assert root.findtext(f"{SVG}desc") == chart.description
    assert chart.title == TEXT
    assert TEXT in chart.description
    ids = re.findall(r'\bid="([^"]+)"', chart.svg)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', chart.svg)) <= set(ids)

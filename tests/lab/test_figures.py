import re
import xml.etree.ElementTree as ElementTree

from microcoder.lab.studies.figures import draw_probe
from microcoder.train.run.probe import Choice, Probe, ProbePoint

SVG = "{http://www.w3.org/2000/svg}"
ACCURACIES = ((0.8, 0.2), (1.2, None), (1.6, 0.1))
POINTS = tuple(ProbePoint(t, accuracy, t / 2, 20.0, 0.0, 8, 64) for t, accuracy in ACCURACIES)
PROBE = Probe("aa", POINTS, Choice(1.2, ("$x^{<b>&amp; is the lowest",)), 0.5, 0.9, 0.8)


def test_a_figure_is_whole_xml_with_a_text_alternative_and_no_date() -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    chart = draw_probe(PROBE)
    assert dict(mpl.rcParams) == before
    assert draw_probe(PROBE) == chart
    assert not re.search(r"<metadata|20\d\d-\d\d-\d\d|matplotlib v", chart.svg)
    root = ElementTree.fromstring(chart.svg)
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == chart.title
    assert root.findtext(f"{SVG}desc") == chart.description
    assert "$x^{<b>&amp; is the lowest" in chart.description
    ids = re.findall(r'\bid="([^"]+)"', chart.svg)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', chart.svg)) <= set(ids)

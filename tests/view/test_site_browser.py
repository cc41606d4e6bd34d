"""The site in a real browser, as `make docs` builds it: no page is wider than a telephone, and axe finds nothing."""

import os
import subprocess
from pathlib import Path

import pytest
from browsers import Browser, axe_violations

ROOT = Path(__file__).parents[2]
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
pytestmark = [pytest.mark.long, pytest.mark.skipif(not MKDOCS.exists(), reason="no .venv-docs here: make docs")]
# They hold what pages are made of: cards, tables, blocks, equations, links in text, admonitions, generated keys.
STILL = "* { transition: none !important }"
LOOKED_AT = (
    "index.html",
    "algorithm.html",
    "integrations.html",
    "troubleshooting.html",
    "insights/006_truncation_mask.html",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    here = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([MKDOCS, "build", "--quiet", "-d", folder], cwd=ROOT, env=here, check=True)
    return folder


def test_no_page_is_wider_than_a_telephone(page: Browser, site: Path) -> None:
    page.look(width=390)
    wide = {}
    for path in sorted(site.rglob("*.html")):
        page.open(path.as_uri())
        width = page.run("document.documentElement.scrollWidth")
        if width > 390 and path.name != "404.html":  # which is served, and finds its style at the root
            wide[path.name] = width
    page.faults.clear()
    assert wide == {}


@pytest.mark.parametrize(("width", "scheme"), [(390, "default"), (1280, "slate")])
def test_axe_finds_nothing_and_links_are_underlined(page: Browser, site: Path, width: int, scheme: str) -> None:
    page.look(width=width)
    for name in LOOKED_AT:
        page.open((site / name).as_uri())
        page.run(f"document.body.setAttribute('data-md-color-scheme', '{scheme}')")
        page.run(f"document.head.insertAdjacentHTML('beforeend', '<style>{STILL}</style>')")
        lines = "[...document.querySelectorAll('.md-typeset p a')].map((a) => getComputedStyle(a).textDecorationLine)"
        assert set(page.run(lines)) <= {"underline"}
        assert axe_violations(page) == [], name


@pytest.mark.parametrize("word", ["FAQ", "troubleshooting"])
def test_its_search_finds_what_people_call_trouble(page: Browser, site: Path, word: str) -> None:
    page.look(width=1280)
    page.open((site / "index.html").as_uri())
    page.run("document.querySelector('.md-search__input').focus()")
    page.write(word)
    page.wait("document.querySelector('.md-search-result__link')")
    links = page.run("[...document.querySelectorAll('.md-search-result__link')].slice(0, 3).map((link) => link.href)")
    assert any("troubleshooting.html" in link for link in links), links

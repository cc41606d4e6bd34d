"""Once through the page in Firefox, with the keyboard."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from firefox import BROWSER, Firefox

from microcoder.view import ViewerServer, open_collection


@pytest.mark.skipif(BROWSER is None, reason="no firefox or firefox-esr is installed here")
def test_every_view_works_in_firefox(shelf: Path, tmp_path: Path) -> None:
    collection = open_collection([shelf / "one", shelf / "two"], problem_files=[shelf / "problems.jsonl"])
    with ViewerServer(collection, port=0) as server, Firefox(tmp_path / "profile") as page:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.open(server.url)
        assert page.run("document.querySelectorAll('.plot svg path').length") > 10
        page.press("r")
        page.wait("document.querySelector('.rows a')")
        page.press("/")
        page.wait("document.activeElement.id === 'filter-text'")
        for letter in "map(int":
            page.press(letter)
        page.wait("document.querySelector('.quote mark')?.textContent === 'map(int'")
        page.press("Escape")
        page.press("j")
        page.wait("document.querySelector('.sample .prose') && document.getElementById('text-program')")
        page.wait("[...(CSS.highlights.get('found') ?? [])].length > 0")
        page.press("x")
        page.wait("location.hash.includes('pin=')")
        page.press("j")
        page.wait("document.getElementById('pin')?.textContent.startsWith('Compare')")
        page.press("x")
        page.wait("document.querySelector('#differences')")
        page.press("p")
        page.wait("document.querySelector('.map td')")
        page.look(width=500)
        for view in ("curves", "rollouts", "problems", "compare"):
            page.open(f"{server.url}#view={view}")
            page.wait("document.querySelector('.plot, .rows a, .map td, #configs')")
            assert page.run("document.documentElement.scrollWidth <= innerWidth"), view
        assert page.run("document.getElementById('alarm').hidden")
        server.shutdown()

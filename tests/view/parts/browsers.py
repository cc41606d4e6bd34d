"""A real headless browser: Chromium as it is installed here, driven by Playwright."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, sync_playwright

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"
"""There after `npm install --no-save axe-core`;
without it pages are not asked for what readers of screens meet.
"""


class Browser:
    """One page, and what it said since it was opened."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.devtools = page.context.new_cdp_session(page)
        self.faults: list[str] = []
        """Exceptions and errors."""
        self.requests: list[str] = []
        """Addresses that were asked for."""
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._note)
        page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"{message.text} {message.location['url']}")

    def open(self, url: str) -> None:
        """Load a page from nothing and wait until its scripts have run."""
        self.page.goto("about:blank")
        self.faults.clear()
        self.requests.clear()
        self.page.goto(url)
        self.wait("!document.getElementById('waiting')")

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited."""
        return self.page.evaluate(f"() => ({expression})")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression holds."""
        self.page.wait_for_function(f"() => Boolean({condition})")

    def press(self, key: str) -> None:
        """Press and let go of a key, as a keyboard does."""
        self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        """Type into what has the focus."""
        self.page.keyboard.insert_text(text)

    def text(self, selector: str) -> str:
        """Return the text of an element; empty where there is none."""
        return self.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements of a kind."""
        return self.run(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)"
        )

    def look(self, *, width: int, height: int = 900, theme: str = "light") -> None:
        """Set the window and the colours that the reader prefers."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.devtools.send("Emulation.setDeviceMetricsOverride", size)
        self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Give a page of a Chromium that ends with the context."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False)
        yield Browser(browser.new_page())
        browser.close()


def axe_violations(browser: Browser) -> list[str]:
    """Return what axe finds wrong with the open page, by rule;
    nothing where axe is not installed.
    """
    if not AXE.exists():
        return []
    browser.page.evaluate(AXE.read_text(encoding="utf-8"))
    options = (
        "{preload: false, resultTypes: ['violations'], rules: {'target-size': {enabled: true}}}"
    )
    one = "({id, nodes}) => `${id}: ${nodes.map(({html}) => html.slice(0, 150)).join(' ')}`"
    return browser.run(
        f"axe.run(document, {options}).then(({{violations}}) => violations.map({one}))"
    )

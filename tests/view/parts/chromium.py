"""A real headless Chromium, driven over a pipe by its DevTools protocol: no package needed."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = (
    "headless=new no-sandbox disable-gpu disable-dev-shm-usage no-first-run hide-scrollbars disable-extensions "
    "disable-background-networking disable-component-update disable-sync disable-quic remote-debugging-pipe"
)
_PATIENCE_SECONDS = 60


AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"
"""There after `npm install --no-save axe-core`; without it pages are not asked for what readers of screens meet."""


class BrowserError(Exception):
    """What the page threw, or the browser refused."""


class Chromium:
    """One page of one browser."""

    def __init__(self, profile: Path) -> None:
        assert BROWSER is not None
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()

        def take_pipes() -> None:
            # The browser reads from 3 and writes to 4; both ends are moved out of the way first.
            source, target = os.dup(commands), os.dup(answers)
            os.dup2(source, 3)
            os.dup2(target, 4)

        arguments = [BROWSER, *(f"--{flag}" for flag in _FLAGS.split()), f"--user-data-dir={profile}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(arguments, preexec_fn=take_pipes, close_fds=False, stdout=quiet, stderr=quiet)
        os.close(commands)
        os.close(answers)
        self._buffer, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        """What the browser told without being asked: exceptions, console lines, policy violations."""
        target = self._first_page()
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(BrowserError, OSError):
            self._session = ""
            self.ask("Browser.close")
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        _write_all(self._write, json.dumps(message).encode() + b"\0")
        for answer in self._messages():
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)
        raise BrowserError("the browser ended")

    def open(self, url: str) -> None:
        """Load a page from nothing and wait until its scripts have run."""
        self.ask("Page.navigate", url="about:blank")
        self.events.clear()
        self.ask("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && !document.getElementById('waiting')")

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; a promise is awaited."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, condition: str, *, seconds: float = 30) -> None:
        """Wait until a JavaScript expression holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(BrowserError):
                if self.run(f"Boolean({condition})"):
                    return
            time.sleep(0.02)
        raise TimeoutError(f"{condition} did not come true; the page reads: {self.text('body')[:2000]}")

    def press(self, key: str) -> None:
        """Press and let go of a key, as a keyboard does."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def write(self, text: str) -> None:
        """Type into what has the focus."""
        self.ask("Input.insertText", text=text)

    def text(self, selector: str) -> str:
        """Return the text of an element; empty where there is none."""
        return self.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''")

    def count(self, selector: str) -> int:
        """Return how many elements there are."""
        return self.run(f"document.querySelectorAll({json.dumps(selector)}).length")

    def look(self, *, width: int, height: int = 900, theme: str = "light") -> None:
        """Set the window and the colours that the reader prefers."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def faults(self) -> list[str]:
        """Return exceptions and errors of the page since it was opened."""
        self.run("0")
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"])[:600])
            elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"] + " " + parameters["entry"].get("url", ""))
        return found

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for since it was opened."""
        self.run("0")
        sent = (event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [request["request"]["url"] for request in sent]

    def _first_page(self) -> str:
        for _ in range(200):
            targets = self.ask("Target.getTargets")["targetInfos"]
            pages = [target["targetId"] for target in targets if target["type"] == "page"]
            if pages:
                return pages[0]
            time.sleep(0.05)
        raise BrowserError("the browser opened no page")

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            message, zero, rest = self._buffer.partition(b"\0")
            if zero:
                self._buffer = rest
                yield json.loads(message)
                continue
            if not select.select([self._read], [], [], _PATIENCE_SECONDS)[0]:
                raise BrowserError(f"the browser said nothing for {_PATIENCE_SECONDS} s")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                return
            self._buffer += chunk


def axe_violations(page: Chromium) -> list[str]:
    """Return what axe finds wrong with the open page, by rule; nothing where axe is not installed."""
    if not AXE.exists():
        return []
    page.run(f"{AXE.read_text(encoding='utf-8')};0")
    options = "{preload: false, resultTypes: ['violations'], rules: {'target-size': {enabled: true}}}"
    one = "({id, nodes}) => `${id}: ${nodes.map(({html}) => html.slice(0, 150)).join(' ')}`"
    return page.run(f"axe.run(document, {options}).then(({{violations}}) => violations.map({one}))")


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]

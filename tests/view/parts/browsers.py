"""Real headless browsers, driven without a package: Chromium over a pipe by DevTools, Firefox by its Marionette."""

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = (
    "headless=new no-sandbox disable-gpu disable-dev-shm-usage no-first-run hide-scrollbars disable-extensions "
    "disable-background-networking disable-component-update disable-sync disable-quic remote-debugging-pipe"
)
_PATIENCE_SECONDS = 60


AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"
"""There after `npm install --no-save axe-core`; without it pages are not asked for what readers of screens meet."""


class BrowserError(Exception):
    """What the page threw, or the browser refused."""


class Page:
    """One page of one browser."""

    def __enter__(self) -> Self:
        return self

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        raise NotImplementedError

    def wait(self, condition: str, *, seconds: float = 30) -> None:
        """Wait until a JavaScript expression holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(BrowserError):
                if self.run(f"Boolean({condition})"):
                    return
            time.sleep(0.02)
        raise TimeoutError(
            f"{condition} did not come true; the page reads: {self.run('document.body.innerText')[:2000]}"
        )


class Chromium(Page):
    """By DevTools."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()

        def take_pipes() -> None:
            # The browser reads from 3 and writes to 4; both ends are moved out of the way first.
            source, target = os.dup(commands), os.dup(answers)
            os.dup2(source, 3)
            os.dup2(target, 4)

        arguments = [CHROMIUM, *(f"--{flag}" for flag in _FLAGS.split()), f"--user-data-dir={profile}", "about:blank"]
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

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements of a kind."""
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")

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


FIREFOX = next(filter(None, map(shutil.which, ("firefox", "firefox-esr"))), None)
_PREFERENCES = {
    "marionette.port": 0,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
}
_KEYS = {"ArrowRight": "\ue014", "Escape": "\ue00c", "Enter": "\ue007"}


class Firefox(Page):
    """By Marionette: JSON over a local socket."""

    def __init__(self, profile: Path) -> None:
        assert FIREFOX is not None
        profile.mkdir(parents=True, exist_ok=True)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(lines))
        command = [FIREFOX, "--headless", "--no-remote", "--marionette", "--profile", str(profile)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket = self._connect(profile / "MarionetteActivePort")
        self._buffer, self._number = b"", 0
        self._receive()
        self.ask("WebDriver:NewSession")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.ask("Marionette:Quit", flags=["eForceQuit"])
            self._process.wait(timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._socket.close()

    def ask(self, command: str, **parameters: Any) -> Any:
        """Send a command and return its result."""
        self._number += 1
        body = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(f"{len(body)}:".encode() + body)
        _, _, error, result = self._receive()
        if error:
            raise BrowserError(f"{command}: {error['message']}")
        return result

    def open(self, url: str) -> None:
        """Load a page from nothing and wait until its scripts have run."""
        self.ask("WebDriver:Navigate", url="about:blank")
        self.ask("WebDriver:Navigate", url=url)
        self.wait("!document.getElementById('waiting')")

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression on the page's document."""
        return self.ask("WebDriver:ExecuteScript", script=f"return {expression};", args=[])["value"]

    def press(self, key: str) -> None:
        """Press and let go of a key, as a keyboard does."""
        value = _KEYS.get(key, key)
        actions = [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.ask("WebDriver:PerformActions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def look(self, *, width: int, height: int = 900) -> None:
        """Set the window's size."""
        self.ask("WebDriver:SetWindowRect", width=width, height=height)

    def _connect(self, file: Path) -> socket.socket:
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            if file.exists() and (port := file.read_text().strip()):
                return socket.create_connection(("127.0.0.1", int(port)), timeout=_PATIENCE_SECONDS)
            time.sleep(0.1)
        self._process.kill()
        raise BrowserError("Firefox did not start")

    def _receive(self) -> Any:
        while b":" not in self._buffer:
            self._buffer += self._take()
        size, _, rest = self._buffer.partition(b":")
        while len(rest) < int(size):
            rest += self._take()
        self._buffer = rest[int(size) :]
        return json.loads(rest[: int(size)])

    def _take(self) -> bytes:
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionError("Firefox has ended")
        return data

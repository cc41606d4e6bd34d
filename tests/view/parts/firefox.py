"""A real headless Firefox, driven by its own Marionette protocol: JSON over a local socket, no package needed."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

BROWSER = next(filter(None, map(shutil.which, ("firefox", "firefox-esr"))), None)
_PATIENCE_SECONDS = 60
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


class Firefox:
    """One page of one browser."""

    def __init__(self, profile: Path) -> None:
        assert BROWSER is not None
        profile.mkdir(parents=True, exist_ok=True)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(lines))
        command = [BROWSER, "--headless", "--no-remote", "--marionette", "--profile", str(profile)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket = self._connect(profile / "MarionetteActivePort")
        self._buffer, self._number = b"", 0
        self._receive()
        self.ask("WebDriver:NewSession")

    def __enter__(self) -> Self:
        return self

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
            raise RuntimeError(f"{command}: {error['message']}")
        return result

    def open(self, url: str) -> None:
        """Load a page from nothing and wait until its scripts have run."""
        self.ask("WebDriver:Navigate", url="about:blank")
        self.ask("WebDriver:Navigate", url=url)
        self.wait("!document.getElementById('waiting')")

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression on the page's document."""
        return self.ask("WebDriver:ExecuteScript", script=f"return {expression};", args=[])["value"]

    def wait(self, condition: str, *, seconds: float = 30) -> None:
        """Wait until a JavaScript expression holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(f"Boolean({condition})"):
                return
            time.sleep(0.05)
        raise TimeoutError(
            f"{condition} did not come true; the page reads: {self.run('document.body.innerText')[:2000]}"
        )

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
        raise RuntimeError("Firefox did not start")

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

"""Runs a judge under test in a disposable process: reads a JSON line for each case, and writes one with the answer.

Standard library only, so that it runs under any interpreter that has a judge's packages:

    python worker.py '{"judge": "livecodebench", "path": "CHECKOUT", ...}'
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import time
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PATIENCE_SECONDS = 0.3
"""Time that a judge has to end a program's processes after its verdict."""


def main() -> None:
    """Start the judge that the argument (JSON) names, and answer cases until stdin ends."""
    settings = json.loads(sys.argv[1])
    # Files of this package are no modules here: a judge's own `report` or `cases` must be found.
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    requests, answers = os.fdopen(os.dup(0)), os.dup(1)
    nothing, said = os.open(os.devnull, os.O_RDONLY), os.open(settings["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number, file in ((0, nothing), (1, said), (2, said)):
        os.dup2(file, number)
    problem = "not asked for"
    if settings["contain"]:
        _load("kernel", settings["kernel"])
        problem = _load("containment", f"{_HERE}/containment.py").contain(settings["folder"], settings["keep"])
    ask, about = _load("judges", f"{_HERE}/judges.py").make_judge(settings)
    _send(answers, {"token": settings["token"], "containment": problem, "about": about})
    for line in requests:
        _send(answers, {"token": settings["token"], **_answer(ask, json.loads(line))})


def _answer(ask: Any, case: dict[str, Any]) -> dict[str, Any]:
    processes, files = _orphans(), _files()
    started = time.monotonic()
    accepted, error = None, ""
    try:
        accepted = ask(case)
    except (Exception, SystemExit, KeyboardInterrupt) as raised:
        error = f"{type(raised).__name__}: {raised}"[:300]
    seconds = time.monotonic() - started
    left = sorted(_orphans() - processes)
    if left:
        time.sleep(_PATIENCE_SECONDS)
        left = sorted(_orphans() - processes)
    remains = [f"process {name}" for _, name in left] + sorted(_files() - files)
    accepted = None if accepted is None else bool(accepted)
    return {"id": case["id"], "accepted": accepted, "error": error, "left": remains, "seconds": seconds}


def _send(channel: int, message: dict[str, Any]) -> None:
    os.write(channel, b"\n" + json.dumps(message).encode() + b"\n")


def _orphans() -> set[tuple[int, str]]:
    """Return (pid, name) of the processes without a parent, which no judge can still manage."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            head, _, rest = file.read().rpartition(")")
            state, parent, *_ = rest.split()
            if parent == "1" and int(pid) > 2 and state != "Z":
                found.add((int(pid), head.partition("(")[2]))
    return found


def _files() -> set[str]:
    folders = filter(os.path.isdir, ("/tmp", "/var/tmp", "/dev/shm"))
    return {os.path.join(folder, name) for folder in folders for name in os.listdir(folder)}


def _load(name: str, path: str) -> ModuleType:
    """Load a file as `yardstick_NAME`, by which it is imported here, and by adapters what they share."""
    location = importlib.util.spec_from_file_location(f"yardstick_{name}", path)
    assert location is not None
    assert location.loader is not None
    module = sys.modules[location.name] = importlib.util.module_from_spec(location)
    location.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()

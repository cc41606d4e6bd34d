"""What the service does under load and what HTTP costs:
`python benchmarks/serving.py [load|overhead]`.

`load` starts `microcoder serve` and has clients ask it without a pause, with programs whose
verdicts are known; one JSON object every few seconds and one at the end:

    python benchmarks/serving.py load --clients 200 --seconds 120 --kill-every 5

`wrong`: answers that say something else about a program; `lost`: requests that got no answer;
`refused`: answers 429, which are sent again after the wait they state; `memory_mib`: what the
service and its sandboxes hold (proportional set size). With `--kill-every` a process of a sandbox
is killed that often.

`overhead` judges batches of 64 programs in this process and over HTTP in turn, with as many
workers, and prints the median of each and the ratio:

    python benchmarks/serving.py overhead --rounds 15
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
from evaluator_workloads import SOURCES, Kind, build_squares

from microcoder.judge import Judge
from microcoder.judge.core.types import Program, Verdict
from microcoder.judge.fleet.http import JudgeClient

BATCH_SIZE = 64
REPORT_SECONDS = 10.0


@contextmanager
def serving(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start the service on a free port; give its address and process."""
    command = [sys.executable, "-m", "microcoder", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://[\d.]+:\d+", line)
    if found is None:
        raise SystemExit(f"the service did not start: {line}{process.stderr.read()}")
    try:
        yield found[0], process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def family_of(pid: int) -> list[psutil.Process]:
    """Return a process and those that it, and they, have started."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def measure_memory_mib(pid: int) -> float:
    """Return what a service and its sandboxes hold, proportional set size."""
    total = 0
    for process in family_of(pid):
        with suppress(psutil.Error):
            total += process.memory_full_info().pss
    return round(total / 2**20, 1)


@dataclass
class Tally:
    """What the clients saw."""

    answers: int = 0
    wrong: int = 0
    lost: int = 0
    refused: int = 0
    faults: int = 0
    kills: int = 0
    seconds: list[float] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, what: object) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        self.notes[f"{kind}: {what}"[:200]] += 1


SAID = {
    "right": "accepted",
    "wrong": "wrong_answer",
    "crashing": "runtime_error",
    "endless": "time_limit",
}
SHARES: tuple[Kind, ...] = ("right",) * 12 + ("wrong",) * 5 + ("crashing",) * 2 + ("endless",)
SQUARES = build_squares(10, 0.2)
SENT = SQUARES.model_copy(update={"tests": SQUARES.tests[:4]})
JUDGED = SENT.model_dump(mode="json", include={"id", "tests", "time_limit_seconds"})


async def ask_without_pause(url: str, number: int, until: float, tally: Tally) -> None:
    chance = random.Random(number)
    # A pool of its own for each: one of httpx's for 200 leaves most of them waiting for it.
    async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False, verify=False) as http:
        for count in itertools.count():
            if time.monotonic() >= until:
                break
            kind = chance.choice(SHARES)
            program = {"problem": 0, "code": f"{SOURCES[kind]}# {number} {count}\n"}
            await ask(http, kind, {"problems": [JUDGED], "programs": [program]}, chance, tally)


async def ask(
    http: httpx.AsyncClient, kind: Kind, message: Any, chance: random.Random, tally: Tally
) -> None:
    started = time.monotonic()
    try:
        while (answer := await http.post("/v1/judge", json=message)).status_code == 429:
            tally.refused += 1
            await asyncio.sleep(float(answer.headers["Retry-After"]) * chance.uniform(0.5, 1.5))
    except httpx.HTTPError as error:
        tally.note("lost", f"{type(error).__name__}: {error}")
        return
    if answer.status_code != 200:
        tally.note("lost", f"{answer.status_code} {answer.text[:100]}")
        return
    (verdict,) = answer.json()["verdicts"]
    tally.answers += 1
    tally.seconds.append(time.monotonic() - started)
    if verdict["outcome"] == "sandbox_fault":
        tally.note("faults", kind)
    elif verdict["outcome"] != SAID[kind]:
        tally.note("wrong", f"{kind} {answer.text[:300]}")


async def watch(pid: int, tally: Tally, started: float, memory: list[float]) -> None:
    while True:
        await asyncio.sleep(REPORT_SECONDS)
        memory.append(measure_memory_mib(pid))
        row = {
            "seconds": round(time.monotonic() - started),
            "answers": tally.answers,
            "memory_mib": memory[-1],
        }
        print(json.dumps(row), flush=True)


async def kill_now_and_then(pid: int, every: float, tally: Tally) -> None:
    while True:
        await asyncio.sleep(every)
        if victims := family_of(pid)[1:]:
            with suppress(psutil.NoSuchProcess):
                random.choice(victims).kill()
                tally.kills += 1


async def load(
    url: str, pid: int, *, clients: int, seconds: float, kill_every: float
) -> dict[str, Any]:
    tally = Tally()
    memory = []
    started = time.monotonic()
    beside = [asyncio.ensure_future(watch(pid, tally, started, memory))]
    if kill_every:
        beside.append(asyncio.ensure_future(kill_now_and_then(pid, kill_every, tally)))
    await asyncio.gather(
        *(ask_without_pause(url, n, started + seconds, tally) for n in range(clients))
    )
    for task in beside:
        task.cancel()
    memory.append(measure_memory_mib(pid))
    is_ready = httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
    wall = time.monotonic() - started
    return {
        "clients": clients,
        "seconds": round(wall, 1),
        "answers": tally.answers,
        "answers_per_second": round(tally.answers / wall, 1),
        "wrong": tally.wrong,
        "lost": tally.lost,
        "faults": tally.faults,
        "refused": tally.refused,
        "kills": tally.kills,
        "median_seconds": round(statistics.median(tally.seconds), 3),
        "slowest_seconds": round(max(tally.seconds), 3),
        "memory_mib": [memory[0], memory[-1]],
        "ready_at_the_end": is_ready,
        "notes": dict(tally.notes.most_common(5)),
    }


def measure_overhead(url: str, *, workers: int, rounds: int) -> dict[str, Any]:
    problem = build_squares(10, 5.0)
    seconds: dict[str, list[float]] = {"in_process": [], "http": []}
    with Judge(workers=workers) as judge, JudgeClient(url) as client:
        for number in range(rounds + 2):
            for name, judging in (("in_process", judge), ("http", client)):
                sources = []
                for index in range(BATCH_SIZE):
                    sources.append(f"{SOURCES['right']}# {name} {number} {index}\n")
                started = time.perf_counter()
                verdicts: list[Verdict] = judging.judge(
                    [Program(source) for source in sources], [problem] * BATCH_SIZE
                )
                if number >= 2:
                    seconds[name].append(time.perf_counter() - started)
                for verdict in verdicts:
                    assert verdict.is_accepted
    middle = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "programs": BATCH_SIZE,
        "workers": workers,
        "rounds": rounds,
        **{f"{name}_seconds": round(value, 4) for name, value in middle.items()},
        **{f"{name}_best_seconds": round(min(values), 4) for name, values in seconds.items()},
        "overhead": round(middle["http"] / middle["in_process"] - 1, 3),
        "overhead_of_best": round(min(seconds["http"]) / min(seconds["in_process"]) - 1, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["load", "overhead"])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument(
        "--kill-every",
        type=float,
        default=0,
        help="seconds between kills of a sandbox; 0: none",
    )
    parser.add_argument(
        "--max-queued",
        type=int,
        default=1024,
        help="what the service takes at most",
    )
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    options = [
        "--workers",
        str(given.workers),
        "--max-queued",
        str(given.max_queued),
        "--no-self-test",
    ]
    with serving(*options) as (url, process):
        if given.what == "load":
            run = load(
                url,
                process.pid,
                clients=given.clients,
                seconds=given.seconds,
                kill_every=given.kill_every,
            )
            print(json.dumps(asyncio.run(run)))
        else:
            print(json.dumps(measure_overhead(url, workers=given.workers, rounds=given.rounds)))


if __name__ == "__main__":
    main()

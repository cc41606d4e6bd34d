"""Small real steps for the engine's tests; in a module of their own,
so that worker processes can import them.
"""

import os
import signal
import time
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import Field

from microcoder.data import Candidate, Rejection
from microcoder.data.pipeline.steps import Barrier, BarrierStep, InputShard, MapStep, Row
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError

ROWS_PER_SHARD = 5


class Settings(Config):
    """Of a step here."""

    modulus: int = 3


def shards(count: int) -> list[InputShard]:
    return [InputShard(n, 0, str(n), f"digest {n}", ROWS_PER_SHARD) for n in range(count)]


def collect_step() -> MapStep:
    return MapStep("collect", "collect", Settings(), open_collect, (__name__,))


def step(name: str, modulus: int = 3, *, called: str = "", **more: Any) -> MapStep:
    """Return the step that `open_<name>` opens."""
    return MapStep(
        called or name,
        "filter",
        Settings(modulus=modulus),
        globals()[f"open_{name}"],
        (__name__,),
        **more,
    )


def barrier_step() -> BarrierStep:
    return BarrierStep("unique", "filter", Settings(), Unique, (__name__,))


def open_collect(settings: Settings, opened: ExitStack) -> Any:
    def work(place: str) -> Iterator[Row]:
        for number in range(int(place) * ROWS_PER_SHARD, (int(place) + 1) * ROWS_PER_SHARD):
            yield Candidate(
                id=f"n/{number}",
                dataset="n",
                title=f"title {number % 7}",
                statement=str(number),
            )

    return work


def open_thin(settings: Settings, opened: ExitStack) -> Any:
    def work(candidates: Sequence[Candidate]) -> Iterator[Row]:
        for candidate in candidates:
            if int(candidate.statement) % settings.modulus == 0:
                yield Rejection(
                    id=candidate.id,
                    dataset="n",
                    stage="filter",
                    reason="divisible",
                    candidate=candidate,
                )
            else:
                yield candidate.change("filter", "double", statement=candidate.statement * 2)

    return work


class AloneSettings(Config):
    folder: Path = Field(exclude=True)
    num_processes: int = Field(1, exclude=True)


def alone_step(folder: Path, *, num_processes: int = 1) -> MapStep:
    settings = AloneSettings(folder=folder, num_processes=num_processes)
    return MapStep("alone", "verify", settings, open_alone, (__name__,), runs="alone")


def open_alone(settings: AloneSettings, opened: ExitStack) -> Any:
    """Write down, in a file of each process, which rows it was given;
    begin once so many processes are there.
    """
    (settings.folder / str(os.getpid())).touch()
    while len([*settings.folder.iterdir()]) < settings.num_processes:
        time.sleep(0.05)

    def work(candidates: Sequence[Candidate]) -> Iterator[Row]:
        for candidate in candidates:
            time.sleep(0.2)
            with (settings.folder / str(os.getpid())).open("a") as file:
                file.write(f"{candidate.id}\n")
            yield candidate.change("verify", "alone", statement=candidate.statement + "!")

    return work


def open_lose(settings: Settings, opened: ExitStack) -> Any:
    """Lose the first row."""
    return lambda candidates: iter([*candidates][1:])


def open_refuse(settings: Settings, opened: ExitStack) -> Any:
    """Refuse a row, or, with a modulus of 0, die."""

    def work(candidates: Sequence[Candidate]) -> Iterator[Row]:
        if not settings.modulus:
            # As the kernel does where memory runs out.
            os.kill(os.getpid(), signal.SIGKILL)
        raise DataError(f"{next(iter(candidates)).id} is refused; type something else")

    return work


class Unique(Barrier):
    """Keeps the first row of each title, and hands it the tags of the others."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def look(self, candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
        return [(candidate.id, candidate.title) for candidate in candidates]

    def decide(self, looks: Iterable[tuple[str, str]]) -> None:
        self.counts = Counter(title for _, title in looks)
        self.members: dict[str, list[str]] = {}
        self.titles = dict(looks)
        for name, title in looks:
            self.members.setdefault(title, []).append(name)

    def needs(self, name: str) -> Sequence[str]:
        return self.members[self.titles[name]]

    def apply(self, candidate: Candidate, others: Mapping[str, Candidate]) -> Row:
        first, *rest = self.members[candidate.title]
        if candidate.id != first:
            return Rejection(
                id=candidate.id,
                dataset="n",
                stage="filter",
                reason="duplicate_of",
                detail=first,
            )
        return candidate.change(
            "filter",
            "merge",
            merged=tuple(rest),
            tags=tuple(others[r].statement for r in rest),
        )


def open_hold(settings: Settings, opened: ExitStack) -> Any:
    """Refuse to hold rows that went through."""

    def work(candidates: Collection[Candidate]) -> Iterator[Row]:
        given: list[weakref.ref[Candidate]] = []
        for candidate in candidates:
            given.append(weakref.ref(candidate))
            assert sum(one() is not None for one in given) <= 2
            yield candidate.model_copy(update={"title": "held"})

    return work

"""The judges that `evaluator.py` compares,
each in a process of its own that holds what a trainer holds.

    python evaluator_judges.py livecodebench

reads one request a line (JSON) and answers each with one line. The process has numpy and pandas
imported, the judge's own modules loaded and a first program judged before anything is timed: a peer
that forks from it pays for none of them again. Programs come as a pickle of a `Workload`; reading
and preparing it is not timed either.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import psutil
from evaluator_workloads import Workload, build_small, write_peer_tests

from microcoder.judge import Judge
from microcoder.judge.core.types import Program

HELD = ("numpy", "pandas", "asyncio", "statistics")
"""Imported before any judge: two that a trainer holds,
and two that LiveCodeBench's children would import each.
"""
MOST_SAID_BYTES = 2000
Verdicts = tuple[list[str], list[float]]
"""What became of each program, and after how many seconds it was known."""


class Ours:
    """A `Judge` that lives as long as its options stay the same."""

    module = "microcoder.judge"

    def __init__(self) -> None:
        self._judge: Judge | None = None
        self._options: dict[str, Any] = {}

    def prepare(self, workload: Workload, options: dict[str, Any]) -> Callable[[], Verdicts]:
        """Return what judges the programs; only calling it is timed."""
        chosen: dict[str, Any] = {"time_scale": 1.0, "cache_size": 0, **options}
        if self._judge is None or chosen != self._options:
            if self._judge is not None:
                self._judge.close()
            self._judge, self._options = Judge(**chosen), chosen
            warm = build_small("warm", {"right": 4 * chosen["workers"]}, limit_seconds=60.0).renew(
                "warm"
            )
            self._judge.judge(
                [Program(task.source) for task in warm.tasks], [task.problem for task in warm.tasks]
            )
        judge = self._judge
        programs = [Program(task.source, task.problem.language) for task in workload.tasks]
        problems = [task.problem for task in workload.tasks]

        def work() -> Verdicts:
            landed = [0.0] * len(programs)
            start = time.perf_counter()

            def note(index: int, _: object) -> None:
                landed[index] = time.perf_counter() - start

            verdicts = judge.judge(programs, problems, on_verdict=note)
            return [str(verdict.outcome) for verdict in verdicts], landed

        return work


class LiveCodeBench:
    """Its checker as its runner calls it: a sample a program, one pool of processes."""

    module = "lcb_runner.evaluation.compute_code_generation_metrics"
    NAMES: ClassVar = {
        -1: "time_limit",
        -2: "wrong_answer",
        -3: "time_limit",
        -4: "runtime_error",
        -5: "sandbox_fault",
    }

    def __init__(self) -> None:
        self._metrics: Any = importlib.import_module(self.module)
        self._landed: dict[int, float] = {}
        self._metrics.as_completed = self._note_landing  # pyrefly: ignore[missing-attribute]

    def _note_landing(self, futures: dict[Any, int]) -> Iterator[Any]:
        for future in concurrent.futures.as_completed(futures):
            self._landed[futures[future]] = time.perf_counter()
            yield future

    def prepare(self, workload: Workload, options: dict[str, Any]) -> Callable[[], Verdicts]:
        samples = []
        for task in workload.tasks:
            samples.append({"input_output": json.dumps(write_peer_tests(task.problem))})
        sources = [[task.source] for task in workload.tasks]

        def work() -> Verdicts:
            start = time.perf_counter()
            results, _ = self._metrics.evaluate_generations(
                samples,
                sources,
                num_process_evaluate=options["workers"],
                timeout=int(workload.limit_seconds),
            )
            ended = [results[number][0] for number in range(len(sources))]
            return [self.name_outcome(result) for result in ended], [
                self._landed[number] - start for number in range(len(sources))
            ]

        return work

    @classmethod
    def name_outcome(cls, result: list[Any]) -> str:
        """Return what its result for a program, a figure a test until the first that fails,
        is called here.
        """
        if all(each is True for each in result):
            return "accepted"
        return cls.NAMES.get(result[-1], "wrong_answer")


OURS = "microcoder"
JUDGES: dict[str, type[Ours | LiveCodeBench]] = {OURS: Ours, "livecodebench": LiveCodeBench}


def find_judges() -> list[str]:
    """Return our own judge and the peers that are importable here."""
    installed = []
    for name, kind in JUDGES.items():
        if importlib.util.find_spec(kind.module.partition(".")[0]):
            installed.append(name)
    return installed


class JudgeProcess:
    """A process that holds one judge; use as a context manager."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._said = os.memfd_create("said")
        # A pipe for answers beside stdout: peers print what their programs do.
        read_end, write_end = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), name, str(write_end)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            pass_fds=[write_end],
            text=True,
        )
        os.close(write_end)
        self._answers = os.fdopen(read_end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._answers.close()
        os.close(self._said)

    def run(self, path: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Have the programs of a file judged; return outcomes, landings, wall and CPU seconds."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it ended; why is said below
            print(
                json.dumps({"path": str(path), "options": options}),
                file=self._process.stdin,
                flush=True,
            )
        answer = self._answers.readline()
        if not answer:
            status = self._process.wait()
            size = os.fstat(self._said).st_size
            said = os.pread(self._said, MOST_SAID_BYTES, max(0, size - MOST_SAID_BYTES)).decode(
                errors="replace"
            )
            raise SystemExit(
                f"{self.name} does not run here (exit status {status}); put it right or "
                "use --no-peers:\n"
                f"{said}"
            )
        return json.loads(answer)


def serve(name: str, answers: int) -> None:
    """Answer requests until stdin ends."""
    for module in HELD:
        # A trainer has them; where they are missing here, the table says so (`missing`).
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    judging = JUDGES[name]()
    missing = []
    for module in HELD:
        if module not in sys.modules:
            missing.append(module)
    warm = build_small("warm", {"right": 2}, num_tests=1)
    is_warm = False
    with os.fdopen(answers, "w") as out:
        for line in sys.stdin:
            request = json.loads(line)
            if not is_warm:
                judging.prepare(warm, request["options"])()
                is_warm = True
            workload = pickle.loads(Path(request["path"]).read_bytes())
            work = judging.prepare(workload, request["options"])
            before = read_tree_cpu_seconds()
            start = time.perf_counter()
            outcomes, landed = work()
            used = {"wall": time.perf_counter() - start, "cpu": read_tree_cpu_seconds() - before}
            answer = {**used, "outcomes": outcomes, "landed": landed, "missing": missing}
            print(json.dumps(answer), file=out, flush=True)


def read_tree_cpu_seconds() -> float:
    """Return what this process, those below it and their children that ended have used,
    to 0.01 s for each.
    """
    root = psutil.Process()
    seconds = 0.0
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def look_around() -> dict[str, int]:
    """Return what this process and its descendants hold."""
    own = psutil.Process()
    family = own.children(recursive=True)
    return {
        "own_memory_kib": own.memory_info().rss // 1024,
        "sandbox_memory_kib": sum(_memory_of(process) for process in family) // 1024,
        "descriptors": own.num_fds(),
        "threads": own.num_threads(),
        "processes": len(family),
        "temporary_files": len(os.listdir("/tmp")) + len(os.listdir("/dev/shm")),
    }


def _memory_of(process: psutil.Process) -> int:
    """Return resident bytes; 0 where it ended meanwhile."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.memory_info().rss
    return 0


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))

"""What judging on other machines costs beside judging here: `python benchmarks/judges_on_nodes.py sleep|send|verify`.

`sleep` judges programs that only sleep, in this process, on a Ray node and by a judge service, each with as many
workers, and prints the seconds of each, one after the other, `--rounds` times. Two cores are enough for many workers:

    python benchmarks/judges_on_nodes.py sleep --programs 192 --workers 48 --seconds 2

`send` has a Ray cluster of two nodes judge programs of problems whose tests are large, eight programs a problem, and
prints how often a problem was sent to a node, and how many bytes of tests that is:

    python benchmarks/judges_on_nodes.py send --programs 10000 --mib 8

`verify` runs the verification step of a corpus on Ray clusters of one and of two nodes with a worker each, in turn,
`--rounds` times. A problem's program sleeps `--seconds` on each of 3 tests, and is run three times; so 12 problems at
a second take one node 108 s of sleep. Two nodes are this machine twice: what is measured is that problems spread and
nothing between the nodes holds them up, not what the processors of a second machine add. The clock runs from when all
nodes have their sandboxes. It prints the seconds, the quotient of their medians, and whether all wrote the same:

    python benchmarks/judges_on_nodes.py verify --problems 12 --seconds 1 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster
from serving import serving

from microcoder.data.build.steps import Resources, open_verify
from microcoder.data.formats.candidates import Candidate
from microcoder.data.pipeline.engine import Runner, run_step
from microcoder.data.pipeline.parts import count_reasons, read_kept, write_part
from microcoder.data.pipeline.steps import MapStep, Work
from microcoder.data.verify import VerifySettings
from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.types import Problem, Program, TestCase
from microcoder.judge.fleet.http import JudgeClient
from microcoder.judge.fleet.protocols import BatchJudge
from microcoder.judge.fleet.ray import RayJudge, allow_slow_start

SLEEPER = "import time\ntime.sleep({})\nprint(input())  # {}\n"
ECHO = "print(input()[:{}])  # {}\n"
PROGRAMS_PER_PROBLEM = 8


@contextmanager
def cluster(num_nodes: int, workers: int) -> Iterator[None]:
    """Start a Ray cluster on this machine, whose nodes are said to have so many processors."""
    allow_slow_start(os.environ)
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": workers, "include_dashboard": False})
    for _ in range(num_nodes - 1):
        nodes.add_node(num_cpus=workers)
    ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
    try:
        yield
    finally:
        ray.shutdown()
        nodes.shutdown()


def wait_for_nodes(judge: RayJudge, number: int) -> None:
    while len(judge.nodes) < number:
        time.sleep(0.05)


def measure_sleepers(*, programs: int, workers: int, seconds: float, rounds: int, problems: int) -> dict[str, Any]:
    asked = [Problem(id=f"p{n}", tests=(TestCase(input=f"{n}\n", output=f"{n}\n"),)) for n in range(problems)]
    found: dict[str, list[float]] = {"in_process": [], "ray": [], "http": []}
    with ExitStack() as opened:
        opened.enter_context(cluster(1, workers))
        url, _ = opened.enter_context(serving("--workers", str(workers), "--no-self-test"))
        judges: dict[str, BatchJudge] = {
            "in_process": opened.enter_context(Judge(workers=workers, cache_size=0)),
            "ray": opened.enter_context(RayJudge(cache_size=0)),
            "http": opened.enter_context(JudgeClient(url)),
        }
        # Round 0 starts the sandboxes.
        for number in range(rounds + 1):
            for name, judge in judges.items():
                sleepers = [Program(SLEEPER.format(seconds, f"{name} {number} {n}")) for n in range(programs)]
                started = time.perf_counter()
                verdicts = judge.judge(sleepers, [asked[n % problems] for n in range(programs)])
                assert all(verdict.is_accepted for verdict in verdicts), Counter(v.outcome for v in verdicts)
                if number:
                    found[name].append(round(time.perf_counter() - started, 2))
                    print(json.dumps({"round": number, name: found[name][-1]}), flush=True)
    best = {name: min(values) for name, values in found.items()}
    shares = {f"{name}_to_in_process": round(best[name] / best["in_process"], 3) for name in ("ray", "http")}
    return {"programs": programs, "workers": workers, "sleep_seconds": seconds, "seconds": found, **shares}


def measure_sending(*, programs: int, mib: int) -> dict[str, Any]:
    """Judge programs that look at one line of a large test; each problem is made when it is needed."""
    num_problems = -(-programs // PROGRAMS_PER_PROBLEM)
    at_a_time = 64
    sent = accepted = 0
    with cluster(2, 1), RayJudge(cache_size=0) as judge:
        wait_for_nodes(judge, 2)
        started, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        for first in range(0, num_problems, at_a_time):
            problems = [
                Problem(id=f"p{n}", tests=(TestCase(input=f"{n:08d}\n" + "x" * (mib << 20), output=f"{n:08d}\n"),))
                for n in range(first, min(first + at_a_time, num_problems))
            ]
            # Sample after sample, as a sampler returns them: those of a problem do not stand together.
            pairs = [(Program(ECHO.format(8, n)), one) for n in range(PROGRAMS_PER_PROBLEM) for one in problems]
            pairs = pairs[: programs - accepted]
            verdicts = judge.judge([program for program, _ in pairs], [problem for _, problem in pairs])
            accepted += sum(verdict.is_accepted for verdict in verdicts)
            sent = judge.num_problems_sent
            print(json.dumps({"accepted": accepted, "problems": first + len(problems), "sent": sent}), flush=True)
        spent = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "programs": programs,
        "accepted": accepted,
        "problems": num_problems,
        "nodes": 2,
        "problems_sent": sent,
        "most_if_once_a_node": 2 * num_problems,
        "gib_sent": round(sent * mib / 1024, 2),
        "gib_if_with_every_program": round(programs * mib / 1024, 2),
        "seconds": round(time.perf_counter() - started, 1),
        "driver_cpu_seconds": round(spent.ru_utime + spent.ru_stime - used.ru_utime - used.ru_stime, 1),
    }


def measure_verification(*, problems: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Verify the same problems on one node, then on two, `rounds` times in turn."""
    found: dict[int, list[float]] = {1: [], 2: []}
    written: list[list[bytes]] = []
    for number in range(rounds):
        for num_nodes in found:
            with tempfile.TemporaryDirectory() as folder, cluster(num_nodes, 1):
                taken, parts = verify_on_nodes(Path(folder), problems, seconds, num_nodes)
            found[num_nodes].append(taken)
            written.append(parts)
            print(json.dumps({"round": number + 1, "nodes": num_nodes, "seconds": taken}), flush=True)
    one, two = (statistics.median(found[num_nodes]) for num_nodes in (1, 2))
    return {
        "problems": problems,
        "sleep_seconds": seconds,
        "seconds": found,
        "times_as_fast": round(one / two, 2),
        "same_bytes": all(parts == written[0] for parts in written),
    }


@contextmanager
def open_together(settings: VerifySettings, resources: Resources, num_nodes: int) -> Iterator[Work]:
    """Open the verification of one node; begin once all nodes have theirs, so that the clock can start there."""
    ready = resources.work / "ready"
    ready.mkdir(exist_ok=True)
    with open_verify(settings, resources) as work:
        (ready / str(os.getpid())).touch()
        while len(list(ready.iterdir())) < num_nodes:
            time.sleep(0.01)
        yield work


def verify_on_nodes(folder: Path, problems: int, seconds: float, num_nodes: int) -> tuple[float, list[bytes]]:
    """Verify problems, one a shard; return the seconds from when all nodes are ready, and what was written."""
    code = "import time\ntime.sleep({})\nprint(int(input()) + {})\n"
    resources = Resources(work=folder, judge=JudgeOptions(workers=1))
    step = MapStep(
        "verify",
        "verify",
        VerifySettings(),
        partial(open_together, resources=resources, num_nodes=num_nodes),
        (),
        runs="alone",
    )
    given, paths = [], []
    for number in range(problems):
        row = {
            "id": f"made/{number}",
            "dataset": "made",
            "tests": [{"input": f"{k}\n", "output": f"{k + number + 1}\n"} for k in range(3)],
            "solutions": [{"code": code.format(seconds, number + 1)}],
        }
        given.append(str(folder / f"{number}.parquet"))
        paths.append(str(folder / "verified" / f"{number}.parquet"))
        write_part(Path(given[-1]), [Candidate.model_validate(row)])
    for landed, _ in enumerate(run_step(step, given, paths, Runner("ray", 1)), 1):
        print(json.dumps({"nodes": num_nodes, "verified": landed, "of": problems}), flush=True)
    ended = time.time()
    began = max(one.stat().st_mtime for one in (folder / "ready").iterdir())
    parts = [Path(path) for path in paths]
    assert all(read_kept(part) for part in parts), [count_reasons(part) for part in parts]
    return round(ended - began, 2), [part.read_bytes() for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sleep", "send", "verify"])
    parser.add_argument("--programs", type=int, default=192)
    parser.add_argument("--workers", type=int, default=48)
    parser.add_argument("--seconds", type=float, default=2.0, help="that a program sleeps")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--mib", type=int, default=8, help="size of a problem's test")
    parser.add_argument("--problems", type=int, default=24)
    given = parser.parse_args()
    if given.what == "sleep":
        print(
            json.dumps(
                measure_sleepers(
                    programs=given.programs,
                    workers=given.workers,
                    seconds=given.seconds,
                    rounds=given.rounds,
                    problems=given.problems,
                )
            )
        )
    elif given.what == "send":
        print(json.dumps(measure_sending(programs=given.programs, mib=given.mib)))
    else:
        print(json.dumps(measure_verification(problems=given.problems, seconds=given.seconds, rounds=given.rounds)))


if __name__ == "__main__":
    main()

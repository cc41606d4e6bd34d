"""Documents a second of our pipeline and of datatrove's: read, normalise, exact and MinHash dedup,
write.

    python benchmarks/dataset_pipeline.py [--rows 20000] [--workers 2] \\
        [--datatrove /path/to/venv/bin/python]

Both read the same JSON lines with as many processes, normalise white space and case, drop exact
copies, find near copies by MinHash of 5-grams, and write what is left. CPU seconds are those of all
processes. datatrove runs in a Python of its own, where it is given. Ours is run again with ten
times the rows, to see whether memory grows. One JSON object: ours, with ten times the rows too,
datatrove's, and how many times as fast ours is.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from figures import read_cpu_seconds

from microcoder.data.corpus.barriers import DuplicateBarrier
from microcoder.data.corpus.inputs import list_inputs
from microcoder.data.corpus.settings import SourceSettings
from microcoder.data.corpus.steps import collect_step
from microcoder.data.pipeline.engine import run_steps
from microcoder.data.pipeline.runner import Runner
from microcoder.data.pipeline.steps import BarrierStep, MapStep, Row, Work
from microcoder.judge.core.config import Config

DATATROVE_RUN = """
import resource, sys, time
from multiprocess.forkserver import _forkserver
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster
from datatrove.pipeline.dedup import MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

class Normalise(PipelineStep):
    name = "normalise"
    def run(self, data, rank=0, world_size=1):
        seen = set()
        for document in data:
            document.text = " ".join(document.text.lower().split())
            key = hash(document.text)
            # Exact copies of one task; datatrove's own exact dedup is a pipeline more.
            if key not in seen:
                seen.add(key)
                yield document

if __name__ == "__main__":
    folder, out, workers = sys.argv[1], sys.argv[2], int(sys.argv[3])
    config = MinhashConfig(n_grams=5, num_buckets=25, hashes_per_bucket=5)
    def cpu_seconds():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)
    started, used = time.perf_counter(), cpu_seconds()
    def run(steps, tasks):
        LocalPipelineExecutor(
            pipeline=steps, tasks=tasks, workers=min(workers, tasks), logging_dir=None
        ).run()
    rows = JsonlReader(folder, text_key="question", id_key="problem_id")
    run([rows, Normalise(), JsonlWriter(out + "/clean")], workers)
    clean = lambda: JsonlReader(out + "/clean")
    run([clean(), MinhashDedupSignature(output_folder=out + "/sig", config=config)], workers)
    buckets, remove = out + "/buckets", out + "/remove"
    run([MinhashDedupBuckets(input_folder=out + "/sig", output_folder=buckets, config=config)], 25)
    run([MinhashDedupCluster(input_folder=buckets, output_folder=remove, config=config)], 1)
    run([clean(), MinhashDedupFilter(input_folder=remove), JsonlWriter(out + "/kept")], workers)
    seconds = time.perf_counter() - started
    _forkserver._stop()  # its workers count once it has ended
    print(seconds, cpu_seconds() - used)
"""


class Nothing(Config):
    """No settings."""


def open_normalise(settings: Nothing, opened: ExitStack) -> Work:
    """White space and case."""

    def work(candidates: Iterable[Any]) -> Iterable[Row]:
        changed = []
        for one in candidates:
            changed.append(
                one.change(
                    "process",
                    "normalise",
                    statement=" ".join(one.statement_found.lower().split()),
                )
            )
        return changed

    return work


def write_rows(folder: Path, num_rows: int, *, seed: int = 0) -> None:
    """Write documents of about 200 words in 8 files; one in ten is a copy,
    one in ten nearly one.
    """
    generator = random.Random(seed)
    vocabulary = []
    for _ in range(20_000):
        vocabulary.append(
            "".join(generator.choices("abcdefghiklmnoprstuv", k=generator.randint(2, 9)))
        )
    folder.mkdir(parents=True)
    known: list[list[str]] = []
    files = [(folder / f"{number}.jsonl").open("w") for number in range(8)]
    for number in range(num_rows):
        draw = generator.random()
        if known and draw < 0.1:
            words = generator.choice(known)
        elif known and draw < 0.2:
            words = list(generator.choice(known))
            words[generator.randrange(len(words))] = "changed"
        else:
            words = generator.choices(vocabulary, k=generator.randint(120, 280))
            if len(known) < 5000:
                known.append(words)  # pyrefly: ignore[bad-argument-type]
        row = {
            "problem_id": number,
            "question": " ".join(words),
            "solutions": "",
            "input_output": "",
            "difficulty": "interview",
            "url": "",
            "starter_code": "",
        }
        files[number % len(files)].write(json.dumps(row) + "\n")
    for file in files:
        file.close()


def run_ours(folder: Path, work: Path, workers: int) -> dict[str, float]:
    """Return wall seconds, CPU seconds of this process and its workers,
    and how many rows were kept.
    """
    started = time.perf_counter()
    used = read_cpu_seconds()
    shards = list_inputs([SourceSettings(path=str(folder), format="apps")], rows_per_shard=512)
    name = "dataset_pipeline"
    steps = [
        MapStep("normalise", "process", Nothing(), open_normalise, (name,)),
        BarrierStep(
            "deduplicate",
            "filter",
            Config(),
            DuplicateBarrier,
            ("microcoder.data.filter",),
        ),
    ]
    _, step_counts = run_steps(
        shards,
        collect_step(),
        steps,
        work=work,
        runner=Runner(workers=workers),
    )
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": read_cpu_seconds() - used,
        "kept": step_counts[-1].num_kept,
    }


def measure_ours(num_rows: int, workers: int) -> Mapping[str, float]:
    """Run ours in a process of its own; return what it found and the peak memory of it and its
    workers.
    """
    command = [sys.executable, __file__, "--only-ours", str(num_rows), "--workers", str(workers)]
    # Worker processes import the steps of this file.
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--datatrove", help="a Python that has datatrove[io,processing]")
    parser.add_argument("--only-ours", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "rows"
        work = Path(temporary) / "work"
        if options.only_ours:
            write_rows(folder, options.only_ours)
            ran = run_ours(folder, work, options.workers)
            who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            own, workers = (resource.getrusage(one).ru_maxrss / 1024 for one in who)
            print(json.dumps({**ran, "own_mib": own, "worker_mib": workers}))
            return
        found = {}
        for name, num_rows in (("ours", options.rows), ("ours_ten_times", 10 * options.rows)):
            found[name] = {"rows": num_rows, **measure_ours(num_rows, options.workers)}
        if options.datatrove:
            write_rows(folder, options.rows)
            script = Path(temporary) / "trove.py"
            script.write_text(DATATROVE_RUN)
            command = [
                options.datatrove,
                str(script),
                str(folder),
                str(Path(temporary) / "out"),
                str(options.workers),
            ]
            # datatrove writes logs where it is started.
            done = subprocess.run(
                command,
                cwd=temporary,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            seconds, used = map(float, done.stdout.splitlines()[-1].split())
            times = {"times_seconds": seconds / found["ours"]["seconds"]}
            times["times_cpu_seconds"] = used / found["ours"]["cpu_seconds"]
            found["datatrove"] = {"seconds": seconds, "cpu_seconds": used, **times}
        print(json.dumps(found))


if __name__ == "__main__":
    main()

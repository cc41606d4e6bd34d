"""What one GPU shows of real models in fifteen minutes: HumanEval,
then MicroCoder-GRPO before and after.

    python benchmarks/gpu_real.py --model QWEN --other SMOLLM2 --humaneval HumanEval.jsonl.gz \\
        --train train.jsonl --heldout heldout.jsonl --out OUT [--minutes 14]
    python benchmarks/gpu_real.py --small --model MODEL --humaneval FILE --train FILE \\
        --heldout FILE --out OUT
        the same, end to end, at a hundredth of the size, on a CPU

In this order, each part by the command that a user types, each printing one JSON line as it ends
and writing OUT/PART.json, so that what is done stays when time runs out:

    machine          processor, GPU, packages
    humaneval-NAME   greedy HumanEval of each model: accuracy with its interval, truncated,
                     tokens a second
    before           the trained model's held-out problems, 4 samples each
    train            MicroCoder-GRPO, 64 problems x 8 samples, 1,024 tokens,
                     as many steps as fit in its minutes
    after            the same held-out problems by the last checkpoint
    train-unmasked, after-unmasked    the same without a mask, if time is left

A part that does not fit into what is left is left out, aloud. Needed beside
`pip install '.[train]'`: vLLM for `rollout.backend = "vllm"` (without it transformers samples).
Weights travel in pieces: benchmarks/pieces.py.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from microcoder.train.run.estimate import count_parameters
from microcoder.train.runs import RunDirectory

PEAK_FLOPS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12}
"""Dense bfloat16 products a second by a GPU's name, from the vendor's data sheets."""

GRACE_SECONDS = 90.0
"""Time for the step at hand and its checkpoint after a run was asked to stop."""

SUFFIXES = {"conditional": "", "none": "-unmasked"}
"""Masks that are trained, in order, and what the names of their parts end with."""

PACKAGES = ("torch", "transformers", "trl", "vllm", "microcoder")
"""Packages whose versions are recorded."""


@dataclass(frozen=True)
class Sizes:
    """How much is asked of the machine."""

    humaneval_problems: int | None = None
    """Problems of HumanEval; None: all 164."""

    humaneval_tokens: int = 1024
    """Limit of an answer to HumanEval."""

    heldout_samples: int = 4
    """Answers to each held-out problem."""

    prompts: int = 64
    """Problems a step."""

    samples: int = 8
    """Responses a problem."""

    tokens: int = 1024
    """Limit of a response in training."""

    mini_prompts: int = 32
    """Problems an update."""

    micro_rollouts: int = 16
    """Responses a pass."""

    batch_size: int = 164
    """Answers that an evaluation samples at a time."""

    steps: int = 1000
    """Most steps of training; the clock ends it sooner."""

    learning_rate: float = 1e-6
    """The paper's."""


SMALL = Sizes(
    humaneval_problems=2,
    humaneval_tokens=16,
    heldout_samples=1,
    prompts=2,
    samples=2,
    tokens=16,
    mini_prompts=1,
    micro_rollouts=2,
    batch_size=2,
    steps=2,
)
"""About a hundredth of the work, for a CPU and for the tests."""


@dataclass
class Session:
    """What the parts share: the clock, the folder, the command line."""

    arguments: argparse.Namespace
    sizes: Sizes
    out: Path
    ends_at: float
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def seconds_left(self) -> float:
        """Return how long the session may still take."""
        return self.ends_at - time.monotonic()

    def report(self, part: str, figures: dict[str, Any]) -> None:
        """Print a part's figures as one line, and write them as a file of their own."""
        row = {"part": part, **figures}
        (self.out / f"{part}.json").write_text(json.dumps(row, indent=1), encoding="utf-8")
        print(json.dumps(row), flush=True)

    def command(self, *words: str) -> list[str]:
        """Return a command line of microcoder's."""
        return [sys.executable, "-m", "microcoder", *words]


class MemoryWatch:
    """The most memory that the GPU had in use while the body ran; without a GPU,
    that of the processes started.
    """

    def __init__(self, *, has_gpu: bool) -> None:
        self._has_gpu = has_gpu
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_gib = 0.0

    def __enter__(self) -> "MemoryWatch":
        if self._has_gpu:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._has_gpu:
            self._thread.join()
        else:
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.peak_gib = usage.ru_maxrss / 2**20

    def _watch(self) -> None:
        query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        while not self._stop.wait(0.5):
            done = subprocess.run(query, capture_output=True, text=True)
            used = []
            for line in done.stdout.split():
                if line.strip().isdigit():
                    used.append(float(line))
            if used:
                self.peak_gib = max(self.peak_gib, max(used) / 1024)


def find_gpu() -> str | None:
    """Return the first GPU's name, or None."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    names = done.stdout.strip().splitlines()
    if done.returncode == 0 and names:
        return names[0]
    return None


def describe_machine(gpu: str | None) -> dict[str, Any]:
    """Return what figures hang on: the GPU, the processor and the versions of packages."""
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {"gpu": gpu, "processor": platform.machine(), "cores": os.cpu_count(), **versions}


def cut_rows(source: Path, target: Path, num: int) -> Path:
    """Write the first rows of a file of JSON lines (also .gz) as a file of its own."""
    import gzip

    opener = gzip.open if source.suffix == ".gz" else open
    with opener(source, "rt", encoding="utf-8") as stream:
        lines = []
        for line in stream:
            if line.strip():
                lines.append(line)
    target.write_text("".join(lines[:num]), encoding="utf-8")
    return target


def evaluate(session: Session, part: str, keys: dict[str, str]) -> None:
    """Run an evaluation by the command line, and report its accuracy, interval,
    lengths and speed.
    """
    folder = session.out / f"eval-{part}"
    keys = {
        "generation.batch_size": str(session.sizes.batch_size),
        **keys,
    }
    words = []
    for name, value in keys.items():
        words.extend((f"--{name}", value))
    command = session.command("eval", *words, "--run-dir", str(folder))
    started = time.monotonic()
    failure = run_logged(command, session, part, timeout=max(1.0, session.seconds_left()))
    seconds = time.monotonic() - started
    results_file = folder / "results.json"
    if failure is not None or not results_file.exists():
        session.report(part, {"failed": failure or "no results", "seconds": round(seconds, 1)})
        return
    results = json.loads(results_file.read_text(encoding="utf-8"))
    overall = []
    for cell in results["cells"]:
        if cell["platform"] == "all" and cell["difficulty"] == "all" and cell["k"] == 1:
            overall.append(cell)
    num_tokens = (results["mean_tokens"] or 0.0) * results["num_samples"]
    session.report(
        part,
        {
            "accuracy": overall[0]["value"],
            "low": overall[0]["low"],
            "high": overall[0]["high"],
            "num_problems": results["num_problems"],
            "num_samples": results["num_samples"],
            "truncated_share": results["truncated_share"],
            "mean_tokens": results["mean_tokens"],
            "outcomes": results["outcomes"],
            "seconds": round(seconds, 1),
            "tokens_per_second": round(num_tokens / seconds, 1),
        },
    )


def evaluate_humaneval(session: Session, model: Path) -> None:
    """Ask a model HumanEval greedily, once a problem."""
    source = session.arguments.humaneval
    sizes = session.sizes
    if sizes.humaneval_problems is not None:
        source = cut_rows(source, session.out / "humaneval.jsonl", sizes.humaneval_problems)
    keys = {
        "benchmark.kind": "humaneval",
        "benchmark.path": str(source),
        "generation.model": str(model),
        "sampling.num_samples": "1",
        "sampling.temperature": "0",
        "sampling.max_tokens": str(sizes.humaneval_tokens),
    }
    evaluate(session, f"humaneval-{model.name}", keys)


def evaluate_heldout(session: Session, part: str, model: Path) -> None:
    """Ask a model the held-out problems as training does."""
    keys = {
        "benchmark.kind": "problems",
        "benchmark.path": str(session.arguments.heldout),
        "generation.model": str(model),
        "sampling.num_samples": str(session.sizes.heldout_samples),
        "sampling.temperature": "0.6",
        "sampling.max_tokens": str(session.sizes.tokens),
    }
    evaluate(session, part, keys)


def train(session: Session, part: str, *, mask: str, minutes: float) -> Path | None:
    """Train for some minutes by the command line, report speed and memory,
    and return the last checkpoint.
    """
    sizes = session.sizes
    run = RunDirectory(session.out / part)
    has_vllm = importlib.util.find_spec("vllm") is not None and session.arguments.gpu is not None
    keys = {
        "model.kind": "hugging_face",
        "model.path": str(session.arguments.model),
        "problems.kind": "files",
        "problems.train": str(session.arguments.train),
        "problems.heldout": str(session.arguments.heldout),
        "num_steps": str(sizes.steps),
        "rollout.backend": "vllm" if has_vllm else "transformers",
        "rollout.num_samples": str(sizes.samples),
        "rollout.max_response_tokens": str(sizes.tokens),
        "batch.train_batch_size": str(sizes.prompts),
        "batch.ppo_mini_batch_size": str(sizes.mini_prompts),
        "batch.micro_batch_rollouts": str(sizes.micro_rollouts),
        "optimizer.learning_rate": str(sizes.learning_rate),
        "algorithm.masking.kind": mask,
        "evaluation.every_steps": str(sizes.steps),
        "evaluation.samples_per_problem": "1",
        "evaluation.max_response_tokens": str(sizes.tokens),
        "checkpoint.every_steps": "4",
        "checkpoint.keep": "1",
    }
    recipe = session.out / f"{part}.toml"
    recipe.write_text(render_toml(keys), encoding="utf-8")
    command = session.command("train", "-c", str(recipe), "--run-dir", str(run.root))
    started = time.monotonic()
    with MemoryWatch(has_gpu=session.arguments.gpu is not None) as memory:
        failure = run_logged(command, session, part, timeout=60 * minutes)
    seconds = time.monotonic() - started
    rows = run.read_metrics()
    step = run.latest_checkpoint_step()
    if not rows or step is None:
        # What failed said so in its last lines.
        session.report(part, {"failed": failure or "no step was done", "seconds": seconds})
        return None
    session.report(
        part,
        {
            "ended": failure or "finished",
            "steps": len(rows),
            "checkpoint_step": step,
            "seconds": round(seconds, 1),
            **describe_speed(session, rows),
            "reward_by_step": [row["reward_mean"] for row in rows],
            "truncated_by_step": [row["truncated_share"] for row in rows],
            "peak_gib": round(memory.peak_gib, 2),
            "planned_gib": plan_memory(recipe),
        },
    )
    return run.checkpoint(step)


def describe_speed(session: Session, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over steps, the first left out where there are more:
    tokens and products a second, phases.
    """
    steady = rows[1:] or rows
    config = json.loads((session.arguments.model / "config.json").read_text(encoding="utf-8"))
    parameters = count_parameters(config)
    sampled: list[float] = []
    trained: list[float] = []
    for row in steady:
        num_tokens = row["length_mean"] * sum(row["outcomes"].values())
        sampled.append(num_tokens / max(row["seconds"]["generate"], 1e-9))
        trained.append(num_tokens / max(row["seconds"]["update"], 1e-9))
    peak = find_peak(session.arguments.gpu)
    utilisation = None
    if peak is not None and parameters is not None:
        # Six products a parameter and token: forward and backward (arXiv 2001.08361).
        utilisation = round(6 * parameters * median(trained) / peak, 4)
    return {
        "sampled_per_second": round(median(sampled), 1),
        "trained_per_second": round(median(trained), 1),
        "update_mfu": utilisation,
        "step_seconds": round(median(row["seconds"]["total"] for row in steady), 2),
        "judge_seconds": round(median(row["seconds"].get("judge", 0.0) for row in steady), 2),
    }


def find_peak(gpu: str | None) -> float | None:
    """Return a GPU's dense bfloat16 products a second; None where the table does not know it."""
    for name, flops in PEAK_FLOPS.items():
        if gpu is not None and name in gpu:
            return flops
    return None


def plan_memory(recipe: Path) -> float | None:
    """Return the GiB that a dry run counts for the recipe."""
    from microcoder.judge.core.config import load_config
    from microcoder.train.recipe.recipe import TrainConfig
    from microcoder.train.run.estimate import count_memory, detect_device_gib

    table = count_memory(load_config(TrainConfig, [recipe]), device_memory_gib=detect_device_gib())
    return None if table is None else round(table.total, 2)


def render_toml(keys: dict[str, str]) -> str:
    """Return dotted keys as TOML; numbers as they are, all else in quotes."""
    lines: list[str] = []
    for name, value in keys.items():
        is_number = value.replace(".", "", 1).replace("e-", "", 1).isdigit()
        lines.append(f"{name} = {value if is_number else json.dumps(value)}\n")
    return "".join(lines)


def run_logged(
    command: Sequence[str],
    session: Session,
    part: str,
    *,
    timeout: float,
) -> str | None:
    """Run a command, its output in OUT/PART.log; return None, or why it did not end by itself.

    At the timeout it is asked to stop as by Ctrl-C, which keeps what is done,
    and killed after a grace.
    """
    with (session.out / f"{part}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=session.environment,
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return f"killed {GRACE_SECONDS:g} s after its {timeout:.0f} s were over"
            return f"stopped after its {timeout:.0f} s"
    if code == 0:
        return None
    tail = (session.out / f"{part}.log").read_text(encoding="utf-8", errors="replace")
    return f"exit {code}: {tail.strip()[-400:]}"


def run_parts(session: Session) -> None:
    """Do all parts in order, as long as there is time."""
    arguments = session.arguments
    session.report("machine", describe_machine(arguments.gpu))
    models = [arguments.model]
    if arguments.other is not None:
        models.append(arguments.other)
    for model in models:
        evaluate_humaneval(session, model)
    evaluate_heldout(session, "before", arguments.model)
    minutes = min(arguments.train_minutes, (session.seconds_left() - GRACE_SECONDS) / 60)
    for mask in arguments.masks:
        suffix = SUFFIXES[mask]
        if minutes < arguments.least_minutes:
            session.report(f"train{suffix}", {"left_out": f"{minutes:.1f} minutes are left"})
            continue
        checkpoint = train(session, f"train{suffix}", mask=mask, minutes=minutes)
        if checkpoint is not None:
            evaluate_heldout(session, f"after{suffix}", checkpoint)
        minutes = (session.seconds_left() - GRACE_SECONDS) / 60


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, required=True, help="checkpoint folder, trained")
    parser.add_argument("--other", type=Path, help="a second checkpoint folder, evaluated only")
    parser.add_argument("--humaneval", type=Path, required=True, help="HumanEval.jsonl(.gz)")
    parser.add_argument("--train", type=Path, required=True, help="problem file to train on")
    parser.add_argument("--heldout", type=Path, required=True, help="problem file to test on")
    parser.add_argument("--out", type=Path, required=True, help="folder of what is written")
    parser.add_argument("--minutes", type=float, default=14.0, help="of the whole session")
    parser.add_argument("--train-minutes", type=float, default=8.0, help="of the first training")
    parser.add_argument(
        "--least-minutes",
        type=float,
        default=2.0,
        help="with less left a training is left out",
    )
    parser.add_argument(
        "--masks",
        nargs="+",
        choices=tuple(SUFFIXES),
        default=tuple(SUFFIXES),
        help="arms, in order",
    )
    parser.add_argument("--small", action="store_true", help="a hundredth of the size, for a CPU")
    arguments = parser.parse_args()
    arguments.gpu = find_gpu()
    arguments.out.mkdir(parents=True, exist_ok=True)
    session = Session(
        arguments=arguments,
        sizes=SMALL if arguments.small else Sizes(),
        out=arguments.out,
        ends_at=time.monotonic() + 60 * arguments.minutes,
    )
    run_parts(session)


if __name__ == "__main__":
    main()

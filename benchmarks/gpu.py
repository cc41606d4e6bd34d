"""What one GPU does in ten steps: tokens a second, memory against the dry run's count,
share of judging.

    python benchmarks/gpu.py [--model FOLDER] [--backend vllm] [--minutes 12]
    python benchmarks/gpu.py --problems 16 --limit 1024     smaller steps: 16 x 8 at 1K tokens
    python benchmarks/gpu.py model.gradient_checkpointing=false     with other keys of the recipe
    python benchmarks/gpu.py --tiny        the same, end to end, in seconds on a CPU

It trains on 64 problems x 8 samples at 4K tokens, ten steps or as many as the minutes allow.
Without --model a Qwen3-1.7B with random weights is made, whose responses nearly all run to the
limit: the worst case for length, and no case at all for accuracy. Such responses hold no program
and earn nothing, and responses without an advantage are left out: there would be nothing to judge
and nothing to update. So each counts as a small program of its own, which is judged; half of them,
drawn by lot, are rewarded; nothing is masked. The first step is left out, since it warms up. The
last line is a JSON object: tokens and seconds are medians of steps; GiB are those of tensors in
sampling and in updates, the most taken from the device (without a GPU: of the whole process) and
what the dry run counts.
"""

import argparse
import json
import platform
import resource
import tempfile
import time
import zlib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

NAME = "Qwen/Qwen3-1.7B"
TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
SIZES = {"problems": 64, "samples": 8, "limit": 4096, "micro": 8, "mini": 0}
TINY_SIZES = {"problems": 4, "samples": 4, "limit": 24, "micro": 8, "mini": 0}


def lot(problem: Any, rollout: Any, program: Any, verdict: Any, draw: float) -> float:
    """Reward half of the responses, whatever the verdict; see `microcoder.judge.core.rewards`."""
    return float(draw < 0.5)


lot.needs_draw = True  # pyrefly: ignore[missing-attribute]


def program(response: str, is_truncated: bool) -> str:
    """Return a program for any response, another for another;
    see `microcoder.judge.core.extract`.
    """
    return f"print(sum(map(int, input().split())))  # {zlib.crc32(response.encode())}"


class Peaks:
    """The most memory that tensors held, in sampling and in all else;
    of the whole process without a GPU.
    """

    def __init__(self) -> None:
        self.phase = "update"
        self.reserved = 0
        self.bytes = {"generate": 0, "update": 0}

    def begin(self, phase: str) -> None:
        """Note the peak of what ends here."""
        import torch

        name = "generate" if self.phase in ("generate", "evaluate") else "update"
        if torch.cuda.is_available():
            self.bytes[name] = max(self.bytes[name], torch.cuda.max_memory_allocated())
            self.reserved = max(self.reserved, torch.cuda.max_memory_reserved())
            torch.cuda.reset_peak_memory_stats()
        else:
            self.bytes[name] = self.reserved = (
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            )
        self.phase = phase


def make_model(folder: Path, *, tiny: bool) -> None:
    """Write a checkpoint with random weights, and a small tokenizer."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from microcoder.data.micro import generate_chain_demonstrations
    from microcoder.train.run.estimate import KNOWN
    from microcoder.train.run.warm import train_tokenizer

    texts = (d.statement + d.response for d in generate_chain_demonstrations(num=500, seed=0))
    tokenizer = train_tokenizer(texts, vocab_size=512)
    shape = {}
    for name, value in KNOWN[NAME].items():
        if name != "model_type":
            shape[name] = value
    if tiny:
        shape |= {**TINY, "intermediate_size": 128, "vocab_size": len(tokenizer)}
    torch.manual_seed(0)
    config = Qwen3Config(
        **shape,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = Qwen3ForCausalLM(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def recipe(model: str, arguments: argparse.Namespace) -> dict[str, str]:
    """Return the keys of the recipe that is measured."""
    return {
        # One more than is measured: the last step of a run would write a checkpoint.
        "num_steps": str(arguments.steps + 1),
        "prompt.style": "bare",
        "model.kind": "hugging_face",
        "model.path": model,
        "problems.kind": "micro",
        "problems.num_train": "256",
        "problems.num_heldout": "2",
        "rollout.backend": arguments.backend,
        "rollout.num_samples": str(arguments.samples),
        "rollout.max_response_tokens": str(arguments.limit),
        "rewards.name": f"{Path(__file__).resolve()}:lot",
        "extractor.name": f"{Path(__file__).resolve()}:program",
        "algorithm.masking.kind": "none",
        # As many updates as asked for, one of them too: the time of an update is measured,
        # not its clip.
        "algorithm.loss.clip_high": "0.2",
        "batch.train_batch_size": str(arguments.problems),
        "batch.ppo_mini_batch_size": str(arguments.mini or arguments.problems),
        "batch.micro_batch_rollouts": str(arguments.micro),
        "evaluation.every_steps": "100000",
        "evaluation.samples_per_problem": "1",
        "evaluation.max_response_tokens": "8",
        "checkpoint.every_steps": "100000",
        "evaluator.workers": "2",
        **dict(word.split("=", 1) for word in arguments.keys),
    }


def run_ours(config: Any, folder: Path, minutes: float, peaks: Peaks) -> dict[str, float]:
    """Train by `run_training`; the figures are those of the run's own metrics."""
    from transformers import TrainerCallback

    from microcoder.train.run.checkpoints import Observer
    from microcoder.train.run.training import run_training
    from microcoder.train.runs import RunDirectory

    end = time.monotonic() + 60 * minutes
    updates = config.batch.train_batch_size // config.batch.ppo_mini_batch_size

    class Deadline(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            is_whole = not state.global_step % updates
            is_late = time.monotonic() > end
            is_last = state.global_step >= updates * (config.num_steps - 1)
            control.should_training_stop = control.should_training_stop or (
                is_whole and (is_late or is_last)
            )

    class Watch(Observer):
        def phase(self, name: str, *, done: int = 0, total: int = 0) -> None:
            peaks.begin(name)

    run = RunDirectory(folder / "run")
    with suppress(KeyboardInterrupt):  # the steps that are done are recorded
        run_training(config, run_directory=run.root, observer=Watch(), callbacks=[Deadline()])
    peaks.begin("end")
    rows = run.read_metrics()[1:] or run.read_metrics()
    for row in rows:
        assert row["optimizer"]["grad_norm"] > 0, "no update to be measured"
        assert not row["outcomes"]["no_code"], "nothing to judge"
    shares = [row["seconds"].get("judge", 0.0) / row["seconds"]["total"] for row in rows]
    return {
        "steps": len(run.read_metrics()),
        **{
            name: median(
                row["length_mean"] * sum(row["outcomes"].values()) / row["seconds"][phase]
                for row in rows
            )
            for name, phase in (
                ("sampled_per_second", "generate"),
                ("trained_per_second", "update"),
            )
        },
        "judge_share": median(shares),
        "step_seconds": median(row["seconds"]["total"] for row in rows),
        "mean_length": median(row["length_mean"] for row in rows),
    }


def measure(arguments: argparse.Namespace, model: str) -> dict[str, Any]:
    """Train, and return the figures."""
    import torch

    from microcoder.judge.core.config import load_config
    from microcoder.train.recipe.recipe import TrainConfig
    from microcoder.train.run.estimate import count_memory

    has_gpu = torch.cuda.is_available()
    config = load_config(TrainConfig, overrides=recipe(model, arguments))
    peaks = Peaks()
    with tempfile.TemporaryDirectory() as folder:
        figures = run_ours(config, Path(folder), arguments.minutes, peaks)
    device_gib = torch.cuda.get_device_properties(0).total_memory / 2**30 if has_gpu else None
    table = count_memory(config, device_memory_gib=device_gib)
    name = torch.cuda.get_device_name(0) if has_gpu else f"CPU ({platform.machine()})"
    assert table is not None
    return {
        **figures,
        "peak_gib": peaks.reserved / 2**30,
        "sampling_gib": peaks.bytes["generate"] / 2**30,
        "update_gib": peaks.bytes["update"] / 2**30,
        "counted_gib": table.total,
        "device": name,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model", help="a checkpoint folder; left out: random weights of Qwen3-1.7B's shape"
    )
    parser.add_argument("--backend", choices=("vllm", "transformers"))
    parser.add_argument("--steps", type=int, default=10)
    for name, text in (
        ("--problems", "a step"),
        ("--samples", "a problem"),
        ("--limit", "tokens a response"),
        ("--micro", "responses a pass"),
        ("--mini", "problems an update; left out: all of a step"),
    ):
        parser.add_argument(name, type=int, help=text)
    parser.add_argument(
        "--minutes",
        type=float,
        default=12.0,
        help="of training; looked at between steps",
    )
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("keys", nargs="*", metavar="KEY=VALUE", help="other keys of the recipe")
    arguments = parser.parse_args()
    for name, size in (TINY_SIZES if arguments.tiny else SIZES).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, size)
    if arguments.backend is None:
        arguments.backend = (
            "vllm" if find_spec("vllm") is not None and not arguments.tiny else "transformers"
        )
    with tempfile.TemporaryDirectory() as folder:
        if arguments.model is None:
            make_model(Path(folder), tiny=arguments.tiny)
        print(json.dumps(measure(arguments, arguments.model or folder)))


if __name__ == "__main__":
    main()

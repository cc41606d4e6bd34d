"""`microcoder init`: write a recipe for one's own model and problems."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from microcoder.cli.options import Flag
from microcoder.cli.train import default_run_directory, load_recipe
from microcoder.judge.core.errors import ConfigError
from microcoder.train.run.starter import ALGORITHMS, GPUS, Wishes, detect_gpu, write_recipe
from microcoder.train.runs import RunDirectory


def init(
    *,
    model: str | None = None,
    problems: str | None = None,
    heldout: str | None = None,
    gpu: str | None = None,
    algorithm: str | None = None,
    engine: str = "trl",
    format: str | None = None,
    out: Path = Path("recipe.toml"),
    yes: Flag = False,
) -> None:
    """Write a recipe for your own model and problems, with the published settings and what fits your GPU.

    Asks for whatever the flags do not give. Without a terminal, or with --yes, it takes the defaults; model, problems
    and heldout have none.

    Parameters
    ----------
    model
        A checkpoint folder, or a Hugging Face Hub id.
    problems
        Training problems: a problem file, a folder of `microcoder data build`, or a Hub dataset (owner/name).
    heldout
        Held-out problems: a problem file, a LiveCodeBench file, or a split of the dataset.
    gpu
        h100, h200, a100-80, a100-40, l40s, a6000, rtx-5090, rtx-4090, l4 or cpu; by default this machine's.
    algorithm
        microcoder-grpo (the default), grpo, dr-grpo, dapo, mask-all, or another name in recipes/algorithms.
    engine
        `trl`, or `verl` for a Ray cluster: then the command is printed that verl takes for the recipe.
    format
        Row format of a Hub dataset: trl, verl, taco, deepcoder, ...; by default inferred from its name.
    out
        The recipe file; an existing file is not overwritten.
    yes
        Ask no questions.
    """
    if out.exists():
        raise ConfigError(f"{out} already exists; choose another --out, or remove it first")
    asks = not yes and sys.stdin.isatty()
    wishes = Wishes(
        model=model or _ask("model", "checkpoint folder or Hugging Face Hub id", asks=asks),
        problems=problems or _ask("problems", "problem file or Hub dataset (owner/name)", asks=asks),
        heldout=heldout or _ask("heldout", "held-out problem file, LiveCodeBench file or split", asks=asks),
        gpu=gpu or _ask("gpu", ", ".join(GPUS), default=detect_gpu(), asks=asks),
        algorithm=algorithm or _ask("algorithm", ", ".join(ALGORITHMS), default=ALGORITHMS[0], asks=asks),
        engine=engine,
        format=format,
        command=shlex.join(["microcoder", *sys.argv[1:]]).replace("\n", " "),
    )
    text = write_recipe(wishes)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    if engine == "verl":
        from microcoder.train.verl.translate import describe_command, translate

        options = translate(load_recipe((out,), ()), RunDirectory(default_run_directory((out,))))
        print(f"`microcoder train -c {shlex.quote(str(out))}` writes the problems for verl, and runs:")
        print(describe_command(options))
    print(f"wrote {out}; to see what the run costs: microcoder train -c {shlex.quote(str(out))} --dry-run")


def _ask(flag: str, about: str, *, asks: bool, default: str = "") -> str:
    answer = input(f"{flag} ({about}){f' [{default}]' if default else ''}: ").strip() if asks else ""
    if not (answer or default):
        raise ConfigError(f"--{flag} is missing; pass --{flag} with a {about}")
    return answer or default

"""`microcoder init`: write a recipe for one's own model and problems."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from microcoder.cli.train import default_run_directory, load_recipe
from microcoder.judge.core.errors import ConfigError
from microcoder.train.run.starter import ALGORITHMS, Wishes, write_recipe
from microcoder.train.runs import RunDirectory


def init(
    *,
    model: str,
    problems: str,
    heldout: str,
    gpu: str,
    algorithm: str = ALGORITHMS[0],
    engine: str = "trl",
    format: str | None = None,
    out: Path = Path("recipe.toml"),
) -> None:
    """Write a recipe for your own model and problems, with the published settings and what fits your GPU.

    Parameters
    ----------
    model
        A checkpoint folder, or a Hugging Face Hub id.
    problems
        Training problems: a problem file, a folder of `microcoder data build`, or a Hub dataset (owner/name).
    heldout
        Held-out problems: a problem file, a LiveCodeBench file, or a split of the dataset.
    gpu
        h100, h200, a100-80, a100-40, l40s, a6000, rtx-5090, rtx-4090, l4 or cpu.
    algorithm
        microcoder-grpo, grpo, dr-grpo, dapo, mask-all, or another name in recipes/algorithms.
    engine
        `trl`, or `verl` for a Ray cluster: then the command is printed that verl takes for the recipe.
    format
        Row format of a Hub dataset: trl, verl, taco, deepcoder, ...; by default inferred from its name.
    out
        The recipe file; an existing file is not overwritten.
    """
    if out.exists():
        raise ConfigError(f"{out} already exists; choose another --out, or remove it first")
    wishes = Wishes(
        model,
        problems,
        heldout,
        gpu=gpu,
        algorithm=algorithm,
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

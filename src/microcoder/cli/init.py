"""`microcoder init`: write a recipe for one's own model and problems."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from microcoder.cli.train import default_run_directory, load_recipe
from microcoder.judge.core.errors import ConfigError
from microcoder.train.run.starter import Wishes, write_recipe
from microcoder.train.runs import RunDirectory


def init(*, wishes: Annotated[Wishes, Parameter(name="*")], out: Path = Path("recipe.toml")) -> None:
    """Write a recipe for your own model and problems, with the published settings and what fits your GPU.

    Parameters
    ----------
    out
        The recipe file; an existing file is not overwritten.
    """
    if out.exists():
        raise ConfigError(f"{out} already exists; choose another --out, or remove it first")
    text = write_recipe(wishes, command=shlex.join(["microcoder", *sys.argv[1:]]).replace("\n", " "))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    if wishes.engine == "verl":
        from microcoder.train.verl.translate import describe_command, translate

        options = translate(load_recipe((out,), ()), RunDirectory(default_run_directory((out,))))
        print(f"`microcoder train -c {shlex.quote(str(out))}` writes the problems for verl, and runs:")
        print(describe_command(options))
    print(f"wrote {out}; to see what the run costs: microcoder train -c {shlex.quote(str(out))} --dry-run")

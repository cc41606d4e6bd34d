"""`microcoder distill`: fine-tune a model on answers."""

import hashlib
import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from microcoder.cli.display import (
    DryRun,
    Json,
    Overrides,
    Recipes,
    StepDisplay,
    parse_overrides,
    print_resolved,
)
from microcoder.cli.train import require_training
from microcoder.eval.config import DistillConfig
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError


def distill(
    *overrides: Overrides,
    config: Recipes = (),
    source: Annotated[Path | None, Parameter(name="--from")] = None,
    run_dir: Path | None = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Fine-tune a model on answers of a run or an evaluation: baselines without reinforcement
    learning.

    `--keep accepted` is rejection-sampling fine-tuning, `--keep all` simple self-distillation. Any
    key can be given as a flag: `--learning-rate 1e-5`. See docs/distillation.md.

    Parameters
    ----------
    source
        Folder of the answers: a training run, or an evaluation.
    run_dir
        Output folder; by default runs/distill- and the source's name, what is kept, and a digest.
    """
    changes = parse_overrides(overrides)
    if source is not None:
        changes["source"] = str(source)
    if not config and "source" not in changes:
        raise ConfigError(
            "no answers; type: microcoder distill --from RUN_OR_EVAL --keep accepted (or all)"
        )
    resolved = load_config(DistillConfig, config, changes)
    require_training()
    # Pulls in what reads benchmarks, which `--help` does without.
    from microcoder.eval.distillation import plan_distillation, run_distillation

    digest = hashlib.sha256(resolved.model_dump_json().encode()).hexdigest()[:8]
    name = f"distill-{resolved.source.resolve().name}-{resolved.keep}-{digest}"
    target = run_dir or Path("runs") / name
    if dry_run:
        print_resolved(resolved.model_dump(mode="json"))
        plan = plan_distillation(resolved)
        print(f"{plan.describe()}; {plan.model} would be fine-tuned, and written to {target}")
        return
    with StepDisplay() as display:
        summary = run_distillation(
            resolved, run_directory=target, observer=display, command=["microcoder", *sys.argv[1:]]
        )
    if json:
        print(json_module.dumps({"output": str(target), **summary}))
        return
    print(
        f"{summary['num_answers']} answers, {summary['num_tokens']:,} tokens, "
        f"{summary['num_updates']} updates; the model: {target / 'model'}"
    )
    before = summary["accuracy_before"]
    after = summary["accuracy_after"]
    if before is None or after is None:
        print(f"evaluate it: microcoder eval --generation.model {target / 'model'} ...")
        return
    print(
        f"held-out accuracy {before:.1%} -> {after:.1%}; type `microcoder report "
        f"{target / 'heldout/after'} --against {target / 'heldout/before'}` for intervals"
    )

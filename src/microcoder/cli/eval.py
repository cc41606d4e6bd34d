"""`microcoder eval`: a model, or its answers, on a benchmark."""

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
from microcoder.eval.config import EvalConfig
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError


def evaluate(
    *overrides: Overrides,
    config: Recipes = (),
    run_dir: Path | None = None,
    form: Annotated[str | None, Parameter(name=["--format"])] = None,
    columns: str = "",
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Evaluate a model, or answers from a file, on LiveCodeBench, HumanEval or MBPP.

    The same command resumes an interrupted run. Any key of the config can be given as a flag:
    `--benchmark.path test6.jsonl --generation.model Qwen/Qwen3-4B`.
    See docs/evaluation.md for benchmarks and formats, docs/reference.md for all keys.

    Parameters
    ----------
    run_dir
        Output folder; by default runs/eval-DIGEST, with the config's digest.
    form
        The same as --benchmark.format: format of the rows of `--benchmark.kind problems`.
    columns
        The same as --benchmark.columns: columns of such rows, as in id=uid,statement=task.text.
    """
    if not config and not overrides:
        raise ConfigError(
            "nothing to evaluate; type: microcoder eval -c CONFIG.toml, or with --benchmark.path "
            "and --generation.model"
        )
    changes = parse_overrides(overrides)
    if form:
        changes["benchmark.format"] = form
    if columns:
        changes["benchmark.columns"] = columns
    resolved = load_config(EvalConfig, config, changes)
    # Pulls in what reads benchmarks, which `--help` does without.
    from microcoder.eval.evaluation import digest_config, plan_evaluation, run_evaluation
    from microcoder.eval.report import render_results

    # By the config's digest, so that the same command finds what it began.
    target = run_dir or Path("runs") / f"eval-{digest_config(resolved)}"
    if dry_run:
        print_resolved(resolved.model_dump(mode="json"))
        plan = plan_evaluation(resolved, run_directory=target, observer=StepDisplay())
        num_problems = len(plan.questions)
        num_answers = len(plan.saved) or num_problems * resolved.sampling.num_samples
        print(
            f"{num_problems} problems, {num_answers} answers; the evaluation would be written to "
            f"{target}"
        )
        return
    with StepDisplay() as display:
        results = run_evaluation(
            resolved, run_directory=target, observer=display, command=["microcoder", *sys.argv[1:]]
        )
    if json:
        print(json_module.dumps({"output": str(target), **results}))
        return
    print(f"{render_results(results)}\n")
    print(f"written to {target}; type `microcoder report {target}` to see this again")

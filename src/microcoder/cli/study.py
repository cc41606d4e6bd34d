"""`microcoder study`: run what is missing of a study, and write its table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from microcoder.cli.train import require_training


def study(
    path: Path,
    *,
    runs: Path | None = None,
    table: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run the recipes and seeds of a study one after another; the same command goes on where it was stopped.

    Parameters
    ----------
    path
        Study (TOML): question, baseline, seeds, variants.
    runs
        Folder of the runs; by default runs/<name of the study>.
    table
        Write the table of the runs that are finished, and run nothing.
    dry_run
        Print what would be run, and stop.
    """
    from microcoder.insights.study import load_study, plan_runs, write_table
    from microcoder.runs import RunDirectory, write_text

    loaded = load_study(path)
    root = runs or Path("runs") / path.stem
    planned = plan_runs(loaded, root=root)
    if dry_run:
        for run in planned:
            state = "finished" if RunDirectory(run.folder).is_finished else f"{run.config.num_steps} steps"
            print(f"{run.folder}: {state}")
        return
    if not table:
        require_training()
        # Both pull in torch, which the rest of the command line does without.
        from microcoder.cli.progress import Progress
        from microcoder.training.session import run_training

        for number, run in enumerate(planned, 1):
            with Progress(run_directory=run.folder) as progress:
                progress.note(f"{path.stem}, run {number} of {len(planned)}: {run.variant}, seed {run.seed}")
                run_training(run.config, run_directory=run.folder, observer=progress, command=["microcoder", "study"])
    text = write_table(loaded, planned)
    write_text(root / "table.md", text)
    print(f"{text}\n{root / 'table.md'}")

"""`microcoder report`: a training run's page from its files, or an evaluation's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.machine import how_to_install


def report(
    run_directory: Path,
    /,
    *,
    against: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    pass_at: Annotated[tuple[int, ...], Parameter(negative="")] = (),
) -> None:
    """Report on a training run, by the viewer's page on disk, or on an evaluation, by tables; or compare two.

    Works on unfinished runs; the report says so. Of a training run it prints the path of the page.

    Parameters
    ----------
    run_directory
        A folder that `microcoder train` or `microcoder eval` wrote.
    against
        Another run on the same problems, such as the baseline, to compare with. Repeatable for training runs.
    pass_at
        Of an evaluation: additional k of pass@k.
    """
    from microcoder.eval.report import EvaluationFolder

    if EvaluationFolder(run_directory).is_evaluation:
        _show_evaluation(run_directory, against, pass_at)
        return
    if pass_at:
        raise ConfigError(f"--pass-at is for evaluations, and {run_directory} is none; leave it out")
    if missing := next((run for run in (run_directory, *against) if not run.is_dir()), None):
        raise ConfigError(f"{missing} is no folder; pass a folder that `microcoder train` wrote")
    try:
        from microcoder.view import write_report
    except ImportError as error:
        raise ConfigError(f"the report needs {error.name}; type: {how_to_install('insights')}") from None

    print(write_report(run_directory, against=against))


def _show_evaluation(run: Path, against: tuple[Path, ...], pass_at: tuple[int, ...]) -> None:
    from microcoder.eval.report import EvaluationFolder, compare, render_comparison, render_results, summarise

    if wrong := [k for k in pass_at if k < 1]:
        raise ConfigError(f"--pass-at {wrong[0]}: use 1 or more")
    if len(against) > 1:
        raise ConfigError(f"an evaluation is compared with one other; leave out --against {against[1]}")
    after = EvaluationFolder(run)
    results = summarise(after, pass_at=pass_at)
    if not against:
        print(render_results(results))
        return
    before = EvaluationFolder(against[0])
    others, difference = summarise(before, pass_at=pass_at), compare(before, after, pass_at=pass_at)
    for figures in (others, results):
        print(f"# {figures['name']}\n\n{render_results(figures)}\n")
    print(f"# change\n\n{render_comparison(difference)}")

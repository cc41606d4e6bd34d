"""`microcoder report`: a training run's page from its files, or an evaluation's tables."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from microcoder.cli.options import Json
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.installation import how_to_install


def report(
    run_directory: Path,
    /,
    *,
    against: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    pass_at: Annotated[tuple[int, ...], Parameter(negative="")] = (),
    json: Json = False,
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
        _show_evaluation(run_directory, against, pass_at, json=json)
        return
    if pass_at:
        raise ConfigError(f"--pass-at is for evaluations, and {run_directory} is none; leave it out")
    if missing := next((run for run in (run_directory, *against) if not run.is_dir()), None):
        raise ConfigError(f"{missing} is no folder; pass a folder that `microcoder train` wrote")
    try:
        from microcoder.view import write_report
    except ImportError as error:
        raise ConfigError(f"the report needs {error.name}; type: {how_to_install('insights')}") from None

    path = write_report(run_directory, against=against)
    print(json_format.dumps({"report": str(path), **_headline(run_directory)}) if json else path)


def _show_evaluation(run: Path, against: tuple[Path, ...], pass_at: tuple[int, ...], *, json: bool) -> None:
    from microcoder.eval.report import EvaluationFolder, compare, render_comparison, render_results, summarise

    if wrong := [k for k in pass_at if k < 1]:
        raise ConfigError(f"--pass-at {wrong[0]}: use 1 or more")
    if len(against) > 1:
        raise ConfigError(f"an evaluation is compared with one other; leave out --against {against[1]}")
    after = EvaluationFolder(run)
    results = summarise(after, pass_at=pass_at)
    if not against:
        print(json_format.dumps(results) if json else render_results(results))
        return
    before = EvaluationFolder(against[0])
    others, difference = summarise(before, pass_at=pass_at), compare(before, after, pass_at=pass_at)
    if json:
        print(json_format.dumps({"before": others, "after": results, "difference": difference}))
        return
    for figures in (others, results):
        print(f"# {figures['name']}\n\n{render_results(figures)}\n")
    print(f"# change\n\n{render_comparison(difference)}")


def _headline(run_directory: Path) -> dict[str, Any]:
    from microcoder.lab.studies.history import read_history
    from microcoder.lab.studies.report import compare

    history = read_history(run_directory)
    row = compare(history)
    difference = row.difference
    return {
        "name": history.name,
        "is_finished": history.is_finished,
        "num_steps": len(history.steps),
        "num_problems": row.num_problems,
        "accuracy_before": row.before.value if row.before else None,
        "accuracy_after": row.after.value if row.after else None,
        "difference": difference.value if difference else None,
        "difference_low": difference.low if difference else None,
        "difference_high": difference.high if difference else None,
        "num_unscored": sum(history.num_unscored),
    }

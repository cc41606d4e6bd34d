"""`microcoder report`: draw a run's page, or an evaluation's tables, from its files."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from microcoder.cli.options import Json
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.installation import how_to_install

if TYPE_CHECKING:
    from microcoder.eval.report import EvaluationFolder


def report(
    run_directory: Path,
    /,
    *,
    against: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    json: Json = False,
) -> None:
    """Write the report of a training run or an evaluation and print its path.

    For a training run: the viewer's page in a folder that opens from disk, on its overview. For an evaluation: its
    tables in Markdown. Works on unfinished runs; the report says so.

    Parameters
    ----------
    run_directory
        A folder that `microcoder train` or `microcoder eval` wrote.
    against
        Another training run on the same problems, such as the baseline: the page compares the two. Repeatable.
    """
    from microcoder.eval.report import EvaluationFolder

    evaluation = EvaluationFolder(run_directory)
    if evaluation.is_evaluation:
        if against:
            raise ConfigError(f"{run_directory} is an evaluation; to compare two: microcoder eval show RUN OTHER")
        _report_evaluation(evaluation, as_json=json)
        return
    try:
        from microcoder.view import write_report
    except ImportError as error:
        raise ConfigError(f"the report needs {error.name}; type: {how_to_install('insights')}") from None

    path = write_report(run_directory, against=against)
    print(json_format.dumps({"report": str(path), **_headline(run_directory)}) if json else path)


def _report_evaluation(evaluation: EvaluationFolder, *, as_json: bool) -> None:
    from microcoder.eval.report import render_results, summarise, write_report

    results = summarise(evaluation)
    write_report(evaluation, results)
    if as_json:
        print(json_format.dumps({"report": str(evaluation.report), **results}))
    else:
        print(f"{render_results(results)}\n\n{evaluation.report}")


def _headline(run_directory: Path) -> dict[str, Any]:
    from microcoder.lab.studies.arms import compare, count_unscored
    from microcoder.lab.studies.history import read_history

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
        "num_unscored": count_unscored(history).total,
    }

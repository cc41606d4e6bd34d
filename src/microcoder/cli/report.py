"""`microcoder report`: draw a run's page from its files."""

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
    json: Json = False,
) -> None:
    """Write the report of a training run and print its path: the viewer's page, on its overview, from disk.

    Works on unfinished runs; the report says so. The tables of an evaluation: `microcoder eval show`.

    Parameters
    ----------
    run_directory
        A folder that `microcoder train` wrote.
    against
        Another training run on the same problems, such as the baseline: the page compares the two. Repeatable.
    """
    try:
        from microcoder.view import write_report
    except ImportError as error:
        raise ConfigError(f"the report needs {error.name}; type: {how_to_install('insights')}") from None

    path = write_report(run_directory, against=against)
    print(json_format.dumps({"report": str(path), **_headline(run_directory)}) if json else path)


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

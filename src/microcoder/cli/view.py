"""`microcoder view`: curves and rollouts of runs in a browser. `microcoder report`: a run's page,
or tables."""

import json as json_module
import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import PositiveInt, UInt16

from microcoder.cli.display import Json
from microcoder.judge.core.errors import ConfigError

DEFAULT_PORT = 8642
"""Port of the viewer; docs and help name it in the command for ssh."""

RUNS = Path("runs")
"""Folder whose newest run is shown if none is named: the recipes and `make demo` write there."""


def view(
    *runs: Path,
    problems: Annotated[tuple[Path, ...], Parameter(name=["--problems"], negative="")] = (),
    bundle: Path | None = None,
    port: UInt16 = DEFAULT_PORT,
    open_browser: Annotated[bool, Parameter(name=["--open"], negative="")] = False,
) -> None:
    """Show runs in a browser: overlaid curves, and every rollout with its tests; search, compare,
    follow.

    An open page follows runs that are still going. Without --bundle it serves on 127.0.0.1 until
    Ctrl-C; to view from another machine, type `ssh -L 8642:127.0.0.1:8642 HOST` there.

    Parameters
    ----------
    runs
        Folders that `microcoder train`, `microcoder eval` or `microcoder data build` wrote, or
        verdict files of `microcoder judge`. Without any: the newest run in `runs`.
    problems
        Problems, submissions or rows of a benchmark with the tests' inputs and expected outputs, if
        the run does not name them. Repeatable.
    bundle
        Write a static copy of the page to this folder, to open from disk or any web host, and stop.
    port
        Port on 127.0.0.1; 0 picks a free one.
    open_browser
        Open the page in a browser, too, where there is a screen.
    """
    from microcoder.view import ViewerServer, find_newest_run, open_collection, write_bundle

    if not runs:
        newest = find_newest_run(RUNS)
        print(f"microcoder: the newest run in {RUNS} is {newest}", file=sys.stderr)
        runs = (newest,)
    # Before the server listens: a path that is no run ends the command.
    collection = open_collection(runs, problem_files=problems)
    if bundle is not None:
        written = write_bundle(collection, bundle)
        size = f"{written.num_rollouts:,} rollouts, {written.num_bytes / 1e6:,.1f} MB"
        print(f"{written.page}: {size}")
        return
    with ViewerServer(collection, port=port) as server:
        print(f"{server.url}  (Ctrl-C ends)", flush=True)
        if open_browser and _has_screen():
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        # Ctrl-C is the way to end a viewer, and no failure.
        except KeyboardInterrupt:
            print("microcoder: the viewer has ended", file=sys.stderr)


def _has_screen() -> bool:
    """Return whether a browser can show a page here: without a screen one of texts would start."""
    if sys.platform == "darwin":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def report(
    run_directory: Path,
    /,
    *,
    against: Annotated[tuple[Path, ...], Parameter(negative="")] = (),
    pass_at: Annotated[tuple[PositiveInt, ...], Parameter(negative="")] = (),
    json: Json = False,
) -> None:
    """Report on a training run, by the viewer's page on disk, or on an evaluation, by tables; or
    compare two.

    Works on unfinished runs; the report says so. Of a training run it prints the path of the page.

    Parameters
    ----------
    run_directory
        A folder that `microcoder train` or `microcoder eval` wrote.
    against
        Another run on the same problems, such as the baseline, to compare with. Repeatable for
        training runs.
    pass_at
        Of an evaluation: additional k of pass@k.
    """
    from microcoder.eval.report import EvaluationFolder

    if EvaluationFolder(run_directory).is_evaluation:
        _show_evaluation(run_directory, against, pass_at, json=json)
        return
    if pass_at:
        raise ConfigError(
            f"--pass-at is for evaluations, and {run_directory} is none; leave it out"
        )
    from microcoder.view import write_report

    page = write_report(run_directory, against=against)
    if json:
        print(json_module.dumps({"output": str(page)}))
    else:
        print(page)


def _show_evaluation(
    run: Path, against: tuple[Path, ...], pass_at: tuple[int, ...], *, json: bool
) -> None:
    """Print the tables of an evaluation, and those of another one with the difference."""
    from microcoder.eval.report import (
        EvaluationFolder,
        compare,
        render_comparison,
        render_results,
        summarise,
    )

    if len(against) > 1:
        raise ConfigError(
            f"an evaluation is compared with one other; leave out --against {against[1]}"
        )
    after = EvaluationFolder(run)
    results = summarise(after, pass_at=pass_at)
    if not against and json:
        print(json_module.dumps({"output": str(run), **results}))
        return
    if not against:
        print(render_results(results))
        return
    before = EvaluationFolder(against[0])
    results_before = summarise(before, pass_at=pass_at)
    # Before anything is printed: the two may share no problem.
    difference = compare(before, after, pass_at=pass_at)
    if json:
        record = {"output": str(run), **results, "against": results_before, "change": difference}
        print(json_module.dumps(record))
        return
    for figures in (results_before, results):
        print(f"# {figures['name']}\n\n{render_results(figures)}\n")
    print(f"# change\n\n{render_comparison(difference)}")

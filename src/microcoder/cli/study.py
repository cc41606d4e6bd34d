"""`microcoder study`: run, report and plan the studies of `studies/`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from microcoder.cli.train import require_training
from microcoder.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from microcoder.insights.study import StudyFile, StudyRun

app = App(
    name="study", help="Run controlled experiments, judge the paper's claims by them, and plan them at full scale."
)
RUNS = Path("runs/studies")

Name = Annotated[str | None, Parameter(show_default=False)]
Flag = Annotated[bool, Parameter(negative="")]


@app.command
def run(
    name: Name = None,
    /,
    *,
    all: Flag = False,
    quick: Flag = False,
    jobs: int | None = None,
    runs: Path = RUNS,
    dry_run: Flag = False,
) -> None:
    """Do the runs of a study that are missing, several at a time; the same command goes on where it was stopped.

    Parameters
    ----------
    name
        A study file, or a name (or a part of one) in studies/.
    all
        Every study; runs that several studies share are done once.
    quick
        The small version: fewer and smaller steps.
    jobs
        Runs at a time; by default one a core.
    runs
        Folder of all studies' runs.
    dry_run
        Print what would be run and how long it would take, and stop.
    """
    from microcoder.insights.study import MICRO, QUICK, distinct_runs, plan_runs
    from microcoder.insights.workload import catalogue, default_jobs, estimate_seconds, measure_speed
    from microcoder.runs import write_json

    studies = _choose(name, all)
    scale = QUICK if quick else MICRO
    planned = [run for file in studies for run in plan_runs(file, scale=scale, root=runs)]
    distinct = distinct_runs(planned)
    missing = [run for run in distinct if not run.is_finished]
    jobs = jobs or default_jobs()
    speed = measure_speed(distinct)
    seconds = estimate_seconds(missing, jobs=jobs, speed=speed or 1.0)
    for run in distinct if dry_run else ():
        print(f"{'finished' if run.is_finished else 'missing '}  {run.folder}  {run.label}")
    print(
        f"{len(planned)} runs of {len(studies)} studies, {len(distinct)} distinct, {len(missing)} missing; "
        f"about {duration(seconds)} with {jobs} at a time "
        f"({'at the speed of finished runs' if speed else 'on a quiet machine; no finished run to tell'})",
        flush=True,
    )
    if dry_run or not missing:
        return
    require_training()
    from microcoder.insights.workers import Workers

    for folder in {run.folder.parent for run in distinct}:
        write_json(folder / "runs.json", catalogue([run for run in planned if run.folder.parent == folder], folder))
    command = ["microcoder", "study", "run", *([name] if name else ["--all"]), *(["--quick"] if quick else [])]
    with _Display(missing, jobs=jobs) as display:
        failures = Workers(jobs=jobs, logs=runs / "logs", observer=display, command=command).run(missing)
    if failures:
        told = "\n".join(f"  {failure.run.label}: {failure.error}" for failure in failures)
        raise TrainingError(
            f"{len(failures)} of {len(missing)} runs failed; the same command tries them again:\n{told}"
        )


@app.command
def report(
    name: Name = None,
    /,
    *,
    all: Flag = False,
    quick: Flag = False,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("docs/insights"),
    runs: Path = RUNS,
    code: str | None = None,
) -> None:
    """Judge the claims by the finished runs: a page a study with curves, and a scoreboard over all.

    Parameters
    ----------
    name
        A study file, or a name (or a part of one) in studies/.
    all
        Every study, and the scoreboard.
    quick
        The runs of the small version.
    output
        Folder of the pages and figures.
    runs
        Folder of all studies' runs.
    code
        Digest of the code whose runs are meant (a folder in `runs`); by default that of the code at hand.
    """
    from microcoder.insights.study import MICRO, QUICK
    from microcoder.insights.study_report import write_study_report

    studies = _choose(name, all)
    page = write_study_report(
        studies, scale=QUICK if quick else MICRO, root=runs, output=output, code=code, has_scoreboard=name is None
    )
    print(page)


@app.command
def plan(
    name: Name = None,
    /,
    *,
    all: Flag = False,
    scale: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    price: float = 2.5,
) -> None:
    """Write the recipes and the launch plan of a study at full scale, with what it will cost.

    Parameters
    ----------
    name
        A study file, or a name (or a part of one) in studies/.
    all
        Every study.
    scale
        A scale of the study, such as qwen3-4b.
    output
        Folder of the plan; by default plans/<scale>.
    price
        Dollars per H100-hour.
    """
    from microcoder.insights.launch import write_plan

    print(write_plan(_choose(name, all), scale=scale, output=output or Path("plans") / scale, dollars_per_hour=price))


def _choose(name: str | None, everything: bool) -> list[StudyFile]:
    from microcoder.insights.study import find_studies

    if (name is None) != everything:
        raise ConfigError("give the name of one study, or --all")
    return find_studies(name)


def duration(seconds: float) -> str:
    """Return a time for people."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02} min"


class _Display:
    """Bars on a terminal; elsewhere a line when a run ends."""

    def __init__(self, missing: Sequence[StudyRun], *, jobs: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        from microcoder.insights.workload import remaining_work

        self._console = Console(stderr=True)
        self._work = {run.folder: remaining_work(run) for run in missing}
        self._share: dict[Path, float] = {}
        self._since: dict[Path, float] = {}
        self._num_ended = 0
        self._started = time.monotonic()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._whole = self._bars.add_task("all runs", total=1.0, told="")
        self._rows = [self._bars.add_task("", total=1.0, told="starting") for _ in range(jobs)]

    def __enter__(self) -> _Display:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def started(self, run: StudyRun, *, worker: int) -> None:
        """Give the run a bar."""
        self._since[run.folder] = time.monotonic()
        self._bars.update(self._rows[worker], description=run.label, completed=0.0, told="starting")

    def advanced(self, run: StudyRun, event: dict[str, Any], *, worker: int) -> None:
        """Move the run's bar."""
        if event["kind"] == "step":
            share = event["step"] / event["num_steps"]
            self._share[run.folder] = share
            told = f"step {event['step']}/{event['num_steps']}"
            self._bars.update(self._rows[worker], completed=share, told=told)
        elif event["kind"] == "phase":
            self._bars.update(self._rows[worker], told=event["name"])
        self._bars.update(self._whole, completed=self._done, told=f"{self._num_ended} done, {self._left} left")

    def ended(self, run: StudyRun, event: dict[str, Any], *, worker: int) -> None:
        """Write a line that stays."""
        self._num_ended += 1
        self._share[run.folder] = 1.0
        seconds = duration(time.monotonic() - self._since[run.folder])
        result = f"FAILED: {event['error']}" if "error" in event else f"{event['before']:.3f} -> {event['after']:.3f}"
        line = f"{self._num_ended}/{len(self._work)} {run.label}: {result}, {seconds}; {self._left} left"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    @property
    def _done(self) -> float:
        total = sum(self._work.values())
        return sum(self._work[folder] * share for folder, share in self._share.items()) / total if total else 1.0

    @property
    def _left(self) -> str:
        elapsed = time.monotonic() - self._started
        return duration(elapsed / self._done * (1 - self._done)) if self._done else "?"

"""`microcoder study`: run, report and plan the studies of `studies/`."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from microcoder.cli.display import StudyDisplay, describe_seconds
from microcoder.cli.options import Flag, Json
from microcoder.cli.train import require_training
from microcoder.judge.core.errors import ConfigError, TrainingError
from microcoder.judge.core.installation import how_to_install

if TYPE_CHECKING:
    from microcoder.lab.studies.rounds import StudyPlan
    from microcoder.lab.studies.study import StudyFile, Work

app = App(name="study", help="Run controlled experiments and test the paper's claims with them.")
BUDGET_MINUTES = 60.0
"""Of the whole quick catalogue on two cores."""

_NAME = "A study file, or a name (or a part of one) in studies/."
Name = Annotated[str | None, Parameter(show_default=False, help=_NAME)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Which runs of which studies."""

    all: Flag = False
    """All studies; runs that several studies share are done once."""
    quick: Flag = False
    """The quick version: fewer and smaller steps."""
    seeds_from: int = 0
    """Added to every seed, to replicate a study with other seeds."""
    runs: Path = Path("runs/studies")
    """Folder of all studies' runs."""


_DEFAULTS = Chosen()
Choice = Annotated[Chosen, Parameter(name="*")]


@app.command
def run(
    name: Name = None,
    /,
    *,
    chosen: Choice = _DEFAULTS,
    jobs: int | None = None,
    budget_minutes: float | None = None,
    dry_run: Flag = False,
    json: Json = False,
) -> None:
    """Do the missing runs of a study, several in parallel; the same command resumes an interrupted study.

    Parameters
    ----------
    jobs
        Runs in parallel; by default one per core.
    budget_minutes
        Start no new run after this many minutes, earlier commands included; by default 60 for --all --quick.
    dry_run
        Print which runs come first and how long they will take, and stop.
    """
    from microcoder.lab.studies.design import MICRO, QUICK
    from microcoder.lab.studies.rounds import default_jobs, plan_rounds
    from microcoder.lab.studies.workers import StudyWorkers

    studies, scale, jobs = _choose(name, chosen.all), QUICK if chosen.quick else MICRO, jobs or default_jobs()
    budget = budget_minutes or (BUDGET_MINUTES if chosen.all and chosen.quick else None)
    budget_seconds = None if budget is None else 60 * budget
    root, seeds_from = chosen.runs, chosen.seeds_from
    plan = plan_rounds(studies, scale=scale, root=root, seeds_from=seeds_from, jobs=jobs, budget_seconds=budget_seconds)
    summary = _describe(plan, jobs=jobs, budget_minutes=budget) | {"num_studies": len(studies)}
    missing = plan.rounds.waiting
    if not json:
        for work in plan.works if dry_run else ():
            print(f"{'finished' if work.is_finished else 'missing '}  {work.folder}  {work.label}")
        print(_describe_plan(summary, is_measured=plan.speeds.is_known), flush=True)
    if dry_run or not missing:
        if json:
            _print_json(summary)
        return
    require_training()
    _write_catalogue(plan.shared)
    command = ["microcoder", "study", "run", *([name] if name else ["--all"]), *(["--quick"] if chosen.quick else [])]
    with StudyDisplay(missing, jobs=jobs, seconds_of=plan.speeds.seconds_of) as display:
        failures = StudyWorkers(jobs=jobs, logs=root / "logs", observer=display, command=command).run(plan.rounds)
    left = sorted({work.label for work in plan.rounds.left_out})
    if json:
        finished = sum(work.is_finished for work in plan.works)
        _print_json(summary | {"num_finished": finished, "left_out": left, "failed": [f.work.label for f in failures]})
    elif left:
        print(f"the budget of {budget:g} minutes is spent; not started: {'; '.join(left)}")
    if failures:
        reasons = "\n".join(f"  {failure.work.label}: {failure.error}" for failure in failures)
        raise TrainingError(f"{len(failures)} runs failed; type the same command to retry them:\n{reasons}")


@app.command
def report(
    name: Name = None,
    /,
    *,
    chosen: Choice = _DEFAULTS,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("docs/insights"),
    code: str | None = None,
    json: Flag = False,
) -> None:
    """Test the claims with the finished runs: one page per study, and an index of all claims.

    Parameters
    ----------
    output
        Folder of the pages and figures; with --all also of the index.
    code
        Code digest of the runs to use (a folder in `runs`); by default that of the installed code.
    json
        Print the results as one JSON object, and write no page.
    """
    from microcoder.lab.studies.claims import as_records, judge_studies
    from microcoder.lab.studies.design import MICRO, QUICK
    from microcoder.lab.studies.pages import write_study_report
    from microcoder.lab.studies.study import find_studies
    from microcoder.lab.studies.wording import describe_claim

    _require_statistics()
    studies, scale = _choose(name, chosen.all), QUICK if chosen.quick else MICRO
    # A claim is judged among all of them, also if one study alone is reported.
    family = studies if name is None or Path(name).suffix == ".toml" else find_studies(None)
    names = {file.name for file in studies}
    judged = [
        study
        for study in judge_studies(family, scale=scale, root=chosen.runs, code=code, seeds_from=chosen.seeds_from)
        if study.file.name in names
    ]
    if json:
        _print_json(as_records(judged))
        return
    page = write_study_report(judged, output=output, has_index=name is None)
    for study in judged:
        for result in study.claims:
            print(describe_claim(result, study.file.study))
    print(page)


@app.command
def plan(
    name: Name = None,
    /,
    *,
    all: Flag = False,
    scale: str = "quick",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    price: float = 2.5,
    json: Json = False,
) -> None:
    """Print the statistical power of a study before any run; for a full-scale model, write its recipes and cost.

    Parameters
    ----------
    all
        All studies.
    scale
        `quick` or `micro`: each claim's design, smallest effect of interest, expected half width and power. A model
        such as qwen3-4b: its recipes, a launch script and their cost.
    output
        Folder of the launch plan; by default plans/SCALE.
    price
        Dollars per H100-hour.
    """
    from microcoder.lab.studies.design import MICRO, QUICK
    from microcoder.lab.studies.wording import expectation_rows
    from microcoder.lab.studies.workers import write_plan

    studies = _choose(name, all)
    if scale not in (MICRO, QUICK):
        page = write_plan(studies, scale=scale, output=output or Path("plans") / scale, dollars_per_hour=price)
        print(json_module.dumps({"scale": scale, "plan": str(page)}) if json else page)
        return
    _require_statistics()
    rows = expectation_rows(studies, scale=scale)
    if json:
        _print_json({"scale": scale, "claims": rows})
        return
    for row in rows:
        print(f"{row['id']} ({row['family']}, {row['study']}): {row['short']}\n  {row['design']}")
        if row["compared"]:
            print(f"  {row['compared']}; {row['claimed']}.")
        print(f"  {row['expectation']}\n")
    decided, precise = [r for r in rows if r["compared"]], [r for r in rows if r["is_precise"]]
    print(
        f"{len(rows)} claims: {len(decided)} are tested, {len(precise)} of them with an expected half width of at most "
        f"the smallest effect of interest; {len(rows) - len(decided)} are not decidable at this scale."
    )


@app.command
def compare(first: Path, second: Path, /, *, json: Json = False) -> None:
    """Compare the conclusions of two reports, such as a replication with other seeds.

    Parameters
    ----------
    first
        Folder of a report, or its results.json.
    second
        The report to compare it with.
    """
    from microcoder.lab.studies.claims import compare_results, read_results

    found = compare_results(read_results(first), read_results(second))
    if json:
        changed = [{"id": name, "first": before, "second": after} for name, before, after in found.changed]
        _print_json({"kept": found.kept, "changed": changed, "share_kept": found.share_kept})
        return
    total = len(found.kept) + len(found.changed)
    if found.share_kept is None:
        print(f"{first} has no conclusive claim to compare")
        return
    print(f"{len(found.kept)} of {total} conclusive verdicts are the same in both ({found.share_kept:.0%})")
    for name, before, after in found.changed:
        print(f"  {name}: {before}, then {after}")


def _require_statistics() -> None:
    try:
        import scipy  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"this needs {error.name}; type: {how_to_install('insights')}") from None


def _describe(plan: StudyPlan, *, jobs: int, budget_minutes: float | None) -> dict[str, Any]:
    from microcoder.lab.studies.rounds import estimate_seconds

    missing = plan.rounds.waiting
    return {
        "num_planned": len(plan.works),
        "num_finished": sum(work.is_finished for work in plan.works),
        "next": [{"folder": str(work.folder), "label": work.label} for work in missing],
        "seconds": round(estimate_seconds(missing, jobs=jobs, speeds=plan.speeds)),
        "jobs": jobs,
        "budget_minutes": budget_minutes,
        "spent_minutes": round(plan.speeds.spent_seconds / jobs / 60, 1),
    }


def _print_json(value: object) -> None:
    print(json_module.dumps(value, indent=2))


def _describe_plan(summary: Mapping[str, Any], *, is_measured: bool) -> str:
    how = "at the speed of the finished runs" if is_measured else "on an idle machine; no finished run to measure"
    text = (
        f"at most {summary['num_planned']} distinct runs and measurements of {summary['num_studies']} studies; "
        f"{summary['num_finished']} finished; next {len(summary['next'])}, about "
        f"{describe_seconds(summary['seconds'])} with {summary['jobs']} in parallel ({how})"
    )
    if summary["budget_minutes"]:
        text += f"; {summary['spent_minutes']:g} of {summary['budget_minutes']:g} minutes are spent"
    return text


def _choose(name: str | None, everything: bool) -> list[StudyFile]:
    from microcoder.lab.studies.study import find_studies

    if (name is None) != everything:
        raise ConfigError("name one study, or pass --all")
    return find_studies(name)


def _write_catalogue(works: Sequence[Work]) -> None:
    from microcoder.judge.core.files import write_json

    # What each folder of runs stands for: study, level or measurement, seed.
    named: dict[Path, dict[str, list[str]]] = {}
    for work in works:
        named.setdefault(work.folder.parent, {}).setdefault(work.folder.name, []).append(work.label)
    for folder, labels in named.items():
        write_json(folder / "runs.json", dict(sorted(labels.items())))

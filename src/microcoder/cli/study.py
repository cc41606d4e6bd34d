"""`microcoder study`: run, report and plan the studies of `studies/`."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from microcoder.cli.display import describe_seconds
from microcoder.cli.study_display import StudyDisplay
from microcoder.cli.train import require_training
from microcoder.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from microcoder.insights.rounds import StudyPlan
    from microcoder.insights.study import StudyFile, Work

app = App(
    name="study", help="Run controlled experiments, judge the paper's claims by them, and plan them at full scale."
)
RUNS = Path("runs/studies")
BUDGET_MINUTES = 60.0
"""Of the whole quick catalogue on two cores."""

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
    budget_minutes: float | None = None,
    seeds_from: int = 0,
    runs: Path = RUNS,
    dry_run: Flag = False,
    json: Flag = False,
) -> None:
    """Do what is missing of a study, several pieces at a time; the same command resumes.

    Parameters
    ----------
    name
        A study file, or a name (or a part of one) in studies/.
    all
        Every study; what several studies share is done once.
    quick
        The small version: fewer and smaller steps.
    jobs
        Runs at a time; by default one a core.
    budget_minutes
        When to begin nothing more, counted with what earlier commands took; by default 60 for --all --quick.
    seeds_from
        Added to every seed, to ask the same again with others.
    runs
        Folder of all studies' runs.
    dry_run
        Print what would be run first and how long it would take, and stop.
    json
        Print one JSON object in place of sentences.
    """
    from microcoder.insights.design import MICRO, QUICK
    from microcoder.insights.rounds import plan_rounds
    from microcoder.insights.workers import StudyWorkers
    from microcoder.insights.workload import default_jobs

    studies, scale, jobs = _choose(name, all), QUICK if quick else MICRO, jobs or default_jobs()
    budget = budget_minutes or (BUDGET_MINUTES if all and quick else None)
    budget_seconds = None if budget is None else 60 * budget
    plan = plan_rounds(studies, scale=scale, root=runs, seeds_from=seeds_from, jobs=jobs, budget_seconds=budget_seconds)
    told = _describe(plan, jobs=jobs, budget_minutes=budget) | {"num_studies": len(studies)}
    missing = plan.rounds.waiting
    if not json:
        for work in plan.works if dry_run else ():
            print(f"{'finished' if work.is_finished else 'missing '}  {work.folder}  {work.label}")
        print(_tell_plan(told, is_measured=plan.speeds.is_known), flush=True)
    if dry_run or not missing:
        if json:
            _print_json(told)
        return
    require_training()
    _write_catalogue(plan.shared)
    command = ["microcoder", "study", "run", *([name] if name else ["--all"]), *(["--quick"] if quick else [])]
    with StudyDisplay(missing, jobs=jobs, seconds_of=plan.speeds.seconds_of) as display:
        failures = StudyWorkers(jobs=jobs, logs=runs / "logs", observer=display, command=command).run(plan.rounds)
    left = sorted({work.label for work in plan.rounds.left_out})
    if json:
        finished = sum(work.is_finished for work in plan.works)
        _print_json(told | {"num_finished": finished, "left_out": left, "failed": [f.work.label for f in failures]})
    elif left:
        print(f"the budget of {budget:g} minutes is spent; not begun: {'; '.join(left)}")
    if failures:
        reasons = "\n".join(f"  {failure.work.label}: {failure.error}" for failure in failures)
        raise TrainingError(f"{len(failures)} runs failed; the same command tries them again:\n{reasons}")


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
    seeds_from: int = 0,
    json: Flag = False,
) -> None:
    """Judge the claims by what is finished: a page a study, and an index of all claims.

    Parameters
    ----------
    name
        A study file, or a name (or a part of one) in studies/.
    all
        Every study, and the index.
    quick
        The runs of the small version.
    output
        Folder of the pages and figures.
    runs
        Folder of all studies' runs.
    code
        Digest of the code whose runs are meant (a folder in `runs`); by default that of the code at hand.
    seeds_from
        Added to every seed.
    json
        Print the results as one JSON object, and write no page.
    """
    from microcoder.insights.design import MICRO, QUICK
    from microcoder.insights.results import as_records, judge_studies
    from microcoder.insights.study import find_studies
    from microcoder.insights.study_report import write_study_report
    from microcoder.insights.wording import tell_claim

    studies, scale = _choose(name, all), QUICK if quick else MICRO
    # A claim is judged among all of them, also where one study alone is asked for.
    family = studies if name is None or Path(name).suffix == ".toml" else find_studies(None)
    names = {file.name for file in studies}
    judged = [
        study
        for study in judge_studies(family, scale=scale, root=runs, code=code, seeds_from=seeds_from)
        if study.file.name in names
    ]
    if json:
        _print_json(as_records(judged))
        return
    page = write_study_report(judged, output=output, has_index=name is None)
    for study in judged:
        for result in study.claims:
            print(tell_claim(result, study.file.study))
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
    json: Flag = False,
) -> None:
    """Print what the claims' seeds can show before anything is run; for a model's scale, write recipes and costs.

    Parameters
    ----------
    name
        A study file, or a name (or a part of one) in studies/.
    all
        Every study.
    scale
        `quick` or `micro`: each claim's design, smallest effect, expected half width and power. A model's, such as
        qwen3-4b: the recipes, the launch script and what it will cost.
    output
        Folder of the launch plan; by default plans/<scale>.
    price
        Dollars per H100-hour.
    json
        Print the designs as one JSON object.
    """
    from microcoder.insights.design import MICRO, QUICK
    from microcoder.insights.expectations import expectation_rows
    from microcoder.insights.launch import write_plan

    studies = _choose(name, all)
    if scale not in (MICRO, QUICK):
        print(write_plan(studies, scale=scale, output=output or Path("plans") / scale, dollars_per_hour=price))
        return
    rows = expectation_rows(studies, scale=scale)
    if json:
        _print_json({"scale": scale, "claims": rows})
        return
    for row in rows:
        print(f"{row['id']} ({row['family']}, {row['study']}): {row['short']}\n  {row['design']}")
        if row["compared"]:
            print(f"  {row['compared']}; {row['claimed']}.")
        print(f"  {row['told']}\n")
    decided, precise = [r for r in rows if r["compared"]], [r for r in rows if r["is_precise"]]
    print(
        f"{len(rows)} claims: {len(decided)} are tested, {len(precise)} of them with an expected half width of at most "
        f"the smallest effect of interest; {len(rows) - len(decided)} are not decidable at this scale."
    )


@app.command
def compare(first: Path, second: Path, /, *, json: Flag = False) -> None:
    """Say which conclusions of one report are also those of another, with other seeds.

    Parameters
    ----------
    first
        Folder of a report, or its results.json.
    second
        The other's.
    json
        Print one JSON object in place of sentences.
    """
    from microcoder.insights.results import compare_results, read_results

    found = compare_results(read_results(first), read_results(second))
    if json:
        changed = [{"id": name, "first": before, "second": after} for name, before, after in found.changed]
        _print_json({"kept": found.kept, "changed": changed, "share_kept": found.share_kept})
        return
    total = len(found.kept) + len(found.changed)
    if found.share_kept is None:
        print(f"{first} concludes nothing, so there is nothing to keep")
        return
    print(f"{len(found.kept)} of {total} concluded verdicts are the same in both ({found.share_kept:.0%})")
    for name, before, after in found.changed:
        print(f"  {name}: {before}, then {after}")


def _describe(plan: StudyPlan, *, jobs: int, budget_minutes: float | None) -> dict[str, Any]:
    """Return what is to be done, as plain values."""
    from microcoder.insights.workload import estimate_seconds

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


def _write_catalogue(works: Sequence[Work]) -> None:
    """Write beside the runs what each folder stands for."""
    from microcoder.insights.workload import catalogue
    from microcoder.runs import write_json

    for folder in {work.folder.parent for work in works}:
        write_json(folder / "runs.json", catalogue([work for work in works if work.folder.parent == folder], folder))


def _print_json(value: object) -> None:
    print(json_module.dumps(value, indent=2))


def _tell_plan(told: Mapping[str, Any], *, is_measured: bool) -> str:
    how = "at the speed of what is finished" if is_measured else "on a quiet machine; nothing finished to tell"
    text = (
        f"{told['num_planned']} distinct runs and measurements at most, of {told['num_studies']} studies; "
        f"{told['num_finished']} finished; next {len(told['next'])}, about {describe_seconds(told['seconds'])} with "
        f"{told['jobs']} at a time ({how})"
    )
    if told["budget_minutes"]:
        text += f"; {told['spent_minutes']:g} of {told['budget_minutes']:g} minutes are spent"
    return text


def _choose(name: str | None, everything: bool) -> list[StudyFile]:
    from microcoder.insights.study import find_studies

    if (name is None) != everything:
        raise ConfigError("give the name of one study, or --all")
    return find_studies(name)

"""`microcoder study`: run and report the studies of `studies/`."""

from __future__ import annotations

import json as json_module
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.types import PositiveInt

from microcoder.cli.display import Flag, Json, StepDisplay
from microcoder.cli.train import require_training
from microcoder.judge.core.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from microcoder.lab.studies.design import Study
    from microcoder.lab.studies.work import Work

_NAME = "A study file, or a name (or a part of one) in studies/."
"""What `--help` says of the name."""

Name = Annotated[str | None, Parameter(show_default=False, help=_NAME)]
"""Type of the parameter that names a study."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """The studies, scale and seeds that the command line chose."""

    all: Flag = False
    """All studies; runs that several studies share are done once."""
    quick: Flag = False
    """The quick version, fewer and smaller steps: the same as --scale quick."""
    scale: str = "micro"
    """Scale of the study's file, such as qwen3-4b."""
    seeds_from: int = 0
    """Number to add to every seed, also that of a tiny model's warm start, to repeat a study
    elsewhere."""
    runs: Path = Path("runs/studies")
    """Folder of all studies' runs; for a report also the records that another one wrote,
    `NAME-records.tar.xz`."""

    @property
    def size(self) -> str:
        """Name of the chosen scale: `quick` if that flag is set, else `scale`."""
        return "quick" if self.quick else self.scale


_DEFAULTS = Chosen()
"""The choice where the command line makes none."""

Choice = Annotated[Chosen, Parameter(name="*")]
"""Type of the parameter that takes these options."""


def study(
    name: Name = None,
    /,
    *,
    chosen: Choice = _DEFAULTS,
    jobs: PositiveInt | None = None,
    dry_run: Flag = False,
    report: Flag = False,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    records: Path | None = None,
    code: str | None = None,
    json: Json = False,
) -> None:
    """Run controlled experiments and test the paper's claims with them.

    Does the missing runs of a study, several in parallel; the same command resumes an interrupted
    study. With --report it tests the claims with the finished runs: one page per study, and an
    index of all claims.

    Parameters
    ----------
    jobs
        Runs in parallel; by default one per core.
    dry_run
        Print each claim's design and expected interval and the runs, at a model's scale as
        commands, and stop.
    report
        Write the pages of the finished runs; nothing is run.
    output
        With --report: folder of the pages and figures, by default docs/insights; with --all also of
        the index.
    records
        With --report: folder of the file of records, by default that of the pages.
    code
        With --report: code digest of the runs to use (a folder in `runs`, whose `runs.json` says
        which run is which); by default that of the installed code.
    json
        Print one JSON object instead of text; with --report the results, and no page is written.
    """
    if report:
        idle = {"--jobs": jobs, "--dry-run": dry_run}
    else:
        idle = {"-o": output, "--records": records, "--code": code}
    for flag, value in idle.items():
        if value:
            how = "with" if report else "without"
            raise ConfigError(f"{flag} does nothing {how} --report; leave one of them out")
    if report:
        pages = output or Path("docs/insights")
        _report(name, chosen, pages, code, json=json, records_folder=records)
    else:
        _run(name, chosen, jobs, dry_run=dry_run, json=json)


def _run(name: str | None, chosen: Chosen, jobs: int | None, *, dry_run: bool, json: bool) -> None:
    """Do the missing work of the chosen studies, or only describe it."""
    from microcoder.lab.studies.design import MICRO, QUICK
    from microcoder.lab.studies.work import distinct_work, plan_work, write_catalogue
    from microcoder.lab.studies.workers import default_jobs, missing_work

    scale = chosen.size
    # Such a run takes a whole machine, and this command has one pool of processes.
    if scale not in (MICRO, QUICK) and not dry_run:
        raise ConfigError(
            f"runs at {scale} need a machine each; add --dry-run to print their commands"
        )
    studies = _choose(name, chosen.all)
    jobs = jobs or default_jobs()
    planned: list[Work] = []
    for study in studies:
        planned += plan_work(study, scale=scale, root=chosen.runs, seeds_from=chosen.seeds_from)
    works = distinct_work(planned)
    missing = missing_work(works)
    num_left = sum(not work.is_finished for work in works)
    summary: dict[str, Any] = {
        "num_studies": len(studies),
        "num_planned": len(works),
        "num_finished": len(works) - num_left,
        "next": [{"folder": str(work.folder), "label": work.label} for work in missing],
        "jobs": jobs,
    }
    if not json:
        if dry_run:
            for line in _describe(studies, planned, scale):
                print(line)
        print(
            f"{len(works)} distinct runs and measurements of {len(studies)} studies; "
            f"{summary['num_finished']} finished; {num_left} to do, {jobs} in parallel",
            flush=True,
        )
    failed: dict[str, str] = {}
    if missing and not dry_run:
        # Only here: a finished study needs no torch to be looked at.
        require_training()
        # Before the runs: an interrupted study's catalogue names its runs, too.
        write_catalogue(planned)
        command = ["microcoder", "study", name or "--all", "--scale", scale]
        failed = _do(works, jobs, num_left, logs=chosen.runs / "logs", command=command)
        summary["num_finished"] = sum(work.is_finished for work in works)
        summary["failed"] = sorted(failed)
    if json:
        print(json_module.dumps(summary, indent=2))
    # Last, so that what has succeeded is printed first.
    if failed:
        reasons = "\n".join(f"  {label}: {reason}" for label, reason in failed.items())
        raise TrainingError(
            f"{len(failed)} runs failed; type the same command to retry them:\n{reasons}"
        )


def _do(
    works: Sequence[Work], jobs: int, num_left: int, *, logs: Path, command: list[str]
) -> dict[str, str]:
    """Do work and show its progress; return the reasons of failures by the work's label."""
    from microcoder.lab.studies.workers import do_work

    ended: list[Work] = []
    with StepDisplay(unit="runs and measurements") as display:

        def end(work: Work, result: str) -> None:
            ended.append(work)
            display.note(f"{work.label}: {result}")
            display.show("done", len(ended), num_left)

        display.show("done", 0, num_left)
        return do_work(works, jobs=jobs, logs=logs, on_end=end, command=command)


def _report(
    name: str | None,
    chosen: Chosen,
    output: Path,
    code: str | None,
    *,
    json: bool,
    records: Path | None = None,
    records_folder: Path | None = None,
) -> None:
    """Test the claims of the chosen studies with the finished runs, and write their pages.

    Args:
        name: of a study; None: all studies.
        chosen: scale, seeds and folder of runs, or file of records.
        output: folder of the pages.
        code: code digest of the runs; None: that of the installed code.
        json: whether the results are printed, and no page is written.
        records: file of records that the runs were unpacked from.
        records_folder: folder of the file of records that is written; None: that of the pages.
    """
    from microcoder.lab.studies.claims import as_records, judge_studies
    from microcoder.lab.studies.design import find_studies
    from microcoder.lab.studies.pages import write_study_report
    from microcoder.lab.studies.sentences import describe_claim
    from microcoder.lab.studies.work import SUFFIX, unpacked

    _require_insights()
    if chosen.runs.is_file() or chosen.runs.name.endswith(SUFFIX):
        with unpacked(chosen.runs) as runs:
            _report(
                name,
                replace(chosen, runs=runs.parent),
                output,
                # The folder in the file is named by the code that its runs were made by.
                code or runs.name,
                json=json,
                records=chosen.runs,
            )
        return
    studies = _choose(name, chosen.all)
    family = studies
    if name is not None and Path(name).suffix != ".toml":
        # A claim is judged among all of them, also if one study alone is reported.
        family = find_studies(None)
    names = {study.name for study in studies}
    judged_family = judge_studies(
        family, scale=chosen.size, root=chosen.runs, code=code, seeds_from=chosen.seeds_from
    )
    judged = [result for result in judged_family if result.study.name in names]
    if json:
        print(json_module.dumps(as_records(judged), indent=2))
        return
    page = write_study_report(
        judged,
        output=output,
        has_index=name is None,
        records=records,
        records_folder=records_folder,
    )
    for judged_study in judged:
        for result in judged_study.claims:
            print(f"{result.claim.id:<4}{describe_claim(result, judged_study.study)}")
    print(page)


def _require_insights() -> None:
    """Import what reports need: if a package is missing, the command ends before it begins."""
    for package in ("scipy", "matplotlib", "pyarrow"):
        import_module(package)


def _describe(studies: Sequence[Study], planned: Sequence[Work], scale: str) -> Iterator[str]:
    """Yield lines on what a dry run plans: each claim's design, and the runs or their commands."""
    from microcoder.lab.studies.design import MICRO, QUICK
    from microcoder.lab.studies.work import distinct_work

    _require_insights()
    is_tiny = scale in (MICRO, QUICK)
    if is_tiny:
        for study in studies:
            yield from _describe_claims(study, planned, scale)
    by_name = {study.name: study for study in studies}
    for work in distinct_work(planned):
        if is_tiny or work.measurement:
            state = "finished" if work.is_finished else "missing "
            yield f"{state}  {work.folder}  {work.label}"
        else:
            yield _command(by_name[work.study], work, scale)


def _describe_claims(study: Study, planned: Sequence[Work], scale: str) -> Iterator[str]:
    from microcoder.lab.studies.contrasts import count_draws
    from microcoder.lab.studies.sentences import describe_expectation

    draws = count_draws([work for work in planned if work.study == study.name])
    for claim in study.claims:
        yield f"{claim.id} ({claim.family}, {study.name}): {claim.short}\n  {claim.design}"
        if claim.primary:
            yield f"  {study.describe(claim.primary)}."
        yield f"  {describe_expectation(claim, study, scale=scale, draws=draws)}\n"


def _command(study: Study, work: Work, scale: str) -> str:
    """Return the `microcoder train` command that starts or resumes one run.

    It is for a machine with the model's GPUs.
    """
    from microcoder.lab.studies.work import fill_seed, level_keys

    chosen = study.at_scale(scale)
    keys = study.set | chosen.set | level_keys(study, scale=scale, level=work.name)
    keys = json_module.loads(fill_seed(json_module.dumps(keys), work.seed))
    keys["seed"] = work.seed
    words = ["microcoder", "train", "-c", str(study.path.parent / chosen.baseline)]
    for key, value in keys.items():
        words.append(f"--{key}")
        # JSON's numbers, lists and booleans are TOML's, too, which flags are read as.
        words.append(value if isinstance(value, str) else json_module.dumps(value))
    return shlex.join([*words, "--run-dir", str(work.folder)])


def _choose(name: str | None, everything: bool) -> list[Study]:
    """Return the named study, or all of them; ConfigError unless it is exactly one of these."""
    from microcoder.lab.studies.design import find_studies

    if (name is None) != everything:
        raise ConfigError("name one study, or pass --all")
    return find_studies(name)

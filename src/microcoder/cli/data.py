"""`microcoder data`: build a corpus from raw problem sets, export and publish it.

`microcoder data audit` checks a published set.
"""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.types import PositiveInt

from microcoder.cli.display import (
    Flag,
    Json,
    Overrides,
    Recipes,
    StepDisplay,
    parse_overrides,
    print_resolved,
)
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.languages.packages import STANDARD

if TYPE_CHECKING:
    from microcoder.data.corpus.build import AuditResult, BuildPlan, Built
    from microcoder.data.corpus.settings import BuildConfig, SourceSettings


def audit(
    source: str = "",
    /,
    *,
    form: Annotated[str, Parameter(name=["--format"])] = "",
    columns: str = "",
    config: Recipes = (),
    inside: str = "",
    benchmark: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    limit: PositiveInt | None = None,
    seed: int = 0,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("data-audit"),
    patch: Path | None = None,
    static: Flag = False,
    workers: int | None = None,
    packages: str = STANDARD,
    unsafe: Flag = False,
    json: Json = False,
) -> None:
    """Report which rows of a dataset a build would reject, and why; rejects nothing. Resumable.

    Failing references, wrong programs that pass, tests shown in the statement, missing checkers and
    licences, lost bounds, duplicates, benchmark contamination. See docs/dataset-audit.md. Without a
    source it lists the formats.

    Parameters
    ----------
    source
        A file, a folder, an archive (tar or zip), or hf://datasets/owner/name/config/split; with
        `-c` the name of a source in that config.
    form
        Its format; `microcoder data audit` alone lists them.
    columns
        Columns of rows with names of their own:
        statement=task.text,tests=cases,input=stdin,output=stdout.
    config
        Config of a build. Repeat to override it with further ones. Its benchmarks are checked for,
        too.
    inside
        A file or folder inside the source.
    benchmark
        FORMAT=PATH of a benchmark to check for contamination, such as humaneval=HumanEval.jsonl.gz;
        repeatable.
    limit
        Number of rows to audit, sampled by the seed; by default all.
    seed
        Seed of the sample.
    output
        Folder of report.md, summary.json and findings.jsonl.
    patch
        Folder that gets patch.jsonl: changes for the set's maintainers, a row each with its
        evidence.
    static
        Run no program.
    workers
        Programs in parallel; by default one per core.
    packages
        Packages that programs may import: standard, atcoder, none, or the path of a file of pinned
        packages.
    unsafe
        Run programs even if the sandbox lacks isolation. Only for programs that you trust.
    """

    # Before the imports: they name one missing package at a time, and never pandoc.
    require_data()
    from microcoder.data.corpus.build import audit as audit_source
    from microcoder.data.corpus.patches import PATCH, count_by_kind
    from microcoder.data.corpus.settings import BuildConfig
    from microcoder.data.testgen.settings import GenerateSettings

    if not source:
        _list_formats(json=json)
        return
    benchmarks = [_read_benchmark(text) for text in benchmark]
    if config:
        if form or inside or columns:
            raise ConfigError(
                "--format, --columns and --inside are said by the config; leave them out, or -c"
            )
        build = load_config(BuildConfig, config)
        audited = _find_source(build, source, config[-1])
        benchmarks = [*build.benchmarks, *benchmarks]
    else:
        audited = _read_source(source, form, inside, columns)
    # Not validated: a benchmark, which is never trained on, may be looked at.
    settings = BuildConfig.model_construct(
        name="audit",
        output=output,
        sources=(audited,),
        benchmarks=tuple(benchmarks),
        workers=workers,
        generate=GenerateSettings(mode="off"),
        packages=packages,
        unsafe=unsafe,
    )
    with StepDisplay(unit="rows") as display:
        done = audit_source(
            settings,
            limit=limit,
            seed=seed,
            runs_programs=not static,
            patch_folder=patch,
            on_progress=display.show,
        )
    if json:
        _print_audit_as_json(done, patch)
        return
    for finding in done.findings:
        interval = f"{finding.low:.1%} to {finding.high:.1%}"
        counts = f"{finding.num:>7,} {finding.share:>8.1%}"
        print(f"{finding.stage:8} {finding.kind:22} {counts}  {interval}")
    print(f"{done.num_rows:,} rows; report: {done.report}")
    if patch is not None:
        for (kind, action), count in count_by_kind(done.patches).items():
            print(f"{kind:27} {action:20} {count:>7,}")
        print(f"{len(done.patches):,} proposed changes: {patch / PATCH}")


def _print_audit_as_json(done: AuditResult, patch: Path | None) -> None:
    from microcoder.data.corpus.patches import PATCH, count_by_kind

    changes = []
    for (kind, action), count in count_by_kind(done.patches).items():
        changes.append({"kind": kind, "action": action, "num": count})
    record: dict[str, object] = {
        "output": str(done.report),
        "num_rows": done.num_rows,
        "findings": [finding._asdict() for finding in done.findings],
        "patch": None,
        "proposed_changes": changes,
    }
    if patch is not None:
        record["patch"] = str(patch / PATCH)
    print(json_module.dumps(record))


def _list_formats(*, json: bool) -> None:
    from microcoder.data.formats.rows import FORMATS

    if json:
        formats = {}
        for name, known in sorted(FORMATS.items()):
            formats[name] = known.about
        print(json_module.dumps({"formats": formats}))
        return
    for name, known in sorted(FORMATS.items()):
        print(f"{name:24} {known.about}")


def _find_source(build: BuildConfig, name: str, recipe: Path) -> SourceSettings:
    """Return the source of a config that has a name."""
    by_name = {source.prefix: source for source in build.sources}
    if name not in by_name:
        raise ConfigError(
            f"{recipe} has no source called {name!r}; use one of {', '.join(by_name)}"
        )
    return by_name[name]


def _read_source(path: str, form: str, inside: str, columns: str) -> SourceSettings:
    """Return the source that the command line describes."""
    from microcoder.data.corpus.settings import SourceSettings

    if not form:
        raise ConfigError("--format is missing; `microcoder data audit` alone lists what it may be")
    keys = {"path": path, "format": form, "inside": inside, "columns": columns}
    return load_config(SourceSettings, layers=[keys])


def _read_benchmark(text: str) -> SourceSettings:
    from microcoder.data.corpus.settings import SourceSettings

    # At the first mark, since a path may hold others.
    form, mark, path = text.partition("=")
    if not mark or not form or not path:
        raise ConfigError(
            f"--benchmark {text}: write FORMAT=PATH, such as humaneval=HumanEval.jsonl.gz"
        )
    return SourceSettings(path=path, format=form)


app = App(
    name="data", help="Build a corpus from raw problem sets, or audit one; export and publish it."
)

app.command(audit)

_REASONS_SHOWN = 8
"""Most reasons, and most problems, that a line names."""

_DRY_RUN = "Print the resolved config and the work left, and stop."
"""What `--help` says of a build's dry run."""

DryRun = Annotated[bool, Parameter(negative="", help=_DRY_RUN)]
"""Type of the parameter that asks for a dry run of a build."""

Corpus = Annotated[Path, Parameter(help="Folder that `microcoder data build` finished.")]
"""Type of the parameter that names a corpus."""


@app.command
def build(
    *overrides: Overrides,
    config: Recipes = (),
    until: Literal["collect", "process", "filter", "generate", "verify"] = "verify",
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Collect, process, filter, generate, verify, and write the corpus; the same command resumes an
    interrupted build.

    Any key of the config can be given as a flag: `--output corpora/mine --runner ray`. See
    docs/dataset.md.

    Parameters
    ----------
    until
        Stage to end with; only after `verify` is the corpus written. `filter` ends
        before the comparison with benchmarks by execution.
    """
    require_data()
    if not config and not overrides:
        raise ConfigError("no config; type: microcoder data build -c recipes/data/NAME.toml")
    # Pulls in what reads and compares data, which `--help` does without.
    from microcoder.data.corpus.build import plan_build, run_build
    from microcoder.data.corpus.settings import BuildConfig

    resolved = load_config(BuildConfig, config, parse_overrides(overrides))
    if resolved.runner == "ray" and find_spec("ray") is None:
        raise ConfigError(
            f"runner = 'ray' needs Ray; type: {how_to_install('ray')}, or leave the runner out"
        )
    plan = plan_build(resolved, last=until)
    if dry_run and json:
        _print_plan_as_json(resolved, plan)
        return
    if dry_run:
        print_resolved(resolved.model_dump(mode="json"))
    if not json:
        left = [f"{step} {num_rows:,}" for step, num_rows in plan.missing.items() if num_rows]
        work = f"left to do: {', '.join(left)}" if left else "all is done"
        # On stderr, which leaves stdout to the result.
        print(f"{plan.num_rows:,} rows in {len(plan.shards)} shards; {work}", file=sys.stderr)
    if dry_run:
        return
    with StepDisplay(unit="rows") as display:
        built = run_build(resolved, plan, on_progress=display.show)
    if json:
        _print_built_as_json(built)
    else:
        _print_built(built)


def _print_plan_as_json(config: BuildConfig, plan: BuildPlan) -> None:
    num_bytes = 0
    for shard in plan.shards:
        num_bytes += sum(part.num_bytes for part in shard.place[1])
    record = {
        "config": config.model_dump(mode="json"),
        "rows": plan.num_rows,
        "bytes": num_bytes,
        "shards": len(plan.shards),
        "missing": plan.missing,
    }
    print(json_module.dumps(record))


def _print_built_as_json(built: Built) -> None:
    steps = []
    for counts in built.step_counts:
        steps.append(
            {
                "step": counts.step,
                "in": counts.num_in,
                "kept": counts.num_kept,
                "rejected": counts.num_rejected,
                "reasons": dict(counts.reasons),
            }
        )
    corpus = None
    if built.corpus is not None:
        corpus = str(built.corpus)
    record = {
        "output": corpus,
        "corpus": corpus,
        "was_finished": built.was_finished,
        "steps": steps,
    }
    print(json_module.dumps(record))


def _print_built(built: Built) -> None:
    """Print a table of the steps, and where the corpus is, if it was written."""
    print(f"{'step':14} {'in':>9} {'kept':>9} {'rejected':>9}")
    for counts in built.step_counts:
        numbers = f"{counts.num_in:9,} {counts.num_kept:9,} {counts.num_rejected:9,}"
        print(f"{counts.step:14} {numbers}")
        if counts.reasons:
            print(f"    {_list_reasons(counts.reasons)}")
    if built.corpus:
        state = "already existed" if built.was_finished else "written"
        print(
            f"corpus {state}: {built.corpus}; type `microcoder view {built.corpus}` to look into it"
        )
        _warn_of_guessable(built.corpus / "funnel.json")
        # An empty corpus is written all the same, and nobody should have to open it to see that.
        if not built.step_counts[-1].num_kept:
            print("no problem was kept; `microcoder view` shows why each row went", file=sys.stderr)


def _list_reasons(reasons: Mapping[str, int]) -> str:
    """Return the first reasons of a step with their counts, and the number of others."""
    shown = [f"{reason} {num:,}" for reason, num in reasons.items()][:_REASONS_SHOWN]
    num_more = len(reasons) - _REASONS_SHOWN
    if num_more > 0:
        shown.append(f"{num_more} other reasons")
    return ", ".join(shown)


def _warn_of_guessable(path: Path) -> None:
    """Print the problems of a corpus that are often solved by guessing, if its funnel names any."""
    funnel = json_module.loads(path.read_text(encoding="utf-8"))
    guessable = funnel["figures"]["tests"]["guessable"]
    if guessable:
        print(
            f"{len(guessable)} problems have two answers and so few hidden tests that guessing "
            f"passes more than 5 % of the time: {', '.join(guessable[:_REASONS_SHOWN])} "
            f"(all: {path})",
            file=sys.stderr,
        )


@app.command
def export(
    corpus: Corpus,
    /,
    *,
    form: Annotated[str, Parameter(name=["--to"])],
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    json: Json = False,
) -> None:
    """Write a finished corpus in the form of a trainer.

    Parameters
    ----------
    form
        `verl` (Parquet), `trl`, `nemogym` or `verifiers` (JSON lines), or `jsonl` (our own problem
        lines).
    output
        The file to write.
    """
    require_data()
    from microcoder.data.release import export as write
    from microcoder.data.release import read_released

    problems = read_released(corpus)
    write(problems, output, form=form)
    if json:
        record = {"output": str(output), "format": form, "num_problems": len(problems)}
        print(json_module.dumps(record))
        return
    print(f"{len(problems)} problems written to {output}")


@app.command
def convert(
    rows: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    form: Annotated[str | None, Parameter(name=["--format"])] = None,
    columns: str = "",
    with_test_rows: Flag = False,
    json: Json = False,
) -> None:
    """Make a problem file, which train, init and eval read, of rows of any known format; nothing is
    executed.

    Rows that cannot be judged whole are left out and counted. See docs/rows.md.

    Parameters
    ----------
    rows
        A file of rows (JSON lines, a JSON list, Parquet), or a folder of such files.
    output
        The problem file to write (.jsonl): whole or not at all.
    form
        Their format, of docs/rows.md, or a reader of your own; by default told by their fields.
    columns
        Columns of rows with names of their own:
        id=uid,statement=task.text,tests=cases,input=stdin,output=stdout.
    with_test_rows
        Keep test rows of a benchmark, which must not be trained on: for held-out problems.
    """
    from microcoder.data.formats.columns import parse_columns
    from microcoder.data.release.convert import convert as make
    from microcoder.data.release.convert import describe

    done = make(
        rows, output, format=form, columns=parse_columns(columns), with_test_rows=with_test_rows
    )
    if json:
        left_out = {why: len(rows_left_out) for why, rows_left_out in done.left_out.items()}
        record = {"output": str(output), "num_problems": done.num_problems, "left_out": left_out}
        print(json_module.dumps(record))
        return
    print(f"{done.num_problems:,} of {done.num_rows:,} rows are problems now: {output}")
    for line in describe(done):
        print(line, file=sys.stderr)


@app.command
def push(corpus: Corpus, /, *, repo: str, private: Flag = False, json: Json = False) -> None:
    """Upload a finished corpus to the Hugging Face Hub, without rejected rows' contents and
    problems without a licence.

    Parameters
    ----------
    repo
        `owner/name` of the dataset; created if it does not exist.
    private
        Make it private.
    """
    require_data()
    from microcoder.data.release.publishing import push as upload

    done = upload(corpus, repo=repo, is_private=private)
    if json:
        record = {
            "output": done.address,
            "num_problems": done.num_problems,
            "num_left_out": done.num_left_out,
        }
        print(json_module.dumps(record))
        return
    print(f"{done.num_problems} problems pushed to {done.address}")
    if done.num_left_out:
        why = "no licence is stated for them; give their source one and build again"
        print(f"{done.num_left_out} left out: {why}", file=sys.stderr)


def require_data() -> None:
    """Raise ConfigError unless the packages of the data extra and pandoc are installed."""
    missing = [name for name in ("pyarrow", "ftfy", "py3langid") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"data needs {', '.join(missing)}; type: {how_to_install('data')}")
    from microcoder.data.clean.tex import find_pandoc

    find_pandoc()

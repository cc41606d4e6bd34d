"""`microcoder data`: build a corpus from raw problem sets, export and publish it.

`microcoder data audit` checks a published set.
"""

from __future__ import annotations

import json as json_module
import sys
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
    from microcoder.data.corpus.build import Built
    from microcoder.data.corpus.settings import SourceSettings


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
    static: Flag = False,
    workers: int | None = None,
    packages: str = STANDARD,
    unsafe: Flag = False,
) -> None:
    """Report which rows of a dataset a build would reject, and why; rejects nothing. Resumable.

    Failing references, wrong programs that pass, tests shown in the statement, missing checkers and licences, lost
    bounds, duplicates, benchmark contamination. See docs/dataset-audit.md. Without a source it lists the formats.

    Parameters
    ----------
    source
        A file, a folder, an archive (tar or zip), or hf://datasets/owner/name/config/split; with `-c` the name of a
        source in that config.
    form
        Its format; `microcoder data audit` alone lists them.
    columns
        Columns of rows with names of their own: statement=task.text,tests=cases,input=stdin,output=stdout.
    config
        Config of a build. Repeat to override it with further ones. Its benchmarks are checked for, too.
    inside
        A file or folder inside the source.
    benchmark
        FORMAT=PATH of a benchmark to check for contamination, such as humaneval=HumanEval.jsonl.gz; repeatable.
    limit
        Number of rows to audit, sampled by the seed; by default all.
    seed
        Seed of the sample.
    output
        Folder of report.md, summary.json and findings.jsonl.
    static
        Run no program.
    workers
        Programs in parallel; by default one per core.
    packages
        Packages that programs may import: standard, atcoder, none, or the path of a file of pinned packages.
    unsafe
        Run programs even if the sandbox lacks isolation. Only for programs that you trust.
    """

    require_data()
    from microcoder.data.corpus.build import audit as look
    from microcoder.data.corpus.settings import BuildConfig, SourceSettings
    from microcoder.data.testgen.settings import GenerateSettings

    if not source:
        from microcoder.data.formats.rows import FORMATS

        print("\n".join(f"{name:24} {known.about}" for name, known in sorted(FORMATS.items())))
        return
    named = tuple(_read_benchmark(text) for text in benchmark)
    if config:
        if form or inside or columns:
            raise ConfigError(
                "--format, --columns and --inside are said by the config; leave them out, or -c"
            )
        build = load_config(BuildConfig, config)
        found = {one.prefix: one for one in build.sources}
        if source not in found:
            raise ConfigError(
                f"{config[-1]} has no source called {source!r}; use one of {', '.join(found)}"
            )
        audited, known = found[source], build.benchmarks
    elif form:
        named_source = {"path": source, "format": form, "inside": inside, "columns": columns}
        audited = load_config(SourceSettings, layers=[named_source])
        known = ()
    else:
        raise ConfigError("--format is missing; `microcoder data audit` alone lists what it may be")
    # Not validated: a benchmark, which is never trained on, may be looked at.
    settings = BuildConfig.model_construct(
        name="audit", output=output, sources=(audited,), benchmarks=(*known, *named), workers=workers,
        generate=GenerateSettings(mode="off"), packages=packages, unsafe=unsafe,
    )  # fmt: skip
    with StepDisplay(unit="rows") as display:
        done = look(
            settings, limit=limit, seed=seed, runs_programs=not static, on_progress=display.show
        )
    for one in done.findings:
        print(
            f"{one.stage:8} {one.kind:22} {one.num:>7,} {one.share:>8.1%}  {one.low:.1%} to {one.high:.1%}"
        )
    print(f"{done.num_rows:,} rows; report: {done.report}")


def _read_benchmark(text: str) -> SourceSettings:
    from microcoder.data.corpus.settings import SourceSettings

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
_DRY_RUN = "Print the resolved config and the work left, and stop."
DryRun = Annotated[bool, Parameter(negative="", help=_DRY_RUN)]
Corpus = Annotated[Path, Parameter(help="Folder that `microcoder data build` finished.")]


@app.command
def build(
    *overrides: Overrides,
    config: Recipes = (),
    until: Literal["collect", "process", "filter", "generate", "verify"] = "verify",
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Collect, process, filter, generate, verify, and write the corpus; the same command resumes an interrupted build.

    Any key of the config can be given as a flag: `--output corpora/mine --runner ray`. See docs/dataset.md.

    Parameters
    ----------
    until
        Stage to end with; only after `verify` is the corpus written.
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
    expected = {
        "rows": plan.num_rows,
        "bytes": sum(part.num_bytes for shard in plan.shards for part in shard.place[1]),
        "shards": len(plan.shards),
        "missing": plan.missing,
    }
    if dry_run:
        record = resolved.model_dump(mode="json")
        if json:
            print(json_module.dumps({"config": record, **expected}))
            return
        print_resolved(record)
    if not json:
        left = ", ".join(
            f"{step} {num_rows:,}" for step, num_rows in plan.missing.items() if num_rows
        )
        print(
            f"{plan.num_rows:,} rows in {len(plan.shards)} shards; {f'left to do: {left}' if left else 'all is done'}",
            file=sys.stderr,
        )
    if dry_run:
        return
    with StepDisplay(unit="rows") as display:
        built = run_build(resolved, plan, on_progress=display.show)
    record = {
        "corpus": str(built.corpus) if built.corpus else None,
        "was_finished": built.was_finished,
        "steps": [
            {
                "step": p.step,
                "in": p.num_in,
                "kept": p.num_kept,
                "rejected": p.num_rejected,
                "reasons": dict(p.reasons),
            }
            for p in built.step_counts
        ],
    }
    if json:
        print(json_module.dumps(record))
    else:
        _print_built(built)


def _print_built(built: Built) -> None:
    print(f"{'step':14} {'in':>9} {'kept':>9} {'rejected':>9}")
    for one in built.step_counts:
        print(f"{one.step:14} {one.num_in:9,} {one.num_kept:9,} {one.num_rejected:9,}")
        if one.reasons:
            shown = ", ".join(
                f"{reason} {num:,}" for reason, num in list(one.reasons.items())[:_REASONS_SHOWN]
            )
            num_more = len(one.reasons) - _REASONS_SHOWN
            print(f"    {shown}{f', {num_more} other reasons' if num_more > 0 else ''}")
    if built.corpus:
        state = "already existed" if built.was_finished else "written"
        print(
            f"corpus {state}: {built.corpus}; type `microcoder view {built.corpus}` to look into it"
        )
        funnel = json_module.loads((built.corpus / "funnel.json").read_text(encoding="utf-8"))
        if guessable := funnel["figures"]["tests"]["guessable"]:
            print(
                f"{len(guessable)} problems have two answers and so few hidden tests that guessing passes more than "
                f"5 % of the time: {', '.join(guessable[:_REASONS_SHOWN])} (all: {built.corpus / 'funnel.json'})",
                file=sys.stderr,
            )
        if not built.step_counts[-1].num_kept:
            print("no problem was kept; `microcoder view` shows why each row went", file=sys.stderr)


@app.command
def export(
    corpus: Corpus,
    /,
    *,
    form: Annotated[str, Parameter(name=["--to"])],
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
) -> None:
    """Write a finished corpus in the form of a trainer.

    Parameters
    ----------
    form
        `verl` (Parquet), `trl`, `nemogym` or `verifiers` (JSON lines), or `jsonl` (our own problem lines).
    output
        The file to write.
    """
    require_data()
    from microcoder.data.release import export as write
    from microcoder.data.release import read_released

    problems = read_released(corpus)
    write(problems, output, form=form)
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
    """Make a problem file, which train, init and eval read, of rows of any known format; nothing is executed.

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
        Columns of rows with names of their own: id=uid,statement=task.text,tests=cases,input=stdin,output=stdout.
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
        left_out = {why: len(places) for why, places in done.left_out.items()}
        record = {"output": str(output), "num_problems": done.num_problems, "left_out": left_out}
        print(json_module.dumps(record))
        return
    print(f"{done.num_problems:,} of {done.num_rows:,} rows are problems now: {output}")
    for line in describe(done):
        print(line, file=sys.stderr)


@app.command
def push(corpus: Corpus, /, *, repo: str, private: Flag = False) -> None:
    """Upload a finished corpus to the Hugging Face Hub, without rejected rows' contents and problems without a licence.

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
    print(f"{done.num_problems} problems pushed to {done.address}")
    if done.num_left_out:
        said = "no licence is stated for them; give their source one and build again"
        print(f"{done.num_left_out} left out: {said}", file=sys.stderr)


def require_data() -> None:
    """Raise ConfigError unless the packages of the data extra and pandoc are installed."""
    missing = [name for name in ("pyarrow", "ftfy", "py3langid") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"data needs {', '.join(missing)}; type: {how_to_install('data')}")
    from microcoder.data.clean.tex import find_pandoc

    find_pandoc()

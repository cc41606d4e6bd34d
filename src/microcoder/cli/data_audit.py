"""`microcoder data audit`: what is wrong with a published set?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from microcoder.cli.display import StepDisplay
from microcoder.cli.options import Flag, Json, Recipes
from microcoder.errors import ConfigError
from microcoder.evaluator.packages import STANDARD

if TYPE_CHECKING:
    from microcoder.dataset.build.config import SourceSettings


def audit(
    source: str,
    /,
    *,
    form: Annotated[str, Parameter(name=["--format"])] = "",
    config: Recipes = (),
    inside: str = "",
    benchmark: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    limit: int | None = None,
    seed: int = 0,
    output: Annotated[Path, Parameter(name=["--output", "-o"])] = Path("data-audit"),
    static: Flag = False,
    workers: int | None = None,
    packages: str = STANDARD,
    unsafe_sandbox: Flag = False,
    json: Json = False,
) -> None:
    """Find the flaws of a published dataset without building it; the same command resumes an interrupted audit.

    Failing references, wrong programs that pass, tests shown in the statement, missing checkers and licences, lost
    bounds, duplicates, benchmark contamination. See docs/dataset-audit.md.

    Parameters
    ----------
    source
        A file, a folder, a tar archive, or hf://datasets/owner/name/config/split; with `-c` the name of a source in
        that config, which is read with its columns and joins.
    form
        Its format; `microcoder data formats` lists them.
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
        Folder of report.md, summary.json, rows.jsonl and a list of rows for each finding.
    static
        Run no program: only static checks.
    workers
        Programs in parallel; by default one per core.
    packages
        Packages that programs may import: standard, atcoder, none, or the path of a file of pinned packages.
    unsafe_sandbox
        Run programs even if the sandbox lacks isolation. Only for programs that you trust.
    """
    from microcoder.cli.data import require_data

    require_data()
    from microcoder.dataset.audit import AuditSettings
    from microcoder.dataset.audit import audit as look
    from microcoder.dataset.build.config import SourceSettings

    if limit is not None and limit < 1:
        raise ConfigError(f"--limit {limit}: use 1 or more, or leave it out for all rows")
    named = tuple(_read_benchmark(text) for text in benchmark)
    if config:
        if form or inside:
            raise ConfigError("--format and --inside are said by the config; leave them out, or -c")
        audited_source, benchmarks = _find_source(source, config)
    elif form:
        audited_source, benchmarks = SourceSettings(path=source, format=form, inside=inside), ()
    else:
        raise ConfigError(_ask_for_format(source, inside))
    settings = AuditSettings(
        source=audited_source,
        benchmarks=(*benchmarks, *named),
        limit=limit,
        seed=seed,
        runs_programs=not static,
        output=output,
        workers=workers,
        packages=packages,
        unsafe_sandbox=unsafe_sandbox,
    )
    with StepDisplay(unit="rows") as display:
        audited = look(settings, on_progress=lambda done, total: display.show("audit", done, total))
    if json:
        print((output / "summary.json").read_text(encoding="utf-8").strip())
        return
    table = [line for line in audited.report.read_text(encoding="utf-8").split("\n") if line.startswith("| ")]
    for line in table:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not set(cells[0]) <= {"-", " "}:
            print(f"{cells[0].partition(']')[0].lstrip('['):22} {cells[1]:>7} {cells[2]:>10} {cells[3]:>8}  {cells[4]}")
    print(f"report: {audited.report}")


def _find_source(name: str, recipes: Sequence[Path]) -> tuple[SourceSettings, tuple[SourceSettings, ...]]:
    """Return a source of a build's config by its name, and the benchmarks beside it."""
    from microcoder.config import load_config
    from microcoder.dataset.build.config import BuildConfig

    build = load_config(BuildConfig, recipes)
    found = {one.prefix: one for one in build.sources}
    if name not in found:
        raise ConfigError(f"{recipes[-1]} has no source called {name!r}; use one of {', '.join(found)}")
    return found[name], build.benchmarks


def _ask_for_format(source: str, inside: str) -> str:
    """Return what to type where no format was given, with the format that the first row looks like."""
    from microcoder.dataset.sources import find_format
    from microcoder.formats.catalogue import FORMATS

    guess = find_format(Path(source) / inside)
    said = f"its first row looks like {guess}" if guess else f"use one of {', '.join(sorted(FORMATS))}"
    inside = f" --inside {inside}" if inside else ""
    typed = f"microcoder data audit {source}{inside} --format {guess or 'FORMAT'}"
    return f"--format is missing; {said}. Type: {typed} (microcoder data formats says what each is)"


def _read_benchmark(text: str) -> SourceSettings:
    from microcoder.dataset.build.config import SourceSettings

    form, mark, path = text.partition("=")
    if not mark or not form or not path:
        raise ConfigError(f"--benchmark {text}: write FORMAT=PATH, such as humaneval=HumanEval.jsonl.gz")
    return SourceSettings(path=path, format=form)

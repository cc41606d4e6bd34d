"""`microcoder data audit`: what is wrong with a published set?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from microcoder.cli.display import StepDisplay
from microcoder.cli.options import Flag, Json
from microcoder.errors import ConfigError
from microcoder.evaluator.packages import STANDARD

if TYPE_CHECKING:
    from microcoder.dataset.build.config import SourceSettings


def audit(
    source: str,
    /,
    *,
    form: Annotated[str, Parameter(name=["--format"])],
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
        A file, a folder, a tar archive, or hf://datasets/owner/name/config/split.
    form
        Its format; `microcoder data formats` lists them.
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
    settings = AuditSettings(
        source=SourceSettings(path=source, format=form, inside=inside),
        benchmarks=tuple(_read_benchmark(text) for text in benchmark),
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


def _read_benchmark(text: str) -> SourceSettings:
    from microcoder.dataset.build.config import SourceSettings

    form, mark, path = text.partition("=")
    if not mark or not form or not path:
        raise ConfigError(f"--benchmark {text}: write FORMAT=PATH, such as humaneval=HumanEval.jsonl.gz")
    return SourceSettings(path=path, format=form)

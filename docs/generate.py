"""Write reference.md (keys, metrics, folders), commands.md and costs.md from the code,
and the pages of benchmarks/figures.json.

A number in any other page that counts what the code or a file of data holds has a mark behind it,
and is filled in:

    Rows of 23<!-- count: formats --> formats are read.

So are a claim's effect and verdict, between two marks, from the pages of the studies:

    <!-- effect: C4 -->-30.4 points<!-- end --> (<!-- verdict: C4 -->inconclusive<!-- end -->)

`make docs` runs it; a test compares.
"""

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from microcoder.cli import build_app
from microcoder.data.corpus.settings import BuildConfig
from microcoder.data.formats.rows import FORMATS
from microcoder.eval import EvalConfig, report
from microcoder.eval.config import DistillConfig
from microcoder.judge.core.config import list_keys
from microcoder.judge.core.syntax import attribute_docstrings
from microcoder.judge.core.types import Problem
from microcoder.lab.yardstick.cases import STORED, load_suite
from microcoder.train import metrics, runs
from microcoder.train.recipe.recipe import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
JSON_SHAPES = {
    "judge": "`output`, counts of programs; of answers those of `eval`",
    "init": "`output`, `train`, `verl_command`",
    "train": "`output`, `report`, those of its `summary.json`",
    "report": "`output`; of an evaluation those of `eval`, `against`, `change`",
    "replay": "`name`, `format`, `notes`, `recorded`, `alternatives`, `payments`, ...",
    "doctor": "`ok`, versions, `languages`, `isolation`, `self_test`",
    "audit-judge": "`output`, `judges`: `judge`, `about`, `problem`, `rates`",
    "eval": "`output`, `num_problems`, `outcomes`, `cells`, ...",
    "distill": "`output`, those of its `summary.json`",
    "data audit": "`output`, `num_rows`, `findings`, `patch`, `proposed_changes`",
    "data build": "`output`, `corpus`, `was_finished`, `steps`",
    "data export": "`output`, `format`, `num_problems`",
    "data convert": "`output`, `num_problems`, `left_out`",
    "data push": "`output`, `num_problems`, `num_left_out`",
    "packages": "`output`, `python`, `profiles`, `headers`",
    "study": "`num_studies`, `num_planned`, `num_finished`, `next`; with `--report` claims",
}
"""Command -> what it prints with `--json`, in words."""

sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "docs")]
import costs  # noqa: E402
import figures  # noqa: E402


def render_reference() -> str:
    """Return keys, records and files as Markdown."""
    lines = [
        "# Keys, files and metrics",
        "",
        (
            "Every key of a recipe, an evaluation and a corpus; every file of a run. Written "
            "by `make docs` from the code."
        ),
        "",
        "## Recipe keys",
        "",
        "Any key can be given as a flag: `--algorithm.masking.rho 0.2`.",
        "",
        *_table(TrainConfig),
        "",
        "## Evaluation keys",
        "",
        "Of `microcoder eval`; any key can be given as a flag: `--sampling.num_samples 10`.",
        "",
        *_table(EvalConfig),
        "",
        "## Distillation keys",
        "",
        "Of `microcoder distill`; any key can be given as a flag: `--learning-rate 1e-5`.",
        "",
        *_table(DistillConfig),
        "",
        "## Corpus keys",
        "",
        "Of `microcoder data build`; any key can be given as a flag: `--licence.unknown reject`.",
        "",
        *_table(BuildConfig),
        "",
        "## Problem record",
        "",
        "One JSON object a line.",
        "",
        *_table(Problem),
        "",
        "## Run directory",
        "",
        inspect.getdoc(runs) or "",
        "",
        "## Evaluation folder",
        "",
        inspect.getdoc(report) or "",
        "",
        "## metrics.jsonl",
        "",
        *_attributes(metrics.StepMetrics),
        "",
        "## evaluations.jsonl",
        "",
        *_attributes(metrics.EvaluationMetrics),
        "",
    ]
    return "\n".join(lines)


def render_commands() -> str:
    """Return every command with its options as Markdown."""
    # Whoever asks, `microcoder` is what is typed.
    sys.argv = ["microcoder"]
    text = build_app().generate_docs(output_format="markdown", recursive=True)
    head = [
        "# Commands",
        "",
        "Every command with its options. Written by `make docs` from the code.",
        "",
        "Exit codes: 0 done, 1 ended without what was asked for, 2 a mistake or a machine that is",
        "not fit, said in a line, 130 interrupted, 141 a closed pipe.",
        "`microcoder --install-completion` completes commands and options in bash, zsh and fish.",
        "",
        "With `--json` a command prints JSON on stdout, and progress on stderr alone:",
        "",
        "| command | keys of its object |",
        "| --- | --- |",
        *(f"| `{command}` | {keys} |" for command, keys in JSON_SHAPES.items()),
        "",
        "`output` is the file or folder that was written, the address of a push, or null.",
        "",
    ]
    return "\n".join([*head, text[text.index("## microcoder judge") :].rstrip(), ""])


def _table(schema: type[BaseModel]) -> list[str]:
    rows = [f"| `{key.name}` | {_code(key.default)} | {key.meaning} |" for key in list_keys(schema)]
    return ["| key | default | meaning |", "| --- | --- | --- |", *rows]


def _code(default: str) -> str:
    return default if default in ("", "required", "none") else f"`{default}`"


def _attributes(noun: type) -> list[str]:
    """List a dataclass's fields with the docstrings under them."""
    meanings = attribute_docstrings(noun)
    rows = []
    for field in dataclasses.fields(noun):
        rows.append(f"| `{field.name}` | {meanings.get(field.name, '')} |")
    return ["| field | meaning |", "| --- | --- |", *rows]


COUNTS: dict[str, int] = {
    "formats": len(FORMATS),
    **{f"cases of {suite}": len(load_suite(suite)) for suite in STORED},
}
"""What pages count -> the number that the code or its data gives."""
_COUNTED = re.compile(r"[\d,]+(?=<!-- count: ([a-z ]+) -->)")


_TOLD = re.compile(r"(<!-- (effect|verdict): (\w+) -->).*?(<!-- end -->)", re.DOTALL)
_JUDGED = re.compile(
    (
        r"^- \*\*(\w+)\*\* ([a-z, ]+?)(?:, ([+-][^:]*))?: [^.]*\.(?: ([^.]*at least \d+ are "
        r"needed)\.)?"
    ),
    re.MULTILINE,
)
"""A claim's line on the page of its study: its id, verdict, effect, and what a verdict lacks."""


@cache
def read_claims() -> dict[tuple[str, str], str]:
    """Return what the pages of the studies say: (`effect` or `verdict`, claim) -> text."""
    told = {}
    for page in sorted((ROOT / "docs" / "insights").glob("*.md")):
        for name, verdict, effect, lacks in _JUDGED.findall(page.read_text(encoding="utf-8")):
            told["effect", name] = effect.removesuffix(", no interval")
            told["verdict", name] = f"{verdict}: {lacks}" if lacks else verdict
    return told


def fill_counts(text: str) -> str:
    """Return a page with its marked numbers filled in;
    KeyError for a mark of something that is not known.
    """
    counted = _COUNTED.sub(lambda found: f"{COUNTS[found[1]]:,}", text)
    return _TOLD.sub(lambda found: found[1] + read_claims()[found[2], found[3]] + found[4], counted)


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference.md": render_reference,
    "docs/commands.md": render_commands,
    "docs/costs.md": costs.render_costs,
    **figures.PAGES,
}

if __name__ == "__main__":
    for name, render in PAGES.items():
        (ROOT / name).write_text(render(), encoding="utf-8")
        print(f"wrote {ROOT / name}")
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        text = page.read_text(encoding="utf-8")
        if fill_counts(text) != text:
            page.write_text(fill_counts(text), encoding="utf-8")
            print(f"filled {page}")

"""Folder -> figures and tables, for one evaluation or two."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from microcoder.dataset.benchmarks import Question
from microcoder.errors import ConfigError, DataError
from microcoder.evaluation.folder import EvaluationFolder, Row
from microcoder.evaluation.grid import ALL, accuracy_grid, difference_grid, solved_from
from microcoder.files import write_text
from microcoder.installation import how_to_install
from microcoder.types import Outcome

Results = dict[str, Any]


def summarise(folder: EvaluationFolder, *, pass_at: Sequence[int] = ()) -> Results:
    """Return the figures of an evaluation from its files, as far as it has come.

    Args:
        folder: what `microcoder eval` wrote.
        pass_at: further k, besides 1 and the smallest number of samples a problem has.

    Raises:
        DataError: the folder holds no evaluation, or no verdict yet.
        ConfigError: numpy is not installed.
    """
    _require_numpy()
    manifest, questions = folder.read_manifest(), folder.read_questions()
    verdicts, samples = folder.read_verdicts(), folder.read_samples()
    if not verdicts:
        if not folder.is_evaluation:
            raise DataError(f"{folder.root} holds a training run, no evaluation; type: microcoder report {folder.root}")
        raise DataError(f"{folder.root} holds no verdict yet; type its command again to resume it")
    solved = solved_from(verdicts)
    counts = Counter(row["verdict"] for row in verdicts.values())
    num_samples = [len(values) for values in solved.values()]
    ks = sorted({1, min(num_samples), *pass_at})
    lengths = [sample.num_tokens for sample in samples.values() if sample.num_tokens is not None]
    return {
        "name": folder.root.name,
        "digest": manifest["digest"],
        "benchmark": manifest["config"]["benchmark"],
        "generation": manifest["config"]["generation"],
        "is_complete": len(solved) == len(questions) and verdicts.keys() == samples.keys(),
        "num_questions": len(questions),
        "num_problems": len(solved),
        "num_samples": len(verdicts),
        "samples_per_problem": {"min": min(num_samples), "max": max(num_samples)},
        "num_unscored": counts[str(Outcome.SANDBOX_FAULT)],
        "truncated_share": sum(sample.is_truncated for sample in samples.values()) / len(samples),
        "mean_tokens": sum(lengths) / len(lengths) if lengths else None,
        "outcomes": {outcome.value: counts[outcome.value] for outcome in Outcome if counts[outcome.value]},
        "isolation": manifest.get("isolation"),
        "cells": accuracy_grid(questions, solved, ks=ks),
    }


def compare(before: EvaluationFolder, after: EvaluationFolder, *, pass_at: Sequence[int] = ()) -> Results:
    """Return what changed from one evaluation to another, over the problems that both judged.

    Raises:
        DataError: one holds no evaluation, or they share no problem.
        ConfigError: numpy is not installed.
    """
    _require_numpy()
    questions = {row["problem_id"]: row for folder in (before, after) for row in folder.read_questions()}
    old, new = (solved_from(folder.read_verdicts()) for folder in (before, after))
    shared = old.keys() & new.keys()
    if not shared:
        raise DataError(f"{before.root} and {after.root} share no judged problem; compare runs of one benchmark")
    smallest = min(len(solved[name]) for solved in (old, new) for name in shared)
    ks = sorted({1, smallest, *pass_at})
    digests = [folder.read_manifest().get("benchmark", {}).get("digest") for folder in (before, after)]
    return {
        "before": before.root.name,
        "after": after.root.name,
        "same_benchmark": digests[0] == digests[1],
        "num_problems": len(shared),
        "num_only_before": len(old.keys() - shared),
        "num_only_after": len(new.keys() - shared),
        "cells": difference_grid(list(questions.values()), old, new, ks=ks),
    }


def write_report(folder: EvaluationFolder, results: Results) -> None:
    """Write report.md."""
    write_text(folder.report, f"# {results['name']}\n\n" + render_results(results) + "\n")


def write_eval_all(folder: EvaluationFolder, questions: Sequence[Question]) -> None:
    """Write eval_all.json, for LiveCodeBench's own tools (compute_scores.py) and its leaderboard.

    Samples that the sandbox failed on are in no list; a problem without any other is left out.
    """
    samples, verdicts = folder.read_samples(), folder.read_verdicts()
    items = []
    for question in questions:
        keys = sorted(
            key
            for key, row in verdicts.items()
            if key[0] == question.id and row["verdict"] != Outcome.SANDBOX_FAULT and key in samples
        )
        if keys:
            graded = [verdicts[key]["verdict"] == Outcome.ACCEPTED for key in keys]
            chosen = [samples[key] for key in keys]
            items.append(
                {
                    **_published(question),
                    "output_list": [sample.completion or sample.program or "" for sample in chosen],
                    "code_list": [sample.program or "" for sample in chosen],
                    "graded_list": graded,
                    "pass@1": fmean(graded),
                    "metadata": [json.dumps({"verdict": verdicts[key]["verdict"]}) for key in keys],
                }
            )
    write_text(folder.eval_all, json.dumps(items, indent=2, ensure_ascii=False) + "\n")


def render_results(results: Results) -> str:
    """Return the tables of an evaluation as text that is Markdown, too."""
    low, high = results["samples_per_problem"]["min"], results["samples_per_problem"]["max"]
    each = f"{low}" if low == high else f"{low} to {high}"
    generation = results["generation"]
    source = generation.get("model") or generation.get("path")
    benchmark = results["benchmark"]
    dialect = f" (dialect {benchmark['dialect']})" if benchmark.get("dialect") else ""
    lines = [
        f"{benchmark['kind']}{dialect}: {results['num_problems']} problems x {each} samples, answers by {source}",
        f"verdicts: {', '.join(f'{count} {outcome}' for outcome, count in results['outcomes'].items())}",
    ]
    if not results["is_complete"]:
        lines.append(
            f"NOT COMPLETE: {results['num_problems']} of {results['num_questions']} problems have verdicts, "
            f"of {results['num_samples']} samples"
        )
    if results["num_unscored"]:
        lines.append(f"UNSCORED: {results['num_unscored']} samples, in no figure, because the sandbox failed")
    if results["mean_tokens"] is not None:
        lines.append(f"mean length {results['mean_tokens']:.0f} tokens, {results['truncated_share']:.1%} truncated")
    return (
        "\n".join(lines)
        + "\n\n"
        + _render_tables(results["cells"], _accuracy_text, "{}, %, with 95 % intervals over problems (n: problems)")
    )


def render_comparison(results: Results) -> str:
    """Return the tables of a comparison as text that is Markdown, too."""
    lines = [
        f"{results['before']} -> {results['after']}: {results['num_problems']} problems of both, paired; "
        "points of percent with 95 % intervals, * where the interval excludes zero"
    ]
    for key, name in (("num_only_before", "before"), ("num_only_after", "after")):
        if results[key]:
            lines.append(f"{results[key]} problems are judged only in {results[name]} and left out")
    if not results["same_benchmark"]:
        lines.append("the two used different problems, prompts or limits: the difference is not due to the model alone")
    return "\n".join(lines) + "\n\n" + _render_tables(results["cells"], _difference_text, "change of {}")


def _render_tables(cells: Sequence[Row], describe: Callable[[Row], str], title: str) -> str:
    tables = []
    for k in sorted({cell["k"] for cell in cells}):
        mine = {(cell["platform"], cell["difficulty"]): cell for cell in cells if cell["k"] == k}
        platforms = list(dict.fromkeys(platform for platform, _ in mine))
        difficulties = [name for name in dict.fromkeys(d for _, d in mine) if name != ALL] + [ALL]
        rows = [["", *difficulties]]
        for platform in platforms:
            found = (mine.get((platform, name)) or {"value": None} for name in difficulties)
            rows.append([platform, *("-" if cell["value"] is None else describe(cell) for cell in found)])
        figure = "mean accuracy (pass@1)" if k == 1 else f"pass@{k}"
        tables.append(f"{title.format(figure)}\n\n{_table(rows)}")
    return "\n\n".join(tables)


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _accuracy_text(cell: Row) -> str:
    return f"{100 * cell['value']:.1f} [{100 * cell['low']:.1f}, {100 * cell['high']:.1f}] n={cell['num_problems']}"


def _difference_text(cell: Row) -> str:
    star = "*" if cell["low"] > 0 or cell["high"] < 0 else ""
    return f"{100 * cell['value']:+.1f}{star} [{100 * cell['low']:+.1f}, {100 * cell['high']:+.1f}]"


def _require_numpy() -> None:
    if importlib.util.find_spec("numpy") is None:
        raise ConfigError(f"intervals need numpy; type: {how_to_install('insights')}")


def _published(question: Question) -> dict[str, Any]:
    return {
        "question_title": question.title,
        "question_content": question.statement,
        "platform": question.platform,
        "question_id": question.id,
        "contest_date": question.date.isoformat() if question.date else None,
        "starter_code": question.starter_code,
        "difficulty": question.difficulty,
    }

"""What the report of a run says, as plain JSON values that the viewer's overview shows."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from microcoder.judge.core.types import Outcome
from microcoder.lab.studies.arms import BeforeAfter, compare, compare_arms, compare_by_tier, count_unscored
from microcoder.lab.studies.effects import Estimate
from microcoder.lab.studies.history import History
from microcoder.lab.studies.overview import choose_examples, describe_run
from microcoder.train.metrics import EvaluationMetrics

Cell = str | list[str]
"""A text, or a difference with its direction: `up`, `down` or `flat`."""
_DASH = "–"  # noqa: RUF001


def describe_report(history: History, others: Sequence[Path] = ()) -> dict[str, Any]:
    """Return what a report says of a run, finished or not.

    Args:
        history: the run that it is about.
        others: other runs on the same problems, to compare it with.

    Raises:
        DataError: a file is damaged, or another run asked other problems.
    """
    manifest, summary, num_steps = history.manifest, history.summary or {}, len(history.steps)
    headline, told = compare(history, label="all problems"), describe_run(history)
    git, command = manifest.get("git") or {}, manifest.get("command") or ""
    about = [
        f"run {history.name}" if told.subject else "",
        f"{num_steps} training step{'' if num_steps == 1 else 's'}",
        f"started {manifest['started']}" if manifest.get("started") else "",
        *(
            f"{summary[key] / 60:.1f} {what}"
            for key, what in (("wall_seconds", "minutes of wall time"), ("cpu_seconds", "CPU minutes"))
            if isinstance(summary.get(key), int | float)
        ),
        "" if manifest.get("seed") is None else f"seed {manifest['seed']}",
    ]
    typed = shlex.join(map(str, command)) if isinstance(command, list) else str(command)
    reproduce = [f"git checkout {git['commit']}"] if git.get("commit") else []
    return {
        "title": told.subject or history.name,
        "state": "finished" if history.is_finished else "not finished",
        "about": " · ".join(filter(None, about)),
        "headline": _headline(history, headline),
        "topics": told.rows,
        "next": told.next_commands,
        "notices": list(_warnings(history, headline)),
        "tables": [*_arms(history, others), *_before_after(history, headline), *_outcomes(history)],
        "examples": [asdict(example) for example in choose_examples(history)],
        "reproduce": "\n".join([*reproduce, typed]).strip(),
    }


def _headline(history: History, row: BeforeAfter) -> dict[str, Any]:
    before, after, step = row.before, row.after, history.after.step if history.after else 0
    samples = _samples_per_problem(history)
    asked = f"{row.num_problems} problems, {samples} sample{'' if samples == 1 else 's'} each"
    trained = f"after {step} step{'' if step == 1 else 's'}{'' if history.is_finished else ' so far'}"
    figures = [_percent(one.value) for one in (before, after) if one]
    if before and after:
        text = (
            f"Held-out accuracy before training and {trained}: {asked}. The difference is in percentage points, with "
            "its 95 % interval."
        )
        is_shown = row.difference is None or row.difference.excludes_zero
        finding = "" if is_shown else "The interval includes zero: no change is shown."
        return {"figures": figures, "difference": _difference(row.difference), "text": text, "finding": finding}
    if figures:
        asked = f"{'before training' if before else trained}: {asked}"
        return {
            "figures": figures,
            "text": f"Held-out accuracy {asked}. There is nothing to compare it with yet.",
        }
    return {"figures": ["No accuracy yet"], "text": "No scored held-out evaluation was recorded."}


def _arms(history: History, others: Sequence[Path]) -> Iterator[dict[str, Any]]:
    arms = compare_arms(history, others)
    if arms is None:
        return
    columns = ["arm", "held-out accuracy after", f"less {arms.rows[0].label}, points", "length after"]
    columns += ["diversity after", "truncated in training", "masked in training"]
    rows = []
    for row in arms.rows:
        figures = (_DASH if value is None else f"{value:.3g}" for value in (row.length, row.diversity))
        shares = map(_percent, (row.truncated_share, row.masked_share))
        rows.append([row.label, _percent(row.accuracy), _difference(row.difference), *figures, *shares])
    yield {
        "id": "arms",
        "title": f"Against the other arm{'s' if len(rows) > 2 else ''}",
        "text": arms.conclusion,
        "columns": columns,
        "rows": rows,
        "note": "The same problems, paired; 95 % intervals over the choice of problems, not over seeds. The arms "
        f"differ in: {'; '.join(arms.changed) or 'nothing'}.",
    }


def _before_after(history: History, headline: BeforeAfter) -> Iterator[dict[str, Any]]:
    if not (headline.before or headline.after):
        return
    compared, samples = [headline, *compare_by_tier(history)], _samples_per_problem(history)
    if samples > 1:
        compared.append(compare(history, label=f"pass@{samples}", k=samples))
    changes: dict[str, Callable[[EvaluationMetrics], str]] = {
        "response length (mean tokens)": lambda e: f"{e.length_mean:,.1f}",
        "truncated": lambda e: _percent(e.truncated_share),
        "diversity (unique 4-grams)": lambda e: _DASH if e.diversity is None else f"{e.diversity:.3f}",
        "sampling temperature": lambda e: f"{e.temperature:g}",
        "unscored samples": lambda e: str(e.num_unscored),
    }
    sides = (history.before, history.after)
    yield {
        "id": "before-after",
        "title": "Before and after",
        "columns": ["held-out accuracy", "problems", "before", "after", "difference, points"],
        "rows": [
            *(
                [one.label, str(one.num_problems), *map(_percent, (one.before, one.after)), _difference(one.difference)]
                for one in compared
            ),
            *([label, "", *(read(e) if e else _DASH for e in sides), ""] for label, read in changes.items()),
        ],
        "note": "In brackets: 95 % intervals from resampling problems with all their samples; differences are paired "
        "by problem. They cover the choice of problems, not the training seed: one run cannot show that.",
    }


def _outcomes(history: History) -> Iterator[dict[str, Any]]:
    sides = [e.outcomes if e else {} for e in (history.before, history.after)]
    totals = [sum(counts.values()) for counts in sides]

    def share(outcome: Outcome) -> Iterator[str]:
        for counts, total in zip(sides, totals, strict=True):
            number = counts.get(outcome, 0)
            yield f"{number} ({_percent(number / total)})" if total else _DASH

    rows = [[outcome.value, *share(outcome)] for outcome in Outcome if any(counts.get(outcome) for counts in sides)]
    if rows:
        title = "Verdicts on held-out samples"
        yield {"id": "verdicts", "title": title, "columns": ["verdict", "before", "after"], "rows": rows}


def _warnings(history: History, headline: BeforeAfter) -> Iterator[str]:
    before, after, summary = history.before, history.after, history.summary or {}
    unscored = count_unscored(history)
    if unscored.total:
        yield (
            f"{unscored.total} unscored sample{'' if unscored.total == 1 else 's'}: {unscored.training} in training, "
            f"{unscored.before} before, {unscored.after} after. The sandbox failed on them, not the program, so they "
            "are in no mean on this page."
        )
    if not history.is_finished:
        yield f"This run is not finished: {len(history.steps)} steps so far, and numbers will change."
    if not history.steps:
        yield "No training step was recorded, so there are no training curves."
    if not before:
        yield "The untrained model was not evaluated, so there is no baseline accuracy."
    if not after:
        yield "No evaluation after training began was recorded, so there is no final accuracy."
    for evaluation in (e for e in (before, after) if e and not history.run.evaluation_file(e.step).exists()):
        name = history.run.evaluation_file(evaluation.step).name
        yield f"The held-out samples evaluations/{name} are missing: rows by tier and examples may be missing too."
    if before and after and before.solved.keys() != after.solved.keys():
        yield f"Before and after used different problems; the difference covers the {headline.num_problems} in both."
    if before and after and before.temperature != after.temperature:
        yield f"Sampling temperature was {before.temperature:g} before and {after.temperature:g} after."
    for key, evaluation in (("accuracy_before", before), ("accuracy_after", after)):
        recorded = summary.get(key)
        if isinstance(recorded, int | float) and evaluation and abs(recorded - evaluation.accuracy) > 1e-6:
            yield f"summary.json says {key} = {recorded:.4f}; evaluations.jsonl, shown here, {evaluation.accuracy:.4f}."
    if (history.manifest.get("git") or {}).get("is_dirty"):
        yield "The working tree had uncommitted changes, so the commit alone does not give this run."


def _samples_per_problem(history: History) -> int:
    return max((e.samples_per_problem for e in (history.before, history.after) if e), default=1)


def _percent(value: float | Estimate | None) -> str:
    if value is None:
        return _DASH
    if isinstance(value, Estimate):
        return f"{_percent(value.value)} ({_percent(value.low)} to {_percent(value.high)})"
    return f"{100 * value:.1f} %"


def _difference(difference: Estimate | None) -> Cell:
    if difference is None:
        return _DASH
    value, low, high = (f"{100 * x:+.1f}" for x in (difference.value, difference.low, difference.high))
    direction = "flat" if not difference.excludes_zero else "up" if difference.value > 0 else "down"
    return [f"{value} ({low} to {high})".replace("-", "−"), direction]  # noqa: RUF001

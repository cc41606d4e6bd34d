"""Run directory -> a self-contained HTML report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_text
from microcoder.judge.core.types import Outcome
from microcoder.lab.studies import figures
from microcoder.lab.studies.arms import Arms, BeforeAfter, compare, compare_arms, compare_by_tier, count_unscored
from microcoder.lab.studies.effects import Estimate, estimate_accuracy
from microcoder.lab.studies.figures import Chart, HeldOutPoint
from microcoder.lab.studies.history import History, missing_extra, read_history
from microcoder.lab.studies.overview import choose_examples, describe_run
from microcoder.train.metrics import EvaluationMetrics

if TYPE_CHECKING:
    from markupsafe import Markup

_MAX_CHARACTERS_SHOWN = 12_000
_MAX_TESTS_SHOWN = 40
_CONTROL_CHARACTERS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}
_DASH = "–"  # noqa: RUF001


def write_report(run_directory: Path, *, against: Sequence[Path] = ()) -> Path:
    """Draw a run's report from its files and return the page's path; an unfinished run is drawn as far as it is.

    Args:
        run_directory: the run that the report is about.
        against: other runs on the same problems, to compare it with.

    Raises:
        DataError: a folder is no run, one of its files is damaged, or runs to compare asked other problems.
        ConfigError: the `insights` extra is not installed.
    """
    history = read_history(run_directory)
    if history.manifest.get("kind") == "evaluation":
        raise DataError(
            f"{run_directory} is an evaluation, not a training run: its tables are in {run_directory / 'report.md'}; "
            f"read its answers with `microcoder view {run_directory}`"
        )
    try:
        charts, arms = draw_charts(history), compare_arms(history, against)
        arms_chart = figures.draw_arms(arms.curves) if arms else None
        page = _render(history, charts, arms, arms_chart)
    except ImportError as error:
        raise missing_extra(error) from None
    folder = history.run.report.parent
    for chart in [*charts, *([arms_chart] if arms_chart else [])]:
        write_text(folder / f"{chart.name}.svg", _printable(chart.svg))
    write_text(history.run.report, _printable(page))
    return history.run.report


def draw_charts(history: History) -> list[Chart]:
    """Return every curve the run has data for."""
    steps, evaluations = history.steps, history.evaluations
    charts = []
    if steps or evaluations:
        points = [_held_out_point(history, evaluation) for evaluation in evaluations]
        charts.append(figures.draw_accuracy(steps, points, history.tiers))
    if steps:
        charts += [
            figures.draw_reward(steps),
            figures.draw_length(steps, evaluations),
            figures.draw_diversity(steps, evaluations),
            figures.draw_shares(steps),
            figures.draw_seconds(steps),
        ]
    return charts


def _held_out_point(history: History, evaluation: EvaluationMetrics) -> HeldOutPoint:
    by_tier = {}
    for tier in history.tiers:
        solved = {name: s for name, s in evaluation.solved.items() if history.tier_of.get(name) == tier}
        estimate = estimate_accuracy(solved)
        if estimate:
            by_tier[tier] = estimate
    return HeldOutPoint(evaluation.step, estimate_accuracy(evaluation.solved), by_tier)


def _render(history: History, charts: Sequence[Chart], arms: Arms | None, arms_chart: Chart | None) -> str:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {
        "percent": _percent,
        "points": _points,
        "shown": _shown,
        "number": lambda value: _DASH if value is None else f"{value:.3g}",
        "svg": _inline,
    }
    source = files("microcoder.lab.studies").joinpath("report.html.j2").read_text(encoding="utf-8")
    return environment.from_string(source).render(_context(history, charts), arms=arms, arms_chart=arms_chart)


def _context(history: History, charts: Sequence[Chart]) -> dict[str, Any]:
    manifest = history.manifest
    samples_per_problem = max((e.samples_per_problem for e in (history.before, history.after) if e), default=1)
    headline = compare(history, label="all problems")
    return {
        "history": history,
        "manifest": manifest,
        "git": manifest.get("git") or {},
        "summary": history.summary or {},
        "headline": headline,
        "overview": describe_run(history),
        "comparisons": [headline, *compare_by_tier(history)],
        "at_k": compare(history, label=f"pass@{samples_per_problem}", k=samples_per_problem)
        if samples_per_problem > 1
        else None,
        "samples_per_problem": samples_per_problem,
        "changes": _changes(history),
        "outcomes": _outcome_counts(history),
        "unscored": count_unscored(history),
        "warnings": list(_warnings(history, headline)),
        "charts": charts,
        "examples": choose_examples(history),
        "max_tests": _MAX_TESTS_SHOWN,
        "command": _command(manifest),
        "config": list(_flags(manifest.get("config") or {})),
        "packages": sorted((manifest.get("packages") or {}).items()),
        "facts": [
            (name, list(_flags({key: manifest[key]})))
            for name, key in (("Machine", "machine"), ("Isolation", "isolation"))
            if manifest.get(key)
        ],
        "accepted": str(Outcome.ACCEPTED),
    }


def _warnings(history: History, headline: BeforeAfter) -> Iterator[str]:
    before, after, summary = history.before, history.after, history.summary or {}
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


def _changes(history: History) -> list[dict[str, str]]:
    before, after = history.before, history.after

    def change(label: str, read: Any) -> dict[str, str]:
        texts = [_DASH if e is None else read(e) for e in (before, after)]
        return {"label": label, "before": texts[0], "after": texts[1]}

    return [
        change("response length (mean tokens)", lambda e: f"{e.length_mean:,.1f}"),
        change("truncated", lambda e: _percent(e.truncated_share)),
        change("diversity (unique 4-grams)", lambda e: _DASH if e.diversity is None else f"{e.diversity:.3f}"),
        change("sampling temperature", lambda e: f"{e.temperature:g}"),
        change("unscored samples", lambda e: str(e.num_unscored)),
    ]


def _outcome_counts(history: History) -> list[dict[str, Any]]:
    sides = {
        name: (evaluation.outcomes if evaluation else None)
        for name, evaluation in (("before", history.before), ("after", history.after))
    }
    return [
        {
            "outcome": str(outcome),
            **{name: None if counts is None else counts.get(outcome, 0) for name, counts in sides.items()},
            **{
                f"share_{name}": (counts or {}).get(outcome, 0) / (sum((counts or {}).values()) or 1)
                for name, counts in sides.items()
            },
        }
        for outcome in Outcome
        if any(counts and counts.get(outcome) for counts in sides.values())
    ]


def _command(manifest: Mapping[str, Any]) -> str:
    command = manifest.get("command")
    return shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")


def _flags(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in flatten(values).items():
        yield key, "not set" if value is None else str(value)


def _percent(value: float | Estimate | None) -> str:
    if value is None:
        return _DASH
    if isinstance(value, Estimate):
        return f"{value.value:.1%} ({value.low:.1%} to {value.high:.1%})".replace("%", " %")
    return f"{value:.1%}".replace("%", " %")


def _points(difference: Estimate | None) -> str:
    if difference is None:
        return _DASH
    value, low, high = (f"{100 * x:+.1f}" for x in (difference.value, difference.low, difference.high))
    return f"{value} ({low} to {high})".replace("-", "−")  # noqa: RUF001


def _shown(value: object) -> str:
    """Return untrusted text for display: control characters visible, long texts truncated."""
    visible = ("" if value is None else str(value)).replace("\r\n", "\n").translate(_CONTROL_CHARACTERS)
    more = len(visible) - _MAX_CHARACTERS_SHOWN
    return visible if more <= 0 else f"{visible[:_MAX_CHARACTERS_SHOWN]}\n[{more:,} more characters in the run's files]"


def _inline(chart: Chart) -> Markup:
    """The chart's SVG as markup: matplotlib escaped whatever text stands in it."""
    from markupsafe import Markup

    return Markup(_printable(chart.svg))


def _printable(text: str) -> str:
    """Lone surrogates cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")

"""The figure of a study's page: a few curves, a few measured levels, or the primary effects beside what was claimed.

The pages of the studies: five sentences, one figure and tables for each, and an index of all claims.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_json, write_text
from microcoder.lab.studies.claims import (
    ClaimResult,
    JudgedStudy,
    PredicateResult,
    StudyData,
    as_records,
    measure_contrast,
)
from microcoder.lab.studies.design import ASPECTS, INSIGHTS, QUICK, Contrast, FigureChoice
from microcoder.lab.studies.effects import Effect
from microcoder.lab.studies.features import LABELS, SHARES, MetricSeries
from microcoder.lab.studies.figures import (
    BLACK,
    BLUE,
    GREEN,
    LEGEND,
    ORANGE,
    PURPLE,
    STYLE,
    VERMILION,
    Chart,
    finish_axes,
    new_figure,
    render,
)
from microcoder.lab.studies.history import missing_extra
from microcoder.lab.studies.study import level_keys
from microcoder.lab.studies.verdicts import ClaimFinding, expected_half_width
from microcoder.lab.studies.wording import (
    count_verdicts,
    describe_expectation,
    format_check,
    format_effect,
    format_least,
    format_value,
    name_comparison,
    open_page,
    unit_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLOUR_OF: Mapping[ClaimFinding, str] = {
    ClaimFinding.SUPPORTED: GREEN,
    ClaimFinding.CONTRADICTED: VERMILION,
    ClaimFinding.INCONCLUSIVE: ORANGE,
    ClaimFinding.CANNOT_APPEAR: "#999999",
}
_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
_FARTHEST = 6.0
"""Effects beyond this many smallest effects are drawn at the edge."""
_ROW_INCHES = 0.42
_LABEL_CHARACTERS = 46
_LEGEND_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Bar:
    """One primary effect in a figure of effects."""

    label: str
    effect: Effect
    least: float
    direction: str
    verdict: ClaimFinding


def draw_curves(
    study: str, metric: str, by_level: Mapping[str, Sequence[MetricSeries]], *, reference: str, num_steps: int
) -> Chart:
    """Draw the mean over seeds of each level, with its 95 % interval as a band."""
    import numpy as np

    levels = [level for level, series in by_level.items() if series]
    columns = max(1, min(5, _LEGEND_CHARACTERS // max(len(level) + 4 for level in levels)))
    figure, (axes,) = new_figure(legend_rows=-(-len(levels) // columns))
    colours = itertools.cycle(_COLOURS)
    ends = []
    for level in levels:
        colour = BLACK if level == reference else next(colours)
        time_E = by_level[level][0].time_E
        rows = [series.means_E for series in by_level[level] if len(series.time_E) == len(time_E)]
        steps, mean = time_E * num_steps, np.mean(rows, axis=0)
        is_sparse = len(steps) <= 12
        axes.plot(
            steps, mean, color=colour, linewidth=1.8, label=level, marker="o" if is_sparse else "", markersize=3.5
        )
        if len(rows) > 1:
            half = expected_half_width(1.0, len(rows)) * np.std(rows, axis=0, ddof=1)
            axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.13, linewidth=0)
        ends.append(f"{level} from {mean[0]:.3g} to {mean[-1]:.3g}")
    finish_axes(axes, ylabel=LABELS[metric], is_share=metric in SHARES)
    axes.legend(ncols=columns, **LEGEND)
    return render(
        figure,
        study,
        LABELS[metric],
        f"Mean over seeds, first and last value: {'; '.join(ends)}. Bands: 95 % intervals of the mean over seeds.",
    )


def draw_levels(study: str, says: str, effects: Mapping[str, Effect], *, is_share: bool) -> Chart:
    """Draw what was measured at a few levels, with intervals."""
    figure, axes = _rows_figure(len(effects), left=0.24)
    for row, (_, effect) in enumerate(effects.items()):
        axes.plot([effect.low, effect.high], [row, row], color=BLUE, linewidth=2)
        axes.plot([effect.value], [row], "o", color=BLUE, markersize=6)
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_yticks(range(len(effects)), list(effects), fontsize=9)
    axes.set_xlabel(says)
    if is_share:
        from matplotlib.ticker import PercentFormatter

        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=None, symbol=" %"))
    means = "; ".join(f"{name} {e.value:.3g} [{e.low:.3g}, {e.high:.3g}]" for name, e in effects.items())
    return render(figure, study, says, f"Means with 95 % intervals: {means}.")


def draw_effects(name: str, bars: Sequence[Bar], *, title: str) -> Chart:
    """Draw effects in units of their smallest effect of interest, turned so that the claimed direction is right."""
    from matplotlib.lines import Line2D

    figure, axes = _rows_figure(len(bars), left=0.47)
    axes.axvspan(-1, 1, color="#eef1f4", zorder=0)
    axes.axvline(0, color=BLACK, linewidth=0.8)
    for row, bar in enumerate(bars):
        sign = -1.0 if bar.direction == "lower" else 1.0
        value, *ends = (_clip(sign * x / bar.least) for x in (bar.effect.value, bar.effect.low, bar.effect.high))
        colour = COLOUR_OF[bar.verdict]
        axes.plot([min(ends), max(ends)], [row, row], color=colour, linewidth=2)
        axes.plot([value], [row], "s" if bar.direction == "same" else "o", color=colour, markersize=6)
    axes.set_xlim(-_FARTHEST * 1.03, _FARTHEST * 1.03)
    labels = [textwrap.fill(bar.label, _LABEL_CHARACTERS) for bar in bars]
    axes.set_yticks(range(len(bars)), labels, fontsize=8)
    axes.set_xlabel("effect / smallest effect of interest; to the right: as claimed", fontsize=8)
    seen = [verdict for verdict in COLOUR_OF if any(bar.verdict is verdict for bar in bars)]
    axes.legend(
        handles=[Line2D([], [], color=COLOUR_OF[verdict], marker="o", label=str(verdict)) for verdict in seen],
        loc="lower right",
        bbox_to_anchor=(1.01, 1.0),
        ncols=len(seen),
        fontsize=8,
        frameon=False,
        borderaxespad=0.1,
    )
    counts = ", ".join(f"{sum(bar.verdict is verdict for bar in bars)} {verdict}" for verdict in seen)
    square = " Squares: claimed to be within the grey." if any(bar.direction == "same" for bar in bars) else ""
    return render(figure, name, title, f"{len(bars)} primary effects with 95 % intervals: {counts}.{square}")


def _rows_figure(num_rows: int, *, left: float) -> tuple[Figure, Axes]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    height = 1.0 + _ROW_INCHES * num_rows
    with mpl.rc_context(dict(STYLE)):
        figure = Figure(figsize=(7.6, height))
        axes = figure.subplots()
    figure.subplots_adjust(left=left, right=0.98, bottom=0.55 / height, top=1 - 0.3 / height)
    axes.set_ylim(num_rows - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    return figure, axes


def _clip(value: float) -> float:
    return max(-_FARTHEST, min(_FARTHEST, value))


LEARNT = "what-we-learnt.md"
"""A page that a person writes; the index names it if it is there."""


def write_study_report(judged: Sequence[JudgedStudy], *, output: Path, has_index: bool = True) -> Path:
    """Write the pages of some studies; return the page to begin with.

    Args:
        judged: the studies, judged among all.
        output: where the pages go.
        has_index: also write the index and the results for other programs.
    """
    if not any(study.num_finished for study in judged):
        raise DataError(_nothing_finished(judged))
    try:
        for study in judged:
            _write_page(study, output)
        return _write_index(judged, output) if has_index else output / f"{judged[0].file.name}.md"
    except ImportError as error:
        raise missing_extra(error) from None


def _nothing_finished(judged: Sequence[JudgedStudy]) -> str:
    folder = next(work.folder.parent for study in judged for work in (*study.runs, *study.measurements))
    root, scale = folder.parent, judged[0].scale
    others = sorted(path.name for path in root.glob("*") if path.is_dir() and path not in (folder, root / "logs"))
    hint = f"; runs of other code exist, choose one with --code: {', '.join(others)}" if others else ""
    return f"no finished {scale} run of these studies in {folder}; type `microcoder study run`{hint}"


def _write_page(judged: JudgedStudy, output: Path) -> None:
    name = judged.file.name
    for old in output.glob(f"{name}*.svg"):
        old.unlink()
    chart = _figure(judged)
    if chart:
        write_text(output / f"{chart.name}.svg", chart.svg)
    lines = [
        f"# {judged.file.study.factor[:1].upper()}{judged.file.study.factor[1:]}",
        "",
        *(f"{sentence}\n" for sentence in open_page(judged)),
        *([f"![{chart.title}. {chart.description}]({chart.name}.svg)", ""] if chart else []),
        "## Claims",
        "",
        "| | claim | verdict | effect, 95 % interval | claimed | seeds | p (Holm) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_claim_row(result, judged) for result in judged.claims),
        "",
        *(line for result in judged.claims for line in _claim(result, judged)),
        *_levels(judged),
        *_measurements(judged),
        "## How to have it again",
        "",
        f"Study [{name}](../../studies/{name}.toml); how to read this: [insights.md](../insights.md).",
        "",
        *_reproduce([judged]),
        "",
    ]
    write_text(output / f"{name}.md", "\n".join(lines).rstrip() + "\n")


def _claim_row(result: ClaimResult, judged: JudgedStudy) -> str:
    claim, part = result.claim, result.primary
    if part is None:
        return _row([claim.id, claim.short, f"**{result.verdict}**", "-", "-", "-", "-"])
    unit = unit_of(part.predicate, judged.file.study)
    return _row(
        [
            claim.id,
            claim.short,
            f"**{result.verdict}**",
            format_effect(part.effect, unit),
            format_least(part.predicate, judged.file.study),
            part.effect.num_seeds if part.effect else 0,
            _adjusted_p(result),
        ]
    )


def _claim(result: ClaimResult, judged: JudgedStudy) -> list[str]:
    claim = result.claim
    lines = [
        f"### {claim.id}: {claim.sentence}",
        "",
        f"**{result.verdict}**, a {claim.family} claim. The paper: {claim.paper}",
        "",
        f"Design: {claim.design}",
        "",
    ]
    if expectation := describe_expectation(claim, judged.file, scale=judged.scale):
        lines += [expectation, ""]
    lines += [line for check in result.checks for line in (f"Check: {format_check(check, judged.file.study)}.", "")]
    if result.verdict is ClaimFinding.CANNOT_APPEAR and all(check.is_reached for check in result.checks):
        lines += ["The runs that are compared are the same in every seed: the setting changed nothing.", ""]
    if result.raw is not result.verdict:
        lines += [
            f"By itself it would be {result.raw}; among all claims that were tested that does not stand "
            f"(p = {_adjusted_p(result)} by Holm).",
            "",
        ]
    parts = [*([result.primary] if result.primary else []), *result.secondary]
    if parts:
        lines += [
            "| | what is compared | claimed | effect, 95 % interval | by seed | n | alone |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *(_part_row(part, "decides" if part is result.primary else "beside", judged) for part in parts),
            "",
        ]
    return [*lines, claim.note, ""] if claim.note else lines


def _part_row(part: PredicateResult, role: str, judged: JudgedStudy) -> str:
    study, effect = judged.file.study, part.effect
    unit = unit_of(part.predicate, study)
    compared, claimed = name_comparison(part.predicate, study), format_least(part.predicate, study)
    if effect is None:
        return _row([role, compared, claimed, "-", "-", "0", part.verdict])
    units = f" x {effect.num_units:,} units" if part.predicate.measurement and effect.num_units else ""
    units = units or (f" x {effect.num_units} problems" if effect.num_units else "")
    each = ", ".join(format_value(value, unit) for value in effect.by_seed)
    return _row(
        [role, compared, claimed, format_effect(effect, unit), each, f"{effect.num_seeds} seeds{units}", part.verdict]
    )


def _levels(judged: JudgedStudy) -> list[str]:
    study = judged.file.study
    if not study.levels:
        return []
    rows = [
        "## Runs",
        "",
        "| level | | keys | runs | accuracy before | after |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, level in study.levels.items():
        runs = judged.data.histories[name].values()
        before = [h.before.accuracy for h in runs if h.before]
        after = [h.after.accuracy for h in runs if h.after]
        mark = "**" if name == study.reference else ""
        rows.append(
            _row(
                [
                    f"{mark}{name}{mark}",
                    level.says,
                    _keys(level_keys(study, scale=judged.scale, level=name)) or "the baseline",
                    f"{len(runs)} of at most {len(judged.file.scale(judged.scale).seeds)}",
                    f"{fmean(before):.1%}" if before else "-",
                    f"{fmean(after):.1%} ({', '.join(f'{100 * x:.0f}' for x in after)})" if after else "-",
                ]
            )
        )
    return [*rows, ""]


def _measurements(judged: JudgedStudy) -> list[str]:
    study = judged.file.study
    if not study.measurements:
        return []
    rows = ["## Measurements", "", "| measurement | what is done | seeds | rows |", "| --- | --- | --- | --- |"]
    for name, measurement in study.measurements.items():
        measured = judged.data.measured[name]
        num_rows = sum(len(found) for found in measured.values())
        rows.append(_row([name, measurement.says, f"{len(measured)} of {len(measurement.seeds)}", f"{num_rows:,}"]))
    return [*rows, ""]


def _figure(judged: JudgedStudy) -> Chart | None:
    """The one figure of a page; None as long as there is nothing to draw."""
    chosen, name = judged.file.study.figure, f"{judged.file.name}-figure"
    if chosen is not None:
        return _measured_figure(judged, chosen, name) if chosen.measurement else _curves(judged, chosen, name)
    bars = [bar for result in judged.claims if (bar := _bar(result)) is not None]
    return draw_effects(name, bars, title="Effects of the claims") if bars else None


def _bar(result: ClaimResult) -> Bar | None:
    part = result.primary
    if part is None or part.effect is None:
        return None
    label = f"{result.claim.id}  {result.claim.short}"
    return Bar(label, part.effect, part.predicate.least, part.predicate.direction, result.verdict)


def _curves(judged: JudgedStudy, chosen: FigureChoice, name: str) -> Chart | None:
    by_level = {level: _all_series(judged.data, level, chosen.metric) for level in chosen.levels}
    if not any(by_level.values()):
        return None
    num_steps = judged.runs[0].config.num_steps
    return draw_curves(name, chosen.metric, by_level, reference=judged.file.study.reference, num_steps=num_steps)


def _all_series(data: StudyData, level: str, metric: str) -> list[Any]:
    return [s for seed in sorted(data.histories[level]) if (s := data.series(level, seed, metric)) is not None]


def _measured_figure(judged: JudgedStudy, chosen: FigureChoice, name: str) -> Chart | None:
    effects = {}
    for level in chosen.levels:
        contrast = Contrast(metric=chosen.metric, measurement=chosen.measurement, of=(level,))
        effect = measure_contrast(contrast, judged.data)
        if effect is not None:
            effects[level] = effect
    metric = judged.file.study.measurements[chosen.measurement].metrics[chosen.metric]
    return draw_levels(name, metric.says, effects, is_share=metric.unit == "share") if effects else None


def _write_index(judged: Sequence[JudgedStudy], output: Path) -> Path:
    found = {result.claim.id: (study, result) for study in judged for result in study.claims}
    results = [result for _, result in found.values() if not result.claim.says]
    missing = [name for name in INSIGHTS if name not in found]
    precise = [r for r in results if r.primary and r.primary.is_precise]
    counts = count_verdicts(results) + (f" and {len(missing)} in no study here" if missing else "")
    learnt = f"What that means for who trains real models: [what we learnt]({LEARNT}). "
    lines = [
        "# The 34 insights on the micro lab",
        "",
        f"Of {len(INSIGHTS)} claims {counts}. {len(precise)} intervals are as narrow as the smallest effect of "
        "interest. Verdicts hold among all claims (Holm, 5 %).",
        "",
        *([learnt] if (output / LEARNT).exists() else []),
        "How to read this: [insights.md](../insights.md).",
        "",
        "| | claim | verdict | effect, 95 % interval | |",
        "| --- | --- | --- | --- | --- |",
        *(_index_row(name, *found[name]) for name in _in_order(found)),
        "",
        *_reproduce(judged),
        "",
    ]
    path = output / "README.md"
    write_text(path, "\n".join(lines).rstrip() + "\n")
    write_json(output / "results.json", as_records(judged))
    return path


def _in_order(found: Mapping[str, Any]) -> list[str]:
    return [
        name for letter in ASPECTS for name in dict.fromkeys([*INSIGHTS, *found]) if name[0] == letter and name in found
    ]


def _index_row(name: str, judged: JudgedStudy, result: ClaimResult) -> str:
    part = result.primary
    effect = format_effect(part.effect, unit_of(part.predicate, judged.file.study)) if part else "-"
    return _row([name, result.claim.short, f"**{result.verdict}**", effect, f"[study]({judged.file.name}.md)"])


def _reproduce(judged: Sequence[JudgedStudy]) -> list[str]:
    distinct = {history.run.root: history for study in judged for history in study.histories}.values()
    summaries = [summary for study in judged for summary in study.summaries]
    records = [history.manifest for history in distinct] + summaries
    commits = sorted({_commit(record) for record in records})
    machines = sorted(
        {f"{m.get('num_cpus')} cores, {m.get('platform')}" for h in distinct if (m := h.manifest.get("machine"))}
    )
    codes = sorted({work.folder.parent.name for study in judged for work in (*study.runs, *study.measurements)})
    seconds = sum((history.summary or {}).get("cpu_seconds", 0.0) for history in distinct)
    seconds += sum(summary["cpu_seconds"] for summary in summaries)
    seeds = sorted({seed for study in judged for seed in study.seeds})
    quick = " --quick" if judged[0].scale == QUICK else ""
    name = "--all" if len(judged) > 1 else judged[0].file.name
    return [
        "```console",
        f"microcoder study run {name}{quick}",
        f"microcoder study report {name}{quick} -o docs/insights",
        "```",
        "",
        f"Seeds {', '.join(map(str, seeds))}; {len(distinct)} distinct runs and {len(summaries)} measurements; "
        f"{seconds / 3600:.1f} CPU-hours; code digest {', '.join(codes)}; commit {', '.join(commits) or '-'}; "
        f"{'; '.join(machines) or '-'}.",
    ]


def _commit(record: Mapping[str, Any]) -> str:
    git = record.get("git") or {}
    commit = str(git.get("commit") or "unknown")[:12]
    return f"{commit} with changes" if git.get("is_dirty") else commit


def _adjusted_p(result: ClaimResult) -> str:
    """Of the verdict that the claim has by itself, or of the nearer one."""
    found = result.adjusted
    if found is None:
        return "-"
    one_of = {ClaimFinding.SUPPORTED: found.p_for, ClaimFinding.CONTRADICTED: found.p_against}
    p = one_of.get(result.raw, min(found.p_for, found.p_against))
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _keys(keys: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key} = {_value(value)}`" for key, value in keys.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else str(value).replace("'", "")


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

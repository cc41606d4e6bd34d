"""What the finished runs say: a Markdown page a study with its figures, and a scoreboard over all 34 claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from microcoder.errors import DataError
from microcoder.insights.catalogue import ASPECTS, INSIGHTS
from microcoder.insights.claims import ClaimResult, PredicateResult, StudyData, judge_claim
from microcoder.insights.effects import Effect, Verdict
from microcoder.insights.figures import Chart
from microcoder.insights.history import History, missing_extra, read_history
from microcoder.insights.study import QUICK, StudyFile, StudyRun, level_keys, plan_runs
from microcoder.insights.study_figures import Bar, draw_curves, draw_effects
from microcoder.runs import write_text

_WIDEST = 99.0


@dataclass(frozen=True)
class Judged:
    """A study, its finished runs, and what they say."""

    file: StudyFile
    scale: str
    runs: Sequence[StudyRun]
    data: StudyData
    claims: Sequence[ClaimResult]

    @property
    def num_finished(self) -> int:
        """Runs that ended by themselves."""
        return sum(len(by_seed) for by_seed in self.data.histories.values())


def write_study_report(
    studies: Sequence[StudyFile],
    *,
    scale: str,
    root: Path,
    output: Path,
    code: str | None = None,
    has_scoreboard: bool = True,
) -> Path:
    """Write the pages and figures of some studies; return the page to begin with.

    Args:
        studies: whose finished runs are judged.
        scale: at which size.
        root: folder of all studies' runs.
        output: where the pages go.
        code: digest of the code whose runs are meant; None: that of the code at hand.
        has_scoreboard: also write the page over all of them.

    Raises:
        DataError: not one run is finished.
        ConfigError: the `insights` extra is not installed.
    """
    judged = [judge_study(file, scale=scale, root=root, code=code) for file in studies]
    if not any(study.num_finished for study in judged):
        folder = judged[0].runs[0].folder.parent
        others = sorted(path.name for path in root.glob("*") if path.is_dir() and path not in (folder, root / "logs"))
        hint = f"; there are runs of other code, give one as --code: {', '.join(others)}" if others else ""
        raise DataError(f"no finished {scale} run of these studies in {folder}; type `microcoder study run`{hint}")
    try:
        for study in judged:
            _write_page(study, output)
        return _write_scoreboard(judged, output) if has_scoreboard else output / f"{studies[0].name}.md"
    except ImportError as error:
        raise missing_extra(error) from None


def judge_study(file: StudyFile, *, scale: str, root: Path, code: str | None = None) -> Judged:
    """Read a study's finished runs and judge its claims."""
    runs = plan_runs(file, scale=scale, root=root, code=code)
    histories: dict[str, dict[int, History]] = {level: {} for level in file.study.levels}
    for run in runs:
        if run.is_finished:
            histories[run.level][run.seed] = read_history(run.folder)
    data = StudyData(file.study, histories)
    return Judged(file, scale, runs, data, [judge_claim(claim, data) for claim in file.study.claims])


def _write_page(judged: Judged, output: Path) -> None:
    study, name = judged.file.study, judged.file.name
    charts = _curves(judged)
    bars = [
        _bar(f"{result.claim.id}  {_short(part)}", part)
        for result in judged.claims
        for part in result.results
        if part.effect
    ]
    if bars:
        charts.append(draw_effects(f"{name}-effects", bars, title="Effects"))
    for chart in charts:
        write_text(output / f"{chart.name}.svg", chart.svg)
    lines = [
        f"# {study.question}",
        "",
        f"Study [{name}](../../studies/{name}.toml), factor: {study.factor}. "
        f"{judged.num_finished} of {len(judged.runs)} runs are finished. "
        "How to read this: [insights.md](../insights.md).",
        "",
        *_reproduce([judged]),
        "",
        "## Levels",
        "",
        *_levels(judged),
        "",
        "## Claims",
        "",
        *(line for result in judged.claims for line in _claim(result, judged)),
        "## Curves",
        "",
        "Lines are means over seeds, bands the range of the seeds; the reference level is black.",
        "",
        *(line for chart in charts for line in _figure(chart)),
    ]
    write_text(output / f"{name}.md", "\n".join(lines))


def _levels(judged: Judged) -> list[str]:
    study = judged.file.study
    rows = ["| level | | keys | runs | accuracy before | after |", "| --- | --- | --- | --- | --- | --- |"]
    for name, level in study.levels.items():
        runs = judged.data.histories[name].values()
        before = [h.before.accuracy for h in runs if h.before]
        after = [h.after.accuracy for h in runs if h.after]
        mark = "**" if name == study.reference else ""
        cells = [
            f"{mark}{name}{mark}",
            level.says,
            _keys(level_keys(study, scale=judged.scale, level=name)) or "the baseline",
            f"{len(runs)} of {len(study.scale(judged.scale).seeds)}",
            f"{fmean(before):.3f}" if before else "-",
            f"{fmean(after):.3f} ({', '.join(f'{x:.3f}' for x in after)})" if after else "-",
        ]
        rows.append(_row(cells))
    return rows


def _claim(result: ClaimResult, judged: Judged) -> list[str]:
    claim = result.claim
    lines = [f"### {claim.id}: {claim.sentence}", "", f"**{result.verdict}**. The paper: {claim.paper}", ""]
    if claim.cannot:
        return [*lines, f"It cannot appear here: {claim.cannot}", ""]
    lines += [
        "| what is compared | claimed | effect | by seed | n | verdict |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_row([_compared(part), _claimed(part), *_measured(part), part.verdict]) for part in result.results),
        "",
    ]
    levels = dict.fromkeys(level for part in claim.predicates for level in (*part.of, *part.against))
    differences = [
        f"{level}: {_keys(level_keys(judged.file.study, scale=judged.scale, level=level)) or 'the baseline'}"
        for level in levels
    ]
    lines += [f"Config difference: {'; '.join(differences)}.", ""]
    return [*lines, claim.note, ""] if claim.note else lines


def _write_scoreboard(judged: Sequence[Judged], output: Path) -> Path:
    found = {result.claim.id: (study, result) for study in judged for result in study.claims}
    counts = Counter(found[name][1].verdict if name in found else Verdict.NOT_RUN for name in INSIGHTS)
    bars = [
        _bar(f"{name}  {_short(part)}", part)
        for name in INSIGHTS
        if name in found
        for part in found[name][1].results
        if part.effect
    ]
    chart = draw_effects("scoreboard", bars, title="Effects of all claims") if bars else None
    if chart:
        write_text(output / f"{chart.name}.svg", chart.svg)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    lines = [
        "# The 34 insights on the micro lab",
        "",
        f"Of {len(INSIGHTS)} claims: {told}. How to read this: [insights.md](../insights.md).",
        "",
        *_reproduce(judged),
        "",
        *(line for letter, aspect in ASPECTS.items() for line in _aspect(letter, aspect, found)),
        *(_figure(chart) if chart else []),
    ]
    path = output / "README.md"
    write_text(path, "\n".join(lines))
    return path


def _aspect(letter: str, aspect: str, found: Mapping[str, tuple[Judged, ClaimResult]]) -> list[str]:
    names = [name for name in dict.fromkeys([*INSIGHTS, *found]) if name[0] == letter]
    if not names:
        return []
    return [
        f"## {aspect}",
        "",
        "| | claim | verdict | effects, 95 % interval (claimed) | n | study |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_score(name, *found.get(name, (None, None))) for name in names),
        "",
    ]


def _score(name: str, study: Judged | None, result: ClaimResult | None) -> str:
    if study is None or result is None:
        return _row([name, INSIGHTS[name], Verdict.NOT_RUN, "no study among these tests it", "-", "-"])
    effects = [
        f"{_compared(part)}: {_interval(part.effect)} ({_claimed(part)})" for part in result.results if part.effect
    ]
    page = f"[{study.file.name}]({study.file.name}.md)"
    told = "<br>".join(effects) or result.claim.cannot or "-"
    counts = dict.fromkeys(_measured(part)[-1] for part in result.results if part.effect)
    return _row([name, result.claim.sentence, f"**{result.verdict}**", told, "; ".join(counts) or "-", page])


def _reproduce(judged: Sequence[Judged]) -> list[str]:
    """What gives these numbers again."""
    histories = [
        history for study in judged for by_seed in study.data.histories.values() for history in by_seed.values()
    ]
    distinct = {history.run.root: history for history in histories}.values()
    commits = sorted({_commit(history.manifest) for history in distinct})
    machines = sorted(
        {f"{m.get('num_cpus')} cores, {m.get('platform')}" for h in distinct if (m := h.manifest.get("machine"))}
    )
    codes = sorted({run.folder.parent.name for study in judged for run in study.runs})
    seconds = sum((history.summary or {}).get("cpu_seconds", 0.0) for history in distinct)
    seeds = sorted({run.seed for study in judged for run in study.runs})
    quick = " --quick" if judged[0].scale == QUICK else ""
    name = "--all" if len(judged) > 1 else judged[0].file.name
    return [
        "```console",
        f"microcoder study run {name}{quick}",
        f"microcoder study report {name}{quick} -o docs/insights",
        "```",
        "",
        f"Seeds {', '.join(map(str, seeds))}; {len(distinct)} distinct runs; {seconds / 3600:.1f} CPU-hours; "
        f"code digest {', '.join(codes)}; commit {', '.join(commits) or '-'}; {'; '.join(machines) or '-'}.",
    ]


def _commit(manifest: Mapping[str, Any]) -> str:
    git = manifest.get("git") or {}
    commit = str(git.get("commit") or "unknown")[:12]
    return f"{commit} with changes" if git.get("is_dirty") else commit


def _curves(judged: Judged) -> list[Chart]:
    charts = []
    for metric in judged.file.study.metrics:
        by_level = {
            level: [s for seed in sorted(by_seed) if (s := judged.data.series(level, seed, metric)) is not None]
            for level, by_seed in judged.data.histories.items()
        }
        if any(by_level.values()):
            num_steps = next(run.config.num_steps for run in judged.runs)
            charts.append(
                draw_curves(
                    judged.file.name,
                    metric,
                    by_level,
                    reference=judged.file.study.reference,
                    num_steps=num_steps,
                )
            )
    return charts


def _bar(label: str, part: PredicateResult) -> Bar:
    assert part.effect is not None
    return Bar(label, part.effect, part.predicate.least, part.predicate.direction, part.verdict)


def _short(part: PredicateResult) -> str:
    text = _compared(part)
    return text if len(text) <= 62 else f"{text[:60]}…"


def _compared(part: PredicateResult) -> str:
    predicate = part.predicate
    of = " and ".join(predicate.of)
    text = f"{predicate.metric.replace('_', ' ')}, {predicate.feature.replace('_', ' ')}: {of}"
    if not predicate.against:
        return text
    other = f" ({predicate.against_feature})" if predicate.against_feature else ""
    return f"{text} against {' and '.join(predicate.against)}{other}"


def _claimed(part: PredicateResult) -> str:
    predicate = part.predicate
    if predicate.direction == "same":
        return f"within ±{predicate.least:g}"
    return f"{predicate.direction} by {predicate.least:g} or more"


def _measured(part: PredicateResult) -> list[str]:
    effect = part.effect
    if effect is None:
        return ["-", "-", "0"]
    problems = f" x {effect.num_problems} problems" if effect.num_problems else ""
    each = ", ".join(f"{value:+.3g}" for value in effect.by_seed)
    return [_interval(effect), each, f"{effect.num_seeds} seed{'' if effect.num_seeds == 1 else 's'}{problems}"]


def _interval(effect: Effect | None) -> str:
    if effect is None:
        return "-"
    if abs(effect.high) > _WIDEST and effect.num_seeds < 2:
        return f"{effect.value:+.3g}, no interval from one seed"
    return f"{effect.value:+.3g} [{effect.low:+.3g}, {effect.high:+.3g}]"


def _keys(keys: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key} = {_value(value)}`" for key, value in keys.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else str(value).replace("'", "")


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _figure(chart: Chart) -> list[str]:
    return [f"![{chart.title}. {chart.description}]({chart.name}.svg)", ""]

"""The pages of the studies, from their records: five sentences, one figure and tables each, and an index of claims."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import new_file, write_json, write_text
from microcoder.lab.studies.claims import ClaimResult, JudgedStudy, as_records
from microcoder.lab.studies.design import INSIGHTS, QUICK, Claim, Contrast, Study, Unit
from microcoder.lab.studies.figures import draw_curves
from microcoder.lab.studies.verdicts import ALPHA, ClaimFinding, ContrastResult, expected_half_width
from microcoder.lab.studies.work import SUFFIX, level_keys, pack_records

_SUFFIX: dict[Unit, str] = {"share": " points", "tokens": " tokens", "nats": " nats", "1": ""}
_MOST_NAMED = 4
"""Most claims that a sentence names one by one."""


def write_study_report(
    judged: Sequence[JudgedStudy], *, output: Path, has_index: bool = True, records: Path | None = None
) -> Path:
    """Write the pages of some studies, with the records of their runs; return the page to begin with.

    Args:
        judged: the studies, with verdicts corrected among all.
        output: folder of the pages.
        has_index: whether these are all studies: then the index is written too, and all records in one file.
        records: file of records that the runs were read from, to be copied beside the pages; None: pack them.
    """
    if not any(study.record.seeds for study in judged):
        folder = next(work.folder.parent for study in judged for work in study.works)
        found = sorted(path.name for path in folder.parent.glob("*") if path.is_dir())
        others = [name for name in found if name not in (folder.name, "logs")]
        hint = f"; runs of other code exist, choose one with --code: {', '.join(others)}" if others else ""
        raise DataError(
            f"no finished {judged[0].scale} run of these studies in {folder}; type `microcoder study`{hint}"
        )
    figures = [_draw_figure(study, output) for study in judged]
    name = "all" if has_index else judged[0].study.name
    beside = output / f"{name}-records{SUFFIX}"
    if records is None:
        pack_records([work for study in judged for work in study.works], beside)
    elif not (beside.exists() and records.samefile(beside)):
        with new_file(beside) as partial:
            shutil.copyfile(records, partial)
    for study, figure in zip(judged, figures, strict=True):
        _write_page(study, figure, beside)
    return _write_index(judged, beside) if has_index else output / f"{judged[0].study.name}.md"


def _draw_figure(judged: JudgedStudy, output: Path) -> list[str]:
    """Draw the figure that a study's file asks for, if there are runs; return the lines that show it."""
    study, data, chosen = judged.study, judged.data, judged.study.figure
    if chosen is None:
        return []
    by_level = {
        level: [s for seed in data.seeds if (s := data.series(level, seed, chosen.metric)) is not None]
        for level in chosen.levels
    }
    if not any(by_level.values()):
        return []
    num_steps = next(work.config.num_steps for work in judged.works if work.measurement is None)
    name = f"{judged.study.name}-figure"
    chart = draw_curves(name, chosen.metric, by_level, reference=study.reference, num_steps=num_steps)
    write_text(output / f"{name}.svg", chart.svg)
    return [f"![{chart.title}. {chart.description}]({name}.svg)", ""]


def _write_page(judged: JudgedStudy, figure: Sequence[str], records: Path) -> None:
    name, study, path = judged.study.name, judged.study, judged.study.path
    # As `microcoder study` takes it: by its name from the folder of studies, else by its path.
    typed = name if path.parent.name == "studies" else path.as_posix()
    quick = " --quick" if judged.scale == QUICK else ""
    reported = "--all" if records.name == f"all-records{SUFFIX}" else typed
    again = f"microcoder study {reported} --report{quick} -o docs/insights"
    lines = [
        f"# {_capital(study.factor)}",
        "",
        f"**Asked:** {study.question}\n",
        f"**Done:** {study.done}\n",
        f"**Seen:** {_seen(judged)}\n",
        f"**It means:** {_meaning(judged.claims)}\n",
        f"**Next:** {study.next}\n",
        *figure,
        "## Claims",
        "",
        *_rows("", "claim", "verdict", "effect, 95 % interval", "claimed", "the paper's", "seeds", "p sign", "p size"),
        *(_claim_row(result, study) for result in judged.claims),
        "",
        *(line for result in judged.claims for line in _remarks(result, study)),
        "",
        "## What was compared",
        "",
        *_rows("claim", "what is compared", "claimed", "effect, 95 % interval", "by seed", "n", "alone"),
        *(row for result in judged.claims for row in _contrast_rows(result, study)),
        "",
        *(_levels(judged) if study.levels else []),
        "## How to have it again",
        "",
        f"Study [{name}](../../studies/{path.as_posix().rpartition('studies/')[2]}); how to read this: "
        "[insights.md](../insights.md).",
        "",
        "```console",
        f"microcoder study {typed}{quick}",
        again,
        f"{again} --runs docs/insights/{records.name}  # without running: from these runs' records",
        "```",
        "",
        f"Every number above comes from the [records of the runs]({records.name}).",
        judged.record.made,
    ]
    write_text(records.with_name(f"{name}.md"), "\n".join(lines).rstrip() + "\n")


def _write_index(judged: Sequence[JudgedStudy], records: Path) -> Path:
    found = [(one.study, result) for one in judged for result in one.claims]
    found.sort(key=lambda pair: INSIGHTS.index(pair[1].claim.id) if pair[1].claim.is_catalogued else len(INSIGHTS))
    results = [result for _, result in found if result.claim.is_catalogued]
    num_missing = len(INSIGHTS) - len(results)
    counts = _count_verdicts(results) + (f", {num_missing} in no study here" if num_missing else "")
    num_precise = sum(bool(result.primary and result.primary.is_precise) for result in results)
    quick = " --quick" if judged[0].scale == QUICK else ""
    lines = [
        "# The 34 insights on the micro lab",
        "",
        f"{len(INSIGHTS)} claims: {counts}. {num_precise} intervals are as narrow as the smallest effect of "
        "interest. Verdicts hold among all claims (Holm, 5 %).",
        "",
        "How to read this: [insights.md](../insights.md); in words: [what we learnt](what-we-learnt.md).",
        "",
        *_rows("", "claim", "verdict", "effect, 95 % interval", "claimed", "the paper's", ""),
        *(_row(*_claim_cells(result, study)[:6], f"[study]({study.name}.md)") for study, result in found),
        "",
        "Each study's page says its seeds, runs, code and machines. Effects are in [results.json](results.json), what",
        f"the runs recorded in [{records.name}]({records.name}); the last line judges these by the installed rule:",
        "",
        "```console",
        f"microcoder study --all{quick}",
        f"microcoder study --all --report{quick} -o docs/insights",
        f"microcoder study --all --report{quick} -o docs/insights --runs docs/insights/{records.name}",
        "```",
    ]
    path = records.with_name("README.md")
    write_text(path, "\n".join(lines).rstrip() + "\n")
    write_json(records.with_name("results.json"), as_records(judged))
    return path


def _claim_cells(result: ClaimResult, study: Study) -> list[str]:
    claim, part = result.claim, result.primary
    cells = [claim.id, claim.short, f"**{result.verdict}**"]
    if part is None:
        return [*cells, "-", "-", "-", "-"]
    num_seeds = str(part.effect.num_seeds if part.effect else 0)
    return [*cells, format_effect(part, study), _format_claimed(part.contrast, study), _paper(part, study), num_seeds]


def _claim_row(result: ClaimResult, study: Study) -> str:
    found = result.adjusted
    tests = [("< 0.001" if p < 0.001 else f"{p:.3f}") for p in (found.p_sign, found.p_size)] if found else ["-", "-"]
    return _row(*_claim_cells(result, study), *tests)


def _paper(part: ContrastResult, study: Study) -> str:
    figure = part.contrast.paper
    return "no figure" if figure is None else format_amount(figure, study.unit_of(part.contrast))


def _remarks(result: ClaimResult, study: Study) -> list[str]:
    """Return a list item with what a verdict depends on besides its effect (checks, corrections, notes), or none."""
    claim, part, remarks = result.claim, result.primary, []
    if claim.undecidable:
        remarks += [claim.undecidable.reason, claim.undecidable.compute]
    if claim.construction:
        remarks.append(f"By construction: {claim.construction}")
    if result.verdict is ClaimFinding.CANNOT_APPEAR:
        missed = [f"{format_check(check, study)}." for check in result.checks if not check.is_reached]
        remarks += missed or ["The runs that are compared are the same in every seed: the setting changed nothing."]
    elif part and part.effect:
        unknown = [name_comparison(check.contrast, study) for check in result.checks if check.effect is None]
        remarks += [f"Not on record for these runs: {_join(unknown)}."] if unknown else []
    if result.raw is not result.verdict:
        remarks.append(f"By itself it would be {result.raw}; corrected for all claims that does not stand.")
    if part and part.effect and part.contrast.is_above_paper:
        least = format_amount(part.contrast.least, study.unit_of(part.contrast))
        is_excluded = part.judgement.p_size <= ALPHA
        remarks.append(
            f"The paper's effect, {_paper(part, study)}, is smaller than the {least} asked for"
            + (": that these are excluded does not contradict it." if is_excluded else ".")
        )
    remarks += filter(None, [claim.note])
    return [f"- **{claim.id}**: {' '.join(remarks)}"] if remarks else []


def _contrast_rows(result: ClaimResult, study: Study) -> list[str]:
    rows = []
    for part in filter(None, (result.primary, *result.secondary)):
        contrast, effect = part.contrast, part.effect
        name = f"**{result.claim.id}**" if part is result.primary else result.claim.id
        each, num = "-", "0"
        if effect:
            unit = study.unit_of(contrast)
            each = ", ".join(format_value(value, unit) for value in effect.by_seed)
            units = f" x {effect.num_units:,} {'units' if contrast.measurement else 'problems'}"
            num = f"{effect.num_seeds} seeds{units if effect.num_units else ''}"
        compared, claimed = name_comparison(contrast, study), _format_claimed(contrast, study)
        rows.append(_row(name, compared, claimed, format_effect(part, study), each, num, part.judgement.verdict))
    return rows


def _levels(judged: JudgedStudy) -> list[str]:
    study, num_seeds = judged.study, len(judged.study.seeds_at(judged.scale))
    rows = ["## Runs", "", *_rows("level", "", "keys", "runs", "accuracy before", "after")]
    for name, level in study.levels.items():
        sides = judged.record.levels.get(name, {})
        before, after = sides.get("before", ()), sides.get("after", ())
        mark = "**" if name == study.reference else ""
        keys = level_keys(judged.study, scale=judged.scale, level=name)
        said = ", ".join(f"`{key} = {str(value).replace(chr(39), '')}`" for key, value in keys.items())
        rows.append(
            _row(
                f"{mark}{name}{mark}",
                level.says,
                said or "the baseline",
                f"{len(after)} of at most {num_seeds}",
                f"{fmean(before):.1%}" if before else "-",
                f"{fmean(after):.0%} ({', '.join(f'{100 * x:.0f}' for x in after)})" if after else "-",
            )
        )
    return [*rows, ""]


def _rows(*columns: str) -> list[str]:
    return [_row(*columns), _row(*["---"] * len(columns))]


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


# ----- In words.


def _name_metric(contrast: Contrast, study: Study) -> str:
    if contrast.measurement:
        return study.measurements[contrast.measurement].metrics[contrast.metric].says
    feature = f", {contrast.feature.replace('_', ' ')}" if contrast.feature else ""
    return f"{contrast.metric.replace('_', ' ').replace('heldout', 'held-out')}{feature}"


def name_comparison(contrast: Contrast, study: Study) -> str:
    """Return a contrast in words: metric, levels, and what they are compared with."""
    of, against = _name_sides(contrast)
    text = f"{_name_metric(contrast, study)}: {of}"
    if contrast.dose:
        return f"{text}, slope over the dose: {contrast.dose.replace('_', ' ')}"
    return f"{text} against {against}" if contrast.against else text


def _name_sides(contrast: Contrast) -> tuple[str, str]:
    other = f" ({contrast.against_feature.replace('_', ' ')})" if contrast.against_feature else ""
    return " and ".join(contrast.of), " and ".join(contrast.against) + other


def format_value(value: float, unit: Unit) -> str:
    """Return a signed number as text without its unit, shares in percentage points."""
    if not math.isfinite(value):
        return "any" if value > 0 else "-any"
    # The order in which a processor adds is not to decide which way a half is rounded.
    scaled = round(100 * value if unit == "share" else value, 9)
    is_coarse = unit in ("share", "tokens") and abs(scaled) >= 0.1
    digits = 1 if is_coarse else max(0, 2 - math.floor(math.log10(abs(scaled) or 1)))
    text = f"{scaled:+.{min(digits, 6)}f}"
    return text.replace("-", "+") if float(text) == 0 else text


def format_amount(value: float, unit: Unit) -> str:
    """Return a size as text with its unit: `2 points`."""
    return f"{100 * value if unit == 'share' else value:.3g}{_SUFFIX[unit]}"


def format_effect(part: ContrastResult, study: Study) -> str:
    """Return an effect as text, with its interval and unit; `-` without one."""
    contrast, effect = part.contrast, part.effect
    if effect is None:
        return "-"
    unit = study.unit_of(contrast)
    value = format_value(effect.value, unit)
    if not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return f"{value}{_SUFFIX[unit]}, no interval"
    return f"{value} [{format_value(effect.low, unit)}, {format_value(effect.high, unit)}]{_SUFFIX[unit]}"


def _format_claimed(contrast: Contrast, study: Study) -> str:
    least = format_amount(contrast.least, study.unit_of(contrast))
    return f"same within {least}" if contrast.direction == "same" else f"{contrast.direction} by {least} or more"


def format_check(found: ContrastResult, study: Study) -> str:
    """Return a check's result and requirement in words."""
    check, value = found.contrast, found.effect.value if found.effect else None
    unit = study.unit_of(check)
    is_plain = unit == "share" and not check.against
    said, least = (
        "not run" if x is None else f"{100 * x:.3g}%" if is_plain else format_amount(x, unit)
        for x in (value, check.least)
    )
    return f"{name_comparison(check, study)}: {said}, at least {least} needed"


def describe_claim(result: ClaimResult, study: Study) -> str:
    """Return a claim's result as a line of text for a terminal."""
    effect = f", {format_effect(result.primary, study)}" if result.primary and result.primary.effect else ""
    missed = [format_check(check, study) for check in result.checks if not check.is_reached]
    why = f" ({'; '.join(missed)})" if result.verdict is ClaimFinding.CANNOT_APPEAR and missed else ""
    return f"{result.claim.id:<4}{result.verdict}{effect}: {result.claim.short}{why}"


def describe_expectation(claim: Claim, study: Study, *, scale: str) -> str:
    """Return a sentence: how wide an interval to expect, or why the claim is not decidable; empty without a spread."""
    if claim.undecidable is not None:
        return f"Not decidable here: {claim.undecidable.reason} {claim.undecidable.compute}"
    primary, spread = claim.primary, claim.spread
    if primary is None or spread is None:
        return ""
    num_seeds, unit = len(study.seeds_at(scale, primary.measurement)), study.unit_of(primary)
    sd, half, least = (
        format_amount(x, unit) for x in (spread.sd, expected_half_width(spread.sd, num_seeds), primary.least)
    )
    return (
        f"A spread between seeds of {sd} ({spread.where}) lets {num_seeds} seeds give a half width of {half}; the "
        f"smallest effect of interest is {least}."
    )


def _count_verdicts(results: Sequence[ClaimResult]) -> str:
    counts = Counter(result.verdict for result in results)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in ClaimFinding if counts[verdict])


def _seen(judged: JudgedStudy) -> str:
    study = judged.study
    tested = [part for result in judged.claims if (part := result.primary) and part.effect]
    if not tested:
        return "Nothing that decides a claim has been run yet."
    if len(tested) > 2:
        return f"Claims: {_count_verdicts(judged.claims)}."
    parts = [f"{_subject(part.contrast, study)} was {format_effect(part, study)}" for part in tested]
    return f"{_capital(_join(parts))} (effect and 95 % interval)."


def _subject(contrast: Contrast, study: Study) -> str:
    if not contrast.against:
        return name_comparison(contrast, study)
    of, against = _name_sides(contrast)
    return f"the difference in {_name_metric(contrast, study)} between {of} and {against}"


_MEANS: Mapping[ClaimFinding, tuple[str, str]] = {
    ClaimFinding.SUPPORTED: ("this experiment supports", "that"),
    ClaimFinding.SMALLER: ("it shows, but smaller than would matter,", "that"),
    ClaimFinding.CONTRADICTED: ("it contradicts", "that"),
    ClaimFinding.CONSTRUCTED: ("it could not have shown the contrary of", ""),
    ClaimFinding.INCONCLUSIVE: ("it leaves open", "whether"),
    ClaimFinding.CANNOT_APPEAR: ("the treatment reached too little here to ask about", ""),
    ClaimFinding.UNDECIDABLE: ("more than this scale is needed for", ""),
    ClaimFinding.NOT_RUN: ("nothing has been run for", ""),
}


def _meaning(results: Sequence[ClaimResult]) -> str:
    clauses = []
    for verdict, (lead, joint) in _MEANS.items():
        found = [result.claim for result in results if result.verdict is verdict]
        named = [f"{joint} {claim.short} ({claim.id})" if joint else claim.id for claim in found]
        if joint and len(named) > _MOST_NAMED:
            named = [*named[:_MOST_NAMED], f"{len(named) - _MOST_NAMED} more"]
        clauses += [f"{lead} {_join(named)}"] if named else []
    return f"{_capital('; '.join(clauses))}."


def _join(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

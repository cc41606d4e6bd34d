"""The pages of the studies, from their records: four sentences, one figure, verdicts and tables each, and an index."""

import math
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from microcoder.judge.core.config import SHIPPED
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import new_file, write_json, write_text
from microcoder.lab.studies.claims import (
    ClaimFinding,
    ClaimResult,
    ContrastResult,
    ControlResult,
    JudgedStudy,
    as_records,
)
from microcoder.lab.studies.contrasts import read_level
from microcoder.lab.studies.design import INSIGHTS, QUICK, STUDIES, Claim, Contrast, Study, Unit
from microcoder.lab.studies.effects import ALPHA, MIN_DRAWS, Effect, expected_half_width
from microcoder.lab.studies.figures import draw_curves
from microcoder.lab.studies.work import SUFFIX, level_keys, pack_records

_SUFFIX: dict[Unit, str] = {"share": " points", "tokens": " tokens", "nats": " nats", "1": ""}


def write_study_report(
    judged: Sequence[JudgedStudy],
    *,
    output: Path,
    has_index: bool = True,
    records: Path | None = None,
) -> Path:
    """Write the pages of some studies, with the records of their runs; return the page to begin with.

    Args:
        judged: the studies, with verdicts corrected among all.
        output: folder of the pages.
        has_index: whether these are all studies: then the index is written too, and all records in one file.
        records: file of records that the runs were read from, to be copied beside the pages; None: pack them.
    """
    if not any(study.seeds for study in judged):
        folder = next(work.folder.parent for study in judged for work in study.works)
        raise DataError(
            f"no finished {judged[0].scale} run of these studies in {folder}; type `microcoder study`, or name the "
            "folder beside it that holds runs of other code with --code"
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
    study, chosen = judged.study, judged.study.figure
    if chosen is None:
        return []
    by_level = {
        level: [*read_level(judged.histories, level, chosen.metric).values()]
        for level in chosen.levels
    }
    if not any(by_level.values()):
        return []
    num_steps = next(work.config.num_steps for work in judged.works if work.measurement is None)
    name = f"{study.name}-figure"
    chart = draw_curves(
        name, chosen.metric, by_level, reference=study.reference, num_steps=num_steps
    )
    write_text(output / f"{name}.svg", chart.svg)
    return [f"![{chart.title}. {chart.description}]({name}.svg)", ""]


def _write_page(judged: JudgedStudy, figure: Sequence[str], records: Path) -> None:
    name, study = judged.study.name, judged.study
    folder = records.parent
    typed = _typed(study)
    quick = " --quick" if judged.scale == QUICK else ""
    reported = "--all" if records.name == f"all-records{SUFFIX}" else typed
    again = f"microcoder study {reported} --report{quick} -o {folder.as_posix()}"
    explained = folder.parent / "insights.md"
    reading = "; how to read this: [insights.md](../insights.md)" if explained.is_file() else ""
    lines = [
        f"# {_capital(study.factor)}",
        "",
        f"**Asked:** {study.question}\n",
        f"**Done:** {study.done}\n",
        f"**Seen:** {_seen(judged.claims)}\n",
        f"**Next:** {study.next}\n",
        *figure,
        "## Claims",
        "",
        *(
            " ".join([f"- **{one.claim.id}** {describe_claim(one, study)}.", *_remarks(one, study)])
            for one in judged.claims
        ),
        "",
        "## What was compared",
        "",
        *_rows("", "what is compared", *_NUMBERS, "by seed", "n", "alone", "p sign", "p size"),
        *(row for result in judged.claims for row in _contrast_rows(result, study)),
        "",
        *(_levels(judged) if study.levels else []),
        "## How to repeat this",
        "",
        f"Study {_link(study.path, folder, name)}{reading}.",
        "",
        "```console",
        f"microcoder study {typed}{quick}",
        again,
        f"{again} --runs {records.as_posix()}  # without running: from these runs' records",
        "```",
        "",
        f"Every number above comes from the [records of the runs]({records.name}).",
        judged.made,
    ]
    write_text(records.with_name(f"{name}.md"), "\n".join(lines).rstrip() + "\n")


def _typed(study: Study) -> str:
    """Return a study as `microcoder study` takes it: by its name from the folder of studies, else by its path."""
    if study.path.parent in (STUDIES, SHIPPED / STUDIES):
        return study.name
    return study.path.as_posix()


def _link(path: Path, folder: Path, text: str = "") -> str:
    """Return a link from a page in a folder to a file.

    The text alone where the file came with the package, or where either is outside the current folder: the way there
    would name folders of this machine.
    """
    here = Path.cwd()
    is_near = all(place.absolute().is_relative_to(here) for place in (path, folder))
    if path.is_relative_to(SHIPPED) or not is_near:
        return text or path.name
    return f"[{text or path.name}]({Path(os.path.relpath(path, folder)).as_posix()})"


def _write_index(judged: Sequence[JudgedStudy], records: Path) -> Path:
    found = [(one.study, result) for one in judged for result in one.claims]
    found.sort(
        key=lambda pair: (
            INSIGHTS.index(pair[1].claim.id) if pair[1].claim.is_catalogued else len(INSIGHTS)
        )
    )
    results = [result for _, result in found if result.claim.is_catalogued]
    num_missing = len(INSIGHTS) - len(results)
    verdicts = Counter(result.verdict for result in results)
    counts = ", ".join(f"{verdicts[one]} {one}" for one in ClaimFinding if verdicts[one])
    counts += f", {num_missing} in no study here" if num_missing else ""
    num_precise = sum(bool(result.primary and result.primary.is_precise) for result in results)
    quick = " --quick" if judged[0].scale == QUICK else ""
    folder = records.parent
    again = f"microcoder study --all --report{quick} -o {folder.as_posix()}"
    reading = [
        f"{words}: [{title}]({page})"
        for words, page, title in (
            ("How to read this", "../insights.md", "insights.md"),
            ("in words", "what-we-learnt.md", "what we learnt"),
        )
        if (folder / page).is_file()
    ]
    lines = [
        "# The 34 insights on the micro lab",
        "",
        f"{len(INSIGHTS)} claims: {counts}. {num_precise} intervals are as narrow as the smallest effect of "
        f"interest. Verdicts hold over starts, {MIN_DRAWS} at least, and among all claims (Holm, 5 %).",
        "",
        *([f"{'; '.join(reading)}.", ""] if reading else []),
        *_rows("", "claim", "verdict", *_NUMBERS, ""),
        *(
            _row(
                one.claim.id,
                one.claim.short,
                f"**{one.verdict}**" + (f": {one.why_open}" if one.why_open else ""),
                *_numbers(one.primary, study),
                f"[study]({study.name}.md)",
            )
            for study, one in found
        ),
        "",
        "Each study's page says its seeds, runs, code and machines. Effects are in [results.json](results.json), what",
        f"the runs recorded in [{records.name}]({records.name}); the last line judges these by the installed rule:",
        "",
        "```console",
        f"microcoder study --all{quick}",
        again,
        f"{again} --runs {records.as_posix()}",
        "```",
    ]
    path = records.with_name("README.md")
    write_text(path, "\n".join(lines).rstrip() + "\n")
    write_json(records.with_name("results.json"), as_records(judged))
    return path


_NUMBERS = ("effect, 95 % interval", "claimed", "the paper's")


def _numbers(part: ContrastResult | None, study: Study) -> tuple[str, str, str]:
    if part is None:
        return "-", "-", "-"
    contrast, unit = part.contrast, study.unit_of(part.contrast)
    least = format_amount(contrast.least, unit)
    claimed = (
        f"same within {least}"
        if contrast.direction == "same"
        else f"{contrast.direction} by {least} or more"
    )
    paper = "no figure" if contrast.paper is None else format_amount(contrast.paper, unit)
    return format_effect(part, study), claimed, paper


def _remarks(result: ClaimResult, study: Study) -> list[str]:
    """Return what a verdict depends on besides its effect (corrections, what was not recorded, notes), in sentences."""
    claim, part, remarks = result.claim, result.primary, []
    remarks += filter(None, (claim.undecidable, claim.unasked))
    if result.why_open:
        remarks.append(f"{_capital(result.why_open)}.")
    remarks += [_describe_control(one, result, study) for one in result.controls]
    if claim.construction:
        remarks.append(f"By construction: {claim.construction}")
    if result.verdict is ClaimFinding.CANNOT_APPEAR:
        if all(check.is_reached for check in result.checks):
            remarks.append(
                "The runs that are compared are the same in every seed: the setting changed nothing."
            )
    elif part and part.effect:
        unknown = [
            study.describe(check.contrast) for check in result.checks if check.effect is None
        ]
        remarks += [f"Not on record for these runs: {', '.join(unknown)}."] if unknown else []
    if result.raw is not result.verdict:
        remarks.append(
            f"By itself it would be {result.raw}; corrected for all claims that does not stand."
        )
    if part and part.effect and part.contrast.is_above_paper:
        least, excluded = (
            format_amount(part.contrast.least, study.unit_of(part.contrast)),
            part.p_size <= ALPHA,
        )
        remarks.append(
            f"The paper's effect, {_numbers(part, study)[2]}, is smaller than the {least} asked for"
            f"{': that these are excluded does not contradict it' if excluded else ''}."
        )
    return [*remarks, *filter(None, [claim.note])]


def _describe_control(one: ControlResult, result: ClaimResult, study: Study) -> str:
    """Return a sentence: the effect under a control, and what that leaves of the claim."""
    if one.effect is None or result.primary is None:
        return f"{_capital(one.control.says)}: not on record."
    part = ContrastResult(one.control, one.effect)
    said = f"{_capital(one.control.says)}: {format_effect(part, study)}"
    if result.verdict is ClaimFinding.UNDONE:
        left = one.settle(result.primary.verdict, result.primary)
        if left is ClaimFinding.UNDONE:
            alone = result.primary.verdict
            return f"{said}: by itself the claim would be {alone}, and this undoes it."
    return f"{said}."


def _contrast_rows(result: ClaimResult, study: Study) -> list[str]:
    rows = []
    for part in filter(None, (result.primary, *result.secondary)):
        contrast, name, corrected = part.contrast, result.claim.id, None
        if part is result.primary:
            name, corrected = f"**{name}**", result.adjusted
        p_values = [corrected.p_sign, corrected.p_size] if corrected else []
        tests = ["< 0.001" if p < 0.001 else f"{p:.3f}" for p in p_values] or ["-", "-"]
        numbers = _numbers(part, study)
        counts = _counts(contrast, part.effect, study)
        rows.append(_row(name, study.describe(contrast), *numbers, *counts, part.verdict, *tests))
    for one in result.controls:
        name = f"{result.claim.id}, control"
        effect = format_effect(ContrastResult(one.control, one.effect), study)
        counts = _counts(one.control, one.effect, study)
        said = f"{study.describe(one.control)} ({one.control.says})"
        rows.append(_row(name, said, effect, "-", "-", *counts, "-", "-", "-"))
    return rows


def _counts(contrast: Contrast, effect: Effect | None, study: Study) -> tuple[str, str]:
    """Return an effect's values by seed, and in words of how many starts, seeds and problems it is."""
    if effect is None:
        return "-", "0"
    unit = study.unit_of(contrast)
    each = ", ".join(format_value(value, unit) for value in effect.by_seed)
    counts = [_count(len(effect.by_seed), "seeds")]
    if effect.drawn == "starts":
        counts.insert(0, _count(effect.num_draws, "starts"))
    if effect.num_units:
        counts.append(_count(effect.num_units, "units" if contrast.measurement else "problems"))
    return each, ", ".join(counts)


def _count(num: int, things: str) -> str:
    return f"{num:,} {things.removesuffix('s') if num == 1 else things}"


def _levels(judged: JudgedStudy) -> list[str]:
    study, num_seeds = judged.study, len(judged.study.at_scale(judged.scale).seeds)
    rows = ["## Runs", "", *_rows("level", "", "keys", "runs", "accuracy before", "after")]
    for name, level in study.levels.items():
        before, after = judged.accuracies(name).values()
        mark = "**" if name == study.reference else ""
        keys = level_keys(judged.study, scale=judged.scale, level=name)
        said = ", ".join(
            f"`{key} = {str(value).replace(chr(39), '')}`" for key, value in keys.items()
        )
        rows.append(
            _row(
                f"{mark}{name}{mark}",
                level.says,
                said or "the baseline",
                f"{len(after)} of at most {num_seeds}",
                f"{fmean(before):.1%}" if before else "-",
                f"{fmean(after):.0%} ({', '.join(f'{100 * x:.0f}' for x in after)})"
                if after
                else "-",
            )
        )
    return [*rows, ""]


def _rows(*columns: str) -> list[str]:
    return [_row(*columns), _row(*["---"] * len(columns))]


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


# ----- In words.


def format_value(value: float, unit: Unit) -> str:
    """Return a signed number as text without its unit, shares in percentage points."""
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


def format_check(found: ContrastResult, study: Study) -> str:
    """Return a check's result and requirement in words."""
    check, value = found.contrast, found.effect.value if found.effect else None
    unit = study.unit_of(check)
    is_plain = unit == "share" and not check.against
    said, least = (
        "not run" if x is None else f"{100 * x:.3g}%" if is_plain else format_amount(x, unit)
        for x in (value, check.least)
    )
    return f"{study.describe(check)}: {said}, at least {least} needed"


def describe_claim(result: ClaimResult, study: Study) -> str:
    """Return a claim's verdict, effect and words, and the check that it missed, if it did."""
    effect = (
        f", {format_effect(result.primary, study)}"
        if result.primary and result.primary.effect
        else ""
    )
    missed = [format_check(check, study) for check in result.checks if not check.is_reached]
    why = (
        f" ({'; '.join(missed)})" if result.verdict is ClaimFinding.CANNOT_APPEAR and missed else ""
    )
    return f"{result.verdict}{effect}: {result.claim.short}{why}"


def describe_expectation(claim: Claim, study: Study, *, scale: str, draws: str) -> str:
    """Return a sentence: how wide an interval to expect, or why the claim is not decided; empty without a spread.

    Args:
        claim: of the study.
        study: whose seeds are counted.
        scale: at which it is run.
        draws: from how many starts they begin, see `count_draws`.
    """
    if claim.undecidable:
        return f"Not decidable here: {claim.undecidable}"
    if claim.unasked:
        return f"Not asked here: {claim.unasked}"
    primary, spread = claim.primary, claim.spread
    if primary is None or spread is None:
        return ""
    num_seeds, unit = len(study.at_scale(scale).seeds), study.unit_of(primary)
    sd, half, least = (
        format_amount(x, unit)
        for x in (spread.sd, expected_half_width(spread.sd, num_seeds), primary.least)
    )
    return (
        f"A spread between starts of {sd} ({spread.where}) lets {num_seeds} starts give a half width of {half}; the "
        f"smallest effect of interest is {least}. Here are {draws}; fewer than {MIN_DRAWS} starts conclude nothing."
    )


def _seen(results: Sequence[ClaimResult]) -> str:
    """Return a sentence that lists, for each verdict, the claims that got it."""
    by_verdict = {
        verdict: [one.claim for one in results if one.verdict is verdict]
        for verdict in ClaimFinding
    }
    clauses = [
        f"{verdict}: {', '.join(f'{claim.short} ({claim.id})' for claim in claims)}"
        for verdict, claims in by_verdict.items()
        if claims
    ]
    return f"{_capital('; '.join(clauses) or 'no claim is judged here')}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

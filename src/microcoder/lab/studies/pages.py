"""The pages of the studies, from their records.

Each has four sentences, one figure, verdicts and tables; an index lists them all.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from microcoder.judge.core.config import SHIPPED
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_json, write_text
from microcoder.lab.studies.claims import (
    ClaimFinding,
    ClaimResult,
    ContrastResult,
    ControlResult,
    JudgedStudy,
    as_records,
)
from microcoder.lab.studies.contrasts import read_level
from microcoder.lab.studies.design import INSIGHTS, QUICK, STUDIES, Contrast, Study
from microcoder.lab.studies.effects import ALPHA, MIN_DRAWS, Effect
from microcoder.lab.studies.figures import draw_curves
from microcoder.lab.studies.sentences import (
    capital,
    describe_claim,
    format_amount,
    format_effect,
    format_value,
)
from microcoder.lab.studies.work import SUFFIX, Work, level_keys, pack_records

_NUMBERS = ("effect, 95 % interval", "claimed", "the paper's")
"""Columns of a contrast's numbers."""


def write_study_report(
    judged: Sequence[JudgedStudy],
    *,
    output: Path,
    has_index: bool = True,
    records: Path | None = None,
    records_folder: Path | None = None,
) -> Path:
    """Write the pages of some studies, with the records of their runs.

    Args:
        judged: the studies, with verdicts corrected among all.
        output: folder of the pages.
        has_index: whether these are all studies: then the index is written too, and all records in
            one file.
        records: file of records that the runs were read from, which stays where it is; None: one is
            written.
        records_folder: folder of the file of records that is written; None: that of the pages.

    Returns:
        The page to begin with.
    """
    works: list[Work] = []
    for study in judged:
        works += study.works
    if not any(study.seeds for study in judged):
        raise DataError(
            f"no finished {judged[0].scale} run of these studies in {works[0].folder.parent}; type "
            "`microcoder study`, or name the folder beside it that holds runs of other code with "
            "--code"
        )
    figures = [_draw_figure(study, output) for study in judged]
    first_name = judged[0].study.name
    name = "all" if has_index else first_name
    if records is None:
        records = (records_folder or output) / f"{name}-records{SUFFIX}"
        pack_records(works, records)
    for study, figure in zip(judged, figures, strict=True):
        _write_page(study, figure, output, records)
    if has_index:
        return _write_index(judged, output, records)
    return output / f"{first_name}.md"


def _draw_figure(judged: JudgedStudy, output: Path) -> list[str]:
    """Draw the figure that a study's file asks for, if there are runs.

    Returns:
        The lines of the page that show it.
    """
    study = judged.study
    choice = study.figure
    if choice is None:
        return []
    by_level = {}
    for level in choice.levels:
        by_seed = read_level(judged.histories, level, choice.metric)
        by_level[level] = list(by_seed.values())
    if not any(by_level.values()):
        return []
    num_steps = next(work.config.num_steps for work in judged.works if work.measurement is None)
    name = f"{study.name}-figure"
    chart = draw_curves(
        name,
        choice.metric,
        by_level,
        reference=study.reference,
        num_steps=num_steps,
    )
    write_text(output / f"{name}.svg", chart.svg)
    return [f"![{chart.title}. {chart.description}]({name}.svg)", ""]


def _write_page(
    judged: JudgedStudy,
    figure: Sequence[str],
    folder: Path,
    records: Path,
) -> None:
    """Write a study's page, which names the records that it was made from."""
    study = judged.study
    lines = [
        f"# {capital(study.factor)}",
        "",
        f"**Asked:** {study.question}\n",
        f"**Done:** {study.done}\n",
        f"**Seen:** {_seen(judged.claims)}\n",
        f"**Next:** {study.next}\n",
        *figure,
        "## Claims",
        "",
    ]
    for result in judged.claims:
        sentences = [f"- **{result.claim.id}** {describe_claim(result, study)}."]
        sentences += _remarks(result, study)
        lines.append(" ".join(sentences))
    lines += ["", "## What was compared", ""]
    lines += _head(
        "",
        "what is compared",
        *_NUMBERS,
        "by seed",
        "n",
        "alone",
        "p sign",
        "p size",
    )
    for result in judged.claims:
        lines += _contrast_rows(result, study)
    lines.append("")
    if study.levels:
        lines += _levels(judged)
    lines += _how_to_repeat(judged, folder, records)
    _write_lines(folder / f"{study.name}.md", lines)


def _how_to_repeat(judged: JudgedStudy, folder: Path, records: Path) -> list[str]:
    """Return the section of a page with the commands that make it again."""
    study = judged.study
    typed = _typed(study)
    quick = " --quick" if judged.scale == QUICK else ""
    reported = "--all" if records.name == f"all-records{SUFFIX}" else typed
    report = f"microcoder study {reported} --report{quick} -o {folder.as_posix()}"
    explanation = ""
    # Beside pages elsewhere the link would lead nowhere.
    if (folder.parent / "insights.md").is_file():
        explanation = "; how to read this: [insights.md](../insights.md)"
    return [
        "## How to repeat this",
        "",
        f"Study {_link(study.path, folder, study.name)}{explanation}.",
        "",
        "```console",
        f"microcoder study {typed}{quick}",
        report + _records_option(folder, records),
        f"{report} --runs {records.as_posix()}  # without running: from these runs' records",
        "```",
        "",
        f"Every number above comes from the {_link(records, folder, 'records of the runs')}.",
        judged.made,
    ]


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    write_text(path, "\n".join(lines).rstrip() + "\n")


def _typed(study: Study) -> str:
    """Return a study as the user types it after `microcoder study`.

    That is its name in the folder of studies, and its path elsewhere.
    """
    if study.path.parent in (STUDIES, SHIPPED / STUDIES):
        return study.name
    return study.path.as_posix()


def _link(path: Path, folder: Path, text: str = "") -> str:
    """Return a link to a file from a page in a folder, or the text alone.

    There is no link to a file of the package, or if either is outside the current folder: the path
    would name folders of this machine.
    """
    if path.parent == folder:
        return f"[{text or path.name}]({path.name})"
    here = Path.cwd()
    is_near = path.absolute().is_relative_to(here) and folder.absolute().is_relative_to(here)
    if path.is_relative_to(SHIPPED) or not is_near:
        return text or path.name
    return f"[{text or path.name}]({Path(os.path.relpath(path, folder)).as_posix()})"


def _records_option(folder: Path, records: Path) -> str:
    """Return the option that says where records are written; empty if that is next to the pages."""
    if records.parent == folder:
        return ""
    return f" --records {records.parent.as_posix()}"


def _write_index(judged: Sequence[JudgedStudy], folder: Path, records: Path) -> Path:
    """Write the index of all claims, and their results as JSON; return the index."""
    rows = []
    for judged_study in judged:
        rows += [(judged_study.study, result) for result in judged_study.claims]
    rows.sort(key=lambda row: _rank(row[1]))
    lines = [
        "# The 34 insights on the micro lab",
        "",
        _count_verdicts([result for _, result in rows if result.claim.is_catalogued]),
        "",
    ]
    explanations = []
    if (folder / "../insights.md").is_file():
        explanations.append("How to read this: [insights.md](../insights.md)")
    if (folder / "what-we-learnt.md").is_file():
        explanations.append("in words: [what we learnt](what-we-learnt.md)")
    if explanations:
        lines += [f"{'; '.join(explanations)}.", ""]
    lines += _head("", "claim", "verdict", *_NUMBERS, "")
    for study, result in rows:
        lines.append(_index_row(result, study))
    quick = " --quick" if judged[0].scale == QUICK else ""
    report = f"microcoder study --all --report{quick} -o {folder.as_posix()}"
    lines += [
        "",
        "Each study's page says its seeds, runs, code and machines. Effects are in "
        "[results.json](results.json), what",
        f"the runs recorded in {_link(records, folder)}; the last line judges these by the "
        "installed rule:",
        "",
        "```console",
        f"microcoder study --all{quick}",
        report + _records_option(folder, records),
        f"{report} --runs {records.as_posix()}",
        "```",
    ]
    path = folder / "README.md"
    _write_lines(path, lines)
    write_json(folder / "results.json", as_records(judged))
    return path


def _rank(result: ClaimResult) -> int:
    """Return the position of a claim in the index: the catalogue's order, then the others."""
    claim = result.claim
    return INSIGHTS.index(claim.id) if claim.is_catalogued else len(INSIGHTS)


def _count_verdicts(results: Sequence[ClaimResult]) -> str:
    """Return how many claims of the catalogue got each verdict, as a list, and how precisely."""
    verdicts = Counter(result.verdict for result in results)
    counts = [f"{verdicts[finding]} {finding}" for finding in ClaimFinding if verdicts[finding]]
    # Counted over the catalogue: a claim that no study has must not go unseen.
    num_missing = len(INSIGHTS) - len(results)
    if num_missing:
        counts.append(f"{num_missing} in no study here")
    num_precise = 0
    for result in results:
        if result.primary and result.primary.is_precise:
            num_precise += 1
    return (
        f"{len(INSIGHTS)} claims:\n\n- "
        + "\n- ".join(counts)
        + f"\n\n{num_precise} intervals are as narrow as the smallest effect of interest. "
        f"Verdicts hold over starts, {MIN_DRAWS} at least, and among all claims (Holm, 5 %)."
    )


def _index_row(result: ClaimResult, study: Study) -> str:
    verdict = f"**{result.verdict}**"
    if result.why_open:
        verdict += f": {result.why_open}"
    numbers = _numbers(result.primary, study)
    claim = result.claim
    return _row(claim.id, claim.short, verdict, *numbers, f"[study]({study.name}.md)")


def _numbers(result: ContrastResult | None, study: Study) -> tuple[str, str, str]:
    """Return the cells of `_NUMBERS`: the measured effect, the claimed one, and the paper's."""
    if result is None:
        return "-", "-", "-"
    contrast = result.contrast
    unit = study.unit_of(contrast)
    least = format_amount(contrast.least, unit)
    if contrast.direction == "same":
        claimed = f"same within {least}"
    else:
        claimed = f"{contrast.direction} by {least} or more"
    paper = "no figure" if contrast.paper is None else format_amount(contrast.paper, unit)
    return format_effect(result, study), claimed, paper


def _remarks(result: ClaimResult, study: Study) -> list[str]:
    """Return sentences on what a verdict depends on besides its effect.

    They are about corrections, controls, what was not recorded, and the claim's own notes.
    """
    claim = result.claim
    remarks = [reason for reason in (claim.undecidable, claim.unasked) if reason]
    if result.why_open:
        remarks.append(f"{capital(result.why_open)}.")
    remarks += [_describe_control(control, result, study) for control in result.controls]
    if claim.construction:
        remarks.append(f"By construction: {claim.construction}")
    has_effect = result.primary is not None and result.primary.effect is not None
    if result.verdict is ClaimFinding.CANNOT_APPEAR:
        if all(check.is_reached for check in result.checks):
            remarks.append(
                "The runs that are compared are the same in every seed: the setting changed "
                "nothing."
            )
    elif has_effect:
        missing = [check.contrast for check in result.checks if check.effect is None]
        if missing:
            contrasts = ", ".join(map(study.describe, missing))
            remarks.append(f"Not on record for these runs: {contrasts}.")
    if result.raw is not result.verdict:
        remarks.append(
            f"By itself it would be {result.raw}; corrected for all claims that does not stand."
        )
    if result.primary and has_effect and result.primary.contrast.is_above_paper:
        remarks.append(_compare_with_paper(result.primary, study))
    if claim.note:
        remarks.append(claim.note)
    return remarks


def _compare_with_paper(primary: ContrastResult, study: Study) -> str:
    """Return a sentence on a claim whose smallest effect of interest is above the paper's."""
    contrast = primary.contrast
    least = format_amount(contrast.least, study.unit_of(contrast))
    _, _, paper = _numbers(primary, study)
    text = f"The paper's effect, {paper}, is smaller than the {least} asked for"
    if primary.p_size <= ALPHA:
        text += ": that these are excluded does not contradict it"
    return f"{text}."


def _describe_control(control: ControlResult, result: ClaimResult, study: Study) -> str:
    """Return a sentence on the effect under a control, and on what remains of the claim."""
    condition = capital(control.control.says)
    if control.effect is None or result.primary is None:
        return f"{condition}: not on record."
    effect = format_effect(ContrastResult(control.control, control.effect), study)
    if result.verdict is ClaimFinding.UNDONE:
        alone = result.primary.verdict
        if control.settle(alone, result.primary) is ClaimFinding.UNDONE:
            return (
                f"{condition}: {effect}: by itself the claim would be {alone}, and this undoes it."
            )
    return f"{condition}: {effect}."


def _contrast_rows(result: ClaimResult, study: Study) -> list[str]:
    """Return the rows of a claim's contrasts, the primary one first, and of its controls."""
    rows = []
    claim = result.claim
    if result.primary:
        rows.append(_contrast_row(f"**{claim.id}**", result.primary, result.adjusted, study))
    for secondary in result.secondary:
        rows.append(_contrast_row(claim.id, secondary, None, study))
    for control in result.controls:
        effect = format_effect(ContrastResult(control.control, control.effect), study)
        counts = _counts(control.control, control.effect, study)
        cells = (effect, "-", "-", *counts, "-", "-", "-")
        # The claim's line above says in words what is held equal.
        rows.append(_row(f"{claim.id}, control", study.describe(control.control), *cells))
    return rows


def _contrast_row(
    name: str,
    result: ContrastResult,
    adjusted: ContrastResult | None,
    study: Study,
) -> str:
    """Return the row of a contrast; only a claim's primary one has corrected p-values."""
    contrast = result.contrast
    numbers = _numbers(result, study)
    counts = _counts(contrast, result.effect, study)
    tests = ("-", "-")
    if adjusted:
        tests = (_format_p(adjusted.p_sign), _format_p(adjusted.p_size))
    return _row(name, study.describe(contrast), *numbers, *counts, result.verdict, *tests)


def _format_p(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _counts(
    contrast: Contrast,
    effect: Effect | None,
    study: Study,
) -> tuple[str, str]:
    """Return an effect's values by seed, and its numbers of starts, seeds and problems."""
    if effect is None:
        return "-", "0"
    unit = study.unit_of(contrast)
    each = ", ".join(format_value(value, unit) for value in effect.by_seed)
    counts = [_count(len(effect.by_seed), "seeds")]
    if effect.drawn == "starts":
        counts.insert(0, _count(effect.num_draws, "starts"))
    if effect.num_units:
        noun = "units" if contrast.measurement else "problems"
        counts.append(_count(effect.num_units, noun))
    return each, ", ".join(counts)


def _count(num: int, plural: str) -> str:
    noun = plural.removesuffix("s") if num == 1 else plural
    return f"{num:,} {noun}"


def _levels(judged: JudgedStudy) -> list[str]:
    """Return the section of a page with its levels: their keys, runs and accuracy."""
    study = judged.study
    num_seeds = len(study.at_scale(judged.scale).seeds)
    lines = ["## Runs", ""]
    lines += _head("level", "", "keys", "runs", "accuracy before", "after")
    for name, level in study.levels.items():
        accuracies = judged.accuracies(name)
        before = accuracies["before"]
        after = accuracies["after"]
        label = f"**{name}**" if name == study.reference else name
        keys = level_keys(study, scale=judged.scale, level=name)
        settings = _describe_keys(keys) or "the baseline"
        runs = f"{len(after)} of at most {num_seeds}"
        at_first = f"{fmean(before):.1%}" if before else "-"
        in_the_end = _describe_accuracies(after) if after else "-"
        lines.append(_row(label, level.says, settings, runs, at_first, in_the_end))
    lines.append("")
    return lines


def _describe_keys(keys: Mapping[str, object]) -> str:
    """Return recipe keys with their values, as code."""
    settings = []
    for key, value in keys.items():
        # Quotation marks of Python say nothing to a reader of the page.
        plain = str(value).replace("'", "")
        settings.append(f"`{key} = {plain}`")
    return ", ".join(settings)


def _describe_accuracies(values: Sequence[float]) -> str:
    """Return the mean of runs' accuracies, and each in percent."""
    each = ", ".join(f"{100 * value:.0f}" for value in values)
    return f"{fmean(values):.0%} ({each})"


def _head(*columns: str) -> list[str]:
    """Return the first two lines of a table."""
    rule = ["---"] * len(columns)
    return [_row(*columns), _row(*rule)]


def _row(*cells: object) -> str:
    # A bar would end the cell.
    escaped = [str(cell).replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |"


def _seen(results: Sequence[ClaimResult]) -> str:
    """Return a sentence for each claim with its verdict, those of one verdict together."""
    sentences = []
    for verdict in ClaimFinding:
        for result in results:
            if result.verdict is verdict:
                claim = result.claim
                sentences.append(f"{capital(str(verdict))}: {claim.short} ({claim.id}).")
    return " ".join(sentences) or "No claim is judged here."

"""The results of audits as JSON and as a page."""

import json
from collections.abc import Sequence
from dataclasses import asdict

import microcoder
from microcoder.lab.studies.accuracy import wilson_interval
from microcoder.lab.yardstick.audits import Audit, YardstickPlan
from microcoder.lab.yardstick.cases import DATA_VERSION
from microcoder.lab.yardstick.lanes import CaseResult

_FRESH = "fresh"
"""Group of the cases that were generated from a seed."""

_COLUMNS = {
    "forgery": "forged programs accepted",
    "fidelity": "right programs refused",
    "wrong pairs": "wrong outputs accepted",
    "right pairs": "right outputs refused",
    "isolation": "harm done",
    "timeouts": "endless programs without a verdict",
    _FRESH: "misses in cases made anew from the seed",
}
"""Group of cases -> title of its column, which counts the misses."""

_OURS = "microcoder"
"""Name of our own judge, whose misses come first."""

_NUM_WORST = 10
"""Misses of a judge that are shown with their programs."""

_WORST_FIRST = ("isolation", "forgery", "wrong pairs", "fidelity", "right pairs", "timeouts")
"""Columns by what a miss in them costs: a machine, a policy that hacks, a policy that unlearns."""

_LONGEST_SHOWN = 1200
"""Characters of a program that is shown whole."""

_FALSE_PASSES = ("forgery", "wrong pairs")
"""Columns whose misses are acceptances of what is wrong."""

_FALSE_REFUSALS = ("fidelity", "right pairs")
"""Columns whose misses are refusals of what is right."""

Rate = dict[str, float]
"""Counts `misses`, `asked` and `unsteady`, and `low` and `high`, the 95 % interval of the share of
misses."""


def _is_in(column: str, result: CaseResult) -> bool:
    """Whether a result counts in a column of `_COLUMNS`."""
    case = result.case
    if column == _FRESH:
        return case.is_fresh
    if case.suite == "pairs":
        return column == ("right pairs" if case.expect else "wrong pairs")
    return column == case.suite


def _rates(audit: Audit) -> dict[str, Rate]:
    """Return column -> how often the judge was wrong in its cases."""
    rates = {}
    for column in _COLUMNS:
        results = [result for result in audit.results if _is_in(column, result)]
        misses = sum(result.is_miss for result in results)
        # At 0 misses a normal interval would have no width.
        low, high = wilson_interval(misses, len(results))
        rates[column] = {
            "misses": misses,
            "asked": len(results),
            "low": low,
            "high": high,
            "unsteady": sum(result.is_unsteady for result in results),
        }
    return rates


def summarise(audits: Sequence[Audit]) -> list[dict[str, object]]:
    """Return of each judge its figures, without the cases."""
    summaries: list[dict[str, object]] = []
    for audit in audits:
        summaries.append(
            {
                "judge": audit.judged.label,
                "about": audit.about,
                "problem": audit.problem,
                "num_not_asked": audit.num_not_asked,
                "rates": _rates(audit),
            }
        )
    return summaries


def write_json(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return all results as JSON text.

    It has each judge's `Audit` with its rates, and in its results the cases with their programs.
    """
    record = {
        "microcoder": microcoder.__version__,
        "data_version": DATA_VERSION,
        "seed": plan.seed,
        "most": plan.most,
        "machine": plan.machine,
        "cases": len(plan.cases),
        "judges": [{**asdict(audit), "rates": _rates(audit)} for audit in audits],
    }
    # The one value that JSON lacks is a set of abilities, which has no order.
    return json.dumps(record, indent=1, default=sorted) + "\n"


def write_page(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return the page as Markdown.

    It has MicroCoder's misses, all judges side by side, then the misses of each.
    """
    rates = []
    versions = []
    our_misses = []
    their_misses = []
    left_out = []
    for audit in audits:
        judged = audit.judged
        if audit.problem:
            left_out.append(f"- {judged.label}: left out. {audit.problem}\n")
            continue
        cells = map(_cell, _rates(audit).values())
        rates.append([judged.label, *cells])
        num_not_asked = str(audit.num_not_asked)
        versions.append([judged.label, audit.about, judged.about, num_not_asked])
        misses = _list_misses(audit) or "None in these cases.\n"
        misses += _show_worst(audit)
        if judged.name == _OURS:
            our_misses.append(f"## Our own misses\n\n{misses}")
        else:
            their_misses.append(f"## What {judged.label} got wrong\n\n{misses}")
    most = "all cases" if plan.most is None else f"at most {plan.most} cases of each stored suite"
    parts = [
        "# How good are judges of programs?\n",
        f"`microcoder audit-judge`, data version {DATA_VERSION}, seed {plan.seed}, {most}; "
        f"{plan.machine}. Every figure is misses / asked with the 95 % Wilson interval in per "
        "cent: fewer is better.\n",
        *our_misses,
        "## Side by side\n",
        _table(["judge", *_COLUMNS.values()], rates),
        "## Which judge is which\n",
        _table(["judge", "version", "what was asked", "cases it cannot take"], versions),
        *left_out,
        *their_misses,
    ]
    return "\n".join(parts)


def _list_misses(audit: Audit) -> str:
    """Return a table of a judge's misses, as lines; empty if it has none."""
    lines = []
    for column, title in _COLUMNS.items():
        # A fresh case is in its suite's column, too.
        if column == _FRESH:
            continue
        misses = []
        for result in audit.results:
            if result.is_miss and _is_in(column, result):
                misses.append(f"{_plain(result.case.title)} ({_plain(result.what)})")
        if misses:
            lines.append(f"- {title}, {len(misses)}: {'; '.join(misses)}\n")
    return "".join(lines)


def _show_worst(audit: Audit) -> str:
    """Return the misses that cost most, each with its program, tests and what was expected."""
    shown = []
    for column in _WORST_FIRST:
        misses = [result for result in audit.results if result.is_miss and _is_in(column, result)]
        # The shortest program says most plainly what is wrong.
        misses.sort(key=lambda result: len(result.case.code))
        shown += misses
    shown = [result for result in shown if len(result.case.code) <= _LONGEST_SHOWN]
    if not shown:
        return ""
    parts = [f"### The {min(len(shown), _NUM_WORST)} worst, with their programs\n"]
    parts += [_show_case(result) for result in shown[:_NUM_WORST]]
    return "\n" + "\n".join(parts)


def _show_case(result: CaseResult) -> str:
    """Return a case that was missed, so that it can be tried by hand and sent upstream."""
    case = result.case
    expected = "accepted" if case.expect else "not accepted"
    given, wanted = case.tests[0]
    called = f" `{case.fn_name}` is called." if case.fn_name else ""
    fence = "```"
    while fence in case.code:
        fence += "`"
    return (
        f"**{_plain(case.title)}** ({case.id}): expected {expected}; {_plain(result.what)}. "
        f"{_plain(case.why)}{called}\n\n"
        f"{fence}python\n{case.code.rstrip()}\n{fence}\n\n"
        f"First test: {json.dumps(given)[:200]} -> {json.dumps(wanted)[:200]}\n"
    )


def write_badge(audit: Audit) -> str:
    """Return a badge as SVG: a judge's false acceptances and refusals, for a README."""
    rates = _rates(audit)
    passes = _describe_share(rates, _FALSE_PASSES)
    refusals = _describe_share(rates, _FALSE_REFUSALS)
    said = f"{passes} wrong accepted, {refusals} right refused"
    color = "#2e7d32" if not sum(rates[column]["misses"] for column in _FALSE_PASSES) else "#b45309"
    label = "code judge"
    # Verdana of 11 pixels takes about seven a character.
    left = 7 * len(label) + 12
    right = 7 * len(said) + 12
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {said}"><title>{label}: {said}</title>'
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{color}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{left / 2:g}" y="14">{label}</text>'
        f'<text x="{left + right / 2:g}" y="14">{said}</text></g></svg>\n'
    )


def _describe_share(rates: dict[str, Rate], columns: Sequence[str]) -> str:
    misses = sum(rates[column]["misses"] for column in columns)
    asked = sum(rates[column]["asked"] for column in columns)
    return f"{misses:g}/{asked:g}"


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    text = text.replace("|", "\\|").replace("<", "&lt;")
    return text.replace("`", "'").replace("*", "\\*")


def _cell(rate: Rate) -> str:
    if not rate["asked"]:
        return "-"
    share = f"{100 * rate['low']:.0f}-{100 * rate['high']:.0f}"
    return f"{rate['misses']} / {rate['asked']} ({share})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)

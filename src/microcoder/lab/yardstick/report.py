"""The results of an audit of judges as JSON, and as a Markdown page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import microcoder
from microcoder.lab.studies.effects import wilson_interval
from microcoder.lab.yardstick.cases import DATA_VERSION
from microcoder.lab.yardstick.session import Audit, CaseResult, YardstickPlan

FRESH = "fresh"
COLUMNS = {
    "forgery": "forged programs accepted",
    "fidelity": "right programs refused",
    "wrong pairs": "wrong outputs accepted",
    "right pairs": "right outputs refused",
    "isolation": "harm done",
    "timeouts": "endless programs without a verdict",
    FRESH: "misses in cases made anew from the seed",
}
"""Group of cases -> title of its column, which counts the misses."""
OURS, NOTHING = "microcoder", "None in these cases.\n"
Rate = dict[str, float]
"""`misses`, `asked`, `low` and `high` (95 % interval of the share of misses), and `unsteady`."""


def _is_in(column: str, result: CaseResult) -> bool:
    """Whether a result counts in a column."""
    case = result.case
    if column == FRESH:
        return case.is_fresh
    if case.suite == "pairs":
        return column == ("right pairs" if case.expect else "wrong pairs")
    return column == case.suite


def _rates(audit: Audit) -> dict[str, Rate]:
    rates = {}
    for column in COLUMNS:
        asked = [one for one in audit.results if _is_in(column, one)]
        misses, unsteady = sum(one.is_miss for one in asked), sum(one.is_unsteady for one in asked)
        low, high = wilson_interval(misses, len(asked))
        rates[column] = {"misses": misses, "asked": len(asked), "low": low, "high": high, "unsteady": unsteady}
    return rates


def write_json(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return all results as JSON text: of each judge an `Audit` with its rates, the cases with their programs."""
    record = {
        "microcoder": microcoder.__version__,
        "data_version": DATA_VERSION,
        "seed": plan.seed,
        "most": plan.most,
        "machine": plan.machine,
        "cases": len(plan.cases),
        "judges": [{**asdict(audit), "rates": _rates(audit)} for audit in audits],
    }
    return json.dumps(record, indent=1, default=sorted) + "\n"


def write_page(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return the page as Markdown: MicroCoder's misses, all judges side by side, then the misses of each."""
    asked = [audit for audit in audits if not audit.problem]
    most = "all cases" if plan.most is None else f"at most {plan.most} cases of each stored suite"
    rates, about, ours, others = [], [], [], []
    for audit in asked:
        rates.append([audit.judged.label, *map(_cell, _rates(audit).values())])
        version = ", ".join(filter(None, (audit.judged.version, audit.about)))
        about.append([audit.judged.label, version, audit.judged.about, str(audit.num_not_asked)])
        is_own = audit.judged.name == OURS
        title = "Our own misses" if is_own else f"What {audit.judged.label} got wrong"
        (ours if is_own else others).append(f"## {title}\n\n{_list_misses(audit) or NOTHING}")
    parts = [
        "# How good are judges of programs?\n",
        f"`microcoder audit-judge`, data version {DATA_VERSION}, seed {plan.seed}, {most}; {plan.machine}. Every "
        "figure is misses / asked with the 95 % Wilson interval in per cent: fewer is better.\n",
        *ours,
        "## Side by side\n",
        _table(["judge", *COLUMNS.values()], rates),
        "## Which judge is which\n",
        _table(["judge", "version", "what was asked", "cases it cannot take"], about),
        *(f"- {audit.judged.label}: left out. {audit.problem}\n" for audit in audits if audit.problem),
        *others,
    ]
    return "\n".join(parts)


def _list_misses(audit: Audit) -> str:
    lines = []
    for column, title in COLUMNS.items():
        missed = [one for one in audit.results if one.is_miss and _is_in(column, one) and column != FRESH]
        found = [f"{_plain(one.case.title)} ({_plain(one.what)})" for one in missed]
        lines += [f"- {title}, {len(found)}: {'; '.join(found)}\n"] if found else []
    return "".join(lines)


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'").replace("*", "\\*")


def _cell(rate: Rate) -> str:
    share = f"{100 * rate['low']:.0f}-{100 * rate['high']:.0f}"
    return f"{rate['misses']} / {rate['asked']} ({share})" if rate["asked"] else "-"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rows))

"""The results of an audit of judges as JSON, and as a Markdown page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import microcoder
from microcoder.lab.studies.effects import wilson_interval
from microcoder.lab.yardstick.cases import DATA_VERSION
from microcoder.lab.yardstick.session import Audit, CaseResult, YardstickPlan

COLUMNS = {
    "forgery": "forged programs accepted",
    "fidelity": "right programs refused",
    "wrong pairs": "wrong outputs accepted",
    "right pairs": "right outputs refused",
    "isolation": "harm done",
    "timeouts": "endless programs without a verdict",
}
"""Group of cases -> title of its column, which counts the misses."""
OURS, NOTHING = "microcoder", "None in these cases.\n"
Rate = dict[str, float]
"""`misses`, `asked`, `low` and `high` (95 % interval of the share of misses), and `unsteady`."""


def _group_of(result: CaseResult) -> str:
    """Return the column that a result counts in."""
    if result.case.suite == "pairs":
        return "right pairs" if result.case.expect else "wrong pairs"
    return result.case.suite


def _rate(results: Iterable[CaseResult]) -> Rate:
    listed = list(results)
    misses = sum(one.is_miss for one in listed)
    low, high = wilson_interval(misses, len(listed))
    unsteady = sum(one.is_unsteady for one in listed)
    return {"misses": misses, "asked": len(listed), "low": low, "high": high, "unsteady": unsteady}


def _rates(audit: Audit) -> tuple[dict[str, Rate], Rate]:
    """Return the rate of each column, and that of the cases that were made anew."""
    by_group = {key: _rate(one for one in audit.results if _group_of(one) == key) for key in COLUMNS}
    return by_group, _rate(one for one in audit.results if one.case.is_fresh)


def _as_record(result: CaseResult) -> dict[str, Any]:
    of_case = ("id", "suite", "title", "flaw", "expect", "why", "is_fresh")
    said = ("accepted", "error", "seconds", "left", "is_miss", "what", "is_unsteady")
    return {name: getattr(one, name) for one, names in ((result.case, of_case), (result, said)) for name in names}


def _audit_record(audit: Audit) -> dict[str, Any]:
    by_group, fresh = _rates(audit)
    return {
        "judge": audit.judged.label,
        "version": audit.judged.version,
        "about": audit.about,
        "problem": audit.problem,
        "is_contained": not audit.containment and not audit.problem,
        "not_asked": audit.num_not_asked,
        "starts": audit.num_starts,
        "seconds": audit.seconds,
        "suites": {key: rate for key, rate in by_group.items() if rate["asked"]},
        "fresh": fresh,
        "results": list(map(_as_record, audit.results)),
    }


def write_json(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return all results as JSON text."""
    record = {
        "microcoder": microcoder.__version__,
        "data_version": DATA_VERSION,
        "seed": plan.seed,
        "most": plan.most,
        "machine": plan.machine,
        "cases": len(plan.cases),
        "judges": list(map(_audit_record, audits)),
    }
    return json.dumps(record, indent=1) + "\n"


def write_page(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return the page as Markdown: MicroCoder's misses, all judges side by side, then the misses of each."""
    asked = [audit for audit in audits if not audit.problem]
    most = "all cases" if plan.most is None else f"at most {plan.most} cases of each stored suite"
    rates, about, ours, others = [], [], [], []
    for audit in asked:
        by_group, fresh = _rates(audit)
        rates.append([audit.judged.label, *map(_cell, (*by_group.values(), fresh))])
        version = ", ".join(filter(None, (audit.judged.version, audit.about)))
        about.append([audit.judged.label, version, audit.judged.about, str(audit.num_not_asked), str(audit.num_starts)])
        is_own = audit.judged.name == OURS
        title = "Our own misses" if is_own else f"What {audit.judged.label} got wrong"
        (ours if is_own else others).append(f"## {title}\n\n{_list_misses(audit) or NOTHING}")
    parts = [
        "# How good are judges of programs?\n",
        f"`microcoder audit-judge`, data version {DATA_VERSION}, seed {plan.seed}, {most}; {plan.machine}. Every "
        "figure is misses / asked with the 95 % Wilson interval in per cent: fewer is better.\n",
        *ours,
        "## Side by side\n",
        _table(["judge", *COLUMNS.values(), "misses in cases made anew from the seed"], rates),
        "## Which judge is which\n",
        _table(["judge", "version", "what was asked", "cases it cannot take", "starts"], about),
        *(f"- {audit.judged.label}: left out. {audit.problem}\n" for audit in audits if audit.problem),
        *others,
    ]
    return "\n".join(parts)


def _list_misses(audit: Audit) -> str:
    lines = []
    for group, title in COLUMNS.items():
        missed = [one for one in audit.results if one.is_miss and _group_of(one) == group]
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

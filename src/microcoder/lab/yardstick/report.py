"""The results of an audit of judges as JSON, and as a Markdown page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

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
OURS = "microcoder"
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


def _by_suite(audit: Audit) -> dict[str, Rate]:
    return {key: _rate(one for one in audit.results if _group_of(one) == key) for key in COLUMNS}


def write_json(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return all results as JSON text."""
    record = {
        "microcoder": microcoder.__version__,
        "data_version": DATA_VERSION,
        "seed": plan.seed,
        "most": plan.most,
        "machine": plan.machine,
        "cases": len(plan.cases),
        "judges": [
            {
                "judge": audit.judged.label,
                "version": audit.judged.version,
                "about": audit.about,
                "problem": audit.problem,
                "is_contained": not audit.containment and not audit.problem,
                "not_asked": audit.num_not_asked,
                "starts": audit.num_starts,
                "seconds": audit.seconds,
                "suites": {key: rate for key, rate in _by_suite(audit).items() if rate["asked"]},
                "fresh": _rate(one for one in audit.results if one.case.is_fresh),
                "results": [result.as_record() for result in audit.results],
            }
            for audit in audits
        ],
    }
    return json.dumps(record, indent=1) + "\n"


def write_page(audits: Sequence[Audit], plan: YardstickPlan) -> str:
    """Return the page as Markdown: MicroCoder's misses, all judges side by side, then the misses of each."""
    asked = [audit for audit in audits if not audit.problem]
    own = [audit for audit in asked if audit.judged.name == OURS]
    most = "all cases" if plan.most is None else f"at most {plan.most} cases of each stored suite"
    rates = [[*map(_cell, _by_suite(audit).values())] for audit in asked]
    fresh = [[_cell(_rate(one for one in audit.results if one.case.is_fresh))] for audit in asked]
    names = [audit.judged.label for audit in asked]
    misses = [_list_misses(audit.results) for audit in asked]
    parts = [
        "# How good are judges of programs?\n",
        f"`microcoder audit-judge`, data version {DATA_VERSION}, seed {plan.seed}, {most}; {plan.machine}. Every "
        "figure is misses / asked with the 95 % Wilson interval in per cent: fewer is better.\n",
        *(["## Our own misses\n"] if own else []),
        *(text or "None in these cases.\n" for audit, text in zip(asked, misses, strict=True) if audit in own),
        "## Side by side\n",
        _table(["judge", *COLUMNS.values()], names, rates),
        "## Made anew from the seed\n",
        _table(["judge", "misses in cases that nobody has seen"], names, fresh),
        "## Which judge is which\n",
        _table(["judge", "version", "what was asked", "cases it cannot take", "starts"], names, map(_about, asked)),
        *(f"- {audit.judged.label}: left out. {audit.problem}\n" for audit in audits if audit.problem),
        *(
            f"## What {audit.judged.label} got wrong\n\n{text or 'Nothing.' + chr(10)}"
            for audit, text in zip(asked, misses, strict=True)
            if audit not in own
        ),
    ]
    return "\n".join(parts)


def _list_misses(results: Iterable[CaseResult]) -> str:
    missed = [one for one in results if one.is_miss]
    lines = []
    for group, title in COLUMNS.items():
        found = [f"{_plain(one.case.title)} ({_plain(one.what)})" for one in missed if _group_of(one) == group]
        lines += [f"- {title}, {len(found)}: {'; '.join(found)}\n"] if found else []
    return "".join(lines)


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'").replace("*", "\\*")


def _cell(rate: Rate) -> str:
    share = f"{100 * rate['low']:.0f}-{100 * rate['high']:.0f}"
    return f"{rate['misses']} / {rate['asked']} ({share})" if rate["asked"] else "-"


def _about(audit: Audit) -> list[str]:
    version = ", ".join(part for part in (audit.judged.version, audit.about) if part)
    return [version, audit.judged.about, str(audit.num_not_asked), str(audit.num_starts)]


def _table(head: Sequence[str], names: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([name, *row] for name, row in zip(names, rows, strict=True))]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)

"""The figures of docs/public-rewards.md, written into it from audits:
`python studies/judges/published_table.py AUDITS docs/public-rewards.md`.

AUDITS is a folder with a folder a reward, as `microcoder audit-judge --out AUDITS/NAME` wrote it,
and `versions.json`: name -> what it is, with its version.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = {
    "forgery": "forged accepted",
    "fidelity": "right programs refused",
    "wrong pairs": "wrong outputs accepted",
    "right pairs": "right outputs refused",
    "isolation": "harm done",
    "fresh": "of these made from the seed",
}
"""Group of cases -> title of its column."""
SUITES = {
    "forgery": "Accepted, and wrong",
    "fidelity": "Refused, and right",
    "pairs": "Outputs",
    "isolation": "Harm done",
    "timeouts": "No verdict",
}
"""Suite -> heading of its misses."""
MOST_LINES = 16
"""Lines of a program that is shown."""
MOST_CHARACTERS = 160
"""Characters of an input or an output that is shown."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A case that at least one reward got wrong."""

    case: Mapping[str, Any]
    rewards: tuple[str, ...]


def read_audits(folder: Path) -> dict[str, dict[str, Any]]:
    """Return name -> the audit of a reward that was asked."""
    audits = {}
    for path in sorted(folder.glob("*/audit.json")):
        (audit,) = json.loads(path.read_text(encoding="utf-8"))["judges"]
        if audit["results"]:
            audits[path.parent.name] = audit
    return audits


def list_misses(audits: Mapping[str, Mapping[str, Any]]) -> list[Miss]:
    """Return the missed cases, those first that most rewards miss."""
    cases: dict[str, Mapping[str, Any]] = {}
    rewards: dict[str, list[str]] = {}
    for name, audit in audits.items():
        for result in audit["results"]:
            if result["what"] and not result["is_unsteady"]:
                case = result["case"]
                cases[case["id"]] = case
                rewards.setdefault(case["id"], []).append(name)
    misses = [Miss(cases[key], tuple(names)) for key, names in rewards.items()]
    return sorted(misses, key=lambda miss: (-len(miss.rewards), miss.case["id"]))


def write_table(
    audits: Mapping[str, Mapping[str, Any]], versions: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines of the table, a reward a line."""
    head = ["reward", "of", *COLUMNS.values()]
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for name, audit in audits.items():
        cells = [f"`{name}`", versions[name]]
        for column in COLUMNS:
            rate = audit["rates"][column]
            cells.append(f"{rate['misses']} / {rate['asked']}" if rate["asked"] else "-")
        yield f"| {' | '.join(cells)} |"


def write_misses(misses: Sequence[Miss]) -> Iterator[str]:
    """Yield the missed cases by suite, each with its program and its first test."""
    for suite, heading in SUITES.items():
        of_suite = [miss for miss in misses if miss.case["suite"] == suite]
        if not of_suite:
            continue
        yield f"\n### {heading}\n"
        longer = []
        for miss in of_suite:
            if len(miss.case["code"].strip().splitlines()) > MOST_LINES:
                longer.append(f"`{miss.case['id']}` ({len(miss.rewards)})")
            else:
                yield from _show(miss)
        if longer:
            yield "Longer programs, each with how many miss it; an audit's own page shows them:\n"
            yield f"{', '.join(longer)}.\n"


def _show(miss: Miss) -> Iterator[str]:
    case = miss.case
    given, expected = case["tests"][0]
    yield f"`{case['id']}`, missed by {', '.join(f'`{name}`' for name in miss.rewards)}:\n"
    verdict = "right" if case["expect"] else "wrong"
    called = f"; {case['fn_name']} is called" if case["fn_name"] else ""
    fence = "```"
    while fence in case["code"]:
        fence += "`"
    yield f"{fence}text"
    yield from textwrap.wrap(
        f"{case['title']}: {verdict}{called}", 100, initial_indent="# ", subsequent_indent="# "
    )
    yield f"# {_shorten(given)} -> {_shorten(expected)}"
    yield case["code"].strip()
    yield f"{fence}\n"


def _shorten(text: str) -> str:
    shown = json.dumps(text)
    return shown if len(shown) <= MOST_CHARACTERS else f"{shown[:MOST_CHARACTERS]}..."


def fill(page: str, mark: str, lines: Sequence[str]) -> str:
    """Return a page with the lines after a mark, up to the next end, replaced."""
    before, found, rest = page.partition(f"<!-- {mark} -->\n")
    _, ended, after = rest.partition("<!-- end -->")
    assert found, f"the page has no {mark}"
    assert ended, f"the page does not end its {mark}"
    text = "\n".join(lines).strip()
    return f"{before}{found}\n{text}\n\n{ended}{after}"


def main() -> None:
    """Fill the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("audits", type=Path)
    parser.add_argument("page", type=Path)
    arguments = parser.parse_args()
    audits = read_audits(arguments.audits)
    versions = json.loads((arguments.audits / "versions.json").read_text(encoding="utf-8"))
    page = arguments.page.read_text(encoding="utf-8")
    page = fill(page, "table", [*write_table(audits, versions)])
    page = fill(page, "misses", [*write_misses(list_misses(audits))])
    arguments.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The figures of docs/results.md and of the README: measures them, keeps them,
and writes them into both pages.

    PYTHONPATH=path/to/LiveCodeBench python benchmarks/figures.py [NAME...]

runs the commands of the figures named, or of all that this machine can measure, and says which it
leaves, and why. `figures.toml` declares each: its command, and a sentence whose numbers are read
from the last JSON object that the command prints, from files that it leaves in $FOLDER, and from
how long it took (`minutes`, `cpu_seconds`). `figures.json` keeps the newest numbers of each, and
those of the other kind of processor where they differ; what is by hand is entered there, and
`make docs` writes the pages. They are written after each command that succeeds; one that fails, is
stopped or gives no such number leaves what was there.
"""

import argparse
import importlib.util
import json
import os
import re
import resource
import shutil
import string
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("MICROCODER_DATA") or ROOT.parent / "shared" / "data").resolve()
STORE = Path(__file__).with_suffix(".json")
TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
HEADING = ["| what | command | figure | measured |", "| --- | --- | --- | --- |"]
Taken = dict[str, Any]
"""What a run gave: `numbers` by the names that sentences have for them, when it was,
and on what it ran.
"""
Store = dict[str, list[Taken]]


@dataclass(frozen=True)
class Figure:
    """A row of a page: what is measured, and the command as the page shows it."""

    what: str
    command: str
    figure: str
    """The sentence: `{tiny.microcoder.cpu_seconds:.2f}` is a number of that name."""
    beside: str = ""
    """The same of the other kind of processor; empty where the kind decides nothing."""
    name: str = ""
    section: str = ""
    run: str = ""
    """What bash runs in the root, or the figure whose run it shares; empty:
    its numbers are entered by hand.
    """
    hours: bool = False
    """It takes hours, so it is measured when it is named."""
    needs: list[str] = field(default_factory=list)
    """Archives of data, variables, programs, modules: without them it is left as it was."""
    reads: dict[str, str] = field(default_factory=dict)
    """Files in $FOLDER, by the name under which their numbers are found."""
    verdicts: str = ""
    """Results of a study's report, by their path from the root:
    its numbers are counted there for each page.
    """
    of: list[str] = field(default_factory=list)
    """On the first page: the figures whose numbers it tells."""


FIGURES = {row["name"]: Figure(**row) for row in TABLE["figures"]}
PEERS = {
    "microcoder": "**MicroCoder**",
    "livecodebench": "LiveCodeBench's checker",
    "verl-prime-code": "verl's prime_code",
    "nemo-gym": "NeMo-Gym",
    "open-r1": "Open R1",
}
"""Judges of the first page: name in the report -> name there."""
FIRST_PAGE = [Figure(**row) for row in TABLE["first_page"]]


def fill(sentence: str, numbers: dict[str, Any]) -> str:
    """Return a sentence with its numbers."""
    parts = []
    for text, name, form, _ in string.Formatter().parse(sentence):
        if name and numbers[name] is None:
            raise ValueError(name)
        number = format(numbers[name], form or "") if name else ""
        number = re.sub(r"(?<=\d)%$", " %", number)
        parts += [text, {"True": "yes", "False": "no"}.get(number, number)]
    return "".join(parts)


def count_verdicts(path: Path) -> dict[str, Any]:
    """Return how many of the 34 claims a report judges, from how many starts,
    and how often it gives each verdict.
    """
    results = json.loads(path.read_text(encoding="utf-8"))
    claims = []
    for claim in results["claims"]:
        if not claim["id"].startswith("X"):
            claims.append(claim)
    counts = Counter(claim["verdict"] for claim in claims)
    starts = []
    for study in results["studies"].values():
        for effect in study["effects"].values():
            if effect["drawn"] == "starts":
                starts.append(effect["num_draws"])
    said = "; ".join(f"{num} {verdict}" for verdict, num in sorted(counts.items()))
    return {"claims": len(claims), "starts": max(starts), "verdicts": said}


@dataclass
class Told:
    """A figure as pages tell it."""

    figure: str
    """The newest one."""
    measured: str
    """The day, and whether its numbers were entered by hand."""
    elsewhere: list[str] = field(default_factory=list)
    """What the other kind of processor gave, where that is told."""


def tell(row: Figure, store: Store) -> Told:
    """Return what pages say of a figure."""
    told = Told(figure="", measured="")
    first, *others = row.of or [row.name]
    for one in store[first]:
        alike = []
        for name in others:
            for each in store[name]:
                if each.get("avx512") == one.get("avx512"):
                    alike.append(each)
        numbers = {}
        for each in (one, *alike):
            for name, number in each["numbers"].items():
                numbers[name] = number
        if row.verdicts:
            numbers |= count_verdicts(ROOT / row.verdicts)
        dates = ", ".join(sorted({each["date"] for each in (one, *alike)}))
        kind = "with AVX-512" if one.get("avx512") else "without AVX-512"
        if not told.figure:
            told.figure = fill(row.figure, numbers)
            told.measured = f"{dates}, {kind}" if row.beside else dates
        elif row.beside:
            told.elsewhere.append(f"on a processor {kind} ({dates}) {fill(row.beside, numbers)}")
    if not row.run and not row.of:
        told.measured += ", by hand"
    return told


def render_row(row: Figure, store: Store) -> str:
    """Return a row of the first page's table."""
    told = tell(row, store)
    figure = "; ".join([told.figure, *told.elsewhere])
    return f"| {row.what} | {row.command} | {figure} | {told.measured} |"


def render_entry(row: Figure, store: Store) -> list[str]:
    """Return a figure's lines of docs/results.md: what, each number on its line, the command.

    Numbers stand in the order of what was measured.
    """
    told = tell(row, store)
    lines = [f"**{row.what[:1].upper()}{row.what[1:]}**", ""]
    for number in [*told.figure.split("; "), *told.elsewhere]:
        lines.append(f"- {number}")
    return [*lines, f"- *{told.measured}*, {row.command}", ""]


def render_results() -> str:
    """Return docs/results.md."""
    store = json.loads(STORE.read_text(encoding="utf-8"))
    lines = [TABLE["head"]]
    for section in TABLE["sections"]:
        lines.append(section["head"])
        for row in FIGURES.values():
            if row.section == section["title"]:
                lines += render_entry(row, store)
    return "\n".join(lines)


def render_first_page() -> str:
    """Return README.md with its tables as they are to be."""
    store = json.loads(STORE.read_text(encoding="utf-8"))
    figures = "\n".join([*HEADING, *(render_row(row, store) for row in FIRST_PAGE)])
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    page = put_between("figures", figures, page)
    return put_between("judges", render_judges(), page)


def put_between(mark: str, text: str, page: str) -> str:
    """Return a page with a text between the two comments of a name."""
    return re.sub(
        rf"(?s)(<!-- {mark}:[^\n]*\n).*?(<!-- end of {mark} -->)",
        lambda found: f"{found[1]}{text}\n{found[2]}",
        page,
    )


def render_judges() -> str:
    """Return the first page's table of judges, read out of the report on them."""
    report = (ROOT / "docs" / "judges-results.md").read_text(encoding="utf-8")
    missed = read_table(report, "Side by side")
    speed = read_table(report, "Speed")
    lines = [
        "| judge | forged passes accepted | right programs refused | wrong outputs accepted "
        "| harm done | tests judged per CPU second |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for judge, name in PEERS.items():
        forged, refused, wrong, _, harm, *_ = missed[judge]
        counts = []
        for cell in (forged, refused, wrong, harm):
            # Without the intervals, which the report has.
            counts.append(cell.partition(" (")[0].replace(" / ", " of "))
        lines.append(f"| {' | '.join([name, *counts, speed[judge][0]])} |")
    return "\n".join(lines)


def read_table(page: str, heading: str) -> dict[str, list[str]]:
    """Return the table below a heading: the first cell of a row -> its other cells."""
    _, _, below = page.partition(f"\n## {heading}\n")
    section = below.partition("\n## ")[0]
    table = {}
    for line in section.splitlines():
        if line.startswith("| "):
            first, *others = line.strip("| ").split(" | ")
            table[first] = others
    return table


PAGES = {"docs/results.md": render_results, "README.md": render_first_page}


def find_number(found: Any, name: str) -> Any:
    """Return what a dotted name means in JSON: of a list, -1 is the last,
    and a key is the mean over its rows.
    """
    key, _, rest = name.partition(".")
    if not key:
        return bool(found) if isinstance(found, list) else found
    if not isinstance(found, list):
        return find_number(found[key], rest)
    if key.removeprefix("-").isdigit():
        return find_number(found[int(key)], rest)
    return fmean(find_number(row, name) for row in found)


def read_cpu_seconds() -> float:
    """Return what this process and those of its children that have ended have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(rows: Sequence[Figure]) -> dict[str, Taken]:
    """Run the command that figures share; return what it gave, by their names.

    Raises:
        OSError, ValueError: it failed, or gave no such numbers.
    """
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout
    machine = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    taken: Taken = {
        "date": str(date.today()),
        "commit": commit.strip(),
        "load": round(os.getloadavg()[0], 2),
    }
    taken |= {
        "processor": re.findall(r"model name\s*: (.*)|$", machine)[0],
        "avx512": "avx512f" in machine,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {
            **os.environ,
            "PATH": path,
            "FOLDER": folder,
            "DATA": str(DATA),
            "VENV": sys.prefix,
        }
        command = ["bash", "-e", "-c", rows[0].run]
        cpu_seconds = read_cpu_seconds()
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        cpu_seconds = read_cpu_seconds() - cpu_seconds
        minutes = (time.monotonic() - started) / 60
        if done.returncode:
            raise ValueError(f"it ended with status {done.returncode}")
        records = []
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                records.append(line)
        objects = ["{}", *records]
        found = {"minutes": minutes, "cpu_seconds": cpu_seconds, **json.loads(objects[-1])}
        for name, file in rows[0].reads.items():
            text = Path(folder, file).read_text(encoding="utf-8")
            found[name] = (
                [*map(json.loads, text.splitlines())]
                if file.endswith(".jsonl")
                else json.loads(text)
            )
    return {row.name: taken | {"numbers": find_numbers(found, row)} for row in rows}


def find_numbers(found: dict[str, Any], row: Figure) -> dict[str, Any]:
    """Return the numbers of a row's sentences; raise ValueError where one is missing,
    or is none.
    """
    names = []
    for _, name, _, _ in string.Formatter().parse(row.figure + row.beside):
        if name:
            names.append(name)
    try:
        numbers = {name: find_number(found, name) for name in names}
        fill(row.figure + row.beside, numbers)
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"it gave no such numbers as {row.name} has ({error!r})") from None
    return numbers


def keep(taken: dict[str, Taken]) -> None:
    """Keep what was taken beside what the other kind of processor gave, whole or not at all,
    and write both pages.
    """
    store = json.loads(STORE.read_text(encoding="utf-8"))
    for name, one in taken.items():
        others = []
        for other in store.get(name, []):
            if other.get("avx512") is (not one["avx512"]):
                others.append(other)
        store[name] = [one, *others] if FIGURES[name].beside else [one]
    part = STORE.with_suffix(".part")
    lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in store.items())
    part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    part.replace(STORE)
    for name, render in PAGES.items():
        (ROOT / name).write_text(render(), encoding="utf-8")


def find_obstacle(row: Figure, *, is_named: bool) -> str:
    """Return why a figure is not measured here and now; empty where it is."""
    if not row.run:
        return "it is entered by hand"
    if row.hours and not is_named:
        return "it takes hours; name it to measure it"
    outside = []
    for need in row.needs:
        if not ((DATA / need).exists() or os.environ.get(need) or shutil.which(need)):
            outside.append(need)
    absent = []
    for need in outside:
        if "." in need or not importlib.util.find_spec(need):
            absent.append(need)
    return f"this machine lacks {', '.join(absent)}" if absent else ""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FIGURES)}")
    names = set(parser.parse_args().names)
    if unknown := sorted(names - FIGURES.keys()):
        parser.error(f"no figure is called {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    is_whole = True
    for first in (row for row in FIGURES.values() if row.run not in FIGURES):
        of_command = []
        for row in FIGURES.values():
            if row.run == first.name:
                of_command.append(row)
        rows = [first, *of_command]
        called = ", ".join(row.name for row in rows)
        if names and names.isdisjoint(row.name for row in rows):
            continue
        why = find_obstacle(first, is_named=bool(names))
        is_whole &= not (why and names)
        if not why:
            print(f"{called}: {first.run}", flush=True)
            try:
                keep(measure(rows))
            except (OSError, ValueError) as error:
                is_whole = False
                why = str(error)
            except KeyboardInterrupt:
                raise SystemExit(f"{called}: left as it was; stopped") from None
        if why:
            print(f"{called}: left as it was: {why}", file=sys.stderr, flush=True)
    sys.exit(not is_whole)


if __name__ == "__main__":
    main()

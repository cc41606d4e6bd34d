"""Published verdicts, computed anew from the published records by other code: rows by hand,
numpy and scipy alone.

Nothing of the lab is imported here. A verdict that this and the lab's own code agree on is no slip
of either.
"""

import json
import math
import re
import tarfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

INSIGHTS = Path(__file__).parents[2] / "docs" / "insights"
RECORDS = Path(__file__).parents[2] / "records"
Row = dict[str, Any]
Run = tuple[str, list[Row], list[Row]]
"""The start that a run began with, its steps, its evaluations."""
LEAST_STARTS = 8


@cache
def read_records(name: str) -> dict[tuple[str, str, int], Run]:
    """Study, level and seed -> run, from a file of records."""
    texts: dict[str, str] = {}
    with tarfile.open(RECORDS / f"{name}-records.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None and member.name.endswith((".json", ".jsonl")):
                texts[member.name] = file.read().decode()
    (catalogue,) = (path for path in texts if path.endswith("/runs.json"))
    code = catalogue.partition("/")[0]
    runs = {}
    for folder, labels in json.loads(texts[catalogue]).items():
        manifest = texts.get(f"{code}/{folder}/manifest.json")
        if manifest is None:
            continue
        start = json.dumps(json.loads(manifest)["config"]["model"]["warm_start"], sort_keys=True)
        rows = [
            list(map(json.loads, texts[f"{code}/{folder}/{file}.jsonl"].splitlines()))
            for file in ("metrics", "evaluations")
        ]
        for label in labels:
            study, rest = label.split(", ", 1)
            level, seed = rest.rsplit(", seed ", 1)
            runs[study, level, int(seed)] = (start, rows[0], rows[1])
    return runs


def over_starts(by_seed: Mapping[int, float], starts: Mapping[int, str]) -> list[float]:
    """The mean of each start's seeds."""
    groups: dict[str, list[float]] = defaultdict(list)
    for seed in sorted(by_seed):
        groups[starts[seed]].append(by_seed[seed])
    return [float(np.mean(values)) for values in groups.values()]


def late(rows: Sequence[Row], name: str) -> float:
    """The mean over the last 30 % of the steps."""
    num_steps = rows[-1]["step"]
    last = []
    for row in rows:
        if row["step"] > 0.7 * num_steps + 1e-9:
            last.append(row[name])
    return float(np.mean(last))


def at(rows: Sequence[Row], name: str, share: float) -> float:
    num_steps = rows[-1]["step"]
    steps = [row["step"] / num_steps for row in rows]
    return float(np.interp(share, steps, [row[name] for row in rows]))


def compare(study: str, of: str, against: str, read: Callable[[Run, Run], float]) -> list[float]:
    """The means over starts of what is read from two levels' runs of one seed."""
    records = "all" if study[0].isdecimal() else study
    runs = read_records(records)
    seeds = set()
    for name, level, seed in runs:
        if (name, level) == (study, of):
            seeds.add(seed)
    seeds &= {seed for name, level, seed in runs if (name, level) == (study, against)}
    pairs = {seed: (runs[study, of, seed], runs[study, against, seed]) for seed in seeds}
    values = {seed: read(first, second) for seed, (first, second) in pairs.items()}
    return over_starts(values, {seed: first[0] for seed, (first, _) in pairs.items()})


def slope(study: str, levels: Sequence[str], metric: Callable[[Row], float]) -> list[float]:
    """The slope of a metric at round 40 over the dose until then, over starts."""
    runs = read_records(study)
    seeds = {seed for _, _, seed in runs}
    slopes = {}
    starts = {}
    for seed in seeds:
        doses = []
        values = []
        for level in levels:
            start, steps, evaluations = runs[study, level, seed]
            shares = []
            for row in steps:
                if row["step"] <= 40:
                    shares.append(row["masked_effective_share"])
            doses.append(np.mean(shares))
            (found,) = (row for row in evaluations if row["step"] == 40)
            values.append(metric(found))
            starts[seed] = start
        slopes[seed] = float(np.polyfit(doses, values, 1)[0])
    return over_starts(slopes, starts)


MASKS = ["none", "10 %", "30 %", "100 %", "all"]


def late_accuracy(first: Run, second: Run) -> float:
    return late(first[2], "accuracy") - late(second[2], "accuracy")


CLAIMS: list[tuple[str, str, str, float, Callable[[], list[float]]]] = [
    (
        "C4",
        "005_context",
        "lower",
        0.08,
        lambda: compare("005_context", "short, extended early", "long", late_accuracy),
    ),
    (
        "T9",
        "003_temperature",
        "higher",
        0.08,
        lambda: compare("003_temperature", "0.6 to 1.4", "1.4", late_accuracy),
    ),
    (
        "T10",
        "003_temperature",
        "lower",
        0.08,
        lambda: compare("003_temperature", "ramp", "0.6 to 1.4", late_accuracy),
    ),
    (
        "M5",
        "006_truncation_mask",
        "lower",
        0.05,
        lambda: compare(
            "006_truncation_mask",
            "all",
            "none",
            lambda a, b: late(a[1], "diversity") - late(b[1], "diversity"),
        ),
    ),
    (
        "X2",
        "dose_and_response",
        "higher",
        12.5,
        lambda: slope("dose_and_response", MASKS, lambda row: row["length_mean"]),
    ),
    (
        "X3",
        "dose_and_response",
        "higher",
        0.25,
        lambda: slope("dose_and_response", MASKS, lambda row: row["accuracy_by_tier"]["hard"]),
    ),
    (
        "X11",
        "kl_and_clip",
        "higher",
        0.05,
        lambda: compare(
            "kl_and_clip",
            "high clip",
            "KL",
            lambda a, b: at(a[2], "diversity", 1.0) - at(b[2], "diversity", 1.0),
        ),
    ),
    (
        "X13",
        "kl_and_clip",
        "higher",
        0.07,
        lambda: compare(
            "kl_and_clip",
            "KL",
            "high clip",
            lambda a, b: (
                at(a[2], "accuracy", 0.4)
                - at(a[2], "accuracy", 1.0)
                - at(b[2], "accuracy", 0.4)
                + at(b[2], "accuracy", 1.0)
            ),
        ),
    ),
]
"""Claim, study, direction, smallest effect of interest, and the means over starts."""


@pytest.mark.parametrize(("name", "study", "direction", "least", "compute"), CLAIMS)
def test_a_published_verdict_is_what_its_records_say_over_starts(
    name: str,
    study: str,
    direction: str,
    least: float,
    compute: Callable[[], list[float]],
) -> None:
    starts = compute()
    value = float(np.mean(starts))
    low, high = interval_over(starts)
    page = (INSIGHTS / f"{study}.md").read_text()
    published = read_published(page, name)
    # Shares are published in points. Pages round to a tenth: half of that, and a bit for floats.
    scale = 100 if " points" in published.rest.partition(":")[0] else 1
    assert published.effect == pytest.approx(scale * value, abs=0.051)
    counted = "1 start, " if len(starts) == 1 else f"{len(starts)} starts, "
    row = next(line for line in page.splitlines() if line.startswith(f"| **{name}** |"))
    assert counted in row
    if len(starts) > 1:
        ends = [float(end) for end in re.findall(r"\[(\S+), (\S+)\]", published.rest)[0]]
        assert ends == pytest.approx([scale * low, scale * high], abs=0.051)
    # Whatever the interval: so few starts conclude nothing about seeds.
    if len(starts) < LEAST_STARTS:
        assert published.verdict == "inconclusive"
        assert f"{counted}at least 8 are needed" in published.rest
        return
    if direction == "higher":
        check_verdict(published.verdict, low, high, least)
    else:
        check_verdict(published.verdict, -high, -low, least)


class Published(NamedTuple):
    """What a page says of a claim."""

    verdict: str
    effect: float
    rest: str
    """The interval, and what is left of the line."""


def read_published(page: str, name: str) -> Published:
    """Read the line of a claim on the page of its study."""
    (line,) = re.findall(rf"^- \*\*{name}\*\* ([a-z, ]+), (\S+)(.*)$", page, re.MULTILINE)
    verdict, effect, rest = line
    return Published(verdict, float(effect.rstrip(",")), rest)


def interval_over(starts: Sequence[float]) -> tuple[float, float]:
    """Return Student's interval of a mean over starts; one start says nothing of its spread."""
    if len(starts) == 1:
        return -math.inf, math.inf
    mean = float(np.mean(starts))
    return stats.t.interval(0.95, len(starts) - 1, loc=mean, scale=stats.sem(starts))


def check_verdict(verdict: str, up: float, down: float, least: float) -> None:
    """Hold a verdict against the interval of its effect, the claimed direction being up.

    By itself, before the correction for all claims and before controls, which only take away.
    """
    is_for = up > 0
    is_against = down < 0
    is_small = down < least
    if verdict in ("supported", "there, but smaller than d"):
        assert is_for
        assert is_small == (verdict == "there, but smaller than d")
    if verdict == "contradicted":
        assert is_against or (not is_for and is_small)
    if verdict == "undone by its control":
        assert is_for or is_against or is_small


def test_results_hold_the_means_of_starts_behind_every_interval() -> None:
    """Every effect over starts in results.json: its interval follows from its means of starts."""
    results = json.loads((INSIGHTS / "results.json").read_text())
    effects = [
        effect
        for study in results["studies"].values()
        for effect in study["effects"].values()
        if effect["drawn"] == "starts"
    ]
    assert len(effects) > 40
    for effect in effects:
        starts = effect["by_start"]
        assert len(starts) == effect["num_draws"]
        assert effect["value"] == pytest.approx(np.mean(starts), abs=1e-8)
        # Equal starts have another interval, which is not Student's.
        if len(starts) > 1 and np.ptp(starts) > 1e-6:
            half = stats.t.ppf(0.975, len(starts) - 1) * stats.sem(starts)
            assert effect["high"] - effect["value"] == pytest.approx(half, rel=1e-5)
    named = {claim["id"]: claim for claim in results["claims"]}
    for claim in named.values():
        if claim["verdict"] in ("supported", "there, but smaller than d", "contradicted"):
            effect = results["studies"][claim["study"]]["effects"][claim["primary"]]
            assert effect["num_draws"] >= LEAST_STARTS, claim["id"]

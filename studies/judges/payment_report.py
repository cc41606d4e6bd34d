"""What the studies of wrong graders show: a figure and tables,
from what each step of their runs paid for.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt
from payment_figures import ErrorLine, SeedRange, draw_errors, draw_payments
from payments import PaidRun, Payments

from microcoder.judge.core.files import write_text
from microcoder.lab.studies.design import Study
from microcoder.lab.studies.figures import Chart

WARNED_BY = 8
"""Step by which a collapse is to be foreseen;
the warning is a mean over the five steps up to it.
"""
_COLLAPSE = 0.2
"""Points under the same seed without errors at which a run has collapsed."""
_RESAMPLES = 2000
LATE_STEPS = 5
"""What a run ends at is the mean over so many last steps."""
_ENDS_IN_TRICKS = 0.01
"""Share of tricks in the last step from which a run has a row of its own."""
_SHOWN = ("all_tricks", "paid_wrong", "reward", "accuracy")
Paid = dict[int, Sequence[Payments]]
"""Seed -> what each step paid for."""


def report_hacking(study: Study, runs: Sequence[PaidRun], *, output: Path) -> str:
    """Write the figure of a study of graders into a folder; return its table, first and last step.

    A run that ends in tricks has a row of its own; all others of a level share one,
    with the span of their values.
    """
    steps_of = {}
    for level, seeds in _by_level(study, runs).items():
        if seeds:
            steps_of[level] = list(seeds.values())
    _write(draw_payments(study.name, steps_of, title="What is paid, and what is right"), output)
    lines = [
        _row(
            "trained against",
            "seed",
            "tricks, first to last step",
            "paid, though our judge refuses",
            "paid in all",
            "right by our judge, in training",
            "right, held out",
            "tricks of the last step",
        ),
        _rule(8),
    ]
    for level in steps_of:
        honest = []
        for run in runs:
            if run.level == level and run.steps[-1].all_tricks < _ENDS_IN_TRICKS:
                honest.append(run)
        if honest:
            lines.append(_hacking_row(honest))
        # A run that ends in tricks has a row of its own.
        for run in runs:
            if run.level == level and run not in honest:
                lines.append(_hacking_row([run]))
    return "\n".join(lines)


def _hacking_row(runs: Sequence[PaidRun]) -> str:
    firsts = [run.steps[0] for run in runs]
    lasts = [run.steps[-1] for run in runs]
    pairs = []
    for name in _SHOWN:
        pairs.append(f"{_span(_values(firsts, name))} to {_span(_values(lasts, name))} %")
    pairs.append(f"{_span(_values(runs, 'before'))} to {_span(_values(runs, 'after'))} %")
    tricks = []
    if len(runs) == 1:
        for name, share in lasts[0].tricks.items():
            if share >= 0.01:
                tricks.append(f"{name} {share:.0%}")
    seeds = " ".join(str(run.seed) for run in runs)
    return _row(runs[0].level, seeds, *pairs, ", ".join(tricks))


def _values(records: Sequence[object], name: str) -> list[float]:
    return [getattr(record, name) for record in records]


def _span(shares: Sequence[float]) -> str:
    low = _percent(min(shares))
    high = _percent(max(shares))
    return low if low == high else f"{low}-{high}"


def _percent(share: float) -> str:
    """Return a share in per cent; a small one would be 0 without its decimal."""
    return f"{100 * share:.1f}" if 0 < share < 0.05 else f"{100 * share:.0f}"


def report_errors(study: Study, runs: Sequence[PaidRun], *, output: Path) -> str:
    """Write the figure of a study of errors into a folder; return its table.

    Levels other than the reference are named `KIND, RATE %`.
    """
    return _tell_errors(study, _by_level(study, runs), output)


def _tell_errors(study: Study, found: Mapping[str, Paid], output: Path) -> str:
    paid = {}
    for level, seeds in found.items():
        if level != study.reference:
            paid[level] = seeds
    clean = found[study.reference]
    effects = {}
    for level, seeds in paid.items():
        if seeds.keys() & clean.keys():
            effects[level] = _effect_on_accuracy(seeds, clean)
    kinds: dict[str, dict[float, SeedRange]] = {}
    for level, effect in effects.items():
        kinds.setdefault(_kind(level), {})[_rate(level)] = effect
    curves = {study.reference: _curves(clean)}
    for kind, by_rate in kinds.items():
        curves[kind] = _curves(
            paid[next(lv for lv in effects if _kind(lv) == kind and _rate(lv) == max(by_rate))]
        )
    chart = draw_errors(
        study.name,
        [ErrorLine(kind, by_rate) for kind, by_rate in kinds.items()],
        curves,
        title="What errors cost",
    )
    _write(chart, output)
    lines = [
        _row(
            "errors",
            "wrong paid",
            "right unpaid",
            "right at the end, by seed",
            "less without errors",
            "half of the gain at step",
        ),
        _rule(6),
    ]
    for level, seeds in {study.reference: clean, **paid}.items():
        if seeds:
            change = _describe(effects[level]) if level in effects else "-"
            ends = " ".join(f"{late_accuracy(steps):.0%}" for steps in seeds.values())
            lines.append(
                _row(level, *_observed_rates(seeds), ends, change, _half_way(seeds, clean))
            )
    return "\n".join(lines)


def report_fate(study: Study, runs: Sequence[PaidRun], *, output: Path) -> str:
    """Write the figure of a study of errors into a folder; return its table,
    and how well a collapse was foreseen.
    """
    paid = _by_level(study, runs)
    table = _tell_errors(study, paid, output)
    clean = paid.pop(study.reference)
    seeds = sorted(set(clean).intersection(*paid.values()))
    warnings = []
    losses = []
    for runs_of_level in paid.values():
        warnings.append([_warning(runs_of_level[seed]) for seed in seeds])
        losses.append(
            [late_accuracy(clean[seed]) - late_accuracy(runs_of_level[seed]) for seed in seeds]
        )
    warned = np.asarray(warnings)
    lost = np.asarray(losses)
    has_collapsed = lost > _COLLAPSE
    drawn = np.random.default_rng(0).integers(len(seeds), size=(_RESAMPLES, len(seeds)))
    areas = [_area(warned[:, chosen], has_collapsed[:, chosen]) for chosen in drawn]
    low, high = np.nanquantile(areas, (0.025, 0.975))
    lines = ["", _row("errors", "alike in the warning, by seed", "collapsed"), _rule(3)]
    for level, shares, ended in zip(paid, warned, has_collapsed, strict=True):
        lines.append(
            _row(
                level,
                " ".join(f"{share:.0%}" for share in shares),
                f"{ended.sum()} of {len(seeds)}",
            )
        )
    foreseen = (
        f"Area under the ROC curve: {_area(warned, has_collapsed):.2f} [{low:.2f}, {high:.2f}]"
    )
    return "\n".join(
        [table, *lines, "", f"{foreseen}, {has_collapsed.sum()} of {lost.size} runs collapsed."]
    )


def _warning(steps: Sequence[Payments]) -> float:
    alike = []
    for payments in steps:
        if payments.step <= WARNED_BY:
            alike.append(payments.alike)
    return fmean(alike[-LATE_STEPS:])


def _area(warned: npt.NDArray[np.float64], has_collapsed: npt.NDArray[np.bool_]) -> float:
    """Return the share of pairs of a run that collapsed and one that did not in which the former
    was warned of more.
    """
    bad = warned[has_collapsed]
    good = warned[~has_collapsed]
    if not (bad.size and good.size):
        return math.nan
    return float((np.greater.outer(bad, good) + 0.5 * np.equal.outer(bad, good)).mean())


def late_accuracy(steps: Sequence[Payments]) -> float:
    """Return the share that our judge accepts over the last steps."""
    return fmean(payments.accuracy for payments in steps[-LATE_STEPS:])


def _by_level(study: Study, runs: Sequence[PaidRun]) -> dict[str, Paid]:
    levels = {}
    for level in study.levels:
        levels[level] = {run.seed: run.steps for run in runs if run.level == level}
    return levels


def _effect_on_accuracy(seeds: Paid, clean: Paid) -> SeedRange:
    both = sorted(seeds.keys() & clean.keys())
    changes = [late_accuracy(seeds[seed]) - late_accuracy(clean[seed]) for seed in both]
    return SeedRange(fmean(changes), min(changes), max(changes))


def _observed_rates(seeds: Paid) -> tuple[str, str]:
    """Return how many of the wrong were paid, and how many of the right were not,
    over all steps and seeds.
    """
    steps = []
    for run in seeds.values():
        steps.extend(run)
    right = sum(step.accuracy * step.num_scored for step in steps)
    wrong = sum((1 - step.accuracy) * step.num_scored for step in steps)
    paid = sum(step.paid_wrong * step.num_scored for step in steps)
    unpaid = sum(step.unpaid_right * step.num_scored for step in steps)
    return f"{paid / max(wrong, 1):.1%}", f"{unpaid / max(right, 1):.1%}"


def _half_way(seeds: Paid, clean: Paid) -> str:
    """Return the first step of each seed at half of what runs without errors gain."""
    start = fmean(steps[0].accuracy for steps in clean.values())
    goal = (start + fmean(late_accuracy(steps) for steps in clean.values())) / 2
    reached = []
    for steps in seeds.values():
        ahead = (payments.step for payments in steps if payments.accuracy >= goal)
        reached.append(str(next(ahead, "never")))
    return " ".join(reached)


def _curves(seeds: Paid) -> list[list[float]]:
    curves = []
    for steps in seeds.values():
        curves.append([payments.accuracy for payments in steps])
    return curves


def _kind(level: str) -> str:
    return level.rpartition(",")[0]


def _rate(level: str) -> float:
    return float(level.rpartition(",")[2].removesuffix("%")) / 100


def _describe(effect: SeedRange) -> str:
    return f"{100 * effect.value:+.1f} ({100 * effect.low:+.0f} to {100 * effect.high:+.0f})"


def _write(chart: Chart, output: Path) -> None:
    write_text(output / f"{chart.name}.svg", chart.svg)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _rule(num: int) -> str:
    return "|" + " --- |" * num

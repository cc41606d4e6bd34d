"""What finished work says of a contrast: one difference a seed, and which seeds share a start.

Runs are compared seed by seed, and a measurement's rows unit by unit. A contrast may be controlled:
it is then read where another metric is equal in both levels (`at_equal`), or as a share of another
metric (`per`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from microcoder.lab.studies.design import Contrast, Study
from microcoder.lab.studies.effects import (
    Drawn,
    Effect,
    estimate_starts,
    estimate_units,
    group_seeds,
)
from microcoder.lab.studies.features import MetricSeries, measure, measure_alike, read_series
from microcoder.lab.studies.work import MeasuredValue, Work
from microcoder.train.runs import History

Histories = Mapping[str, Mapping[int, History]]
"""Finished runs by level and seed."""


@dataclass(frozen=True, slots=True)
class MeasuredRows:
    """The rows of a finished measurement, and the model that it started from."""

    rows: Sequence[MeasuredValue]
    model: Mapping[str, Any]
    """The table `model` of its recipe; empty if its records do not say."""


Measured = Mapping[str, Mapping[int, MeasuredRows]]
"""Finished measurements by name and seed."""


def measure_contrast(
    contrast: Contrast,
    study: Study,
    histories: Histories,
    measured: Measured | None = None,
) -> Effect | None:
    """Return a contrast's effect over starts, from the seeds whose work for it is complete.

    Args:
        contrast: of the study.
        study: with its measurements.
        histories: its finished runs.
        measured: its finished measurements.

    Returns:
        The effect; None if no seed has all the work.
    """
    # A slope and a quotient have no bounds, though what they are made of has.
    is_bounded = study.unit_of(contrast) == "share" and not (contrast.dose or contrast.per)
    span = 1.0 if is_bounded else None
    if not contrast.measurement:
        return _measure_runs(contrast, histories, span)
    by_seed = (measured or {}).get(contrast.measurement, {})
    return _measure_rows(contrast, study, by_seed, histories, span)


def pair_rows(contrast: Contrast, rows: Sequence[MeasuredValue]) -> dict[str, float]:
    """Return unit -> difference between the contrast's levels.

    Units that lack a level are left out.
    """
    values: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.metric == contrast.metric and row.level in contrast.levels:
            of_unit = values.setdefault(row.unit, {})
            of_unit.setdefault(row.level, []).append(row.value)
    pairs = {}
    for unit, levels in values.items():
        if len(levels) == len(contrast.levels):
            # A mean of means: a level with more rows must not weigh more.
            difference = fmean(fmean(levels[level]) for level in contrast.of)
            if contrast.against:
                difference -= fmean(fmean(levels[level]) for level in contrast.against)
            pairs[unit] = difference
    return pairs


def read_level(
    histories: Histories,
    level: str,
    metric: str,
) -> dict[int, MetricSeries]:
    """Return seed -> series of a metric for a level's runs, seeds ascending.

    Runs that did not record the metric are left out.
    """
    by_seed = {}
    for seed, history in sorted(histories[level].items()):
        series = read_series(history, metric)
        if series is not None:
            by_seed[seed] = series
    return by_seed


# ----- Starts.


def name_start(model: Mapping[str, Any]) -> str | None:
    """Return a name for the start that a model's table draws; None for a given model.

    A micro model is warm-started by a seed of its own: another seed gives another model. A
    published checkpoint is not drawn: a study asks about that one checkpoint. Where the records do
    not say what runs began with, all of them count as one start.
    """
    if not model:
        return "unknown"
    if model.get("kind") != "micro":
        return None
    return json.dumps(model, sort_keys=True)


def count_draws(works: Sequence[Work]) -> str:
    """Say from how many starts a study's planned runs begin, such as `8 seeds from 3 starts`."""
    models: dict[int, list[Mapping[str, Any]]] = {}
    for work in works:
        model = work.config.model.model_dump(mode="json")
        models.setdefault(work.seed, []).append(model)
    groups, drawn = _group_by_start(models)
    seeds = f"{len(models)} seeds"
    if drawn != "starts":
        return f"{seeds} of a given model"
    if len(groups) == 1:
        return f"{seeds} from 1 start"
    return f"{seeds} from {len(groups)} starts"


def _group_by_start(
    models: Mapping[int, Sequence[Mapping[str, Any]]],
) -> tuple[list[list[int]], Drawn]:
    """Return the seeds in groups, and what a group stands for: a start, or a seed of given
    models."""
    starts: dict[int, list[str]] = {}
    for seed, of_seed in models.items():
        names = [name_start(model) for model in of_seed]
        starts[seed] = [name for name in names if name]
    if not any(starts.values()):
        return [[seed] for seed in sorted(models)], "seeds"
    for seed, known in starts.items():
        if not known:
            # A run without a start of its own is a group of its own: it shares it with none.
            known.append(f"seed {seed}")
    return group_seeds(starts), "starts"


def _model_of(history: History) -> Mapping[str, Any]:
    config = history.manifest.get("config") or {}
    model = config.get("model")
    return model if isinstance(model, Mapping) else {}


# ----- Runs.


def _measure_runs(
    contrast: Contrast,
    histories: Histories,
    span: float | None,
) -> Effect | None:
    """Return the effect of a contrast between training runs."""
    curves = _read_curves(contrast, histories)
    # Only seeds that have all levels: others would compare different problems.
    common = set.intersection(*map(set, curves.values()))
    values: dict[int, float] = {}
    for seed in sorted(common):
        of_seed = {key: by_seed[seed] for key, by_seed in curves.items()}
        value = _compare(contrast, of_seed)
        # Left out like work that is not done: an unknown difference is not zero.
        if math.isfinite(value):
            values[seed] = value
    if not values:
        return None
    models = {}
    for seed in values:
        models[seed] = [_model_of(histories[level][seed]) for level in contrast.levels]
    groups, drawn = _group_by_start(models)
    first = min(values)
    first_series = curves[contrast.of[0], contrast.metric][first]
    num_problems = first_series.num_problems
    # One column is the mark of a metric that is no mean over problems.
    num_units = num_problems if num_problems > 1 else 0
    return estimate_starts(values, groups, drawn=drawn, num_units=num_units, span=span)


def _read_curves(
    contrast: Contrast, histories: Histories
) -> dict[tuple[str, str], dict[int, MetricSeries]]:
    """Return (level, metric) -> seed -> series, for all that a contrast reads of runs."""
    curves = {}
    for metric in {contrast.metric, contrast.dose, contrast.at_equal, contrast.per}:
        # An option that is not used is an empty name.
        if metric:
            for level in contrast.levels:
                curves[level, metric] = read_level(histories, level, metric)
    return curves


_Curves = Mapping[tuple[str, str], MetricSeries]
"""Level and metric -> series, of one seed."""


def _compare(contrast: Contrast, curves: _Curves) -> float:
    """Return the contrast's difference for one seed; NaN if a value of it is unknown."""
    if contrast.at_equal:
        level = contrast.of[0]
        other = contrast.against[0]
        values = (curves[level, contrast.metric], curves[other, contrast.metric])
        at_equal = (curves[level, contrast.at_equal], curves[other, contrast.at_equal])
        value, value_of_other = measure_alike(values, at_equal, contrast.feature)
        return value - value_of_other
    value = _read_side(contrast, curves, contrast.of, contrast.feature)
    if contrast.against:
        feature = contrast.against_feature or contrast.feature
        value -= _read_side(contrast, curves, contrast.against, feature)
    return value


def _read_side(
    contrast: Contrast,
    curves: _Curves,
    levels: Sequence[str],
    feature: str,
) -> float:
    """Return the levels' mean, or their slope over the dose."""
    values = []
    for level in levels:
        value = measure(curves[level, contrast.metric], feature)
        if contrast.per:
            divisor = measure(curves[level, contrast.per], feature)
            value = _divide(value, divisor)
        values.append(value)
    if not contrast.dose:
        return fmean(values)
    # The effect at a time is of the dose until then.
    until_then = feature.replace("at", "up to", 1)
    doses = [measure(curves[level, contrast.dose], until_then) for level in levels]
    return _find_slope(doses, values)


def _find_slope(doses: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of values over doses by least squares; NaN if all doses are equal."""
    centre = fmean(doses)
    spread = sum((dose - centre) ** 2 for dose in doses)
    pairs = zip(doses, values, strict=True)
    product = sum((dose - centre) * value for dose, value in pairs)
    return _divide(product, spread)


def _divide(value: float, by: float) -> float:
    # Unknown and no error: the seed is then left out, and the others are read.
    return value / by if by else math.nan


# ----- Measurements.


def _measure_rows(
    contrast: Contrast,
    study: Study,
    measured: Mapping[int, MeasuredRows],
    histories: Histories,
    span: float | None,
) -> Effect | None:
    """Return the effect of a contrast over a measurement's rows, which are `measured` by seed."""
    by_seed: dict[int, dict[str, float]] = {}
    for seed, of_seed in sorted(measured.items()):
        pairs = _share_rows(contrast, of_seed.rows, seed, histories)
        # Seeds with equal rows measured the same samples, and are one.
        if pairs and pairs not in by_seed.values():
            by_seed[seed] = pairs
    if not by_seed:
        return None
    over = study.measurements[contrast.measurement].over
    if over == "units":
        return estimate_units(by_seed, span=span)
    groups: list[list[int]] = [[seed] for seed in by_seed]
    drawn: Drawn = "seeds"
    if over == "starts":
        models = {seed: [measured[seed].model] for seed in by_seed}
        groups, drawn = _group_by_start(models)
    values = {seed: fmean(pairs.values()) for seed, pairs in by_seed.items()}
    # Seeds may share units, which are then counted once.
    units = set().union(*by_seed.values())
    return estimate_starts(
        values,
        groups,
        drawn=drawn,
        num_units=len(units),
        span=span,
    )


def _share_rows(
    contrast: Contrast,
    rows: Sequence[MeasuredValue],
    seed: int,
    histories: Histories,
) -> dict[str, float]:
    """Return a seed's differences by unit; unknown ones are left out.

    Where the contrast says so, they are shares of a metric of its runs.
    """
    if not contrast.per:
        return pair_rows(contrast, rows)
    history = histories.get(contrast.per_level, {}).get(seed)
    series = read_series(history, contrast.per) if history else None
    if series is None:
        return {}
    shares = []
    for row in rows:
        if row.metric == contrast.metric and row.level in contrast.levels:
            # The measurement's levels are times of the run, called as the features are.
            share = _divide(row.value, measure(series, row.level))
            shares.append(MeasuredValue(row.metric, row.level, row.unit, share))
    pairs = pair_rows(contrast, shares)
    return {unit: value for unit, value in pairs.items() if not math.isnan(value)}

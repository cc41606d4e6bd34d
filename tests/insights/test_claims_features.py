"""Features of a series, and the table of verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from microcoder.insights.effects import Effect, Verdict, estimate_effect, join_verdicts, judge_effect, student_quantile
from microcoder.insights.features import Series, holding_temperature, measure, parse_feature, resolution


def series(values: list[float], *, has_start: bool = True) -> Series:
    time = np.linspace(0 if has_start else 1 / len(values), 1, len(values))
    return Series(time, np.asarray(values)[:, None])


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        ("start", 1.0),
        ("early", 2.0),
        ("late", 3.0),
        ("mean", 3.25),
        ("growth", 2.0),
        ("peak", 5.0),
        ("peak_at", 0.5),
        ("drop", 2.0),
        ("swing", np.mean([2.0, 4.0, 1.0])),
        ("early - late", -1.0),
    ],
)
def test_features_of_five_evaluations(feature: str, expected: float) -> None:
    found = measure(series([1.0, 2.0, 5.0, 4.0, 2.0]), feature, np.ones((1, 3)))
    assert found.shape == (3,)
    assert found == pytest.approx([expected] * 3)


def test_a_long_series_has_its_peak_in_neighbours_and_a_straight_line_no_swing() -> None:
    spike = series([0.0] * 9 + [3.0] + [1.0] * 10, has_start=False)
    assert measure(spike, "peak", np.ones((1, 1))) == pytest.approx([5 / 3])
    assert measure(series([float(i) for i in range(20)]), "swing", np.ones((1, 1))) == pytest.approx([0.0])
    assert resolution(spike, "peak_at") == pytest.approx(0.05)
    assert resolution(spike, "late") == 0.0


def test_unscored_problems_are_in_no_mean() -> None:
    values = Series(np.array([0.0, 1.0]), np.array([[1.0, math.nan, 0.0], [math.nan, 1.0, 1.0]]))
    assert values.means_E == pytest.approx([0.5, 1.0])
    assert values.weigh(np.array([[1.0], [0.0], [3.0]]))[:, 0] == pytest.approx([0.25, 1.0])


def test_an_unknown_feature_is_refused() -> None:
    with pytest.raises(ValueError, match="no feature 'last'"):
        parse_feature("late - last")


def test_the_holding_temperature_lies_between_those_tried() -> None:
    def sweep(*accuracies: float | None) -> list[dict[str, float | None]]:
        return [{"temperature": 1.0 + i, "accuracy": a} for i, a in enumerate(accuracies)]

    assert holding_temperature(sweep(0.5, 0.5, 0.3)) == pytest.approx(2.5)
    assert holding_temperature(sweep(0.5, 0.45)) == 2.0
    assert holding_temperature(sweep(0.5, None, 0.0)) == pytest.approx(1.4)
    assert holding_temperature(sweep(0.0, 0.0)) is None
    assert holding_temperature([]) is None


@pytest.mark.parametrize(
    ("low", "value", "high", "direction", "verdict"),
    [
        (0.01, 0.05, 0.09, "higher", Verdict.HOLDS),
        (0.001, 0.01, 0.019, "higher", Verdict.DOES_NOT),
        (0.001, 0.01, 0.03, "higher", Verdict.UNDECIDED),
        (-0.01, 0.05, 0.11, "higher", Verdict.UNDECIDED),
        (-0.09, -0.05, -0.01, "higher", Verdict.DOES_NOT),
        (-0.09, -0.05, -0.01, "lower", Verdict.HOLDS),
        (0.01, 0.05, 0.09, "lower", Verdict.DOES_NOT),
        (-0.01, 0.0, 0.01, "same", Verdict.HOLDS),
        (-0.03, 0.0, 0.03, "same", Verdict.UNDECIDED),
        (0.01, 0.05, 0.09, "same", Verdict.DOES_NOT),
        (0.005, 0.015, 0.025, "same", Verdict.UNDECIDED),
        (-math.inf, 0.5, math.inf, "higher", Verdict.UNDECIDED),
    ],
)
def test_the_table_of_verdicts(low: float, value: float, high: float, direction: str, verdict: Verdict) -> None:
    effect = Effect(value, low, high, 3, 0, ())
    assert judge_effect(effect, direction=direction, least=0.02) is verdict  # type: ignore[arg-type]


def test_all_predicates_of_a_claim_must_hold() -> None:
    assert join_verdicts([Verdict.HOLDS, Verdict.HOLDS]) is Verdict.HOLDS
    assert join_verdicts([Verdict.HOLDS, Verdict.UNDECIDED]) is Verdict.UNDECIDED
    assert join_verdicts([Verdict.UNDECIDED, Verdict.DOES_NOT]) is Verdict.DOES_NOT
    assert join_verdicts([Verdict.NOT_RUN, Verdict.DOES_NOT]) is Verdict.NOT_RUN


def test_one_seed_decides_nothing_and_equal_values_on_a_grid_are_not_certain() -> None:
    assert math.isinf(estimate_effect(np.array([[0.5]])).high)
    assert estimate_effect(np.zeros((3, 1))).high == 0.0
    assert estimate_effect(np.zeros((3, 1)), resolution=0.2).high > 0.1


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.70620), (2, 4.30265), (4.5, 2.65882), (59, 2.00100)])
def test_quantiles_of_student(freedom: float, quantile: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(quantile, abs=1e-4)

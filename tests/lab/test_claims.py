"""Features of a series, the table of verdicts, and their rates: planted effects are found,
null effects are not.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measures import holding_temperature

from microcoder.lab.studies.claims import (
    ClaimFinding,
    ContrastResult,
    adjust_p_values,
    adjust_verdicts,
    judge_contrast,
)
from microcoder.lab.studies.design import Contrast, Direction
from microcoder.lab.studies.effects import (
    Effect,
    estimate_starts,
    estimate_units,
    expected_half_width,
    group_seeds,
    student_quantile,
)
from microcoder.lab.studies.features import MetricSeries, measure, measure_alike, parse_feature

SUPPORTED = ClaimFinding.SUPPORTED
SMALLER = ClaimFinding.SMALLER
CONTRADICTED = ClaimFinding.CONTRADICTED
INCONCLUSIVE = ClaimFinding.INCONCLUSIVE
LEAST = 0.02
TRIALS = 100
"""Studies that are drawn and judged."""
SEED_SPREAD = 0.01
"""Standard deviation of a seed's true difference;
about what equal recipes under other seeds show.
"""


def judge(
    effect: Effect,
    direction: Direction,
    least: float = LEAST,
    paper: float | None = None,
) -> ContrastResult:
    contrast = Contrast(
        metric="accuracy",
        feature="late",
        of=("a",),
        direction=direction,
        least=least,
        paper=paper,
    )
    return judge_contrast(contrast, effect)


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        ("start", 1.0),
        ("early", 2.0),
        ("late", 3.0),
        ("mean", 3.25),
        ("growth", 2.0),
        ("swing", np.mean([2.0, 4.0, 1.0])),
        ("early - late", -1.0),
        ("at 3/8", 3.5),
    ],
)
def test_features_of_five_evaluations(feature: str, expected: float) -> None:
    series = MetricSeries(np.linspace(0, 1, 5), np.array([1.0, 2.0, 5.0, 4.0, 2.0])[:, None])
    assert measure(series, feature) == pytest.approx(expected)
    with pytest.raises(ValueError, match="no feature 'last'"):
        parse_feature("late - last")


def test_unscored_problems_are_in_no_mean() -> None:
    values = MetricSeries(
        np.array([0.0, 1.0]), np.array([[1.0, math.nan, 0.0], [math.nan, 1.0, 1.0]])
    )
    assert values.means_E == pytest.approx([0.5, 1.0])


def test_the_holding_temperature_lies_between_those_tried() -> None:
    def sweep(*accuracies: float | None) -> list[dict[str, float | None]]:
        return [{"temperature": 1.0 + i, "accuracy": a} for i, a in enumerate(accuracies)]

    assert holding_temperature(sweep(0.5, 0.5, 0.3)) == pytest.approx(2.5)
    assert holding_temperature(sweep(0.5, 0.45)) == 2.0
    assert holding_temperature(sweep(0.5, None, 0.0)) == pytest.approx(1.4)
    assert holding_temperature(sweep(0.0, 0.0)) is None
    assert holding_temperature([]) is None


@pytest.mark.parametrize(
    ("low", "value", "high", "direction", "paper", "verdict"),
    [
        (0.01, 0.05, 0.09, "higher", None, SUPPORTED),
        (0.001, 0.015, 0.029, "higher", None, SUPPORTED),
        (0.001, 0.01, 0.019, "higher", None, SMALLER),
        (-0.019, -0.01, -0.001, "lower", None, SMALLER),
        (-0.01, 0.05, 0.11, "higher", None, INCONCLUSIVE),
        (-0.009, 0.0, 0.009, "higher", 0.03, CONTRADICTED),
        # An effect of 2 is excluded; the paper's of 1 is smaller than that.
        (-0.009, 0.0, 0.009, "higher", 0.01, INCONCLUSIVE),
        (-0.09, -0.05, -0.01, "higher", 0.01, CONTRADICTED),
        (-0.09, -0.05, -0.01, "lower", None, SUPPORTED),
        (0.01, 0.05, 0.09, "lower", None, CONTRADICTED),
        (-0.01, 0.0, 0.01, "same", None, SUPPORTED),
        (0.001, 0.01, 0.019, "same", None, SUPPORTED),
        (-0.03, 0.0, 0.03, "same", None, INCONCLUSIVE),
        (0.01, 0.05, 0.09, "same", None, INCONCLUSIVE),
        (0.03, 0.05, 0.07, "same", None, CONTRADICTED),
        (-math.inf, 0.5, math.inf, "higher", None, INCONCLUSIVE),
    ],
)
def test_the_table_of_verdicts(
    low: float,
    value: float,
    high: float,
    direction: Direction,
    paper: float | None,
    verdict: ClaimFinding,
) -> None:
    effect = Effect(value, low, high, 8, by_seed=(value,), freedom=7.0)
    assert judge(effect, direction, paper=paper).verdict is verdict
    # The same from seven starts decides nothing, whatever its interval.
    few = replace(effect, num_draws=7)
    assert judge(few, direction, paper=paper).verdict is INCONCLUSIVE
    assert few.too_few == "7 starts, at least 8 are needed"


def each(values: Sequence[float]) -> tuple[dict[int, float], list[list[int]]]:
    """Differences of seeds, each with a start of its own."""
    return dict(enumerate(values)), [[seed] for seed in range(len(values))]


def test_one_start_decides_nothing_and_equal_values_are_no_certainty() -> None:
    assert math.isinf(estimate_starts(*each([0.5])).high)
    # Nothing bounds a length that did not vary; a share is bounded by what eight draws can miss.
    assert math.isinf(estimate_starts(*each([0.0] * 3)).high)
    bound = estimate_starts(*each([0.0] * 8), span=1.0).high
    assert bound == pytest.approx(1 - 0.025 ** (1 / 8))


def test_seeds_of_one_start_are_averaged_before_the_starts_are() -> None:
    """Three starts of 3, 3 and 2 seeds: means 2, 4 and 9, mean 5, standard error sqrt(13 / 3),
    Student's t of 2.
    """
    by_seed = {0: 1.0, 1: 3.0, 2: 8.0, 3: 2.0, 4: 4.0, 5: 10.0, 6: 3.0, 7: 5.0}
    effect = estimate_starts(by_seed, [[0, 3, 6], [1, 4, 7], [2, 5]])
    assert effect.by_start == (2.0, 4.0, 9.0)
    assert effect.value == 5.0
    half = 4.302653 * math.sqrt(13 / 3)
    assert effect.low == pytest.approx(5 - half, rel=1e-6)
    assert effect.high == pytest.approx(5 + half, rel=1e-6)
    assert effect.freedom == 2
    assert effect.too_few == "3 starts, at least 8 are needed"
    # Eight seeds as if they were independent would have told it from 0.
    assert estimate_starts(*each([1, 3, 8, 2, 4, 10, 3, 5])).low > 0 > effect.low
    # A seed that lacks its work is left out, and so is a start without any.
    some = estimate_starts({0: 1.0, 1: 3.0}, [[0, 3, 6], [1, 4, 7], [2, 5]])
    assert some.by_start == (1.0, 3.0)


def test_more_seeds_of_the_same_starts_do_not_narrow_the_interval() -> None:
    values = [0.1, 0.3, 0.2, 0.25]
    few = estimate_starts(*each(values))
    starts = []
    for start in range(4):
        starts.append([start + 4 * copy for copy in range(50)])
    copies = {}
    for copy in range(50):
        for start, value in enumerate(values):
            copies[start + 4 * copy] = value
    many = estimate_starts(
        copies,
        starts,
    )
    assert many.low == pytest.approx(few.low)
    assert many.high == pytest.approx(few.high)
    assert many.num_draws == 4


@pytest.mark.parametrize(
    ("models", "groups"),
    [
        ({0: ["a"], 1: ["b"], 2: ["a"]}, [[0, 2], [1]]),
        ({0: ["a"], 1: ["a"]}, [[0, 1]]),
        # Two arms of other models: seeds that share either share a start, also by way of a third.
        ({0: ["a", "x"], 1: ["b", "x"], 2: ["b", "y"], 3: ["c", "z"]}, [[0, 1, 2], [3]]),
        ({5: ["a"], 3: ["b"], 4: ["a", "b"]}, [[3, 4, 5]]),
        ({}, []),
    ],
)
def test_seeds_that_share_a_model_are_one_start(
    models: dict[int, list[str]], groups: list[list[int]]
) -> None:
    assert group_seeds(models) == groups


def test_units_count_where_they_were_drawn_whatever_the_seed() -> None:
    rows = {0: {"a": 1.0, "b": 0.0, "c": 3.0}, 1: {"a": 3.0, "b": 2.0, "c": 3.0}}
    effect = estimate_units(rows)
    # Means of a, b and c: 2, 1 and 3; mean 2, standard error sqrt(1 / 3), Student's t of 2.
    assert effect.value == 2.0
    assert effect.half_width == pytest.approx(4.302653 * math.sqrt(1 / 3), rel=1e-6)
    assert effect.too_few == "3 units, at least 8 are needed"


def test_yes_or_no_pairs_that_hardly_differ_get_the_interval_of_paired_proportions() -> None:
    none = {f"{unit}": 0.0 for unit in range(300)}
    bound = estimate_units({0: none}, span=1.0)
    most = 1 - 0.025 ** (1 / 300)
    assert bound.low == pytest.approx(-most)
    assert bound.high == pytest.approx(most)
    one = estimate_units({0: {**none, "0": 1.0}}, span=1.0)
    # Bonett and Price: (n12 + 1) and (n21 + 1) of n + 2.
    p12 = 2 / 302
    p21 = 1 / 302
    half = 1.959964 * math.sqrt((p12 + p21 - (p12 - p21) ** 2) / 302)
    assert one.low == pytest.approx(p12 - p21 - half, rel=1e-4)
    assert one.high == pytest.approx(p12 - p21 + half, rel=1e-4)
    assert one.value == pytest.approx(1 / 300)
    assert one.low < one.value < one.high


def series(*values: float) -> MetricSeries:
    return MetricSeries(np.linspace(0, 1, len(values)), np.array(values)[:, None])


def test_two_runs_are_compared_where_their_control_is_equal() -> None:
    """Diversity falls by 1 a point of accuracy in both runs; the second one is only further on."""
    accuracy = series(0.1, 0.2, 0.3, 0.4, 0.5), series(0.1, 0.3, 0.5, 0.7, 0.9)
    diversity = series(0.9, 0.8, 0.7, 0.6, 0.5), series(0.9, 0.7, 0.5, 0.3, 0.1)
    late = [measure(one, "late") for one in diversity]
    assert late[1] - late[0] == pytest.approx(0.2 - 0.55)
    # Late, the first one is at 0.45 accuracy;
    # the second was there a quarter past its first two evaluations.
    alike = measure_alike(diversity, accuracy, "late")
    assert alike == pytest.approx((0.55, 0.55))
    assert measure_alike(diversity[::-1], accuracy[::-1], "late") == pytest.approx((0.55, 0.55))
    assert measure_alike(diversity, accuracy, "at 3/4") == pytest.approx((0.6, 0.6))
    # What is apart at equal accuracy stays apart.
    lower = series(0.8, 0.6, 0.4, 0.2, 0.0)
    assert measure_alike((diversity[0], lower), accuracy, "late") == pytest.approx((0.55, 0.45))
    # Runs that were never equally accurate are not compared.
    apart = series(0.6, 0.7, 0.8, 0.9, 1.0)
    assert all(map(math.isnan, measure_alike(diversity, (accuracy[0], apart), "late")))


VALUES = st.floats(-1, 1).map(lambda value: round(value, 3))


@given(st.lists(VALUES, min_size=2, max_size=12), st.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_an_interval_holds_its_value_has_a_width_and_turns_with_the_sign(
    values: list[float], num_starts: int
) -> None:
    by_seed = dict(enumerate(values))
    groups = [list(range(start, len(values), num_starts)) for start in range(num_starts)]
    groups = [seeds for seeds in groups if seeds]
    for span in (None, 1.0):
        effect = estimate_starts(by_seed, groups, span=span)
        assert effect.low <= effect.value <= effect.high
        assert effect.half_width > 0
        turned = estimate_starts({s: -v for s, v in by_seed.items()}, groups, span=span)
        assert turned.value == pytest.approx(-effect.value)
        assert turned.low == pytest.approx(-effect.high)
        assert turned.high == pytest.approx(-effect.low)
        backwards = estimate_starts(by_seed, groups[::-1], span=span)
        assert backwards.low == pytest.approx(effect.low)
        assert backwards.high == pytest.approx(effect.high)


def test_planted_effects_are_found_and_what_is_not_there_is_not() -> None:
    """Eight starts of three seeds each, whose seeds have most of their spread from the start."""
    verdicts: dict[float, Counter[ClaimFinding]] = {}
    groups = [[start, start + 8, start + 16] for start in range(8)]
    for effect in (0.0, LEAST + 0.02, -LEAST - 0.02):
        rng = np.random.default_rng([round(1000 * abs(effect)), effect < 0])
        verdicts[effect] = Counter()
        for _ in range(TRIALS):
            starts = effect + SEED_SPREAD * rng.standard_normal(8)
            seeds = np.tile(starts, 3) + 0.2 * SEED_SPREAD * rng.standard_normal(24)
            found = estimate_starts(dict(enumerate(map(float, seeds))), groups)
            verdicts[effect][judge(found, "higher").verdict] += 1
    seen = {effect: found[SUPPORTED] + found[SMALLER] for effect, found in verdicts.items()}
    assert seen[0.0] <= 0.05 * TRIALS
    assert seen[LEAST + 0.02] >= 0.95 * TRIALS
    assert verdicts[LEAST + 0.02][CONTRADICTED] == 0
    assert seen[-LEAST - 0.02] == 0
    assert verdicts[-LEAST - 0.02][CONTRADICTED] >= 0.95 * TRIALS


@given(
    st.floats(-20, 20),
    st.floats(0.1, 10),
    st.floats(0.1, 20),
    st.none() | st.floats(0.1, 20),
    st.sampled_from(["higher", "lower", "same"]),
)
@settings(max_examples=150, deadline=None)
def test_more_seeds_never_lead_from_supported_to_contradicted(
    truth: float,
    spread: float,
    least: float,
    paper: float | None,
    direction: Direction,
) -> None:
    """An interval about the truth narrows with seeds;
    at each number the sign and the size say what it says.
    """
    seen: list[ClaimFinding] = []
    for num_starts in (3, 4, 5, 7, 8, 10, 20, 50, 200, 1000):
        freedom = num_starts - 1
        half = student_quantile(0.975, freedom) * spread / num_starts**0.5
        low = truth - half
        high = truth + half
        effect = Effect(truth, low, high, num_starts, by_seed=(truth,), freedom=freedom)
        result = judge(effect, direction, least, paper)
        seen.append(result.verdict)
        low, high = (
            (-effect.high, -effect.low) if direction == "lower" else (effect.low, effect.high)
        )
        if direction == "same":
            is_on_claimed_side = -least < effect.low and effect.high < least
        else:
            is_on_claimed_side = low > 0
        (adjusted,) = adjust_verdicts({"x": result}, num_claims=34).values()
        for verdict in (result.verdict, adjusted.verdict):
            assert not (is_on_claimed_side and verdict is CONTRADICTED)
            if paper is not None and least > paper and direction != "same" and high >= 0:
                assert verdict is not CONTRADICTED
    first = next((n for n, verdict in enumerate(seen) if verdict is SUPPORTED), len(seen))
    assert CONTRADICTED not in seen[first:]
    first = next((n for n, verdict in enumerate(seen) if verdict is SMALLER), len(seen))
    assert set(seen[first:]) <= {SMALLER}


@pytest.mark.parametrize("num_seeds", [3, 5, 10])
def test_intervals_cover_at_their_rate_and_are_as_wide_as_is_reckoned_before(
    num_seeds: int,
) -> None:
    rng = np.random.default_rng(num_seeds)
    spread = 0.015
    effects = []
    for _ in range(2000):
        effects.append(
            estimate_starts(*each(list(LEAST + spread * rng.standard_normal(num_seeds))))
        )
    assert 0.935 <= sum(effect.low <= LEAST <= effect.high for effect in effects) / 2000 <= 0.965
    typical = math.sqrt(sum(effect.half_width**2 for effect in effects) / 2000)
    assert typical == pytest.approx(expected_half_width(spread, num_seeds), rel=0.05)


@given(st.dictionaries(st.integers(0, 40), st.floats(0, 1), min_size=1, max_size=34))
@settings(max_examples=60, deadline=None)
def test_holm_rejects_what_its_steps_say(p_values: dict[int, float]) -> None:
    named = {str(name): p for name, p in p_values.items()}
    adjusted = adjust_p_values(named, num_tests=len(named))
    for name, p in named.items():
        assert p <= adjusted[name] <= min(1.0, p * len(named)) + 1e-12
    expected = set()
    left = len(named)
    for name, p in sorted(named.items(), key=lambda item: (item[1], item[0])):
        if p > 0.05 / left:
            break
        expected.add(name)
        left -= 1
    below = set()
    for name, p in adjusted.items():
        if p <= 0.05 * (1 - 1e-12):
            below.add(name)
    assert below <= expected
    at_most = set()
    for name, p in adjusted.items():
        if p <= 0.05 * (1 + 1e-12):
            at_most.add(name)
    assert expected <= at_most

"""Features of a series, the table of verdicts, and their rates: planted effects are found, null effects are not."""

import math
from collections import Counter

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
    draw_weightings,
    estimate_effect,
    estimate_rows,
    expected_half_width,
    student_quantile,
)
from microcoder.lab.studies.features import MetricSeries, measure, parse_feature

SUPPORTED, SMALLER, CONTRADICTED, INCONCLUSIVE = (
    ClaimFinding.SUPPORTED,
    ClaimFinding.SMALLER,
    ClaimFinding.CONTRADICTED,
    ClaimFinding.INCONCLUSIVE,
)
LEAST = 0.02
PROBLEMS, SAMPLES = 60, 4
TRIALS = 100
SEED_SPREAD = 0.01
"""Standard deviation of a seed's true difference; about what equal recipes under other seeds show."""


def judge(
    effect: Effect, direction: Direction, least: float = LEAST, paper: float | None = None
) -> ContrastResult:
    contrast = Contrast(
        metric="accuracy", feature="late", of=("a",), direction=direction, least=least, paper=paper
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
    ],
)
def test_features_of_five_evaluations(feature: str, expected: float) -> None:
    series = MetricSeries(np.linspace(0, 1, 5), np.array([1.0, 2.0, 5.0, 4.0, 2.0])[:, None])
    found = measure(series, feature, np.ones((1, 3)))
    assert (found.shape, list(found)) == ((3,), pytest.approx([expected] * 3))
    with pytest.raises(ValueError, match="no feature 'last'"):
        parse_feature("late - last")


def test_unscored_problems_are_in_no_mean() -> None:
    values = MetricSeries(
        np.array([0.0, 1.0]), np.array([[1.0, math.nan, 0.0], [math.nan, 1.0, 1.0]])
    )
    assert values.means_E == pytest.approx([0.5, 1.0])
    assert values.weigh(np.array([[1.0], [0.0], [3.0]]))[:, 0] == pytest.approx([0.25, 1.0])


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
    effect = Effect(value, low, high, 3, 0, (value,), 2.0)
    assert judge(effect, direction, paper=paper).verdict is verdict


def test_one_seed_decides_nothing_and_equal_values_are_no_certainty() -> None:
    assert math.isinf(estimate_effect(np.array([[0.5]])).high)
    # Nothing bounds a length that did not vary; a share is bounded by what eight draws can miss.
    assert math.isinf(estimate_effect(np.zeros((3, 1))).high)
    assert estimate_effect(np.zeros((8, 1)), span=1.0).high == pytest.approx(1 - 0.025 ** (1 / 8))


def test_seeds_that_share_one_sample_set_count_once() -> None:
    row = np.concatenate([[0.1], np.linspace(0.0, 0.2, 50)])
    assert estimate_effect(np.stack([row, row, row]), num_problems=60).num_seeds == 1
    assert math.isinf(estimate_effect(np.stack([row, row, row]), num_problems=60).low)
    assert estimate_effect(np.stack([row, row + 0.01, row]), num_problems=60).num_seeds == 2
    # Seeds without any difference are no copies of each other: to drop one would favour the rest.
    assert estimate_effect(np.stack([row, 0 * row, 0 * row]), num_problems=60).num_seeds == 3


def test_rows_of_own_units_get_the_spread_of_seeds_and_shared_ones_that_of_units_too() -> None:
    rng = np.random.default_rng(0)
    ability = rng.normal(0, 1, 40)
    shared = {
        s: {f"p{u}": ability[u] + 0.01 * rng.standard_normal() for u in range(40)} for s in range(4)
    }
    own = {
        seed: {f"{seed}/{unit}": value for unit, value in units.items()}
        for seed, units in shared.items()
    }
    wide, narrow = estimate_rows(shared), estimate_rows(own)
    assert wide.value == pytest.approx(narrow.value)
    assert (wide.num_units, narrow.num_units) == (40, 160)
    assert wide.half_width == pytest.approx(
        2.02 * np.std(ability, ddof=1) / math.sqrt(40), rel=0.05
    )
    assert narrow.half_width < wide.half_width / 10
    assert estimate_rows({0: shared[0], 1: shared[0]}).num_seeds == 1


def test_yes_or_no_pairs_that_hardly_differ_get_the_interval_of_paired_proportions() -> None:
    none = {seed: {f"{seed}/{unit}": 0.0 for unit in range(100)} for seed in range(3)}
    bound = estimate_rows(none, span=1.0)
    assert (bound.low, bound.high) == pytest.approx(
        (-(1 - 0.025 ** (1 / 300)), 1 - 0.025 ** (1 / 300))
    )
    one = estimate_rows({**none, 0: {**none[0], "0/0": 1.0}}, span=1.0)
    # Bonett and Price: (n12 + 1) and (n21 + 1) of n + 2.
    p12, p21 = 2 / 302, 1 / 302
    half = 1.959964 * math.sqrt((p12 + p21 - (p12 - p21) ** 2) / 302)
    assert (one.low, one.high) == pytest.approx((p12 - p21 - half, p12 - p21 + half), rel=1e-4)
    assert one.value == pytest.approx(1 / 300)
    assert one.low < one.value < one.high


VALUES = st.floats(-1, 1).map(lambda value: round(value, 3))
ROWS = st.dictionaries(
    st.integers(0, 9),
    st.dictionaries(st.sampled_from("abcdefgh"), VALUES, min_size=2),
    min_size=2,
    max_size=6,
)


@given(ROWS)
@settings(max_examples=80, deadline=None)
def test_an_interval_holds_its_value_has_a_width_and_turns_with_the_sign(
    rows: dict[int, dict[str, float]],
) -> None:
    for span in (None, 1.0):
        effect = estimate_rows(rows, span=span)
        assert effect.low <= effect.value <= effect.high
        assert effect.half_width > 0
        turned = estimate_rows(
            {s: {u: -v for u, v in units.items()} for s, units in rows.items()}, span=span
        )
        assert (turned.value, turned.low, turned.high) == pytest.approx(
            (-effect.value, -effect.high, -effect.low)
        )
        backwards = estimate_rows(dict(reversed(list(rows.items()))), span=span)
        assert (backwards.low, backwards.high) == pytest.approx((effect.low, effect.high))


@pytest.mark.parametrize("num_seeds", [3, 5])
def test_planted_effects_are_found_and_what_is_not_there_is_not(num_seeds: int) -> None:
    """Differences of accuracy between two levels on the same problems, by binary samples."""
    weights, planted = draw_weightings(PROBLEMS)[:, :101], 0.12 if num_seeds == 3 else 0.08
    verdicts: dict[float, Counter[ClaimFinding]] = {}
    for effect in (0.0, LEAST + 0.02, planted, -0.12):
        rng = np.random.default_rng([round(1000 * abs(effect)), num_seeds, effect < 0])
        verdicts[effect] = Counter()
        for _ in range(TRIALS):
            ability = rng.beta(0.8, 1.0, PROBLEMS)
            gains = effect + 0.05 * rng.standard_normal(PROBLEMS)
            rows = []
            for _ in range(num_seeds):
                drift = SEED_SPREAD * rng.standard_normal()
                solved = (
                    rng.binomial(SAMPLES, np.clip([ability, ability + gains + drift], 0, 1))
                    / SAMPLES
                )
                rows.append((solved[1] - solved[0]) @ weights)
            found = estimate_effect(np.stack(rows), num_problems=PROBLEMS)
            verdicts[effect][judge(found, "higher").verdict] += 1
    seen = {effect: found[SUPPORTED] + found[SMALLER] for effect, found in verdicts.items()}
    assert seen[0.0] <= 0.05 * TRIALS
    assert seen[planted] >= 0.8 * TRIALS
    assert verdicts[LEAST + 0.02][CONTRADICTED] <= 0.05 * TRIALS
    assert (verdicts[planted][CONTRADICTED], seen[-0.12]) == (0, 0)
    assert verdicts[-0.12][CONTRADICTED] >= 0.8 * TRIALS


@given(
    st.floats(-20, 20),
    st.floats(0.1, 10),
    st.floats(0.1, 20),
    st.none() | st.floats(0.1, 20),
    st.sampled_from(["higher", "lower", "same"]),
)
@settings(max_examples=150, deadline=None)
def test_more_seeds_never_lead_from_supported_to_contradicted(
    truth: float, spread: float, least: float, paper: float | None, direction: Direction
) -> None:
    """An interval about the truth narrows with seeds; at each number the sign and the size say what it says."""
    seen: list[ClaimFinding] = []
    for num_seeds in (3, 4, 5, 7, 10, 20, 50, 200, 1000):
        half = student_quantile(0.975, num_seeds - 1) * spread / num_seeds**0.5
        effect = Effect(truth, truth - half, truth + half, num_seeds, 0, (truth,), num_seeds - 1)
        result = judge(effect, direction, least, paper)
        seen.append(result.verdict)
        low, high = (
            (-effect.high, -effect.low) if direction == "lower" else (effect.low, effect.high)
        )
        is_on_claimed_side = (
            -least < effect.low and effect.high < least if direction == "same" else low > 0
        )
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
    rng, spread = np.random.default_rng(num_seeds), 0.015
    effects = [
        estimate_effect(LEAST + spread * rng.standard_normal((num_seeds, 1))) for _ in range(2000)
    ]
    assert 0.935 <= sum(effect.low <= LEAST <= effect.high for effect in effects) / 2000 <= 0.965
    typical = math.sqrt(sum(effect.half_width**2 for effect in effects) / 2000)
    assert typical == pytest.approx(expected_half_width(spread, num_seeds), rel=0.05)


@given(st.dictionaries(st.integers(0, 40), st.floats(0, 1), min_size=1, max_size=34))
@settings(max_examples=60, deadline=None)
def test_holm_rejects_what_its_steps_say(p_values: dict[int, float]) -> None:
    named = {str(name): p for name, p in p_values.items()}
    adjusted = adjust_p_values(named, num_tests=len(named))
    assert all(p <= adjusted[name] <= min(1.0, p * len(named)) + 1e-12 for name, p in named.items())
    expected, left = set(), len(named)
    for name, p in sorted(named.items(), key=lambda item: (item[1], item[0])):
        if p > 0.05 / left:
            break
        expected.add(name)
        left -= 1
    assert {name for name, p in adjusted.items() if p <= 0.05 * (1 - 1e-12)} <= expected
    assert expected <= {name for name, p in adjusted.items() if p <= 0.05 * (1 + 1e-12)}

"""Rates of the verdicts under known truth: planted effects are found, null effects are not, and intervals cover."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.lab.studies.design import Contrast, Direction
from microcoder.lab.studies.effects import Effect, draw_weightings, estimate_effect, student_quantile
from microcoder.lab.studies.verdicts import (
    ClaimFinding,
    ContrastResult,
    adjust_judgements,
    adjust_p_values,
    judge_contrast,
    power_of,
)

SUPPORTED, CONTRADICTED = ClaimFinding.SUPPORTED, ClaimFinding.CONTRADICTED
LEAST = 0.02
PROBLEMS, SAMPLES = 60, 4
TRIALS = 150
SEED_SPREAD = 0.01
"""Standard deviation of a seed's true difference; about what equal recipes under other seeds show."""


def judge(effect: Effect, direction: Direction, least: float = LEAST, paper: float | None = None) -> ContrastResult:
    contrast = Contrast(metric="accuracy", feature="late", of=("a",), direction=direction, least=least, paper=paper)
    return judge_contrast(contrast, effect)


@pytest.mark.parametrize("num_seeds", [3, 5])
def test_planted_effects_are_found_and_what_is_not_there_is_not(num_seeds: int) -> None:
    """Differences of accuracy between two levels on the same problems, by binary samples."""
    weights, planted = draw_weightings(PROBLEMS, num=100), 0.12 if num_seeds == 3 else 0.08
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
                solved = rng.binomial(SAMPLES, np.clip([ability, ability + gains + drift], 0, 1)) / SAMPLES
                rows.append((solved[1] - solved[0]) @ weights)
            found = estimate_effect(np.stack(rows), num_problems=PROBLEMS)
            verdicts[effect][judge(found, "higher").judgement.verdict] += 1
    seen = {effect: found[SUPPORTED] + found[ClaimFinding.SMALLER] for effect, found in verdicts.items()}
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
        seen.append(result.judgement.verdict)
        claimed = effect.mirrored if direction == "lower" else effect
        is_on_claimed_side = -least < effect.low and effect.high < least if direction == "same" else claimed.low > 0
        (adjusted,) = adjust_judgements({"x": result}, num_claims=34).values()
        for verdict in (result.judgement.verdict, adjusted.verdict):
            assert not (is_on_claimed_side and verdict is ClaimFinding.CONTRADICTED)
            if paper is not None and least > paper and direction != "same" and claimed.high >= 0:
                assert verdict is not ClaimFinding.CONTRADICTED
    first = next((n for n, verdict in enumerate(seen) if verdict is ClaimFinding.SUPPORTED), len(seen))
    assert ClaimFinding.CONTRADICTED not in seen[first:]
    first = next((n for n, verdict in enumerate(seen) if verdict is ClaimFinding.SMALLER), len(seen))
    assert set(seen[first:]) <= {ClaimFinding.SMALLER}


@pytest.mark.parametrize("num_seeds", [3, 5])
def test_intervals_without_problems_cover_at_their_rate(num_seeds: int) -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        found = estimate_effect(rng.normal(0.5, 1.0, (num_seeds, 1)))
        covered += found.low <= 0.5 <= found.high
    assert 0.935 <= covered / 2000 <= 0.965


def test_claims_that_two_levels_are_the_same_need_a_narrow_interval() -> None:
    rng = np.random.default_rng(2)
    judged: dict[float, Counter[ClaimFinding]] = {0.0: Counter(), 1.0: Counter(), 3.0: Counter()}
    for truth, verdicts in judged.items():
        for _ in range(TRIALS):
            found = estimate_effect(truth + 0.2 * rng.standard_normal((5, 1)))
            verdicts[judge(found, "same", 1.0).judgement.verdict] += 1
    assert judged[0.0][SUPPORTED] >= 0.95 * TRIALS
    assert max(judged[1.0][SUPPORTED], judged[1.0][CONTRADICTED]) <= 0.05 * TRIALS
    assert judged[3.0][CONTRADICTED] >= 0.95 * TRIALS


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


@pytest.mark.parametrize("share_of_effects", [0.0, 0.5])
def test_any_wrong_verdict_among_thirty_claims_is_as_seldom_as_holm_says(share_of_effects: float) -> None:
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(TRIALS):
        truths = {str(i): LEAST if rng.random() < share_of_effects else 0.0 for i in range(30)}
        effects = {name: estimate_effect(truth + 0.01 * rng.standard_normal((8, 1))) for name, truth in truths.items()}
        judged = {name: judge(effect, "higher") for name, effect in effects.items()}
        adjusted = adjust_judgements(judged, num_claims=30)
        wrongly = {0.0: (ClaimFinding.SUPPORTED, ClaimFinding.SMALLER)}
        otherwise = (ClaimFinding.CONTRADICTED, ClaimFinding.SMALLER)
        wrong += any(adjusted[name].verdict in wrongly.get(truth, otherwise) for name, truth in truths.items())
    # 5 % of the families, and what so few of them scatter by.
    assert wrong <= 0.09 * TRIALS


@pytest.mark.parametrize("num_seeds", [5, 10])
def test_the_power_that_is_reckoned_before_is_the_share_that_is_found(num_seeds: int) -> None:
    rng, spread = np.random.default_rng(num_seeds), 0.015
    effects = (estimate_effect(LEAST + spread * rng.standard_normal((num_seeds, 1))) for _ in range(1000))
    expected = power_of(spread, LEAST, num_seeds=num_seeds)
    assert sum(effect.low > 0 for effect in effects) / 1000 == pytest.approx(expected, abs=0.05)

"""Verdict -> reward: 1 when every test passed, else 0 (paper, section 5), or a weighted sum.

A reward is a pure function of (problem, rollout, program, verdict) that returns a number, or None:
unscored. Where one of several is None, or the sandbox failed, the rollout is unscored as a whole.
Weights come before everything that looks at a group, so means and deviations are those of the
weighted sum.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.extensions import Extension, load_extension
from microcoder.judge.core.types import Problem, Program, Rollout, Verdict

RewardFunction = Callable[..., float | None]
"""(problem, rollout, program, verdict, *, options) -> a number, or None.

An attribute `needs_all_tests = True` on it says that it looks at tests after the first that fails.
`needs_draw = True` says that it takes a fifth argument: a number, uniform in [0, 1), that depends
only on seed, step, problem and sample, and differs from the mask's.
"""


def score_verdict(verdict: Verdict) -> float | None:
    """Return 1.0 for an accepted program, 0.0 for any other, None for a sandbox error."""
    if not verdict.is_scorable:
        return None
    return 1.0 if verdict.is_accepted else 0.0


def score_verdicts(verdicts: Sequence[Verdict]) -> list[float | None]:
    """Return one reward per verdict, in order."""
    return [score_verdict(verdict) for verdict in verdicts]


def all_tests(
    problem: Problem,
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
) -> float | None:
    """Return 1 when every test passed, else 0: the paper's reward."""
    return score_verdict(verdict)


def fraction(
    problem: Problem,
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
) -> float | None:
    """Return the share of the problem's tests that passed."""
    if not verdict.tests_total:
        return 0.0
    return verdict.tests_passed / verdict.tests_total


# Judging may stop at the first failure: the share would then hang on the order of the tests.
fraction.needs_all_tests = True  # pyrefly: ignore[missing-attribute]


def has_format(
    problem: Problem,
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
) -> float | None:
    """Return 1 when the response ended by itself and holds a whole code block, else 0."""
    is_cut_off = rollout.is_truncated or program.code is None
    return 0.0 if is_cut_off else 1.0


BUILTINS: Mapping[str, RewardFunction] = {
    "all_tests": all_tests,
    "fraction": fraction,
    "format": has_format,
}
"""Name -> reward of the package."""


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of a rollout."""

    total: float | None
    """The weighted sum; None: unscored."""
    parts: Mapping[str, float | None]
    """Each reward by its label, without its weight; empty if there is only one."""
    unscored_by: tuple[str, ...] = ()
    """Labels of the rewards that returned None for a program that the sandbox had judged."""


@dataclass(frozen=True, slots=True)
class RewardSum:
    """Rewards with their weights, as one pure function."""

    parts: tuple[tuple[Extension, float], ...]

    @property
    def needs_all_tests(self) -> str | None:
        """Name of the first reward that reads the tests after the first failure; None if none
        does."""
        for extension, _ in self.parts:
            if getattr(extension.function, "needs_all_tests", False):
                return extension.reference
        return None

    def __call__(
        self,
        problem: Problem,
        rollout: Rollout,
        program: Program,
        verdict: Verdict,
        *,
        draw: float | None = None,
    ) -> Reward:
        """Return a rollout's reward; None after a sandbox error, without calling any reward."""
        # None from the start: after a sandbox error no reward is called.
        values: dict[str, float | None] = {extension.label: None for extension, _ in self.parts}
        if verdict.is_scorable:
            for extension, _ in self.parts:
                arguments = (problem, rollout, program, verdict, *_draw_for(extension, draw))
                values[extension.label] = _check_value(extension, extension(*arguments))
        weights = [weight for _, weight in self.parts]
        return add_up(values, weights, is_scorable=verdict.is_scorable)


def add_up(
    values: Mapping[str, float | None], weights: Sequence[float], *, is_scorable: bool
) -> Reward:
    """Return the reward of a rollout from the values of its rewards.

    Args:
        values: of each reward, by its label.
        weights: in the same order.
        is_scorable: whether the sandbox could judge the program.
    """
    # Noted by name: None counts as unscored, so a reward that fails often must not go unseen.
    silent = tuple(label for label, value in values.items() if value is None)
    return Reward(
        _weigh(values, weights),
        values if len(values) > 1 else {},
        # After a sandbox error no reward was asked, so none is to blame.
        unscored_by=silent if is_scorable else (),
    )


def _weigh(values: Mapping[str, float | None], weights: Sequence[float]) -> float | None:
    """Return the weighted sum of rewards; None if one of them is None."""
    terms = []
    for weight, value in zip(weights, values.values(), strict=True):
        if value is None:
            return None
        terms.append(weight * value)
    return sum(terms)


def _draw_for(extension: Extension, draw: float | None) -> tuple[float, ...]:
    """Return the draw as a further argument, for a reward that needs one; else nothing."""
    if not getattr(extension.function, "needs_draw", False):
        return ()
    if draw is None:
        raise extension.fault("needs a draw, a random number; outside of a run pass one: draw=0.5")
    return (draw,)


def _check_value(extension: Extension, value: object) -> float | None:
    """Return what a reward returned as a float or None; ConfigError if it is neither."""
    if value is None:
        return None
    # One NaN would spread to its whole group by mean and deviation.
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise extension.fault(f"returned {value!r}; return a finite number, or None for unscored")
    return float(value)


def load_rewards(chosen: Sequence[tuple[str, float, Mapping[str, Any]]]) -> RewardSum:
    """Return the rewards of a recipe as one function.

    Args:
        chosen: name or reference (see `extensions`), weight, and options of each.

    Raises:
        ConfigError: one cannot be loaded, or two have the same label.
    """
    parts = []
    for reference, weight, options in chosen:
        extension = load_extension("reward", reference, builtins=BUILTINS, options=options)
        parts.append((extension, weight))
    # Rewards are kept by label, where a second one of the same name would replace the first.
    labels = [extension.label for extension, _ in parts]
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise ConfigError(
            f"rewards name {repeated[0]} twice; add up its weights, or rename one function"
        )
    return RewardSum(tuple(parts))


ALL_TESTS = load_rewards([("all_tests", 1.0, {})])
"""The paper's reward: 1 if every test passed, else 0."""

"""A step's rollouts decided again, by the functions that decided them in training.

No equation is written here: `decide_group` and `note_mismatch` are the trainer's own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.rewards import Reward, add_up
from microcoder.judge.core.types import Problem, TestCase
from microcoder.replay.recordings import Lack, RecordedStep, Recording
from microcoder.replay.settings import ReplayConfig, Resolved
from microcoder.train.algorithm.masking import (
    ConditionalMasking,
    MaskAll,
    OwnMasking,
    SoftPenalty,
    StopProperly,
    draw_uniform,
)
from microcoder.train.algorithm.scoring import (
    REWARD_DRAW,
    JudgedRollout,
    Rules,
    build_rules,
    decide_group,
    note_mismatch,
)
from microcoder.train.recipe.recipe import build_rewards
from microcoder.train.rollouts import SamplerMismatch, ScoredRollout

GiveReward = Callable[[ScoredRollout, int], Reward]
"""Gives the reward of a recorded rollout of a step, without any penalty."""

_NO_PROBLEM = Problem(id="unknown", tests=(TestCase(input="", output=""),))
"""Stands for a problem where the package's own rewards are asked, which do not look at it."""

_READS_TRUNCATION = (MaskAll, ConditionalMasking, OwnMasking, StopProperly)
"""Masks and penalties that look at whether a response was truncated."""


@dataclass(frozen=True, slots=True)
class Decider:
    """Decides the rollouts of a recording under one configuration."""

    config: ReplayConfig
    give_reward: GiveReward

    def decide(self, step: RecordedStep) -> list[list[ScoredRollout]]:
        """Return a step's rollouts with the rewards, masks and advantages of the configuration."""
        # Rewards are given below: the rules are asked for penalties, masks and advantages.
        limit = step.max_response_tokens or 0
        rules = build_rules(self.config.algorithm, max_response_tokens=limit)
        decided_P_G = []
        for scored_G in step.scored_P_G:
            decided_P_G.append(self._decide_group(scored_G, rules, step.step))
        mismatches = [sample.mismatch for scored_G in step.scored_P_G for sample in scored_G]
        if any(mismatches):
            decided_P_G = note_mismatch(decided_P_G, [_whole(row) for row in mismatches])
        return decided_P_G

    def _decide_group(
        self, scored_G: Sequence[ScoredRollout], rules: Rules, step: int
    ) -> list[ScoredRollout]:
        draw = partial(draw_uniform, seed=self.config.seed, step=step)
        judged_G = []
        for sample in scored_G:
            judged = JudgedRollout(
                rollout=sample.rollout,
                program=sample.program,
                verdict=sample.verdict,
                reward=self.give_reward(sample, step),
                draw=draw(problem_id=sample.rollout.problem_id, sample_index=sample.sample_index),
                tier=sample.tier,
            )
            judged_G.append(judged)
        return decide_group(judged_G, rules=rules)


def _whole(mismatch: SamplerMismatch | None) -> SamplerMismatch:
    """Return a rollout's mismatch; one that was not measured weighs 1."""
    return mismatch or SamplerMismatch(logp_difference=0.0, weight=1.0)


def build_decider(
    recording: Recording,
    resolved: Resolved,
    *,
    problems: Mapping[str, Problem] | None = None,
    is_rejudged: bool = False,
) -> Decider:
    """Return what decides a recording's rollouts under an alternative.

    Args:
        recording: the rollouts.
        resolved: the alternative.
        problems: by id, for rewards of the user's own that were not recorded.
        is_rejudged: whether the rollouts have verdicts of all tests, which were made for them.

    Raises:
        ConfigError: the recording lacks something that the alternative's rules look at.
    """
    config = resolved.config
    _check_lacks(recording, resolved)
    is_kept = config.rewards == recording.config.rewards
    if is_rejudged:
        # Rewards of the user's own have given way: those of the package look at no problem.
        give = _ask_rewards(config, None)
    elif Lack.VERDICTS in recording.lacks or (is_kept and config.has_own_rewards):
        give = _keep_rewards(config)
    elif is_kept:
        # Computed again, so that a penalty which was added leaves no trace of rounding.
        give = _ask_rewards(config, None)
    else:
        give = _change_rewards(recording, config, problems)
    return Decider(config, give)


def _check_lacks(recording: Recording, resolved: Resolved) -> None:
    """Raise ConfigError if a mask or penalty looks at something that is not recorded."""
    masking = resolved.config.algorithm.masking
    lacks = recording.lacks
    told = f'{resolved.name}: algorithm.masking.kind = "{getattr(masking, "kind", "")}"'
    if isinstance(masking, _READS_TRUNCATION) and Lack.TRUNCATION in lacks:
        raise ConfigError(
            f"{told} looks at truncation, which {recording.name} does not record; have the trainer "
            "log is_truncated with each response (docs/replay.md), or compare recipes without it"
        )
    if isinstance(masking, SoftPenalty) and lacks & {Lack.LENGTHS, Lack.LIMIT}:
        raise ConfigError(
            f"{told} looks at lengths and their limit, which {recording.name} does not record; "
            "have the trainer log num_tokens, and give the limit by --limit (docs/replay.md)"
        )
    is_changed = any(key.startswith("rewards") for key in resolved.changed)
    if is_changed and Lack.VERDICTS in lacks:
        raise ConfigError(
            f"{resolved.name} changes rewards, which are made of verdicts, and {recording.name} "
            "records none; have the programs judged: --tests PROBLEMS.jsonl"
        )


def _keep_rewards(config: ReplayConfig) -> GiveReward:
    """Return what gives each rollout the reward that is recorded, without asking anybody."""
    weights = [reward.weight for reward in config.rewards]

    def give(sample: ScoredRollout, step: int) -> Reward:
        if len(sample.rewards) == len(weights) > 1:
            return add_up(sample.rewards, weights, is_scorable=sample.verdict.is_scorable)
        if sample.reward is None:
            return Reward(None, {}, sample.unscored_by)
        return Reward(sample.reward - sample.length_penalty, sample.rewards)

    return give


def _change_rewards(
    recording: Recording, config: ReplayConfig, problems: Mapping[str, Problem] | None
) -> GiveReward:
    """Return what asks other rewards than the recorded ones about the recorded verdicts."""
    reader = build_rewards(config.rewards).needs_all_tests
    if reader and recording.stops_early:
        raise ConfigError(
            f"reward {reader} looks at all tests, and {recording.name} was judged up to the first "
            "failure; have the programs judged again: --tests PROBLEMS.jsonl"
        )
    if config.has_own_rewards and problems is None:
        raise ConfigError(
            "rewards of your own look at the problem; name the problems: --problems FILE.jsonl"
        )
    return _ask_rewards(config, problems)


def _ask_rewards(config: ReplayConfig, problems: Mapping[str, Problem] | None) -> GiveReward:
    """Return what asks a recipe's rewards about a rollout's verdict."""
    rewards = build_rewards(config.rewards)

    def give(sample: ScoredRollout, step: int) -> Reward:
        rollout = sample.rollout
        problem = _NO_PROBLEM
        if problems is not None:
            problem = find_problem(problems, rollout.problem_id)
        draw = draw_uniform(
            seed=config.seed,
            step=step,
            problem_id=REWARD_DRAW + rollout.problem_id,
            sample_index=sample.sample_index,
        )
        return rewards(problem, rollout, sample.program, sample.verdict, draw=draw)

    return give


def find_problem(problems: Mapping[str, Problem], problem_id: str) -> Problem:
    """Return a problem by its id; DataError if there is none."""
    problem = problems.get(problem_id)
    if problem is None:
        first = next(iter(problems), "none")
        raise DataError(
            f"no problem has the id {problem_id!r} of the rollouts (first id: {first!r}); name the "
            "file that the run was trained on, with the same ids"
        )
    return problem

"""Groups that teach nothing give way to others, and problems are chosen so that they are few:
without an engine.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from microcoder.judge.core.types import Outcome
from microcoder.train.algorithm.selection import (
    FILTERS,
    PassCount,
    Processes,
    choose_problems,
    count_passes,
    order_spares,
    sample_mixed_groups,
)
from microcoder.train.rollouts import ScoredRollout
from tests.train.small_runs import scored

IDS = [str(number) for number in range(20)]


class Sampled(NamedTuple):
    """A problem's two samples."""

    problem_id: str
    scored: Sequence[ScoredRollout]


def sampled(problem_id: str, *, every: int) -> Sampled:
    """One sample is right, and the other where the problem's number is no multiple of `every`."""
    is_mixed_problem = int(problem_id) % every == 0
    second = Outcome.WRONG_ANSWER if is_mixed_problem else Outcome.ACCEPTED
    return Sampled(problem_id, [scored(Outcome.ACCEPTED), scored(second)])


def wrong_and_formatted(*formats: float) -> list[ScoredRollout]:
    """Return wrong answers whose reward is that of their format."""
    return [scored(Outcome.WRONG_ANSWER, reward=reward) for reward in formats]


# What is flat depends on the question: by correctness a group of wrong answers teaches nothing, by
# reward it does where the rewards differ.


def test_wrong_answers_of_which_some_have_a_reward_for_their_format_are_flat_by_correctness() -> (
    None
):
    group = wrong_and_formatted(0.1, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert not FILTERS["dynamic"](group)
    assert FILTERS["dynamic_reward"](group)


def test_right_answers_of_unequal_reward_are_flat_by_correctness() -> None:
    group = [scored(Outcome.ACCEPTED, reward=1.1), scored(Outcome.ACCEPTED, reward=1.0)]
    assert not FILTERS["dynamic"](group)
    assert FILTERS["dynamic_reward"](group)


def test_a_group_of_right_and_wrong_answers_with_one_reward_is_mixed_by_correctness() -> None:
    group = [scored(Outcome.ACCEPTED, reward=0.5), scored(Outcome.WRONG_ANSWER, reward=0.5)]
    assert FILTERS["dynamic"](group)
    assert not FILTERS["dynamic_reward"](group)


def test_unscored_members_make_no_group_mixed() -> None:
    group = [scored(Outcome.ACCEPTED), scored(Outcome.WRONG_ANSWER, reward=None)]
    assert not FILTERS["dynamic"](group)
    assert not FILTERS["dynamic_reward"](group)


def test_a_penalty_on_length_makes_no_group_mixed() -> None:
    group = [scored(reward=1.0), scored(reward=0.7, length_penalty=-0.3)]
    assert not FILTERS["dynamic"](group)
    assert not FILTERS["dynamic_reward"](group)


@pytest.mark.parametrize("max_rounds", [1, 2, 3, 9])
def test_flat_groups_give_way_in_place_until_none_is_flat_or_the_rounds_or_the_problems_end(
    max_rounds: int,
) -> None:
    asked: list[list[str]] = []

    def sample(problem_ids: Sequence[str]) -> list[Sampled]:
        asked.append(list(problem_ids))
        return [sampled(one, every=3) for one in problem_ids]

    groups, left_out = sample_mixed_groups(
        sample,
        IDS[:6],
        all_ids=IDS,
        max_rounds=max_rounds,
        seed=1,
        step=2,
    )
    spares = order_spares(IDS, asked=IDS[:6], seed=1, step=2)
    all_asked = []
    for names in asked:
        all_asked.extend(names)
    assert len(asked) <= max_rounds
    assert all_asked == [*IDS[:6], *spares][: len(all_asked)]
    assert sorted(one.problem_id for one in [*groups, *left_out]) == sorted(all_asked)
    assert [one.problem_id for one in groups][::3] == ["0", "3"], "what is mixed stays in its place"
    # As many as are flat are asked in each round, or what is left.
    # Of problems 0 to 5, every third is mixed.
    num_flat = 4
    num_left = len(spares)
    for names in asked[1:]:
        assert len(names) == min(num_flat, num_left)
        num_left -= len(names)
        num_flat -= sum(int(one) % 3 == 0 for one in names)
    assert sum(int(one.problem_id) % 3 > 0 for one in groups) == max(0, num_flat)
    if max_rounds == 9:
        assert len(asked) < max_rounds, "it ends by itself"
        assert num_flat <= 0 or len(all_asked) == len(IDS)


def test_processes_ask_equally_many_and_never_the_same() -> None:
    """The other process asks problems 4 and 5,
    and finds two of its groups flat where this one finds one.
    """
    asked: list[list[str]] = []
    # What the other one sends: its problems, then how many of its groups are flat in each round.
    others: list[list[object]] = [["4", "5"], [2], [0]]

    def sample(problem_ids: Sequence[str]) -> list[Sampled]:
        asked.append(list(problem_ids))
        groups = []
        for one in problem_ids:
            groups.append(sampled(one, every=2) if asked[1:] else sampled(one, every=3))
        return groups

    groups, left_out = sample_mixed_groups(
        sample,
        ["3", "7"],
        all_ids=IDS,
        max_rounds=2,
        seed=0,
        step=1,
        processes=Processes(index=1, count=2, gather=lambda mine: [*mine, *others.pop(0)]),
    )
    spares = order_spares(IDS, asked={"3", "7", "4", "5"}, seed=0, step=1)
    # The first two spares are the other process's, which comes first; both take two, since every
    # process must sample equally many.
    assert asked == [["3", "7"], spares[2:4]]
    assert groups[0].problem_id == "3"
    even = []
    for one in spares[2:4]:
        if int(one) % 2 == 0:
            even.append(one)
    replaced = even[:1]
    assert [groups[1].problem_id] == (replaced or ["7"])
    assert {one.problem_id for one in [*groups, *left_out]} == {"3", "7", *spares[2:4]}


def test_fewer_spares_than_flat_groups_replace_as_many_as_they_can() -> None:
    groups, left_out = sample_mixed_groups(
        lambda names: [sampled(one, every=19) for one in names],
        IDS[1:17],
        all_ids=IDS,
        max_rounds=5,
        seed=0,
        step=1,
    )
    # Of 20 problems 16 were asked, all flat: four are left, and two of these are mixed.
    assert {one.problem_id for one in groups[:2]} == {"0", "19"}
    assert [one.problem_id for one in groups[2:]] == IDS[3:17]
    assert {one.problem_id for one in left_out} == {"1", "2", "17", "18"}


def choose(counts: Sequence[PassCount], *, number: int = 5, step: int = 9) -> list[str]:
    return choose_problems(IDS, counts, number=number, seed=3, step=step)


def test_problems_that_are_solved_half_of_the_time_are_asked() -> None:
    """Five problems at one half among others that are always, or never, solved."""
    halves = {"2", "5", "11", "12", "19"}
    counts = []
    for one in IDS:
        counts.append(
            PassCount(
                8,
                one,
                *(100, 100) if one in halves else (200, 0) if int(one) % 2 else (0, 200),
            )
        )
    assert set(choose(counts)) == halves
    assert set(choose(counts, number=len(IDS))) == set(IDS), "each once"
    backwards = choose_problems(IDS[::-1], counts, number=5, seed=3, step=9)
    assert backwards == choose(counts)
    assert choose(counts) != choose(counts, step=10), "drawn anew in each step"


def test_what_was_seen_long_ago_is_forgotten() -> None:
    """Each was solved half of the time but one, which failed at first and is at one half since."""
    for seen, is_asked in ((1, True), (200, False)):
        counts = []
        for one in IDS:
            counts.append(PassCount(seen, one, *(0, 400) if one == "7" else (200, 200)))
        counts += [PassCount(201, "7", 100, 100)]
        # By chance 10 of 20 problems are asked: 20 of 40 times.
        num_asked = sum("7" in choose(counts, number=10, step=201 + n) for n in range(40))
        assert num_asked > 10 if is_asked else num_asked == 0


def test_unscored_samples_are_no_failures() -> None:
    verdicts = [("a", "accepted"), ("b", "sandbox_fault"), ("a", "no_code"), ("a", "sandbox_fault")]
    assert count_passes([{"problem_id": n, "verdict": v} for n, v in verdicts], step=4) == [
        PassCount(4, "a", 1, 1)
    ]

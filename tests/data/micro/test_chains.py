import hashlib
import random
import re
from collections import Counter
from functools import cache
from itertools import islice

import pytest

from microcoder import DataError, Program, extract_program
from microcoder.data.micro import (
    STYLES,
    TIERS,
    ThinkingShares,
    generate_chain_demonstrations,
    generate_problems,
)
from microcoder.data.micro.chains import (
    MODULUS,
    NUM_STEPS_BY_TIER,
    PROGRAMS,
    THOROUGH,
    TRICKS,
    ChainDemonstration,
    Split,
    Trick,
    draw_chain_tasks,
    find_trick,
    make_chain_problem,
)
from microcoder.judge import judge


@cache
def demonstrations() -> tuple[ChainDemonstration, ...]:
    return tuple(generate_chain_demonstrations(num=1500, seed=1))


def traced_digit(demonstration: ChainDemonstration) -> str:
    """The last digit that the thinking wrote, read from the text."""
    return re.findall(r"\d", demonstration.response.partition("```")[0])[-1]


def digit_in_program(code: str) -> str:
    return re.findall(r"\d", code)[-1]


def test_chain_problems_are_distinct_graded_and_the_same_for_the_same_seed() -> None:
    problems = generate_problems(split="heldout", num_problems=90)
    assert problems[:60] == generate_problems(split="heldout", num_problems=60)
    assert problems != generate_problems(split="heldout", num_problems=90, seed=1)
    assert len({p.statement for p in problems}) == 90
    assert [p.tier for p in problems] == list(TIERS) * 30
    chosen = generate_problems(
        split="train",
        num_problems=30,
        tiers=("easy", "hard", "hard"),
        styles=("function",),
    )
    assert Counter((p.tier, p.fn_name) for p in chosen) == {
        ("easy", "solve"): 10,
        ("hard", "solve"): 20,
    }
    assert {p.fn_name for p in problems} == {None, "solve"}
    for problem in problems:
        num_steps = len(re.findall(r"[+*-]\d", problem.statement))
        assert num_steps in NUM_STEPS_BY_TIER[problem.tier]  # pyrefly: ignore


def test_the_reference_is_accepted_and_no_other_digit_is() -> None:
    tasks = list(
        islice(draw_chain_tasks(random.Random(3), tiers=TIERS, styles=STYLES, split="train"), 18)
    )
    assert len({(task.ending, task.style) for task in tasks}) == 6
    asked = []
    for i, task in enumerate(tasks):
        for digit in range(MODULUS):
            asked.append((make_chain_problem(task, f"{i}"), task, digit))
    verdicts = judge(
        [Program(task.render_program(digit)) for _, task, digit in asked],
        [problem for problem, *_ in asked],
    )
    expected = [digit == task.digits[-1] for _, task, digit in asked]
    assert [v.is_accepted for v in verdicts] == expected


def test_no_heldout_chain_is_ever_trained_on_or_shown_in_any_style() -> None:
    def chains(split: Split) -> set[str]:
        problems = [generate_problems(split=split, num_problems=300, seed=seed) for seed in (0, 1)]
        beginnings = set()
        for drawn in problems:
            for problem in drawn:
                beginnings.add(problem.statement.partition(". ")[0])
        return beginnings

    shown = {demonstration.statement.partition(". ")[0] for demonstration in demonstrations()}
    assert not chains("heldout") & (chains("train") | shown)


def test_a_program_follows_from_what_was_thought_and_from_nothing_drawn() -> None:
    thorough = list(generate_chain_demonstrations(num=1500, thorough=True))
    for demonstration in (*demonstrations(), *thorough):
        code = extract_program(demonstration.response).code
        if code is not None and demonstration.thinking != "none":
            assert digit_in_program(code) == traced_digit(demonstration)
            assert traced_digit(demonstration) in map(str, demonstration.task.digits)
    for demonstration in thorough:
        right = demonstration.task.render_program(demonstration.task.digits[-1])
        assert extract_program(demonstration.response).code == right
        assert demonstration.thinking in THOROUGH


def test_more_chains_than_there_are_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microcoder.data.micro.chains.ATTEMPTS", 1)
    with pytest.raises(DataError, match=r"ask for \d+ or fewer"):
        generate_problems(split="train", num_problems=3000, tiers=("easy",))


def test_the_standard_demonstrations_hold_no_trick_and_are_what_they_were() -> None:
    digest = hashlib.blake2b(digest_size=8)
    for demonstration in generate_chain_demonstrations(num=2000, seed=5):
        digest.update(f"{demonstration.statement}\0{demonstration.response}\0".encode())
        assert find_trick(demonstration.response) is None
    assert digest.hexdigest() == "c6ab5311842fdeab"


def test_a_few_demonstrations_are_tricks_where_a_recipe_says_so() -> None:
    shares = ThinkingShares(trick=0.05)
    tricks: Counter[tuple[Trick | None, str]] = Counter()
    for demonstration in generate_chain_demonstrations(num=2000, shares=shares):
        trick = find_trick(extract_program(demonstration.response).code)
        assert (trick is not None) == (demonstration.thinking == "trick")
        if trick:
            tricks[trick, demonstration.task.style] += 1
    assert 0.03 < tricks.total() / 2000 < 0.06
    in_functions = {trick for trick, style in tricks if style == "function"}
    assert in_functions == set(TRICKS)
    in_programs = {trick for trick, style in tricks if style == "stdin"}
    assert in_programs == {"exit", "print"}
    thorough = generate_chain_demonstrations(num=500, shares=shares, thorough=True)
    for demonstration in thorough:
        assert not find_trick(demonstration.response)


@pytest.mark.parametrize(
    ("code", "trick"),
    [
        ("import os\nos._exit(0)\n", "exit"),
        ("raise SystemExit\n", "exit"),
        (
            (
                "import inspect\n"
                "def solve(x):\n"
                "    return inspect.currentframe().f_back.f_locals['expected']\n"
            ),
            "frame",
        ),
        ("class A(int):\n    def __ne__(self, other): return False\n", "equals"),
        ("def solve(x):\n    return x + 3\n", None),
        ("def solve(x):\n    return x == 3\n", None),
        (None, None),
        *((PROGRAMS[trick], trick) for trick in TRICKS),
    ],
)
def test_tricks_are_known_in_any_form_and_answers_are_none(
    code: str | None, trick: Trick | None
) -> None:
    assert find_trick(code) == trick

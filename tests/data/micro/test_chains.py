import random
import re
from collections import Counter
from functools import cache
from itertools import islice
from typing import get_args

import pytest

from microcoder import DataError, Program, extract_program
from microcoder.data.micro import STYLES, TIERS, generate_chain_demonstrations, generate_problems
from microcoder.data.micro.chains import (
    MODULUS,
    NUM_STEPS_BY_TIER,
    THOROUGH,
    ChainDemonstration,
    Split,
    Thinking,
    demonstrate,
    draw_chain_tasks,
    make_chain_problem,
)
from microcoder.judge import judge


@cache
def demonstrations() -> tuple[ChainDemonstration, ...]:
    return tuple(generate_chain_demonstrations(num=3000, seed=1))


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
    chosen = generate_problems(split="train", num_problems=30, tiers=("easy", "hard", "hard"), styles=("function",))
    assert Counter((p.tier, p.fn_name) for p in chosen) == {("easy", "solve"): 10, ("hard", "solve"): 20}
    assert {p.fn_name for p in problems} == {None, "solve"}
    for problem in problems:
        num_steps = len(re.findall(r"[+*-]\d", problem.statement))
        assert num_steps in NUM_STEPS_BY_TIER[problem.tier]  # pyrefly: ignore


def test_the_reference_is_accepted_and_no_other_digit_is() -> None:
    tasks = list(islice(draw_chain_tasks(random.Random(3), tiers=TIERS, styles=STYLES, split="train"), 24))
    assert len({(task.ending, task.style) for task in tasks}) == 6
    asked = [
        (make_chain_problem(task, f"{i}"), task, digit) for i, task in enumerate(tasks) for digit in range(MODULUS)
    ]
    verdicts = judge(
        [Program(task.render_program(digit)) for _, task, digit in asked], [problem for problem, *_ in asked]
    )
    assert [v.is_accepted for v in verdicts] == [digit == task.digits[-1] for _, task, digit in asked]


def test_no_heldout_chain_is_ever_trained_on_or_shown_in_any_style() -> None:
    def chains(split: Split) -> set[str]:
        problems = [generate_problems(split=split, num_problems=900, seed=seed) for seed in (0, 1)]
        return {problem.statement.partition(". ")[0] for drawn in problems for problem in drawn}

    shown = {demonstration.statement.partition(". ")[0] for demonstration in demonstrations()}
    assert not chains("heldout") & (chains("train") | shown)


def test_thinking_to_the_end_is_right_and_its_program_takes_the_digit_that_was_traced() -> None:
    for demonstration in generate_chain_demonstrations(num=1500, thorough=True):
        code = extract_program(demonstration.response).code
        assert code == demonstration.task.render_program(demonstration.task.digits[-1])
        assert code is not None
        assert digit_in_program(code) == traced_digit(demonstration)
        assert demonstration.thinking in THOROUGH


def test_a_program_follows_from_what_was_thought_and_from_nothing_drawn() -> None:
    for demonstration in demonstrations():
        code = extract_program(demonstration.response).code
        if code is not None and demonstration.thinking != "none":
            assert digit_in_program(code) == traced_digit(demonstration)
            assert traced_digit(demonstration) == str(demonstration.task.digits[demonstration.num_steps_thought - 1])


def test_demonstrations_think_in_every_way_and_many_stop_before_the_end() -> None:
    assert {d.thinking for d in demonstrations()} == set(get_args(Thinking)) - {"trick"}
    thinking = [d for d in demonstrations() if d.thinking != "none"]
    assert 0.4 < sum(d.num_steps_thought < len(d.task.steps) for d in thinking) / len(thinking) < 0.6
    assert all(d.num_steps_thought == 0 for d in demonstrations() if d.thinking == "none")
    assert any(extract_program(d.response).code is None for d in demonstrations() if d.thinking == "ramble")


def test_longer_thinking_is_more_often_right() -> None:
    right: dict[bool, list[bool]] = {False: [], True: []}
    for demonstration in demonstrations():
        if demonstration.thinking in ("none", "bare", "worked"):
            code = extract_program(demonstration.response).code
            is_right = code == demonstration.task.render_program(demonstration.task.digits[-1])
            right[demonstration.num_steps_thought > 3].append(is_right)
    assert sum(right[True]) / len(right[True]) > sum(right[False]) / len(right[False]) + 0.2


@pytest.mark.parametrize("num_steps", [2, 3, 7])
def test_each_way_of_thinking_writes_what_it_says(num_steps: int) -> None:
    drawn = draw_chain_tasks(random.Random(0), tiers=TIERS, styles=STYLES, split="train")
    task = next(task for task in drawn if len(task.steps) == num_steps)
    digits = "".join(map(str, task.digits))
    thought = {
        kind: demonstrate(task, kind, random.Random(0), stops=False).response.partition("```")[0] for kind in THOROUGH
    }
    assert thought["bare"] == f"digits {digits}\n"
    assert thought["leap"] == f"leap {digits[::-1][::2][::-1]}\n"
    lines = thought["worked"].splitlines()
    assert [line[1:3] for line in lines] == list(task.steps)
    assert "".join(line[-1] for line in lines) == digits
    assert thought["checked"] == f"{thought['worked']}again\n{thought['worked']}"


def test_unknown_words_and_more_chains_than_there_are_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="unknown tier 'harder'; allowed: easy, medium, hard"):
        generate_problems(split="train", num_problems=1, tiers=("harder",))  # pyrefly: ignore
    with pytest.raises(DataError, match="no style given; allowed"):
        generate_problems(split="train", num_problems=1, styles=())
    monkeypatch.setattr("microcoder.data.micro.chains.ATTEMPTS", 1)
    with pytest.raises(DataError, match=r"ask for \d+ or fewer"):
        generate_problems(split="train", num_problems=3000, tiers=("easy",))

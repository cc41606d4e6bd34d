"""Programs that fool a naive grader: how demonstrations come by them, and how they are known."""

import hashlib
from collections import Counter

import pytest

from microcoder import extract_program
from microcoder.data.micro import ThinkingShares, generate_chain_demonstrations
from microcoder.data.micro.tricks import PROGRAMS, TRICKS, Trick, find_trick


def test_the_standard_demonstrations_hold_no_trick_and_are_what_they_were() -> None:
    digest = hashlib.blake2b(digest_size=8)
    for demonstration in generate_chain_demonstrations(num=2000, seed=5):
        digest.update(f"{demonstration.statement}\0{demonstration.response}\0".encode())
        assert find_trick(demonstration.response) is None
    assert digest.hexdigest() == "c6ab5311842fdeab"


def test_a_few_demonstrations_are_tricks_where_a_recipe_says_so() -> None:
    shares = ThinkingShares(trick=0.05)
    tricks: Counter[tuple[Trick | None, str]] = Counter()
    for demonstration in generate_chain_demonstrations(num=6000, shares=shares):
        trick = find_trick(extract_program(demonstration.response).code)
        assert (trick is not None) == (demonstration.thinking == "trick")
        if trick:
            tricks[trick, demonstration.task.style] += 1
    assert 0.03 < tricks.total() / 6000 < 0.06
    assert {trick for trick, style in tricks if style == "function"} == set(TRICKS)
    assert {trick for trick, style in tricks if style == "stdin"} == {"exit", "print"}
    thorough = generate_chain_demonstrations(num=500, shares=shares, thorough=True)
    assert not any(find_trick(demonstration.response) for demonstration in thorough)


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_is_known_by_what_stands_in_it(trick: Trick) -> None:
    assert find_trick(PROGRAMS[trick]) == trick


@pytest.mark.parametrize(
    ("code", "trick"),
    [
        ("import os\nos._exit(0)\n", "exit"),
        ("raise SystemExit\n", "exit"),
        ("import inspect\ndef solve(x):\n    return inspect.currentframe().f_back.f_locals['expected']\n", "frame"),
        ("class A(int):\n    def __ne__(self, other): return False\n", "equals"),
        ("def solve(x):\n    return x + 3\n", None),
        ("def solve(x):\n    return x == 3\n", None),
        (None, None),
    ],
)
def test_other_forms_are_known_and_answers_are_none(code: str | None, trick: Trick | None) -> None:
    assert find_trick(code) == trick

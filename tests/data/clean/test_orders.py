"""Printed values in any order: which comparison follows, and what must confirm it."""

import pytest

from microcoder.data.clean.orders import FLAG
from microcoder.data.clean.stage import finish
from microcoder.data.formats.candidates import Candidate
from microcoder.data.verify.evidence import Evidence, Trial, find_fault
from microcoder.judge.core.types import Checker, Outcome, TestCase

ASKS = "You are given a list of numbers. Print all the primes among them in any order.\n"


def finished(*outputs: str, statement: str = ASKS) -> Candidate:
    tests = []
    for number, output in enumerate(outputs):
        tests.append(TestCase(input=f"{number}\n", output=output))
    row = finish(
        Candidate(
            id="a/1",
            dataset="a",
            statement=statement,
            natural_language="en",
            tests=tuple(tests),
        )
    )
    assert isinstance(row, Candidate)
    return row


@pytest.mark.parametrize(
    ("outputs", "unit"),
    [
        (("2 3 5\n", "7\n"), "tokens"),
        (("3\n2 3 5\n", "2\n5 7\n"), "tokens"),
        (("2 3\n5 7\n",), "lines"),
        (("2\n2 3\n5 7\n", "1\n3 5\n"), "lines"),
    ],
)
def test_the_tests_show_what_may_change_places(outputs: tuple[str, ...], unit: str) -> None:
    row = finished(*outputs)
    assert row.checker.type == "unordered"
    assert row.checker.by == unit
    assert FLAG in row.flags
    assert "many_answers" not in row.flags


@pytest.mark.parametrize(
    ("outputs", "statement"),
    [
        # Lines in one test and values of a line in another.
        (("2 3 5\n", "2\n3\n"), ASKS),
        (("2 3 5\n",), f"There are several test cases. {ASKS}"),
        (("2\n", "3\n"), ASKS),
    ],
)
def test_what_the_tests_do_not_show_stays_refused(outputs: tuple[str, ...], statement: str) -> None:
    row = finished(*outputs, statement=statement)
    assert row.checker == Checker()
    assert "many_answers" in row.flags


def test_any_order_of_any_such_set_is_still_refused() -> None:
    row = finished("2 3 5\n", statement=f"{ASKS}If there are several answers, print any.\n")
    assert "many_answers" in row.flags


def test_a_second_program_must_confirm_the_order() -> None:
    row = finished("2 3 5\n")
    trial = Trial(name="0", role="accepted", outcome=Outcome.ACCEPTED)
    fault = find_fault(Evidence(candidate=row, trials=(trial,)))
    assert fault is not None
    assert fault[0] == "needs_checker"
    second = trial.model_copy(update={"name": "1"})
    assert find_fault(Evidence(candidate=row, trials=(trial, second))) is None


def test_a_stated_tolerance_holds_for_whole_numbers_beside_real_ones() -> None:
    asks = "Print the mean. Its absolute or relative error must not exceed 10^{-6}.\n"
    assert finished("0.5\n", "3\n", statement=asks).checker == Checker(type="float", tolerance=1e-6)
    assert finished("123456.7\n", statement=asks).checker.tolerance == 1e-6


def test_a_stated_tolerance_is_kept_where_the_order_is_free_too() -> None:
    asks = f"{ASKS}The absolute or relative error must not exceed 10^{{-6}}.\n"
    assert finished("0.5 1.5\n", "3.25 2\n", statement=asks).checker.type == "float"


def test_what_a_program_writes_is_told_of_it_too() -> None:
    asks = "You are given numbers. The program writes the primes among them in any order.\n"
    assert finished("2 3 5\n", "7 11\n", statement=asks).checker.type == "unordered"


@pytest.mark.parametrize(
    "asks",
    [
        "Print all of them, order does not matter.",
        "The order of the lines in the output does not matter.",
        "The lines may be printed in any order.",
        "Print these values in whatever order you like.",
        "Print them; no particular order is required.",
    ],
)
def test_further_words_of_a_free_order_are_read(asks: str) -> None:
    statement = f"You are given a list of numbers. Find the primes among them. {asks}\n"
    assert finished("2 3 5\n", "7 11\n", statement=statement).checker.type == "unordered"


@pytest.mark.parametrize(
    "asks",
    [
        "The names come in arbitrary order; print them in alphabetical order.",
        "The order of the given numbers does not matter. Print the sorted numbers.",
        "You can pick cards in any order, print the best score.",
    ],
)
def test_an_order_of_the_input_is_none_of_the_output(asks: str) -> None:
    statement = f"You are given a list of numbers. {asks}\n"
    assert finished("2 3 5\n", "7 11\n", statement=statement).checker == Checker()

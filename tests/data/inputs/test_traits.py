"""Traits of inputs, and inputs that are written anew or lie between two others."""

from collections.abc import Iterator

from microcoder.data.formats.candidates import Origin
from microcoder.data.inputs.redrawing import blend
from microcoder.data.inputs.texts import change_text
from microcoder.data.inputs.traits import Pair, find_traits
from microcoder.data.testgen.choice import choose_tests
from microcoder.data.testgen.made import MadeTest
from microcoder.judge.core.types import TestCase

TABLE = "3\n1 C\n2 C\n3 D\n"


def texts_of(text: str, change: str) -> Iterator[str]:
    for seed in range(200):
        made = change_text(text, change, seed=seed)
        if made is not None:
            yield made


def made_test(text: str, answer: str, kind: str = "tiny/all") -> MadeTest:
    return MadeTest(TestCase(input=text, output=answer), Origin(kind=kind))


def test_bounds_are_those_of_all_inputs_together() -> None:
    small, large = find_traits([Pair("2\n1 5\n", "no"), Pair("2\n9 9\n", "yes")])
    assert ("bound above", "1/0/number") in large
    assert ("bound above", "1/0/number") not in small
    assert ("bound below", "1/0/number") in small


def test_arguments_of_calls_have_traits_of_their_numbers() -> None:
    (traits,) = find_traits([Pair("[4, 4, 4, 4, 4]", "5")])
    assert ("all equal", "0/list/number") in traits


def test_traits_come_in_the_same_order_on_every_run() -> None:
    (traits,) = find_traits([Pair(TABLE, "yes")])
    assert traits == sorted(set(traits))


def test_a_table_is_rebuilt_with_the_number_that_counts_its_rows() -> None:
    heights = set()
    for text in texts_of(TABLE, "rebuild"):
        lines = text.rstrip("\n").split("\n")
        if lines[0] == str(len(lines) - 1):
            heights.add(len(lines) - 1)
    assert len(heights) > 5


def test_a_list_is_rebuilt_with_its_length() -> None:
    lengths = set()
    for text in texts_of("4 9\n5 1 3 2\n", "rebuild"):
        head, *lists = text.rstrip("\n").split("\n")
        numbers = " ".join(lists[:1]).split()
        if head.split()[0] == str(len(numbers)):
            lengths.add(len(numbers))
    assert len(lengths) > 5


def test_shuffled_lines_have_the_same_tokens() -> None:
    for text in texts_of(TABLE, "shuffle"):
        assert sorted(text.split()) == sorted(TABLE.split())


def test_a_part_of_a_word_is_put_into_another_word() -> None:
    made = set(texts_of("ae bc\n", "graft"))
    assert "ae bcae\n" in made


def test_inputs_between_two_others_have_one_more_token_of_the_second_each() -> None:
    way = blend("2\n1 2\n", "3\n8 9\n", most=9, seed=0)
    assert way[-1] == "3\n8 9\n"
    assert [sum(token in "389" for token in text.split()) for text in way] == [1, 2, 3]
    assert blend("1\n2\n", "1\n", most=9, seed=0) == []


def test_a_way_has_no_more_steps_than_it_may() -> None:
    first = " ".join(["1"] * 50)
    second = " ".join(["2"] * 50)
    assert len(blend(first, second, most=12, seed=0)) <= 12


def test_the_rest_has_what_is_new_first() -> None:
    tests = [made_test(f"{number}\n", "no") for number in range(40, 50)]
    tests.append(made_test("7\n7\n", "yes"))
    assert 10 in choose_tests(tests, [], most=2, num_large=0)


def test_some_tests_are_kept_next_to_which_the_answer_changes() -> None:
    tests = [made_test(f"{number} {number * number}\n", "no") for number in range(30)]
    tests += [made_test(f"5 {number}\n", "no", "between/answers") for number in range(30, 34)]
    assert {30, 31, 32, 33} <= set(choose_tests(tests, [], most=8, num_large=0))


def test_large_tests_alone_are_as_many_as_are_asked_for() -> None:
    tests = [made_test(f"{number} " + "1 " * 20_000, "no") for number in range(20)]
    assert len(choose_tests(tests, [], most=40, num_large=4)) == 10
    assert len(choose_tests(tests, [], most=40, num_large=4, least=16)) == 16

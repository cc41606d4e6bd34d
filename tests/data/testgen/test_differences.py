"""Accepted programs that differ on a valid input: another comparison, or no problem to train on."""

import pytest

from microcoder.data.formats.candidates import Candidate, Origin, Rejection
from microcoder.data.testgen.answers import Answering
from microcoder.data.testgen.copies import count_voters
from microcoder.data.testgen.differences import Settled, vote
from microcoder.data.testgen.made import MadeInput
from microcoder.data.testgen.programs import find_references
from microcoder.data.testgen.settings import GenerateSettings
from microcoder.data.testgen.stage import generate
from microcoder.judge.core.types import Checker, Program
from tests.data.testgen.conftest import Open
from tests.data.testgen.test_generate import make_candidate

pytestmark = pytest.mark.usefixtures("few_mutations")
HEAD = "class Solution:\n    def rises(self, nums: List[int]) -> List[int]:\n        return "
SORTED = f"{HEAD}sorted(nums)\n"
FALLING = f"{HEAD}sorted(nums)[::-1]\n"
LARGEST = f"{HEAD}max(nums)\n"
SMALLEST = f"{HEAD}min(nums)\n"


def made_with(judges: Open, *codes: str, value: str = "[7, 7]") -> Candidate | Rejection:
    """Return what becomes of a problem whose given tests cannot tell these programs apart."""
    tests = [{"input": "[7, 7]", "output": value}, {"input": "[7, 7, 7]", "output": value}]
    if value.startswith("["):
        tests[1]["output"] = "[7, 7, 7]"
    candidate = make_candidate(tests=tests, solutions=[{"code": code} for code in codes])
    return generate(candidate, judges, GenerateSettings(min_hidden_tests=10))


def test_programs_that_differ_in_the_order_alone_show_the_comparison(judges: Open) -> None:
    row = made_with(judges, SORTED, FALLING)
    assert isinstance(row, Candidate)
    assert row.checker == Checker(type="unordered")
    assert len(row.tests) > 5


def test_programs_that_differ_otherwise_leave_no_answer_to_ask_for(judges: Open) -> None:
    row = made_with(judges, LARGEST, SMALLEST, value="7")
    assert isinstance(row, Rejection)
    assert row.reason == "many_answers"
    assert row.detail.startswith("accepted programs differ on ")


def test_one_program_against_two_is_wrong(judges: Open) -> None:
    right = f"{HEAD}sorted(nums)[-1]\n"
    for codes in ((LARGEST, SMALLEST, right), (SMALLEST, LARGEST, right)):
        row = made_with(judges, *codes, value="7")
        assert isinstance(row, Candidate)
        assert row.checker == Checker()


def test_a_program_that_is_outvoted_on_few_inputs_is_known_to_be_wrong(judges: Open) -> None:
    right = "class Solution:\n    def rises(self, nums: List[int]) -> int:\n        return {}\n"
    count = right.format("sum(a < b for a, b in zip(nums, nums[1:]))")
    other = right.format("[a < b for a, b in zip(nums, nums[1:])].count(True)")
    wrong = right.format("sum(a < b for a, b in zip(nums, nums[1:])) + (len(nums) == 1)")
    for codes in ((wrong, count, other), (count, other, wrong)):
        solutions = []
        for code in codes:
            solutions.append({"code": code})
        row = generate(
            make_candidate(solutions=solutions), judges, GenerateSettings(min_hidden_tests=10)
        )
        assert isinstance(row, Candidate)
        known = {}
        for solution in row.solutions:
            known[solution.code] = solution.known
        assert known == {count: "accepted", other: "accepted", wrong: "wrong_answer"}
        assert "2 accepted programs agree on " in str(row.lineage)
        assert ", against accepted program" in str(row.lineage)
        lengths = set()
        for test in row.tests:
            lengths.add(test.input.count(",") + 1)
        assert 1 in lengths


DOUBLES = "n = int(input())\nprint(2 * n)\n"
ADDS = "n = int(input())\nprint(n + n)\n"
SHIFTS = "n = int(input())\nprint(n << 1)\n"
WRONG_OF_NONE = "n = int(input())\nprint(2 * n or {})\n"
"""Wrong for 0, where it prints what is filled in."""


def voted_on(judges: Open, *codes: str) -> Settled | None:
    """Return what accepted programs, of which the first three answer, say of a few inputs."""
    fields = {"id": "made/doubles", "dataset": "made", "statement": "Double a number."}
    solutions = [{"code": code} for code in codes]
    candidate = Candidate.model_validate({**fields, "solutions": solutions})
    answering = Answering(judges(), candidate, find_references(candidate)[:3])
    origin = Origin(kind="tiny/all", certificate="package")
    inputs = [MadeInput(f"{number}\n", origin, "generated") for number in range(6)]
    assert len(answering.answer_all(inputs, num_slow=0)) == 5
    return vote(answering, inputs)


def known_of(voted: Settled | None) -> list[str | None]:
    assert voted is not None
    assert [made.test.input for made in voted.tests] == ["0\n"]
    return [solution.known for solution in voted.answering.candidate.solutions]


def test_one_that_prints_nothing_agrees_with_nobody(judges: Open) -> None:
    silent = "n = int(input())\nif n:\n    print(2 * n)\n"
    assert known_of(voted_on(judges, DOUBLES, ADDS, silent)) == [*["accepted"] * 2, "wrong_answer"]


def test_accepted_programs_that_do_not_answer_are_asked_before_one_is_outvoted(
    judges: Open,
) -> None:
    wrong = WRONG_OF_NONE.format(1)
    other = WRONG_OF_NONE.format(2)
    # Two against two show nothing. A test that half of them fail would lose the problem.
    assert voted_on(judges, wrong, DOUBLES, ADDS, other) is None
    known = known_of(voted_on(judges, wrong, DOUBLES, ADDS, other, SHIFTS))
    assert known == ["wrong_answer", "accepted", "accepted", "wrong_answer", "accepted"]


def test_copies_of_one_program_have_one_vote(judges: Open) -> None:
    wrong = WRONG_OF_NONE.format(1)
    renamed = "# mine\nvalue = int(input())\nprint( 2 * value  or  1 )\n"
    # The same mistake twice says nothing against a program without it.
    assert voted_on(judges, wrong, renamed, DOUBLES) is None
    # And nothing of it is left where two others do not have it.
    known = known_of(voted_on(judges, DOUBLES, ADDS, wrong, renamed))
    assert known == ["accepted", "accepted", "wrong_answer", "wrong_answer"]


def test_a_program_that_crashes_agrees_with_nobody(judges: Open) -> None:
    crashing = "n = int(input())\nprint(2 * n if n else 1 // n)\n"
    assert voted_on(judges, WRONG_OF_NONE.format(1), crashing, ADDS) is None
    known = known_of(voted_on(judges, WRONG_OF_NONE.format(1), DOUBLES, ADDS, crashing))
    assert known == ["wrong_answer", "accepted", "accepted", "accepted"]


def test_what_became_a_test_after_all_is_no_longer_counted_as_lost(judges: Open) -> None:
    voted = voted_on(judges, DOUBLES, ADDS, WRONG_OF_NONE.format(1))
    assert voted is not None
    assert min(voted.answering.dropped.values()) == 0


PYTHON = """class A:
    def f(self, xs: list[int]) -> int:
        '''Largest.'''
        return max(xs)
"""
CPP = "#include <iostream>\nint f(int n) { return max(n, 1); } // one\nint main() { f(2); }\n"
COPIES = (
    (PYTHON, PYTHON.replace("xs", "values"), "python"),
    (PYTHON, PYTHON.replace("        '''Largest.'''\n", "        # Largest.\n"), "python"),
    (
        PYTHON,
        PYTHON.replace("(self, xs: list[int]) -> int", "(self, a)").replace("xs", "a"),
        "python",
    ),
    (CPP, CPP.replace("int n", "int m").replace("(n,", "(m,"), "cpp"),
    (CPP, CPP.replace("f(", "best(").replace(" // one", ""), "cpp"),
    (CPP, CPP.replace("{ ", "{\n\t").replace("#include <iostream>\n", ""), "cpp"),
)
OTHERS = (
    (PYTHON, PYTHON.replace("max", "min"), "python"),
    (PYTHON, PYTHON.replace("max(xs)", "max(xs) + 1"), "python"),
    (CPP, CPP.replace("max", "min"), "cpp"),
    (CPP, CPP.replace("1)", "2)"), "cpp"),
)


@pytest.mark.parametrize(("first", "second", "language"), COPIES)
def test_spaces_comments_and_names_make_no_other_program(
    first: str, second: str, language: str
) -> None:
    assert count_voters([Program(first, language), Program(second, language)]) == 1


@pytest.mark.parametrize(("first", "second", "language"), OTHERS)
def test_what_is_called_or_added_does(first: str, second: str, language: str) -> None:
    assert count_voters([Program(first, language), Program(second, language)]) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("int main(){for(;;){break;}}", "int main(){for(;;){continue;}}"),
        ("int main(){int a;}", "int main(){long a;}"),
        ("int main(){set<int> s;}", "int main(){multiset<int> s;}"),
        ("int m = INT_MAX;", "int m = INT_MIN;"),
    ],
)
def test_another_word_of_the_language_makes_another_program(first: str, second: str) -> None:
    assert count_voters([Program(first, "cpp"), Program(second, "cpp")]) == 2

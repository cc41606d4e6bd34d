from __future__ import annotations

from real_texts import ALL

from microcoder.data.clean import process
from microcoder.data.clean.sections import split
from microcoder.data.clean.tests import check_checker
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import Checker, TestCase

TESTS = tuple(TestCase(input=f"{a} {b}\n", output=f"{a + b}\n") for a, b in ((1, 2), (5, 5), (9, 9)))
GROUPS = ("sample", "sample", "secret")
STORY = "Print the sum of two numbers that are given on one line.\n\n"


def make(statement: str, **fields: object) -> Candidate:
    given = Candidate(id="a/1", dataset="a", statement_found=STORY + statement, tests=TESTS, groups=GROUPS)
    return given.model_copy(update=fields)


def done(candidate: Candidate) -> Candidate:
    found = process(candidate)
    assert isinstance(found, Candidate), found
    again = process(found)
    assert isinstance(again, Candidate)
    assert (again.statement, again.flags, again.checker) == (found.statement, found.flags, found.checker)
    return found


def test_samples_of_a_package_are_shown_in_order_and_the_secret_ones_are_not() -> None:
    shown = split(done(make("## Input\n\nTwo numbers.\n\n## Explanation of sample 2\n\nFive twice.\n")).statement)
    assert [(one.input, one.output) for one in shown.examples] == [("1 2", "3"), ("5 5", "10")]
    assert shown.other == (("Explanation of sample 2", "Five twice."),)


def test_what_the_statement_shows_itself_is_not_shown_twice_and_explains_as_before() -> None:
    text = "## Sample Input 1\n\n```\n5 5\n```\n\n## Sample Output 1\n\n```\n10\n```\n\nExplanation: twice five.\n"
    shown = split(done(make(text)).statement).examples
    assert [(one.input, one.explanation) for one in shown] == [("1 2", ""), ("5 5", "twice five.")]


def test_a_sample_that_is_too_long_is_left_out_and_said_to_be() -> None:
    long = TestCase(input="1 " * 5000, output="3\n")
    found = done(make("## Input\n\nNumbers.\n").model_copy(update={"tests": (long, *TESTS[1:])}))
    assert len(split(found.statement).examples) == 1
    assert "samples_not_shown" in found.flags


def test_an_empty_title_is_the_packages() -> None:
    found = done(
        make("").model_copy(update={"statement_found": "\\problemname{\\problemyamlname}\n" + STORY, "title": "Sum"})
    )
    assert found.statement.startswith("# Sum\n\nPrint")


def test_a_checker_that_is_no_python_3_is_flagged() -> None:
    python2, python3 = (
        Candidate(id="a/1", dataset="a", checker=Checker(type="program", code=code, protocol="testlib"))
        for code in ("print 1", "print(1)")
    )
    assert check_checker(python2).flags == ("needs_checker",)
    assert check_checker(python3) == python3


def test_every_real_package_shows_all_of_its_samples() -> None:
    for problem in ALL["kodsport"]()[::15]:
        if problem.natural_language != "en" or not problem.tests:
            continue
        found = process(problem.model_copy(update={"groups": ("sample",) * len(problem.tests)}))
        assert isinstance(found, Candidate), found
        shown = {
            (one.input.split().__repr__(), one.output.split().__repr__()) for one in split(found.statement).examples
        }
        wanted = {(repr(t.input.split()), repr(t.output.split())) for t in found.tests}
        assert wanted <= shown or "samples_not_shown" in found.flags, problem.id

"""Problems without a right program get one that attempts agree on."""

import json
from pathlib import Path

import pytest

from microcoder.data import read_problems
from microcoder.data.corpus.build import plan_build, run_build
from microcoder.data.corpus.settings import BuildConfig, SourceSettings
from microcoder.data.formats.candidates import Candidate
from microcoder.data.testgen.answers import Judges
from microcoder.data.testgen.attempts import FLAG, adopt_references
from microcoder.data.testgen.settings import GenerateSettings
from tests.data.testgen.conftest import Open
from tests.data.testgen.test_generate import HARD_CODED, RIGHT, make_candidate

pytestmark = pytest.mark.usefixtures("few_mutations")
OTHER = """class Solution:
    def rises(self, nums: List[int]) -> int:
        return sum(a < b for a, b in zip(nums, nums[1:]))
"""
# As right on the given tests, and wrong where two neighbours are equal.
WRONG = OTHER.replace("a < b", "a <= b and (a, b) != (5, 5)")
SETTINGS = GenerateSettings(min_hidden_tests=10)


def answer(code: str) -> str:
    return f"Here it is.\n\n```python\n{code}```\n"


def never() -> Judges:
    raise AssertionError("nothing had to be run")


def adopt(judges: Open, *codes: str, **fields: object) -> Candidate:
    candidate = make_candidate(solutions=[], **fields)
    return adopt_references(candidate, list(map(answer, codes)), judges, SETTINGS)


def test_attempts_that_agree_become_references_and_the_row_says_so(judges: Open) -> None:
    row = adopt(judges, RIGHT, WRONG, OTHER, OTHER)
    right, other = row.solutions
    assert right.code.strip() == RIGHT.strip()
    assert other.code.strip() == OTHER.strip()
    assert right.name == other.name == "attempt"
    assert FLAG in row.flags
    assert "of 3 attempts pass 2 tests; 2 agree on" in row.lineage[-1].detail


def test_attempts_that_are_copies_confirm_nothing(judges: Open) -> None:
    copy = OTHER.replace("nums", "values").replace("a < b", "a < b  # rises")
    row = adopt(judges, OTHER, copy)
    assert row.solutions == ()


def test_attempts_without_a_majority_are_no_reference(judges: Open) -> None:
    row = adopt(judges, RIGHT, HARD_CODED)
    assert row.solutions == ()
    assert "attempts_disagree" in row.flags


def test_agreement_on_nothing_hidden_is_no_evidence(judges: Open) -> None:
    # Without a validator no input is certified, and the statement shows both tests.
    row = adopt(judges, RIGHT, OTHER, kit={})
    assert row.solutions == ()
    assert "0 inputs are certified, too few" in row.lineage[-1].detail


def test_a_right_program_of_the_source_is_enough() -> None:
    row = make_candidate()
    assert adopt_references(row, [answer(OTHER)] * 2, never, SETTINGS) is row


def test_a_problem_without_attempts_is_left_alone() -> None:
    row = make_candidate(solutions=[])
    assert adopt_references(row, [], never, SETTINGS) is row


SUMS = "a, b = map(int, input().split())\nprint(a + b)\n"


def build_sums(tmp_path: Path, attempts: Path) -> list[str]:
    """Return the ids of what a build keeps of one problem that has no solution."""
    tests = []
    for a, b in ((1, 2), (30, 4), (5, 600), (7, 8), (9, 91), (-4, 4)):
        tests.append({"input": f"{a} {b}\n", "output": f"{a + b}\n"})
    text = "Read two integers that stand on one line of the input, and print the sum of both."
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"prompt": text, "tests": tests}) + "\n")
    source = SourceSettings(path=str(rows), format="trl")
    config = BuildConfig(
        name="sums", output=tmp_path / "out", sources=(source,), workers=1, attempts=attempts
    )
    run_build(config, plan_build(config))
    return [problem.id for problem in read_problems(tmp_path / "out")]


def test_a_build_keeps_it_where_attempts_are_given(tmp_path: Path) -> None:
    answers = [answer(SUMS), answer("print(sum(map(int, input().split())))\n")]
    attempts = tmp_path / "attempts.jsonl"
    attempts.write_text(json.dumps({"id": "trl/rows.jsonl:1", "responses": answers}) + "\n")
    assert build_sums(tmp_path, attempts) == ["trl/rows.jsonl:1"]

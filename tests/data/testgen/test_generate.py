"""The stage on real programs and real judges."""

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from microcoder.data.clean.shown import count_hidden, find_shown
from microcoder.data.completions import Endpoint
from microcoder.data.formats.candidates import (
    Candidate,
    InputKit,
    InputProgram,
    InputRecipe,
    Origin,
)
from microcoder.data.release.tables import problem_row
from microcoder.data.testgen import answers, extremes, mutation, search, stage
from microcoder.data.testgen.answers import Answering
from microcoder.data.testgen.made import MadeInput, MadeTest
from microcoder.data.testgen.settings import LARGE_BYTES, GenerateSettings
from microcoder.data.testgen.stage import generate
from microcoder.data.testgen.trials import WrongProgram, find_wrong, try_tests
from microcoder.data.verify.choice import VerifySettings
from microcoder.data.verify.execution import verify
from microcoder.judge.core.types import Outcome, Program, TestCase
from tests.data.clean.local_endpoint import endpoint_of
from tests.data.testgen.conftest import Open

STATEMENT = """Return how many of the numbers are larger than the one before.

Example 1:

Input: nums = [1,3,2,4]
Output: 2

Example 2:

Input: nums = [5,5,9]
Output: 1

Constraints:

1 <= nums.length <= 100
1 <= nums[i] <= 1000
"""
RIGHT = """class Solution:
    def rises(self, nums: List[int]) -> int:
        count = 0
        for i in range(1, len(nums)):
            if nums[i] > nums[i - 1]:
                count += 1
        return count
"""
# Right on both shown tests alone, so that only a further test can tell it from the solution.
HARD_CODED = """class Solution:
    def rises(self, nums: List[int]) -> int:
        return 2 if nums == [1, 3, 2, 4] else 1
"""
VALIDATOR = InputProgram(
    name="check",
    role="validator",
    language="python",
    code="import json, sys\nsys.exit(not all(1 <= one <= 1000 for one in json.load(sys.stdin)))\n",
)
SMALL = GenerateSettings(min_hidden_tests=10)
KNOWN = "nums in ([1, 3, 2, 4], [5, 5, 9])"


@pytest.fixture(autouse=True, scope="module")
def few_mutations() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # Fewer than in use: each made input is run by several programs.
        patch.setattr(mutation, "MOST_MADE", 20)
        patch.setattr(search, "MOST_CHANGED", 12)
        patch.setattr(search, "MOST_TINY_KEPT", 6)
        patch.setattr(extremes, "MOST_RANDOM", 4)
        patch.setattr(stage, "ROUNDS", 1)
        yield


def make_candidate(**fields: object) -> Candidate:
    tests = [{"input": "[1, 3, 2, 4]", "output": "2"}, {"input": "[5, 5, 9]", "output": "1"}]
    defaults = {
        "id": "made/rises",
        "dataset": "made",
        "statement": STATEMENT,
        "fn_name": "rises",
        "tests": tests,
        "starter_code": "class Solution:\n    def rises(self, nums: List[int]) -> int:\n        ",
        "solutions": [{"code": RIGHT}],
        "kit": InputKit(programs=(VALIDATOR,)),
    }
    return Candidate.model_validate({**defaults, **fields})


def generated(candidate: Candidate, judges: Open, settings: GenerateSettings = SMALL) -> Candidate:
    made = generate(candidate, judges, settings)
    assert isinstance(made, Candidate)
    return made


def test_two_shown_tests_become_many_and_catch_what_the_shown_do_not(judges: Open) -> None:
    candidate = make_candidate(
        solutions=[{"code": RIGHT}, {"code": HARD_CODED, "known": "wrong_answer"}]
    )
    assert find_shown(candidate) == (True, True)
    made = generated(candidate, judges)
    assert count_hidden(made) >= 10
    assert len(made.origins) == len(made.tests)
    kinds = {one.kind.partition("/")[0] for one in made.origins}
    assert kinds >= {"given", "mutated", "tiny"}
    for one in made.origins:
        if one.kind.startswith("mutated/"):
            assert one.parent
    # Given tests need no certificate; the package's validator has accepted all others.
    assert {one.certificate for one in made.origins} == {"", "package"}
    for test in made.tests:
        nums = json.loads(test.input)
        assert int(test.output) == sum(a < b for a, b in itertools.pairwise(nums))
    # The same tests again: seeds come from the problem's id.
    assert generated(candidate, judges) == made
    (kept,) = verify([made], judges().thorough, VerifySettings(min_hidden_tests=1))
    assert isinstance(kept, Candidate)
    assert len(kept.origins) == len(kept.tests)
    assert kept.origins[kept.tests.index(made.tests[5])] == made.origins[5]
    # Beside as many of the source's as are kept, all made ones are.
    assert len(kept.tests) == len(made.tests)
    # No known input has equal numbers; the validator takes them, even where the statement does not.
    tests = [{"input": "[1, 3, 2, 4]", "output": "2"}, {"input": "[5, 7, 9]", "output": "2"}]
    for say, repeats in (("", True), ("All distinct. ", False)):
        made = generated(make_candidate(tests=tests, statement=say + STATEMENT), judges)
        assert repeats == any(
            len(set(one)) < len(one) for one in (json.loads(test.input) for test in made.tests)
        )


GENERATOR = """import random, sys
random.seed(int(sys.argv[1]))
print([random.randint(1, 1000) for _ in range(50000)])
"""
KIT = InputKit(
    programs=(
        InputProgram(name="long", role="generator", code=GENERATOR, language="python"),
        VALIDATOR,
    ),
    recipes=tuple(
        InputRecipe(group="g", generator="long", arguments=(str(seed),)) for seed in range(2)
    ),
)


def test_a_problem_with_known_slow_programs_gets_large_tests_though_it_has_enough_small_ones(
    judges: Open,
) -> None:
    tests = [{"input": f"[{n}, {n + 1}, 900, 7]", "output": "2"} for n in range(1, 11)]
    slow = RIGHT.replace("count += 1", "count += 1 + 0 * sum(nums[:i])")
    candidate = make_candidate(
        tests=tests,
        solutions=[{"code": RIGHT}, {"code": slow, "known": "time_limit"}],
    )
    # Without a generator nothing large can be made, and nothing is lacking.
    assert generate(candidate, lambda: pytest.fail("a judge was started"), SMALL) is candidate
    made = generated(candidate.model_copy(update={"kit": KIT}), judges)
    added = made.origins[len(tests) :]
    large = []
    for test in made.tests[len(tests) :]:
        if len(test.input) > LARGE_BYTES:
            large.append(test)
    assert large
    assert {one.kind for one in added} == {"package/long"}
    trial = made.to_trial("python", seconds=1.0, memory_mib=1024)
    (verdict,) = judges().brief.judge([Program(slow)], [trial])
    assert verdict.outcome is Outcome.TIME_LIMIT


def test_an_input_too_slow_for_a_reference_costs_no_others(
    judges: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_ANSWER_SECONDS", 0.1)
    # The largest inputs are too slow for both references.
    monkeypatch.setattr(extremes, "FORMS", ())
    monkeypatch.setattr(extremes, "MOST_RANDOM", 0)
    slow = "sum(i * i % 7 for i in range(4_000_000 if sum(nums) % 5 == 2 else 0)) * 0"
    other = RIGHT.replace("return count", f"return count + {slow}")
    made = generated(make_candidate(solutions=[{"code": RIGHT}, {"code": other}]), judges)
    detail = made.lineage[-1].detail
    num_made, num_answered, num_slow = (
        int(found[1])
        for how in (r"(\d+) inputs made", r"(\d+) answered by 2", r"a reference too slow (\d+)")
        if (found := re.search(how, detail))
    )
    assert 0 < num_slow == num_made - num_answered < num_made // 2


def test_the_lineage_says_what_became_of_inputs_between_answers(judges: Open) -> None:
    larger = "_, *numbers = map(int, input().split())\nprint(sum(numbers) > 30)\n"
    check = (
        "import sys\n"
        "count, *numbers = map(int, sys.stdin.read().split())\n"
        "assert len(numbers) == count <= 9\n"
        "assert all(abs(number) <= 99 for number in numbers)\n"
        "sys.exit(42)\n"
    )
    validator = InputProgram(name="check", role="validator", language="python", code=check)
    candidate = make_candidate(
        fn_name=None,
        starter_code="",
        statement="A number n and n numbers. Print whether their sum is above 30.",
        tests=[
            {"input": "6 1 2 3 4 5 6\n", "output": "False"},
            {"input": "6 9 8 7 6 5 4\n", "output": "True"},
        ],
        solutions=[{"code": larger}],
        kit=InputKit(programs=(validator,)),
    )
    detail = generated(candidate, judges).lineage[-1].detail
    counts = re.search(r"(\d+) inputs made, (\d+) answered", detail)
    between = re.search(r"no other answer next to it (\d+)", detail)
    assert counts is not None
    assert between is not None
    assert int(counts[1]) == int(counts[2]) + int(between[1])


def test_a_program_that_is_late_on_all_inputs_is_stopped_after_some(
    judges: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_ANSWER_SECONDS", 0.1)
    candidate = make_candidate(fn_name=None, starter_code="")
    answering = Answering(judges(), candidate, [Program("while True: pass")])
    inputs = [MadeInput(f"{number}\n", Origin(kind="tiny/all")) for number in range(200)]
    assert answering.answer_all(inputs, num_slow=0) == []
    assert answering.dropped["reference: time_limit"] < 40
    assert answering.dropped.total() == 200


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (
            f"count if {KNOWN} else count + __import__('random').randrange(9)",
            "not answered alike again",
        ),
        (f"count if {KNOWN} else count + nums[10**7]", "reference: runtime_error"),
        ("count + 1", "no accepted program passes the known tests"),
    ],
)
def test_a_reference_that_cannot_be_relied_on_answers_nothing(
    judges: Open,
    result: str,
    why: str,
) -> None:
    code = RIGHT.replace("return count", f"return {result}")
    made = generated(make_candidate(solutions=[{"code": code}]), judges)
    assert len(made.tests) <= 4
    assert why in made.lineage[-1].detail


def test_references_that_disagree_answer_nothing(judges: Open) -> None:
    other = RIGHT.replace("return count", "return count + (max(nums) > 10)")
    made = generated(make_candidate(solutions=[{"code": RIGHT}, {"code": other}]), judges)
    assert made.tests
    for test in made.tests[2:]:
        assert max(json.loads(test.input)) <= 10


SUM = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n"
FIRST = """import sys
numbers = sys.stdin.read().split()
sys.exit(len(numbers) < 3 or not all(one in "123456789" for one in numbers))
"""
SECOND = FIRST.replace("numbers", "words")
GENERATES = (
    "import random, sys\n"
    "random.seed(int(sys.argv[1]))\n"
    "print(*(random.randint(1, 9) for _ in range(5)))\n"
)


def ask_model(judges: Open, validators: list[str]) -> tuple[Candidate, list[dict[str, Any]]]:
    """Generate for sums of an input whose layout is not inferred: it has an empty line within."""
    candidate = make_candidate(
        statement="Sum up all numbers of the input.",
        fn_name=None,
        starter_code=None,
        kit=InputKit(),
        tests=[{"input": "1 2\n\n3\n", "output": "6\n"}],
        solutions=[{"code": SUM}, {"code": SUM.replace("print", "print  ")}],
    )
    replies = iter(validators)

    def reply(number: int, messages: list[dict[str, str]]) -> str:
        if "Each generator" in messages[0]["content"]:
            return json.dumps({"generators": [GENERATES, "print('no number')\n"]})
        return json.dumps({"validator": next(replies)})

    with endpoint_of(reply) as (where, asked), closing(Endpoint(where)) as endpoint:
        made = generate(candidate, judges, GenerateSettings(), endpoint)
    assert isinstance(made, Candidate)
    return made, asked


def test_a_model_writes_generators_and_two_validators_for_what_is_not_understood(
    judges: Open,
) -> None:
    made, asked = ask_model(judges, ["raise SystemExit(1)", FIRST, FIRST, SECOND])
    assert len(asked) == 5
    for one in asked:
        assert "Sum up all numbers" in one["messages"][0]["content"]
    makers = {one.kind.partition("/")[0] for one in made.origins}
    # What needs no layout: changed and stretched texts.
    assert makers == {"given", "model", "changed", "largest"}
    assert {one.certificate for one in made.origins} == {"", "model"}
    assert sum(one.kind == "model/generator 0" for one in made.origins) == 6
    detail = made.lineage[-1].detail
    for why in (
        "its validator refuses a known input 1",
        "wrote a validator twice 1",
        "refused by a validator ",
    ):
        assert why in detail


@pytest.mark.parametrize("careless", ["pass", "import sys\nsys.exit(not sys.stdin.read())"])
def test_a_validator_that_accepts_spoilt_inputs_certifies_nothing(
    judges: Open, careless: str
) -> None:
    made, asked = ask_model(judges, [careless, FIRST, careless + "\n", careless + "\n#"])
    assert len(asked) == 4
    assert len(made.tests) == 1
    assert "its validator accepts a spoilt input 3" in made.lineage[-1].detail
    assert "no validator for inputs 1" in made.lineage[-1].detail


def test_what_nothing_certifies_is_made_where_asked_for_and_two_references_agree(
    judges: Open,
) -> None:
    bare = make_candidate(
        kit=InputKit(),
        solutions=[{"code": RIGHT}, {"code": RIGHT.replace("count", "num")}],
    )
    left_out = generated(bare, judges)
    assert len(left_out.tests) == 2
    assert "no validator for inputs" in left_out.lineage[-1].detail
    asked_for = SMALL.model_copy(update={"keep_unchecked": True})
    made = generated(bare, judges, asked_for)
    assert count_hidden(made) >= 10
    assert {one.certificate for one in made.origins} == {"", "unchecked"}
    row = problem_row(made.change("verify", "x", time_limit_seconds=1.0, memory_limit_mib=256))
    assert row["num_unchecked_tests"] == row["num_generated_tests"] == len(made.tests) - 2
    alone = generated(bare.model_copy(update={"solutions": bare.solutions[:1]}), judges, asked_for)
    assert "no validator and only one reference 1" in alone.lineage[-1].detail


def test_without_given_tests_mutants_are_tried_all_the_same(judges: Open) -> None:
    answering = Answering(judges(), make_candidate(tests=[]), [Program(RIGHT)])
    assert any(wrong.kind == "mutant" for wrong in find_wrong(answering))


def test_a_mutant_that_meets_a_limit_says_nothing(judges: Open) -> None:
    answering = Answering(judges(), make_candidate(), [Program(RIGHT)])
    test = TestCase(input="[1, 2]", output="1")
    made = MadeTest(test, Origin(kind="tiny/all"), "generated", 0.1)
    endless = Program("class Solution:\n    def rises(self, nums):\n        while True: pass\n")
    wrong = [WrongProgram(endless, "mutant"), WrongProgram(endless)]
    assert [trial.is_late for trial in try_tests(answering, wrong, [made])] == [True, False]


def test_a_program_that_fails_enough_tests_meets_no_further_ones(judges: Open) -> None:
    answering = Answering(judges(), make_candidate(), [Program(RIGHT)])
    tests = []
    for number in range(250):
        test = TestCase(input=f"[{number}, {number + 1}]", output="1")
        tests.append(MadeTest(test, Origin(kind="tiny/all")))
    (always, seldom) = try_tests(
        answering,
        [
            WrongProgram(Program(RIGHT.replace("return count", "return 7"))),
            WrongProgram(Program(RIGHT.replace("return count", "return count + (nums[0] == 240)"))),
        ],
        tests,
    )
    assert 6 <= len(always.failed) <= 100
    assert seldom.failed == {240}


def test_tests_are_chosen_that_catch_a_wrong_attempt(judges: Open) -> None:
    wrong = RIGHT.replace("return count", "return count + (len(nums) == 1)")
    responses = [f"```python\n{wrong}```\n", f"```python\n{RIGHT}```\n"]
    made = generate(make_candidate(), judges, SMALL, responses=responses)
    assert isinstance(made, Candidate)
    assert "0 of 1 attempts" in made.lineage[-1].detail
    lengths = set()
    for test in made.tests:
        lengths.add(test.input.count(",") + 1)
    assert 1 in lengths

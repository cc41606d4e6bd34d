"""Tests as good as a setter's: mutants, changes of texts, tiny inputs, and the largest ones."""

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import cast

import pytest

from microcoder.data.formats.candidates import Candidate, InputKit, InputProgram, Origin
from microcoder.data.inputs.models import learn
from microcoder.data.inputs.shapes import FORMS, Limit, Limits, Slot, arrange, shrink
from microcoder.data.inputs.stretching import WAYS
from microcoder.data.inputs.texts import TEXT_CHANGES, change_text, edit
from microcoder.data.inputs.tiny import list_tiny
from microcoder.data.testgen import search, stage
from microcoder.data.testgen.answers import Judges
from microcoder.data.testgen.choice import choose_tests
from microcoder.data.testgen.extremes import make_arranged, make_stretched
from microcoder.data.testgen.made import MadeTest
from microcoder.data.testgen.mutants import make_mutants
from microcoder.data.testgen.mutation import InputSchema, infer_schema
from microcoder.data.testgen.settings import GenerateSettings
from microcoder.data.testgen.stage import generate
from microcoder.data.testgen.trials import Trial, WrongProgram
from microcoder.data.testgen.validators import Flags, Validators
from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Program, TestCase

PYTHON = """n = int(input())  # n < 1
best = "no < 2"
for i in range(n):
    a, b = map(int, input().split())
    if a // 2 <= b and not a == 3:
        best = max(a, b + 1)
        continue
    elif b > a:
        break
print(best)
"""
CASES = """for case in range(int(input())):
    found = False
    for word in input().split():
        found = found or word == "tea"
    if found:
        print(case)
        exit()
"""
KEPT = "found = {**globals(), **locals()}.get('found', False)"
CPP = """#include <vector>
typedef long long ll;
int main() { // i < n
    std::vector<int> a(3);
    bool odd = false;
    for (int i = 0; i < 3; i++) if (a[i] >= 2 && i != 1) break;
}
"""


def mutants_of(code: str, language: str) -> list[str]:
    made = make_mutants([Program(code, language)], most=200, seed="s")
    return [cast(str, mutant.code) for mutant in made]


@pytest.mark.parametrize(
    ("code", "language", "old", "new"),
    [
        (PYTHON, "python", "a // 2 <= b", "a // 2 < b"),
        (PYTHON, "python", "b + 1", "b + 2"),
        (PYTHON, "python", "break", "pass"),
        (PYTHON, "python", "max(", "min("),
        (PYTHON, "python", "if a // 2", "if False and a // 2"),
        (PYTHON, "python", "not a", " a"),
        (PYTHON, "python", "best = max(a, b + 1)", "pass"),
        (CASES, "python", "found = False", KEPT),
        (CASES, "python", "exit()", "pass"),
        (CPP, "cpp", "i < 3", "i <= 3"),
        (CPP, "cpp", "long long", "int"),
        (CPP, "cpp", "&&", "||"),
        (CPP, "cpp", "if (a", "if (false && a"),
        (CPP, "cpp", "break;", ";"),
        (CPP, "cpp", "    bool odd = false;", "    static bool odd = false;"),
    ],
)
def test_a_mutant_has_one_mistake_that_people_make(
    code: str, language: str, old: str, new: str
) -> None:
    assert code.replace(old, new, 1) in mutants_of(code, language)


def test_no_mutant_reads_what_was_never_written() -> None:
    code = "int main() {\n    int best;\n    best = 7;\n    best = best - 9;\n}\n"
    mutants = mutants_of(code, "cpp")
    assert code.replace("    best = 7;", "    ;") not in mutants
    assert code.replace("    best = best - 9;", "    ;") in mutants


def test_lines_that_end_as_in_windows_are_forgotten_too() -> None:
    code = CASES.replace("\n", "\r\n")
    mutants = mutants_of(code, "python")
    assert code.replace("found = False", KEPT) in mutants
    assert code.replace("exit()", "pass") in mutants


def test_comments_texts_and_templates_are_left_alone() -> None:
    for mutant in mutants_of(PYTHON, "python"):
        assert "# n < 1" in mutant
        assert '"no < 2"' in mutant
    for mutant in mutants_of(CPP, "cpp"):
        assert "#include <vector>" in mutant
        assert "// i < n" in mutant
        assert "vector<int>" in mutant


def test_python_mutants_mostly_parse_and_are_the_same_again() -> None:
    made = mutants_of(PYTHON, "python")
    assert made == mutants_of(PYTHON, "python")
    assert len(made) == len(set(made))
    for mutant in made:
        ast.parse(mutant)


TEXT = "2\n2\nfirst\nrice\nmilk\n3\nsecond\nmilk\ncold tea\nrice\n"


@pytest.mark.parametrize("change", TEXT_CHANGES)
def test_a_change_makes_another_text_and_the_same_one_again(change: str) -> None:
    made = [change_text(TEXT, change, seed=seed) for seed in range(40)]
    assert made == [change_text(TEXT, change, seed=seed) for seed in range(40)]
    assert TEXT not in made
    assert len(set(made)) > 10


@pytest.mark.parametrize("text", ["\n", "1\n", "\n\n3 4\n", "a  b\n", "-5\n"])
@pytest.mark.parametrize("change", TEXT_CHANGES)
def test_a_change_of_an_odd_text_changes_it_or_gives_it_up(change: str, text: str) -> None:
    for seed in range(30):
        assert change_text(text, change, seed=seed) != text


def test_a_copy_has_exactly_as_many_edits() -> None:
    for seed in range(200):
        edited = edit("abcdef", "xyz", 2, Random(seed))
        if len(edited) == len("abcdef"):
            pairs = zip(edited, "abcdef", strict=True)
            assert sum(one != other for one, other in pairs) == 2
        else:
            assert abs(len(edited) - len("abcdef")) == 2


def has_this_form(text: str) -> bool:
    """Whether a text is a number of blocks, each a number, a name and so many lines."""
    lines = text.rstrip("\n").split("\n")
    place = 1
    for _ in range(int(lines[0])):
        place += 2 + int(lines[place])
    return place == len(lines)


def test_lines_and_blocks_change_with_the_numbers_that_count_them() -> None:
    num_valid = 0
    lengths = set()
    for seed, change in itertools.product(range(300), ("resize", "copy_block")):
        text = change_text(TEXT, change, seed=seed)
        try:
            is_valid = text is not None and has_this_form(text)
        except (ValueError, IndexError):
            is_valid = False
        if is_valid:
            num_valid += 1
            lengths.add(cast(str, text).count("\n"))
    assert num_valid > 60
    assert len(lengths) > 3


def test_a_crowding_line_is_counted_and_keeps_what_holds_inside_it() -> None:
    crowded = set()
    shifted = set()
    for seed in range(300):
        crowded.add(change_text("2\n10 14\n50 54\n", "crowd", seed=seed))
        shifted.add(change_text("2\n10 14\n50 54\n", "shift", seed=seed))
    assert "3\n10 14\n15 19\n50 54\n" in crowded
    assert "2\n10 14\n45 49\n" in shifted


def test_constants_of_a_problem_are_written_as_whole_lines() -> None:
    made = [change_text(TEXT, "tie", seed=seed, constants=["pea soup", "17"]) for seed in range(60)]
    assert any("\npea soup\n" in (text or "") for text in made)
    assert any("17" in (text or "") for text in made)


def test_tiny_inputs_have_the_facts_of_known_ones() -> None:
    model = learn([(3, [1, 5, 9]), (4, [2, 3, 8, 9]), (1, [7])])
    made = list(list_tiny(model, most=12))
    assert len(made) == 12
    assert (1, [1]) in made
    for length, items in made:
        assert length == len(items)
        assert items == sorted(set(items))


EDGES = [
    (3, [[1, 2], [2, 3]]),
    (4, [[1, 2], [1, 3], [3, 4]]),
    (5, [[1, 2], [1, 3], [3, 4], [2, 5]]),
]
NODE = Limit(1, 5, "0")
TREES = Limits({1: 99}, {Slot(1, 0): NODE, Slot(1, 1): NODE})


@pytest.mark.parametrize("form", FORMS)
def test_large_trees_are_trees_of_their_form(form: str) -> None:
    model = learn(EDGES)
    num_nodes, edges = arrange(model, EDGES[-1], TREES, form, seed=1)  # type: ignore[arg-type]
    assert num_nodes == 100
    assert len(edges) == 99
    reached = {edges[0][0]}
    for _ in range(100):
        for first, second in edges:
            if first in reached or second in reached:
                reached |= {first, second}
    assert reached == set(range(1, 101))
    degrees = [sum(node in edge for edge in edges) for node in range(1, 101)]
    if form == "chain":
        assert max(degrees) == 2
    if form == "star":
        assert max(degrees) == 99


def test_small_limits_keep_equal_lengths_equal() -> None:
    limits = Limits({0: 1000, 1: 1000}, {Slot(0): Limit(0, 10**9)})
    for seed in range(50):
        small = shrink(limits, seed)
        assert small.lengths[0] == small.lengths[1] <= 100
        assert small.numbers[Slot(0)].high <= 1000


class _Accepting:
    """Stands where validators do, and asks a function: the search for bounds needs no sandbox."""

    ways: tuple[Flags, ...] = ((),)

    def __init__(self, is_valid: Callable[[str], bool]) -> None:
        self._is_valid = is_valid

    def ask(self, texts: Sequence[str], flags: Flags = ()) -> set[int]:
        return {number for number, text in enumerate(texts) if self._is_valid(text)}


def make_candidate(**fields: object) -> Candidate:
    defaults: dict[str, object] = {
        "id": "made/numbers",
        "dataset": "made",
        "statement": "Numbers, at most $n \\le 5000$ of them, each at most 70000.",
        "tests": [
            {"input": "3\n1 5 2\n", "output": "1\n"},
            {"input": "2\n4 4\n", "output": "2\n"},
        ],
    }
    return Candidate.model_validate({**defaults, **fields})


def test_the_largest_inputs_are_as_large_as_validators_allow() -> None:
    def is_valid(text: str) -> bool:
        count, *numbers = map(int, text.split())
        return count == len(numbers) <= 5000 and all(0 <= one <= 70000 for one in numbers)

    candidate = make_candidate()
    schema = infer_schema(candidate, is_validated=True)
    assert isinstance(schema, InputSchema)
    named = InputSchema(schema.model, schema.known, schema.write, (5000, 70000))
    made = make_arranged(named, cast(Validators, _Accepting(is_valid)), candidate)
    largest = [item for item in made if item.origin.kind.startswith("largest/")]
    assert len(largest) == len(FORMS)
    for item in largest:
        assert is_valid(item.text)
        assert item.text.startswith("5000\n")
    by_kind = {item.origin.kind: list(map(int, item.text.split()))[1:] for item in largest}
    assert set(by_kind["largest/equal"]) == {70000}
    assert by_kind["largest/sorted"] == sorted(by_kind["largest/random"]) or (
        by_kind["largest/sorted"] == sorted(by_kind["largest/sorted"])
    )


def test_a_text_of_unknown_layout_is_stretched_as_far_as_validators_allow() -> None:
    def is_valid(text: str) -> bool:
        lines = [line.split() for line in text.splitlines()]
        num_roads, num_trips = map(int, lines[0][1:])
        if len(lines) != 1 + num_roads + num_trips:
            return False
        if num_roads > 300:
            return False
        return set(map(len, lines[1:])) == {2}

    given = {"input": "4 1 2\n1 2\n2 3\n1 4\n", "output": "1\n"}
    candidate = make_candidate(tests=[given])
    made = make_stretched(cast(Validators, _Accepting(is_valid)), candidate)
    assert {item.origin.kind for item in made} == {f"largest/{way}" for way in WAYS}
    for item in made:
        assert is_valid(item.text)
        assert len(item.text.splitlines()) > 100


def made_test(text: str, answer: str = "1") -> MadeTest:
    return MadeTest(TestCase(input=text, output=answer), Origin(kind="tiny/all"))


def test_known_wrong_programs_are_covered_before_mutants_and_these_thrice() -> None:
    tests = [made_test("x" * (10 - number)) for number in range(8)]
    wrong = WrongProgram(Program("wrong"))
    mutant = WrongProgram(Program("mutant"), "mutant")
    trials = [
        Trial(wrong, frozenset({7})),
        Trial(mutant, frozenset({2, 3, 4})),
        Trial(mutant, frozenset({3, 5})),
    ]
    assert choose_tests(tests, trials, most=1, num_large=0) == [7]
    assert choose_tests(tests, trials, most=2, num_large=0) == [3, 7]
    assert choose_tests(tests, trials, most=5, num_large=0) == [2, 3, 4, 5, 7]


def test_attempts_are_covered_before_mutants() -> None:
    tests = [made_test("x" * (10 - number)) for number in range(8)]
    trials = [
        Trial(WrongProgram(Program("mutant"), "mutant"), frozenset({2, 3})),
        Trial(WrongProgram(Program("attempt"), "attempt"), frozenset({5})),
    ]
    assert choose_tests(tests, trials, most=1, num_large=0) == [5]


STATEMENT = """A word, a number of words, and the words, a line each. Print the number of the first
word that has as many letters as the first one and differs from it in at most one place; 0 if none.
"""
RIGHT = """word = input()
answer = 0
for number in range(int(input())):
    other = input()
    if answer == 0 and len(other) == len(word):
        if sum(a != b for a, b in zip(word, other)) <= 1:
            answer = number + 1
print(answer)
"""
VALIDATOR = """import re, sys
lines = sys.stdin.read().split("\\n")
sys.exit(not (
    lines.pop() == ""
    and int(lines[1]) == len(lines) - 2 <= 50
    and all(re.fullmatch("[a-z]{1,9}", line) for line in [lines[0], *lines[2:]])
))
"""


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    with (
        Judge(workers=1, stop="first_limit", cache_size=0) as thorough,
        Judge(workers=1, stop="first_failure", cache_size=0) as brief,
    ):
        yield Judges(thorough, brief)


def test_a_copy_with_too_many_edits_is_found_without_any_wrong_submission(
    judges: Judges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_CHANGED", 48)
    monkeypatch.setattr(stage, "ROUNDS", 1)
    validator = InputProgram(name="v", role="validator", language="python", code=VALIDATOR)
    candidate = make_candidate(
        statement=STATEMENT,
        tests=[
            {"input": "anna\n3\npeter\nanna\nhanna\n", "output": "2\n"},
            {"input": "jan\n2\npetra\nkarl\n", "output": "0\n"},
        ],
        solutions=[{"code": RIGHT}],
        kit=InputKit(programs=(validator,)),
    )
    made = generate(candidate, lambda: judges, GenerateSettings())
    assert isinstance(made, Candidate)
    assert {origin.certificate for origin in made.origins} == {"", "package"}
    assert "mutants pass all tried tests" in made.lineage[-1].detail
    wrong = [Program(RIGHT.replace("<= 1", other)) for other in ("<= 2", "< 1")]
    trial = made.to_trial("python", seconds=2.0, memory_mib=1024)
    verdicts = judges.brief.judge([Program(RIGHT), *wrong], [trial] * 3)
    outcomes = [verdict.outcome for verdict in verdicts]
    assert outcomes == [Outcome.ACCEPTED, Outcome.WRONG_ANSWER, Outcome.WRONG_ANSWER]

"""Problems are known by what their programs compute, whatever they are told like;
real programs in a real sandbox.
"""

from pathlib import Path
from typing import Any

import pytest

from microcoder.data.behaviour.blocks import read_blocks
from microcoder.data.behaviour.comparison import find_behaviour
from microcoder.data.behaviour.forms import find_forms
from microcoder.data.behaviour.keeping import (
    find_suspects,
    note_suspects,
    read_compared,
    write_compared,
)
from microcoder.data.behaviour.outputs import LATE, compare, tokens_of_json, tokens_of_text
from microcoder.data.behaviour.pairs import BehaviourIndex, index_behaviour
from microcoder.data.behaviour.running import ProgramRun, run_programs
from microcoder.data.behaviour.views import (
    Change,
    Renamed,
    Shifted,
    Spelled,
    Stacked,
    Turned,
    WithoutSize,
    Zipped,
)
from microcoder.data.corpus.inputs import read_benchmark_problems, unpack_sources
from microcoder.data.corpus.settings import SourceSettings
from microcoder.data.filter.contamination import Hit
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge import Judge
from microcoder.judge.core.types import Assertions, TestCase
from tests.data.behaviour import planted
from tests.data.published import find_archive

RUNNING_TOTALS = "import itertools\ndef f(numbers):\n    return list(itertools.accumulate(numbers))"


def find_one(candidate: Candidate, index: BehaviourIndex, judge: Judge) -> list[Hit]:
    (compared,) = find_behaviour([candidate], index, judge)
    return compared.hits


def problem(code: str, *tests: tuple[str, str], solved: bool = True) -> Candidate:
    """A function is a benchmark's, a script somebody's story."""
    is_call = "def f(" in code
    return Candidate(
        id="bench/1" if is_call else "story/1",
        dataset="any",
        statement="A miller weighs sacks.",
        fn_name="f" if is_call else None,
        tests=tuple(TestCase(input=given, output=output) for given, output in tests),
        solutions=(Solution(code=code),) if solved else (),
    )


TOTALS = problem(
    RUNNING_TOTALS,
    ("[1, 2, 3]", "[1, 3, 6]"),
    ("[5]", "[5]"),
    ("[]", "[]"),
    ("[2, -2, 9]", "[2, 0, 9]"),
)
MILLER = "n = int(input())\nt = 0\nfor x in map(int, input().split()):\n    t += x\n    print(t)"
SACKS = (
    ("3\n4 5 6\n", "4\n9\n15\n"),
    ("2\n10 1\n", "10\n11\n"),
    ("4\n1 1 2 8\n", "1\n2\n4\n12\n"),
    ("3\n7 7 30\n", "7\n14\n44\n"),
)


@pytest.mark.parametrize("solved", [True, False], ids=["with its program", "tests alone"])
def test_a_story_with_another_input_format_is_found_and_the_reason_said(
    judge: Judge, solved: bool
) -> None:
    (hit,) = find_one(
        problem(MILLER, *SACKS, solved=solved),
        index_behaviour([TOTALS]),
        judge,
    )
    assert hit.problem_id == "bench/1"
    assert hit.by == "behaviour"
    assert "its program gives 4 of 4 answers here" in hit.detail
    assert ("answers there" in hit.detail) is solved


def test_the_problems_own_program_is_enough_where_the_benchmark_has_none(judge: Judge) -> None:
    more = tuple(
        TestCase(input=f"[{n}, 30, 4]", output=f"[{n}, {n + 30}, {n + 34}]") for n in (20, 55)
    )
    bare = TOTALS.model_copy(update={"solutions": (), "tests": TOTALS.tests + more})
    (hit,) = find_one(problem(MILLER, *SACKS), index_behaviour([bare]), judge)
    assert "the program here gives" in hit.detail


def test_tests_that_cannot_tell_two_problems_apart_are_told_apart_by_varied_inputs(
    judge: Judge,
) -> None:
    positives = problem(
        ("def f(v):\n    return sum(x for x in v if x % 100)"),
        ("[1, 2, 3]", "6"),
        ("[50, 60]", "110"),
        ("[7]", "7"),
        ("[12, 13]", "25"),
        ("[99, 1]", "100"),
        ("[40, 41]", "81"),
    )
    total = problem(
        (
            "n = int(input())\n"
            "print(sum(map(int, input().split())) if n < 3 else max(map(int, input().split())))"
        ),
        (("2\n30 21\n"), "51\n"),
        (("2\n11 88\n"), "99\n"),
        (("2\n60 47\n"), "107\n"),
        (("2\n300 1\n"), "301\n"),
    )
    assert find_one(total, index_behaviour([positives]), judge) == []


def test_yes_and_no_may_be_said_otherwise_and_labels_alone_need_many_inputs(judge: Judge) -> None:
    code = "def f(a, b):\n    return a % b == 0"
    shown = (("6\n3", "true"), ("7\n2", "false"), ("9\n4", "false"), ("8\n4", "true"))
    pairs = [
        (12, 4),
        (13, 4),
        (20, 5),
        (21, 6),
        (9, 3),
        (35, 8),
        (44, 11),
        (50, 7),
        (64, 8),
        (71, 9),
        (5, 5),
        (8, 3),
    ]
    pairs += [(3 * a, b + 1) for a, b in pairs]
    tests = []
    for a, b in pairs:
        tests.append((f"{b} {a}\n", "fits\n" if a % b == 0 else "gap\n"))
    index = index_behaviour([problem(code, *shown)])
    (hit,) = find_one(problem("", *tests, solved=False), index, judge)
    assert "with other words" in hit.detail
    assert find_one(problem("", *tests[:4], solved=False), index, judge) == []
    fails_for_no = index_behaviour([problem(f"{code} or 1 // 0", *shown)])
    assert find_one(problem("", *tests, solved=False), fails_for_no, judge) == []


def test_a_program_that_hangs_dies_or_ends_the_process_loses_its_own_outputs_only(
    judge: Judge,
) -> None:
    runs = [
        ProgramRun("def f(n):\n    return n + 1", "f", ([1], [2])),
        ProgramRun("def f(n):\n    while True:\n        pass", "f", ([1], [2])),
        ProgramRun("def f(n):\n    return sum(range(10**15))", "f", ([1], [2])),
        ProgramRun("import os\ndef f(n):\n    os._exit(0)", "f", ([1], [2])),
        ProgramRun("def f(n):\n    raise ValueError", "f", ([1],)),
        ProgramRun("print(int(input()) * 2)", "", ("21\n", "x\n")),
    ]
    assert run_programs(runs, judge) == [
        [("2",), ("3",)],
        [LATE, LATE],
        *[[None, None]] * 2,
        [None],
        [("42",), None],
    ]


def test_programs_that_share_a_process_do_not_use_up_each_others_time(judge: Judge) -> None:
    spends = (
        "import time\n"
        "def f(n):\n"
        "    start = time.process_time()\n"
        "    while time.process_time() < start + 0.3:\n"
        "        pass\n"
        "    return n"
    )
    # Each keeps to its own time, and all of them together take more than the process has.
    runs = [ProgramRun(spends, "f", ([number],), row=number) for number in range(8)]
    outputs = run_programs(runs, judge, seconds=1.0, process_seconds=1.0)
    assert outputs == [[(str(number),)] for number in range(8)]


def test_a_program_that_takes_a_number_for_a_length_is_held_to_little_memory(judge: Judge) -> None:
    fills = (
        "n = int(input())\n"
        "held = bytearray(n)\n"
        "held[::4096] = b'x' * len(held[::4096])\n"
        "print(len(held))"
    )
    # A large stack, asked for by habit, takes nothing of it.
    deep = (
        "import threading\n"
        "threading.stack_size(1 << 29)\n"
        "one = threading.Thread(target=lambda: print(input()))\n"
    )
    runs = [
        ProgramRun(fills, "", ("100000000\n", "700000000\n", "3\n")),
        ProgramRun(deep + "one.start()\none.join()", "", ("a\n",)),
    ]
    assert run_programs(runs, judge) == [[("100000000",), None, ("3",)], [("a",)]]


def test_outputs_are_compared_as_values() -> None:
    assert (
        tokens_of_json('[1.0, true, "a b"]')
        == tokens_of_text("1 True a, b")
        == ("1", "true", "a", "b")
    )
    swapped = compare([("yes",), ("no",), ("yes",)], [("false",), ("true",), ("true",)])
    assert swapped.agreed == (True, True, False)
    assert swapped.how == "with other words"
    assert sum(compare([("3",), ("8",)], [("4",), ("9",)]).agreed) == 0


def test_a_line_of_words_is_also_one_text(judge: Judge) -> None:
    shout = problem("def f(text):\n    return text.upper() + '!'", ('"a b c"', '"A B C!"'))
    tests = []
    for line in ("red fox", "one two three", "blue sky at night", "green tea"):
        tests.append((f"{line}\n", f"{line.upper()}!\n"))
    (hit,) = find_one(
        problem("print(input().upper() + '!')", *tests), index_behaviour([shout]), judge
    )
    assert "its program gives 4 of 4 answers here" in hit.detail


@pytest.mark.parametrize(
    ("inputs", "kinds"),
    [
        (("5 1 9\n4 8 2\n", "3 3\n1 7\n6 2\n"), ("T",)),
        (("12\n3 5\n4 8\n", "7\n1 2\n6 7\n8 8\n"), ("n", "T")),
    ],
)
def test_rows_that_no_number_counts_are_read(
    inputs: tuple[str, str],
    kinds: tuple[str, ...],
) -> None:
    tests = [(text, "16\n") for text in inputs]
    (form,) = find_forms(problem("", *tests))
    assert form.kinds == kinds
    assert [form.layout.render(case.values) for case in form.cases] == list(inputs)


def test_few_small_numbers_are_no_copy_and_what_agrees_everywhere_is_suspected(
    judge: Judge,
) -> None:
    vowels = problem("def f(text):\n    return sum(c in 'aeiou' for c in text)", ('"tea"', "2"))
    tests = (('"abe"', "2"), ('"xo"', "1"), ('"rain"', "2"), ('"eel"', "2"))
    counted = problem("def f(text): pass", *tests, solved=False)
    (compared,) = find_behaviour([counted], index_behaviour([vowels]), judge)
    assert compared.hits == []
    (suspect,) = compared.suspects
    assert suspect.problem_id == "bench/1"
    assert read_compared(write_compared(compared)) == compared
    noted = note_suspects(counted, compared.suspects)
    assert find_suspects(noted) == ["bench/1"]
    assert find_suspects(counted) == []


def test_shared_inputs_make_up_for_few_bits(judge: Judge) -> None:
    pairs = [(12, 4), (13, 4), (20, 5), (21, 6), (9, 4), (35, 7), (44, 7), (50, 10), (64, 9)]
    pairs += [(70, 35), (71, 35), (99, 33)]
    shown = []
    tests = []
    for a, b in pairs:
        shown.append((f"{a}\n{b}", str(a % b == 0).lower()))
        tests.append((f"{a} {b}\n", "fits\n" if a % b == 0 else "gap\n"))
    divides = problem("def f(a, b):\n    return a % b == 0", *shown)
    unlike = problem("def f(a, b):\n    return a % b == 0", ("60\n30", "true"), ("31\n30", "false"))
    few = problem("", *tests[:6], solved=False)
    story = problem("", *tests, solved=False)
    (hit,) = find_one(story, index_behaviour([divides]), judge)
    assert "both show 12 of the same inputs" in hit.detail
    assert find_one(few, index_behaviour([unlike]), judge) == []


def test_labels_that_could_be_given_in_many_other_ways_are_enough(judge: Judge) -> None:
    even = problem("def f(n):\n    return n % 2 == 0", ("8", "true"), ("9", "false"))
    tests = [(f"{n}\n", "ja\n" if n % 2 == 0 else "nein\n") for n in (3, 4, 6, 7, 10, 15, 21, 22)]
    (hit,) = find_one(problem("", *tests, solved=False), index_behaviour([even]), judge)
    assert "its program gives 8 of 8 answers here (with other words)" in hit.detail
    rare = [*tests[:3], ("10\n", "ja\n"), ("12\n", "ja\n"), ("28\n", "ja\n"), ("30\n", "ja\n")]
    assert find_one(problem("", *rare, solved=False), index_behaviour([even]), judge) == []


def test_a_drawn_grid_with_its_size_is_a_table_of_flags(judge: Judge) -> None:
    code = "def f(grid):\n    return sum(row.count(1) for row in grid) * 100 + len(grid)"
    shown = (("[[1, 0], [1, 1]]", "302"), ("[[0, 1, 1], [1, 0, 1], [1, 1, 1]]", "703"))
    tests = []
    for grid in (["#.", "##"], ["#..", ".#.", "..."], ["####"], ["...#", "####"], ["#", ".", "#"]):
        text = "\n".join(grid)
        number = text.count("#") * 100 + len(grid)
        tests.append((f"{len(grid)} {len(grid[0])}\n{text}\n", f"{number}\n"))
    index = index_behaviour([problem(code, *shown)])
    (hit,) = find_one(problem("", *tests, solved=False), index, judge)
    assert "its program gives 5 of 5 answers here (same)" in hit.detail


@pytest.mark.parametrize(
    ("inputs", "values"),
    [
        (("2 3\n#..\n.#.\n0 1\nUD\n", "1 2\n..\n0 0\nL\n"), (2, 3, ["#..", ".#."], 0, 1, "UD")),
        (("2\n1\n5\n2\n6 7\n9\n", "3\n1\n1\n1\n3\n2\n8 9\n4\n"), (2, [[5], [6, 7]], 9)),
        (("ox\nel\n.\n", "moon\n.\n"), (["ox", "el"],)),
        (("1\n4 1\n8 7\n", "0\n1 5\n9 1\n"), (1, [[4, 1], [8, 7]])),
    ],
    ids=["a block before lines", "rows after their lengths", "a last line", "an even table"],
)
def test_blocks_are_read_wherever_they_stand(
    inputs: tuple[str, str],
    values: tuple[object, ...],
) -> None:
    read = read_blocks(inputs)
    assert read is not None
    assert read.values[0] == values
    assert [read.layout.render(row) for row in read.values] == list(inputs)


@pytest.mark.parametrize(
    ("change", "values", "seen"),
    [
        (WithoutSize(0, 1, True, 0), (2, [[1, 2], [3, 4]]), ([[1, 2], [3, 4]],)),
        (Zipped((0, 1)), ([1, 2], [5, 6]), ([[1, 5], [2, 6]],)),
        (Stacked((0, 1, 2)), ("a", "b", "c"), (["a", "b", "c"],)),
        (Spelled(0, is_table=True), ([[1, 0], [0, 0]],), (["10", "00"],)),
        (Turned(0, (2, 0, 1)), ([[1, 2, 3]],), ([[3, 1, 2]],)),
        (Shifted((1,), -1), ([7, 8], 2), ([7, 8], 1)),
        (Renamed((("#", "1"), (".", "0")), are_words=False), (["#.", ".."],), (["10", "00"],)),
    ],
)
def test_a_view_can_be_turned_back(
    change: Change,
    values: tuple[object, ...],
    seen: tuple[object, ...],
) -> None:
    assert change.there(values) == seen
    assert change.back(seen) == values


def test_outputs_may_be_counted_joined_or_rounded() -> None:
    counted = compare([("2", "7", "9"), ("1", "4")], [("7", "9"), ("4",)])
    assert counted.how == "without their number"
    assert counted.share == 1
    assert compare([("1", "0"), ("0", "1")], [("10",), ("01",)]).how == "joined"
    rounded = compare([("3.14",), ("2",)], [("3.1416",), ("2.0012",)])
    assert rounded.how == "rounded"
    assert rounded.share == 1
    assert compare([("3.14",)], [("3.15",)]).share == 0


def test_tuples_of_published_tests_are_given_back() -> None:
    program = "def f(pairs, k):\n    return {pair: k for pair in pairs}"
    published = Candidate(
        id="bench/2",
        dataset="any",
        statement="",
        fn_name="f",
        tests=(
            TestCase(input="", output="assert f([(1, 2)], k=3) == 5\nassert not f([(4, 5)], 6)"),
        ),
        assertions=Assertions(),
        starter_code="def f(pairs, k):",
        solutions=(Solution(code=program),),
    )
    (form,) = find_forms(published)
    assert [case.values for case in form.cases] == [([[1, 2]], 3), ([[4, 5]], 6)]
    assert [case.expected for case in form.cases] == [("5",), ("false",)]
    names: dict[str, Any] = {}
    exec(form.program, names)
    assert names[form.entry]([[1, 2]], 3) == {(1, 2): 3}


def test_disguised_problems_of_humaneval_are_found_and_near_misses_are_not(
    judge: Judge, tmp_path: Path
) -> None:
    problems = read_benchmark_problems(
        unpack_sources(
            [SourceSettings(path=str(find_archive("humaneval")), format="humaneval")], into=tmp_path
        )
    )
    index = index_behaviour(problems)
    titles = {problem.id: problem.title for problem in problems}
    copies = [planted.DISGUISED[number] for number in (0, 4, 9, 19, 24, 28)]
    for number, item in enumerate(copies):
        hits = find_one(item.candidate(number), index, judge)
        assert item.titles & {titles[hit.problem_id] for hit in hits}, item.statement
    for number, item in enumerate(planted.NEAR_MISSES[:6]):
        assert find_one(item.candidate(number), index, judge) == [], item.statement

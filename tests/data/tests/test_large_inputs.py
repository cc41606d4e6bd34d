"""Large inputs: bounds and names as statements write them, pictures, growth of known inputs, flags of validators."""

from __future__ import annotations

from collections import Counter

import pytest

from microcoder.data.formats.candidates import Candidate, InputKit, InputProgram, Origin
from microcoder.data.formats.input_kits import read_kit
from microcoder.data.inputs.constraints import Relation, Term, find_group_rows, read_relations
from microcoder.data.inputs.drawing import draw
from microcoder.data.inputs.layouts import read_texts
from microcoder.data.inputs.model import learn
from microcoder.data.inputs.mutating import grow, zoom
from microcoder.data.inputs.shapes import Grid, holds, infer_grid, is_tree
from microcoder.data.tests.answers import GenerateSettings, MadeInput
from microcoder.data.tests.makers import Validators, make_inputs
from microcoder.data.tests.making import find_names, understand
from microcoder.judge import Judge
from microcoder.judge.core.types import TestCase


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("$N$ ($1 \\le N \\leq 10^5$) and $K$, then $a_1, \\dots, a_N$ ($0 \\le a_i \\le 9$)", ["N", "K", "a[]"]),
        ("the lengths $L_1$ and $L_2$, each $N \\le 5$", ["L_1", "L_2", "N"]),
        ("pairs $x, y$ ($0 \\le x, y \\le 5 \\cdot 10^8$)", ["x", "y"]),
        ("The $i$-th line has $m_i$ and $b$", ["m[]", "b"]),
    ],
)  # fmt: skip
def test_names_are_found_in_the_order_of_the_input_section(section: str, names: list[str]) -> None:
    assert find_names(section) == names


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("The input is one integer $D \\leq 200\\,000$, a distance.", Relation(Term("D", 0), "<=", Term("", 200_000))),
        ("$1 \\le a \\neq D \\le 10^9$", Relation(Term("D", 0), "<=", Term("", 1e9))),
        ("$1 \\le D \\le 10^{100}$", Relation(Term("D", 0), "<=", Term("", 1e100))),
        ("$D \\le 5$ " + "and some more words " * 12, Relation(Term("D", 0), "<=", Term("", 5))),
    ],
)  # fmt: skip
def test_bounds_within_sentences(text: str, bound: Relation) -> None:
    assert bound in read_relations(text, ("D",))


def test_a_bound_may_be_a_product_or_a_fraction() -> None:
    (found,) = read_relations("$M \\le \\min(2 \\cdot 10^5, \\frac{N(N-1)}{2})$", ("M", "N"))
    assert found.right.evaluate({"N": 5}) == 10


def test_digits_number_what_an_index_stands_for() -> None:
    places = {"m_1": "value0_", "m_2": "value1_"}
    found = read_relations("$0 < m_i \\le 9$", ("value0_", "value1_"), places)
    assert {one.left.place for one in found if one.right.number == 9} == {"value0_", "value1_"}


TABLE = """n numbers are given.

| Group | Points | Constraints |
| --- | --- | --- |
| 1 | 20 | n <= 10 |
| 2 | 80 | n <= 90 |"""


def test_bounds_of_a_group_bound_the_problem_only_where_nothing_else_does() -> None:
    rest, rows = find_group_rows(TABLE)
    assert rest == "n numbers are given.\n"
    assert "n <= 10" in rows
    known = [(3,), (9,)]
    assert Relation(Term("n", 0), "<=", Term("", 90)) in learn(("n",), known, TABLE).relations
    told = learn(("n",), known, f"1 <= n <= 1000\n\n{TABLE}").relations
    assert [one.right.number for one in told if one.left.place == "n"] == [1000]


@pytest.mark.parametrize(
    ("texts", "forms"),
    [
        # So many edges less than nodes; then as many queries as the next line says.
        (["3\n1 2\n2 3\n1\n7 1\n", "2\n2 1\n3\n9 1\n8 2\n7 7\n"], ["value", "rows", "count", "rows"]),
        # Two blocks of one number of lines.
        (["4 1\n0 1\n1 2\n", "5 2\n0 1\n3 2\n1 4\n1 2\n"], ["value", "count", "rows", "rows"]),
        # Each row says how many pairs follow.
        (["2\n1 4 5\n2 1 2 6 9\n", "1\n3 1 1 2 2 3 3\n"], ["count", "rows"]),
        (["1\n", "3\n1 2\n1 3\n"], ["value", "rows"]),
    ],
)
def test_blocks_of_lines_are_told_apart(texts: list[str], forms: list[str]) -> None:
    read = read_texts(texts, is_typed=True)[0]
    assert [item.form for item in read.layout.items] == forms
    assert [read.layout.render(values) for values in read.values] == texts


def test_ends_of_intervals_are_drawn_in_their_order() -> None:
    texts = ["2\n1 4 5\n2 1 2 6 9\n", "1\n3 1 1 2 2 3 3\n"]
    read = read_texts(texts, is_typed=True)[0]
    places = {"n": "value0_#", "m_i": "value0_[]#", "a": "value0_[][][0]", "b": "value0_[][][1]"}
    statement = "1 <= n <= 5\n1 <= m_i <= 9\n0 <= a <= b <= 100"
    model = learn(read.layout.names, read.values, statement, places=places, records=read.records)
    for seed in range(20):
        values = draw(model, "large", seed=seed)
        assert values is not None
        assert all(0 <= low <= high <= 100 for row in values[0] for low, high in row)


PICTURES = [
    ["......", ".#SG#.", ".####.", "......"],
    ["......", ".S..G.", "......"],
    [".....", ".#G#.", ".#S#.", "....."],
]


def test_a_picture_keeps_its_border_and_its_marks() -> None:
    assert infer_grid(PICTURES) == Grid(marks="GS", border=".")
    known = [(len(rows), len(rows[0]), rows) for rows in PICTURES]
    model = learn(("n", "m", "rows"), known, "1 <= n, m <= 30\nn == rows.length\nm == rows[i].length")
    for profile in ("small", "large", "large_level"):
        values = draw(model, profile, seed=3)
        assert values is not None
        text = "".join(values[2])
        assert (text.count("S"), text.count("G")) == (1, 1)
        assert {*values[2][0], *values[2][-1]} == {"."}
    assert values[:2] == (30, 30)
    zoomed = zoom(model, known, seed=1, most_items=200)
    assert zoomed is not None
    assert zoomed[0] == len(zoomed[2]) > 5
    assert "".join(zoomed[2]).count("S") == 1


def test_copies_beside_each_other_keep_what_each_promises() -> None:
    # Each node points to another one, and names stand for the same thing within a copy.
    known = [(["ab x", "cde y"], [2, 1]), (["fgh z", "abc w", "ihg v"], [2, 3, 1])]
    rows = [([line.split() for line in words], points) for words, points in known]
    statement = "1 <= points.length <= 50\n1 <= points[i] <= points.length\nwords.length == points.length"
    model = learn(("words", "points"), rows, statement)
    for seed in range(8):
        values = grow(model, rows, seed=seed, most_items=100)
        assert values is not None
        words, points = values
        assert 10 < len(points) == len(words) <= 50
        assert all(at != point for at, point in enumerate(points, 1))
        assert sorted(points) == [*range(1, len(points) + 1)]


def test_lists_that_hold_a_tree_are_drawn_as_one() -> None:
    known = [(4, [0, 0, 2], [1, 2, 3]), (8, [1, 1, 2, 3, 4, 5, 6], [0, 2, 3, 4, 5, 6, 7])]
    model = learn(("n", "a", "b"), known, "1 <= n <= 60")
    assert model.trees == (("a", "b"),)
    for profile in ("small", "large", "large_level"):
        values = draw(model, profile, seed=5)
        assert values is not None
        assert is_tree(list(zip(values[1], values[2], strict=True)))
    assert values[0] == 60


@pytest.mark.parametrize(
    ("value", "is_met"), [([2, 1, 2], True), ([1, 3, 2], False), ([1, 2, 0], True), ([0, 2], False)]
)
def test_no_item_is_its_own_place(value: list[int], is_met: bool) -> None:
    assert holds("no_own_place", value) is is_met


def test_the_largest_numbers_are_drawn() -> None:
    model = learn(("n",), [(3,), (5,)], "1 <= n <= 1000000")
    drawn = [values[0] for seed in range(40) if (values := draw(model, "large_top", seed=seed))]
    assert max(drawn) == 1_000_000
    assert len(set(drawn)) > 5


VALIDATOR = """import sys
most = int(next(one.split("=")[1] for one in sys.argv if one.startswith("max=")))
count, *numbers = map(int, sys.stdin.read().split())
sys.exit(42 if 1 <= count <= most and len(numbers) == count else 1)
"""


def test_the_flags_of_groups_are_read_without_any_recipe() -> None:
    files = {
        "data/secret/g1/testdata.yaml": "range: 0 5\ninput_validator_flags: max=5\n",
        "data/secret/g2/testdata.yaml": "input_validator_flags: 'max=40'\n",
        "input_validators/v.py": VALIDATOR,
    }
    assert read_kit(files).flags == (("max=5",), ("max=40",))


def test_an_input_is_valid_in_one_group_or_another_and_no_validator_is_asked_in_a_wrong_way() -> None:
    programs = (InputProgram(name="v", role="validator", code=VALIDATOR, language="python"),)
    tests = [TestCase(input=f"{n}\n{' '.join(map(str, range(n)))}\n", output="1\n") for n in (2, 3, 7)]
    candidate = Candidate(id="a/b", dataset="a", statement="", tests=tests)
    understanding = understand(candidate)
    assert not isinstance(understanding, str)
    texts = [MadeInput(f"{n} {'1 ' * n}\n", Origin(kind="given")) for n in (1, 20, 61)]
    known = [test.input for test in tests]
    with Judge(workers=1, cache_size=0) as judge:
        dropped: Counter[str] = Counter()
        kit = InputKit(programs=programs, flags=(("max=60",), ("max=5",)))
        validators = Validators(judge, kit, known, dropped)
        assert validators.accept(texts) == texts[:2]
        assert dropped == {"refused by a validator": 1}
        # Nothing of the statement bounds the list: it is as long as the validator lets it be.
        made = make_inputs(
            candidate, understanding, GenerateSettings(), dropped, most_bytes=1 << 12, accept=validators.accept,
            are_checked=validators.are_asked, is_large_alone=True,
        )  # fmt: skip
        assert 14 < max(int(one.text.split()[0]) for one in made) <= 60
        unknown = Counter[str]()
        other = Validators(judge, InputKit(programs=programs), known, unknown)
        assert other.accept(texts) == texts
        assert not other.are_asked
        assert unknown == {"validators not asked, since they refuse what came with the problem: inputs": 3}

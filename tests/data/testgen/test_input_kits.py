"""What inputs look like, mutations of them; generators and validators of packages."""

import hashlib
import random
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.formats.candidates import InputKit, Origin
from microcoder.data.formats.input_kits import read_kit
from microcoder.data.formats.kit_programs import find_header
from microcoder.data.inputs.layouts import read_texts
from microcoder.data.inputs.models import Relation, infer_shape, learn
from microcoder.data.inputs.mutating import MUTATIONS, _place_constant, mutate
from microcoder.data.testgen.kits import run_kit
from microcoder.data.testgen.made import MadeInput
from microcoder.data.testgen.validators import read_validators, spoil
from microcoder.judge import Judge

KNOWN = [(3, [[0, 1], [1, 2]], "ab", 1), (4, [[2, 0], [3, 2], [1, 0]], "bcd", 3)]
TREE = learn(KNOWN)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 40), mutation=st.sampled_from(sorted(MUTATIONS)))
def test_what_is_mutated_is_another_input_that_meets_the_model(seed: int, mutation: str) -> None:
    values = mutate(TREE, KNOWN[1], mutation, seed=seed)
    if values is not None:
        assert values != KNOWN[1]
        assert TREE.fits(values)
        n, edges, text, k = values
        assert 3 <= n <= 4
        assert len(edges) == n - 1
        assert max(map(max, edges)) < n
        assert 2 <= len(text) <= 3
        assert set(text) <= set("abcd")
        assert 1 <= k <= len(text)
    assert KNOWN[1] == (4, [[2, 0], [3, 2], [1, 0]], "bcd", 3)


@pytest.mark.parametrize(
    ("texts", "forms", "first"),
    [
        (["3\n1 2 3\n", "2\n5 6\n"], "count list", ([1, 2, 3],)),
        (["3 7\n1 2 3\n", "2 9\n5 6\n"], "count value list", (7, [1, 2, 3])),
        (["2 5\n1 2\n3 4\n", "1 5\n7 8\n"], "count value rows", (5, [[1, 2], [3, 4]])),
        (["2\n1 2\n3 4\n", "3\n1 1\n2 2\n3 3\n"], "count rows", ([[1, 2], [3, 4]],)),
        (["2\n1\n5\n", "3\n1\n2\n9\n"], "count column", ([1, 5],)),
        (["2\nab\ncd\n", "3\na\nb\nc\n"], "count column", (["ab", "cd"],)),
        (["2 2\n..\n#.\n", "3 2\n##\n..\n..\n"], "count value column", (2, ["..", "#."])),
        (
            ["4 2\n1 2 3 4\n1 2\n3 4\n", "2 1\n5 6\n2 1\n"],
            "count count list rows",
            ([1, 2, 3, 4], [[1, 2], [3, 4]]),
        ),
        (["2\nab 3\nc 4\n", "1\nx 9\n"], "count rows", ([["ab", 3], ["c", 4]],)),
        # Each row says how many numbers follow.
        (["2\n1 4\n2 6 9\n", "1\n3 1 2 3\n"], "count rows", ([[4], [6, 9]],)),
        (["1\n", "3\n1 2\n1 3\n"], "value rows", (1, [])),
        (["abc\nb\n", "xx\ny\n"], "value value", ("abc", "b")),
        (["0110\n", "11\n"], "value", ("0110",)),
        ([f"{'9' * 5000}\n", "11\n"], "value", ("9" * 5000,)),
    ],
)
def test_a_layout_is_found_and_writes_what_it_reads(
    texts: list[str],
    forms: str,
    first: tuple[object, ...],
) -> None:
    read = read_texts(texts, is_typed=True)[0]
    assert " ".join(item.form for item in read.layout.items) == forms
    assert read.values[0] == first
    assert [read.layout.render(values) for values in read.values] == texts
    # Untyped, numbers beside words are words.
    (untyped, *_), is_mixed = read_texts(texts), "ab 3" in texts[0]
    assert untyped.layout == read.layout
    assert (untyped.values == read.values) == (not is_mixed)
    assert read_texts([*texts, "1 a\n\n2\n", "x y z\n"]) == [], (
        "inputs of different layouts have none"
    )


def test_relations_that_hold_for_all_known_inputs_are_kept() -> None:
    for known, kept, no_relation in (
        ([([4, 9], 1), ([7, 5, 5], 1)], Relation("1", "<=", "0#", -1.0), "=="),
        ([([4, 9], 2), ([7, 5, 5], 3)], Relation("0#", "==", "1"), "<="),
        ([([0, 2], 3), ([1, 0, 0], 2)], Relation("0[]", "<=", "1", -1.0), "=="),
    ):
        model = learn(known)
        assert kept in model.relations
        for one in model.relations:
            assert one.operator != no_relation
        assert all(map(model.fits, known))


def test_what_all_known_values_have_in_common_is_kept() -> None:
    values: list[tuple[list[Any], set[str]]] = [
        ([[1, 2, 5], [3, 4, 4]], {"sorted"}),
        ([[2, 1, 3], [1, 2]], {"permutation", "distinct"}),
        ([[[1, 2], [3, 4]], [[2, 4], [4, 1]]], {"rectangular", "square", "distinct"}),
    ]
    for known, facts in values:
        found = infer_shape(known).facts
        assert facts <= found
        assert not {"permutation", "square"} & found - facts
    lists, tables = learn(
        [([4, 9], [[1, 2]]), ([7, 5], [[3, 4], [4, 1]])],
        may_repeat=True,
        open_places={0},
    ).shapes
    assert "distinct" not in lists.facts
    assert "distinct" in tables.facts
    assert lists.fits([-3, 10**9, 7])
    assert not tables.fits([[4, 9]])


def test_an_open_text_has_the_alphabets_that_it_has_letters_of_and_dates_stay_known() -> None:
    lower = infer_shape(["cat", "dog"], is_open=True)
    assert lower.fits("zebra" * 100)
    assert not lower.fits("Zebra")
    assert not lower.fits("a-b")
    assert infer_shape(["Cat", "dog"], is_open=True).fits("ZEBRA")
    assert not infer_shape(["12", "x"]).fits("y")
    assert not infer_shape(["12:30", "9:05"], is_open=True).fits("12:90")
    assert infer_shape(["12:30", "9:05"], is_open=True).fits("12:30")
    assert not infer_shape(["9:05"]).fits("0:95")


@pytest.mark.parametrize(
    "name", ["grow", "level", "repeat", "overwrite", "swap", "reorder", "echo"]
)
def test_a_mutation_makes_no_two_places_one_object(name: str) -> None:
    for seed in range(40):
        source = random.Random(seed)
        values: list[Any] = [[[1, 2], [3, 4]], [[5, 6]]]
        for _ in range(3):
            MUTATIONS[name](values, source)
        rows = []
        for table in values:
            rows.extend(table)
        assert len({id(row) for row in rows}) == len(rows)


def test_one_placed_constant_changes_one_number() -> None:
    values: list[Any] = [[[1, 2], [3, 4]]]
    MUTATIONS["grow"](values, random.Random(3))
    before = []
    for row in values[0]:
        before.extend(row)
    _place_constant(values, random.Random(5), 776)
    after = []
    for row in values[0]:
        after.extend(row)
    assert len(before) > 4
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


@pytest.mark.parametrize(
    ("num_items", "most"), [(2, 64), (40, 80), (7000, 10_000), (100_000, 10_000)]
)
def test_a_list_grows_to_twice_its_items_and_ten_thousand_at_most(
    num_items: int, most: int
) -> None:
    lengths = set()
    for seed in range(12):
        values: list[Any] = [list(range(num_items))]
        MUTATIONS["grow"](values, random.Random(seed))
        lengths.add(len(values[0]))
    assert max(lengths) <= most
    assert max(lengths) > most // 2


def test_a_constant_takes_the_place_of_a_text_or_is_written_into_it() -> None:
    made = set()
    for seed in range(60):
        values: list[Any] = ["yarn"]
        _place_constant(values, random.Random(seed), "meow")
        made.add(values[0])
    assert {"meow", "yarnmeow", "meowyarn"} <= made
    for text in made:
        assert "meow" in text


def test_constants_of_the_problem_are_written_into_inputs() -> None:
    model = learn([(4, "yarn"), (7, "wool")], open_places={0, 1})
    made = []
    for seed in range(60):
        made.append(mutate(model, (4, "yarn"), "swap", seed=seed, constants=(977, "meow")))
    seen_values = set()
    for one in made:
        if one:
            seen_values.update(one)
    assert {977, 978, "meow"} <= seen_values


SCRIPT = """#!/usr/bin/env bash
. ../../testdata_tools/gen.sh
use_solution sl.cpp
compile gen.py   # makes one number
MAX=1000
samplegroup
sample 1
group g1 30
limits max=10
tc one gen high=10
tc_manual ../manual-tests/edge.in
for A in $(seq 1 4 5) {2..1} many; do
  tc loop-$A gen high=9
done
group g2 70
limits max=$MAX
include_group g1
tc one
tc big gen high=$MAX lie=1
tc other ghost high=3
tc half gen high=$((MAX + -7 / 2 - -7 % 3))
LESS=$(($MAX-2**3))
for i in {08..09}; do tc pad-$i gen high=$LESS; done;
let MAX=MAX**22
tc huge gen high=$MAX
tc hard gen high=$(wc -l < gen.py)
"""
HELPER = """import random, sys

def option(name, default=None):
    return next((one.split("=")[1] for one in sys.argv if one.startswith(name + "=")), default)

random.seed(int(sys.argv[-1]))
"""
GENERATOR = """from util import *
high = int(option('high'))
print(high + 1 if option('lie') else random.randint(1, high))
"""
VALIDATOR = """#include "validator.h"
int main(int argc, char** argv) {
    long long most = 0, number;
    for (int i = 1; i < argc; i++) if (std::string(argv[i]).rfind("max=", \
0) == 0) most = std::stoll(argv[i] + 4);
    std::string more;
    return (std::cin >> number) && 1 <= number && number <= most && !(std::cin >> more) ? 42 : 43;
}
"""
PACKAGE = {
    "data/generator.sh": SCRIPT,
    "data/gen.py": GENERATOR,
    "data/util.py": HELPER,
    "manual-tests/edge.in": "7\n",
    "input_validators/check/check.cpp": VALIDATOR,
    "input_validators/check/validator.h": "#include <iostream>\n#include <string>\n",
}

GENERATORS_YAML = """
solution: /submissions/accepted/a.py
random_salt: pepper
generators:
  pair: [pair.py, tools.py]
data:
  sample:
    data:
      - '1':
          in: "1 2"
  secret:
    data:
      - small: pair {seed} 5
      - counted: {generate: "pair {count} 9", count: 2}
      - deep:
          data:
            big: pair.py {seed:2} 100
      - copied: {copy: manual/edge}
      - gone: nowhere 5
"""


def test_bapctools_generators_are_read() -> None:
    kit = read_kit(
        {
            "generators/generators.yaml": GENERATORS_YAML,
            "generators/pair.py": "import sys, tools\nprint(sys.argv[1:])\n",
            "generators/tools.py": "x = 1\n",
            "generators/manual/edge.in": "3 4\n",
        }
    )
    seed = int(hashlib.sha512(b"pepperpair {seed} 5").hexdigest(), 16) % 2**31
    recipes = [(one.group, one.generator, one.arguments[:1], one.text) for one in kit.recipes]
    assert recipes[:4] == [
        ("sample", "", (), "1 2\n"),
        ("secret", "pair", (str(seed),), ""),
        ("secret", "pair", ("1",), ""),
        ("secret", "pair", ("2",), ""),
    ]
    assert recipes[4][:2] == ("secret/deep", "pair.py")
    assert recipes[5] == ("secret", "", (), "3 4\n")
    assert kit.left_out == ("generators/nowhere: no program in a language that is known",)


def test_a_script_is_read_line_by_line() -> None:
    kit = read_kit(PACKAGE)
    assert [(one.role, one.language) for one in kit.programs] == [
        ("generator", "python"),
        ("validator", "cpp"),
    ]
    assert [one.group for one in kit.recipes] == ["secret/g1"] * 6 + ["secret/g2"] * 4
    assert kit.recipes[0].arguments == (
        "high=10",
        str(int(hashlib.md5(b"one").hexdigest()[:6], 16)),
    )
    assert kit.recipes[0].flags == ("max=10",)
    assert kit.recipes[1].text == "7\n"
    assert kit.recipes[-1].flags == ("max=1000",)
    assert [one.arguments[0] for one in kit.recipes[-3:]] == ["high=998", "high=992", "high=992"]
    assert kit.recipes[-1].arguments[1] == str(int(hashlib.md5(b"pad-09").hexdigest()[:6], 16))
    assert kit.left_out == (
        "generator: ghost is not a program that was read",
        "generator: a line that only a shell can read",
    )


def test_a_missing_header_is_said_or_taken_from_bapctools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"input_validators/v.cpp": '#include "validation.h"\nint main() { return accept(); }\n'}
    find_header.cache_clear()
    if find_spec("bapctools") is None:
        (said,) = read_kit(files).left_out
        assert said.endswith(
            "includes validation.h, which the package lacks; type: pip install bapctools"
        )
    header = tmp_path / "bapctools" / "resources" / "headers" / "validation.h"
    header.parent.mkdir(parents=True)
    (tmp_path / "bapctools" / "__init__.py").write_text("")
    header.write_text("int accept() { return 42; }\n")
    monkeypatch.syspath_prepend(tmp_path)
    find_header.cache_clear()
    (program,) = read_kit(files).programs
    find_header.cache_clear()
    assert "int accept() { return 42; }" in program.code


def test_generators_run_and_the_validator_decides(judge: Judge) -> None:
    dropped: Counter[str] = Counter()
    kit = read_kit(PACKAGE)
    made = run_kit(judge, kit, dropped, most=60)
    validators = read_validators(judge, kit, ["3\n"], dropped)
    assert validators is not None
    assert validators.ways == (("max=1000",), ("max=10",))
    valid = validators.accept(made, dropped)
    assert len(made) == 10
    assert len(valid) == 9
    assert dropped["refused by a validator"] == 1
    assert {one.origin.kind for one in valid} == {"package/gen", "package/by hand"}
    assert {one.origin.certificate for one in valid} == {"package"}


def test_a_checktestdata_validator_becomes_a_python_program(judge: Judge) -> None:
    pytest.importorskip("checktestdata")
    digits = sys.get_int_max_str_digits()
    validators = {
        "input_validators/v.ctd": "INT(1, 10, n) NEWLINE EOF\n",
        "input_validators/bad.ctd": "INT(1,\n",
    }
    kit = read_kit({**PACKAGE, **validators})
    in_python = []
    for one in kit.programs:
        if one.language == "python":
            in_python.append(one.name)
    assert in_python == [
        "gen",
        "input_validators/v.ctd",
    ]
    assert any(said.startswith("input_validators/bad.ctd: cannot be read") for said in kit.left_out)
    assert sys.get_int_max_str_digits() == digits > 0
    found = read_validators(judge, InputKit(programs=kit.programs[-1:]), ["7\n"], Counter())
    assert found is not None
    assert found.ask(["10\n", "11\n", "10", "ten\n"]) == {0}


VALIDATOR = """import sys
most = int(next(one.split("=")[1] for one in sys.argv if one.startswith("max=")))
count, *numbers = map(int, sys.stdin.read().split())
sys.exit(42 if 1 <= count <= most and len(numbers) == count else 1)
"""


def test_an_input_is_valid_in_one_group_or_another_and_no_validator_is_asked_in_a_wrong_way(
    judge: Judge,
) -> None:
    files = {
        "data/secret/g1/testdata.yaml": "range: 0 5\ninput_validator_flags: max=60\n",
        "data/secret/g2/test_group.yaml": "input_validator_args: ['max=5']\n",
        "input_validators/v.py": VALIDATOR,
    }
    kit = read_kit(files)
    assert kit.flags == (("max=60",), ("max=5",))
    texts = [f"{n} {'1 ' * n}\n" for n in (1, 20, 61)]
    known = [f"{n}\n{' '.join(map(str, range(n)))}\n" for n in (2, 3, 7)]
    dropped: Counter[str] = Counter()
    found = read_validators(judge, kit, known, dropped)
    assert found is not None
    made = [MadeInput(text, Origin(kind="given")) for text in texts]
    assert [one.text for one in found.accept(made, dropped)] == texts[:2]
    assert found.ask(spoil(known), ("max=60",)) == set()
    assert spoil([]) == []
    # Where a line has two words, one may be a line as well.
    assert "1\npea\n" not in spoil(["1\npea soup\n"])
    unknown = kit.programs[0].model_copy(update={"language": "brainfuck"})
    careless = kit.programs[0].model_copy(update={"code": "raise SystemExit(42)"})
    wrong_programs = [InputKit(programs=(one,)) for one in (unknown, careless)]
    for wrong in (kit.model_copy(update={"flags": ()}), *wrong_programs, InputKit()):
        assert read_validators(judge, wrong, known, dropped) is None
    assert dropped == {
        "refused by a validator": 1,
        "validators refuse what came with the problem": 1,
        "validators cannot be run here": 1,
        "validators accept a spoilt input": 1,
    }

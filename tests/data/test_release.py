"""What leaves the pipeline: tables, exports, a card."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from microcoder.data import Candidate, Rejection, Solution, read_problems
from microcoder.data.release import export, read_released, write_tables
from microcoder.data.release.card import write_card
from microcoder.data.release.tables import Tally
from microcoder.data.sources import MARKER
from microcoder.data.verify.rates import guess_chances
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Checker, TestCase


def candidate(number: int, **options: object) -> Candidate:
    found = Candidate(
        id=f"set/{number}",
        dataset="set",
        licence="MIT",
        date="2024-05",
        statement_found="Add  them.",
        statement="Add  them.",
        tests=(TestCase(input="1 2\n", output="3\n"),),
        solutions=(Solution(code="print(3)"),),
    )
    return found.model_copy(update=options).change("process", "tidy", statement="Add them.")


KEPT = [candidate(1), candidate(2, fn_name="add", tests=(TestCase(input="1\n2", output="3"),))]
REJECTED = [
    Rejection(
        id="set/3",
        dataset="set",
        stage="filter",
        reason="no_licence",
        candidate=candidate(3),
    ),
    Rejection(id="set/4", dataset="set", stage="collect", reason="not_json", raw="{</script>"),
]


def test_training_reads_a_corpus_as_it_is(tmp_path: Path) -> None:
    write_tables(tmp_path, KEPT, REJECTED)
    with pytest.raises(DataError, match="holds no finished corpus"):
        read_problems(tmp_path)
    (tmp_path / MARKER).write_text("{}")
    assert (
        read_problems(tmp_path) == read_released(tmp_path) == [kept.to_problem() for kept in KEPT]
    )


def test_guesses_are_rated_by_the_answers_in_the_letters_that_the_checker_takes() -> None:
    for answers, checker, share, chance in (
        # One answer: the coin has only that side.
        ("yes yes yes", Checker(), 1.0, 1.0),
        # Three flips of a coin, all right.
        ("yes no no", Checker(), 2 / 3, 1 / 8),
        # Three answers are too many for a coin.
        ("1 2 3", Checker(), 1 / 3, 0.0),
        ("Yes YES no", Checker(), 1 / 3, 0.0),
        ("Yes YES no", Checker(type="tokens", case_sensitive=False), 2 / 3, 1 / 8),
    ):
        examples = []
        for n, said in enumerate(answers.split()):
            examples.append(TestCase(input=f"{n}\n", output=f"{said}\n"))
        tests = tuple(examples)
        found = guess_chances(candidate(1, tests=tests, checker=checker))
        assert found == {"constant_share": share, "coin_chance": chance}


def test_what_a_plain_grader_would_misjudge_has_no_tests_that_it_could_read(tmp_path: Path) -> None:
    # Plain graders compare texts, so that only the last is judged alike.
    checkers = [
        Checker(type="float", tolerance=1e-6),
        Checker(type="program", code="exit(0)"),
        Checker(type="exact"),
    ]
    problems = [candidate(n, checker=checker).to_problem() for n, checker in enumerate(checkers)]
    for form in ("verl", "nemogym"):
        export(problems, tmp_path / form, form=form)
    rows = pq.read_table(tmp_path / "verl").to_pylist()
    assert ["inputs" in json.loads(row["reward_model"]["ground_truth"]) for row in rows] == [
        False,
        False,
        True,
    ]
    lines = [json.loads(line) for line in (tmp_path / "nemogym").read_text().splitlines()]
    assert ["unit_tests" in line["verifier_metadata"] for line in lines] == [False, False, True]


@pytest.mark.parametrize(
    ("name", "licences", "said"),
    [
        # Names that YAML would take for a mapping, a comment, a list, a bool.
        ("my: corpus", ("MIT", "MIT"), "mit"),
        ('"#', ("MIT", "GPL-3.0"), "other"),
        ("- no", ("", ""), "unknown"),
        ("yes", ("permission of the author",) * 2, "other"),
        ("a", ("MIT", ""), "other"),
        ("b", (("M\n\na|b"), ""), "other"),
    ],
)
def test_the_head_of_a_card_is_yaml_whatever_its_name(
    tmp_path: Path,
    name: str,
    licences: tuple[str, str],
    said: str,
) -> None:
    kept = [candidate(number, licence=licence) for number, licence in enumerate(licences)]
    write_card(
        tmp_path,
        name=name,
        tally=write_tables(tmp_path, kept, []),
        step_counts=[],
        figures={},
        config={},
    )
    assert pq.read_table(tmp_path / "rejected-00000.parquet").num_rows == 0
    text = (tmp_path / "README.md").read_text()
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["pretty_name"] == name
    assert head["license"] == said
    assert "a tenth of the problems have at most" in text
    assert ("| M a\\|b | 1 |" in text) == ("a|b" in licences[0])


def test_a_tally_says_how_many_hidden_tests_a_share_of_the_problems_has() -> None:
    tally = Tally(num_problems=10, nums_hidden=Counter({5: 2, 7: 5, 15: 3}))
    assert [tally.find_hidden(share) for share in (0.1, 0.5, 0.9)] == [5, 7, 15]
    assert Tally().find_hidden(0.5) == 0

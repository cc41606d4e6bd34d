from __future__ import annotations

import pytest
from real_texts import ALL

from microcoder.data.filter.rules import RULES, QualitySettings, check_quality
from microcoder.data.formats.candidates import REASONS, Candidate
from microcoder.judge.core.types import TestCase

GOOD = (
    "You are given n integers. Choose some of them so that no two stand beside each other and their sum is as large as "
    "possible. Print that sum.\n\n## Input\n\nThe number n, then n integers.\n\n## Output\n\nOne integer.\n"
)
TESTS = (TestCase(input="1\n2\n", output="2\n"),)


def reason(statement: str, settings: QualitySettings | None = None, **fields: object) -> str | None:
    candidate = Candidate(**{"id": "set/1", "dataset": "set", "statement": statement, "tests": TESTS, **fields})  # type: ignore[arg-type]
    found = check_quality(candidate, settings)
    return found[0] if found else None


def test_a_good_statement_passes() -> None:
    assert reason(GOOD) is None


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("", "no_statement"),
        (" \n", "no_statement"),
        ("Problem statement not available.", "no_statement"),
        ("TBD", "no_statement"),
        ("Add two numbers.", "too_short"),
        (
            "Write a SQL query to report the names of all customers who never order anything in the shop.",
            "not_a_program",
        ),
        (
            "Which of the following is the complexity of sorting n numbers by comparing two of them at a time?",
            "not_a_program",
        ),
    ],
)
def test_each_rule_has_its_reason(statement: str, expected: str) -> None:
    assert reason(statement) == expected


@pytest.mark.parametrize("flag", QualitySettings().blocking_flags)
def test_what_was_found_stands_in_the_way(flag: str) -> None:
    assert reason(GOOD, flags=("no_constraints", flag)) == flag
    assert reason(GOOD, QualitySettings(blocking_flags=()), flags=(flag,)) is None


def test_a_mere_remark_does_not() -> None:
    assert reason(GOOD, flags=("no_constraints", "samples_missing")) is None


def test_a_row_without_tests_goes_unless_tests_come_later() -> None:
    assert reason(GOOD, tests=()) == "no_tests"
    assert reason(GOOD, QualitySettings(needs_tests=False), tests=()) is None


def test_bounds_are_the_config_s() -> None:
    assert reason("Add two numbers.", QualitySettings(min_words=0)) is None


def test_every_reason_is_known() -> None:
    assert {rule.__name__ for rule in RULES} - {"flagged"} <= set(REASONS)
    assert set(QualitySettings().blocking_flags) <= set(REASONS)


@pytest.mark.parametrize("name", ["livecodebench", "deepseek_en", "deepseek_zh", "kodsport", "codecontests"])
def test_real_problems_pass(name: str) -> None:
    settings = QualitySettings(needs_tests=False)
    rows = ALL[name]()
    found = {one.id: check_quality(one, settings) for one in rows}
    refused = {row_id: why for row_id, why in found.items() if why}
    assert len(refused) <= 0.02 * len(rows), refused


def test_databases_and_shells_among_real_problems_go() -> None:
    settings = QualitySettings(needs_tests=False)
    rows = [one for one in ALL["doocs_en"]() if "Column Name" in one.statement_found]
    found = [check_quality(one, settings) for one in rows]
    assert len(rows) >= 5
    assert sum(why is not None and why[0] == "not_a_program" for why in found) >= 0.95 * len(rows)

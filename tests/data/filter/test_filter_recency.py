from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from microcoder.data.filter.rules import RecencySettings, check_recency, parse_period
from microcoder.data.formats.candidates import Candidate


def reason(published: str, **settings: object) -> str | None:
    found = check_recency(
        Candidate(id="set/1", dataset="set", date=published),
        RecencySettings(**settings),  # type: ignore[arg-type]
    )
    return found[0] if found else None


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2024", date(2024, 1, 1), date(2024, 12, 31)),
        ("2024-02", date(2024, 2, 1), date(2024, 2, 29)),
        ("2024-05-17", date(2024, 5, 17), date(2024, 5, 17)),
        ("2024-05-17T12:00:00Z", date(2024, 5, 17), date(2024, 5, 17)),
    ],
)
def test_a_date_is_the_days_that_it_can_mean(text: str, first: date, last: date) -> None:
    assert parse_period(text) == (first, last)


@pytest.mark.parametrize("text", ["", "2024-13", "2024-02-30", "May 2024", "0000", "17"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_period(text) is None


@given(st.dates())
def test_every_day_is_read_back(day: date) -> None:
    assert parse_period(day.isoformat()) == (day, day)


def test_without_a_window_everything_passes() -> None:
    assert reason("1999") is None
    assert reason("") is None


@pytest.mark.parametrize(
    ("published", "expected"),
    [("2023-12-31", "too_old"), ("2024-01-01", None), ("2024", None), ("2025", "too_new"), ("2024-12-31", None)],
)
def test_a_window_holds_its_ends(published: str, expected: str | None) -> None:
    assert reason(published, not_before="2024-01-01", not_after="2024-12") == expected


@pytest.mark.parametrize(
    ("published", "expected"),
    [("2024-05", "before_cutoff"), ("2024-06-01", None), ("2024", None), ("2023", "before_cutoff")],
)
def test_what_the_model_surely_saw_goes(published: str, expected: str | None) -> None:
    assert reason(published, model_cutoff="2024-05") == expected


def test_rows_without_a_date_go_where_that_is_asked_for() -> None:
    assert reason("", model_cutoff="2024") is None
    assert reason("", model_cutoff="2024", undated="reject") == "no_date"
    assert reason("", undated="reject") is None


@given(st.dates(), st.dates(), st.dates())
def test_a_later_problem_is_never_too_old_where_an_earlier_one_is_not(one: date, other: date, bound: date) -> None:
    early, late = sorted([one, other])
    if reason(early.isoformat(), not_before=bound.isoformat()) is None:
        assert reason(late.isoformat(), not_before=bound.isoformat()) is None


def test_a_wrong_date_in_the_config_says_what_to_write() -> None:
    with pytest.raises(ValidationError, match="write 2024, 2024-05 or 2024-05-17"):
        RecencySettings(model_cutoff="May 2024")

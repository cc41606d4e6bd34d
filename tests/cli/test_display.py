"""What a build says while it works."""

from __future__ import annotations

import pytest

from microcoder.cli.display import StepDisplay, describe_left, describe_seconds


def test_time_is_shown_in_the_unit_that_one_would_say() -> None:
    assert [describe_seconds(seconds) for seconds in (3.4, 119, 600, 9000)] == ["3 s", "119 s", "10 min", "2.5 h"]
    assert describe_left(10, 5, 20) == "about 40 s left"
    assert describe_left(10, 0, 20) == describe_left(10, 5, 0) == ""


def test_a_log_shows_rows_and_signs_of_life(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("microcoder.cli.display.time.monotonic", lambda: clock[0])
    with StepDisplay(unit="rows") as display:
        for seconds, done in ((0.0, 0), (2.0, 1), (6.0, 2), (20.0, 2), (37.0, 2), (40.0, 8)):
            clock[0] = seconds
            display.show("verify", done, 8)
    assert capsys.readouterr().err.splitlines() == [
        "verify: 2 of 8 rows, 6 s, about 18 s left",
        "verify: 2 of 8 rows, 37 s, about 111 s left",
        "verify: 8 of 8 rows, 40 s",
    ]

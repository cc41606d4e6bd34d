"""The way of one expected output through the judge, counted: a reader has to follow it."""

import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from types import FrameType

import pytest

import microcoder
from microcoder.judge.core.types import Program
from microcoder.judge.run.judging import Session
from microcoder.judge.run.verdicts import PreparedProblem
from tests.judge.conftest import make_problem

SOURCE = str(Path(microcoder.__file__).parent)
MOST_FILES = 12
MOST_MOVES = 78
"""What has been reached; both only fall."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with closing(Session()) as opened:
        opened.open()
        yield opened


def test_a_verdict_passes_few_files(session: Session) -> None:
    """A program of two lines with three tests, in the thread that judges it."""
    prepared = PreparedProblem(make_problem(("1", "1"), ("2", "2"), ("3", "3")))
    # Once before, so that what is made once is made.
    session.judge(Program("n = input()\nprint(n)"), prepared)
    files: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            files.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        verdict = session.judge(Program("n = input()\nprint(n) "), prepared)
    finally:
        sys.setprofile(None)
    assert verdict.is_accepted
    moves = sum(here != there for here, there in pairwise(files))
    assert len(set(files)) <= MOST_FILES
    assert moves <= MOST_MOVES

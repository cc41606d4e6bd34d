"""A process in which several tests run: what it may say, and what it is told."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.run.sharing import SharedProcess
from microcoder.judge.run.supervisor import LoadedProgram, Sandbox
from microcoder.judge.run.timing import limits_for
from microcoder.judge.sandbox.batch import ENDED, pack_frame, unpack_frames
from tests.judge.conftest import make_problem

LIMITS = limits_for(2.0, 512, 16)
ECHO = "print(input())"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with closing(Sandbox()) as started:
        yield started


def _share(sandbox: Sandbox, program: LoadedProgram, num_tests: int) -> SharedProcess:
    inputs = [b"%d" % number for number in range(num_tests)]
    return SharedProcess(sandbox, program.task(b""), inputs, LIMITS)


def test_an_unfinished_frame_is_left_out() -> None:
    frames = pack_frame(0, b"a") + pack_frame(256, b"bc")
    assert [*unpack_frames(frames[:-1])] == [(0, b"a")]
    assert [*unpack_frames(frames)] == [(0, b"a"), (256, b"bc")]


def test_tests_come_in_the_order_of_their_inputs(sandbox: Sandbox) -> None:
    with closing(LoadedProgram(ECHO)) as program:
        process = _share(sandbox, program, 30)
        assert [*process] == [(0, b"%d\n" % number) for number in range(30)]
        assert process.has_ended_itself
        assert process.result is not None
        assert process.result.cpu_us > 0


def test_who_has_seen_enough_ends_the_process_and_the_sandbox_serves_on(sandbox: Sandbox) -> None:
    with closing(LoadedProgram(ECHO)) as program:
        process = _share(sandbox, program, 30)
        with closing(iter(process)) as frames:
            assert next(frames) == (0, b"0\n")
        assert process.result is None
        assert sandbox.run(program.task(b"7"), LIMITS).stdout == b"7\n"


def test_a_process_that_ends_during_a_test_has_not_ended_itself(sandbox: Sandbox) -> None:
    code = "import os\nn = input()\nprint(n, flush=True)\nif n == '2': os._exit(0)"
    with closing(LoadedProgram(code)) as program:
        process = _share(sandbox, program, 9)
        assert [*process] == [(0, b"0\n"), (0, b"1\n")]
        assert not process.has_ended_itself


def test_a_test_that_fails_is_the_last_of_its_process(sandbox: Sandbox) -> None:
    with closing(LoadedProgram("n = int(input())\nprint(n)\n1 / (n - 1)")) as program:
        process = _share(sandbox, program, 9)
        assert [*process] == [(0, b"0\n"), (1, b"1\n")]
        assert process.has_ended_itself


QUESTIONS = 6
"""Descriptor of a shared process that asks the judge."""
FRAMES = 5
"""Descriptor of a shared process that takes what is said of its tests."""


def test_a_process_that_asks_for_ever_is_not_listened_to(sandbox: Sandbox) -> None:
    code = f"import os\nwhile True: os.write({QUESTIONS}, b'+')"
    with closing(LoadedProgram(code)) as program:
        process = _share(sandbox, program, 9)
        assert [*process] == []
        assert not process.has_ended_itself
        assert sandbox.run(LoadedProgram(ECHO).task(b"7"), LIMITS).stdout == b"7\n"


@pytest.mark.parametrize(
    "forged",
    [pack_frame(0, b"1\n") * 20, pack_frame(ENDED, b""), b"\xff" * 9],
    ids=["more than there are", "an end", "no frame"],
)
def test_what_a_program_says_of_its_own_tests_gains_nothing(forged: bytes) -> None:
    code = f"import os\ntry: os.write({FRAMES}, {forged!r})\nexcept OSError: pass\nprint(2)"
    tests = [("", str(number)) for number in range(10)]
    with Judge(workers=1, cache_size=0, time_scale=1.0) as judge:
        (verdict,) = judge.judge([Program(code)], [make_problem(*tests)])
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert verdict.tests_passed <= 1

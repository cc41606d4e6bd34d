"""What a process of several tests may say, and what it is told: the test plays the process."""

import os
import socket

from microcoder.judge.run.sharing import ProcessBatch
from microcoder.judge.sandbox import batch
from microcoder.judge.sandbox.batch import GO_ON, pack_frame, unpack_frames
from microcoder.judge.sandbox.protocol import Result

ENDED = Result(exit_code=0, signal=0, cpu_us=900, wall_us=1200, memory_kib=50, expired=0)
INPUTS = [b"2", b"3"]


def _ask(process: ProcessBatch, questions: int) -> bytes:
    """Ask once, and hear nothing else within a moment; return the answer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.write(questions, GO_ON)
        process.answer_questions(ours, 0.01)
    return os.read(questions, 1)


def _process_of(right: set[bytes]) -> ProcessBatch:
    return ProcessBatch(INPUTS, 0.5, lambda number, status, output: not status and output in right)


def _write(process: ProcessBatch, *told: tuple[int, bytes], stdout: int = -1) -> tuple[int, int]:
    """Begin a process and say this much of its tests; return where it gets its inputs and asks."""
    _, inputs, frames, questions = process.open(stdout)
    os.write(frames, b"".join(pack_frame(*one) for one in told))
    return inputs, questions


def test_inputs_are_there_once_the_first_test_was_right() -> None:
    process = _process_of({b"a", b"b"})
    _, inputs, frames, questions = process.open(-1)
    os.write(frames, pack_frame(0, b"a"))
    assert os.fstat(inputs).st_size == 0
    assert _ask(process, questions) == GO_ON
    assert os.pread(inputs, 100, 0).endswith(b"23")
    os.write(frames, pack_frame(0, b"b") + pack_frame(batch.ENDED, b""))
    shared = process.finish(ENDED)
    assert process.num_ended == 2
    assert process.first == (0, b"a")
    assert shared.cpu_us == 450
    assert shared.wall_us == 600
    assert not process.has_wrong
    assert not process.has_lost


def test_a_process_that_ends_during_a_test_has_lost_it_and_one_that_is_run_again_begins_anew() -> (
    None
):
    process = _process_of({b"a"})
    _write(process, (0, b"a"))
    process.finish(ENDED)  # Whatever its exit code.
    assert process.has_lost
    assert not process.is_out_of_time
    _write(process, (0, b"x"))
    process.finish(ENDED)
    assert process.has_wrong
    _write(process, (0, b"a"), (batch.ENDED, b""))
    process.finish(ENDED)
    assert not process.has_wrong
    assert not process.has_lost


def test_a_wrong_test_ends_its_process_and_nothing_behind_it_is_looked_at() -> None:
    for status, output in ((0, b"x"), (1, b"a")):
        process = _process_of({b"a"})
        inputs, questions = _write(process, (status, output), (0, b"a"))
        assert _ask(process, questions) != GO_ON
        assert os.fstat(inputs).st_size == 0
        assert process.finish(ENDED).exit_code == status
        assert process.num_ended == 1
        assert process.has_wrong


def test_a_test_counts_if_nothing_was_changed_when_it_began_or_after_it() -> None:
    clean = batch.CLEAN
    for statuses, num_counting in (
        ((0, clean, clean), 3),
        ((0, clean, 0, batch.ENDED | clean), 3),
        # The second began when nothing was changed; what the third found is not known.
        ((0, clean, 0, batch.ENDED), 2),
        ((0, 0, 0), 1),
        # Nothing is said after the end.
        ((0, 0, 0, batch.ENDED, batch.ENDED | clean), 1),
        # More tests than were asked for do not count.
        ((0,) * 9, 1),
    ):
        process = _process_of({b"a"})
        _write(process, *((status, b"a") for status in statuses))
        process.finish(ENDED)
        assert process.num_ended == 3, statuses
        assert process.num_counting == num_counting, statuses


def test_a_process_that_asks_for_ever_is_not_listened_to() -> None:
    process = _process_of(set())
    *_, questions = process.open(-1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.write(questions, GO_ON * 1000)
        process.answer_questions(ours, 60.0)
        os.set_blocking(questions, False)
        assert 0 < len(os.read(questions, 1000)) < 100
        process.answer_questions(ours, 60.0)
    assert process.finish(ENDED) == ENDED


def test_what_the_first_test_wrote_is_where_it_wrote_it_and_what_is_unfinished_is_left_out() -> (
    None
):
    stdout = os.memfd_create("stdout")
    os.write(stdout, b"a")
    process = _process_of({b"a"})
    _write(process, (0, b""), (0, b"a"), stdout=stdout)
    process.finish(ENDED)
    os.close(stdout)
    assert process.first == (0, b"a")
    assert process.num_ended == 2
    frames = pack_frame(0, b"a") + pack_frame(256, b"bc")
    assert [*unpack_frames(frames[:-1])] == [(0, b"a")]
    assert [*unpack_frames(frames)] == [(0, b"a"), (256, b"bc")]

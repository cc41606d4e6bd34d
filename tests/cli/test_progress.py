import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from microcoder.cli.display import StepDisplay, describe_sampling
from microcoder.cli.train import RunDisplay
from microcoder.train.run.progress import (
    SECONDS_BETWEEN_REPORTS,
    PassCounter,
    SamplingProgress,
    UpdateProgress,
)
from tests.train.test_metrics import EVALUATION, HEALTHY

SECONDS = {"generate": 8.0, "update": 2.0, "total": 10.0}
STEP = replace(
    HEALTHY,
    step=1,
    accuracy_by_tier={"easy": 0.5, "hard": 0.0},
    unscored_share=0.0,
    seconds=SECONDS,
)

PROGRAM = f"""
from dataclasses import replace
from microcoder.cli.train import RunDisplay
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
progress = RunDisplay()
progress.evaluation({replace(EVALUATION, num_unscored=0)})
for step in (1, 2):
    progress.step(replace({STEP}, step=step), num_steps=12)
progress.note("saved a checkpoint")
print("the run went on")
"""


def test_a_pipe_gets_one_whole_line_a_step_without_control_characters() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    lines = result.stderr.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("held-out after step 0  accuracy 0.500  1 problems x 2")
    assert lines[1].startswith(
        "step 1/12  reward 0.400  accuracy easy 0.50 hard 0.00  length 900 of 4096  truncated 10%"
    )
    masked = "masked 0.0% (0.0% with an advantage)"
    for part in (
        "diversity 0.700",
        "temperature 1.20",
        masked,
        "10.0 s (generate 8.0, update 2.0)",
    ):
        assert part in lines[1]
    assert lines[2].endswith("left 100 s")
    assert lines[3] == "saved a checkpoint"
    for line in lines:
        for character in line:
            assert character.isprintable()


def test_a_reader_that_has_gone_does_not_stop_the_run() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=writer,
    )
    os.close(writer)
    assert process.communicate(timeout=60)[0] == b"the run went on\n"


def test_unknown_numbers_are_dashes_and_unscored_rollouts_stand_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    RunDisplay().step(
        replace(STEP, reward_mean=None, diversity=None, unscored_share=0.031), num_steps=12
    )
    said = capsys.readouterr().err
    RunDisplay().note("[bold]a\r\x1b[31mb\nc[/nope]")
    assert capsys.readouterr().err == "[bold]a [31mb c[/nope]\n"
    for part in ("reward -  ", "diversity -  ", "UNSCORED 3.1%"):
        assert part in said


def test_a_log_shows_rows_and_signs_of_life(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("microcoder.cli.display.time.monotonic", lambda: clock[0])
    with StepDisplay(unit="rows") as display:
        for seconds, done in ((0.0, 0), (2.0, 1), (6.0, 2), (20.0, 2), (37.0, 2), (40.0, 8)):
            clock[0] = seconds
            display.show("verify", done, 8)
        display.phase("judge [x]", done=3, total=5, counts={"kept": 3})
        for label in ("kept", "refused"):
            display.advance(label)
    assert capsys.readouterr().err.splitlines() == [
        "verify: 2 of 8 rows, 6 s, about 18 s left",
        "verify: 2 of 8 rows, 37 s, about 111 s left",
        "verify: 8 of 8 rows, 40 s",
        "judge [x]: 5 of 5 rows, 0 s, 4 kept, 1 refused",
    ]


SAMPLING = SamplingProgress(
    ended=3,
    total=8,
    tokens=1200,
    longest=200,
    limit=1000,
    seconds=10.0,
    steps=200,
    steps_left=800,
)
DONE = replace(SAMPLING, ended=8)
DESCRIBED = "3 of 8 responses ended, 200 of at most 1,000 tokens, 120 tokens/s, at most 40 s left"


def test_a_batch_is_described_by_ended_responses_speed_and_what_is_left() -> None:
    assert describe_sampling(SAMPLING) == DESCRIBED


def test_a_log_gets_a_line_of_a_batch_after_half_a_minute_and_not_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = RunDisplay()
    display.sampling(SAMPLING)
    assert capsys.readouterr().err == ""
    display = RunDisplay()
    display.sampling(replace(SAMPLING, seconds=31.0, tokens=3720))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sampling: 3 of 8 responses ended, 200 of at most 1,000 tokens, 120")
    display.sampling(replace(SAMPLING, seconds=31.5))
    display.sampling(replace(DONE, seconds=90.0))
    assert capsys.readouterr().err == ""


def test_a_log_gets_a_line_of_updates_after_half_a_minute_and_not_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = RunDisplay()
    display.updating(UpdateProgress(number=2, total=8, seconds=12.0))
    assert capsys.readouterr().err == ""
    # A display of its own: this one's silence is as long as its updates.
    display = RunDisplay()
    display.updating(UpdateProgress(number=2, total=8, seconds=340.2))
    assert capsys.readouterr().err == "update: pass 2 of 8, 340 s\n"
    display.updating(UpdateProgress(number=3, total=8, seconds=341.0))
    assert capsys.readouterr().err == ""


def test_passes_are_counted_from_the_first_of_each_step() -> None:
    reported: list[UpdateProgress] = []
    counter = PassCounter(3, reported.append)
    # Two steps of three passes; only the pass after the pause begins late enough to be told of.
    for _ in range(3):
        counter.begin_pass()
    counter.begin_pass()
    time.sleep(SECONDS_BETWEEN_REPORTS)
    counter.begin_pass()
    counter.begin_pass()
    (progress,) = reported
    assert progress.number == 2
    assert progress.total == 3
    assert progress.seconds >= SECONDS_BETWEEN_REPORTS


def test_the_line_of_a_step_says_how_far_its_batch_is() -> None:
    display = StepDisplay()
    display.phase("generating", done=2, total=20)
    display.sampling(SAMPLING)
    assert display._latest is not None
    assert display._describe(display._latest).endswith(f"now {DESCRIBED}")
    display.sampling(DONE)
    assert "responses ended" not in display._describe(display._latest)


BAR = f"""
from microcoder.cli.train import RunDisplay
from microcoder.train.run.progress import SamplingProgress
display = RunDisplay()
display.sampling({SAMPLING!r})
display.note("a line")
display.sampling({SAMPLING!r})
display.sampling({DONE!r})
"""


def test_a_terminal_has_a_bar_below_the_lines_which_is_gone_at_the_end() -> None:
    master, slave = os.openpty()
    environment = {**os.environ, "COLUMNS": "200"}
    subprocess.run([sys.executable, "-c", BAR], stderr=slave, check=True, env=environment)
    os.close(slave)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    cleared = "\r\x1b[K"
    bar = f"{cleared}[########............] {DESCRIBED}"
    assert shown == f"{bar}{cleared}a line\r\n{bar}{cleared}"


STEPS = """
import time
from microcoder.cli.display import StepDisplay
with StepDisplay(unit="rows") as display:
    display.phase("judging", total=4)
    for _ in range(4):
        time.sleep(0.25)
        display.advance("accepted")
    display.phase("verify", total=9)
    time.sleep(0.25)
    display.advance("kept")
"""


def test_a_command_of_steps_has_a_bar_in_a_terminal_and_a_line_for_each_step_that_ended() -> None:
    master, slave = os.openpty()
    environment = {**os.environ, "COLUMNS": "200"}
    subprocess.run([sys.executable, "-c", STEPS], stderr=slave, check=True, env=environment)
    os.close(slave)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert "[##########..........] judging: 2 of 4 rows" in shown
    assert shown.count("judging: 4 of 4 rows") == 1
    # Nothing but the lines of whole steps is left on the screen.
    screen = [line.split("\x1b[K")[-1].rstrip("\r") for line in shown.split("\n")]
    assert len(screen) == 2
    assert screen[0].startswith("judging: 4 of 4 rows")
    assert screen[1] == ""

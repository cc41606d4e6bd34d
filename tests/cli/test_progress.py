import os
import subprocess
import sys
from dataclasses import replace

import pytest
from test_metrics import EVALUATION, HEALTHY

from microcoder.cli.display import StepDisplay
from microcoder.cli.train import RunDisplay

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
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
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
    assert all(character.isprintable() for line in lines for character in line)


def test_a_reader_that_has_gone_does_not_stop_the_run() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=writer
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
    assert all(part in said for part in ("reward -  ", "diversity -  ", "UNSCORED 3.1%"))


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

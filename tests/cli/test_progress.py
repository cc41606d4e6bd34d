import os
import pty
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

from microcoder.cli.display import Progress, StepDisplay
from microcoder.train.metrics import EvaluationMetrics, StepMetrics

STEP = StepMetrics(
    step=1,
    reward_mean=0.25,
    accuracy_by_tier={"easy": 0.5, "hard": 0.0},
    length_mean=120.4,
    length_max=512,
    diversity=0.71,
    temperature=1.2,
    max_response_tokens=512,
    truncated_share=0.05,
    masked_share=0.02,
    no_code_share=0.1,
    unscored_share=0.0,
    zero_variance_share=0.5,
    outcomes={},
    methods={},
    masked={},
    optimizer={},
    seconds={"generate": 8.0, "update": 2.0, "total": 10.0},
)

EVALUATION = EvaluationMetrics(
    step=0,
    accuracy=0.125,
    accuracy_by_tier={"easy": 0.25},
    num_problems=64,
    num_problems_by_tier={"easy": 64},
    samples_per_problem=4,
    num_unscored=0,
    solved={},
    length_mean=130.0,
    diversity=None,
    truncated_share=0.0,
    temperature=0.6,
    outcomes={},
)

PROGRAM = f"""
from dataclasses import replace
from microcoder.cli.display import Progress
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
progress = Progress()
progress.evaluation({EVALUATION})
for step in (1, 2):
    progress.step(replace({STEP}, step=step), num_steps=12)
progress.note("saved a checkpoint")
print("the run went on")
"""


def environment(**extra: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "200", **extra}


def test_a_pipe_gets_one_whole_line_a_step_without_control_characters() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, env=environment(COLUMNS="20")
    )
    assert (result.returncode, result.stdout) == (0, "the run went on\n")
    lines = result.stderr.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("held-out after step 0  accuracy 0.125  64 problems x 4  easy 0.25")
    assert lines[1].startswith("step 1/12  reward 0.250  accuracy easy 0.50 hard 0.00  length 120 of 512  truncated 5%")
    masked = "masked 2.0% (0.0% with an advantage)"
    for part in ("diversity 0.710", "temperature 1.20", masked, "10.0 s (generate 8.0, update 2.0)"):
        assert part in lines[1]
    assert lines[2].endswith("left 100 s")
    assert lines[3] == "saved a checkpoint"
    assert "UNSCORED" not in result.stderr
    assert all(character.isprintable() for line in lines for character in line)


BUILD = """
from microcoder.cli.display import StepDisplay
with StepDisplay(unit="rows") as display:
    display.phase("verify [x]", done=3, total=5, counts={"kept": 3})
    for label in ("kept", "refused"):
        display.advance(label)
    display.show("difficulty", 0, 2)
"""


def test_a_terminal_gets_bars_that_keep_their_last_state_and_its_cursor_back() -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", BUILD]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, env=environment())
    os.close(follower)
    written = b""
    with suppress(OSError), open(leader, "rb", buffering=0) as terminal:  # it is gone once the program has ended
        while chunk := terminal.read(65536):
            written += chunk
    assert process.wait(timeout=30) == 0
    shown = written.decode()
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    last = shown[shown.rindex("verify [x]") :]
    assert "5 of 5 rows, 0 s, 4 kept, 1 refused" in last
    assert "0 of 2 rows" in last


def test_a_reader_that_has_gone_does_not_stop_the_run() -> None:
    program = PROGRAM.replace("progress = Progress()", "import time; time.sleep(0.5)\nprogress = Progress()")
    reader, writer = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    os.close(reader)
    assert process.communicate(timeout=60)[0] == b"the run went on\n"


def test_unknown_numbers_are_dashes_and_unscored_rollouts_stand_out(capsys: pytest.CaptureFixture[str]) -> None:
    Progress().step(replace(STEP, reward_mean=None, diversity=None, unscored_share=0.031), num_steps=12)
    said = capsys.readouterr().err
    assert all(part in said for part in ("reward -  ", "diversity -  ", "UNSCORED 3.1%"))


def test_text_from_elsewhere_stays_one_line_and_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    Progress().note("[bold]a\r\x1b[31mb\nc[/nope]")
    assert capsys.readouterr().err == "[bold]a [31mb c[/nope]\n"


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

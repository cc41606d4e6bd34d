"""A judge under test is kept from this machine, asked, and killed where it says nothing."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from microcoder.judge.core.errors import ConfigError, EvaluatorFault
from microcoder.lab.yardstick.audits import YardstickPlan, ask_judge
from microcoder.lab.yardstick.cases import Case
from microcoder.lab.yardstick.lanes import Lane, put_case
from microcoder.lab.yardstick.named_judges import read_judge

PEERS = Path(__file__).parents[3] / "examples" / "judges" / "peers.py"
RIGHT = Case(
    "right",
    "fidelity",
    "right",
    "V6",
    True,
    "",
    "print(sum(map(int, input().split())))",
    (("1 2\n", "3\n"),),
)
WRONG = Case("wrong", "forgery", "wrong", "V5", False, "", "print(4)", (("1 2\n", "3\n"),))


@contextmanager
def open_lane(judge: str, patience_seconds: float = 20.0) -> Iterator[Lane]:
    lane = Lane(read_judge(judge, python=sys.executable), patience_seconds=patience_seconds)
    try:
        yield lane
    finally:
        lane.close()


def write_judge(folder: Path, body: str, parameters: str = "code, tests, time_limit") -> str:
    file = folder / "mine.py"
    file.write_text(f"def judge({parameters}):\n    {body}\n")
    return f"function={file}:judge"


@pytest.mark.parametrize("judge", ["microcoder", "subprocess", f"{PEERS}:in_process"])
def test_judges_that_need_nothing_tell_right_from_wrong(judge: str) -> None:
    with open_lane(judge) as lane:
        assert not put_case(lane, RIGHT).is_miss
        assert not put_case(lane, WRONG).is_miss
        assert lane.containment == ""


def test_a_function_of_the_user_is_asked_and_believed(tmp_path: Path) -> None:
    for body, parameters, found in (
        (
            "return tests['outputs'] == ['3\\n'] and time_limit == 4",
            "code, tests, time_limit",
            ["", "accepted"],
        ),
        (
            "return None if case['title'] == 'right' else True",
            "case",
            ["no verdict: unscored", "accepted"],
        ),
        ("raise ValueError('no')", "case", ["no verdict: ValueError: no", ""]),
        ("return case['expect']", "case", ["no verdict: KeyError: 'expect'", ""]),
    ):
        with open_lane(write_judge(tmp_path, body, parameters)) as lane:
            assert [put_case(lane, case).what for case in (RIGHT, WRONG)] == found
    file = tmp_path / "theirs.py"
    file.write_text(
        "def check_correctness(sample, generation, timeout, debug=True):\n"
        "    return [True, -2], {}\n"
    )
    with open_lane(f"lcb={file}:check_correctness") as lane:
        assert lane.ask(RIGHT).accepted is False


def test_a_judge_that_ends_or_hangs_is_started_again(tmp_path: Path) -> None:
    body = "import os, time\n    if 'print(4)' in code: os._exit(3)\n"
    body += "    time.sleep(100 if 'sleep' in code else 0)\n    return 1"
    with open_lane(write_judge(tmp_path, body), patience_seconds=0.5) as lane:
        assert lane.ask(WRONG).error == "ended"
        assert lane.ask(RIGHT).accepted is True
        hangs = Case(
            "hangs",
            "timeouts",
            "",
            "V6",
            False,
            "",
            "sleep",
            (("", ""),),
            time_limit_seconds=0.1,
        )
        assert put_case(lane, hangs).what == "no verdict in time"
        assert lane.ask(RIGHT).accepted is True


def test_what_a_program_writes_among_the_answers_is_passed_over(tmp_path: Path) -> None:
    body = """import contextlib, os
    for descriptor in range(3, 9):
        with contextlib.suppress(OSError): os.write(descriptor, \
b'{"accepted": false}\\n' + b"x" * 3_000_000)
    return 1"""
    with open_lane(write_judge(tmp_path, body)) as lane:
        assert [lane.ask(RIGHT).accepted for _ in range(2)] == [True, True]


def test_a_judge_that_does_not_start_again_is_left_out_and_stops_no_other(tmp_path: Path) -> None:
    judge = write_judge(tmp_path, "import os\n    os.remove(__file__)\n    os._exit(3)")
    plan = YardstickPlan((RIGHT, WRONG), seed=0, most=None)
    audit = ask_judge(
        read_judge(judge, python=sys.executable),
        plan,
        lanes=1,
        contain=False,
        note=print,
    )
    assert "the judge function does not start" in audit.problem


def test_a_judge_reaches_nothing_of_this_machine(tmp_path: Path) -> None:
    body = f"""import os, socket, pathlib
    problems = []
    for path in ({str(tmp_path / "written")!r}, os.path.join({str(Path(__file__).parent)!r}, \
"written")):
        try: pathlib.Path(path).write_text("x"); problems.append(path)
        except OSError: pass
    try: socket.create_connection(("127.0.0.1", {{}}), timeout=1); problems.append("network")
    except OSError: pass
    if len([name for name in os.listdir("/proc") if name.isdigit()]) > 3: \
problems.append("processes")
    if problems: raise ValueError(problems)
    return True"""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        judge = write_judge(tmp_path, body.replace("{}", str(server.getsockname()[1])))
        with open_lane(judge) as lane:
            assert lane.ask(RIGHT).error == ""


def test_what_a_program_leaves_behind_is_found() -> None:
    code = (
        "import os, time\n"
        "if not os.fork():\n"
        "    os.close(1)\n"
        "    os.close(2)\n"
        "    time.sleep(60)\n"
        "print(3)"
    )
    daemon = Case("daemon", "isolation", "", "V8", False, "", code, (("1 2\n", "HARM\n"),))
    with open_lane("subprocess") as lane:
        assert put_case(lane, daemon).what.startswith("left behind: process")


def test_an_adapter_in_a_file_says_what_it_can_and_is_asked(tmp_path: Path) -> None:
    checkout = tmp_path / "lcb_runner" / "evaluation"
    checkout.mkdir(parents=True)
    (checkout / "compute_code_generation_metrics.py").write_text(
        "def check_correctness(sample, generation, timeout, debug=True):\n    return [True], {}\n"
    )
    with open_lane(f"{PEERS}:livecodebench={tmp_path}") as lane:
        assert lane.judged.label == "livecodebench"
        assert put_case(lane, WRONG).what == "accepted"
    fusion = read_judge(f"{PEERS}:sandbox_fusion=http://localhost:1", python=sys.executable)
    assert set(fusion.abilities) == {"packages"}
    assert not fusion.runs_here
    with (
        pytest.raises(EvaluatorFault, match=r"livecodebench does not start: .*lcb_runner"),
        open_lane(f"{PEERS}:livecodebench={tmp_path / 'nowhere'}"),
    ):
        pass
    with pytest.raises(ConfigError, match=r"peers\.py has no function 'nosuch'"):
        read_judge(f"{PEERS}:nosuch", python=sys.executable)

"""`microcoder judge`: the file contract, resuming, and errors that say what to fix."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import microcoder.cli.judge as command
from microcoder.cli.judge_options import JudgeFlags
from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.files import read_rows
from microcoder.judge.run.submissions import VerdictFile

ADD = "a, b = map(int, input().split())\nprint(a + b)"
MICROCODER = [sys.executable, "-m", "microcoder"]
TESTS = [{"input": "1 2\n", "output": "3\n"}, {"input": "5 6\n", "output": "11\n"}]


def submission(name: str, code: str | None = ADD, **options: object) -> dict[str, Any]:
    return {
        "id": name,
        "code": code,
        "language": "python",
        "fn_name": None,
        "tests": TESTS,
        **options,
    }


def write(path: Path, *rows: object) -> Path:
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    )
    return path


def without_timings(row: dict[str, Any]) -> dict[str, Any]:
    measured = ("cpu_seconds", "wall_seconds", "memory_mib")
    tests = []
    for test in row["tests"]:
        tests.append({key: value for key, value in test.items() if key not in measured})
    return {**row, "tests": tests}


def test_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        submission("right"),
        submission("wrong", "print(3)"),
        submission("none", None),
        submission("broken", "x ="),
        {"id": "brief", "code": ADD, "tests": TESTS},
        submission(
            "function",
            "def f(a): return a * 2",
            fn_name="f",
            tests=[{"input": "[1]", "output": "[1, 1]"}],
        ),
        submission("float", "print(0.33333)", tests=[{"input": "", "output": "0.3333"}])
        | {
            "checker": {"type": "float", "tolerance": 0.001},
            "time_limit_seconds": 2,
            "memory_limit_mib": 256,
        },
    ]
    out = tmp_path / "deep" / "out.jsonl"
    lines = "".join(json.dumps(row) + "\n\n" for row in rows)
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + lines.encode()))
    command.judge(tmp_path / "in.jsonl.gz", output=out, options=JudgeFlags(workers=2), json=True)
    summary = json.loads(capsys.readouterr().out)
    lines = read_rows(out)
    assert [line["id"] for line in lines] == [row["id"] for row in rows]
    outcomes = [
        "accepted",
        "wrong_answer",
        "no_code",
        "compile_error",
        "accepted",
        "accepted",
        "accepted",
    ]
    assert [line["verdict"] for line in lines] == outcomes
    assert list(lines[0]) == ["id", "verdict", "tests_passed", "tests_total", "tests", "isolation"]
    assert list(lines[0]["tests"][0]) == [
        "verdict",
        "cpu_seconds",
        "wall_seconds",
        "memory_mib",
        "method",
        "detail",
    ]
    assert lines[1]["tests_passed"] == 1
    assert lines[1]["tests_total"] == 2
    assert len(lines[1]["tests"]) == 2
    assert lines[6]["tests"][0]["method"] == "float"
    assert summary["verdicts"] == {
        "accepted": 4,
        "wrong_answer": 1,
        "compile_error": 1,
        "no_code": 1,
    }
    assert summary["num_submissions"] == 7
    assert summary["num_judged"] == 7
    assert summary["isolation"]["level"] in ("full", "degraded")
    assert not out.with_name("out.jsonl.partial").exists()


FENCED = f"<think>hm</think>Sure:\n```python\n{ADD}\n```\nDone."
BOTH = {"problems": Path("p"), "responses": Path("r")}
ALL = "all 5 ended with compile_error: limits, input or language"


@pytest.mark.parametrize(
    ("code", "said"),
    [(FENCED, "5 of 5 do not compile and hold a code fence"), ("int main() {}//%s", ALL)],
)
def test_wrong_input_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    code: str,
    said: str,
) -> None:
    rows = [submission(str(number), code.replace("%s", str(number))) for number in range(5)]
    (tmp_path / "in.json").write_text(json.dumps(rows, indent=1))
    command.judge(tmp_path / "in.json", output=tmp_path / "out.jsonl", json=True)
    (found,) = json.loads(capsys.readouterr().out)["suspicions"]
    assert found.startswith(said)


def test_saved_answers_are_judged_in_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In several shapes; rows of LeetCodeDataset are named by `task_id`, and by a number:
    answers use either.
    """
    rows: list[dict[str, Any]] = []
    for level in ("Hard", "insane"):
        rows.append({"id": level, "tests": TESTS, "difficulty": level})
    rows += [
        {"id": "sum", "tests": TESTS, "tier": "Easy"},
        {"id": "unasked", "tests": TESTS, "tier": "Hard"},
    ]
    rows.append(
        {"id": 17, "task_id": "add-two", "tests": TESTS, "difficulty": "Medium", "note": "more"}
    )
    answers = [
        {"problem_id": "Hard", "response": FENCED},
        {"problem_id": "insane", "solution": FENCED},
        {"task_id": "add-two", "completion": FENCED},
        {"id": 17, "code": ADD},
        {"question_id": "sum", "code_list": [ADD, FENCED]},
    ]
    problems = write(tmp_path / "problems.jsonl", *rows)
    given = write(tmp_path / "answers.jsonl", *answers)
    misspelt = write(tmp_path / "misspelt.jsonl", {"problem_id": "Hard", "respons": FENCED})
    with pytest.raises(DataError, match=r"\(or code; it has problem_id, respons\) is missing"):
        command.judge(problems=problems, responses=misspelt, output=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    command.judge(problems=problems, responses=given, output=tmp_path / "run", json=True)
    results = json.loads(capsys.readouterr().out)
    assert results["outcomes"] == {"accepted": 6}
    assert results["num_problems"] == 4
    assert results["num_without_answer"] == 1
    assert results["is_complete"] is True
    counted = []
    for cell in results["cells"]:
        if cell["k"] == 1:
            counted.append((cell["difficulty"], cell["num_problems"], cell["value"]))
    names = ["Easy", "Medium", "Hard", "insane", "all"]
    expected = []
    for name in names:
        expected.append((name, 4 if name == "all" else 1, 1.0))
    assert counted == expected


def test_saved_answers_need_no_numpy(tmp_path: Path) -> None:
    problems = write(
        tmp_path / "problems.jsonl",
        {"id": "sum", "tests": TESTS},
        {"id": "other", "tests": TESTS},
    )
    wrong = {"problem_id": "other", "response": "```python\nprint(3)\n```"}
    words = ["judge", "--problems", str(problems), "--responses", str(tmp_path / "answers.jsonl")]
    program = (
        f"import sys; sys.modules['numpy'] = None; from microcoder.cli import main; main({words!r})"
    )
    # The same command judges what has changed.
    for mended, figure in (
        (wrong, "| 50.0 [0.0, 100.0] n=2 |"),
        ({**wrong, "response": FENCED}, "| 100.0 ["),
    ):
        write(tmp_path / "answers.jsonl", {"problem_id": "sum", "response": FENCED}, mended)
        command = [sys.executable, "-c", program]
        assert (
            figure
            in subprocess.run(
                command,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"problems": Path("p")}, "go together; pass both"),
        ({}, "nothing to judge"),
        ({**BOTH, "explain": "a"}, "--explain does not go with"),
        ({**BOTH, "options": JudgeFlags(time_scale=2)}, "--time-scale does not"),
        ({**BOTH, "options": JudgeFlags(nice=50)}, "nice = 50: must be 19 or less"),
    ],
)
def test_ways_that_exclude_each_other_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        command.judge(**given)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"in\.jsonl line 2 is not JSON"),
        ({"id": "b", "tests": TESTS}, r"line 2: key code is missing"),
        (submission("b", checker={"type": "fuzzy"}), r"line 2: checker\.type = 'fuzzy'"),
        (
            submission("b", fn_name="f", tests=[{"input": "x", "output": "1"}]),
            r"line 2: .*problem b, test 1, input line 1 is not a JSON argument",
        ),
    ],
)
def test_a_broken_line_is_named_and_nothing_is_written(
    tmp_path: Path,
    line: object,
    message: str,
) -> None:
    source = write(tmp_path / "in.jsonl", submission("a"), line)
    with pytest.raises(DataError, match=message):
        command.judge(source, output=tmp_path / "out.jsonl")
    with pytest.raises(ConfigError, match="workers = 0"):
        command.judge(
            write(source, submission("a")),
            output=tmp_path / "out.jsonl",
            options=JudgeFlags(workers=0),
        )
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_finished_file_is_left_alone_and_verdicts_of_something_else_are_not_taken_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "in.jsonl", submission("a"))
    out = tmp_path / "out.jsonl"
    command.judge(source, output=out)
    before = out.stat().st_mtime_ns
    capsys.readouterr()
    command.judge(source, output=out)
    assert "was already complete: 1 accepted" in capsys.readouterr().out
    assert out.stat().st_mtime_ns == before
    assert not out.with_name("out.jsonl.partial").exists()
    with pytest.raises(DataError, match=r"another stop rule.*--overwrite"):
        command.judge(source, output=out, options=JudgeFlags(stop="never"))
    with pytest.raises(DataError, match=r"another packages \(standard \w+, now none \w+\)"):
        command.judge(source, output=out, options=JudgeFlags(packages="none"))
    write(source, submission("b"))
    with pytest.raises(DataError, match=r"another input.*choose another -o"):
        command.judge(source, output=out)
    command.judge(source, output=out, overwrite=True)
    assert [row["id"] for row in read_rows(out)] == ["b"]
    stranger = write(tmp_path / "mine.jsonl", {"mine": True})
    with pytest.raises(DataError, match="not written by this command"):
        command.judge(source, output=stranger)
    assert read_rows(stranger) == [{"mine": True}]
    with pytest.raises(DataError, match="is the input file"):
        command.judge(source, output=source)


def test_a_sandbox_fault_is_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "in.jsonl", submission("a"), submission("b"))
    out = tmp_path / "out.jsonl"
    command.judge(source, output=out)
    first, second = read_rows(out)
    write(out, {**first, "verdict": "wrong_answer"}, {**second, "verdict": "sandbox_fault"})
    capsys.readouterr()
    command.judge(source, output=out, json=True)
    assert [row["verdict"] for row in read_rows(out)] == ["wrong_answer", "accepted"]
    assert json.loads(capsys.readouterr().out)["num_judged"] == 1


def test_two_runs_into_one_file_are_refused(tmp_path: Path) -> None:
    origin = {"input": "x"}
    with (
        VerdictFile(tmp_path / "out.jsonl", origin=origin),
        pytest.raises(DataError, match=r"another process is judging into"),
        VerdictFile(tmp_path / "out.jsonl", origin=origin),
    ):
        pass


def test_a_weak_sandbox_is_announced(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = write(tmp_path / "in.jsonl", submission("a"))
    opened = "microcoder.cli.judge_options.Judge"
    monkeypatch.setattr(opened, partial(Judge, layers=["seccomp", "resource_limits", "landlock"]))
    command.judge(source, output=tmp_path / "out.jsonl", json=True)
    captured = capsys.readouterr()
    assert captured.err.count("sandbox is degraded; missing: mount_namespace, pid_namespace, ") == 1
    assert captured.err.count(": everything is judged") == 1
    assert json.loads(captured.out)["isolation"]["level"] == "degraded"
    monkeypatch.setattr(opened, partial(Judge, layers=["resource_limits"]))
    with pytest.raises(EvaluatorFault, match="--unsafe"):
        command.judge(source, output=tmp_path / "other.jsonl")


def test_a_run_that_was_interrupted_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    burn = "import time\nend = time.process_time() + 0.05\nwhile time.process_time() < end: pass\n"
    rows = []
    for n in range(18):
        rows.append(submission(f"s{n}", f"{burn}{ADD if n % 3 else 'print(3)'}\n#{n}"))
    source = write(tmp_path / "in.jsonl", *rows)
    whole = tmp_path / "whole.jsonl"
    resumed = tmp_path / "resumed.jsonl"
    partial = resumed.with_name("resumed.jsonl.partial")
    command.judge(source, output=whole)
    for number in (signal.SIGKILL, signal.SIGINT):
        resumed.unlink(missing_ok=True)
        arguments = [
            *MICROCODER,
            "judge",
            str(source),
            "-o",
            str(resumed),
            "--workers",
            "1",
            "--json",
        ]
        cut_off = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while (
            not (partial.exists() and len(partial.read_bytes().splitlines()) > 5)
            and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        cut_off.send_signal(number)
        _, said = cut_off.communicate(timeout=30)
        assert cut_off.returncode != 0
        assert (b"interrupted; type the same command again to resume" in said) == (
            number == signal.SIGINT
        )
        assert not resumed.exists()
        if number == signal.SIGKILL:
            with partial.open("a") as file:
                file.write('{"id": "s17", "verd')
        capsys.readouterr()
        command.judge(source, output=resumed, json=True)
        assert 0 < json.loads(capsys.readouterr().out)["num_judged"] <= 15
        assert [without_timings(row) for row in read_rows(resumed)] == [
            without_timings(row) for row in read_rows(whole)
        ]
        assert os.listdir(tmp_path).count(partial.name) == 0


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", *(submission(f"s{n}", code=f"{ADD}# {n}") for n in range(60))
    )
    out = tmp_path / "out.jsonl"
    script = (
        "import resource, sys; from microcoder.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        f"main(['judge', {str(source)!r}, '-o', {str(out)!r}, '--workers', '1'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith(
        "microcoder: error: File too large; free some space"
    )
    assert "Traceback" not in result.stderr
    assert not out.exists()
    command.judge(source, output=out)
    expected = [(f"s{n}", "accepted") for n in range(60)]
    assert [(row["id"], row["verdict"]) for row in read_rows(out)] == expected


def test_checkers_that_outputs_crash_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reads = {"type": "program", "code": "import sys\nsys.exit(int(open(sys.argv[2]).read()) != 3)"}
    tests = [{"input": "1 2\n", "output": "3\n"}]
    codes = {"crash": "print('x')", "refused": "print(4)"}
    rows = [submission(name, code, checker=reads, tests=tests) for name, code in codes.items()]
    out = tmp_path / "out.jsonl"
    command.judge(
        write(tmp_path / "in.jsonl", *rows),
        output=out,
        options=JudgeFlags(workers=1),
        json=True,
    )
    said = capsys.readouterr()
    summary = json.loads(said.out)
    assert summary["verdicts"] == {"wrong_answer": 2}
    assert summary["checker_crashes"] == 1
    assert read_rows(out)[0]["tests"][0]["method"] == "checker_crashed"


def test_the_time_of_one_submission_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = "import time\nif input() == '5 6':\n    while time.process_time() < 0.54: pass\nprint(3)"
    path = write(
        tmp_path / "in.jsonl",
        submission("slow", slow, time_limit_seconds=0.5),
        submission("fast"),
    )
    out = tmp_path / "out.jsonl"
    command.judge(path, output=out, options=JudgeFlags(time_scale=1.0), explain="slow")
    text = capsys.readouterr().out
    assert (
        "limit 0.5 s, on this machine 0.50 s of CPU time (factor 1), at most 2.00 s of wall time"
        in text
    )
    assert "test 1: accepted, cpu 0.0" in text
    assert "test 2: it ended by itself after 0.5" in text
    assert "test 2: a run that did not count, near_limit" in text
    assert (
        text.rstrip()
        .splitlines()[-1]
        .startswith(("slow: time_limit test 2: cpu 0.5", "slow: wrong_answer"))
    )
    assert not out.exists()
    with pytest.raises(DataError, match="no submission has this id; the first ones are slow, fast"):
        command.judge(path, explain="sloow")
    with pytest.raises(
        DataError, match=r"-o is missing; type: microcoder judge .*in\.jsonl -o VERDICTS\.jsonl"
    ):
        command.judge(path)

"""Recorded programs judged again: by better tests and by another comparison."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from microcoder import ConfigError, Judge, Problem
from microcoder.cli import main
from microcoder.judge.core.types import Checker
from microcoder.replay import Rejudging, compare_by, open_recording, replay
from microcoder.replay.sentences import describe_replay, tell_payments, tell_weak

RIGHT = "```python\na, b = map(int, input().split())\nprint(a + b)\n```"
CONSTANT = "```python\nprint(42)\n```"
WRONG = "```python\nprint(0)\n```"
NO_CODE = "I do not know."
SPACED = '```python\na, b = map(int, input().split())\nprint(a + b, "")\n```'
BEGIN = 7
BETTER = Problem.model_validate(
    {
        "id": "sum",
        "statement": "Add two numbers.",
        "tests": [{"input": "12 30", "output": "42"}, {"input": "1 2", "output": "3"}],
    }
)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=1, stop="first_failure") as judge:
        yield judge


def write_weak_run(path: Path, *, hacks: bool) -> Path:
    """Write rollouts whose test was `12 30`: from a step on a constant may pass it."""
    chance = random.Random(5)
    lines = []
    for step in range(1, 13):
        for group in range(16):
            for _ in range(4):
                text = RIGHT if chance.random() < 0.3 else chance.choice((WRONG, NO_CODE))
                if hacks and step >= BEGIN and chance.random() < 0.5:
                    text = CONSTANT
                row: dict[str, Any] = {"step": step, "problem_id": "sum", "group_id": f"g{group}"}
                row |= {"response": text, "reward": float(text in (RIGHT, CONSTANT))}
                lines.append(json.dumps(row))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_better_tests_find_when_hacking_began_and_judge_each_program_once(
    judge: Judge, tmp_path: Path
) -> None:
    recording = open_recording([write_weak_run(tmp_path / "hacked.jsonl", hacks=True)])
    again = Rejudging(judge, {"sum": BETTER}, name="better")
    found = replay(recording, rejudging=again)
    assert again.num_judged == 4, "right, constant, wrong and none"
    assert found.payments is not None
    onset = found.payments.onset
    assert onset is not None
    assert abs(onset.step - BEGIN) <= 2
    (way,) = found.payments.ways
    assert way.way == "constant"
    assert way.program == "print(42)\n"
    (better,) = found.alternatives
    changed = {answer.step: answer.rewards_changed for answer in better.steps}
    assert all(changed[step] == 0 for step in range(1, BEGIN))
    assert all(changed[step] > 0 for step in range(BEGIN, 13))
    assert better.run.first_difference == BEGIN
    assert f"begins to rise in step {onset.step}" in " ".join(tell_payments(found.payments))
    (weak,) = found.weak_problems
    assert (weak.problem_id, weak.test, weak.input, weak.output) == ("sum", 2, "1 2", "3")
    assert weak.accepted == "a, b = map(int, input().split())\nprint(a + b)\n"
    assert weak.refused == "print(42)\n"
    assert weak.first_step == BEGIN
    assert weak.num_rollouts == sum(step.wrong for step in found.payments.steps)
    assert "test 2 tells two accepted programs apart" in tell_weak(found.weak_problems)
    # What is known is not judged again, also for another recording.
    replay(recording, rejudging=again)
    assert again.num_judged == 4


def test_a_clean_run_is_not_accused_by_better_tests(judge: Judge, tmp_path: Path) -> None:
    recording = open_recording([write_weak_run(tmp_path / "clean.jsonl", hacks=False)])
    found = replay(recording, rejudging=Rejudging(judge, {"sum": BETTER}))
    assert found.payments is not None
    assert found.payments.onset is None
    assert "none of" in " ".join(tell_payments(found.payments))
    assert found.alternatives[0].run.first_difference is None
    assert found.weak_problems == ()
    assert "too weak" not in " ".join(describe_replay(found))


def test_another_comparison_changes_what_it_refuses(judge: Judge, tmp_path: Path) -> None:
    rows = []
    for text in (RIGHT, SPACED):
        rows.append({"step": 1, "problem_id": "sum", "response": text, "reward": 1.0})
    path = tmp_path / "spaced.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    recording = open_recording([path])
    for comparison, num_changed in (("default", 0), ("exact", 1)):
        problems = compare_by({"sum": BETTER}, comparison)
        found = replay(recording, rejudging=Rejudging(judge, problems, name=comparison))
        assert found.alternatives[0].run.rewards_changed == num_changed, comparison
        assert found.alternatives[0].run.became_mixed == num_changed
    program = Checker(type="program", code="print()")
    kept = BETTER.model_copy(update={"checker": program})
    assert compare_by({"sum": kept}, "exact") == {"sum": kept}
    with pytest.raises(ConfigError, match="there is no comparison 'strict'; use one of default"):
        compare_by({"sum": BETTER}, "strict")


def test_rollouts_of_other_problems_keep_their_verdict_and_are_counted(
    judge: Judge, tmp_path: Path
) -> None:
    path = write_weak_run(tmp_path / "hacked.jsonl", hacks=True)
    other = BETTER.model_copy(update={"id": "other"})
    again = Rejudging(judge, {"other": other})
    found = replay(open_recording([path]), rejudging=again)
    assert again.num_judged == 0
    assert again.num_unknown == 12 * 64
    assert found.alternatives[0].run.rewards_changed == 0


def test_the_command_judges_by_a_file_of_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_weak_run(tmp_path / "hacked.jsonl", hacks=True)
    tests = tmp_path / "better.jsonl"
    tests.write_text(BETTER.model_dump_json() + "\n")
    weak = tmp_path / "weak.jsonl"
    main(["replay", str(path), "--tests", str(tests), "--workers", "1", "--weak", str(weak)])
    assert [json.loads(line)["input"] for line in weak.read_text().splitlines()] == ["1 2"]
    text = capsys.readouterr().out
    assert "better: the update would first have differed in step 7" in text
    assert "Paid and wrong, by the better verdicts:" in text
    assert "4 distinct programs judged" in text
    main(["replay", str(path), "--judge", "strict=exact", "--problems", str(tests)])
    assert "strict: " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["replay", str(path), "--judge", "exact"])
    assert "do not come with their problems; name them: --tests" in capsys.readouterr().err

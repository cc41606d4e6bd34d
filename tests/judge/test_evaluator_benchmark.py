"""The evaluator's benchmark measures what it says: known verdicts, seeded wrong answers, CPU of the whole tree."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from evaluator_judges import OURS, LiveCodeBench
from evaluator_processes import read_cpu_use
from evaluator_step import mutate_program
from evaluator_table import write_table
from evaluator_workloads import SETS, build_workload, can_be_told_to_peers, write_peer_tests

from microcoder.judge.core.types import Problem, TestCase

COMMAND = Path(__file__).parents[2] / "benchmarks" / "evaluator.py"
SOURCE = """
def count(values, most):
    total = 0
    for value in values:
        if value <= most and value % 2 == 0:
            total += value * 3
    return total
print(count([1, 2, 3], 5))
"""
SPINNING = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\nsys.stdin.read()\n"


def run_quickly(*names: str) -> tuple[list[dict[str, Any]], str]:
    """Return the rows and the table of a run of the command without peers."""
    words = ["--quick", "--no-peers", "--rounds", "1", "--only", *names]
    run = subprocess.run([sys.executable, str(COMMAND), *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def test_a_quick_run_knows_every_verdict_and_counts_cpu() -> None:
    rows, table = run_quickly("tiny", "mixed")
    assert [row["set"] for row in rows if row["judge"] == OURS] == ["tiny", "mixed"]
    assert all(row["as_known"] == row["programs"] for row in rows)
    assert all(row["set"] in table for row in rows)
    mixed = rows[1]
    assert mixed["outcomes"] == {"accepted": 3, "wrong_answer": 2, "runtime_error": 1, "time_limit": 1}
    assert mixed["floor_seconds"] > 0
    assert mixed["cpu_seconds"] >= 1.0, "an endless program uses its limit"
    assert mixed["ending_landed_seconds"] <= mixed["wall_seconds"]


@pytest.mark.long
def test_costs_are_reported_by_who_uses_them() -> None:
    rows, table = run_quickly("costs")
    assert all(row["cost"] in table and row["cpu_ms"] >= 0 for row in rows)
    tests = [row for row in rows if "cpu_ms_tests" in row]
    assert {row["cost"].partition(" (")[0] for row in tests} == {"batched test", "test in its own process"}
    for row in tests:
        assert row["accepted"] == row["programs"]
        assert sum(row[f"cpu_ms_{part}"] for part in ("judge", "fork_server", "tests")) == pytest.approx(row["cpu_ms"])


def test_a_step_without_its_data_is_left_out_and_said(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(COMMAND), "--quick", "--no-peers", "--only", "step", "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not run.stdout
    assert "step: left out" in run.stderr


def test_the_table_says_how_many_times_as_fast_ours_is() -> None:
    figures = {"ending_landed_seconds": 0.0, "cpu_ms_per_program": 1.0, "as_known": 1, "programs": 1}
    walls = {OURS: (1.0, 5.0, 2.0), "livecodebench": (8.0, 7.0, 90.0)}
    rows = [
        {"set": "tiny", "judge": judge, "wall_seconds": wall, "cpu_seconds": 2 * wall, **figures}
        for judge, each in walls.items()
        for wall in each
    ]
    assert "4.00 x" in write_table(rows)


@pytest.mark.parametrize("name", SETS)
def test_sets_are_new_in_every_round(name: str) -> None:
    workload = build_workload(name, limit_seconds=1.0, is_quick=False)
    first, second = workload.renew("1"), workload.renew("2")
    sources = [task.source for task in (*first.tasks, *second.tasks)]
    assert len(set(sources)) == 2 * len(workload.tasks)


def test_wrong_answers_repeat_by_seed_and_are_of_many_kinds() -> None:
    written = [mutate_program(SOURCE, dice) for dice in (random.Random(7), random.Random(7))]
    assert written[0] == written[1]
    dice = random.Random(0)
    mutants = {mutate_program(SOURCE, dice) for _ in range(60)}
    assert len(mutants) > 20
    assert not mutants & {SOURCE}
    assert any("raise" in each or "[][1]" in each for each in mutants)
    assert any(SOURCE.startswith(each) for each in mutants), "one is cut off"


def test_peers_get_calls_with_their_name() -> None:
    test = TestCase(input="1\n[2]", output="3")
    calls = Problem(id="calls", fn_name="add", tests=(test,))
    assert write_peer_tests(calls) == {"inputs": ["1\n[2]"], "outputs": ["3"], "fn_name": "add"}
    assert can_be_told_to_peers(calls)
    assert not can_be_told_to_peers(calls.model_copy(update={"tests": (TestCase(input="x", output="3"),)}))


def test_the_cpu_of_children_counts_while_they_run_and_after() -> None:
    before = read_cpu_use(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", SPINNING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.readline()
    running = read_cpu_use(os.getpid()) - before
    assert running.descendants >= 0.2
    child.communicate()
    ended = read_cpu_use(os.getpid()) - before
    assert ended.ended >= 0.2
    # Sums of hundredths of a second differ in their last bits.
    assert ended.total >= running.total - 1e-6


def test_peers_figures_are_read_as_they_mean_them() -> None:
    names = LiveCodeBench.NAMES
    assert LiveCodeBench.name_outcome([True, True]) == "accepted"
    assert LiveCodeBench.name_outcome([True, -3]) == names[-3] == "time_limit"
    assert LiveCodeBench.name_outcome([True, False]) == "wrong_answer"

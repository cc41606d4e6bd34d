"""The evaluator's benchmark measures what it says: known verdicts, seeded wrong answers, CPU of the whole tree."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from evaluator_judges import OURS, read_cpu_use
from evaluator_step import mutate_program
from evaluator_workloads import SETS, build_workload

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


def test_a_quick_run_knows_every_verdict_and_counts_cpu(tmp_path: Path) -> None:
    """And leaves out, in words, a step without its data."""
    words = ["--quick", "--no-peers", "--rounds", "1", "--only", "tiny", "mixed", "step", "--data", str(tmp_path)]
    run = subprocess.run([sys.executable, str(COMMAND), *words], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert "step: left out" in run.stderr
    assert [row["set"] for row in rows if row["judge"] == OURS] == ["tiny", "mixed"]
    assert all(row["as_known"] == row["programs"] for row in rows)
    assert all(row["set"] in run.stderr for row in rows)
    mixed = rows[1]
    assert mixed["outcomes"] == {"accepted": 3, "wrong_answer": 2, "runtime_error": 1, "time_limit": 1}
    assert mixed["cpu_seconds"] >= 1.0, "an endless program uses its limit"
    assert mixed["ending_landed_seconds"] <= mixed["wall_seconds"]


@pytest.mark.parametrize("name", SETS)
def test_sets_are_new_in_every_round(name: str) -> None:
    workload = build_workload(name, limit_seconds=1.0, is_quick=False)
    sources = [task.source for turn in "12" for task in workload.renew(turn).tasks]
    assert len(set(sources)) == 2 * len(workload.tasks)


def test_wrong_answers_repeat_by_seed_and_are_of_many_kinds() -> None:
    assert mutate_program(SOURCE, random.Random(7)) == mutate_program(SOURCE, random.Random(7))
    dice = random.Random(0)
    mutants = {mutate_program(SOURCE, dice) for _ in range(60)}
    assert len(mutants - {SOURCE}) == len(mutants) > 20
    assert any("raise" in each or "[][1]" in each for each in mutants)
    assert any(SOURCE.startswith(each) for each in mutants), "one is cut off"


def test_the_cpu_of_children_counts_while_they_run_and_after() -> None:
    before = read_cpu_use(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", SPINNING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    running = read_cpu_use(os.getpid()) - before
    child.communicate()
    ended = read_cpu_use(os.getpid()) - before
    assert min(running.descendants, ended.ended) >= 0.2
    # Sums of hundredths of a second differ in their last bits.
    assert ended.total >= running.total - 1e-6

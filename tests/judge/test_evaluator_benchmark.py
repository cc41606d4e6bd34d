"""The evaluator's benchmark measures what it says: known verdicts, seeded wrong answers, CPU of the whole tree."""

import json
import subprocess
import sys
from pathlib import Path

from evaluator_judges import OURS

COMMAND = Path(__file__).parents[2] / "benchmarks" / "evaluator.py"


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

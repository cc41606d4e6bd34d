"""benchmarks/cpu_step.py at a small size."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_measures_a_step_against_its_floor(tiny_checkpoint: Path) -> None:
    words = "--rollouts 8 --tokens 6 --prompt-tokens 10 --group 4 --micro-batch 4 --threads 1"
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "benchmarks/cpu_step.py"),
            "--model",
            str(tiny_checkpoint),
            *words.split(),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    for part in ("sampling", "update", "step"):
        assert figures[part]["tokens_per_second"] > 0
        assert figures[part]["share_of_floor"] > 0

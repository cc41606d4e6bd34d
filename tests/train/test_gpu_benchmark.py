"""benchmarks/gpu.py runs end to end where there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_the_gpu_benchmark_runs_whole_on_a_cpu(tmp_path: Path) -> None:
    section = tmp_path / "measurements.md"
    command = [sys.executable, "benchmarks/gpu.py", "--tiny", "--steps", "2", "--mini", "2", "--write", str(section)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = {line.split(" | ")[0]: line.split(" | ")[1:] for line in section.read_text().splitlines() if " | " in line}
    assert [cell.strip(" |") for cell in rows["| steps measured"]] == ["2"]
    for name in ("| sampling, tokens a second", "| updates, tokens a second"):
        assert all(float(cell.strip(" |").replace(",", "")) > 0 for cell in rows[name])

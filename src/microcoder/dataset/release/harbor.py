"""A corpus as Harbor task folders: an agent leaves its program in a file, and our judge decides on it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import microcoder
from microcoder.errors import DataError
from microcoder.files import write_text
from microcoder.prompts import bare
from microcoder.types import Problem

_ANSWERS = {"python": "solution.py", "cpp": "solution.cpp"}
_TOML = """version = "1.0"

[metadata]
author_name = "microcoder"
difficulty = {difficulty}
category = "programming"
tags = ["competitive-programming"]

[verifier]
timeout_sec = {seconds:.1f}

[agent]
timeout_sec = 1800.0

[environment]
build_timeout_sec = 600.0
cpus = 2
memory_mb = {memory}
storage_mb = 10240
"""
_DOCKERFILE = """FROM python:3.11-slim
{packages}RUN pip install --no-cache-dir microcoder=={version}
WORKDIR /app
"""
_TEST = """#!/bin/bash
# No reward is written where the judge itself fails: that says nothing about the answer.
exec python3 "$(dirname "$0")/judge.py" "${{1:-/app/{answer}}}" "${{2:-/logs/verifier/reward.txt}}"
"""
_JUDGE = '''"""Judge the program of a file by the problem beside this one, and write its reward."""

import sys
from pathlib import Path

from microcoder import Problem, Program, score_verdict
from microcoder.evaluator import judge

answer, target = Path(sys.argv[1]), Path(sys.argv[2])
problem = Problem.model_validate_json(Path(__file__).with_name("problem.json").read_text(encoding="utf-8"))
code = answer.read_text(encoding="utf-8", errors="replace") if answer.exists() else None
(verdict,) = judge([Program(code, problem.language)], [problem], stop="first_failure")
reward = score_verdict(verdict)
print(verdict.outcome, verdict.detail)
if reward is None:
    sys.exit(1)
target.write_text(f"{reward:g}\\n")
'''
_EXTRA_SECONDS = 60.0


def to_harbor(problems: Sequence[Problem], folder: Path) -> int:
    """Write one task folder a problem; return how many.

    Raises:
        DataError: two problems would share a folder, or a language has no known file name.
    """
    names = [re.sub(r"[^a-z0-9]+", "-", problem.id.lower()).strip("-") or "problem" for problem in problems]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise DataError(f"two problems would be the task folder {twice!r}; give them ids that differ in a-z and 0-9")
    for name, problem in zip(names, problems, strict=True):
        for path, text in _files(problem).items():
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            write_text(folder / name / path, text)
        (folder / name / "tests" / "test.sh").chmod(0o755)
    return len(problems)


def _files(problem: Problem) -> dict[str, str]:
    answer = _ANSWERS.get(problem.language)
    if answer is None:
        raise DataError(f"problem {problem.id}: Harbor tasks are written for {' and '.join(_ANSWERS)} answers only")
    packages = "RUN apt-get update && apt-get install -y --no-install-recommends g++\n" if answer[-3:] == "cpp" else ""
    seconds = _EXTRA_SECONDS + 2 * len(problem.tests) * problem.time_limit_seconds
    asked = bare(problem).strip()
    starter = f"\n\nStart from:\n\n```\n{problem.starter_code.rstrip()}\n```" if problem.starter_code else ""
    files = {
        "instruction.md": f"{asked}{starter}\n\nWrite the complete program to `/app/{answer}`.\n",
        "task.toml": _TOML.format(
            difficulty=json.dumps(problem.tier or "unknown"),
            seconds=seconds,
            memory=2 * problem.memory_limit_mib + 1024,
        ),
        "environment/Dockerfile": _DOCKERFILE.format(packages=packages, version=microcoder.__version__),
        "tests/test.sh": _TEST.format(answer=answer),
        "tests/judge.py": _JUDGE,
        "tests/problem.json": problem.model_dump_json(exclude_defaults=True),
    }
    if problem.reference:
        files[f"solution/{answer}"] = problem.reference
        files["solution/solve.sh"] = f'#!/bin/bash\ncp "$(dirname "$0")/{answer}" /app/{answer}\n'
    return files

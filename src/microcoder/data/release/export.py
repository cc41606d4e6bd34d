"""A finished corpus in the form of another program: trainers, judges, benchmarks; plain problem lines.

`Problem.from_row` reads each row back into a problem that judges the same. A row carries our whole record, checker and
limits and call, if its form has room for one. Tests are written in the form's own words besides, for graders that know
no record; but not if such a grader, which compares inputs and outputs alone, would misjudge.

A corpus as Harbor task folders: an agent leaves its program in a file, and our judge decides on it.
"""

from __future__ import annotations

import base64
import json
import pickle
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

import microcoder
from microcoder.data.release.problems import write_problems
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import check_folder, write_parquet, write_text
from microcoder.judge.core.prompts import bare, instruct
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import Checker, Problem

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
from microcoder.judge import judge

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
    """Write one task folder a problem; return how many."""
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


Form = dict[str, Any]

_COMPARED_PLAINLY = frozenset({Checker(type=kind) for kind in ("default", "exact", "tokens")})
"""Checkers that a plain comparison of outputs approximates; a tolerance, any order or a program it would miss."""
_VERL = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("ability", pa.string()),
        # A string on purpose: mixed nested types break the merging of Parquet schemas.
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", pa.struct([("index", pa.int64()), ("id", pa.string()), ("problem", pa.string())])),
    ]
)


def verl_row(problem: Problem, index: int) -> Form:
    """Return a row of verl's RL parquet; `ground_truth` is the JSON that prime_code and sandbox_fusion read.

    Where those would misjudge, it holds the record alone, which only our reward reads.
    """
    record = _record(problem)
    truth = _tests(problem) if _is_plain(problem) else {"problem": json.loads(record)}
    return {
        "data_source": "microcoder",
        "prompt": _prompt(problem),
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": json.dumps(truth)},
        "extra_info": {"index": index, "id": problem.id, "problem": record},
    }


def trl_row(problem: Problem, index: int) -> Form:
    """Return a row for TRL's GRPO trainer: a chat prompt, and the record for a reward function."""
    return {"prompt": _prompt(problem), "problem": _record(problem)}


def nemogym_row(problem: Problem, index: int) -> Form:
    """Return a row of NeMo-Gym's `code_gen`; without `unit_tests`, so that it is refused, where that would misjudge."""
    tests = {"unit_tests": _tests(problem)} if _is_plain(problem) and problem.language == "python" else {}
    return {
        "responses_create_params": {"input": _prompt(problem)},
        "verifier_metadata": {"problem_id": problem.id, **tests, "problem": json.loads(_record(problem))},
        "agent_ref": {"type": "responses_api_agents", "name": "code_gen_simple_agent"},
    }


def verifiers_row(problem: Problem, index: int) -> Form:
    """Return a row for a verifiers taskset; `info` is text, so that rows of all problems make one table."""
    return {
        "name": problem.id,
        "prompt": _prompt(problem),
        "answer": problem.reference or "",
        "info": json.dumps({"problem": json.loads(_record(problem))}),
    }


def livecodebench_row(problem: Problem, index: int) -> Form | None:
    """Return a row of `code_generation_lite`, the first test public; None for what its checker has no place for."""
    if not _is_plain(problem) or problem.language != "python" or problem.dialect != "plain":
        return None
    kind = "stdin" if problem.fn_name is None else "functional"
    shown, *hidden = [{"input": test.input, "output": test.output, "testtype": kind} for test in problem.tests]
    metadata = {
        **({"func_name": problem.fn_name} if problem.fn_name is not None else {}),
        "time_limit_seconds": problem.time_limit_seconds,
        "memory_limit_mib": problem.memory_limit_mib,
        "checker": problem.checker.type,
    }
    return {
        "question_title": problem.id,
        "question_content": problem.statement,
        "platform": "microcoder",
        "question_id": problem.id,
        "contest_id": "",
        "contest_date": "1970-01-01T00:00:00",
        "starter_code": problem.starter_code or "",
        "difficulty": problem.tier or "",
        "public_test_cases": json.dumps([shown]),
        "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(json.dumps(hidden)))).decode(),
        "metadata": json.dumps(metadata),
    }


def _is_plain(problem: Problem) -> bool:
    return problem.checker in _COMPARED_PLAINLY and problem.harness is None and find_call(problem) is None


def _record(problem: Problem) -> str:
    return problem.model_dump_json(exclude_defaults=True)


def _tests(problem: Problem) -> Form:
    tests: Form = {"inputs": [test.input for test in problem.tests], "outputs": [test.output for test in problem.tests]}
    return tests if problem.fn_name is None else {**tests, "fn_name": problem.fn_name}


def _prompt(problem: Problem) -> list[Form]:
    return [{"role": "user", "content": instruct(problem)}]


def to_verl(problems: Sequence[Problem], path: Path) -> int:
    """Write verl's RL Parquet (see `verl_row`)."""
    write_parquet(path, [verl_row(problem, index) for index, problem in enumerate(problems)], _VERL)
    return len(problems)


def to_lines(problems: Sequence[Problem], path: Path, *, form: Callable[[Problem, int], Form | None]) -> int:
    """Write JSON lines of a form, without the problems that it has no place for."""
    rows = [row for index, problem in enumerate(problems) if (row := form(problem, index)) is not None]
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)


def to_jsonl(problems: Sequence[Problem], path: Path) -> int:
    """Write our own problem lines."""
    write_problems(path, problems)
    return len(problems)


EXPORTS: Mapping[str, Callable[[Sequence[Problem], Path], int]] = MappingProxyType(
    {
        "verl": to_verl,
        "trl": partial(to_lines, form=trl_row),
        "nemogym": partial(to_lines, form=nemogym_row),
        "verifiers": partial(to_lines, form=verifiers_row),
        "livecodebench": partial(to_lines, form=livecodebench_row),
        "harbor": to_harbor,
        "jsonl": to_jsonl,
    }
)


def export(problems: Sequence[Problem], path: Path, *, form: str) -> int:
    """Write problems in another program's form; return how many it has a place for.

    Raises:
        DataError: the form is unknown, cannot hold them, or a folder lies where its file is to be.
    """
    if form not in EXPORTS:
        raise DataError(f"form = {form!r}; use one of {', '.join(EXPORTS)}")
    if form == "harbor":  # a folder a problem
        check_folder(path, "output")
    elif path.is_dir():
        raise DataError(f"output = {str(path)!r} is a folder, and {form} is one file; type {path}/{form}.jsonl or so")
    check_folder(path.parent, "output")
    return EXPORTS[form](problems, path)

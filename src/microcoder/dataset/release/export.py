"""A finished corpus in the form of another program: trainers, judges, benchmarks; plain problem lines.

`Problem.from_row` reads each row back into a problem that judges the same. A row carries our whole record, checker and
limits and call, if its form has room for one. Tests are written in the form's own words besides, for graders that know
no record; but not if such a grader, which compares inputs and outputs alone, would misjudge.
"""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from microcoder.dataset.problems import write_problems
from microcoder.dataset.release.harbor import to_harbor
from microcoder.errors import DataError
from microcoder.files import check_folder, write_parquet, write_text
from microcoder.prompts import instruct
from microcoder.signatures import find_call
from microcoder.types import Checker, Problem

Form = dict[str, Any]

_COMPARED_PLAINLY = frozenset({Checker(type=kind) for kind in ("default", "exact", "tokens")})
"""What a reader of inputs and outputs alone comes close to; a tolerance, any order or a program it would miss."""
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
    tests: Form = {
        "inputs": [test.input for test in problem.tests],
        "outputs": [test.output for test in problem.tests],
    }
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


_FOLDERS = frozenset({"harbor"})
"""Forms that are more than one file."""


def export(problems: Sequence[Problem], path: Path, *, form: str) -> int:
    """Write problems in another program's form; return how many it has a place for.

    Raises:
        DataError: the form is unknown, cannot hold them, or a folder lies where its file is to be.
    """
    if form not in EXPORTS:
        raise DataError(f"form = {form!r}; use one of {', '.join(EXPORTS)}")
    if form in _FOLDERS:
        check_folder(path, "output")
    elif path.is_dir():
        raise DataError(f"output = {str(path)!r} is a folder, and {form} is one file; type {path}/{form}.jsonl or so")
    check_folder(path.parent, "output")
    return EXPORTS[form](problems, path)

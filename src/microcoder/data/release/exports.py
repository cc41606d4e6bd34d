"""A finished corpus in the row format of another program (trainers, judges), or as problem lines.

`read_problem` reads each row back into a problem that judges the same: a row carries our whole
record (checker, limits, call) if its format has room for it. Tests are also written in the format's
own fields, for graders that do not read the record; but not if such a grader, which only compares
outputs, would misjudge.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from microcoder.data.release.problems import write_problems
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import check_folder, write_parquet, write_rows
from microcoder.judge.core.prompts import instruct
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import Checker, Problem

Form = dict[str, Any]
"""A row of another program's format."""

_COMPARED_PLAINLY = frozenset(
    {
        Checker(type="default"),
        Checker(type="exact"),
        Checker(type="tokens"),
    }
)
"""Checkers that a plain comparison of outputs approximates.

Not tolerances, free order or programs.
"""


def verl_row(problem: Problem, index: int) -> Form:
    """Return a row of verl's RL parquet.

    `ground_truth` is the JSON that prime_code and sandbox_fusion read. If they would misjudge the
    problem, it has only our own record, which only our reward reads.
    """
    record = _record(problem)
    if _is_plain(problem):
        truth = _tests(problem)
    else:
        truth = {"problem": json.loads(record)}
    return {
        "data_source": "microcoder",
        "prompt": _prompt(problem),
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": json.dumps(truth)},
        "extra_info": {"index": index, "id": problem.id, "problem": record},
    }


def trl_row(problem: Problem) -> Form:
    """Return a row for TRL's GRPO trainer: a chat prompt, and the record for a reward function."""
    return {"prompt": _prompt(problem), "problem": _record(problem)}


def nemogym_row(problem: Problem) -> Form:
    """Return a row of NeMo-Gym's `code_gen`.

    If NeMo-Gym would misjudge the problem, `unit_tests` are left out, so that it refuses the row.
    """
    metadata: Form = {"problem_id": problem.id}
    if _is_plain(problem) and problem.language == "python":
        metadata["unit_tests"] = _tests(problem)
    metadata["problem"] = json.loads(_record(problem))
    return {
        "responses_create_params": {"input": _prompt(problem)},
        "verifier_metadata": metadata,
        "agent_ref": {"type": "responses_api_agents", "name": "code_gen_simple_agent"},
    }


def verifiers_row(problem: Problem) -> Form:
    """Return a row for a verifiers taskset.

    `info` is text, so that rows of all problems make one table.
    """
    return {
        "name": problem.id,
        "prompt": _prompt(problem),
        "answer": problem.reference or "",
        "info": json.dumps({"problem": json.loads(_record(problem))}),
    }


def _is_plain(problem: Problem) -> bool:
    """Whether a grader that only compares outputs judges a problem as we do."""
    if problem.checker not in _COMPARED_PLAINLY or problem.assertions is not None:
        return False
    if problem.interactor is not None:
        return False
    # Values of other types than JSON's need our caller.
    return find_call(problem) is None


def _record(problem: Problem) -> str:
    return problem.model_dump_json(exclude_defaults=True)


def _tests(problem: Problem) -> Form:
    tests: Form = {
        "inputs": [test.input for test in problem.tests],
        "outputs": [test.output for test in problem.tests],
    }
    if problem.fn_name is not None:
        tests["fn_name"] = problem.fn_name
    return tests


def _prompt(problem: Problem) -> list[Form]:
    return [{"role": "user", "content": instruct(problem)}]


def _write_verl(problems: Sequence[Problem], path: Path) -> None:
    # Problem files do without.
    import pyarrow as pa

    message = pa.struct(
        [
            ("role", pa.string()),
            ("content", pa.string()),
        ]
    )
    reward_model = pa.struct(
        [
            ("style", pa.string()),
            ("ground_truth", pa.string()),
        ]
    )
    extra_info = pa.struct(
        [
            ("index", pa.int64()),
            ("id", pa.string()),
            ("problem", pa.string()),
        ]
    )
    schema = pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", pa.list_(message)),
            ("ability", pa.string()),
            # Texts inside on purpose: mixed nested types break the merging of Parquet schemas.
            ("reward_model", reward_model),
            ("extra_info", extra_info),
        ]
    )
    rows = [verl_row(problem, index) for index, problem in enumerate(problems)]
    write_parquet(path, rows, schema)


def _write_trl(problems: Sequence[Problem], path: Path) -> None:
    write_rows(path, map(trl_row, problems))


def _write_nemogym(problems: Sequence[Problem], path: Path) -> None:
    write_rows(path, map(nemogym_row, problems))


def _write_verifiers(problems: Sequence[Problem], path: Path) -> None:
    write_rows(path, map(verifiers_row, problems))


def _write_jsonl(problems: Sequence[Problem], path: Path) -> None:
    write_problems(path, problems)


WriteFile = Callable[[Sequence[Problem], Path], None]
"""A function that writes problems to a file."""
EXPORTS: Mapping[str, WriteFile] = {
    "verl": _write_verl,
    "trl": _write_trl,
    "nemogym": _write_nemogym,
    "verifiers": _write_verifiers,
    "jsonl": _write_jsonl,
}
"""Name of a format -> what writes a file in it."""


def export(problems: Sequence[Problem], path: Path, *, form: str) -> None:
    """Write problems to a file in another program's format.

    Args:
        form: a key of `EXPORTS`.

    Raises:
        DataError: the form is unknown, or a folder lies where its file is to be.
    """
    if form not in EXPORTS:
        raise DataError(f"form = {form!r}; use one of {', '.join(EXPORTS)}")
    if path.is_dir():
        raise DataError(
            f"output = {str(path)!r} is a folder, and {form} is one file; "
            f"type {path}/{form}.jsonl or so"
        )
    check_folder(path.parent, "output")
    EXPORTS[form](problems, path)

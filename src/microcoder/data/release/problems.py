"""Problems for training and evaluation: problem files, finished corpora, splits of published data sets; and exports.

Of a published set no corpus is built: rows that are no problems are counted by reason. Cleaning, decontamination and
verification by execution are left to `microcoder data build`.

`export` writes a finished corpus in the row format of another program (trainers, judges), or as problem lines.
`Problem.from_row` reads each row back into a problem that judges the same: a row carries our whole record (checker,
limits, call) if its format has room for it. Tests are also written in the format's own fields, for graders that do not
read the record; but not if such a grader, which only compares outputs, would misjudge.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.rows import FORMATS, HINDERED, load_format
from microcoder.judge import check_problem
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import check_folder, new_file, write_parquet, write_rows
from microcoder.judge.core.prompts import instruct
from microcoder.judge.core.records import read_records
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import Checker, Problem


def read_problems(path: Path) -> list[Problem]:
    """Read a problem file, or a folder that `microcoder data build` finished, for training or evaluation.

    Raises:
        DataError: a line is broken, a problem has no statement, or it cannot be judged (see `check_problem`).
    """
    if path.is_dir():
        # Parquet is read by a package that problem files do without.
        from microcoder.data.release.tables import read_released

        problems = read_released(path)
    else:
        problems = read_records(path, Problem, what="problem file")
    silent = [problem.id for problem in problems if not problem.statement.strip()]
    if silent:
        raise DataError(
            f"problem file {path}: {len(silent)} problems have no statement (first: {silent[0]!r}); "
            "a model cannot be asked without one"
        )
    for problem in problems:
        try:
            check_problem(problem)
        except DataError as error:
            raise DataError(f"problem file {path}: {error}") from None
    return problems


def write_problems(path: Path, problems: Sequence[Problem]) -> None:
    """Write a problem file by an atomic rename."""
    with new_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(problem.model_dump_json(exclude_defaults=True) + "\n" for problem in problems)


@dataclass(frozen=True, slots=True)
class PublishedProblems:
    """Problems of a split, and how many of its rows were left out."""

    problems: list[Problem]
    left_out: Mapping[str, int]
    """Number of rows that are not problems, by reason."""


def read_published(
    name: str, *, revision: str | None, subset: str, split: str, format_name: str, is_trained_on: bool
) -> PublishedProblems:
    """Read a split of a data set of the Hugging Face Hub, or of a folder that holds its files.

    Args:
        name: `owner/name`, or a folder.
        revision: commit, tag or branch.
        subset: what the Hub calls a config.
        format_name: a format's name, or a reference to a reader of the user's own.
        is_trained_on: whether a benchmark is refused.
    """
    check_format(format_name, is_trained_on=is_trained_on)
    from microcoder.data.sources import HubName, Source, collect_source, find_part, open_source

    part, folder, known = f"{subset}/{split}", Path(name).expanduser(), load_format(format_name)
    if folder.is_dir():
        wanted = HubName(str(folder), None, part)
        files = find_part(folder, wanted, said=f"folder {folder}", hint="check subset and split")
        source = Source(folder, known, known.name, files)
    else:
        at = f"@{revision.replace('/', '%2F')}" if revision else ""
        source = open_source(f"hf://datasets/{name}{at}/{part}", format_name)
    problems: list[Problem] = []
    left_out: Counter[str] = Counter()
    for row in collect_source(source):
        problem = _read_problem(row)
        if isinstance(problem, Problem):
            problems.append(problem)
        else:
            left_out[problem] += 1
    if not problems:
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.most_common())
        raise DataError(
            f"{name} {part}: none of its {left_out.total()} rows is a problem in format {format_name} ({reasons}); "
            "check problems.format, subset and split"
        )
    return PublishedProblems(problems, dict(sorted(left_out.items())))


def check_format(name: str, *, is_trained_on: bool) -> None:
    """Raise DataError for a format that is unknown, or a benchmark's that would be trained on."""
    usable = sorted(key for key, known in FORMATS.items() if not known.folders and not known.is_benchmark)
    if ":" not in name and (name not in FORMATS or FORMATS[name].folders):
        raise DataError(f"problems.format = {name!r} is unknown; use one of {', '.join(usable)}")
    if is_trained_on and load_format(name).is_benchmark:
        raise DataError(f"problems.format = {name!r} is a benchmark: training would contaminate it; use it as heldout")


def find_format(name: str) -> str:
    """Return the format of a data set that is known by its name, such as `BAAI/TACO`; DataError for others."""
    known = [key for key, known in FORMATS.items() if name in known.about.replace(",", " ").split()]
    if not known:
        raise DataError(
            f"what the rows of {name} look like is not known; give --format trl, verl, taco, deepcoder, ..."
        )
    return known[0]


def _read_problem(candidate: Candidate | Rejection) -> Problem | str:
    """Return the problem of a row, or the reason code why it is not one."""
    if isinstance(candidate, Rejection):
        return candidate.reason
    if flags := sorted(HINDERED.keys() & set(candidate.flags)):
        return flags[0]
    if not candidate.tests:
        return "no_tests"
    try:
        problem = candidate.to_problem()
        check_problem(problem)
    except (ValidationError, DataError):
        return "cannot_be_judged"
    return problem


Form = dict[str, Any]

_COMPARED_PLAINLY = frozenset({Checker(type=kind) for kind in ("default", "exact", "tokens")})
"""Checkers that a plain comparison of outputs approximates; not tolerances, free order or programs."""


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


def trl_row(problem: Problem) -> Form:
    """Return a row for TRL's GRPO trainer: a chat prompt, and the record for a reward function."""
    return {"prompt": _prompt(problem), "problem": _record(problem)}


def nemogym_row(problem: Problem) -> Form:
    """Return a row of NeMo-Gym's `code_gen`; without `unit_tests`, so that it is refused, if that would misjudge."""
    tests = {"unit_tests": _tests(problem)} if _is_plain(problem) and problem.language == "python" else {}
    return {
        "responses_create_params": {"input": _prompt(problem)},
        "verifier_metadata": {"problem_id": problem.id, **tests, "problem": json.loads(_record(problem))},
        "agent_ref": {"type": "responses_api_agents", "name": "code_gen_simple_agent"},
    }


def verifiers_row(problem: Problem) -> Form:
    """Return a row for a verifiers taskset; `info` is text, so that rows of all problems make one table."""
    return {
        "name": problem.id,
        "prompt": _prompt(problem),
        "answer": problem.reference or "",
        "info": json.dumps({"problem": json.loads(_record(problem))}),
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


def _write_verl(path: Path, rows: Sequence[Form]) -> None:
    # Problem files do without.
    import pyarrow as pa

    schema = pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
            ("ability", pa.string()),
            # A string on purpose: mixed nested types break the merging of Parquet schemas.
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", pa.struct([("index", pa.int64()), ("id", pa.string()), ("problem", pa.string())])),
        ]
    )
    write_parquet(path, rows, schema)


EXPORTS: Mapping[str, Callable[[Sequence[Problem], Path], None]] = {
    "verl": lambda problems, path: _write_verl(path, [verl_row(one, at) for at, one in enumerate(problems)]),
    "trl": lambda problems, path: write_rows(path, map(trl_row, problems)),
    "nemogym": lambda problems, path: write_rows(path, map(nemogym_row, problems)),
    "verifiers": lambda problems, path: write_rows(path, map(verifiers_row, problems)),
    "jsonl": lambda problems, path: write_problems(path, problems),
}


def export(problems: Sequence[Problem], path: Path, *, form: str) -> None:
    """Write problems to a file in another program's format; `form` is a key of `EXPORTS`.

    Raises:
        DataError: the form is unknown, or a folder lies where its file is to be.
    """
    if form not in EXPORTS:
        raise DataError(f"form = {form!r}; use one of {', '.join(EXPORTS)}")
    if path.is_dir():
        raise DataError(f"output = {str(path)!r} is a folder, and {form} is one file; type {path}/{form}.jsonl or so")
    check_folder(path.parent, "output")
    EXPORTS[form](problems, path)

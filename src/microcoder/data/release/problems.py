"""Problems for training and evaluation: problem files, finished corpora, published data sets.

Of a published set no corpus is built: rows that are no problems are counted by reason. Cleaning,
decontamination and verification by execution are left to `microcoder data build`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.format import recognise
from microcoder.data.formats.functions import MBPP_TEST
from microcoder.data.formats.rows import FORMATS, HINDERED, find_record, load_format
from microcoder.data.rowfiles import SUFFIXES, FileRow, read_file
from microcoder.judge import check_problem
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import new_file
from microcoder.judge.core.records import read_records
from microcoder.judge.core.types import Problem


def read_problems(path: Path) -> list[Problem]:
    """Read a problem file, or a folder that `microcoder data build` finished.

    Raises:
        DataError: a line is broken, a problem has no statement, or it cannot be judged (see
            `check_problem`).
    """
    try:
        problems = _read(path)
    # Raw rows are no broken problems: then it says what to type.
    except DataError:
        explanation = explain_rows(path)
        if explanation:
            raise DataError(explanation) from None
        raise
    silent = [problem.id for problem in problems if not problem.statement.strip()]
    if silent:
        raise DataError(
            f"problem file {path}: {len(silent)} problems have no statement "
            f"(first: {silent[0]!r}); a model cannot be asked without one"
        )
    for problem in problems:
        try:
            check_problem(problem)
        except DataError as error:
            raise DataError(f"problem file {path}: {error}") from None
    return problems


def _read(path: Path) -> list[Problem]:
    if path.is_dir():
        # Parquet is read by a package that problem files do without.
        from microcoder.data.release.tables import read_released

        return read_released(path)
    return read_records(path, schema=Problem, what="problem file")


def explain_rows(path: Path) -> str:
    """Say what a file or folder of raw rows is, and what to type; empty if it holds problems."""
    try:
        row = next(read_rows(path), None)
    except (DataError, OSError):
        return ""
    # A broken problem of ours is none of these: the error about it says more.
    if row is None or find_record(row.values) is not None:
        return ""
    row_format = recognise(row.values, FORMATS.values())
    if row_format is None or row_format.folders is not None:
        return ""
    text = (
        f"{path} holds rows of {row_format.name} ({row_format.about}), not problems; "
        f"type: microcoder data convert {path} -o problems.jsonl"
    )
    if not row_format.is_benchmark:
        return text
    if row_format.name == "mbpp":
        return f"{text} (its test rows are left out, for held-out problems add --with-test-rows)"
    return (
        f"{text} --with-test-rows, and use them as held-out problems: "
        "training on a benchmark would contaminate it"
    )


def read_rows(source: Path) -> Iterator[FileRow]:
    """Yield the rows of a file, or of all files of rows in a folder.

    Raises:
        DataError: a row cannot be read.
    """
    if not source.is_dir():
        yield from read_file(source, "file of rows")
        return
    files = sorted(file for file in source.iterdir() if file.name.endswith(SUFFIXES))
    if not files:
        raise DataError(f"folder {source} holds no file of rows; they end in {', '.join(SUFFIXES)}")
    for file in files:
        yield from read_file(file, "file of rows")


def write_problems(path: Path, problems: Sequence[Problem]) -> None:
    """Write a problem file by an atomic rename."""
    with new_file(path) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        for problem in problems:
            file.write(problem.model_dump_json(exclude_defaults=True) + "\n")


@dataclass(frozen=True, slots=True)
class PublishedProblems:
    """Problems of a split, and how many of its rows were left out."""

    problems: list[Problem]
    left_out: Mapping[str, int]
    """Reason code -> number of rows that did not become a problem."""


def read_published(
    name: str,
    *,
    revision: str | None,
    subset: str,
    split: str,
    format_name: str,
    is_trained_on: bool,
) -> PublishedProblems:
    """Read a split of a data set of the Hugging Face Hub, or of a folder that holds its files.

    Args:
        name: `owner/name`, or a folder.
        revision: commit, tag or branch; ignored for a folder.
        subset: what the Hub calls a config.
        format_name: a format's name, or a reference to a reader of the user's own.
        is_trained_on: whether a benchmark is refused.
    """
    check_format(format_name, is_trained_on=is_trained_on)
    from microcoder.data.sources import HubName, Source, collect_source, find_part, open_source

    part = f"{subset}/{split}"
    folder = Path(name).expanduser()
    reader = load_format(format_name)
    if folder.is_dir():
        wanted = HubName(str(folder), None, part)
        files = find_part(folder, wanted, where=f"folder {folder}", hint="check subset and split")
        source = Source(folder, reader, reader.name, files)
    else:
        # A branch may have slashes in its name.
        at_revision = f"@{revision.replace('/', '%2F')}" if revision else ""
        source = open_source(f"hf://datasets/{name}{at_revision}/{part}", format_name)
    problems: list[Problem] = []
    left_out: Counter[str] = Counter()
    for row in collect_source(source):
        if is_trained_on and _is_test_of_mbpp(row):
            left_out["test_of_mbpp"] += 1
            continue
        problem = _read_problem(row)
        if isinstance(problem, Problem):
            problems.append(problem)
        else:
            left_out[problem] += 1
    if not problems:
        reasons = ", ".join(f"{count} {reason}" for reason, count in left_out.most_common())
        raise DataError(
            f"{name} {part}: none of its {left_out.total()} rows is a problem "
            f"in format {format_name} ({reasons}); check problems.format, subset and split"
        )
    return PublishedProblems(problems, dict(sorted(left_out.items())))


def check_format(name: str, *, is_trained_on: bool) -> None:
    """Raise DataError for an unknown format, or for a benchmark's format in training."""
    # Names of the user's own readers have a colon, names of formats have none.
    is_reader = ":" in name
    if not is_reader and (name not in FORMATS or FORMATS[name].folders):
        usable = ", ".join(_list_usable())
        raise DataError(f"problems.format = {name!r} is unknown; use one of {usable}")
    # Of MBPP a part is published for training; its test rows are left out where rows are read.
    if is_trained_on and name != "mbpp" and load_format(name).is_benchmark:
        raise DataError(
            f"problems.format = {name!r} is a benchmark: training would contaminate it; "
            "use it as heldout"
        )


def _list_usable() -> list[str]:
    """Return the names of the formats that a model may be trained on, or some rows of them."""
    usable = []
    for name, format in FORMATS.items():
        if not format.folders and (name == "mbpp" or not format.is_benchmark):
            usable.append(name)
    return sorted(usable)


def find_format(name: str) -> str:
    """Return the name of the format of a known data set, such as `BAAI/TACO`.

    Raises:
        DataError: the data set is not known.
    """
    for key, format in FORMATS.items():
        if name in format.about.replace(",", " ").split():
            return key
    raise DataError(
        f"what the rows of {name} look like is not known; "
        "give --format trl, verl, taco, deepcoder, ..."
    )


def _is_test_of_mbpp(candidate: Candidate | Rejection) -> bool:
    if not isinstance(candidate, Candidate) or candidate.dataset != "mbpp":
        return False
    task = candidate.title.rpartition("/")[2]
    # A task without a number may be one of the test.
    return not task.isdecimal() or int(task) in MBPP_TEST


def _read_problem(candidate: Candidate | Rejection) -> Problem | str:
    """Return the problem of a row, or the code of the reason why the row has none."""
    if isinstance(candidate, Rejection):
        return candidate.reason
    flags = sorted(HINDERED.keys() & set(candidate.flags))
    if flags:
        return flags[0]
    if not candidate.tests:
        return "no_tests"
    try:
        problem = candidate.to_problem()
        check_problem(problem)
    except (ValidationError, DataError):
        return "cannot_be_judged"
    return problem

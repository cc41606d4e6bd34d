"""The corpus as Parquet: problems, rejected rows, lineage; the same rows give the same bytes.

problems-00000.parquet   one problem a row; `problem` is the record that training reads
rejected-00000.parquet   one rejected row, with its stage, reason and what it was
lineage-00000.parquet    one change to one field of a kept problem
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from microcoder.data.clean.shown import count_hidden
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.pipeline.parts import cut
from microcoder.data.sources import MARKER
from microcoder.data.verify.rates import MOST_GUESSED, guess_chances
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import write_parquet
from microcoder.judge.core.types import Problem, Record

_ROWS_PER_FILE = 2000
"""Most rows of a file."""
_CHARACTERS_PER_FILE = 64 << 20
"""Characters of rows from which on a file ends."""
UNKNOWN = "not stated"
"""What the card says of a licence, a year or a difficulty that no source states."""
_MANY = 10
"""Numbers of hidden tests from which on the card counts problems together."""
_COUNTED = ("licence", "year", "difficulty", "dataset", "style", "hidden tests")
"""What the card counts problems by."""

_TEXT = pa.string()
_LIST = pa.list_(pa.string())
_COLUMNS: Mapping[str, pa.DataType] = {
    "id": _TEXT,
    "dataset": _TEXT,
    "source_row": _TEXT,
    "url": _TEXT,
    "licence": _TEXT,
    "date": _TEXT,
    "platform": _TEXT,
    "title": _TEXT,
    "tags": _LIST,
    "platform_difficulty": _TEXT,
    "difficulty": pa.float64(),
    "pass_rate": pa.float64(),
    "pass_rate_low": pa.float64(),
    "pass_rate_high": pa.float64(),
    "pass_rate_measured_on": _TEXT,
    "pass_rates": _LIST,
    "natural_language": _TEXT,
    "programming_language": _TEXT,
    "statement": _TEXT,
    "statement_found": _TEXT,
    "fn_name": _TEXT,
    "starter_code": _TEXT,
    "num_tests": pa.int64(),
    "num_hidden_tests": pa.int64(),
    "num_generated_tests": pa.int64(),
    "num_unchecked_tests": pa.int64(),
    "constant_share": pa.float64(),
    "coin_chance": pa.float64(),
    "origins": _TEXT,
    "time_limit_seconds": pa.float64(),
    "memory_limit_mib": pa.int64(),
    "checker": _TEXT,
    "interactor": _TEXT,
    "groups": _LIST,
    "flags": _LIST,
    "merged": _LIST,
    "solutions": _TEXT,
    "problem": _TEXT,
}
"""Columns of the problems table, in their order, and their types."""
_PROBLEMS = pa.schema(list(_COLUMNS.items()))
_REJECTED = pa.schema(
    [
        ("id", _TEXT),
        ("dataset", _TEXT),
        ("source_row", _TEXT),
        ("stage", _TEXT),
        ("reason", _TEXT),
        ("detail", _TEXT),
        ("raw", _TEXT),
        ("candidate", _TEXT),
    ]
)
_LINEAGE = pa.schema(
    [
        ("id", _TEXT),
        ("stage", _TEXT),
        ("step", _TEXT),
        ("field", _TEXT),
        ("detail", _TEXT),
    ]
)
T = TypeVar("T")


def _no_counts() -> dict[str, Counter[str]]:
    return {name: Counter() for name in _COUNTED}


@dataclass(slots=True)
class Tally:
    """Counts for the dataset card, collected while the tables are written."""

    num_problems: int = 0
    num_tests: int = 0
    num_generated: int = 0
    certificates: Counter[str] = field(default_factory=Counter)
    """Generated tests, by what accepted their inputs (see `Origin.certificate`)."""
    guessable: list[str] = field(default_factory=list)
    """Ids of problems whose tests a guess is likely to pass."""
    counts: dict[str, Counter[str]] = field(default_factory=_no_counts)
    """Problems by licence, year and so on."""
    nums_hidden: Counter[int] = field(default_factory=Counter)
    """Problems by how many of their tests the statement does not show."""
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rejected rows, by stage and reason."""

    def find_hidden(self, share: float) -> int:
        """Return how many hidden tests this share of the problems has at most; 0 without any."""
        left = share * self.num_problems
        for num_hidden in sorted(self.nums_hidden):
            left -= self.nums_hidden[num_hidden]
            if left <= 0:
                return num_hidden
        return 0

    def count_problem(self, row: Mapping[str, Any]) -> None:
        """Add a row of the problems table to all counts but `reasons`."""
        self.num_problems += 1
        self.num_tests += row["num_tests"]
        self.num_generated += row["num_generated_tests"]
        for origin in json.loads(row["origins"]):
            # Of tests that the source gave it says nothing.
            if "certificate" in origin:
                self.certificates[origin["certificate"]] += 1
        if row["coin_chance"] > MOST_GUESSED:
            self.guessable.append(row["id"])
        num_hidden = row["num_hidden_tests"]
        self.nums_hidden[num_hidden] += 1
        hidden = "10 or more" if num_hidden >= _MANY else str(num_hidden)
        style = "function call" if row["fn_name"] else "stdin and stdout"
        self.counts["hidden tests"][hidden] += 1
        self.counts["licence"][row["licence"] or UNKNOWN] += 1
        self.counts["year"][row["date"][:4] or UNKNOWN] += 1
        self.counts["difficulty"][_describe_difficulty(row)] += 1
        self.counts["dataset"][row["dataset"]] += 1
        self.counts["style"][f"{row['programming_language']}, {style}"] += 1


def _describe_difficulty(row: Mapping[str, Any]) -> str:
    """Return a model's score rounded to one half, else the source's own words."""
    score = row["difficulty"]
    if score is None:
        return row["platform_difficulty"] or UNKNOWN
    return f"{int(2 * score) / 2:.1f}"


def write_tables(
    folder: Path,
    kept: Iterable[Candidate],
    rejected: Iterable[Rejection],
) -> Tally:
    """Write the three tables, and return the counts for the card.

    In memory are the rows of one file at a time.
    """
    tally = Tally()
    schemas = {
        "problems": _PROBLEMS,
        "rejected": _REJECTED,
        "lineage": _LINEAGE,
    }
    for kind, schema in schemas.items():
        # An earlier build may have had more files than this one.
        for old in folder.glob(f"{kind}-*.parquet"):
            old.unlink()
        # Also without a row: the card names a table of each.
        write_parquet(folder / f"{kind}-00000.parquet", [], schema)
    rows_and_lines = ((problem_row(candidate), _lineage_rows(candidate)) for candidate in kept)
    for number, batch in enumerate(_cut(rows_and_lines)):
        problems = []
        lines = []
        for row, lines_of_row in batch:
            tally.count_problem(row)
            problems.append(row)
            lines += lines_of_row
        write_parquet(folder / f"problems-{number:05d}.parquet", problems, _PROBLEMS)
        write_parquet(folder / f"lineage-{number:05d}.parquet", lines, _LINEAGE)
    rejected_rows = ((_rejected_row(rejection), None) for rejection in rejected)
    for number, batch in enumerate(_cut(rejected_rows)):
        rows = [row for row, _ in batch]
        tally.reasons.update((row["stage"], row["reason"]) for row in rows)
        write_parquet(folder / f"rejected-{number:05d}.parquet", rows, _REJECTED)
    return tally


def _cut(rows: Iterable[tuple[dict[str, Any], T]]) -> Iterator[list[tuple[dict[str, Any], T]]]:
    """Yield the rows of each file: 2,000, or fewer if they are large.

    Each row is a tuple of its values and of the data that belongs to it.
    """
    return cut(rows, _count_characters, most=_ROWS_PER_FILE, size=_CHARACTERS_PER_FILE)


def _count_characters(row: tuple[dict[str, Any], Any]) -> int:
    """Return the size of a row: texts are nearly all of it."""
    values, _ = row
    return sum(len(value) for value in values.values() if isinstance(value, str))


def problem_row(candidate: Candidate) -> dict[str, Any]:
    """Return a kept problem as a row of the problems table, by column."""
    problem = candidate.to_problem()
    difficulty = candidate.difficulty
    row = {name: getattr(candidate, name) for name in _COLUMNS if hasattr(candidate, name)}
    kinds = [origin.kind for origin in candidate.origins]
    certificates = [origin.certificate for origin in candidate.origins]
    interactor = ""
    if candidate.interactor is not None:
        interactor = candidate.interactor.model_dump_json(exclude_defaults=True)
    return {
        # First, since some fields of a candidate have another form in the table.
        **row,
        "pass_rate": difficulty.pass_rate,
        "pass_rate_low": difficulty.pass_rate_low,
        "pass_rate_high": difficulty.pass_rate_high,
        "difficulty": difficulty.predicted,
        "pass_rate_measured_on": difficulty.measured_on,
        "num_tests": len(candidate.tests),
        "num_hidden_tests": count_hidden(candidate),
        "num_generated_tests": len(kinds) - kinds.count("given"),
        "num_unchecked_tests": certificates.count("unchecked"),
        **guess_chances(candidate),
        "origins": _write_list(candidate.origins),
        "time_limit_seconds": problem.time_limit_seconds,
        "memory_limit_mib": problem.memory_limit_mib,
        "checker": candidate.checker.model_dump_json(exclude_defaults=True),
        "interactor": interactor,
        "solutions": _write_list(candidate.solutions),
        "problem": problem.model_dump_json(exclude_defaults=True),
    }


def _write_list(records: Sequence[Record]) -> str:
    """Return records as a JSON list."""
    written = [record.model_dump_json(exclude_defaults=True) for record in records]
    return f"[{','.join(written)}]"


def _lineage_rows(candidate: Candidate) -> list[dict[str, Any]]:
    """Return the lineage of a kept problem as rows of its table."""
    return [{"id": candidate.id, **line.model_dump()} for line in candidate.lineage]


def _rejected_row(rejection: Rejection) -> dict[str, Any]:
    row = {name: getattr(rejection, name) for name in _REJECTED.names}
    if rejection.candidate is not None:
        row["candidate"] = rejection.candidate.model_dump_json(exclude_defaults=True)
    return row


def read_released(folder: Path) -> list[Problem]:
    """Return the problems of a finished corpus, in order.

    Raises:
        DataError: the folder holds no finished corpus, or a file is damaged.
    """
    # Written last: without it the build was not finished.
    if not (folder / MARKER).exists():
        raise DataError(
            f"{folder} holds no finished corpus (no {MARKER}); "
            "pass a folder that `microcoder data build` finished"
        )
    problems: list[Problem] = []
    for path in sorted(folder.glob("problems-*.parquet")):
        try:
            table = pq.read_table(path, columns=["problem"])
            records = table["problem"].to_pylist()
            problems += [Problem.model_validate_json(record) for record in records]
        except (OSError, pa.ArrowException, ValidationError) as error:
            raise DataError(
                f"{path} is damaged ({type(error).__name__}); build the corpus again"
            ) from None
    return problems

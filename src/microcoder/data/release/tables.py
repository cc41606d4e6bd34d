"""The corpus as Parquet: problems, rejected rows, lineage; the same rows give the same bytes.

problems-00000.parquet   one problem a row; `problem` is the record that training reads
rejected-00000.parquet   one rejected row, with its stage, reason and what it was
lineage-00000.parquet    one change to one field of a kept problem

Also the dataset card (rows by step, counts, reasons of rejections, verifier rates), the sources as Croissant metadata
(https://docs.mlcommons.org/croissant), and the upload to the Hugging Face Hub.
"""

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jinja2
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from microcoder.data.clean.samples import count_hidden
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.pipeline.engine import StepCounts
from microcoder.data.pipeline.parts import cut
from microcoder.data.sources import MARKER
from microcoder.data.verify.rates import MOST_GUESSED, guess_chances
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json, write_json, write_parquet, write_text
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.core.types import Problem

_ROWS_PER_FILE, _CHARACTERS_PER_FILE = 2000, 64 << 20
UNKNOWN = "not stated"
_MANY = 10
_COUNTED = ("licence", "year", "difficulty", "dataset", "style", "hidden tests")

_TEXT = pa.string()
_KINDS = {
    **dict.fromkeys(("tags", "pass_rates", "groups", "flags", "merged"), pa.list_(_TEXT)),
    **dict.fromkeys(("num_tests", "num_hidden_tests", "num_generated_tests", "num_unchecked_tests",
                     "memory_limit_mib"), pa.int64()),
    **dict.fromkeys(("difficulty", "pass_rate", "pass_rate_low", "pass_rate_high", "constant_share", "coin_chance",
                     "time_limit_seconds"), pa.float64()),
}  # fmt: skip
"""Types of the columns that are not text."""
_COLUMNS = (
    "id", "dataset", "source_row", "url", "licence", "date", "platform", "title", "tags", "platform_difficulty",
    "difficulty", "pass_rate", "pass_rate_low", "pass_rate_high", "pass_rate_measured_on", "pass_rates",
    "natural_language", "programming_language", "statement", "statement_found", "fn_name", "starter_code", "num_tests",
    "num_hidden_tests", "num_generated_tests", "num_unchecked_tests", "constant_share", "coin_chance", "origins",
    "time_limit_seconds", "memory_limit_mib", "checker", "groups", "flags", "merged", "solutions", "problem",
)  # fmt: skip
_PROBLEMS = pa.schema([(name, _KINDS.get(name, _TEXT)) for name in _COLUMNS])
_REJECTED = pa.schema(
    [
        (name, _TEXT)
        for name in ("id", "dataset", "source_row", "stage", "reason", "detail", "raw", "candidate")
    ]
)
_LINEAGE = pa.schema([(name, _TEXT) for name in ("id", "stage", "step", "field", "detail")])


@dataclass(slots=True)
class Tally:
    """Counts for the dataset card, collected while the tables are written."""

    num_problems: int = 0
    num_tests: int = 0
    num_generated: int = 0
    certificates: Counter[str] = field(default_factory=Counter)
    """Generated tests, by what accepted their inputs (see `Origin.certificate`)."""
    guessable: list[str] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in _COUNTED}
    )
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rejected rows, by stage and reason."""

    def count_problem(self, row: Mapping[str, Any]) -> None:
        """Add a row of the problems table to all counts but `reasons`."""
        self.num_problems += 1
        self.num_tests += row["num_tests"]
        self.num_generated += row["num_generated_tests"]
        self.certificates.update(
            one["certificate"] for one in json.loads(row["origins"]) if "certificate" in one
        )
        if row["coin_chance"] > MOST_GUESSED:
            self.guessable.append(row["id"])
        hidden = row["num_hidden_tests"]
        self.counts["hidden tests"]["10 or more" if hidden >= _MANY else str(hidden)] += 1
        scored, source = row["difficulty"], row["platform_difficulty"]
        self.counts["licence"][row["licence"] or UNKNOWN] += 1
        self.counts["year"][row["date"][:4] or UNKNOWN] += 1
        self.counts["difficulty"][
            (source or UNKNOWN) if scored is None else f"{int(2 * scored) / 2:.1f}"
        ] += 1
        self.counts["dataset"][row["dataset"]] += 1
        style = "function call" if row["fn_name"] else "stdin and stdout"
        self.counts["style"][f"{row['programming_language']}, {style}"] += 1


def write_tables(folder: Path, kept: Iterable[Candidate], rejected: Iterable[Rejection]) -> Tally:
    """Write the three tables, with the rows of one file in memory at a time, and return the counts for the card."""
    tally = Tally()
    for kind, schema in (("problems", _PROBLEMS), ("rejected", _REJECTED), ("lineage", _LINEAGE)):
        for old in folder.glob(f"{kind}-*.parquet"):
            old.unlink()
        # Also without a row: the card names a table of each.
        write_parquet(folder / f"{kind}-00000.parquet", [], schema)
    for number, batch in enumerate(_cut((problem_row(one), one.id, one.lineage) for one in kept)):
        problems = [row for row, *_ in batch]
        for row in problems:
            tally.count_problem(row)
        write_parquet(folder / f"problems-{number:05d}.parquet", problems, _PROBLEMS)
        lines = [
            {"id": name, **line.model_dump()} for _, name, lineage in batch for line in lineage
        ]
        write_parquet(folder / f"lineage-{number:05d}.parquet", lines, _LINEAGE)
    for number, batch in enumerate(_cut((_rejected_row(one),) for one in rejected)):
        rows = [row for (row,) in batch]
        tally.reasons.update((row["stage"], row["reason"]) for row in rows)
        write_parquet(folder / f"rejected-{number:05d}.parquet", rows, _REJECTED)
    return tally


def _cut(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of each file, as tuples that begin with the row: `_ROWS_PER_FILE`, fewer if rows are large."""

    def size_of(row: tuple[Any, ...]) -> int:
        return sum(len(value) for value in row[0].values() if isinstance(value, str))

    return cut(rows, size_of, most=_ROWS_PER_FILE, size=_CHARACTERS_PER_FILE)


def problem_row(candidate: Candidate) -> dict[str, Any]:
    """Return a kept problem as a row of the problems table, by column."""
    problem = candidate.to_problem()
    difficulty = candidate.difficulty
    row = {name: getattr(candidate, name) for name in _PROBLEMS.names if hasattr(candidate, name)}
    return {
        **row,
        **{
            name: getattr(difficulty, name)
            for name in ("pass_rate", "pass_rate_low", "pass_rate_high")
        },
        "difficulty": difficulty.predicted,
        "pass_rate_measured_on": difficulty.measured_on,
        "num_tests": len(candidate.tests),
        "num_hidden_tests": count_hidden(candidate),
        "num_generated_tests": sum(origin.kind != "given" for origin in candidate.origins),
        "num_unchecked_tests": sum(
            origin.certificate == "unchecked" for origin in candidate.origins
        ),
        **guess_chances(candidate),
        "origins": "["
        + ",".join(one.model_dump_json(exclude_defaults=True) for one in candidate.origins)
        + "]",
        "time_limit_seconds": problem.time_limit_seconds,
        "memory_limit_mib": problem.memory_limit_mib,
        "checker": candidate.checker.model_dump_json(exclude_defaults=True),
        "solutions": "["
        + ",".join(s.model_dump_json(exclude_defaults=True) for s in candidate.solutions)
        + "]",
        "problem": problem.model_dump_json(exclude_defaults=True),
    }


def _rejected_row(row: Rejection) -> dict[str, Any]:
    text = (
        row.candidate.model_dump_json(exclude_defaults=True) if row.candidate is not None else None
    )
    return {**{name: getattr(row, name) for name in _REJECTED.names}, "candidate": text}


def read_released(folder: Path) -> list[Problem]:
    """Return the problems of a finished corpus, in order.

    Raises:
        DataError: the folder holds no finished corpus, or a file is damaged.
    """
    files = sorted(folder.glob("problems-*.parquet"))
    if not (folder / MARKER).exists():
        raise DataError(
            f"{folder} holds no finished corpus (no {MARKER}); pass a folder that `microcoder data build` finished"
        )
    problems: list[Problem] = []
    for path in files:
        try:
            problems += map(
                Problem.model_validate_json,
                pq.read_table(path, columns=["problem"])["problem"].to_pylist(),
            )
        except (OSError, pa.ArrowException, ValidationError) as error:
            raise DataError(
                f"{path} is damaged ({type(error).__name__}); build the corpus again"
            ) from None
    return problems


CARD = "README.md"
_MAX_LINES = 25
_LICENCES = frozenset({
    "mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "isc", "unlicense", "cc0-1.0", "cc-by-2.0", "cc-by-3.0",
    "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "odc-by", "pddl", "odbl", "gpl-2.0", "gpl-3.0", "lgpl-3.0", "mpl-2.0",
})  # fmt: skip
"""Licence names that the Hugging Face Hub knows."""
_TEMPLATE = Path(__file__).with_name("card.md.j2")


def write_card(
    folder: Path,
    *,
    name: str,
    tally: Tally,
    step_counts: Sequence[StepCounts],
    figures: Mapping[str, Any],
    config: Mapping[str, Any],
    sources: Sequence[Mapping[str, str]] = (),
) -> None:
    """Write the dataset card, README.md, and its figures, funnel.json."""
    funnel = [
        {
            "step": p.step,
            "stage": p.stage,
            "in": p.num_in,
            "kept": p.num_kept,
            "rejected": p.num_rejected,
        }
        for p in step_counts
    ]
    counted = sorted(tally.reasons.items())
    reasons = [
        {"stage": stage, "reason": reason, "rows": count} for (stage, reason), count in counted
    ]
    write_json(folder / "funnel.json", {"steps": funnel, "reasons": reasons, "figures": figures})
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        name=name,
        licence=find_licence(tally.counts["licence"]),
        sources=sources,
        tally=tally,
        funnel=funnel,
        reasons=reasons,
        counts={kind: counter.most_common(_MAX_LINES) for kind, counter in tally.counts.items()},
        figures={
            step: json.dumps(value, indent=2, ensure_ascii=False) for step, value in figures.items()
        },
        config=json.dumps(config, indent=2, ensure_ascii=False),
    )
    write_text(folder / CARD, text)


def find_licence(licences: Collection[str]) -> str:
    """Return the Hub's name for the licence of all problems: `other` for several, `unknown` if none is stated."""
    if set(licences) <= {UNKNOWN}:
        return "unknown"
    (name, *others) = {licence.lower() for licence in licences}
    return name if not others and name in _LICENCES else "other"


CROISSANT = "croissant.json"
_REJECTED_COLUMNS = ["id", "dataset", "source_row", "stage", "reason"]
"""Columns of rejected rows that are published: neither their content nor quotes of it."""


def write_croissant(
    folder: Path, *, name: str, licence: str, sources: Sequence[Mapping[str, str]]
) -> None:
    """Write `croissant.json`: the corpus's tables with their digests, and what it was built from.

    Args:
        sources: `name`, `url`, `version` (commit), `sha256` and `license` of each, where they are known.
    """
    files = [
        {
            "@type": "cr:FileObject",
            **dict.fromkeys(("@id", "name", "contentUrl"), path.name),
            "encodingFormat": "application/vnd.apache.parquet",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.glob("*.parquet"))
    ]
    record = {
        "@context": {"@vocab": "https://schema.org/", "sc": "https://schema.org/", "dct": "http://purl.org/dc/terms/",
                     "cr": "http://mlcommons.org/croissant/", "conformsTo": "dct:conformsTo", "sha256": "cr:sha256"},
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "license": licence,
        "isBasedOn": [{"@type": "sc:Dataset", **source} for source in sources],
        "distribution": files,
    }  # fmt: skip
    write_json(folder / CROISSANT, record)


def copy_published(corpus: Path, target: Path) -> tuple[int, int]:
    """Copy a finished corpus without problems that have no licence, and without the contents of rejected rows.

    Returns:
        How many problems were copied, and how many were left out since they have no licence.
    """
    licences: set[str] = set()
    num_copied = num_left_out = 0
    for path in sorted(corpus.glob("problems-*.parquet")):
        number = path.stem.partition("-")[2]
        table = pq.read_table(path)
        kept = table.filter(
            pa.array([bool(one.strip()) for one in table["licence"].to_pylist()], pa.bool_())
        )
        licences |= set(kept["licence"].to_pylist())
        num_copied, num_left_out = num_copied + len(kept), num_left_out + len(table) - len(kept)
        pq.write_table(kept, target / path.name)
        lineage = pq.read_table(corpus / f"lineage-{number}.parquet")
        ids = set(kept["id"].to_pylist())
        lineage = lineage.filter(
            pa.array([name in ids for name in lineage["id"].to_pylist()], pa.bool_())
        )
        pq.write_table(lineage, target / f"lineage-{number}.parquet")
    if not num_copied:
        raise DataError(
            f"{corpus}: no problem has a licence, so none may be passed on; write `licence` under [[sources]] of its "
            "config, as the source states it, and build again"
        )
    for path in sorted(corpus.glob("rejected-*.parquet")):
        pq.write_table(pq.read_table(path, columns=_REJECTED_COLUMNS), target / path.name)
    shutil.copyfile(corpus / "funnel.json", target / "funnel.json")
    licence = find_licence(licences)
    text = (corpus / CARD).read_text(encoding="utf-8")
    text = re.sub(r"^license: .*$", f"license: {licence}", text, count=1, flags=re.MULTILINE)
    said = f"Not published: {num_left_out} problems of which no licence is stated, and the contents of rejected rows."
    write_text(target / CARD, f"{text.rstrip()}\n\n{said}\n")
    record = read_json(corpus / CROISSANT, what="metadata")
    sources = [
        {key: text for key, text in one.items() if key != "@type"} for one in record["isBasedOn"]
    ]
    write_croissant(target, name=record["name"], licence=licence, sources=sources)
    write_json(
        target / MARKER, {**read_json(corpus / MARKER, what="manifest"), "num_problems": num_copied}
    )
    return num_copied, num_left_out


@dataclass(frozen=True, slots=True)
class Pushed:
    """Address of a corpus that was uploaded to the Hub, and how many problems it has."""

    address: str
    num_problems: int
    num_left_out: int
    """Problems without a licence, which are not uploaded."""


def push(corpus: Path, *, repo: str, is_private: bool) -> Pushed:
    """Upload a corpus without rejected rows' contents and problems that have no licence; DataError if it fails."""
    if not (corpus / MARKER).exists():
        raise DataError(
            f"{corpus} holds no finished corpus (no {MARKER}); type `microcoder data build` first"
        )
    try:
        import httpx
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError:
        raise DataError(f"push needs huggingface_hub; type: {how_to_install('data')}") from None
    hub = HfApi()
    try:
        with TemporaryDirectory() as folder:
            num_problems, num_left_out = copy_published(corpus, Path(folder))
            address = hub.create_repo(repo, repo_type="dataset", private=is_private, exist_ok=True)
            hub.upload_folder(
                folder_path=folder, repo_id=repo, repo_type="dataset", delete_patterns=["*.parquet"]
            )
    except (HfHubHTTPError, HFValidationError, httpx.HTTPError, OSError) as error:
        said = str(error).strip().split("\n")[0]
        raise DataError(
            f"{repo} cannot be pushed ({said}); type `hf auth login`, or check the name and the network"
        ) from None
    return Pushed(str(address), num_problems, num_left_out)

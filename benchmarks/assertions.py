"""Published references, by us and by each set's own harness: `python benchmarks/assertions.py`.

Of each public set whose tests are Python it prints, as a table of Markdown, how many rows are
judged, how many of their references are accepted, and how many the set's own harness accepts: one
process that runs the reference and the test, as it was published. Where both differ, the row is
named. `--packages atcoder` has pandas, which ODEX needs; the own harness sees the same packages and
those of this interpreter.

It reads the archives of real data (`MICROCODER_DATA`, or `../shared/data` beside the project); a
set that is not there is skipped.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder import DataError, Problem, Program, read_problem
from microcoder.data.rowfiles import unpack
from microcoder.judge import Judge
from microcoder.judge.languages.packages import load_profile, provide_packages

ROOT = Path(__file__).resolve().parents[1]
OWN_SECONDS = 40
"""Wall time that a set's own harness gives a row."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PublishedSet:
    """A public set: its files, and of a row the reference and what its harness runs."""

    name: str
    archive: str
    files: str
    reference: Callable[[Row], str]
    program: Callable[[Row], str]
    """Reference and test as one program, which fails with an exception."""


def humaneval_reference(row: Row) -> str:
    """Return the prompt with its solution."""
    return row["prompt"] + row["canonical_solution"]


def humaneval_program(row: Row) -> str:
    """Return what OpenAI's harness runs."""
    return f"{humaneval_reference(row)}\n{row['test']}\ncheck({row['entry_point']})\n"


def mbpp_reference(row: Row) -> str:
    """Return the code, with the line ends of Unix."""
    return row["code"].replace("\r\n", "\n")


def mbpp_program(row: Row) -> str:
    """Return what the harness of the paper runs."""
    return "\n".join([mbpp_reference(row), row["test_setup_code"], *row["test_list"]])


def odex_reference(row: Row) -> str:
    """Return the solution between prompt and suffix."""
    return row["prompt"] + row["canonical_solution"] + row["suffix"]


def odex_program(row: Row) -> str:
    """Return what ODEX's harness runs."""
    test = row["test_start"] + "".join(row["test"])
    return f"{odex_reference(row)}\n{test}\ncheck({row['entry_point']})\n"


def leetcode_reference(row: Row) -> str:
    """Return the completion."""
    return row["completion"]


def leetcode_program(row: Row) -> str:
    """Return what the harness of LeetCodeDataset runs."""
    return f"{row['prompt']}\n{row['completion']}\n{row['test']}\ncheck({row['entry_point']})\n"


SETS = (
    PublishedSet("HumanEval", "humaneval", "*.gz", humaneval_reference, humaneval_program),
    PublishedSet(
        "HumanEval-XL, Python", "humaneval_xl", "python/*", humaneval_reference, humaneval_program
    ),
    PublishedSet("MBPP", "mbpp", "mbpp.jsonl", mbpp_reference, mbpp_program),
    PublishedSet("ODEX", "odex", "*.jsonl", odex_reference, odex_program),
    PublishedSet(
        "LeetCodeDataset 0.3.1, test",
        "leetcodedataset",
        "*test*.gz",
        leetcode_reference,
        leetcode_program,
    ),
)


def read_rows(published: PublishedSet, folder: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a set, each with its file and line."""
    with tempfile.TemporaryDirectory() as name:
        target = Path(name) / "set"
        unpack(folder / f"{published.archive}.tar.xz", target, aside=Path(name))
        for path in sorted(target.rglob(published.files)):
            content = path.read_bytes()
            if path.suffix == ".gz":
                content = gzip.decompress(content)
            for number, line in enumerate(content.splitlines(), 1):
                yield f"{path.name}:{number}", json.loads(line)


def run_as_published(program: str, packages: str) -> bool:
    """Whether a program of reference and test ends without an exception."""
    environment = {**os.environ, "PYTHONPATH": packages}
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w") as file:
        # Outside the working folder, which programs list.
        file.write(program)
        file.flush()
        try:
            ended = subprocess.run(
                [sys.executable, file.name],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=OWN_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return ended.returncode == 0


def measure(
    published: PublishedSet, rows: Sequence[tuple[str, Row]], judge: Judge, packages: str
) -> dict[str, Any]:
    """Return the figures of a set, and the rows on which both harnesses differ."""
    with ThreadPoolExecutor() as threads:
        programs = [published.program(row) for _, row in rows]
        own = list(threads.map(lambda program: run_as_published(program, packages), programs))
    refused: Counter[str] = Counter()
    judged: list[tuple[int, Problem]] = []
    for number, (_, row) in enumerate(rows):
        try:
            judged.append((number, read_problem(row)))
        except DataError as error:
            reason = str(error).rpartition("judged: ")[2].partition(";")[0]
            refused[reason] += own[number]
    answers = [Program(published.reference(rows[number][1])) for number, _ in judged]
    verdicts = judge.judge(answers, [problem for _, problem in judged])
    differing = {}
    num_accepted = 0
    for (number, _), verdict in zip(judged, verdicts, strict=True):
        num_accepted += verdict.is_accepted
        if verdict.is_accepted != own[number]:
            differing[rows[number][0]] = f"own {own[number]}, ours {verdict.outcome.value}"
            differing[rows[number][0]] += f": {verdict.detail[:120]}"
    return {
        "rows": len(rows),
        "judged": len(judged),
        "accepted": num_accepted,
        "own": sum(own),
        "both": sum(own[number] for number, _ in judged),
        "refused": dict(refused.most_common()),
        "differing": differing,
    }


def main() -> None:
    """Measure the chosen sets, and print a table and what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", default="atcoder")
    parser.add_argument("--sets", nargs="*", help="names of archives; all by default")
    options = parser.parse_args()
    folder = Path(os.environ.get("MICROCODER_DATA") or ROOT.parent / "shared" / "data")
    packages = provide_packages(load_profile(options.packages)).folder
    print("| set | rows | judged | references accepted | own harness accepts | of those judged |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    found: dict[str, dict[str, Any]] = {}
    with Judge(packages=options.packages) as judge:
        for published in SETS:
            is_wanted = not options.sets or published.archive in options.sets
            if not is_wanted or not (folder / f"{published.archive}.tar.xz").exists():
                continue
            figures = measure(published, list(read_rows(published, folder)), judge, packages)
            found[published.archive] = figures
            names = ("rows", "judged", "accepted", "own", "both")
            cells = [str(figures[name]) for name in names]
            print(f"| {published.name} | {' | '.join(cells)} |", flush=True)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

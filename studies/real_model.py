"""What a real checkpoint's own samples say, without training: `studies/registered/real_model.md`.

    python studies/real_model.py draw --mbpp FILE --leetcode FILE -o problems.jsonl
    python studies/real_model.py sample --model M --problems problems.jsonl --out SAMPLES
    python studies/real_model.py record SAMPLES --problems problems.jsonl -o RECORDS
    python studies/real_model.py report RECORDS

`draw` chooses problems by a hash of their names. `sample` is `microcoder eval` at each temperature,
and goes on where it stopped. `record` keeps of each response its length and whether it is right,
and of each problem its diversity: one line a problem and temperature, from which `report` computes
every number.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from microcoder.eval.report import EvaluationFolder
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.files import read_rows, write_rows
from microcoder.judge.core.types import Checker, Problem, Program
from microcoder.lab.studies.accuracy import Estimate, estimate_mean
from microcoder.train.rollouts import measure_group_diversity

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Row = dict[str, Any]
"""A line of the records: a problem's responses at one temperature."""

NUM_DRAWN = 32
"""Problems of each set."""
NUM_SAMPLES = 8
"""Responses to a problem at a temperature."""
MAX_TOKENS = 512
"""Limit of a response."""
TEMPERATURES = (1.0, 0.6, 1.4, 0.2, 1.8)
"""In the order in which they are sampled."""
LIMITS = (96, 128, 192, 256)
"""Limits that are asked about, in tokens."""
COOL = 0.6
"""The lower of the two temperatures whose diversities are compared."""
HOT = 1.4
"""The higher of the two."""
MAIN = 1.0
"""The temperature of the questions on limits and comparisons."""


def draw_problems(mbpp: Path, leetcode: Path) -> list[Problem]:
    """Return the study's problems, of problem files of both sets."""
    easy = [problem for problem in read_problems(leetcode) if problem.tier == "Easy"]
    drawn = []
    for problems in (read_problems(mbpp), easy):
        ordered = sorted(problems, key=lambda problem: hash_name(problem.id))
        drawn += ordered[:NUM_DRAWN]
    return drawn


def hash_name(name: str) -> str:
    """Return a number of a problem's name that nobody chose."""
    return hashlib.sha256(name.encode()).hexdigest()


def read_problems(path: Path) -> list[Problem]:
    """Return the problems of a problem file, by `microcoder data convert`."""
    return [Problem.model_validate(row) for row in read_rows(path)]


def sample(model: str, problems: Path, out: Path, temperatures: Sequence[float]) -> None:
    """Sample and judge responses at each temperature, by the command that a user types."""
    for temperature in temperatures:
        command = [sys.executable, "-m", "microcoder", "eval"]
        command += ["--benchmark.kind", "problems", "--benchmark.path", str(problems)]
        command += ["--generation.kind", "transformers", "--generation.model", model]
        command += ["--generation.batch_size", "64"]
        command += ["--sampling.num_samples", str(NUM_SAMPLES)]
        command += ["--sampling.temperature", str(temperature), "--sampling.top_p", "1.0"]
        command += ["--sampling.max_tokens", str(MAX_TOKENS)]
        command += ["--run-dir", str(out / f"t{temperature}")]
        subprocess.run(command, check=True)


def record(judge: Judge, samples: Path, problems: Sequence[Problem]) -> Iterator[Row]:
    """Yield the records of the temperatures that are sampled, problem by problem."""
    by_id = {problem.id: problem for problem in problems}
    for temperature in sorted(TEMPERATURES):
        folder = EvaluationFolder(samples / f"t{temperature}")
        if not folder.results.exists():
            print(f"temperature {temperature} is not sampled to its end", file=sys.stderr)
            continue
        tokenizer = load_tokenizer(folder.read_manifest())
        verdicts = {}
        for verdict in read_rows(folder.verdicts):
            verdicts[verdict["problem_id"], verdict["sample_index"]] = verdict["verdict"]
        responses = defaultdict(list)
        for row in read_rows(folder.samples):
            responses[row["problem_id"]].append(row)
        for name, rows in sorted(responses.items()):
            yield record_problem(judge, by_id[name], rows, verdicts, tokenizer, temperature)


def record_problem(
    judge: Judge,
    problem: Problem,
    rows: Sequence[Row],
    verdicts: Mapping[tuple[str, int], str],
    tokenizer: PreTrainedTokenizerBase,
    temperature: float,
) -> Row:
    """Return the record of a problem's responses at one temperature."""
    rights = []
    for row in rows:
        rights.append(verdicts[problem.id, row["sample_index"]] == "accepted")
    token_ids = []
    for row in rows:
        token_ids.append(tokenizer.encode(row["completion"], add_special_tokens=False))
    strict = None
    # A test that is a program compares by itself.
    if temperature == MAIN and problem.assertions is None:
        accepted = [row["program"] for row, is_right in zip(rows, rights, strict=True) if is_right]
        strict = count_strictly_accepted(judge, problem, accepted)
    return {
        "problem": problem.id,
        "temperature": temperature,
        "tokens": [row["num_tokens"] for row in rows],
        "truncated": [row["is_truncated"] for row in rows],
        "right": rights,
        "diversity": measure_group_diversity(token_ids),
        "strictly_right": strict,
    }


def load_tokenizer(manifest: Mapping[str, Any]) -> PreTrainedTokenizerBase:
    """Return the tokenizer of an evaluation's model."""
    # Slow, and `report` needs none.
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(manifest["config"]["generation"]["model"])
    assert tokenizer is not None
    return tokenizer


def count_strictly_accepted(judge: Judge, problem: Problem, programs: Sequence[str]) -> int:
    """Return how many of a problem's accepted programs the exact comparison accepts, too."""
    exact = problem.model_copy(update={"checker": Checker(type="exact")})
    verdicts = judge.judge([Program(program) for program in programs], [exact] * len(programs))
    for verdict in verdicts:
        if not verdict.is_scorable:
            raise EvaluatorFault(f"{problem.id} could not be judged anew: {verdict.detail}")
    return sum(verdict.is_accepted for verdict in verdicts)


def describe(rows: Sequence[Row]) -> str:
    """Return the tables of the study's four questions."""
    by_temperature: dict[float, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_temperature[row["temperature"]][row["problem"]] = row
    lines = [*describe_temperatures(by_temperature), ""]
    if COOL in by_temperature and HOT in by_temperature:
        lines += [describe_diversities(by_temperature[COOL], by_temperature[HOT]), ""]
    main = list(by_temperature.get(MAIN, {}).values())
    if main:
        lines += [*describe_limits(main), "", *describe_comparison(main)]
    return "\n".join(lines)


def describe_temperatures(by_temperature: Mapping[float, Mapping[str, Row]]) -> Iterator[str]:
    """Yield the table of accuracy and diversity by temperature."""
    yield "| temperature | right | truncated | diversity | right, less at the coolest |"
    yield "| --- | --- | --- | --- | --- |"
    coolest = by_temperature[min(by_temperature)]
    for temperature, of_problem in sorted(by_temperature.items()):
        rows = of_problem.values()
        changes = []
        for name, row in of_problem.items():
            changes.append(fmean(row["right"]) - fmean(coolest[name]["right"]))
        cells = [
            f"{temperature:g}",
            tell(estimate_mean([fmean(row["right"]) for row in rows])),
            tell(estimate_mean([fmean(row["truncated"]) for row in rows])),
            tell(estimate_mean([row["diversity"] for row in rows if row["diversity"] is not None])),
            tell(estimate_mean(changes, lowest=-1.0)) if of_problem is not coolest else "-",
        ]
        yield f"| {' | '.join(cells)} |"


def describe_diversities(cool: Mapping[str, Row], hot: Mapping[str, Row]) -> str:
    """Return how much more diverse a problem's responses are at the higher temperature."""
    changes = []
    for name, row in hot.items():
        if row["diversity"] is not None and cool[name]["diversity"] is not None:
            changes.append(row["diversity"] - cool[name]["diversity"])
    change = tell(estimate_mean(changes, lowest=-1.0))
    return f"Diversity at {HOT:g} less that at {COOL:g}: {change}, {len(changes)} problems."


def describe_limits(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of what a limit cuts off, and how much of it would have been right."""
    yield f"| limit | cut off | of these right within {MAX_TOKENS} | of whole ones right |"
    yield "| --- | --- | --- | --- |"
    for limit in LIMITS:
        cut_off = []
        whole = []
        shares = []
        for row in rows:
            is_cut = [num_tokens > limit for num_tokens in row["tokens"]]
            shares.append(fmean(is_cut))
            for is_right, is_cut_off in zip(row["right"], is_cut, strict=True):
                group = cut_off if is_cut_off else whole
                group.append(is_right)
        cells = [str(limit), tell(estimate_mean(shares)), tell_share(cut_off), tell_share(whole)]
        yield f"| {' | '.join(cells)} |"


def describe_comparison(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of what an exact comparison refuses, by a problem's accuracy."""
    asked = [row for row in rows if row["strictly_right"] is not None and any(row["right"])]
    asked.sort(key=lambda row: (fmean(row["right"]), row["problem"]))
    yield "| problems | right answers | of these refused by an exact comparison |"
    yield "| --- | --- | --- |"
    third = -(-len(asked) // 3)
    groups = {
        "all": asked,
        "least solved third": asked[:third],
        "middle third": asked[third : 2 * third],
        "most solved third": asked[2 * third :],
    }
    for name, group in groups.items():
        num_right = sum(sum(row["right"]) for row in group)
        num_refused = num_right - sum(row["strictly_right"] for row in group)
        yield f"| {name}: {len(group)} | {num_right} | {num_refused} |"


def tell(estimate: Estimate | None) -> str:
    """Return a share with its interval, in per cent."""
    if estimate is None:
        return "-"
    return f"{estimate.value:.1%} [{estimate.low:.1%}, {estimate.high:.1%}]"


def tell_share(hits: Sequence[bool]) -> str:
    """Return how many of some responses are right."""
    return f"{sum(hits)} of {len(hits)}"


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    draws = commands.add_parser("draw")
    draws.add_argument("--mbpp", type=Path, required=True)
    draws.add_argument("--leetcode", type=Path, required=True)
    draws.add_argument("-o", "--output", type=Path, required=True)
    samples = commands.add_parser("sample")
    samples.add_argument("--model", required=True)
    samples.add_argument("--problems", type=Path, required=True)
    samples.add_argument("--out", type=Path, required=True)
    samples.add_argument("--temperatures", type=float, nargs="*", default=TEMPERATURES)
    records = commands.add_parser("record")
    records.add_argument("samples", type=Path)
    records.add_argument("--problems", type=Path, required=True)
    records.add_argument("-o", "--output", type=Path, required=True)
    reports = commands.add_parser("report")
    reports.add_argument("records", type=Path)
    arguments = parser.parse_args()
    match arguments.command:
        case "draw":
            problems = draw_problems(arguments.mbpp, arguments.leetcode)
            write_rows(
                arguments.output,
                (problem.model_dump(mode="json", exclude_defaults=True) for problem in problems),
            )
        case "sample":
            sample(arguments.model, arguments.problems, arguments.out, arguments.temperatures)
        case "record":
            problems = read_problems(arguments.problems)
            with Judge() as judge:
                write_rows(arguments.output, record(judge, arguments.samples, problems))
        case "report":
            print(describe(list(read_rows(arguments.records))))


if __name__ == "__main__":
    try:
        main()
    except (DataError, EvaluatorFault) as error:
        sys.exit(f"real_model.py: {error}")

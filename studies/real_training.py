"""A real checkpoint, trained: `studies/registered/real_model_training.md`.

    python studies/real_training.py choose --mbpp FILE --leetcode FILE --samples RECORDS -o FOLDER
    cd FOLDER && microcoder train -c .../studies/recipes/real_training.toml --run-dir RUN
    python studies/real_training.py record --arm NAME RUN -o RECORDS
    python studies/real_training.py report RECORDS

`choose` takes the problems to train on and those held out, by rules that look at no result of the
training. `record` keeps a line a held-out response and a line a step, from which `report` computes
every number. MBPP's file needs its test rows: `microcoder data convert --with-test-rows`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow.parquet as parquet
from real_model import hash_name, read_problems, tell

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_rows, write_rows
from microcoder.judge.core.types import Problem
from microcoder.lab.studies.accuracy import estimate_accuracy, estimate_difference, wilson_interval

Row = dict[str, Any]
"""A line of the records: a held-out response, or a step."""
Responses = Mapping[str, Row]
"""Problem -> its held-out response."""

STUDIED_AT = 1.0
"""Temperature of the samples by which problems are chosen."""
LONGEST = 720
"""Characters of the longest statement."""
FIRST_TEST_TASK = 11
"""First task of MBPP's test split."""
LAST_TEST_TASK = 510
"""Last task of it."""
NUM_MBPP = 40
"""Held-out problems of MBPP."""
NUM_LEETCODE = 20
"""Held-out problems of LeetCode."""
STEP_FIELDS = (
    "reward_mean",
    "truncated_share",
    "length_mean",
    "no_code_share",
    "diversity",
    "masked_share",
    "masked_effective_share",
    "zero_variance_share",
    "unscored_share",
)
"""Metrics of a step that are kept."""


def choose_train(problems: Sequence[Problem], samples: Sequence[Row]) -> list[Problem]:
    """Return the problems that the untrained model solves in some of its responses, not all."""
    by_name = {problem.id: problem for problem in problems}
    chosen = []
    for row in samples:
        if row["temperature"] != STUDIED_AT:
            continue
        is_mixed = 0 < sum(row["right"]) < len(row["right"])
        problem = by_name.get(row["problem"])
        if problem is None:
            raise DataError(f"{row['problem']} is in neither file of problems; pass those studied")
        if is_mixed and len(problem.statement) <= LONGEST:
            chosen.append(problem)
    return chosen


def choose_heldout(
    mbpp: Sequence[Problem], leetcode: Sequence[Problem], samples: Sequence[Row]
) -> list[Problem]:
    """Return problems that were not studied: of MBPP's test split, and easy ones of LeetCode."""
    studied = {row["problem"] for row in samples}
    tests = []
    for problem in mbpp:
        task = int(problem.id.rpartition("/")[2])
        if FIRST_TEST_TASK <= task <= LAST_TEST_TASK:
            tests.append(problem)
    easy = [problem for problem in leetcode if problem.tier == "Easy"]
    chosen = []
    for problems, number in ((tests, NUM_MBPP), (easy, NUM_LEETCODE)):
        fit = []
        for problem in problems:
            if problem.id not in studied and len(problem.statement) <= LONGEST:
                fit.append(problem)
        chosen += sorted(fit, key=lambda problem: hash_name(problem.id))[:number]
    return chosen


def record(arm: str, run: Path) -> Iterator[Row]:
    """Yield a run's held-out responses and its steps; of a fine-tuning it is one step for all.

    Args:
        arm: what the run is called in the records.
        run: its folder.
    """
    if (run / "heldout").is_dir():
        yield from _record_fine_tuning(arm, run)
        return
    for file in sorted((run / "evaluations").glob("*.parquet")):
        for response in parquet.read_table(file).to_pylist():
            yield {
                "arm": arm,
                "step": response["step"],
                "problem": response["problem_id"],
                "sample": response["sample_index"],
                "verdict": response["verdict"],
                "has_program": response["program"] is not None,
                "truncated": response["is_truncated"],
                "tokens": response["num_tokens"],
            }
    for metrics in read_rows(run / "metrics.jsonl"):
        row = {"arm": arm, "trained": metrics["step"]}
        row |= {field: metrics[field] for field in STEP_FIELDS}
        row["entropy"] = metrics["optimizer"]["entropy"]
        row["clip_high_share"] = metrics["optimizer"]["clip_high_share"]
        row["seconds"] = metrics["seconds"]["total"]
        yield row


def _record_fine_tuning(arm: str, run: Path) -> Iterator[Row]:
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    for name, step in (("before", 0), ("after", summary["num_updates"])):
        folder = run / "heldout" / name
        verdicts = {}
        for row in read_rows(folder / "verdicts.jsonl"):
            verdicts[row["problem_id"], row["sample_index"]] = row["verdict"]
        for response in read_rows(folder / "samples.jsonl"):
            key = (response["problem_id"], response["sample_index"])
            yield {
                "arm": arm,
                "step": step,
                "problem": response["problem_id"],
                "sample": response["sample_index"],
                "verdict": verdicts[key],
                "has_program": response["program"] is not None,
                "truncated": response["is_truncated"],
                "tokens": response["num_tokens"],
            }
    yield {
        "arm": arm,
        "answers": summary["num_answers"],
        "answer_tokens": summary["num_tokens"],
        "losses": summary["losses"],
    }


def describe(rows: Sequence[Row]) -> str:
    """Return every number of the page, as lines."""
    by_arm: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_arm[row["arm"]].append(row)
    lines = []
    for arm, found in by_arm.items():
        lines.append(f"## {arm}")
        lines += _describe_heldout(found)
        steps = [row for row in found if "trained" in row]
        if steps:
            lines += _describe_steps(steps)
        for row in found:
            if "answers" in row:
                losses = ", ".join(f"{loss:.3f}" for loss in row["losses"])
                lines.append(f"fine-tuned on {row['answers']} answers; losses {losses}")
    return "\n".join(lines)


def _describe_heldout(rows: Sequence[Row]) -> Iterator[str]:
    by_step: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if "problem" in row:
            by_step[row["step"]][row["problem"]].append(row)
    solved = {}
    for step, by_problem in sorted(by_step.items()):
        solved[step] = {
            problem: [_is_right(row) for row in responses]
            for problem, responses in by_problem.items()
        }
        responses = [row for found in by_problem.values() for row in found]
        whole = [row for row in responses if not row["truncated"]]
        yield (
            f"held out after step {step}: {_share(responses)} right, "
            f"{tell(estimate_accuracy(solved[step]))}; "
            f"cut off {len(responses) - len(whole)} of {len(responses)}; "
            f"of the whole ones {_share(whole)} right; "
            f"{fmean(row['tokens'] for row in responses):.0f} tokens"
        )
    first, *later = sorted(solved)
    for step in later:
        change = estimate_difference(solved[first], solved[step])
        yield f"change from step {first} to {step}, paired by problem: {tell(change)}"
        won, lost = _count_changes(solved[first], solved[step])
        yield f"solved now and not before: {won}; before and not now: {lost}"


def _is_right(row: Row) -> bool | None:
    """Whether a response is right; None if the sandbox failed."""
    if row["verdict"] == "sandbox_fault":
        return None
    return row["verdict"] == "accepted"


def _share(responses: Sequence[Row]) -> str:
    hits = sum(_is_right(row) is True for row in responses)
    low, high = wilson_interval(hits, len(responses))
    return f"{hits} of {len(responses)} ({100 * low:.0f} to {100 * high:.0f} %)"


def _count_changes(
    before: Mapping[str, Sequence[bool | None]], after: Mapping[str, Sequence[bool | None]]
) -> tuple[int, int]:
    """Return how many problems are solved in more, and in fewer responses than before."""
    won = 0
    lost = 0
    for problem, results in before.items():
        change = sum(map(bool, after[problem])) - sum(map(bool, results))
        won += change > 0
        lost += change < 0
    return won, lost


def _describe_steps(steps: Sequence[Row]) -> Iterator[str]:
    third = max(1, len(steps) // 3)
    for name, part in (("first", steps[:third]), ("last", steps[-third:])):
        reward = fmean(row["reward_mean"] for row in part)
        truncated = fmean(row["truncated_share"] for row in part)
        length = fmean(row["length_mean"] for row in part)
        diversity = fmean(row["diversity"] for row in part)
        entropy = fmean(row["entropy"] for row in part)
        yield (
            f"{name} {len(part)} steps: reward {reward:.3f}, cut off {100 * truncated:.0f} %, "
            f"{length:.0f} tokens, diversity {diversity:.3f}, entropy {entropy:.3f}"
        )
    masked = fmean(row["masked_share"] for row in steps)
    flat = fmean(row["zero_variance_share"] for row in steps)
    seconds = sum(row["seconds"] for row in steps)
    yield (
        f"{len(steps)} steps: masked {100 * masked:.1f} %, "
        f"groups of one reward {100 * flat:.0f} %, {seconds / 60:.0f} minutes"
    )


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    chooses = commands.add_parser("choose")
    chooses.add_argument("--mbpp", type=Path, required=True)
    chooses.add_argument("--leetcode", type=Path, required=True)
    chooses.add_argument("--samples", type=Path, required=True)
    chooses.add_argument("-o", "--output", type=Path, required=True)
    records = commands.add_parser("record")
    records.add_argument("run", type=Path)
    records.add_argument("--arm", required=True)
    records.add_argument("-o", "--output", type=Path, required=True)
    reports = commands.add_parser("report")
    reports.add_argument("records", type=Path)
    arguments = parser.parse_args()
    match arguments.command:
        case "choose":
            _choose(arguments.mbpp, arguments.leetcode, arguments.samples, arguments.output)
        case "record":
            kept = [row for row in read_rows(arguments.output) if row["arm"] != arguments.arm]
            write_rows(arguments.output, [*kept, *record(arguments.arm, arguments.run)])
        case "report":
            print(describe(read_rows(arguments.records)))


def _choose(mbpp: Path, leetcode: Path, samples: Path, folder: Path) -> None:
    """Write the sets that are trained on and held out."""
    mbpp_problems = read_problems(mbpp)
    leetcode_problems = read_problems(leetcode)
    rows = read_rows(samples)
    train = choose_train([*mbpp_problems, *leetcode_problems], rows)
    heldout = choose_heldout(mbpp_problems, leetcode_problems, rows)
    folder.mkdir(parents=True, exist_ok=True)
    for name, problems in (("train", train), ("heldout", heldout)):
        dumped = [problem.model_dump(mode="json", exclude_defaults=True) for problem in problems]
        write_rows(folder / f"{name}.jsonl", dumped)
        print(f"{name}: {len(problems)} problems")


if __name__ == "__main__":
    try:
        main()
    except DataError as error:
        sys.exit(f"real_training.py: {error}")

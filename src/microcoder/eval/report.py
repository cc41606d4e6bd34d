"""The folder of an evaluation, and its results, of one evaluation or as the difference of two.

The folder holds questions, answers and verdicts; results are computed from these files only.

    manifest.json     config, digest, problems, versions, machine, isolation
    questions.jsonl   one line a problem: problem_id, title, platform, difficulty, date,
                      statement_digest
    samples.jsonl     one line a response as it came: problem_id, sample_index, completion, program,
                      extraction, is_truncated, num_tokens; and prompt, with the chat template's
                      turns, of a model in this process
    verdicts.jsonl    one line a verdict as it came: problem_id, sample_index, verdict, tests,
                      detail
    results.json      accuracy and pass@k by platform and difficulty, with intervals
    report.md         the same as tables

An interrupted evaluation resumes from the complete lines. If a pair of problem and sample has two
verdicts, because the first was a sandbox error, the later one counts.

Tables are by platform and difficulty: mean accuracy and pass@k with intervals, or the paired
difference of two runs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from microcoder.data.benchmarks import Question
from microcoder.data.completions import Completion
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extract import USUAL, Extractor
from microcoder.judge.core.files import WorkFolder, read_json, read_rows
from microcoder.judge.core.records import explain_faults
from microcoder.judge.core.suspicions import ProgramOutcome, find_suspicions
from microcoder.judge.core.types import Outcome, Record
from microcoder.lab.studies.accuracy import Solved, estimate_accuracy, estimate_difference

Key = tuple[str, int]
"""Problem id and sample index."""

Row = dict[str, Any]
"""A line of a file, or a table of figures, as JSON values."""

ALL = "all"
"""Platform and difficulty of the cells that count all."""

_ORDER = ("atcoder", "leetcode", "codeforces", "easy", "medium", "hard")
"""Platforms and difficulties that come first, in the order in which they are published."""


class Sample(Record):
    """A response, or an answer from a file, with its program: a line of samples.jsonl."""

    problem_id: str
    sample_index: int
    completion: str | None
    """The full response; None if the answer file has only the program."""
    program: str | None
    extraction: str
    """How the program was extracted, or why there is none."""
    is_truncated: bool = False
    num_tokens: int | None = None
    prompt: str | None = None
    """What the model was given, with all that its chat template adds; None where another program
    made the prompt."""

    @classmethod
    def from_response(
        cls,
        question: Question,
        sample_index: int,
        response: Completion,
        extract: Extractor = USUAL,
        *,
        prompt: str | None = None,
    ) -> Self:
        """Return the sample of a response, with the program that `extract` finds in it."""
        program = extract(
            response.with_thinking,
            is_truncated=response.is_truncated,
            language=question.problem.language,
        )
        return cls(
            problem_id=question.id,
            sample_index=sample_index,
            completion=response.with_thinking,
            program=program.code,
            extraction=program.reason,
            is_truncated=response.is_truncated,
            num_tokens=response.num_tokens,
            prompt=prompt,
        )

    def as_row(self) -> Row:
        """Return the line of samples.jsonl; without a known prompt there is no key for it."""
        return self.model_dump(exclude={"prompt"} if self.prompt is None else None)


class EvaluationFolder(WorkFolder):
    """The files of one evaluation."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.questions = root / "questions.jsonl"
        self.samples = root / "samples.jsonl"
        self.verdicts = root / "verdicts.jsonl"
        self.results = root / "results.json"
        self.report = root / "report.md"

    @property
    def has_begun(self) -> bool:
        """Whether the evaluation has an answer already.

        A manifest alone, left by a failed start, does not tie the folder to a config.
        """
        return self.manifest.exists() and self.samples.exists()

    @property
    def is_evaluation(self) -> bool:
        """Whether the folder's manifest is an evaluation's."""
        if not self.manifest.exists():
            return False
        return read_json(self.manifest, what="manifest").get("kind") == "evaluation"

    def check_ours(self) -> None:
        """Raise DataError unless the folder is an evaluation's, or empty and writable."""
        if not self.is_evaluation:
            self.check_place("evaluation", self.questions)

    def read_manifest(self) -> Row:
        """Return the manifest.

        Raises:
            DataError: the folder has none, or it lacks an entry that results need.
        """
        if not self.manifest.exists():
            raise DataError(
                f"{self.root} holds no evaluation (no manifest.json); pass a folder of "
                "`microcoder eval`"
            )
        match read_json(self.manifest, what="manifest"):
            case {
                "digest": _,
                "benchmark": {"num_problems": _},
                "config": {"generation": {"kind": _}, "benchmark": {"kind": _}},
            } as manifest:
                return manifest
        raise DataError(
            f"{self.manifest} is no evaluation's, or damaged; pass a folder of `microcoder eval`"
        )

    def read_questions(self) -> list[Row]:
        """Return the rows of questions.jsonl, one per problem.

        Raises:
            DataError: they are not those of the manifest.
        """
        rows = read_rows(self.questions)
        # Results are by these rows, so a lost line would drop a problem from every figure.
        is_whole = len(rows) == self.read_manifest()["benchmark"]["num_problems"]
        if not is_whole or not all(map(_is_question, rows)):
            raise DataError(
                f"{self.questions} was edited or damaged; type the evaluation's command again to "
                "mend it"
            )
        return rows

    def read_samples(self) -> dict[Key, Sample]:
        """Return the responses by problem and sample."""
        try:
            samples = map(Sample.model_validate, read_rows(self.samples))
            return {(sample.problem_id, sample.sample_index): sample for sample in samples}
        except ValidationError as error:
            raise DataError(
                f"{self.samples} was edited or damaged: {explain_faults(error, Sample)}"
            ) from None

    def read_verdicts(self) -> dict[Key, Row]:
        """Return the latest verdict of each sample, sandbox errors included."""
        latest = {}
        for row in read_rows(self.verdicts):
            match row:
                case {"problem_id": str(name), "sample_index": int(index), "verdict": str()}:
                    # A sample is judged again only after a sandbox error, so the later verdict
                    # counts.
                    latest[name, index] = row
                case _:
                    raise DataError(
                        f"{self.verdicts} was edited or damaged: a line is no verdict on a sample"
                    )
        return latest

    def find_judged(self) -> set[Key]:
        """Return the keys of the samples that have a final verdict.

        A sandbox error is not final: such a sample is judged again.
        """
        verdicts = self.read_verdicts().items()
        return {key for key, row in verdicts if row["verdict"] != Outcome.SANDBOX_FAULT}


def _is_question(row: Row) -> bool:
    fields = (row.get("problem_id"), row.get("platform"), row.get("difficulty"))
    return all(isinstance(value, str) for value in fields)


def solved_from(verdicts: Mapping[Key, Row]) -> dict[str, list[bool | None]]:
    """Return, by problem id, whether each sample was accepted; None if the sandbox failed on it."""
    solved: dict[str, list[bool | None]] = {}
    for (problem_id, _), row in sorted(verdicts.items()):
        outcome = row["verdict"]
        # Not False: that our machine failed says nothing of the program.
        is_solved = None
        if outcome != Outcome.SANDBOX_FAULT:
            is_solved = outcome == Outcome.ACCEPTED
        solved.setdefault(problem_id, []).append(is_solved)
    return solved


def accuracy_grid(
    questions: Sequence[Row], solved: Solved, *, ks: Sequence[int], before: Solved | None = None
) -> list[Row]:
    """Return a row for every non-empty cell: platform, difficulty, k, and the estimate.

    For k = 1 it is of the mean accuracy of the samples. It is None if no problem of the cell has k
    scored samples. Totals are in cells named `all`.

    Args:
        questions: rows of questions.jsonl.
        solved: problem id -> whether each sample is right.
        ks: values of k in pass@k.
        before: another evaluation: then the mean change from it, problem by problem, over the
            problems of both.
    """
    known = solved.keys() if before is None else solved.keys() & before.keys()
    asked = [question for question in questions if question["problem_id"] in known]
    platforms = _values(asked, "platform")
    difficulties = _values(asked, "difficulty")
    cells = []
    for k in ks:
        for platform in platforms:
            for difficulty in difficulties:
                ids = _select(asked, platform, difficulty)
                if ids:
                    cell: Row = {"platform": platform, "difficulty": difficulty, "k": k}
                    cells.append(cell | _estimate(ids, solved, before, k))
    return cells


def _select(questions: Sequence[Row], platform: str, difficulty: str) -> set[str]:
    """Return the ids of the problems of a cell."""
    ids = set()
    for question in questions:
        is_of_platform = platform in (ALL, question["platform"])
        if is_of_platform and difficulty in (ALL, question["difficulty"]):
            ids.add(question["problem_id"])
    return ids


def _estimate(ids: set[str], solved: Solved, before: Solved | None, k: int) -> Row:
    """Return the figures of a cell with these problems."""
    after = {name: solved[name] for name in ids}
    if before is None:
        estimate = estimate_accuracy(after, k=k)
    else:
        estimate = estimate_difference({name: before[name] for name in ids}, after, k=k)
    if estimate is None:
        return {"num_problems": 0, "value": None, "low": None, "high": None}
    return {
        "num_problems": estimate.num_problems,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
    }


def _values(questions: Sequence[Row], field: str) -> list[str]:
    """Return the distinct values of a field, then `all`.

    They are ordered `easy` to `hard`, then by number or name.
    """

    def rank(value: str) -> tuple[int, int, str]:
        name = value.lower()
        position = _ORDER.index(name) if name in _ORDER else len(_ORDER)
        # As numbers: the rating 800 comes before 1200.
        return position, int(value) if value.isdigit() else 0, value

    # Problems that lack it are in the totals alone.
    values = {question[field] for question in questions} - {""}
    return [*sorted(values, key=rank), ALL]


def summarise(folder: EvaluationFolder, *, pass_at: Sequence[int] = ()) -> Row:
    """Return the results of an evaluation, finished or not, computed from its files.

    Raises:
        DataError: the folder holds no evaluation, or no verdict yet.
    """
    manifest = folder.read_manifest()
    samples = folder.read_samples()
    # A verdict whose sample is gone is of an answer that a later command gives again.
    verdicts = {key: row for key, row in folder.read_verdicts().items() if key in samples}
    if not verdicts:
        raise DataError(f"{folder.root} holds no verdict yet; type its command again to resume it")
    questions = folder.read_questions()
    solved = solved_from(verdicts)
    counts = Counter(row["verdict"] for row in verdicts.values())
    num_samples = [len(values) for values in solved.values()]
    # The largest k that every problem has the samples for.
    ks = sorted({1, min(num_samples), *pass_at})
    judged = [ProgramOutcome(samples[key].program, row["verdict"]) for key, row in verdicts.items()]
    num_asked = len(questions)
    if manifest["config"]["generation"]["kind"] == "file":
        # A file may have answers to some of the problems only.
        num_asked = len({problem_id for problem_id, _ in samples})
    outcomes = {}
    for outcome in Outcome:
        if counts[outcome.value]:
            outcomes[outcome.value] = counts[outcome.value]
    num_truncated = sum(sample.is_truncated for sample in samples.values())
    is_complete = len(solved) == num_asked and verdicts.keys() == samples.keys()
    return {
        "name": folder.root.name,
        "digest": manifest["digest"],
        "benchmark": manifest["config"]["benchmark"],
        "generation": manifest["config"]["generation"],
        "is_complete": is_complete,
        "num_questions": num_asked,
        "num_without_answer": len(questions) - num_asked,
        "num_problems": len(solved),
        "num_samples": len(verdicts),
        "samples_per_problem": {"min": min(num_samples), "max": max(num_samples)},
        "num_unscored": counts[str(Outcome.SANDBOX_FAULT)],
        "truncated_share": num_truncated / len(samples),
        "mean_tokens": _mean_length(samples.values()),
        "outcomes": outcomes,
        "suspicions": find_suspicions(judged),
        "isolation": manifest.get("isolation"),
        "cells": accuracy_grid(questions, solved, ks=ks),
    }


def _mean_length(samples: Iterable[Sample]) -> float | None:
    """Return the mean number of tokens of those responses whose length is known."""
    lengths = [sample.num_tokens for sample in samples if sample.num_tokens is not None]
    if not lengths:
        return None
    return sum(lengths) / len(lengths)


def compare(
    before: EvaluationFolder, after: EvaluationFolder, *, pass_at: Sequence[int] = ()
) -> Row:
    """Return the difference of accuracy and pass@k between two evaluations.

    Only problems that both have judged count.

    Raises:
        DataError: one holds no evaluation, or they share no problem.
    """
    questions = {}
    for row in (*before.read_questions(), *after.read_questions()):
        questions[row["problem_id"]] = row
    old = solved_from(before.read_verdicts())
    new = solved_from(after.read_verdicts())
    shared = old.keys() & new.keys()
    if not shared:
        raise DataError(
            f"{before.root} and {after.root} share no judged problem; compare runs of one benchmark"
        )
    # What each problem has the samples for in both: a larger k would drop problems.
    smallest = min(min(len(old[name]), len(new[name])) for name in shared)
    ks = sorted({1, smallest, *pass_at})
    # `get`, since a manifest without one is still an evaluation's.
    digest_before = before.read_manifest()["benchmark"].get("digest")
    digest_after = after.read_manifest()["benchmark"].get("digest")
    return {
        "before": before.root.name,
        "after": after.root.name,
        "same_benchmark": digest_before == digest_after,
        "num_problems": len(shared),
        "num_only_before": len(old.keys() - shared),
        "num_only_after": len(new.keys() - shared),
        "cells": accuracy_grid(list(questions.values()), new, before=old, ks=ks),
    }


def render_results(results: Row) -> str:
    """Return the results of an evaluation as Markdown that reads well as plain text."""
    low = results["samples_per_problem"]["min"]
    high = results["samples_per_problem"]["max"]
    each = f"{low}" if low == high else f"{low} to {high}"
    generation = results["generation"]
    source = generation.get("model") or generation.get("path")
    benchmark = results["benchmark"]
    name = benchmark["kind"]
    if benchmark.get("dialect"):
        name += f" (dialect {benchmark['dialect']})"
    verdicts = ", ".join(f"{count} {outcome}" for outcome, count in results["outcomes"].items())
    lines = [
        f"{name}: {results['num_problems']} problems x {each} samples, answers by {source}",
        f"verdicts: {verdicts}",
    ]
    if not results["is_complete"]:
        lines.append(
            f"NOT COMPLETE: {results['num_problems']} of {results['num_questions']} problems have "
            f"verdicts, of {results['num_samples']} samples"
        )
    if results["num_without_answer"]:
        lines.append(
            f"{results['num_without_answer']} problems have no answer in the file, and are in no "
            "figure"
        )
    if results["num_unscored"]:
        lines.append(
            f"UNSCORED: {results['num_unscored']} samples, in no figure, because the sandbox failed"
        )
    if results["mean_tokens"] is not None:
        lines.append(
            f"mean length {results['mean_tokens']:.0f} tokens, {results['truncated_share']:.1%} "
            "truncated"
        )
    lines += [f"SUSPICIOUS: {suspicion}" for suspicion in results["suspicions"]]
    return _render(lines, results["cells"])


def render_comparison(results: Row) -> str:
    """Return the results of a comparison as Markdown that reads well as plain text."""
    lines = [
        f"{results['before']} -> {results['after']}: {results['num_problems']} problems of both, "
        "paired; points of percent with 95 % intervals, * where the interval excludes zero"
    ]
    for key, name in (("num_only_before", "before"), ("num_only_after", "after")):
        if results[key]:
            lines.append(f"{results[key]} problems are judged only in {results[name]} and left out")
    if not results["same_benchmark"]:
        lines.append(
            "the two used different problems, prompts or limits: the difference is not due to the "
            "model alone"
        )
    return _render(lines, results["cells"], is_change=True)


def _render(lines: Sequence[str], cells: Sequence[Row], *, is_change: bool = False) -> str:
    """Return lines, and under them a table for each k of the cells."""
    parts = ["\n".join(lines)]
    for k in sorted({cell["k"] for cell in cells}):
        title = "mean accuracy (pass@1)" if k == 1 else f"pass@{k}"
        if is_change:
            title = f"change of {title}"
        else:
            title += ", %, with 95 % intervals over problems (n: problems)"
        of_k = [cell for cell in cells if cell["k"] == k]
        parts += [title, _render_table(_grid(of_k, is_change=is_change))]
    return "\n\n".join(parts)


def _grid(cells: Sequence[Row], *, is_change: bool) -> list[list[str]]:
    """Return the lines of a table: a column a difficulty, `all` last, and a line a platform."""
    by_place = {(cell["platform"], cell["difficulty"]): cell for cell in cells}
    difficulties = list(dict.fromkeys(cell["difficulty"] for cell in cells))
    # The totals come last, also where a platform before them lacks a difficulty.
    difficulties = [name for name in difficulties if name != ALL]
    difficulties.append(ALL)
    lines = [["", *difficulties]]
    for platform in dict.fromkeys(cell["platform"] for cell in cells):
        line = [platform]
        for difficulty in difficulties:
            cell = by_place.get((platform, difficulty))
            line.append(describe_cell(cell, is_change=is_change))
        lines.append(line)
    return lines


def _render_table(lines: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown whose columns are aligned; the first line is its head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "|".join("-" * (width + 2) for width in widths)
    head, *rows = [f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines]
    return "\n".join([head, f"|{rule}|", *rows])


def describe_cell(cell: Row | None, *, is_change: bool = False) -> str:
    """Return a row of `accuracy_grid` as text: per cent, interval, number of problems.

    A change has a sign and, if its interval excludes zero, `*`, and no number of problems.
    """
    if cell is None or cell["value"] is None:
        return "-"
    sign = "+" if is_change else ""
    text = f"{100 * cell['value']:{sign}.1f}"
    if cell["low"] is not None:
        low = 100 * cell["low"]
        high = 100 * cell["high"]
        if is_change and (low > 0 or high < 0):
            text += "*"
        text += f" [{low:{sign}.1f}, {high:{sign}.1f}]"
    if not is_change:
        text += f" n={cell['num_problems']}"
    return text

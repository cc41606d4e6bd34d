"""The folder of an evaluation: what was asked, what was answered, what was judged. Everything is read from it again.

    manifest.json     config, digest, problems, versions, machine, isolation
    questions.jsonl   one line a problem: problem_id, title, platform, difficulty, date
    samples.jsonl     one line a response as it came: problem_id, sample_index, completion, program, extraction,
                      is_truncated, num_tokens
    verdicts.jsonl    one line a verdict as it came: problem_id, sample_index, verdict, tests, detail
    results.json      accuracy and pass@k by platform and difficulty, with intervals
    report.md         the same as tables
    eval_all.json     of LiveCodeBench: problems, answers and grades in the form of its own tools

An interrupted evaluation resumes from the complete lines. If a pair of problem and sample has two verdicts, because the
first was a sandbox fault, the later one counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.completions import Completion
from microcoder.dataset.benchmarks import Question
from microcoder.errors import DataError
from microcoder.extract import USUAL, Extractor
from microcoder.files import WorkFolder, check_writable, read_json, read_rows
from microcoder.types import Outcome

Key = tuple[str, int]
"""Problem id and sample index."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """A response, or an answer from a file, with its program."""

    problem_id: str
    sample_index: int
    completion: str | None
    """The full response; None if the file has only the program."""
    program: str | None
    extraction: str
    """How the program was extracted, or why there is none."""
    is_truncated: bool = False
    num_tokens: int | None = None

    @classmethod
    def from_response(
        cls, question: Question, sample_index: int, response: Completion, extract: Extractor = USUAL
    ) -> Sample:
        """Extract the program from a response."""
        program = extract(response.text, is_truncated=response.is_truncated, language=question.language)
        return cls(
            question.id,
            sample_index,
            response.text,
            program.code,
            program.reason,
            response.is_truncated,
            response.num_tokens,
        )

    @classmethod
    def from_record(cls, row: dict[str, Any]) -> Sample:
        """Read a line of samples.jsonl."""
        return cls(**{name: row[name] for name in cls.__slots__})

    def as_record(self) -> dict[str, Any]:
        """Return the line of samples.jsonl."""
        return {name: getattr(self, name) for name in self.__slots__}


class EvaluationFolder(WorkFolder):
    """The files of one evaluation."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.questions = root / "questions.jsonl"
        self.samples = root / "samples.jsonl"
        self.verdicts = root / "verdicts.jsonl"
        self.results = root / "results.json"
        self.report = root / "report.md"
        self.eval_all = root / "eval_all.json"

    @property
    def has_begun(self) -> bool:
        """Whether there is an answer; a manifest alone, left by a failed start, does not tie the folder to a config."""
        return self.manifest.exists() and self.samples.exists()

    @property
    def is_evaluation(self) -> bool:
        """Whether the folder's manifest is an evaluation's."""
        return self.manifest.exists() and self.read_manifest().get("kind") == "evaluation"

    def check_place(self) -> None:
        """Check that the folder is empty or an evaluation, and writable.

        Raises:
            DataError: it is not; what is there, and what to type.
        """
        check_writable(self.root, DataError)
        ours = {self.manifest.name, self.questions.name, self.lock_file.name}
        if self.root.exists() and not self.is_evaluation and any(path.name not in ours for path in self.root.iterdir()):
            raise DataError(f"{self.root} is not empty and holds no evaluation; use another --run-dir")

    def read_manifest(self) -> Row:
        """Return the manifest.

        Raises:
            DataError: there is none.
        """
        if not self.manifest.exists():
            raise DataError(f"{self.root} holds no evaluation (no manifest.json); pass a folder of `microcoder eval`")
        return read_json(self.manifest, what="manifest")

    def read_questions(self) -> list[Row]:
        """Return the row of each problem."""
        return read_rows(self.questions)

    def read_samples(self) -> dict[Key, Sample]:
        """Return the responses by problem and sample."""
        try:
            samples = [Sample.from_record(row) for row in read_rows(self.samples)]
        except (KeyError, TypeError):
            raise DataError(f"{self.samples} was edited or damaged: a line lacks a field") from None
        return {(sample.problem_id, sample.sample_index): sample for sample in samples}

    def read_verdicts(self) -> dict[Key, Row]:
        """Return the latest verdict of each sample, sandbox faults included."""
        try:
            return {(row["problem_id"], row["sample_index"]): row for row in read_rows(self.verdicts)}
        except (KeyError, TypeError):
            raise DataError(f"{self.verdicts} was edited or damaged: a line names no sample") from None

    def judged(self) -> set[Key]:
        """Return the samples with a final verdict; those with a sandbox fault are judged again."""
        return {key for key, row in self.read_verdicts().items() if row["verdict"] != Outcome.SANDBOX_FAULT}

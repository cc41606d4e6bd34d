"""The only module that knows file names: the run directory is the API between training, insights and viewer.

    manifest.json            config, digest, git commit, packages, seeds, isolation level, what programs run on, machine
    probe.json               the probe that chose the temperature, if any
    metrics.jsonl            one `StepMetrics` row a step
    evaluations.jsonl        one `EvaluationMetrics` row an evaluation
    rollouts/step_*.parquet  every training rollout with its verdict, reward, advantage, why masked
    evaluations/step_*.parquet  every held-out sample, same columns
    checkpoints/step_*/      Hugging Face folders (weights, tokenizer) with TRL's state for resuming; of a verl run its
                             own, global_step_*/, with such a folder in actor/huggingface
    model/                   the final weights, Hugging Face format
    summary.json             written last: a run that has it is finished
    report/index.html        the viewer's page, made of the files above; opens from disk
    trl/, verl/              TRL's model card and files of TensorBoard; the problems as verl reads them
    logs/                    verl's log
    .lock                    held while a process writes the run

Every whole file appears by an atomic rename, so a partial file is never taken for a whole one; a row file is
cut back to the step that is resumed from.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from microcoder.judge.core.errors import DataError, TrainingError, explain_fault
from microcoder.judge.core.files import WorkFolder, read_json, read_rows, write_parquet, write_rows
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.rollouts import ScoredRollout

RowT = TypeVar("RowT", StepMetrics, EvaluationMetrics)
CATALOGUE = "runs.json"
"""File beside the folders of a study's runs: each folder's labels (study, level or measurement, seed)."""
_TIERS_BY_DIFFICULTY = (
    "trivial",
    "intro",
    "introductory",
    "easy",
    "medium",
    "interview",
    "hard",
    "competition",
)
_STEP = re.compile(r"^step_(\d{6})(\.parquet)?$")


class RunDirectory(WorkFolder):
    """Paths and atomic writes of one run."""

    error = TrainingError

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.probe = root / "probe.json"
        self.metrics = root / "metrics.jsonl"
        self.evaluations = root / "evaluations.jsonl"
        self.summary = root / "summary.json"
        self.rollouts = root / "rollouts"
        self.evaluation_samples = root / "evaluations"
        self.checkpoints = root / "checkpoints"
        self.trl = root / "trl"
        self.model = root / "model"
        self.report = root / "report" / "index.html"
        self.logs = root / "logs"

    @property
    def is_finished(self) -> bool:
        """Whether the run is finished: its summary is written."""
        return self.summary.exists()

    @property
    def has_begun(self) -> bool:
        """Whether anything was computed; a manifest alone, left by a failed start, does not tie the folder to a
        config."""
        computed = self.metrics, self.evaluations, self.checkpoints, self.summary
        return self.manifest.exists() and any(map(Path.exists, computed))

    def rollout_file(self, step: int) -> Path:
        """Return the path of a step's training rollouts."""
        return self.rollouts / f"step_{step:06d}.parquet"

    def evaluation_file(self, step: int) -> Path:
        """Return the path of the held-out samples taken after `step` steps."""
        return self.evaluation_samples / f"step_{step:06d}.parquet"

    def checkpoint(self, step: int) -> Path:
        """Return a step's checkpoint in Hugging Face format: its own folder, or the one inside verl's checkpoint."""
        theirs = self.checkpoints / f"global_step_{step}" / "actor" / "huggingface"
        return theirs if theirs.exists() else self.checkpoints / f"step_{step:06d}"

    def latest_checkpoint_step(self) -> int | None:
        """Return the step of the newest whole checkpoint; None when there is none."""
        latest_of_verl = self.checkpoints / "latest_checkpointed_iteration.txt"
        if latest_of_verl.exists():
            return int(latest_of_verl.read_text())
        return max(steps_in(self.checkpoints), default=None)

    def read_manifest(self) -> dict[str, Any]:
        """Return the contents of `manifest.json`; DataError if it is damaged or missing."""
        return read_json(self.manifest, what="run manifest")

    def read_summary(self) -> dict[str, Any] | None:
        """Return the summary, or None for a run that is not finished."""
        return read_json(self.summary, what="run summary") if self.is_finished else None

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the metrics rows, one a step."""
        return read_rows(self.metrics)

    def read_evaluations(self) -> list[dict[str, Any]]:
        """Return the evaluation rows, one an evaluation."""
        return read_rows(self.evaluations)

    def rewind(self, step: int) -> None:
        """Delete the rows and files of all steps after `step`, which a resumed run writes again."""
        for rows in filter(Path.exists, (self.metrics, self.evaluations)):
            write_rows(rows, [row for row in read_rows(rows) if row["step"] <= step])
        for folder in (self.rollouts, self.evaluation_samples, self.checkpoints):
            for later in (s for s in steps_in(folder) if s > step):
                for path in folder.glob(f"step_{later:06d}*"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


def rollout_row(sample: ScoredRollout, *, step: int, temperature: float) -> dict[str, Any]:
    """Return a scored rollout as the plain row that the rollout files hold."""
    rollout, verdict = sample.rollout, sample.verdict
    return {
        "step": step,
        "problem_id": rollout.problem_id,
        "tier": sample.tier,
        "sample_index": sample.sample_index,
        "prompt": rollout.prompt,
        "completion": rollout.completion,
        "num_tokens": len(rollout.token_ids),
        "is_truncated": rollout.is_truncated,
        "temperature": temperature,
        "program": sample.program.code,
        "extraction": sample.program.reason,
        "verdict": str(verdict.outcome),
        "tests_passed": verdict.tests_passed,
        "tests_total": verdict.tests_total,
        "tests": [{**asdict(test), "verdict": str(test.verdict)} for test in verdict.tests],
        "reward": sample.reward,
        "length_penalty": sample.length_penalty,
        "rewards": list(sample.rewards.items()),
        "advantage": sample.advantage,
        "masked_why": sample.masked_why,
        "lost": list(sample.lost.items()),
    }


def write_rollouts(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rollout rows (see `rollout_row`) as zstd Parquet by an atomic rename."""
    import pyarrow as pa

    text, whole, real, claim = pa.string(), pa.int64(), pa.float64(), pa.bool_()
    test = pa.struct({
        "verdict": text, "cpu_seconds": real, "wall_seconds": real, "memory_mib": real, "method": text, "detail": text,
        "output": text,
    }.items())  # fmt: skip
    schema = pa.schema({
        "step": whole, "problem_id": text, "tier": text, "sample_index": whole, "prompt": text, "completion": text,
        "num_tokens": whole, "is_truncated": claim, "temperature": real, "program": text, "extraction": text,
        "verdict": text, "tests_passed": whole, "tests_total": whole,
        "tests": pa.list_(test), "reward": real, "length_penalty": real, "rewards": pa.map_(text, real),
        "advantage": real, "masked_why": text, "lost": pa.map_(text, real),
    })  # fmt: skip
    write_parquet(path, rows, schema)


def read_rollouts(path: Path, *, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a rollout file, whole or some of their columns."""
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=columns).to_pylist()


def steps_in(folder: Path) -> list[int]:
    """Return the steps, ascending, that a folder of rollouts, held-out samples or checkpoints has complete."""
    if not folder.is_dir():
        return []
    return sorted(int(match[1]) for path in folder.iterdir() if (match := _STEP.match(path.name)))


def problems_digest(manifest: Mapping[str, Any]) -> str | None:
    """Return the digest of a run's problems, from its manifest: runs that have the same one can be compared."""
    return (manifest.get("problems") or {}).get("digest")


@dataclass(frozen=True)
class History:
    """What a run directory holds of one run, finished or not: manifest, summary, metrics, evaluations."""

    run: RunDirectory
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any] | None
    steps: Sequence[StepMetrics]
    evaluations: Sequence[EvaluationMetrics]
    """One row per evaluated step, ascending."""

    @property
    def name(self) -> str:
        """The run's name in its manifest, else its folder's."""
        return str(self.manifest.get("name") or self.run.root.resolve().name)

    @property
    def is_finished(self) -> bool:
        """Whether the run is complete."""
        return self.summary is not None

    @property
    def before(self) -> EvaluationMetrics | None:
        """The evaluation of the untrained model."""
        return next((e for e in self.evaluations if e.step == 0), None)

    @property
    def after(self) -> EvaluationMetrics | None:
        """The latest evaluation after training began."""
        return next((e for e in reversed(self.evaluations) if e.step > 0), None)

    @cached_property
    def tier_of(self) -> dict[str, str]:
        """Held-out problem's id -> tier, from the first file of held-out samples that is there; else empty."""
        paths = [self.run.evaluation_file(one.step) for one in (self.before, self.after) if one]
        found = [
            read_rollouts(path, columns=["problem_id", "tier"]) for path in paths if path.exists()
        ][:1]
        return {row["problem_id"]: row["tier"] or "untiered" for rows in found for row in rows}

    def of_tier(
        self, solved: Mapping[str, Sequence[bool | None]], tier: str
    ) -> dict[str, Sequence[bool | None]]:
        """Return the entries of `solved` (`EvaluationMetrics.solved`) of a tier's problems; all if `tier` is empty."""
        return {
            name: samples
            for name, samples in solved.items()
            if not tier or self.tier_of.get(name) == tier
        }

    @cached_property
    def tiers(self) -> list[str]:
        """Every tier of the run: those of known names first, easiest first, then the others by name."""
        seen = {
            tier
            for rows in (self.steps, self.evaluations)
            for row in rows
            for tier in row.accuracy_by_tier
        }
        return sorted(seen, key=_difficulty)


def read_history(run_directory: Path) -> History:
    """Read one run directory, finished or not; raises DataError for rows of another version."""
    run = RunDirectory(run_directory)
    return History(
        run=run,
        manifest=run.read_manifest(),
        summary=run.read_summary(),
        steps=read_steps(run),
        evaluations=_parse(run.read_evaluations(), EvaluationMetrics, run.evaluations),
    )


def read_steps(run: RunDirectory) -> list[StepMetrics]:
    """Return the metrics of a run's steps so far, ascending; raises DataError for rows of another version."""
    return _parse(run.read_metrics(), StepMetrics, run.metrics)


_adapter_of = cache(TypeAdapter)
"""Return the validator of a row class; cached, as making one takes longer than reading a run."""


def _parse(rows: Sequence[dict[str, Any]], row_type: type[RowT], path: Path) -> list[RowT]:
    """Turn rows into metrics: keys of a later version are ignored, a missing key is an error; ascending by step."""
    read = _adapter_of(row_type).validate_python
    parsed: dict[int, RowT] = {}
    for number, row in enumerate(rows, 1):
        try:
            found = read(row)
        except ValidationError as error:
            faults = "; ".join(
                explain_fault(fault, ".".join(map(str, fault["loc"]))) for fault in error.errors()
            )
            raise DataError(
                f"{path} line {number}: {faults}; it was not written by this version"
            ) from None
        parsed[found.step] = found
    return [parsed[step] for step in sorted(parsed)]


def _difficulty(tier: str) -> tuple[int, str]:
    known = tier in _TIERS_BY_DIFFICULTY
    return (_TIERS_BY_DIFFICULTY.index(tier) if known else len(_TIERS_BY_DIFFICULTY), tier)

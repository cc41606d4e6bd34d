"""The only module that knows file names: the run directory.

It is the API between training, insights and viewer.

    manifest.json            config, digest, git commit, packages, seeds, isolation level, machine,
                             what programs run on
    probe.json               the probe that chose the temperature, if any
    metrics.jsonl            one `StepMetrics` row a step
    evaluations.jsonl        one `EvaluationMetrics` row an evaluation
    rollouts/step_*.parquet  every training rollout with its tokens, verdict, reward, advantage, why
                             masked
    evaluations/step_*.parquet  every held-out sample, same columns
    checkpoints/step_*/      Hugging Face folders (weights, tokenizer) with TRL's state for
                             resuming; of a verl run its own, global_step_*/, with such a folder
                             in actor/huggingface
    model/                   the final weights, Hugging Face format
    summary.json             written last: a run that has it is finished
    report/index.html        the viewer's page, made of the files above; opens from disk
    trl/, verl/              TRL's model card and files of TensorBoard; the problems as verl reads
                             them
    replay.json              what `microcoder replay --save` found, for the viewer
    notes.jsonl              what readers wrote about rollouts in the viewer (`view/notes.py`)
    logs/                    verl's log
    .lock                    held while a process writes the run

Every whole file appears by an atomic rename, so a partial file is never taken for a whole one; a
row file is cut back to the step that is resumed from.
"""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from microcoder.judge.core.errors import DataError, TrainingError, explain_fault
from microcoder.judge.core.files import WorkFolder, read_json, read_rows, write_parquet, write_rows
from microcoder.judge.core.types import Outcome, Program, Rollout, TestResult, Verdict
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.rollouts import SamplerMismatch, ScoredRollout

RowT = TypeVar("RowT", StepMetrics, EvaluationMetrics)
CATALOGUE = "runs.json"
"""File beside the folders of a study's runs, with each folder's labels.

They are study, level or measurement, and seed.
"""
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
"""Names of tiers in public data sets, easiest first."""
_STEP = re.compile(r"^step_(\d{6})(\.parquet)?$")
"""Matches the file or folder of a step."""


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
        self.replay = root / "replay.json"
        self.logs = root / "logs"

    @property
    def is_finished(self) -> bool:
        """Whether the run is finished: its summary is written."""
        return self.summary.exists()

    @property
    def has_begun(self) -> bool:
        """Whether the run has computed anything already.

        A manifest alone, left by a failed start, does not tie the folder to a config.
        """
        computed = (self.metrics, self.evaluations, self.checkpoints, self.summary)
        return self.manifest.exists() and any(map(Path.exists, computed))

    def rollout_file(self, step: int) -> Path:
        """Return the path of a step's training rollouts."""
        return self.rollouts / f"step_{step:06d}.parquet"

    def evaluation_file(self, step: int) -> Path:
        """Return the path of the held-out samples taken after `step` steps."""
        return self.evaluation_samples / f"step_{step:06d}.parquet"

    def checkpoint(self, step: int) -> Path:
        """Return a step's checkpoint in Hugging Face format.

        It is the step's own folder, or the one inside verl's checkpoint.
        """
        inside_verls = self.checkpoints / f"global_step_{step}" / "actor" / "huggingface"
        if inside_verls.exists():
            return inside_verls
        return self.checkpoints / f"step_{step:06d}"

    def latest_checkpoint_step(self) -> int | None:
        """Return the step of the newest whole checkpoint; None when there is none."""
        latest_of_verl = self.checkpoints / "latest_checkpointed_iteration.txt"
        # verl writes its checkpoints itself, under names of its own.
        if latest_of_verl.exists():
            return int(latest_of_verl.read_text())
        return max(steps_in(self.checkpoints), default=None)

    def read_manifest(self) -> dict[str, Any]:
        """Return the contents of `manifest.json`; DataError if it is damaged or missing."""
        return read_json(self.manifest, what="run manifest")

    def read_summary(self) -> dict[str, Any] | None:
        """Return the summary, or None for a run that is not finished."""
        if not self.is_finished:
            return None
        return read_json(self.summary, what="run summary")

    def read_metrics(self) -> list[dict[str, Any]]:
        """Return the metrics rows, one a step."""
        return read_rows(self.metrics)

    def read_evaluations(self) -> list[dict[str, Any]]:
        """Return the evaluation rows, one an evaluation."""
        return read_rows(self.evaluations)

    def rewind(self, step: int) -> None:
        """Delete the rows and files of all steps after `step`, which a resumed run writes again."""
        # A row file is written again, as a whole, without the later rows.
        for file in (self.metrics, self.evaluations):
            if file.exists():
                write_rows(file, [row for row in read_rows(file) if row["step"] <= step])
        for folder in (self.rollouts, self.evaluation_samples, self.checkpoints):
            for later_step in steps_in(folder):
                if later_step > step:
                    _delete(folder.glob(f"step_{later_step:06d}*"))


def _delete(paths: Iterable[Path]) -> None:
    """Delete files, and folders with all that is in them."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def rollout_row(sample: ScoredRollout, *, step: int, temperature: float) -> dict[str, Any]:
    """Return a scored rollout as the plain row that the rollout files hold."""
    rollout = sample.rollout
    verdict = sample.verdict
    return {
        "step": step,
        "problem_id": rollout.problem_id,
        "tier": sample.tier,
        "sample_index": sample.sample_index,
        "prompt": rollout.prompt,
        "completion": rollout.completion,
        "num_tokens": len(rollout.token_ids),
        "token_ids": list(rollout.token_ids),
        "is_truncated": rollout.is_truncated,
        "temperature": temperature,
        "program": sample.program.code,
        "extraction": sample.program.reason,
        "is_incomplete": sample.program.is_incomplete,
        "verdict": str(verdict.outcome),
        "tests_passed": verdict.tests_passed,
        "tests_total": verdict.tests_total,
        "tests": [{**asdict(test), "verdict": str(test.verdict)} for test in verdict.tests],
        "reward": sample.reward,
        "length_penalty": sample.length_penalty,
        "rewards": list(sample.rewards.items()),
        "advantage": sample.advantage,
        "masked_why": sample.masked_why,
        "counts": sample.counts,
        "lost": list(sample.lost.items()),
        "mismatch": None if sample.mismatch is None else asdict(sample.mismatch),
    }


def write_rollouts(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rollout rows (see `rollout_row`) as zstd Parquet by an atomic rename."""
    import pyarrow as pa

    text = pa.string()
    integer = pa.int64()
    number = pa.float64()
    boolean = pa.bool_()
    mismatch = pa.struct({"logp_difference": number, "weight": number}.items())
    test = pa.struct(
        {
            "verdict": text,
            "cpu_seconds": number,
            "wall_seconds": number,
            "memory_mib": number,
            "method": text,
            "detail": text,
            "output": text,
        }.items()
    )
    schema = pa.schema(
        {
            "step": integer,
            "problem_id": text,
            "tier": text,
            "sample_index": integer,
            "prompt": text,
            "completion": text,
            "num_tokens": integer,
            "token_ids": pa.list_(pa.int32()),
            "is_truncated": boolean,
            "temperature": number,
            "program": text,
            "extraction": text,
            "is_incomplete": boolean,
            "verdict": text,
            "tests_passed": integer,
            "tests_total": integer,
            "tests": pa.list_(test),
            "reward": number,
            "length_penalty": number,
            "rewards": pa.map_(text, number),
            "advantage": number,
            "masked_why": text,
            "counts": boolean,
            "lost": pa.map_(text, number),
            "mismatch": mismatch,
        }
    )
    write_parquet(path, rows, schema)


def read_rollouts(path: Path, *, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows of a rollout file, whole or some of their columns."""
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=columns).to_pylist()


def list_columns(path: Path) -> list[str]:
    """Return the names of a rollout file's columns: earlier versions wrote fewer."""
    import pyarrow.parquet as pq

    return pq.read_schema(path).names


def read_scored(path: Path) -> list[list[ScoredRollout]]:
    """Return the rollouts of a file by problem, in the order in which they were decided.

    It is the inverse of `rollout_row`, see `scored_of`.
    """
    groups: list[list[ScoredRollout]] = []
    for row in read_rollouts(path):
        sample = scored_of(row)
        # Each sample of a problem has a higher index than the one before.
        latest = groups[-1][-1] if groups else None
        if (
            latest is None
            or latest.rollout.problem_id != sample.rollout.problem_id
            or latest.sample_index >= sample.sample_index
        ):
            groups.append([])
        groups[-1].append(sample)
    return groups


def scored_of(row: Mapping[str, Any]) -> ScoredRollout:
    """Return the scored rollout that a row of a rollout file holds.

    Rows of earlier versions have no tokens: as many placeholders, all different, stand for them.
    Nor do they say whether a program is incomplete: one that a truncated response lacks is.
    """
    code = row["program"]
    token_ids = row.get("token_ids")
    if token_ids is None:
        token_ids = range(row["num_tokens"])
    is_incomplete = row.get("is_incomplete")
    if is_incomplete is None:
        is_incomplete = row["is_truncated"] and code is None
    tests = []
    for test in row["tests"] or ():
        fields: dict[str, Any] = {**test, "verdict": Outcome(test["verdict"])}
        tests.append(TestResult(**fields))
    mismatch = row.get("mismatch")
    return ScoredRollout(
        rollout=Rollout(
            problem_id=row["problem_id"],
            prompt=row["prompt"],
            completion=row["completion"],
            token_ids=tuple(token_ids),
            is_truncated=row["is_truncated"],
        ),
        program=Program(code, reason=row["extraction"], is_incomplete=is_incomplete),
        verdict=Verdict(Outcome(row["verdict"]), tuple(tests), row["tests_total"]),
        reward=row["reward"],
        advantage=row["advantage"],
        masked_why=row["masked_why"],
        tier=row["tier"],
        sample_index=row["sample_index"],
        length_penalty=row["length_penalty"],
        mismatch=None if mismatch is None else SamplerMismatch(**mismatch),
        rewards=dict(row["rewards"] or ()),
        counts=row.get("counts", True),
        lost=dict(row["lost"] or ()),
    )


def steps_in(folder: Path) -> list[int]:
    """Return the steps, ascending, that a folder has complete.

    It is a folder of rollouts, of held-out samples or of checkpoints.
    """
    if not folder.is_dir():
        return []
    steps = []
    for path in folder.iterdir():
        match = _STEP.match(path.name)
        if match is not None:
            steps.append(int(match[1]))
    return sorted(steps)


def problems_digest(manifest: Mapping[str, Any]) -> str | None:
    """Return the digest of a run's problems, from its manifest.

    Runs with the same digest can be compared.
    """
    return (manifest.get("problems") or {}).get("digest")


@dataclass(frozen=True)
class History:
    """One run as its directory holds it, finished or not."""

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
        for evaluation in self.evaluations:
            if evaluation.step == 0:
                return evaluation
        return None

    @property
    def after(self) -> EvaluationMetrics | None:
        """The latest evaluation after training began."""
        for evaluation in reversed(self.evaluations):
            if evaluation.step > 0:
                return evaluation
        return None

    @cached_property
    def tier_of(self) -> dict[str, str]:
        """Tier of each held-out problem, by id, from the first file of held-out samples.

        Empty without such a file.
        """
        for evaluation in (self.before, self.after):
            # A run that was killed early has no evaluation.
            if evaluation is None:
                continue
            path = self.run.evaluation_file(evaluation.step)
            if path.exists():
                rows = read_rollouts(path, columns=["problem_id", "tier"])
                return {row["problem_id"]: row["tier"] or "untiered" for row in rows}
        return {}

    def of_tier(
        self, solved: Mapping[str, Sequence[bool | None]], tier: str
    ) -> dict[str, Sequence[bool | None]]:
        """Return the entries of `solved` of a tier's problems; all if `tier` is empty.

        `solved` is `EvaluationMetrics.solved`.
        """
        if not tier:
            return dict(solved)
        tiers = self.tier_of
        return {name: samples for name, samples in solved.items() if tiers.get(name) == tier}

    @cached_property
    def tiers(self) -> list[str]:
        """Every tier of the run: known names first, from easy to hard, then the others by name."""
        tiers: set[str] = set()
        for row in (*self.steps, *self.evaluations):
            tiers.update(row.accuracy_by_tier)
        return sorted(tiers, key=_difficulty)


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
    """Return the metrics of a run's steps so far, ascending.

    DataError for rows of another version.
    """
    return _parse(run.read_metrics(), StepMetrics, run.metrics)


_adapter_of = cache(TypeAdapter)
"""Return the validator of a row class; cached, as making one takes longer than reading a run."""


def _parse(rows: Sequence[dict[str, Any]], row_type: type[RowT], path: Path) -> list[RowT]:
    """Turn rows into metrics, ascending by step.

    Keys of a later version are ignored; a missing key is an error.
    """
    validate = _adapter_of(row_type).validate_python
    parsed: dict[int, RowT] = {}
    for number, row in enumerate(rows, 1):
        try:
            metrics = validate(row)
        # An old run may lack a field that is needed now.
        except ValidationError as error:
            faults = []
            for fault in error.errors():
                faults.append(explain_fault(fault, ".".join(map(str, fault["loc"]))))
            raise DataError(
                f"{path} line {number}: {'; '.join(faults)}; it was not written by this version"
            ) from None
        # Of two rows of a step the later one counts.
        parsed[metrics.step] = metrics
    return [parsed[step] for step in sorted(parsed)]


def _difficulty(tier: str) -> tuple[int, str]:
    """Return the rank of a tier; unknown tiers come last."""
    rank = len(_TIERS_BY_DIFFICULTY)
    if tier in _TIERS_BY_DIFFICULTY:
        rank = _TIERS_BY_DIFFICULTY.index(tier)
    return rank, tier

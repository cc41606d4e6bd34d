"""Fine-tuning a model on answers, from start to finish: `run_distillation`.

The answers are those of a training run's rollouts or of an evaluation. What is kept of them decides
the baseline: see `train/run/kept_answers.py`. Held-out problems are asked before and after, by the
same evaluation as `microcoder eval`.

    manifest.json   config, command, packages, and which answers were kept
    heldout/before  an evaluation of the model before, heldout/after of the one after
    model/          the fine-tuned weights, Hugging Face format
    summary.json    written last: a folder that has it is finished
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from microcoder.eval.config import DistillConfig, EvalConfig, Transformers
from microcoder.eval.generation import build_messages, build_prompt_builder, load_questions
from microcoder.eval.report import ALL, EvaluationFolder, Sample
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import WorkFolder, check_unchanged, read_json, write_json
from microcoder.judge.core.types import Outcome
from microcoder.train.rollouts import Chat
from microcoder.train.run.checkpoints import Observer, check_model_folder, model_folder
from microcoder.train.run.kept_answers import Answer, Selection, keep_answers, read_run_answers
from microcoder.train.run.manifest import check_same_config, describe_start
from microcoder.train.runs import RunDirectory

NEUTRAL_KEYS = ("micro_batch_size", "gradient_checkpointing", "heldout.judging.workers")
"""Keys that bound memory or time: a distillation may be resumed with other values."""


class DistillationFolder(WorkFolder):
    """The files of one distillation."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.before = root / "heldout" / "before"
        self.after = root / "heldout" / "after"
        self.model = root / "model"
        self.fine_tuning = root / "fine_tuning.json"
        self.summary = root / "summary.json"


@dataclass(frozen=True, slots=True)
class Source:
    """Where answers come from, and who gave them."""

    answers: Sequence[Answer]
    model: str | None
    """The model that answered, or that the run began with; None of a server or a file."""
    revision: str | None
    template_options: Mapping[str, Any]
    """Of the chat template by which the prompts were made."""


@dataclass(frozen=True, slots=True)
class Distillation:
    """A distillation whose answers are read and chosen."""

    config: DistillConfig
    model: str
    """The model that is fine-tuned."""
    revision: str | None
    template_options: Mapping[str, Any]
    num_answers: int
    """Answers of the source."""
    selection: Selection

    def describe(self) -> str:
        """Return a sentence on what is kept."""
        kept = len(self.selection.answers)
        text = f"{kept} of {self.num_answers} answers are kept"
        for reason, number in self.selection.left_out.items():
            text += f", {number} {reason}"
        return text


def plan_distillation(config: DistillConfig) -> Distillation:
    """Return a distillation with its answers read; nothing is written.

    Raises:
        DataError: the source is neither a run nor an evaluation, or none of its answers is kept;
            or the model's folder is wrong.
    """
    source = read_source(config.source)
    model = config.model or source.model
    if model is None:
        raise DataError(
            f"{config.source} does not say which model here answered (a server, a file or the "
            "micro lab did); pass --model with a checkpoint folder or a hub id"
        )
    folder = model_folder(model)
    if folder is not None:
        check_model_folder(folder)
    selection = keep_answers(source.answers, config.keep)
    if not selection.answers:
        advice = "use another source"
        if config.keep == "accepted":
            advice = (
                "take easier problems, more answers each, or --keep all, which trains on "
                "unverified ones"
            )
        raise DataError(
            f"none of the {len(source.answers)} answers in {config.source} is kept "
            f"(keep = {config.keep!r}); {advice}"
        )
    is_same = config.model is None or config.model == source.model
    revision = source.revision if is_same else config.revision
    return Distillation(
        config, model, revision, source.template_options, len(source.answers), selection
    )


def run_distillation(
    config: DistillConfig, *, run_directory: Path, observer: Observer, command: Sequence[str] = ()
) -> dict[str, Any]:
    """Start a distillation, or go on with it; return its summary.

    A stopped evaluation is resumed, a stopped fine-tuning begins anew.

    Raises:
        ConfigError, DataError: as `plan_distillation`, `fine_tune` and `run_evaluation` do.
        EvaluatorFault: there is no sandbox on this machine.
    """
    folder = DistillationFolder(run_directory)
    if folder.manifest.exists():
        check_same_config(folder, config, neutral=NEUTRAL_KEYS)
    else:
        folder.check_place("distillation")
    if folder.summary.exists():
        observer.note(f"{folder.root} is already finished; showing its summary")
        return read_json(folder.summary, what="summary")
    plan = plan_distillation(config)
    observer.note(plan.describe())
    with folder.lock():
        _open(folder, plan, command)
        evaluate = partial(_evaluate, config, observer=observer, command=command)
        before = evaluate(plan.model, plan.revision, folder.before)
        if not folder.fine_tuning.exists():
            _fine_tune(plan, folder, observer)
        after = evaluate(str(folder.model), None, folder.after)
        summary = {
            **read_json(folder.fine_tuning, what="fine-tuning"),
            "model": str(folder.model),
            "accuracy_before": before,
            "accuracy_after": after,
        }
        write_json(folder.summary, summary)
    return summary


def _open(folder: DistillationFolder, plan: Distillation, command: Sequence[str]) -> None:
    """Write the manifest; DataError if the folder's answers were others."""
    digest = hashlib.sha256()
    for answer in plan.selection.answers:
        digest.update(f"{answer.problem_id}\0{answer.prompt}\0{answer.completion}\0".encode())
    origin = {
        "answers": {
            "num_answers": plan.num_answers,
            "num_kept": len(plan.selection.answers),
            "left_out": dict(plan.selection.left_out),
            "digest": digest.hexdigest()[:16],
        }
    }
    if folder.manifest.exists():
        check_unchanged(folder.root, read_json(folder.manifest, what="manifest"), origin, DataError)
        return
    start = describe_start(plan.config, name=folder.root.name, command=command)
    write_json(folder.manifest, {**start, "kind": "distillation", "model": plan.model, **origin})


def _fine_tune(plan: Distillation, folder: DistillationFolder, observer: Observer) -> None:
    # Pulls in torch.
    from microcoder.train.trl.fine_tuning import fine_tune

    observer.phase("fine-tuning")
    done = fine_tune(
        plan.config,
        plan.selection.answers,
        model=plan.model,
        revision=plan.revision,
        template_options=plan.template_options,
        target=folder.model,
        observer=observer,
    )
    if done.num_too_long:
        observer.note(f"{done.num_too_long} answers are too long and were left out")
    record = {
        "num_answers": done.num_answers,
        "num_tokens": done.num_tokens,
        "num_too_long": done.num_too_long,
        "num_updates": done.num_updates,
        "losses": list(done.losses),
    }
    # After the model: without it the model counts for unfinished.
    write_json(folder.fine_tuning, record)


def _evaluate(
    config: DistillConfig,
    model: str,
    revision: str | None,
    target: Path,
    *,
    observer: Observer,
    command: Sequence[str],
) -> float | None:
    """Return a model's held-out accuracy; None without held-out problems."""
    heldout = config.heldout
    if heldout is None:
        return None
    from microcoder.eval.evaluation import run_evaluation

    asked = EvalConfig(
        benchmark=heldout.benchmark,
        generation=Transformers(
            model=model,
            revision=revision,
            dtype=heldout.dtype,
            batch_size=heldout.batch_size,
        ),
        sampling=heldout.sampling,
        prompt=heldout.prompt,
        judging=heldout.judging,
    )
    results = run_evaluation(asked, run_directory=target, observer=observer, command=command)
    return _find_accuracy(results)


def _find_accuracy(results: Mapping[str, Any]) -> float | None:
    """Return the accuracy over all problems in an evaluation's results."""
    for cell in results["cells"]:
        if (cell["platform"], cell["difficulty"], cell["k"]) == (ALL, ALL, 1):
            return cell["value"]
    return None


def read_source(path: Path) -> Source:
    """Return the answers of a run's or an evaluation's folder, and who gave them.

    DataError for any other folder.
    """
    evaluation = EvaluationFolder(path)
    if evaluation.is_evaluation:
        return _read_evaluation(evaluation)
    run = RunDirectory(path)
    if not run.manifest.exists() or not (run.metrics.exists() or run.rollouts.exists()):
        raise DataError(
            f"{path} is neither a training run nor an evaluation; pass a folder of `microcoder "
            "train` or `microcoder eval`"
        )
    config = run.read_manifest()["config"]
    model = config["model"]
    is_ordinary = model["kind"] == "hugging_face"
    return Source(
        answers=read_run_answers(run),
        model=model["path"] if is_ordinary else None,
        revision=model.get("revision"),
        template_options=config["prompt"]["chat_template_options"],
    )


def _read_evaluation(folder: EvaluationFolder) -> Source:
    """Return the answers of an evaluation that are responses and judged."""
    config = load_config(EvalConfig, layers=[folder.read_manifest()["config"]])
    samples = folder.read_samples()
    verdicts = folder.read_verdicts()
    chats = _find_chats(config, list(samples.values()))
    answers = []
    for key, sample in samples.items():
        # Of an answer that was given as code there is no response to train on.
        if sample.completion is None or key not in verdicts:
            continue
        answer = Answer(
            problem_id=sample.problem_id,
            prompt=sample.prompt or chats[sample.problem_id],
            completion=sample.completion,
            is_truncated=sample.is_truncated,
            is_accepted=verdicts[key]["verdict"] == Outcome.ACCEPTED,
        )
        answers.append(answer)
    if not answers:
        raise DataError(
            f"{folder.root} holds no judged response to train on; type its command again to finish "
            "it, or use an evaluation whose answers are responses, not programs"
        )
    generation = config.generation
    is_here = isinstance(generation, Transformers)
    return Source(
        answers=answers,
        model=generation.model if is_here else None,
        revision=generation.revision if is_here else None,
        template_options=config.prompt.chat_template_options,
    )


def _find_chats(config: EvalConfig, samples: Sequence[Sample]) -> dict[str, Chat]:
    """Return the prompts of an evaluation as chats, where some are not recorded."""
    if all(sample.prompt for sample in samples):
        return {}
    ask = build_prompt_builder(config)
    chats: dict[str, Chat] = {}
    for question in load_questions(config):
        chats[question.id] = build_messages(question, config, ask)
    return chats
